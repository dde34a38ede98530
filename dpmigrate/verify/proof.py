"""The whole of ``dpmigrate verify``: copy, run the migrated side, run the original with the same order and weights, compare."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpmigrate.verify import scratch
from dpmigrate.verify.failures import PRECISION, aborted_at_exit, cut_short, unfinished
from dpmigrate.verify.judge import Distance, Evidence, Line, Verdict, judge, proved
from dpmigrate.verify.judge.data import global_order
from dpmigrate.verify.judge.numbers import loss_curves
from dpmigrate.verify.runs import Config, Ran, run


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
    cut: str = ""  # after what both runs were ended, if they were
    fails: bool = False  # the migrated program crashes or hangs, the original runs
    retyped: bool = False  # the program changes the type of a model by itself
    aborted: tuple[int, ...] = ()  # the ranks that torch aborted when they had finished
    cut_short: bool = False  # and by that ended the others too early, so that nothing can be said

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
    original: Path,
    migrated: Mapping[Path, bytes] | Path,
    wish: Wish,
    *,
    former: Mapping[Path, bytes] = MappingProxyType({}),
    paths: Sequence[Path] = (),
    listener: Listener | None = None,
    keep: Path | None = None,
) -> Proof:
    """Run ``original`` and its migration, each in a copy of its folder, and judge them.

    ``migrated`` is a file, or all files of the original's program as they will be. ``former`` is what files of the original held before they were migrated
    in place. ``paths`` are put on PYTHONPATH (the runtime); ``keep`` is a folder for the copies, otherwise they are removed.
    """
    sides = (former, migrated)
    heard = listener or Listener()
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpmigrate-verify-", ignore_cleanup_errors=True))).resolve()
        found = _attempts(original, sides, wish, paths, heard, folder / "first")
        if wish.float64 and (precision := PRECISION.search(found.failure)):
            heard.begins("the program does not run in float64: again in float32")
            found = _attempts(original, sides, replace(wish, float64=False), paths, heard, folder / "second")
            found = replace(found, notes=(*found.notes, f"the program does not run in float64 ({precision.group().strip()})"))
        elif wish.float64 and found.retyped:
            heard.begins("the program changes the type of its model, of which nothing comes in float64: again in float32")
            found = _attempts(original, sides, replace(wish, float64=False), paths, heard, folder / "second")
            found = replace(found, notes=(*found.notes, _RETYPED))
        elif wish.float64 and _MAY_BE_PRECISION.search(found.failure):
            found = replace(found, failure=f"{found.failure}\nit ran in float64; if the program runs by itself, try --float32")
        return found


_RETYPED = "the program changes the type of its model by itself: it ran in float32, with float64 in the place of half precision"
_MAY_BE_PRECISION = re.compile(r"^(?:RuntimeError|TypeError|ValueError|AssertionError)\b.*\Z", re.MULTILINE)


_Sides = tuple[Mapping[Path, bytes], Mapping[Path, bytes] | Path]


#: how often the runs are made again when a known fault of torch has cut them short
_AGAIN = 2


def _attempts(
    original: Path,
    sides: _Sides,
    wish: Wish,
    paths: Sequence[Path],
    heard: Listener,
    folder: Path,
) -> Proof:
    """``_attempt``, again in new copies where a rank's abort at its exit cut the others short."""
    found = _attempt(original, sides, wish, paths, heard, folder)
    for number in range(1, _AGAIN + 1):
        if not found.cut_short:
            return found
        heard.begins("a rank aborted at its exit before the others had finished: once more")
        again = folder.with_name(f"{folder.name}-{number}")
        found = _attempt(original, sides, wish, paths, heard, again)
        why = "in each of the others a rank aborted at its exit before all had finished"
        found = replace(found, notes=(*found.notes, f"the result is that of run {number + 1}: {why}"))
    if found.cut_short:
        found = replace(found, failure=f"{found.failure}; so it was in {_AGAIN + 1} runs")
    return found


def _attempt(original: Path, sides: _Sides, wish: Wish, paths: Sequence[Path], heard: Listener, folder: Path) -> Proof:
    """Copy, run and judge, in one precision."""
    former, migrated = sides
    others = () if isinstance(migrated, Path) else tuple(p.resolve() for p in migrated)
    before = scratch.place(original, Path.cwd(), others)
    after = scratch.place(migrated, Path.cwd()) if isinstance(migrated, Path) else before
    since = time.time()
    try:
        copies = before.copied_to(folder / "original"), after.copied_to(folder / "migrated")
        new = {} if isinstance(migrated, Path) else migrated
        for copy, path, data in ((copy, *change) for copy, side in zip(copies, (former, new), strict=True) for change in _changed(side)):
            if not path.is_relative_to(before.root):
                return Proof(failure=f"{path} is changed and lies outside of {before.root}, of which the copy is made")
            (copy.root / path.relative_to(before.root)).write_bytes(data)
    except OSError as e:
        return Proof(failure=f"the program's folder cannot be copied: {e}")

    def config(side: str, place: scratch.Place, copy: scratch.Place, ranks: int) -> Config:
        root, origin, script, start = map(str, (copy.root, place.root, copy.script, copy.folder))
        return Config(str(folder / f"{side}-out"), root, origin, script, start, ranks, wish.steps, wish.epochs, wish.float64, cpu=wish.cpu, module=copy.module)

    found = _prove(config("original", before, copies[0], 0), config("migrated", after, copies[1], wish.ranks), wish, paths, heard)
    touched = scratch.changed([link for copy in copies for link in copy.links], since)
    return found if touched is None else Proof(failure=f"{touched} was changed while the program ran: {_BEHIND}")


