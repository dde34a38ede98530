"""Files that all ranks read and that rank 0 writes while the others may still be reading."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from tests.judge.trained import result

_WORDS = "other ranks may still be reading the file that rank 0 writes here"
_WRITE = 'open(ddp.main_path("best.txt"), "w").write("1")'


@pytest.mark.parametrize(
    ("end", "last", "wrong"),
    [
        (f'old = float(open("best.txt").read())\n{_WRITE}', "", True),
        (f'with open("best.txt", "r") as f:\n    old = f.read()\nif old:\n    {_WRITE}', "", True),
        ('state = torch.load("best.txt")\nddp.save(state, "best.txt")', "", True),
        (f'old = open("best.txt").read()\nddp.barrier()\n{_WRITE}', "", False),
        (f'old = open("other.txt").read()\n{_WRITE}', "", False),
        (f'{_WRITE}\nddp.barrier()\nold = open("best.txt").read()', "", False),
        (f'if ddp.is_main():\n    old = open("best.txt").read()\n{_WRITE}', "", False),
        ('old = open("best.txt").read()', _WRITE, True),
        (f'log = open("best.txt", "r+")\n{_WRITE}', "", False),
        (f'log = open("best.txt", random.choice(["r", "a"]))\n{_WRITE}', "", False),
    ],
)
def test_what_rank_0_writes_is_read_by_nobody(end: str, last: str, wrong: bool) -> None:
    found = [f.words for f in judge.faults(result(end=end, last=last))]
    assert (_WORDS in found) is wrong


def test_what_is_read_before_the_training_may_be_written_after_it() -> None:
    found = [f.words for f in judge.faults(result(epoch='old = open("best.txt").read()', end=_WRITE))]
    assert _WORDS not in found
