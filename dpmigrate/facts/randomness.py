"""What draws random numbers, so that ranks with streams of their own would go different ways."""

from __future__ import annotations

import ast

from dpmigrate.facts.roles import Roles

#: calls that draw, by the beginning of their dotted names
DRAWS = ("random.", "numpy.random.", "torch.rand", "torch.multinomial", "torch.bernoulli", "torch.normal", "torch.nn.init.", "torch.nn.utils.prune.random")
_DRAWING = frozenset(
    {"shuffle", "choice", "choices", "sample", "permutation", "randint", "integers", "normal_", "uniform_", "random_", "bernoulli_", "reset_parameters"}
)


def draws(roles: Roles, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the node, or a function of the program that it calls, draws random numbers."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        if roles.names.dotted(call.func).startswith(DRAWS) or (isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWING):
            return True
        if any(f not in seen and draws(roles, f, seen | {f}) for f, _ in roles.values.targets(call)):
            return True
    return False
