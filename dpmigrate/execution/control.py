"""Which ranks are at a point of the program, and why not all: tests of what differs between them,
turns of loops, and exceptions that only some of them raise.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from dpmigrate.execution import placements
from dpmigrate.execution.derivation import of_others
from dpmigrate.execution.guards import Guard
from dpmigrate.execution.heap import Heap
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    OTHERS,
    PLACE,
    Atom,
    Const,
    Data,
    Differs,
    Items,
    Method,
    Origin,
    Ref,
    Unbound,
    Unknown,
    Value,
)

_MAYBE = Unbound()


class Raised(NamedTuple):
    """An exception that leaves a call: which of the methods of ``Control`` has told it, its name, why
    some ranks alone may raise it, and why only some come to that place of the call.
    """

    how: str
    kind: str
    parted: Parting | None
    inside: Parting | None


class Control(ABC):
    """The heap, and why not all ranks may be where control is."""

    def __init__(self) -> None:
        self.heap = Heap()
        self.heap.by_some = lambda: self.parted is not None
        #: why not all ranks may be here: a slot for each branch, loop, turn and call under way
        self.control: list[Parting | None] = []
        #: levels of the heap at which the turns under way of loops began of which each rank has its
        #: own turns
        self.turns: list[int] = []
        #: the slot of the loop over the samples of a batch that is under way
        self.over_samples: int | None = None
        #: the level of the heap at which it began
        self.samples_since = 0
        #: exceptions that only some ranks raise: how deep in ``control`` the reason stands
        self.raised: list[tuple[int, Parting]] = []
        #: ``try`` statements under way
        self.tries: list[Guard] = []
        #: exceptions that some ranks may raise where they evaluate something: which ``try`` catches
        self.implied: list[tuple[int, Parting]] = []
        #: what the calls under way raise, for their summaries: where in ``control`` each begins
        self.leaving: list[tuple[int, dict[Raised, None]]] = []
        #: who asks for the next element: a loop that ``begins``, one in a later turn (``loop``),
        #: ``next``, or what is not known better
        self.asking = ""
        #: the exceptions by which the iterators of the program end that are asked for an element
        self.ending: list[str] = []
        #: whether a later turn of a loop asks, through whatever it goes over
        self.later = False
        #: why some ranks alone may have come to the end of the iterator that was asked
        self.ended_by: Parting | None = None

    @property
    def parted(self) -> Parting | None:
        """Why not all ranks may be at this point of the program."""
        for p in self.control:
            if p is not None and not p.alike:
                return p
        return None

    @property
    def regime(self) -> str:
        """Which ranks are at this point: ``all``, each in a turn of its ``own``, or ``some``."""
        reasons = [p for p in self.control if p is not None and not p.alike]
        if not reasons:
            return "own" if self.turns else "all"
        return "own" if all(p.turns or p.in_turn for p in reasons) else "some"

    @property
    def each_sample(self) -> bool:
        """Whether this is done in a turn for each sample of a batch."""
        return self.over_samples is not None and len(self.turns) == 1

    def raises(self, kind: str = "") -> None:
        """An exception is raised here: where only some ranks come here, only they raise it.

        ``kind`` is its name where that is one of Python's own; any other may be caught by each
        ``try`` round it.
        """
        self._leaves("raises", kind, None)
        for slot, catches, again in reversed(self.tries):
            some = next((p for p in self.control[slot + 1 :] if p is not None and not p.alike), None)
            if (not kind or catches(kind)) and some is not None:
                self.implied.append((slot, some))
                if not again(kind):
                    self._mark(slot, some)
            if kind and catches(kind) and not again(kind):
                return
        for depth in range(len(self.control) - 1, -1, -1):
            found = self.control[depth]
            if found is not None and not found.alike:
                self.raised.append((depth, found))
                return

    def may_raise(self, parted: Parting | None, kind: str) -> None:
        """Some ranks may raise an exception here, by what differs between them.

        Data of one turn are left out: they raise where the program on one process does.
        """
        if parted is None or not parted.certain or parted.alike or parted.in_turn or parted.turns:
            return
        self._leaves("may raise", kind, parted)
        for slot, catches, again in reversed(self.tries):
            if catches(kind):
                self.implied.append((slot, parted))
                if not again(kind):
                    self._mark(slot, parted)
                    return

    def fails(self, kind: str) -> None:
        """Whoever comes here may raise an exception: where only some ranks do, they alone raise it."""
        self._leaves("fails", kind, None)
        for slot, catches, _ in reversed(self.tries):
            if catches(kind):
                some = (p for p in self.control[slot + 1 :] if p is not None)
                self.may_raise(next(some, None), kind)
                return

    def _leaves(self, how: str, kind: str, parted: Parting | None) -> None:
        """Note for the summaries of the calls under way what is raised in them and not caught."""
        for base, noted in self.leaving:
            inside = (g for g in self.tries if g.slot >= base)
            if not (kind and any(g.catches(kind) and not g.again(kind) for g in inside)):
                some = (p for p in self.control[base:] if p is not None and not p.alike)
                noted[Raised(how, kind, parted, next(some, None))] = None

    def raise_again(self, raised: Iterable[Raised]) -> None:
        """What a summary has raised is raised here."""
        for one in raised:
            self.control.append(one.inside)
            match one.how:
                case "raises":
                    self.raises(one.kind)
                case "fails":
                    self.fails(one.kind)
                case _:
                    self.may_raise(one.parted, one.kind)
            self.control.pop()

    def _mark(self, slot: int, parted: Parting) -> None:
        if slot >= len(self.control):
            return
        held = self.control[slot]
        if held is None or (held.alike and not parted.alike) or (held.samples and parted.placed):
            if held is not None and held.samples:
                parted = replace(parted, in_turn=False)  # a sum of some samples is no part of all
            self.control[slot] = parted

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently by this value, where they may."""
        doubt: Parting | None = None
        whose = OTHERS if any(map(of_others, condition)) else ""
        for atom in condition:
            match atom:
                case Data() if atom.turn and atom.placement.kind in placements.EQUAL:
                    doubt = doubt or Parting(Origin(node, f"by {PLACE}"), True, placed=True)
                case Data():
                    if atom.placement.kind in (Kind.ZERO, Kind.UNIFORM, Kind.SIZE):
                        continue
                    if atom.whole and atom.placement == placements.MEAN:
                        continue  # the runtime gives every rank the same number, to the last bit
                    origin = atom.origin or Origin(node, "condition")
                    if atom.placement.kind is not Kind.UNKNOWN:
                        return Parting(origin, True, in_turn=atom.turn, sources=atom.sources, marks=atom.marks, whose=whose)
                    doubt = Parting(origin, False, sources=atom.sources, whose=whose)
                case Differs():
                    origin = atom.origin or Origin(node, "condition")
                    return Parting(origin, True, sources=atom.sources, whose=whose)
                case Unknown():
                    doubt = Parting(Origin(atom.node or node, atom.word), False, whose=whose)
                case Method():
                    found = self.parting((atom.receiver,), node)
                    if found is not None and found.certain:
                        return found
                    doubt = doubt or found
                case Ref():
                    found = self._parting_length(atom, node)
                    if found is not None and found.certain:
                        return found
                    doubt = doubt or found
                case Items():
                    pass  # its truth is its length
        return doubt

    def _parting_length(self, atom: Ref, node: ast.AST) -> Parting | None:
        """Why a container may be empty on some ranks alone."""
        made = self.heap.objects[atom.object]
        count = self.count(made) if made.kind in ("list", "set", "dict") else None
        return self.parting(count, node) if count else None

    # ------------------------------------------------------------ small helpers

    def object(self, atom: Atom) -> Object | None:
        """The object that an atom refers to."""
        return self.heap.objects.get(atom.object) if type(atom) is Ref else None

    def objects(self, v: Iterable[Atom]) -> list[Object]:
        """The objects that a value may be."""
        made = self.heap.objects
        return [made[a.object] for a in v if type(a) is Ref]

    @staticmethod
    def bound(v: Value) -> Value:
        """The value where it is bound."""
        return tuple(a for a in v if not isinstance(a, Unbound)) if _MAYBE in v else v

    @staticmethod
    def constants(v: Value) -> bool:
        """Whether it is constants only."""
        return all(isinstance(a, Const) for a in v)

    @abstractmethod
    def count(self, made: Object) -> Value:
        """How many items a container has, where that is kept, or where it differs."""
