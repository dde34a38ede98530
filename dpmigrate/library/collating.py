"""What the ``collate_fn`` of a loader makes of the samples: rows where each sample is by itself, and
what differs where samples meet each other in it.

The function is called with a list of as many samples as the rank has, each of which is one of them
(https://docs.pytorch.org/docs/stable/data.html#working-with-collate-fn).
"""

from __future__ import annotations

import ast

from dpmigrate.execution import placements, sample_orders, samples
from dpmigrate.execution.derivation import of_others
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import LENGTH, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    ONE,
    ONE_SAMPLE,
    OTHERS,
    Atom,
    Const,
    Data,
    Differs,
    Items,
    Origin,
    Ref,
    Setting,
    Value,
    atoms,
    const,
    data,
    known,
    origins,
    value,
)
from dpmigrate.library.sites import OF_ONE_SIZE, OF_SAMPLES, PART, WHICH_SAMPLE, Site

#: operations that give samples, or all of them, in another order, and those that tables do not know
_ORDERED = (*OF_SAMPLES, "some samples", "stored", "sort", "argsort", "topk")
_PLAIN = ("tensor", "array", "mask")
#: since when a batch is made of a rank's samples together
MEET = "samples meet where a batch is put together"
_SINGLE = ("number", "text")
#: since when a number is how many items a list of one sample has
HOW_MANY = "how many one sample has"


def putting_together(m: Machine) -> tuple[int, str]:
    """Where the loader stands of whose samples a function puts a batch together that is under way."""
    return m.heap.number(("batches",)), "put together"


def assembled(m: Machine) -> Value:
    """That loader; nothing where no such function is under way, as where an exception may have ended one."""
    loader = m.heap.read(putting_together(m)) or NOTHING
    return loader if all(isinstance(a, Ref) for a in loader) else NOTHING


def filling(m: Machine) -> tuple[int, str]:
    """Where it stands whether such a function fills samples up to the longest of the rank's."""
    return m.heap.number(("batches",)), "filled up"


def filled_up(m: Machine, size: Value) -> bool:
    """Whether samples are filled up to a size that a rank's samples have together; it is noted then.

    A number of one sample alone, as how much is missing of a size that is given, is none.
    """
    own = any(d.placement.kind in (Kind.PER_RANK, Kind.PARTIAL) for d in data(size))
    found = own and bool(assembled(m))
    if found:
        m.heap.write(filling(m), const(True))
    return found


def is_filled_up(m: Machine) -> bool:
    """Whether the function that put a batch together last has filled samples up to a size of them all."""
    return const(True)[0] in (m.heap.read(filling(m)) or ())


def is_put_together(site: Site, v: Value) -> bool:
    """Whether a list holds something for each sample of which a function puts a batch together."""
    lists = site.m.objects(v)
    each = bool(lists) and all(samples.all_of_batch(site.m, made, one=True) for made in lists)
    return each and bool(assembled(site.m))


def filled_out(site: Site, given: Value, word: str) -> Value:
    """A sample, or lists of those, filled up to a size that the rank's samples have together: it is what it was beside what fills it."""
    spoilt = site.m.whose([given])
    return tuple(a._replace(whose=spoilt) if isinstance(a, Data) else a for a in site.unknown(word))


def tagged(v: Value) -> bool:
    """Whether a value is the name of the kind of a container in a sample that outlives its branch."""
    return v in (const("<list>"), const("<dict>"))


def each(site: Site, v: Value) -> Value:
    """A sample as one of the rank's own: whatever it holds is the sample's."""
    origin = Origin(site.node, ONE_SAMPLE, Origin(site.node, WHICH_SAMPLE))
    return _all_own(site, v, origin, ())


