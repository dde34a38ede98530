"""How training passes run through a model."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts import passes
from tests.pipeline import script
from tests.rules.program import program

_NET = """
from helpers import robust
from nets import Other
class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(8, 2)
    def forward(self, x):
        return self.conv(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.body = Body()
        self.heads = nn.ModuleList([nn.Linear(8, 2)])
    def forward(self, x):
        return self.again(x)
    def again(self, x):
        return self.forward(x)
    def loss(self, x, y):
        return F.cross_entropy(self(x), y)
"""
_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"


_LOSS = """
class Together(nn.Module):
    def forward(self, out, y, adapter, held=nn.Linear(2, 2)):
        for part in [adapter]:
            part(out)
        return F.mse_loss(adapter(out), y)
"""


def test_a_model_that_is_handed_to_the_method_of_another_module() -> None:
    model = "model, adapter, together = Net(), nn.Linear(2, 2), Together()"
    step = _STEP.format("loss = together(model(x), y, adapter)")
    optimizer = "optimizer = torch.optim.SGD(list(model.parameters()) + list(adapter.parameters()), lr=0.1)"
    found = script(program(net=_NET + _LOSS, model=model, optimizer=optimizer, step=step))
    assert [ast.unparse(p.call) for p in found.roles.training_passes] == ["adapter(out)", "model(x)"]
    assert sorted(w.target for w in found.wraps.wraps) == ["adapter", "model"]


def taken(line: str, model: str = "model = nn.DataParallel(Net())") -> list[tuple[str, str | None, bool]]:
    found = script(program(net=_NET, model=model, step=_STEP.format(line)))
    return [(ast.unparse(p.model), p.path, p.round) for p in found.roles.training_passes]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("loss = y.sum()", [], id="none"),
        pytest.param("loss = model(x).sum()", [("model", "", False)], id="a call"),
        pytest.param("loss = model.forward(x).sum()", [("model", "", False)], id="forward"),
        pytest.param("loss = model.module(x).sum()", [("model", "", True)], id="behind the wrapper"),
        pytest.param("loss = model.module.forward(x).sum()", [("model", "", True)], id="forward behind the wrapper"),
        pytest.param("loss = model.module.loss(x, y)", [("model", "loss", True)], id="a method"),
        pytest.param("loss = model.module.body.conv(x).sum()", [("model", "body.conv", True)], id="a part"),
        pytest.param("loss = model.module.body.forward(x).sum()", [("model", "body.forward", True)], id="forward of a part"),
        pytest.param("loss = model.module.heads[0](x).sum()", [("model", "heads.0", True)], id="an item"),
        pytest.param("loss = model.module.heads[i](x).sum()", [("model", None, True)], id="an item without a name"),
        pytest.param("model.module.loss(x, y)\nloss = y.sum()", [], id="a method whose value is not used"),
        pytest.param("n = model.module.num_features()\nloss = y.sum()", [], id="a number"),
        pytest.param("n = model.module.body.name.upper()\nloss = y.sum()", [], id="no part"),
        pytest.param("loss = robust(model, x)", [("model", "", False)], id="another file's function"),
        pytest.param("loss = robust(net=model, x=x)", [("model", "", False)], id="another file's function, keyword"),
        pytest.param("robust(model, x).backward()\nloss = y.sum()", [("model", "", False)], id="differentiated at once"),
        pytest.param("robust(model, x)\nloss = y.sum()", [], id="a statement without a value"),
        pytest.param("acc = robust(model, x)\nloss = y.sum()", [], id="a value that no loss is made of"),
        pytest.param("loss: object = robust(model, x)", [("model", "", False)], id="annotated"),
        pytest.param("loss = F.relu(model)", [], id="torch's function"),
    ],
)
def test_training_passes(line: str, expected: list[tuple[str, str | None, bool]]) -> None:
    assert taken(line) == expected


def test_the_methods_that_a_pass_runs() -> None:
    found = script(program(net=_NET, model="model = nn.DataParallel(Net())", step=_STEP.format("loss = model.module.loss(x, y)")))
    (p,) = found.roles.detours
    assert [f.name for f in passes.entered(found.roles, p)] == ["loss"]
    found = script(program(net=_NET))
    assert [passes.entered(found.roles, p) for p in found.roles.forwards] == [[]]


_PARTS = """
if torch.cuda.device_count() > 1:
    model.body = nn.DataParallel(model.body)
    model.heads = nn.DataParallel(model.heads)
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
for a in DataLoader(val_set, 8):
    n = list(model.body.parameters())
"""


def test_parts_that_are_wrapped_by_themselves_and_whose_parts_are_asked_for() -> None:
    """Before the wraps are settled a part that is wrapped in its own place is before or after that by where it stands, which a made expression has to say."""
    found = script(program(net=_NET, model="model = Net()" + _PARTS, step=_STEP.format("loss = model(x).sum()")))
    assert [(ast.unparse(p.model), p.path) for p in found.roles.training_passes] == [("model", "")]


def test_a_made_expression_stands_where_the_one_it_is_made_for_does() -> None:
    found = script(program(net=_NET, model="model = nn.DataParallel(Net())", step=_STEP.format("loss = model.body.conv(x).sum()")))
    call = next(n for n in found.names.nodes if isinstance(n, ast.Call) and ast.unparse(n.func) == "model.body.conv")
    assert isinstance(call.func, ast.Attribute)
    made = passes._unwrapped(found.roles, call.func)
    assert ast.unparse(made) == "model.module.body.conv"
    assert isinstance(made, ast.Attribute) and isinstance(made.value, ast.Attribute)
    for node in (made, made.value, made.value.value):
        assert found.names.function(node) is found.names.function(call.func)
        assert found.names.statement(node) is found.names.statement(call.func)
