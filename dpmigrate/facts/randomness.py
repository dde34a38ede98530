"""What draws random numbers, so that ranks with streams of their own would go different ways."""

from __future__ import annotations

import ast

from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.roles import Roles

#: calls that draw, by the beginning of their dotted names
DRAWS = (
    "random.", "numpy.random.", "torch.rand", "torch.multinomial", "torch.bernoulli", "torch.normal", "torch.nn.init.", "torch.nn.utils.prune.random",
    "torch.utils.data.random_split", "sklearn.model_selection.train_test_split", "sklearn.utils.shuffle", "sklearn.utils.resample",
)  # fmt: skip
_DRAWING = frozenset(
    {"shuffle", "choice", "choices", "sample", "permutation", "randint", "integers", "normal_", "uniform_", "random_", "bernoulli_", "reset_parameters"}
)
#: what sets a stream, or makes one, and draws nothing from it
_SETS = frozenset(
    {"seed", "manual_seed", "get_state", "set_state", "getstate", "setstate", "Random", "RandomState", "default_rng", "Generator", "SeedSequence"}
)
#: by which a call is given a stream of its own, the same on every rank
_OWN_STREAM = frozenset({"generator", "random_state"})
#: what runs the functions that it is given
_RUNS = frozenset({"map", "filter", "imap", "starmap", "apply", "delayed", "partial", "submit"})


def draws(roles: Roles, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the node, or a function of the program that it calls, draws random numbers."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        name = last(call.func)
        if any(k.arg in _OWN_STREAM and not (isinstance(k.value, ast.Constant) and k.value.value is None) for k in call.keywords):
            continue
        drawing = roles.names.dotted(call.func).startswith(DRAWS) and name not in _SETS
        if drawing or (isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWING):
            return True
        entered = [f for f, _ in roles.values.targets(call)]
        if name in _RUNS:
            entered += [v.node for a in call.args for v in roles.values.eval(a) if v.kind == "func" and isinstance(v.node, FunctionNode)]
        if any(f not in seen and draws(roles, f, seen | {f}) for f in entered):
            return True
    return False


def postponed(roles: Roles, node: ast.AST) -> bool:
    """Whether what the expression gives runs only when it is gone through: ``map(…)``, a generator."""
    if isinstance(node, ast.GeneratorExp | ast.Lambda):
        return True
    if not isinstance(node, ast.Call):
        return False
    if last(node.func) in _RUNS:
        return True
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for f, _ in roles.values.targets(node) for n in ast.walk(f))
