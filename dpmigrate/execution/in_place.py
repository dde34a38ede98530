"""What a function writes into the tensors and arrays that it is given, the caller has as well."""

from __future__ import annotations

import ast

from dpmigrate.execution import placements
from dpmigrate.execution.attributes import FunctionParts
from dpmigrate.execution.frames import FrameParts
from dpmigrate.execution.heap import Location, Object
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NOTHING,
    Const,
    Data,
    Origin,
    Value,
    data,
    join,
    placement_of,
    value,
)


class InPlaceParts(FrameParts):
    """Writes in place: ``x.add_(y)``, ``x[i] = y``, ``x += y``.

    A tensor is a value here and no object. So a write in place gives the variable another value,
    and where that is a parameter the caller's variable, too; places that were given the tensor, or
    a part of it, by an assignment may have what is written.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: places that have held a tensor of another place
        self._aliased: set[Location] = set()

    def write_in_place(
        self, target: ast.expr, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        """Give a variable the value that its tensor has after a write."""
        target, whole = self._written_to(target, frame)
        if not whole:
            held = self.evaluate(target, frame)
            if not holds_elements(held):
                return
            new = _partly(held, new)
        self.assign(target, new, node, frame)
        at = self._place_of(target, frame)
        for other in self._same_as(at) if at is not None else ():
            held = self.heap.read(other) or NOTHING
            if data(held):
                self.heap.write(other, join(held, _partly(held, new)))
        function = frame.function
        if isinstance(target, ast.Name) and function is not None:
            if target.id in function.extra.names.unbound:
                self.heap.write((function.number, _written(target.id)), new)

    def same_tensor(self, target: ast.expr, source: ast.expr, new: Value, frame: Frame) -> None:
        """After an assignment: the target holds the tensor of another place, or none of those that
        it has held.
        """
        to = self._place_of(target, frame)
        if to is None:
            return
        if to in self._aliased:
            for other in self._same_as(to):
                rest = tuple(a for a in self._same(other) if a != _place(to))
                self.heap.write((PROCESS, (_SAME, *other)), rest or None)
            self.heap.write((PROCESS, (_SAME, *to)), None)
        if not holds_elements(new):
            return
        given = self._written_to(source, frame)[0]
        at = self._place_of(given, frame)
        if at is None or at == to:
            return
        group = [at, *self._same_as(at)]
        self._aliased.update((to, *group))
        for other in group:
            self.heap.write((PROCESS, (_SAME, *other)), join(self._same(other), value(_place(to))))
        self.heap.write((PROCESS, (_SAME, *to)), value(*map(_place, group)))

    def _same(self, at: Location) -> Value:
        return self.bound(self.heap.read((PROCESS, (_SAME, *at))) or NOTHING)

    def _same_as(self, at: Location) -> list[Location]:
        """The places that may hold the same tensor."""
        if at not in self._aliased:
            return []
        return [a.value for a in self._same(at) if isinstance(a, Const)]

    def _written_to(self, target: ast.expr, frame: Frame) -> tuple[ast.expr, bool]:
        """What holds the tensor that an expression is a part or a view of, and whether it is all
        of it.
        """
        whole = True
        while True:
            match target:
                case ast.Attribute(attr="data" | "T" | "mT"):
                    inner = target.value
                case ast.Call(func=ast.Attribute(attr=name) as view) if name in _VIEWS:
                    inner = view.value
                case ast.Call(args=[first, *_], func=ast.Attribute(attr="from_numpy" | "asarray" | "as_tensor")):
                    inner = first
                case ast.Subscript() if data(self.evaluate(target.value, frame)):
                    inner = target.value
                case _:
                    return target, whole
            target, whole = inner, False

    def _place_of(self, node: ast.expr, frame: Frame) -> Location | None:
        """Where a tensor is held: a name, an attribute, an item under a constant."""
        if isinstance(node, ast.Subscript):
            owners = self.objects(self.evaluate(node.value, frame))
            key = self.constant(self.evaluate(node.slice, frame))
            if len(owners) != 1 or key is None or owners[0].kind not in ("list", "dict"):
                return None
            index = key.value if owners[0].kind == "list" else key
            return (owners[0].number, index)
        if isinstance(node, ast.Attribute):
            owners = self.objects(self.evaluate(node.value, frame))
            return (owners[0].number, node.attr) if len(owners) == 1 else None
        return self.place(node.id, frame) if isinstance(node, ast.Name) else None

    def forget_written(self, function: Object) -> None:
        """Before a call nothing is written into what it is given."""
        for name in function.extra.names.unbound:
            at = (function.number, _written(name))
            if self.heap.read(at) is not None:
                self.heap.write(at, None)

    def hand_back(
        self, function: Object, *, bound: bool, node: ast.AST, frame: Frame
    ) -> None:
        """After a call: what it has written into its parameters stands in the caller's variables;
        ``bound`` where the first parameter is the receiver of a method.
        """
        if not isinstance(node, ast.Call) or _last(node.func) != function.name:
            return  # a function that is called by another one
        parts: FunctionParts = function.extra
        names = [a.arg for a in (*parts.node.args.posonlyargs, *parts.node.args.args)]
        given = dict(zip(names[bound:], node.args, strict=False))
        given |= {k.arg: k.value for k in node.keywords if k.arg is not None}
        for name, argument in given.items():
            new = self.heap.read((function.number, _written(name)))
            if new and isinstance(argument, ast.Name | ast.Attribute | ast.Subscript):
                self.write_in_place(argument, new, node, frame)


#: methods that give the same elements, or some of them
_VIEWS = (
    "view", "view_as", "reshape", "detach", "numpy", "squeeze", "unsqueeze", "flatten", "t",
    "transpose", "permute", "narrow", "select", "expand", "ravel", "to", "cpu", "contiguous",
    "diagonal", "requires_grad_",
)  # fmt: skip
#: the fields of the process that say which places hold the same tensor
_SAME = "same tensor"


def _place(at: Location) -> Const:
    return Const("place", at)


def _partly(held: Value, new: Value) -> Value:
    """What a tensor is of which a part is written."""
    written = placement_of(new)
    return tuple(
        a._replace(placement=joined_in(a.placement, written), origin=_since(a, new))
        if isinstance(a, Data)
        else a
        for a in held
    )


def joined_in(held: Placement, written: Placement) -> Placement:
    """How a tensor lies of which a part lies otherwise."""
    both = placements.join(held, written)
    return both if both.kind is not Kind.UNKNOWN or Kind.UNKNOWN in (held.kind, written.kind) else placements.PER_RANK


def _since(a: Data, new: Value) -> Origin | None:
    return next((d.origin for d in data(new) if d.origin is not None), a.origin)


def holds_elements(v: Value) -> bool:
    """Whether ``v += …`` writes into a tensor or an array, and binds no other number."""
    found = data(v)
    return bool(found) and all(_has_elements(d) for d in found)


def _has_elements(d: Data) -> bool:
    return d.kind not in ("number", "text", "shape") and d.axes != 0


def _written(name: str) -> str:
    return f"#written {name}"


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
