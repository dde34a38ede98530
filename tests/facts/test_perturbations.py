"""Tensors that a step makes of its batch and optimises by themselves."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.perturbations import perturbations
from tests.pipeline import script
from tests.rules.program import STEP, program

_ATTACK = """\
delta = {made}
attack = torch.optim.SGD([delta], lr=0.1)
for k in range(3):
    attack.zero_grad()
    {loss}.backward()
    attack.step()
"""
_SUM = "F.cross_entropy(model(x + delta), y, reduction='sum')"


@pytest.mark.parametrize(
    ("before", "step"),
    [
        pytest.param("", STEP, id="the weights alone"),
        pytest.param("free = torch.zeros(3, requires_grad=True)\nother = torch.optim.SGD([free], lr=0.1)", STEP, id="made before the loop"),
        pytest.param("", _ATTACK.format(made="torch.zeros(3, requires_grad=True)", loss=_SUM) + STEP, id="not of the batch"),
    ],
)
def test_none(before: str, step: str) -> None:
    assert perturbations(script(program(before=before, step=step))) == []


@pytest.mark.parametrize(("loss", "summed"), [(_SUM, True), ("F.cross_entropy(model(x + delta), y)", False)])
def test_a_perturbation_of_the_batch(loss: str, summed: bool) -> None:
    (found,) = perturbations(script(program(step=_ATTACK.format(made="torch.zeros_like(x).requires_grad_()", loss=loss) + STEP)))
    assert (ast.unparse(found.tensor), found.summed, len(found.backwards)) == ("delta", summed, 1)
