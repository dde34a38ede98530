"""A program at two gloo ranks, and what each of them has left of its sites."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpmigrate import linking
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from dpmigrate.verify import scratch
from dpmigrate.verify.runs import Config, run
from tests.oracle.sites import Sites
from tests.pipeline import Case, Several

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
INJECT = Path(__file__).resolve().parent / "inject"
RANKS = 2


@dataclass(frozen=True)
class Subject:
    """A program in its folder, linked; ``arguments`` are the command line's."""

    folder: Path
    script: Path
    program: Program
    arguments: tuple[str, ...] = ()


@dataclass
class Log:
    """What a rank has seen of a site: meeting -> fingerprints, and how often it came there."""

    seen: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def subject(folder: Path, script: Path, arguments: Sequence[object] = ()) -> Subject:
    """The program that a script in the folder starts."""
    source = parse(script.read_bytes(), str(script))
    assert isinstance(source, Source), source
    return Subject(folder, script, linking.link(script, source), tuple(map(str, arguments)))


def migrated(case: Case | Several, script: str, folder: Path) -> Subject:
    """A golden as it was recorded, written into the folder."""
    if isinstance(case, Several):
        case.copied_to(folder)
        for name, data in case.after.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    else:
        (folder / script).write_bytes((case.path / "after.py").read_bytes())
    return subject(folder, folder / script, case.facts.get("args", []))


def ran(case: Subject, sites: Sites, out: Path, timeout: float = 240) -> list[dict[int, Log]]:
    """Run the program with the probe in it; for each rank its sites. AssertionError where it does
    not come to its end.
    """
    files = {
        Path(part.source.name): sites.rewritten(case.program, i)
        for i, part in enumerate(case.program.parts)
    }
    place = scratch.place(case.script, case.folder, tuple(files))
    copy = place.copied_to(out / "copy")
    for path, text in files.items():
        (copy.root / path.relative_to(place.root)).write_text(text, encoding="utf-8")
    told = Config(
        str(out / "run"),
        str(copy.root),
        str(place.root),
        str(copy.script),
        str(copy.folder),
        RANKS,
        float64=False,
        still=False,
        module=copy.module,
    )
    found = run(case.arguments, told, timeout=timeout, paths=[RUNTIME, INJECT])
    assert not found.late and found.code == 0, (
        f"exit code {found.code}\n{found.stderr[-3000:]}\n{''.join(found.stacks)}"
    )
    return [_log(out / "run" / f"seen{rank}") for rank in range(RANKS)]


def _log(path: Path) -> dict[int, Log]:
    sites: dict[int, Log] = defaultdict(Log)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines and json.loads(lines[-1]) == ["end"], f"{path.name} was cut short"
    for line in lines[:-1]:
        number, meeting, count, found = json.loads(line)
        log = sites[number]
        log.counts[meeting] = count
        if found is not None:
            log.seen[meeting].append(found)
    return sites
