"""Questions put to a program at a marked place: ``probe(expression)``."""

from __future__ import annotations

import ast
from textwrap import dedent

from dpmigrate.facts.script import Script
from tests.pipeline import script


def probed(text: str) -> tuple[Script, ast.expr]:
    """The facts of the program and the expression in its one ``probe(…)``."""
    found, (expression,) = all_probed(text)
    return found, expression


def all_probed(text: str) -> tuple[Script, list[ast.expr]]:
    """The facts of the program and the expressions in all its ``probe(…)``, in order."""
    found = script(dedent(text))
    calls = [n for n in found.names.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "probe"]
    return found, [c.args[0] for c in sorted(calls, key=lambda c: (c.lineno, c.col_offset))]
