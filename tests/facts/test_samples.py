"""Which values are made of the samples of a batch, and which belong to one sample."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.samples import of_a_turn, of_batch, of_loader, of_one, one_by_one, unmoved
from tests.facts.probe import probed

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, z):
        return self.fc(z)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8)
table = torch.zeros(10, 2)
def first(sample):
    return sample[0]
for i, (x, y) in enumerate(loader):
    loss = model(x).sum()
    n, length = x.shape
    total = total_of(x)
    for k in range(len(x)):
        one = x[k]
        {inner}
    {line}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _ask(expression: str, *, inner: bool = False) -> tuple[object, ast.expr]:
    marked = f"probe({expression})"
    found, node = probed(_PROGRAM.format(inner=marked if inner else "pass", line="pass" if inner else marked))
    return found.roles, node


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("table", "a table"),
        ("i", "the number of the batch"),
        ("length", "another axis"),
        ("x.size(1)", "another axis, asked here"),
        ("x.device", "where it is"),
        ("x.new_zeros(3)", "type and device alone"),
        ("len(loader)", "of the loader"),
        ("loader.batch_size", "what the loader says"),
        ("model.fc.weight", "parameters"),
    ],
)
def test_nothing_of_the_samples(expression: str, why: str) -> None:
    roles, node = _ask(expression)
    assert not of_batch(roles, node), why  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", ["x", "y.float()", "x.size(0)", "n", "len(y)", "total", "loss", "table[y]", "x.shape[0] * 2"])
def test_made_of_samples(expression: str) -> None:
    roles, node = _ask(expression)
    assert of_batch(roles, node)  # type: ignore[arg-type]


@pytest.mark.parametrize(("expression", "given", "turn"), [("x", True, True), ("loss", False, True), ("table", False, False), ("loader", True, False)])
def test_what_a_loader_gives_and_a_turn_makes(expression: str, given: bool, turn: bool) -> None:
    roles, node = _ask(expression)
    assert isinstance(node, ast.Name)
    assert (of_loader(roles, node), of_a_turn(roles, node)) == (given, turn)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "left"),
    [("a + b", "a + b"), ("a.sum()", "a.sum()"), ("a[0].to(d).half()", "a"), ("Variable(a).cuda()", "a"), ("a[i]", "a[i]"), ("a['image']", "a")],
)
def test_what_is_moved(text: str, left: str) -> None:
    node = unmoved(ast.parse(text, mode="eval").body)
    assert node is not None and ast.unparse(node) == left


@pytest.mark.parametrize(("expression", "single"), [("x", False), ("x[0]", False), ("table", False), ("x[k]", True), ("one", True), ("first(x[k])", False)])
def test_one_sample(expression: str, single: bool) -> None:
    roles, node = _ask(expression, inner=True)
    assert of_one(roles, node) is single  # type: ignore[arg-type]


@pytest.mark.parametrize(("last", "single"), [("pass", True), ("v5 = x", False)])
def test_variables_that_are_made_of_each_other(last: str, single: bool) -> None:
    """On as many ways as there are orders of them: each is asked once."""
    names = [f"v{n}" for n in range(12)]
    lines = [" = ".join(names) + " = x[k]", *(f"{a} = {b}.abs()" for a in names for b in names if a != b), last, "probe(v0)"]
    found, node = probed(_PROGRAM.format(inner="\n        ".join(lines), line="pass"))
    assert of_one(found.roles, node) is single


@pytest.mark.parametrize(("expression", "single"), [("x", False), ("i", False), ("k + 1", True), ("[v for v in x]", True)])
def test_one_by_one(expression: str, single: bool) -> None:
    roles, node = _ask(expression, inner=True)
    assert one_by_one(roles, node) is single  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("head", "first"),
    [
        pytest.param("for k in range(len(DataLoader(data))):", "x = k", id="the number of batches"),
        pytest.param("for k in range(3):", "x = DataLoader(data).batch_size", id="what a loader says"),
        pytest.param("for k, y in enumerate(DataLoader(data)):", "x = k", id="the number of the batch"),
    ],
)
def test_a_call_that_gives_no_samples(head: str, first: str) -> None:
    assert not _of_call(head, first)


@pytest.mark.parametrize(
    ("head", "first"),
    [
        ("for x, y in DataLoader(data):", "pass"),
        ("for i, (x, y) in enumerate(DataLoader(data)):", "pass"),
        ("for (x, y), _ in zip(DataLoader(data), DataLoader(other)):", "pass"),
        ("for x, y in make():", "pass"),
        ("for i in range(9):", "x, y = next(iter(DataLoader(data)))"),
    ],
)
def test_a_loader_without_a_name(head: str, first: str) -> None:
    assert _of_call(head, first)


def _of_call(head: str, first: str) -> bool:
    text = _PROGRAM.replace("for i, (x, y) in enumerate(loader):", f"def make():\n    return DataLoader(data)\n{head}\n    {first}")
    found, node = probed(text.format(inner="pass", line="probe(x)"))
    return of_batch(found.roles, node)
