"""What becomes of values that change from turn to turn: bounds under which every loop settles."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.identity import NOWHERE
from dpmigrate.execution.values import SETTING, Atom, Const, Data, Items, Setting, Unbound, Unknown, Value, unknown

#: turns of a loop, after which what still changes is not understood
TURNS = 4
#: turns in which a loop must settle; from ``TURNS`` on what changes is widened
ROUNDS = 40


def counted(v: Value) -> Value:
    """Numbers that change from turn to turn are not kept one by one."""
    numbers = [a for a in v if isinstance(a, Const) and a.type in ("int", "float")]
    if len(numbers) < 2:
        return v
    return (*(a for a in v if a not in numbers), *([] if _has_setting(v) else SETTING))


def _has_setting(v: Value) -> bool:
    return any(isinstance(a, Setting) for a in v)


def widened(v: Value, node: ast.AST, old: Value) -> Value:
    """What does not settle is not understood; objects stay what they may be, and so does what the
    turns before have left (``old``).
    """
    v = counted(v)
    if all(isinstance(a, Unbound) for a in old):
        return v  # it is there since this turn alone, as under a test of the turn's number
    kept = tuple(a for a in v if a in old or not isinstance(a, Data | Items | Unknown) or _grown(a, old))
    if len(kept) == len(v):
        return kept
    return (*kept, *unknown("changes from turn to turn", node))


def _grown(a: Atom, old: Value) -> bool:
    """Whether data lie as before, and only more places are known that hold them, more operations
    that have bent them, or more loops that they are gathered in, of which there are so many.
    """
    if not isinstance(a, Data) or not (a.held or a.bent or a.marks):
        return False
    plain = _plain(a)
    return any(
        isinstance(b, Data)
        and _plain(b) == plain
        and b.held <= a.held
        and b.bent <= a.bent
        and b.marks <= a.marks
        for b in old
    )


def _plain(d: Data) -> Data:
    return d._replace(held=NOWHERE, bent=frozenset(), marks=NOWHERE)


def widening(turn: int, node: ast.AST) -> Callable[[Value, Value], Value]:
    """What becomes of a value that a turn has changed, given what it is then and what it was."""
    if turn < TURNS - 1:
        return lambda v, _old: counted(v)
    return lambda v, old: widened(v, node, old)
