"""Random training steps whose state outlives them: the text of a program for each seed.

A state is a number, a vector or a table that is moved by what a step gives and goes back into the
training: as the weight of a term, as noise, as a learning rate, as a decision. It is kept in the ways
in which programs keep it: variables, globals, dicts, objects, closures, histories. ``step_runs`` runs
the programs before and after their migration.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from textwrap import dedent, indent

_IMPORTS = """\
import math
import random
import copy
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(5)
random.seed(5)
np.random.seed(5)
"""
_NET = """\
class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh())
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.body(x))
"""
_INDEXED = """\
class Indexed(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i], i
"""
#: numbers that a step gives before its backward pass: means over the batch and what is no mean
MEANS = (
    "loss.item()", "float(loss)", "loss.detach().item()", "out.detach().abs().mean().item()",
    "(out.argmax(1) == y).double().mean().item()", "torch.sign(out[:, 0]).mean().item()", "x.mean().item()",
    "(out.argmax(1) == y).sum().item() / len(y)", "(out.detach()[:, 0] > 0).double().mean().item()",
    "each.detach().mean().item()", "float(torch.sigmoid(out[:, 1]).mean())", "(out.argmax(1) == y).sum().item() / x.size(0)",
)  # fmt: skip
NO_MEANS = (
    "out.std().item()", "x.norm().item()", "out.detach().max().item()", "loss.item() ** 2", "math.exp(-loss.item())",
    "(out.detach()[:, 0] > 0).sum().item()", "each.detach().median().item()", "np.sqrt(loss.item())",
)  # fmt: skip
TENSORS = ("loss.detach()", "out.detach().abs().mean()", "each.detach().mean()", "torch.sign(out.detach()[:, 0]).mean()")
#: how a state S is moved by a number Q
RULES = (
    "0.9 * S + 0.1 * Q", "0.8 * S + (1 - 0.8) * Q", "S + 0.1 * (Q - S)", "S + 0.05 * Q", "Q", "0.5 * (S + Q)",
    "S + (0.05 if Q > 0.4 else -0.05)", "min(max(S + 0.05 * (1 if Q > 0.5 else -1), 0.0), 1.0)", "max(S, Q)", "min(S, Q)",
    "S + 0.03 * np.sign(Q - 0.5)", "S * 1.1 if Q > 0.6 else S * 0.95", "S if Q > 1.5 * S else 0.5 * S + 0.5 * Q",
    "S * math.exp(-0.1 * Q)", "float(np.clip(S + 0.04 * np.sign(Q - 0.6), 0, 1))", "(S * 3 + Q) / 4",
)  # fmt: skip
TENSOR_RULES = ("0.9 * S + 0.1 * Q", "S.mul(0.9).add(0.1 * Q)", "torch.maximum(S, Q)", "S + 0.05 * torch.sign(Q - 0.5)", "torch.lerp(S, Q, 0.1)", "(S + 0.02 * Q).clamp(0, 1)")


@dataclass(slots=True)
class Kept:
    """A number that outlives a step: what stands above the training, what begins it, how it is read, and how it is moved."""

    above: str = ""
    begin: str = ""
    read: str = ""
    move: str = ""
    #: names of plain variables, which functions that move them declare
    names: list[str] = field(default_factory=list)


class Maker:
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.above: list[str] = []
        self.begin: list[str] = []
        self.names: list[str] = []
        self.number = 0
        self.has: set[object] = set()
        self.owner = ""  # "self." in the methods of a trainer

    def program(self) -> str:
        """The text of a program."""
        kind = self.r.choice([self.classified] * 5 + [self.tables, self.vectors, self.adversarial, self.adversarial, self.tasks])
        return kind()

    # ------------------------------------------------------------ a number that is kept

    def name(self) -> str:
        self.number += 1
        words = ["p", "scale", "ema", "level", "avg", "margin", "strength", "ref", "gate", "noise"]
        return words[(self.number + self.r.randrange(len(words))) % len(words)] + str(self.number)

    def kept(self, rule: str, quantity: str, start: str = "0.5") -> Kept:
        """A way to keep a number that a rule moves by a quantity."""
        ways = [self.variable] * 2 + [self.in_dict, self.in_object, self.in_object, self.in_object, self.in_fields, self.in_closure, self.in_function, self.in_class, self.in_global]
        if rule in ("0.9 * S + 0.1 * Q", "Q") and self.r.random() < 0.5:
            ways = [self.in_history, self.in_history, self.in_queue]
        return self.r.choice(ways)(self.name(), rule, quantity, start)

    @staticmethod
    def put(rule: str, s: str, q: str) -> str:
        out = []
        for c, before, after in zip(rule, " " + rule, rule[1:] + " ", strict=False):
            alone = not (before.isalnum() or before in "._") and not (after.isalnum() or after == "_")
            out.append((s if c == "S" else q if c == "Q" else c) if alone else c)
        return "".join(out)

    def variable(self, n: str, rule: str, q: str, start: str) -> Kept:
        o = self.owner + n
        plain = [n] if not self.owner else []
        move = f"q = {q}\n{o} = {self.put(rule, o, 'q')}" if rule.count("Q") != 1 else f"{o} = {self.put(rule, o, q)}"
        return Kept(begin=f"{o} = {start}", read=o, move=move, names=plain)

    def in_dict(self, n: str, rule: str, q: str, start: str) -> Kept:
        o = f'{self.owner}state_{n}["{n}"]'
        return Kept(begin=f'{self.owner}state_{n} = {{"{n}": {start}, "steps": 0}}', read=o, move=f"q = {q}\n{o} = {self.put(rule, o, 'q')}\n{self.owner}state_{n}[\"steps\"] += 1")

    def in_object(self, n: str, rule: str, q: str, start: str) -> Kept:
        cls, o = n.capitalize(), self.owner + f"{n}_keeper"
        method = self.r.choice(["update", "step", "__call__", "observe"])
        gives = self.r.choice(["", "        return self.value\n"])
        body = f"""\
