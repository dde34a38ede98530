"""DPM511: all ranks go the same way to where they meet."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused, whole

_EVALUATE = """
def evaluate(model, val_loader):
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct
"""
_PARTS = {"defs": _EVALUATE, "setup": "val_loader = DataLoader(val_set, batch_size=16)"}
_PLATEAU = "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("evaluate(model, val_loader)", id="no test"),
        pytest.param("if epoch % 2 == 0:\n    evaluate(model, val_loader)", id="a counter"),
        pytest.param("if os.path.exists('x'):\n    evaluate(model, val_loader)", id="a file that all ranks see"),
        pytest.param("if loss > 1:\n    print(loss)", id="nothing waits there"),
        pytest.param("if evaluate(model, val_loader) > 1:\n    print('loss > 1')  # if loss > 1", id="the meeting is in the test itself"),
        pytest.param("acc = evaluate(model, val_loader) if epoch else 0", id="a conditional expression on a counter"),
        pytest.param("ok = epoch > 0 and evaluate(model, val_loader)", id="an and after a counter"),
        pytest.param("ok = evaluate(model, val_loader) and loss > 1", id="first in the and"),
        pytest.param("try:\n    evaluate(model, val_loader)\nexcept ValueError:\n    raise", id="in the body of a try"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM511", epoch_end=end, **_PARTS) == []


@pytest.mark.parametrize(
    ("end", "test", "line"),
    [
        pytest.param("if loss > 1:\n    evaluate(model, val_loader)", "loss > 1", "if ddp.from_main(loss > 1):", id="if"),
        pytest.param("if loss > 1:\n    pass\nelse:\n    evaluate(model, val_loader)", "loss > 1", "if ddp.from_main(loss > 1):", id="else"),
        pytest.param(
            "if epoch:\n    pass\nelif loss > 1:\n    evaluate(model, val_loader)", "loss > 1", "elif ddp.from_main(loss > 1):", id="elif",
        ),
        pytest.param(
            "acc = evaluate(model, val_loader) if loss > 1 else 0", "loss > 1", "acc = evaluate(model, val_loader) if ddp.from_main(loss > 1) else 0", id="expression",
        ),
    ],
)  # fmt: skip
def test_tests_round_an_evaluation(end: str, test: str, line: str) -> None:
    for module_level in (False, True):
        parts: dict[str, str | bool] = {**_PARTS, "epoch_end": end, "module_level": module_level}
        assert found("DPM511", **parts) == [test]
        assert line in after(**parts)


def test_in_the_calling_function_and_a_class() -> None:
    defs = (
        _EVALUATE
        + """
class Runner:
    def best(self, model, val_loader, loss):
        if float(torch.rand(1)) > 1:
            return evaluate(model, val_loader)
