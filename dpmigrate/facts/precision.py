"""The mixed precision that a program has by itself: autocast, GradScalers, what they scale and step."""

from __future__ import annotations

import ast

from dpmigrate.facts.roles import Roles


def is_autocast(roles: Roles, call: ast.Call) -> bool:
    """Whether the call makes an autocast context or decorator."""
    return _named(roles, call.func, ".autocast")


def is_scaler(roles: Roles, call: ast.Call) -> bool:
    """Whether the call makes a GradScaler."""
    return _named(roles, call.func, ".GradScaler")


def _named(roles: Roles, func: ast.expr, end: str) -> bool:
    return roles.names.dotted(func).endswith(end) or any(v.kind == "ext" and v.qual.endswith(end) for v in roles.values.eval(func))
