"""Which values are made of the samples of a batch, or of their number: not parameters, tables, types and other sizes."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.library import FLOATS, FORM, INTEGERS, MAKES_ALIKE, MOVES
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.passes import methods_of_model
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Binding

#: methods that take no more of their tensor than its type and device
_LIKE = MAKES_ALIKE | {"new_tensor"}
#: what a loader says of itself
_OF_LOADER = frozenset({"batch_size", "dataset", "sampler", "batch_sampler", "num_workers", "drop_last"})


def of_batch(roles: Roles, node: ast.AST, seen: set[Hashable] | None = None) -> bool:
    """Whether the value is made of samples or of their number: not of other sizes, of types, or of what a module holds.

    ``seen`` are the variables that are being looked at: other places that give them a value decide.
    """
    known: set[Hashable] = set() if seen is None else seen
    for n in walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and _sample(roles, n, known):
            return True
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self" and _held(roles, n, known):
            return True
    return False


def of_loader(roles: Roles, node: ast.Name) -> bool:
    """Whether the name is part of what a loader gives."""
    return any(b.value is not None and bool(roles.loaders_of(b.value)) for b in roles.names.bindings(roles.names.scope_of[node], node.id))


def of_a_turn(roles: Roles, node: ast.expr) -> bool:
    """Whether the variable is made in the batch loop, or is a parameter: the data set, the loader and the classes are made before it."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name) or roles.loaders_of(node):
        return not isinstance(node, ast.Name)
    return any(b.how == "param" or roles.region(b.target) in ("train", "both") for b in roles.names.bindings(roles.names.scope_of[node], node.id))


def unmoved(value: ast.AST | None) -> ast.AST | None:
    """``batch`` of ``batch[0].to(device)``, ``Variable(batch)``."""
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in MOVES | FLOATS | INTEGERS:
            value = value.func.value
        elif isinstance(value, ast.Call) and last(value.func) == "Variable" and value.args:
            value = value.args[0]
        elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            value = value.value
        else:
            return value


def one_by_one(roles: Roles, node: ast.AST) -> bool:
    """Whether the expression is about an element that a loop or a comprehension takes of something else than a loader: one sample at a time."""
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and _taken(roles, n) for n in walk(node))


def of_one(roles: Roles, node: ast.AST) -> bool:
    """Whether the value belongs to one sample: ``targets[i]``, a loop's element, and what is made of them, also where a function is given it."""
    return _Singles(roles).of_one(node)


class _Singles:
    """All bindings that a value goes back to must give one sample, and one of them must take it from somewhere.

    What gives none is found by leaving out bindings until no more fall away: variables that are made of each other are looked at once a round,
    where a search along each way through them would go through as many ways as there are orders of them.
    """

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._seen: dict[ast.AST, bool] = {}
        self._fallen: set[ast.AST] = set()
        self._is_taken = False

    def of_one(self, node: ast.AST) -> bool:
        fallen = -1
        while len(self._fallen) > fallen:
            fallen = len(self._fallen)
            self._seen = {}
            self._is_taken = False
            if not self._value(node):
                return False
        return self._is_taken

    def _value(self, node: ast.AST) -> bool:
        while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
            if isinstance(node, ast.Subscript):
                first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
                if isinstance(first, ast.Name) and self._takes(first):
                    return True
            if isinstance(node, ast.Call):
                if not isinstance(node.func, ast.Attribute):
                    return False
                node = node.args[0] if self._roles.names.dotted(node.func).startswith("torch.") and node.args else node.func.value
            else:
                node = node.value
        if isinstance(node, ast.BinOp):
            return self._value(node.left) or self._value(node.right)
        if not isinstance(node, ast.Name):
            return False
        bound = list(self._roles.names.bindings(self._roles.names.scope_of[node], node.id))
        return self._takes(node) or (bool(bound) and all(self._bound(b) for b in bound))

    def _bound(self, b: Binding) -> bool:
        if b.target in self._fallen:
            return False
        if b.target not in self._seen:
            self._seen[b.target] = True
            if not self._given(b):
                self._fallen.add(b.target)
                self._seen[b.target] = False
        return self._seen[b.target]

    def _given(self, b: Binding) -> bool:
        if b.how == "assign":
            return b.value is not None and not b.path and self._value(b.value)
        given = self._roles.handed(b)
        return bool(given) and all(e is not None and self._value(e) for e in given)

    def _takes(self, node: ast.Name) -> bool:
        taken = _taken(self._roles, node)
        self._is_taken |= taken
        return taken