"""
    )
    parts = {**_PARTS, "defs": defs, "before": "r = Runner()", "epoch_end": "r.best(model, val_loader, loss.item())"}
    assert found("DPM511", **parts) == ["float(torch.rand(1)) > 1"]


def test_a_return_before_the_meeting() -> None:
    guarded = _EVALUATE.replace(
        "    correct = 0\n", "    if float(torch.rand(1)) > 2:\n        return 0\n    if not os.environ:\n        return 0\n    correct = 0\n"
    )
    parts = {**_PARTS, "defs": guarded, "epoch_end": "evaluate(model, val_loader)"}
    assert found("DPM511", **parts) == ["float(torch.rand(1)) > 2"]
    assert "if ddp.from_main(float(torch.rand(1)) > 2):" in after(**parts)


def test_training_itself() -> None:
    parts = {"defs": "def train(model, loader, optimizer):\n    for x, y in loader:\n" + "".join(f"        {line}\n" for line in STEP.splitlines())}
    parts |= {"before": "value = float(torch.rand(1))", "batches": "if value > 2:", "step": "train(model, loader, optimizer)"}
    assert found("DPM511", **parts) == ["value > 2"]


def test_steps_on_a_metric_and_files_that_are_read_again() -> None:
    parts = {"before": _PLATEAU, "epoch_end": "if loss > 1:\n    sched.step(loss)"}
    assert after(**parts)[-2:] == ["if ddp.from_main(loss > 1):", "sched.step(ddp.mean_all(loss))"]
    parts = {"epoch_end": "torch.save(1, 'a')\nif loss > 1:\n    print(torch.load('a', map_location='cpu'))"}
    assert after(**parts) == ["ddp.save(1, 'a')", "if ddp.from_main(loss > 1):", "ddp.barrier()"]


@pytest.mark.parametrize(
    ("end", "line"),
    [
        pytest.param("if loss > 1:\n    sched.step()", "if ddp.from_main(loss > 1):", id="a step of a scheduler"),
        pytest.param(
            "for g in optimizer.param_groups:\n    if loss > 1:\n        g['lr'] *= 0.5", "if ddp.from_main(loss > 1):", id="the rate itself",
        ),
        pytest.param(
            "for g in optimizer.param_groups:\n    g['lr'] = 0.1 if loss > 1 else 0.2", "g['lr'] = 0.1 if ddp.from_main(loss > 1) else 0.2", id="chosen rate",
        ),
    ],
)  # fmt: skip
def test_the_learning_rate(end: str, line: str) -> None:
    parts = {"before": "sched = torch.optim.lr_scheduler.StepLR(optimizer, 1)", "epoch_end": end}
    assert found("DPM511", **parts) == ["loss > 1"]
    assert line in after(**parts)


_SLOWER = "\nfor g in optimizer.param_groups:\n    g['lr'] *= 0.9"


@pytest.mark.parametrize(
    ("test", "lines"),
    [
        pytest.param("loss.item() > last", ["if ddp.mean_all(loss.item()) > last:"], id="the loss of a batch"),
        pytest.param("math.isnan(loss.item())", ["if ddp.any_rank(math.isnan(loss.item())):"], id="no number"),
        pytest.param("random.random() < 0.1", ["if ddp.from_main(random.random() < 0.1):"], id="a draw"),
        pytest.param("time.time() > 9", ["if ddp.any_rank(time.time() > 9):"], id="a clock"),
        pytest.param("y.max() > 1", [], id="something else of the batch"),
    ],
)
def test_the_learning_rate_in_the_batch_loop(test: str, lines: list[str]) -> None:
    """Of W parts of a batch one nearly always says yes."""
    step = f"{STEP}lowest = min(lowest, loss.item())\nif {test}:{_SLOWER.replace(chr(10), chr(10) + '    ')}\nlast = loss.item()"
    parts = {"imports": "import math, random, time", "before": "last = 9.0\nlowest = 9.0", "step": step}
    if lines:
        assert [line for line in after(**parts) if "ddp." in line and "if" in line] == lines
    else:
        assert refused("DPM511", **parts) == [test]


def test_the_lowest_so_far_is_that_of_the_global_batches() -> None:
    step = f"{STEP}lowest = min(lowest, loss.item())\nif lowest > 1:{_SLOWER.replace(chr(10), chr(10) + '    ')}"
    assert "lowest = min(lowest, ddp.mean_all(loss.item()))" in after(before="lowest = 9.0", step=step)


@pytest.mark.parametrize(
    ("change", "test", "line"),
    [
        pytest.param("model.fc.weight.grad = None", "random.random() < 0.5", "if ddp.from_main(random.random() < 0.5):", id="taken away"),
        pytest.param("model.fc.weight.grad.zero_()", "random.random() < 0.5", "if ddp.from_main(random.random() < 0.5):", id="in place"),
        pytest.param("model.fc.weight.grad.data.mul_(0.5)", "loss.item() > 9", "if ddp.mean_all(loss.item()) > 9:", id="data"),
        pytest.param("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "loss.item() > 9", "if ddp.mean_all(loss.item()) > 9:", id="clipped"),
        pytest.param("print(model.fc.weight.grad.norm(), model.fc.weight.grad.data)", "random.random() < 0.5", "", id="shown"),
        pytest.param("model.fc.weight.grad.zero_()", "model.fc.weight.grad.norm() > 9", "", id="a norm of gradients, which are equal on all ranks"),
    ],
)
def test_gradients_that_are_changed(change: str, test: str, line: str) -> None:
    step = STEP.replace("optimizer.step()", f"if {test}:\n    {change}\noptimizer.step()")
    parts = {"imports": "import random", "step": step}
    assert found("DPM511", **parts) == ([test] if line else [])
    assert not line or line in after(**parts)


@pytest.mark.parametrize(
    ("value", "new"),
    [
        pytest.param("0.1 * loss.item()", "0.1 * ddp.mean_all(loss.item())", id="of the loss"),
        pytest.param("min(0.1, float(loss))", "min(0.1, ddp.mean_all(float(loss)))", id="bounded by the loss"),
        pytest.param("random.uniform(0.1, 0.2)", "ddp.from_main(random.uniform(0.1, 0.2))", id="drawn"),
        pytest.param("0.1 * y.max().item()", "", id="of something else of the batch"),
    ],
)
def test_rates_that_batches_give(value: str, new: str) -> None:
    parts = {"imports": "import random", "step": STEP + f"for g in optimizer.param_groups:\n    g['lr'] = {value}"}
    if new:
        assert f"g['lr'] = {new}" in after(**parts)
    else:
        assert refused("DPM511", **parts) == [value]


@pytest.mark.parametrize(
    ("value", "new"),
    [
        pytest.param("0.1 * (1 - (time.time() - start) / 60)", "ddp.from_main(0.1 * (1 - (time.time() - start) / 60))", id="of the clock"),
        pytest.param("rate", "ddp.from_main(rate)", id="of the clock, through a name"),
        pytest.param("left()", "ddp.from_main(left())", id="of the clock, by a function"),
        pytest.param("loss.item() * (time.time() - start)", "ddp.mean_all(loss.item()) * ddp.from_main(time.time() - start)", id="of both"),
    ],
)
@pytest.mark.parametrize("place", ["step", "epoch_end"])
def test_rates_that_clocks_give(value: str, new: str, place: str) -> None:
    lines = f"rate = 1 / (1 + time.time() - start)\nfor g in optimizer.param_groups:\n    g['lr'] = {value}"
    parts = {"imports": "import time", "defs": "def left():\n    return 60 - time.perf_counter()", "before": "start = time.time()"}
    parts[place] = f"{STEP}{lines}" if place == "step" else lines
    both = "ddp.from_main(ddp.mean_all(loss.item()) * (time.time() - start))"
    new = both if place == "epoch_end" and "loss" in value else new  # between the epochs numbers are rank 0's
    assert f"g['lr'] = {new}" in after(**parts)


def test_a_clock_beside_a_loss() -> None:
    step = f"{STEP}if loss.item() > time.time() - start:\n    optimizer.param_groups[0]['lr'] = 0.01"
    line = "if ddp.mean_all(loss.item()) > ddp.from_main(time.time() - start):"
    assert line in after(imports="import time", before="start = time.time()", step=step)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("g = optimizer.param_groups[0]\ng['lr'] = sched.get_last_lr()[0]", id="a schedule"),
        pytest.param("for g in optimizer.param_groups:\n    g['lr'] = 0.1 if epoch > 1 else 0.2", id="chosen by a counter"),
        pytest.param("d = {}\nd['lrs'] = 3 if loss > 1 else 0", id="another key"),
        pytest.param("for phase in ['train', 'val']:\n    if phase == 'train':\n        sched.step()", id="a phase"),
    ],
)
def test_rates_that_are_the_same_everywhere(end: str) -> None:
    parts = {"before": "sched = torch.optim.lr_scheduler.StepLR(optimizer, 1)"}
    assert found("DPM511", epoch_end=end, **parts) == []
    assert end.startswith("d = {}") or found("DPM511", step=STEP + end, **parts) == []


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("ok = loss > 1 and evaluate(model, val_loader)", id="and"),
        pytest.param("if loss > 1 or evaluate(model, val_loader):\n    pass", id="or"),
    ],
)
def test_refused(end: str) -> None:
    assert refused("DPM511", epoch_end=end, **_PARTS) == ["evaluate(model, val_loader)"]


def test_refused_once() -> None:
    """Two places to wait behind one call, and two calls behind one."""
    twice = _EVALUATE.replace(
        "    return correct", "    more = 0\n    for x, y in val_loader:\n        more += model(x).sum().item()\n    return correct + more"
    )
    assert refused("DPM511", **{**_PARTS, "defs": twice, "epoch_end": "ok = loss > 1 and evaluate(model, val_loader)"}) == ["evaluate(model, val_loader)"]


def test_a_handler_that_trains_or_evaluates_is_for_one_process() -> None:
    """One rank cannot repeat what the others have done; one process can. Said once, however many places it leads to."""
    defs = _EVALUATE + "def both(model, val_loader):\n    evaluate(model, val_loader)\n    evaluate(model, val_loader)"
    end = "try:\n    pass\nexcept RuntimeError:\n    both(model, val_loader)\n    print(3)"
    parts = {**_PARTS, "defs": defs, "epoch_end": end}
    assert found("DPM511", **parts) == ["except RuntimeError:"]
    lines = after(**parts)
    start = lines.index("if ddp.world_size() > 1:")
    assert lines[start : start + 2] == ["if ddp.world_size() > 1:", "raise"]


_EXTRA = "extra = DataLoader(val_set, batch_size=4) if random.random() < 0.5 else None"


def test_rank_0_sends_whether_a_loader_is_there() -> None:
    lines = after(imports="import random", epoch_end=f"{_EXTRA}\nif extra:\n    optimizer.param_groups[0]['lr'] *= 0.5\n")
    assert "if ddp.from_main(bool(extra)):" in lines and not any("from_main(extra)" in line for line in lines)


def test_rank_0_sends_no_loader() -> None:
    assert refused("DPM511", imports="import random", epoch_end=f"{_EXTRA}\noptimizer.param_groups[0]['lr'] = extra\n") == ["extra"]


_WINDOW = """
class Similar(nn.Module):
    def __init__(self):
        super().__init__()
        self.channel, self.window = 1, torch.ones(1)

    def forward(self, a, b):
        if a.size(1) != self.channel or TEST:
            self.window = torch.ones(1, a.size(1)).type_as(a)
            self.channel = a.size(1)
        return ((a - b) * self.window).abs().mean()
