"""What the user should know of a result that is right as far as it is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from textwrap import shorten

from dpmigrate.execution import batch_axes
from dpmigrate.execution.arithmetic import MEAN_BY_PART
from dpmigrate.execution.comparisons import SIZE_ASKED
from dpmigrate.execution.objects import UNSEEN, Object
from dpmigrate.execution.values import NONE, NOTHING, Const, Data, Ref, const, data, known
from dpmigrate.judge import counts, devices, normalised, observed, scaling, shared_files, shown, streams, totals
from dpmigrate.judge import own_totals as passes
from dpmigrate.judge.notes import TOLD_OF, is_loader
from dpmigrate.judge.trial import Trial
from dpmigrate.library.batches import BLOCKS, SHARED, divided
from dpmigrate.library.cutting import CUT
from dpmigrate.library.detection import TAKEN
from dpmigrate.library.sites import PADDING


def sentences(trial: Trial) -> tuple[str, ...]:
    """A sentence for each assumption that the user should know of."""
    found = (
        normalised.sentences, observed.sentences, _models, _optimizers, _detectors, _axes, _batches, _squeezed, _single, _scaled, _means, _parts,
        counts.sentences, _mixed, _decided, _devices, _partners, _drawn_so_far, _unequal, _padding, _cut, _asked, _loads, _kept, scaling.sentences, _held_up,
    )  # fmt: skip
    return tuple(dict.fromkeys(sentence for look in found for sentence in look(trial)))


def own_totals(trial: Trial) -> tuple[str, ...]:
    """Totals of rank 0's own batches, with every place that tells one or keeps it."""
    found = list(totals.of_own_batches(trial))
    certain = [event.node for event, sure in found if sure] + [event.node for event in passes.after_their_loops(trial)]
    known = list(dict.fromkeys(certain))
    others = [e.node for e, _ in found if e.node not in known]
    out = []
    for nodes, sure in ((known, True), (list(dict.fromkeys(others)), False)):
        if nodes:
            tells = "may tell" if not sure else "tell" if nodes[1:] else "tells"
            out.append(
                f"{_all(trial, nodes)} {tells} a total of rank 0's own batches: put the parts together first, "
                "with ddp.sum_all (sums, counts), ddp.mean_all (means of batches) or ddp.gather_all (rows)."
            )
    return tuple(out)


def drawn(trial: Trial, *, split: bool = True) -> str:
    """The first draw for the samples of an evaluation that is divided, and how many more there are; or of one that every rank makes in full, where each
    draws other numbers.
    """
    nodes = list(dict.fromkeys(streams.in_evaluation(trial) if split else streams.in_full_evaluation(trial)))
    return _first(nodes) if nodes else ""


def _held_up(trial: Trial) -> Iterator[str]:
    """Windows of rank 0 for which the other ranks wait: each call, in the order of the meetings."""
    found = list(dict.fromkeys(shown.nodes(trial.result)))
    if found:
        waits = "waits" if len(found) == 1 else "wait"
        yield (
            f"{_all(trial, found)} {waits} for somebody on rank 0, if a window opens or a terminal asks; the other ranks "
            "wait for rank 0 where they meet next, at most the timeout of setup()."
        )


def _all(trial: Trial, nodes: list[ast.AST]) -> str:
    """The text of the first node, and the functions that the others call, with their lines."""
    others = [f"{ast.unparse(n.func) if isinstance(n, ast.Call) else 'text'} ({trial.line(n)})" for n in nodes[1:]]
    return ", ".join([shorten(ast.unparse(nodes[0]), 70, placeholder=" …"), *dict.fromkeys(others)])


def _first(nodes: list[ast.AST]) -> str:
    """The text of the first node, and how many more there are."""
    more = f" (and {len(nodes) - 1} more)" if nodes[1:] else ""
    return shorten(ast.unparse(nodes[0]), 70, placeholder=" …") + more


def _means(trial: Trial) -> Iterator[str]:
    """Losses of training batches: the first place that tells one, and how many more there are."""
    found = list(totals.of_training(trial))
    known = [event for event, sure in found if sure]
    shown = sorted(known or [event for event, _ in found], key=lambda event: event.kind == "print")
    nodes = list(dict.fromkeys(event.node for event in shown))  # what is kept comes first
    if nodes:
        yield (
            f"{_first(nodes)} {'tells' if known else 'may tell'} numbers of rank 0's part of the batch; ddp.mean_all (means) or "
            "ddp.sum_all (sums) gives those of the whole batch, called on all ranks."
        )


