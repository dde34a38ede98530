"""Where a training loader is divided: in the call that builds it, or when it is finished."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.loaders import critical_star
from dpmigrate.facts.spelling import spelled

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def reads_statically(script: Script, call: ast.Call) -> bool:
    """Whether the arguments that decide the batches can be read and set where the loader is built."""
    if (
        not script.roles.makes_loader(call)
        or _serves_both(script, call)
        or critical_star(script, call)
        or script.argument(call, "batch_sampler", 4) is not None
    ):
        return False
    sampler = script.argument(call, "sampler", 3)
    if sampler is not None and not isinstance(sampler, ast.Constant | ast.Call):
        vals = script.values.eval(sampler)
        if not vals or any(v.kind == "const" for v in vals):
            return False
    if script.argument(call, "dataset", 0) is None:
        return False
    return not any(isinstance(a, ast.ListComp | ast.DictComp | ast.GeneratorExp | ast.Lambda) for a in script.names.ancestors(call))


def distributed_at(script: Script, call: ast.Call) -> list[ast.expr]:
    """Where ``ddp.distribute`` goes for a loader that cannot be read: the call itself, or what a factory's result is assigned to."""
    if reads_statically(script, call):
        return []
    if any(isinstance(a, ast.DictComp) for a in script.names.ancestors(call)):
        return []
    if not _serves_both(script, call):
        return [] if distributed_after(script, call) else [call]
    out: dict[ast.expr, None] = {}
    for b in script.roles.train_feeds:
        if any(v.node is call for v in b.loaders):
            out |= dict.fromkeys(_results(script, b.source))
    return list(out)


def _results(script: Script, source: ast.expr) -> Iterator[ast.Call]:
    """The calls that give the loader to the variables through which it comes: ``loader = get_loader(args)``, then ``Solver(loader)``, ``self.loader``."""
    todo, seen = [source], set()
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call):
            yield node
        elif isinstance(node, ast.Name | ast.Attribute) and node not in seen:
            seen.add(node)
            todo += script.roles.given(node)


def distributed_after(script: Script, call: ast.Call) -> dict[str, ast.stmt]:
    """For a loader that is one of several made at once: the expressions of those that training uses, each with the statement before.

    ``loaders['train']`` of a dict comprehension, ``train_loader`` of ``train_loader, val_loader = get_loaders()``.
    """
    out: dict[str, ast.stmt] = {}
    stmt = script.names.statement(call)
    for b in script.roles.train_feeds:
        side = script.phases(b)
        if side is None or not any(v.node is call for v in side.loaders):
            continue
        made = next((a for a in script.names.ancestors(call) if isinstance(a, ast.DictComp)), None)
        if made is not None and isinstance(side.source, ast.Subscript):
            text = spelled(script.names, side.source, stmt)
            if text is None and isinstance(stmt, ast.Assign) and stmt.value is made and isinstance(side.source.slice, ast.Constant):
                text = ast.unparse(ast.Subscript(stmt.targets[0], side.source.slice, ast.Load()))  # made in another function than the one that trains
            out |= {text: stmt} if text is not None else {}
        for key, _ in script.roles.roots(b.source):
            unpacked = [w for w in script.roles.writes(key) if isinstance(w, ast.Assign) and w.value is call and isinstance(w.targets[0], ast.Tuple | ast.List)]
            out |= {ast.unparse(script.roles.leaf(w, key)): w for w in unpacked}
    return out


def _serves_both(script: Script, call: ast.Call) -> bool:
    """Whether one call makes the training loader and another loader that evaluates: a factory, a comprehension."""
    train, other = (
        {
            k
            for b in loops
            if any(v.node is call for v in b.loaders)
            for k, _ in script.roles.roots(b.source)
            if any(v.node is call for v in script.values.vars.get(k, ()))
        }
        for loops in (script.roles.train_feeds, script.roles.eval_loops)
    )
    mixed = any(b.branches and any(v.node is call for v in b.loaders) and len(b.loaders) == 1 for b in script.roles.train_feeds)
    return bool(other - train) or mixed
