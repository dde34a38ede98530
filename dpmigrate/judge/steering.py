"""How the expressions of a program lie across ranks that divide its batches, and which numbers of a batch training goes by later on.

Both are asked of a program before its migration, so every loader is taken for divided.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from dpmigrate.execution import placements
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.sample_orders import IN_ORDER
from dpmigrate.execution.values import NOTHING, Atom, Const, Data, Differs, Setting, Value, data, placement_of
from dpmigrate.judge.aging import KEPT
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.lying import Span, span
from dpmigrate.judge.trial import fingerprint
from dpmigrate.judge.watching import Watching
from dpmigrate.library.module_tree import is_module
from dpmigrate.program import Program

#: the kind of what marks data with the call that has made a number of a batch
_NUMBER = "number of a batch"
#: what is neither of each sample, nor the same on all ranks
_STATISTICS = (Kind.PARTIAL, Kind.RATIO, Kind.TERM, Kind.PER_RANK)
#: where training goes by a number, and under which name; whether only by one that an earlier step has left
_SINKS = {
    "backward": ("loss", True), "forward": ("given", True), "step": ("settings", False), "clip": ("by", False),
    "hooked gradient": ("by", False), "in place": ("new", False), "attribute": ("new", False),
}  # fmt: skip


class Lies(NamedTuple):
    """How an expression lies in one context.

    ``plain``: it is a number, or a tensor through which no gradient flows back. ``single``: it is a number, a text or a tensor, and nothing that holds others.
    ``in_order``: rows are in the order of the batch's samples.
    """

    placement: Placement
    plain: bool
    single: bool
    in_order: bool = True


def all_lies(program: Program, whole: Collection[Span]) -> dict[Span, frozenset[Lies]]:
    """How each expression lies, in all contexts, given that those of some places are ``whole``: what they are made of has
    been put together over the ranks. Nothing is known of a program whose execution is not finished.
    """
    seen = _Lying(program, whole)
    seen.run()
    return {} if seen.trace.ended is not None else {at: frozenset(found) for at, found in seen.found.items()}


def settled_lies(program: Program, numbers: Collection[Span], mended: Callable[[frozenset[Lies]], bool]) -> dict[Span, frozenset[Lies]]:
    """How each expression lies where as many of the ``numbers`` as possible are those of the whole batch: such that are ``mended``, by what is
    known of all contexts together. Nothing is known of a program whose execution is not finished.

    An execution takes a number for whole where it can be so in that context. Of one with other contexts the program is executed again without it.
    """
    whole = frozenset(numbers)
    while True:
        seen = _Settling(program, whole, mended)
        seen.run()
        if seen.trace.ended is not None:
            return {}
        found = {at: frozenset(lies) for at, lies in seen.found.items()}
        wrong = {at for at in seen.forced if not mended(found[at])}
        if not wrong:
            return found
        whole -= wrong


def steering(program: Program) -> frozenset[Span]:
    """The calls, and quotients of sums, that make the numbers of a batch by which training goes after its step, or beside its loss: what moves
    a number that a later step uses, wherever it is kept; what sets an optimizer, bounds or changes gradients, or decides
    whether a step trains. What was found last is kept, since a script that shares files with others is planned once more.
    """
    key = fingerprint(program)
    found = _KEPT.get(key)
    if found is None:
        seen = _Numbers(program)
        seen.run()
        if seen.trace.ended is not None:
            return frozenset()  # another planning may have more steps left for it
        found = frozenset(span(seen.made[n]) for n in seen.steering())
        if len(_KEPT) >= _FEW:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = found
    return found


#: the programs of which it is kept what was found
_FEW = 4
_KEPT: dict[Hashable, frozenset[Span]] = {}


class _Divided(Watching):
    """Each rank has its part of every batch of every loader, as of a program that is not migrated yet."""

    all_divided = True


class _Called(Judged):
    """An execution of what is seen to be called: of what is given to other functions nothing is known."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, _Divided())

    def call_back(self) -> None:
        """Nothing."""


class _Lying(_Called):
    """An execution that notes how expressions lie."""

    def __init__(self, program: Program, whole: Collection[Span]) -> None:
        super().__init__(program)
        self.whole = frozenset(whole)
        self.found: dict[Span, set[Lies]] = {}

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        found = super().evaluate(node, frame)
        at = span(node)
        plain = all(_plain(d) for d in data(found))
        single = bool(found) and all(isinstance(a, Const | Setting | Data) for a in found)
        in_order = all(not d.order or d.order == IN_ORDER for d in data(found))
        lies = Lies(placement_of(found), plain, single, in_order)
        self.found.setdefault(at, set()).add(lies)
        return _alike(found) if self._as_whole(at, lies) else found

    def _as_whole(self, at: Span, lies: Lies) -> bool:
        """Whether an expression is taken for that of the whole batch."""
        return at in self.whole


