"""No rank comes to a collective more often than another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from dpmigrate.contract import COLLECTIVE, OF_GRADIENTS
from dpmigrate.facts.control import uniform
from dpmigrate.facts.exits import exits
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.reaching import reaching
from dpmigrate.result.migrated import Fault, Migrated

#: collectives by which ranks decide something together
_DECIDES = frozenset({"any_rank", "from_main", "mean_all", "sum_all", "gather_all"})


def torn_apart(m: Migrated) -> Iterator[Fault]:
    """Collectives of the new code in loops of which ranks may run other numbers of turns."""
    called = [(name, c) for name, c in m.runtime_calls if name in COLLECTIVE and m.is_new(c)]
    yield from _in_shares(m, called)
    for name, call in called:
        for loop in _loops_round(m, call):
            if (test := _leaves(m, loop)) is not None:
                words = f"{name}() waits for every rank, but its loop may end on one alone"
                fault = m.fault(call, f"{words}, by {ast.unparse(test)}")
                yield replace(fault, unless=(call.lineno, call.col_offset))


def _in_shares(m: Migrated, called: list[tuple[str, ast.Call]]) -> Iterator[Fault]:
    """In loops over ``shard(loader)``: the shares may be of unequal length."""
    for name, shard in m.runtime_calls:
        loop = next((a for a in m.after.names.ancestors(shard) if isinstance(a, ast.stmt)), None)
        if (
            name != "shard"
            or not isinstance(loop, ast.For)
            or not m.after.names.is_inside(shard, loop.iter)
        ):
            continue
        body = ast.Module(loop.body, [])
        entered = m.after.roles.all_entered(body)
        quiet = m.after.roles.quiet_always(loop)
        for what, call in called:
            if quiet and what in OF_GRADIENTS:
                continue
            if (
                any(m.after.names.is_inside(call, s) for s in loop.body)
                or m.after.names.function(call) in entered
            ):
                words = f"{what}() waits for every rank, but stands in a loop over a rank's share"
                fault = m.fault(call, f"{words} of batches: {ast.unparse(loop.iter)}")
                yield replace(fault, loud=what in OF_GRADIENTS)


def _loops_round(m: Migrated, node: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.While]:
    inner = node
    for a in m.after.names.ancestors(node):
        if isinstance(a, FunctionNode | ast.Lambda):
            return
        if isinstance(a, Loop) and any(m.after.names.is_inside(inner, s) for s in a.body):
            yield a
        inner = a


def _leaves(m: Migrated, loop: ast.For | ast.AsyncFor | ast.While) -> ast.expr | None:
    """The test by which one rank may leave the loop, or a turn of it, alone."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    tests += [e.test for e in exits(m.after.names, m.after.roles, loop) if e.test is not None]
    apart = [t for t in tests if not m.after.shares.alike(t) and not _decided(m, t)]
    if not apart:
        return None
    nodes = m.after.names.nodes
    agreed = [n.test for n in nodes if isinstance(n, ast.If | ast.While) and _decided(m, n.test)]
    return next((t for t in apart if not uniform(m.after.names, t, agreed)), None)


def _decided(m: Migrated, test: ast.expr) -> bool:
    """Whether ranks decide the test together, or it is about values that they have so got alone."""
    inside = set(ast.walk(test))
    if any(name in _DECIDES and call in inside for name, call in m.runtime_calls):
        return True
    called = {n.func for n in inside if isinstance(n, ast.Call)}
    read = [n for n in inside if isinstance(n, ast.Name | ast.Attribute) and n not in called]
    bound = [reaching(m.after.names, n) for n in read if isinstance(n, ast.Name)]
    plain = len(bound) == len(read) > 0 and None not in bound
    return plain and all(b is not None and b.value is not None and _together(m, b.value) for b in bound)


def _together(m: Migrated, value: ast.AST) -> bool:
    """Whether an assigned value is what the ranks have decided: ``ddp.from_main(…)``."""
    return any(name in _DECIDES and call is value for name, call in m.runtime_calls)
