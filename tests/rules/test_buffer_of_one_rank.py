"""DPM118: buffers that collect samples."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import found, hits, refused

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.register_buffer("kept", torch.zeros(8))
        self.register_buffer(name="other", tensor=torch.zeros(8))
        self.kept += 1

    def forward(self, x):
        {}
        return self.fc(x)
"""


def _net(line: str) -> str:
    return _NET.format(line.replace("\n", "\n        "))


def _in_method(line: str, given: str) -> str:
    return _net(f"self.put({given})") + f"\n    def put(self, value):\n        {line}\n"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("y = self.kept + x", id="only read"),
        pytest.param("self.kept += 1", id="steps are counted"),
        pytest.param("self.kept.mul_(0.9)", id="changed alike on every rank"),
        pytest.param("self.kept = torch.zeros(x.shape[1], device=x.device, dtype=x.dtype)", id="made for a length"),
        pytest.param("n, length = x.shape\nself.kept = torch.zeros(length)", id="made for a length, unpacked"),
        pytest.param("size = x.size(-1)\nself.kept = torch.zeros(size)", id="made for a size, through a name"),
        pytest.param("self.last = x", id="no buffer"),
        pytest.param("self.kept[0] = self.fc.weight.sum()", id="made of weights"),
        pytest.param("x.add_(1)\nx = x.add(self.kept)\nprint(x)", id="something else is changed"),
        pytest.param("self.put(3)\n", id="a method that is not seen"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM118", net=_net(line)) == []


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("self.kept += x.size(0)", "self.kept += x.size(0)", id="samples are counted"),
        pytest.param("self.kept += x.shape[0]", "self.kept += x.shape[0]", id="samples are counted, by shape"),
        pytest.param("n, length = x.shape\nself.kept += n", "self.kept += n", id="samples are counted, unpacked"),
        pytest.param("self.kept = 0.9 * self.kept + 0.1 * x.mean(0)", "self.kept = 0.9 * self.kept + 0.1 * x.mean(0)", id="a running mean"),
        pytest.param("self.other.mul_(0.9).add_(x.mean(0), alpha=0.1)", "self.other.mul_(0.9).add_(x.mean(0), alpha=0.1)", id="a running mean, in place"),
        pytest.param("keys = x.detach()\nself.kept.data[:4] = keys", "self.kept.data[:4] = keys", id="a queue"),
        pytest.param("self.kept.data.copy_(x[0])", "self.kept.data.copy_(x[0])", id="copied"),
    ],
)
def test_refused_for_one_device(line: str, pointed: str) -> None:
    assert refused("DPM118", net=_net(line)) == [pointed]
    noted = hits("DPM118", net=_net(line), model="model = nn.DataParallel(Net())")
    assert [h.severity for h in noted] == [Severity.NOTE]


def test_a_part_of_the_model() -> None:
    net = _net("self.kept += x.size(0)").replace("Net", "Inner") + "\nclass Net(Inner):\n    pass\n"
    assert refused("DPM118", net=net) == ["self.kept += x.size(0)"]


def test_in_a_method() -> None:
    line = "self.kept = value[0]"
    assert refused("DPM118", net=_in_method(line, "x")) == [line]
    assert found("DPM118", net=_in_method(line, "[3]")) == []


_LOSS = """\
class Center(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("center", torch.zeros(2))

    def forward(self, out, y):
        {}
        return F.cross_entropy(out{}, y)

    @torch.no_grad()
    def update(self, out):
        self.center = 0.9 * self.center + 0.1 * out.mean(0)
"""
_STEP = "optimizer.zero_grad()\nloss = {}\nloss.backward()\noptimizer.step()\n"
_LINE = "self.center = 0.9 * self.center + 0.1 * out.mean(0)"


@pytest.mark.parametrize("model", ["model = Net()", "model = nn.DataParallel(Net())"])
def test_a_loss_beside_the_model(model: str) -> None:
    parts = {"model": model, "before": "criterion = Center()"}
    trained = _STEP.format("criterion(model(x), y)")
    assert refused("DPM118", **parts, defs=_LOSS.format("self.update(out)", " - self.center"), step=trained) == [_LINE]
    (one,) = hits("DPM118", **parts, defs=_LOSS.format("self.update(out)", ""), step=trained)
    assert one.severity is Severity.WARNING  # a statistic that nothing in training reads
    assert found("DPM118", **parts, defs=_LOSS.format("pass", " - self.center"), step=_STEP.format("F.cross_entropy(model(x), y)")) == []
    shown = _STEP.format("F.cross_entropy(model(x), y)") + "print(criterion(x, y).item())"
    assert found("DPM118", **parts, defs=_LOSS.format("self.update(out)", " - self.center"), step=shown) == []


