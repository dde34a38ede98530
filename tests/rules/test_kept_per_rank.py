"""DPM332: what training keeps of its batches."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import STEP, after, found, hits, migrated, of, refused

_DATA = """\
train_set = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)), torch.arange(64))
val_set = TensorDataset(torch.randn(33, 8), torch.randint(0, 2, (33,)), torch.arange(33))
"""
_TABLE = "table = torch.zeros(64, 2)"
_LOOP = {"data": _DATA, "batches": "for i, (x, y, idx) in enumerate(loader):", "imports": "import numpy as np\nimport random\n"}
_OUT = "optimizer.zero_grad()\nout = model(x)\neach = F.cross_entropy(out, y, reduction='none')\n{}\nloss.backward()\noptimizer.step()\n"
_PLAIN = _OUT.format("loss = each.mean()")
_READ = _OUT.format("loss = (each * table[idx].sum(1)).mean()")


def _step(lines: str, step: str = _PLAIN) -> dict[str, str]:
    return {**_LOOP, "before": _TABLE, "step": step + lines}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_step("onehot = torch.zeros(len(x), 2)\nonehot[torch.arange(len(x)), y] = 1\nprint(onehot)"), id="made in the step"),
        pytest.param(
            _step("table.zero_()\ntable.scatter_(1, y[:, None], 1)\nprint(table)\nloss = (out * table[:16]).sum()", _READ), id="filled anew in each step"
        ),
        pytest.param(_step("table[:] = 0\ntable[idx] = out.detach()", _READ), id="set to zero in each step"),
        pytest.param(_step("table.copy_(out.detach())", _READ), id="the whole is overwritten"),
        pytest.param(_step("x[y == 1] = 0\nx[:, 2:4] = out.mean()"), id="the batch itself"),
        pytest.param(
            _step("", "for k in range(len(x)):\n    x[k] = x[k] * y[k]\n" + _PLAIN) | {"end": "for x, y, idx in DataLoader(val_set):\n    print(model(x))"},
            id="the batch itself, by a name that an evaluation uses too",
        ),
        pytest.param(_step("table[i] = out.detach().mean()"), id="by the number of the batch, only shown"),
        pytest.param(_step("table[len(loader) - 1] = out.detach().mean()\nprint(table)"), id="by a size of the loader"),
        pytest.param(_step("table[y, out.argmax(1)] += 1\nprint(table)"), id="a confusion matrix, which is a total"),
        pytest.param(_step("table[idx] = out.detach()"), id="nobody reads it"),
        pytest.param(_step("table[0] = epoch", _READ), id="nothing of the batch"),
        pytest.param(_step("logs = {}\nlogs['loss'] = loss.item()\nprint(logs)"), id="an entry of a dict"),
        pytest.param({**_LOOP, "step": _PLAIN, "before": "logs = {}", "epoch_end": "print(logs)", "end": "logs['loss'] = 0"}, id="outside of the loop"),
        pytest.param(_step("for p in model.parameters():\n    p.grad[p.grad > 1] = 1"), id="gradients"),
        pytest.param(_step("for p in model.parameters():\n    p.data[p > 1] = 1"), id="parameters by themselves"),
        pytest.param({**_LOOP, "before": "total = 0", "step": _PLAIN + "total += loss.item()", "epoch_end": "print(total)"}, id="a total"),
        pytest.param(
            {
                **_LOOP,
                "before": "total = 0\nfactor = 1",
                "step": _OUT.format("loss = each.mean() * factor") + "total += loss.item()",
                "epoch_end": "factor = total / 6",
            },
            id="a total that decides between the epochs",
        ),
        pytest.param(
            _step("table[i] += out.detach().mean()", _OUT.format("loss = each.mean() * w")) | {"setup": "w = 1", "epoch_end": "w = table[0, 0]"},
            id="totals by batch",
        ),
        pytest.param(
            {
                **_LOOP,
                "before": "total = None\nfactor = 1",
                "step": _OUT.format("loss = each.mean() * factor") + "if total is None:\n    total = 0\ntotal += loss.item()",
                "epoch_end": "factor = total / 6",
            },
            id="a total that begins in the first step",
        ),
        pytest.param({**_LOOP, "before": "ema = 0", "step": _PLAIN + "ema = 0.9 * ema + 0.1 * loss.item()\nprint(ema)"}, id="an average that is shown"),
        pytest.param(
            {**_LOOP, "before": "total = 0", "step": "total = total + F.cross_entropy(model(x), y)\nif i % 2:\n    total.backward()\n    optimizer.step()"},
            id="losses that are differentiated together",
        ),
        pytest.param(
            {**_LOOP, "before": "factor = 1.0", "step": STEP.replace("(model(x), y)", "(model(x), y) * factor") + "factor = factor * 0.99"}, id="steps"
        ),
        pytest.param(
            {
                **_LOOP,
                "before": _TABLE,
                "step": _READ,
                "epoch_end": "with torch.no_grad():\n    for a, b, k in DataLoader(train_set, batch_size=16):\n        table[k] = model(a)",
            },
            id="an evaluation fills it",
        ),
        pytest.param(
            {
                **_LOOP,
                "batches": "for i, (x, y, idx) in enumerate(loader):",
                "step": _PLAIN + "if i == 3:\n    evaluate(model, val_set)",
                "defs": "def evaluate(model, data):\n    kept = torch.zeros(33)\n    for a, b, k in DataLoader(data, batch_size=4):\n"
                "        kept[k] = model(a)[:, 0].detach()\n    print(kept)",
            },
            id="an evaluation between the batches",
        ),
        pytest.param(_step("put({}, idx)", _READ) | {"defs": "def put(held, k):\n    held[k] = 1"}, id="a helper that is given something new"),
        pytest.param(_step("if i:\n    held = torch.zeros(16, 2)\nelse:\n    held = torch.ones(16, 2)\nheld[y] = 1"), id="made in the step, in two ways"),
        pytest.param(_step("unknown[idx] = 1", _READ), id="a name from nowhere"),
        pytest.param({**_LOOP, "before": "seen = []", "step": _PLAIN + "seen.append(out.detach())", "end": "print(torch.cat(seen))"}, id="a list"),
        pytest.param(_step("parts = []\nparts.append(out.mean())\nloss = sum(parts)", _READ), id="a list of the step"),
        pytest.param(
            _step("past.append(out.detach())\npast.clear()", _OUT.format("loss = each.mean() + sum(p.mean() for p in past)")) | {"before": "past = []"},
            id="a list that each step empties",
        ),
        pytest.param(_step("table[idx] = out.detach()\ntable = torch.zeros(64, 2)", _READ), id="made anew at the end of the step"),
        pytest.param(_step("table[idx].add(out)", _READ), id="not in place"),
        pytest.param(_step("model(x)[y] = 1\nmodel(x).add_(out)\nnp.put(model(x), y, 1)", _READ), id="what a call gives"),
        pytest.param(_step("scaler.unscale_(optimizer)", _READ) | {"setup": "scaler = torch.amp.GradScaler()"}, id="no tensor"),
        pytest.param(_step("if torch.isnan(loss):\n    factor *= 0.5", _READ) | {"setup": "factor = 1.0"}, id="a test for NaN, which others see"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM332", **parts) == []


@pytest.mark.parametrize(
    ("line", "step"),
    [
        pytest.param("table[idx] = out.detach()", _READ, id="a table by sample"),
        pytest.param("table[idx] = 0.7 * table[idx] + 0.3 * out.detach()", _READ, id="that moves on"),
        pytest.param("table.data[idx.cpu()] = out.detach()", _READ, id="its data"),
        pytest.param("table.index_copy_(0, idx, out.detach())", _READ, id="index_copy_"),
        pytest.param("table.index_copy_(0, index=idx, source=out.detach())", _READ, id="index_copy_, keywords"),
        pytest.param("np.put(table, idx, out.detach())", _READ, id="numpy.put"),
        pytest.param("np.add.at(table, y, 1)", _READ, id="numpy.add.at"),
        pytest.param("table[y] += 1", _READ, id="counts of classes in the loss"),
        pytest.param("for k, row in zip(idx.tolist(), out.detach()):\n    table[k] = row", _READ, id="row by row"),
        pytest.param("for c in range(2):\n    table[c] = 0.9 * table[c] + 0.1 * out[y == c].detach().mean(0)", _READ, id="centres"),
        pytest.param("for c in range(2):\n    table[c].mul_(0.9).add_(out[y == c].detach().mean(0), alpha=0.1)", _READ, id="centres, in place"),
        pytest.param("with torch.no_grad():\n    table[idx] = out", _READ, id="under no_grad"),
        pytest.param("if epoch > 1:\n    table[idx] = out.detach()", _READ, id="under a test"),
        pytest.param("if epoch == 0:\n    table = torch.zeros(64, 2)\ntable[idx] = out.detach()", _READ, id="made in the first epoch"),
        pytest.param("if out.mean() > 0:\n    table *= 2", _READ, id="the batch decides"),
        pytest.param("put(table, idx, out)", _READ, id="by a helper"),
    ],
)
def test_a_table_that_training_reads(line: str, step: str) -> None:
    helper = "@torch.no_grad()\ndef put(held, k, rows):\n    held[k] = rows"
    (place,) = refused("DPM332", **_step(line, step), defs=helper)
    assert place in (line + "\n" + helper).replace("    ", "").split("\n")


@pytest.mark.parametrize(
    ("line", "moved"),
    [
        pytest.param("table = 0.9 * table + 0.1 * out.detach().mean(0)", "table = 0.9 * table + 0.1 * ddp.mean_all(out.detach().mean(0))", id="a centre, bound anew"),
        pytest.param("table.mul_(0.9).add_(out.detach().mean(0), alpha=0.1)", "table.mul_(0.9).add_(ddp.mean_all(out.detach().mean(0)), alpha=0.1)", id="a centre"),
        pytest.param("table = table + (out - y[:, None]).mean().item()", "table = table + ddp.mean_all((out - y[:, None]).mean().item())", id="a number is added"),
        pytest.param("off = out.mean().item()\ntable = min(table + off, 1)", "off = ddp.mean_all(out.mean().item())", id="a number is added, by name"),
        pytest.param("held.update(out.mean().item())", "held.update(ddp.mean_all(out.mean().item()))", id="in an object"),
        pytest.param("held(abs(out.mean().item()) ** 2)", "held(abs(ddp.mean_all(out.mean().item())) ** 2)", id="a function of a mean, to a call of an object"),
        pytest.param("held.update((out.argmax(1) == y).sum().item() / len(y))", "held.update(ddp.mean_all((out.argmax(1) == y).sum().item() / len(y)))", id="a sum by its number"),
        pytest.param("held.update((out.argmax(1) == y).sum().item())", "held.update(ddp.sum_all((out.argmax(1) == y).sum().item()))", id="a sum"),
    ],
)
def test_what_moves_is_put_together(line: str, moved: str) -> None:
    keeper = "class Keeper:\n    factor = 1.0\n\n    def update(self, q):\n        self.factor = 0.9 * self.factor + q\n\n    def __call__(self, q):\n        self.update(q)\n"
    read = _OUT.format("loss = (each * table[idx].sum(1)).mean() * held.factor")
    parts = _step(line, read) | {"before": f"{_TABLE}\nheld = Keeper()\nrates = []"}
    assert moved in after(**parts, defs=keeper)


def test_numbers_that_no_reduction_mends_stay() -> None:
    assert refused("DPM332", **_step("table = table + out.std().item()", _READ)) == ["table = table + out.std().item()"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            {
                "epoch_start": "loader = DataLoader(train_set, batch_size=16, sampler=torch.utils.data.WeightedRandomSampler(table[:, 0], 64))",
            },
            id="by a sampler",
        ),
        pytest.param({"epoch_start": "loader = DataLoader(torch.utils.data.Subset(train_set, np.argsort(table)[:32]), batch_size=16)"}, id="by a choice"),
        pytest.param(
            {
                "epoch_start": "keep = []\nfor j in range(64):\n    if table[j, 0] < 1:\n        keep.append(j)\n"
                "loader = DataLoader(torch.utils.data.Subset(train_set, keep), batch_size=16)"
            },
            id="by a choice one by one",
        ),
        pytest.param({"epoch_end": "train_set.set_weights(table)"}, id="by a method of the data set"),
        pytest.param(
            {"epoch_end": "memory = 0.6 * memory + 0.4 * table", "before": _TABLE + "\nmemory = 0", "step": _READ.replace("table", "memory")}, id="later"
        ),
        pytest.param(
            {"step": _OUT.format("loss = (each * weigh(idx, table)).mean()"), "defs": "def weigh(k, held):\n    return held[k].sum(1)"}, id="by a function"
        ),
        pytest.param(
            {"step": _OUT.format("loss = (each * weigh(idx, table)).mean()"), "defs": "@torch.no_grad()\ndef weigh(k, held):\n    return held[k].sum(1)"},
            id="by a function without gradient",
        ),
    ],
)
def test_who_reads_it(parts: dict[str, str]) -> None:
    whole = {**_step("", _PLAIN), **parts}
    assert refused("DPM332", **{**whole, "step": whole["step"] + "table[idx] = out.detach()"}) == ["table[idx] = out.detach()"]


_LOSS = """\
class Early(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.held = torch.zeros(n, 2)
        self.shown = torch.zeros(n, 2)
        self.center = torch.zeros(2)

    def forward(self, idx, out, y):
        {}
        return F.cross_entropy(out, y)
"""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["self.held[idx] = out.detach()", "out = out + self.held[idx]"], ["self.held[idx] = out.detach()"], id="an attribute of a loss"),
        pytest.param(["self.center = 0.9 * self.center + 0.1 * out.detach().mean(0)", "out = out - self.center"], [], id="a centre of a loss, which is put together"),
        pytest.param(["self.held = torch.zeros(8, 2)", "self.held[idx] = out.detach()", "out = out + self.held[idx]"], [], id="made anew in each pass"),
        pytest.param(["self.held[idx] = out.detach()"], [], id="read by nobody"),
        pytest.param(["self.last = out", "out = self.last + 1"], [], id="kept for the pass"),
        pytest.param(
            ["if self.training:", "    self.center = 0.9 * self.center + 0.1 * out.detach().mean(0)", "    return out.mean()", "out = out - self.center"],
            [],
            id="read in evaluation alone",
        ),
    ],
)
def test_in_a_loss(lines: list[str], expected: list[str]) -> None:
    defs = _LOSS.format("\n        ".join(lines))
    parts = {**_LOOP, "defs": defs, "before": "criterion = Early(64)"}
    step = "optimizer.zero_grad()\nloss = criterion(idx, model(x), y)\nloss.backward()\noptimizer.step()"
    assert refused("DPM332", **parts, step=step) == expected
    assert refused("DPM332", **parts, step=step.replace("loss = criterion(idx, model(x), y)\nloss", "criterion(idx, model(x), y)")) == expected


@pytest.mark.parametrize("module_level", [False, True])
def test_read_beside_the_loss(module_level: bool) -> None:
    line = "self.center = 0.9 * self.center + 0.1 * out.detach().mean(0)"
    step = "optimizer.zero_grad()\nloss = criterion(idx, model(x), y) + criterion.center.mean()\nloss.backward()\noptimizer.step()"
    assert refused("DPM332", **_LOOP, defs=_LOSS.format(line), before="criterion = Early(64)", step=step, module_level=module_level) == [line]


@pytest.mark.parametrize(("start", "expected"), [("self.clear()", 0), ("self.clear_sometimes()", 1)])
def test_made_anew_by_a_method(start: str, expected: int) -> None:
    methods = "\n    def clear(self):\n        self.held = torch.zeros(8, 2)\n\n    def clear_sometimes(self):\n        if self.x:\n            self.held = 0\n"
    lines = f"{start}\n        self.held[idx] = out.detach()\n        out = out + self.held[idx]"
    defs = _LOSS.format(lines) + (methods if expected == 0 else methods.replace("torch.zeros(8, 2)", "self.held"))
    step = "optimizer.zero_grad()\nloss = criterion(idx, model(x), y)\nloss.backward()\noptimizer.step()"
    assert len(refused("DPM332", **_LOOP, defs=defs, before="criterion = Early(64)", step=step)) == expected


def test_said_once_for_each_table() -> None:
    assert refused("DPM332", **_step("table[idx] = out.detach()\ntable[idx] = out.detach() * 2", _READ)) == ["table[idx] = out.detach()"]
    queue = "table[i * 16 : i * 16 + 16] = out.detach()\ntable[0:4] = out[:4].detach()"
    assert len(hits("DPM332", **_step(queue), epoch_end="print(table)")) == 1


def test_an_object_beside_the_loop() -> None:
    defs = (
        "class Bank:\n    def __init__(self):\n        self.rows = torch.zeros(64, 2)\n\n    def put(self, k, rows):\n        self.rows[k] = rows\n\n"
        "    def get(self, k):\n        return self.rows[k]"
    )
    step = _OUT.format("loss = (each * bank.get(idx).sum(1)).mean()") + "bank.put(idx, out.detach())"
    assert refused("DPM332", **_LOOP, defs=defs, before="bank = Bank()", step=step) == ["self.rows[k] = rows"]
    shown = {"step": _PLAIN + "bank.put(idx, out.detach())", "epoch_end": "print(bank.get(0))"}
    assert [h.severity for h in hits("DPM332", **_LOOP, defs=defs, before="bank = Bank()", **shown)] == [Severity.WARNING]


def test_labels_of_the_data_set() -> None:
    line = "loader.dataset.targets[idx] = out.argmax(1)"
    assert refused("DPM332", **_step(line)) == [line]
    assert found("DPM332", **_step(line.replace("loader.dataset", "out.parts"))) == []
    assert found("DPM332", **_step(line.replace("loader.dataset", "x.parts[0]"))) == []
    assert found("DPM332", **_step(line.replace("loader.dataset", "[x][0]"))) == []
    assert found("DPM332", **_step(line.replace("loader.dataset", "args"), _PLAIN), setup="import lib\nargs = lib.options()") == []


_QUEUE = "start = (i * 16) % 64\ntable[start : start + len(out)] = out.detach()"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        pytest.param(_step("table[idx] = out.detach()") | {"epoch_end": "print(table.sum())"}, "it would hold rank 0's part", id="a table that is shown"),
        pytest.param(_step(_QUEUE) | {"end": "torch.save(table, 'rows.pt')"}, "it would hold rank 0's part", id="rows that are saved"),
        pytest.param(
            _step("past.append(out.detach())", _OUT.format("loss = each.mean() + sum(p.mean() for p in past)")) | {"before": "past = []"},
            "is taken to carry values of one batch",
            id="a list of past outputs",
        ),
        pytest.param(_step(_QUEUE, _OUT.format("loss = each.mean() + (out @ table.t()).mean()")), "is taken to carry values of one batch", id="a queue"),
    ],
)
def test_told(parts: dict[str, str], said: str) -> None:
    (one,) = hits("DPM332", **parts)
    assert one.severity is Severity.WARNING and said in one.message and not one.edits


_OPERATION = """\
class Compare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, memory):
        ctx.save_for_backward(x, y, memory)
        return x @ memory.t()

    @staticmethod
    def backward(ctx, grad):
        x, y, memory = ctx.saved_tensors
        memory.index_copy_(0, y, x)
        return grad @ memory, None, None
