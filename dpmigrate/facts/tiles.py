"""Where slices cut something into batches that lie end to end: ``x[i : i + n]`` for i in steps of n, ``x[k * n : (k + 1) * n]`` for k in steps of 1.

Bounds are compared as polynomials over what they are made of, so that the way in which they are written does not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import chain

from dpmigrate.facts.nodes import walk

#: products of things, as written, with how often each is taken; () is the number itself
Poly = dict[tuple[str, ...], int]
#: the name of what counts in a polynomial; no program has a variable of that name
TURN = "<turn>"
_ONE: Poly = {(): 1}


def number(n: int) -> Poly:
    """A whole number."""
    return {(): n} if n else {}


def turn() -> Poly:
    """What a loop counts."""
    return {(TURN,): 1}


def plus(a: Poly, b: Poly, times: int = 1) -> Poly:
    """``a + times * b``."""
    found = {key: a.get(key, 0) + times * b.get(key, 0) for key in chain(a, b)}
    return {key: n for key, n in found.items() if n}


def product(a: Poly, b: Poly) -> Poly:
    """``a * b``."""
    found: Poly = {}
    for x, n in a.items():
        for y, m in b.items():
            key = tuple(sorted((*x, *y)))
            found[key] = found.get(key, 0) + n * m
    return {key: n for key, n in found.items() if n}


def counts(p: Poly) -> bool:
    """Whether it is made of what the loop counts."""
    return any(TURN in key for key in p)


def later(p: Poly, step: Poly) -> Poly:
    """The same a turn later, when the loop counts ``step`` more."""
    found: Poly = {}
    for key, n in p.items():
        part = {tuple(k for k in key if k != TURN): n}
        for _ in range(key.count(TURN)):
            part = product(part, plus(turn(), step))
        found = plus(found, part)
    return found


def poly(node: ast.expr, known: Mapping[str, Poly | None]) -> Poly | None:
    """An expression of whole numbers; None where it is made of what is not known. ``known`` are variables, and attributes as they are written, that it is
    not to be told by their names.
    """
    match node:
        case ast.Constant(value=int() as n) if not isinstance(n, bool):
            return number(n)
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Attribute() if (text := ast.unparse(node)) in known:
            return known[text]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            p = poly(inner, known)
            return None if p is None else plus({}, p, -1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            a, b = poly(left, known), poly(right, known)
            if a is None or b is None:
                return None
            return product(a, b) if isinstance(op, ast.Mult) else plus(a, b, 1 if isinstance(op, ast.Add) else -1)
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            return poly(inner, known)
        case ast.Call(func=ast.Name(id="min"), args=[one, other], keywords=[]) | ast.IfExp(body=one, orelse=other):
            return _counting([poly(one, known), poly(other, known)])
    names = [ast.unparse(n) for n in walk(node) if isinstance(n, ast.Name | ast.Attribute)]
    if any(name in known and ((p := known[name]) is None or counts(p)) for name in names):
        return None
    return {(ast.unparse(node),): 1}


def _counting(sides: list[Poly | None]) -> Poly | None:
    """Of an end that is held within the data the side that counts: ``min(i + n, len(x))``."""
    counting = [s for s in sides if s is not None and counts(s)]
    return counting[0] if len(counting) == 1 and None not in sides else None


def tile(lower: Poly | None, upper: Poly | None, step: Poly) -> bool:
    """Whether slices between the two lie end to end where the loop counts in such steps."""
    if lower is None or upper is None or not counts(lower):
        return False
    size = plus(upper, lower, -1)
    return not counts(size) and size not in ({}, _ONE) and later(lower, step) == upper
