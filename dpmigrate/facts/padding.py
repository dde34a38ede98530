"""Which parts of a batch are padded to the longest sample of that batch: each rank pads its own part, to a length of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.collated import functions
from dpmigrate.facts.library import FLOATS, INTEGERS, LAYOUTS, MAKES, MAKES_ALIKE, MOVES, TO_TENSOR
from dpmigrate.facts.loops import last, source
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.reaching import may_reach
from dpmigrate.facts.roles import Roles

_PADS = frozenset({"pad_sequence", "pad_packed_sequence"})
_MADE = MAKES | MAKES_ALIKE | {"zeros_like", "pad"}
#: what leaves an element of the batch what it is, or takes a part of it
_SAME = MOVES | FLOATS | INTEGERS | LAYOUTS | {"type", "clone", "detach", "requires_grad_"}
_DEPTH = 6
_Path = tuple[int | str, ...]


def padded(roles: Roles, node: ast.expr) -> bool:
    """Whether an element of a training batch that its ``collate_fn`` pads to the longest sample goes into the expression, but for what a model is given."""
    passes = roles.forward_calls
    return any(
        _of_collate(roles, loader, path)
        for n in walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and not _only_its_size(roles, n) and not any(roles.names.is_inside(n, c) for c in passes)
        for loader, path in _elements(roles, _whole(roles, n), _DEPTH)
    )


def _only_its_size(roles: Roles, node: ast.Name) -> bool:
    above = roles.names.parent[node]
    return isinstance(above, ast.Attribute) and above.attr in ("size", "shape", "numel", "device", "dtype")


def _whole(roles: Roles, node: ast.Name) -> ast.expr:
    """``batch[1]`` for the name in it."""
    out: ast.expr = node
    while isinstance(above := roles.names.parent[out], ast.Subscript) and above.value is out and isinstance(above.slice, ast.Constant):
        out = above
    return out


# ---------------------------------------------------------------------- from a name to a place in the batch
def _elements(roles: Roles, node: ast.AST | None, depth: int) -> Iterator[tuple[ast.Call, _Path]]:
    """The loader calls and the places in their batches that the expression may come from."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int | str):
        yield from ((loader, (*path, node.slice.value)) for loader, path in _elements(roles, node.value, depth))
    elif isinstance(node, ast.IfExp):
        for side in (node.body, node.orelse):
            yield from _elements(roles, side, depth)
    elif isinstance(node, ast.Subscript):  # y[:, 1:]
        yield from _elements(roles, node.value, depth)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        yield from _elements(roles, node.func.value, depth)
    elif isinstance(node, ast.Call) and roles.names.dotted(node.func) in TO_TENSOR | {"?.tuple", "?.list"} and node.args:
        yield from _elements(roles, node.args[0], depth)
    elif isinstance(node, ast.GeneratorExp | ast.ListComp) and len(node.generators) == 1:  # x, y = (t.to(device) for t in batch)
        yield from _elements(roles, node.generators[0].iter, depth)
    elif isinstance(node, ast.Name) and depth:
        for b in roles.names.bindings(roles.names.scope_of[node], node.id):
            for given in roles.handed(b):
                yield from _elements(roles, given, depth - 1)
            if b.how == "for" and isinstance(b.value, ast.expr):
                taken = b.path[1:]
                counted = taken[1:] if _enumerated(b.value) else taken
                yield from ((v.node, counted) for v in roles.loaders_of(source(roles, b.value)) if isinstance(v.node, ast.Call))
            elif b.how == "assign" and isinstance(b.value, ast.expr) and not roles.names.is_inside(node, b.value):
                value, path = b.value, b.path
                while path and isinstance(value, ast.Tuple | ast.List) and isinstance(path[0], int) and path[0] < len(value.elts):
                    value, path = value.elts[path[0]], path[1:]
                taken_from = _taken_from(roles, value)
                drawn = roles.loaders_of(taken_from) if taken_from is not None else frozenset()
                yield from ((v.node, path) for v in drawn if isinstance(v.node, ast.Call))
                yield from ((loader, (*more, *path)) for loader, more in _elements(roles, value, depth - 1))


