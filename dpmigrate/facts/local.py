"""What of a loss is made of the rank's own part of the batch alone, and would be another number of the whole batch.

Each answer says why, in words, and is empty where there is nothing to say.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile

from dpmigrate.facts.asked_sizes import counted
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.origins import of_data
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_batch, of_loader, unmoved

#: questions what a value is, not how large, and guards against NaN, which have their own rule
_FORM = frozenset({"isinstance", "hasattr", "callable", "len", "size", "shape", "dim", "ndim", "training", "isnan", "isfinite", "isinf"})


@dataclass(frozen=True, slots=True)
class Repeated:
    """A mean that is added up in a loop over the samples of the batch; ``surely`` or perhaps."""

    why: str
    surely: bool


def number(roles: Roles, node: ast.expr, what: ast.expr) -> str:
    """``(a / b).item()``: a number that weighs in the loss, and is another one on every rank where it is made of the batch."""
    text = ast.unparse(node)
    return f"{text} is a number of the rank's part of the batch, and ddp.mean_all({text}) one of the whole" if of_batch(roles, what) else ""


def chosen(roles: Roles, value: ast.AST, read: ast.Name) -> str:
    """A loss that is this value or another one by a test on numbers of the batch: ``if loss > 1: loss = loss * 0.1``."""
    for a in _inside_function(roles, value):
        if isinstance(a, ast.If) and not roles.names.is_inside(read, a) and not roles.names.is_inside(value, a.test):
            why = by_batch(roles, a.test)
            if why:
                return why
    return ""


def by_batch(roles: Roles, test: ast.expr) -> str:
    """A test on numbers of the batch by which a loss is chosen."""
    if any(_about_form(n) for n in walk(test)) or not of_data(roles, test):
        return ""
    return f"each rank chooses its loss by its part of the batch ({ast.unparse(test)})"


def repeated(roles: Roles, value: ast.AST, read: ast.Name) -> Repeated | None:
    """Whether a loop that ends before the value is read goes over the samples of the batch: means of samples, added up, are a sum."""
    for a in _inside_function(roles, value):
        if isinstance(a, ast.For) and not roles.names.is_inside(read, a):
            counts = a.iter.args[-1] if isinstance(a.iter, ast.Call) and roles.names.dotted(a.iter.func) == "?.range" and a.iter.args else None
            if counts is not None and counted(counts):
                return Repeated("added up over the samples of the batch", surely=True)
            if any(isinstance(n, ast.Name) and loaded(roles, n) for n in walk(a.iter)):
                return Repeated(f"a mean is added up over {ast.unparse(a.iter)}, which may be the samples of the batch", surely=False)
    return None


def _inside_function(roles: Roles, node: ast.AST) -> list[ast.AST]:
    return list(takewhile(lambda a: not isinstance(a, FunctionNode), roles.names.ancestors(node)))


def _about_form(node: ast.AST) -> bool:
    """``aux is not None``, ``isinstance(out, tuple)``, ``"aux" in out``, sizes."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn)
    asked = last(node.func) if isinstance(node, ast.Call) else node.attr if isinstance(node, ast.Attribute) else ""
    return asked in _FORM


def loaded(roles: Roles, node: ast.Name) -> bool:
    """Whether the name is a part of a batch as a loader gives it, moved at most."""
    return of_loader(roles, node) or any(isinstance(part := unmoved(v), ast.Name) and of_loader(roles, part) for v in roles.given(node))
