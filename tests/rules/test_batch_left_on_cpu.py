"""DPM221: batches that DataParallel moved to the GPU."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import found, hits, whole

_DP = {"model": "model = nn.DataParallel(Net()).cuda()", "imports": "from torch.autograd import Variable"}


def _step(forward: str, before: str = "") -> str:
    return f"{before}\noptimizer.zero_grad()\nloss = F.cross_entropy({forward}, y)\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"model": "model = Net()"}, id="not DataParallel"),
        pytest.param({"step": _step("model(x)", "x = x.cuda()")}, id="moved"),
        pytest.param({"step": _step("model(x)", "x, y = x.to('cuda'), y.to('cuda')")}, id="moved together"),
        pytest.param({"step": _step("model(x.cuda())")}, id="moved in place"),
        pytest.param({"step": _step("model(Variable(x.cuda()))")}, id="moved inside"),
        pytest.param({"step": _step("model(made)", "made = torch.rand(4, 8)")}, id="no batch"),
        pytest.param({"step": _step("model.module(x)")}, id="the bare module: nothing moved it before"),
        pytest.param({"step": _step("model(Variable())")}, id="nothing"),
        pytest.param({"step": _step("model(view(x))"), "defs": "def view(x):\n    return x.cuda()"}, id="a function called view"),
        pytest.param({"step": _step("model(make()[0])"), "defs": "def make():\n    return 3"}, id="an item of something"),
        pytest.param(
            {"batches": "for x, y in moved(loader):", "defs": "def moved(b):\n    for x, y in b:\n        yield x.cuda(), y.cuda()"}, id="moved by a generator"
        ),
        pytest.param({"setup": "b = DataLoader(train_set, batch_size=16)", "batches": "for (x, y), (u, v) in zip(loader, b):"}, id="two loaders"),
        pytest.param({"before": "it = iter(loader)", "batches": "for i in range(4):", "step": "x, y = next(it)\n" + _step("model(x)")}, id="taken by next()"),
        pytest.param({"batches": "for i, (x, y) in enumerate(loader):", "step": _step("model(i)")}, id="the number of the batch"),
        pytest.param({"step": _step("model(x)", "x = x if x is y else x")}, id="one of two"),
        pytest.param({"end": "for z in range(3):\n    model(z)"}, id="another loop"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM221", **{**_DP, "step": _step("model(x.cuda())"), **parts}) == []


@pytest.mark.parametrize(
    ("parts", "new"),
    [
        pytest.param({"step": _step("model(x)")}, "model(x.to(ddp.device()))", id="as the loader gives it"),
        pytest.param({"step": _step("model(x=x)")}, "model(x=x.to(ddp.device()))", id="by keyword"),
        pytest.param({"step": _step("model(Variable(x))")}, "model(Variable(x).to(ddp.device()))", id="a Variable"),
        pytest.param({"step": _step("model(v)", "v = Variable(x)")}, "model(v.to(ddp.device()))", id="a Variable with a name"),
        pytest.param({"step": _step("model(x.view(-1, 8).float())")}, "model(x.view(-1, 8).float().to(ddp.device()))", id="in another shape"),
        pytest.param({"step": _step("model(x)", "x = x.float()")}, "model(x.to(ddp.device()))", id="bound again"),
        pytest.param({"batches": "for i, (x, y) in enumerate(loader):", "step": _step("model(x)")}, "model(x.to(ddp.device()))", id="numbered"),
        pytest.param({"batches": "for b in loader:", "step": _step("model(b[0])", "y = b[1]")}, "model(b[0].to(ddp.device()))", id="an item"),
        pytest.param(
            {"batches": "for i, b in enumerate(loader):", "step": _step("model(b['x'])", "y = b['y']")}, "model(b['x'].to(ddp.device()))", id="an entry"
        ),
    ],
)
def test_found_and_fixed(parts: dict[str, str], new: str) -> None:
    assert new in whole(**{**_DP, **parts})


def test_in_evaluation() -> None:
    end = "v = DataLoader(val_set, batch_size=8)\nn = 0\nwith torch.no_grad():\n    for a, b in v:\n        n += (model(a).argmax(1) == b.cuda()).sum().item()\nprint(n)"
    assert "model.module(a.to(ddp.device()))" in whole(**{**_DP, "step": _step("model(x.cuda())"), "end": end})


def test_a_batch_as_a_whole_is_told() -> None:
    (one,) = hits("DPM221", **{**_DP, "batches": "for b in loader:", "step": _step("model(b)", "y = b[1]")})
    assert (one.severity, one.edits) == (Severity.WARNING, ()) and one.advice