def _taken(roles: Roles, node: ast.Name) -> bool:
    """Whether loops alone give the name a value, over something else than a loader."""
    bound = list(roles.names.bindings(roles.names.scope_of[node], node.id))
    return bool(bound) and all(b.how == "for" and b.value is not None and not any(roles.loaders_of(e) for e in walk(b.value)) for b in bound)


def _held(roles: Roles, node: ast.Attribute, seen: set[Hashable]) -> bool:
    key = tuple(sorted(map(str, roles.values.keys(node))))
    if key in seen:
        return False
    seen.add(key)
    keys = set(roles.values.keys(node))
    stores = (a for a in roles.names.attributes(node.attr) if isinstance(a.ctx, ast.Store) and keys & set(roles.values.keys(a)))
    added = [s.value for a in stores if isinstance(s := roles.names.parent[a], ast.AugAssign)]
    return any(of_batch(roles, value, seen) for value in (*roles.given(node), *added))


def of_all_batches(roles: Roles, node: ast.AST) -> bool:
    """Whether it is made of all batches of a loader, or of each in turn, in no loop that trains: ``torch.cat([y for _, y in loader])``."""
    made = (n for n in (*walk(node), *roles.names.ancestors(node)) if isinstance(n, ast.ListComp | ast.GeneratorExp))
    return roles.region(node) not in ("train", "both") and any(bool(roles.loaders_of(g.iter)) for n in made for g in n.generators)


def _sample(roles: Roles, node: ast.Name, seen: set[Hashable]) -> bool:
    if node.id == "self" or _other_size(roles, node):
        return False
    variable = roles.names.meant(node)
    if variable in seen:
        return False
    seen.add(variable)
    bound = list(roles.names.bindings(roles.names.scope_of[node], node.id))
    if roles.loaders_of(node):
        if not _about_loader(roles, node):
            return True
        if all(b.how == "assign" and not b.path and b.value is not None and roles.loaders_of(b.value) for b in bound):
            return False  # nothing but a loader; what made it may have the name of a batch: data.DataLoader(…) beside for data in loader
    return any(_bound(roles, b, node, seen) for b in bound)


def _bound(roles: Roles, b: Binding, node: ast.Name, seen: set[Hashable]) -> bool:
    if b.how == "param" and isinstance(b.target, ast.arg):
        function = roles.names.scope_of[b.target].node
        calls = _calls(roles, function) if isinstance(function, FunctionNode) else []
        if not isinstance(function, FunctionNode) or (function.name == "forward" and not calls):
            return True
        return any(_given(roles, c, _passed(roles, c, function, node.id), seen) for c in calls)
    if b.value is None or isinstance(b.value, FunctionNode | ast.ClassDef) or roles.names.is_inside(node, b.value) or _counter(roles, b):
        return False
    if _from_call(roles, b):
        return True
    if b.path and b.path[0] != 0:  # length and dim of n, length, dim = x.shape, or of n, length, dim, device = *x.shape, x.device
        first = b.value.elts[0] if isinstance(b.value, ast.Tuple | ast.List) and b.value.elts else None
        if isinstance(first, ast.Starred) and _is_size(roles, first.value):
            return any(of_batch(roles, e, seen) for e in b.value.elts[1:])  # type: ignore[attr-defined]
        if _is_size(roles, b.value):
            return False
    return of_batch(roles, b.value, seen)


