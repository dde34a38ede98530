"""Each rank works on a GPU of its own: no GPU is named by its number, and no device that only one process can use."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.values import Const, Setting
from dpmigrate.judge.trial import Fault, Trial

NAME = "each rank has a GPU of its own"


def faults(trial: Trial) -> Iterator[Fault]:
    """Devices with a number, written out or by default: every rank would use that GPU. Devices that
    DistributedDataParallel does not support.
    """
    for event in trial.result.trace.of("unsupported device"):
        words = "DistributedDataParallel does not support the device 'mps': choose it by what there is, or use 'cuda' or 'cpu'"
        yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("numbered device"):
        found = event.values["device"][0]
        held = found.default if isinstance(found, Setting) else found
        assert isinstance(held, Const)
        name = f"{found.word} is {held.value!r}" if isinstance(found, Setting) else repr(held.value)
        words = f"every rank would use the same GPU ({name})"
        yield trial.fault(event.node, NAME, words)
