"""Judges a migrated program by executing it on paper: what must hold before anything is written.

Each module holds one invariant: a function ``faults`` from a ``Trial`` to what breaks it. The judge
reads the trace alone and knows neither facts nor rules, so that a fault in those cannot hide here.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dpmigrate.execution import placements
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Defaults
from dpmigrate.execution.objects import ENDS
from dpmigrate.judge import (
    assumed,
    backwards,
    bent,
    bound,
    buffers,
    carried,
    chosen,
    classes,
    compared,
    counts,
    devices,
    epochs,
    files,
    given,
    group,
    handlers,
    left_on_cpu,
    made_first,
    moved_in_part,
    own_totals,
    parted,
    raced,
    replicas,
    scaling,
    sharded,
    statistics,
    streams,
    totals,
    trackers,
    unused,
    used,
    weighted,
    windows,
    workers,
    wrapped,
)
from dpmigrate.judge.bent import Bent
from dpmigrate.judge.buffers import Own
from dpmigrate.judge.file_calls import SAVES, writes_by_mode
from dpmigrate.judge.left_on_cpu import MOVED_BATCH, PASSED_IN, UNPACKED, all_moved, some_moved, tensor_on_cpu
from dpmigrate.judge.lying import span
from dpmigrate.judge.notes import OF_LAYER
from dpmigrate.judge.shared_files import asked_before_writing, asked_early, written_anew, written_by_all
from dpmigrate.judge.steering import Lies, all_lies, settled_lies, steering
from dpmigrate.judge.trial import Fault, Trial, before, executed
from dpmigrate.program import Program

COUPLED, APART, ALONE, TOTALS = totals.COUPLED, totals.APART, files.ALONE, own_totals.NAME
unfinished = files.unfinished
_INVARIANTS = (
    bound, group, given, wrapped, sharded, epochs, streams, parted, raced, totals, own_totals, chosen, unused, backwards, files,
    devices, classes, counts, compared, used, weighted, left_on_cpu, moved_in_part, handlers, trackers, workers,
    scaling, statistics, replicas, windows, carried,
)  # fmt: skip


@dataclass(frozen=True)
class Judgement:
    """What is known of a migrated program: its faults; in sentences what is taken for granted of
    it, and where it tells totals of rank 0's own batches; whether every loss is established to
    be a mean over the samples, without a model whose code is not seen; and the text of a draw of
    random numbers for the samples of a divided evaluation, if there is one.
    """

    faults: tuple[Fault, ...]
    assumed: tuple[str, ...]
    own_totals: tuple[str, ...]
    means: bool
    drawn: str = ""
    #: something is differentiated, by which an optimizer steps
    trains: bool = False
    #: calls of the result that are means over valid targets or weights, where a loss is no mean
    over_weights: tuple[ast.AST, ...] = ()
    #: sums and means over a rank's part of the batch that a loss is a function of
    bent: tuple[Bent, ...] = ()
    #: tests by a draw of each rank's own, by which a step makes one thing or another of its batch
    draws: tuple[ast.AST, ...] = ()
    #: calls before which the ranks must wait for each other: one of them changes files that others read
    waits: tuple[ast.AST, ...] = ()
    #: questions about files that rank 0 is to be asked for all
    questions: tuple[ast.AST, ...] = ()
    #: variables by their texts, and calls, of which the other ranks must be given what rank 0 has made: a file need not give the same
    made_first: tuple[made_first.Given, ...] = ()
    #: rank 0 decides by numbers of its own part of the training's samples
    by_part: bool = False
    #: the program that was executed: the one asked for, or one of equal texts, whose nodes these are
    program: Program | None = None
    #: the text of a draw of random numbers, other ones on each rank, for the samples of an evaluation in full
    drawn_in_full: str = ""
    #: lines and columns at which the ranks do something together, to each of which all of them come, as far as each way there is known
    together: frozenset[tuple[int, int]] = frozenset()
    #: statements by which buffers come to hold something of a rank's own part of the batches
    buffers: tuple[Own, ...] = ()
    #: which options have their defaults where it is right
    by_default: Defaults = ""

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is not established of the training and of what it tells, with the lines of the
        result; first what fails on one process too.
        """
        wanted = (
            given.FAILS, wrapped.NAME, sharded.NAME, totals.NAME, totals.COUPLED, totals.APART, parted.NAME,
            streams.NAME, streams.SEEDS, statistics.NAME, files.NAME, own_totals.NAME, carried.NAME,
        )  # fmt: skip
        found = (f for f in self.faults if not f.established and f.invariant in wanted)
        return tuple(dict.fromkeys(f"{f.place}: {f.words}" for f in sorted(found, key=lambda f: ENDS not in f.words)))


