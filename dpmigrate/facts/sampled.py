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
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.numbers import Numbers
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.samples import of_loader

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: functions that give a number, or its text, as it is
_AS_IT_IS = NUMBERS | {"?.str", "?.repr", "?.format"}
_BARS = frozenset({"tqdm", "trange", "tqdm_notebook"})
#: settings of an optimizer's group
_OF_GROUP = frozenset({"lr", "weight_decay", "momentum", "betas", "eps"})
#: what training goes by, as a statement
_STEPS = frozenset({"step", "load_state_dict", "zero_grad", "backward"})
_DEPTH = 3  # variables between a count and what goes by it


@dataclass(frozen=True, eq=False, slots=True)
class Sampled:
    """One addition to a count of samples: ``seen += x.size(0)``.

    ``size`` is what is added, ``read`` a place that decides or computes something by the count, or the total of a progress bar, ``divisor`` one that
    divides a rank's sum by it. ``equal``: all ranks add the same, since it is the size of a batch, and not a number of tokens or the like.
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
        equal = _size_of_batch(script, size)
        if script.roles.region(stmt) != "train" or not (equal or (_counted(size) and _by_all(script, stmt))) or not _of_a_batch(script, size):
            continue
        reads = [n for n in _reads(script, target) if not script.names.is_inside(n, stmt)]
        deciding = next((n for n in reads if _decides(script, n) and (equal or script.roles.region(n) == "train")), None)
        if deciding is None and equal:
            deciding = _total_of(script, target, stmt)
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
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div | ast.FloorDiv) and a.left is inner and not numbers.plain(a.right):
            return True
        inner = a
    return False


def _size_of_batch(script: Script, size: ast.expr) -> bool:
    """Whether it is the size of a batch, also as what all calls of the function give."""
    bound = script.names.bindings(script.names.scope_of[size], size.id) if isinstance(size, ast.Name) else ()
    given = [e for b in bound for e in script.roles.handed(b)]
    return batch.size(script.roles, size) or (bool(given) and all(e is not None and batch.size(script.roles, e) for e in given))


def _additions(script: Script) -> Iterator[tuple[ast.expr, ast.expr, ast.stmt]]:
    """``c += n``, ``c = c + n``, ``c = n + c``, ``bar.update(n)``: what grows, by what, and the statement."""
    for stmt in script.names.nodes:
        if isinstance(stmt, ast.AugAssign) and isinstance(stmt.op, ast.Add) and _is_variable(stmt.target):
            yield stmt.target, stmt.value, stmt
        elif isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.BinOp) and isinstance(stmt.value.op, ast.Add):
            sides = (stmt.value.left, stmt.value.right)
            for target in stmt.targets if _is_variable(stmt.targets[0]) else ():
                yield from ((target, added, stmt) for old, added in (sides, sides[::-1]) if ast.unparse(old) == ast.unparse(target))
        elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call) and (bar := _bar(script, stmt.value)) is not None:
            yield from ((bar, size, stmt) for size in (*stmt.value.args[:1], *(k.value for k in stmt.value.keywords if k.arg == "n")))


def _is_variable(node: ast.expr) -> bool:
    """A variable, an attribute, or an entry that is written down: ``stats["seen"]``, ``seen[0]``."""
    return isinstance(node, ast.Name | ast.Attribute) or (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.value, ast.Name | ast.Attribute)
    )


def _bar(script: Script, call: ast.Call) -> ast.expr | None:
    """The progress bar that the call moves on: it counts in ``bar.n``."""
    bar = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "update" else None
    made = script.roles.values.eval(bar) if isinstance(bar, ast.Name | ast.Attribute) else frozenset()
    return bar if made and all(v.qual.rsplit(".", 1)[-1] in _BARS for v in made) else None


def _total_of(script: Script, target: ast.expr, stmt: ast.stmt) -> ast.expr | None:
    """The total that a bar is made with, and that it comes to when all samples have been there."""
    if not isinstance(stmt, ast.Expr):
        return None
    made = [v.node for v in script.roles.values.eval(target) if isinstance(v.node, ast.Call)]
    return next((k.value for call in made for k in call.keywords if k.arg == "total"), None)


def _of_a_batch(script: Script, size: ast.expr) -> bool:
    """Whether what the size is asked of is made in the training loop, as its batches are: not a weight, not the data set."""
    if isinstance(size, ast.Name):
        bound = list(script.names.bindings(script.names.scope_of[size], size.id))
        values: list[ast.AST | None] = []
        for b in bound:
            values += script.roles.handed(b) or [b.value]
        return all(isinstance(v, ast.expr) and _of_a_batch(script, v) for v in values)
    roots = [n for n in walk(size) if isinstance(n, ast.Name) and not script.names.dotted(n) and not script.roles.model_vals(n)]
    return bool(roots) and all(of_loader(script.roles, n) or _made_in_training(script, n) for n in roots)


def _made_in_training(script: Script, node: ast.Name) -> bool:
    seen = reaching(script.names, node)
    bound = [seen] if seen is not None else script.names.bindings(script.names.scope_of[node], node.id)
    return all(b.how == "param" or script.roles.region(b.target) in ("train", "both") for b in bound)


def _reads(script: Script, target: ast.expr) -> list[ast.expr]:
    """Where the variable, or an attribute of the name, is read; of a progress bar its ``n``."""
    if isinstance(script.names.parent[target], ast.Attribute):
        read = [a for n in _reads_of(script, target) if isinstance(a := script.names.parent[n], ast.Attribute)]
        return [a for a in read if a.attr == "n"]
    if isinstance(target, ast.Subscript):
        above = [script.names.parent[n] for n in _reads_of(script, target.value)]
        return [a for a in above if isinstance(a, ast.Subscript) and isinstance(a.ctx, ast.Load) and ast.dump(a.slice) == ast.dump(target.slice)]
    return _reads_of(script, target)


def _reads_of(script: Script, target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Name):
        return [n for n in script.names.uses(script.names.scope_of[target], target.id) if isinstance(n.ctx, ast.Load)]
    assert isinstance(target, ast.Attribute)
    own = set(script.roles.values.keys(target))
    reads = [n for n in script.names.attributes(target.attr) if isinstance(n.ctx, ast.Load)]
    return [n for n in reads if not own or own & set(script.roles.values.keys(n))]


def _divides(script: Script, node: ast.expr) -> bool:
    """Whether something else than a plain number is divided by the count."""
    inner: ast.AST = node
    for a in takewhile(lambda a: isinstance(a, ast.expr), script.names.ancestors(node)):
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div | ast.FloorDiv) and a.right is inner:
            return not Numbers(script.roles).plain(a.left)
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
        return not _asks_for_any(script, node) and not all(isinstance(s, ast.Expr) and _shows(s.value) for s in (*stmt.body, *stmt.orelse))
    if isinstance(stmt, ast.Return):
        return any(_decides(script, c, depth - 1) for c in script.values.ways.get(script.names.function(stmt), []))
    if not isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) or inner is not stmt.value:
        return False
    target = stmt.targets[0] if isinstance(stmt, ast.Assign) else stmt.target
    if isinstance(target, ast.Name):
        return any(_decides(script, n, depth - 1) for n in _reads(script, target) if not script.names.is_inside(n, stmt))
    of_group = isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value in _OF_GROUP
    return of_group or not isinstance(inner, ast.Name | ast.Attribute)


def _asks_for_any(script: Script, node: ast.expr) -> bool:
    """``if seen:``, ``if seen == 0:``: alike on all ranks."""
    above = script.names.parent[node]
    compared = [above.left, *above.comparators] if isinstance(above, ast.Compare) else []
    return isinstance(above, ast.If | ast.While) or any(isinstance(e, ast.Constant) and e.value == 0 for e in compared)


def _shows(value: ast.expr) -> bool:
    """Whether the statement shows something, or is a text; a schedule that is stepped is more."""
    return not isinstance(value, ast.Call) or last(value.func) not in _STEPS