"""


def test_written_in_the_backward_of_a_function_of_its_own() -> None:
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(Compare.apply(model(x), idx, table), idx)\nloss.backward()\noptimizer.step()\n"
    parts = {**_LOOP, "before": _TABLE, "step": step}
    assert refused("DPM332", **parts, defs=_OPERATION) == ["memory.index_copy_(0, y, x)"]
    assert refused("DPM332", **parts, defs=_OPERATION.replace("memory.index_copy_(0, y, x)", "grad.mul_(2)")) == []
    assert refused("DPM332", **parts, defs=_OPERATION.replace("memory.index_copy_(0, y, x)", "x.mul_(2)")) == []
    assert refused("DPM332", **{**parts, "step": step.replace("idx, table", "held, table")}, defs=_OPERATION.replace("memory.index", "y.index")) == []


_READ_DICT = _OUT.format("w = torch.tensor([known.get(int(k), 1.0) for k in idx])\nloss = (each * w).mean()")


@pytest.mark.parametrize(
    ("lines", "start"),
    [
        pytest.param("known.update(loss=1)\nknown.update()", "known = {}", id="nothing of the batch"),
        pytest.param("known = {}\nknown.update({int(k): 1.0 for k in idx})", "known = {}", id="made anew in each step"),
        pytest.param("bits = 1\nbits |= 2\nknown.clear()", "known = {}", id="numbers"),
        pytest.param("known.update(idx)", "from lib import known", id="an object of another file"),
        pytest.param("(known or {}).update(idx)\n[0][0].append(loss)", "known = {}", id="of nobody"),
    ],
)
def test_dicts_that_keep_nothing(lines: str, start: str) -> None:
    assert found("DPM332", **{**_LOOP, "before": start, "step": _READ_DICT + lines}) == []


def test_what_a_dict_keeps_under_names_is_made_whole() -> None:
    """Needlessly: that numbers are asked for, and names are kept, is not seen where the numbers are those of samples."""
    lines = "known.update({'loss': loss.item()})\nknown |= {'loss': loss.item()}"
    assert found("DPM332", **{**_LOOP, "before": "known = {}", "step": _READ_DICT + lines}) == ["loss.item()"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("known.update({int(k): float(v) for k, v in zip(idx, each)})", id="a dict"),
        pytest.param("known.update(zip(idx.tolist(), each.tolist()))", id="pairs"),
        pytest.param("known.update(dict(zip(idx.tolist(), each.tolist())))", id="a dict of pairs"),
        pytest.param("known.update({int(idx[0]): float(each[0]), **other})", id="written down"),
        pytest.param("known |= {int(k): float(v) for k, v in zip(idx, each)}", id="joined"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_dicts_by_sample(line: str, module_level: bool) -> None:
    parts = {**_LOOP, "before": "known, other = {}, {}", "step": _READ_DICT + line}
    assert refused("DPM332", **parts, module_level=module_level) == [line]


@pytest.mark.parametrize(
    ("start", "line", "read"),
    [
        pytest.param("known = set()", "known.update(idx.tolist())", "len(known)", id="a set"),
        pytest.param("known = set()", "known.add(int(idx[0]))", "len(known)", id="a set, one by one"),
        pytest.param("known = {0}", "known |= {int(k) for k in idx}", "len(known)", id="a set, joined"),
        pytest.param("from collections import Counter\nknown = Counter()", "known.update(y.tolist())", "known[0]", id="a counter"),
        pytest.param("known = {}", "known.setdefault(int(idx[0]), []).append(each[0].item())", "len(known)", id="lists by sample"),
        pytest.param("import collections\nknown = collections.defaultdict(list)", "known[int(idx[0])].append(each[0].item())", "len(known[3])", id="lists that are there"),
    ],
)  # fmt: skip
def test_sets_counters_and_lists(start: str, line: str, read: str) -> None:
    step = _OUT.format(f"loss = each.mean() * {read}") + line
    assert refused("DPM332", **{**_LOOP, "before": start, "step": step}) == [line]


def test_a_set_of_an_object() -> None:
    defs = "class Seen:\n    def __init__(self):\n        self.ids = set()\n    def put(self, k):\n        self.ids.update(k)\n"
    step = _OUT.format("loss = each.mean() * len(seen.ids)") + "seen.put(idx.tolist())"
    assert refused("DPM332", **{**_LOOP, "defs": defs, "before": "seen = Seen()", "step": step}) == ["self.ids.update(k)"]


def test_what_is_only_shown_is_told_once() -> None:
    for line, start, told in (
        ("known.update({int(k): 1.0 * k for k in idx})", "known = {}", ["DPM332"]),
        ("known.update(y.tolist())", "known = set()", ["DPM332"]),
        ("known[int(idx[0])].append(loss.item())", "known = [[]] * 64", ["DPM602"]),
    ):
        parts = {**_LOOP, "before": start, "step": _PLAIN + line, "end": "print(known)"}
        assert [c for c in ("DPM332", "DPM602") for h in hits(c, **parts) if h.severity is Severity.WARNING and not h.edits] == told


_FITTED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_one_epoch(model, loader, criterion, optimizer):
    correct = 0
    for i, (x, y) in enumerate(loader):
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += out.argmax(1).eq(y).sum().item()
        if i % 10 == 0:
            print(i, correct)
    return correct / len(loader.dataset)


def fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        print(train_one_epoch(model, loader, nn.CrossEntropyLoss(), optimizer))
    return model


def main():
    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), batch_size=16, shuffle=True)
    model = nn.Linear(8, 2)
    model = fit(model, loader)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
"""


