"""A model is on one device when it is wrapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import Value, const
from dpmigrate.judge.notes import MOVED
from dpmigrate.library.layers import has_parameters
from dpmigrate.library.module_tree import owned
from dpmigrate.library.modules import MODEL
from dpmigrate.program import Program

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged
    from dpmigrate.judge.trial import Fault, Trial

NAME = "a model is on one device when it is wrapped"
_EVENT = "judge moved in part"


def noted(m: Judged, model: Value, node: ast.AST, frame: Frame) -> None:
    """Notes that some layers of a model were moved to a device when it is wrapped, and others not."""
    for made in m.objects(model):
        layers = [o for n in owned(m, made.number) if (o := m.heap.objects[n]).kind == "module"]
        trained = [o for o in layers if has_parameters(m, o)]
        moved = {const(True)[0] in (m.heap.read((o.number, MOVED)) or ()) for o in trained}
        # parts of a model of a library are made where the program first asks for them
        whole = not any(o.extra == MODEL for o in (made, *layers))
        if len(moved) > 1 and whole and not any(_elsewhere(o) for o in trained):
            m.event(_EVENT, node, frame)


def _elsewhere(layer: Object) -> bool:
    """Whether a layer may be made on a device: ``nn.Linear(4, 2, device=device)``."""
    call = layer.node
    return not isinstance(call, ast.Call) or any(k.arg in (None, "device") for k in call.keywords)


def sets_default(program: Program) -> bool:
    """Whether the program sets the device on which new tensors are made."""
    named = program.every(ast.Attribute)
    return any(n.attr in ("set_default_device", "set_default_tensor_type") for n in named)


def faults(trial: Trial) -> Iterator[Fault]:
    """Models of which only some layers were moved, where the program sets no device for new layers."""
    if sets_default(trial.result.program):
        return
    for event in trial.result.trace.of(_EVENT):
        words = "some layers of this model were moved to a device, and others were not"
        yield trial.fault(event.node, NAME, words)
