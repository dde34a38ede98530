"""Imports whose module is computed when the program runs: ``importlib.import_module(f"models.{name}")`` means the modules of the folder ``models``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk

#: part of a module's name that only the program knows
_ANY = r"\w+"
_DEPTH = 6
#: letters that say enough of a name's first word: ``model_…``
_BEGINNING = 3


def imports_by_name(tree: ast.Module) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    """The calls that import a module by a computed name, each with the words of that name as regular expressions; leading dots as in an import."""
    for node in walk(tree):
        if isinstance(node, ast.Call):
            yield from ((node, words) for words in imported(node, tree))


def imported(call: ast.Call, tree: ast.Module) -> list[tuple[str, ...]]:
    """The words of the names of the modules of which a call imports one; none where it imports none, or nothing is known of a name's beginning."""
    if last(call.func) not in ("import_module", "__import__") or not call.args:
        return []
    found = [_words(call, name, tree) for name in _alternatives(call.args[0], tree, _DEPTH)]
    return [words for words in found if words is not None] if None not in found else []


def _alternatives(node: ast.expr, tree: ast.Module, depth: int) -> list[ast.expr]:
    """The names of which an expression gives one: ``a if x else b``, ``MODULES[name]`` and ``MODULES.get(name)`` of a table that is written out."""
    if isinstance(node, ast.Name) and depth and (given := _given(node.id, tree)) is not None:
        return _alternatives(given, tree, depth - 1)
    if isinstance(node, ast.IfExp):
        return [n for side in (node.body, node.orelse) for n in _alternatives(side, tree, depth)]
    asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and len(node.args) == 1
    table = node.value if isinstance(node, ast.Subscript) else node.func.value if asked else None  # type: ignore[attr-defined]
    if isinstance(table, ast.Name):
        table = _given(table.id, tree)
    entries = table.values if isinstance(table, ast.Dict) and None not in table.keys else []
    return entries if entries and all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in entries) else [node]


def _words(call: ast.Call, name: ast.expr, tree: ast.Module) -> tuple[str, ...] | None:
    pieces = list(_pieces(name, tree, _DEPTH))
    package = next((k.value for k in call.keywords if k.arg == "package"), call.args[1] if len(call.args) > 1 else None)
    if last(call.func) == "import_module" and isinstance(package, ast.Constant) and isinstance(package.value, str) and pieces[:1] != [None]:
        pieces.insert(0, package.value)
    text = "".join(_ANY if p is None else re.escape(p) for p in pieces)
    words = tuple(text.replace(r"\.", ".").split("."))
    known = len(words[0].replace(_ANY, ""))
    return words if any(words) and (not words[0] or known == len(words[0]) or known >= _BEGINNING) else None


def form(node: ast.expr, tree: ast.Module) -> re.Pattern[str] | None:
    """The form of a name that the program computes: ``f"{args.data}_loader"`` is whatever ends so; None where nothing of it is known."""
    pieces = list(_pieces(node, tree, _DEPTH))
    return re.compile("".join(".*" if p is None else re.escape(p) for p in pieces)) if any(pieces) else None


def _pieces(node: ast.expr, tree: ast.Module, depth: int) -> Iterator[str | None]:
    """The text that an expression is made of; None for what is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from _pieces(part, tree, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _pieces(node.left, tree, depth)
        yield from _pieces(node.right, tree, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        yield from _filled_in(str(node.left.value), r"%[sd]")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant):
        text = str(node.func.value.value)
        if node.func.attr == "format":
            yield from _filled_in(text, r"\{\w*\}")
        elif node.func.attr == "join" and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
            for i, element in enumerate(node.args[0].elts):
                yield from (text,) if i else ()
                yield from _pieces(element, tree, depth)
        else:
            yield None
    elif isinstance(node, ast.Name) and depth and (given := _given(node.id, tree)) is not None:
        yield from _pieces(given, tree, depth - 1)
    else:
        yield None


def _filled_in(text: str, hole: str) -> Iterator[str | None]:
    for i, part in enumerate(re.split(hole, text)):
        yield from (None,) if i else ()
        yield from (part,) if part else ()


def _given(name: str, tree: ast.Module) -> ast.expr | None:
    """What the only assignment to a name in the file gives it; None for parameters and the like."""
    given = _bound(tree).get(name, [])
    return given[0] if len(given) == 1 else None


@lru_cache(maxsize=256)
def _bound(tree: ast.Module) -> Mapping[str, list[ast.expr | None]]:
    """What each name of a file is given; None where a parameter or a loop gives it something. A file is gone through once."""
    found: dict[str, list[ast.expr | None]] = {}
    for n in walk(tree):
        if isinstance(n, ast.Assign):
            for name in dict.fromkeys(t.id for t in n.targets if isinstance(t, ast.Name)):
                found.setdefault(name, []).append(n.value)
        elif isinstance(n, ast.arg):
            found.setdefault(n.arg, []).append(None)
        elif isinstance(n, ast.For) and isinstance(n.target, ast.Name):
            found.setdefault(n.target.id, []).append(None)
    return found
