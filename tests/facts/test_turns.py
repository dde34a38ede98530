"""Between which updates of a scaler optimizers step."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from dpmigrate.facts.steps import steps
from dpmigrate.facts.turns import turns
from dpmigrate.settings import Settings
from tests.pipeline import script
from tests.rules.program import STEP, whole

AMP = Settings(amp=True)
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


# ------------------------------------------------------------------ what is written there
_TWO = """
a = Net()
b = nn.Linear(2, 2)
opt_a = torch.optim.SGD(a.parameters(), lr=0.1)
opt_b = torch.optim.SGD(b.parameters(), lr=0.1)
"""
_TWO_STEPS = """
opt_a.zero_grad()
loss = F.cross_entropy(b(a(x)), y)
loss.backward()
{clip_a}
opt_a.step()
{between}
opt_b.zero_grad()
other = F.cross_entropy(b(a(x).detach()), y)
other.backward()
{clip_b}
opt_b.step()
"""


def _two(clip_a: str = "pass", between: str = "pass", clip_b: str = "pass") -> list[str]:
    step = _TWO_STEPS.format(clip_a=clip_a, between=between, clip_b=clip_b)
    return [one.strip() for one in whole(AMP, model="", optimizer=_TWO, step=step).splitlines()]


def test_each_optimizer_is_unscaled_before_its_own_clipping() -> None:
    """Unscaled before its own backward, an optimizer would step on gradients with the scale."""
    clips = [f"torch.nn.utils.clip_grad_norm_({m}.parameters(), 1.0)" for m in "ab"]
    lines = _two(clip_a=clips[0], clip_b=clips[1])
    assert [lines[lines.index(c) - 1] for c in clips] == ["scaler.unscale_(opt_a)", "scaler.unscale_(opt_b)"]
    assert [one for one in lines if "unscale_" in one] == ["scaler.unscale_(opt_a)", "scaler.unscale_(opt_b)"]


def test_a_turn_that_ends_early_updates_too() -> None:
    lines = _two(between="if epoch:\n    continue")
    assert lines[lines.index("continue") - 1] == "scaler.update()" and lines.count("scaler.update()") == 2


def test_optimizers_that_step_in_a_loop_share_one_update() -> None:
    step = "for o in (opt_a, opt_b):\n    o.zero_grad()\nloss = F.cross_entropy(b(a(x)), y)\nloss.backward()\nfor o in (opt_a, opt_b):\n    o.step()"
    text = whole(AMP, model="", optimizer=_TWO, step=step)
    assert "                scaler.step(o)\n            scaler.update()\n" in text


def test_loops_one_after_another_have_an_update_each() -> None:
    second = "for epoch in range(2):\n    for x, y in loader:\n" + indent(STEP, "        ")
    assert whole(AMP, end=second).count("scaler.update()") == 2
