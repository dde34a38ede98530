"""Where the number of GPUs stands for the copies of a model that DataParallel makes, of which a rank has one.

DataParallel gives each copy its part of every tensor and puts the copies' results together. So programs give an input once for each copy
(``x.repeat(n_gpu, 1)``), average what the copies give (``loss.sum() / n_gpu``), and cut a batch as DataParallel does (``x.size(0) // n_gpu``). Under
torchrun ``device_count()`` still counts all GPUs of the machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts import batch
from dpmigrate.facts.library import MAKES, MAKES_ALIKE, REPEATS
from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.passes import written_names
from dpmigrate.facts.roles import Roles

_COUNTED = ("torch.cuda.device_count", "torch.accelerator.device_count", "torch.xpu.device_count")
#: names of options; "devices" may be anything
_COUNT = re.compile(r"(n|num|number_of|nb|count)_?gpus?(_per_node)?|gpus?_?(num|count|number)", re.IGNORECASE)
_LISTED = re.compile(r"gpus?(_?(ids?|list|indices))?|device_ids", re.IGNORECASE)
_SHAPES = REPEATS | MAKES | MAKES_ALIKE | {"broadcast_to", "view", "reshape", "randn", "rand"}
_JOINED = frozenset({"torch.cat", "torch.stack", "torch.tensor", "torch.Tensor", "torch.LongTensor", "torch.FloatTensor", "torch.IntTensor", "torch.as_tensor"})
_SAME = frozenset({"item", "detach", "cpu", "float", "to", "cuda"})
_DEPTH = 6


def counts(roles: Roles, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether the expression is the number of GPUs: ``torch.cuda.device_count()``, ``len(args.gpu_ids)``, a variable or an option for one of these."""
    if isinstance(node, ast.Call):
        dotted = roles.names.dotted(node.func)
        if dotted in _COUNTED:
            return True
        if dotted == "?.len" and len(node.args) == 1:
            return isinstance(node.args[0], ast.Name | ast.Attribute) and bool(_LISTED.fullmatch(last(node.args[0])))
        if dotted in ("?.int", "?.float", "?.max") and node.args:
            held = [a for a in node.args if not isinstance(a, ast.Constant)]
            return len(held) == 1 and counts(roles, held[0], depth)
        return False
    if not isinstance(node, ast.Name | ast.Attribute) or not depth:
        return False
    given = roles.given(node)
    if not given:
        return bool(_COUNT.fullmatch(last(node)))
    told = [v for v in given if not isinstance(v, ast.Constant)]
    if not told:  # n_gpu = 4
        return bool(_COUNT.fullmatch(last(node)))
    return all(counts(roles, v, depth - 1) or _option(node, v) for v in told)


def multiplied(roles: Roles) -> Iterator[ast.Call]:
    """The calls for the number of GPUs by which something is multiplied that is no list or shape with an element for each: a batch size, a learning rate."""
    for_each = {u.count for u in uses(roles)}
    found: dict[ast.Call, None] = {}
    for node in roles.names.nodes:
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Mult):
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            if not any(isinstance(side, ast.List | ast.Tuple | ast.JoinedStr) for side in sides):
                found |= dict.fromkeys(call for side in sides for call in _counting(roles, side))
    yield from (call for call in found if call not in for_each)


def _counting(roles: Roles, node: ast.expr, depth: int = _DEPTH) -> Iterator[ast.Call]:
    """The calls that give an expression the number of GPUs."""
    if isinstance(node, ast.Call):
        dotted = roles.names.dotted(node.func)
        if dotted in _COUNTED:
            yield node
        elif dotted in ("?.int", "?.float", "?.max"):
            for given in node.args:
                yield from _counting(roles, given, depth)
    elif isinstance(node, ast.Name | ast.Attribute) and depth:
        for value in roles.given(node):
            yield from _counting(roles, value, depth - 1)


def _option(node: ast.Name | ast.Attribute, value: ast.expr) -> bool:
    """``ngpu = int(os.environ["NGPU"])``: where the value is not known, the name says what it is."""
    return bool(_COUNT.fullmatch(last(node))) and not isinstance(value, ast.BinOp)


# ---------------------------------------------------------------------- what the copies give
@dataclass(frozen=True, eq=False, slots=True)
class Sum:
    """``node`` adds up ``given``, which each copy of a model gives."""

    node: ast.Call
    given: ast.expr


@dataclass(frozen=True, eq=False, slots=True)
class Average:
    """``total / n_gpu`` (``node`` is the division) or ``loss /= n_gpu`` (the statement), where ``total`` adds up what the copies give."""

    node: ast.BinOp | ast.AugAssign
    total: Sum


def averages(roles: Roles) -> Iterator[Average]:
    """Where a program with DataParallel divides by the number of GPUs what the copies of a model give together."""
    if not any(roles.values.is_wrap(c) for c in roles.calls):
        return
    for node in roles.names.nodes:
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            total = next(sums(roles, left), None) if counts(roles, right) else None
            if total is not None:
                yield Average(node, total)


def sums(roles: Roles, node: ast.expr, depth: int = _DEPTH) -> Iterator[Sum]:
    """The sums over what the copies of a model give that the expression may be."""
    if isinstance(node, ast.Call):
        what = _summed(roles, node)
        if what is not None and _from_model(roles, what, depth):
            yield Sum(node, what)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
            yield from sums(roles, node.func.value, depth)
    elif isinstance(node, ast.Name) and depth:
        for value in _plainly(roles, node):
            yield from sums(roles, value, depth - 1)


