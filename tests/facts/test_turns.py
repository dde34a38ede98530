"""Between which updates of a scaler optimizers step."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from dpmigrate.facts.steps import steps
from dpmigrate.facts.turns import turns
from tests.pipeline import script

_PROGRAM = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
one = torch.optim.SGD(model.parameters(), lr=0.1)
two = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, shuffle=True)
def update():
    one.step()
def back(x):
    model(x).sum().backward()
for epoch in range(3):
    for x, y in loader:
{body}
{end}
"""


def _turns(body: str, end: str = "") -> list[tuple[str, str | None, int, bool]]:
    """What the update follows in each turn, how many ways leave it before, and whether a backward feeds it."""
    found = script(_PROGRAM.format(body=indent(dedent(body), " " * 8), end=indent(dedent(end), " " * 4)))
    told = turns(found.roles, steps(found.roles))
    told = [t for t in told if not isinstance(t.node, ast.FunctionDef) or t.fed]
    return [
        (", ".join(ast.unparse(s.receiver) for s in t.steps), None if t.after is None else ast.unparse(t.after).splitlines()[0], len(t.leaving), t.fed)
        for t in told
    ]


@pytest.mark.parametrize(
    ("body", "end", "expected"),
    [
        pytest.param("back(x)\none.step()", "", [("one", "one.step()", 0, True)], id="one step"),
        pytest.param("back(x)\none.step()\ntwo.step()", "", [("one, two", "two.step()", 0, True)], id="two steps"),
        pytest.param(
            "back(x)\none.step()\nback(x)\none.step()", "", [("one", "one.step()", 0, True), ("one", "one.step()", 0, True)], id="one optimizer twice"
        ),
        pytest.param("back(x)\nfor o in (one, two):\n    o.step()", "", [("o", "for o in (one, two):", 0, True)], id="a loop of optimizers"),
        pytest.param(
            "for z in x:\n    back(z)\n    one.step()\nback(x)\ntwo.step()", "", [("one", "one.step()", 0, True), ("two", "two.step()", 0, True)], id="critic steps"
        ),
        pytest.param("for z in x:\n    back(z)\none.step()", "", [("one", "one.step()", 0, True)], id="accumulated in a loop of its own"),
        pytest.param("back(x)\none.step()", "one.step()", [("one", "one.step()", 0, True), ("one", "one.step()", 0, False)], id="what is left over"),
        pytest.param("back(x)\none.step()\nif y: break\nif x: continue\ntwo.step()", "", [("one, two", "two.step()", 2, True)], id="ends early"),
        pytest.param("if y: continue\nback(x)\none.step()\nfor z in y:\n    break", "", [("one", "one.step()", 0, True)], id="ends before, and another loop"),
        pytest.param("back(x)\nif y:\n    one.step()\nif x:\n    continue\ntwo.step()", "", [("one, two", None, 0, True)], id="may have stepped"),
        pytest.param("back(x)\nif y:\n    one.step()\nelse:\n    continue\ntwo.step()", "", [("one, two", "two.step()", 0, True)], id="the other branch"),
        pytest.param("back(x)\nif y:\n    one.step()\n    continue\ntwo.step()", "", [("one, two", "two.step()", 1, True)], id="stepped under the test"),
        pytest.param("back(x)\nif y:\n    one.step()\nelse:\n    two.step()", "", [("one, two", None, 0, True)], id="either"),
        pytest.param("back(x)\none.step()\nif y:\n    two.step()", "", [("one, two", "if y:", 0, True)], id="the second at times"),
        pytest.param("back(x)\none.step()\nfor z in y:\n    continue\ntwo.step()", "", [("one, two", "two.step()", 0, True)], id="a loop inside goes on"),
        pytest.param("back(x)\nwith z:\n    one.step()\ntwo.step()", "", [("one, two", "two.step()", 0, True)], id="a block that always runs"),
        pytest.param("back(x)\nif y:\n    one.step()\nelse:\n    with z:\n        two.step()", "", [("one, two", None, 0, True)], id="either, deeper"),
        pytest.param("def turn():\n    back(x)\n    one.step()\n    return 1\nturn()", "", [("one", "one.step()", 0, True)], id="a function"),
        pytest.param(
            "def turn():\n    back(x)\n    one.step()\n    if y:\n        return 1\n    two.step()\nturn()", "", [("one, two", "two.step()", 1, True)], id="returns early"
        ),
    ],
)  # fmt: skip
def test_turns(body: str, end: str, expected: list[tuple[str, str | None, int, bool]]) -> None:
    assert _turns(body, end) == expected
