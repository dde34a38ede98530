"""Passes over a training loader that begin before the loop that goes through them: ``batches = iter(loader)``, a prefetcher that is made of the loader."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.loops import first_loops
from dpmigrate.facts.names import FunctionNode, Loop, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import leading_to
from dpmigrate.facts.values import NONE

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: what takes an iterator of a loader where it is called
_BEGINS = ("?.iter", "itertools.cycle", "?.enumerate", "?.zip")


@dataclass(frozen=True, slots=True)
class Begun:
    """``own`` is the statement that makes the iterator, ``stmt`` the one beside the loop that leads to it; ``first``: all between that and the loop draws
    nothing.
    """

    own: ast.stmt
    stmt: ast.stmt
    first: bool


def begun_before(script: Script, loop: Loop) -> list[Begun]:
    """The passes that begin before a loop, whose batches are taken in it, in the order of the file."""
    roles, names = script.roles, script.names
    inside = [b for b in roles.train_loops if b.node is loop or names.is_inside(b.node, loop) or names.function(b.node) in roles.all_entered(loop)]
    taken = [b for b in inside if b.drawn is not None or b.inside is not None or b.made]
    whole = NONE.union(*(b.loaders for b in inside if b not in taken))
    loaders = frozenset(v for b in taken for v in b.loaders - whole if _has_workers(script, v.node))
    found: dict[ast.stmt, Begun] = {}
    for call in script.calls(*_BEGINS) if loaders else ():
        stmt = names.statement(call)
        if not any(roles.loaders_of(a) & loaders for a in call.args) or not isinstance(stmt, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr):
            continue
        repeated = first_loops(roles, call, lambda a: True) or names.is_inside(call, loop) or names.function(call) in roles.all_entered(loop)
        if not repeated and not _at_once(script, call):
            found[stmt] = Begun(stmt, *_beside(script, stmt, loop))
    return sorted(found.values(), key=lambda b: position(b.stmt))


def _has_workers(script: Script, loader: ast.AST) -> bool:
    """Whether a loader may have workers: without them samples are made where the loop asks for them."""
    if not isinstance(loader, ast.Call) or any(k.arg is None for k in loader.keywords) or last(loader.func) != "DataLoader":
        return True
    count = script.argument(loader, "num_workers", 5)
    return count is not None and not (isinstance(count, ast.Constant) and not count.value)


def _at_once(script: Script, call: ast.Call) -> bool:
    """``next(iter(loader))``: one batch is looked at."""
    above = script.names.parent[call]
    return isinstance(above, ast.Call) and script.names.dotted(above.func) == "?.next"


def _beside(script: Script, stmt: ast.stmt, loop: Loop) -> tuple[ast.stmt, bool]:
    """The statement beside the loop that leads to a statement, and whether nothing but numbers and names is made between them; itself where there is none."""
    block = script.names.block(loop)
    before = block[: block.index(loop)]
    for node in leading_to(script.roles, stmt):
        for i, s in enumerate(before):
            if not isinstance(s, FunctionNode | ast.ClassDef) and (node is s or script.names.is_inside(node, s)):
                return s, all(_draws_nothing(script, n) for n in before[i + 1 :])
    return stmt, False


def _draws_nothing(script: Script, stmt: ast.stmt) -> bool:
    """Whether a statement calls nothing but built-in functions, methods of models that set a mode, and ``iter``."""
    calls: Iterator[ast.Call] = (n for n in walk(stmt) if isinstance(n, ast.Call))
    return all(_plain(script, c) for c in calls)


def _plain(script: Script, call: ast.Call) -> bool:
    dotted = script.names.dotted(call.func)
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "eval", "zero_grad", "time", "perf_counter", "format"):
        return True
    return isinstance(call.func, ast.Name) and dotted.startswith("?.") and not any(True for _ in script.values.targets(call))
