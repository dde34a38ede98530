"""Meters: objects that a batch loop gives a number in each turn, and that add it up (``AverageMeter`` of a thousand scripts).

A class is one if its updating method does nothing but add to attributes, keep the last value and compute other attributes from
these. Its sums are then counters like any other, written ``losses.sum``; what is computed from them is computed again after they are reduced.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.carried import Carried, is_zero
from dpmigrate.facts.definitions import arguments, default, parameters
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles

#: what may leave out what stands in it
_CHOICES = (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.match_case, ast.For, ast.AsyncFor, ast.While, FunctionNode, ast.Lambda)


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """What a class's updating method does: the attributes that it adds to, with what, and those that it computes from them."""

    adds: tuple[tuple[str, ast.expr], ...]
    derived: tuple[tuple[str, ast.expr], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Meter:
    """A variable that means one meter; ``adds`` are each attribute's additions in the loop, ``derived`` the statements that follow from its sums."""

    name: str
    updates: tuple[ast.Call, ...]
    adds: tuple[tuple[str, tuple[ast.expr, ...]], ...]
    derived: tuple[str, ...]
    from_zero: bool  # when the loop begins


def meters(carried: Carried) -> list[Meter]:
    """The meters that the loop updates under plain names."""
    roles = carried.roles
    found: dict[str, list[tuple[ast.Call, FunctionNode, Shape]]] = {}
    unknown = set()
    for n in walk(carried.loop.node):
        if not isinstance(n, ast.Call) or not isinstance(n.func, ast.Attribute) or not isinstance(n.func.value, ast.Name):
            continue
        methods = {f for f, _ in roles.values.targets(n)}
        shape = _shape(roles, next(iter(methods))) if len(methods) == 1 else None
        if shape is not None and not _may_be_none(roles, n.func.value):
            found.setdefault(n.func.value.id, []).append((n, next(iter(methods)), shape))
        elif methods:
            unknown.add(n.func.value.id)  # a reset in the loop
    out = []
    for name, calls in found.items():
        shape = calls[0][2]
        if name not in unknown and all(s is shape or ast.dump(calls[0][1]) == ast.dump(f) for _, f, s in calls):
            given = [(attribute, tuple(_given(roles, call, function, value) for call, function, _ in calls)) for attribute, value in shape.adds]
            sure = any(_each_turn(carried, call) for call, _, _ in calls)
            derived = tuple(_again(name, calls[0][1], attribute, value, sure) for attribute, value in shape.derived)
            out.append(Meter(name, tuple(c for c, _, _ in calls), tuple(given), derived, _from_zero(carried, name, [a for a, _ in shape.adds])))
    return out


def _may_be_none(roles: Roles, meter: ast.Name) -> bool:
    """Whether the program goes on without the meter: ``losses = AverageMeter() if criterion else None``. Its sums cannot be read then."""
    given = (b.value for b in roles.names.bindings(roles.names.scope_of[meter], meter.id) if b.how == "assign")
    return any(isinstance(v.node, ast.Constant) and v.node.value is None for e in given for v in roles.values.eval(e))


def _each_turn(carried: Carried, call: ast.Call) -> bool:
    """Whether every turn of the loop comes to the update."""
    loop = carried.loop.node
    around = itertools.takewhile(lambda a: a is not loop, carried.roles.names.ancestors(call))
    if any(isinstance(a, _CHOICES) for a in around):
        return False
    return not any(isinstance(n, ast.Continue | ast.Break) and position(n) < position(call) for n in walk(loop))


def _again(name: str, method: FunctionNode, attribute: str, value: ast.expr, sure: bool) -> str:
    """The statement that computes an attribute again; what may never have been updated has no count to divide by, and keeps what it has."""
    text = f"{name}.{attribute} = {_on(name, method, value)}"
    quotients = (n for n in walk(value) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod))
    divisors = dict.fromkeys(_on(name, method, n.right) for n in quotients)
    return text if sure or not divisors else f"{text} if {' and '.join(divisors)} else {name}.{attribute}"


