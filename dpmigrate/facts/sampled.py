"""Which variables count the samples that training has seen, for more than a divisor: a rank adds its share of each batch only.

A divisor of a rank's own sums has to be a rank's number, too, and is put together with them (``totals``); what else reads the number means that of all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from dpmigrate.facts import batch
from dpmigrate.facts.library import COMPARING, NUMBERS, SHOWING
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.numbers import Numbers

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: functions that give a number, or its text, as it is
_AS_IT_IS = NUMBERS | {"?.str", "?.repr", "?.format"}
_DEPTH = 3  # variables between a count and what goes by it


@dataclass(frozen=True, eq=False, slots=True)
class Sampled:
    """One addition to a count of samples: ``seen += x.size(0)``.

    ``size`` is what is added, ``read`` a place that decides or computes something by the count, ``divisor`` one that divides a rank's sum by it. ``equal``:
    all ranks add the same, since it is the size of a batch, and not a number of tokens or the like.
    """

    target: ast.expr
    size: ast.expr
    read: ast.expr
    divisor: ast.expr | None
    equal: bool


def sampled(script: Script) -> tuple[Sampled, ...]:
    """Every addition of a training batch's size to a variable that says something about training, in the order of the program."""
    numbers = Numbers(script.roles)
    out = []
    for target, size, stmt in _additions(script):
        equal = batch.size(script.roles, size)
        if script.roles.region(stmt) != "train" or not (equal or (_counted(size) and _by_all(script, stmt))) or not _of_a_batch(script, size):
            continue
        reads = [n for n in _reads(script, target) if not script.names.is_inside(n, stmt)]
        deciding = next((n for n in reads if _decides(script, n) and (equal or script.roles.region(n) == "train")), None)
        if deciding is not None and (equal or not any(_divided(numbers, n, script) for n in reads)):
            out.append(Sampled(target, size, deciding, next((n for n in reads if _divides(script, n)), None), equal))
    return tuple(out)


def made_global(script: Script) -> list[Sampled]:
    """Those that the migrated program counts over all ranks, so that the counts are alike on each."""
    return [s for s in script.sampled if s.divisor is None]


def _counted(node: ast.expr) -> bool:
    """``(y != pad).sum()``, ``y.ne(pad).sum().item()``, ``x.numel()``: how many of the elements of a batch there are."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "float", "int", "long", "cpu"):
        node = node.func.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "sum":
        summed = node.args[0] if node.args else node.func.value
        return isinstance(summed, ast.Compare) or (isinstance(summed, ast.Call) and isinstance(summed.func, ast.Attribute) and summed.func.attr in COMPARING)
    return node.func.attr in ("numel", "nelement")


def _by_all(script: Script, stmt: ast.stmt) -> bool:
    """Whether every rank comes to the statement in every turn of its training loop."""
    loops = {b.node for b in script.roles.train_loops}
    around = list(takewhile(lambda a: a not in loops, script.names.ancestors(stmt)))
    return not any(isinstance(a, ast.If | ast.Try | ast.While | ast.For | ast.Module | FunctionNode) for a in around)


def _divided(numbers: Numbers, node: ast.expr, script: Script) -> bool:
    """Whether the count is divided by something else that each rank adds up: ``correct / total``."""
    inner: ast.AST = node
    for a in takewhile(lambda a: isinstance(a, ast.expr), script.names.ancestors(node)):
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div | ast.FloorDiv) and a.left is inner:
            return not numbers.plain(a.right)
        inner = a
    return False


def _additions(script: Script) -> Iterator[tuple[ast.expr, ast.expr, ast.stmt]]:
    """``c += n``, ``c = c + n``, ``c = n + c``: what grows, by what, and the statement."""
    for stmt in script.names.nodes:
        if isinstance(stmt, ast.AugAssign) and isinstance(stmt.op, ast.Add) and isinstance(stmt.target, ast.Name | ast.Attribute):
            yield stmt.target, stmt.value, stmt
        elif isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.BinOp) and isinstance(stmt.value.op, ast.Add):
            sides = (stmt.value.left, stmt.value.right)
            for target in stmt.targets if isinstance(stmt.targets[0], ast.Name | ast.Attribute) else ():
                yield from ((target, added, stmt) for old, added in (sides, sides[::-1]) if ast.unparse(old) == ast.unparse(target))


def _of_a_batch(script: Script, size: ast.expr) -> bool:
    """Whether what the size is asked of is made in the training loop, as its batches are: not a weight, not the data set."""
    if isinstance(size, ast.Name):
        values = [b.value for b in script.names.bindings(script.names.scope_of[size], size.id)]
        return all(isinstance(v, ast.expr) and _of_a_batch(script, v) for v in values)
    roots = [n for n in ast.walk(size) if isinstance(n, ast.Name) and not script.names.dotted(n) and not script.roles.model_vals(n)]
    bound = [b for n in roots for b in script.names.bindings(script.names.scope_of[n], n.id)]
    return bool(bound) and all(b.how == "param" or script.roles.region(b.target) in ("train", "both") for b in bound)


def _reads(script: Script, target: ast.expr) -> list[ast.expr]:
    """Where the variable, or an attribute of the name, is read."""
    if isinstance(target, ast.Name):
        return [n for n in script.names.uses(script.names.scope_of[target], target.id) if isinstance(n.ctx, ast.Load)]
    assert isinstance(target, ast.Attribute)
    own = set(script.roles.values.keys(target))
    reads = [n for n in script.names.attributes(target.attr) if isinstance(n.ctx, ast.Load)]
    return [n for n in reads if not own or own & set(script.roles.values.keys(n))]


def _divides(script: Script, node: ast.expr) -> bool:
    inner: ast.AST = node
    for a in takewhile(lambda a: isinstance(a, ast.expr), script.names.ancestors(node)):
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div | ast.FloorDiv) and a.right is inner:
            return True
        inner = a
    return False


def _decides(script: Script, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether the count is given to a function, asked in a test, or stored: more than shown, kept in a file, or divided by. A variable decides by its reads."""
    if _divides(script, node) or not depth:
        return False
    inner: ast.AST = node
    for a in takewhile(lambda a: not isinstance(a, ast.stmt), script.names.ancestors(node)):
        if isinstance(a, ast.Call) and script.names.dotted(a.func) not in _AS_IT_IS:
            return last(a.func) not in SHOWING
        if isinstance(a, ast.JoinedStr | ast.Dict) or (isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mod) and a.left is not inner):
            return False  # "%d of %d" % (seen, n)
        inner = a
    stmt = script.names.statement(node)
    if isinstance(stmt, ast.If | ast.While):
        return not all(isinstance(s, ast.Expr) for s in (*stmt.body, *stmt.orelse))
    if not isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) or inner is not stmt.value:
        return False
    target = stmt.targets[0] if isinstance(stmt, ast.Assign) else stmt.target
    if isinstance(target, ast.Name):
        return any(_decides(script, n, depth - 1) for n in _reads(script, target) if not script.names.is_inside(n, stmt))
    return not isinstance(inner, ast.Name | ast.Attribute)
