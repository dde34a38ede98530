"""Expressions that ask a tensor for the size of an axis."""

from __future__ import annotations

import ast


def counted(node: ast.AST) -> ast.expr | None:
    """The tensor whose first axis is asked for its size: ``x.size(0)``, ``x.shape[0]``, ``x.size()[0]``; the batch of graphs of ``data.num_graphs``
    (torch_geometric.data.Batch).
    """
    if isinstance(node, ast.Attribute):
        return node.value if node.attr == "num_graphs" else None
    tensor, axis = axis_asked(node)
    return tensor if isinstance(axis, ast.Constant) and axis.value == 0 else None


def axis_asked(node: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    """The tensor that is asked for the size of an axis, and the axis: ``x.size(1)``, ``x.shape[1]``, ``x.size()[1]``."""
    if isinstance(node, ast.Call):
        func, index = node.func, node.args[0] if len(node.args) == 1 else next((k.value for k in node.keywords if k.arg == "dim"), None)
    elif isinstance(node, ast.Subscript):
        func, index = node.value.func if isinstance(node.value, ast.Call) and not node.value.args else node.value, node.slice
    else:
        return None, None
    asked = isinstance(func, ast.Attribute) and func.attr in (("size",) if isinstance(node, ast.Call) or isinstance(node.value, ast.Call) else ("shape",))
    return (func.value, index) if asked and isinstance(func, ast.Attribute) else (None, None)
