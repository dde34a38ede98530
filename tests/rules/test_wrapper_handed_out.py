"""DPM117: code of other files gets the model."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found

_IMPORTS = "from evaluate import evaluate\nfrom ema import EMA\nimport copy, helpers"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "print(model)"}, id="Python's own function"),
        pytest.param({"end": "torch.jit.script(model)"}, id="torch's own"),
        pytest.param({"end": "copy.deepcopy(model)"}, id="a copy"),
        pytest.param({"defs": "def show(net):\n    print(net)", "end": "show(model)"}, id="a function of this file"),
        pytest.param({"before": "evaluate(model, 3)"}, id="before the wrap"),
        pytest.param({"end": "evaluate(val_set)"}, id="no model"),
        pytest.param({"end": "evaluate(model.state_dict())"}, id="a part of the model"),
        pytest.param({"end": "evaluate('model')  # evaluate(model)"}, id="in a string and a comment"),
        pytest.param({"end": "fit(model, optimizer)", "imports": "from train import fit"}, id="with an optimizer"),
        pytest.param({"end": "fit(model, opt=optimizer)", "imports": "from train import fit"}, id="with an optimizer by keyword"),
        pytest.param({"step": STEP.replace("loss = F.cross_entropy(model(x), y)", "loss = F.cross_entropy(model(x), y) + helpers.extra(model)")}, id="in the loss"),
        pytest.param({"step": "a = helpers.extra(model)\nb = a * 2\n" + STEP.replace("model(x), y)", "model(x), y) + b")}, id="in the loss through names"),
        pytest.param({"step": STEP + "total: float = 0\nfor i in range(3):\n    total += 1"}, id="nothing is handed out"),
        pytest.param({"step": STEP.replace("loss.backward()", "(loss + 0 * helpers.extra(model)).backward()")}, id="in the backward itself"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "evaluate(model, 3)"}, id="it knew DataParallel's wrapper"),
        pytest.param({"end": "(lambda net: 3)(model)"}, id="a lambda"),
        pytest.param({"end": "[evaluate][0](model)"}, id="an element of a list"),
        pytest.param({"defs": "class T:\n    def show(self, net): pass", "end": "T().show(model)"}, id="a method of this file"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    parts = {**parts, "imports": parts.get("imports", _IMPORTS)}
    assert found("DPM117", **parts) == []


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        pytest.param({"end": "evaluate(model, 3)"}, "evaluate(model.module, 3)", id="from-import"),
        pytest.param({"end": "helpers.evaluate(net=model)"}, "helpers.evaluate(net=model.module)", id="import, by keyword"),
        pytest.param({"end": "acc = evaluate(model, 3)"}, "acc = evaluate(model.module, 3)", id="its value is kept"),
        pytest.param({"step": STEP + "score = evaluate(model, 3)"}, "score = evaluate(model.module, 3)", id="between the batches"),
        pytest.param({"step": STEP + "best += evaluate(model, 3)", "before": "best = 0"}, "best += evaluate(model.module, 3)", id="added up"),
        pytest.param({"before": "ema = EMA(3)", "step": STEP + "ema.update(model)"}, "ema.update(model.module)", id="an object of another file"),
        pytest.param({"end": "if evaluate(model, 3) > 1:\n    print(3)"}, "if evaluate(model.module, 3) > 1:", id="in a test"),
        pytest.param({"module_level": True, "end": "for a in evaluate(model, 3):\n    print(a)"}, "for a in evaluate(model.module, 3):", id="gone through, module level"),
    ],
)  # fmt: skip
def test_found_and_fixed(parts: dict[str, str | bool], line: str) -> None:
    assert found("DPM117", imports=_IMPORTS, **parts) == ["model"]
    assert line in after(imports=_IMPORTS, **parts)


def test_where_it_may_be_either() -> None:
    defs = "def show(net):\n    evaluate(net, 3)"
    assert "evaluate(ddp.unwrap(net), 3)" in after(imports=_IMPORTS, defs=defs, before="other = Net()", end="show(model)\nshow(other)")
