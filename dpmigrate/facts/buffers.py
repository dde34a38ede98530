"""Which buffers of a model are given something of the batch: queues, running statistics, counters of samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.unused import own_classes
from dpmigrate.facts.values import Vals


@dataclass(frozen=True, eq=False, slots=True)
class Update:
    """A statement in a method that writes samples, or their number, into a buffer."""

    node: ast.stmt
    name: str


def updates(roles: Roles, models: Vals) -> list[Update]:
    """The first such statement for each buffer of the models' classes."""
    found: dict[tuple[ast.ClassDef, str], Update] = {}
    for cls in own_classes(roles, models):
        family = roles.values.defs.bases(cls)
        names = {name for c in family for name in _registered(c)}
        for stmt in sorted((n for c in family for n in ast.walk(c) if isinstance(n, ast.stmt)), key=position):
            function = roles.names.function(stmt)
            if not isinstance(function, FunctionNode) or "init" in function.name:
                continue
            for name, value in _written(stmt):
                if name in names and of_batch(roles, value):
                    found.setdefault((cls, name), Update(stmt, name))
    return sorted({u.node: u for u in found.values()}.values(), key=lambda u: position(u.node))


def _registered(cls: ast.ClassDef) -> Iterator[str]:
    for n in ast.walk(cls):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "register_buffer":
            first = next((k.value for k in n.keywords if k.arg == "name"), n.args[0] if n.args else None)
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _written(stmt: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The attributes of self that the statement writes, wholly or in part, with what it gives them."""
    if isinstance(stmt, ast.Assign | ast.AugAssign):
        for target in stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]:
            name = _attribute(target)
            if name:
                yield name, stmt.value
    elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
        node: ast.expr = stmt.value
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # self.mean.mul_(0.9).add_(x, alpha=0.1)
            name = _attribute(node.func.value)
            if node.func.attr.endswith("_") and not node.func.attr.endswith("__"):
                root = node.func.value
                while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
                    root = root.func.value
                name = name or _attribute(root)
                for value in (*node.args, *(k.value for k in node.keywords)):
                    if name:
                        yield name, value
            node = node.func.value


def _attribute(node: ast.expr) -> str:
    """``queue`` for ``self.queue``, ``self.queue[:, i]`` and ``self.queue.data``."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else ""
