"""Operators, comparisons and choices."""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeGuard

from dpmigrate.execution import arithmetic, divergence, placements, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.heap import UNSEEN, Location
from dpmigrate.execution.literals import LiteralParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Data,
    Differs,
    Items,
    Method,
    Origin,
    Ref,
    Setting,
    Unknown,
    Value,
    atom_placement,
    atoms,
    const,
    data,
    items,
    join,
    known,
    only,
    placement_of,
    value,
)

_UNARY = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}
_UNARY_OF: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_COMPARED = {
    ast.Eq: ("__eq__",), ast.NotEq: ("__ne__", "__eq__"), ast.Lt: ("__lt__",),
    ast.LtE: ("__le__",), ast.Gt: ("__gt__",), ast.GtE: ("__ge__",),
    ast.In: ("__contains__",), ast.NotIn: ("__contains__",),
}  # fmt: skip


class OperatorParts(LiteralParts):
    """One method for each kind of operator."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: sums that are given to the variable that they add to, and which operand that is
        self.adding: dict[ast.AST, ast.expr] = {}

    def _either(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.evaluate(node.test, frame)
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
            return divergence.differing(out, parted)
        return out

    def _both(self, node: ast.BoolOp, frame: Frame) -> Value:
        return self._from(node, 0, frame)

    def _from(self, node: ast.BoolOp, index: int, frame: Frame) -> Value:
        """The operands from one on; those behind it are evaluated where it does not decide."""
        part, stops = node.values[index], isinstance(node.op, ast.Or)
        v = self.evaluate(part, frame)
        truth = self.truth(v) if v else stops
        if index == len(node.values) - 1 or truth is stops:
            return v
        if truth is not None:
            return self._from(node, index + 1, frame)
        parted = self.parting(v, part)
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
            return arithmetic.binary("mul", v, const(-1), node)
        own = self.own_operator(v, _UNARY[type(node.op)], [], node, frame)
        if own is not None:
            return own
        return self.plain([v], "-", node, frame)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        rights = [self.evaluate(c, frame) for c in node.comparators]
        if len(rights) == 1:
            answer = self._comparison(node.ops[0], left, rights[0], node, frame)
            if answer is not None:
                return answer
        operands = [left, *rights]
        if all(map(_shape, operands)):
            return SETTING  # ranks have batches of one size
        hidden = [v for v in operands if not data(v) and self._hides(v)]
        if any(data(v) for v in operands) and not hidden:
            if all(_size(d) for v in operands for d in data(v)):
                return SETTING
            return arithmetic.elementwise("comparison", operands, node)
        return self._of_turn(operands, node) or self.plain(operands, "comparison", node, frame)

    def _of_turn(self, operands: list[Value], node: ast.AST) -> Value:
        """The answer that a turn's own samples give, also those that lists hold; nothing where the
        operands hold anything else that is not the same on all ranks.
        """
        held = [h for v in operands for h in self.held_in(v)]
        differ = [a for v in held for a in v if atom_placement(a).kind not in placements.EQUAL]
        if not differ or not samples.of_turn(tuple(differ)):
            return NOTHING
        return arithmetic.derived(
            "comparison", placements.TERM, held, node, kind="mask", gradient="none", axes=0
        )

    def _comparison(
        self, op: ast.cmpop, left: Value, right: Value, node: ast.AST, frame: Frame
    ) -> Value | None:
        known = arithmetic.compared(op, left, right)
        if known is not None:
            return const(known)
        same = isinstance(op, ast.Is | ast.Eq)
        if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and NONE in (left, right):
            other = left if right == NONE else right
            if other and not any(self._maybe_none(a) for a in other):
                if all(not (isinstance(a, Const) and a.value is None) for a in other):
                    return const(not same)
            differs = tuple(a for a in other if isinstance(a, Differs))
            return differs or SETTING
        same_object = self._identical(left, right)
        if same_object is not None and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            return const(same_object == same)
        if isinstance(op, ast.In | ast.NotIn):
            keys = self.members(right)
            if keys is not None:
                try:
                    return const((only(left) in [only(k) for k in keys]) == isinstance(op, ast.In))
                except LookupError:
                    pass
            if all(self._by_keys(a) for a in right) and right:
                named = [self._named(a, left) for a in right]
                if all(named):
                    return const(isinstance(op, ast.In))
                keys = [self._keys_of(a, node, frame) for a in right]
                return self.plain([left, *keys], "comparison", node, frame)
        holder, other = (right, left) if isinstance(op, ast.In | ast.NotIn) else (left, right)
        for word in _COMPARED.get(type(op), ()):
            answer = self.own_operator(holder, word, [other], node, frame)
            if answer is not None:
                kept = isinstance(op, ast.Eq | ast.Lt | ast.Gt | ast.LtE | ast.GtE | ast.In)
                return (
                    answer if kept or word == "__ne__" else self.plain([answer], word, node, frame)
                )
        return None

    def _by_keys(self, atom: Atom) -> bool:
        """Whether ``x in atom`` asks for a key, or the name of a field."""
        made = self.object(atom)
        return made is not None and made.kind in ("dict", "namespace")

    def _named(self, atom: Atom, name: Value) -> bool:
        """Whether it has the field for certain."""
        made, key = self.object(atom), known(name) if len(name) == 1 else None
        if made is None or made.kind != "namespace" or not isinstance(key, str):
            return False
        held = self.heap.read((made.number, key))
        return isinstance(name[0], Const) and bool(held) and self.bound(held or ()) == held

    def _keys_of(self, atom: Atom, node: ast.AST, frame: Frame) -> Value:
        made = self.object(atom)
        if made is not None and made.kind == "namespace":
            return SETTING
        return self.elements((atom,), node, frame)

    def _hides(self, v: Value) -> bool:
        """Whether an object of a value holds what differs between ranks."""
        equal = placements.EQUAL
        return placement_of(v).kind in equal and self.depends(v).kind not in equal

    def _maybe_none(self, atom: Atom) -> bool:
        """Whether an atom of which nothing else is known may be None."""
        made = self.object(atom)
        if made is not None:
            return made.kind in UNSEEN
        return isinstance(atom, Setting | Unknown | Method) or getattr(atom, "kind", "") == "any"

    def own_operator(
        self, v: Value, name: str, given: list[Value], node: ast.AST, frame: Frame
    ) -> Value | None:
        """What a special method of the program's class gives; None where there is none."""
        for made in self.instances_of(v):
            method = self.method_of(made, name)
            if method is not None:
                return self.call(value(method), Arguments(given), node, frame)
        return None

    def _identical(self, left: Value, right: Value) -> bool | None:
        """Whether two values are one object, where each is one that exists once."""
        a, b = (self.object(v[0]) if len(v) == 1 else None for v in (left, right))
        if a is None or b is None or a.many or b.many:
            return None
        if any(o.kind == "instance" and self.method_of(o, "__eq__") for o in (a, b)):
            return None
        if {a.kind, b.kind} <= {"instance", "class", "function"}:
            return a is b
        return None

    def plain(self, operands: list[Value], word: str, node: ast.AST, frame: Frame) -> Value:
        """A plain result of operands that are no data: uniform, unless one of them is not."""
        found = next((v for v in operands if self.depends(v).kind not in placements.EQUAL), None)
        if found is None:
            return SETTING
        parted = self.parting(found, node)
        if parted is not None and parted.certain:
            return divergence.differing(SETTING, parted)
        if parted is not None:  # why it is not known of what it is made of
            return value(Unknown(parted.origin.word, parted.origin.node))
        if self.depends(found).kind is not Kind.UNKNOWN:
            apart = (a for a in atoms(found) if atom_placement(a).kind not in placements.EQUAL)
            before = next((a.origin for a in apart if isinstance(a, Data | Differs)), None)
            return divergence.differing(SETTING, Parting(Origin(node, word, before), True))
        return self.opaque_result(operands, word, node, frame)

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        right = self.evaluate(node.right, frame)
        if self.each_sample:
            return self._for_each_sample(node, left, right, frame)
        carries = not all(self.of_this_turn(v, frame) for v in (node.left, node.right))
        return self.operate(node.op, left, right, node, frame, carries=carries)

    def _for_each_sample(self, node: ast.BinOp, left: Value, right: Value, frame: Frame) -> Value:
        """An operator in a turn for each sample: what was added up so far is added to and no more."""
        total = self.adding.get(node)
        if total is node.left:
            right = samples.added(right, node)
        elif total is node.right:
            left = samples.added(left, node)
        else:
            left, right = (samples.so_far(v, node) for v in (left, right))
        carries = total is not None and not self.of_this_turn(total, frame)
        return self.operate(node.op, left, right, node, frame, carries=carries)

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
        folded = arithmetic.folded(op, left, right)
        if folded is not None:
            return folded
        word = arithmetic.word_of(op)
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
        if data(left) or data(right):
            given = self.library.operator(self, word, [left, right], node, frame)
            if given is not None:
                return given
            return arithmetic.binary(word, left, right, node, carries=carries)
        for v, dunder in ((left, f"__{word}__"), (right, f"__r{word}__")):
            for made in self.instances_of(v):
                method = self.method_of(made, dunder)
                if method is not None:
                    other = right if v is left else left
                    return self.call(value(method), Arguments([other]), node, frame)
        given = self.library.operator(self, word, [left, right], node, frame)
        if given is not None:
            return given
        return self.plain([left, right], word, node, frame)

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
                return self.listed(known * times, node, frame)
            return self.listed([self.elements(held, node, frame)], node, frame, exact=False)
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
        return self.listed(both_of, node, frame, exact=False)

    # ------------------------------------------------------------ defined by later parts

    @abstractmethod
    def branch(self, arms: list[Callable[[], bool]], parted: object) -> bool:
        """Run alternatives and join what they leave."""

    @abstractmethod
    def location(self, node: ast.expr, frame: Frame) -> Location | None:
        """Where a name or an attribute of one object is stored."""

    @abstractmethod
    def refine(self, test: ast.expr, yes: bool, frame: Frame) -> None:
        """What a test says of the names in it."""


