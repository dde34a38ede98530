"""Operators and comparisons of constants, and of the number of ranks: what they give is known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from dpmigrate.execution.values import (
    Const,
    Setting,
    Value,
    const,
    known,
    only,
    value,
)

#: the number of ranks
WORLD: Value = (Setting("world size"),)
#: a number of which that is a factor
TIMES_WORLD: Value = (Setting("times the world size"),)
#: a number divided by the number of ranks
SHARE_OF_NUMBER: Value = (Setting("over the number of ranks"),)
_BINARY: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    # CPython keeps one object of equal texts and numbers that a program writes down
    ast.Is: lambda a, b: type(a) is type(b) and a == b,
    ast.IsNot: lambda a, b: type(a) is not type(b) or a != b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
#: numbers whose size does not explode when they are computed
_SMALL = 10**9


def word_of(op: ast.operator) -> str:
    """The word of an operator in Python's data model: ``add``, ``matmul``."""
    return _BINARY[type(op)][0] if type(op) in _BINARY else "matmul"


def folded(op: ast.operator, left: Value, right: Value) -> Value | None:
    """The result on constants; on settings with a default a setting with the default's result."""
    if type(op) not in _BINARY:
        return None
    soft = False
    if isinstance(op, ast.Div) and right == WORLD and len(left) == 1 and isinstance(left[0], Const):
        return SHARE_OF_NUMBER
    if isinstance(op, ast.Mult) and any(v in (WORLD, TIMES_WORLD) for v in (left, right)):
        if all(isinstance(a, Const | Setting) for a in (*left, *right)):
            return TIMES_WORLD
    try:
        a, b = only(left), only(right)
    except LookupError:
        if len(left) != 1 or len(right) != 1:
            return None
        if not all(isinstance(x, Const | Setting) for x in (*left, *right)):
            return None
        a, b, soft = known(left), known(right), True
        if a is None or b is None:
            return value(Setting())
    if isinstance(op, ast.Mult | ast.Pow | ast.LShift) and not _small(a, b):
        return value(Setting())
    try:
        result = _BINARY[type(op)][1](a, b)
    except Exception:  # whatever the program's own constants do wrong
        return None
    if isinstance(result, complex) or not _plain(result):
        return value(Setting())
    made = const(result)
    return value(Setting("", next(iter(made)))) if soft else made  # type: ignore[arg-type]


def _small(*operands: Any) -> bool:
    return all(isinstance(x, int | float) and abs(x) < _SMALL for x in operands)


def _plain(result: Any) -> bool:
    if isinstance(result, str | bytes):
        return len(result) < 10_000
    return isinstance(result, int | float | bool)


def compared(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """The result of a comparison of constants, None where it is not known.

    What is executed is executed by several ranks: so it is known of their number that it is no 1.
    """
    if WORLD in (left, right):
        return _of_ranks(op, left, right)
    try:
        return bool(_COMPARE[type(op)](only(left), only(right)))
    except Exception:  # not constants, or constants that do not compare
        return None


def _of_ranks(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """What a comparison of the number of ranks with a constant gives for any number from 2 on; None
    where that depends on it.
    """
    number = only(right if left == WORLD else left) if Const in map(type, (*left, *right)) else None
    if type(number) is not int or len(left) + len(right) != 2:
        return None
    compare = _COMPARE[type(op)]
    tried = {n for n in (2, number - 1, number, number + 1) if n >= 2}
    found = {compare(n, number) if left == WORLD else compare(number, n) for n in tried}
    return bool(found.pop()) if len(found) == 1 else None