def _all_own(site: Site, v: Value, origin: Origin, place: tuple[object, ...], depth: int = 3) -> Value:
    """A part of a sample as the sample's own."""
    owned = [_own(site, a, origin, (*place, i), depth) for i, a in enumerate(v)]
    made = [site.m.object(a) for a in owned]
    plain = all(isinstance(a, Data | Const | Items | Differs) or (o and samples.OF_A_SAMPLE in o.marks) for a, o in zip(owned, made, strict=True))
    if plain:  # which list it is differs by the sample alone, and whatever is in it is the sample's
        owned = [a for a in owned if not (isinstance(a, Differs) and a.origin and a.origin.word == WHICH_SAMPLE)]
    return join(*((a,) for a in owned))


def _own(site: Site, a: Atom, origin: Origin, place: tuple[object, ...], depth: int = 3) -> Atom:
    own = Origin(site.node, ONE_SAMPLE, Origin(site.node, OF_ONE_SIZE))
    order = sample_orders.IN_ORDER
    match a:
        case Items() if a.items and tagged(a.items[0]):
            return _container(site, a, origin, place)
        case Items():
            return Items(tuple(
                _all_own(site, v, origin, (*place, i), depth) for i, v in enumerate(a.items)
            ))  # fmt: skip
        case Data(placement=placements.Placement(kind=Kind.UNKNOWN)):
            return a
        case Data():
            sized = not any(o.word == WHICH_SAMPLE for o in origins(a.origin))
            origin = own if sized else origin
            # a number whose axes are not known may be what a file holds
            kind = "any" if a.kind == "number" and a.axes is None else a.kind
            return a._replace(kind=kind, placement=placements.PER_RANK, origin=origin, turn=False, whose=ONE, order=order)
        case Const(value=None):
            return a
        case Const():
            kind = "text" if isinstance(a.value, str) else "number"
            return Data(kind, placements.PER_RANK, origin=own, whose=ONE, order=order)
        case Setting():
            return Data("any", placements.PER_RANK, origin=own, whose=ONE, order=order)
        case Ref() if depth and (made := site.m.heap.objects[a.object]).kind in ("list", "dict"):
            return _held_by_all(site, made, origin, place, depth - 1)
    return a


def _held_by_all(site: Site, old: Object, origin: Origin, place: tuple[object, ...], depth: int) -> Ref:
    """A list or dictionary that the data set holds, and of which there is one for each sample."""
    fields = list(site.m.heap.names(old.number))
    made = site.m.heap.new(old.kind, old.kind, site.node, site.frame.context, key=("sample", place, old.number))
    made.marks.add(samples.OF_A_SAMPLE)
    for n, (name, held) in enumerate(fields):
        own = _all_own(site, held, origin, (*place, n), depth)
        site.m.heap.write((made.number, name), held if _is_note(name) else own)
    _own_length(site, made)
    return Ref(made.number)


def _container(site: Site, a: Items, origin: Origin, place: tuple[object, ...]) -> Ref:
    """A list or dictionary of a sample."""
    kind = str(known(a.items[0])).strip("<>")
    made = site.m.heap.new(kind, kind, site.node, site.frame.context, key=("sample", place))
    made.marks.add(samples.OF_A_SAMPLE)
    for n, (both,) in enumerate(a.items[1:]):
        assert isinstance(both, Items)
        name, held = both.items
        at = field(kind, name)
        own = _all_own(site, held, origin, (*place, n))
        site.m.heap.write((made.number, at), held if _is_note(at) else own)
    _own_length(site, made)
    return Ref(made.number)


def _own_length(site: Site, made: Object) -> None:
    """How many items a list of a sample has, where that is not the same number for each."""
    held = site.m.heap.read((made.number, LENGTH)) or NOTHING
    if made.kind == "list" and not (len(held) == 1 and isinstance(held[0], Const)):
        # as many as that sample has, and another one has others; with items of other samples it is no sample's number any more
        of_one = Origin(site.node, HOW_MANY, Origin(site.node, WHICH_SAMPLE))
        site.m.heap.write((made.number, LENGTH), value(Data("number", placements.PER_RANK, origin=of_one, order=sample_orders.IN_ORDER)))


