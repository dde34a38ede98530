"""The whole of ``dpmigrate verify``: copy, run the migrated side, run the original with the same order and weights, compare."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmigrate.verify.judge import Distance, Line, Verdict, global_order, judge, loss_curves, proved
from dpmigrate.verify.runs import Config, Ran, run
from dpmigrate.verify.scratch import Program, program

#: what torch says where tensors of two precisions meet
_PRECISION = re.compile(r"\bdtype\b|\bDouble\b|\bdouble\b|float64|must be a float tensor")


@dataclass(frozen=True)
class Wish:
    """What the user asks for; ``ranks`` 0 runs the migrated program as plain Python."""

    ranks: int = 2
    steps: int | None = 20
    epochs: int | None = None
    float64: bool = True
    timeout: float = 600
    cpu: bool = True
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """What came of it. ``failure`` says why there are no lines."""

    lines: tuple[Line, ...] = ()
    failure: str = ""
    distances: tuple[Distance, ...] = ()
    losses: tuple[tuple[int, float, float], ...] = ()  # step, the original's, that of all ranks together
    seconds: tuple[float, float] = (0.0, 0.0)
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the parameters agree and nothing differs."""
        return not self.failure and proved(self.lines)

    @property
    def differs(self) -> bool:
        """Whether something that a right migration keeps is not kept."""
        return any(line.verdict is Verdict.DIFFERS for line in self.lines)


class Listener:
    """Hears what is going on; this one keeps silent."""

    def begins(self, text: str) -> None:
        """Something new begins."""

    def steps(self, done: int) -> None:
        """So many optimizer steps of the run in progress are done."""


def prove(
    original: Path, migrated: bytes | Path, wish: Wish, *, paths: Sequence[Path] = (), listener: Listener | None = None, keep: Path | None = None
) -> Proof:
    """Run ``original`` and its migration, each in a copy of its folder, and judge them. ``migrated`` is a file, or the text to stand in the original's place.

    ``paths`` are put on PYTHONPATH (the runtime); ``keep`` is a folder for the copies, otherwise they are removed.
    """
    heard = listener or Listener()
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpmigrate-verify-", ignore_cleanup_errors=True))).resolve()
        found = _prove(*_copies(original, migrated, wish, folder / "first"), wish, paths, heard)
        if found.failure and wish.float64 and _PRECISION.search(found.failure):
            heard.begins("the program does not run in float64: again in float32")
            wish = replace(wish, float64=False)
            found = _prove(*_copies(original, migrated, wish, folder / "second"), wish, paths, heard)
        return found


def _copies(original: Path, migrated: bytes | Path, wish: Wish, scratch: Path) -> tuple[Config, Config]:
    """How the original and how the migrated program are run, each in a copy of its own."""
    before = program(original, Path.cwd())
    after = before if isinstance(migrated, bytes) else program(migrated, Path.cwd())

    def config(side: str, place: Program, ranks: int) -> Config:
        copy = place.copied_to(scratch / side)
        root, origin, script, folder = map(str, (copy.root, place.root, copy.script, copy.folder))
        return Config(str(scratch / f"{side}-out"), root, origin, script, folder, ranks, wish.steps, wish.epochs, wish.float64, cpu=wish.cpu)

    first, second = config("original", before, 0), config("migrated", after, wish.ranks)
    if isinstance(migrated, bytes):
        Path(second.script).write_bytes(migrated)
    return first, second


def _prove(original: Config, migrated: Config, wish: Wish, paths: Sequence[Path], heard: Listener) -> Proof:
    ranks = max(wish.ranks, 1)
    heard.begins(f"the migrated program runs at {wish.ranks} ranks" if wish.ranks else "the migrated program runs as plain Python")
    after = run(wish.arguments, migrated, timeout=wish.timeout, paths=paths, watch=heard.steps)
    problem = _unfinished(after, ranks, wish)
    if problem:
        heard.begins("it failed; the original runs, to see whether it does so alone")
        own = _unfinished(run(wish.arguments, original, timeout=wish.timeout, watch=heard.steps), 1, wish)
        return Proof(failure=f"the original does not run here: {own}" if own else f"the migrated program fails, the original does not: {problem}")
    heard.begins("the original runs, with the samples in the order that the ranks have taken them together")
    again = replace(original, start=migrated.out, replay=global_order(after.records))
    before = run(wish.arguments, again, timeout=wish.timeout, watch=heard.steps)
    problem = _unfinished(before, 1, wish)
    return Proof(failure=f"the original does not run here: {problem}") if problem else _judged(before, after, wish)


