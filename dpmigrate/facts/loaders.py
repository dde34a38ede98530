"""What the ``*`` and ``**`` arguments of a DataLoader call may carry."""

from __future__ import annotations

import ast
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


def dict_keys(script: Script, node: ast.expr) -> set[str] | None:
    """The keys that a dict may hold, with everything that is put in later; None if unknown."""
    vals = script.values.eval(node)
    if not vals:
        return None
    keys: set[str] = set()
    for v in vals:
        if v.kind == "display" and isinstance(v.node, ast.Dict):
            for k in v.node.keys:
                if not isinstance(k, ast.Constant):
                    return None
                keys.add(str(k.value))
            keys |= {str(k) for (n, k) in script.values.items if n is v.node}
        elif v.kind == "call" and v.qual == "?.dict" and isinstance(v.node, ast.Call):
            keys |= {k.arg for k in v.node.keywords if k.arg}
        else:
            return None
    if isinstance(node, ast.Name):
        for c, func in script.methods("update", "setdefault"):
            if isinstance(func.value, ast.Name) and func.value.id == node.id:
                more = dict_keys(script, c.args[0]) if c.args else {k.arg for k in c.keywords if k.arg}
                if more is None:
                    return None
                keys |= more
    return keys
