"""What weighted means are divided by."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts import selections, weights
from dpmigrate.facts.roles import Roles
from tests.facts.probe import probed

_PROGRAM = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
def helper(out, z):
    return out, z
def measured(mask):
    probe_count(mask.sum())
model = nn.Linear(8, 2)
criterion = nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set)
for epoch in range(3):
    for x, y in loader:
        out = model(x)
        mask = y > 0
        valid = ~mask & (y < 9)
        both = valid
        kept = out[mask]
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
        count = mask.sum()
        soft = out.sigmoid()
        soft += 1
        pair = helper(out, y)
        probe({expression})
        loss = out.mean()
        loss.backward()
        optimizer.step()
probe_after = 3
"""


def put(expression: str) -> tuple[Roles, ast.expr]:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    return found.roles, node


def outside(expression: str) -> tuple[Roles, ast.expr]:
    found, node = probed(_PROGRAM.replace("probe({expression})", "pass").replace("probe_after = 3", f"probe({expression})"))
    return found.roles, node


@pytest.mark.parametrize(
    ("expression", "classes", "ignored"),
    [
        pytest.param("F.cross_entropy(out, y)", "", "", id="plain"),
        pytest.param("F.cross_entropy(out, y, w)", "w", "", id="positional weight"),
        pytest.param("F.cross_entropy(input=out, target=y.view(-1), weight=w, ignore_index=-1)", "w", "-1", id="keywords"),
    ],
)
def test_the_weights_of_a_function(expression: str, classes: str, ignored: str) -> None:
    _, node = put(expression)
    assert isinstance(node, ast.Call)
    known = weights.of_targets(node, None)
    assert known is not None
    assert (known.classes, known.ignored) == (classes, ignored)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("F.cross_entropy(out)", id="no targets"),
        pytest.param("F.cross_entropy(*both)", id="star arguments"),
        pytest.param("F.cross_entropy(out, make(y))", id="targets that cost"),
        pytest.param("F.cross_entropy(out, y, weight=make())", id="weights that cost"),
        pytest.param("F.cross_entropy(out, (z := y))", id="targets that are named"),
    ],
)
def test_weights_that_cannot_be_written_down(expression: str) -> None:
    roles, node = put(expression)
    assert isinstance(node, ast.Call)
    assert weights.of_targets(node, None) is None
    assert weights.of_elements(roles, node) is None or "weight" in expression


def test_the_weights_of_an_object() -> None:
    _, node = put("criterion(out, y)")
    assert isinstance(node, ast.Call)
    known = weights.of_targets(node, node)
    assert known is not None
    assert (known.classes, known.ignored) == ("criterion.weight", "criterion.ignore_index")
    _, node = put("nn.CrossEntropyLoss(ignore_index=0)(out, y)")
    assert isinstance(node, ast.Call)
    assert weights.of_targets(node, node) is None


def test_every_element_counts() -> None:
    roles, node = put("F.mse_loss(kept, y[mask])")
    assert isinstance(node, ast.Call)
    known = weights.of_elements(roles, node)
    assert known is not None
    assert known.elements


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        pytest.param("F.mse_loss(out, y)", False, id="the whole batch"),
        pytest.param("F.mse_loss(out[0], y[:, 1])", False, id="by an index"),
        pytest.param("F.mse_loss(out[i], y)", False, id="by a name of which nothing is known"),
        pytest.param("F.mse_loss(out, y, reduction=x[mask])", False, id="something else is selected"),
        pytest.param("F.mse_loss(out[-1], y)", False, id="from the end"),
        pytest.param("F.mse_loss(out[i + 1], y)", False, id="a sum"),
        pytest.param("F.mse_loss(out[y > 0], y)", True, id="a comparison"),
        pytest.param("F.mse_loss(out[mask], y)", True, id="a mask by name"),
        pytest.param("F.mse_loss(out[both], y)", True, id="a mask by two names"),
        pytest.param("F.mse_loss(input=kept, target=y)", True, id="selected before, by keyword"),
        pytest.param("F.mse_loss(out, target=y[(y > 0) | (y < 3)])", True, id="two masks"),
        pytest.param("F.mse_loss(out[y.bool()], y)", True, id="a method"),
        pytest.param("F.mse_loss(out.masked_select(mask), y)", True, id="masked_select"),
        pytest.param("F.mse_loss(packed, y)", True, id="packed"),
        pytest.param("F.mse_loss(pack_padded_sequence(out, n), y)", True, id="packed, by a plain name"),
        pytest.param("F.mse_loss(make[0](out), y)", False, id="nothing that has a name"),
    ],
)
def test_what_is_selected_of_a_batch(expression: str, answer: bool) -> None:
    roles, node = put(expression)
    assert isinstance(node, ast.Call)
    assert selections.selected(roles, node) is answer


