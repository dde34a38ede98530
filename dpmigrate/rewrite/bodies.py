"""Bodies of modules, functions, loops and branches: rebuilt where something happens to their statements, tidied where nothing is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import libcst as cst

from dpmigrate.rewrite.anchors import Refused
from dpmigrate.rewrite.indentation import Level, moved_out
from dpmigrate.rewrite.lines import Statement, leading, split_attached, split_header, with_leading
from dpmigrate.rewrite.statements import Around, Block, Container, Range, opened, parse_statements

_Branching = (cst.If, cst.For, cst.While, cst.Try, cst.TryStar)


class Bodies:
    """Carries out what the plan does to statements; remembers the blocks that it emptied and the ``if`` that died with them."""

    def __init__(
        self,
        around: dict[cst.CSTNode, Around],
        ranges: dict[cst.CSTNode, list[Range]],
        first: dict[cst.CSTNode, list[str]],
        levels: dict[cst.CSTNode, Level],
    ) -> None:
        self._around = around
        self._ranges = ranges
        self._first = first
        self._levels = levels
        self._dead: set[cst.CSTNode] = set()
        self._emptied: set[cst.CSTNode] = set()

    def rewritten(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
        """The node after the plan's edits to its statements."""
        if isinstance(updated, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            return self._rebuilt(cast("Container", original), updated)
        if original in self._first:
            updated = _with_first(updated, self._first[original])
        if isinstance(updated, _Branching) and updated.orelse in self._dead:
            updated = updated.with_changes(orelse=None)
        if isinstance(updated, cst.If):
            body = cast("cst.If", original).body
            if body in self._ranges:
                updated = _with_guard(updated, self._ranges[body], self._levels[body])
        alone = isinstance(updated, cst.Else) or (isinstance(updated, cst.If) and updated.orelse is None)
        if alone and getattr(updated, "body", None) in self._emptied:
            self._dead.add(updated)
        return updated

    def _rebuilt(self, original: Container, updated: Container) -> Container:
        ranges = self._ranges.get(original, [])
        if not ranges and not self._is_concerned(original, updated):
            return updated
        if isinstance(updated, cst.Module) and updated.body:
            top, attached = split_header(updated.header)
            first = with_leading(updated.body[0], (*attached, *leading(updated.body[0])))
            updated = updated.with_changes(header=top, body=[first, *updated.body[1:]])
        block = Block(original, updated, self._around, ranges, self._dead, self._levels.get(original))
        result: Container
        if isinstance(updated, cst.SimpleStatementSuite):
            result = _suite(updated, block)
        else:
            result = updated.with_changes(body=block.statements(), footer=(*block.footer, *updated.footer))
        if not result.body:
            self._emptied.add(result)
            if isinstance(result, cst.Module) and not (result.header or result.footer):
                return result.with_changes(has_trailing_newline=False)
        return result

    def _is_concerned(self, original: Container, updated: Container) -> bool:
        for old, new in zip(original.body, updated.body, strict=True):
            inner = old.body if isinstance(old, cst.SimpleStatementLine) else ()
            if old in self._around or new in self._dead or any(small in self._around for small in inner):
                return True
        return False


def _with_guard(node: cst.If, ranges: Sequence[Range], level: Level) -> cst.If:
    """``if best and ddp.is_main():`` where the guard is all that the branch holds, in place of one ``if`` in another."""
    inner = node.body.body[0] if len(node.body.body) == 1 else None
    guards = [getattr(opened(one.header), "test", None) for one in ranges]
    if node.orelse is not None or not isinstance(inner, cst.If) or not any(inner.test is guard for guard in guards):
        return node
    test = node.test
    loose = isinstance(test, (cst.IfExp, cst.Lambda, cst.NamedExpr)) or (isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or))
    if loose and not test.lpar:
        test = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    step = node.body.indent if isinstance(node.body, cst.IndentedBlock) else None
    statements = [moved_out(statement, level, step) for statement in cast("Sequence[Statement]", inner.body.body)]
    statements[0] = with_leading(statements[0], (*inner.leading_lines, *leading(statements[0])))
    return node.with_changes(test=cst.BooleanOperation(test, cst.And(), inner.test), body=node.body.with_changes(body=statements))


def _suite(suite: cst.SimpleStatementSuite, block: Block) -> cst.SimpleStatementSuite | cst.IndentedBlock:
    smalls = block.on_one_line()
    if smalls is not None:
        return suite.with_changes(body=smalls)
    return cst.IndentedBlock(block.statements())


def _with_first(node: cst.CSTNode, codes: Sequence[str]) -> cst.CSTNode:
    body = getattr(node, "body", None)
    if not isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite)):
        raise Refused("the statement has no body to insert into")
    block = _as_block(body)
    statements = cast("list[Statement]", list(block.body))
    inserted = [statement for code in codes for statement in parse_statements(code)]
    place = 0
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and statements and is_docstring(statements[0]):
        place = 1
        if len(statements) > 1:  # a blank line below the docstring stays there
            upper, attached = split_attached(leading(statements[1]))
            inserted[0] = with_leading(inserted[0], (*upper, *leading(inserted[0])))
            statements[1] = with_leading(statements[1], attached)
    return node.with_changes(body=block.with_changes(body=[*statements[:place], *inserted, *statements[place:]]))


def _as_block(body: cst.IndentedBlock | cst.SimpleStatementSuite) -> cst.IndentedBlock:
    if isinstance(body, cst.IndentedBlock):
        return body
    lines = [cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)] if body.body else []
    return cst.IndentedBlock(lines)


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether the statement is a string on its own."""
    if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(statement.body[0], cst.Expr):
        return False
    return isinstance(statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
