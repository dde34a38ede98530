"""One module that a program imports in two ways, of which one fails.

``try: from package.blocks import Block`` with ``from blocks import Block`` where that fails is written for
two folders to start in: both mean one file, and the program on paper starts in one of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

#: exceptions of an import that fails, and those that catch them all
_FAILING = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


class Way(NamedTuple):
    """An import of a module, or of names from it."""

    words: tuple[str, ...]
    #: what is bound by which name
    names: tuple[tuple[str, str], ...]
    #: as the statement writes it
    dotted: str


def found(node: ast.Try | ast.TryStar, path_of: Callable[[str], tuple[str, ...]]) -> bool | None:
    """Whether a ``try`` that imports the same of one file in two ways goes through its body (True)
    or its handler (False); None where it is no such ``try``, or both or none of them may be.

    ``path_of`` gives the folders and the name of the file of the program that a dotted name means,
    nothing where it is none.
    """
    if len(node.handlers) != 1 or node.orelse or node.finalbody:
        return None
    handler = node.handlers[0]
    if handler.type is not None and not all(_catches(t) for t in _types(handler.type)):
        return None
    first, second = (list(_ways(b)) for b in (node.body, handler.body))
    if not first or len(first) != len(second):
        return None
    sides = set[bool | None]()
    for a, b in zip(first, second, strict=True):
        sides.add(_side(a, b, path_of) if a is not None and b is not None else None)
    return sides.pop() if len(sides) == 1 else None


def _side(a: Way, b: Way, path_of: Callable[[str], tuple[str, ...]]) -> bool | None:
    """Which of two imports finds the file that both mean."""
    paths = path_of(a.dotted), path_of(b.dotted)
    if a.names != b.names or bool(paths[0]) == bool(paths[1]):
        return None
    path = paths[0] or paths[1]
    same = all(w.words == path[-len(w.words) :] for w in (a, b))
    return bool(paths[0]) if same else None


def _types(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _catches(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in _FAILING


def _ways(body: list[ast.stmt]) -> Iterator[Way | None]:
    """The imports of a block one by one, None for any other statement."""
    for stmt in body:
        if isinstance(stmt, ast.ImportFrom) and stmt.module:
            names = tuple((a.name, a.asname or a.name) for a in stmt.names)
            words = tuple(stmt.module.split("."))
            yield Way(words, names, "." * stmt.level + stmt.module)
        elif isinstance(stmt, ast.Import):
            for a in stmt.names:
                yield Way(tuple(a.name.split(".")), (("", a.asname or a.name),), a.name)
        else:
            yield None
