"""Tensors that a training step makes of its batch and optimises by themselves: adversarial perturbations, codes of single samples.

Nothing of them is averaged: each rank makes those of its own samples. What their gradient is normalised by does matter, since no other rank's is added.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.losses import Norm
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.optimizers import Optimizer
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.steps import steps

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


@dataclass(frozen=True, eq=False, slots=True)
class Perturbation:
    """An optimizer of tensors of the batch, with the backward passes that serve it; ``summed``: each sample has the gradient that one process gives it."""

    optimizer: Optimizer
    tensor: ast.expr
    backwards: tuple[ast.Call, ...]
    summed: bool


def perturbations(script: Script) -> list[Perturbation]:
    """The optimizers that training steps build for tensors of their own."""
    found = []
    for optimizer in script.roles.optimizers:
        tensors = _tensors(script, optimizer.call)
        home = script.names.function(optimizer.call)
        if not tensors or script.roles.region(optimizer.call) not in ("train", "both") or not all(_made_here(script, t, home) for t in tensors):
            continue
        turns = [_turn(script, s.call) for s in steps(script.roles) if optimizer in s.optimizers]
        served = tuple(b for b in script.roles.backwards if script.names.function(b) is home and _turn(script, b) in turns)
        if served:
            summed = all(script.losses.of_backward(b).norm is Norm.SUM for b in served)
            found.append(Perturbation(optimizer, tensors[0], served, summed))
    return found


def _tensors(script: Script, call: ast.Call) -> list[ast.expr]:
    """The variables that the optimizer is given, in a list or tuple; none where it is given anything else."""
    given = script.argument(call, "params", 0)
    listed = given.elts if isinstance(given, ast.List | ast.Tuple) else []
    return listed if all(isinstance(e, ast.Name) for e in listed) else []


def _made_here(script: Script, tensor: ast.expr, home: ast.AST) -> bool:
    """Whether the function makes the tensor, of its batch."""
    assert isinstance(tensor, ast.Name)
    bound = list(script.names.bindings(script.names.scope_of[tensor], tensor.id))
    return bool(bound) and all(b.how in ("assign", "aug") and script.names.function(b.target) is home for b in bound) and of_batch(script.roles, tensor)


def _turn(script: Script, node: ast.AST) -> ast.AST:
    """The innermost loop, or the function, in which the node runs once a turn."""
    return next(a for a in script.names.ancestors(node) if isinstance(a, Loop | FunctionNode | ast.Module))
