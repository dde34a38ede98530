"""DPM612: evaluation calls the bare module."""

from __future__ import annotations

import pytest

from tests.rules.program import COUNTING, after, found


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="training goes through the wrapper"),
        pytest.param({"end": "print(Net()(torch.ones(1, 8)))"}, id="a model that is not trained"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "print(model.module(torch.ones(1, 8)))"}, id="the module already"),
        pytest.param({"end": "print('model(x)')  # model(x)"}, id="in a string and a comment"),
        pytest.param({"step": "def f(net):\n    return net(x)\noptimizer.zero_grad()\nloss = F.cross_entropy(f(model), y)\nloss.backward()\noptimizer.step()"}, id="in a function of training"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM612", **parts) == []


@pytest.mark.parametrize(
    ("parts", "pointed", "line"),
    [
        pytest.param({"end": COUNTING}, "model(a)", "correct += (model.module(a).argmax(1) == b).sum().item()", id="evaluation loop"),
        pytest.param({"end": "print(model(torch.ones(1, 8)))"}, "model(torch.ones(1, 8))", "print(model.module(torch.ones(1, 8)))", id="a sample"),
        pytest.param({"step": "optimizer.zero_grad()\nwith torch.no_grad():\n    t = model(x)\nloss = F.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()"}, "model(x)", "t = model.module(x)", id="without gradients in training"),
        pytest.param({"defs": "def show(net, x):\n    return net(x)", "end": "show(net=model, x=torch.ones(1, 8))"}, "net(x)", "return net.module(x)", id="parameter"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "print(model(torch.ones(1, 8)))", "module_level": True}, "model(torch.ones(1, 8))", "print(model.module(torch.ones(1, 8).to(ddp.device())))", id="module level, DataParallel"),
    ],
)  # fmt: skip
def test_found_and_fixed(parts: dict[str, str | bool], pointed: str, line: str) -> None:
    assert found("DPM612", **parts) == [pointed]
    assert line in after(**parts)


def test_where_it_may_be_either() -> None:
    parts = {"defs": "def show(net, x):\n    return net(x)", "model": "model = nn.DataParallel(Net())", "end": "show(model, 1)\nshow(model.module, 1)"}
    assert "return ddp.unwrap(net)(x)" in after(**parts)


def test_a_function_of_training_and_evaluation_keeps_the_wrapper() -> None:
    defs = "def run(net, x):\n    return net(x)"
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(run(model, x), y)\nloss.backward()\noptimizer.step()"
    end = "val_loader = DataLoader(val_set, batch_size=4)\nfor x, y in val_loader:\n    print(run(model, x))"
    assert found("DPM612", defs=defs, step=step, end=end) == []