"""


@pytest.mark.parametrize(
    ("test", "alike"),
    [
        pytest.param("self.window.type() != a.type()", True, id="types"),
        pytest.param("self.window.get_device() != a.get_device()", True, id="devices"),
        pytest.param("a.type(torch.float64).max() > 3", False, id="numbers of another type"),
    ],
)
def test_a_window_that_a_loss_keeps(test: str, alike: bool) -> None:
    parts = {"defs": _WINDOW.replace("TEST", test), "before": "c = Similar()", "step": "optimizer.zero_grad()\nc(model(x), y).backward()\noptimizer.step()"}
    assert (found("DPM511", **parts) == []) is alike
    if alike:
        assert "ddp.wrap" in whole(**parts)


@pytest.mark.parametrize(
    ("step", "line"),
    [
        pytest.param("if random.random() < 0.5:\n    out = model(x.flip(1))\nelse:\n    out = model(x)", "if ddp.from_main(random.random() < 0.5):", id="one of two passes"),
        pytest.param("forced = torch.rand(1).item() < 0.5\nout = model(x)\nif forced:\n    out = out + model(out.detach())", "if ddp.from_main(forced):", id="one more"),
        pytest.param("out = model(x)\nif random.random() < 0.5:\n    out = out * 2", "if random.random() < 0.5:", id="no pass"),
        pytest.param("if epoch > 1:\n    out = model(x.flip(1))\nelse:\n    out = model(x)", "if epoch > 1:", id="no draw"),
    ],
)
def test_passes_by_a_draw(step: str, line: str) -> None:
    text = whole(imports="import random", step=f"optimizer.zero_grad()\n{step}\nloss = F.cross_entropy(out, y)\nloss.backward()\noptimizer.step()")
    assert line in text


_RECORD = """
def past(path):
    with open(path) as f:
        found = json.load(f)
    return found


