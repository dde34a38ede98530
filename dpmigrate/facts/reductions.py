"""Which expressions reduce a tensor over the batch: a ratio of such sums (Dice, IoU) is no mean of what each sample gives."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from dpmigrate.facts.names import Names, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_all_batches, of_batch, one_by_one

REDUCTIONS = frozenset({"sum", "mean", "prod", "nansum", "nanmean", "norm"})
_COUNTS = frozenset({"bincount", "histc", "unique"})  # of the classes that the batch happens to hold
_EXTREMES = frozenset({"max", "min", "amax", "amin"})
DEPTH_LIMIT = 5  # of variables that are followed


def over_batch(roles: Roles, node: ast.AST, seen: set[Hashable] | None = None) -> bool:
    """Whether a part of the expression, or of what its variables were given, is reduced over axes of which the first may be one.

    A variable that is bound again has what it was given last before the read. ``seen`` are the variables, or bindings, that have been looked at.
    """
    known: set[Hashable] = set() if seen is None else seen
    for n in walk(node):
        reduced = isinstance(n, ast.Call) and _reduces(roles, n) and not _beside_batch(axes(roles.names, n)) and of_batch(roles, n)
        if reduced and not one_by_one(roles, n) and not of_all_batches(roles, n):
            return True
        variable = roles.names.meant(n) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) else None
        if not isinstance(n, ast.Name) or variable is None:
            continue
        bound = reaching(roles.names, n)
        value = bound.value if bound is not None and bound.how == "assign" and not bound.path else None
        key: Hashable = variable if value is None else value
        if key not in known:
            known.add(key)
            given = roles.given(n) if value is None else [value]
            if any(over_batch(roles, v, known) for v in given):
                return True
    return False


def _reduces(roles: Roles, call: ast.Call) -> bool:
    """A reduction or a count; of extremes those that something is scaled by, as ``x / x.max()``: others are sizes and bounds."""
    dotted, word = roles.names.dotted(call.func), last(call.func)
    if word in _COUNTS:
        return True
    if not isinstance(call.func, ast.Attribute) or (dotted and not dotted.startswith(("torch.", "?."))):
        return False
    return word in REDUCTIONS or (
        word in _EXTREMES and isinstance(above := roles.names.parent[call], ast.BinOp) and isinstance(above.op, ast.Div | ast.Mult | ast.Sub)
    )


def mean_of_samples(names: Names, node: ast.expr) -> ast.expr | None:
    """The tensor of ``x.mean(0)``, of which a sum over the other axes is a mean over the samples; None for anything else."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "mean" or axes(names, node)[:1] != [0]:
        return None
    if names.dotted(node.func) != "torch.mean":
        return node.func.value
    return node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "input"), None)


def axes(names: Names, call: ast.Call) -> list[int | None]:
    """The axes that a reduction is told, None for what cannot be read; empty where it goes over everything."""
    given = [k.value for k in call.keywords if k.arg in ("dim", "axis")] or call.args[int(names.dotted(call.func).startswith("torch.")) :]
    return [i for a in given for i in literals(names, a)]


def statistic(names: Names, call: ast.Call) -> bool:
    """``x.std(dim=0)``, ``torch.var(x)``, ``torch.cov(x.T)``: over the samples of a batch, and no sum of what each gives."""
    dotted = names.dotted(call.func)
    if dotted in ("torch.cov", "torch.corrcoef"):
        return True
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("std", "var", "std_mean", "var_mean")) or (dotted and not dotted.startswith("torch.")):
        return False
    found = axes(names, call)
    return not found or 0 in found


def _beside_batch(found: list[int | None]) -> bool:
    """Whether the axes are named, and all of them lie behind the first: ``1``, ``(2, 3)``, ``-1``, ``(-2, -1)`` of pictures; of ``-2`` alone nobody knows."""
    return bool(found) and all(i is not None and (i > 0 or i == -1 or (i == -2 and -1 in found)) for i in found)


def literals(names: Names, node: ast.expr, depth: int = DEPTH_LIMIT) -> list[int | None]:
    """The numbers that the expression may be or hold; None for what cannot be read."""
    if isinstance(node, ast.Tuple | ast.List):
        return [i for e in node.elts for i in literals(names, e, depth)]
    if isinstance(node, ast.IfExp):
        return [*literals(names, node.body, depth), *literals(names, node.orelse, depth)]
    if isinstance(node, ast.Name) and depth:
        bound = list(names.bindings(names.scope_of[node], node.id))
        if bound and all(b.how == "assign" and isinstance(b.value, ast.expr) and not b.path for b in bound):
            return [i for b in bound for i in literals(names, b.value, depth - 1)]  # type: ignore[arg-type]
        return [None]
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return [None]
    if value is None or isinstance(value, bool):
        return []  # over everything; keepdim
    return [value if isinstance(value, int) else None]