class {cls}:
    def __init__(self, start={start}):
        self.value = start
        self.count = 0

    def {method}(self, q):
        self.value = {self.put(rule, "self.value", "q")}
        self.count += 1
{gives}"""
        read = f"{o}.value"
        if self.r.random() < 0.3:
            body += "\n    @property\n    def current(self):\n        return self.value\n"
            read = f"{o}.current"
        call = f"{o}({q})" if method == "__call__" else f"{o}.{method}({q})"
        return Kept(above=body, begin=f"{o} = {cls}()", read=read, move=call)

    def in_fields(self, n: str, rule: str, q: str, start: str) -> Kept:
        cls, o = n.capitalize() + "State", f"{self.owner}{n}_state"
        return Kept(
            above=f"@dataclass\nclass {cls}:\n    value: float = {start}\n    target: float = 0.5\n",
            begin=f"{o} = {cls}()", read=f"{o}.value", move=f"q = {q}\n{o}.value = {self.put(rule, f'{o}.value', 'q')}",
        )  # fmt: skip

    def in_closure(self, n: str, rule: str, q: str, start: str) -> Kept:
        above = f"""\
def make_{n}(start={start}):
    value = start

    def get():
        return value

    def move(q):
        nonlocal value
        value = {self.put(rule, "value", "q")}

    return get, move