def _enumerated(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and last(n.func) == "enumerate" for n in walk(node))


def _taken_from(roles: Roles, node: ast.expr) -> ast.expr | None:
    """The iterator of ``next(iterator)``."""
    return node.args[0] if isinstance(node, ast.Call) and roles.names.dotted(node.func) == "?.next" and node.args else None


# ---------------------------------------------------------------------- what the collate function makes
def _of_collate(roles: Roles, loader: ast.Call, path: _Path) -> bool:
    return any(_pads(roles, e, _DEPTH) for function in functions(roles, loader) for e in _returned(roles, function, path))


def _returned(roles: Roles, function: FunctionNode | ast.Lambda, path: _Path) -> Iterator[ast.expr]:
    """What a function gives at a place of its result."""
    results = (
        [function.body] if isinstance(function, ast.Lambda) else [n.value for n in walk(function) if isinstance(n, ast.Return) and n.value is not None]
    )
    for value in results:
        yield from _part(roles, value, path, _DEPTH)


def _part(roles: Roles, value: ast.expr, path: _Path, depth: int) -> Iterator[ast.expr]:
    if not path:
        yield value
    elif isinstance(value, ast.Tuple | ast.List):
        if isinstance(path[0], int) and path[0] < len(value.elts):
            yield from _part(roles, value.elts[path[0]], path[1:], depth)
    elif isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == path[0]:
                yield from _part(roles, item, path[1:], depth)
    elif isinstance(value, ast.Name) and depth:
        bound = [b for b in roles.names.bindings(roles.names.scope_of[value], value.id) if b.how == "assign" and isinstance(b.value, ast.expr) and not b.path]
        for b in bound:
            assert isinstance(b.value, ast.expr)
            inner = isinstance(b.value, ast.Tuple | ast.List | ast.Dict | ast.Name)
            yield from _part(roles, b.value, path if inner else (), depth - 1)  # a part of what is padded is padded


def _pads(roles: Roles, node: ast.AST, depth: int) -> bool:
    """Whether the value is padded, or made in a size that is a maximum over the samples."""
    for n in walk(node):
        if isinstance(n, ast.Call):
            if last(n.func) in _PADS or (last(n.func) in _MADE and any(_longest(roles, a, depth) for a in (*n.args, *(k.value for k in n.keywords)))):
                return True
            if depth and any(_pads(roles, e, depth - 1) for f, _ in roles.values.targets(n) for e in _returned(roles, f, ())):
                return True
        elif isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult):  # s + [0] * (longest - len(s))
            sides = ((n.left, n.right), (n.right, n.left))
            if any(isinstance(held, ast.List) and _longest(roles, times, depth) for held, times in sides):
                return True
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and depth:
            bound = (b for b in roles.names.bindings(roles.names.scope_of[n], n.id) if may_reach(roles.names, b, n))
            if any(b.how == "assign" and b.value is not None and _pads(roles, b.value, depth - 1) for b in bound):
                return True
    return False


def _longest(roles: Roles, node: ast.AST, depth: int) -> bool:
    """Whether a maximum goes into the number: ``max(len(s) for s in batch)``, ``lengths.max()``, a name for one."""
    for n in walk(node):
        if isinstance(n, ast.Call) and last(n.func) in ("max", "amax"):
            return True
        if isinstance(n, ast.Name) and depth:
            for b in (b for b in roles.names.bindings(roles.names.scope_of[n], n.id) if may_reach(roles.names, b, n)):
                given = [b.value] if b.how == "assign" else roles.handed(b)
                if any(g is not None and _longest(roles, g, depth - 1) for g in given):
                    return True
    return False