def test_a_model_that_its_training_returns_is_not_made_of_the_accuracy() -> None:
    assert of("DPM332", _FITTED) == []
    through = _FITTED.replace("criterion(out, y)\n", "criterion(out, y) * (1 + 0 * correct)\n")
    assert [f.severity for f in of("DPM332", through)] == [Severity.BLOCKER]


_STOPS = '''
from datetime import datetime
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset


class Stopper:
    def __init__(self, patience, delta, path, verbose=False, log=None):
        self.log = log
        self.verbose = verbose
        self.patience = patience
        self.delta = delta
        self.path = path
        self.counter = 0
        self.best = None
        self.stop = False

    def __call__(self, score, model):
        if self.best is None:
            self.best = score
            torch.save(model.state_dict(), self.path)
        elif score < self.best + self.delta:
            self.counter += 1
            if self.verbose and self.log:
                self.log(f"{self.counter}")
            if self.counter >= self.patience:
                self.stop = True
        else:
            self.best = score
            torch.save(model.state_dict(), self.path)
            self.counter = 0


class Trainer:
    def __init__(self, model, config, folder):
        self.folder = folder
        self.model = model
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model.to(self.device)
        self.epochs = config["epochs"]
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])
        self.criterion = torch.nn.CrossEntropyLoss().to(self.device)
        self.stopper = None
        if config["stop"]["enabled"]:
            self.stopper = Stopper(config["stop"]["patience"], config["stop"]["delta"], self.folder / "best.pt", log=print)

    def train(self, train_loader, val_loader):
        for epoch in range(self.epochs):
            self.model.train()
            train_loss = 0.0
            for batch in train_loader:
                inputs, labels = batch
                inputs = inputs.to(self.device)
                labels = labels.to(self.device)
                self.optimizer.zero_grad()
                outputs = self.model(inputs)
                loss = self.criterion(outputs, labels)
                loss.backward()
                self.optimizer.step()
                train_loss += loss.item() * labels.size(0)
            val_loss = self.evaluate(val_loader)
            print(f"{epoch} {train_loss / len(train_loader.dataset):.4f} {val_loss:.4f}")
            if self.stopper:
                self.stopper(val_loss, self.model)
                if self.stopper.stop:
                    print("stop")
                    break

        if self.stopper and self.stopper.stop:
            self.model.load_state_dict(torch.load(self.stopper.path))

    def evaluate(self, data_loader):
        self.model.eval()
        total_loss = 0.0
        with torch.no_grad():
            for batch in data_loader:
                inputs, labels = batch
                inputs = inputs.to(self.device)
                labels = labels.to(self.device)
                outputs = self.model(inputs)
                loss = self.criterion(outputs, labels)
                batch_size = labels.size(0)
                total_loss += loss.item() * batch_size
        loss = total_loss / len(data_loader.dataset)
        return loss


def main():
    torch.manual_seed(0)
    out = Path("runs") / datetime.now().strftime("%H%M%S")
    for fold in range(2):
        train_set = TensorDataset(torch.randn(64, 16), torch.randint(0, 3, (64,)))
        val_set = TensorDataset(torch.randn(32, 16), torch.randint(0, 3, (32,)))
        train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
        val_loader = DataLoader(val_set, batch_size=8, shuffle=False)
        model = torch.nn.Linear(16, 3)
        config = {"epochs": 100, "lr": 0.01, "stop": {"enabled": True, "patience": 20, "delta": 0}}
        trainer = Trainer(model, config, out / str(fold))
        trainer.train(train_loader, val_loader)
        print(trainer.evaluate(val_loader))


if __name__ == "__main__":
    main()
'''


def test_numbers_of_an_evaluation_are_left_to_its_totals() -> None:
    """A collective in its loop would be one that some ranks come to more often."""
    text = migrated(_STOPS)
    assert text.count("loss = self.criterion(outputs, labels)") == 2 and "total_loss = ddp.sum_all(total_loss)" in text
