"""Every model that is trained is under a wrap: without it each rank trains a model of its own, and
nothing reports it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.contract import MODULE
from dpmigrate.facts.objects import wrap_argument
from dpmigrate.facts.values import Val, Vals
from dpmigrate.result.migrated import Fault, Migrated

WRAPS = frozenset({f"{MODULE}.wrap", "torch.nn.parallel.DistributedDataParallel"})


def wrap_calls(m: Migrated) -> list[ast.Call]:
    """The calls in code that may run which wrap a model."""
    return [c for c in m.after.roles.calls if m.after.names.dotted(c.func) in WRAPS]


def unwrapped(m: Migrated) -> Iterator[Fault]:
    """Models of training passes and of optimizers that no wrap is given, and programs without any
    wrap.
    """
    roles = m.after.roles
    wraps = wrap_calls(m)
    if not roles.backwards:
        return
    if not wraps:
        words = (
            "no model would be wrapped in DistributedDataParallel: each rank would train its own"
        )
        yield m.fault(roles.backwards[0], words)
        return
    given = [e for c in wraps if (e := wrap_argument(c)) is not None]
    inner = {v for e in given for v in m.inner(m.after.values.eval(e))}
    for p in roles.training_passes:
        if _bare(m.inner(roles.model_vals(p.model)), wraps, inner):
            words = "would be trained here without DistributedDataParallel round it"
            yield m.fault(p.call, f"{ast.unparse(p.model)} {words}")
    for o in roles.optimizers:
        if o.receivers and not o.models:
            model = ast.unparse(o.receivers[0])
            yield m.fault(
                o.call, f"it is not seen which model {model} is, so not whether it is wrapped"
            )
        elif _bare(m.inner(o.models), wraps, inner | _given(m, inner)):
            words = "the optimizer would step a model without DistributedDataParallel round it"
            yield m.fault(o.call, f"{words}: {ast.unparse(o.call)}")


def _given(m: Migrated, wrapped: set[Val]) -> set[Val]:
    """What wrapped objects of the program are made of: ``model`` of ``Trainer(model)``."""
    made = [v.node for v in wrapped if v.kind == "object" and isinstance(v.node, ast.Call)]
    given = [e for c in made for e in (*c.args, *(k.value for k in c.keywords))]
    return {v for e in given for v in m.inner(m.after.values.eval(e))}


def _bare(models: Vals, wraps: list[ast.Call], inner: set[Val]) -> bool:
    """Whether one of the models is neither made by a wrap nor given to one; the ``None`` of an
    abstract method is no model.
    """
    known = (v for v in models if not (isinstance(v.node, ast.Constant) and v.node.value is None))
    return any(v.node not in wraps and v not in inner for v in known)
