"""Methods of lists, dictionaries and sets."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import divergence, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.containers import FACTORY
from dpmigrate.execution.items import ItemParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.objects import ELEMENTS, KEYS, LENGTH, Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    UNBOUND,
    Const,
    Ref,
    Value,
    atoms,
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
#: what a dictionary of counts is told by
COUNTS = "counts"


def _append(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(0) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    m.append(made, new)
    return NONE


def _insert(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(1) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    index = a.get(0) or SETTING
    _put_at(m, made, index, new)
    m.mixed(made, m.parting(index, node))
    return NONE


def _append_left(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(0) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    _put_at(m, made, value(Const("int", 0)), new)
    return NONE


def _put_at(m: ItemParts, made: Object, index: Value, new: Value) -> None:
    """A new item before the one at an index."""
    held, at = _held(m, made), m.constant(index)
    if held is None or at is None or not isinstance(at.value, int):
        m.collapse(made)
        m.heap.widen((made.number, ELEMENTS), new)
        return
    held.insert(at.value, new)
    _replace(m, made, held)


def _held(m: ItemParts, made: Object) -> list[Value] | None:
    """The items where they are known one by one and no other list of the same place is alive."""
    return None if made.many and made.kept else m.members(value(Ref(made.number)))


def _replace(m: ItemParts, made: Object, held: list[Value]) -> None:
    """Give a list other items."""
    before = m.length(made) or 0
    if len(held) > LISTED:
        m.collapse(made)
        m.heap.widen((made.number, ELEMENTS), join(*held))
        return
    for i, v in enumerate(held):
        m.heap.write((made.number, i), v)
    for i in range(len(held), before):
        m.heap.write((made.number, i), None)
    m.heap.write((made.number, LENGTH), value(Const("int", len(held))))


def _add(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(0) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    held = _held(m, made)
    if held is not None and new in held and m.constant(new) is not None:
        return NONE
    if held is None or not all(m.constant(v) is not None for v in (*held, new)):
        m.collapse(made)
    m.append(made, new)
    count = m.apart_in(m.contents(made))
    if count:
        m.heap.write((made.number, LENGTH), count)
    return NONE


def _extend(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    given = a.get(0) or NOTHING
    elements = m.taken(given, node, f)
    m.event("append", node, f, owner=value(Ref(made.number)), new=elements)
    known = m.known_elements(given)
    if known is not None:
        for v in known:
            if made.kind == "set":
                _add(m, made, Arguments([v]), node, f)
            else:
                m.append(made, v)
    else:
        m.collapse(made)
        if made.kind == "set":
            elements = divergence.in_no_order(elements)
        m.heap.widen((made.number, ELEMENTS), elements or NOTHING)
        m.more_of(made, [given])
        count = m.apart_in(m.contents(made)) if made.kind == "set" else NOTHING
        if count:
            m.heap.write((made.number, LENGTH), count)
    return NONE


def _list_pop(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    index = a.get(0) or value(Const("int", -1))
    m.may_raise(m.parting((*index, *m.count(made)), node), "IndexError")
    found = m._chosen(_taken(m, made, index), index, node)
    m.mixed(made, m.parting(index, node))
    return found


def _pop_left(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.may_raise(m.parting(m.count(made), node), "IndexError")
    return _taken(m, made, value(Const("int", 0)))


def _set_pop(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.may_raise(m.parting(m.count(made), node), "KeyError")
    return divergence.in_some_order(_taken(m, made, SETTING), node)


def _taken(m: ItemParts, made: Object, index: Value) -> Value:
    """The item at an index, which is taken out."""
    found = m.contents(made)
    held, at = _held(m, made), m.constant(index)
    if held and at is not None and isinstance(at.value, int) and -len(held) <= at.value < len(held):
        taken = held.pop(at.value)
        _replace(m, made, held)
        return taken
    m.collapse(made)
    return found


def _reverse(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    held = _held(m, made)
    if held is None:
        m.collapse(made)
    else:
        _replace(m, made, held[::-1])
    return NONE


def _union(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    others = [m.taken(v, node, f) for v in a.all()]
    by = [value(Ref(made.number)), *a.all()]
    return m.listed([m.contents(made), *others], node, f, exact=False, kind="set", by=by)


def _some(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """Some of the items, by what the others hold."""
    if any(m.depends(v).kind not in placements.EQUAL for v in a.all()):
        return m.opaque_result([m.contents(made), *a.all()], "items of a set", node, f)
    by = [value(Ref(made.number)), *a.all()]
    return m.listed([m.contents(made)], node, f, exact=False, kind="set", by=by)


def _pop_item(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = items([m.elements(value(Ref(made.number)), node, f) or SETTING, m.contents(made)])
    m.remove(made, SETTING, node)
    return found


def _clear(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    if made.many and made.kept:
        if made.kind != "dict":
            m.collapse(made)
        return NONE
    for k in list(m.heap.fields.get(made.number, ())):
        if k != FACTORY:
            m.heap.write((made.number, k), None)
    if made.kind != "dict":
        m.heap.write((made.number, LENGTH), value(Const("int", 0)))
    return NONE


def _nothing(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return NONE


def _rotate(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.collapse(made)
    m.mixed(made, m.parting(join(*a.all()), node))
    return NONE


def _remove(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """An item goes that equals what is given: of a set, or where it is there."""
    held = join(m.contents(made), *a.all())
    m.collapse(made)
    if m.depends(held).kind in placements.EQUAL:
        return NONE
    parted = m.parting(tuple(atoms(held)), node)
    m.mixed(made, parted)
    m.may_raise(parted, "KeyError" if made.kind == "set" else "ValueError")
    if made.kind == "set" and parted is not None:
        m.heap.write((made.number, LENGTH), divergence.differing(SETTING, parted))
    return NONE


def _kept(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """Some of a set's items stay, by what the others hold."""
    for v in a.all():
        _remove(m, made, Arguments([m.taken(v, node, f)]), node, f)
    m.more_of(made, list(a.all()))
    return NONE


