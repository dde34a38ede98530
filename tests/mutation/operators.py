"""The ways to spoil an edit. Each is a function from an edit and its place to what stands instead.

An edit that is data can be left out, weakened or put elsewhere, and everything else of the migration is carried out
as it is: so a mutant is the right result with one fault, and the fault has a name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from dpmigrate.contract import ALIAS
from dpmigrate.edit import (
    AddImport,
    After,
    Before,
    Comment,
    Edit,
    Enclose,
    First,
    Hoist,
    Replace,
    SetArg,
    SetItem,
    Wrap,
)
from dpmigrate.model import Span
from tests.mutation.labels import HOLE, code_of
from tests.mutation.places import Block, Places, body_of, end_of, first_of

#: what stands in the place of an edit
Instead = tuple[Edit, ...]
Operator = Callable[[Edit, Places], Iterator[Instead]]
_Inserted = Before | After | First


def missing(edit: Edit, places: Places) -> Iterator[Instead]:
    """The edit is not made."""
    if not isinstance(edit, Comment):
        yield ()


def part_missing(edit: Edit, places: Places) -> Iterator[Instead]:
    """A keyword argument, a value that is reduced with others, or a statement of several is left out."""
    if isinstance(edit, AddImport) or not code_of(edit):
        return
    for code in _weakened(code_of(edit)):
        match edit:
            case Wrap():
                yield (replace(edit, template=code.replace(HOLE, "{}")),)
            case Enclose():
                yield (replace(edit, header=code.splitlines()[0]),)
            case SetArg() | SetItem():
                yield (replace(edit, value=code),)
            case Hoist():
                yield (replace(edit, then=code),)
            case Before() | After() | First() | Replace():
                yield (replace(edit, code=code),)


def _weakened(code: str) -> Iterator[str]:
    """The code without one of its parts, each once."""
    count = sum(1 for _ in _parts(ast.parse(code)))
    for number in range(count):
        tree = ast.parse(code)
        for i, take_away in enumerate(_parts(tree)):
            if i == number:
                take_away()
                break
        yield ast.unparse(tree)


def _parts(tree: ast.Module) -> Iterator[Callable[[], object]]:
    """What takes each part away."""
    if len(tree.body) > 1:
        for stmt in tree.body:
            yield lambda stmt=stmt: tree.body.remove(stmt)  # type: ignore[misc]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                yield lambda c=node, k=keyword: c.keywords.remove(k)  # type: ignore[misc]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target, call = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and len(target.elts) == len(call.args):
                for i in range(len(call.args)):
                    yield lambda a=node, i=i: _take_pair(a, i)  # type: ignore[misc]


def _take_pair(assign: ast.Assign, at: int) -> None:
    target, call = assign.targets[0], assign.value
    assert isinstance(target, ast.Tuple) and isinstance(call, ast.Call)
    del target.elts[at], call.args[at]
    if len(target.elts) == 1:
        assign.targets[0] = target.elts[0]


def other_side(edit: Edit, places: Places) -> Iterator[Instead]:
    """Before its statement instead of after it, or the other way round."""
    if isinstance(edit, Before):
        yield (After(edit.stmt, edit.code),)
    elif isinstance(edit, After):
        yield (Before(edit.stmt, edit.code),)


def too_early(edit: Edit, places: Places) -> Iterator[Instead]:
    """Before the statement of its block that binds what it reads, or at the beginning of the block."""
    if isinstance(edit, _Inserted):
        block, at = _gap(edit, places)
        read = {n.id for n in ast.walk(ast.parse(edit.code)) if isinstance(n, ast.Name)} - {ALIAS}
        bound = [i for i in range(at) if read & _bound(block[i])]
        to = bound[-1] if bound else first_of(block)
        if to < at:
            yield (_inserted(block, to, edit.code),)


def too_late(edit: Edit, places: Places) -> Iterator[Instead]:
    """At the end of its block."""
    if isinstance(edit, _Inserted):
        block, at = _gap(edit, places)
        if end_of(block) > at:
            yield (_inserted(block, end_of(block), edit.code),)


def outside(edit: Edit, places: Places) -> Iterator[Instead]:
    """One level further out: beside the loop, test or ``with`` that it stands in; of an expression, round the next one."""
    match edit:
        case Before() | After() | First():
            owner = places.owner(_gap(edit, places)[0])
            if owner is not None:
                beside = After if isinstance(edit, After) else Before
                yield (beside(Span.of(owner), edit.code),)
        case Enclose():
            owner = places.owner(places.block(places.statement(edit.first)))
            if owner is not None:
                yield (Enclose(Span.of(owner), Span.of(owner), edit.header),)
        case Wrap():
            node = places.expression(edit.node)
            above = places.parent.get(node) if node is not None else None
            if isinstance(above, ast.keyword):
                above = places.parent[above]
            if isinstance(above, ast.expr) and _is_read(above):
                yield (replace(edit, node=Span.of(above)),)
            loop = _head(node, places)
            wider = places.loop_around(loop) if loop is not None else None
            if wider is not None:
                yield (replace(edit, node=Span.of(wider.iter)),)


def inside(edit: Edit, places: Places) -> Iterator[Instead]:
    """One level further in: in the loop, test or ``with`` beside which it stands; of an expression, round a part of it."""
    match edit:
        case Before() | After():
            body = body_of(places.statement(edit.stmt))
            if body:
                at = end_of(body) if isinstance(edit, After) else 0
                yield (_inserted(body, at, edit.code),)
        case First():
            inner = [n for s in _gap(edit, places)[0] for n in ast.walk(s) if isinstance(n, ast.For)]
            if inner:
                yield (First(Span.of(inner[0]), edit.code),)
        case Enclose():
            body = body_of(places.statement(edit.first))
            if body and edit.first == edit.last:
                yield (Enclose(Span.of(body[0]), Span.of(body[-1]), edit.header),)
        case Wrap():
            node = places.expression(edit.node)
            if node is not None and (part := _part(node)) is not None:
                yield (replace(edit, node=Span.of(part)),)
            loop = _head(node, places)
            if loop is not None:
                deeper = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.For)]
                if deeper:
                    yield (replace(edit, node=Span.of(deeper[0].iter)),)


def on_rank_0(edit: Edit, places: Places) -> Iterator[Instead]:
    """Only rank 0 comes there: a test where there was none."""
    if isinstance(edit, _Inserted) and f"{ALIAS}." in edit.code:
        lines = "".join(f"\n    {line}" for line in edit.code.splitlines())
        yield (replace(edit, code=f"if {ALIAS}.is_main():{lines}"),)


def statement_more(edit: Edit, places: Places) -> Iterator[Instead]:
    """The next statement stands under the header as well."""
    if isinstance(edit, Enclose):
        last = places.statement(edit.last)
        block = places.block(last)
        at = block.index(last) + 1
        if at < len(block):
            yield (replace(edit, last=Span.of(block[at])),)


def statement_less(edit: Edit, places: Places) -> Iterator[Instead]:
    """The last statement stands outside the header."""
    if isinstance(edit, Enclose) and edit.first != edit.last:
        last = places.statement(edit.last)
        block = places.block(last)
        yield (replace(edit, last=Span.of(block[block.index(last) - 1])),)


#: every operator by its name in the table
OPERATORS: dict[str, Operator] = {
    "missing": missing,
    "part missing": part_missing,
    "other side": other_side,
    "too early": too_early,
    "too late": too_late,
    "one level out": outside,
    "one level in": inside,
    "on rank 0 alone": on_rank_0,
    "a statement more": statement_more,
    "a statement less": statement_less,
}


def _gap(edit: _Inserted, places: Places) -> tuple[Block, int]:
    """The block in which code is inserted, and how many of its statements stand before it."""
    stmt = places.statement(edit.stmt)
    if isinstance(edit, First):
        body = body_of(stmt)
        docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        return body, int(docstring)
    block = places.block(stmt)
    return block, block.index(stmt) + isinstance(edit, After)


def _inserted(block: Block, at: int, code: str) -> Before | After:
    if at < len(block):
        return Before(Span.of(block[at]), code)
    return After(Span.of(block[-1]), code)


def _bound(stmt: ast.stmt) -> set[str]:
    """The names that a statement binds."""
    out = set()
    for node in ast.walk(stmt):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            out.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            out.add(node.name)
        elif isinstance(node, ast.alias):
            out.add((node.asname or node.name).partition(".")[0])
    return out


def _head(node: ast.expr | None, places: Places) -> ast.For | None:
    """The loop in whose head the expression stands."""
    at: ast.AST | None = node
    while isinstance(at, ast.expr):
        above = places.parent.get(at)
        if isinstance(above, ast.For) and above.iter is at:
            return above
        at = above
    return None


def _is_read(node: ast.expr) -> bool:
    if isinstance(node, ast.Starred | ast.JoinedStr | ast.FormattedValue | ast.Slice):
        return False
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _part(node: ast.expr) -> ast.expr | None:
    """The operand that comes first: the receiver of a method, the left side of an operator, an argument."""
    match node:
        case ast.Call(func=ast.Attribute(value=part)) if not isinstance(part, ast.Name):
            return part
        case ast.Call(args=[part, *_]) if _is_read(part):
            return part
        case ast.Attribute(value=part) | ast.Subscript(value=part):
            return part
        case ast.Compare(left=part) | ast.BinOp(left=part) | ast.UnaryOp(operand=part):
            return part
        case ast.BoolOp(values=[part, *_]):
            return part
    return None
