"""The nodes of a syntax tree that mean something by themselves: names, calls, statements.

``ast.walk`` comes by every context (``Load``) and operator too, which are half of a tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: fields that hold no nodes, or only such as say how another one is meant
_PLAIN = frozenset((
    "arg", "asname", "attr", "conversion", "ctx", "id", "kind", "level", "module", "op", "ops", "type_comment",
))  # fmt: skip
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below one, without contexts and operators."""
    kind = type(node)
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = tuple(f for f in kind._fields if f not in _PLAIN and kind is not ast.Constant)
    found: list[ast.AST] = []
    for field in fields:
        held = getattr(node, field, None)
        if isinstance(held, list):
            found += [n for n in held if isinstance(n, ast.AST)]
        elif isinstance(held, ast.AST):
            found.append(held)
    return found


def below(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in no particular order."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)
