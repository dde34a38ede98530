"""Where a loop, or the program, may end early, and which of that may fall out differently on different ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.control import uniform
from dpmigrate.facts.names import Loop, Names, last, of_self
from dpmigrate.facts.ranks import asks_files
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Binding


@dataclass(frozen=True, eq=False, slots=True)
class Exit:
    """A ``break``, ``continue``, ``return`` or ``sys.exit`` under tests inside a loop, with the first test that may differ."""

    node: ast.stmt
    loop: Loop
    test: ast.expr | None


def exits(names: Names, roles: Roles, loop: Loop) -> Iterator[Exit]:
    """The early ends of a loop: leaving it, skipping the rest of a turn, or ending the program from inside."""
    for n in ast.walk(loop):
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


def of_data(roles: Roles, node: ast.AST, seen: set[ast.AST] | None = None) -> bool:
    """Whether a batch, or what a model makes of it, may go into the value: it is then another one on every rank, and no rank has the whole.

    ``seen`` are the places that give variables a value and have been looked at.
    """
    names, known = roles.names, set() if seen is None else seen
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and (roles.model_vals(n.func) or any(roles.calls_model(f) for f, _ in roles.values.targets(n))):
            return True
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and of_self(n):
            stores = [s for s in names.attributes(n.attr) if isinstance(s.ctx, ast.Store) and s not in known]
            known.update(stores)
            values = [v for s in stores if (v := getattr(names.statement(s), "value", None)) is not None]
            if any(of_data(roles, v, known) for v in values):
                return True
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            bound = [b for b in names.bindings(names.scope_of[n], n.id) if b.target not in known]
            known.update(b.target for b in bound)
            if any(_brings_data(roles, b, known) for b in bound):
                return True
    return False


def _brings_data(roles: Roles, b: Binding, seen: set[ast.AST]) -> bool:
    if b.how == "for":
        return b.value is not None and bool(roles.loaders_of(b.value)) and not _counted(b)
    if b.how == "param":
        return any(e is not None and of_data(roles, e, seen) for e in roles.handed(b))
    if b.how not in ("assign", "aug") or b.value is None:
        return False
    value = b.value.value if isinstance(b.value, ast.AugAssign) else b.value
    drawn = isinstance(value, ast.Call) and roles.names.dotted(value.func) == "?.next"
    return drawn or of_data(roles, value, seen)


def _counted(b: Binding) -> bool:
    """Whether a loop's target is the number that ``enumerate`` gives."""
    return isinstance(b.value, ast.Call) and last(b.value.func) == "enumerate" and b.path[:2] == ("*", 0)


def _of_all_ranks(handler: ast.ExceptHandler) -> bool:
    """``except StopIteration:``: the loaders of all ranks end together."""
    return isinstance(handler.type, ast.Name) and handler.type.id == "StopIteration"


def exit_value(names: Names, node: ast.AST) -> ast.expr | None:
    """What a statement ends the program with: the argument of ``sys.exit(…)``, ``exit(…)``, ``raise SystemExit(…)``, or a constant 0.

    None where the statement does not end the program.
    """
    value: ast.AST | None = None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and names.dotted(node.value.func) in ("sys.exit", "?.exit", "?.quit", "os._exit"):
        value = node.value
    elif isinstance(node, ast.Raise) and node.exc is not None:
        made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        value = node.exc if isinstance(made, ast.Name) and made.id == "SystemExit" else None
    if value is None:
        return None
    return value.args[0] if isinstance(value, ast.Call) and value.args else ast.Constant(0)


def is_exit(names: Names, node: ast.AST) -> bool:
    """Whether the statement ends the program."""
    return exit_value(names, node) is not None
