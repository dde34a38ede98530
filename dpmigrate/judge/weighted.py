"""A mean over weights is put together by the weights that it is divided by."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.values import NONE, const
from dpmigrate.judge.trial import Fault, Trial

NAME = "means over weights are put together by these weights"
#: the parameters of ``ddp.weight_of`` after the targets, and what a loss notes of them
_OF_LOSS = {"weight": "weight", "ignore_index": "ignored"}


def faults(trial: Trial) -> Iterator[Fault]:
    """Weights of classes, or a label that is left out, of a loss that ``ddp.weight_of`` is not told."""
    losses = {e.node: e for e in trial.result.trace.of("mean over weights")}
    for event in trial.result.trace.of("judge runtime"):
        call = event.node
        if event.values["name"] != const("weighted_mean") or not isinstance(call, ast.Call) or len(call.args) < 2:
            continue
        loss, count = losses.get(call.args[0]), call.args[1]
        if loss is None or not isinstance(count, ast.Call) or not ast.unparse(count.func).endswith("weight_of"):
            continue
        given = [*_OF_LOSS][: len(count.args) - 1] + [k.arg for k in count.keywords]
        for name, noted in _OF_LOSS.items():
            if loss.values[noted] != NONE and name not in given and None not in given:
                yield trial.fault(call, NAME, f"the loss is divided by what its {name} leaves, and weight_of() is not told {name}=")
