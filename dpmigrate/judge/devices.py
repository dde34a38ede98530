"""Each rank works on a GPU of its own: no GPU is named by its number, and no device that only one process can use."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.joins import join
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import NONE, NOTHING, Const, Setting, const
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.environment import SET

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
    for node, name in _set_by_launcher(trial):
        yield trial.fault(node, NAME, f"the launcher says what {name} is: every rank would have the one that is written here")
    loaded = set(_loaded(trial))
    for event in where_saved(trial):
        if event.node in loaded:
            words = "every rank loads a state to the GPU that it was saved from: give map_location=ddp.device(), or 'cpu'"
            yield trial.fault(event.node, NAME, words)


#: variables of the environment that are those of a rank, or that the launcher gives it
_GIVEN = frozenset({"CUDA_VISIBLE_DEVICES", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE"})


def _set_by_launcher(trial: Trial) -> Iterator[tuple[ast.AST, str]]:
    """Where such a variable is set to what is written in the program: ``os.environ["RANK"] = "0"``."""
    for event in trial.result.trace.of(SET):
        for name in sorted(_GIVEN):
            given = event.values.get(f"${name}")
            if given and all(isinstance(a, Const) for a in given):
                yield event.node, name


def where_saved(trial: Trial) -> Iterator[Event]:
    """Where every rank loads a file, but for samples, to where that was saved."""
    for event in trial.result.trace.of("load"):
        everywhere = event.parted is None and event.values["of a sample"] == const(False)
        if everywhere and event.values["where"] == NONE:
            yield event


def _loaded(trial: Trial) -> Iterator[ast.AST]:
    """Where what is loaded into models and optimizers was read. Of an entry of a file it is not known
    of which; where no file is given a place it is one of them.
    """
    cleaned = {e.node: e.values["given"] for e in trial.result.trace.of("judge cleaned")}
    loads = list(trial.result.trace.of("load"))
    placed = any(e.values["where"] != NONE for e in loads)
    for event in trial.result.trace.of("load state"):
        given = event.values["given"]
        for made in trial.objects(given):
            given = join(given, cleaned.get(made.node, NOTHING))  # type: ignore[arg-type]
        yield from (o.node for o in trial.objects(given) if o.node is not None)
        if not placed and any(isinstance(a, Setting) for a in given):
            yield from (e.node for e in loads)
