"""Attributes and entries in the place of variables: what ``self.total``, or ``stats["loss"]``, is whenever a loop over batches begins.

They are known by their texts. What else may write them is looked for from where they are given a value to the end of the loop, and in the functions that
are called there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.carried import Carried, Start, start
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk


def begins(carried: Carried, place: ast.expr) -> Start | None:
    """What the attribute or entry is whenever the loop begins; None where that is not known."""
    names, text = carried.names, ast.unparse(place)
    stores: dict[ast.AST, ast.expr | None] = {n: v for n, v in _stores(carried) if ast.unparse(n) == text}
    last = carried.certain_last(stores)
    if last is None or (value := stores[last]) is None or _is_bound_again(carried, place, last):
        return None
    between = [
        n for n in names.nodes
        if isinstance(n, ast.Call) and names.function(n) is carried.function and position(n) > position(last)
        and (position(n) < position(carried.loop.node) or names.is_inside(n, carried.loop.node))
    ]  # fmt: skip
    if any(_may_write(carried, place, call) for call in between):
        return None
    return start(names, value)


def additions(carried: Carried, place: ast.expr) -> list[ast.expr] | None:
    """What the loop adds to the attribute or entry; None where it gives it something else."""
    text, found = ast.unparse(place), []
    for s in (n for part in carried.loop.node.body for n in walk(part)):
        if isinstance(s, ast.AugAssign) and ast.unparse(s.target) == text:
            if not isinstance(s.op, ast.Add):
                return None
            found.append(s.value)
        elif isinstance(s, ast.Assign) and any(ast.unparse(t) == text for t in s.targets):
            sides = (s.value.left, s.value.right) if isinstance(s.value, ast.BinOp) and isinstance(s.value.op, ast.Add) else ()
            added = [b for a, b in zip(sides, sides[::-1], strict=True) if ast.unparse(a) == text]
            if len(s.targets) > 1 or not added:
                return None
            found.append(added[0])
    return found


def _stores(carried: Carried) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Where the loop's function gives attributes and entries a value, and which: also as one of several."""
    for node in carried.names.nodes:
        if isinstance(node, ast.Assign) and carried.names.function(node) is carried.function:
            for target in node.targets:
                if isinstance(target, ast.Tuple | ast.List):
                    values = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) and len(node.value.elts) == len(target.elts) else []
                    yield from ((t, values[i] if values else None) for i, t in enumerate(target.elts) if isinstance(t, ast.Attribute | ast.Subscript))
                elif isinstance(target, ast.Attribute | ast.Subscript):
                    yield target, node.value if len(node.targets) == 1 else None
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute | ast.Subscript):
            if carried.names.function(node) is carried.function and not carried.names.is_inside(node, carried.loop.node):
                yield node.target, None


def _is_bound_again(carried: Carried, place: ast.expr, last: ast.AST) -> bool:
    """Whether a variable in the place's text means another object in the loop than where the place is given its value."""
    names = carried.names
    read = {n.id for n in walk(place) if isinstance(n, ast.Name)}
    for name in read:
        stored = [b.target for b in names.bindings(names.scope_of[carried.loop.node], name) if b.how != "param"]
        elsewhere = {names.function(b) for b in stored} - {carried.function}
        if any(isinstance(f, FunctionNode) for f in elsewhere):
            return True  # a function with a global statement, or one round this one
        if any(position(b) > position(last) and (position(b) < position(carried.loop.node) or names.is_inside(b, carried.loop.node)) for b in stored):
            return True
    return False


def _may_write(carried: Carried, place: ast.expr, call: ast.Call) -> bool:
    """Whether a call may change the place: a function of the program gives an attribute of this name something, or is given the
    container of the entry.
    """
    if isinstance(place, ast.Subscript):
        holder = ast.unparse(place.value)
        return any(ast.unparse(a) == holder for a in (*call.args, *(k.value for k in call.keywords)))
    assert isinstance(place, ast.Attribute)
    entered = carried.roles.all_entered(call)
    return any(isinstance(n, ast.Attribute) and n.attr == place.attr and not isinstance(n.ctx, ast.Load) for f in entered for n in walk(f))


def rows(carried: Carried) -> list[str]:
    """The lists in attributes and entries that begin empty, are given rows, one a sample, and are read elsewhere: ``self.preds.extend(pred.tolist())``."""
    return list(added(carried))


def added(carried: Carried) -> dict[str, list[ast.expr]]:
    """What is put behind each of these lists, by their texts."""
    found: dict[str, ast.expr] = {}
    given: dict[str, list[ast.expr | None]] = {}
    for n in (n for part in carried.loop.node.body for n in walk(part)):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(n.func.value, ast.Attribute | ast.Subscript):
            found[text := ast.unparse(n.func.value)] = n.func.value
            given.setdefault(text, []).append(_of_samples(n.args[0]) if n.func.attr == "extend" and len(n.args) == 1 else None)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Attribute | ast.Subscript):
            found[text := ast.unparse(n.target)] = n.target
            given.setdefault(text, []).append(_of_samples(n.value) if isinstance(n.op, ast.Add) else None)
    known = {text: [a for a in all_added if a is not None] for text, all_added in given.items() if None not in all_added}
    return {text: a for text, a in known.items() if begins(carried, found[text]) is Start.LIST and read_elsewhere(carried, found[text])}


def _of_samples(added: ast.expr) -> ast.expr | None:
    """What is put behind a list, where it may have an element a sample, and not one a batch: ``losses += [loss.item()]``."""
    return None if isinstance(added, ast.List | ast.Tuple) else added


def read_elsewhere(carried: Carried, place: ast.expr) -> bool:
    """Whether anybody reads the attribute, or the container of the entry, outside of the loop."""
    while isinstance(place, ast.Subscript):
        place = place.value
    if isinstance(place, ast.Name):
        return carried.read_after(place.id)
    reads = carried.names.attributes(place.attr) if isinstance(place, ast.Attribute) else []
    return any(isinstance(n.ctx, ast.Load) and not carried.names.is_inside(n, carried.loop.node) for n in reads)
