"""Outputs of a model that no loss is made of, and the layers behind them."""

from __future__ import annotations

import pytest

from tests.pipeline import script
from tests.rules.program import found, program, whole

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.proj = nn.Linear(8, 3)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        {body}

    def logits(self, h):
        return self.fc(h)

    def project(self, h):
        return self.proj(h)
"""
_BODY = "h = self.body(x)\nfeat = self.proj(h)\nout = self.fc(h)\nreturn feat, out"
_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"
_TAKEN = "feat, out = model(x)\nloss = F.cross_entropy(out, y)"


def idle(lines: str = _TAKEN, body: str = _BODY, **more: str) -> list[str]:
    parts: dict[str, str] = {"net": _NET.format(body=body.replace("\n", "\n        ")), "step": _STEP.format(lines), **more}
    s = script(program(**parts))  # type: ignore[arg-type]
    (wrap,) = s.wraps.wraps
    return [u.name for u in s.unused(wrap) if u.idle]


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        pytest.param("feat, out = model(x)\nloss = F.cross_entropy(out, y) + feat.mean()", _BODY, id="all are in the loss"),
        pytest.param("feat, out = model(x)\nreg = feat.pow(2)\nloss = F.cross_entropy(out, y)\nloss += reg.mean()", _BODY, id="by a detour"),
        pytest.param("loss = F.cross_entropy(*model(x))", _BODY, id="all are given on"),
        pytest.param("out = model(x)\nloss = criterion(out, y)", _BODY, id="given on by a variable"),
        pytest.param("out = model(x)\nloss = F.cross_entropy(out[i], y)", _BODY, id="by an index that is not known"),
        pytest.param("a = out = model(x)\nloss = F.cross_entropy(out[1], y)", _BODY, id="under two names"),
        pytest.param("a, *b = model(x)\nloss = F.cross_entropy(b[0], y)", _BODY, id="a star"),
        pytest.param("a, b, c = model(x)\nloss = F.cross_entropy(b, y)", _BODY, id="another number"),
        pytest.param("self.out = model(x)\nloss = F.cross_entropy(self.out[1], y)", _BODY, id="an attribute"),
        pytest.param("print(model(x)[0])\nloss = F.cross_entropy(model(x)[1], y)", _BODY, id="a pass that no loss is made of"),
        pytest.param("loss = F.cross_entropy(model(x)[5], y)", _BODY, id="an index that is not there"),
        pytest.param("loss = F.cross_entropy(model(x), y)", "h = self.body(x)\nreturn self.fc(h)", id="one output"),
        pytest.param(_TAKEN, "h = self.body(x)\nif x.dim() > 2:\n    return self.fc(h)\nreturn self.proj(h), self.fc(h)", id="not always as many"),
        pytest.param(_TAKEN, "h = self.body(x)\nall = self.proj(h), self.fc(h)\nreturn all", id="a variable"),
        pytest.param(_TAKEN, "h = self.body(x)\nreturn (*self.proj(h), self.fc(h))", id="a starred output"),
        pytest.param(_TAKEN, "h = self.body(x)\nself.last = self.proj(h)\nreturn self.last, self.fc(h)", id="kept"),
        pytest.param(_TAKEN, "h = self.body(x)\nouts = []\nouts.append(self.proj(h))\nreturn outs[0], self.fc(h)", id="in a list"),
        pytest.param(_TAKEN, "h = self.body(x)\nh = h + self.proj(h)\nreturn h, self.fc(h)", id="in both"),
        pytest.param(_TAKEN, "return self.project(x), self.fc(self.project(x))", id="in both, by a method"),
        pytest.param("feat, out = model(x)\nloss = y.sum()", _BODY, id="no loss is made of any"),
        pytest.param("model(x)\nloss = y.sum()", _BODY, id="no output is taken"),
    ],
)
def test_nothing_is_idle(lines: str, body: str) -> None:
    assert idle(lines, body) == []


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        pytest.param(_TAKEN, _BODY, id="unpacked"),
        pytest.param("_, out = model(x)\nloss = F.cross_entropy(out, y)", _BODY, id="underscore"),
        pytest.param("loss = F.cross_entropy(model(x)[1], y)", _BODY, id="an item"),
        pytest.param("loss = F.cross_entropy(model.forward(x)[-1], y)", _BODY, id="from the end, by forward"),
        pytest.param("out = model(x)\nprint(out[0].shape)\nloss = F.cross_entropy(out[1], y)", _BODY, id="an item of a variable"),
        pytest.param("out = model(x)\na, b = out\nloss = F.cross_entropy(b, y)", _BODY, id="unpacked later"),
        pytest.param("out = model(x)\nloss: object = F.cross_entropy(out[1], y)", _BODY, id="annotated"),
        pytest.param("out = model(x)\nloss = F.cross_entropy(out['b'], y)", "h = self.body(x)\nreturn {'a': self.proj(h), 'b': self.fc(h)}", id="a dict"),
        pytest.param(_TAKEN, "h = self.body(x)\nreturn self.project(h), self.logits(h)", id="by methods"),
        pytest.param(_TAKEN, "h = self.body(x)\nfeat = h\nfor i in range(2):\n    feat = self.proj(h) + i\nfeat += 1\nreturn feat, self.fc(h)", id="in a loop"),
    ],
)
def test_a_layer_is_idle(lines: str, body: str) -> None:
    assert idle(lines, body) == ["proj"]


def test_a_layer_that_another_place_uses_is_not_idle() -> None:
    assert idle("feat, out = model(x)\nloss = F.cross_entropy(out, y) + model.proj.weight.sum()") == []


@pytest.mark.parametrize(
    ("lines", "net"),
    [
        pytest.param("loss = F.cross_entropy(model.module.logits(x), y)", _NET.format(body=_BODY.replace("\n", "\n        ")), id="a pass round the wrapper"),
        pytest.param(_TAKEN, "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)", id="no forward"),
    ],
)
def test_nothing_is_known_of_the_outputs(lines: str, net: str) -> None:
    assert idle(lines, net=net, model="model = nn.DataParallel(Net())") == []


def test_the_wrap_is_told() -> None:
    parts = {"net": _NET.format(body=_BODY.replace("\n", "\n        ")), "step": _STEP.format(_TAKEN)}
    assert found("DPM111", **parts) == ["self.proj = nn.Linear(8, 3)"]
    assert "ddp.wrap(Net(), find_unused=True)" in whole(**parts)
