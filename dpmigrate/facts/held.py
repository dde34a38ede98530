"""What variables and attributes of self hold, by the names alone: for facts that come before the analysis of values."""

from __future__ import annotations

import ast
from collections.abc import Collection

from dpmigrate.facts.definitions import SAME
from dpmigrate.facts.names import FunctionNode, Names, of_self, position
from dpmigrate.facts.scopes import Binding


def class_of(names: Names, node: ast.AST) -> ast.ClassDef | None:
    """The class of this program whose object the variable is."""
    if isinstance(node, ast.Attribute) and of_self(node):
        values = stored_values(names, node)
    elif isinstance(node, ast.Name):
        bound = names.bindings(names.scope_of[node], node.id)
        values = [b.value for b in bound if b.how == "assign" and isinstance(b.value, ast.expr) and not b.path]
    else:
        return None
    found = {_class_made(names, v) for v in values if not (isinstance(v, ast.Constant) and v.value is None)}  # an object that may be left out
    return found.pop() if len(found) == 1 else None


def stored_values(names: Names, node: ast.Attribute) -> list[ast.expr]:
    """What is assigned to the attribute anywhere."""
    stores = (names.statement(s) for s in names.attributes(node.attr) if isinstance(s.ctx, ast.Store) and of_self(s))
    return [s.value for s in stores if isinstance(s, ast.Assign | ast.AnnAssign) and s.value is not None]


def always_true(names: Names, cls: ast.ClassDef, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether an object of the class is true whatever it holds: neither the class nor one that it derives from says otherwise
    (https://docs.python.org/3/library/stdtypes.html#truth-value-testing).
    """
    if any(isinstance(n, FunctionNode) and n.name in ("__bool__", "__len__") for n in cls.body) or cls.keywords:
        return False
    for base in cls.bases:
        found = class_meant(names, base)
        known = always_true(names, found, seen | {cls}) if found is not None and found not in seen else names.dotted(base) in _PLAIN_BASES
        if not known:
            return False
    return True


#: bases whose objects are always true
_PLAIN_BASES = frozenset({"?.object", "torch.nn.Module", "abc.ABC"})


def _class_made(names: Names, value: ast.expr) -> ast.ClassDef | None:
    """The class of this program that the value is an object of: ``Net(config).to(device)``."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in SAME:
        value = value.func.value
    return class_meant(names, value.func) if isinstance(value, ast.Call) else None


def class_meant(names: Names, node: ast.expr) -> ast.ClassDef | None:
    """The class of this program that a name means."""
    found = names.meant(node)
    bound = list(names.bindings(*found)) if found is not None and found[1] else []
    return bound[0].target if len(bound) == 1 and isinstance(bound[0].target, ast.ClassDef) else None


def held_by_own(names: Names, node: ast.Attribute) -> bool:
    """Whether the attribute is one that objects of this program's own classes store: what they hold is asked of it alone."""
    own = isinstance(node.value, ast.Attribute) and class_of(names, node.value) is not None
    return own and any(isinstance(s.ctx, ast.Store) and of_self(s) for s in names.attributes(node.attr))


def latest(names: Names, node: ast.Name, bound: Collection[Binding]) -> Binding | None:
    """The one assignment whose value is read for certain: the last before the read, in a block round it, with none that may run between them."""
    function = names.function(node)
    before = [b for b in bound if names.function(b.target) is function and position(b.target) < position(node) and not _gives(names, b, node)]
    last = max(before, key=lambda b: position(b.target), default=None)
    if last is None or last.how != "assign" or any(names.function(b.target) is not function for b in bound):
        return None
    stmt = names.statement(last.target)
    loops = [a for a in names.ancestors(node) if isinstance(a, ast.For | ast.While) and not names.is_inside(stmt, a)]
    repeated = any(names.is_inside(b.target, a) for a in loops for b in bound)
    return last if not repeated and any(names.is_inside(node, s) for s in names.block(stmt)) else None


def _gives(names: Names, b: Binding, node: ast.Name) -> bool:
    """Whether the variable is read to be given its next value: ``names = list(names)``."""
    return b.how == "assign" and names.is_inside(node, names.statement(b.target))
