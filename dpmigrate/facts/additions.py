"""What a loop over batches adds to a counter: something that grows with the samples, a mean over the batch, or a constant of each batch."""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping

from dpmigrate.facts.batch import measured, size
from dpmigrate.facts.counters import Counter
from dpmigrate.facts.library import CLOCKS
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_batch, of_loader

_DEPTH = 4


class Holds(enum.Enum):
    """What one addition to a counter is, over a batch."""

    SUM = "sum"  # grows with the samples: counts, sums of losses
    MEAN = "mean"  # an average over the batch
    STEP = "step"  # a constant per batch
    UNKNOWN = "unknown"


def holds(roles: Roles, loop: BatchLoop, counter: Counter, losses: Mapping[str, bool]) -> Holds:
    """What the additions to the counter are: all of one kind, or unknown. ``losses`` are the names of losses, each with whether it is a sum."""
    kinds = {_addition_kind(roles, loop, a, losses, _DEPTH) for a in counter.adds}
    return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN


def of_no_sample(roles: Roles, loop: BatchLoop, value: ast.expr) -> bool:
    """Whether what a turn gives a variable has nothing to do with its samples: a constant, a time."""
    return _addition_kind(roles, loop, value, {}, _DEPTH) is Holds.STEP


def _addition_kind(roles: Roles, loop: BatchLoop, node: ast.expr, losses: Mapping[str, bool], depth: int) -> Holds:
    if isinstance(node, ast.Constant | ast.Compare):
        return counted(roles, loop, node)
    if isinstance(node, ast.Name):
        if node.id in losses:
            return Holds.SUM if losses[node.id] else Holds.MEAN
        return _through_name(roles, loop, node, losses, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        kinds = {_addition_kind(roles, loop, n, losses, depth) for n in (node.left, node.right)}
        if Holds.SUM in kinds and len(kinds) == 2:
            return Holds.SUM  # a batch mean times the batch's size, a count times a weight
        return Holds.MEAN if kinds == {Holds.MEAN, Holds.STEP} else Holds.STEP if kinds == {Holds.STEP} else Holds.UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        kinds = {_addition_kind(roles, loop, n, losses, depth) for n in (node.left, node.right)}
        return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        above = _addition_kind(roles, loop, node.left, losses, depth)
        if isinstance(node.right, ast.Constant):
            return above
        if above is Holds.SUM and size(roles, node.right):
            return Holds.MEAN  # all ranks have as many samples
        return Holds.STEP if above is _addition_kind(roles, loop, node.right, losses, depth) is Holds.STEP else Holds.UNKNOWN
    if measured(roles.names, node) is not None:
        return Holds.SUM
    if isinstance(node, ast.Subscript):
        return _addition_kind(roles, loop, node.value, losses, depth) if ast.unparse(node.value).endswith(".data") else Holds.UNKNOWN
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return _addition_kind(roles, loop, node.value, losses, depth)
    if isinstance(node, ast.Call):
        return _call_kind(roles, loop, node, losses, depth)
    return Holds.UNKNOWN


def counted(roles: Roles, loop: BatchLoop, node: ast.expr) -> Holds:
    """What a number that no batch changes, or a comparison, comes to: in an inner loop over the samples a number of samples, under a test of the batch
    nothing that is known.
    """
    tested = isinstance(node, ast.Compare)
    for above in roles.names.ancestors(node):
        if above is loop.node:
            break
        if isinstance(above, ast.For | ast.While) and of_batch(roles, above.iter if isinstance(above, ast.For) else above.test):
            return Holds.SUM
        if isinstance(above, ast.If) and any(isinstance(n, ast.Continue | ast.Break | ast.Return) for s in above.body for n in walk(s)):
            break  # the ranks decide this together
        tested = tested or (isinstance(above, ast.If | ast.IfExp) and of_batch(roles, above.test))
    return Holds.UNKNOWN if tested else Holds.STEP


def _call_kind(roles: Roles, loop: BatchLoop, node: ast.Call, losses: Mapping[str, bool], depth: int) -> Holds:
    func = node.func
    dotted = roles.names.dotted(func)
    if isinstance(func, ast.Attribute):
        if func.attr in ("sum", "count_nonzero") or (func.attr in ("numel", "nelement") and _given_by_batch(roles, func.value)):
            return Holds.SUM
        if func.attr == "mean":
            return Holds.MEAN
        if func.attr in ("item", "detach", "cpu", "clone", "float", "double", "numpy", "tolist", "long", "int"):
            return _addition_kind(roles, loop, func.value, losses, depth)
    if dotted in ("torch.sum", "numpy.sum", "?.sum", "torch.bincount", "numpy.bincount", "torch.histc"):
        return Holds.SUM
    if dotted == "torch.numel" and node.args and _given_by_batch(roles, node.args[0]):
        return Holds.SUM
    if dotted in ("torch.mean", "numpy.mean"):
        return Holds.MEAN
    if dotted.startswith("torch.nn.functional.") and (how := [k.value for k in node.keywords if k.arg == "reduction"]):
        return {"sum": Holds.SUM, "mean": Holds.MEAN}.get(getattr(how[0], "value", ""), Holds.UNKNOWN)
    if dotted in CLOCKS:
        return Holds.STEP
    if dotted in ("?.float", "?.int") and node.args:
        return _addition_kind(roles, loop, node.args[0], losses, depth)
    return _through_function(roles, loop, node, losses, depth)


def _given_by_batch(roles: Roles, node: ast.expr) -> bool:
    """Whether a variable is given something of the batch, of which the elements are as many for each sample; or those of them that a mask over the batch
    chooses, which add up over the ranks as well.
    """
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, ast.Tuple | ast.Slice) and of_batch(roles, node.slice) and _given_by_batch(roles, node.value)
    if not isinstance(node, ast.Name):
        return False
    bound = roles.names.bindings(roles.names.scope_of[node], node.id)
    return of_loader(roles, node) or any(b.value is not None and of_batch(roles, b.value) for b in bound)


