"""Where a loop, or the program, may end early, and which of that may fall out differently on different ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.control import uniform
from dpmigrate.facts.endings import is_exit
from dpmigrate.facts.names import Loop, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import asks_files
from dpmigrate.facts.roles import Roles


@dataclass(frozen=True, eq=False, slots=True)
class Exit:
    """A ``break``, ``continue``, ``return`` or ``sys.exit`` under tests inside a loop, with the first test that may differ."""

    node: ast.stmt
    loop: Loop
    test: ast.expr | None


def exits(names: Names, roles: Roles, loop: Loop) -> Iterator[Exit]:
    """The early ends of a loop: leaving it, skipping the rest of a turn, or ending the program from inside."""
    for n in walk(loop):
        if not isinstance(n, ast.Break | ast.Continue | ast.Return | ast.Expr | ast.Raise) or names.function(n) is not names.function(loop):
            continue
        if isinstance(n, ast.Expr | ast.Raise) and not is_exit(names, n):
            continue
        inner = next((a for a in names.ancestors(n) if isinstance(a, Loop)), None)
        if isinstance(n, ast.Break | ast.Continue) and inner is not loop:
            continue
        if isinstance(n, ast.Return | ast.Expr | ast.Raise) and inner is not loop and inner is not None and any(b.node is inner for b in roles.batch_loops):
            continue
        tests = [a.test for a in names.ancestors(n) if isinstance(a, ast.If | ast.While) and a is not loop and names.is_inside(a, loop)]
        caught = any(isinstance(a, ast.ExceptHandler) and names.is_inside(a, loop) and not _of_all_ranks(a) for a in names.ancestors(n))
        varying = [t for t in tests if not uniform(names, t) or asks_files(roles, t)]  # a file may come between two ranks' questions
        if caught or varying:
            yield Exit(n, loop, varying[0] if varying and not caught else None)


def _of_all_ranks(handler: ast.ExceptHandler) -> bool:
    """``except StopIteration:``: the loaders of all ranks end together."""
    return isinstance(handler.type, ast.Name) and handler.type.id == "StopIteration"
