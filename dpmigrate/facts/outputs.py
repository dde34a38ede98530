"""Which outputs of a model no training step puts into its loss, and which parts of the model they alone are made of."""

from __future__ import annotations

import ast

from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import children, walk
from dpmigrate.facts.passes import written_names
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.values import Vals

_Place = int | str


def idle_parts(roles: Roles, cls: ast.ClassDef, models: Vals) -> frozenset[str]:
    """The attributes of the models' class that reach only outputs which no loss is made of; empty where an output may go anywhere.

    ``forward`` has to give tuples of one length, or dicts, and every training step has to take them apart where it calls the model.
    """
    forward = roles.values.defs.method(cls, "forward")
    given = _given(roles, forward) if forward is not None else None
    if forward is None or given is None:
        return frozenset()
    used: set[_Place] = set()
    passes = [p for p in roles.training_passes if any(roles.values.inner(m) & models for m in roles.model_vals(p.model))]
    for p in passes:
        taken = _used(roles, p.call, set(given)) if p.path == "" and p.model in (p.call.func, getattr(p.call.func, "value", None)) else None
        if taken is None:
            return frozenset()
        used |= taken
    if not passes or not used:
        return frozenset()
    working = _parts(roles, cls, forward, [e for place, values in given.items() if place in used for e in values])
    return _parts(roles, cls, forward, [e for values in given.values() for e in values]) - working


def _given(roles: Roles, forward: FunctionNode) -> dict[_Place, list[ast.expr]] | None:
    """What ``forward`` gives at each place of its result; None where its results have no such places, or not always the same."""
    found: list[dict[_Place, ast.expr]] = []
    for n in walk(forward):
        if isinstance(n, ast.Return) and roles.names.function(n) is forward:
            places = _places(n.value)
            if places is None or (found and set(places) != set(found[0])):
                return None
            found.append(places)
    return {place: [f[place] for f in found] for place in found[0]} if found and len(found[0]) > 1 else None


def _places(value: ast.expr | None) -> dict[_Place, ast.expr] | None:
    if isinstance(value, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in value.elts):
        return dict(enumerate(value.elts))
    if isinstance(value, ast.Dict) and all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in value.keys):
        return {k.value: e for k, e in zip(value.keys, value.values, strict=True)}  # type: ignore[union-attr]
    return None


# ---------------------------------------------------------------------- where the model is called
def _used(roles: Roles, call: ast.expr, places: set[_Place]) -> set[_Place] | None:
    """The places of a result that may go into the loss; None where the whole may."""
    above, stmt = roles.names.parent[call], roles.names.statement(call)
    if isinstance(above, ast.Subscript) and above.value is call:
        return _one(above, places) if _into_loss(roles, stmt) else None
    if not isinstance(above, ast.Assign) or len(above.targets) != 1:
        return None
    target = above.targets[0]
    if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(places) and not any(isinstance(e, ast.Starred) for e in target.elts):
        return {i for i, e in enumerate(target.elts) if roles.into_loss(e)}
    return _of_name(roles, target, places) if isinstance(target, ast.Name) else None


def _of_name(roles: Roles, target: ast.Name, places: set[_Place]) -> set[_Place] | None:
    used: set[_Place] = set()
    for read in roles.names.reads(target.id):
        if roles.names.function(read) is roles.names.function(target):
            above = roles.names.parent[read]
            if isinstance(above, ast.Assign):
                taken = _used(roles, read, places)
            else:
                taken = _one(above, places) if isinstance(above, ast.Subscript) and above.value is read else None
                if taken is not None and not _into_loss(roles, roles.names.statement(read)):
                    taken = set()
            if taken is None:
                return None
            used |= taken
    return used


def _one(node: ast.Subscript, places: set[_Place]) -> set[_Place] | None:
    """The place that an index names."""
    index: object = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.op, ast.USub) and isinstance(node.slice.operand, ast.Constant):
        index = len(places) - node.slice.operand.value if isinstance(node.slice.operand.value, int) else None
    return {index} if isinstance(index, int | str) and index in places else None


def _into_loss(roles: Roles, stmt: ast.stmt) -> bool:
    if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        return roles.into_loss(*targets)
    return any(roles.names.is_inside(b, stmt) for b in roles.backwards) or not isinstance(stmt, ast.Expr)


# ---------------------------------------------------------------------- what the outputs are made of
def _parts(roles: Roles, cls: ast.ClassDef, forward: FunctionNode, outputs: list[ast.expr]) -> frozenset[str]:
    """The attributes of self that go into some expressions of ``forward``, through its variables and the class's own methods.

    What a statement keeps elsewhere (``self.last = …``, ``outs.append(…)``) or a test asks counts as well: who reads it is not followed.
    """
    known = written_names(*outputs)
    flows: list[tuple[set[str], set[str]]] = []
    for stmt in (n for n in walk(forward) if isinstance(n, ast.stmt) and n is not forward and not isinstance(n, ast.Return)):
        read = written_names(*(e for e in children(stmt) if isinstance(e, ast.expr | ast.withitem)))
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AugAssign | ast.AnnAssign | ast.For) else []
        if targets and all(isinstance(t, ast.Name | ast.Tuple | ast.List) for t in targets):
            flows.append((written_names(*targets), read))
        else:
            known |= read
    size = -1
    while len(known) > size:
        size = len(known)
        known = known.union(*(read for targets, read in flows if targets & known), *(_of_method(roles, cls, name) for name in known))
    return frozenset(name.split(".")[1] for name in known if name.startswith("self.") and name.count("self.") == 1)


def _of_method(roles: Roles, cls: ast.ClassDef, name: str) -> set[str]:
    method = roles.values.defs.method(cls, name[5:]) if name.startswith("self.") else None
    return written_names(method) if method is not None else set()
