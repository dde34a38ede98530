"""Questions about files that may come at any time: their answers decide only what rank 0 does."""

from __future__ import annotations

import ast
from functools import lru_cache

from dpmigrate.program import Program
from dpmigrate.spelt_paths import last


@lru_cache(8)
def without_effect(program: Program) -> frozenset[ast.AST]:
    """The calls whose answers decide only what rank 0 does, and those that rank 0 is asked for."""
    found: set[ast.AST] = set()
    for part in program.parts:
        for node in ast.walk(part.tree):
            if isinstance(node, ast.Call) and last(node.func) == "from_main":
                found |= {n for a in node.args for n in ast.walk(a)}
            elif isinstance(node, ast.If) and _for_main(node):
                found |= {n for n in ast.walk(node.test) if isinstance(n, ast.Call)}
            elif isinstance(node, ast.For) and all(map(_of_main, node.body)) and not node.orelse and not isinstance(node.body[0], ast.Pass):
                found |= {n for n in ast.walk(node.iter) if isinstance(n, ast.Call)}
    return frozenset(found)


def _for_main(node: ast.If) -> bool:
    """Whether a test decides what rank 0 alone does."""
    test = node.test
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    if any(_is_main(p) for p in parts) and not node.orelse:
        return True
    return all(_of_main(s) for s in (*node.body, *node.orelse))


def _is_main(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last(node.func) == "is_main"


def _of_main(stmt: ast.stmt) -> bool:
    """Whether rank 0 alone does something in a statement, or a folder is made that may be there."""
    if isinstance(stmt, ast.If):
        return _for_main(stmt)
    if isinstance(stmt, ast.Pass):
        return True
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    if last(call.func) in ("makedirs", "mkdir"):
        return any(k.arg == "exist_ok" for k in call.keywords)
    return last(call.func) == "print" or ast.unparse(call.func).endswith("ddp.save")
