"""Statements that end the program."""

from __future__ import annotations

import ast

from dpmigrate.facts.names import Names


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
