"""Outcomes for people: findings a line each, then what apply does, what it leaves, and how to start the result.

Lines are made plain; colour is put on whole pieces of our own (path, code, severity) and only on a terminal. No text of the user's is ever
interpreted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dpmigrate.model import File, Finding, Outcome, Severity, Status, alone, blockers, left
from dpmigrate.report.plain import safe

_COLOURS = {Severity.BLOCKER: "1;31", Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}

#: of the lines that start a program; a README may list an experiment after the other
_SHOWN = 8


class Style:
    """ANSI colours, or none."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def split(text: str) -> list[str]:
    """Lines as Python counts them."""
    return re.split(r"\r\n|\r|\n", text)


def column(line: str, offset: int) -> int:
    """The column from 1, in characters, of a UTF-8 byte offset."""
    return len(line.encode()[:offset].decode("utf-8", "replace")) + 1


def findings(outcome: Outcome, style: Style, *, source: bool) -> Iterator[str]:
    """``path:line:col: CODE severity message``, with the line and a caret where ``source`` is asked for."""
    if outcome.problem is not None:
        p = outcome.problem
        where = f":{p.line}" + (f":{p.col}" if p.col else "") if p.line else ""
        yield f"{style.paint(safe(outcome.path) + where, '1')}: {style.paint('error', '1;31')} {safe(p.message)}"
    for file in outcome.files:
        yield from _in_file(file, style, source=source)


def _in_file(file: File, style: Style, *, source: bool) -> Iterator[str]:
    path, lines = safe(file.path), split(file.before)
    for f in file.findings:
        line = lines[f.span.line - 1] if f.span.line <= len(lines) else ""
        col = column(line, f.span.col)
        severity = style.paint(f.severity.value, _COLOURS[f.severity])
        yield f"{style.paint(f'{path}:{f.span.line}:{col}', '1')}: {f.code} {severity} {safe(f.message)}"
        if source:
            end = column(line, f.span.end_col) if f.span.end_line == f.span.line else len(line) + 1
            yield f"    {safe(line)}"
            yield f"    {' ' * (col - 1)}{style.paint('^' * max(1, end - col), '32')}"
        if f.advice:
            yield f"    help: {safe(f.advice)}"


def _places(outcome: Outcome, wanted: Callable[[Sequence[Finding]], list[Finding]]) -> Iterator[tuple[str, Finding]]:
    """The findings that are wanted, each with its place seen from the script: ``line 12``, or ``utils.py, line 12``."""
    for file in outcome.files:
        for f in wanted(file.findings):
            yield f"{'' if file is outcome.files[0] else f'{safe(file.path)}, '}line {f.span.line}", f


def _edited(found: Sequence[Finding]) -> list[Finding]:
    return [f for f in found if f.edits]


def _count(n: int, word: str) -> str:
    return f"{n} {word}" + ("" if n == 1 else "s")


def _much(changes: int, outcome: Outcome) -> str:
    """``13 changes in 4 files``"""
    return _count(changes, "change") + (f" in {_count(len(outcome.changed), 'file')}" if _others(outcome) else "")


def _others(outcome: Outcome) -> bool:
    """Whether files beside the script change."""
    return any(path != outcome.path for path in outcome.changed)


def roles(outcome: Outcome, style: Style) -> Iterator[str]:
    """What each thing of a program was taken for."""
    path = safe(outcome.path)
    if outcome.status is Status.FAILED:
        yield from findings(outcome, style, source=False)
    elif not outcome.notes:
        yield f"{path}: no roles: {safe(outcome.reason or 'nothing is trained here')}"
    for note in outcome.notes:
        place, _, rest = note.partition(": ")
        part, _, what = rest.partition(": ")
        yield f"{style.paint(safe(place), '1')}: {style.paint(part, '36')} {safe(what)}"


def check_summary(outcomes: Sequence[Outcome], style: Style) -> Iterator[str]:
    """What apply would do with what was found."""
    for o in outcomes:
        path = safe(o.path)
        yield from (f"{path}: {safe(n)}" for n in o.notes)
        if o.status is Status.REFUSED:
            yield f"{style.paint(path, '1')}: apply will refuse this program: {safe(o.reason)}"
        if o.status is not Status.FINDINGS:
            continue
        fixed = _edited(o.findings)
        if blockers(o.findings):
            yield f"{style.paint(path, '1')}: apply will refuse this program:"
            yield from (f"  {where}: {safe(f.message)} ({f.code})" for where, f in _places(o, blockers))
            continue
        yield f"{style.paint(path, '1')}: apply will make {_much(len(fixed), o)} by itself."
        if _others(o):
            yield f"  Files: {', '.join(map(safe, o.changed))}"
        if left(o.findings):
            yield "  Left to you:"
            yield from (f"  {where}: {safe(f.message)} ({f.code}){'; ' + safe(f.advice) if f.advice else ''}" for where, f in _places(o, left))
        yield from _starts(o)
    done = [o for o in outcomes if o.reason and o.status is Status.CLEAN and "train" not in o.reason and "torch" not in o.reason.split(" is ")[0]]
    yield from (f"{safe(o.path)}: nothing to migrate: {safe(o.reason)}" for o in done)
    yield totals(outcomes)


