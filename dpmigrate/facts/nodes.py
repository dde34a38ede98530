"""Nodes of an ``ast``, in the order of the standard library's functions and faster: the facts ask for them millions of times."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def children(node: ast.AST) -> list[ast.AST]:
    """What ``ast.iter_child_nodes`` gives: the node's direct children, in the order of its fields."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [v for v in value if isinstance(v, ast.AST)]
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """What ``ast.walk`` gives: the node and everything below it, level by level.

    The children of a node are looked up before it is yielded, as there.
    """
    todo = [node]
    for node in todo:  # the list grows while it is read
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                todo += [v for v in value if isinstance(v, ast.AST)]
        yield node


def either(node: ast.expr) -> list[ast.expr]:
    """The expressions of which an expression gives one itself: ``a`` and ``b`` of ``(a if test else b)``."""
    if isinstance(node, ast.IfExp):
        return [*either(node.body), *either(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [e for value in node.values for e in either(value)]
    return [node]
