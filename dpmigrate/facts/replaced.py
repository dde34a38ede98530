"""Training that a program does not show: what is found by name and trains, and decorators of its own that put something else into a function's place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.definitions import parameters
from dpmigrate.facts.names import FunctionNode, Loop, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.told import PLACE, Told

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

_FORWARD = frozenset({"forward", "__call__"})


# ------------------------------------------------------------------ what is found by name
def unseen_training(roles: Roles) -> Iterator[tuple[ast.Call, str]]:
    """The calls of what a computed name finds that are given an optimizer or a shuffled loader, each with the words for the look-up."""
    lookups = roles.values.lookups
    for call in roles.calls:
        method = lookups.behind(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        corner = lookups.corner(call.func) or lookups.corner(call) or method
        given = [*call.args, *(k.value for k in call.keywords)]
        if corner and not any(True for _ in roles.values.targets(call)) and any(_trained_with(roles, e) for e in given):
            yield call, corner


def _trained_with(roles: Roles, node: ast.expr) -> bool:
    """Whether the expression is an optimizer, or a loader that shuffles: what evaluates needs neither."""
    for v in roles.values.eval(node):
        shuffles = isinstance(v.node, ast.Call) and any(k.arg == "shuffle" and not _is_false(k.value) for k in v.node.keywords)
        if v.kind == "call" and (v.qual.startswith("torch.optim.") or (shuffles and v.node in roles.loader_calls)):
            return ".lr_scheduler." not in v.qual
    return False


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


# ------------------------------------------------------------------ the wrapper's own forward
def forwards_given(roles: Roles, *, parallel: bool) -> Iterator[ast.AST]:
    """Where the wrapper of a model is given another ``forward``, by which the gradients would not be averaged; under a name that is computed, this may be
    one of a DataParallel (``parallel``). Else the model inside gets what is set (DPM107), which its wrapper calls.
    """
    for node in roles.names.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in _FORWARD and _may_be_wrapper(roles, node.value):
            yield node
        elif isinstance(node, ast.Call) and roles.names.dotted(node.func) == "?.setattr" and len(node.args) == 3 and _may_be_wrapper(roles, node.args[0]):
            name = node.args[1]
            if name.value in _FORWARD if isinstance(name, ast.Constant) else parallel:
                yield node


def _may_be_wrapper(roles: Roles, node: ast.expr) -> bool:
    return any(v.kind == "wrapped" for v in roles.model_vals(node))


# ------------------------------------------------------------------ decorators
def replacing(roles: Roles) -> Iterator[tuple[ast.expr, Told]]:
    """The program's own decorators of functions that lead to a training loop and do not simply call them once, each with what it does instead."""
    for function in _leading(roles):
        for decorator in function.decorator_list:
            for v in roles.values.eval(decorator):
                if isinstance(v.node, FunctionNode) and v.kind == "func" and len(parameters(v.node)) == 1:
                    written = last(decorator.func) if isinstance(decorator, ast.Call) else last(decorator)
                    why = _why(roles, v.node, f"{written}() takes the place of {function.name} and")
                    if why is not None:
                        yield decorator, why


def _leading(roles: Roles) -> list[FunctionNode]:
    """The functions that train, or that call what trains."""
    defs = [n for n in roles.names.nodes if isinstance(n, FunctionNode)]
    return [f for f in defs if f.decorator_list and roles.reaches_backward(f)]


def _why(roles: Roles, decorator: FunctionNode, begin: str) -> Told | None:
    """What a decorator does with the function other than to call it once with what it is given; None where it does not."""
    parameter = parameters(decorator)[0]
    reads = [n for n in walk(decorator) if isinstance(n, ast.Name) and n.id == parameter and isinstance(n.ctx, ast.Load)]
    calls = [p for n in reads if isinstance(p := roles.names.parent[n], ast.Call) and p.func is n]
    returned = any(isinstance(roles.names.parent[n], ast.Return) for n in reads)
    if returned and not calls:
        return None  # it keeps the function somewhere and hands it back
    if not calls:
        handed = next((p for n in reads if isinstance(p := roles.names.parent[n], ast.Call | ast.keyword) and not _keeps_its_name(roles, n)), None)
        what = "hands it to code that is not seen" if handed is not None else "never calls it"
        return Told(f"{begin} {what} ({PLACE})", handed or decorator)
    for call in calls:
        if len(calls) > 1 or any(isinstance(a, Loop) for a in roles.names.ancestors(call) if roles.names.is_inside(a, decorator)):
            return Told(f"{begin} calls it more than once ({PLACE})", call)
        inner = roles.names.function(call)
        own = {a.arg for a in walk(inner.args) if isinstance(a, ast.arg)} if isinstance(inner, FunctionNode) and inner is not decorator else set()
        changed = next((e for e in (*call.args, *(k.value for k in call.keywords)) if _changes(e, own)), None)
        if changed is not None:
            return Told(f"{begin} gives it something else, {ast.unparse(changed)} ({PLACE})", changed)
    return None


def _changes(given: ast.expr, own: set[str]) -> bool:
    """Whether an argument is made of what the caller gave, and is not that itself."""
    plain = given.value if isinstance(given, ast.Starred) else given
    return not isinstance(plain, ast.Name) and any(isinstance(n, ast.Name) and n.id in own for n in walk(plain))


def _keeps_its_name(roles: Roles, node: ast.Name) -> bool:
    """``functools.wraps(function)``, which takes its name alone."""
    call = roles.names.parent[node]
    return isinstance(call, ast.Call) and last(call.func) in ("wraps", "update_wrapper")
