"""What a function writes into the tensors and arrays that it is given, the caller has as well."""

from __future__ import annotations

import ast

from dpmigrate.execution import placements
from dpmigrate.execution.classes import FunctionParts
from dpmigrate.execution.frames import FrameParts
from dpmigrate.execution.identity import (
    VIEWED,
    VIEWS,
    another,
    has_elements,
    is_held,
    places_of,
    the_same,
    written,
)
from dpmigrate.execution.joins import gradient_join, join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Location, Object
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import NOTHING, Const, Data, Origin, Setting, Value, data, placement_of


class InPlaceParts(FrameParts):
    """Writes in place: ``x.add_(y)``, ``x[i] = y``, ``x += y``.

    A tensor is a value here and no object. So a write in place gives the variable another value,
    and where that is a parameter the caller's variable, too; other places that hold the tensor, or
    a part of it (``identity``), may have what is written.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: the parameters that each function has been seen to write into
        self._writing: dict[int, dict[str, None]] = {}

    def write_in_place(
        self, target: ast.expr, new: Value, node: ast.AST, frame: Frame, held: Value | None = None
    ) -> None:
        """Give a variable the value that its tensor has after a write; ``held`` is what the target
        was before, where it is not to be evaluated again.
        """
        stretched = _resized(target) or _resized(node)
        target, whole, replaced = self._written_to(target, frame)
        plain = isinstance(target, ast.Name | ast.Attribute | ast.Subscript)
        before = held or NOTHING
        if plain and (held is None or not whole or replaced):
            before = self.evaluate(target, frame)
        same = places_of(before) | places_of(held or NOTHING)
        if plain:
            if not whole:
                if not holds_elements(before):
                    return
                new = _partly(before, new)
            elif replaced:
                new = _replaced(before, _of_own_size(new, node) if stretched else new)
            self.assign(target, the_same(another(new), same), node, frame)
        self._written_elsewhere(same, self._place_of(target, frame) if plain else None, new)
        function = frame.function
        if isinstance(target, ast.Name) and function is not None:
            if target.id in function.extra.names.unbound:
                self._writing.setdefault(function.number, {})[target.id] = None
                self.heap.write((function.number, _written(target.id)), new)

    def replace_elements(
        self, target: ast.expr, owner: Value, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        """``x.data = y``: the same tensor with other elements; its gradient goes where it went before."""
        if holds_elements(owner):
            self.write_in_place(target, _replaced(owner, new), node, frame, owner)

    def _written_elsewhere(
        self, same: frozenset[int], at: Location | None, new: Value
    ) -> None:
        """What is written into a tensor, all other places that hold it may have."""
        places = dict.fromkeys(p for tensor in sorted(same) for p in self.heap.holders(tensor))
        for other in places:
            held = self.heap.read(other)
            if other != at and held and same & is_held(held):
                more = written(held, same, lambda v: join(v, _partly(v, new)))
                if more != held:
                    self.heap.write(other, more)

    def _written_to(self, target: ast.expr, frame: Frame) -> tuple[ast.expr, bool, bool]:
        """What holds the tensor that an expression is a part or a view of, whether it is all of it, and whether its elements are
        written past its gradient (``x.data``). Methods that write in place give the tensor itself.
        """
        whole, replaced = True, False
        while True:
            match target:
                case ast.Attribute(attr="data"):
                    target, replaced = target.value, True
                    continue
                case ast.Call(func=ast.Attribute() as method) if self._in_place(method, frame):
                    target = method.value
                    continue
                case ast.Attribute(attr=name) if name in VIEWED:
                    inner = target.value
                case ast.Call(func=ast.Attribute(attr=name) as view) if name in VIEWS:
                    inner = view.value
                case ast.Call(args=[first, *_], func=ast.Attribute(attr="from_numpy" | "asarray" | "as_tensor")):
                    inner = first
                case ast.Subscript() if data(self.evaluate(target.value, frame)):
                    inner = target.value
                case _:
                    return target, whole, replaced
            target, whole = inner, False

    def _in_place(self, method: ast.Attribute, frame: Frame) -> bool:
        """Whether it is a method that writes into its tensor and gives it, and no function of a module (``nn.init.zeros_``)."""
        while isinstance(method.value, ast.Call) and isinstance(method.value.func, ast.Attribute):
            if not _writes(method):
                return False
            method = method.value.func
        return _writes(method) and bool(data(self.evaluate(method.value, frame)))

    def _place_of(self, node: ast.expr, frame: Frame) -> Location | None:
        """Where a tensor is held: a name, an attribute, an item under a constant."""
        if isinstance(node, ast.Subscript):
            owners = self.objects(self.evaluate(node.value, frame))
            key = self.constant(self.evaluate(node.slice, frame))
            if len(owners) != 1 or key is None or owners[0].kind not in ("list", "dict"):
                return None
            index: object = key
            if owners[0].kind == "list" and isinstance(key.value, int):
                index = key.value + (self.length(owners[0]) or 0 if key.value < 0 else 0)
            return (owners[0].number, index)
        if isinstance(node, ast.Attribute):
            owners = self.objects(self.evaluate(node.value, frame))
            return (owners[0].number, node.attr) if len(owners) == 1 else None
        return self.place(node.id, frame) if isinstance(node, ast.Name) else None

    def forget_written(self, function: Object) -> None:
        """Before a call nothing is written into what it is given.

        It is the caller that forgets, and it does so whatever is there: a call that had read what the one before
        it has written could never be taken for the same call again.
        """
        for name in self._writing.get(function.number, ()):
            self.heap.write((function.number, _written(name)), None)

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


def _writes(method: ast.Attribute) -> bool:
    """Whether a method has the name of those that write in place: ``add_``."""
    return method.attr.endswith("_") and not method.attr.startswith("_")


def _resized(node: ast.AST) -> bool:
    """Whether a tensor is given another size on the way: ``x.data.resize_(n)``, ``x.data.resize_as_(y).copy_(y)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr.startswith("resize"):
            return True
        node = node.func.value
    return False


