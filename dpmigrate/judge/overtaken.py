"""Passes through a wrapper that another pass overtakes before they are differentiated.

With ``find_unused`` every forward of DistributedDataParallel takes back what the one before it has
found, and takes the parameters for ready that its own result is not made of
(torch.nn.parallel.DistributedDataParallel, ``find_unused_parameters``; ``prepare_for_backward`` of
its reducer). So the last one before a backward has to be made of all that the loss is made of. Of
a part that only an earlier pass went through, the gradient comes after DDP has taken it for ready,
and DDP stops ("marked as ready twice"). It does so too where the loss is made of the earlier pass
alone. What the earlier pass has left out does no harm: a part may come first, and the whole after.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.values import NOTHING, Const, Ref, Value, const, data
from dpmigrate.judge.notes import FROZEN, PASSES, SYNCHRONISED
from dpmigrate.library.module_tree import owned

_NO_PASS = const((frozenset[int](), frozenset[int]()))


def passed(m: Machine, wrapper: int, given: Value) -> None:
    """A pass through a wrapper with gradients, of which ``given`` says what its result is made of."""
    last = frozenset(n for d in data(given) for n in d.reached)
    m.heap.write((wrapper, PASSES), join(*(const((last, a | b)) for a, b in _passes(m, wrapper))))


def differentiated(m: Machine, wrapper: int) -> None:
    """A backward goes through a wrapper: the passes before it are done with."""
    m.heap.write((wrapper, PASSES), _NO_PASS)


def overtaken(m: Machine, loss: Value) -> Value:
    """The modules that a loss is made of by way of a pass of a wrapper, and the wrapper's last pass
    is not.
    """
    return tuple(Ref(n) for n in sorted({n for d in data(loss) for n in _overtaken(m, d.reached)}))


def _overtaken(m: Machine, reached: frozenset[int]) -> Iterator[int]:
    for wrapper in (n for n in reached if m.heap.objects[n].name in SYNCHRONISED):
        if m.heap.read((wrapper, "find_unused")) in (None, NOTHING, const(False)):
            continue
        for last, earlier in _passes(m, wrapper):
            left = (reached & earlier & frozenset(owned(m, wrapper))) - last - {wrapper}
            yield from (n for n in left if const(True)[0] not in (m.heap.read((n, FROZEN)) or ()))


def _passes(m: Machine, wrapper: int) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """On each way here: what the last pass since the last backward is made of, and those before."""
    for atom in m.heap.read((wrapper, PASSES)) or _NO_PASS:
        yield atom.value if isinstance(atom, Const) else (frozenset(), frozenset())
