"""DPM221: batches that DataParallel moved to the GPU."""

from __future__ import annotations

from textwrap import indent

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
        pytest.param({"step": _step("model.module(x)")}, id="the bare module: nothing moved it before"),
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
        pytest.param({"batches": "for b in loader:", "step": _step("model(x)", "x, y = b\nx = x.cuda()")}, id="taken out by name and moved"),
        pytest.param({"batches": "for b in loader:", "step": _step("model(x)", "x, y = moved(b)"), "imports": "from lib import moved"}, id="what a function gives of it"),
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
        pytest.param({"step": _step("model(made)", "made = torch.rand(4, 8)")}, "model(made.to(ddp.device()))", id="no batch"),
        pytest.param({"step": _step("model(Variable())")}, "model(Variable().to(ddp.device()))", id="nothing"),
        pytest.param({"batches": "for i, (x, y) in enumerate(loader):", "step": _step("model(x)")}, "model(x.to(ddp.device()))", id="numbered"),
        pytest.param({"batches": "for b in loader:", "step": _step("model(b[0])", "y = b[1]")}, "model(b[0].to(ddp.device()))", id="an item"),
        pytest.param({"batches": "for i, b in enumerate(loader):", "step": _step("model(x)", "x, y = b")}, "model(x.to(ddp.device()))", id="taken out by name"),
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


_NOISE = "def noise(device):\n    return torch.randn(5, 8).to(device)"


@pytest.mark.parametrize(
    ("shown", "new"),
    [
        pytest.param("model(noise('cpu'))", "model.module(noise('cpu').to(ddp.device()))", id="moved to the CPU by a parameter"),
        pytest.param("z = noise('cpu')\nmodel(z)", "model.module(z.to(ddp.device()))", id="with a name"),
        pytest.param("model(torch.zeros(3, 8))", "model.module(torch.zeros(3, 8).to(ddp.device()))", id="made on the CPU"),
        pytest.param("model(torch.ones(3, 8) * 2)", "model.module((torch.ones(3, 8) * 2).to(ddp.device()))", id="computed there"),
        pytest.param("model(torch.ones(3, 8).view(-1, 8))", "model.module(torch.ones(3, 8).view(-1, 8).to(ddp.device()))", id="seen as another shape"),
        pytest.param("z = noise('cuda').cpu()\nmodel(z)", "model.module(z.to(ddp.device()))", id="brought back"),
        pytest.param("model(noise('cuda'))", "model.module(noise('cuda'))", id="moved to the GPU by a parameter"),
        pytest.param("model(2 * noise('cuda'))", "model.module(2 * noise('cuda'))", id="computed on the GPU"),
        pytest.param("model(torch.zeros(3, 8, device='cuda'))", "model.module(torch.zeros(3, 8, device='cuda'))", id="made on the GPU"),
        pytest.param("model(torch.stack([noise('cuda')[0]]))", "model.module(torch.stack([noise('cuda')[0]]))", id="made of what is on the GPU"),
        pytest.param("z = noise('cpu')\nif fast:\n    z = z.cuda()\nmodel(z)", "model.module(z)", id="perhaps moved"),
    ],
)
def test_tensors_of_the_program(shown: str, new: str) -> None:
    parts = {**_DP, "step": _step("model(x.cuda())"), "defs": _NOISE, "before": "fast = len(sys.argv) > 3", "end": f"with torch.no_grad():\n{indent(shown, '    ')}"}
    assert new in whole(**{**parts, "imports": "import sys\nfrom torch.autograd import Variable"})


def test_a_batch_as_a_whole_is_told() -> None:
    (one,) = hits("DPM221", **{**_DP, "batches": "for b in loader:", "step": _step("model(b)", "y = b[1]")})
    assert (one.severity, one.edits) == (Severity.WARNING, ()) and one.advice


_AT_CHOICE = "model = Net().cuda()\nif torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)"


@pytest.mark.parametrize(
    ("model", "step", "left"),
    [
        pytest.param(_AT_CHOICE, _step("model(x.cuda(), y)"), [], id="one GPU needs no more than that"),
        pytest.param(_AT_CHOICE, _step("model(x)"), ["x"], id="nothing is moved"),
        pytest.param("model = nn.DataParallel(Net().cuda())", _step("model(x.cuda(), y)"), ["y"], id="always DataParallel"),
        pytest.param("model = Net().cuda()\nif os.environ.get('P'):\n    model = nn.DataParallel(model)", _step("model(x.cuda(), y)"), ["y"], id="another test"),
    ],
)
def test_a_program_that_runs_on_one_gpu_as_well(model: str, step: str, left: list[str]) -> None:
    """Lengths that nothing moves are wanted on the CPU."""
    parts = {"model": model, "step": step, "net": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n    def forward(self, x, n=None):\n        return self.fc(x)"}
    assert found("DPM221", **parts) == left
    assert "move_inputs" not in whole(**parts)