@pytest.mark.parametrize(
    ("divisor", "count", "guards"),
    [
        pytest.param("mask.sum()", "mask.sum()", [], id="plain"),
        pytest.param("mask.to(out.dtype).sum()", "mask.to(out.dtype).sum()", [], id="of the model's type"),
        pytest.param("mask.type_as(out).sum()", "mask.type_as(out).sum()", [], id="of the model's type, by a method"),
        pytest.param("mask.to(out.device, out.dtype).sum()", "mask.to(out.device, out.dtype).sum()", [], id="of the model's device"),
        pytest.param("mask.sum().clamp(min=1)", "mask.sum()", ["1"], id="clamped"),
        pytest.param("mask.sum().clamp_min(1)", "mask.sum()", ["1"], id="clamped, positional"),
        pytest.param("max(mask.sum(), 1)", "mask.sum()", ["1"], id="at least one"),
        pytest.param("torch.clamp(mask.sum(), min=1)", "mask.sum()", ["1"], id="clamped, by function"),
        pytest.param("(mask.sum() + 1e-08)", "mask.sum()", ["1e-08"], id="a little more"),
        pytest.param("(1e-08 + mask.sum())", "mask.sum()", ["1e-08"], id="a little more, before"),
    ],
)
def test_a_count_and_what_keeps_it_from_zero(divisor: str, count: str, guards: list[str]) -> None:
    roles, node = put(f"(out * mask).sum() / {divisor}")
    assert isinstance(node, ast.BinOp)
    known = weights.of_count(roles, node)
    assert known is not None
    assert known.count is not None
    assert ast.unparse(known.count) == count
    assert [ast.unparse(g) for g in known.guards] == guards


@pytest.mark.parametrize(
    "divisor",
    [
        pytest.param("make(mask)", id="it costs"),
        pytest.param("mask.sum().clamp(min=1, max=9)", id="two guards"),
        pytest.param("mask.sum().clamp(max=9)", id="a guard against too many"),
        pytest.param("max(1, 2)", id="numbers"),
        pytest.param("(mask.sum() + y)", id="a guard that is no number"),
        pytest.param("out.sum()", id="of the model"),
        pytest.param("soft.sum()", id="of the model, by a name"),
        pytest.param("model(x).sum()", id="of the model, at once"),
        pytest.param("out.to(mask.dtype).sum()", id="of the model, as another type"),
        pytest.param("mask.where(mask, out).sum()", id="of the model, among others"),
        pytest.param("[m for m in mask].sum()", id="a comprehension"),
    ],
)
def test_no_count_of_the_data(divisor: str) -> None:
    roles, node = put(f"(out * mask).sum() / {divisor}")
    assert isinstance(node, ast.BinOp)
    known = weights.of_count(roles, node)
    assert known is None or known.guards == ()


_FUNCTION = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
def mean(values, mask):
    probe(values.sum() / mask.sum())
    return values.sum() / mask.sum()
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(train_set):
    loss = {call}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "known"),
    [
        pytest.param("mean(model(x), y > 0)", True, id="of the data"),
        pytest.param("mean(model(x), model(x))", False, id="of the model"),
        pytest.param("mean(model(x), *more)", False, id="not seen"),
    ],
)
def test_a_count_that_a_function_is_given(call: str, known: bool) -> None:
    found, node = probed(_FUNCTION.replace("{call}", call))
    assert isinstance(node, ast.BinOp)
    assert (weights.of_count(found.roles, node) is not None) is known