def judged(
    result: Program,
    original: Execution | None = None,
    *,
    divided: bool = True,
    settled: Collection[str] = (),
    shown: Collection[str] = (),
    told: Collection[str] = (),
    by_default: Defaults = "",
) -> Judgement:
    """Execute a migrated program and hold it against the invariants.

    ``original`` is the program before, executed, where there is one. ``divided``: batch sizes are
    those of all ranks together, and not of each. ``settled``: invariants that are not asked: the user
    is told that a loss is one of the rank's own samples together (``COUPLED``, ``APART``), or that
    its scale is not known (``COUPLED``), or does not want side effects to be looked at (``ALONE``).
    ``shown``: those of ``settled`` of which it is told all the same where they do not hold, since
    what the user is told may be about something else. ``told``: the totals of which the user is told that they are
    those of rank 0's share. ``by_default``: which options of the program have their defaults, and
    no other values.
    """
    ended = original.trace.ended if original is not None else None
    if ended is not None and original is not None:  # so would the result
        return Judgement((wrapped.not_understood(Trial(original), ended),), (), (), False)
    case = Trial(executed(result, by_default=by_default), original, divided, frozenset(told))
    ended = case.result.trace.ended
    if ended is not None:  # of a part of a trace nothing is known for certain
        return Judgement((wrapped.not_understood(case, ended),), (), (), False)
    every = [f for invariant in _INVARIANTS for f in invariant.faults(case)]
    found = tuple(f for f in every if f.invariant not in settled)
    also = dict.fromkeys(f"Not established, {f.place}: {f.words}." for f in every if f.invariant in settled and f.invariant in shown)
    sentences = (*also, *assumed.sentences(case))
    trains = any(True for _ in case.losses())
    own = assumed.own_totals(case)
    return Judgement(
        found, sentences, own, _means(case), assumed.drawn(case), trains, totals.over_weights(case), bent.operands(case),
        chosen.draws(case), files.waits(case), files.overtaken(case), made_first.given(case.result),
        any(True for _ in totals.decided_by_part(case)), case.result.program, assumed.drawn(case, split=False), parted.together(case),
        buffers.of_one_rank(case), by_default,
    )  # fmt: skip


def faults(
    result: Program, original: Execution | None = None, *, divided: bool = True
) -> Iterator[Fault]:
    """What would be wrong with a migrated program, as ``judged`` finds it.

    What the engine cannot establish is a fault as well: it says which knowledge was missing.
    """
    yield from judged(result, original, divided=divided).faults


def _means(case: Trial) -> bool:
    """Whether each loss is a mean over the samples, or still the 0 with which it began."""
    losses = {d.placement for _, d in case.losses()}
    unseen = any(True for _ in case.result.trace.of("taken for samples"))
    return not unseen and placements.MEAN in losses and losses <= {placements.MEAN, placements.ZERO}


__all__ = [
    "ALONE",
    "APART",
    "COUPLED",
    "MOVED_BATCH",
    "OF_LAYER",
    "PASSED_IN",
    "SAVES",
    "TOTALS",
    "UNPACKED",
    "Bent",
    "Defaults",
    "Fault",
    "Judgement",
    "Lies",
    "Own",
    "Trial",
    "all_lies",
    "all_moved",
    "asked_before_writing",
    "asked_early",
    "before",
    "executed",
    "faults",
    "judged",
    "settled_lies",
    "some_moved",
    "span",
    "steering",
    "tensor_on_cpu",
    "unfinished",
    "writes_by_mode",
    "written_anew",
    "written_by_all",
]  # fmt: skip