def test_a_loss_that_a_function_returns() -> None:
    defs = _LOSS.format("self.update(out)", " - self.center") + "\ndef objective(out, y):\n    return criterion(out, y)\n"
    assert refused("DPM118", defs=defs, before="global criterion\ncriterion = Center()", step=_STEP.format("objective(model(x), y)")) == [_LINE]
    inside = "optimizer.zero_grad()\ncriterion(model(x), y).backward()\noptimizer.step()\n"
    assert refused("DPM118", defs=_LOSS.format("self.update(out)", " - self.center"), before="criterion = Center()", step=inside) == [_LINE]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("if self.training:\n    mean = x.mean(0)\n    self.kept.lerp_(mean, 0.1)\nelse:\n    mean = self.kept\nx = x - mean", id="else"),
        pytest.param("if not self.training:\n    x = x - self.kept\nelse:\n    self.kept.lerp_(x.mean(0), 0.1)", id="not"),
        pytest.param("if self.training:\n    self.kept.lerp_(x.mean(0), 0.1)\n    return self.fc(x)\nx = x - self.kept", id="after a return"),
        pytest.param("if self.training:\n    self.kept.lerp_(x.mean(0), 0.1)\nx = x - (0 if self.training else self.kept)", id="in one line"),
    ],
)
def test_read_in_evaluation_alone(lines: str) -> None:
    (one,) = hits("DPM118", net=_net(lines))
    assert one.severity is Severity.NOTE


def test_read_in_training_too() -> None:
    line = "self.kept.lerp_(x.mean(0), 0.1)"
    assert refused("DPM118", net=_net(f"if self.training and len(x):\n    {line}\nelse:\n    x = x - self.kept")) == [line]
    assert refused("DPM118", net=_net(f"if self.training:\n    {line}\nx = x - self.kept")) == [line]


def test_in_a_container() -> None:
    line = "self.kept += x.size(0)"
    net = _net(line).replace("Net", "Part")
    assert refused("DPM118", net=net, model="model = nn.Sequential(nn.Linear(8, 8), Part())") == [line]
    assert refused("DPM118", net=net, model="part = Part()\nmodel = nn.Sequential(nn.Sequential(part), nn.Tanh())") == [line]


_BANK = """\
class Compare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, memory):
        ctx.save_for_backward(x, y, memory)
        {forward}
        return x @ memory.t()

    @staticmethod
    def backward(ctx, grad):
        {saved}
        {backward}
        return grad @ memory, None, None

class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.rand(64, 2))

    def forward(self, x, y):
        return Compare.apply({given})
"""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({}, ["memory.index_copy_(0, y, x)"], id="in backward"),
        pytest.param({"backward": "pass", "forward": "memory[y] = x"}, ["memory[y] = x"], id="in forward"),
        pytest.param({"backward": "pass"}, [], id="nowhere"),
        pytest.param({"backward": "memory = memory + 1"}, [], id="a name bound anew"),
        pytest.param({"backward": "grad.mul_(2)\n        self.memory.mul_(x)"}, [], id="something else"),
        pytest.param({"saved": "x, y, memory = ctx.held"}, [], id="held in another way"),
        pytest.param({"saved": "x, y, other, memory = ctx.saved_tensors"}, [], id="held at another place"),
        pytest.param({"given": "x, y"}, [], id="not given"),
        pytest.param({"given": "x, y, self.memory.clone()"}, [], id="a copy is given"),
        pytest.param({"given": "x, y, self.other"}, [], id="another attribute"),
    ],
)
def test_a_bank_that_an_operation_writes(changed: dict[str, str], expected: list[str]) -> None:
    usual = {"forward": "pass", "saved": "x, y, memory = ctx.saved_tensors", "backward": "memory.index_copy_(0, y, x)", "given": "x, y, self.memory"}
    step = _STEP.format("F.cross_entropy(bank(model(x), y), y)")
    assert refused("DPM118", defs=_BANK.format(**{**usual, **changed}), before="bank = Bank()", step=step) == expected


def test_a_function_that_is_none_of_autograd() -> None:
    usual = {"forward": "pass", "saved": "x, y, memory = ctx.saved_tensors", "backward": "memory.index_copy_(0, y, x)", "given": "x, y, self.memory"}
    plain = _BANK.format(**usual).replace("torch.autograd.Function", "object")
    step = _STEP.format("F.cross_entropy(bank(model(x), y), y)")
    assert refused("DPM118", defs=plain, before="bank = Bank()", step=step) == []
    kept = _BANK.format(**usual).replace("ctx.save_for_backward(x, y, memory)", "ctx.keep(x, y, memory)")
    assert refused("DPM118", defs=kept, before="bank = Bank()", step=step) == []