def field(kind: str, name: Value) -> object:
    """The place of a container that has a name in a sample."""
    word = known(name)
    if kind == "dict" and not str(word).startswith(("#", "*")):
        return name[0]
    return int(word) if kind == "list" and isinstance(word, str) and word.isdigit() else word


def _is_note(place: object) -> bool:
    return isinstance(place, str) and place.startswith("#")


def stacked(site: Site, v: Value) -> Value:
    """``default_collate(samples)``: what each of the rank's samples holds, put together along a new
    first axis.
    """
    return join(*((_stacked(site, a),) for a in v))


def _stacked(site: Site, a: Atom) -> Atom:
    made = site.m.object(a)
    if made is not None and made.kind in ("list", "dict"):
        fields = list(site.m.heap.names(made.number))
        new = site.m.heap.new(made.kind, made.kind, site.node, site.frame.context, key=("stacked", made.number))
        for at, held in fields:
            site.m.heap.write((new.number, at), held if _is_note(at) else stacked(site, held))
        return Ref(new.number)
    match a:
        case Items():
            return Items(tuple(stacked(site, v) for v in a.items))
        case Data(kind="text"):
            return a
        case Data() if samples.is_one(a):
            axes = 0 if a.kind == "number" else a.axes
            more = None if axes is None else axes + 1
            return a._replace(kind="tensor", placement=placements.rows(), axes=more, whose="")
    return a


def seen(v: Value) -> bool:
    """Whether all of a sample is seen: nothing in it is an object, whose fields are not known to be the
    sample's.
    """
    return all(isinstance(a, Data | Const) and _established(a) for a in atoms(v))


def _established(a: Atom) -> bool:
    return not isinstance(a, Data) or (a.placement.kind is not Kind.UNKNOWN and a.kind != "any")


def followed(found: list[Atom]) -> bool:
    """Whether something of what is given is seen to be made of the samples."""
    return any(samples.is_one(a) or (isinstance(a, Data) and a.placement.kind is Kind.ROWS) for a in found)


def meet(a: Data) -> bool:
    """Whether samples meet in what a ``collate_fn`` gives: an operation on what was put together of
    them that makes no rows of it.
    """
    if a.kind in _SINGLE or a.origin is None or a.axes == 0:
        return False
    if a.placement.kind in (Kind.PARTIAL, Kind.RATIO) or (of_others(a) and a.whose == OTHERS):
        return True
    if a.placement.kind is not Kind.PER_RANK:
        return False
    first = a.origin
    if first.word == PART:
        return isinstance(first.node, ast.Subscript) and _cut(first.node.slice)
    return bool(a.bent and first.word not in _ORDERED)


def differing(a: Data, loader: int) -> Data:
    """What samples meet in: no exchange between ranks mends it, since workers have no part in those."""
    assert a.origin is not None
    origin = Origin(a.origin.node, MEET, a.origin)
    sources, none = a.sources | {loader}, frozenset[ast.AST]()
    return a._replace(placement=placements.PER_RANK, origin=origin, sources=sources, bent=none, whose="", order=frozenset())


def _cut(index: ast.expr) -> bool:
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    return isinstance(first, ast.Slice)


def constant(a: Data) -> bool:
    """Whether a tensor is none of the samples', nor drawn for them."""
    plain = a.kind in _PLAIN and not a.sources and not a.turn
    return plain and a.placement.kind in placements.EQUAL and bool(a.axes)


def own_items(m: Machine, made: Object, loader: int, *, ordered: bool) -> Value | None:
    """What a list with an item for each sample holds; None where it is not one. ``ordered``: its order is not that of all."""
    held = m.contents(made)
    if not held or not all(map(samples.is_one, held)) or not samples.all_of_batch(m, made, one=True):
        return None
    own = [a._replace(sources=a.sources | {loader}) for a in held if isinstance(a, Data)]
    return value(*(a if ordered else a._replace(order=frozenset()) for a in own))