"""
        o = self.owner
        return Kept(above=above, begin=f"{o}get_{n}, {o}move_{n} = make_{n}()", read=f"{o}get_{n}()", move=f"{o}move_{n}({q})")

    def in_function(self, n: str, rule: str, q: str, start: str) -> Kept:
        return Kept(
            above=f"def {n}_step(q):\n    {n}_step.value = {self.put(rule, f'{n}_step.value', 'q')}\n    return {n}_step.value\n\n\n{n}_step.value = {start}\n",
            read=f"{n}_step.value", move=f"{n}_step({q})",
        )  # fmt: skip

    def in_class(self, n: str, rule: str, q: str, start: str) -> Kept:
        cls = n.capitalize()
        return Kept(
            above=f"class {cls}:\n    value = {start}\n\n    @classmethod\n    def move(cls, q):\n        cls.value = {self.put(rule, 'cls.value', 'q')}\n",
            read=f"{cls}.value", move=f"{cls}.move({q})",
        )  # fmt: skip

    def in_global(self, n: str, rule: str, q: str, start: str) -> Kept:
        n = n.upper()
        return Kept(above=f"{n} = {start}\n\n\ndef move_{n.lower()}(q):\n    global {n}\n    {n} = {self.put(rule, n, 'q')}\n", read=n, move=f"move_{n.lower()}({q})")

    def in_history(self, n: str, rule: str, q: str, start: str) -> Kept:
        o = f"{self.owner}{n}_history"
        read = self.r.choice([f"(sum({o}[-3:]) / len({o}[-3:]))", f"np.mean({o})", f"{o}[-1]", f"max({o})", f"float(np.mean({o}[-4:]))"])
        return Kept(begin=f"{o} = [{start}]", read=read, move=f"{o}.append({q})")

    def in_queue(self, n: str, rule: str, q: str, start: str) -> Kept:
        o = f"{self.owner}{n}_queue"
        return Kept(begin=f"{o} = deque([{start}], maxlen=3)", read=f"(sum({o}) / len({o}))", move=f"{o}.append({q})")

    def add(self, kept: Kept) -> Kept:
        if kept.above:
            self.above.append(kept.above)
        if kept.begin:
            self.begin.append(kept.begin)
        self.names += kept.names
        return kept

    # ------------------------------------------------------------ a classifier

    def classified(self) -> str:
        """A classifier whose step has one or two states."""
        r = self.r
        self.shape = r.choice(["flat", "main", "function", "trainer", "trainer", "closure", "keeper"])
        self.owner = "self." if self.shape == "trainer" else ""
        step: dict[str, list[str]] = {"before": [], "loss": [], "update": [], "after": [], "epoch": [], "end": []}
        for _ in range(r.choice([1, 1, 2])):
            self.state(step)
        for _ in range(r.choice([0, 1, 1, 2])):
            self.other(step)
        return self.assembled(step)

    def state(self, step: dict[str, list[str]]) -> None:
        r = self.r
        tensor = r.random() < 0.15
        quantity = r.choice(TENSORS) if tensor else r.choice(MEANS if r.random() < 0.75 else NO_MEANS)
        rule = r.choice(TENSOR_RULES if tensor else RULES)
        kept = self.add(self.kept(rule, quantity, "torch.tensor(0.5)" if tensor else "0.5"))
        s = kept.read
        uses = [
            ("loss", f"loss = loss + {s} * (out ** 2).mean()"),
            ("loss", f"loss = loss + 1.0 / (1.5 + abs({s})) * out.abs().mean()"),
            ("loss", f"loss = loss / (abs({s}) + 0.1)"),
            ("loss", f"loss = loss * {s}"),
            ("loss", f"loss = loss + F.relu({s} - out[:, 0]).mean()"),
            ("loss", f"loss = loss + ((out - {s}) ** 2).mean()"),
            ("loss", f"loss = F.cross_entropy(out / (1 + abs({s})), y)"),
            ("loss", f"if {s} > 0.5:\n    loss = loss + 0.1 * (out ** 2).mean()"),
            ("loss", f"loss = (each * (each.detach() < 2 * {s}).to(each.dtype)).mean()"),
            ("loss", f"loss = (each * torch.sigmoid(each.detach() - {s})).mean()"),
            ("before", f"x = x + {s} * torch.randn_like(x)"),
            ("before", f"x = x * (1 + 0.1 * {s})"),
            ("before", f"x = x - {s}"),
            ("before", f"mask = (torch.rand_like(x) > {s}).to(x.dtype)\nx = x * mask"),
            ("update", f"for group in {self.owner}optimizer.param_groups:\n    group['lr'] = 0.1 / (1 + abs({s}))"),
            ("update", f"{self.owner}optimizer.param_groups[0]['weight_decay'] = 0.01 * abs({s})"),
            ("update", f"torch.nn.utils.clip_grad_norm_({self.owner}model.parameters(), 0.2 + abs({s}))"),
            ("loss", f"if loss.item() > 3 * abs({s}) + 1:\n    continue"),
            ("before", f"if {s} > 0.6:\n    x = x * 0.5"),
            ("before", f"if random.random() < {s}:\n    x = x + 0.1 * torch.sin(x)"),
            ("before", f"for _ in range(1 + int({s} > 0.5)):\n    x = x * 0.9"),
            ("update", f"for p in {self.owner}model.parameters():\n    p.grad.mul_(1 / (1 + abs({s})))"),
            ("loss", f"loss = F.cross_entropy(out, y, label_smoothing=min(abs(float({s})), 0.5))"),
            ("criterion", f"{self.owner}criterion.label_smoothing = min(abs(float({s})), 0.5)"),
            ("hook", f"{self.owner}model.head.weight.register_hook(lambda grad: grad * (1 + abs({s})))"),
            ("teacher", f"{s}"),
            ("made", f"{self.owner}optimizer = torch.optim.SGD({self.owner}model.parameters(), lr=0.1 / (1 + abs({s})))"),
        ]  # fmt: skip
        where, use = r.choice(uses)
        if where == "criterion":
            self.begin.append(f"{self.owner}criterion = nn.CrossEntropyLoss()")
            step["loss"].append(f"loss = loss + {self.owner}criterion(out, y)")
            where = "after"
        elif where == "hook":
            self.begin.append(use)
            where, use = "before", ""
        elif where == "teacher":
            model = f"{self.owner}model"
            self.begin.append(f"{self.owner}teacher = copy.deepcopy({model})")
            step["loss"].append(f"with torch.no_grad():\n    soft = {self.owner}teacher(x).softmax(1)\nloss = loss + F.mse_loss(out.softmax(1), soft)")
            where = "after"
            use = f"decay = min(abs(float({s})), 0.9)\nwith torch.no_grad():\n    for a, b in zip({self.owner}teacher.parameters(), {model}.parameters()):\n        a.mul_(decay).add_(b, alpha=1 - decay)"
        elif where == "made":
            self.names += [] if self.owner else ["optimizer"]
            where = "epoch"
        if self.shape in ("trainer", "function", "closure") and "continue" in use:
            use = use.replace("continue", "return")
        # the state is moved before its use in the loss, or at the end of the step
        if use:
            step[where].append(use)
        if r.random() < 0.12 and not tensor:
            # moved now and then, by what several steps have given
            n = self.name()
            given = r.choice(["torch.sign(out[:, 0]).mean().item()", "loss.item()", "out.detach().abs().mean().item()"])
            self.begin.append(f"{self.owner}{n} = []\n{self.owner}turns_{n} = 0")
            self.names += [] if self.owner else [f"turns_{n}"]
            again = kept.move.replace(quantity, f"float(np.mean({self.owner}{n}))")
            kept.move = f"{self.owner}turns_{n} += 1\n{self.owner}{n}.append({given})\nif {self.owner}turns_{n} % 2 == 0:\n{indent(again, '    ')}\n    {self.owner}{n}.clear()"
        at = r.choice(["after", "after", "update", "loss"])
        if at == "loss":
            step["loss"].insert(0, kept.move)
        else:
            step[at].append(kept.move)
        if r.random() < 0.3:
            step["end"].append(f'print(f"state {{{s.replace(chr(34), chr(39))}:.4f}}")')

    def other(self, step: dict[str, list[str]]) -> None:
        """What ordinary steps have besides."""
        r, o = self.r, self.owner
        n = self.name()
        which = r.randrange(16)
        kind = "scheduler" if which in (1, 2, 10, 13) else which
        if kind in self.has:
            return
        self.has.add(kind)
        if which == 0:
            step["update"].append(f"torch.nn.utils.clip_grad_norm_({o}model.parameters(), 1.0)")
        elif which == 1:
            self.begin.append(f"{o}scheduler = torch.optim.lr_scheduler.OneCycleLR({o}optimizer, max_lr=0.2, total_steps=3 * len({o}loader))")
            step["after"].append(f"{o}scheduler.step()")
        elif which == 2:
            self.begin.append(f"{o}scheduler = torch.optim.lr_scheduler.LambdaLR({o}optimizer, lambda k: min(1.0, (k + 1) / 5))")
            step["after"].append(f"{o}scheduler.step()")
        elif which == 3:
            self.begin.append(f"{o}{n} = 0")
            self.names += [] if o else [n]
            step["update"].append(f"{o}{n} += 1\nfor group in {o}optimizer.param_groups:\n    group['lr'] = 0.1 * min(1.0, {o}{n} / 4)")
        elif which == 4:
            model = f"{o}model"
            self.begin.append(f"{o}shadow = copy.deepcopy({model})")
            step["after"].append(f"with torch.no_grad():\n    for a, b in zip({o}shadow.parameters(), {model}.parameters()):\n        a.mul_(0.9).add_(b, alpha=0.1)")
            step["loss"].append(f"with torch.no_grad():\n    soft = {o}shadow(x).softmax(1)\nloss = loss + 0.2 * F.kl_div(out.log_softmax(1), soft, reduction='batchmean')")
        elif which == 5:
            step["loss"].append("if random.random() < 0.5:\n    loss = loss + 0.1 * out.abs().mean()")
        elif which == 6:
            step["before"].append("lam = np.random.beta(0.4, 0.4)\nx = lam * x + (1 - lam) * torch.tanh(x)")
        elif which == 7:
            step["loss"].append(f"loss = loss + 1e-3 * sum((p ** 2).sum() for p in {o}model.parameters())")
        elif which == 8:
            self.begin.append(f"{o}running = []")
            step["after"].append(f"{o}running.append(loss.item())")
            step["epoch"].append(f'print(f"loss {{sum({o}running) / len({o}running):.4f}}")\n{o}running.clear()')
        elif which == 9:
            step["loss"].append("probs = out.softmax(1)\nloss = loss - 0.05 * -(probs * probs.log()).sum(1).mean()")
        elif which == 10:
            self.begin.append(f"{o}scheduler = torch.optim.lr_scheduler.CosineAnnealingLR({o}optimizer, 3)")
            step["epoch"].append(f"{o}scheduler.step()")
        elif which == 11:
            step["before"].append("x = x + 0.05 * torch.randn_like(x)")
        elif which == 12:  # a weight that the losses of an epoch move
            self.begin.append(f"{o}{n}, {o}{n}_losses = 1.0, []")
            self.names += [] if o else [n]
            step["loss"].append(f"loss = loss + {o}{n} * 0.1 * (out ** 2).mean()")
            step["after"].append(f"{o}{n}_losses.append(loss.item())")
            step["epoch"].append(f"{o}{n} = 0.5 if np.mean({o}{n}_losses) > 1.2 else {o}{n} * 0.9\n{o}{n}_losses.clear()")
        elif which == 13:  # a plateau of the losses of an epoch
            self.begin.append(f"{o}plateau = torch.optim.lr_scheduler.ReduceLROnPlateau({o}optimizer, patience=0)\n{o}{n}_losses = []")
            step["after"].append(f"{o}{n}_losses.append(loss.item())")
            step["epoch"].append(f"{o}plateau.step(sum({o}{n}_losses) / len({o}{n}_losses))\n{o}{n}_losses.clear()")
        elif which == 14:
            step["epoch"].append(f"if epoch == 1:\n    for p in {o}model.body.parameters():\n        p.requires_grad_(False)")
        else:  # an early end, by the losses so far
            self.begin.append(f"{o}{n}_best, {o}{n}_bad = 1e9, 0")
            self.names += [] if o else [f"{n}_best", f"{n}_bad"]
            step["after"].append(f"if loss.item() < {o}{n}_best:\n    {o}{n}_best, {o}{n}_bad = loss.item(), 0\nelse:\n    {o}{n}_bad += 1")
            step["epoch"].append(f"if {o}{n}_bad > 4:\n    break")

    # ------------------------------------------------------------ where it all stands

    def data(self, *, indexed: bool = False) -> str:
        size, batch = self.r.choice([(24, 6), (36, 12), (24, 12), (26, 6)])
        drop = ", drop_last=True" if size % batch else ""
        made = "Indexed(inputs, targets)" if indexed else "TensorDataset(inputs, targets)"
        return f"""\