def _judged(before: Ran, after: Ran, wish: Wish) -> Proof:
    record, ranks = before.records[0], after.records
    if not record["steps"]:
        return Proof(failure="no optimizer step was seen: does the program train with these arguments?")
    compared = record["compared"]
    if "error" in compared:
        return Proof(failure=f"the parameters could not be compared:\n{compared['error']}")
    distances = tuple(Distance(**d) for d in compared["distances"])
    lines = judge(record, ranks, distances, float64=wish.float64, saved=compared["checkpoints"], left=after.left)
    notes = (*_notes(wish, record, ranks), _memory(record, ranks))
    return Proof(tuple(lines), "", distances, tuple(loss_curves(record, ranks)), (before.seconds, after.seconds), notes)


def _unfinished(ran: Ran, ranks: int, wish: Wish) -> str:
    """Why a run cannot be judged; '' if it can."""
    if ran.late:
        where = "\n".join(f"rank {i}:\n{stack}" for i, stack in enumerate(ran.stacks))
        return f"it was not done after {wish.timeout:g} s (a hang? pass --timeout for more, or arguments for a smaller run). It stood at\n{where}"
    if ran.code:
        words = ran.last_words()
        hint = next((text for sign, text in _HINTS if sign.search(words)), "")
        return f"exit code {ran.code}\n{words}" + (f"\n{hint}" if hint else "")
    if len(ran.records) < ranks:
        return f"{len(ran.records)} of {ranks} processes left a record: is torch imported, and does the script end by itself (not by os._exit)?"
    return ""


#: what a failure's last words mean for the user of a proof; the first that fits is said
_HINTS = (
    (
        re.compile(r"the following arguments are required|\busage:|Missing (option|argument)|argv.*\n(?:[ ~^]*\n)?IndexError"),
        "pass the script's arguments after --",
    ),
    (re.compile(r"dpmigrate verify: the program wants to write"), "only the scratch copy is written in a proof; pass another place for the output after --"),
    (
        re.compile(r"urlopen error|ConnectionError|Max retries exceeded|Temporary failure in name resolution|HTTPError|Dataset not found"),
        "the data must be there before: run the script once, or pass the folder of its data after --",
    ),
    (
        re.compile(r"FileNotFoundError|No such file or directory"),
        "a file is missing: pass the paths of data and configuration after --",
    ),
    (re.compile(r"CUDA|NVIDIA|\bGPU\b|nccl", re.IGNORECASE), "the program asks for a GPU: pass --device cuda on a machine that has one"),
    (re.compile(r"ModuleNotFoundError|ImportError"), "install what the program needs beside dpmigrate: a proof runs it with the same Python"),
)


def _memory(original: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> str:
    """The largest memory of each process; the system counts in KiB (macOS: bytes)."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return f"memory: original {original.get('memory', 0) // unit} MiB, ranks {', '.join(str(r.get('memory', 0) // unit) for r in ranks)} MiB"


def _notes(wish: Wish, record: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was changed in both runs to make them comparable."""
    notes = [f"{'float64' if wish.float64 else 'float32'}, dropout off, augmentation seeded by the sample, the ranks' order of samples given to the original"]
    if record["batch_norm"]:
        notes.append("BatchNorm used its running statistics in both runs: batch statistics per rank differ from those of the whole batch in principle")
    if record["noise"]:
        notes.append("noise for the samples of a batch was drawn by the sample, so that it is the same whichever rank has the sample")
    if any(r["autocast"] for r in ranks):
        notes.append("autocast was switched off in both runs: half precision is another computation, whose numbers cannot be compared")
    if record["cut"]:
        notes.append(f"cut after {wish.steps} optimizer steps" if wish.steps else f"cut after {wish.epochs} epochs")
    return notes
