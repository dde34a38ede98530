"""What is said on paper of programs in which ranks go different ways, against runs of both ranks."""

from __future__ import annotations

import pytest

from dpmigrate.execution import budget
from dpmigrate.execution.engine import Execution
from tests.execution import random_ranks, random_shapes, two_ranks
from tests.execution.paper import executed
from tests.execution.two_ranks import judged

#: programs of one test; ``python -m tests.execution.random_ranks`` runs as many as one likes
EACH = 25
#: steps of a program with more of Python in it
LIMIT = 10_000
#: seeds of programs of which something wrong is known to be said
KNOWN: frozenset[int] = frozenset()


@pytest.mark.parametrize("first", range(0, 250, EACH))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + EACH):
        if seed not in KNOWN:
            text = random_ranks.program(seed)
            assert random_ranks.wrong(text) == [], f"{seed}\n{text}"


@pytest.mark.parametrize("first", range(0, 150, EACH))
def test_programs_with_more_of_python(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second generator; of what takes more steps than ``LIMIT`` nothing is said."""
    monkeypatch.setattr(budget, "STEPS", LIMIT)
    for seed in range(first, first + EACH):
        text = random_shapes.program(seed)
        assert random_ranks.wrong(text) == [], f"{seed}\n{text}"


def test_something_is_said_of_programs_with_more_of_python() -> None:
    found = [random_ranks.verdict(random_shapes.program(seed)) for seed in (0, 1, 2, 3, *range(5, 15))]
    assert sum(not one.skipped for one in found) > len(found) / 2
    assert sum(one.told for one in found) > sum(one.equal for one in found) / 2


_APART = "import dpmigrate_runtime as ddp\ny = 3\nx = 1\nif ddp.rank():\n    ddp.barrier()\n    x = 2\n"


def test_nothing_is_wrong_of_a_program_in_which_ranks_part() -> None:
    told = judged(_APART)
    assert told.wrong == []
    assert (told.equal, told.told, told.together, told.settled) == (1, 1, 0, 0)


def test_what_is_wrong_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: what is said where every rank is taken for rank 1 is wrong."""

    def blind(text: str) -> Execution:
        return executed(text.replace("ddp.rank()", "1       "))

    monkeypatch.setattr(two_ranks, "executed", blind)
    found = judged(_APART).wrong
    assert any(f.startswith("x: ") for f in found)
    assert "line 5: 0 and 1 times a collective" in found
    small = random_ranks.shrunk(_APART)
    assert random_ranks.wrong(small)
    assert "y" not in small
    assert len(small) < len(_APART)


@pytest.mark.parametrize(
    "text",
    [
        "while True:\n    pass\n",
        "raise ValueError\n",
        "l = [1]\nfor v in l:\n    l.append(v)\n",
    ],
)
def test_programs_that_do_not_end_are_left_out(text: str) -> None:
    assert judged(text).skipped == "does not come to its end"
