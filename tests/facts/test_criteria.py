"""torch's own losses, and what their attributes are given."""

from __future__ import annotations

import ast
import inspect

import pytest
import torch

from dpmigrate.facts.criteria import FUNCTIONS, MODULES, given_later, known_arguments
from tests.pipeline import script

_OLD = {"NLLLoss2d"}  # gone from torch


def test_the_names_are_those_of_torch() -> None:
    assert {m for m in MODULES if not hasattr(torch.nn, m)} <= _OLD
    assert not {f for f in FUNCTIONS if not hasattr(torch.nn.functional, f)}


@pytest.mark.parametrize("name", sorted(FUNCTIONS - {"gaussian_nll_loss"}))
def test_arguments_that_cannot_be_a_reduction(name: str) -> None:
    parameters = list(inspect.signature(getattr(torch.nn.functional, name)).parameters)
    first = min(parameters.index(p) for p in ("size_average", "reduce", "reduction") if p in parameters)
    assert known_arguments(name, True) <= first


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("print(criterion.weight)", {}),
        ("other.weight = w", {}),
        ("criterion.name = 'loss'", {}),
        ("criterion.weight = w", {"weight": ["w"]}),
        ("criterion.weight = w\ncriterion.weight = v", {"weight": ["w", "v"]}),
        ("criterion.reduction = 'sum'", {"reduction": ["'sum'"]}),
    ],
)
def test_what_a_loss_is_given_later(line: str, given: dict[str, list[str]]) -> None:
    found = script(f"from torch import nn\ncriterion = nn.CrossEntropyLoss()\nother = nn.MSELoss()\n{line}")
    (made,) = (c for c in found.names.calls("CrossEntropyLoss"))
    assert {name: [ast.unparse(v) for v in values] for name, values in given_later(found.roles, made).items()} == given
