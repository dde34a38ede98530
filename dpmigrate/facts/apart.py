"""Which variable holds the object of the training, where one place makes those of evaluations, too: ``data = create(opt)``, ``test = create(other)``.

The analysis of values knows one object for each place that makes one. Two variables hold two of them where each is given what a call makes anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpmigrate.facts.definitions import is_static, parameters, through
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import Key, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

_DEPTH = 8
#: calls that take no batches from an object
COUNTS = frozenset({"?.len", "?.print", "?.str", "?.type", "?.isinstance", "?.super", "?.hasattr", "?.getattr", "?.setattr", "?.id", "?.vars"})


def given(roles: Roles, node: ast.expr) -> tuple[ast.Assign, ...]:
    """The assignments by which an object came into a variable first, whatever names it had after that; none where that is not one plain call each."""
    seen: set[ast.stmt] = set()
    todo, out = [node], []
    while todo:
        one = todo.pop()
        writes = [w for key, _ in roles.roots(one) for w in roles.writes(key)] if isinstance(one, ast.Name | ast.Attribute) else []
        if not writes or not all(isinstance(w, ast.Assign) and len(w.targets) == 1 for w in writes):
            return ()
        for w in (w for w in writes if w not in seen and isinstance(w, ast.Assign)):
            seen.add(w)
            if isinstance(w.value, ast.Call) and isinstance(w.targets[0], ast.Name | ast.Attribute):
                out.append(w)
            elif isinstance(w.value, ast.Name | ast.Attribute):
                todo.append(w.value)
            elif not (isinstance(w.value, ast.Constant) and w.value.value is None):
                return ()
    return tuple(out)


def taking(roles: Roles, statements: tuple[ast.Assign, ...], objects: Vals, uses: Iterable[ast.expr]) -> list[ast.expr]:
    """The places, of those that read one of several objects, that may read the one which the statements give a variable."""
    if not all(_made_anew(roles, w.value, objects) for w in statements):
        return list(uses)
    held = _also_named(roles, {k for w in statements for k in (*roles.values.keys(w.targets[0]), *_keys(roles, w.value))})
    return [n for n in uses if not _another(roles, n, held, objects, _DEPTH)]


def _another(roles: Roles, node: ast.expr, held: set[Key], objects: Vals, depth: int) -> bool:
    """Whether an expression is seen to mean another object than the variables hold: one that is made anew for a variable of its own."""
    while isinstance(node, ast.Call) and (inner := through(roles.names, node)) is not None:
        node = inner
    roots = roles.roots(node)
    return depth > 0 and bool(roots) and all(_given_another(roles, key, n, held, objects, depth) for key, n in roots)


def _given_another(roles: Roles, key: Key, node: ast.AST, held: set[Key], objects: Vals, depth: int) -> bool:
    bound = roles.names.bindings(roles.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ()
    values = [w.value for w in roles.writes(key) if isinstance(w, ast.Assign) and any(key in roles.values.keys(t) for t in w.targets)]
    if key in held or not 0 < len(values) == len(roles.writes(key)) or any(b.how != "assign" for b in bound):
        return False
    return all(
        _another(roles, v, held, objects, depth - 1) if isinstance(v, ast.Name | ast.Attribute)
        else (isinstance(v, ast.Constant) and v.value is None) or _made_anew(roles, v, objects)
        for v in values
    )  # fmt: skip


def _also_named(roles: Roles, held: set[Key]) -> set[Key]:
    """The variables and all that are given what they hold: ``train_data = data``, ``train_data = data.load()`` where that gives ``data`` itself."""
    names, before = set(held), -1
    assigned = [n for n in roles.names.nodes if isinstance(n, ast.Assign)]
    while len(names) > before:
        before = len(names)
        for w in assigned:
            if _keys(roles, w.value) & names:
                names |= {k for t in w.targets for k in roles.values.keys(t)}
    return names


def _keys(roles: Roles, node: ast.expr) -> set[Key]:
    """The variables whose object an expression gives: ``data``, ``data.load()`` where that gives ``data`` itself, ``shown(data)``."""
    while isinstance(node, ast.Call):
        inner = _itself(roles, node) or roles.handed_back(node) or through(roles.names, node)
        if inner is None:
            return set()
        node = inner
    return {k for k, _ in roles.roots(node)}


def _itself(roles: Roles, call: ast.Call) -> ast.expr | None:
    """``data`` of ``data.load()``, where the method gives the object itself."""
    functions = [f for f, _ in roles.values.targets(call)]
    own = bool(functions) and all(_gives_itself(roles, f) for f in functions)
    return call.func.value if own and isinstance(call.func, ast.Attribute) else None


def _gives_itself(roles: Roles, function: FunctionNode) -> bool:
    me = parameters(function)[:1]
    returned = [r.value for r in roles.names.returns(function)]
    method = roles.values.defs.method_class(function) is not None and not is_static(function) and not function.decorator_list
    return method and bool(returned) and all(isinstance(v, ast.Name) and [v.id] == me for v in returned)


def _made_anew(
    roles: Roles, node: ast.expr, objects: Vals, within: FunctionNode | None = None, seen: frozenset[object] = frozenset()
) -> bool:
    """Whether an expression makes an object whenever it is evaluated, and nothing else may hold that but the variables that lead to it; those of a function
    that is called on the way (``within``) are its own. What is met again, as in ``feed = feed.ready()``, is taken for granted.
    """
    if isinstance(node, ast.Name):
        scope = roles.names.scope_of[node]
        bound = list(roles.names.bindings(scope, node.id))
        values = [b.value for b in bound if b.how == "assign" and not b.path and isinstance(b.value, ast.expr)]
        own = within is None or roles.names.owner(scope, node.id) is roles.names.opened[within]
        if not own or not 0 < len(values) == len(bound):
            return False
        return (scope, node.id) in seen or all(_made_anew(roles, v, objects, within, seen | {(scope, node.id)}) for v in values)
    if not isinstance(node, ast.Call) or node in seen:
        return False
    seen |= {node}
    if made := {v for v in roles.values.eval(node) & objects if v.node is node}:
        classes = [v.cls for v in made if v.cls is not None]
        return all(not c.decorator_list and roles.values.defs.method(c, "__new__") is None for c in classes)
    if (itself := _itself(roles, node)) is not None:
        return _made_anew(roles, itself, objects, within, seen)
    functions = [f for f, _ in roles.values.targets(node)]
    returned = [(f, r.value) for f in functions for r in roles.names.returns(f)]
    plain = all(not f.decorator_list and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(f)) for f in functions)
    return plain and bool(returned) and all(v is not None and _made_anew(roles, v, objects, f, seen) and not _kept(roles, f, objects) for f, v in returned)


def _kept(roles: Roles, function: FunctionNode, objects: Vals) -> bool:
    """Whether a function stores one of the objects anywhere but in variables of its own, or hands it to code that is not seen."""
    own = roles.names.opened[function]
    for n in walk(function):
        if isinstance(n, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and n.value is not None and roles.values.eval(n.value) & objects:
            targets = n.targets if isinstance(n, ast.Assign) else [n.target]
            if not all(isinstance(t, ast.Name) and roles.names.owner(roles.names.scope_of[t], t.id) is own for t in targets):
                return True
        elif isinstance(n, ast.Call) and not any(True for _ in roles.values.targets(n)):
            given = (*n.args, *(k.value for k in n.keywords))
            if any(roles.values.eval(e) & objects for e in given) and roles.names.dotted(n.func) not in COUNTS:
                return True
        elif isinstance(n, ast.List | ast.Tuple | ast.Dict | ast.Set):
            if any(isinstance(e, ast.expr) and roles.values.eval(e) & objects for e in ast.iter_child_nodes(n)):
                return True
    return False
