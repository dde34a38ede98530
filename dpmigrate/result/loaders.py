"""What is asked for its sampler is a DataLoader, and not a progress bar or another thing made of
one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.contract import MODULE
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.values import Val
from dpmigrate.result.migrated import Fault, Migrated

#: functions of the runtime that take a loader, and do something else for what is none
_TAKES_LOADER = frozenset({"next_epoch", "whole", "shard"})
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})


def told(call: ast.Call) -> ast.expr | None:
    """The loader whose sampler a call tells the epoch: ``loader.sampler.set_epoch(epoch)``."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "set_epoch":
        return None
    part = func.value
    known = isinstance(part, ast.Attribute) and part.attr in ("sampler", "batch_sampler")
    return part.value if known and isinstance(part, ast.Attribute) else None


def no_loaders(m: Migrated) -> Iterator[Fault]:
    """Calls of the new code on what may be something made of a loader."""
    for call in m.after.roles.calls:
        loader = told(call)
        made = _made_of_loader(m, loader, frozenset()) if loader is not None else None
        if loader is not None and made is not None and m.is_new(call):
            words = f"{ast.unparse(loader)} would be asked for its sampler, but may be"
            yield m.fault(call, f"{words} {ast.unparse(made)}, which is no DataLoader")
    for name, call in m.runtime_calls:
        if name in _TAKES_LOADER and call.args and m.is_new(call):
            made = _made_of_loader(m, call.args[0], frozenset())
            if made is not None and any(divided(m, v.node) for v in _loaders_in(m, made)):
                words = f"{name}() would be given {ast.unparse(call.args[0])}, but that may be"
                yield m.fault(call, f"{words} {ast.unparse(made)}, which is no DataLoader")


def divided(m: Migrated, call: ast.AST) -> bool:
    """Whether the call makes a loader that gives a rank its part."""
    names = m.after.names
    if not isinstance(call, ast.Call):
        return False
    parts = [k.value for k in call.keywords if k.arg in ("sampler", "batch_sampler")]
    called = {names.dotted(p.func).rpartition(".")[2] for p in parts if isinstance(p, ast.Call)}
    around = names.parent.get(call)
    for c in (call, around):
        if isinstance(c, ast.Call) and names.dotted(c.func) == f"{MODULE}.distribute":
            return True
    return bool(called & {"DistributedSampler", "shard_sampler"})


def _made_of_loader(m: Migrated, node: ast.expr, seen: frozenset[ast.AST]) -> ast.Call | None:
    """The call that makes something of a loader, where the expression may be what it gives."""
    if node in seen:
        return None
    seen |= {node}
    if isinstance(node, ast.IfExp):
        sides = (_made_of_loader(m, e, seen) for e in (node.body, node.orelse))
        return next((c for c in sides if c is not None), None)
    if isinstance(node, ast.Name | ast.Attribute):
        given = m.possible(node) if isinstance(node, ast.Name) else m.after.roles.given(node)
        return next(
            (c for g in given if g is not None and (c := _made_of_loader(m, g, seen)) is not None),
            None,
        )
    return node if isinstance(node, ast.Call) and _wraps(m, node) else None


def _wraps(m: Migrated, call: ast.Call) -> bool:
    """Whether the call of foreign code, or of a class that is no DataLoader, is given a loader."""
    script = m.after
    dotted = script.names.dotted(call.func)
    if call in script.roles.loader_calls or dotted in _COPIES or dotted.startswith(f"{MODULE}."):
        return False
    if any(f.name != "__init__" for f, _ in script.values.targets(call)):
        return False  # a function of the program: what it gives is looked at
    if any(_has_sampler(m, v.cls) for v in script.values.eval(call) if v.cls is not None):
        return False
    return any(True for _ in _loaders_in(m, call))


def _loaders_in(m: Migrated, call: ast.Call) -> Iterator[Val]:
    """The loaders among the arguments."""
    for e in (*call.args, *(k.value for k in call.keywords)):
        yield from m.after.roles.loaders_of(e)
        yield from (v for v in m.objects(e) if v.qual == f"{MODULE}.distribute")


def _has_sampler(m: Migrated, cls: ast.ClassDef) -> bool:
    """Whether objects of a class of the program have a sampler of their own, or hand on what they
    are asked for.
    """
    for n in (n for k in m.after.values.defs.bases(cls) for n in ast.walk(k)):
        if isinstance(n, FunctionNode) and n.name in ("__getattr__", "sampler"):
            return True
        if isinstance(n, ast.Attribute) and n.attr == "sampler" and isinstance(n.ctx, ast.Store):
            return True
    return False
