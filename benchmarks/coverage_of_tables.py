"""How many of the calls that reach data have a row in the tables: ``python benchmarks/coverage_of_tables.py FOLDER``.

Executes every script below a folder that trains, and counts the calls of code outside of the program
that are given data which is not the same on all ranks. Prints the share without a row, and the names of
those by how often they are called. The goal is 3% at most on scripts that nobody has looked at.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import execute
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.values import Atom, Ref, Super, Value, value
from dpmigrate.library.tables import Tables
from dpmigrate.linking import link
from dpmigrate.source import Source, parse


class Counting(Tables):
    """The tables, with a record of the calls that reach data: place and name -> whether there is a row."""

    def __init__(self) -> None:
        self.calls: dict[tuple[int, str], bool] = {}

    def _note(
        self, m: Machine, name: str, given: list[Value], node: ast.AST, found: Value | None
    ) -> None:
        depends = m.depends  # type: ignore[attr-defined]
        if any(depends(v).kind not in placements.EQUAL for v in given):
            key = (id(node), name)
            self.calls[key] = self.calls.get(key, True) and found is not None

    def call(
        self, m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        found = super().call(m, name, arguments, node, frame)
        self._note(m, name, arguments.all(), node, found)
        return found

    def method(
        self,
        m: Machine,
        receiver: Atom,
        name: str,
        arguments: Arguments,
        node: ast.AST,
        frame: Frame,
    ) -> Value | None:
        found = super().method(m, receiver, name, arguments, node, frame)
        if not isinstance(receiver, Super):
            self._note(m, f".{name}", [value(receiver), *arguments.all()], node, found)
        return found

    def called(
        self, m: Machine, receiver: Atom, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        found = super().called(m, receiver, arguments, node, frame)
        made = m.object(receiver)
        if made is None or made.kind != "instance":
            name = f"a call of {made.name if isinstance(receiver, Ref) and made else 'plain data'}"
            self._note(m, name, arguments.all(), node, found)
        return found


def counted(path: Path) -> dict[tuple[int, str], bool]:
    """The calls of one script that reach data."""
    source = parse(path.read_bytes(), path.name)
    if not isinstance(source, Source):
        return {}
    tables = Counting()
    execute(link(path, source), tables)
    return tables.calls


def main(paths: list[str]) -> None:
    """Print the share of all scripts that are named, or lie in the folders named, and train."""
    scripts: list[Path] = []
    for p in map(Path, paths):
        found = sorted(p.rglob("*.py")) if p.is_dir() else [p]
        scripts += [f for f in found if p.is_file() or b".backward(" in f.read_bytes()]
    missing: Counter[str] = Counter()
    total = 0
    for script in scripts:
        calls = counted(script)
        total += len(calls)
        missing.update(name for (_, name), known in calls.items() if not known)
    count = sum(missing.values())
    share = 100 * count / total if total else 0.0
    print(
        f"{len(scripts)} scripts, {total} calls that reach data, {count} without a row ({share:.1f}%)"
    )
    for name, n in missing.most_common(60):
        print(f"{n:5} {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