#: operators that change what was added up before
_SCALES = ("mul", "truediv", "floordiv", "mod", "pow")


def _shape(v: Value) -> bool:
    """Whether it is the shape of a tensor of rows, or of one that is the same on all ranks."""
    for atom in v:
        if isinstance(atom, Items):
            parts = [a for i in atom.items for a in i]
            if not all(isinstance(a, Setting | Const) or _is_size(a) for a in parts):
                return False
        elif not (isinstance(atom, Setting) or (_is_size(atom) and atom.kind == "shape")):
            return False
    return True


def _is_size(atom: Atom) -> TypeGuard[Data]:
    return isinstance(atom, Data) and _size(atom)


def _size(d: Data) -> bool:
    """Whether it is a number of samples, or a shape."""
    kind = d.placement.kind
    if d.kind not in ("number", "shape", "text"):
        return False
    if d.turn:
        return False  # it depends on the place of a sample
    return kind in (*placements.EQUAL, Kind.SIZE) or (d.kind == "shape" and not d.placement.ragged)


def _formatted(left: Value, parts: list[Value]) -> Value | None:
    """``"%s_%d" % ("run", 3)``, where all of it is known."""
    try:
        return const(only(left) % tuple(only(v) for v in parts))
    except (LookupError, TypeError, ValueError):
        return None


def _texts(v: Value) -> bool:
    return any(isinstance(known((a,)), str) for a in v)