inputs = torch.randn({size}, 4)
targets = torch.randint(0, 3, ({size},))
train_set = {made}
loader = DataLoader(train_set, batch_size={batch}, shuffle=True{drop})
"""

    def assembled(self, step: dict[str, list[str]], fed: str = "x, y", net: str = _NET, *, indexed: bool = False) -> str:
        """A program in one of several shapes."""
        r, o = self.r, self.owner
        optimizer = r.choice(["torch.optim.SGD({}, lr=0.1)", "torch.optim.SGD({}, lr=0.1, momentum=0.9)", "torch.optim.Adam({}, lr=0.02)"])
        early = r.random() < 0.5
        zero = f"{o}optimizer.zero_grad()"
        body = [*step["before"], *([zero] if early else []), f"out = {o}model(x)", "each = F.cross_entropy(out, y, reduction='none')", r.choice(["loss = each.mean()", "loss = F.cross_entropy(out, y)"]), *step["loss"]]
        if self.shape in ("flat", "main") and r.random() < 0.25:  # two batches for a step, and what is left in the end
            fed = f"k, ({fed})"
            later = "\n".join([*step["update"], f"{o}optimizer.step()", zero])
            body = [line for line in body if line != zero]
            body += ["(loss / 2).backward()", f"if (k + 1) % 2 == 0 or k + 1 == len(loader):\n{indent(later, '    ')}", *step["after"]]
        else:
            body += [*([] if early else [zero]), "loss.backward()", *step["update"], f"{o}optimizer.step()", *step["after"]]
        if not any("each" in line for line in [*step["before"], *step["loss"], *step["update"], *step["after"]]) and "loss = each.mean()" not in body:
            body.remove("each = F.cross_entropy(out, y, reduction='none')")
        text = "\n".join(body)
        epochs = r.choice(["for epoch in range(3):", "for epoch in range(3):", "for epoch in range(1, 4):"])
        head = _IMPORTS + "\n\n" + net + "\n\n" + (_INDEXED + "\n\n" if indexed else "") + "\n\n".join(self.above) + "\n\n"
        made = self.data(indexed=indexed) + "model = Net()\n" + f"optimizer = {optimizer.format('model.parameters()')}\n"
        epoch, end = "\n".join(step["epoch"]), "\n".join(step["end"])
        loop = lambda inner: f"{epochs}\n    for {fed} in {'enumerate(loader)' if fed.startswith('k, ') else 'loader'}:\n{indent(inner, ' ' * 8)}\n{indent(epoch, ' ' * 4)}\n{end}\n"  # noqa: E731
        begin = "\n".join(self.begin) + "\n"
        if self.shape == "flat":
            return head + made + begin + loop(text)
        if self.shape in ("main", "keeper"):
            return head + "def main():\n" + indent(made + begin + loop(text), "    ") + "\n\nif __name__ == '__main__':\n    main()\n"
        if self.shape == "function":
            declared = f"    global {', '.join(self.names)}\n" if self.names else ""
            return head + made + begin + f"\n\ndef train_step({fed}):\n{declared}{indent(text, '    ')}\n    return loss.item()\n\n\n" + loop(f"train_step({fed})")
        if self.shape == "closure":
            declared = f"    nonlocal {', '.join(self.names)}\n" if self.names else ""
            inner = made + begin + f"\ndef train_step({fed}):\n{declared}{indent(text, '    ')}\n    return loss.item()\n\n" + loop(f"train_step({fed})")
            return head + "def main():\n" + indent(inner, "    ") + "\n\nmain()\n"
        # methods of a trainer
        trainer = f"""\
