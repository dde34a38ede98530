"""What is said on paper of programs in which ranks go different ways, against runs of both ranks."""

from __future__ import annotations

import ast

import pytest

from tests.execution import random_ranks
from tests.execution.two_ranks import judged

#: programs of one test; ``python -m tests.execution.random_ranks`` runs as many as one likes
EACH = 25
#: seeds of programs of which something wrong is known to be said
KNOWN: frozenset[int] = frozenset()


@pytest.mark.parametrize("first", range(0, 500, EACH))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + EACH):
        if seed not in KNOWN:
            text = random_ranks.program(seed)
            assert random_ranks.wrong(text) == [], f"{seed}\n{text}"


def test_what_is_wrong_is_found_and_made_small() -> None:
    """The comparison itself: what is said of another program is wrong of this one."""
    text = "import dpmigrate_runtime as ddp\nx = 1\nif ddp.rank():\n    ddp.barrier()\n    x = 2\n"
    assert judged(text).wrong == []
    told = judged(text)
    assert (told.together, told.settled) == (0, 0)
    smaller = [t for t in random_ranks.smaller(text) if t]
    assert all(ast.parse(t) for t in smaller)
    assert any("barrier" not in t for t in smaller)


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
