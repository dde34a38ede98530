"""Which optimizer steps lie between two updates of one GradScaler, and where the update goes.

A scaler takes its scale out of every gradient that a step uses, so the scale must be the same from the backward to the step, and between two steps of one
optimizer there must be an update. One turn of the innermost loop that trains is such a stretch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.steps import Step


@dataclass(frozen=True, eq=False, slots=True)
class Turn:
    """Steps, each of another optimizer, with the loop or function of which one turn makes them.

    ``after`` is the statement that the update follows (None: there is no place that is reached if and only if an optimizer has stepped); ``leaving`` are
    the statements before it that end the turn once an optimizer has stepped. ``fed``: a backward of the same turn gives the gradients.
    """

    node: ast.AST
    steps: tuple[Step, ...]
    after: ast.stmt | None
    leaving: tuple[ast.stmt, ...]
    fed: bool


def turns(roles: Roles, steps: list[Step]) -> list[Turn]:
    """All turns, in the order of their steps."""
    groups: dict[ast.AST, list[Step]] = {}
    for s in steps:
        groups.setdefault(_round(roles, s.call), []).append(s)
    fed = {t for b in roles.backwards for t in _fed_by(roles, b, set(groups), frozenset())}
    out = []
    for node, members in groups.items():
        for part in _apart(members):
            after = _after(roles, part, node)
            leaving = _leaving(roles, part, node, after) if after is not None else None
            out.append(Turn(node, part, after if leaving is not None else None, leaving or (), node in fed))
    return out


def _round(roles: Roles, node: ast.AST) -> ast.AST:
    """The innermost loop that reaches a backward, or the function."""
    function = roles.names.function(node)
    return next((a for a in roles.names.ancestors(node, below=function) if isinstance(a, Loop) and roles.reaches_backward(a)), function)


def _fed_by(roles: Roles, node: ast.AST, rounds: set[ast.AST], seen: frozenset[ast.AST]) -> Iterator[ast.AST]:
    """The rounds with steps that a backward, or a call that leads to one, belongs to: the innermost, also through calls."""
    function = roles.names.function(node)
    inner = next((a for a in roles.names.ancestors(node) if a is function or (a in rounds and roles.names.function(a) is function)), function)
    if inner in rounds:
        yield inner
    elif isinstance(inner, FunctionNode) and inner not in seen:
        for call in roles.values.ways.get(inner, []):
            yield from _fed_by(roles, call, rounds, seen | {inner})


def _apart(steps: list[Step]) -> Iterator[tuple[Step, ...]]:
    """Where an optimizer steps again, an update must have come before."""
    part: list[Step] = []
    for s in steps:
        if any(o in p.optimizers for p in part for o in s.optimizers):
            yield tuple(part)
            part = []
        part.append(s)
    yield tuple(part)


def _lifted(roles: Roles, step: Step, node: ast.AST) -> ast.stmt:
    """The step, or the outermost loop round it inside the turn: ``for o in optimizers: o.step()``."""
    found = step.stmt
    for a in roles.names.ancestors(step.stmt, below=node):
        if isinstance(a, Loop):
            found = a
    return found


def _after(roles: Roles, part: tuple[Step, ...], node: ast.AST) -> ast.stmt | None:
    """The statement that is reached in every turn in which an optimizer steps, after all of them."""
    names = roles.names
    stmts = [_lifted(roles, s, node) for s in part]
    last = stmts[-1]
    blocks = [names.block(s) for s in stmts]
    if all(b is blocks[0] for b in blocks):
        return last
    for a in names.ancestors(last, below=node):  # some step under a test: after the test, beside a step that always runs
        if isinstance(a, ast.stmt) and any(b is names.block(a) for b in blocks):
            return a
    own = names.block(last)
    inside = all(any(x in own for x in [s, *names.ancestors(s)]) for s in stmts)
    return last if inside else None


def _leaving(roles: Roles, part: tuple[Step, ...], node: ast.AST, after: ast.stmt) -> tuple[ast.stmt, ...] | None:
    """``continue``, ``break`` and ``return`` between a step and the update; None where a step may or may not have come before one of them."""
    names, out = roles.names, []
    stmts = [_lifted(roles, s, node) for s in part]
    for n in walk(node):
        if not isinstance(n, ast.Continue | ast.Break | ast.Return) or names.function(n) is not names.function(after) or position(n) > position(after):
            continue
        if not isinstance(n, ast.Return) and next(a for a in names.ancestors(n) if isinstance(a, Loop)) is not node:
            continue
        before = [s for s in stmts if position(s) < position(n) and not roles.values.order.other_branch(n, s)]
        way = [names.block(a) for a in (n, *names.ancestors(n)) if isinstance(a, ast.stmt) and names.is_inside(a, node) and a is not node]
        if before and not any(s in block for s in before for block in way):
            return None
        if before:
            out.append(n)
    return tuple(out)
