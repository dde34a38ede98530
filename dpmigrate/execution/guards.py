"""What a ``try`` catches, and whether it raises that again."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

#: whether an exception of a name is caught
Catches = Callable[[str], bool]
#: what a ``try`` catches, and what of that it raises again
Guarding = tuple[Catches, Catches]
#: what goes elsewhere than to the next statement
LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)
#: what catches the exceptions that an expression may raise
_BASES = {
    "KeyError": ("LookupError",), "IndexError": ("LookupError",),
    "ZeroDivisionError": ("ArithmeticError",), "UnboundLocalError": ("NameError",),
}  # fmt: skip
EVERY = ("Exception", "BaseException")


class Guard(NamedTuple):
    """A ``try`` under way: which of the conditions is its own, what it catches, and which of that its
    handlers raise again. Of an exception with no known name: whether they raise any again.
    """

    slot: int
    catches: Catches
    again: Catches


def _catching(types: list[ast.expr | None]) -> Catches:
    """Whether handlers for some types catch an exception; what they are is told by their names."""
    names: set[str] = set()
    for t in types:
        parts = t.elts if isinstance(t, ast.Tuple) else [t]
        for part in parts:
            plain = isinstance(part, ast.Name | ast.Attribute)
            names.add(ast.unparse(part).rpartition(".")[2] if plain and part else EVERY[0])

    return caught(names)


def guarding(handlers: list[ast.ExceptHandler], raising: list[ast.ExceptHandler]) -> Guarding:
    """What the handlers of a ``try`` catch, and what of that they raise again."""
    going_on = [h.type for h in handlers if h not in raising]
    ends = _catching(going_on)

    def again(kind: str) -> bool:
        return not going_on or (bool(kind) and not ends(kind))

    return _catching([h.type for h in handlers]), again


def never(kind: str) -> bool:
    return False


def asks_plainly(test: ast.expr) -> bool:
    """``f() > 1``"""
    inside = [n for n in ast.walk(test) if isinstance(n, ast.Call | ast.NamedExpr | ast.Await)]
    call = test.left if isinstance(test, ast.Compare) else None
    return isinstance(call, ast.Call) and inside == [call] and not (call.args or call.keywords)


def caught(names: set[str]) -> Catches:
    def catches(kind: str) -> bool:
        return not names.isdisjoint((kind, *_BASES.get(kind, ()), *EVERY))

    return catches


def caught_alone(only: str) -> Catches:
    """What catches one exception of Python, and none of an unknown name."""
    return lambda kind: kind == only
