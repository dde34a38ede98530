"""Arguments of a call and items of a dict display: a row of things between brackets, changed with its layout kept."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dpmigrate.edit import DropArg, DropItem, SetArg, SetItem
from dpmigrate.rewrite.anchors import Refused
from dpmigrate.rewrite.expressions import lone_generator_enclosed, parse_expression

_NONE = cst.SimpleWhitespace("")
_SPACE = cst.SimpleWhitespace(" ")
_EQUAL = cst.AssignEqual(whitespace_before=_NONE, whitespace_after=_NONE)
_Gap = cst.BaseParenthesizableWhitespace
_Item = cst.Arg | cst.BaseDictElement


@dataclass
class _Entry:
    """One thing of a row, its comma, and the space up to the next thing or the closing bracket."""

    node: _Item
    comma: cst.Comma | None
    gap: _Gap


@dataclass
class _Row:
    """Things between brackets; ``opening`` is the space after the opening one."""

    opening: _Gap
    entries: list[_Entry]

    def insert(self, index: int, node: _Item) -> None:
        """Put ``node`` at ``index``: on a line of its own where all the others have one."""
        break_ = self._line_break()
        separator = break_ or _SPACE
        if index < len(self.entries):
            self.entries.insert(index, _Entry(node, cst.Comma(), separator))
        elif not self.entries:
            self.opening = self.opening if _comments(self.opening) else _NONE
            self.entries.append(_Entry(node, None, _NONE))
        else:
            last = self.entries[-1]
            self.entries.append(_Entry(node, None if last.comma is None else cst.Comma(), last.gap))
            last.comma = last.comma or cst.Comma()
            if break_ is not None and isinstance(last.gap, cst.ParenthesizedWhitespace):
                self.entries[-1].gap = last.gap.with_changes(first_line=cst.TrailingWhitespace())
                last.gap = break_.with_changes(first_line=last.gap.first_line)
            else:
                last.gap = separator

    def remove(self, index: int) -> None:
        """Take out the thing at ``index`` with its line, or with the space that it leaves."""
        before = self.entries[index - 1].gap if index else self.opening
        gone = self.entries.pop(index)
        last = index == len(self.entries)
        gap = _joined(before, gone.gap, first=not index, last=last)
        if not self.entries:
            gap = gap if _comments(gap) else _NONE
        elif last:
            self.entries[-1].comma = gone.comma and self.entries[-1].comma
        if index:
            self.entries[index - 1].gap = gap
        else:
            self.opening = gap

    def _line_break(self) -> cst.ParenthesizedWhitespace | None:
        """The space before a line's only thing, without comments; None where things share lines."""
        gaps = [entry.gap for entry in self.entries[:-1]]
        gaps = gaps or [self.opening]
        first = self.opening if isinstance(self.opening, cst.ParenthesizedWhitespace) else gaps[0]
        if isinstance(first, cst.ParenthesizedWhitespace) and all(isinstance(gap, cst.ParenthesizedWhitespace) for gap in gaps):
            return first.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())
        return None


def _comments(gap: _Gap) -> bool:
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return False
    return gap.first_line.comment is not None or any(line.comment for line in gap.empty_lines)


def _joined(before: _Gap, after: _Gap, *, first: bool, last: bool) -> _Gap:
    """What remains of the spaces around a thing that goes: its line goes, with the comment at its end; other comments stay."""
    if isinstance(before, cst.ParenthesizedWhitespace):
        if isinstance(after, cst.ParenthesizedWhitespace):
            lines = (*before.empty_lines, *after.empty_lines)
            return before.with_changes(empty_lines=lines, indent=after.indent, last_line=after.last_line)
        return after if last and not first and not _comments(before) else before
    if isinstance(after, cst.ParenthesizedWhitespace):
        return before if first and not _comments(after) else after
    return after if last else before


def _read_args(call: cst.Call) -> _Row:
    entries = []
    for arg in call.args:
        if isinstance(arg.comma, cst.Comma):
            entries.append(_Entry(arg, arg.comma, arg.comma.whitespace_after))
        else:
            entries.append(_Entry(arg.with_changes(whitespace_after_arg=_NONE), None, arg.whitespace_after_arg))
    return _Row(call.whitespace_before_args, entries)


def _write_args(call: cst.Call, row: _Row) -> cst.Call:
    args = []
    for entry in row.entries:
        if entry.comma is not None:
            args.append(entry.node.with_changes(comma=entry.comma.with_changes(whitespace_after=entry.gap)))
        else:
            args.append(entry.node.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=entry.gap))
    return call.with_changes(whitespace_before_args=row.opening, args=args)


