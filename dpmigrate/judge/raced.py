"""All ranks have asked for a file before rank 0 writes it, where they meet by the answer.

Rank 0 that finds no file goes on and writes it. Another rank that asks after that finds it, and waits
alone for what all do together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.engine import Execution
from dpmigrate.judge.parted import NAME
from dpmigrate.judge.shared_files import asked_before_writing
from dpmigrate.judge.trial import Fault, Trial

_WORDS = "some ranks may not come here: they ask for a file that rank 0 may have written by then"


def faults(trial: Trial) -> Iterator[Fault]:
    """What ranks do together under a test for a file that rank 0 writes next, without having met them."""
    asked = set(asked_before_writing(trial.result))
    tests = trial.result.program.every(ast.If) if asked else []
    racing = [t for t in tests if any(n in asked for n in ast.walk(t.test))]
    dependent = [(test, frozenset(_decided(trial.result, test))) for test in racing]
    for event in trial.result.trace.of("collective") if dependent else ():
        ways = {event.node, *(c.node for c in trial.result.trace.leading(event.context))}
        for test, nodes in dependent:
            if ways & nodes:
                yield trial.fault(event.node, NAME, f"{_WORDS}, {trial.line(test)}")


def _decided(result: Execution, test: ast.If) -> Iterator[ast.AST]:
    """What runs or not by a test: its branches, and what stands below where one of them leaves the function or the turn."""
    for stmt in (*test.body, *test.orelse):
        yield from ast.walk(stmt)
    leaves = (ast.Return, ast.Continue, ast.Break)
    if any(side and isinstance(side[-1], leaves) for side in (test.body, test.orelse)):
        for p in result.program.parts:
            for f in ast.walk(p.tree):
                if isinstance(f, ast.FunctionDef | ast.For | ast.While) and any(n is test for n in ast.walk(f)):
                    inside = set(ast.walk(test))
                    yield from (n for s in f.body for n in ast.walk(s) if n not in inside and getattr(n, "lineno", 0) > test.lineno)
