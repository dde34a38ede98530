"""DPM511: all ranks go the same way to where they meet."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused

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
        pytest.param("loss.item() > last", ["if ddp.mean_all(loss.item()) > ddp.mean_all(last):"], id="the loss of a batch"),
        pytest.param("math.isnan(loss.item())", ["if ddp.any_rank(math.isnan(loss.item())):"], id="no number"),
        pytest.param("random.random() < 0.1", ["if ddp.from_main(random.random() < 0.1):"], id="a draw"),
        pytest.param("time.time() > 9", ["if ddp.any_rank(time.time() > 9):"], id="a clock"),
        pytest.param("y.max() > 1", [], id="something else of the batch"),
        pytest.param("lowest > 1", [], id="the lowest so far"),
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
        pytest.param("0.1 * loss.item()", "ddp.mean_all(0.1 * loss.item())", id="of the loss"),
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
    new = f"ddp.from_main({value})" if place == "epoch_end" and "loss" in value else new  # between the epochs numbers are rank 0's
    assert f"g['lr'] = {new}" in after(**parts)


def test_a_clock_beside_a_loss() -> None:
    step = f"{STEP}if loss.item() > time.time() - start:\n    optimizer.param_groups[0]['lr'] = 0.01"
    line = "if ddp.mean_all(loss.item()) > ddp.from_main(time.time() - start):"
    assert line in after(imports="import time", before="start = time.time()", step=step)


_LOCAL = "if loss.item() < 1:\n    {}"
_WAYS = "alpha, phase = 1.0, 0\ncriterion = nn.CrossEntropyLoss()\nother = {'way': 0}\nstart = time.time()\nseen = 0\nbackup = model.state_dict()"
_LONG = """\
optimizer.zero_grad()
loss = criterion(model(x), y)
if phase:
    loss = loss + alpha * model(x).pow(2).mean()
