"""Where the variable of a loader is bound to something made of it before a loop goes over it: ``if part: loader = islice(loader, n)``.

What a loop then goes over may be no loader any more, so that the loader has to become another one before that.
"""

from __future__ import annotations

import ast

from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import FunctionNode, Names, position
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Binding


def remade_after(roles: Roles, loop: BatchLoop) -> tuple[ast.stmt, str] | None:
    """The statement before which the variable that the loop goes over still holds its loader on every way, and the name of the variable.

    None where nothing is made of the loader in between, or where anything else than the loop reads it after that: what is right for the loop may be
    wrong there. Its length and its data set are the same.
    """
    names, source, node = roles.names, loop.source, loop.node
    if not isinstance(source, ast.Name) or not isinstance(node, ast.For | ast.AsyncFor) or loop.drawn is not None:
        return None
    scope, function = names.scope_of[source], names.function(source)
    if not isinstance(function, FunctionNode) or names.owner(scope, source.id) is not scope:
        return None
    bound = list(names.bindings(scope, source.id))
    remade = sorted((b for b in bound if b.how != "param"), key=lambda b: position(b.target))
    if not remade or len(remade) == len(bound) or not all(_made_of_itself(roles, b, source.id) for b in remade):
        return None
    later = [b.value for b in remade[1:] if b.value is not None]
    if not names.is_inside(source, node.iter) and not any(names.is_inside(source, v) for v in later):
        return None  # it is the loader itself, of which the first thing is made
    if any(position(b.target) > position(node) or names.function(b.target) is not function for b in remade):
        return None
    first = _beside(names, names.statement(remade[0].target), node)
    if first is None:
        return None
    made = [b.value for b in remade if b.value is not None]
    reads = (n for n in names.uses(scope, source.id) if isinstance(n.ctx, ast.Load) and position(n) >= position(first))
    if all(_same_for_all(names, n) or names.is_inside(n, node.iter) or any(names.is_inside(n, v) for v in made) for n in reads):
        return first, source.id
    return None


def _made_of_itself(roles: Roles, b: Binding, name: str) -> bool:
    """Whether a binding gives the variable something that code outside of the program makes of what it holds."""
    if b.how != "assign" or b.path or not isinstance(b.value, ast.Call) or any(True for _ in roles.values.targets(b.value)):
        return False
    return any(isinstance(a, ast.Name) and a.id == name for a in b.value.args)


def _beside(names: Names, inner: ast.stmt, loop: ast.stmt) -> ast.stmt | None:
    """The statement round ``inner`` that stands in a block round the loop, before it."""
    around = {names.parent[loop], *names.ancestors(loop)}
    while names.parent[inner] not in around:
        above = names.parent[inner]
        if not isinstance(above, ast.stmt):
            return None
        inner = above
    blocks = (getattr(names.parent[inner], field, ()) for field in ("body", "orelse", "finalbody"))
    block = next((b for b in blocks if inner in b), ())
    after = any(s is loop or names.is_inside(loop, s) for s in block[block.index(inner) + 1 :]) if block else False
    return inner if after else None


def _same_for_all(names: Names, node: ast.AST) -> bool:
    """``len(loader)``, ``loader.dataset``."""
    above = names.parent[node]
    if isinstance(above, ast.Attribute):
        return above.attr == "dataset" and isinstance(above.ctx, ast.Load)
    return isinstance(above, ast.Call) and above.args == [node] and names.dotted(above.func) == "?.len"