class Trainer:
    def __init__(self, model, optimizer, loader):
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
{indent(begin, " " * 8)}
    def step(self, {fed}):
{indent(text, " " * 8)}
        return loss.item()

    def train(self):
        {epochs}
            for {fed} in self.loader:
                self.step({fed})
{indent(epoch, " " * 12)}
{indent(end, " " * 8)}


"""
        return head + trainer + made + "trainer = Trainer(model, optimizer, loader)\ntrainer.train()\n"

    # ------------------------------------------------------------ tables, vectors, several models, several tasks

    def tables(self) -> str:
        """Tables by the index of a sample, and by its class."""
        r = self.r
        self.shape = r.choice(["flat", "main", "trainer", "closure"])
        o = self.owner = "self." if self.shape == "trainer" else ""
        step: dict[str, list[str]] = {"before": [], "loss": [], "update": [], "after": [], "epoch": [], "end": []}
        which = r.randrange(6)
        indexed = which < 2
        if which == 0:
            self.begin.append(f"{o}weights = torch.ones(40)")
            step["loss"].append(f"loss = (each * {o}weights[i]).mean()")
            step["after"].append(r.choice([f"{o}weights[i] = 0.5 + each.detach()", f"{o}weights[i] = 0.9 * {o}weights[i] + 0.1 * each.detach()"]))
        elif which == 1:
            self.begin.append(f"{o}seen = {{}}")
            step["after"].append(f"for k, e in zip(i.tolist(), each.tolist()):\n    {o}seen[k] = e")
            step["loss"].append(f"w = torch.tensor([{o}seen.get(k, 1.0) for k in i.tolist()])\nloss = (each * w).mean()")
        elif which == 2:
            self.begin.append(f"{o}counts = torch.ones(3)")
            step["before"].append(f"{o}counts += torch.bincount(y, minlength=3)")
            step["loss"].append(f"w = {o}counts.sum() / {o}counts\nloss = (each * w[y]).mean()")
        elif which == 3:
            self.begin.append(f"{o}centers = torch.zeros(3, 3)")
            step["loss"].append(f"loss = loss + 0.1 * ((out - {o}centers[y]) ** 2).mean()")
            step["after"].append(f"for c in range(3):\n    if (y == c).any():\n        {o}centers[c] = 0.9 * {o}centers[c] + 0.1 * out.detach()[y == c].mean(0)")
        elif which == 4:
            self.begin.append(f"{o}memory = []")
            step["before"].append(f"if {o}memory:\n    old, told = random.choice({o}memory)\n    x, y = torch.cat([x, old]), torch.cat([y, told])")
            step["after"].append(f"{o}memory.append((x[:2].detach(), y[:2]))\n{o}memory = {o}memory[-4:]")
            self.names += [] if o else ["memory"]
        else:
            self.begin.append(f"{o}correct = torch.zeros(3)\n{o}total = torch.ones(3)")
            step["loss"].append(f"w = 1.0 - {o}correct / {o}total\nloss = (each * w[y]).mean()")
            step["after"].append(f"hit = out.argmax(1) == y\nfor c in range(3):\n    {o}correct[c] += hit[y == c].sum()\n    {o}total[c] += (y == c).sum()")
        if r.random() < 0.4:
            self.other(step)
        return self.assembled(step, "x, y, i" if indexed else "x, y", indexed=indexed)

    def vectors(self) -> str:
        """A vector, or a tensor of several rows, that is moved by the batch."""
        r = self.r
        self.shape = r.choice(["flat", "main", "trainer", "closure", "function"])
        o = self.owner = "self." if self.shape == "trainer" else ""
        step: dict[str, list[str]] = {"before": [], "loss": [], "update": [], "after": [], "epoch": [], "end": []}
        plain = [] if o else ["mu"]
        which = r.randrange(6)
        if which == 0:
            self.begin.append(f"{o}mu = torch.zeros(4)")
            move = r.choice([f"{o}mu = 0.9 * {o}mu + 0.1 * x.mean(0)", f"{o}mu.mul_(0.9).add_(0.1 * x.mean(0))", f"{o}mu += 0.1 * (x.mean(0) - {o}mu)", f"{o}mu.lerp_(x.mean(0), 0.1)"])
            self.names += plain
            step["before"].append(move + f"\nx = x - {o}mu")
        elif which == 1:
            self.above.append(
                dedent("""\
                class RunningNorm:
                    def __init__(self, width):
                        self.mean = torch.zeros(width)
                        self.var = torch.ones(width)

                    def update(self, x):
                        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
                        self.var = 0.9 * self.var + 0.1 * x.var(0)

                    def __call__(self, x):
                        return (x - self.mean) / torch.sqrt(self.var + 1e-5)
                """)
            )
            self.begin.append(f"{o}norm = RunningNorm(4)")
            step["before"].append(f"{o}norm.update(x)\nx = {o}norm(x)")
        elif which == 2:
            self.begin.append(f"{o}bank = torch.zeros(6, 3)")
            self.names += [] if o else ["bank"]
            step["loss"].append(f"loss = loss + 0.1 * (out @ {o}bank.t()).logsumexp(1).mean()")
            step["after"].append(f"{o}bank = torch.cat([{o}bank, out.detach()])[-6:]")
        elif which == 3:
            self.begin.append(f"{o}center = torch.zeros(1, 3)")
            self.names += [] if o else ["center"]
            step["loss"].append(f"loss = loss + F.mse_loss(out, {o}center.expand_as(out))")
            step["after"].append(r.choice([f"{o}center = 0.9 * {o}center + 0.1 * out.detach().mean(0, keepdim=True)", f"batch_center = torch.sum(out.detach(), dim=0, keepdim=True) / len(out)\n{o}center = {o}center * 0.9 + batch_center * 0.1"]))
        elif which == 4:
            self.above.append(
                dedent("""\
                class Welford:
                    def __init__(self):
                        self.n, self.mean = 1e-4, np.zeros(4)

                    def update(self, batch):
                        n = len(batch)
                        delta = batch.mean(0) - self.mean
                        self.mean = self.mean + delta * n / (self.n + n)
                        self.n += n
                """)
            )
            self.begin.append(f"{o}stats = Welford()")
            step["before"].append(f"{o}stats.update(x.numpy())\nx = x - torch.from_numpy({o}stats.mean)")
        else:
            self.begin.append(f"{o}prior = torch.full((3,), 1 / 3)")
            self.names += [] if o else ["prior"]
            step["loss"].append(f"loss = loss + 0.1 * F.kl_div(({o}prior + 1e-6).log().expand_as(out), out.softmax(1), reduction='batchmean')")
            step["after"].append(f"{o}prior = 0.9 * {o}prior + 0.1 * out.detach().softmax(1).mean(0)")
        if r.random() < 0.4:
            self.other(step)
        return self.assembled(step)

    def tasks(self) -> str:
        """Losses whose weights are moved by the losses."""
        r = self.r
        self.shape = r.choice(["flat", "main", "trainer", "closure", "function"])
        o = self.owner = "self." if self.shape == "trainer" else ""
        step: dict[str, list[str]] = {"before": [], "loss": [], "update": [], "after": [], "epoch": [], "end": []}
        step["loss"].append("second = (out ** 2).mean()\nthird = F.smooth_l1_loss(out[:, 0], x[:, 0])")
        which = r.randrange(6)
        if which == 0:
            self.begin.append(f"{o}w = [1.0, 1.0, 1.0]")
            step["loss"].append(f"losses = [loss, second, third]\nloss = sum(w * l for w, l in zip({o}w, losses))")
            step["after"].append(f"values = [l.item() for l in losses]\n{o}w[:] = [v / sum(values) for v in values]")
        elif which == 1:
            self.begin.append(f"{o}before = None")
            self.names += [] if o else ["before"]
            step["loss"].append(f"now = torch.stack([loss, second, third])\nif {o}before is None:\n    w = torch.ones(3)\nelse:\n    w = torch.softmax(now.detach() / {o}before, 0)\nloss = (w * now).sum()")
            step["after"].append(f"{o}before = now.detach()")
        elif which == 2:
            self.begin.append(f"{o}history = {{'a': [], 'b': []}}")
            step["loss"].append(f"{o}history['a'].append(loss.item())\n{o}history['b'].append(second.item())\nratio = np.mean({o}history['a'][-3:]) / np.mean({o}history['b'][-3:])\nloss = loss + 0.1 * ratio * second")
        elif which == 3:
            step["loss"].append(r.choice(["kind = random.choice(['a', 'b', 'c'])\nloss = {'a': loss, 'b': loss + second, 'c': loss + third}[kind]", "if np.random.rand() < 0.5:\n    loss = loss + second\nelse:\n    loss = loss + third"]))
        elif which == 4:
            self.begin.append(f"{o}scale = torch.ones(3)")
            step["loss"].append(f"now = torch.stack([loss, second, third])\nwith torch.no_grad():\n    {o}scale.mul_(0.9).add_(0.1 * now)\nloss = (now / {o}scale).sum()")
        else:
            self.begin.append(f"{o}best, {o}patience, {o}stage = 1e9, 0, 0")
            self.names += [] if o else ["best", "patience", "stage"]
            step["loss"].append(f"if {o}stage > 0:\n    loss = loss + second")
            step["after"].append(f"if loss.item() < {o}best:\n    {o}best = loss.item()\n    {o}patience = 0\nelse:\n    {o}patience += 1\n    if {o}patience > 2:\n        {o}stage += 1\n        {o}patience = 0")
        if r.random() < 0.4:
            self.other(step)
        return self.assembled(step)

    def adversarial(self) -> str:
        """Two models with two optimizers; a state is moved by what the second says."""
        r = self.r
        rule = r.choice(RULES)
        q = r.choice(["torch.sign(d_real).mean().item()", "loss_d.item()", "(d_real.detach() > 0).double().mean().item()", "torch.sigmoid(d_real).mean().item()", "d_real.mean().item() - d_fake.mean().item()", "loss_g.item()", "np.sign(d_real.mean().item())"])
        kept = self.add(self.kept(rule, q))
        s = kept.read
        use = r.choice(["real", "fake", "penalty", "weight", "critic", "lr", "balance"])
        critic = r.choice([1, 1, 2])
        d_extra, g_extra, real = "", "", "x"
        if use == "real":
            real = f"x + {s} * torch.randn_like(x)"
        elif use == "fake":
            g_extra = f"loss_g = loss_g * (1 + {s})"
        elif use == "penalty":
            d_extra = f"loss_d = loss_d + {s} * (d_real ** 2).mean()"
        elif use == "weight":
            d_extra = f"loss_d = {s} * loss_d"
        elif use == "critic":
            d_extra = f"if {s} > 0.5:\n    loss_d = loss_d + 0.1 * d_fake.pow(2).mean()"
        elif use == "lr":
            g_extra = f"for group in opt_g.param_groups:\n    group['lr'] = 0.05 * (1 + abs({s}))"
        else:
            d_extra = f"loss_d = F.softplus(-d_real).mean() + {s} * F.softplus(d_fake).mean()"
        late = "loss_g" in q or r.random() < 0.4
        move = kept.move
        every = f"if step % {critic} == 0:\n" if critic > 1 else ""
        g_lines = "\n".join(line for line in ["loss_g = F.softplus(-disc(gen(z))).mean()", g_extra, "opt_g.zero_grad()", "loss_g.backward()", "opt_g.step()"] if line)
        if critic > 1 and "loss_g" in move:
            g_lines += "\n" + move
            late, move = True, ""
        text = f"""\