def _shape(roles: Roles, method: FunctionNode) -> Shape | None:
    if roles.values.defs.method_class(method) is None or not method.args.args:
        return None
    me, given = method.args.args[0].arg, set(parameters(method))
    adds: list[tuple[str, ast.expr]] = []
    derived: list[tuple[str, ast.expr]] = []
    for s in method.body:
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
            continue
        if isinstance(s, ast.If) and all(
            isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name) and x.targets[0].id in given for x in s.body + s.orelse
        ):
            continue  # if isinstance(val, torch.Tensor): val = val.item()
        target = s.target if isinstance(s, ast.AugAssign) else s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or not _is(target.value, me):
            return None
        assert isinstance(s, ast.Assign | ast.AugAssign)
        own = {n.attr for n in walk(s.value) if isinstance(n, ast.Attribute) and _is(n.value, me)}
        if isinstance(s, ast.AugAssign):
            if not isinstance(s.op, ast.Add) or own:
                return None
            adds.append((target.attr, s.value))
        elif isinstance(s.value, ast.BinOp) and isinstance(s.value.op, ast.Add) and _is_attribute(s.value.left, me, target.attr) and own == {target.attr}:
            adds.append((target.attr, s.value.right))
        elif own:
            derived.append((target.attr, s.value))
    known = {a for a, _ in adds}
    for _, value in derived:
        read = {n.attr for n in walk(value) if isinstance(n, ast.Attribute) and _is(n.value, me)}
        calls = any(isinstance(n, ast.Call) for n in walk(value))
        if calls or not read <= known or any(isinstance(n, ast.Name) and n.id != me for n in walk(value)):
            return None
    return Shape(tuple(adds), tuple(derived)) if adds and len(known) == len(adds) else None


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_attribute(node: ast.expr, me: str, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute and _is(node.value, me)


def _given(roles: Roles, call: ast.Call, method: FunctionNode, value: ast.expr) -> ast.expr:
    """What one update adds, in the loop's own words: ``val * n`` with the arguments put in; an empty list stands for what is not known."""
    given = dict(arguments(call, method, 1))
    if isinstance(value, ast.BinOp):
        return ast.BinOp(_given(roles, call, method, value.left), value.op, _given(roles, call, method, value.right))
    if isinstance(value, ast.Constant):
        return value
    if isinstance(value, ast.Name) and value.id in parameters(method):
        a = method.args
        arg = next(p for p in (*a.posonlyargs, *a.args, *a.kwonlyargs) if p.arg == value.id)
        return given.get(value.id) or default(a, arg) or ast.List([], ast.Load())
    return ast.List([], ast.Load())


def _on(name: str, method: FunctionNode, value: ast.expr) -> str:
    """The expression with the meter's name in the place of ``self``."""
    me = method.args.args[0].arg

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(name, node.ctx) if node.id == me else node

    return ast.unparse(Renamed().visit(ast.parse(ast.unparse(value), mode="eval").body))


def _from_zero(carried: Carried, name: str, attributes: list[str]) -> bool:
    """Whether the meter is made, or reset, in the loop's own function each time before the loop begins, with its sums at 0."""
    last = carried.certain_last(_begins(carried, name))
    if last is None:
        return False
    calls = [n for n in walk(carried.names.statement(last)) if isinstance(n, ast.Call)]
    zeroed = {a for c in calls for f, _ in carried.roles.values.targets(c) for a in _zeroed(carried.roles, f)}
    return set(attributes) <= zeroed


def _begins(carried: Carried, name: str) -> Iterator[ast.Name]:
    """Where the variable is given a meter, or a method of it may reset it, or add to it: ``losses = Meter()``, ``losses.reset()``."""
    names = carried.names
    for n in names.nodes:
        if not isinstance(n, ast.Name) or n.id != name or not carried.is_same(n):
            continue
        attribute = names.parent[n]
        called = isinstance(attribute, ast.Attribute) and isinstance(call := names.parent[attribute], ast.Call) and call.func is attribute
        if isinstance(n.ctx, ast.Store) or called:
            yield n


def _zeroed(roles: Roles, method: FunctionNode, depth: int = 2) -> set[str]:
    """The attributes that a method sets to 0, itself or by another method of the object."""
    out = set()
    for n in walk(method):
        if isinstance(n, ast.Assign) and is_zero(n.value):
            out |= {t.attr for t in n.targets if isinstance(t, ast.Attribute)}
        elif isinstance(n, ast.Call) and depth:
            for f, _ in roles.values.targets(n):
                out |= _zeroed(roles, f, depth - 1)
    return out
