"""Numbers that random training programs keep of their batches: where they begin, what a batch adds, what is told of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

_METER = """
class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
"""
_LAZY_METER = """
class Average:
    def __init__(self):
        self.total = 0.0
        self.steps = 0

    def add(self, value, weight=1):
        self.total += value * weight
        self.steps += weight

    def value(self):
        return self.total / max(self.steps, 1)
"""
_PROPERTY_METER = """
class RunningMean:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)

    @property
    def mean(self):
        return sum(self.values) / len(self.values)
"""
_TRACKER = """
class MetricTracker:
    def __init__(self, *keys):
        self.data = {k: [0.0, 0] for k in keys}

    def update(self, key, value, n=1):
        self.data[key][0] += value * n
        self.data[key][1] += n

    def avg(self, key):
        return self.data[key][0] / self.data[key][1]

    def result(self):
        return {k: v[0] / v[1] for k, v in self.data.items()}
"""
_BINS = """
class Hits:
    def __init__(self, classes):
        self.matrix = np.zeros((classes, classes))

    def add(self, targets, guesses):
        for t, p in zip(targets, guesses):
            self.matrix[t, p] += 1

    def accuracy(self):
        return np.diag(self.matrix).sum() / self.matrix.sum()
"""
_ACCURACY = """
def accuracy(output, target):
    pred = output.argmax(dim=1)
    return (pred == target).float().mean().item()
