"""In which order lists that a training loop fills hold the samples, once the ranks' parts are put together.

Rank r has the samples r, r + W, r + 2W, ... of every batch. Where each rank's list has one element a sample, in the order of the batch, the elements of the
ranks in turn are the list of one process. It matters only where the loader does not shuffle: any other order is random.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Sequence
from typing import Literal

from dpmigrate.execution.placements import Kind
from dpmigrate.facts import places
from dpmigrate.facts.batch import shuffles
from dpmigrate.facts.carried import Carried
from dpmigrate.facts.executed import Executed
from dpmigrate.facts.filled import Filled, each_sample
from dpmigrate.facts.nodes import walk
from dpmigrate.judge import Lies

#: an element a sample, or one a batch
Order = Literal["samples", "batches"]


def any_order(carried: Carried, divided: Collection[ast.Call]) -> bool:
    """Whether those of a loop's loaders that are ``divided`` over the ranks all shuffle, by their texts."""
    mine = [v.node for v in carried.loop.loaders if v.node in divided or not isinstance(v.node, ast.Call)]
    return bool(mine) and all(isinstance(c, ast.Call) and shuffles(carried.roles, c) for c in mine)


def order(carried: Carried, filled: Sequence[Filled], executed: Executed, name: str) -> Order | None:
    """What the list or array of that name has an element for, in the order of the loader; None where that is not established."""
    found = next((f for f in filled if f.name == name), None)
    added = found.adds if found is not None else places.added(carried).get(name, [])
    if not added or not all(_in_step(carried, executed, a) and _in_order(carried, executed, a) for a in added):
        return None
    return "batches" if found is not None and found.appended else "samples"


def _in_step(carried: Carried, executed: Executed, added: ast.expr) -> bool:
    """Whether all ranks add in the same batches: under no test of a rank's own."""
    around = itertools.takewhile(lambda a: a is not carried.loop.node, carried.names.ancestors(added))
    return all(executed.the_same(a.test, ()) for a in around if isinstance(a, ast.If))


def _in_order(carried: Carried, executed: Executed, added: ast.expr) -> bool:
    """Whether what is added has a row for each sample of the batch, in its order."""
    call = carried.names.parent[added]
    if _chooses_list(call):
        return False
    parts = each_sample(carried, call) if isinstance(call, ast.Call) else []
    if parts:
        inner = next(a for a in carried.names.ancestors(call) if isinstance(a, ast.For))
        once = carried.names.parent[call] in inner.body and carried.names.is_inside(parts[0], inner.iter)  # not in a loop of a sample's own
        left_out = any(isinstance(n, ast.Continue | ast.Break) for n in walk(inner))
        return once and not left_out and all(_are_samples(executed, p) for p in parts)
    return _are_samples(executed, _taken_over(carried, added))


def _chooses_list(stmt: ast.AST) -> bool:
    """Whether each batch, or each sample, chooses the list that it goes into: ``by_class[label].append(p)``."""
    owner = stmt.func.value if isinstance(stmt, ast.Call) and isinstance(stmt.func, ast.Attribute) else getattr(stmt, "target", None)
    return isinstance(owner, ast.Subscript) and not isinstance(owner.slice, ast.Constant)


def _taken_over(carried: Carried, node: ast.expr) -> ast.expr:
    """What a list has as many elements as, in its order: ``list(y)``, ``[v.item() for v in y]``."""
    match node:
        case ast.Call(func=called, args=[one], keywords=[]) if carried.names.dotted(called) == "?.list":
            return _taken_over(carried, one)
        case ast.ListComp(generators=[ast.comprehension(iter=one, ifs=[])]):
            return _taken_over(carried, one)
    return node


def _are_samples(executed: Executed, node: ast.expr) -> bool:
    return bool(lies := executed.lying(())(node)) and all(map(_one_each, lies))


def _one_each(lies: Lies) -> bool:
    p = lies.placement
    return p.kind is Kind.ROWS and p.axis == 0 and p.times == 1 and not p.ragged and lies.single and lies.in_order