def _changed(migrated: Mapping[Path, bytes]) -> list[tuple[Path, bytes]]:
    """The files that are not as they were, by their true paths."""
    return [(path.resolve(), data) for path, data in migrated.items() if path.read_bytes() != data]


#: why a file of the user's could be written all the same
_BEHIND = "by a command that it starts, or a library that opens files by itself; a proof cannot keep these from it. Pass another place for the output after --"


def _prove(original: Config, migrated: Config, wish: Wish, paths: Sequence[Path], heard: Listener) -> Proof:
    def alone(config: Config) -> str:
        return unfinished(run(wish.arguments, replace(config, out=f"{config.out}-alone"), timeout=wish.timeout, watch=heard.steps), 1, wish.timeout, config)

    heard.begins(f"the migrated program runs at {wish.ranks} ranks" if wish.ranks else "the migrated program runs as plain Python")
    after = run(wish.arguments, migrated, timeout=wish.timeout, paths=paths, watch=heard.steps)
    ranks = max(wish.ranks, 1)
    problem = unfinished(after, ranks, wish.timeout, migrated)
    if cut_short(after, ranks):
        return Proof(failure=problem, cut_short=True)
    if problem:
        heard.begins("it failed; the original runs, to see whether it does so alone")
        own = alone(original)
        if own:
            return Proof(failure=f"the original does not run here: {own}")
        return Proof(failure=f"the migrated program fails, the original does not: {problem}", fails=after.late or after.code != 0)
    heard.begins("the original runs, with the samples in the order that the ranks have taken them together")
    again = replace(original, start=migrated.out, replay=global_order(after.records))
    before = run(wish.arguments, again, timeout=wish.timeout, watch=heard.steps)
    problem = unfinished(before, 1, wish.timeout, again)
    if not problem:
        return _judged(before, after, wish, _texts(before, after, again, migrated))
    heard.begins("it failed; it runs again, with its own weights and order")
    own = alone(original)
    if own:
        return Proof(failure=f"the original does not run here: {own}")
    return Proof(failure=f"the original runs, but not with the weights and the order of samples of the migrated program: {problem}")


_TEXT = (".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".yaml", ".yml", ".md")
_LARGEST = 1_000_000  # bytes; what is larger is data


def _texts(before: Ran, after: Ran, original: Config, migrated: Config) -> dict[str, tuple[list[str], list[str]]]:
    """The lines of the small text files that both programs wrote under the same name."""

    def lines(config: Config, name: str) -> list[str] | None:
        path = Path(config.script).parent / name
        path = path if path.is_file() else Path(config.folder) / name
        try:
            return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.stat().st_size <= _LARGEST else None
        except OSError:
            return None

    found = {}
    for name in sorted(set(before.records[0]["writes"]).intersection(*(set(r["writes"]) for r in after.records[:1]))):
        own, theirs = (lines(config, name) for config in (original, migrated)) if name.endswith(_TEXT) else (None, None)
        if own is not None and theirs is not None:
            found[name] = (own, theirs)
    return found


def _judged(before: Ran, after: Ran, wish: Wish, texts: Mapping[str, tuple[list[str], list[str]]]) -> Proof:
    record, ranks = before.records[0], after.records
    if not record["steps"]:
        return Proof(failure="no optimizer step was seen: does the program train with these arguments?")
    compared = record["compared"]
    if "error" in compared:
        return Proof(failure=f"the parameters could not be compared:\n{compared['error']}")
    distances = tuple(Distance(**d) for d in compared["distances"])
    saved = {f: tuple(d) for f, d in compared["checkpoints"].items()}
    aborted = aborted_at_exit(after)
    evidence = Evidence(record, ranks, distances, wish.float64, saved, texts, after.left, aborted)
    notes = (*_notes(wish, record, ranks), _memory(record, ranks))
    cut = (f"{wish.steps} optimizer steps" if wish.steps else f"{wish.epochs} epochs") if record["cut"] else ""
    retyped = any(r["retyped"] for r in (record, *ranks))
    lines, losses = tuple(judge(evidence)), tuple(loss_curves(evidence))
    seconds = (before.seconds, after.seconds)
    return Proof(lines, "", distances, losses, seconds, notes, cut, retyped=retyped, aborted=aborted)


def _memory(original: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> str:
    """The largest memory of each process; the system counts in KiB (macOS: bytes)."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return f"memory: original {original.get('memory', 0) // unit} MiB, ranks {', '.join(str(r.get('memory', 0) // unit) for r in ranks)} MiB"


def _notes(wish: Wish, record: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was changed in both runs to make them comparable."""
    notes = [f"{'float64' if wish.float64 else 'float32'}, dropout off, augmentation seeded by the sample, the ranks' order of samples given to the original"]
    if record["batch_norm"]:
        notes.append("BatchNorm did not use the statistics of the batch in either run: those per rank differ from those of the whole batch in principle")
    if record["noise"]:
        notes.append("noise for the samples of a batch was drawn by the sample, so that it is the same whichever rank has the sample")
    if any(r["autocast"] for r in ranks):
        notes.append("autocast was switched off in both runs: half precision is another computation, whose numbers cannot be compared")
    if record["cut"]:
        cut = f"{wish.steps} optimizer steps" if wish.steps else f"{wish.epochs} epochs"
        notes.append(f"cut after {cut}: what the program does after its next training pass would begin is not seen (--steps 0 runs to the end)")
    return notes
