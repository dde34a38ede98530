"""A plan's edits, sorted to the nodes of the tree that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from dpmigrate.edit import (
    AddImport,
    After,
    Before,
    Comment,
    Delete,
    DropArg,
    DropItem,
    Edit,
    Enclose,
    First,
    Hoist,
    MainOnly,
    Replace,
    SetArg,
    SetItem,
    Wrap,
)
from dpmigrate.model import Span
from dpmigrate.rewrite.anchors import Anchors, Refused, Site
from dpmigrate.rewrite.compose import span_of
from dpmigrate.rewrite.indentation import Level
from dpmigrate.rewrite.statements import Around, Range

ExpressionEdit = Replace | DropArg | SetArg | DropItem | SetItem | MainOnly | Wrap | Hoist


#: in which order edits act on one expression
_ORDER = (Replace, DropArg, SetArg, DropItem, SetItem, MainOnly, Wrap, Hoist)
#: a simple statement lets expressions be hoisted out; names inside the others may exist nowhere else, or later
_BORDERS = (cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.Lambda, cst.BaseComp)


@dataclass
class Work:
    """What to do at which node, and the nodes on the way there."""

    expressions: dict[cst.CSTNode, tuple[Site, list[ExpressionEdit]]] = field(default_factory=dict)
    around: dict[cst.CSTNode, Around] = field(default_factory=dict)
    first: dict[cst.CSTNode, list[str]] = field(default_factory=dict)
    ranges: dict[cst.CSTNode, list[Range]] = field(default_factory=dict)
    levels: dict[cst.CSTNode, Level] = field(default_factory=dict)  # of the blocks that get headers
    holders: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)  # of hoisted expressions: their statements
    imports: list[str] = field(default_factory=list)
    sites: dict[Span, Site] = field(default_factory=dict)  # of expressions
    path: set[cst.CSTNode] = field(default_factory=set)


StatementEdit = Before | After | Comment | First | Enclose | Delete


def anchor(edit: ExpressionEdit | StatementEdit) -> Span:
    """The node that an edit names (an ``Enclose``: its first one)."""
    return edit.first if isinstance(edit, Enclose) else span_of(edit)


def spans(edits: Iterable[Edit]) -> Iterator[Span]:
    """Every span that the edits name."""
    for edit in edits:
        if not isinstance(edit, AddImport):
            yield anchor(edit)
        if isinstance(edit, Enclose):
            yield edit.last


def schedule(edits: Iterable[Edit], anchors: Anchors) -> Work:
    """Find every anchor; one that is missing refuses the plan."""
    work = Work()
    for edit in edits:
        if isinstance(edit, AddImport):
            work.imports.append(edit.code)
        elif isinstance(edit, (Before, After, Comment, First, Enclose, Delete)):
            _statement(work, edit, anchors)
        else:
            _expression(work, edit, anchors)
    for _, chain in work.expressions.values():
        chain.sort(key=_rank)
    return work


def _rank(edit: ExpressionEdit) -> tuple[float, int]:
    """By kind; positional arguments from the right, so that dropping one does not move the next."""
    if isinstance(edit, Hoist) and edit.header:
        return _ORDER.index(Wrap) - 0.5, 0
    return _ORDER.index(type(edit)), -(edit.index or 0) if isinstance(edit, DropArg) else 0


def _expression(work: Work, edit: ExpressionEdit, anchors: Anchors) -> None:
    site = anchors.expression(anchor(edit))
    if isinstance(edit, (SetArg, DropArg, MainOnly)) and not isinstance(site.node, cst.Call):
        raise Refused(f"no call found at line {edit.call.line}", edit.call)
    if isinstance(edit, (SetItem, DropItem)) and not isinstance(site.node, cst.Dict):
        raise Refused(f"no dict display found at line {edit.dict.line}", edit.dict)
    if isinstance(edit, Hoist):
        work.holders[site.node] = holder = _holder(edit, site)
        work.around.setdefault(holder, Around())
        work.levels[_block(site.ancestors[: (*site.ancestors, site.node).index(holder)])] = Level.of(site)
    work.sites[anchor(edit)] = site
    work.path.update((*site.ancestors, site.node))
    work.expressions.setdefault(site.node, (site, []))[1].append(edit)


def _holder(edit: Hoist, site: Site) -> cst.CSTNode:
    """The simple statement around an expression that is to be hoisted out of it, or the ``for`` that goes through it."""
    path = (*site.ancestors, site.node)
    border = max(i for i, outer in enumerate(site.ancestors) if isinstance(outer, _BORDERS))
    holder = path[border]
    if isinstance(holder, cst.BaseSmallStatement) or (isinstance(holder, cst.For) and path[border + 1] is holder.iter):
        return holder
    raise Refused(f"the expression at line {edit.node.line} cannot be taken out of its statement", edit.node)


def _statement(work: Work, edit: StatementEdit, anchors: Anchors) -> None:
    site = anchors.statement(anchor(edit))
    work.path.update((*site.ancestors, site.node))
    if isinstance(edit, First):
        work.first.setdefault(site.node, []).append(edit.code)
        return
    container = _container(edit, site)
    if isinstance(edit, Enclose):
        last = anchors.statement(edit.last)
        work.ranges.setdefault(container, []).append(Range(site.node, last.node, edit.header))
        work.levels[container] = Level.of(site)
        return
    around = work.around.setdefault(site.node, Around())
    if isinstance(edit, Before):
        around.before.append(edit.code)
    elif isinstance(edit, After):
        around.after.append(edit.code)
    elif isinstance(edit, Comment):
        around.comments += edit.lines
    else:
        around.delete = True


def _container(edit: StatementEdit, site: Site) -> cst.CSTNode:
    """The block that the statement is one of."""
    outer = _block(site.ancestors)
    if isinstance(outer, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
        return outer
    raise Refused(f"nothing can stand beside the elif at line {anchor(edit).line}", anchor(edit))


def _block(ancestors: Sequence[cst.CSTNode]) -> cst.CSTNode:
    """What a statement with these ancestors is one of: a block, or the ``if`` whose ``elif`` it is."""
    return next(node for node in reversed(ancestors) if not isinstance(node, cst.SimpleStatementLine))
