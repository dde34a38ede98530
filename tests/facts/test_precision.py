"""Mixed precision of the program's own."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts import precision
from dpmigrate.facts.roles import Roles
from tests.facts.probe import probed

_PROGRAM = """
import torch
from torch import amp
from torch.cuda.amp import GradScaler, autocast
from apex import amp as apex_amp
import apex.amp
class T:
    def __init__(self):
        self.scaler = GradScaler()
cast = autocast
scaler = torch.amp.GradScaler("cuda")
other = make()
t = T()
def step(optimizer):
    probe({expression})
    scaler.unscale_(optimizer)
    t.scaler.step(optimizer)
    print(scaler.step(optimizer))
    done = scaler.step(second)
    scaler.step()
    other.step(optimizer)
"""


def put(expression: str) -> tuple[Roles, ast.Call]:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    assert isinstance(node, ast.Call)
    return found.roles, node


@pytest.mark.parametrize(
    ("expression", "autocast", "scaler", "apex"),
    [
        pytest.param("print()", False, False, False, id="nothing of the kind"),
        pytest.param("other.autocast()", False, False, False, id="a method of the same name"),
        pytest.param("torch.autocast('cuda')", True, False, False, id="autocast"),
        pytest.param("amp.autocast('cuda')", True, False, False, id="autocast of a package"),
        pytest.param("cast()", True, False, False, id="autocast by a name"),
        pytest.param("GradScaler()", False, True, False, id="a scaler"),
        pytest.param("amp.GradScaler(device='cuda')", False, True, False, id="a scaler of a package"),
        pytest.param("apex.amp.initialize(model, optimizer)", False, False, True, id="apex"),
        pytest.param("apex_amp.initialize(model, optimizer)", False, False, True, id="apex by an alias"),
    ],
)
def test_signs(expression: str, autocast: bool, scaler: bool, apex: bool) -> None:
    roles, node = put(expression)
    assert (precision.is_autocast(roles, node), precision.is_scaler(roles, node), precision.is_apex(roles, node)) == (autocast, scaler, apex)


def test_the_scaler_that_a_name_means() -> None:
    roles, _ = put("print()")
    names = {ast.unparse(c.func.value): c.func.value for c in roles.names.calls("step") if isinstance(c.func, ast.Attribute)}
    assert len(precision.scalers(roles, names["scaler"])) == 1
    assert len(precision.scalers(roles, names["t.scaler"])) == 1
    assert precision.scalers(roles, names["other"]) == []


def test_steps_through_a_scaler() -> None:
    """As statements of their own; a step whose result goes elsewhere is none, nor one without an optimizer."""
    roles, _ = put("print()")
    found = list(precision.scaled_steps(roles))
    assert [(ast.unparse(s.scaler), ast.unparse(s.optimizer)) for s in found] == [("t.scaler", "optimizer"), ("scaler", "second")]
    assert [precision.unscaled(roles, s) for s in found] == [True, False]