def _through_function(roles: Roles, loop: BatchLoop, node: ast.Call, losses: Mapping[str, bool], depth: int) -> Holds:
    """What a function of the program gives back: ``losses.append(train_step(batch))``."""
    functions = [f for f, _ in roles.values.targets(node)] if depth else []
    given = [r.value for f in functions for r in walk(f) if isinstance(r, ast.Return) and roles.names.function(r) is f]
    kinds = {_addition_kind(roles, loop, v, losses, depth - 1) if v is not None else Holds.UNKNOWN for v in given}
    return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN


def _through_name(roles: Roles, loop: BatchLoop, node: ast.Name, losses: Mapping[str, bool], depth: int) -> Holds:
    if depth == 0:
        return Holds.UNKNOWN
    if _numbered(roles, node):
        return Holds.STEP
    inside = roles.names.is_inside(node, loop.node)
    stores = [n for n in walk(loop.node if inside else roles.names.function(node)) if isinstance(n, ast.Assign | ast.AugAssign) and _stores(n, node.id)]
    kinds = {_stored(roles, loop, s, losses, depth) for s in stores if inside or _evaluated(roles, loop, s) or isinstance(s.value, ast.Constant)}
    return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN


def _numbered(roles: Roles, name: ast.Name) -> bool:
    """Whether a variable is the number of a turn: ``for i, batch in enumerate(loader)``, ``for i in range(3)``."""
    bound = list(roles.names.bindings(roles.names.scope_of[name], name.id))
    counts = (b.how == "for" and isinstance(b.value, ast.Call) and (roles.names.dotted(b.value.func), b.path[1:]) for b in bound)
    known = {("?.enumerate", (0,)), ("?.range", ())}
    return bool(bound) and all(c in known for c in counts) and not any(of_batch(roles, b.value) for b in bound if b.value is not None and b.path[1:] == ())


def _stores(node: ast.Assign | ast.AugAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(n, ast.Name) and n.id == name for t in targets for n in ([t, *t.elts] if isinstance(t, ast.Tuple | ast.List) else [t]))


def _stored(roles: Roles, loop: BatchLoop, node: ast.Assign | ast.AugAssign, losses: Mapping[str, bool], depth: int) -> Holds:
    """What is stored: in an evaluation something of all ranks, whether each goes through all of it or they put their parts together."""
    if _evaluated(roles, loop, node) or isinstance(node.value, ast.Constant | ast.Tuple):
        constant = not isinstance(node.value, ast.Tuple) or all(isinstance(e, ast.Constant) for e in node.value.elts)
        return Holds.STEP if constant or _evaluated(roles, loop, node) else Holds.UNKNOWN
    return _addition_kind(roles, loop, node.value, losses, depth - 1) if isinstance(node, ast.Assign) else Holds.UNKNOWN


def _evaluated(roles: Roles, loop: BatchLoop, node: ast.AST) -> bool:
    """Whether the node stands in another loop than this one that evaluates and does not train."""
    others = (b for b in roles.batch_loops if b.evaluates and not b.trains and not roles.names.is_inside(loop.node, b.node))
    return any(b.node is not loop.node and roles.names.is_inside(node, b.node) for b in others)