def _read_items(display: cst.Dict) -> _Row:
    entries = []
    for element in display.elements:
        comma = element.comma if isinstance(element.comma, cst.Comma) else None
        entries.append(_Entry(element, comma, _NONE if comma is None else comma.whitespace_after))
    if entries:
        entries[-1].gap = display.rbrace.whitespace_before
    return _Row(display.lbrace.whitespace_after, entries)


def _write_items(display: cst.Dict, row: _Row) -> cst.Dict:
    elements = []
    for entry in row.entries:
        gap = _NONE if entry is row.entries[-1] else entry.gap
        comma = cst.MaybeSentinel.DEFAULT if entry.comma is None else entry.comma.with_changes(whitespace_after=gap)
        elements.append(entry.node.with_changes(comma=comma))
    closing = row.entries[-1].gap if row.entries else _NONE
    return display.with_changes(
        elements=elements,
        lbrace=display.lbrace.with_changes(whitespace_after=row.opening),
        rbrace=display.rbrace.with_changes(whitespace_before=closing),
    )


def set_arg(call: cst.Call, edit: SetArg, untouched: frozenset[cst.CSTNode]) -> cst.Call:
    """The call with ``name=value``. A value that another edit changed (not ``untouched``) must not be overwritten."""
    value = parse_expression(edit.value)
    index = _find_arg(call, edit.name, edit.index)
    if index is not None:
        old = call.args[index]
        if old.value not in untouched:
            raise Refused(f"two edits for the argument {edit.name!r}", edit.call)
        return call.with_changes(args=[*call.args[:index], old.with_changes(value=value), *call.args[index + 1 :]])
    call = call.with_changes(args=lone_generator_enclosed(call.args))
    row = _read_args(call)
    place = len(row.entries)
    while place and call.args[place - 1].star == "**":
        place -= 1
    row.insert(place, cst.Arg(value, keyword=cst.Name(edit.name), equal=_EQUAL))
    return _write_args(call, row)


def drop_arg(call: cst.Call, edit: DropArg) -> cst.Call:
    """The call without the argument; positional ones after it become keywords."""
    index = _find_arg(call, edit.name, edit.index)
    if index is None:
        raise Refused(f"no argument {edit.name!r} to drop", edit.call)
    positional = call.args[index].keyword is None
    row = _read_args(call)
    row.remove(index)
    if positional:
        _name_positionals(row.entries[index:], edit)
    return _write_args(call, row)


def _name_positionals(entries: list[_Entry], edit: DropArg) -> None:
    names = iter(edit.following)
    for entry in entries:
        arg = entry.node
        assert isinstance(arg, cst.Arg)
        if arg.keyword is not None or arg.star == "**":
            continue
        name = None if arg.star else next(names, None)
        if name is None:
            raise Refused(f"dropping {edit.name!r} would shift the arguments after it", edit.call)
        entry.node = arg.with_changes(keyword=cst.Name(name), equal=_EQUAL)


def _find_arg(call: cst.Call, name: str, index: int | None) -> int | None:
    for place, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == name:
            return place
    if index is None or index >= len(call.args) or any(arg.keyword or arg.star for arg in call.args[: index + 1]):
        return None
    return index


def set_item(display: cst.Dict, edit: SetItem, untouched: frozenset[cst.CSTNode]) -> cst.Dict:
    """The display with ``key: value``; a new item goes to the very end, where no ``**other`` can override it."""
    value = parse_expression(edit.value)
    places = _find_items(display, edit.key)
    if places:
        old = display.elements[places[-1]]
        if old.value not in untouched:
            raise Refused(f"two edits for the item {edit.key!r}", edit.dict)
        return display.with_changes(elements=[*display.elements[: places[-1]], old.with_changes(value=value), *display.elements[places[-1] + 1 :]])
    row = _read_items(display)
    row.insert(len(row.entries), cst.DictElement(cst.SimpleString(_quoted(edit.key, display)), value))
    return _write_items(display, row)


def drop_item(display: cst.Dict, edit: DropItem) -> cst.Dict:
    """The display without any item of this key."""
    places = _find_items(display, edit.key)
    if not places:
        raise Refused(f"no item {edit.key!r} to drop", edit.dict)
    row = _read_items(display)
    for place in reversed(places):
        row.remove(place)
    return _write_items(display, row)


def _find_items(display: cst.Dict, key: str) -> list[int]:
    return [
        place
        for place, element in enumerate(display.elements)
        if isinstance(element, cst.DictElement) and isinstance(element.key, (cst.SimpleString, cst.ConcatenatedString)) and element.key.evaluated_value == key
    ]


def _quoted(key: str, display: cst.Dict) -> str:
    """The key as a string in the quotes that the other keys have."""
    for element in display.elements:
        if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString) and element.key.quote == "'":
            return repr(key)
    return repr(key) if '"' in key else f'"{repr(key)[1:-1]}"'
