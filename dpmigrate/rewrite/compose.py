"""The edits of all findings as one plan: the same whatever the order of the rules, with contradictions named.

Two edits that cannot both be carried out are a bug of two rules: ``Conflict`` names them, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

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
from dpmigrate.model import Finding, Span

_Owned = tuple[Edit, str]  # an edit and the code of the finding that asks for it

#: in which order edits of one anchor stand in the plan
_KINDS = (Replace, DropArg, SetArg, DropItem, SetItem, MainOnly, Wrap, Hoist, First, Enclose, Before, Comment, After, Delete, AddImport)
_NOWHERE = Span(2**31, 0, 2**31, 0)


@dataclass(frozen=True)
class Plan:
    """Edits that can be carried out together, in their one order."""

    edits: tuple[Edit, ...]


class Conflict(Exception):
    """Two edits that contradict each other, each with the code of its finding."""

    def __init__(self, first: _Owned, second: _Owned, why: str) -> None:
        line = span_of(first[0]).line
        super().__init__(f"{first[1]} and {second[1]} contradict each other at line {line}: {why}")
        self.first = first
        self.second = second


def compose(findings: Iterable[Finding]) -> Plan:
    """One plan out of the edits of all findings; raises ``Conflict``."""
    owned = _without_deleted(_distinct(findings))
    for check in (_check_replaced, _check_values, _check_names, _check_enclosed):
        check(owned)
    owned = _merged_values(_merged_headers(owned))
    return Plan(tuple(edit for edit, _ in owned))


def span_of(edit: Edit) -> Span:
    """Where an edit stands; an ``Enclose`` from its first to its last statement, an import nowhere."""
    match edit:
        case SetArg() | DropArg() | MainOnly():
            return edit.call
        case SetItem() | DropItem():
            return edit.dict
        case Replace() | Wrap() | Hoist():
            return edit.node
        case Enclose():
            return Span(edit.first.line, edit.first.col, edit.last.end_line, edit.last.end_col)
        case AddImport():
            return _NOWHERE
        case _:
            return edit.stmt


def _distinct(findings: Iterable[Finding]) -> list[_Owned]:
    """Every edit once, owned by the smallest code; by place, kind, code and text, never by the order of the rules."""
    owners: dict[Edit, str] = {}
    for finding in findings:
        for edit in finding.edits:
            owners[edit] = min(finding.code, owners.get(edit, finding.code))
    return sorted(owners.items(), key=lambda one: (span_of(one[0]), _KINDS.index(type(one[0])), one[1], repr(one[0])))


def _within(inner: Span, outer: Span) -> bool:
    return (outer.line, outer.col) <= (inner.line, inner.col) and (inner.end_line, inner.end_col) <= (outer.end_line, outer.end_col)


def _without_deleted(owned: Sequence[_Owned]) -> list[_Owned]:
    """Deleted code needs no edits; what goes beside a deleted statement takes its place."""
    deleted = [edit.stmt for edit, _ in owned if isinstance(edit, Delete)]

    def survives(edit: Edit) -> bool:
        span = span_of(edit)
        beside = isinstance(edit, (Before, After, Delete))
        return not any(_within(span, stmt) and not (beside and span == stmt) for stmt in deleted)

    return [one for one in owned if survives(one[0])]


def _check_replaced(owned: Sequence[_Owned]) -> None:
    """Inside a replaced expression every other edit would be lost."""
    for one in owned:
        for other in owned:
            if isinstance(one[0], Replace) and other is not one and _is_inside_expression(other[0], one[0].node):
                raise Conflict(one, other, "the first replaces the expression that the second changes")


def _is_inside_expression(edit: Edit, node: Span) -> bool:
    span = span_of(edit)
    beside = isinstance(edit, (Before, After, Comment, Delete, First, Enclose))  # `f()` is a statement of the same span as its expression
    return _within(span, node) and not (beside and span == node)


def _pairs(owned: Sequence[_Owned], key: Callable[[Edit], object]) -> Iterator[tuple[_Owned, _Owned]]:
    """All pairs of edits that have a key in common."""
    groups: dict[object, list[_Owned]] = {}
    for one in owned:
        found = key(one[0])
        if found is not None:
            groups.setdefault(found, []).append(one)
    for group in groups.values():
        yield from combinations(group, 2)


def _argument(edit: Edit) -> object:
    match edit:
        case SetArg() | DropArg():
            return edit.call, edit.name
        case SetItem() | DropItem():
            return edit.dict, edit.key
    return None


def _place(edit: Edit) -> object:
    if isinstance(edit, (SetArg, DropArg)) and edit.index is not None:
        return edit.call, edit.index
    return None


def _check_values(owned: Sequence[_Owned]) -> None:
    """One argument or item has one value, and is not dropped at once."""
    for first, second in _pairs(owned, _argument):
        if not (isinstance(first[0], SetArg) and isinstance(second[0], SetArg) and _is_one_value(first[0], second[0])):
            raise Conflict(first, second, "different wishes for one argument or item")
    for first, second in _pairs(owned, _place):
        raise Conflict(first, second, "two names for one positional argument")


def _is_one_value(first: SetArg, second: SetArg) -> bool:
    return first.value == second.value and None in (first.index, second.index)


def _merged_values(owned: Sequence[_Owned]) -> list[_Owned]:
    """Of two equal values for one argument the one that knows its position."""
    placed = {replace(edit, index=None) for edit, _ in owned if isinstance(edit, SetArg) and edit.index is not None}
    return [one for one in owned if one[0] not in placed]


def _check_names(owned: Sequence[_Owned]) -> None:
    """One expression gets one wrapping, one new form and one name, and one name one expression."""
    for kind in (Wrap, MainOnly, Hoist):
        for first, second in _pairs(owned, lambda edit, kind=kind: span_of(edit) if isinstance(edit, kind) else None):  # type: ignore[misc]
            raise Conflict(first, second, f"two different {kind.__name__} edits for one expression")
    for first, second in _pairs(owned, lambda edit: edit.name if isinstance(edit, Hoist) else None):
        raise Conflict(first, second, "one name for two expressions")


def _check_enclosed(owned: Sequence[_Owned]) -> None:
    """Guards lie inside each other or apart."""
    for first, second in _pairs(owned, lambda edit: isinstance(edit, Enclose) or None):
        one, two = span_of(first[0]), span_of(second[0])
        if one == two:
            raise Conflict(first, second, "two headers for the same statements")
        apart = (one.end_line, one.end_col) <= (two.line, two.col)  # owned is sorted by place
        if not (apart or _within(one, two) or _within(two, one)):
            raise Conflict(first, second, "the enclosed statements overlap")


def _merged_headers(owned: Sequence[_Owned]) -> list[_Owned]:
    """Under a guard no equal guard is needed."""
    guards = [edit for edit, _ in owned if isinstance(edit, Enclose)]

    def needed(edit: Edit) -> bool:
        if not isinstance(edit, Enclose):
            return True
        return not any(other != edit and other.header == edit.header and _within(span_of(edit), span_of(other)) for other in guards)

    return [one for one in owned if needed(one[0])]