def _of_own_size(v: Value, node: ast.AST) -> Value:
    """What is written past a gradient into a tensor of another size: the tensor itself has the size that it had (since PyTorch 0.4)."""
    word = "x.data.resize_() leaves x as long as it was"
    return tuple(a._replace(placement=placements.UNKNOWN, origin=Origin(node, word)) if isinstance(a, Data) else a for a in v)


def _partly(held: Value, new: Value) -> Value:
    """What a tensor is of which a part is written: it is made of what is written as well, and a gradient goes there."""
    written, given = placement_of(new), data(new)
    return tuple(_with_part(a, written, given) if isinstance(a, Data) else a for a in held)


def _with_part(a: Data, written: Placement, given: list[Data]) -> Data:
    return a._replace(
        placement=joined_in(a.placement, written),
        origin=next((d.origin for d in given if d.origin is not None), a.origin),
        gradient=gradient_join(a.gradient, *(d.gradient for d in given)),
        sources=a.sources.union(*(d.sources for d in given)),
        reached=a.reached.union(*(d.reached for d in given)),
        marks=a.marks.union(*(d.marks for d in given)),
        bent=a.bent.union(*(d.bent for d in given)),
    )


def _replaced(held: Value, new: Value) -> Value:
    """What a tensor is whose elements have been replaced by those of another one."""
    found = data(new)
    if not found:
        return held if all(isinstance(a, Const | Setting) for a in new) else new
    return tuple(
        d._replace(kind=a.kind, gradient=a.gradient, reached=a.reached) for a in data(held) for d in found
    )


def joined_in(held: Placement, written: Placement) -> Placement:
    """How a tensor lies of which a part lies otherwise."""
    both = placements.join(held, written)
    return both if both.kind is not Kind.UNKNOWN or Kind.UNKNOWN in (held.kind, written.kind) else placements.PER_RANK


def holds_elements(v: Value) -> bool:
    """Whether ``v += …`` writes into a tensor or an array, and binds no other number."""
    found = data(v)
    return bool(found) and all(has_elements(d) for d in found)


def _written(name: str) -> str:
    return f"#written {name}"


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
