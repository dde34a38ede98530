"""Models that a function takes out of a container, ``encoder, decoder = models``: which variable was the model made in?

A wrap in such a function would be made anew in each of its calls, and another one in each function that does so.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.objects import Val, leaves
from dpmigrate.facts.roles import element

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles


def maker(roles: Roles, node: ast.expr) -> ast.Name | None:
    """The variable in which the one model was made that a local variable is given as a part of something else, where the function may take it out more
    than once; None where there is no such variable, or several models may be meant.
    """
    names = roles.names
    if not isinstance(node, ast.Name) or not isinstance(names.scope_of[node].node, FunctionNode):
        return None
    owner = names.owner(names.scope_of[node], node.id)
    bound = owner.bindings.get(node.id, []) if owner is names.scope_of[node] and owner is not None else []
    if len(bound) != 1 or bound[0].how != "assign" or not (bound[0].path or isinstance(bound[0].value, ast.Subscript)):
        return None
    given = bound[0].value
    if isinstance(given, ast.Tuple | ast.List) and isinstance(element(given, bound[0].path), ast.Call):
        return None  # student, teacher = build(), build(): each is made here
    models = {x for v in roles.values.eval(node) for x in roles.values.inner(v)}
    if len(models) != 1 or not _taken_again(roles, owner.node if owner is not None else None, next(iter(models))):
        return None
    (model,) = models
    made = names.statement(model.node)
    if names.function(made) is names.function(node) or not isinstance(made, ast.Assign):
        return None
    targets = [t for target in made.targets for t, _ in leaves(target, ())]
    mine = [t for t in targets if isinstance(t, ast.Name) and any(model in roles.values.given(made, k) for k in roles.values.keys(t))]
    return mine[0] if len(mine) == 1 else None


def _taken_again(roles: Roles, function: ast.AST | None, model: Val) -> bool:
    """Whether a function that takes a model out is called in a loop or in several places, or others train the model as well."""
    if not isinstance(function, FunctionNode):
        return False
    calls = roles.values.callers.get(function, [])
    training = {roles.names.function(p.call) for p in roles.training_passes if model in {x for v in roles.values.eval(p.model) for x in roles.values.inner(v)}}
    return len(calls) != 1 or len(training) > 1 or bool(roles.epoch_loop(calls[0]))
