"""DPM108: training passes that go round the wrapper."""

from __future__ import annotations

import pytest

from tests.rules.program import COUNTING, STEP, after, found, refused, whole

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
    ("call", "expected"),
    [
        pytest.param("model.loss(x, y)", 'ddp.method(model, "loss")(x, y)', id="method of the model"),
        pytest.param("model.body.conv(x)", 'ddp.method(model, "body.conv")(x)', id="part of a part"),
        pytest.param("model.body.conv.forward(x)", 'ddp.method(model, "body.conv.forward")(x)', id="forward of a part"),
        pytest.param("model.heads[0](x)", 'ddp.method(model, "heads.0")(x)', id="item of a list of layers"),
        pytest.param("model.fc(x)", 'ddp.method(model, "fc")(x)', id="a layer"),
    ],
)
def test_through_the_wrapper(call: str, expected: str) -> None:
    assert f"loss = loss + {expected}.mean()" in whole(net=_NET, defs=_BODY, step=_step(f"loss = loss + {call}.mean()"))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("model.module(x)", "model(x)", id="the module itself"),
        pytest.param("model.module.forward(x)", "model(x)", id="its forward"),
        pytest.param("model.module.loss(x=x, y=y)", 'ddp.method(model, "loss")(x=x, y=y)', id="a method"),
        pytest.param("model.module.body.conv(x)", 'ddp.method(model, "body.conv")(x)', id="a part"),
        pytest.param("model.forward(x)", "model(x.to(ddp.device()))", id="the wrapper's own forward"),
    ],
)
def test_behind_data_parallel(call: str, expected: str) -> None:
    assert f"loss = loss + {expected}.mean()" in whole(net=_NET, defs=_BODY, model=_DP, step=_step(f"loss = loss + {call}.mean()"))


def test_where_nothing_else_calls_the_model() -> None:
    step = "optimizer.zero_grad()\nloss = model.loss(x, y)\nloss.backward()\noptimizer.step()"
    text = whole(net=_NET, defs=_BODY, step=step)
    assert "model = ddp.wrap(Net()" in text
    assert 'loss = ddp.method(model, "loss")(x, y)' in text


def test_in_a_function_with_a_parameter() -> None:
    defs = _BODY + "\ndef run(net, x, y):\n    return net.loss(x, y)"
    assert 'return ddp.method(net, "loss")(x, y)' in whole(net=_NET, defs=defs, step=_step("loss = loss + run(model, x, y)"))


def test_module_level() -> None:
    assert 'loss = ddp.method(model, "loss")(x, y)' in whole(net=_NET, defs=_BODY, module_level=True, step=_step("loss = model.loss(x, y)"))


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"step": _step("loss = loss + model.heads[x.size(0) % 1](x).sum()")}, "model.heads[x.size(0) % 1](x)", id="a layer chosen by a variable"),
    ],
)
def test_refused(parts: dict[str, str], pointed: str) -> None:
    assert refused("DPM108", **{"net": _NET, "defs": _BODY, **parts}) == [pointed]


def test_inside_a_class_of_models_it_is_the_model_itself() -> None:
    assert found("DPM108", net=_NET, defs=_BODY, step=STEP) == []


def test_a_loss_that_uses_nothing_of_the_model() -> None:
    """It is no pass: the module behind the wrapper has it."""
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n"
    net += "    def forward(self, x):\n        return self.fc(x)\n    def loss(self, out, y):\n        return F.cross_entropy(out, y)\n"
    parts = {"net": net, "step": STEP.replace("F.cross_entropy(model(x), y)", "model.loss(model(x), y)")}
    assert found("DPM108", **parts) == []
    assert "loss = model.module.loss(model(x), y)" in after(**parts)


def test_a_filter_of_plain_tensors() -> None:
    """It is no pass either: with ``find_unused`` DDP would take all parameters for unused after it."""
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n        self.kernel = torch.ones(2)\n"
    net += "    def forward(self, x):\n        return self.fc(x)\n    def smooth(self, x):\n        return x * self.kernel\n"
    parts = {"net": net, "step": STEP.replace("F.cross_entropy(model(x), y)", "F.cross_entropy(model.smooth(model(x)), y)")}
    assert found("DPM108", **parts) == []
    assert "loss = F.cross_entropy(model.module.smooth(model(x)), y)" in after(**parts)


_COUNTS = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.fc(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.part(x) * self.scale

    def counted(self, reset=False):
        calls = self.part.calls
        if reset:
            self.part.calls = 0
        return calls

    def scaled(self):
        return self.scale * 2

    def measured(self, x):
        self.kept = self.part(x)
        return len(self.kept)
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("n = model.counted(reset=True)", [], id="a number that the model keeps"),
        pytest.param("n = model.scaled()", ["model.scaled()"], id="made of a parameter"),
        pytest.param("n = model.measured(x)", ["model.measured(x)"], id="a number, where a layer was run"),
    ],
)
def test_what_computes_nothing_is_no_pass(line: str, expected: list[str]) -> None:
    """With ``find_unused`` DDP would take all parameters for unused after it."""
    assert found("DPM108", net=_COUNTS, step=_step(line)) == expected


@pytest.mark.parametrize("model", ["", _DP], ids=["one GPU", "DataParallel"])
def test_forward_by_its_name_is_a_call(model: str) -> None:
    """The hooks of the wrapper finish backwards that leave parameters out."""
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model.forward(x), y)\nloss.backward()\noptimizer.step()"
    parts = {"step": step, **({"model": model} if model else {})}
    assert found("DPM108", **parts) == ["model.forward(x)"]
    given = "x.to(ddp.device())" if model else "x"
    assert f"loss = F.cross_entropy(model({given}), y)" in [line.strip() for line in whole(**parts).splitlines()]


def test_forward_by_its_name_without_gradients() -> None:
    assert found("DPM108", step=_step("with torch.no_grad():\n    t = model.forward(x)")) == []
