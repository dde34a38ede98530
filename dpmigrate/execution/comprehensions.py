"""Comprehensions: loops that are expressions."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from dpmigrate.execution import counting, divergence, going, placements, samples
from dpmigrate.execution.counting import Count
from dpmigrate.execution.machine import Frame, Going
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.objects import LENGTH
from dpmigrate.execution.operators import OperatorParts
from dpmigrate.execution.scopes import Comprehension
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NOTHING,
    ONE_SAMPLE,
    SETTING,
    Data,
    Origin,
    Ref,
    Value,
    atoms,
    value,
)
from dpmigrate.execution.widening import ROUNDS, widening


@dataclass(frozen=True, slots=True)
class Partial:
    """How the elements of a comprehension are known: one by one, and as many on every rank; whether
    they are made of the samples of a batch.
    """

    exact: bool = True
    parted: Parting | None = None
    samples: bool = False
    #: how many there are, or no more, of one loop
    count: Count | None = None
    #: which of its loops goes over the samples
    over: int | None = None

    def and_(self, other: Partial) -> Partial:
        """Both together."""
        reasons = [p for p in (self.parted, other.parted) if p is not None]
        worse = next((p for p in reasons if not p.in_turn), reasons[0] if reasons else None)
        over = self.over if self.over is not None else other.over
        return Partial(self.exact and other.exact, worse, self.samples or other.samples, over=over)


class ComprehensionParts(OperatorParts):
    """List, set and dictionary comprehensions, and generator expressions."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: the targets of the loops under way that go over all items of a set
        self._over_sets: set[ast.expr] = set()

    def _comprehension(self, node: Comprehension, frame: Frame) -> Value:
        inner = self._inner(node, frame)
        if isinstance(node, ast.DictComp):
            read = (self.evaluate(n, inner) for n in _free(node))
            made = self.heap.new("dict", "dict", node, frame.context, read=read)
            target = value(Ref(made.number))

            def pair() -> Value:
                key = self.evaluate(node.key, inner)
                self.set_item(target, key, self.evaluate(node.value, inner), node, inner)
                return NOTHING

            how = self._generate(node.generators, 0, (frame, inner), pair, [])
            if not how.exact:
                counting.told(self, made, how.count if len(node.generators) == 1 else None)
            return target
        found: list[Value] = []
        how = self._generate(
            node.generators, 0, (frame, inner), lambda: self.evaluate(node.elt, inner), found
        )
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        if kind == "set":
            found = [divergence.in_no_order(v) for v in found]
        exact = how.exact and (kind != "set" or len(found) < 2)
        several, of_each = len(node.generators) > 1, False
        if how.samples:
            found = [samples.kept(v, node) for v in found]
        if how.over is not None and several:
            beside = self._reads_others(node, how.over, inner)
            of_each = how.over == 0 and not beside and all(samples.is_one(a) for v in found for a in atoms(v))
            found = [samples.of_some(v, node) for v in found] if beside else found
        if how.parted is not None and not how.samples and self._reads_samples(node, inner):
            found = [samples.others(self, v, node) for v in found]
        if how.samples and kind == "set":  # which of them are alike is a matter of all samples
            found = [samples.of_some(v, node) for v in found]
        listed = self.listed(found, node, frame, exact=exact, kind=kind)
        if not exact:
            many = how.count if len(node.generators) == 1 else None
            counting.told(self, self.objects(listed)[0], many)
        if how.samples and kind == "list" and (not several or of_each):
            number = placements.size(1) if how.parted is None and not several else placements.SUM
            count = value(Data("number", number, origin=Origin(node, samples.COUNTED)))
            self.heap.write((self.objects(listed)[0].number, LENGTH), count)
        elif how.parted is not None:
            placement = placements.TERM if how.parted.in_turn else placements.PER_RANK
            origin, own = how.parted.origin, how.parted.in_turn
            count = value(Data("number", placement, origin=origin, turn=own, whose=how.parted.whose))
            self.heap.write((self.objects(listed)[0].number, LENGTH), count)
        return listed

    def _reads_others(self, node: Comprehension, over: int, frame: Frame) -> bool:
        """Whether a comprehension by several loops, of which one goes over samples, reads anything of them beside the one that
        this loop has. If it does not, and this is the first loop, its items are some of each sample, one sample after the other.
        """
        first = set(ast.walk(node.generators[over].iter))
        read = [n for n in _free(node) if n not in first]
        return any(self.depends(self.evaluate(n, frame)).kind not in placements.EQUAL for n in read)

    def _reads_samples(self, node: Comprehension, frame: Frame) -> bool:
        """Whether a comprehension by some samples makes its items of any other: it reads them beside what it goes through."""
        within = {*ast.walk(node.elt), *(n for g in node.generators for test in g.ifs for n in ast.walk(test))}  # type: ignore[union-attr]
        return bool(self.whose([self.evaluate(n, frame) for n in _free(node) if n in within]))

    def _inner(self, node: Comprehension, frame: Frame) -> Frame:
        number = self.heap.number(("comprehension", id(node), frame.number))
        names = self.names_of(node)
        inner = Frame(
            number, names, tuple(self.scopes(frame)), frame.module, frame.context,
            level=frame.level, slot=frame.slot, function=frame.function, cls=frame.cls,
            receiver=frame.receiver,
        )  # fmt: skip
        inner.consumer = frame.consumer
        if frame.in_class:
            inner.outer = ((frame.number, frame.names), *frame.outer)
        return inner

    def _generate(
        self,
        generators: list[ast.comprehension],
        index: int,
        frames: tuple[Frame, Frame],
        element: Callable[[], Value],
        found: list[Value],
    ) -> Partial:
        """Run the loops of a comprehension and collect its elements.

        ``frames`` are the scope round it, in which its first iterable is evaluated, and its own.
        """
        frame = frames[1]
        if index == len(generators):
            made = element()
            found.append(samples.of_turns(self, made, generators[0].iter) if self.turns else made)
            self.heap.keep(found[-1])
            return Partial()
        generator = generators[index]
        iterable = self.evaluate(generator.iter, frames[0] if index == 0 else frame)
        self.library.begun(self, iterable, generator.iter, frame)
        known = self.known_elements(iterable, LISTED)
        loop = Going(generator.target, iterable, self.heap.level + 1, frame.number)
        if known is not None:
            self.going.append(loop)
            whole = Partial()
            outside = frame.context
            for turn, v in enumerate(known):
                frame.context = outside
                frame.context = self.turn_context(generator.target, turn, frame)
                self.assign(generator.target, v, generator.target, frame)
                whole = whole.and_(self._kept(generators, index, frames, element, found))
            frame.context = outside
            self.going.pop()
            going.ended(self, loop)
            return whole
        out = Partial(exact=False, parted=self.trips(iterable, generator.iter))
        of_samples = out.parted is None and samples.through(self, iterable)
        out = replace(out, samples=of_samples)
        if of_samples:
            origin = Origin(generator.iter, ONE_SAMPLE)
            self.over_samples, self.samples_since = len(self.control), self.heap.level + 1
            self.control.append(Parting(origin, True, turns=True, samples=True))
        else:
            self.control.append(out.parted)
        # also where the same comprehension is under way over something else
        (self._over_sets.add if self.only_sets(iterable) else self._over_sets.discard)(generator.target)
        self.going.append(loop)
        for turn in range(ROUNDS):  # what an element leaves behind may change the next one
            self.heap.mark()
            if of_samples:
                self.turns.append(self.heap.level)
            taken = self.elements(iterable, generator.iter, frame)
            taken = samples.element(self, taken, generator.iter) if of_samples else taken
            # nothing is seen to be put into it: as in a loop
            self.assign(generator.target, taken or SETTING, generator.target, frame)
            out = out.and_(self._kept(generators, index, frames, element, found))
            delta = self.heap.rollback()
            if of_samples:
                self.turns.pop()
                (delta,) = samples.ended(self, [delta], found)
            widen = widening(turn, generator.iter)
            if not self.heap.apply([delta, {}], self.merging_turns(out.parted), widen):
                break
        else:
            self.unsettled()
        self.control.pop()
        if of_samples:
            self.over_samples = None
        self.going.pop()
        going.ended(self, loop)
        self._over_sets.discard(generator.target)
        return replace(out, count=counting.as_many(self, iterable), over=index if of_samples else out.over)

    def _kept(
        self,
        generators: list[ast.comprehension],
        index: int,
        frames: tuple[Frame, Frame],
        element: Callable[[], Value],
        found: list[Value],
    ) -> Partial:
        """One turn behind its conditions."""
        generator, frame = generators[index], frames[1]
        for i, test in enumerate(generator.ifs):
            tested = self.condition(self.evaluate(test, frame), test, frame)
            truth = self.truth(tested)
            if truth is False:
                return Partial()
            self.refine(test, True, frame)
            if truth is None:
                parted = self.parting(tested, test)
                as_many = parted is not None and self._by_order_alone(parted, test, generator.target, frame)
                inner = Partial(exact=False, parted=None if as_many else parted)

                def arm(rest: list[ast.expr] = generator.ifs[i + 1 :]) -> bool:
                    nonlocal inner
                    cut = ast.comprehension(generator.target, generator.iter, rest, 0)
                    chain = [*generators[:index], cut, *generators[index + 1 :]]
                    inner = inner.and_(self._kept(chain, index, frames, element, found))
                    return True

                self.branch([arm, lambda: True], parted)
                return inner
        return self._generate(generators, index + 1, frames, element, found)

    def _by_order_alone(self, parted: Parting, test: ast.expr, target: ast.expr, frame: Frame) -> bool:
        """Whether a condition differs since a set gives its items in another order on each rank, and by
        nothing else: as many of them meet it then.
        """
        if target not in self._over_sets or parted.origin.word != divergence.ORDER:
            return False
        if any(isinstance(n, ast.Lambda | Comprehension) for n in ast.walk(test)):
            return False
        own = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        read = [n for n in ast.walk(test) if isinstance(n, ast.Name) and n.id not in own]
        held = [self.evaluate(n, frame) for n in read]
        code = any(o.kind in ("function", "class") for v in held for o in self.objects(v))
        return not code and all(self.depends(v).kind in placements.EQUAL for v in held)

    @abstractmethod
    def merging_turns(
        self, parted: Parting | None, *, sums: bool = True
    ) -> Callable[[Value], Value] | None:
        """What becomes of values of turns of which the ranks have different numbers."""


def _free(node: Comprehension) -> list[ast.Name]:
    """Where a comprehension reads variables that are not its own."""
    inside = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.arg)]
    own = {n.id if isinstance(n, ast.Name) else n.arg for n in inside if isinstance(n, ast.arg) or isinstance(n.ctx, ast.Store)}
    return [n for n in inside if isinstance(n, ast.Name) and n.id not in own]