def _summed(roles: Roles, node: ast.Call) -> ast.expr | None:
    """``loss`` of ``loss.sum()`` and ``torch.sum(loss)``, over everything."""
    if roles.names.dotted(node.func) == "torch.sum":
        return node.args[0] if len(node.args) == 1 and not node.keywords else None
    plain = isinstance(node.func, ast.Attribute) and node.func.attr == "sum" and not node.args and not node.keywords
    return node.func.value if plain and isinstance(node.func, ast.Attribute) else None


def _from_model(roles: Roles, node: ast.expr, depth: int) -> bool:
    return any(True for _ in _calls(roles, node, depth))


def _calls(roles: Roles, node: ast.expr, depth: int) -> Iterator[ast.Call]:
    """The calls of models that give the expression, as a whole or as an element of what they give."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Call) and roles.model_vals(node.func):
        yield node
    elif isinstance(node, ast.Name) and depth:
        for value in _plainly(roles, node, parts=True):
            yield from _calls(roles, value, depth - 1)


def _plainly(roles: Roles, node: ast.Name, parts: bool = False) -> list[ast.expr]:
    """What the variable is assigned."""
    bound = roles.names.bindings(roles.names.scope_of[node], node.id)
    return [b.value for b in bound if b.how == "assign" and isinstance(b.value, ast.expr) and (parts or not b.path)]


# ---------------------------------------------------------------------- what the copies get
@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """A use of the number of GPUs. ``kind``: input (a tensor with an element for each copy), shape (such a tensor that no copy is seen to get),
    gradient (``loss.backward(torch.ones(n_gpu))``), share (a quotient of the batch size)."""

    kind: str
    node: ast.expr
    count: ast.expr


def uses(roles: Roles) -> Iterator[Use]:
    """Where the number of GPUs decides what each copy of a model gets."""
    for node in roles.names.nodes:
        if not isinstance(node, ast.expr) or roles.inside_module(node):
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv):
            if counts(roles, node.right) and batch.size(roles, node.left) and roles.region(node) != "outside":
                yield Use("share", node, node.right)
        elif isinstance(node, ast.Name | ast.Attribute | ast.Call) and not _inside_count(roles, node) and counts(roles, node):
            made = _maker(roles, node)
            if made is not None:
                yield Use(_kind(roles, made), made, node)


def _inside_count(roles: Roles, node: ast.expr) -> bool:
    """Whether the expression above is the number of GPUs as well: ``max(1, n_gpu)``; or this is the function that is called."""
    above = roles.names.parent[node]
    return isinstance(above, ast.Call) and (above.func is node or counts(roles, above))


def _kind(roles: Roles, made: ast.expr) -> str:
    if any(made in (*b.args, *(k.value for k in b.keywords)) for b in roles.backwards):
        return "gradient"
    stmt = roles.names.statement(made)
    calls = roles.forward_calls
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AnnAssign | ast.AugAssign) else []
    given = written_names(*(a for c in calls for a in (*c.args, *(k.value for k in c.keywords))))
    inside = any(roles.names.is_inside(made, c) for c in calls)
    return "input" if inside or _reaches(roles, written_names(*targets), given) else "shape"


def _maker(roles: Roles, count: ast.expr) -> ast.expr | None:
    """The call that makes a tensor with the count as its first size, along which DataParallel cuts, or of a list with as many elements."""
    node: ast.AST = count
    above = roles.names.parent[node]
    first = isinstance(above, ast.Tuple | ast.List) and above.elts[0] is node
    if isinstance(above, ast.Tuple | ast.List):
        node, above = above, roles.names.parent[above]
    if isinstance(above, ast.keyword):
        node, above = above, roles.names.parent[above]
    if isinstance(above, ast.Call) and _named(above) in _SHAPES:
        return above if first or (node is count and above.args[:1] == [node]) else None
    if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult) and any(isinstance(e, ast.List) for e in (above.left, above.right)):
        return _joined(roles, above)
    if isinstance(above, ast.Call) and roles.names.dotted(above.func) == "?.range" and len(above.args) == 1:
        comprehension = roles.names.parent[above]
        listed = roles.names.parent[comprehension] if isinstance(comprehension, ast.comprehension) else None
        if isinstance(listed, ast.ListComp) and not any(
            isinstance(n, ast.Name) and n.id in written_names(listed.generators[0].target) for n in walk(listed.elt)
        ):
            return _joined(roles, listed)
    return None


def _joined(roles: Roles, listed: ast.AST) -> ast.expr | None:
    """The tensor that is made of the list at once."""
    above = roles.names.parent[listed]
    return above if isinstance(above, ast.Call) and roles.names.dotted(above.func) in _JOINED else None


def _named(call: ast.Call) -> str:
    return last(call.func)


def _reaches(roles: Roles, known: set[str], wanted: set[str]) -> bool:
    """Whether what is written under these names goes on, by assignments of the file, into others that are wanted."""
    given = []
    for stmt in roles.names.nodes:
        if isinstance(stmt, ast.Assign):
            given.append((written_names(*stmt.targets), written_names(stmt.value)))
    size = -1
    while len(known) > size:
        size = len(known)
        known = known.union(*(targets for targets, sources in given if sources & known))
    return bool(known & wanted)