def _models(trial: Trial) -> Iterator[str]:
    """Models of unseen code: how they treat the samples of a batch is not known."""
    events = trial.result.trace.of("taken for samples")
    made = [o.name for event in events for o in trial.objects(event.values["module"])]
    named = [n for n in made if not n.startswith(".")]  # else it is what a method of one gives
    for name in named or (["the model"] if made else []):
        yield (
            f"The code of {name} is not seen: it is taken for a model that treats each sample of a "
            "batch by itself."
        )


def _optimizers(trial: Trial) -> Iterator[str]:
    """Optimizers of unseen code: what they go by is not known."""
    stepped = (o for event in trial.steps for o in trial.objects(event.values["optimizer"]))
    for name in dict.fromkeys(o.name for o in stepped if o.kind in UNSEEN):
        yield f"The code of {name} is not seen: it is taken for an optimizer that goes by the parameters and their gradients alone."


def _detectors(trial: Trial) -> Iterator[str]:
    """Detectors whose losses are means over boxes, of which each rank has another number."""
    for name in dict.fromkeys(known(e.values["name"]) for e in trial.result.trace.of(TAKEN)):
        yield (
            f"The losses of {name} are means over the boxes of a rank's pictures; the mean of those of all "
            "ranks is taken, as torchvision does it under DDP, which is not quite that over all boxes."
        )


def _axes(trial: Trial) -> Iterator[str]:
    """Losses, and products or differences, of which it is not known whether they put tensors of one shape together: the first place."""
    nodes = list(dict.fromkeys(e.node for e in trial.result.trace.of("axes taken for equal")))
    if nodes:
        yield (
            f"{_first(nodes)} is taken to put together tensors of one shape, as is not seen: where a column "
            "(B, 1) meets a vector (B,), each rank compares its own samples alone."
        )


def _batches(trial: Trial) -> Iterator[str]:
    """Tests of how many axes a batch has, of which that is not known: the first place."""
    nodes = list(dict.fromkeys(e.node for e in trial.result.trace.of(batch_axes.TAKEN)))
    if nodes:
        yield (
            f"Where {_first(nodes)} is asked, a batch is taken to have its axis of samples, as is not seen: with another one in front "
            "all samples of a batch would be one, and each rank would have its own."
        )


def _scaled(trial: Trial) -> Iterator[str]:
    """Numbers that are told and grow with the number of ranks: a mean divided by what one rank has
    counted or added up.
    """
    for event in trial.result.trace.of(*TOLD_OF):
        for d in data(event.values["numbers"]):
            if d.origin is not None and d.origin.word == MEAN_BY_PART:
                yield (
                    f"{shorten(ast.unparse(event.node), 70, placeholder=' …')} tells {d.origin.word}: "
                    "it grows with the number of ranks. Divide by the total of all of them."
                )


def _parts(trial: Trial) -> Iterator[str]:
    """Sums over a rank's part of a batch that are divided by what is not: the first place."""
    nodes = list(dict.fromkeys(event.node for event in totals.of_parts(trial)))
    if nodes:
        yield (
            f"{_first(nodes)} tells a sum over rank 0's samples divided by a number of all ranks: as "
            "many times too small as there are ranks. Put it together first, with ddp.sum_all."
        )


def _mixed(trial: Trial) -> Iterator[str]:
    """Totals of numbers that are no sums or means over the samples: the first place."""
    for event, d in islice(totals.of_no_sums(trial), 1):
        since = f" since {d.origin.word}, {trial.line(d.origin.node)}" if d.origin is not None else ""
        yield (
            f"{_first([event.node])} puts numbers together that each rank makes of its part of a batch, "
            f"and that are no sums or means over the samples{since}: they are not those of the whole batch."
        )


def _decided(trial: Trial) -> Iterator[str]:
    """Decisions that follow rank 0's part of the samples of the training: the first place."""
    found = dict(reversed(list(totals.decided_by_part(trial))))
    if found:
        nodes = list(reversed(found))
        origin = found[nodes[0]]
        since = f" ({origin.word}, {trial.line(origin.node)})" if origin is not None else ""
        yield (
            f"{_first(nodes)} goes by numbers of rank 0's part of the training's samples{since}, where the "
            "original goes by those of all: put them together first, with ddp.mean_all or ddp.sum_all."
        )


