"""The mixed precision that a program has by itself: autocast, GradScalers, what they scale and step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.roles import Roles


def is_autocast(roles: Roles, call: ast.Call) -> bool:
    """Whether the call makes an autocast context or decorator."""
    return _named(roles, call.func, ".autocast")


def is_scaler(roles: Roles, call: ast.Call) -> bool:
    """Whether the call makes a GradScaler."""
    return _named(roles, call.func, ".GradScaler")


def is_apex(roles: Roles, call: ast.Call) -> bool:
    """Whether the call hands models and optimizers to apex."""
    return roles.names.dotted(call.func) == "apex.amp.initialize"


def _named(roles: Roles, func: ast.expr, end: str) -> bool:
    return roles.names.dotted(func).endswith(end) or any(v.kind == "ext" and v.qual.endswith(end) for v in roles.values.eval(func))


def scalers(roles: Roles, node: ast.AST) -> list[ast.Call]:
    """The calls that made the GradScaler which the expression may be."""
    return [v.node for v in roles.values.eval(node) if isinstance(v.node, ast.Call) and is_scaler(roles, v.node)]


@dataclass(frozen=True, eq=False, slots=True)
class ScaledStep:
    """``scaler.step(optimizer)`` as a statement of the program itself."""

    call: ast.Call
    stmt: ast.stmt
    scaler: ast.expr
    optimizer: ast.expr


def scaled_steps(roles: Roles) -> Iterator[ScaledStep]:
    """Every step that goes through a GradScaler."""
    for call in roles.names.calls("step"):
        stmt, func = roles.names.parent[call], call.func
        if isinstance(func, ast.Attribute) and call.args and isinstance(stmt, ast.Expr | ast.Assign) and scalers(roles, func.value):
            yield ScaledStep(call, stmt, func.value, call.args[0])


def unscaled(roles: Roles, step: ScaledStep) -> bool:
    """Whether the function of the step takes the scale out of this optimizer's gradients."""
    function, wanted = roles.names.function(step.call), ast.unparse(step.optimizer)
    return any(c.args and ast.unparse(c.args[0]) == wanted and roles.names.function(c) is function for c in roles.names.calls("unscale_"))
