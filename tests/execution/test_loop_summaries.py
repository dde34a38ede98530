"""Loops inside of each other: a loop that reads what it read before is not executed once more."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.loop_summaries import LoopSummaryParts
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import placement_of
from tests.execution.paper import executed, held

_FIXTURES = Path(__file__).parents[2] / "fixtures"


def _turns(monkeypatch: pytest.MonkeyPatch, text: str, *, remembered: bool = True) -> tuple[Execution, int]:
    """A program executed, and how often a turn of a loop over ``inner`` began in it."""
    count = 0
    take = LoopSummaryParts._one_turn

    def counted(self: LoopSummaryParts, node: ast.stmt, *args: object) -> bool | None:
        nonlocal count
        count += isinstance(node, ast.For) and ast.unparse(node.iter) == "inner"
        return take(self, node, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(LoopSummaryParts, "_one_turn", counted)
        if not remembered:
            patched.setattr(LoopSummaryParts, "_did", lambda _self, _key: False)
        return executed(text), count


_PLAIN = """
import os
inner = range(int(os.environ["N"]))
for a in range(int(os.environ["N"])):
    seen = a
    for b in inner:
        last = b
"""
_GROWING = """
import os
inner = range(int(os.environ["N"]))
found = []
for a in range(int(os.environ["N"])):
    for b in inner:
        found.append(a)
        if len(found) > 3:
            break
"""
_LEFT = """
import os
inner = range(int(os.environ["N"]))
def first():
    for a in range(int(os.environ["N"])):
        for b in inner:
            if os.environ.get("A"):
                return b
    return None
got = first()
"""


def test_a_loop_that_reads_what_it_read_is_not_executed_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    ex, few = _turns(monkeypatch, _PLAIN)
    others, many = _turns(monkeypatch, _PLAIN, remembered=False)
    assert few < many
    for name in ("seen", "last"):
        assert held(ex, name) == held(others, name)


@pytest.mark.parametrize("text", [pytest.param(_GROWING, id="reads what it changes"), pytest.param(_LEFT, id="left by a return")])
def test_a_loop_that_does_more_than_come_to_its_end_is(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert _turns(monkeypatch, text)[1] == _turns(monkeypatch, text, remembered=False)[1]


def test_what_a_loop_reads_and_the_one_round_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    ex, _ = _turns(
        monkeypatch,
        """
import os
import torch
from torch.utils.data import DataLoader
inner = range(int(os.environ["N"]))
x = torch.ones(())
for batch in DataLoader(torch.ones(8), batch_size=4):
    for b in inner:
        y = x + 1
    x = batch.mean()
""",
    )
    assert placement_of(held(ex, "y")).kind not in (Kind.UNIFORM, Kind.ZERO)


def test_an_exception_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
import os
inner = range(int(os.environ["N"]))
caught = False
for a in range(int(os.environ["N"])):
    try:
        for b in inner:
            if os.environ.get("A"):
                raise KeyError(b)
    except KeyError:
        caught = True
"""
    assert held(_turns(monkeypatch, text)[0], "caught") == held(_turns(monkeypatch, text, remembered=False)[0], "caught")


@pytest.mark.parametrize(
    "name", ["folds_of_cross_validation", "gan_two_steps", "models_in_turn", "single_trainer_class", "task_of_each_step"]
)
def test_the_events_of_a_program_are_the_same(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    text = (_FIXTURES / name / "before.py").read_text(encoding="utf-8")
    ex, others = (_turns(monkeypatch, text, remembered=yes)[0] for yes in (True, False))
    assert _told(ex) == _told(others)
    assert ex.trace.ended is others.trace.ended is None
    assert ex.steps <= others.steps


def _told(ex: Execution) -> list[tuple[str, int, bool]]:
    """The events by kind and line, and whether not all ranks come there."""
    return [(e.kind, getattr(e.node, "lineno", 0), e.parted is None) for e in ex.trace.events.values()]


def test_a_search_for_the_best_settings_is_followed() -> None:
    ex = executed("""
rates, sizes, drops, seeds = [0.1, 0.2, 0.3], [1, 2, 3, 4], [0.5, 0.3, 0.0], [1, 2, 3]
tried = 0
for rate in rates:
    for size in sizes:
        for drop in drops:
            for seed in seeds:
                tried = tried + 1
                last = (rate, size, drop, seed)
""")
    assert ex.trace.ended is None
    assert len(held(ex, "tried")) == 1
    assert ex.steps < 1_000