def _devices(trial: Trial) -> Iterator[str]:
    """Devices that options or files of settings name: the first of them."""
    for event in islice(trial.result.trace.of("device of a setting"), 1):
        yield (
            f"{shorten(ast.unparse(event.node), 70, placeholder=' …')} takes the name of the device "
            "from outside: each rank has a GPU of its own, so give it without a number ('cuda', not "
            "'cuda:0')."
        )


def _loads(trial: Trial) -> Iterator[str]:
    """Files that every rank loads to where they were saved: the first of them."""
    for event in islice(devices.where_saved(trial), 1):
        yield (
            f"{shorten(ast.unparse(event.node), 70, placeholder=' …')} puts on GPU 0 what was saved "
            "from it, on every rank: give map_location=ddp.device(), or 'cpu'."
        )


def _kept(trial: Trial) -> Iterator[str]:
    """Files that a data set makes of the samples that it is asked for: the first such call."""
    found = list(dict.fromkeys(shared_files.of_samples(trial.result)))
    if found:
        yield (
            f"{_first(found)} keeps a sample in a file of its own, and each rank those that it is asked for: where two ranks ask for one at once, "
            "as in an evaluation in full, one may read what the other has half written. Write to a temporary name, and os.replace() it."
        )


def _partners(trial: Trial) -> Iterator[str]:
    """Samples that are taken in another order, in which they may meet others, as in mixup: the first place."""
    for event in islice(trial.result.trace.of("partners"), 1):
        yield (
            f"{shorten(ast.unparse(event.node), 70, placeholder=' …')} takes the samples of its rank's part of "
            "the batch in another order: where it gives a sample a partner, as in mixup, that is one of the same part."
        )


