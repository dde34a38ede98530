"""Where the facts of a program and its execution on paper differ.

    python -m tests.shadow.compare FOLDER SCRIPT

prints a line for each difference: the question, the place, which side says it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpmigrate import linking
from dpmigrate.facts.script import Script
from dpmigrate.settings import Settings
from dpmigrate.source import Source, parse
from tests.shadow.sides import QUESTIONS, Place, Traced, norms, place

FACTS, TRACE = "facts", "trace"


@dataclass(frozen=True, order=True)
class Difference:
    """What one side alone says of a place."""

    question: str
    at: str
    side: str


def script_at(path: Path) -> Script:
    """The facts of a program, by the script that starts it."""
    source = parse(path.read_bytes(), str(path))
    assert isinstance(source, Source), source
    return Script.running(linking.link(path, source), Settings())


def differences(script: Script) -> Iterator[Difference]:
    """All differences, by question and place; what never runs is no difference."""
    traced = Traced(script)
    if traced.execution.trace.ended is not None:
        yield Difference("execution", traced.execution.trace.ended, FACTS)
        return
    for name, question in QUESTIONS.items():
        facts, trace = map(set, question(script, traced))
        for side, only in ((FACTS, facts - trace), (TRACE, trace - facts)):
            yield from (Difference(name, _at(script, p), side) for p in sorted(only) if side == TRACE or _runs(traced, p))
    for where, norm, said, agree in norms(script, traced):
        if not agree:
            yield Difference("loss", f"{_at(script, where)} {norm.value} / {said}", FACTS)


def _runs(traced: Traced, where: Place) -> bool:
    """Whether the execution came to the statement at a place."""
    node = next((n for n in traced.parents if place(n) == where), None)
    while node is not None and not isinstance(node, ast.stmt):
        node = traced.parents.get(node)
    return node is None or place(node) in traced.ran


def _at(script: Script, where: Place) -> str:
    line, column = where
    return f"{script.program.place(line)}:{column + 1}" if line else "nowhere"


def main(folder: str, name: str) -> None:
    script = script_at(Path(folder) / name)
    if script.exempt:
        print("exempt:", script.exempt)
        return
    for d in differences(script):
        print(f"{d.question:18} {d.side:6} {d.at}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