z = torch.randn(len(x), 2)
real = {real}
fake = gen(z)
d_real, d_fake = disc(real), disc(fake.detach())
loss_d = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
{d_extra}
opt_d.zero_grad()
loss_d.backward()
opt_d.step()
{"" if late else move}
{every}{indent(g_lines, "    ") if every else g_lines}
{move if late else ""}
step += 1
"""
        text = "\n".join(line for line in text.splitlines() if line.strip())
        net = "class Gen(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4))\n\n    def forward(self, z):\n        return self.net(z)\n\n\nclass Disc(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))\n\n    def forward(self, x):\n        return self.net(x)\n"
        made = self.data() + "gen, disc = Gen(), Disc()\nopt_g = torch.optim.Adam(gen.parameters(), lr=0.05)\nopt_d = torch.optim.Adam(disc.parameters(), lr=0.05)\nstep = 0\n"
        loop = f"for epoch in range(3):\n    for x, y in loader:\n{indent(text, ' ' * 8)}\n"
        head = _IMPORTS + "\n\n" + net + "\n\n" + "\n\n".join(self.above) + "\n\n"
        begin = "\n".join(self.begin) + "\n"
        if r.random() < 0.5:
            return head + made + begin + loop
        return head + "def main():\n" + indent(made + begin + loop, "    ") + "\n\nif __name__ == '__main__':\n    main()\n"


def program(seed: int) -> str:
    """The text of a program."""
    lines = Maker(seed).program().splitlines()
    kept = [line for i, line in enumerate(lines) if line.strip() or (i and lines[i - 1].strip())]
    return "\n".join(kept) + "\n"
