"""What a value is made of, behind its variables."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.origins import of_data, origins
from tests.facts.probe import probed
from tests.rules.program import STEP, program


def _ask(expression: str, before: str = "") -> tuple[object, ast.expr]:
    found, node = probed(program(before=f"limit, seen = 3, []\n{before}", step=f"{STEP}seen.append(loss)\ntotal = loss.item() * 2\nprobe({expression})"))
    return found.roles, node


@pytest.mark.parametrize("expression", ["limit", "epoch + 1", "optimizer.param_groups[0]['lr']", "len(loader)", "'loss'"])
def test_nothing_of_a_batch(expression: str) -> None:
    roles, node = _ask(expression)
    assert not of_data(roles, node)  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", ["x", "loss", "total > limit", "seen[-1]", "model(x).max()", "x.size(0)"])
def test_of_a_batch(expression: str) -> None:
    roles, node = _ask(expression)
    assert of_data(roles, node)  # type: ignore[arg-type]


def test_what_will_be_alike_is_left_out() -> None:
    roles, node = _ask("total")
    assert isinstance(node, ast.Name)
    alike = [b.value for b in roles.names.bindings(roles.names.scope_of[node], "loss") if b.value is not None]  # type: ignore[attr-defined]
    assert not of_data(roles, node, alike)  # type: ignore[arg-type]


def test_each_expression_once() -> None:
    roles, node = _ask("total + total")
    words = [ast.unparse(n) for n, _ in origins(roles, node) if isinstance(n, ast.Call)]  # type: ignore[arg-type]
    assert words.count("loss.item()") == 1 and "F.cross_entropy(model(x), y)" in words
