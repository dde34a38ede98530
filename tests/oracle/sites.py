"""The places of a program that are looked at, and its text with the probe in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpmigrate.program import Program

#: the probe's name among the builtins of a rank: ``PROBE(number, value)`` gives the value back
PROBE = "_oracle_seen_"
#: what an entry script calls first
BEGIN = "_oracle_begin_"

#: expressions whose values are looked at; displays are known by their elements
_VALUES = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.IfExp, ast.JoinedStr, ast.ListComp, ast.SetComp, ast.DictComp,
)  # fmt: skip
#: fields that hold no values of the run, or values that nothing but Python looks at
_PASSED_OVER = frozenset({"annotation", "returns", "decorator_list", "bases"})
#: what makes a folder
_MAKES = ("makedirs", "mkdir")
#: decorators whose functions are compiled from their source or byte code
_COMPILED = ("jit", "script", "numba", "triton")

#: type, line, column, last line, last column, as the file alone counts them
_Key = tuple[type[ast.expr], int, int, int, int]


@dataclass(frozen=True)
class Site:
    """An expression of the program; its place reads ``train.py:12:8``."""

    number: int
    place: str
    text: str


@dataclass(frozen=True)
class Sites:
    """All sites of a program, by their numbers."""

    every: tuple[Site, ...]
    nodes: tuple[ast.expr, ...]
    keys: tuple[dict[_Key, int], ...]  # of each file

    @classmethod
    def of(cls, program: Program, folder: Path) -> Sites:
        """Number the expressions of every file of the program; places are told as seen from the
        folder.
        """
        every: list[Site] = []
        nodes: list[ast.expr] = []
        keys = []
        for part in program.parts:
            known: dict[_Key, int] = {}
            for node in _watched(part.tree):
                key = _key(node, part.first)
                if key not in known:
                    known[key] = len(every)
                    line = program.place(node.lineno).removeprefix(f"{folder}/")
                    place = f"{line}:{node.col_offset + 1}"
                    every.append(Site(len(every), place, ast.unparse(node)))
                    nodes.append(node)
            keys.append(known)
        return cls(tuple(every), tuple(nodes), tuple(keys))

    def rewritten(self, program: Program, index: int) -> str:
        """The text of a file in which each site goes through the probe; its lines are others."""
        tree = ast.parse(program.parts[index].source.text)
        _Rewriter(self.keys[index]).visit(tree)
        if index == len(program.parts) - 1:
            begin = ast.parse(f"{BEGIN}()").body[0]
            tree.body.insert(_first(tree.body), begin)
        return ast.unparse(ast.fix_missing_locations(tree))


def _key(node: ast.expr, first: int) -> _Key:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return (
        type(node),
        node.lineno - first,
        node.col_offset,
        node.end_lineno - first,
        node.end_col_offset,
    )


def _first(body: list[ast.stmt]) -> int:
    """Where the first statement that does something may stand: behind the docstring and the imports
    from the future.
    """
    for i, statement in enumerate(body):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            continue
        if i == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        return i
    return len(body)


def _watched(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions below a node whose values are looked at."""
    decorators = getattr(node, "decorator_list", [])
    if any(word in ast.unparse(d) for d in decorators for word in _COMPILED):
        return
    if isinstance(node, ast.If | ast.Try) and _race(node):
        return
    for name, held in ast.iter_fields(node):
        if name in _PASSED_OVER or (name == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        for child in held if isinstance(held, list) else [held]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.pattern):
                continue
            if isinstance(child, ast.expr) and _is_value(child, node, name):
                yield child
            if not isinstance(
                child, ast.JoinedStr
            ):  # quotes in quotes; what is in them was made elsewhere
                yield from _watched(child)


def _race(node: ast.If | ast.Try) -> bool:
    """``if not exists(p): makedirs(p)``, and the same as a ``try``: whichever rank comes first makes
    the folder. The engine takes all ranks to find the same files.
    """
    inside = [*node.body, *(node.orelse if isinstance(node, ast.If) else [])]
    calls = [s.value for s in inside if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return any(
        isinstance(c.func, ast.Attribute | ast.Name)
        and ast.unparse(c.func).rpartition(".")[2] in _MAKES
        for c in calls
    )


def _is_value(child: ast.expr, parent: ast.AST, name: str) -> bool:
    if not isinstance(child, _VALUES) or not isinstance(
        getattr(child, "ctx", ast.Load()), ast.Load
    ):
        return False
    if isinstance(child, ast.UnaryOp) and isinstance(child.operand, ast.Constant):
        return False
    if isinstance(parent, ast.Attribute) and isinstance(child, ast.Name | ast.Attribute):
        return False  # what it is taken of; modules and self, mostly
    return not (isinstance(parent, ast.Call) and name == "func")


class _Rewriter(ast.NodeTransformer):
    def __init__(self, numbers: dict[_Key, int]) -> None:
        self.numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.JoinedStr):
            return self._probed(node)
        if not isinstance(node, ast.expr):
            self.generic_visit(node)
            return node
        return self._probed(self.generic_visit(node))

    def _probed(self, node: ast.AST) -> ast.AST:
        number = self.numbers.get(_key(node, 0)) if isinstance(node, ast.expr) else None
        if number is None:
            return node
        assert isinstance(node, ast.expr)
        return ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant(number), node], [])