def record(path, number):
    {test}
        number += past(path)
    with open(path, "w") as f:
        json.dump(number, f)
"""


@pytest.mark.parametrize(
    ("test", "new"),
    [
        pytest.param("if os.path.exists(path):", "if ddp.from_main(os.path.exists(path)):", id="a helper reads it"),
        pytest.param("if not os.path.exists(path):\n        number = 0\n    else:", "if not ddp.from_main(os.path.exists(path)):", id="where it is missing"),
    ],
)
def test_files_that_are_written_next(test: str, new: str) -> None:
    """Rank 0 finds no file and writes it; a rank that asks after that would read it, and wait for the others."""
    parts = {"imports": "import json\nimport os", "defs": _RECORD.format(test=test), "end": "record('best.json', 3)"}
    made = whole(**parts)
    assert new in made or new.replace("not ddp.from_main(os.path.exists(path))", "ddp.from_main(not os.path.exists(path))") in made, made
    assert "ddp.barrier()" in made


def test_a_way_out_before_a_file_is_read() -> None:
    defs = _RECORD.format(test="number += past(path)\n    if number:").replace("    with open(path) as f", "    if not os.path.exists(path):\n        return 0\n    with open(path) as f", 1)
    made = whole(imports="import json\nimport os", defs=defs.replace("        number += past(path)\n", "        number += 1\n", 1), end="record('best.json', 3)")
    assert "from_main" in made and "ddp.barrier()" in made, made


@pytest.mark.parametrize(
    ("rate", "shared"),
    [
        pytest.param("0.1 / (1 + epoch * len(loader) + i)", False, id="by the number of batches of a loader of drawn data"),
        pytest.param("rate(epoch * len(loader) + i)", False, id="by a function of it"),
        pytest.param("0.1 * random.random()", True, id="drawn"),
        pytest.param("0.1 * x.mean().item()", True, id="of the batch"),
    ],
)
def test_rates_by_counters(rate: str, shared: bool) -> None:
    step = STEP + f"for g in optimizer.param_groups:\n    g['lr'] = {rate}"
    defs = "def rate(step):\n    return 0.1 * torch.cos(torch.tensor(step / 9)).item()"
    text = whole(imports="import random", defs=defs, batches="for i, (x, y) in enumerate(loader):", step=step)
    assert (f"g['lr'] = {rate}" not in text) is shared
