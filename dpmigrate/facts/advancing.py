"""Numbers that a program counts by itself from one batch to the next: ``i += n`` in a loop, ``self.at += n`` in a method that gives one batch a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.tiles import Poly, counts, plus, poly, product, turn

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, eq=False, slots=True)
class Counter:
    """``step`` is how much is added in a turn of ``body``, a loop or a method, by each of ``adds``."""

    body: ast.AST
    step: Poly
    adds: tuple[ast.stmt, ...]

    def at(self, names: Names, node: ast.AST) -> Poly | None:
        """The number as it is read at a node: the turn's own, or the next one's where it has been added to already; None where that is not known."""
        added = _added(names, node, self)
        return None if added is None else plus(product(self.step, turn()), self.step, added)


def written(names: Names, body: ast.AST) -> dict[str, list[ast.stmt]]:
    """The statements of a loop, or of a function, that write each variable and each attribute, as these are written."""
    own = body if isinstance(body, FunctionNode) else names.function(body)
    found: dict[str, list[ast.stmt]] = {}
    for n in walk(body):
        if not isinstance(n, ast.Assign | ast.AugAssign | ast.For) or names.function(n) is not own or n is body:
            continue
        targets = n.targets if isinstance(n, ast.Assign) else [n.target]
        places = (m for t in targets for m in walk(t) if isinstance(m, ast.Name | ast.Attribute) and isinstance(m.ctx, ast.Store))
        for text in dict.fromkeys(ast.unparse(m) for m in places):
            found.setdefault(text, []).append(n)
    return found


def counter(names: Names, body: ast.AST, name: str, by: list[ast.stmt], known: Mapping[str, Poly | None], plain: Mapping[str, ast.expr]) -> Counter | None:
    """What counts by hand, if all that is written is a number to begin with, or as much more in each turn. ``plain`` are the variables that are given one
    value in a turn: ``end`` of ``end = start + n`` … ``start = end``.
    """
    if isinstance(body, FunctionNode) and "." not in name:
        return None  # a variable of a function begins anew with each call
    found: list[Poly] = []
    adds: list[ast.stmt] = []
    for stmt in by:
        value = _value(stmt, name)
        if isinstance(value, ast.Constant):
            continue
        p = _in_terms(value, name, known, plain, 4) if value is not None else None
        step = plus(p, turn(), -1) if p is not None else None
        if not step or counts(step):
            return None
        found.append(step)
        adds.append(stmt)
    if not found or any(step != found[0] for step in found):
        return None
    return Counter(body, found[0], tuple(adds))


def _value(stmt: ast.stmt, name: str) -> ast.expr | None:
    """What a statement makes of a number: ``i + n`` of ``i += n``."""
    match stmt:
        case ast.AugAssign(target=target, op=ast.Add() | ast.Sub() as op, value=value):
            return ast.BinOp(ast.Name(name, ast.Load()) if "." not in name else ast.parse(name, mode="eval").body, op, value)
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value) if ast.unparse(target) == name:
            return value
        case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value):
            return beside(target, value, name)
    return None


def beside(target: ast.Tuple, value: ast.Tuple, name: str) -> ast.expr | None:
    """What ``a, b = i, i + n`` gives a variable."""
    if len(target.elts) != len(value.elts):
        return None
    return next((v for t, v in zip(target.elts, value.elts, strict=True) if ast.unparse(t) == name), None)


def _in_terms(value: ast.expr, name: str, known: Mapping[str, Poly | None], plain: Mapping[str, ast.expr], depth: int) -> Poly | None:
    """An expression of the number as it was in this turn."""
    inside: dict[str, Poly | None] = {**known, name: turn()}
    for n in walk(value):
        text = ast.unparse(n) if isinstance(n, ast.Name | ast.Attribute) else ""
        if text in plain and text != name and depth:
            inside[text] = _in_terms(plain[text], name, known, {k: v for k, v in plain.items() if k != text}, depth - 1)
    return poly(value, inside)


def _added(names: Names, node: ast.AST, counted: Counter) -> int | None:
    """How often the number has been added to in this turn before a node."""
    found = 0
    inner: ast.AST = names.statement(node)
    while inner is not counted.body:
        outer = names.parent.get(inner)
        if outer is None:
            return None
        for block in _blocks(outer):
            if inner in block:
                for stmt in block[: block.index(inner)]:
                    more = _within(stmt, counted.adds)
                    if more is None:
                        return None
                    found += more
        inner = outer
    return found


def _within(stmt: ast.stmt, adds: tuple[ast.stmt, ...]) -> int | None:
    """How often a statement adds to the number on its way to the next one."""
    if stmt in adds:
        return 1
    if not any(n in adds for n in walk(stmt)):
        return 0
    if isinstance(stmt, ast.If):
        ways = [[*b] for b in (stmt.body, stmt.orelse) if not leaves(b)]
    elif isinstance(stmt, ast.With):
        ways = [stmt.body]
    else:
        return None
    sums = [[_within(s, adds) for s in way] for way in ways]
    ends = {None if None in s else sum(n for n in s if n is not None) for s in sums}
    return ends.pop() if len(ends) == 1 else None if ends else 0


def leaves(block: list[ast.stmt]) -> bool:
    """Whether nothing comes behind a block in its turn."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return leaves(last.body) and leaves(last.orelse)
    return isinstance(last, _LEAVING)


def apart(names: Names, one: ast.AST, other: ast.AST) -> bool:
    """Whether a turn comes to one of two nodes alone: they stand in different branches of a test, or behind a branch that leaves."""
    for a, b in ((one, other), (other, one)):
        for test in (t for t in names.ancestors(a) if isinstance(t, ast.If)):
            mine = next((block for block in (test.body, test.orelse) if any(names.is_inside(a, s) for s in block)), None)
            if mine is None:
                continue
            rest = test.orelse if mine is test.body else test.body
            if any(names.is_inside(b, s) for s in rest) or (leaves(mine) and not names.is_inside(b, test)):
                return True
        for choice in (t for t in names.ancestors(a) if isinstance(t, ast.IfExp)):
            if names.is_inside(b, choice) and names.is_inside(a, choice.body) != names.is_inside(b, choice.body):
                return True
    return False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
