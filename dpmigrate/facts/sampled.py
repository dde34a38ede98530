"""Which variables count the samples that training has seen, for more than a divisor: a rank adds its share of each batch only.

A divisor of a rank's own sums has to be a rank's number, too, and is put together with them (``totals``); what else reads the number means that of all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from dpmigrate.facts.names import last
from dpmigrate.facts.numbers import Numbers

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: calls that show a number, or keep it
_SHOWING = frozenset({"print", "format", "info", "debug", "warning", "write", "set_description", "set_postfix", "set_postfix_str", "append"})
#: functions that give a number, or its text, as it is
_AS_IT_IS = frozenset({"?.int", "?.float", "?.round", "?.abs", "?.min", "?.max", "?.str", "?.repr", "?.format"})


@dataclass(frozen=True, eq=False, slots=True)
class Sampled:
    """One addition to a count of samples: ``seen += x.size(0)``.

    ``size`` is what is added, ``read`` a place that decides or computes something by the count, ``divisor`` one that divides a rank's sum by it.
    """

    target: ast.expr
    size: ast.expr
    read: ast.expr
    divisor: ast.expr | None


def sampled(script: Script) -> tuple[Sampled, ...]:
    """Every addition of a training batch's size to a variable that says something about training, in the order of the program."""
    numbers = Numbers(script.roles)
    out = []
    for target, size, stmt in _additions(script):
        if script.roles.region(stmt) != "train" or not numbers.batch_size(size) or not _of_a_batch(script, size):
            continue
        reads = [n for n in _reads(script, target) if not script.names.is_inside(n, stmt)]
        deciding = next((n for n in reads if _decides(script, n)), None)
        if deciding is not None:
            out.append(Sampled(target, size, deciding, next((n for n in reads if _divides(script, n)), None)))
    return tuple(out)


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
    roots = [n for n in ast.walk(size) if isinstance(n, ast.Name) and script.names.meant(n) is not None and not script.roles.model_vals(n)]
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


def _decides(script: Script, node: ast.expr) -> bool:
    """Whether the count is given to a function, asked in a test, or computed with: more than shown, kept in a file, or divided by."""
    if _divides(script, node):
        return False
    inner: ast.AST = node
    for a in takewhile(lambda a: not isinstance(a, ast.stmt), script.names.ancestors(node)):
        if isinstance(a, ast.Call) and script.names.dotted(a.func) not in _AS_IT_IS:
            return last(a.func) not in _SHOWING
        if isinstance(a, ast.JoinedStr | ast.Dict) or (isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mod) and a.left is not inner):
            return False  # "%d of %d" % (seen, n)
        inner = a
    stmt = script.names.statement(node)
    if isinstance(stmt, ast.If | ast.While):
        return not all(isinstance(s, ast.Expr) for s in (*stmt.body, *stmt.orelse))
    return isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) and inner is stmt.value and not isinstance(inner, ast.Name | ast.Attribute)
