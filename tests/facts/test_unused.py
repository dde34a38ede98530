"""Parts of a model that get no gradient in some step: which, and what decides."""

from __future__ import annotations

import ast

import pytest

from tests.pipeline import script
from tests.rules.program import STEP, program

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        {part}

    def forward(self, x, task=0):
        {body}
"""


def unused(body: str = "return self.fc(x)", part: str = "self.extra = nn.Linear(8, 2)", step: str = STEP, **more: str) -> list[tuple[str, str, bool]]:
    """The parts, the tests that decide, and whether these look at the data."""
    parts = {"net": _NET.format(part=part.replace("\n", "\n        "), body=body.replace("\n", "\n        ")), **more}
    found = script(program(step=step, **parts))  # type: ignore[arg-type]
    (wrap,) = found.wraps.wraps
    return [(u.name, ast.unparse(u.test) if u.test is not None else "", u.by_data) for u in found.unused(wrap)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return self.extra(self.fc(x))", id="used"),
        pytest.param("if self.training:\n    x = self.extra(x)\nreturn self.fc(x)", id="by the mode"),
        pytest.param("if x.dim() > 2:\n    x = self.extra(x)\nreturn self.fc(x)", id="by a shape"),
        pytest.param("if torch.max(self.fc.weight) > 9:\n    x = self.extra(x)\nreturn self.fc(x)", id="by the weights, of which no test is known"),
        pytest.param("if self.fc.weight.max() > 9:\n    x = self.extra(x)\nreturn self.fc(x)", id="by the weights, with a method"),
        pytest.param("f = lambda t: self.extra(x) if t > 0 else x\nreturn self.fc(f(1))", id="by the parameter of a lambda"),
        pytest.param("return sum(m(x) for m in self.children())", id="by all parts"),
        pytest.param("return getattr(self, 'extra')(x)", id="by a word"),
    ],
)
def test_every_part_is_used(body: str) -> None:
    assert unused(body) == []


@pytest.mark.parametrize(
    ("part", "names"),
    [
        pytest.param("self.extra = nn.ReLU()", [], id="no parameters"),
        pytest.param("self.extra = nn.Linear(8, 2)", ["extra"], id="a layer"),
        pytest.param("self.extra = nn.Conv2d(3, 3, 3)", ["extra"], id="a layer of a family"),
        pytest.param("self.extra = [nn.Linear(8, 2)]", ["extra"], id="a list"),
        pytest.param("self.extra = {'a': nn.Linear(8, 2)}", ["extra"], id="a dict"),
        pytest.param("self.extra = nn.ModuleList(nn.Linear(8, 2) for _ in range(2))", ["extra"], id="a comprehension"),
        pytest.param("self.extra = nn.LayerNorm(8, elementwise_affine=False)", [], id="without parameters by an option"),
        pytest.param("self.extra = Elsewhere()", [], id="another file's"),
        pytest.param("self.extra = nn.Linear(8, 2)\nself.extra = None", [], id="taken away"),
        pytest.param("self.extra = nn.Linear(8, 2)\nfor p in self.extra.parameters():\n    p.requires_grad = False", [], id="frozen in a loop"),
        pytest.param("self.extra = nn.Linear(8, 2)\nself.extra.requires_grad_(False)", [], id="frozen"),
        pytest.param("self.extra = nn.Linear(8, 2)\nnn.init.zeros_(self.extra.weight)", ["extra"], id="initialised"),
        pytest.param("self.extra = nn.Linear(8, 2)\nself.extra.bias.data = torch.zeros(2)", ["extra"], id="its bias is given"),
    ],
)  # fmt: skip
def test_a_part_that_nothing_uses(part: str, names: list[str]) -> None:
    assert [name for name, _, _ in unused(part=part)] == names


@pytest.mark.parametrize(
    ("body", "test", "by_data"),
    [
        pytest.param("if torch.rand(1).item() < 0.5:\n    x = self.extra(x)\nreturn self.fc(x)", "torch.rand(1).item() < 0.5", False, id="by chance"),
        pytest.param("if x.mean() > 0:\n    x = self.extra(x)\nreturn self.fc(x)", "x.mean() > 0", True, id="by the data"),
        pytest.param("if torch.any(x > 0):\n    x = self.extra(x)\nreturn self.fc(x)", "torch.any(x > 0)", True, id="by the data, with a function"),
        pytest.param("level = x.mean()\nif level > 0:\n    x = self.extra(x)\nreturn self.fc(x)", "level > 0", True, id="by the data, through a name"),
        pytest.param("x = self.extra(x) if x.sum() > 0 else x\nreturn self.fc(x)", "x.sum() > 0", True, id="in an expression"),
        pytest.param("if x.sum() > 0:\n    return self.fc(x)\nreturn self.extra(x)", "x.sum() > 0", True, id="left before"),
        pytest.param("if self.use_extra:\n    x = self.extra(x)\nreturn self.fc(x)", "self.use_extra", False, id="by a setting"),
    ],
)
def test_what_decides(body: str, test: str, by_data: bool) -> None:
    assert ("extra", test, by_data) in unused(body)


@pytest.mark.parametrize(
    ("part", "body", "found"),
    [
        pytest.param("self.extra = None\nif wide:\n    self.extra = nn.Linear(8, 2)", "if self.residual:\n    if self.extra is not None:\n        x = self.extra(x)", True, id="made by another test"),
        pytest.param("if wide:\n    self.extra = nn.Linear(8, 2)", "if self.residual:\n    x = self.extra(x)", True, id="not at all else"),
        pytest.param("if residual:\n    self.extra = nn.Linear(8, 2)", "if self.residual:\n    x = self.extra(x)", False, id="made by the same test"),
        pytest.param("if kind == 'a':\n    self.extra = nn.Linear(8, 2)", "if self.has:\n    x = self.extra(x)", False, id="made by what the test is made of"),
        pytest.param("self.extra = None\nif wide:\n    self.extra = nn.Linear(8, 2)", "if self.extra is not None:\n    x = self.extra(x)", False, id="used where there is one"),
        pytest.param("if wide:\n    self.extra = nn.Linear(8, 2)", "x = self.extra(x)", False, id="used always"),
    ],
)
def test_parts_that_are_made_under_a_test(part: str, body: str, found: bool) -> None:
    given = "wide, residual, kind = True, True, 'a'\nself.residual, self.has = residual, kind == 'a'\n"
    assert bool(unused(f"{body}\nreturn self.fc(x)", given + part)) is found


def test_an_argument_that_the_loop_varies() -> None:
    step = "loss = F.cross_entropy(model(x, {}), y)\nloss.backward()\noptimizer.step()"
    body = "if task > 1:\n    x = self.extra(x)\nreturn self.fc(x)"
    loop = {"batches": "for i, (x, y) in enumerate(loader):"}
    assert unused(body, step=step.format("i"), **loop) == [("extra", "task > 1", False)]
    assert unused(body, step=step.format("task=i"), **loop) == [("extra", "task > 1", False)]
    assert unused(body, step=step.format("2"), **loop) == []


def test_one_of_several_layers() -> None:
    step = "loss = F.cross_entropy(model(x, i % 2), y)\nloss.backward()\noptimizer.step()"
    heads = "self.heads = nn.ModuleList([nn.Linear(8, 2), nn.Linear(8, 2)])"
    batches = "for i, (x, y) in enumerate(loader):"
    assert unused("return self.heads[task](self.fc(x))", heads, step, batches=batches) == [("heads", "task", False)]
    assert unused("out = 0\nfor h in self.heads:\n    out = out + h(x)\nreturn self.fc(out)", heads, step, batches=batches) == []


def test_another_files_function_trains_with_the_model() -> None:
    step = "loss = robust(model, x)\nloss.backward()\noptimizer.step()"
    assert unused(step=step, imports="from helpers import robust") == []


PLAIN = """\
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.extra = nn.Linear(2, 2)
        for p in self.extra.parameters():
            p.requires_grad = True

    def forward(self, x):
        return self.extra(self.fc(x))


class Deeper(Net):
    def forward(self, x, task=0):
        return super().forward({x})
"""


@pytest.mark.parametrize(
    ("deeper", "model", "names"),
    [
        ("x", "Net() if len(os.environ) % 2 else Plain()", ["extra"]),
        ("x", "Plain()", []),
        ("self.extra(x)", "Net() if len(os.environ) % 2 else Plain()", []),
    ],
    ids=["two classes", "the other one", "a class that derives from it"],
)
def test_parts_of_the_same_name_are_those_of_each_class(deeper: str, model: str, names: list[str]) -> None:
    found = unused("import random\nx = self.fc(x)\nif random.random() < 0.5:\n    return x\nreturn self.extra(x)", "self.extra = nn.Linear(2, 2)",
                   defs=PLAIN.format(x=deeper), model=f"model = {model}")  # fmt: skip
    assert [name for name, _, _ in found] == names
