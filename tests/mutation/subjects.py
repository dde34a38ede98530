"""What is mutated: each program of ``fixtures`` and ``programs`` that apply migrates, with all that apply had in hand."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from dpmigrate import engine, migration
from dpmigrate.facts.script import Script
from dpmigrate.migration import Texts
from dpmigrate.model import Finding, Problem
from dpmigrate.settings import Settings
from tests.pipeline import Case, Several, cases, programs


@dataclass(frozen=True, order=True)
class Key:
    """The name of a subject: the case, and the script that starts it."""

    case: str
    script: str

    def __str__(self) -> str:
        return f"{self.case}/{self.script}"


@dataclass(frozen=True)
class Subject:
    """A program as apply sees it just before it rewrites it; ``texts`` is the right result."""

    key: Key
    script: Script
    found: tuple[Finding, ...]
    texts: Texts
    settings: Settings
    arguments: tuple[str, ...]
    runnable: bool


def keys() -> list[Key]:
    """Every program that is migrated."""
    out = [Key(c.name, "train.py") for c in cases() if c.facts["expect"] == "migrate"]
    for several in programs():
        expect, paths = several.facts["expect"], several.facts.get("paths", [several.entry])
        ends = [expect] * len(paths) if isinstance(expect, str) else expect
        out += [Key(several.name, p) for p, e in zip(paths, ends, strict=True) if e == "migrate"]
    return out


def _cases() -> dict[str, Case | Several]:
    every: list[Case | Several] = [*cases(), *programs()]
    return {case.name: case for case in every}


@contextlib.contextmanager
def opened(key: Key) -> Iterator[Subject]:
    """The subject in a folder of its own, which is the current one; removed afterwards.

    Raises ValueError where apply does not migrate the program.
    """
    case = _cases()[key.case]
    with contextlib.ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="dpmigrate-mutation-")
        folder = Path(stack.enter_context(made)).resolve()
        stack.enter_context(contextlib.chdir(folder))
        if isinstance(case, Several):
            case.copied_to(folder)
            paths = case.facts.get("paths", [case.entry])
        else:
            (folder / key.script).write_bytes(case.before.encode())
            paths = [key.script]
        script, found, texts = _captured(paths, case.settings, key)
        arguments = tuple(str(a) for a in case.facts.get("args", []))
        runs = bool(case.facts.get("run"))
        yield Subject(key, script, found, texts, case.settings, arguments, runs)


def _captured(
    paths: Sequence[str], settings: Settings, key: Key
) -> tuple[Script, tuple[Finding, ...], Texts]:
    """What apply hands to ``migration.rewritten`` for the script, and what it gets."""
    kept: list[tuple[Script, tuple[Finding, ...], Texts]] = []
    rewritten = migration.rewritten

    def keeping(
        script: Script, found: Sequence[Finding], comments: Sequence[Finding] = ()
    ) -> Texts | Problem:
        texts = rewritten(script, found, comments)
        if not isinstance(texts, Problem):
            kept.append((script, tuple(found), texts))
        return texts

    with mock.patch.object(migration, "rewritten", keeping):
        how = engine.Writing(write=False)
        outcomes = list(engine.apply([Path(p) for p in paths], settings, how))
    after = {f.path: f.after for o in outcomes for f in o.files if o.path == key.script}
    for script, found, texts in reversed(kept):  # those that were tried in vain are others
        same = all(after.get(part.source.name) == text for part, text in texts.items())
        if script.program.entry.name == key.script and same:
            return script, found, texts
    said = "; ".join(f"{o.path}: {o.status.value} {o.reason}" for o in outcomes)
    raise ValueError(f"{key} is not migrated: {said}")
