"""What is called on the way has effects, and not on every rank the same or equally often.

Each program is run as two ranks with ``BY`` in it replaced by the rank: nothing wrong may be said
of it. Replaced by what all ranks have, everything in it is the same and said to be.
"""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, held, parted
from tests.execution.two_ranks import _equal, judged

_HEAD = """\
import contextlib
import functools
import os
import torch
import dpmigrate_runtime as ddp
rank = ddp.rank()
n = int(os.environ['N'])
l, m, d = [0, 1], [], {}
class Box:
    v = 0
def meet(x):
    ddp.barrier()
    return x
def put(x):
    m.append(x)
    return x
"""
CASES = {
    "mapped": "list(map(meet, [0] * BY))\n",
    "mapped and put": "list(map(put, [0] * BY))\nx = len(m)\n",
    "filtered": "list(filter(put, [1] * BY))\nx = len(m)\n",
    "sorted by a key": "sorted([0] * BY, key=meet)\n",
    "sorted in place by a key": "k = [0] * BY\nk.sort(key=put)\nx = len(m)\n",
    "the greatest by a key": "max([0] * BY, key=put, default=0)\nx = len(m)\n",
    "folded": "x = functools.reduce(lambda a, b: a + b, [1] * BY, 0)\n",
    "folded with effects": "functools.reduce(lambda a, b: put(b), [1] * BY, 0)\nx = len(m)\n",
    "a chain": "x = 0 < BY < meet(2)\n",
    "a truth": "class B:\n    def __bool__(self):\n        return BY > 0\nx = 0\nif B():\n    x = 1\n    ddp.barrier()\n",
    "a truth with effects": "class B:\n    def __bool__(self):\n        m.append(BY)\n        return True\nb = B() and 1\nx = sum(m)\n",
    "a length": "class B:\n    def __len__(self):\n        return BY\nx = 0\nwhile B():\n    x = 1\n    ddp.barrier()\n    break\n",
    "one of two with methods": "class A:\n    def __add__(self, y):\n        ddp.barrier()\n        return 1\nclass B:\n    def __add__(self, y):\n        return 1\nx = (A() if BY else B()) + 1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_effects(name: str) -> None:
    by_rank, by_all = (_HEAD + CASES[name].replace("BY", by) for by in ("rank", "n"))
    choices = tuple({"N": str(i)} for i in range(3))
    assert judged(by_rank, choices).wrong == judged(by_all, choices).wrong == []
    ex = executed(by_all)
    assert not any(parted(ex, "collective"))
    assert _equal(held(ex, "x"))
