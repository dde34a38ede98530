"""Methods of lists, dictionaries and sets."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.containers import FACTORY
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.heap import ELEMENTS, Object
from dpmigrate.execution.items import ItemParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LENGTH
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    UNBOUND,
    Const,
    Ref,
    Value,
    items,
    join,
    value,
)


class ContainerMethodParts(ItemParts):
    """The methods of Python's own containers."""

    def container_method(
        self, made: Object, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """A method of a list, a dictionary or a set; None where it is none."""
        own: dict[str, Callable[..., Value | None]] = _METHODS.get(made.kind, {})
        method = own.get(name)
        return method(self, made, arguments, node, frame) if method is not None else None


def _append(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(1 if len(a.positional) > 1 else 0) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    m.append(made, new)
    return NONE


def _extend(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    given = a.get(0) or NOTHING
    m.event("append", node, f, owner=value(Ref(made.number)), new=m.elements(given, node, f))
    known = m.known_elements(given)
    if known is not None:
        for v in known:
            m.append(made, v)
    else:
        m.collapse(made)
        m.heap.widen((made.number, ELEMENTS), m.elements(given, node, f) or NOTHING)
    return NONE


def _list_pop(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = m.contents(made)
    count = m.length(made)
    if count and not a.positional:
        last = m.heap.read((made.number, count - 1)) or NOTHING
        m.heap.write((made.number, count - 1), None)
        m.heap.write((made.number, LENGTH), value(Const("int", count - 1)))
        return last
    m.collapse(made)
    return found


def _clear(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    for k in list(m.heap.fields.get(made.number, ())):
        if k != FACTORY:
            m.heap.write((made.number, k), None)
    if made.kind != "dict":
        m.heap.write((made.number, LENGTH), value(Const("int", 0)))
    return NONE


def _nothing(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return NONE


def _reorder(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.collapse(made)
    return NONE


def _copy(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = m.heap.new(made.kind, made.name, node, f.context)
    for k, v in m.heap.names(made.number):
        m.heap.write((new.number, k), v)
    return value(Ref(new.number))


def _count(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return m.opaque_result([m.contents(made)], "count", node, f)


def _get(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    key = a.get(0) or SETTING
    constant = m.constant(key)
    default = a.get(1) or NONE
    if constant is None:
        return join(m.contents(made), default)
    held = m.heap.read((made.number, constant))
    rest = m.heap.read((made.number, ELEMENTS)) or NOTHING
    if held is None:
        return join(rest, default)
    return join(m.bound(held), rest, default) if UNBOUND in held or rest else held


def _setdefault(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, a, node, f)
    m._set_dict(made, a.get(0) or SETTING, found, False)
    return found


def _dict_pop(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, Arguments([a.get(0) or SETTING, a.get(1) or NOTHING]), node, f)
    constant = m.constant(a.get(0) or SETTING)
    if constant is not None:
        m.heap.write((made.number, constant), None)
    return found or SETTING


def _keys(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        return m.listed(known, node, f)
    return m.listed([m.elements(value(Ref(made.number)), node, f)], node, f, exact=False)


def _values(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed(found, node, f)
    return m.listed([m.contents(made)], node, f, exact=False)


def _items(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed([items(pair) for pair in zip(known, found, strict=True)], node, f)
    keys = m.elements(value(Ref(made.number)), node, f) or SETTING
    return m.listed([items([keys, m.contents(made)])], node, f, exact=False)


def _update(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    if made.kind != "dict":
        return _extend(m, made, a, node, f)
    for v in (*a.positional, a.star):
        m.merge(made, v, node, f)
    for k, v in a.keywords.items():
        m.heap.write((made.number, Const("str", k)), v)
    if a.stars:
        m.heap.widen((made.number, ELEMENTS), a.stars)
    return NONE


_METHODS: dict[str, dict[str, Callable[..., Value | None]]] = {
    "list": {
        "append": _append, "appendleft": _append, "insert": _append, "extend": _extend,
        "pop": _list_pop, "popleft": _list_pop, "clear": _clear, "sort": _reorder,
        "reverse": _reorder, "remove": _reorder, "copy": _copy, "index": _count,
        "count": _count, "rotate": _reorder,
    },
    "set": {
        "add": _append, "update": _update, "discard": _reorder, "remove": _reorder,
        "clear": _clear, "copy": _copy, "pop": _list_pop, "union": _copy,
        "intersection": _copy, "difference": _copy,
    },
    "dict": {
        "get": _get, "setdefault": _setdefault, "pop": _dict_pop, "keys": _keys,
        "values": _values, "items": _items, "update": _update, "clear": _clear,
        "copy": _copy, "popitem": _values, "move_to_end": _nothing,
    },
}  # fmt: skip
