"""A sampler that shuffles is told which epoch it is, in the loop over epochs and before the pass:
else every pass has the same order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.names import position
from dpmigrate.facts.values import Vals
from dpmigrate.result.loaders import told
from dpmigrate.result.migrated import Fault, Migrated


def same_order(m: Migrated) -> Iterator[Fault]:
    """Divided loaders that shuffle and that are gone through again and again in the order of the
    first time.
    """
    roles = m.after.roles
    by_number = {c: roles.loaders_of(e) for c in roles.calls if (e := told(c)) is not None}
    by_itself = {
        c: roles.loaders_of(c.args[0]) for n, c in m.runtime_calls if n == "next_epoch" and c.args
    }
    if not all((by_number | by_itself).values()):
        return  # it is not seen which loader is told
    counted = frozenset(v for vals in by_itself.values() for v in vals)
    numbered = frozenset(v for vals in by_number.values() for v in vals)
    for node, over, loaders in _passes(m):
        alone = {v for v in loaders if _shuffles(m, v.node)} - counted - numbered
        if alone and roles.epoch_loop(node):
            words = f"every pass over {ast.unparse(over)} would have the same order"
            yield m.fault(over, f"{words}: nothing tells its sampler the epoch")
    for b in roles.train_feeds:
        mine = frozenset(v for v in b.loaders if _shuffles(m, v.node)) & numbered - counted
        calls = [c for c, vals in by_number.items() if vals & mine]
        for loop, inner in roles.epoch_loop(b.node) if mine else ():
            before = (c for c in calls if position(c) < position(inner))
            if not any(m.after.names.is_inside(c, loop) for c in before):
                words = "no set_epoch stands before this pass in the loop that repeats it"
                yield m.fault(inner, f"{words}: every epoch would have the same order")


def _passes(m: Migrated) -> Iterator[tuple[ast.AST, ast.expr, Vals]]:
    """What goes through loaders in code that may run: the node, the expression, the loaders."""
    roles = m.after.roles
    for n in m.after.names.nodes:
        over = (
            n.iter
            if isinstance(n, ast.For | ast.AsyncFor | ast.comprehension)
            else n.value
            if isinstance(n, ast.YieldFrom)
            else None
        )
        if isinstance(n, ast.Call) and m.after.names.dotted(n.func) == "?.iter" and n.args:
            over = n.args[0]
        if over is not None and (loaders := roles.loaders_of(over)):
            yield n, over, loaders


def _shuffles(m: Migrated, loader: ast.AST) -> bool:
    """``DataLoader(…, sampler=DistributedSampler(…))``, which shuffles unless it is told not to."""
    for k in loader.keywords if isinstance(loader, ast.Call) else ():
        call = k.value
        if (
            k.arg == "sampler"
            and isinstance(call, ast.Call)
            and m.after.names.dotted(call.func).endswith(".DistributedSampler")
        ):
            return not any(o.arg == "shuffle" for o in call.keywords)
    return False
