"""What the ``*`` and ``**`` arguments of a DataLoader call may carry, and what its workers run first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode

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
        found += [{str(k)} if k != "*" else None for (n, k) in script.values.items if n is v.node]  # d[k] = 3: any key
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


# ------------------------------------------------------------------ what workers begin with
@dataclass(frozen=True, eq=False, slots=True)
class WorkerStart:
    """A ``worker_init_fn``: the expression that gives it, the function where it is of the program, and its parameter for the worker's number."""

    given: ast.expr
    function: FunctionNode | ast.Lambda | None = None
    number: str = ""


def worker_starts(script: Script) -> list[WorkerStart]:
    """What workers of training loaders run first, wherever it is put: in the call of the loader, in a dict of its arguments."""
    given: list[ast.expr] = []
    others = {c for c in script.roles.calls if script.roles.makes_loader(c)} - set(script.train_loader_calls)
    for node in script.names.nodes:
        if isinstance(node, ast.Call) and node not in others:
            found = script.argument(node, _START, 10 if script.roles.makes_loader(node) else None)
            given += [found] if found is not None else []
        elif isinstance(node, ast.Dict):
            given += [v for k, v in zip(node.keys, node.values, strict=True) if _is_start(k)]
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript) and _is_start(t.slice) for t in node.targets):
            given.append(node.value)
    return list({s.function or s.given: s for expr in given for s in _starts(script, expr, expr)}.values())


_START = "worker_init_fn"


def _is_start(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == _START


def _starts(script: Script, given: ast.expr, node: ast.expr, filled: frozenset[str] = frozenset(), skip: int = 0) -> Iterator[WorkerStart]:
    """The functions that the expression may be; ``filled`` and ``skip`` are the parameters that a ``functools.partial`` has given."""
    vals = script.values.eval(node)
    for v in vals:
        function = script.values.defs.method(v.cls, "__call__") if v.kind == "object" and v.cls is not None else v.node
        if v.kind == "call" and v.qual == "functools.partial" and isinstance(v.node, ast.Call) and v.node.args:
            yield from _starts(script, given, v.node.args[0], frozenset(k.arg for k in v.node.keywords if k.arg), len(v.node.args) - 1)
        elif v.kind in ("func", "object") and isinstance(function, FunctionNode | ast.Lambda):
            method = int(isinstance(function, FunctionNode) and isinstance(script.names.parent[function], ast.ClassDef))
            free = [a.arg for a in (*function.args.posonlyargs, *function.args.args)[skip + method :] if a.arg not in filled]
            yield WorkerStart(given, function, free[0] if free else "")
        elif v.kind != "const":
            yield WorkerStart(given)
    if not vals:
        yield WorkerStart(given)
