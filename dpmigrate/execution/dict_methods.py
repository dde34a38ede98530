"""Methods of dictionaries, ``Counter`` among them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import divergence
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.item_assignment import ItemStoreParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, EXISTS, KEYS, Object
from dpmigrate.execution.sequence_methods import clear, copied, counted
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    OTHERS,
    SETTING,
    UNBOUND,
    Const,
    Ref,
    Unknown,
    Value,
    items,
    value,
)

#: what a dictionary of counts is told by
COUNTS = "counts"


def _get(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    key = a.get(0) or SETTING
    constant = m.constant(key)
    default = a.get(1) or NONE
    keys = m.heap.read((made.number, KEYS)) or NOTHING
    parted = divergence.presence(keys) or m.parting(m.bound(keys), node)
    if constant is None:
        parted = parted or m.keys_apart(made)
        found = m._chosen(join(m.contents(made), default), key, node)
        return divergence.differing(found, parted) if parted is not None else found
    held = m.heap.read((made.number, constant))
    rest = m.heap.read((made.number, ELEMENTS)) or NOTHING
    if held is None:
        found = join(rest, default)
    elif UNBOUND in held or rest:
        found, parted = join(m.bound(held), rest, default), divergence.presence(held) or parted
    else:
        return held
    # who has the key has what is stored there, the others the default
    return divergence.differing(found, parted) if parted is not None and rest + (held or ()) else found


def _setdefault(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, a, node, f)
    m._set_dict(made, a.get(0) or SETTING, found, node)
    return found


def _dict_pop(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, Arguments([a.get(0) or SETTING, a.get(1) or NOTHING]), node, f)
    if a.get(1) is not None and m.tries:
        tries, m.tries = m.tries, []
        m.remove(made, a.get(0) or SETTING, node)
        m.tries = tries
    else:
        m.remove(made, a.get(0) or SETTING, node)
    return found or SETTING


def _pop_item(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = items([m.elements(value(Ref(made.number)), node, f) or SETTING, m.contents(made)])
    m.remove(made, SETTING, node)
    return found


def _keys(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        return m.listed(known, node, f)
    own = value(Ref(made.number))
    return m.listed([m.elements(own, node, f)], node, f, exact=False, by=[own])


def _values(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed(found, node, f)
    return m.listed([m.contents(made)], node, f, exact=False, by=[value(Ref(made.number))])


def _items(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed([items(pair) for pair in zip(known, found, strict=True)], node, f)
    own = value(Ref(made.number))
    keys = m.elements(own, node, f) or SETTING
    return m.listed([items([keys, m.contents(made)])], node, f, exact=False, by=[own])


def _most_common(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """The keys of a ``Counter`` with their counts, in an order that the counts say."""
    own = value(Ref(made.number))
    keys = m.elements(own, node, f) or SETTING
    return m.listed([items([keys, m.contents(made)])], node, f, exact=False, by=[own])


def _counts(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """``update``, ``subtract`` of a ``Counter``: what is given is counted, or counts."""
    for v in (*a.positional, a.star):
        keys = m.taken(v, node, f)
        m.heap.widen((made.number, KEYS), keys or SETTING)
        held = m.opaque_result([keys, v], "count", node, f)
        if m.each_sample and not m.heap.written_since(m.turns[-1], (made.number, EXISTS)):  # of the samples before, too
            held = tuple(a._replace(whose=OTHERS) if isinstance(a, Unknown) else a for a in held)
        m.heap.widen((made.number, ELEMENTS), held)
    for held in a.keywords.values():
        m.heap.widen((made.number, ELEMENTS), held)
    return NONE


def _update(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    if made.extra == COUNTS:
        return _counts(m, made, a, node, f)
    for v in (*a.positional, a.star):
        m.merge(made, v, node, f)
    for k, v in a.keywords.items():
        m.heap.put((made.number, Const("str", k)), v)
    if a.stars:
        m.heap.widen((made.number, ELEMENTS), a.stars)
    return NONE


def _nothing(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return NONE


DICT_METHODS: dict[str, Callable[..., Value | None]] = {
    "get": _get, "setdefault": _setdefault, "pop": _dict_pop, "keys": _keys,
    "values": _values, "items": _items, "update": _update, "clear": clear,
    "copy": copied, "popitem": _pop_item, "move_to_end": _nothing,
    "most_common": _most_common, "elements": _keys, "total": counted, "subtract": _counts,
}  # fmt: skip
