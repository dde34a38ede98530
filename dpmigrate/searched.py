"""The folders that a file puts on ``sys.path``, where their paths can be read: made of ``__file__``, literals and ``os.path``."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from dpmigrate.facts.names import last


def put_first(file: Path, tree: ast.Module) -> Iterator[Path]:
    """The folders that a file puts before all others on ``sys.path``: before its own."""
    yield from (folder for folder, first in _put(file, tree) if first)


def put_on_path(file: Path, tree: ast.Module) -> Iterator[Path]:
    """The folders that a file puts on ``sys.path``."""
    yield from (folder for folder, _ in _put(file, tree))


def _put(file: Path, tree: ast.Module) -> Iterator[tuple[Path, bool]]:
    """Each of them, and whether it comes before the others: by ``insert(0, folder)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "insert") and node.args:
            if ast.unparse(node.func.value) == "sys.path":
                found = _path(file, tree, node.args[-1], 8)
                if found is not None:
                    place = node.args[0]
                    first = node.func.attr == "insert" and isinstance(place, ast.Constant) and place.value == 0
                    yield Path(os.path.normpath(found)), first


def _path(file: Path, tree: ast.Module, node: ast.expr, depth: int) -> Path | None:
    """The folder that an expression names, where it is made of ``__file__``, literals and ``os.path``."""
    here = file.parent
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return here / node.value
    if isinstance(node, ast.Name) and depth:
        if node.id == "__file__":
            return file
        bound = [s.value for s in tree.body if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in s.targets)]
        return _path(file, tree, bound[-1], depth - 1) if bound else None
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        inner = _path(file, tree, node.value, depth)
        return inner.parent if inner is not None else None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "parents":  # Path(__file__).parents[1]
        inner, up = _path(file, tree, node.value.value, depth), node.slice
        above = list(Path(os.path.normpath(inner)).parents) if inner is not None else []
        return above[up.value] if isinstance(up, ast.Constant) and isinstance(up.value, int) and 0 <= up.value < len(above) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add) and isinstance(node.right, ast.Constant) and isinstance(node.right.value, str):
        inner = _path(file, tree, node.left, depth)
        return inner / node.right.value.lstrip("/") if inner is not None else None
    if isinstance(node, ast.Call):
        return _called(file, tree, node, depth)
    return None


def _called(file: Path, tree: ast.Module, node: ast.Call, depth: int) -> Path | None:
    name = last(node.func)
    if not node.args:  # Path(__file__).resolve()
        inner = _path(file, tree, node.func.value, depth) if isinstance(node.func, ast.Attribute) and name in ("resolve", "absolute", "as_posix") else None
        return inner if inner is not None else Path.cwd() if name in ("getcwd", "cwd") else None
    first = _path(file, tree, node.args[0], depth)
    if first is None:
        return None
    if name == "dirname":
        return first.parent
    if name in ("abspath", "realpath", "normpath", "str", "Path", "expanduser", "fspath"):
        return first
    up = (".." if ast.unparse(a) == "os.pardir" else a.value if isinstance(a, ast.Constant) else None for a in node.args[1:])
    words = [word for word in up if isinstance(word, str)]
    if name == "join" and len(words) == len(node.args) - 1:
        return first.joinpath(*words)
    return None
