"""DPM120: one backward for one forward."""

from __future__ import annotations

import pytest

from tests.rules.program import found, refused

_TWO = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nloss.backward()\n"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(_TWO + "optimizer.step()", id="one"),
        pytest.param(_TWO + "(model(x).mean() * 2).backward()\noptimizer.step()", id="a forward in between"),
        pytest.param(
            "loss = F.cross_entropy(model(x), y)\nif epoch:\n    (2 * loss).backward()\nelse:\n    loss.backward()\noptimizer.step()", id="one of two"
        ),
        pytest.param("for k in range(2):\n    F.cross_entropy(model(x), y).backward()\noptimizer.step()", id="a forward in each turn"),
        pytest.param("for k in range(2):\n    part(model, x, y).backward()\noptimizer.step()", id="a forward in a function in each turn"),
        pytest.param(_TWO + "print('loss.backward()')  # loss.backward()\noptimizer.step()", id="in a string and a comment"),
        pytest.param(_TWO + "net = Other()\nnet.backward\noptimizer.step()", id="not called"),
    ],
)
def test_nothing_to_say(step: str) -> None:
    defs = "class Other:\n    backward = 1\ndef part(model, x, y):\n    return F.cross_entropy(model(x), y)"
    assert found("DPM120", defs=defs, step=step) == []


@pytest.mark.parametrize(
    ("step", "pointed"),
    [
        pytest.param(_TWO.replace("backward()", "backward(retain_graph=True)") + "(loss * 2).backward()", "(loss * 2).backward()", id="one forward"),
        pytest.param("model(x).sum().backward()\ntorch.ones(1).backward()", "torch.ones(1).backward()", id="the forward belongs to the first"),
        pytest.param("a, b = model(x).mean(), model(x).sum()\na.backward()\nb.backward()", "b.backward()", id="two forwards first"),
        pytest.param(
            "out = model(x)\nfor k in range(2):\n    out[k].sum().backward(retain_graph=True)", "out[k].sum().backward(retain_graph=True)", id="repeated"
        ),
        pytest.param(
            "if epoch:\n    model(x).sum().backward()\nelse:\n    a = model(x)\n    a.sum().backward(retain_graph=True)\n    a.mean().backward()",
            "a.mean().backward()",
            id="in the other branch",
        ),
        pytest.param(
            "if epoch > 2:\n    model(x).sum().backward()\nelif epoch > 1:\n    a = model(x)\n    a.sum().backward(retain_graph=True)\n    a.mean().backward()",
            "a.mean().backward()",
            id="in a third branch",
        ),
        pytest.param("if epoch:\n    model(x).sum().backward()\n    torch.ones(1).backward()", "torch.ones(1).backward()", id="in one branch"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(step: str, pointed: str, module_level: bool) -> None:
    assert refused("DPM120", step=step + "\noptimizer.step()", module_level=module_level) == [pointed]


def test_in_a_function_and_a_method() -> None:
    defs = "class T:\n    def two(self, a, b):\n        a.backward()\n        b.backward()\ndef two(a, b):\n    a.backward()\n    b.backward()"
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\n{}(loss, loss)\noptimizer.step()"
    assert refused("DPM120", defs=defs, step=step.format("two")) == ["b.backward()"]
    assert refused("DPM120", defs=defs, step=step.format("T().two")) == ["b.backward()"]
