"""Comparisons, and what an operator gives of what is no data."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any, TypeGuard

from dpmigrate.execution import arithmetic, derivation, divergence, folding, masking, placements, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.literals import LiteralParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import KEYS, UNSEEN, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    SOME_TURNS,
    UNBOUND,
    Atom,
    Const,
    Data,
    Differs,
    Foreign,
    Items,
    Method,
    Origin,
    Setting,
    Unknown,
    Value,
    atom_placement,
    atoms,
    const,
    data,
    known,
    only,
    placement_of,
    value,
)

_COMPARED = {
    ast.Eq: ("__eq__",), ast.NotEq: ("__ne__", "__eq__"), ast.Lt: ("__lt__",),
    ast.LtE: ("__le__",), ast.Gt: ("__gt__",), ast.GtE: ("__ge__",),
    ast.In: ("__contains__",), ast.NotIn: ("__contains__",),
}  # fmt: skip


#: what may do more than give a value
_EFFECTS = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


class ComparisonParts(LiteralParts):
    """``a < b``, ``a in b``, ``a is None``."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: the comparisons of chains
        self._pairs: dict[ast.Compare, list[ast.Compare]] = {}

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        if any(isinstance(n, _EFFECTS) for c in node.comparators[1:] for n in ast.walk(c)):
            return self._chained(node, 0, left, frame)
        rights = [self.evaluate(c, frame) for c in node.comparators]
        return self._compared(node, left, rights, frame)

    def _chained(self, node: ast.Compare, index: int, left: Value, frame: Frame) -> Value:
        """``a < b < f(c)``: what is behind a comparison is evaluated where that is true."""
        right = self.evaluate(node.comparators[index], frame)
        first = self._compared(self._pair(node, index), left, [right], frame)
        if index == len(node.ops) - 1:
            return first
        test = self.condition(first, node, frame)
        truth = self.truth(test) if test else False
        if truth is not None:
            return self._chained(node, index + 1, right, frame) if truth else first
        parted, rest = self.parting(test, node), NOTHING

        def further() -> bool:
            nonlocal rest
            rest = self._chained(node, index + 1, right, frame)
            return bool(rest)

        self.branch([lambda: True, further], parted)
        out = join(first, rest)
        return divergence.differing(out, parted) if parted is not None else out

    def _pair(self, node: ast.Compare, index: int) -> ast.Compare:
        """One of the comparisons of a chain, always the same node."""
        if node not in self._pairs:
            pairs = zip(node.ops, node.comparators, strict=True)
            each = [ast.Compare(node.left, [op], [right]) for op, right in pairs]
            self._pairs[node] = [ast.copy_location(one, node) for one in each]
        return self._pairs[node][index]

    def _compared(
        self, node: ast.Compare, left: Value, rights: list[Value], frame: Frame
    ) -> Value:
        if len(rights) == 1:
            answer = self._comparison(node.ops[0], left, rights[0], node, frame)
            if answer is not None:
                return answer
        operands = [left, *rights]
        if all(map(_shape, operands)):
            return SETTING  # ranks have batches of one size
        if len(rights) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq) and _as_many(*operands):
            return SETTING  # whatever that number is
        hidden = [v for v in operands if not data(v) and self._hides(v)]
        if any(data(v) for v in operands) and not hidden:
            if all(_size(d) for v in operands for d in data(v)):
                self._asked_size(node, operands, frame)
                return SETTING
            found = arithmetic.elementwise("comparison", operands, node)
            return masking.by_operator(found, node.ops[0], operands) if len(rights) == 1 else found
        return self._of_turn(operands, node) or self.plain(operands, "comparison", node, frame)

    def _asked_size(self, node: ast.Compare, operands: list[Value], frame: Frame) -> None:
        """Record that a number of samples is compared with a number that does not go with it: ``len(x) > 4``."""
        sizes = [v for v in operands if any(d.placement.kind is Kind.SIZE for d in data(v))]
        others = [a for v in operands if v not in sizes for a in v]
        plain = all(isinstance(a, Setting) or (isinstance(a, Const) and _is_positive(a.value)) for a in others)
        if sizes and others and plain:
            self.event(SIZE_ASKED, node, frame, sizes=join(*sizes))

    def _of_turn(self, operands: list[Value], node: ast.AST) -> Value:
        """The answer that a turn's own samples give, also those that lists hold; nothing where the
        operands hold anything else that is not the same on all ranks.
        """
        held = [h for v in operands for h in self.held_in(v)]
        differ = [a for v in held for a in v if atom_placement(a).kind not in placements.EQUAL]
        if not differ or not samples.of_turn(tuple(differ)):
            return NOTHING
        return derivation.derived(
            "comparison", placements.TERM, held, node, kind="mask", gradient="none", axes=0
        )

    def _comparison(
        self, op: ast.cmpop, left: Value, right: Value, node: ast.AST, frame: Frame
    ) -> Value | None:
        known = folding.compared(op, left, right)
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
        classes = self.of_class(node, op, left, right)
        if classes is not None:
            return const(classes)
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
                keys = [self._keys_of(a, left, node, frame) for a in right]
                return self.plain([left, *keys], "comparison", node, frame)
            found = self.contains(right, left, node, frame)
            if found is not None:
                return found if isinstance(op, ast.In) else self.plain([found], "not", node, frame)
        holder, other = (right, left) if isinstance(op, ast.In | ast.NotIn) else (left, right)
        for word in _COMPARED.get(type(op), ()):
            answer = self.own_operator(holder, word, [other], node, frame)
            if answer is not None:
                kept = isinstance(op, ast.Eq | ast.Lt | ast.Gt | ast.LtE | ast.GtE | ast.In)
                return (
                    answer if kept or word == "__ne__" else self.plain([answer], word, node, frame)
                )
        return None

    def of_class(self, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> bool | None:
        """The answer to ``type(x) == tuple``, ``type(x) in (list, tuple)``; None where it is not known.

        Only here is the left side known to be a class by its own name: others have several names.
        """
        asked = node.left if isinstance(node, ast.Compare) else None
        if not (isinstance(asked, ast.Call) and isinstance(asked.func, ast.Name) and asked.func.id == "type" and len(asked.args) == 1):
            return None
        among = isinstance(op, ast.In | ast.NotIn)
        listed = right[0].items if among and len(right) == 1 and isinstance(right[0], Items) else (right,)
        if (among and listed == (right,)) or len(left) != 1 or not isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            return None
        found = {_class_is(left[0], v[0]) if len(v) == 1 else None for v in listed}
        if True not in found and None in found:
            return None
        return (True in found) == isinstance(op, ast.Is | ast.Eq | ast.In)

    @abstractmethod
    def contains(self, holder: Value, wanted: Value, node: ast.AST, frame: Frame) -> Value | None:
        """``wanted in generator``."""

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

    def _keys_of(self, atom: Atom, key: Value, node: ast.AST, frame: Frame) -> Value:
        """What decides whether a key is there."""
        made = self.object(atom)
        if made is None or made.kind == "namespace":
            return SETTING
        one = key[0] if len(key) == 1 and isinstance(key[0], Const) else None
        held = self.heap.read((made.number, one)) if one is not None else None
        why = divergence.presence(held) if held else None
        keys = self.heap.read((made.number, KEYS)) or NOTHING
        if one is None:
            why = self.keys_apart(made)
        elif held and UNBOUND not in held:
            return SETTING
        elif why is None:
            why = divergence.presence(keys) or self.parting(self.bound(keys), node)
        return divergence.differing(SETTING, why) if why is not None else SETTING

    def _hides(self, v: Value) -> bool:
        """Whether an object of a value holds what differs between ranks."""
        equal = placements.EQUAL
        return placement_of(v).kind in equal and self.depends(v).kind not in equal

    def _maybe_none(self, atom: Atom) -> bool:
        """Whether an atom of which nothing else is known may be None."""
        made = self.object(atom)
        if made is not None:
            return made.kind in UNSEEN
        if isinstance(atom, Setting):
            return not atom.truth
        return isinstance(atom, Unknown | Method) or getattr(atom, "kind", "") == "any"

    def own_operator(
        self, v: Value, name: str, given: list[Value], node: ast.AST, frame: Frame
    ) -> Value | None:
        """What a special method of the program's classes gives; None where there is none. Of
        several objects each one's own method is called, as it differs which one it is.
        """
        methods = [m for o in self.instances_of(v) if (m := self.method_of(o, name)) is not None]
        if not methods:
            return None
        apart = [a for a in v if isinstance(a, Differs)]
        out = self.call((*methods, *apart), Arguments(given), node, frame)
        if len(methods) < len(v) - len(apart):  # others have another answer
            out = join(out, SETTING)
            why = self.parting(tuple(apart), node)
            out = divergence.differing(out, why) if why is not None else out
        return out

    def condition(self, v: Value, node: ast.AST, frame: Frame) -> Value:
        """What decides whether a value is true: of the program's objects what ``__bool__`` or
        ``__len__`` gives.
        """
        for name in ("__bool__", "__len__"):
            asked = [o for o in self.instances_of(v) if self._asked(o) == name]
            if asked:
                rest = tuple(a for a in v if self.object(a) not in asked)
                methods = [self.method_of(o, name) for o in asked]
                apart = [a for a in v if isinstance(a, Differs)]
                callee = tuple(m for m in methods if m is not None)
                v = join(self.call((*callee, *apart), Arguments(), node, frame), rest)
        return v

    def _asked(self, made: Object) -> str | None:
        """The special method that says whether an object of the program is true."""
        names = ("__bool__", "__len__")
        return next((n for n in names if self.method_of(made, n) is not None), None)

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
        parted, whose = self.parting(found, node), self.whose(operands)
        if whose and self.each_sample:  # whatever else there is of the turn's own
            known = all(self.depends(v).kind is not Kind.UNKNOWN for v in operands)
            return divergence.differing(SETTING, Parting(Origin(node, SOME_TURNS), known, whose=whose))
        if parted is not None and parted.certain:
            return divergence.differing(SETTING, parted)
        if parted is not None:  # why it is not known of what it is made of
            return value(Unknown(parted.origin.word, parted.origin.node, whose=whose))
        if self.depends(found).kind is not Kind.UNKNOWN:
            apart = (a for a in atoms(found) if atom_placement(a).kind not in placements.EQUAL)
            before = next((a.origin for a in apart if isinstance(a, Data | Differs)), None)
            return divergence.differing(SETTING, Parting(Origin(node, word, before), True, whose=whose))
        return self.opaque_result(operands, word, node, frame)


#: the event of a number of samples that is compared with a number of the program
SIZE_ASKED = "size compared"


def _is_positive(number: object) -> bool:
    """Whether it is a number above 0: there are samples on every rank."""
    return isinstance(number, int | float) and number > 0


#: Python's own classes
_CLASSES = tuple(f"builtins.{n}" for n in ("tuple", "list", "dict", "set", "str", "int", "float", "bool", "bytes"))


def _class_is(own: Atom, wanted: Atom) -> bool | None:
    """Whether a class is one of Python's own; None where that is not known."""
    if not isinstance(wanted, Foreign) or wanted.name not in _CLASSES:
        return None
    return own == wanted if isinstance(own, Foreign) and "*" not in own.name else None


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
    if d.turn or d.placement == placements.PADDED:
        return False  # it depends on the place of a sample, or on the longest that a rank has
    return kind in (*placements.EQUAL, Kind.SIZE) or (d.kind == "shape" and not d.placement.ragged)


def _as_many(left: Value, right: Value) -> bool:
    """Whether two shapes, or two numbers of samples, have their samples of the same batch of the
    turn under way, so that they have equally many. The ranks' batches need not have one size.
    """
    if len(left) != 1 or len(right) != 1:
        return False
    a, b = left[0], right[0]
    if isinstance(a, Items) and isinstance(b, Items):
        return len(a.items) == len(b.items) and all(map(_as_many, a.items, b.items))
    if isinstance(a, Data) and isinstance(b, Data):
        one = a.turn and b.turn and a.sources == b.sources and a.kind == b.kind
        return one and _size_of_turn(a) and a.placement == b.placement
    return isinstance(a, Const | Setting) and isinstance(b, Const | Setting)


def _size_of_turn(d: Data) -> bool:
    """Whether it is the number of samples of a batch, or a shape."""
    wanted = {"number": Kind.SIZE, "shape": Kind.ROWS}.get(d.kind)
    return d.placement.kind is wanted and not d.placement.ragged
