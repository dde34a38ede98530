"""Methods of lists and sets; some of them are those of dictionaries as well."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import counting, divergence, placements, sample_orders, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.containers import FACTORY
from dpmigrate.execution.item_assignment import ItemStoreParts
from dpmigrate.execution.joins import WIDTH, join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.objects import ELEMENTS, LENGTH, Object
from dpmigrate.execution.values import NONE, NOTHING, SETTING, Const, Data, Ref, Value, atoms, value


def _append(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(0) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    grown, count = dict(m.grown.get(made.number, {})), m.length(made)
    m.append(made, _as_one(m, made, new, node))
    if grown:
        m.grown[made.number] = grown
    counting.appended(m, made, count, node)
    return NONE


def _as_one(m: ItemStoreParts, made: Object, new: Value, node: ast.AST) -> Value:
    """A list that is written out where it is put behind others, as one with the first of many that the same place has made: nothing else holds any of
    them.
    """
    before = m.heap.read((made.number, ELEMENTS)) or NOTHING
    written = isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.List)
    if len(before) < WIDTH // 2 or not written or len(new) != 1:
        return new
    own = m.object(new[0])
    alike = [o for o in m.objects(before) if own is not None and o.kind == own.kind == "list" and o.node is own.node]
    if own is None or own in alike or len(alike) < WIDTH // 4:
        return new
    first = alike[0]
    m.collapse(first)
    m.heap.widen((first.number, ELEMENTS), m.contents(own))
    differs = tuple(a for a in m.heap.read((own.number, LENGTH)) or NOTHING if isinstance(a, Data))
    if differs:
        m.heap.widen((first.number, LENGTH), differs)
    return value(Ref(first.number))


def _insert(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(1) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    index = a.get(0) or SETTING
    _put_at(m, made, index, new)
    m.mixed(made, m.parting(index, node))
    return NONE


def _append_left(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = a.get(0) or SETTING
    m.event("append", node, f, owner=value(Ref(made.number)), new=new)
    _put_at(m, made, value(Const("int", 0)), new)
    return NONE


def _put_at(m: ItemStoreParts, made: Object, index: Value, new: Value) -> None:
    """A new item before the one at an index."""
    held, at = _held(m, made), m.constant(index)
    if held is None or at is None or not isinstance(at.value, int):
        m.collapse(made)
        m.heap.widen((made.number, ELEMENTS), new)
        return
    held.insert(at.value, new)
    _replace(m, made, held)


def _held(m: ItemStoreParts, made: Object) -> list[Value] | None:
    """The items where they are known one by one and no other list of the same place is alive."""
    return None if made.many and made.kept else m.members(value(Ref(made.number)))


def _replace(m: ItemStoreParts, made: Object, held: list[Value]) -> None:
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


def _add(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
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


def _extend(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
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
        some = m.some_of_each(made, node, f)
        if some:  # what it has of the samples before is theirs still
            counting.otherwise(m, made)
        m.collapse(made, changed=not some)
        if made.kind == "set":
            elements = divergence.in_no_order(elements)
        if m.each_sample and not some:
            elements = samples.of_some(elements, node)
        m.heap.widen((made.number, ELEMENTS), samples.kept(elements, node) if some else elements or NOTHING)
        m.more_of(made, [given], some=some)
        count = m.apart_in(m.contents(made)) if made.kind == "set" else NOTHING
        if count:
            m.heap.write((made.number, LENGTH), count)
    return NONE


def _list_pop(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    index = a.get(0) or value(Const("int", -1))
    m.may_raise(m.parting((*index, *m.count(made)), node), "IndexError")
    found = m._chosen(_taken(m, made, index), index, node)
    m.mixed(made, m.parting(index, node))
    return found


def _pop_left(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.may_raise(m.parting(m.count(made), node), "IndexError")
    return _taken(m, made, value(Const("int", 0)))


def _set_pop(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.may_raise(m.parting(m.count(made), node), "KeyError")
    return divergence.in_some_order(_taken(m, made, SETTING), node)


def _taken(m: ItemStoreParts, made: Object, index: Value) -> Value:
    """The item at an index, which is taken out."""
    found = m.contents(made)
    held, at = _held(m, made), m.constant(index)
    if held and at is not None and isinstance(at.value, int) and -len(held) <= at.value < len(held):
        taken = held.pop(at.value)
        _replace(m, made, held)
        return taken
    m.collapse(made)
    return found


def _reverse(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    held = _held(m, made)
    if held is None:
        if not _in_order(m, made, node, sample_orders.REVERSED):
            m.collapse(made)
    else:
        _replace(m, made, held[::-1])
    return NONE


def _union(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    others = [m.taken(v, node, f) for v in a.all()]
    by = [value(Ref(made.number)), *a.all()]
    return m.listed([m.contents(made), *others], node, f, exact=False, kind="set", by=by)


def _some(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """Some of the items, by what the others hold."""
    if any(m.depends(v).kind not in placements.EQUAL for v in a.all()):
        return m.opaque_result([m.contents(made), *a.all()], "items of a set", node, f)
    by = [value(Ref(made.number)), *a.all()]
    return m.listed([m.contents(made)], node, f, exact=False, kind="set", by=by)


def clear(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
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


def _rotate(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    m.collapse(made)
    m.mixed(made, m.parting(join(*a.all()), node))
    return NONE


def _remove(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
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


def _kept(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    """Some of a set's items stay, by what the others hold."""
    for v in a.all():
        _remove(m, made, Arguments([m.taken(v, node, f)]), node, f)
    m.more_of(made, list(a.all()))
    return NONE


def _sort(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    order = m.order_of(value(Ref(made.number)), a, node, f)
    if _in_order(m, made, node, (node, made.number)):
        return NONE
    m.collapse(made)
    held = m.heap.read((made.number, ELEMENTS))
    if held:
        m.heap.write((made.number, ELEMENTS), divergence.in_no_order(held))
    m.mixed(made, order)
    return NONE


def _in_order(m: ItemStoreParts, made: Object, node: ast.AST, by: object) -> bool:
    """Give a list of one item for each sample another order, if it is one: each is that of its sample still."""
    held = m.heap.read((made.number, ELEMENTS)) or NOTHING
    of_each = bool(held) and samples.all_of_batch(m, made, one=True)
    if of_each:
        m.heap.write((made.number, ELEMENTS), sample_orders.reordered(m, held, node, by))
    return of_each


def copied(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    new = m.heap.new(made.kind, made.name, node, f.context)
    for k, v in m.heap.names(made.number):
        m.heap.put((new.number, k), v)
    return value(Ref(new.number))


def counted(m: ItemStoreParts, made: Object, a: Arguments, node: ast.AST, f: Frame) -> Value:
    return m.opaque_result([m.contents(made), *a.all()], "count", node, f)


LIST_METHODS: dict[str, Callable[..., Value | None]] = {
    "append": _append, "appendleft": _append_left, "insert": _insert, "extend": _extend,
    "pop": _list_pop, "popleft": _pop_left, "clear": clear, "sort": _sort,
    "reverse": _reverse, "remove": _remove, "copy": copied, "index": counted,
    "count": counted, "rotate": _rotate,
}  # fmt: skip
SET_METHODS: dict[str, Callable[..., Value | None]] = {
    "add": _add, "update": _extend, "discard": _remove, "remove": _remove,
    "clear": clear, "copy": copied, "pop": _set_pop, "union": _union,
    "intersection": _some, "difference": _some, "symmetric_difference": _union,
    "intersection_update": _kept, "difference_update": _kept,
}  # fmt: skip
