"""Branches: ``if``, ``match``, and what a test says of the names in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dpmigrate.execution import batch_axes, going
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.generators import GeneratorParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import UNSEEN, Delta, Location
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NOTHING,
    UNBOUND,
    Atom,
    Const,
    Foreign,
    Items,
    Method,
    Ref,
    Setting,
    Unknown,
    Value,
    value,
)

#: what an alternative costs beside what it does, in places of the store
_ARM = 16


@dataclass(slots=True, eq=False)
class Chain:
    """Alternatives that are tried one after the other: what each of them wrote since the heap was at
    a level, by whether control comes out of it.
    """

    level: int
    outcomes: list[Delta] = field(default_factory=list)
    ended: list[Delta] = field(default_factory=list)


class BranchParts(GeneratorParts):
    """Alternatives and how they join."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: whether both sides of a test of a batch's axes are looked at, since none of them was left
        self._both_sides = False

    def truth(self, v: Value) -> bool | None:
        answers = {self._truth(a) for a in v}
        return answers.pop() if len(answers) == 1 else None

    def _truth(self, atom: object) -> bool | None:
        match atom:
            case Const():
                return bool(atom.value)
            case Setting():
                return atom.truth
            case Foreign():
                return True
            case Items():
                return bool(atom.items)
            case Ref():
                made = self.heap.objects[atom.object]
                if made.kind in ("list", "set"):
                    count = self.length(made)
                    return bool(count) if count is not None else None
                if made.kind == "dict":
                    known = self.known_elements(value(atom))
                    return bool(known) if known is not None else None
                if any(self.method_of(made, name) is not None for name in ("__bool__", "__len__")):
                    return None
                return True if made.kind not in (*UNSEEN, "iterator") else None
        return None

    def branch(
        self, arms: list[Callable[[], bool]], parted: Parting | None, of: Sequence[int] = ()
    ) -> bool:
        self.control.append(parted)
        outcomes: list[Delta] = []
        ended: list[Delta] = []
        present: list[int] = []
        self.heap.work += len(arms) * _ARM
        try:
            for at, arm in enumerate(arms):
                self.heap.mark()
                alive = False
                try:
                    alive = arm()
                finally:
                    delta = self.heap.rollback()
                (outcomes if alive else ended).append(delta)
                if alive and of:
                    present.append(of[at])
        finally:
            self.control.pop()
        self.heap.apply(outcomes or self.last(*ended), self.merging(parted), of=present)
        return bool(outcomes)

    def last(self, *deltas: Delta) -> list[Delta]:
        """What stays where no way goes on since one of them goes on for ever."""
        return list(deltas) if self.endless else []

    def _if(self, node: ast.If, frame: Frame, chain: Chain | None = None) -> bool:
        test = self.condition(self.evaluate(node.test, frame), node.test, frame)
        if not test:
            return False
        truth = self.truth(test)
        if truth is not None:
            self.refine(node.test, truth, frame)
            return self._arm(node.body if truth else node.orelse, frame, chain)
        parted = self.parting(test, node.test)
        self.event("branch", node, frame, test=test)
        batches = [] if self._both_sides else batch_axes.asked(self, node.test, frame)
        if not batches:
            return self._sides(node, frame, chain, parted)
        self.heap.mark()
        left_out: list[ast.expr] = []
        alive = self._sides(node, frame, chain, parted, batches, left_out)
        if alive or chain is not None:
            self.heap.adopt()
            for asked in left_out:
                self.event(batch_axes.TAKEN, asked, frame)
            return alive
        self.heap.rollback()
        self._both_sides = True
        try:
            return self._sides(node, frame, chain, parted)
        finally:
            self._both_sides = False

    def _sides(
        self, node: ast.If, frame: Frame, chain: Chain | None, parted: Parting | None,
        batches: Sequence[Location] = (), left_out: list[ast.expr] | None = None,
    ) -> bool:  # fmt: skip
        """Both sides of a test, but for one that lays the samples of ``batches`` along another axis: the
        test is put into ``left_out`` then.
        """
        loop = going.undecided(self, node, frame)

        def stays(alive: bool) -> bool:
            if not alive or left_out is None or left_out or not batch_axes.moved(self, batches):
                return alive
            left_out.append(node.test)
            return False

        def met() -> bool:
            self.refine(node.test, True, frame)
            before = (len(frame.returns), len(frame.breaks), len(frame.continues))
            frame.arms += 1
            try:
                return stays(self.block(node.body, frame))
            finally:
                frame.arms -= 1
                going.arm_ended(self, loop, node, "if", before, frame)

        def otherwise(chain: Chain) -> bool:
            self.refine(node.test, False, frame)
            before = (len(frame.returns), len(frame.breaks), len(frame.continues))
            frame.arms += 1
            try:
                return stays(self._arm(node.orelse, frame, chain))
            finally:
                frame.arms -= 1
                going.arm_ended(self, loop, node, "else", before, frame)

        return self.first_or_rest(met, otherwise, parted, frame, chain)

    def _arm(self, body: list[ast.stmt], frame: Frame, chain: Chain | None) -> bool:
        """One arm of a chain; an ``elif`` goes on with it."""
        if chain is None or len(body) != 1 or not isinstance(body[0], ast.If):
            return self.block(body, frame)
        self.step()
        self.trace.ran.add(body[0])
        return self._if(body[0], frame, chain)

    def first_or_rest(
        self, first: Callable[[], bool], rest: Callable[[Chain], bool], parted: Parting | None,
        frame: Frame, chain: Chain | None = None,
    ) -> bool:  # fmt: skip
        """An arm, or those after it, which may be a chain of such; whether control comes out of one
        of them, or of the last one where ``chain`` takes what the others leave.

        The arms of a chain are joined all at once: each would else be joined once more for every
        test above it. Arms that ranks may choose differently are joined by themselves.
        """
        if chain is not None and parted is None:
            self._attempt(first, chain)
            return rest(chain)
        chain = Chain(self.heap.level)
        before = (len(frame.returns), len(frame.breaks), len(frame.continues))
        self.control.append(parted)
        try:
            self._attempt(first, chain)
            self._attempt(lambda: rest(chain), chain)
        finally:
            self.control.pop()
        self.heap.apply(chain.outcomes or self.last(*chain.ended), self.merging(parted))
        self.left_by_some(before, parted, frame)
        return bool(chain.outcomes)

    def _attempt(self, arm: Callable[[], bool], chain: Chain) -> None:
        self.heap.mark()
        alive = False
        try:
            alive = arm()
        finally:
            written = self.heap.since(chain.level)
            self.heap.rollback()
        (chain.outcomes if alive else chain.ended).append(written)

    def left_by_some(
        self, before: tuple[int, int, int], parted: Parting | None, frame: Frame
    ) -> None:
        """Some ranks have left a function, a loop or a turn: the rest of it is parted."""
        if parted is not None:
            if len(frame.returns) > before[0]:
                self._mark(frame.slot, parted)
            if frame.loops and len(frame.breaks) > before[1]:
                self._mark(frame.loops[-1][2], parted)
            if frame.loops and len(frame.continues) > before[2]:
                self._mark(frame.loops[-1][2] + 1, parted)

    def refine(self, test: ast.expr, yes: bool, frame: Frame) -> None:
        match test:
            case ast.UnaryOp(op=ast.Not()):
                self.refine(test.operand, not yes, frame)
            case ast.BoolOp():
                if isinstance(test.op, ast.And) == yes:
                    for part in test.values:
                        self.refine(part, yes, frame)
            case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)]):
                self._keep(test.left, frame, lambda a: _none(a) is not (not yes))
            case ast.Compare(
                ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(value=None)]
            ):
                self._keep(test.left, frame, lambda a: _none(a) is not yes)
            case ast.Call(func=ast.Name("isinstance" | "issubclass"), args=[asked, _], keywords=[]):
                self._keep(asked, frame, lambda a: self._is_instance(a, test, frame) is not (not yes))
            case ast.Compare(left=ast.Call(func=ast.Name("type"), args=[asked], keywords=[])):
                self._keep(asked, frame, lambda a: self._is_of_type(a, test, frame) is not (not yes))
            case ast.Name() | ast.Attribute():
                self._keep(test, frame, lambda a: not isinstance(a, Const) or bool(a.value) == yes, yes)

    def _is_instance(self, atom: Atom, test: ast.Call, frame: Frame) -> bool | None:
        """Whether one of the things that a value may be is what a test asks for, by its class or as a class."""
        name = f"builtins.{ast.unparse(test.func)}"
        if self.evaluate(test.func, frame) != value(Foreign(name)):
            return None  # a function of the program
        asked = Arguments([value(atom), self.evaluate(test.args[1], frame)])
        return self.truth(self.library.call(self, name, asked, test, frame) or NOTHING)

    def _is_of_type(self, atom: Atom, test: ast.Compare, frame: Frame) -> bool | None:
        """Whether one of the things that a value may be is of the class that ``type(x) == C`` asks for."""
        assert isinstance(test.left, ast.Call)
        if self.evaluate(test.left.func, frame) != value(Foreign("builtins.type")) or len(test.ops) != 1:
            return None
        found = self.library.call(self, "builtins.type", Arguments([value(atom)]), test.left, frame) or NOTHING
        return self.of_class(test, test.ops[0], found, self.evaluate(test.comparators[0], frame))

    def _keep(
        self, node: ast.expr, frame: Frame, keep: Callable[[Atom], bool], truth: bool | None = None
    ) -> None:
        """Leave of what is stored at a name or an attribute what a test lets through; ``truth`` is what the test says of a setting."""
        at = self.location(node, frame)
        found = self.heap.read(at) if at is not None else None
        if at is None or not found:
            return
        kept = tuple(_shown(a, truth) for a in found if keep(a))
        if kept and kept != found:
            self.heap.narrow(at, kept)

    def location(self, node: ast.expr, frame: Frame) -> Location | None:
        """Where a name or an attribute of one object is stored."""
        if isinstance(node, ast.Name):
            return self.place(node.id, frame)
        if isinstance(node, ast.Attribute):
            outer = self.location(node.value, frame)
            found = self.heap.read(outer) if outer is not None else None
            if found and len(found) == 1 and isinstance(found[0], Ref):
                return (found[0].object, node.attr)
        return None


def _shown(atom: Atom, truth: bool | None) -> Atom:
    """A setting of which a test says whether it is true; a default that says otherwise is not what it is."""
    if truth is None or not isinstance(atom, Setting) or atom.truth is not None:
        return atom
    default = atom.default if atom.default is not None and bool(atom.default.value) == truth else None
    return atom._replace(truth=truth, default=default)


def _none(atom: object) -> bool | None:
    """Whether an atom is None; None itself where that is not known."""
    if isinstance(atom, Const):
        return atom.value is None
    if isinstance(atom, Setting) and atom.truth:
        return False
    if isinstance(atom, Setting | Unknown | Method) or atom == UNBOUND:
        return None
    return False