class _Settling(_Lying):
    """The same, where a number is that of the whole batch only in the contexts in which it can be made so."""

    def __init__(self, program: Program, whole: Collection[Span], mended: Callable[[frozenset[Lies]], bool]) -> None:
        super().__init__(program, whole)
        self.mended = mended
        #: the numbers that were taken for whole in some context
        self.forced: set[Span] = set()

    def _as_whole(self, at: Span, lies: Lies) -> bool:
        if not super()._as_whole(at, lies) or not self.mended(frozenset({lies})):
            return False
        self.forced.add(at)
        return True


class _Numbers(_Called):
    """An execution that marks numbers of a batch with the calls that have made them."""

    _handed_on = frozenset({KEPT, _NUMBER})

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        #: the calls, by their marks
        self.made: dict[int, ast.expr] = {}
        #: what expressions have given last
        self.latest: dict[Span, Value] = {}
        #: those of them that are sums over the rank's samples
        self.sums: set[int] = set()

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        found = super().evaluate(node, frame)
        is_new = partial(self._is_new, node) if isinstance(node, ast.Call) else self._is_mean_of_sums
        if not isinstance(node, ast.Call | ast.BinOp) or not any(map(is_new, data(found))):
            self.latest[span(node)] = found
            return found
        mark = self.heap.new(_NUMBER, _NUMBER, None, 0, key=span(node)).number
        self.made[mark] = node
        if placement_of(found) in (placements.SUM, placements.size()):
            self.sums.add(mark)
        found = tuple(a._replace(marks=(a.marks - self.sums) | {mark}) if isinstance(a, Data) and is_new(a) else a for a in found)
        self.latest[span(node)] = found
        return found

    def _is_mean_of_sums(self, d: Data) -> bool:
        """Whether it is the mean that a sum gives which is divided by the number of the rank's samples."""
        made = self.made.keys() & d.marks
        return _plain(d) and d.placement == placements.MEAN and bool(made) and made <= self.sums

    def _is_new(self, call: ast.Call, d: Data) -> bool:
        """Whether it is a number of a batch that the call has made, of samples or of what has a gradient, and no call in it."""
        if not d.sources or not _plain(d) or d.placement.kind not in _STATISTICS:
            return False
        if self.made.keys().isdisjoint(d.marks):
            return True
        method = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        operands = (n for n in (*method, *call.args, *(k.value for k in call.keywords)))
        given = [x for n in operands for x in data(self.latest.get(span(n), NOTHING), deep=True)]
        fresh = any(not _plain(x) or x.placement.kind is Kind.ROWS for x in given)
        return fresh and self.made.keys() & d.marks <= {m for x in given for m in x.marks}

    def steering(self) -> set[int]:
        """The marks of the numbers by which training goes."""
        found: set[int] = set()
        for event in self.trace.of(*_SINKS):
            name, kept = _SINKS[event.kind]
            if event.kind == "attribute" and not any(is_module(self, o) and o.kind != "instance" for o in self.objects(event.values["owner"])):
                continue
            found |= self._numbers_in(event.values.get(name, NOTHING), kept=kept)
        for event in self.trace.of("backward", "step"):
            if event.parted is not None:
                found |= event.parted.handed_on
        return found & self.made.keys()

    def _numbers_in(self, v: Value, *, kept: bool) -> set[int]:
        objects = self.heap.objects
        held = data(v, deep=True)
        if kept:  # to what is still a mean over the samples they are only added
            held = [d for d in held if d.placement != placements.MEAN and any(objects[n].kind == KEPT for n in d.marks)]
        return {n for d in held for n in d.marks}


def _plain(d: Data) -> bool:
    return d.gradient == "none" and d.kind in ("number", "tensor", "array", "mask")


def _alike(v: Value) -> Value:
    """The same on every rank."""
    return tuple(_made_alike(a for a in v if not isinstance(a, Differs)))


def _made_alike(found: Iterable[Atom]) -> Iterator[Atom]:
    for a in found:
        yield a._replace(placement=placements.UNIFORM, gradient="none", reached=frozenset(), turn=False) if isinstance(a, Data) else a
