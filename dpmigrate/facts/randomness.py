"""What draws random numbers, so that ranks with streams of their own would go different ways."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.library import SEEDED_STREAMS
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import either, walk

if TYPE_CHECKING:
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
#: what makes a stream of random numbers beside those of the process
STREAMS = SEEDED_STREAMS | {"random.SystemRandom"}
#: by which a call is given a stream of its own, the same on every rank
_OWN_STREAM = frozenset({"generator", "random_state"})
#: what runs the functions that it is given
_RUNS = frozenset({"map", "filter", "imap", "starmap", "apply", "delayed", "partial", "submit"})


def draws(roles: Roles, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the node, or a function of the program that it calls, draws random numbers."""
    for call in walk(node):
        if call in roles.values.asks and any(f not in seen and draws(roles, f, seen | {f}) for f in roles.values.asks[call]):
            return True
        if not isinstance(call, ast.Call) or _given_stream(roles, call):
            continue
        if _drawing(roles, call):
            return True
        entered = [f for f, _ in roles.values.targets(call)]
        if last(call.func) in _RUNS:
            entered += [v.node for a in call.args for v in roles.values.eval(a) if v.kind == "func" and isinstance(v.node, FunctionNode)]
        if any(f not in seen and draws(roles, f, seen | {f}) for f in entered):
            return True
    return False


def drawing(roles: Roles, call: ast.Call) -> bool:
    """Whether the call draws from any stream, also from one of its own, or a function of the program that it calls does; an object is no draw."""
    return _of_stream(roles, call) or _drawing(roles, call) or any(draws(roles, f) for f, _ in roles.values.targets(call) if f.name != "__init__")


def own_stream(roles: Roles, call: ast.Call) -> bool:
    """Whether the call draws from a stream that the program has made: ``generator.random()``, ``torch.rand(3, generator=generator)``."""
    return _given_stream(roles, call) or _of_stream(roles, call)


def _given_stream(roles: Roles, call: ast.Call) -> bool:
    return any(k.arg in _OWN_STREAM and not _may_be_none(roles, k.value) for k in call.keywords)


def _may_be_none(roles: Roles, node: ast.expr | None, depth: int = 4) -> bool:
    """Whether an expression may give None, with which a call draws from the stream of the process: also by a parameter that some call of its function leaves
    out, and by a variable that is None unless an option makes a generator.
    """
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.IfExp):
        return any(_may_be_none(roles, e, depth) for e in either(node))
    if not depth or not isinstance(node, ast.Name | ast.Attribute):
        return False
    given: list[ast.expr | None] = [*roles.given(node)]
    if isinstance(node, ast.Name):
        bound = roles.names.bindings(roles.names.scope_of[node], node.id)
        given += [e for b in bound if b.how == "param" for e in roles.bound_to(b)]
    return any(_may_be_none(roles, e, depth - 1) for e in given)


def _of_stream(roles: Roles, call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and any(v.qual in STREAMS for v in roles.values.eval(call.func.value))


def draws_itself(roles: Roles, call: ast.Call) -> bool:
    """Whether the call draws, from whatever stream, and not only a function of the program that it enters."""
    return last(call.func) not in _SETS and (own_stream(roles, call) or _drawing(roles, call))


def _drawing(roles: Roles, call: ast.Call) -> bool:
    if roles.names.dotted(call.func).startswith(DRAWS):
        return last(call.func) not in _SETS
    return isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWING


def postponed(roles: Roles, node: ast.AST) -> bool:
    """Whether what the expression gives runs only when it is gone through: ``map(…)``, a generator."""
    if isinstance(node, ast.GeneratorExp | ast.Lambda):
        return True
    if not isinstance(node, ast.Call):
        return False
    if last(node.func) in _RUNS:
        return True
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for f, _ in roles.values.targets(node) for n in walk(f))
