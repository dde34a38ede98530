"""The expressions of a program that those of its result were."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable

from dpmigrate.contract import OF_GRADIENTS
from dpmigrate.program import Program

#: functions of the runtime that migrations write round an expression of a loss
_ROUND = OF_GRADIENTS | {"sum_loss", "sum_term"}


def originals(program: Program, nodes: Iterable[ast.AST], result: Program, wanted: Collection[ast.AST], ddp: str) -> dict[ast.AST, ast.expr]:
    """For each expression of the result that one of the program's ``nodes`` was, that one: of the same line and text but for functions of the
    runtime round parts of it, and the same one in the line of those that look alike. ``ddp`` is the runtime's name there.
    """
    if not wanted:
        return {}
    lines = {result.place(line) for n in wanted if (line := getattr(n, "lineno", None)) is not None}
    before = _by_text(program, nodes, lines, "")
    every = [n for p in result.parts for n in ast.walk(p.tree)]
    counts = [a for n in every if isinstance(n, ast.Call) and _of_runtime(n, ddp) for a in (*n.args[1:], *(k.value for k in n.keywords))]
    written = {id(n) for a in counts for n in ast.walk(a)}  # ddp.weighted_mean(loss, y.numel()): they were not there
    after = _by_text(result, (n for n in every if id(n) not in written), lines, ddp)
    found: dict[ast.AST, ast.expr] = {}
    for key, here in after.items():
        there = before.get(key, [])
        if len(there) == len(here):
            found |= zip(here, there, strict=True)
    return {n: found[n] for n in wanted if n in found}


def _by_text(program: Program, nodes: Iterable[ast.AST], lines: Collection[str], ddp: str) -> dict[tuple[str, str], list[ast.expr]]:
    """The expressions of some lines by line and text, each group from left to right."""
    found: dict[tuple[str, str], list[ast.expr]] = {}
    inside = [n for n in nodes if isinstance(n, ast.expr) and program.place(n.lineno) in lines and not _of_runtime(n, ddp)]
    for n in sorted(inside, key=lambda n: (n.lineno, n.col_offset)):
        text = ast.unparse(_Bare(ddp).visit(copy.deepcopy(n)) if ddp else n)
        found.setdefault((program.place(n.lineno), text), []).append(n)
    return found


def _of_runtime(node: ast.AST, ddp: str) -> bool:
    """Whether it is a call of such a function."""
    return bool(ddp) and isinstance(node, ast.Call) and ast.unparse(node.func) in {f"{ddp}.{name}" for name in _ROUND}


class _Bare(ast.NodeTransformer):
    """Takes such functions off."""

    def __init__(self, ddp: str) -> None:
        self.ddp = ddp

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self.visit(node.args[0]) if node.args and _of_runtime(node, self.ddp) else self.generic_visit(node)
