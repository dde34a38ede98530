"""The whole of ``dpmigrate verify``: copy, run the migrated side, run the original with the same order and weights, compare."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmigrate.verify.judge import Distance, Line, Verdict, global_order, judge, proved
from dpmigrate.verify.runs import Config, Ran, run
from dpmigrate.verify.scratch import copy_program, outside

#: what torch says where tensors of two precisions meet
_PRECISION = re.compile(r"\bdtype\b|\bDouble\b|\bdouble\b|float64|must be a float tensor")
MEASURE = Path(__file__).resolve().parent / "measure.py"


@dataclass(frozen=True)
class Wish:
    """What the user asks for."""

    ranks: int = 2
    steps: int | None = 20
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
    losses: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    seconds: tuple[float, float] = (0.0, 0.0)
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.failure and proved(self.lines)


def prove(
    original: Path, migrated: bytes, wish: Wish, *, paths: Sequence[Path] = (), tell: Callable[[str], None] = lambda _: None, keep: Path | None = None
) -> Proof:
    """Run ``original`` and the text ``migrated`` in its place, each in a copy of the folder, and judge them.

    ``paths`` are put on PYTHONPATH (the runtime); ``tell`` hears what is going on; ``keep`` is a folder for the copies, otherwise they are removed.
    """
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpmigrate-verify-", ignore_cleanup_errors=True))).resolve()
        found = _prove(original, migrated, wish, paths, tell, folder / "first")
        if found.failure and wish.float64 and _PRECISION.search(found.failure):
            tell("the program does not run in float64: again in float32")
            found = _prove(original, migrated, replace(wish, float64=False), paths, tell, folder / "second")
        return found


def _prove(original: Path, migrated: bytes, wish: Wish, paths: Sequence[Path], tell: Callable[[str], None], scratch: Path) -> Proof:
    sides = {name: copy_program(original, scratch / name) for name in ("original", "migrated")}
    sides["migrated"].write_bytes(migrated)
    first = Config(str(scratch / "migrated-out"), str(sides["migrated"].parent), wish.ranks, wish.steps, wish.float64, cpu=wish.cpu)
    tell(f"the migrated program runs at {wish.ranks} ranks")
    after = run(sides["migrated"], wish.arguments, first, timeout=wish.timeout, paths=paths)
    problem = _unfinished(after, wish.ranks, wish)
    if problem:
        tell("the original runs, to see whether it does so alone")
        alone = run(
            sides["original"],
            wish.arguments,
            replace(first, out=str(scratch / "original-out"), root=str(sides["original"].parent), ranks=0),
            timeout=wish.timeout,
        )
        own = _unfinished(alone, 1, wish)
        return Proof(failure=f"the original does not run here: {own}" if own else f"the migrated program fails, the original does not: {problem}")
    ranks = after.records
    order = global_order(ranks)
    second = replace(first, out=str(scratch / "original-out"), root=str(sides["original"].parent), ranks=0, start=first.out, replay=order)
    tell("the original runs, with the order of samples that the ranks have taken together")
    before = run(sides["original"], wish.arguments, second, timeout=wish.timeout)
    problem = _unfinished(before, 1, wish)
    if problem:
        return Proof(failure=f"the original does not run here: {problem}")
    record = before.records[0]
    if not record["steps"]:
        return Proof(failure="no optimizer step was seen: does the program train with these arguments?")
    measured = _measured(second, first)
    if isinstance(measured, str):
        return Proof(failure=measured)
    distances, saved = measured
    lines = judge(record, ranks, distances, float64=wish.float64, saved=saved)
    strayed = outside([f for r in ranks for f in r["writes"]], sides["migrated"].parent)
    if strayed:
        lines.append(Line("scratch copy", Verdict.DIFFERS, f"{strayed[0]} lies in a folder of data that is linked: pass another output folder"))
    curves = (tuple(v for v, _, _ in record["losses"]), tuple(v for v, _, _ in ranks[0]["losses"]))
    notes = (*_notes(wish, ranks[0]), _memory(record, ranks))
    return Proof(tuple(lines), "", tuple(distances), curves, (before.seconds, after.seconds), notes)


def _unfinished(ran: Ran, ranks: int, wish: Wish) -> str:
    """Why a run cannot be judged; '' if it can."""
    if ran.late:
        where = "\n".join(f"rank {i}:\n{stack}" for i, stack in enumerate(ran.stacks))
        return f"it was not done after {wish.timeout:g} s (a hang? pass --timeout for more, or arguments for a smaller run). It stood at\n{where}"
    if ran.code:
        words = ran.last_words()
        hint = "\npass the script's arguments after --" if "the following arguments are required" in words or "usage:" in words else ""
        hint = hint or ("\nthe data must be there before: nothing is downloaded in a proof" if "urlopen error" in words or "ConnectionError" in words else "")
        return f"exit code {ran.code}\n{words}{hint}"
    if len(ran.records) < ranks:
        return f"{len(ran.records)} of {ranks} processes left a record: is torch imported, and is the script started by python?"
    return ""


def _measured(original: Config, migrated: Config) -> tuple[list[Distance], dict[str, str]] | str:
    command = [sys.executable, str(MEASURE), original.out, original.root, migrated.out, migrated.root]
    clean = {k: v for k, v in os.environ.items() if k != "DPMIGRATE_PROBE"}
    done = subprocess.run(command, capture_output=True, text=True, env=clean)
    if done.returncode:
        return f"the parameters could not be compared:\n{done.stderr[-2000:]}"
    found = json.loads(done.stdout)
    return [Distance(**d) for d in found["distances"]], found["checkpoints"]


def _memory(original: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> str:
    """The largest memory of each process; the system counts in KiB (macOS: bytes)."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return f"memory: original {original.get('memory', 0) // unit} MiB, ranks {', '.join(str(r.get('memory', 0) // unit) for r in ranks)} MiB"


def _notes(wish: Wish, record: dict[str, object]) -> list[str]:
    """What was changed in both runs to make them comparable."""
    notes = [f"{'float64' if wish.float64 else 'float32'}, dropout off, augmentation seeded by the sample, the ranks' order of samples given to the original"]
    if record.get("batch_norm"):
        notes.append("BatchNorm used its running statistics in both runs: batch statistics per rank differ from those of the whole batch in principle")
    if record["autocast"]:
        notes.append("autocast was switched off in both runs: half precision is another computation, whose numbers cannot be compared")
    if record["cut"]:
        notes.append(f"cut after {wish.steps} optimizer steps")
    return notes
