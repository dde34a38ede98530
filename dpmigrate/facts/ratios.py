"""Which sums over the samples of a training loop are divided by nothing but other such sums.

Samples that a sampler repeats count in both then, as the hits and the samples of an accuracy; the size of the data set does not hold them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def divided_otherwise(script: Script, loop: BatchLoop, sums: Collection[str]) -> bool:
    """Whether one of the sums of a loop may be divided by something that is none of them, or is used in another way."""
    carried = script.counting(loop).carried
    for name in sums:
        if name.isidentifier():
            if not all(_in_ratio(script, n, name, sums) for n in carried.reads_after(name)):
                return True
            continue
        reads = [n for n in walk(carried.function) if isinstance(n, ast.expr) and _reads(script, loop, n, name)]
        of_meter = any(other != name and other.rpartition(".")[0] == name.rpartition(".")[0] != "" for other in sums)
        if not all(_in_ratio(script, n, name, sums) for n in reads) or not (reads or of_meter):
            return True
    return False


def _reads(script: Script, loop: BatchLoop, node: ast.expr, name: str) -> bool:
    """Whether a node below a loop reads an attribute or an entry."""
    plain = isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load) and node.lineno > (loop.node.end_lineno or 0)
    return plain and ast.unparse(node) == name


def _in_ratio(script: Script, node: ast.expr, name: str, sums: Collection[str]) -> bool:
    """Whether a sum is divided by another one, or divides one: also ``100 * hits.item() / max(seen, 1)``."""
    inner: ast.AST = node
    for a in script.names.ancestors(node):
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div | ast.FloorDiv):
            return _named(a.right if inner is a.left else a.left, set(sums) - {name})
        called = isinstance(a, ast.Call) and (inner is a.func or script.names.dotted(a.func) in ("?.float", "?.int", "?.max"))
        if not called and not isinstance(a, ast.Attribute | ast.UnaryOp) and not (isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult)):
            return False
        inner = a
    return False


def _named(node: ast.expr, sums: Iterable[str]) -> bool:
    return any(isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and ast.unparse(n) in sums for n in walk(node))
