"""Where the statements and expressions of a program stand, by the spans of the edits."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from dpmigrate.model import Span

Block = list[ast.stmt]


class Places:
    """The trees of a program with their parents; everything is found by its exact span."""

    def __init__(self, trees: Iterable[ast.Module]) -> None:
        self.parent: dict[ast.AST, ast.AST] = {}
        self._statements: dict[Span, ast.stmt] = {}
        self._expressions: dict[Span, ast.expr] = {}
        self._blocks: dict[ast.stmt, Block] = {}
        for tree in trees:
            self._enter(tree)

    def _enter(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self._statements[Span.of(node)] = node
        elif isinstance(node, ast.expr):
            self._expressions.setdefault(Span.of(node), node)
        for _, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            if children and all(isinstance(child, ast.stmt) for child in children):
                self._blocks.update((child, children) for child in children)
            for child in children:
                if isinstance(child, ast.AST):
                    self.parent[child] = node
                    if not isinstance(node, ast.JoinedStr):  # positions in there are not reliable
                        self._enter(child)

    def statement(self, span: Span) -> ast.stmt:
        """The statement with this span; raises KeyError where there is none."""
        return self._statements[span]

    def expression(self, span: Span) -> ast.expr | None:
        """The expression with this span, outside of f-strings."""
        return self._expressions.get(span)

    def block(self, stmt: ast.stmt) -> Block:
        """The statements among which it stands."""
        return self._blocks[stmt]

    def owner(self, block: Block) -> ast.stmt | None:
        """The compound statement in the same function to which the block belongs."""
        above = self.parent[block[0]]
        if isinstance(above, ast.ExceptHandler | ast.match_case):
            above = self.parent[above]
        apart = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        return above if isinstance(above, ast.stmt) and not isinstance(above, apart) else None

    def loop_around(self, node: ast.AST) -> ast.For | None:
        """The next ``for`` statement round the node in the same function."""
        above = self.parent.get(node)
        while above is not None and not isinstance(above, ast.FunctionDef | ast.ClassDef):
            if isinstance(above, ast.For):
                return above
            above = self.parent.get(above)
        return None


def body_of(stmt: ast.stmt) -> Block:
    """The first block of a compound statement; empty for any other."""
    body = getattr(stmt, "body", [])
    return body if isinstance(body, list) else []


def first_of(block: Block) -> int:
    """Where code may begin in a block: below a docstring, and below the imports."""
    at = 0
    for i, stmt in enumerate(block):
        docstring = i == 0 and isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
        if docstring or isinstance(stmt, ast.Import | ast.ImportFrom):
            at = i + 1
    return at


def end_of(block: Block) -> int:
    """Where code may end in a block: above what leaves it."""
    leaves = isinstance(block[-1], ast.Return | ast.Continue | ast.Break | ast.Raise)
    return len(block) - leaves