def totals(outcomes: Sequence[Outcome]) -> str:
    """The last line: files by what became of them."""
    names = {
        Status.FINDINGS: "with findings",
        Status.CHANGED: "migrated",
        Status.REFUSED: "refused",
        Status.FAILED: "failed",
        Status.UNCHANGED: "unchanged",
        Status.CLEAN: "with nothing to migrate",
    }
    parts = [f"{n} {word}" for status, word in names.items() if (n := sum(o.status is status for o in outcomes))]
    return f"{_count(len(outcomes), 'file')}: {', '.join(parts)}." if parts else "No Python files."


def apply_result(outcome: Outcome, style: Style, *, written: str | None, proof: str = "") -> Iterator[str]:
    """What became of one program. ``written`` is where the result went, None if nowhere; ``proof`` is the command that proves a migration."""
    path = safe(outcome.path)
    if outcome.status is Status.FAILED:
        yield from findings(replace(outcome, files=()), style, source=False)
    elif outcome.status is Status.UNCHANGED:
        yield f"{path}: unchanged: {safe(outcome.reason)}"
        yield from _notes(outcome)
    elif outcome.status is Status.REFUSED:
        commented = any(f.after is not None for f in outcome.files)
        program = "left as it is" if not commented else "left as it is but for comments" if written is not None else "would get comments only"
        yield f"{style.paint(path, '1')}: {style.paint('refused', '1;31')}, {program}{': ' + safe(outcome.reason) if outcome.reason else ':'}"
        for file in outcome.files:
            for f in (*blockers(file.findings), *alone(file.findings)):
                yield f"  {safe(file.path)}:{f.span.line}: {f.code} {safe(f.message)}"
                if f.advice:
                    yield f"    help: {safe(f.advice)}"
        yield from _notes(outcome)
    else:
        yield from _migrated(outcome, style, written)
        if proof:
            yield f"  Prove it with: {safe(proof)}  (the script's own arguments go after --)"


def _notes(outcome: Outcome) -> Iterator[str]:
    yield from (f"  {safe(n)}" for n in outcome.notes)


def _migrated(outcome: Outcome, style: Style, written: str | None) -> Iterator[str]:
    path = safe(outcome.path)
    much = _much(len(_edited(outcome.findings)), outcome)
    what = f"migrated, {much}" if written is not None else f"would be migrated, {much}; nothing was written"
    target = f" -> {safe(written)}" if written is not None and written != outcome.path else ""
    yield f"{style.paint(path + target, '1')}: {style.paint(what, '32')}"
    if _others(outcome):
        yield f"  Files changed: {', '.join(map(safe, outcome.changed))}"
    yield from _notes(outcome)
    for where, f in _places(outcome, _edited):
        if f.advice:
            yield f"  Changed for you, {where} of the original: {safe(f.advice)} ({f.code})"
    for where, f in _places(outcome, left):
        yield f"  Left to you, {where} of the original: {safe(f.message)} ({f.code})"
        if f.advice:
            yield f"    help: {safe(f.advice)}"
    program = f"-m {outcome.module}" if outcome.module else safe(shlex.quote(written or outcome.path))
    where = f"  (in {safe(outcome.folder)})" if outcome.folder else ""
    yield f"  Start it with: torchrun --standalone --nproc-per-node=NUMBER_OF_GPUS {program}{where}"
    yield from _starts(outcome)


def _starts(outcome: Outcome) -> Iterator[str]:
    """The lines elsewhere that start the program, as they should be."""
    if outcome.starts:
        yield "  It is started from other files, which stay as they are. Their lines for the migrated program:"
    yield from (f"  {safe(s.path)}:{s.line}: {safe(s.command)}" for s in outcome.starts[:_SHOWN])
    if len(outcome.starts) > _SHOWN:
        yield f"  ... and {len(outcome.starts) - _SHOWN} more (all of them: --output-format json)"
    yield from (f"{safe(path)}: error {safe(problem.message)}: whether it starts {safe(outcome.path)} is not known" for path, problem in outcome.unread)