loss = loss + other['way'] * loss
loss.backward()
optimizer.step()
"""


def _course(lines: str) -> dict[str, str]:
    return {"imports": "import random, time", "before": _WAYS, "step": _LONG + lines}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(_LOCAL.format("seen = seen + 1\n    print(seen)"), id="a counter that is shown"),
        pytest.param(_LOCAL.format("best = model.state_dict()"), id="weights that are kept"),
        pytest.param("if epoch > 1:\n    phase = 1", id="by the epoch"),
        pytest.param("if x.size(0) != 16:\n    phase = 1", id="by the size of a batch, which is alike"),
        pytest.param("n = len(x)\nif n != 16 or x.device != y.device or x is None:\n    phase = 1", id="by the form of a batch"),
        pytest.param("if random.random() < 0.5:\n    alpha = 0.5", id="a factor that is drawn for a rank's samples"),
        pytest.param("phase = epoch > 1", id="set by the epoch"),
        pytest.param(
            "for p in model.parameters():\n    p.data.clamp_(-0.1, 0.1)\n    p.data = p.data * 0.9\n    p.requires_grad_(True)", id="weights by numbers"
        ),
        pytest.param("optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / (epoch + 1))", id="another optimizer for all"),
        pytest.param("model.load_state_dict(backup)", id="restored for all"),
        pytest.param("for q in [x]:\n    q.mul_(loss.item())\n    q.data = loss.detach() * x", id="other tensors"),
        pytest.param("for g in optimizer.param_groups:\n    g['tag'] = loss.item()\n    g['tag'].mul_(loss.item())", id="what an optimizer is told beside"),
        pytest.param("nn.init.zeros_(x)\nx.apply_(abs)\nx.load_state_dict(3)\nx.apply(abs)", id="of something else"),
        pytest.param("print(model.fc.weight.grad.mul_(1))", id="gradients alone"),
        pytest.param("if loss.item() > 1:\n    print(1)\n    'a string'", id="a test that changes nothing"),
    ],
)
def test_a_course_that_all_ranks_keep(lines: str) -> None:
    assert found("DPM511", **_course(lines)) == []


def test_what_a_step_sets_for_itself() -> None:
    step = _LONG.replace("if phase:", "if loss.item() < 1:\n    alpha = 0.5\nelse:\n    alpha = 0.7\nif phase:")
    assert found("DPM511", **{**_course(""), "step": step}) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("alpha = 0.5", id="a factor"),
        pytest.param("alpha = 0.5\nelse:\n    alpha = 0.7", id="a factor, either way"),
        pytest.param("phase = 1", id="a flag"),
        pytest.param("phase += 1", id="a counter"),
        pytest.param("other['way'] = 1", id="an entry"),
        pytest.param("criterion = nn.MultiMarginLoss()", id="another loss"),
        pytest.param("optimizer = torch.optim.SGD(model.parameters(), lr=0.01)", id="another optimizer"),
        pytest.param("optimizer.load_state_dict(optimizer.state_dict())", id="the optimizer's state"),
        pytest.param("optimizer.add_param_group({'params': [model.fc.weight]})", id="more to train"),
        pytest.param("sched.load_state_dict(sched.state_dict())", id="the schedule's state"),
        pytest.param("model.load_state_dict(backup)", id="weights restored"),
        pytest.param("model.fc.load_state_dict(backup)", id="weights of a part restored"),
        pytest.param("model.fc.weight.data *= 0.9", id="a weight"),
        pytest.param("model.fc.weight.data[0] = 0.9", id="a part of a weight"),
        pytest.param("model.fc.weight.data.mul_(0.9).add_(0.1)", id="a weight in place"),
        pytest.param("nn.init.zeros_(model.fc.bias)", id="a weight is initialised"),
        pytest.param("torch.nn.utils.prune.l1_unstructured(model.fc, 'weight', 0.1)", id="pruned"),
        pytest.param("model.fc.apply(print)", id="applied to a part"),
        pytest.param("for p in model.parameters():\n        p.data.clamp_(-0.1, 0.1)", id="all weights"),
        pytest.param("params = list(model.parameters())\n    for p in params:\n        p.data.clamp_(-0.1, 0.1)", id="through a list"),
        pytest.param("for g in optimizer.param_groups:\n        for p in g['params']:\n            p.data.mul_(0.9)", id="of an optimizer"),
        pytest.param("for n, p in model.named_parameters():\n        p.data = p.data * 0.9", id="by name"),
    ],
)
def test_what_changes_the_course(change: str) -> None:
    """A mean over the batch decides it for all; what nobody can decide for the whole batch is refused."""
    parts = _course(_LOCAL.format(change))
    parts["before"] += "\nsched = torch.optim.lr_scheduler.StepLR(optimizer, 1)"
    assert found("DPM511", **parts) == ["loss.item() < 1"]
    assert "if ddp.mean_all(loss.item()) < 1:" in after(**parts)
    assert refused("DPM511", **{**parts, "step": parts["step"].replace("loss.item() < 1", "x.max() < 1")}) == ["x.max() < 1"]


def test_what_has_been_decided_is_alike() -> None:
    """What is set under a test that the ranks decide together needs no question of its own."""
    lines = "if loss.item() < 1 and not phase:\n    phase = 1\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)"
    assert "if ddp.mean_all(loss.item()) < 1 and not phase:" in after(**_course(lines))


@pytest.mark.parametrize(("place", "by"), [("step", "any_rank"), ("epoch_end", "from_main")])
def test_a_clock_that_changes_the_course(place: str, by: str) -> None:
    lines = "if time.time() - start > 60:\n    phase = 1"
    parts = _course(lines if place == "step" else "")
    assert f"if ddp.{by}(time.time() - start > 60):" in after(**{**parts, "epoch_end": "" if place == "step" else lines})


def test_a_draw_that_changes_the_course() -> None:
    lines = "if random.random() < 0.1:\n    model.load_state_dict(backup)"
    assert "if ddp.from_main(random.random() < 0.1):" in after(**_course(lines))


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("model.fc.weight.data.mul_(1 - 0.1 * loss.item())", "model.module.fc.weight.data.mul_(ddp.mean_all(1 - 0.1 * loss.item()))", id="in place"),
        pytest.param("model.fc.weight.data -= 0.1 * loss.item()", "model.module.fc.weight.data -= ddp.mean_all(0.1 * loss.item())", id="assigned"),
        pytest.param("model.fc.bias.data -= 0.1 * x.mean(0)[:2]", "", id="something else of the batch"),
        pytest.param("with torch.no_grad():\n    for p in model.parameters():\n        p.clamp_(-x.max(), x.max())", "", id="in place, without gradients"),
        pytest.param("for p in model.parameters():\n    p.clamp_(min=-x.max().item())", "", id="by keyword"),
        pytest.param(
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * loss.item())",
            "optimizer = torch.optim.SGD(model.parameters(), lr=ddp.mean_all(0.1 * loss.item()))", id="another optimizer's rate",
        ),
        pytest.param("alpha = 1 / (1 + time.time() - start)", "alpha = ddp.from_main(1 / (1 + time.time() - start))", id="a factor of the clock"),
        pytest.param("alpha = x.max().item()", "", id="a factor of the batch"),
        pytest.param("alpha = 0.5 if x.max() > 1 else 1.0", "", id="a factor that the batch chooses"),
    ],
)  # fmt: skip
def test_numbers_that_change_the_course(line: str, new: str) -> None:
    assert new in after(**_course(line)) if new else len(refused("DPM511", **_course(line))) == 1


def test_a_number_of_the_losses_before() -> None:
    step = "weight = 1 / (1 + last)\n" + STEP.replace("y)", "y) * 1.0") + "last = loss.item()"
    parts = {"before": "last = 1.0", "step": step.replace("loss.backward()", "loss = loss + last * model(x).mean() * 0\nloss.backward()")}
    assert refused("DPM511", **parts) == ["loss.item()"]


def test_a_course_that_a_helper_changes() -> None:
    defs = "def clip(model, size):\n    if size > 1:\n        return\n    for p in model.parameters():\n        p.data.clamp_(-size, size)"
    assert refused("DPM511", defs=defs, **_course("clip(model, x.max())"))
    assert found("DPM511", defs=defs, **_course("clip(model, 0.5)")) == []


def test_an_option_that_a_model_is_given() -> None:
    net = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.mask = None
    def forward(self, x, more=None):
        if more:
            self.mask = torch.ones(8)
        return self.fc(x if self.mask is None else x * self.mask)
"""
    assert found("DPM511", net=net, step=STEP.replace("model(x)", "model(x, y)")) == []


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


