"""What the ``*`` and ``**`` arguments of a DataLoader call may carry."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def critical_star(script: Script, call: ast.Call) -> bool:
    """Whether ``*args`` or ``**kwargs`` of a DataLoader call may carry what decides the batches."""
    if any(isinstance(a, ast.Starred) for a in call.args):
        return True
    for k in call.keywords:
        if k.arg is None:
            keys = dict_keys(script, k.value)
            if keys is None or keys & {"batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "dataset"}:
                return True
    return False


def dict_keys(script: Script, node: ast.expr, busy: frozenset[ast.AST] = frozenset()) -> set[str] | None:
    """The keys that a dict may hold, with everything that is put in later; None if unknown."""
    vals = script.values.eval(node)
    if not vals or node in busy or _half_known(script, node):
        return None
    busy |= {node}
    found: list[set[str] | None] = []
    for v in vals:
        if isinstance(v.node, ast.Dict):
            found += [{str(k.value)} if isinstance(k, ast.Constant) else None for k in v.node.keys]
        elif v.qual == "?.dict" and isinstance(v.node, ast.Call):
            found.append(_given(script, v.node, busy))
        else:
            return None
        found += [{str(k)} if k != "*" else None for k in script.values.items.get(v.node, ())]  # d[k] = 3: any key
    found += [_given(script, c, busy) for c, func in script.methods("update", "setdefault") if script.values.eval(func.value) & vals]
    return _union(found)


def starred(script: Script, call: ast.Call, name: str) -> Iterator[ast.expr]:
    """What a call may be given for a parameter by its ``**`` arguments: in a dict, when it is made or put in later."""
    for k in call.keywords:
        if k.arg is None:
            yield from _under(script, k.value, name, frozenset())


def _under(script: Script, node: ast.expr, key: str, busy: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """The values that a dict may hold under a key."""
    vals = script.values.eval(node) if node not in busy else frozenset()
    busy |= {node}
    for v in vals:
        if isinstance(v.node, ast.Dict):
            for k, value in zip(v.node.keys, v.node.values, strict=True):
                if k is None:
                    yield from _under(script, value, key, busy)
                elif isinstance(k, ast.Constant) and k.value == key:
                    yield value
        elif v.qual == "?.dict" and isinstance(v.node, ast.Call):
            yield from _handed(script, v.node, key, busy)
    for stmt in (n for n in script.names.nodes if vals and isinstance(n, ast.Assign)):
        subscripts = [t for t in stmt.targets if isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Constant) and t.slice.value == key]
        if any(script.values.eval(t.value) & vals for t in subscripts):
            yield stmt.value
    for call, func in script.methods("update") if vals else ():
        if script.values.eval(func.value) & vals:
            yield from _handed(script, call, key, busy)


def _handed(script: Script, call: ast.Call, key: str, busy: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """What ``dict(…)`` or ``d.update(…)`` is given under a key."""
    yield from (k.value for k in call.keywords if k.arg == key)
    for other in (*call.args, *(k.value for k in call.keywords if k.arg is None)):
        yield from _under(script, other, key, busy)


def _given(script: Script, call: ast.Call, busy: frozenset[ast.AST]) -> set[str] | None:
    """The keys that ``dict(…)`` or ``d.update(…)`` is given; None if unknown."""
    others = [*call.args, *(k.value for k in call.keywords if k.arg is None)]
    return _union([{k.arg for k in call.keywords if k.arg}, *(dict_keys(script, e, busy) for e in others)])


def _union(found: Sequence[set[str] | None]) -> set[str] | None:
    known = [keys for keys in found if keys is not None]
    return set().union(*known) if len(known) == len(found) else None


def _half_known(script: Script, node: ast.expr) -> bool:
    """Whether a name is also given something unknown: ``d |= …``, ``d = d | …``."""
    if not isinstance(node, ast.Name):
        return False
    bound = script.names.bindings(script.names.scope_of[node], node.id)
    return any(b.how == "aug" or (b.how == "assign" and not b.path and not script.values.eval(b.value)) for b in bound)