"""
_TOPK = """
def topk_accuracy(output, target, topk=(1, 2)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res
"""
_CORRECT = """
def count_correct(logits, target):
    return (logits.argmax(1) == target).sum().item()
"""
_F1 = """
def macro_f1(truth, guess):
    truth, guess = np.asarray(truth), np.asarray(guess)
    scores = []
    for c in range(3):
        tp = ((truth == c) & (guess == c)).sum()
        fp = ((truth != c) & (guess == c)).sum()
        fn = ((truth == c) & (guess != c)).sum()
        scores.append(2 * tp / max(2 * tp + fp + fn, 1))
    return float(np.mean(scores))
"""


@dataclass(slots=True)
class Unit:
    """One number that is kept and told: where it begins, what a batch adds, and what is told of it."""

    tag: str
    names: list[str]
    once: list[str] = field(default_factory=list)
    init: list[str] = field(default_factory=list)
    turn: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    value: str = "0"
    kind: str = ""
    higher: bool = False
    decides: bool = False


class Units:
    """Makes the numbers of one program."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.seed = seed
        self.tops: dict[str, None] = {}
        self.n = 0
        self.held = 0
        self.batch = self.r.choice([6, 12])
        self.train = self.r.choice([36, 37, 40, 47, 48, 53, 60])
        self.val = self.r.choice([15, 18, 20, 23, 29])
        self.val_batch = self.r.choice([4, 5, 6, 8, 12])
        self.drop_last = self.r.random() < 0.2
        self.layout = self.r.choice(["flat", "main", "function", "function", "class", "class", "phases"])
        self.me = "self." if self.layout == "class" else ""

    # ------------------------------------------------------------ expressions

    def top(self, text: str) -> None:
        self.tops[text] = None

    def name(self, *words: str) -> str:
        return f"{self.r.choice(words)}{self.n}"

    def loss(self) -> str:
        return self.r.choice(
            ["loss.item()"] * 6
            + ["float(loss)", "loss.detach().cpu().item()", "loss.data.item()", "loss.detach().cpu().numpy()", "loss.detach()", "loss.data", "float(loss.detach())", "loss.cpu().item()", "loss.detach().item()", "loss.tolist()"]
        )

    def size(self) -> str:
        return self.r.choice(["x.size(0)", "len(x)", "y.size(0)", "y.shape[0]", "x.shape[0]", "len(y)", "y.numel()", "x.size()[0]"])

    def correct(self) -> str:
        c = self.r.random()
        if c < 0.12:
            self.top(_CORRECT)
            return "count_correct(out, y)"
        return self.r.choice(
            ["(out.argmax(1) == y).sum().item()"] * 4
            + [
                "(pred == y).sum().item()", "pred.eq(y).sum().item()", "torch.sum(pred == y.data)", "(pred == y).float().sum().item()", "int((pred == y).sum())",
                "pred.eq(y.view_as(pred)).sum().item()", "(pred == y).sum()", "(pred == y).cpu().numpy().sum()", "sum(p == t for p, t in zip(pred.tolist(), y.tolist()))",
                "torch.eq(pred, y).sum().item()", "(pred == y).double().sum().item()", "np.sum(pred.cpu().numpy() == y.cpu().numpy())",
            ]
        )  # fmt: skip

    def share(self) -> str:
        """The accuracy of one batch."""
        c = self.r.random()
        if c < 0.3:
            self.top(_ACCURACY)
            return "accuracy(out, y)"
        if c < 0.4:
            self.top(_TOPK)
            return "topk_accuracy(out, y)[0].item()"
        return self.r.choice(["(pred == y).float().mean().item()", "(pred == y).float().mean()", "(pred == y).sum().item() / len(y)", "(pred == y).sum().item() / y.size(0)", "np.mean((pred == y).cpu().numpy())", "pred.eq(y).sum().item() * 100.0 / y.size(0)"])

    def loader(self, val: bool) -> str:
        return ("val_loader" if val else "train_loader") if not self.me else ("self.val_loader" if val else "self.train_loader")

    def samples(self, val: bool) -> str:
        """How many samples there are."""
        data = "val_set" if val else "train_set"
        loader = self.loader(val)
        options = [f"len({data})"] * 2 + [f"len({loader}.dataset)"] * 3
        if not val and self.r.random() < 0.3:
            options += [f"len({loader}.sampler)", f"(len({loader}) * {self.batch})", f"(len({loader}) * {loader}.batch_size)"]
        return self.r.choice(options)

    def batches(self, val: bool) -> str:
        return self.r.choice([f"len({self.loader(val)})"] * 4 + ["(step + 1)"])

    # ------------------------------------------------------------ units

    def unit(self, val: bool) -> Unit:
        """Something that is kept of each batch and told after the loop."""
        self.n += 1
        u = Unit(f"u{self.n}", [])
        kinds = [self.summed] * 10 + [self.list_of_batches] * 3 + [self.rows] * 3 + [self.metered] * 4 + [self.table] * 2 + [self.last] + [self.moving] + [self.extreme] + [self.window] + [self.tensor_slots] + [self.squares]
        self.r.choice(kinds)(u, val)
        u.kind += " val" if val else " train"
        return u

    def accumulator(self, u: Unit, words: tuple[str, ...], zero: str = "0.0") -> str:
        """A place that numbers are added up in."""
        r, name = self.r, self.name(*words)
        self.held += 1
        at = self.held
        u.names.append(name)
        how = r.choice(["local"] * 6 + ["dict", "dict", "defaultdict", "attribute" if self.me else "local", "global" if self.layout == "function" else "local", "ordered"])
        if how == "attribute":
            u.init.append(f"self.{name} = {zero}")
            return f"self.{name}"
        if how == "dict":
            u.names.append(f"stats{at}")
            u.init.append(f'stats{at} = {{"{name}": {zero}, "n": 0}}')
            return f'stats{at}["{name}"]'
        if how == "ordered":
            u.names.append(f"log{at}")
            u.init.append(f"log{at} = OrderedDict()\nlog{at}['{name}'] = {zero}")
            return f"log{at}['{name}']"
        if how == "defaultdict":
            u.names.append(f"sums{at}")
            u.init.append(f"sums{at} = defaultdict({r.choice(['float', 'int', 'lambda: 0.0'])})")
            return f'sums{at}["{name}"]'
        if how == "global":
            self.top(f"{name} = {zero}\n")
            u.init.append(f"global {name}\n{name} = {zero}")
            return name
        u.init.append(f"{name} = {zero}")
        return name

    def add(self, place: str, what: str) -> str:
        return self.r.choice([f"{place} += {what}"] * 5 + [f"{place} = {place} + {what}"])

    def summed(self, u: Unit, val: bool) -> None:
        """A sum over batches and what it is divided by."""
        r = self.r
        kind = r.choice(["loss", "loss", "weighted", "weighted", "correct", "correct", "share", "count"])
        u.kind = f"summed {kind}"
        if kind == "count":
            place = self.accumulator(u, ("seen", "n_samples", "total", "count"), "0")
            u.turn.append(self.add(place, self.size()))
            u.value = place
            return
        words = {"loss": ("running_loss", "total_loss", "epoch_loss", "loss_sum", "tr_loss"), "weighted": ("running_loss", "loss_total", "train_loss", "cum_loss"), "correct": ("correct", "hits", "num_correct", "running_corrects"), "share": ("acc", "running_acc", "total_acc")}[kind]
        place = self.accumulator(u, words, "0" if kind == "correct" else "0.0")
        if kind == "loss":
            u.turn.append(self.add(place, self.loss()))
        elif kind == "weighted":
            u.turn.append(self.add(place, r.choice([f"{self.loss()} * {self.size()}"] * 3 + [f"{self.size()} * {self.loss()}"])))
        elif kind == "correct":
            u.higher = True
            u.turn.append(self.add(place, self.correct()))
        else:
            u.higher = True
            u.turn.append(self.add(place, self.share()))
        per_batch = kind in ("loss", "share")
        if r.random() < 0.06:
            per_batch = not per_batch  # as some programs do
        how = r.choice(["known", "known", "counted", "counted", "raw"] if kind != "correct" else ["known", "counted", "counted", "raw"])
        if how == "raw":
            divided = place
        elif how == "known":
            divided = f"{place} / {self.batches(val) if per_batch else self.samples(val)}"
        else:
            self_n = self.accumulator(u, ("num_batches", "steps", "n_iter") if per_batch else ("total", "n", "num_samples", "seen"), "0")
            u.turn.append(self.add(self_n, "1" if per_batch else self.size()))
            divided = f"{place} / {self_n}"
        if kind == "correct" and how != "raw" and r.random() < 0.4:
            divided = r.choice([f"100.0 * {divided}", f"100 * {divided}"])
        if r.random() < 0.25:
            divided = f"float({divided})"
        if r.random() < 0.35:
            name = self.name("avg_loss", "mean", "epoch_value", "result")
            u.names.append(name)
            u.after.append(f"{name} = {divided}")
            divided = name
        u.value = divided

    def list_of_batches(self, u: Unit, val: bool) -> None:
        r = self.r
        name = self.name("losses", "epoch_losses", "batch_losses", "loss_list")
        u.names.append(name)
        u.kind = "list"
        place = f"self.{name}" if self.me and r.random() < 0.4 else name
        what = r.choice([self.loss(), self.loss(), self.share()])
        u.init.append(f"{place} = []")
        u.turn.append(r.choice([f"{place}.append({what})"] * 4 + [f"{place} += [{what}]"]))
        if "detach()" in what or "data" in what or "mean()" in what:
            u.value = r.choice([f"sum({place}) / len({place})", f"torch.stack([torch.as_tensor(v) for v in {place}]).mean().item()"])
        else:
            u.value = r.choice([f"sum({place}) / len({place})", f"np.mean({place})", f"np.array({place}).mean()", f"sum({place}) / {self.batches(val)}", f"max({place})", f"{place}[-1]", f"np.mean({place}[-2:])", f"np.std({place})", f"np.median({place})", f"torch.tensor({place}).mean().item()"])

    def rows(self, u: Unit, val: bool) -> None:
        """Lists with a row a sample, and a metric of them."""
        r = self.r
        a, b = self.name("preds", "y_pred", "all_preds", "outputs"), self.name("targets", "y_true", "all_labels", "gts")
        u.names += [a, b]
        u.kind = "rows"
        u.higher = True
        pa, pb = (f"self.{a}", f"self.{b}") if self.me and r.random() < 0.3 else (a, b)
        how = r.choice(["extend", "extend", "tensors", "arrays", "joined", "plus", "one by one"])
        u.init.append(f"{pa}, {pb} = [], []" if r.random() < 0.5 else f"{pa} = []\n{pb} = []")
        if how == "extend":
            ending = r.choice([".tolist()", ".cpu().numpy()", ".cpu().tolist()"])
            u.turn.append(f"{pa}.extend(pred{ending})\n{pb}.extend(y{ending})")
            xa, xb = f"np.array({pa})", f"np.array({pb})"
        elif how == "plus":
            u.turn.append(f"{pa} += pred.tolist()\n{pb} += y.tolist()")
            xa, xb = f"np.array({pa})", f"np.array({pb})"
        elif how == "one by one":
            u.turn.append(f"for p, t in zip(pred.tolist(), y.tolist()):\n    {pa}.append(p)\n    {pb}.append(t)")
            xa, xb = f"np.asarray({pa})", f"np.asarray({pb})"
        elif how == "tensors":
            u.turn.append(f"{pa}.append(pred.cpu())\n{pb}.append(y.cpu())")
            xa, xb = f"torch.cat({pa})", f"torch.cat({pb})"
        elif how == "arrays":
            u.turn.append(f"{pa}.append(pred.cpu().numpy())\n{pb}.append(y.cpu().numpy())")
            xa, xb = f"np.concatenate({pa})", f"np.concatenate({pb})"
        else:
            u.init[-1] = f"{pa} = torch.tensor([], dtype=torch.long)\n{pb} = torch.tensor([], dtype=torch.long)"
            u.turn.append(f"{pa} = torch.cat(({pa}, pred.cpu()))\n{pb} = torch.cat(({pb}, y.cpu()))")
            xa, xb = pa, pb
        if r.random() < 0.5:
            va, vb = f"p{self.n}_all", f"t{self.n}_all"
            u.names += [va, vb]
            u.after.append(f"{va} = {xa}\n{vb} = {xb}")
            xa, xb = va, vb
        if r.random() < 0.4:
            self.top(_F1)
            u.value = f"macro_f1({xb}, {xa})"
        elif how in ("tensors", "joined"):
            u.value = r.choice([f"({xa} == {xb}).float().mean().item()", f"({xa} == {xb}).sum().item() / len({xb})", f"({xa} == {xb}).sum().item() / {self.samples(val)}"])
        else:
            u.value = r.choice([f"({xa} == {xb}).mean()", f"np.mean({xa} == {xb})", f"({xa} == {xb}).sum() / len({xb})", f"({xa} == {xb}).sum() / {self.samples(val)}"])

    def metered(self, u: Unit, val: bool) -> None:
        """A meter of the program's own."""
        r = self.r
        name = self.name("meter", "loss_meter", "losses", "top1")
        u.names.append(name)
        u.kind = "meter"
        what = r.choice([self.loss(), self.loss(), self.share()])
        place = f"self.{name}" if self.me and r.random() < 0.3 else name
        c = r.randrange(7)
        if c < 3:
            self.top(_METER)
            u.init.append(f"{place} = AverageMeter()")
            u.turn.append(f"{place}.update({what}, {self.size()})" if r.random() < 0.75 else f"{place}.update({what})")
            u.value = r.choice([f"{place}.avg"] * 4 + [f"{place}.sum / {place}.count", f"{place}.sum"])
            u.kind += " avg"
        elif c == 3:
            self.top(_LAZY_METER)
            u.init.append(f"{place} = Average()")
            u.turn.append(f"{place}.add({what}, {self.size()})" if r.random() < 0.7 else f"{place}.add({what})")
            u.value = f"{place}.value()"
            u.kind += " lazy"
        elif c == 4:
            self.top(_PROPERTY_METER)
            u.init.append(f"{place} = RunningMean()")
            u.turn.append(f"{place}.update({what})")
            u.value = f"{place}.mean"
            u.kind += " property"
        elif c == 5:
            self.top(_TRACKER)
            u.init.append(f'{place} = MetricTracker("loss", "acc")')
            u.turn.append(f'{place}.update("loss", {what}, {self.size()})\n{place}.update("acc", {self.share()}, {self.size()})')
            u.value = r.choice([f'{place}.avg("loss")', f'{place}.result()["acc"]'])
            u.kind += " tracker"
        else:
            self.top(_BINS)
            u.init.append(f"{place} = Hits(3)")
            u.turn.append(f"{place}.add(y.tolist(), pred.tolist())")
            u.value = f"{place}.accuracy()"
            u.kind += " hits"

    def table(self, u: Unit, val: bool) -> None:
        """Counts by classes."""
        r = self.r
        name = self.name("per_class", "confusion", "counts", "matrix")
        u.names.append(name)
        u.kind = "table"
        c = r.randrange(7)
        if c == 0:
            u.init.append(f"{name} = np.zeros((3, 3))")
            u.turn.append(f"for t, p in zip(y.tolist(), pred.tolist()):\n    {name}[t, p] += 1")
            u.value = f"np.trace({name}) / {name}.sum()"
        elif c == 1:
            u.init.append(f"{name} = torch.zeros(3, 3)")
            u.turn.append(f"for t, p in zip(y.view(-1), pred.view(-1)):\n    {name}[t.long(), p.long()] += 1")
            u.value = f"({name}.diag() / {name}.sum(1).clamp(min=1)).mean().item()"
        elif c == 2:
            u.init.append(f"{name} = defaultdict(int)")
            u.turn.append(f"for t in y.tolist():\n    {name}[t] += 1")
            u.value = f"max({name}.values())"
        elif c == 3:
            u.init.append(f"{name} = Counter()")
            u.turn.append(f"{name}.update(pred.tolist())")
            u.value = f"max({name}.values())"
        elif c == 4:
            u.init.append(f"{name} = [0] * 3\nof{self.n} = [0] * 3")
            u.names.append(f"of{self.n}")
            u.turn.append(f"for t, p in zip(y, pred):\n    of{self.n}[t] += 1\n    {name}[t] += (t == p).item()")
            u.value = f"sum(a / max(b, 1) for a, b in zip({name}, of{self.n}))"
        elif c == 5:
            u.init.append(f"{name} = np.zeros(3)")
            u.turn.append(f"{name} += np.bincount(y.numpy(), minlength=3)")
            u.value = f"{name}.max()"
        else:
            u.init.append(f"{name} = {{c: 0 for c in range(3)}}\nof{self.n} = {{c: 0 for c in range(3)}}")
            u.names.append(f"of{self.n}")
            u.turn.append(f"for t, p in zip(y.tolist(), pred.tolist()):\n    of{self.n}[t] += 1\n    if t == p:\n        {name}[t] += 1")
            u.value = f"{name}[1] / max(of{self.n}[1], 1)"

    def last(self, u: Unit, val: bool) -> None:
        u.kind = "last"
        if self.r.random() < 0.5:
            u.value = self.r.choice(["loss.item()", "float(loss)"])
            u.names.append("loss")
        else:
            name = self.name("last", "cur_loss")
            u.names.append(name)
            u.turn.append(f"{name} = {self.loss()}")
            u.value = name

    def moving(self, u: Unit, val: bool) -> None:
        name = self.name("ema", "smooth", "avg")
        u.names.append(name)
        u.kind = "moving"
        if self.r.random() < 0.5:
            u.init.append(f"{name} = 0.0")
            u.turn.append(f"{name} = 0.9 * {name} + 0.1 * loss.item()")
        else:
            u.init.append(f"{name} = None")
            u.turn.append(f"{name} = loss.item() if {name} is None else 0.8 * {name} + 0.2 * loss.item()")
        u.value = name

    def extreme(self, u: Unit, val: bool) -> None:
        name = self.name("worst", "max_loss", "min_loss")
        u.names.append(name)
        u.kind = "extreme"
        if self.r.random() < 0.5:
            u.init.append(f"{name} = 0.0")
            u.turn.append(f"{name} = max({name}, loss.item())")
        else:
            u.init.append(f"{name} = float('inf')")
            u.turn.append(f"if loss.item() < {name}:\n    {name} = loss.item()")
        u.value = name

    def window(self, u: Unit, val: bool) -> None:
        name = self.name("recent", "window", "last_losses")
        u.names.append(name)
        u.kind = "window"
        u.init.append(f"{name} = deque(maxlen=3)" if self.r.random() < 0.6 else f"{name} = []")
        u.turn.append(f"{name}.append({self.r.choice(['loss.item()', self.share()])})")
        u.value = f"sum({name}) / len({name})" if "deque" in u.init[0] else f"sum({name}[-3:]) / len({name}[-3:])"

    def tensor_slots(self, u: Unit, val: bool) -> None:
        name = self.name("metrics", "acc_t", "sums")
        u.names.append(name)
        u.kind = "slots"
        u.init.append(self.r.choice([f"{name} = torch.zeros(3)", f"{name} = np.zeros(3)", f"{name} = [0.0, 0, 0]"]))
        u.turn.append(f"{name}[0] += loss.item() * {self.size()}\n{name}[1] += {self.correct()}\n{name}[2] += {self.size()}")
        u.value = self.r.choice([f"float({name}[0] / {name}[2])", f"float({name}[1] / {name}[2])", f"{name}[0] / {self.samples(val)}"])

    def squares(self, u: Unit, val: bool) -> None:
        place = self.accumulator(u, ("sq_err", "mse_sum", "abs_err"))
        u.kind = "squares"
        per_sample = self.r.choice(["((prob - onehot) ** 2).sum().item()", "(prob - onehot).abs().sum().item()", "F.cross_entropy(out, y, reduction='sum').item()", "F.mse_loss(prob, onehot, reduction='sum').item()"])
        u.turn.append(f"prob = out.softmax(1)\nonehot = F.one_hot(y, 3).to(prob.dtype)\n{self.add(place, per_sample)}")
        u.value = self.r.choice([f"{place} / {self.samples(val)}", f"math.sqrt({place} / {self.samples(val)})"])
