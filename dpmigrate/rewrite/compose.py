"""The edits of all findings as one plan: the same whatever the order of the rules, with contradictions named.

Two edits that cannot both be carried out are a bug of two rules: ``Conflict`` names them, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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
from dpmigrate.rewrite.meaning import Places, bindings, joined, meaning, same_header, tree_of

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
        where = "" if isinstance(first[0], AddImport) else f" at line {span_of(first[0]).line}"
        super().__init__(f"{first[1]} and {second[1]} contradict each other{where}: {why}")
        self.first = first
        self.second = second


def compose(findings: Iterable[Finding], text: str | None = None) -> Plan:
    """One plan out of the edits of all findings; raises ``Conflict``.

    With the ``text`` of the file, which has to parse, edits are also compared by what they make of it.
    """
    owned = _without_deleted(_distinct(findings))
    if text is not None:
        owned = _compared(owned, Places(text))
    owned = _merged_imports(_merged_headers(owned))
    for check in (_check_replaced, _check_values, _check_names, _check_enclosed, _check_imports):
        check(owned)
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
    """Every meaning once, owned by the smallest code; by place, kind, code and text, never by the order of the rules."""
    owners: dict[Edit, str] = {}
    for finding in findings:
        for edit in finding.edits:
            owners[edit] = min(finding.code, owners.get(edit, finding.code))
    said: dict[Hashable, list[_Owned]] = {}
    for edit, code in _sorted(owners.items()):
        alike = said.setdefault(meaning(edit), [])
        for place, (other, owner) in enumerate(alike):
            both = joined(other, edit)
            if both is not None:
                alike[place] = (both, owner)
                break
        else:
            alike.append((edit, code))
    return _sorted(one for alike in said.values() for one in alike)


def _sorted(owned: Iterable[_Owned]) -> list[_Owned]:
    return sorted(owned, key=lambda one: (span_of(one[0]), _KINDS.index(type(one[0])), one[1], repr(one[0])))


def _compared(owned: Sequence[_Owned], places: Places) -> list[_Owned]:
    """Without edits that come to the same as another one, and without those of a value that is dropped; raises ``Conflict`` for a value that two give."""
    left = [one for one in owned if not any(_comes_to(one[0], other[0], places) for other in owned)]
    values = [(one, places.value(one[0])) for one in left]
    dropped = [value for one, value in values if value is not None and isinstance(one[0], DropArg | DropItem)]
    left = [one for one in left if not any(_within(span_of(one[0]), value) for value in dropped)]
    for one, value in values:
        for other in left:
            if value is not None and one in left and isinstance(one[0], SetArg | SetItem) and _within(span_of(other[0]), value):
                raise Conflict(one, other, "the first gives an argument or item a new value, the second changes the old one")
    return left


def _comes_to(one: Edit, other: Edit, places: Places) -> bool:
    """Whether the other edit makes the same of the file; what goes on inside its expression survives it."""
    where = one.node if isinstance(one, Replace) else places.value(one) if isinstance(one, SetArg | SetItem) else None
    kinds = (Wrap, MainOnly) if isinstance(one, Replace) else (Wrap, MainOnly, Replace)
    if where is None or not isinstance(other, kinds) or span_of(other) != where:
        return False
    made = places.result(one)
    return made is not None and made == places.result(other)


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
        raise Conflict(first, second, "different wishes for one argument or item")
    for first, second in _pairs(owned, _place):
        raise Conflict(first, second, "two names for one positional argument")


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
    """Under a guard no equal guard is needed, and overlapping ranges of one guard are one range."""
    owned = list(owned)
    pair = _overlapping(owned)
    while pair is not None:
        first, second = pair
        assert isinstance(first[0], Enclose) and isinstance(second[0], Enclose)
        both = (replace(first[0], last=second[0].last), min(first[1], second[1]))
        owned = _sorted([both, *(one for one in owned if one not in (first, second))])
        pair = _overlapping(owned)
    guards = [edit for edit, _ in owned if isinstance(edit, Enclose)]

    def under(edit: Enclose | Hoist) -> bool:
        """Whether the next header round the edit is an equal one."""
        span = span_of(edit)
        around = [g for g in guards if g is not edit and _within(span, span_of(g))]
        return bool(around) and same_header(edit, min(around, key=lambda g: _size(span_of(g))))

    out: list[_Owned] = []
    for edit, code in owned:
        if isinstance(edit, Hoist) and edit.header and under(edit):
            out.append((replace(edit, header=""), code))
        elif not (isinstance(edit, Enclose) and under(edit)):
            out.append((edit, code))
    return out


def _size(span: Span) -> tuple[int, int]:
    """For comparing spans that lie inside each other."""
    return span.end_line - span.line, -span.line


def _overlapping(owned: Sequence[_Owned]) -> tuple[_Owned, _Owned] | None:
    """Two guards of one header that have statements in common, and each one that the other has not."""
    for first, second in _pairs(owned, lambda edit: tree_of(edit.header) if isinstance(edit, Enclose) else None):
        one, two = span_of(first[0]), span_of(second[0])
        if (two.line, two.col) < (one.end_line, one.end_col) and not (_within(one, two) or _within(two, one)):
            return first, second
    return None


def _merged_imports(owned: Sequence[_Owned]) -> list[_Owned]:
    """Without imports of names that others bring alike."""
    out: list[_Owned] = []
    bound: set[tuple[str, str]] = set()
    wide_first = sorted(owned, key=lambda one: -len(bindings(one[0])) if isinstance(one[0], AddImport) else 0)
    for one in wide_first:
        names = bindings(one[0]) if isinstance(one[0], AddImport) else frozenset()
        if not names or not names <= bound:
            out.append(one)
        bound |= names
    return _sorted(out)


def _check_imports(owned: Sequence[_Owned]) -> None:
    """A name means one thing."""
    imports = [one for one in owned if isinstance(one[0], AddImport)]
    for first, second in combinations(imports, 2):
        assert isinstance(first[0], AddImport) and isinstance(second[0], AddImport)
        one, other = dict(bindings(first[0])), dict(bindings(second[0]))
        for name in sorted(one.keys() & other.keys()):
            if one[name] != other[name]:
                raise Conflict(first, second, f"they import two things as {name}")
