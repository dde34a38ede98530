"""Operators and choices."""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from dpmigrate.execution import arithmetic, broadcasting, divergence, folding, identity, placements, samples
from dpmigrate.execution.comparisons import ComparisonParts
from dpmigrate.execution.derivation import of_others
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.objects import LENGTH, Location
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Data,
    Items,
    Ref,
    Setting,
    Value,
    const,
    data,
    items,
    known,
    only,
    origins,
    value,
)

_UNARY = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}
_UNARY_OF: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


class OperatorParts(ComparisonParts):
    """One method for each kind of operator."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: sums that are given to the variable that they add to, and which operand that is
        self.adding: dict[ast.AST, ast.expr] = {}
        #: calls that put more behind what a variable holds, which is given the result, with the variable in them
        self.growing: dict[ast.AST, ast.expr] = {}

    def _either(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.condition(self.evaluate(node.test, frame), node.test, frame)
        truth = self.truth(test)
        if truth is not None:
            return self.evaluate(node.body if truth else node.orelse, frame)
        parted = self.parting(test, node.test)
        self.event("choice", node, frame, test=test)
        found: list[Value] = []

        def arm(side: ast.expr, yes: bool) -> Callable[[], bool]:
            def run() -> bool:
                self.refine(node.test, yes, frame)
                found.append(self.evaluate(side, frame))
                return bool(found[-1])

            return run

        self.branch([arm(node.body, True), arm(node.orelse, False)], parted)
        out = join(*found)
        if parted is not None and len(found) == 2 and found[0] != found[1]:
            return self.chosen_apart(node, divergence.differing(out, parted))
        return out

    def chosen_apart(self, _node: ast.IfExp, made: Value) -> Value:
        """What a conditional expression gives where ranks may choose differently."""
        return made

    def _both(self, node: ast.BoolOp, frame: Frame) -> Value:
        return self._from(node, 0, frame)

    def _from(self, node: ast.BoolOp, index: int, frame: Frame) -> Value:
        """The operands from one on; those behind it are evaluated where it does not decide."""
        part, stops = node.values[index], isinstance(node.op, ast.Or)
        v = self.evaluate(part, frame)
        last = index == len(node.values) - 1
        test = v if last else self.condition(v, part, frame)
        truth = self.truth(test) if test else stops
        if last or truth is stops:
            return v
        if truth is not None:
            return self._from(node, index + 1, frame)
        parted = self.parting(test, part)
        first, rest = self._side(v, stops), NOTHING

        def further() -> bool:
            nonlocal rest
            self.refine(part, not stops, frame)
            rest = self._from(node, index + 1, frame)
            return bool(rest)

        self.branch([lambda: True, further], parted)
        out = join(first, rest)
        if parted is not None and first != rest:
            if all(self.depends(x).kind not in placements.EQUAL for x in (first, rest)):
                return arithmetic.elementwise("and/or", [first, rest], node)
            return divergence.differing(out, parted)
        return out

    @staticmethod
    def _side(v: Value, yes: bool) -> Value:
        """What of a value is true, or false."""
        return tuple(a for a in v if not isinstance(a, Const) or bool(a.value) == yes)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        v = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            v = self.condition(v, node, frame)
            truth = self.truth(v)
            if truth is not None:
                return const(not truth)
            if data(v):
                return arithmetic.elementwise("not", [v], node, kind="number")
            return self.plain([v], "not", node, frame)
        try:
            return const(_UNARY_OF[type(node.op)](only(v)))
        except (LookupError, TypeError):
            pass
        if data(v):
            if isinstance(node.op, ast.Invert):
                return arithmetic.elementwise("~", [v], node)
            return self.recorded(arithmetic.binary("mul", v, const(-1), node))
        own = self.own_operator(v, _UNARY[type(node.op)], [], node, frame)
        if own is not None:
            return own
        return self.plain([v], "-", node, frame)

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        right = self.evaluate(node.right, frame)
        if self.each_sample:
            return self._for_each_sample(node, left, right, frame)
        if self.regime == "own" and (total := self.adding.get(node)) is not None:  # count = count + 1
            if total is node.left:
                right = self._added_in_turn(total, left, right, node, frame)
            else:
                left = self._added_in_turn(total, right, left, node, frame)
        carries = not all(self.of_this_turn(v, frame) for v in (node.left, node.right))
        return self.operate(node.op, left, right, node, frame, carries=carries)

    def _added_in_turn(
        self, target: ast.expr, left: Value, right: Value, node: ast.AugAssign | ast.BinOp, frame: Frame
    ) -> Value:
        """What is added to a sum in a turn that each rank has of its own."""
        if not self.each_sample:
            return divergence.added_in_turn(right, node)
        total = any(isinstance(a, Data) and not a.turn for a in left)
        if not total and self.of_this_turn(target, frame):
            return right  # a sum of the turn's own
        right = samples.added(right, node)
        return divergence.added_in_turn(right, node, each=self.parted is None)

    def recorded(self, v: Value) -> Value:
        """What an operation gives: where autograd does not record, no gradient flows through it."""
        return identity.unrecorded(v) if self.heap.read((PROCESS, "mode grad")) == const(False) else v

    def _for_each_sample(self, node: ast.BinOp, left: Value, right: Value, frame: Frame) -> Value:
        """An operator in a turn for each sample: what was added up so far is added to and no more."""
        total = self.adding.get(node)
        if total is node.left:
            right = samples.added(right, node)
        elif total is node.right:
            left = samples.added(left, node)
        else:
            left, right = (samples.so_far(v, node) for v in (left, right))
        so_far = left if total is node.left else right
        earlier = total is not None and (not self.of_this_turn(total, frame) or samples.begun(so_far))
        return self.operate(node.op, left, right, node, frame, carries=earlier)

    def of_this_turn(self, node: ast.expr, frame: Frame) -> bool:
        """Whether the turn under way of a loop has given a variable its value, and no earlier one;
        also where there is no such loop.
        """
        if not self.turns or not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return True
        at = self.location(node, frame)
        return at is not None and self.heap.written_since(self.turns[-1], at)

    def operate(
        self, op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame, *,
        carries: bool = False,
    ) -> Value:  # fmt: skip
        """``left op right``; ``carries`` where an operand may be of an earlier turn of a loop."""
        folded = folding.folded(op, left, right)
        if folded is not None:
            return folded
        word = folding.word_of(op)
        own = self._containers(op, left, right, node, frame)
        if own is not None:
            return own
        if word == "mod" and all(isinstance(a, Const | Setting) for a in left) and _texts(left):
            known = self.known_elements(right)
            plain = _formatted(left, [right] if known is None else known)
            if plain is not None:
                return plain
            return self.text([left, *(known if known is not None else [right])], node, frame)
        if word in _SCALES and self.regime == "own":
            # a part that is scaled from turn to turn depends on the order of all turns
            left, right = (divergence.no_longer_added(v, node) for v in (left, right))
        if self.tries and word in _DIVIDES:
            self._may_divide_by_zero(right, node)
        if data(left) or data(right):
            if word != "mod":  # a text may have None put in
                left, right = (tuple(a for a in v if (a,) != NONE) or v for v in (left, right))
            if broadcasting.may_cross((left, right)):
                self.event("axes taken for equal", node, frame, given=join(left, right))
            given = self.library.operator(self, word, [left, right], node, frame)
            if given is None:
                given = arithmetic.binary(word, left, right, node, carries=carries)
            return self.recorded(given)
        for v, dunder in ((left, f"__{word}__"), (right, f"__r{word}__")):
            other = right if v is left else left
            own = self.own_operator(v, dunder, [other], node, frame)
            if own is not None:
                return own
        given = self.library.operator(self, word, [left, right], node, frame)
        if given is not None:
            return given
        return self.plain([left, right], word, node, frame)

    def _may_divide_by_zero(self, v: Value, node: ast.AST) -> None:
        """Numbers that are 0 on some ranks; tensors and times are none."""
        numbers = tuple(
            a for a in v
            if not isinstance(a, Data)
            or (a.kind == "number" and not any(o.word.startswith("a clock") for o in origins(a.origin)))
        )  # fmt: skip
        self.may_raise(self.parting(numbers, node), "ZeroDivisionError")

    def _containers(
        self, op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame
    ) -> Value | None:
        """Lists and tuples added and repeated, dictionaries and sets merged."""
        if not isinstance(op, ast.Add | ast.Mult | ast.BitOr):
            return None
        sequences = [
            a
            for a in (*left, *right)
            if isinstance(a, Items)
            or (isinstance(a, Ref) and self.heap.objects[a.object].kind in ("list", "dict", "set"))
        ]
        if not sequences:
            return None
        if isinstance(op, ast.Mult):
            other = right if sequences[0] in left else left
            held = left if sequences[0] in left else right
            known = self.known_elements(held)
            try:
                times = only(other)
            except LookupError:
                times = None
            if known is not None and isinstance(times, int) and len(known) * times <= LISTED:
                repeated = known * times
                tuples = all(isinstance(x, Items) for x in held)
                return items(repeated) if tuples else self.listed(repeated, node, frame)
            out = self.listed([self.elements(held, node, frame)], node, frame, exact=False, by=[held])
            parted = self.parting(other, node)
            if parted is not None:  # how often it is repeated differs
                count = divergence.differing(SETTING, parted)
                self.heap.write((self.objects(out)[0].number, LENGTH), count)
            return out
        a, b = self.known_elements(left), self.known_elements(right)
        if isinstance(op, ast.Add) and a is not None and b is not None:
            both = [*a, *b]
            if all(isinstance(x, Items) for x in (*left, *right)):
                return items(both)
            return self.listed(both, node, frame)
        first = self.object(sequences[0])
        if first is not None and first.kind == "dict":
            made = self.heap.new("dict", "dict", node, frame.context)
            self.merge(made, left, node, frame)
            self.merge(made, right, node, frame)
            return value(Ref(made.number))
        if isinstance(op, ast.Add) and self.library.opening(self, left, node, frame):
            return left  # it begins as it did, and its length is not known
        both_of = [self.elements(v, node, frame) for v in (left, right)]
        if isinstance(op, ast.Add) and a is not None and all(isinstance(x, Items) for x in left) and not self.counts([right]):
            begun = self.library.lengthened(self, a, both_of[1], node, frame)
            if begun:
                return begun
        if self.each_sample:
            lists = [(o, v) for v in (left, right) for o in self.objects(v) if o.kind == "list" and samples.OF_A_SAMPLE not in o.marks]
            older = any(self._of_all_turns(o) and not self.known_elements(v) for o, v in lists)
            both_of = [samples.of_some(v, node) if older or any(map(of_others, v)) else v for v in both_of]
        out = self.listed(both_of, node, frame, exact=False, by=[left, right])
        self.objects(out)[0].marks.add(samples.OWN_ORDER)
        counts = [self.heap.read((o.number, LENGTH)) or NOTHING for v in (left, right) for o in self.objects(v)]
        parted = next((p for count in counts if (p := self.parting(count, node)) is not None), None)
        if parted is not None:
            self.heap.write((self.objects(out)[0].number, LENGTH), divergence.differing(SETTING, parted))
        return out

    # ------------------------------------------------------------ defined by later parts

    @abstractmethod
    def location(self, node: ast.expr, frame: Frame) -> Location | None:
        """Where a name or an attribute of one object is stored."""

    @abstractmethod
    def refine(self, test: ast.expr, yes: bool, frame: Frame) -> None:
        """What a test says of the names in it."""


_DIVIDES = ("truediv", "floordiv", "mod")
#: operators that change what was added up before
_SCALES = ("mul", "truediv", "floordiv", "mod", "pow")


def _formatted(left: Value, parts: list[Value]) -> Value | None:
    """``"%s_%d" % ("run", 3)``, where all of it is known."""
    try:
        return const(only(left) % tuple(only(v) for v in parts))
    except (LookupError, TypeError, ValueError):
        return None


def _texts(v: Value) -> bool:
    return any(isinstance(known((a,)), str) for a in v)
