"""DPM108: training passes that go round the wrapper."""

from __future__ import annotations

import pytest

from tests.rules.program import COUNTING, STEP, found, refused

_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.body = Body()
        self.heads = nn.ModuleList([nn.Linear(8, 2)])

    def forward(self, x):
        return self.fc(x)

    def loss(self, x, y):
        return F.cross_entropy(self(x), y)
"""
_BODY = "class Body(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.conv = nn.Linear(8, 2)\n\n    def forward(self, x):\n        return self.conv(x)"
_DP = "model = nn.DataParallel(Net())"


def _step(line: str) -> str:
    return f"optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\n{line}\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("n = list(model.parameters())", id="parameters are no pass"),
        pytest.param("model.train()", id="a mode"),
        pytest.param("model.note(x)", id="the result is not used"),
        pytest.param("n = model.num_layers()", id="a number of the model"),
        pytest.param("w = model.fc.weight.norm()", id="a parameter used in the loss"),
        pytest.param("w = losses[0](x)", id="an item of something else"),
        pytest.param("w = self_like.body.conv(x)", id="a part of something else"),
        pytest.param("s = 'model.loss(x, y)'  # model.loss(x, y)", id="in a string and a comment"),
        pytest.param("with torch.no_grad():\n    t = model.loss(x, y)", id="without gradients"),
        pytest.param("s = model.state_dict()", id="state"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM108", net=_NET, defs=_BODY + "\nimport types\nlosses = [F.relu]\nself_like = types.SimpleNamespace()", step=_step(line)) == []


def test_evaluation_may_go_round_it() -> None:
    assert found("DPM108", model=_DP, end=COUNTING.replace("model(a)", "model.module(a)")) == []


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("model.loss(x, y)", id="method of the model"),
        pytest.param("model.body.conv(x)", id="part of a part"),
        pytest.param("model.body.conv.forward(x)", id="forward of a part"),
        pytest.param("model.heads[0](x)", id="item of a list of layers"),
        pytest.param("model.fc(x)", id="a layer"),
    ],
)
def test_refused(call: str) -> None:
    assert refused("DPM108", net=_NET, defs=_BODY, step=_step(f"loss = loss + {call}.sum()")) == [call]


@pytest.mark.parametrize("call", ["model.module(x)", "model.module.loss(x=x, y=y)", "model.module.body.conv(x)"])
def test_refused_behind_data_parallel(call: str) -> None:
    assert refused("DPM108", net=_NET, defs=_BODY, model=_DP, step=_step(f"loss = loss + {call}.sum()")) == [call]


def test_in_a_function_with_a_parameter() -> None:
    defs = _BODY + "\ndef run(net, x, y):\n    return net.loss(x, y)"
    assert refused("DPM108", net=_NET, defs=defs, step=_step("loss = loss + run(model, x, y)")) == ["net.loss(x, y)"]


def test_module_level() -> None:
    assert refused("DPM108", net=_NET, defs=_BODY, module_level=True, step=_step("loss = model.loss(x, y)")) == ["model.loss(x, y)"]


def test_inside_a_class_of_models_it_is_the_model_itself() -> None:
    assert found("DPM108", net=_NET, defs=_BODY, step=STEP) == []
