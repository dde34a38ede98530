"""What questions about files decide: what rank 0 alone does, or what is done where a file is missing."""

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


@lru_cache(8)
def where_missing(program: Program) -> dict[ast.AST, frozenset[ast.Call]]:
    """For calls that are made where a question is answered with no, the questions: ``if not exists(path): make(path)``."""
    found: dict[ast.AST, frozenset[ast.Call]] = {}
    for part in program.parts:
        for node in ast.walk(part.tree):
            if not isinstance(node, ast.If):
                continue
            parts = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
            no = frozenset(p.operand for p in parts if isinstance(p, ast.UnaryOp) and isinstance(p.op, ast.Not) and isinstance(p.operand, ast.Call))
            yes = frozenset([node.test]) if isinstance(node.test, ast.Call) else frozenset()
            for questions, body in ((no, node.body), (yes, node.orelse)):
                for n in (n for stmt in body if questions for n in ast.walk(stmt)):
                    found[n] = found.get(n, frozenset()) | questions
    return found


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
