"""A batch is moved for a bare model where the program moves others for its models itself."""

from __future__ import annotations

import pytest

from dpmigrate.judge import before, faults, left_on_cpu
from tests.judge.trained import result

_MOVED = "model(x.to(ddp.device()))"


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        pytest.param({"step": f"{_MOVED}\nnet(x)"}, True, id="as it came"),
        pytest.param({"step": f"{_MOVED}\nnet(x.to(ddp.device()))"}, False, id="moved"),
        pytest.param({"step": f"{_MOVED}\nif len(x) > 3:\n    x = x.cuda()\nnet(x)"}, False, id="perhaps moved"),
        pytest.param({"step": _MOVED, "end": "for a, b in val_loader:\n    net(a)"}, True, id="batches that every rank has in full"),
        pytest.param({"step": _MOVED, "end": "for a, b in val_loader:\n    net(a.to(ddp.device()))"}, False, id="these moved"),
        pytest.param({"step": _MOVED, "end": "for a, b in val_loader:\n    net(net(a.to(ddp.device())).relu())"}, False, id="what a model makes"),
        pytest.param({"step": "net(x)"}, False, id="nothing is moved"),
        pytest.param({"step": "one = torch.ones(2).to(ddp.device())\nnet(x)"}, False, id="no batch is moved"),
        pytest.param({"step": f"{_MOVED}\nnet(x.float() * 2)"}, True, id="made of it"),
        pytest.param({"step": f"{_MOVED}\nnet(torch.as_tensor(x, device='cuda'))"}, False, id="moved by an argument"),
        pytest.param({"step": f"{_MOVED}\nnet(x.type(torch.cuda.FloatTensor))"}, False, id="moved by its type"),
        pytest.param({"step": f"{_MOVED}\nother = nn.Linear(2, 2)\nother(x)"}, False, id="another model"),
    ],
)
def test_batches_of_bare_models(parts: dict[str, str], wrong: bool) -> None:
    found = [f for f in faults(result(**parts)) if f.invariant == left_on_cpu.NAME]
    assert bool(found) is wrong, found


def test_the_program_knew_better() -> None:
    """Its data lie on the device, or the model does not: it has given the model such batches before."""
    wrong = result(step=f"{_MOVED}\nnet(x)")
    for step, refused in [("net(x)", False), ("net(x.cuda())", True)]:
        found = faults(wrong, before(result(step=step)))
        assert any(f.invariant == left_on_cpu.NAME for f in found) is refused


@pytest.mark.parametrize(
    ("original", "new", "refused"),
    [
        pytest.param("nn.DataParallel(net)(torch.ones(3, 2))", "net(torch.ones(3, 2))", True, id="made on the CPU"),
        pytest.param("nn.DataParallel(net)(torch.ones(3, 2))", "net(torch.ones(3, 2).to(ddp.device()))", False, id="moved"),
        pytest.param("nn.DataParallel(net)(x.cpu())", "net(x.cpu())", True, id="brought back"),
        pytest.param("net(torch.ones(3, 2))", "net(torch.ones(3, 2))", False, id="nothing moved it before"),
        pytest.param("torch.set_default_device('cuda')", "torch.set_default_device('cuda')\nnet(torch.ones(3, 2))", False, id="made on the GPU by default"),
    ],
)
def test_what_a_wrapper_moved(original: str, new: str, refused: bool) -> None:
    found = faults(result(step=new), before(result(step=original)))
    assert any(f.invariant == left_on_cpu.NAME for f in found) is refused
