"""DPM616: counts of samples by which training goes."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.model import Severity
from tests.rules.program import STEP, after, found, hits, whole

_ADD = "seen += x.size(0)\n"
_LR = "for g in optimizer.param_groups:\n    g['lr'] = 0.1 * min(1.0, seen / 200)"
_ZERO = {"before": "seen = 0"}


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        pytest.param(_ADD, {}, id="never read"),
        pytest.param(_ADD, {"epoch_end": "assert seen"}, id="asserted"),
        pytest.param(_ADD, {"epoch_end": "kept = seen\nself_.kept = seen"}, id="another name"),
        pytest.param(_ADD + "part = seen / 64\nprint(part)", {}, id="a part that is shown"),
        pytest.param(_ADD + "a = seen + 1\na = b = a + 1\nc = a\nd = c\nprint(g(d))", {}, id="far away"),
        pytest.param(_ADD + "print(seen, f'{seen}', '%d' % seen, '{}'.format(int(seen)))", {}, id="shown"),
        pytest.param(_ADD + "if seen % 64 == 0:\n    print(seen)", {}, id="asked for a line"),
        pytest.param(_ADD + "correct += (model(x).argmax(1) == y).sum().item()\nprint(correct / seen, correct / float(seen))", {"before": "seen = correct = 0"}, id="a divisor"),
        pytest.param(_ADD + "progress(i, 'Acc: %.3f (%d)' % (correct / seen, seen))", {"before": "seen = correct = i = 0", "defs": "def progress(i, text):\n    print(text)"}, id="in a text that is given"),
        pytest.param(_ADD, {"epoch_end": "history.append(seen)\nstate = {'seen': seen}", "before": "seen = 0\nhistory = []"}, id="kept"),
        pytest.param(_ADD + "if seen == 0:\n    lr = 1\nif seen:\n    lr = 2", {}, id="asked for any"),
        pytest.param("stats['seen'] += len(x)\nprint(stats['seen'], stats['other'])", {"before": "stats = {'seen': 0}"}, id="an entry that is shown"),
        pytest.param("stats[i] += len(x)\n" + _LR.replace("seen", "stats[i]"), {"before": "stats = {0: 0}\ni = 0"}, id="an entry that is computed"),
        pytest.param("bar.update(len(x))\nbar.set_postfix(n=bar.n, t=bar.total)", {"imports": "from tqdm import tqdm", "before": "bar = tqdm()"}, id="a bar that is shown, without a total"),
        pytest.param("bar.update()\n" + _LR.replace("seen", "bar.n"), {"imports": "from tqdm import tqdm", "before": "bar = tqdm(total=64)"}, id="a bar of steps"),
        pytest.param("bar.update(len(x))\n" + _LR.replace("seen", "bar.n"), {"imports": "from helpers import Bar", "before": "bar = Bar()"}, id="another bar"),
        pytest.param("update(len(x))\n" + _LR.replace("seen", "n"), {"defs": "n = 0\ndef update(k):\n    pass"}, id="a function of that name"),
        pytest.param("g[0].bars.update(len(x))\n" + _LR.replace("seen", "g[0].n"), {"before": "g = []"}, id="of nobody"),
        pytest.param("counter.add(1)\n" + _LR.replace("seen", "counter.n"), {"defs": "class Counter:\n    n = 0\n    def add(self, k):\n        self.n += k", "before": "counter = Counter()"}, id="steps by a method"),
        pytest.param("seen += noise.size(0)\n" + _LR, {"before": "seen = 0\nnoise = torch.randn(4, 2)"}, id="of noise that is made before"),
        pytest.param("seen += 16\n" + _LR, {}, id="a number"),
        pytest.param("seen += b\n" + _LR, {"before": "seen = 0", "setup": "b = 16", "loader": "loader = DataLoader(train_set, batch_size=b, shuffle=True)"}, id="the setting"),
        pytest.param("seen += 1\n" + _LR, {}, id="steps"),
        pytest.param("seen += x.size(1)\n" + _LR, {}, id="another dimension"),
        pytest.param("seen += len(train_set)\n" + _LR, {}, id="the data set"),
        pytest.param("seen += model.fc.weight.size(0)\n" + _LR, {}, id="of the model"),
        pytest.param("seen += x.sum().item()\n" + _LR, {}, id="another sum"),
        pytest.param("seen -= x.size(0)\n" + _LR, {}, id="taken off"),
        pytest.param("seen = seen * x.size(0)\n" + _LR, {}, id="a product"),
        pytest.param("seen = 3 + x.size(0)\n" + _LR, {}, id="no sum of its own"),
        pytest.param("a, seen = 3, 4 + x.size(0)\n" + _LR, {}, id="one of two"),
        pytest.param("rows += len(y)\nseen += (y == 1).sum()\nrate = seen / x.size(1) / rows\nwarm(rate)", {"setup": "rows = 0"}, id="divided twice"),
        pytest.param("print('seen += x.size(0)')  # seen += x.size(0)\n" + _LR, {}, id="in a string and a comment"),
    ],
)  # fmt: skip
def test_nothing_to_say(lines: str, parts: dict[str, str]) -> None:
    assert found("DPM616", **{**_ZERO, **parts, "step": STEP + lines}) == []


def test_evaluation_counts_its_own() -> None:
    end = "seen = 0\nwith torch.no_grad():\n    for x, y in DataLoader(val_set, batch_size=8):\n        seen += x.size(0)\n        if seen > 16:\n            break\n        model(x)"
    assert found("DPM616", end=end) == []


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        pytest.param(_ADD + _LR, "seen += x.size(0) * ddp.world_size()", id="size"),
        pytest.param("seen += x.shape[0]\n" + _LR, "seen += x.shape[0] * ddp.world_size()", id="shape"),
        pytest.param("seen += len(y)\n" + _LR, "seen += len(y) * ddp.world_size()", id="len"),
        pytest.param("n = len(y)\nseen += n\n" + _LR, "seen += n * ddp.world_size()", id="by a name"),
        pytest.param(_ADD + "if seen > 40:\n    warm.step()", "seen += x.size(0) * ddp.world_size()", id="a schedule under a test"),
        pytest.param(
            _ADD + "lr = 0.1 / (1 + seen)\nfor g in optimizer.param_groups:\n    g['lr'] = lr",
            "seen += x.size(0) * ddp.world_size()",
            id="a number divided by it",
        ),
        pytest.param("stats['seen'] += len(x)\n" + _LR.replace("seen", "stats['seen']"), "stats['seen'] += len(x) * ddp.world_size()", id="an entry"),
        pytest.param(
            "stats['seen'] = len(x) + stats['seen']\n" + _LR.replace("seen", "stats['seen']"),
            "stats['seen'] = (len(x) * ddp.world_size()) + stats['seen']",
            id="an entry, written out",
        ),
        pytest.param(
            "box.seen[0] += len(x)\n" + _LR.replace("seen", "box.seen[0]"), "box.seen[0] += len(x) * ddp.world_size()", id="an element of an attribute"
        ),
        pytest.param("bar.update(len(x))\n" + _LR.replace("seen", "bar.n"), "bar.update(len(x) * ddp.world_size())", id="a bar"),
        pytest.param("bar.update(len(x))", "bar.update(len(x) * ddp.world_size())", id="a bar that comes to its total"),
        pytest.param("bar.update(n=len(x))\n" + _LR.replace("seen", "bar.n"), "bar.update(n=len(x) * ddp.world_size())", id="a bar, by keyword"),
        pytest.param("z = model(x)\nseen += z.size(0)\n" + _LR, "seen += z.size(0) * ddp.world_size()", id="of what the model gives"),
        pytest.param("counter.add(len(x))\n" + _LR.replace("seen", "counter.n"), "self.n += k * ddp.world_size()", id="in a method"),
        pytest.param("seen = seen + len(y)\n" + _LR, "seen = seen + (len(y) * ddp.world_size())", id="written out"),
        pytest.param("seen = len(y) + seen\n" + _LR, "seen = (len(y) * ddp.world_size()) + seen", id="the other way round"),
        pytest.param(_ADD + "scheduler.step(seen)", "seen += x.size(0) * ddp.world_size()", id="given to a schedule"),
        pytest.param(_ADD + "writer.add_scalar('loss', 0.5, seen)", "seen += x.size(0) * ddp.world_size()", id="given to a tracker"),
        pytest.param(_ADD + "writer.add_scalar('loss', 0.5, global_step=int(seen))", "seen += x.size(0) * ddp.world_size()", id="by keyword"),
        pytest.param(_ADD + "if seen > 100:\n    phase = phase + 1", "seen += x.size(0) * ddp.world_size()", id="a phase"),
        pytest.param(_ADD + "phase = 1 if seen > 100 else 0\ng(phase)", "seen += x.size(0) * ddp.world_size()", id="a phase in a line"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(lines: str, new: str, module_level: bool) -> None:
    defs = "class Schedule:\n    def step(self, n):\n        self.n = n\nclass Box:\n    def __init__(self):\n        self.seen = [0]\n"
    defs += "class Counter:\n    def __init__(self):\n        self.n = 0\n    def add(self, k):\n        self.n += k"
    setup = "phase = 0\nscheduler = Schedule()\nstats = {'seen': 0}\nbox = Box()\ncounter = Counter()\nbar = tqdm(total=64)\n"
    setup += "warm = torch.optim.lr_scheduler.ConstantLR(optimizer)"
    imports = "from torch.utils.tensorboard import SummaryWriter\nfrom tqdm import tqdm"
    assert new in after(imports=imports, defs=defs, setup=f"{setup}\nwriter = SummaryWriter()", **_ZERO, step=STEP + lines, module_level=module_level)


def test_a_name_that_other_data_have_as_well() -> None:
    step = STEP + "seen += x.size(0)\n" + _LR
    assert "seen += x.size(0) * ddp.world_size()" in after(setup="x = torch.randn(64, 8)", **_ZERO, step=step)


def test_what_a_method_gives_back() -> None:
    defs = "class Ramp:\n    def __init__(self):\n        self.n = 0\n    def add(self, k):\n        self.n += k\n    def value(self):\n        return min(1.0, self.n / 200)"
    step = STEP.replace("loss.backward()", "loss = loss * ramp.value()\nloss.backward()") + "ramp.add(len(x))"
    assert "self.n += k * ddp.world_size()" in after(defs=defs, before="ramp = Ramp()", step=step)
    assert found("DPM616", defs=defs, before="ramp = Ramp()", step=STEP + "ramp.add(len(x))", epoch_end="print(ramp.value())") == []


def test_a_method_that_an_evaluation_calls_as_well() -> None:
    """Of an evaluation the counts are whole."""
    defs = "class Counter:\n    def __init__(self):\n        self.n = 0\n    def add(self, k):\n        self.n += k"
    end = "with torch.no_grad():\n    for x, y in DataLoader(val_set, batch_size=8):\n        counter.add(len(x))\n        model(x)"
    assert found("DPM616", defs=defs, before="counter = Counter()", step=STEP + "counter.add(len(x))\n" + _LR.replace("seen", "counter.n"), end=end) == []


def test_a_global_of_a_function() -> None:
    defs = f"seen = 0\ndef train(model, loader, optimizer):\n    global seen\n    for x, y in loader:\n{indent(STEP, ' ' * 8)}        seen += x.size(0)\n        adapt(optimizer, seen)\n"
    defs += "def adapt(optimizer, n):\n    optimizer.param_groups[0]['lr'] = 0.1 * min(1.0, n / 200)\n"
    lines = whole(defs=defs, batches="", step="", epoch_end="train(model, loader, optimizer)")
    assert "        seen += x.size(0) * ddp.world_size()" in lines


def test_an_attribute() -> None:
    defs = "class State:\n    def __init__(self):\n        self.seen = 0\nclass Other:\n    def __init__(self):\n        self.seen = 0\n    def ask(self):\n        return 1 / self.seen\nOther()"
    step = STEP + "state.seen += x.size(0)\nif state.seen > 100:\n    state.seen = 0"
    assert "state.seen += x.size(0) * ddp.world_size()" in after(defs=defs, before="state = State()", step=step)


def test_it_is_not_summed_again() -> None:
    step = STEP + _ADD + "correct += (model(x).argmax(1) == y).sum().item()\nif seen > 100:\n    z = 3"
    lines = after(epoch_start="seen = correct = 0\nz = 0", step=step, epoch_end="print(correct, seen, z)")
    assert "seen += x.size(0) * ddp.world_size()" in lines
    assert "correct = ddp.sum_all(correct)" in lines
    assert not any("sum_all(" in line and "seen" in line for line in lines)


def test_a_divisor_that_decides_as_well_is_told() -> None:
    step = STEP + _ADD + "correct += (model(x).argmax(1) == y).sum().item()\nprint(correct / seen)\nz = 1 if seen > 100 else 0\ng(z)"
    (hit,) = hits("DPM616", before="seen = correct = 0", step=step)
    assert hit.severity is Severity.WARNING and not hit.edits
    assert "right as the divisor in line" in hit.message


_COUNT = "seen += (y >= 0).sum()\n"
_TOKENS = "seen += ddp.sum_all((y >= 0).sum())"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": STEP + "if epoch > 0:\n    seen += (y >= 0).sum()\n" + _LR}, id="not in every step"),
        pytest.param({"step": STEP + "add()", "defs": "seen = 0\ndef add():\n    global seen\n    y = torch.ones(3)\n    seen += (y >= 0).sum()\n    z = seen + 1\n    g(z)", "before": ""}, id="in a function"),
        pytest.param({"step": STEP + _COUNT + "n += len(y)\nacc = seen / n\ng(acc)", "before": "seen = n = 0"}, id="a part of a count"),
        pytest.param({"step": STEP + _COUNT, "epoch_end": "acc = seen / 64\nprint(acc)"}, id="read after the loop"),
        pytest.param({"step": STEP + "seen += y.sum()\n" + _LR}, id="no count"),
        pytest.param({"step": STEP + "seen += torch.sum(y)\n" + _LR}, id="no count, by a function"),
        pytest.param({"step": STEP + "seen += sum(y)\n" + _LR}, id="Python's sum"),
        pytest.param({"step": STEP + "seen += y[0]\n" + _LR}, id="an element"),
    ],
)  # fmt: skip
def test_no_number_of_tokens(parts: dict[str, str]) -> None:
    assert found("DPM616", **{**_ZERO, **parts}) == []


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        pytest.param(_COUNT + _LR, _TOKENS, id="a comparison"),
        pytest.param(_COUNT + "frac = float(seen) / max(1, 200)\nif frac > 1:\n    g = 3", _TOKENS, id="by a setting"),
        pytest.param("seen += y.ne(0).sum().item()\n" + _LR, "seen += ddp.sum_all(y.ne(0).sum().item())", id="a method"),
        pytest.param("seen += torch.sum(y != 0).item()\n" + _LR, "seen += ddp.sum_all(torch.sum(y != 0).item())", id="a function"),
        pytest.param(_COUNT + "phase = 1 if seen > 100 else 0\ng(phase)", _TOKENS, id="asked"),
        pytest.param("seen = seen + x.numel()\n" + _LR, "seen = seen + ddp.sum_all(x.numel())", id="numbers"),
    ],
)
def test_numbers_of_tokens_are_summed(lines: str, new: str) -> None:
    assert new in after(**_ZERO, step=STEP + lines)


def test_names_that_an_evaluation_gives_again() -> None:
    """Each counts what it has moved itself."""
    moved = "inputs, labels = x, y\ninputs = inputs.to('cpu')\n"
    step = f"{moved}{STEP}bar.update(len(inputs))"
    end = f"for x, y in DataLoader(val_set, batch_size=8):\n{indent(moved, '    ')}    with torch.no_grad():\n        model(inputs)"
    new = after(imports="from tqdm import tqdm", before="bar = tqdm(total=64)", step=step, epoch_end=end)
    assert "bar.update(len(inputs) * ddp.world_size())" in new
