"""Attributes that a method stores in its own object and reads again.

One place may make many objects (``[Block() for _ in range(n)]``), which are one in the heap: what is stored in
an attribute of one of them is put beside what the others have. A call of a method has one of these, though:
what it has stored there is what it reads, until anybody else stores there, who may have the same one.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from dpmigrate.execution.objects import WEAK, Object
from dpmigrate.execution.store import Own
from dpmigrate.execution.values import UNBOUND, Ref, Unbound, Value

if TYPE_CHECKING:
    from dpmigrate.execution.machine import Frame, Machine


def stored(m: Machine, made: Object, name: str, new: Value, node: ast.AST, frame: Frame) -> None:
    """An attribute of an object was stored: it is noted where that is the object of the call under way."""
    if not (made.many and made.kept and made.kind in WEAK) or not new or UNBOUND in new:
        return
    if isinstance(node, ast.Attribute) and _is_own(m, Ref(made.number), node.value, frame):
        m.heap.store_own((made.number, name), new, frame.number)


def known(m: Machine, owner: Value, node: ast.Attribute, frame: Frame) -> Value | None:
    """What the call under way has stored in an attribute of its object; None where that is not known."""
    if not m.heap.own or len(owner) != 1 or not isinstance(owner[0], Ref) or (owner[0].object, node.attr) not in m.heap.own:
        return None
    if not _is_own(m, owner[0], node.value, frame):
        return None
    found = m.heap.read((frame.number, Own(owner[0].object, node.attr)))
    # on some way it has stored nothing there, or another call has
    return found if found and not any(isinstance(a, Unbound) for a in found) else None


def _is_own(m: Machine, ref: Ref, owner: ast.expr, frame: Frame) -> bool:
    """Whether an expression is the first parameter of a method under way, whose object that is.

    Variables of a call that others see, or that another call of the same place has too, are left out.
    """
    function = frame.function.extra.node if frame.function is not None else None
    if frame.receiver != ref or not isinstance(owner, ast.Name) or not isinstance(function, ast.FunctionDef):
        return False
    if frame.weak or frame.names.closures or frame.names.generator:
        return False
    return owner.id == _own_name(function) and m.heap.scopes.count(frame.number) == 1


@cache
def _own_name(function: ast.FunctionDef) -> str | None:
    """The first parameter of a method, if nothing binds that name anew."""
    first = next(iter((*function.args.posonlyargs, *function.args.args)), None)
    if first is None or any(isinstance(n, ast.Name) and n.id == first.arg and not isinstance(n.ctx, ast.Load) for n in ast.walk(function)):
        return None
    return first.arg
