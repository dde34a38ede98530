"""The way from text to migrated text, as the engine goes it, for tests that look at its stages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from dpmigrate import rules
from dpmigrate.facts.executed import take_out_untrained
from dpmigrate.facts.names import Names
from dpmigrate.facts.script import Script
from dpmigrate.model import Finding, Severity
from dpmigrate.program import Part, Program, placed
from dpmigrate.rewrite.apply import apply
from dpmigrate.rewrite.compose import Plan, compose
from dpmigrate.settings import Settings
from dpmigrate.source import Source, parse

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
PROGRAMS = FIXTURES.parent / "programs"


@dataclass(frozen=True)
class Case:
    """One fixture: a script, what is known of it, and its settings."""

    name: str
    path: Path
    facts: dict[str, Any]

    @cached_property
    def before(self) -> str:
        return (self.path / "before.py").read_bytes().decode()

    @cached_property
    def settings(self) -> Settings:
        return Settings(amp=bool(self.facts.get("amp")), sync_bn=bool(self.facts.get("sync_bn")), batch=self.facts.get("batch", "global"), unproven=bool(self.facts.get("unproven")))


@cache
def cases() -> tuple[Case, ...]:
    """Every fixture, by name."""
    return tuple(Case(p.name, p, tomllib.loads((p / "case.toml").read_text())) for p in sorted(FIXTURES.iterdir()) if (p / "case.toml").exists())


@dataclass(frozen=True)
class Recorded:
    """A line of a fixture's findings.txt."""

    code: str
    severity: Severity
    fixed: bool


_LINE = re.compile(r"\d+:\d+ (DPM\d+) (\w+)( fixed)?: ")


def recorded(case: Case) -> list[Recorded]:
    """What the rules say of the fixture, without asking them: tests/test_fixtures.py holds the file against them, case by case."""
    lines = (case.path / "findings.txt").read_text(encoding="utf-8").splitlines()
    found = [_LINE.match(line) for line in lines if not line.startswith("exempt: ")]
    return [Recorded(m[1], Severity(m[2]), bool(m[3])) for m in found if m is not None]


@dataclass(frozen=True)
class Several:
    """One program of several files: its folder, what is known of it, and its settings."""

    name: str
    path: Path
    facts: dict[str, Any]

    @property
    def before(self) -> dict[str, bytes]:
        return _tree(self.path / "before")

    @property
    def after(self) -> dict[str, bytes]:
        """The files that change, as they are recorded."""
        return _tree(self.path / "after")

    @property
    def entry(self) -> str:
        return str(self.facts.get("entry", "train.py"))

    @property
    def settings(self) -> Settings:
        return Settings(amp=bool(self.facts.get("amp")), sync_bn=bool(self.facts.get("sync_bn")), batch=self.facts.get("batch", "global"), unproven=bool(self.facts.get("unproven")))

    def copied_to(self, folder: Path) -> Path:
        """Write the program into the folder; the script that starts it."""
        for name, data in self.before.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return folder / self.entry


def _tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and "__pycache__" not in p.parts}


def programs() -> list[Several]:
    """Every fixture of several files, by name."""
    return [Several(p.name, p, tomllib.loads((p / "case.toml").read_text())) for p in sorted(PROGRAMS.iterdir()) if (p / "case.toml").exists()]


def script(text: str, settings: Settings | None = None) -> Script:
    """The facts of a piece of source, with the functions that nothing calls: rules are asked about these too."""
    source = parse(text.encode(), "test.py")
    assert isinstance(source, Source), source
    program = Program.of(source)
    take_out_untrained(program, Names(source.tree))
    return Script(program, settings or Settings())


def script_of(files: Mapping[str, str], settings: Settings | None = None) -> Script:
    """The facts of a program of several modules, by their names; the last is the script."""
    parts: list[Part] = []
    for name, text in files.items():
        source = parse(text.encode(), f"{name}.py")
        assert isinstance(source, Source), source
        parts.append(placed(source, parts[-1].end if parts else 0, main=len(parts) == len(files) - 1))
    links = {(here, name): there for here in range(len(files)) for there, name in enumerate(files)}
    return Script(Program(tuple(parts), links), settings or Settings())


@dataclass(frozen=True)
class Said:
    """What the engine says of a piece of source: why there is nothing to do, or its findings."""

    exempt: str
    findings: tuple[Finding, ...]


@cache
def _said(text: str, settings: Settings) -> Said:
    """One analysis for each text and settings in a process: many tests ask about the same program.

    Findings and edits are frozen data, so sharing them is safe. The ``Script`` is not kept: it is large.
    """
    facts = script(text, settings)
    return Said(facts.exempt, rules.check(facts))


def said(text: str, settings: Settings | None = None) -> Said:
    """What the engine says of a piece of source."""
    return _said(text, settings or Settings())


def findings(text: str, settings: Settings | None = None) -> tuple[Finding, ...]:
    """What the rules say of a piece of source."""
    return said(text, settings).findings


def blocked(found: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in found if f.severity is Severity.BLOCKER]


def planned(text: str, settings: Settings | None = None) -> Plan:
    """The edits of a piece of source."""
    return compose(findings(text, settings))


@cache
def _migrated(text: str, settings: Settings) -> str | None:
    found = findings(text, settings)
    if blocked(found) or not any(f.edits for f in found):
        return None
    return apply(text, compose(found))


def migrate(text: str, settings: Settings | None = None) -> str | None:
    """The migrated source; None where the program is exempt or refused."""
    return _migrated(text, settings or Settings())
