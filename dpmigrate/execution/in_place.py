"""What a function writes into the tensors and arrays that it is given, the caller has as well."""

from __future__ import annotations

import ast

from dpmigrate.execution.attributes import FunctionParts
from dpmigrate.execution.frames import FrameParts
from dpmigrate.execution.heap import Object
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.values import Data, Value, data


class InPlaceParts(FrameParts):
    """Writes in place: ``x.add_(y)``, ``x[i] = y``, ``x += y``.

    A tensor is a value here and no object. So a write in place gives the variable another value,
    and where that is a parameter the caller's variable, too. Other names of the same tensor keep
    the old value.
    """

    def write_in_place(
        self, target: ast.expr, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        """Give a variable the value that its tensor has after a write."""
        self.assign(target, new, node, frame)
        function = frame.function
        if isinstance(target, ast.Name) and function is not None:
            if target.id in function.extra.names.unbound:
                self.heap.write((function.number, _written(target.id)), new)

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
