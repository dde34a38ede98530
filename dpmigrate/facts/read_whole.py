"""Passes over the training loader that stand in an expression and train nothing: ``sum(len(y) for x, y in train_loader)``, ``list(train_loader)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.loops import source

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles
    from dpmigrate.facts.script import Script

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: functions that take all that an iterable gives, as their first argument; those after it take it second
_FIRST = frozenset({"?.list", "?.tuple", "?.sorted", "?.sum", "?.max", "?.min", "?.set", "?.dict"})
_SECOND = frozenset({"?.map", "?.filter", "functools.reduce"})


def read_whole(script: Script) -> Iterator[ast.expr]:
    """The expressions of a training loader of which another expression makes something, in the order of the file."""
    roles = script.roles
    trained = {e for b in roles.batch_loops for e in (b.source, b.inside)}
    for node in roles.names.nodes:
        for iterable in _taken(roles, node):
            if roles.loaders_of(iterable) & script.train_loaders:
                inner = source(roles, iterable)
                if inner not in trained and any(v.node in roles.loader_calls for v in roles.values.eval(inner)):
                    yield inner


def _taken(roles: Roles, node: ast.AST) -> list[ast.expr]:
    """What an expression goes through to the end."""
    if isinstance(node, _COMPREHENSIONS):
        return [g.iter for g in node.generators]
    if not isinstance(node, ast.Call):
        return []
    dotted = roles.names.dotted(node.func)
    return node.args[:1] if dotted in _FIRST else node.args[1:] if dotted in _SECOND else []
