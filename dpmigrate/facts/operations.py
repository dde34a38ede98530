"""What the program's own autograd functions write into what they are given: a bank that ``backward`` brings up to date."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.definitions import parameters
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.stored import stored


def written_by_operations(roles: Roles) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Statements of autograd functions that change something they were given, each with what an ``apply`` gave for it."""
    for call in roles.names.calls("apply"):
        owners = roles.values.eval(call.func.value) if isinstance(call.func, ast.Attribute) else ()
        for cls in (v.cls for v in owners if v.kind == "class" and v.cls is not None):
            if any(roles.names.dotted(b).endswith("autograd.Function") for c in roles.values.defs.bases(cls) for b in c.bases):
                for stmt, place in _changed(roles, cls):
                    if place < len(call.args):
                        yield stmt, call.args[place]


def _changed(roles: Roles, cls: ast.ClassDef) -> Iterator[tuple[ast.stmt, int]]:
    """The statements that change an argument, with its place among those of ``apply``."""
    forward, backward = (roles.values.defs.method(cls, name) for name in ("forward", "backward"))
    given = parameters(forward)[1:] if forward is not None else []
    for function in (f for f in (forward, backward) if f is not None):
        for stmt in (n for n in walk(function) if isinstance(n, ast.stmt)):
            for s in stored(roles.names, stmt):
                if isinstance(s.holder, ast.Name) and (s.index or not isinstance(stmt, ast.Assign)):
                    name = s.holder.id if function is forward else _saved(roles, s.holder, forward)
                    if name in given:
                        yield stmt, given.index(name)


def _saved(roles: Roles, held: ast.Name, forward: FunctionNode | None) -> str:
    """The parameter of ``forward`` that a variable of ``backward`` is, by its place in ``save_for_backward``."""
    saves = [n for n in walk(forward) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)] if forward is not None else []
    kept = next((c.args for c in saves if isinstance(c.func, ast.Attribute) and c.func.attr == "save_for_backward"), [])
    for b in roles.names.bindings(roles.names.scope_of[held], held.id):
        if isinstance(b.value, ast.Attribute) and b.value.attr in ("saved_tensors", "saved_variables"):
            place = b.path[0] if b.path else 0
            if isinstance(place, int) and place < len(kept) and isinstance(name := kept[place], ast.Name):
                return name.id
    return ""