def _drawn_so_far(trial: Trial) -> Iterator[str]:
    """Attributes that each sample counts on and goes by: a number of the samples that were asked for,
    the place in another list. The first of each method.
    """
    written = {e.node for e in trial.result.trace.of("attribute") if e.values["of a sample"] == const(True)}
    functions = trial.result.program.every(ast.FunctionDef) if written else []
    for nodes in (list(ast.walk(f)) for f in functions):
        read = {n: ast.unparse(n) for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
        for stmt in nodes:
            target = _counted_on(stmt)
            name = ast.unparse(target) if target in written else ""
            if name and name in {text for n, text in read.items() if n not in set(ast.walk(stmt))}:
                yield (
                    f"{shorten(ast.unparse(stmt), 70, placeholder=' …')} ({trial.line(stmt)}) is done for each sample, and samples go by {name}: each "
                    "rank has that of its own share alone, as each worker of a loader has. Let samples go by their index, or by the epoch."
                )
                break


def _counted_on(stmt: ast.AST) -> ast.AST | None:
    """The attribute that a statement counts on: ``self.n += 1``, ``self.n = (self.n + 1) % 8``."""
    match stmt:
        case ast.AugAssign(target=ast.Attribute() as target):
            return target
        case ast.Assign(targets=[ast.Attribute() as target], value=made) if any(isinstance(n, ast.BinOp) for n in ast.walk(made)):
            return target if ast.unparse(target) in {ast.unparse(n) for n in ast.walk(made) if isinstance(n, ast.Attribute)} else None
    return None


def _unequal(trial: Trial) -> Iterator[str]:
    """Training batches of a batch sampler of the program's own, whose sizes nothing says."""
    objects = (trial.result.heap.objects[n] for n in sorted(trial.sources))
    made = [o.node for o in objects if _shared(trial, o) and trial.held(o.number, "batch_sampler") not in (NOTHING, NONE)]
    # of ddp.distribute(loader) the loader
    nodes: list[ast.AST] = [n.args[0] if isinstance(n, ast.Call) and n.args and ".distribute" in ast.unparse(n.func) else n for n in made if n is not None]
    if nodes:
        yield (
            f"{_first(list(dict.fromkeys(nodes)))} has a batch sampler, and each rank takes its part of every batch: where the number of ranks "
            "does not divide a batch, some of its samples are repeated and count twice in its gradient. Let it make batches of such sizes."
        )


def _padding(trial: Trial) -> Iterator[str]:
    """What goes by the padding of training sequences as well."""
    objects = trial.result.heap.objects
    found = [
        event.node
        for event in trial.result.trace.of(PADDING)
        if any(_shared(trial, objects[n]) for d in data(event.values["given"]) for n in d.sources)
    ]
    if found:
        yield (
            f"{_first(list(dict.fromkeys(found)))} goes by the padding as well, and each rank pads to the longest sample of "
            "its part of the batch: other numbers than on one process. Pack the sequences, mask the padding, or pad to a fixed length."
        )


def _cut(trial: Trial) -> Iterator[str]:
    """What cuts the samples of a training batch to the smallest."""
    objects = trial.result.heap.objects
    found = [
        e.node for e in trial.result.trace.of(CUT)
        if any(_shared(trial, objects[a.object]) for a in e.values["loader"] if isinstance(a, Ref))
    ]  # fmt: skip
    if found:
        yield (
            f"{_first(list(dict.fromkeys(found)))} cuts samples to the smallest of a batch, and each rank to the smallest of its "
            "part: other numbers than on one process. Cut to a fixed size, or pad and mask."
        )


def _asked(trial: Trial) -> Iterator[str]:
    """Tests that compare the size of a training batch with a number: the first, and how many more there are."""
    objects = trial.result.heap.objects
    nodes = [e.node for e in trial.result.trace.of(SIZE_ASKED) if any(_shared(trial, objects[n]) for d in data(e.values["sizes"]) for n in d.sources)]
    if nodes:
        asked = list(dict.fromkeys(nodes))
        yield (
            f"{_first(asked)}, {trial.line(asked[0])}, asks for the size of a rank's part of the batch: on one process it is that of the whole batch, "
            "and the answer may be another."
        )


def _shared(trial: Trial, made: Object) -> bool:
    """Whether an object is a loader of which each rank has a part of every batch."""
    return is_loader(trial.result, made) and divided(trial.result, made) and (
        trial.held(made.number, "dealt") in (NOTHING, const(SHARED))
    )


def _single(trial: Trial) -> Iterator[str]:
    """``x[3]``: a sample by its place, which a rank's part of a batch may not have: the first such."""
    events = [
        e for e in trial.result.trace.of("one of the samples")
        if any(_divided(trial, d) for d in data(e.values["given"]))
    ]  # fmt: skip
    for node in islice(dict.fromkeys(e.node for e in events), 1):
        here = [e for e in events if e.node is node]
        places = [a.value for e in here for a in e.values["place"] if isinstance(a, Const)]
        least = max((at + 1 if at >= 0 else -at for at in places), default=1)
        number = f"at least {least} samples" if least > 1 else "the sample of this number"
        short = any(_may_be_short(trial, d) for e in here for d in data(e.values["given"]))
        last = ", and fails in a last batch with fewer: set drop_last=True, or" if short else ":"
        yield (
            f"{_first([node])} needs {number} in a rank's part of a batch, the batch size divided by "
            f"the number of ranks{last} ask for len() first."
        )


def _divided(trial: Trial, d: Data) -> list[Object]:
    """The divided loaders that data come from, of which each rank has a part of the batch."""
    objects = (trial.result.heap.objects[n] for n in d.sources)
    whole = const(BLOCKS)  # whole batches are dealt out to the ranks
    return [o for o in objects if is_loader(trial.result, o) and divided(trial.result, o) and trial.held(o.number, "dealt") != whole]


def _may_be_short(trial: Trial, d: Data) -> bool:
    """Whether data come from a divided loader whose last batch may be short."""
    return any(trial.held(o.number, "drop_last") != const(True) for o in _divided(trial, d))


def _squeezed(trial: Trial) -> Iterator[str]:
    """``x.squeeze()`` takes the axis of the batch away as well, where it has one sample: more
    often so in the part of a rank. So does ``x.squeeze(-1)`` where there is no other axis.
    """
    advice = {False: "name the axis", True: "leave it out where there is no other axis"}
    for named, how in advice.items():
        events = [e for e in trial.result.trace.of("squeeze") if e.values["named"] == const(named)]
        nodes = list(dict.fromkeys(e.node for e in events if any(_may_be_short(trial, d) for d in data(e.values["given"]))))
        if nodes:
            yield (
                f"{_first(nodes)} also drops the axis of the batch where a rank's part "
                f"of the last batch is one sample: {how}, or set drop_last=True."
            )
