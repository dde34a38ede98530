"""A real run laid beside the trace: what happened at a line of the program, and what the trace has there."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmigrate import linking
from dpmigrate.execution.engine import Execution, execute
from dpmigrate.library.tables import Tables
from dpmigrate.source import Source, parse
from dpmigrate.verify import scratch
from dpmigrate.verify.runs import Config, Ran, run
from tests.pipeline import Case, Several

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
RECORDER = Path(__file__).resolve().parent / "recorder"
ORIGINAL, RESULT = "original", "result"

#: what a run records, and the events of the trace that say it. The probe
#: of verify records the first ones, the recorder of these tests the others
SPOKEN: Mapping[str, tuple[str, ...]] = {
    "pass": ("pass",),
    "batch": ("batch",),
    "optimizer": ("optimizer",),
    "step": ("step",),
    "backward": ("backward",),
    "wrap": ("wrap",),
    "print": ("print", "write"),
    "write": ("open", "save", "save by rank 0", "write", "files"),
    "save": ("save", "save by rank 0"),
    "forward": ("forward",),
    "gradient": ("gradient",),
    "loader": ("loader",),
    "schedule": ("schedule",),
    "zero grad": ("zero grad",),
    "clip": ("clip",),
    "scaler step": ("scaler step",),
    "requires grad": ("requires grad",),
    "load": ("load",),
    "load state": ("load state",),
    "draw": ("draw",),
    "seed": ("seed",),
    "exit": ("exit",),
    "process": ("process",),
    "collective": ("collective", "wrap", "setup"),
    # backward computes again what a checkpoint has left out
    "forward again": ("backward", "gradient"),
    # the ranks compare their weights after a step, DDP its parameters, a loader nothing; a criterion puts its losses together
    "collective inside": ("step", "wrap", "forward", "backward", "collective"),
}
#: no events: what libraries warn of, lines that run, and progress bars, which write by the clock and
#: where Python frees them
SKIPPED = ("warning", "line", "bar")


@dataclass(frozen=True, order=True)
class Happened:
    """An event of a run: its kind, and the line of the program that was under way."""

    kind: str
    file: str
    line: int


def happened(record: Mapping[str, object]) -> list[Happened]:
    """The events of a record."""
    places = record["places"]
    assert isinstance(places, list)
    return [Happened(*place) for place in places if place[0] not in SKIPPED]


def noted(execution: Execution, script: Path) -> dict[str, set[tuple[str, int]]]:
    """The lines of each kind of event of the trace, in any context: all lines of a call that goes over several."""
    found: dict[str, set[tuple[str, int]]] = {}
    for event in execution.trace.events.values():
        for line in _lines(event.node):
            name, _, number = execution.program.place(line).rpartition(":")
            place = os.path.relpath(script.parent / name, script.parent), int(number)
            found.setdefault(event.kind, set()).add(place)
    return found


def holes(events: Iterable[Happened], known: Mapping[str, set[tuple[str, int]]]) -> list[Happened]:
    """What happened and has no place in the trace."""
    return sorted(e for e in events if not any((e.file, e.line) in known.get(kind, ()) for kind in SPOKEN[e.kind]))


def told(missing: Iterable[Happened], script: Path) -> Iterator[str]:
    """Each hole with its source line."""
    for e in missing:
        lines = (script.parent / e.file).read_text(encoding="utf-8").splitlines()
        yield f"{e.kind} at {e.file}:{e.line}: {lines[e.line - 1].strip()}"


def _lines(node: ast.AST) -> range:
    """The lines of a call or another expression; of a statement with a body those of its head."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    body = getattr(node, "body", None)
    if isinstance(node, ast.stmt) and isinstance(body, list):
        last = max(first, body[0].lineno - 1)
    return range(first, last + 1)


# ---------------------------------------------------------------- the two sides of a program


def scripts(case: Case | Several) -> list[str]:
    """The scripts that a case starts."""
    return list(case.facts.get("paths", [case.entry])) if isinstance(case, Several) else ["train.py"]


def written(case: Case | Several, side: str, folder: Path) -> None:
    """Write the files of one side into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(case, Several):
        case.copied_to(folder)
        for name, data in (case.after if side == RESULT else {}).items():
            (folder / name).write_bytes(data)
    else:
        name = "after.py" if side == RESULT else "before.py"
        (folder / "train.py").write_bytes((case.path / name).read_bytes())


def traced(script: Path) -> Execution:
    """The program of a script, executed on paper."""
    source = parse(script.read_bytes(), str(script))
    assert isinstance(source, Source), source
    return execute(linking.link(script, source), Tables())


def recorded(script: Path, folder: Path, ranks: int, arguments: Sequence[object] = ()) -> Ran:
    """The script, run to its end with the recorder inside, where its folder is; 0 ranks: in one process."""
    place = scratch.place(script, folder)
    started, root = str(place.folder), str(folder)
    config = Config(str(folder.parent / "out"), root, root, str(script), started, ranks, float64=False, still=False, module=place.module)
    return run([str(a) for a in arguments], config, timeout=300, paths=[RECORDER, RUNTIME])


#: in the environment: a file to which the records of all runs are added, for ``tests.trace.count``
KEEP = "KEEP_RECORDS"


def keep(*about: object) -> None:
    """Add a record to the file of records, where one is wanted."""
    if path := os.environ.get(KEEP):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(about) + "\n")
