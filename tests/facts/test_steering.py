"""What changes the course of a training, and by which tests and numbers ranks would part there, as DPM511 says it."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused

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
        pytest.param("held = {'batches': [x, y], 'weights': list(model.parameters())}\nfor q in held['batches']:\n    q = q.to('cpu')\n    q.data = q * loss.item()", id="what stands beside weights"),
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
    assert [*found("DPM511", **parts), *found("DPM332", **parts)] in (["loss.item() < 1"], ["loss.item()"])  # the test, or the number in it
    assert "if ddp.mean_all(loss.item()) < 1:" in after(**parts)
    assert refused("DPM511", **{**parts, "step": parts["step"].replace("loss.item() < 1", "x.max() < 1")}) == ["x.max() < 1"]


def test_a_number_that_no_rank_can_make_whole_is_refused_beside_one_that_can() -> None:
    """What goes by the one has no mean of all ranks either, as the ranks have parted there."""
    lines = "if loss.item() < 1:\n    phase = 1\nif x.max() < 1:\n    alpha = 0.3\n    phase = 2"
    assert refused("DPM511", **_course(lines)) == ["x.max() < 1"]


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
        pytest.param("model.fc.weight.data.mul_(1 - 0.1 * loss.item())", "model.module.fc.weight.data.mul_(1 - 0.1 * ddp.mean_all(loss.item()))", id="in place"),
        pytest.param("model.fc.weight.data -= 0.1 * loss.item()", "model.module.fc.weight.data -= 0.1 * ddp.mean_all(loss.item())", id="assigned"),
        pytest.param("model.fc.bias.data -= 0.1 * x.mean(0)[:2]", "model.module.fc.bias.data -= 0.1 * ddp.mean_all(x.mean(0))[:2]", id="something else of the batch"),
        pytest.param("with torch.no_grad():\n    for p in model.parameters():\n        p.clamp_(-x.max(), x.max())", "", id="in place, without gradients"),
        pytest.param("for p in model.parameters():\n    p.clamp_(min=-x.max().item())", "", id="by keyword"),
        pytest.param(
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * loss.item())",
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * ddp.mean_all(loss.item()))", id="another optimizer's rate",
        ),
        pytest.param("alpha = 1 / (1 + time.time() - start)", "alpha = ddp.from_main(1 / (1 + time.time() - start))", id="a factor of the clock"),
        pytest.param("alpha = x.max().item()", "", id="a factor of the batch"),
        pytest.param("alpha = 0.5 if x.max() > 1 else 1.0", "", id="a factor that the batch chooses"),
    ],
)  # fmt: skip
def test_numbers_that_change_the_course(line: str, new: str) -> None:
    assert new in after(**_course(line)) if new else len(refused("DPM511", **_course(line))) == 1


@pytest.mark.parametrize(
    ("lines", "single"),
    [
        pytest.param("n = random.random()", True, id="one number"),
        pytest.param("while True:\n    n = random.random()\n    if n > 0.1:\n        break", True, id="one number, drawn again"),
        pytest.param("n = [random.random() for k in range(8)]", True, id="a setting's number of them"),
        pytest.param("n = []\nfor i in y.tolist():\n    n.append([random.random()])", False, id="one for each sample"),
        pytest.param("n = []\nfor i in y.tolist():\n    while True:\n        j = random.randrange(9)\n        if j != i:\n            break\n    n.append([j])", False, id="one for each sample, drawn again"),
        pytest.param("n = []\nwhile len(n) < len(x):\n    n.append([random.random()])", False, id="as many as samples"),
        pytest.param("n = [[random.random()] for k in range(batch_size)]", False, id="as many as the batch size says"),
        pytest.param("n = np.random.exponential(1.0, (16, 8))", False, id="of one parameter, sized"),
        pytest.param("n = np.random.exponential(1.0)", True, id="of one parameter"),
    ],
)  # fmt: skip
def test_draws_for_the_samples_of_a_batch_are_the_ranks_own(lines: str, single: bool) -> None:
    step = f"{lines}\n" + STEP.replace("y)", "y) + model(torch.as_tensor(n)).mean()")
    said = found("DPM511", imports="import random\nimport numpy as np\nbatch_size = 16", loader="loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)", step=step)
    assert bool(said) is single


def test_a_number_of_the_losses_before() -> None:
    step = "weight = 1 / (1 + last)\n" + STEP.replace("y)", "y) * 1.0") + "last = loss.item()"
    parts = {"before": "last = 1.0", "step": step.replace("loss.backward()", "loss = loss + last * model(x).mean() * 0\nloss.backward()")}
    assert after(**parts) == ["last = ddp.mean_all(loss.item())"]


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
