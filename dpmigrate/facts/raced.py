"""Tests for files that rank 0 writes next, before the ranks meet again: another rank may ask when the file is there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import asks_files, leading_to

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def raced_tests(script: Script, places: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """The tests of this kind by which a rank comes to one of the places, where all ranks do something together."""
    tests = dict.fromkeys(t for place in places for node in leading_to(script.roles, place) for t in _deciding(script, node))
    asking = [t for t in tests if asks_files(script.roles, t)]
    racing = script.racing_questions if asking else frozenset()
    yield from (t for t in asking if any(isinstance(n, ast.Call) and position(n) in racing for n in walk(t)))


def _deciding(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """The tests in its function by which a node runs: round it, and before it where a branch leaves the function or the turn."""
    names = script.names
    yield from (a.test for a in takewhile(lambda a: not isinstance(a, FunctionNode), names.ancestors(node)) if isinstance(a, ast.If))
    function = names.function(node)
    for n in walk(function):
        if isinstance(n, ast.If) and names.function(n) is function and position(n) < position(node) and not names.is_inside(node, n):
            if any(side and isinstance(side[-1], ast.Return | ast.Continue | ast.Break) for side in (n.body, n.orelse)):
                yield n.test