def _sort(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    order = m.order_of(value(Ref(made.number)), a, node, f)
    m.collapse(made)
    held = m.heap.read((made.number, ELEMENTS))
    if held:
        m.heap.write((made.number, ELEMENTS), divergence.in_no_order(held))
    m.mixed(made, order)
    return NONE


def _copy(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = m.heap.new(made.kind, made.name, node, f.context)
    for k, v in m.heap.names(made.number):
        m.heap.put((new.number, k), v)
    return value(Ref(new.number))


def _count(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return m.opaque_result([m.contents(made), *a.all()], "count", node, f)


def _get(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
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


def _setdefault(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, a, node, f)
    m._set_dict(made, a.get(0) or SETTING, found, node)
    return found


def _dict_pop(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    found = _get(m, made, Arguments([a.get(0) or SETTING, a.get(1) or NOTHING]), node, f)
    if a.get(1) is not None and m.tries:
        tries, m.tries = m.tries, []
        m.remove(made, a.get(0) or SETTING, node)
        m.tries = tries
    else:
        m.remove(made, a.get(0) or SETTING, node)
    return found or SETTING


def _keys(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        return m.listed(known, node, f)
    own = value(Ref(made.number))
    return m.listed([m.elements(own, node, f)], node, f, exact=False, by=[own])


def _values(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed(found, node, f)
    return m.listed([m.contents(made)], node, f, exact=False, by=[value(Ref(made.number))])


def _items(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    known = m.known_elements(value(Ref(made.number)))
    if known is not None:
        found = [m.heap.read((made.number, k)) or NOTHING for v in known for k in v]
        return m.listed([items(pair) for pair in zip(known, found, strict=True)], node, f)
    own = value(Ref(made.number))
    keys = m.elements(own, node, f) or SETTING
    return m.listed([items([keys, m.contents(made)])], node, f, exact=False, by=[own])


def _most_common(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """The keys of a ``Counter`` with their counts, in an order that the counts say."""
    own = value(Ref(made.number))
    keys = m.elements(own, node, f) or SETTING
    return m.listed([items([keys, m.contents(made)])], node, f, exact=False, by=[own])


def _counts(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """``update``, ``subtract`` of a ``Counter``: what is given is counted, or counts."""
    for v in (*a.positional, a.star):
        keys = m.taken(v, node, f)
        m.heap.widen((made.number, KEYS), keys or SETTING)
        m.heap.widen((made.number, ELEMENTS), m.opaque_result([keys, v], "count", node, f))
    for held in a.keywords.values():
        m.heap.widen((made.number, ELEMENTS), held)
    return NONE


def _update(m: ItemParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    if made.kind != "dict":
        return _extend(m, made, a, node, f)
    if made.extra == COUNTS:
        return _counts(m, made, a, node, f)
    for v in (*a.positional, a.star):
        m.merge(made, v, node, f)
    for k, v in a.keywords.items():
        m.heap.put((made.number, Const("str", k)), v)
    if a.stars:
        m.heap.widen((made.number, ELEMENTS), a.stars)
    return NONE


_METHODS: dict[str, dict[str, Callable[..., Value | None]]] = {
    "list": {
        "append": _append, "appendleft": _append_left, "insert": _insert, "extend": _extend,
        "pop": _list_pop, "popleft": _pop_left, "clear": _clear, "sort": _sort,
        "reverse": _reverse, "remove": _remove, "copy": _copy, "index": _count,
        "count": _count, "rotate": _rotate,
    },
    "set": {
        "add": _add, "update": _update, "discard": _remove, "remove": _remove,
        "clear": _clear, "copy": _copy, "pop": _set_pop, "union": _union,
        "intersection": _some, "difference": _some, "symmetric_difference": _union,
        "intersection_update": _kept, "difference_update": _kept,
    },
    "dict": {
        "get": _get, "setdefault": _setdefault, "pop": _dict_pop, "keys": _keys,
        "values": _values, "items": _items, "update": _update, "clear": _clear,
        "copy": _copy, "popitem": _pop_item, "move_to_end": _nothing,
        "most_common": _most_common, "elements": _keys, "total": _count, "subtract": _counts,
    },
}  # fmt: skip
