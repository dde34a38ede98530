"""Gradients of samples: of which loss, whether the parameters' are dropped, and whether their size counts."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits, whole

_TRAIN = "optimizer.zero_grad()\nF.cross_entropy(model(z), y).backward()\noptimizer.step()"
_SUM = "z = torch.zeros_like(x)\nz.requires_grad = True\nfor k in range(3):\n    {}\n    z.data.add_(z.grad.data, alpha=-1.0)\n    z.grad.zero_()\nz = z.detach()\n"


def _scaled(**parts: str | bool) -> bool:
    """Whether the first backward is the sum over all ranks; what is told of it goes with that."""
    text = whole(**parts)
    return "ddp.sum_loss(" in text


@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": _SUM.format("model(z).sum().backward()") + _TRAIN}, id="by the optimizer"),
        pytest.param({"step": _SUM.format("torch.sum(model(z)).backward()") + _TRAIN.replace("optimizer.z", "model.z")}, id="by the model, torch.sum"),
        pytest.param({"step": "z = x.clone().requires_grad_()\nmodel(z).sum().backward()\nz = (z + 2 * z.grad).detach()\n" + _TRAIN}, id="of the batch, as a method"),
        pytest.param({"step": "z = torch.zeros(16, 8, requires_grad=True)\nmodel(z).sum().backward()\nz = (z + z.grad).detach()[: len(y)]\n" + _TRAIN}, id="drawn anew"),
        pytest.param(
            {"step": "optimizer.zero_grad()\nF.cross_entropy(model(x), y).backward()\noptimizer.step()\nx.requires_grad_()\nmodel(x).sum().backward()\nprint(x.grad)"},
            id="cleared in the next turn",
        ),
        pytest.param(
            {
                "defs": "def dream(model, x):\n    x.requires_grad_(True)\n    model(x).sum().backward()\n    return (x + x.grad).detach()\n"
                "def clear(o):\n    o.zero_grad()\n",
                "step": "z = dream(model, x)\nclear(optimizer)\nF.cross_entropy(model(z), y).backward()\noptimizer.step()",
            },
            id="functions",
        ),
        pytest.param({"step": "if epoch > 0:\n    x.requires_grad_()\n    model(x).sum().backward()\n    optimizer.zero_grad()\nz = x.detach() if x.grad is None else (x + x.grad).detach()\n" + _TRAIN}, id="in a branch"),
    ],
)  # fmt: skip
def test_a_sum_for_samples_alone_is_left_as_it_is(parts: dict[str, str], module_level: bool) -> None:
    assert found("DPM301", module_level=module_level, **parts) == []
    assert found("DPM305", module_level=module_level, **parts) == []
    assert not _scaled(module_level=module_level, **parts)


_STEPPED = "optimizer.zero_grad()\nx.requires_grad_()\nmodel(x).sum().backward()\n{}"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": _STEPPED.format("optimizer.step()\nprint((2 * x.grad).mean())")}, id="stepped by"),
        pytest.param({"step": _STEPPED.format("g = x.grad * 2\nif epoch:\n    optimizer.zero_grad()\noptimizer.step()\nprint(g)")}, id="cleared sometimes"),
        pytest.param({"step": _STEPPED.format("g = x.grad * 2\nupdate(optimizer)\nprint(g)"), "defs": "def update(o):\n    o.step()\n    o.zero_grad()"}, id="a function"),
        pytest.param({"step": "optimizer.step()\n" + _STEPPED.format("print(x.grad * 2)").replace("optimizer.zero_grad()\n", "")}, id="in the next turn"),
        pytest.param({"step": _STEPPED.format("g = x.grad * 2\nother.zero_grad()\noptimizer.step()\nother.step()\nprint(g)"),
                      "before": "net = Net()\nother = torch.optim.SGD(net.parameters(), lr=1)"}, id="another optimizer's"),
    ],
)  # fmt: skip
def test_a_sum_that_the_optimizer_steps_by_too(parts: dict[str, str]) -> None:
    """The parameters need the sum over the ranks, and the samples must not have it: told."""
    assert found("DPM301", **parts) == ["model(x).sum().backward()"]
    (one,) = hits("DPM305", **parts)
    assert "the gradient of x comes from the sum that is scaled for the optimizer" in one.message


_ADD = "adv = (x + 20.0 * {}).detach()\noptimizer.zero_grad()\nF.cross_entropy(model(adv), y).backward()\noptimizer.step()"
_LOSS = "x.requires_grad_()\n{}\n"
_GRAD = _LOSS.format("g = torch.autograd.grad(F.cross_entropy(model(x), y), x)[0]")


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(_GRAD + _ADD.format("g.sign()"), id="its sign"),
        pytest.param(_GRAD + _ADD.format("torch.sign(g)"), id="its sign, as a function"),
        pytest.param(_GRAD + _ADD.format("g.detach()[:].sign()"), id="its sign, further on"),
        pytest.param(_GRAD + _ADD.format("g / g.norm(dim=1, keepdim=True)"), id="its direction"),
        pytest.param(_GRAD + "n = g.norm(dim=1, keepdim=True)\n" + _ADD.format("g / (n + 1e-8)"), id="its direction, by a name"),
        pytest.param(_GRAD + "n = g.norm(dim=1, keepdim=True)\ng = g.div(n)\n" + _ADD.format("g"), id="its direction, by a method"),
        pytest.param(_GRAD + "g /= g.norm(dim=1, keepdim=True)\n" + _ADD.format("g"), id="its direction, in place"),
        pytest.param(_GRAD + _ADD.format("F.normalize(g)"), id="normalize"),
        pytest.param(_GRAD + _ADD.format("unit(g)"), id="in a function"),
        pytest.param(_LOSS.format("g, = torch.autograd.grad(outputs=F.cross_entropy(model(x), y), inputs=[x])") + _ADD.format("g.sign()"), id="unpacked"),
        pytest.param(_LOSS.format("F.cross_entropy(model(x), y).backward()") + _ADD.format("x.grad.data.sign()"), id="backward"),
        pytest.param(_LOSS.format("model(x).max(1)[0].backward(torch.ones(len(x)))") + _ADD.format("x.grad.sign()"), id="a loss that is not known"),
        pytest.param(_LOSS.format("g = torch.autograd.grad(model(x).sum(), x)[0]") + _ADD.format("g"), id="a sum"),
        pytest.param(_LOSS.format("g = torch.autograd.grad(model(x)[:, 0], x, torch.ones(len(x)))[0]") + _ADD.format("g"), id="a gradient for each sample"),
        pytest.param("g = torch.autograd.grad(F.cross_entropy(model(w), y), w)[0]\n" + _ADD.format("g"), id="not seen to be of the batch"),
        pytest.param("g = torch.autograd.grad(*stuff)[0]\n" + _ADD.format("g"), id="arguments that are not seen"),
        pytest.param("optimizer.zero_grad()\nF.cross_entropy(model(x), y).backward()\nprint(x.grad)\noptimizer.step()", id="asked of nothing"),
        pytest.param("x.requires_grad = True\noptimizer.zero_grad()\nF.cross_entropy(model(x), y).backward()\nprint(x.grad is None)\noptimizer.step()", id="only cleared"),
    ],
)  # fmt: skip
def test_gradients_whose_size_is_right_or_does_not_count(step: str) -> None:
    defs = "def unit(v):\n    return v / v.abs().max()"
    told = hits("DPM305", defs=defs, step=step, before="w = torch.zeros(16, 8, requires_grad=True)\nstuff = ()")
    assert [h.message for h in told if "gradient" in h.message] == []


@pytest.mark.parametrize(
    ("step", "name"),
    [
        pytest.param(_GRAD + _ADD.format("g"), "x", id="as it is"),
        pytest.param(_GRAD + _ADD.format("g / 2"), "x", id="divided by a number"),
        pytest.param(_GRAD + _ADD.format("g.div(3)"), "x", id="divided by a number, as a method"),
        pytest.param(_GRAD + _ADD.format("g.clamp(-1, 1)"), "x", id="cut off"),
        pytest.param(_GRAD + "g /= 2\n" + _ADD.format("g"), "x", id="divided in place"),
        pytest.param(_GRAD + _ADD.format("scale(g)"), "x", id="in a function"),
        pytest.param(_GRAD + "p = ((g.norm(2, dim=1) - 1) ** 2).mean()\noptimizer.zero_grad()\n(F.cross_entropy(model(x), y) + p).backward()\noptimizer.step()", "x", id="a penalty"),
        pytest.param(_LOSS.format("F.cross_entropy(model(x), y).mean().backward()") + _ADD.format("x.grad"), "x", id="backward"),
        pytest.param("z = torch.autograd.Variable(x, requires_grad=True)\nF.mse_loss(model(z), z[:, :2]).backward()\n" + _ADD.format("z.grad.data"), "z", id="Variable"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_gradients_of_a_mean(step: str, name: str, module_level: bool) -> None:
    (one,) = hits("DPM305", defs="def scale(v):\n    return 2 * v", step=step, module_level=module_level)
    assert f"the gradient of {name} is taken of a mean over a rank's part of the batch" in one.message


def test_a_loss_that_is_not_known() -> None:
    """For samples alone a mean is wrong and a sum is right, other than for parameters."""
    (one,) = hits("DPM305", imports="import lib", step=_LOSS.format("lib.loss(model(x), y).backward()") + _ADD.format("x.grad"))
    assert "the gradient of x is right only if the loss is a sum" in one.message
    step = "optimizer.zero_grad()\nx.requires_grad_()\nlib.loss(model(x), y).backward()\nprint(x.grad * 2)\noptimizer.step()"
    (one,) = hits("DPM305", imports="import lib", step=step)
    assert "right only if the loss is a mean" in one.message


def test_a_gradient_that_evaluation_takes() -> None:
    """Evaluation keeps its batches whole."""
    end = "for a, b in DataLoader(val_set, batch_size=4):\n    a.requires_grad_()\n    F.cross_entropy(model(a), b).backward()\n    print(a.grad)"
    assert [h for h in hits("DPM305", end=end) if "gradient" in h.message] == []


def test_a_sum_without_an_optimizer_that_is_seen() -> None:
    step = "x.requires_grad_()\nmodel(x).sum().backward()\nprint(x.grad)\n"
    assert after(step=step + "optimizer.zero_grad()\nF.cross_entropy(model(x), y).backward()\noptimizer.step()") == []