_APART = """
def apart(one, two):
    d = {}
    for (k, v), (_, w) in zip(one.state_dict().items(), two.state_dict().items()):
        d[k] = v - w
    return d
def calc(x, y):
    F.cross_entropy(other(x), y).backward()
    return RETURNED
def perturb(net, diff, coeff):
    with torch.no_grad():
        for n, p in net.named_parameters():
            if n in diff:
                p.add_(coeff * diff[n])
"""


@pytest.mark.parametrize(
    ("returned", "refusals"),
    [
        pytest.param("apart(model, other)", [], id="weights"),
        pytest.param("{n: w.clone() for n, w in other.named_parameters()}", [], id="weights, at once"),
        pytest.param("{n: other(x).mean() for n in apart(model, other)}", ["n in diff", "coeff * diff[n]"], id="outputs"),
    ],
)
def test_weights_that_are_changed_by_others(returned: str, refusals: list[str]) -> None:
    parts = {
        "defs": _APART.replace("RETURNED", returned),
        "before": "other = Net()\nsecond = torch.optim.SGD(other.parameters(), lr=0.1)",
        "step": f"d = calc(x, y)\nperturb(model, d, 0.1)\n{STEP}perturb(model, diff=d, coeff=-0.1)",
    }
    assert found("DPM511", **parts) == refusals
