"""Buffers of models that are given something of a rank's own part of the batch, by whichever name they are changed.

DistributedDataParallel copies rank 0's buffers to the other ranks, so that what these have stored is lost. A loss shows that only where it
goes by the buffer; what is saved shows it nowhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Atom, Data, Differs
from dpmigrate.judge.notes import SYNCHRONISED
from dpmigrate.judge.totals import divided_loaders
from dpmigrate.judge.trial import Trial


@dataclass(frozen=True, eq=False, slots=True)
class Own:
    """The statements of the result by which a buffer comes to differ between the ranks, the first one first.

    ``cls``: the program's class of the module that has it, if it is of one; ``wrapped``: the module is part of a model that is trained through a wrapper.
    """

    nodes: tuple[ast.stmt, ...]
    cls: ast.ClassDef | None
    name: str
    wrapped: bool


def of_one_rank(trial: Trial) -> tuple[Own, ...]:
    """Each buffer that is given values which are made of batches that training divides."""
    return tuple(_found(trial))


def _found(trial: Trial) -> Iterator[Own]:
    objects = trial.result.heap.objects
    wrapped = {n for o in objects.values() if o.name in SYNCHRONISED for n in trial.owned(o.number)}
    for (number, name), stored in trial.result.heap.noted.items():
        nodes = tuple(s for s, atoms in stored.items() if isinstance(s, ast.stmt) and any(_is_own(trial, a) for a in atoms))
        if nodes and isinstance(name, str):
            cls = trial.result.class_of(objects[number])
            node = cls.extra.node if cls is not None else None
            yield Own(nodes, node if isinstance(node, ast.ClassDef) else None, name, number in wrapped)


def _is_own(trial: Trial, atom: Atom) -> bool:
    """Whether it differs between the ranks by their parts of the training batches, for certain."""
    if isinstance(atom, Data):
        return atom.placement.kind is not Kind.UNKNOWN and bool(divided_loaders(trial, atom.sources))
    return isinstance(atom, Differs) and bool(divided_loaders(trial, atom.sources))
