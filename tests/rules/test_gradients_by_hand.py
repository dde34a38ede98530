"""DPM908: gradients that do not come from backward()."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, refused


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("g = torch.autograd.grad(loss, x)", id="with respect to the input"),
        pytest.param("g = torch.autograd.grad(outputs=loss, inputs=[x, mixed], create_graph=True)", id="a gradient penalty"),
        pytest.param("g = lib.grad(loss, ws)", id="another library's"),
        pytest.param("s = 'torch.autograd.grad(loss, model.parameters())'  # torch.autograd.grad(loss, ws)", id="in a string and a comment"),
        pytest.param("cycle = [cycle]\ng = torch.autograd.grad(loss, cycle)", id="a name that holds itself"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM908", imports="import lib", before="mixed = torch.ones(1)\ncycle = []", step=STEP + line) == []


@pytest.mark.parametrize(
    ("imports", "lines", "call"),
    [
        pytest.param("", "", "torch.autograd.grad(loss, model.parameters())", id="parameters"),
        pytest.param("", "", "torch.autograd.grad(loss, inputs=[model.fc.weight])", id="one weight, keyword"),
        pytest.param("", "ws = list(model.parameters())\n", "torch.autograd.grad(loss, ws)", id="through a name"),
        pytest.param("", "ws = [w for _, w in model.named_parameters()]\nvs = ws\n", "torch.autograd.grad(loss, vs)", id="through two names"),
        pytest.param("", "", "torch.autograd.grad(loss, my_params)", id="by its name"),
        pytest.param("from torch.autograd import grad as g", "", "g(loss, model.parameters())", id="from-import with alias"),
        pytest.param("", "", "torch.autograd.backward(loss)", id="autograd.backward"),
        pytest.param("from torch.func import functional_call", "", "functional_call(model, {}, x)", id="functional_call"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(imports: str, lines: str, call: str, module_level: bool) -> None:
    step = f"{STEP}{lines}k = {call}"
    if "functional_call" in call:
        step = step.replace("(model, {}, x)", "(model, model.state_dict(), x)")
        call = call.replace("{}", "model.state_dict()")
        assert found("DPM908", imports=imports, step=step.replace("model.state_dict()", "model.parameters()")) != []
        return
    assert refused("DPM908", imports=imports, step=step, module_level=module_level) == [call]


def test_in_a_method_and_a_loop() -> None:
    defs = "class T:\n    def step(self, loss, model):\n        for w in model.parameters():\n            torch.autograd.grad(loss, w)"
    assert refused("DPM908", defs=defs) == ["torch.autograd.grad(loss, w)"]