def _from_call(roles: Roles, b: Binding) -> bool:
    """Whether the batch comes from the call of a loader, with no name for it: ``for x, y in DataLoader(…)``, ``next(iter(DataLoader(…)))``."""
    if b.value is None or not (b.how == "for" or (isinstance(b.value, ast.Call) and roles.names.dotted(b.value.func) == "?.next")):
        return False
    return bool(roles.loaders_of(b.value)) or any(n in roles.loader_calls and not _about_loader(roles, n) for n in walk(b.value) if isinstance(n, ast.Call))


def _about_loader(roles: Roles, node: ast.expr) -> bool:
    """``len(loader)``, ``loader.batch_size``: of the loader, and of no batch."""
    above = roles.names.parent[node]
    return (isinstance(above, ast.Call) and roles.names.dotted(above.func) == "?.len") or (isinstance(above, ast.Attribute) and above.attr in _OF_LOADER)


def _counter(roles: Roles, b: Binding) -> bool:
    """``i`` of ``for i, batch in enumerate(loader)``, also with a bar round it."""
    calls = (n for n in walk(b.value) if isinstance(n, ast.Call)) if b.value is not None and b.how == "for" and b.path == ("*", 0) else ()
    return any(roles.names.dotted(c.func) == "?.enumerate" for c in calls)


def _passed(roles: Roles, call: ast.Call, function: FunctionNode, parameter: str) -> ast.expr | None:
    """What the call gives for the parameter; a wrapper hands its arguments on to ``forward``, and other methods are called behind it."""
    found = roles.passed(call, function, parameter)
    return found if found is not None or not roles.inside_module(function) else dict(arguments(call, function, 1)).get(parameter)


def _calls(roles: Roles, function: FunctionNode) -> list[ast.Call]:
    """The calls of the function; of a method of a module also those behind a wrapper: ``model.module.remember(keys)``."""
    calls = roles.values.callers.get(function, [])
    if calls or function.name == "forward" or not roles.inside_module(function):
        return calls
    return [c for c in roles.names.calls_of(function) if function in methods_of_model(roles, c)]


def _given(roles: Roles, call: ast.Call, value: ast.expr | None, seen: set[Hashable]) -> bool:
    starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    return of_batch(roles, value, seen) if value is not None else starred


def _is_size(roles: Roles, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _is_size(roles, node.args[0]) if _listed(roles, node) else not node.args and _is_size(roles, node.func)
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "size")


def _listed(roles: Roles, node: ast.AST) -> bool:
    """``list(x.size())``, ``tuple(x.shape)``: the same sizes."""
    return isinstance(node, ast.Call) and len(node.args) == 1 and roles.names.dotted(node.func) in ("?.list", "?.tuple")


def _other_size(roles: Roles, node: ast.Name) -> bool:
    """``x.shape[1]``, ``x.size(-1)``, ``x.device``, ``x.new_zeros(3)``: what is the same for every part of the batch."""
    above = roles.names.parent[node]
    if not isinstance(above, ast.Attribute) or above.attr not in FORM | _LIKE:
        return False
    outer = roles.names.parent[above]
    if above.attr in _LIKE:
        return isinstance(outer, ast.Call)
    if isinstance(outer, ast.Call) and above.attr == "size" and not outer.args and not outer.keywords:
        outer = roles.names.parent[outer]  # x.size()[0]
    if _listed(roles, outer):
        outer = roles.names.parent[outer]  # list(x.size())[0]
    index = outer.slice if isinstance(outer, ast.Subscript) else outer.args[0] if isinstance(outer, ast.Call) and outer.func is above and outer.args else None
    return not (isinstance(index, ast.Constant) and index.value == 0) and not (above.attr in ("shape", "size") and index is None)
