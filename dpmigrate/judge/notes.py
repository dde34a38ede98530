"""What the judge notes in the heap of an execution, and under which names."""

from __future__ import annotations

from dpmigrate.execution.machine import PROCESS, Machine
from dpmigrate.execution.objects import Location, Object
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Value,
    const,
)
from dpmigrate.library.streams import OWN

#: a field of a sampler: whether it was told which epoch comes, since its last pass began
TOLD = "judge told"
FRESH, SET, USED = const("fresh"), const("told"), const("used")
#: fields of a sampler: the epoch that it was told, and that of its last pass
EPOCH, LAST_EPOCH = "judge epoch", "judge last epoch"
#: a field of a wrapper: whether a backward went through it since its last forward
PASSED = "mode judge passed"
#: a field of a wrapper: what its passes since the last backward are made of (``overtaken``)
PASSES = "mode judge passes"
#: fields of a layer: whether it is frozen (nothing: no word of it); whether it was when it was
#: wrapped; whether it was frozen after that when a backward went through the wrapper
FROZEN, AT_WRAP, LATE = "mode judge frozen", "mode judge at the wrap", "mode judge late"
#: a field of a layer: whether it was moved to a device
MOVED = "mode judge moved"
#: a field of a wrapper: where its model was moved to the CPU and so left the device of the wrap
AWAY = "judge away"
#: what averages gradients over the ranks
SYNCHRONISED = ("wrap", "DistributedDataParallel")
#: those that average the gradients of each backward, whatever it leaves out and whichever it is
COMPLETED = ("wrap",)
#: a field of a wrapper: whether the running statistics of its model are each rank's own
STATISTICS = "mode judge statistics"
#: the same of a module, and its parts, that no wrapper holds; the event of a pass in which they become so
OF_LAYER = "mode judge statistics of a layer"
#: a field of the process: the paths of files that rank 0 may still be writing
WRITTEN = (PROCESS, "judge written")
#: files that all ranks have read since they met, without NONE where that is certain
READ = (PROCESS, "judge read")
#: a field of the process: whether the process group is up
GROUP = (PROCESS, "judge group")
#: whether a module or a wrapper is being called
INSIDE = (PROCESS, "mode judge inside")
#: a module or a wrapper is called by the program itself, and not by another one, to train
CALLED = "judge called"
#: what tells the user, or the course of the training, a number
TOLD_OF = ("print", "write", "schedule", "save", "save by rank 0")
#: methods by which an object whose code is not seen tells what it is given, as loggers do
TELLING = frozenset({"debug", "info", "warning", "error", "critical", "log"})
#: iterators that give what they go over one by one, as it comes
ONE_BY_ONE = frozenset({"enumerate", "iter"})
#: what ``ddp.shard`` gives
SHARE = "shard"
THROUGH = frozenset({"wrapper", "through"})
#: a field of the process: whether ``with autocast():`` is round what runs
AUTOCAST = (PROCESS, "judge autocast")
#: a field of such a manager: whether another one was round it
OUTSIDE = "judge outside"
#: fields of a scaler, and of an optimizer: whether it has stepped, or was stepped by one
NEW_SCALER, BY_SCALER = "judge new", "judge by scaler"
#: layers that draw numbers while they train
DROPPING = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU")
#: what starts ranks, or makes a process group, beside the launcher
OWN_RANKS = frozenset({
    "torch.distributed.init_process_group", "torch.multiprocessing.spawn",
    "torch.multiprocessing.start_processes", "torch.nn.parallel.data_parallel",
})  # fmt: skip
#: whether something was differentiated: from the second step on it is said of draws that they
#: are made in training
BEGUN = (PROCESS, "judge begun")
#: fields of the process: whether the ranks drew numbers of their own from its streams where something
#: was differentiated
OWN_IN_TRAINING: dict[str, Location] = {s: (PROCESS, f"judge {s} stream in training") for s in OWN}
#: calls of libraries, and their parameters, that are given functions for each sample
GIVEN_SAMPLES = ("Lambda", "transform", "transforms", "target_transform", "collate_fn")
#: the trackers, and what of them reports, or begins a run
TRACKERS = frozenset({"wandb", "mlflow", "swanlab", "comet_ml", "neptune", "clearml", "aim"})
REPORTS = frozenset({
    "log", "log_metric", "log_metrics", "log_param", "log_params", "log_artifact", "log_artifacts", "log_image", "log_table", "log_figure", "log_text",
    "set_tag", "set_tags", "watch", "finish", "end_run", "alert",
    "init", "start_run", "init_run", "Task.init", "Experiment", "Run",
})  # fmt: skip
#: the event of a report that every rank makes
REPORTED = "judge reported"
#: the event of a download that every rank makes at once
DOWNLOADED = "judge downloaded"
BEFORE, UP, DOWN = const("before"), const("up"), const("down")
RUNTIME = "dpmigrate_runtime."


def told_of(loader: int) -> str:
    """The name of what an event of a pass says of one of its loaders: whether it was told."""
    return f"told {loader}"


def wrappers(m: Machine) -> list[int]:
    """The wrappers of which it is known whose running statistics they have."""
    return [n for n, fields in m.heap.fields.items() if STATISTICS in fields]


def one_of(samplers: set[int]) -> Value:
    """The mark of samplers of which one was told the epoch."""
    return const(f"one of {sorted(samplers)}")


def is_loader(m: Machine, made: Object) -> bool:
    """Whether an object is a DataLoader, or of a class of the program that derives from it."""
    return made.kind == "loader" or "loader" in m.kinds(made)


def samplers(m: Machine, atom: Atom) -> list[Location]:
    """Where it is noted of the samplers of a loader whether they were told the epoch."""
    made = m.object(atom)
    if made is None:
        return []
    held = m.heap.read((made.number, "sampler")) or NOTHING
    found = [o.number for o in m.objects(held)]
    return [(n, TOLD) for n in found or [made.number]]
