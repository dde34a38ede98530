"""A plan carried out on a file's text: one libcst parse, one transform, one code generation.

The transform goes only where the plan has an anchor, and works on the *updated* node: what an inner edit did survives the outer one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import cast

import libcst as cst

from dpmigrate.edit import DropArg, DropItem, Hoist, MainOnly, Replace, SetArg, SetItem, Wrap
from dpmigrate.rewrite import expressions, rows
from dpmigrate.rewrite.anchors import Anchors, Refused, Site, code_of
from dpmigrate.rewrite.bodies import Bodies
from dpmigrate.rewrite.compose import Plan
from dpmigrate.rewrite.imports import add_imports
from dpmigrate.rewrite.lines import split_lines
from dpmigrate.rewrite.schedule import ExpressionEdit, Work, schedule, spans
from dpmigrate.rewrite.statements import Hoisted, parse_statements
from dpmigrate.rewrite.syntax import check_strings, parsed

__all__ = ["Refused", "apply"]

_TAIL = re.compile(r"(?:\r\n|\r|\n)\s*[^\S\r\n]\s*\Z")


def apply(text: str, plan: Plan) -> str:
    """The text after the edits of the plan; raises ``Refused`` where one cannot be carried out exactly."""
    tree = parsed(text)
    with _refusing():
        module, anchors, tail = _read(text, tree, plan)
        work = schedule(plan.edits, anchors)
        check_strings(tree, work.sites)
        if not plan.edits:
            return text
        work.path.add(module)  # the way to the imports, if to nothing else
        result = module.visit(_Carry(work))
        return result.code + tail


def _read(text: str, tree: ast.Module, plan: Plan) -> tuple[cst.Module, Anchors, str]:
    """The tree with its anchors, and the end of the text that is no part of it."""
    for cut in _cuts(text, tree):
        module = cst.parse_module(text[:cut])
        anchors = Anchors(module, text[:cut], spans(plan.edits))
        if anchors.generated == text[:cut]:
            return module, anchors, text[cut:]
    pairs = zip_longest(split_lines(text), split_lines(anchors.generated))
    line = next(number for number, (old, new) in enumerate(pairs, 1) if old != new)
    raise Refused(f"line {line} would not stay byte for byte as it is (a form feed before code, or a lone carriage return?)")


def _cuts(text: str, tree: ast.Module) -> Iterator[int]:
    """Where to end the text for libcst, which loses lines of white space and odd comments at the end of a file."""
    match = _TAIL.search(text)
    if match is None:
        yield len(text)
    else:
        yield match.start() + (2 if text.startswith("\r\n", match.start()) else 1)
    code = max((node.end_lineno or 0 for node in tree.body), default=0)
    yield sum(map(len, split_lines(text)[:code]))


@contextmanager
def _refusing() -> Iterator[None]:
    """What libcst cannot do is no crash of ours but a file left as it is."""
    try:
        yield
    except cst.ParserSyntaxError as error:
        raise Refused(f"unsupported syntax at line {error.raw_line}: {error.message}") from error
    except cst.CSTValidationError as error:
        raise Refused(f"an edit does not fit its place: {error}") from error
    except RecursionError as error:
        raise Refused("the code is nested too deeply to be rewritten") from error


class _Carry(cst.CSTTransformer):
    """Carries out the scheduled edits while leaving each node."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.work = work
        self.bodies = Bodies(work.around, work.ranges, work.first, work.levels)

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.work.path

    def on_leave(  # type: ignore[override]  # the base ties the result to the type of the node, which Replace may change
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        if original_node not in self.work.path:
            return updated_node
        node = updated_node
        if original_node in self.work.expressions:
            site, edits = self.work.expressions[original_node]
            for edit in edits:
                assert isinstance(node, cst.BaseExpression)
                node = self._edited(node, edit, site)
        node = self.bodies.rewritten(original_node, node)
        if isinstance(node, cst.Module):
            node = add_imports(node, self.work.imports)
        if isinstance(node, cst.FormattedString):
            _check_quotes(original_node, node)
        return node

    def _edited(self, node: cst.BaseExpression, edit: ExpressionEdit, site: Site) -> cst.BaseExpression:
        match edit:  # schedule has made sure that the node is of the kind that the edit is for
            case Replace():
                return expressions.replace(node, edit.code, site)
            case DropArg():
                return rows.drop_arg(cast("cst.Call", node), edit)
            case SetArg():
                return rows.set_arg(cast("cst.Call", node), edit, _values(site.node))
            case DropItem():
                return rows.drop_item(cast("cst.Dict", node), edit)
            case SetItem():
                return rows.set_item(cast("cst.Dict", node), edit, _values(site.node))
            case MainOnly():
                return expressions.main_only(cast("cst.Call", node), edit.prefix)
            case Wrap():
                return expressions.wrap(node, edit.template, site)
            case _:
                return self._hoisted(node, edit, site)

    def _hoisted(self, node: cst.BaseExpression, edit: Hoist, site: Site) -> cst.BaseExpression:
        target = cst.AssignTarget(cst.Name(edit.name))
        assignment = cst.Assign([target], expressions.standing_alone(node, edit.name, site))
        then = parse_statements(edit.then) if edit.then else ()
        around = self.work.around[self.work.holders[site.node]]
        around.hoisted.append(Hoisted((cst.SimpleStatementLine([assignment]), *then), edit.header))
        return expressions.name_for(node, edit.name, site)


def _values(node: cst.CSTNode) -> frozenset[cst.CSTNode]:
    """The values of a call or a display as they were before any edit."""
    holders = node.args if isinstance(node, cst.Call) else cast("cst.Dict", node).elements
    return frozenset(holder.value for holder in holders)


def _check_quotes(original: cst.CSTNode, updated: cst.FormattedString) -> None:
    """Before Python 3.12 no quote of the f-string itself, no backslash and no comment may stand in its expressions."""
    for sign in (updated.quote, "\\", "#", "\n"):
        if _inside(cast("cst.FormattedString", original)).count(sign) < _inside(updated).count(sign):
            raise Refused(f"an edit would put {sign!r} into an f-string")


def _inside(string: cst.FormattedString) -> str:
    return code_of([part for part in string.parts if isinstance(part, cst.FormattedStringExpression)])
