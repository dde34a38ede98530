"""What the points-to analysis goes through, again and again until nothing changes, and what it need look at only once."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from dpmigrate.facts.definitions import default
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.objects import Key, leaves
from dpmigrate.facts.scopes import Binding, Scope


@dataclass(frozen=True, eq=False, slots=True)
class Given:
    """A variable and one of the places that bind it."""

    key: Key
    binding: Binding
    scope: Scope
    name: str


@dataclass(eq=False, slots=True)
class Flows:
    """``fixed``: what is bound to definitions and to self, whatever else is known; ``given``: all other bindings; ``steps``: what stores, calls and returns."""

    fixed: list[Given] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    steps: list[ast.AST] = field(default_factory=list)


def flows(names: Names, handed_back: Collection[ast.AST]) -> Flows:
    """Of a program; ``handed_back`` are returns that mean what the call was given."""
    found = Flows()
    for g in _given(names):
        how = g.binding.how
        (found.fixed if how in ("def", "class") or (how == "param" and not _has_default(g)) else found.given).append(g)
    found.steps = [n for n in names.nodes if _may_tell(names, n) and n not in handed_back]
    return found


def _given(names: Names) -> Iterator[Given]:
    for scope in names.opened.values():
        for name, bindings in scope.bindings.items():
            owner = names.owner(scope, name) if name in scope.outer else scope
            for b in bindings:
                yield Given(("v", id(owner or scope), name), b, scope, name)


def _has_default(g: Given) -> bool:
    node, arg = g.scope.node, g.binding.target
    if not isinstance(node, FunctionNode) or not isinstance(arg, ast.arg):
        return False
    known = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return arg in known and default(node.args, arg) is not None


def _may_tell(names: Names, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _may_enter(names, node.func)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return node.value is not None and any(isinstance(t, ast.Attribute | ast.Subscript) for target in targets for t, _ in leaves(target, ()))
    return isinstance(node, ast.Lambda) or (isinstance(node, ast.Return) and node.value is not None)


def _may_enter(names: Names, func: ast.expr) -> bool:
    """Whether a function of the program may be called, or a list grow: not by the name of a library's, or of a builtin."""
    dotted = names.dotted(func)
    return not dotted or (dotted.startswith("?.") and not (isinstance(func, ast.Name) and names.meant(func) is None))
