"""Python's iterators: range, enumerate, zip, next
(https://docs.python.org/3/library/functions.html).
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmigrate.execution import arithmetic, counting, placements, sample_orders, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.containers import TAKEN
from dpmigrate.execution.divergence import apart, differing, some_order
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import ELEMENTS, LENGTH, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    PLACE,
    RESULTS,
    SETTING,
    Const,
    Data,
    Differs,
    Items,
    Origin,
    Ref,
    Setting,
    Value,
    const,
    data,
    items,
    only,
    value,
)
from dpmigrate.library.natures import OWN_TURN
from dpmigrate.library.sites import LEAST, Row, Site
from dpmigrate.library.sizes import size_of

_DOC = "https://docs.python.org/3/library/functions.html"
#: functions that take all items of what they are given, at once
AT_ONCE = frozenset((
    *("builtins." + n for n in ("bytes", "dict", "frozenset", "list", "max", "min", "print")),
    *("builtins." + n for n in ("set", "sorted", "sum", "tuple")),
    "collections.Counter", "collections.OrderedDict", "collections.deque", "math.fsum", "math.prod",
))  # fmt: skip
#: libraries whose functions do
WHOLE_LIBRARIES = ("torch.", "numpy.", "statistics.")
#: the number of the first turn of a loop
FIRST = "#first"
#: numbers of turns that are the same on every rank
_ALIKE = (*placements.EQUAL, Kind.SIZE)


def range_(site: Site) -> Value:
    """``range(n)``: as many numbers as its bounds say."""
    given = site.arguments.all()
    try:
        bounds = [only(v) for v in given]
        exact = range(*bounds)
        if len(exact) <= 12:
            return site.m.listed([const(i) for i in exact], site.node, site.frame)
        count = const(len(exact))
    except (LookupError, TypeError, ValueError):
        differ = any(map(data, given))
        count = arithmetic.elementwise("range", given, site.node) if differ else SETTING
        if len(given) == 1:
            count = given[0]
    made = site.made("iterator")
    if len(given) == 2:
        site.m.heap.write((made.number, LEAST), given[0])
    site.m.heap.write((made.number, LENGTH), count)
    turns = counting.counted_turns(site.m, site.node, given, site.frame)
    if turns is not None:
        counting.told(site.m, made, turns[0])
        site.m.beginning[made.number] = turns[1]
    places = len(given) == 1 and samples.counts(count)
    site.m.heap.write((made.number, "*"), value(Setting(PLACE)) if places else SETTING)
    site.m.heap.write((made.number, FIRST), given[0] if len(given) > 1 else const(0))
    return value(Ref(made.number))


def enumerate_(site: Site) -> Value:
    """``enumerate(x)``."""
    return _paired(site, [None, site.get(0, "iterable") or NOTHING], site.get(1, "start") or const(0))


def zip_(site: Site) -> Value:
    """``zip(a, b)``."""
    turned = _turned(site)
    if turned is not None:
        return turned
    return _paired(site, list(site.arguments.positional), const(0))


def _turned(site: Site) -> Value | None:
    """``zip(*batch)`` of a list of tuples: a list for each of their places, as long as the batch."""
    tuples = [a for a in site.arguments.star if isinstance(a, Items)]
    # of which sample a tuple is may differ between ranks
    others = tuple(a for a in site.arguments.star if isinstance(a, Differs))
    alike = len({len(t.items) for t in tuples}) == 1 and len(tuples) + len(others) == len(site.arguments.star)
    if site.arguments.positional or not alike:
        return None
    if not site.arguments.opened:
        return None
    whole = site.m.objects(site.arguments.opened)
    count = site.m.heap.read((whole[0].number, LENGTH)) if len(whole) == 1 else None
    columns = []
    for i, held in enumerate(zip(*(t.items for t in tuples), strict=True)):
        made = site.m.heap.new("list", "column", site.node, site.frame.context, key=("column", i))
        site.m.heap.write((made.number, ELEMENTS), join(*held, others))
        site.m.heap.write((made.number, LENGTH), count or SETTING)
        columns.append(value(Ref(made.number)))
    return site.m.listed(columns, site.node, site.frame)


def _paired(site: Site, sources: list[Value | None], start: Value) -> Value:
    """Tuples of what the sources give; None is a counter that begins with ``start``."""
    listed = [site.m.known_elements(s) if s is not None else None for s in sources]
    real = [x for x in listed if x is not None]
    begin = start[0].value if len(start) == 1 and isinstance(start[0], Const) else None
    if (
        real
        and isinstance(begin, int)
        and all(x is not None or s is None for x, s in zip(listed, sources, strict=True))
    ):
        count = min(len(x) for x in real)
        if count <= 12:
            rows = [
                items(x[i] if x is not None else const(begin + i) for x in listed)
                for i in range(count)
            ]
            made_of = site.m.listed(rows, site.node, site.frame)
            site.m.paired[site.m.objects(made_of)[0].number] = [s for s in sources if s is not None]
            return made_of
    out = over(site, site.word, sources)
    (made,) = site.m.objects(out)
    site.m.heap.write((made.number, FIRST), start)
    lengths = [
        site.m.heap.read((o.number, LENGTH)) for s in sources if s for o in site.m.objects(s)
    ]
    if len(lengths) == 1 and lengths[0] and isinstance(lengths[0][0], Const):
        site.m.heap.write((made.number, LENGTH), lengths[0])
    return out


def over(site: Site, name: str, sources: Sequence[Value | None]) -> Value:
    """An iterator that takes from its sources when it is gone through itself; None is a counter."""
    made = site.made("iterator", extra=len(sources))
    made.name = name
    for i, s in enumerate(sources):
        site.m.heap.write((made.number, f"source {i}"), s if s is not None else SETTING)
        if s is not None and name not in LATER:
            site.m.library.begun(site.m, s, site.node, site.frame)
    counted_by(site, made, [s for s in sources if s is not None])
    return value(Ref(made.number))


#: iterators that begin their sources where they are gone through; all others where they are made
LATER = ("chain",)


def counted_by(site: Site, made: Object, sources: list[Value]) -> None:
    """An iterator has as many turns as what it goes over, where that differs between ranks."""
    for s in sources:
        for atom in s:
            other = site.m.object(atom)
            count = site.m.count(other) if other is not None else None
            if isinstance(atom, Data) and atom.placement.kind is Kind.ROWS and atom.kind != RESULTS:
                count = size_of(site, atom, 0)
            if count and data(count):
                site.m.heap.write((made.number, LENGTH), count)
                return


def wrapped(site: Site) -> Value:
    """An iterator over what something else gives: ``iter``, ``reversed``, a progress bar."""
    source = site.get(0, "iterable")
    if source is None:
        return site.ref("iterator")
    listed = site.m.known_elements(source)
    if listed is not None and site.word == "reversed":
        turned = site.m.listed(listed[::-1], site.node, site.frame)
        site.m.paired[site.m.objects(turned)[0].number] = [source]
        return turned
    if site.word == "iter" and (wanted := site.get(1)) is not None:
        return site.m.made_later("until", [source, wanted], site.node, site.frame)
    made = site.made("iterator", extra=1)
    made.name = site.word if site.word == "islice" else made.name
    site.m.heap.write((made.number, "source 0"), source)
    counted_by(site, made, [source])
    if site.word == "islice":
        limit = site.m.parting(join(*site.arguments.positional[1:]), site.node)
        if limit is not None:
            site.m.heap.write((made.number, LENGTH), differing(SETTING, limit))
    if site.word not in LATER:
        site.m.library.begun(site.m, source, site.node, site.frame)
    return value(Ref(made.number))


def repeated(site: Site) -> Value:
    """``repeat(x, times)``: x itself again and again. Nothing is gone through here, nor where it is
    taken: ``for one in repeat(loader)``.
    """
    made = site.made("iterator", extra=1)
    made.name = "repeat"
    site.m.heap.write((made.number, "source 0"), site.get(0, "object") or NOTHING)
    times = site.get(1, "times")
    if times is not None and data(times):
        site.m.heap.write((made.number, LENGTH), times)
    return value(Ref(made.number))


def iterate(site: Site) -> Value | None:
    """The elements of an iterator, taken from what it goes over."""
    made = site.object
    assert made is not None
    count = made.extra
    if not isinstance(count, int):
        if made.number in site.m.fresh:
            return site.m.heap.read((made.number, FIRST)) or SETTING
        held = site.m.heap.read((made.number, "*"))
        return held or SETTING
    given = (site.m.heap.read((made.number, f"source {i}")) or NOTHING for i in range(count))
    sources = [site.m.bound(g) for g in given]
    if made.name == "repeat":
        return sources[0]
    each = [_index(site, made) if s == SETTING else _taken_from(site, made, s, sources) for s in sources]
    each = [_as_given(site, made, s, v) for v, s in zip(each, sources, strict=True)]
    if len({s for s in sources if s != SETTING}) > 1 and made.name != "chain":
        each = [samples.others(site.m, v, site.node) if _own_order(site, s) else v for v, s in zip(each, sources, strict=True)]
    order = next((o for v in each if (o := some_order(v)) is not None), None)
    if order is not None:  # a number that is given to each of a set's elements
        each = [apart(v, order) if s == SETTING else v for v, s in zip(each, sources, strict=True)]
    if made.name in ("map", "filter"):
        function = site.m.heap.read((made.number, "function")) or NOTHING
        result = _call(site, function, each) if function != NONE else each[0]
        return result if made.name == "map" else each[0]
    if made.name == "chain":
        return join(*each)
    return each[0] if count == 1 and made.name != "zip" else items(each)


def _taken_from(site: Site, made: Object, source: Value, sources: list[Value]) -> Value:
    """What an iterator takes from one of its sources: of a generator no more than the others have."""

    def take() -> Value:
        return site.m.elements(source, site.node, site.frame)

    begun = [o for o in site.m.objects(source) if o.kind == "generator"]
    if not begun or made.name not in _NO_MORE:
        return take()
    others = (s for s in sources if s is not source and s != SETTING)
    least = next((p for s in others if (p := site.m.trips(s, site.node)) is not None), None)
    limit = site.m.heap.read((made.number, LENGTH)) or NOTHING
    return site.m.somehow(take, least or site.m.parting(limit, site.node))


#: iterators that do not go to the end of each source
_NO_MORE = ("zip", "islice")


def _in_order(site: Site, made: Object, source: Value) -> bool:
    """Whether an iterator gives what its source has for each sample in the order of the batch."""
    held = site.m.objects(source)
    beside = made.name != "map" and made.extra > 1
    whole = all(
        o.kind not in ("list", "iterator") or samples.all_of_batch(site.m, o, one=beside)
        for o in held
    )
    return whole and made.name not in _REORDERED


def _as_given(site: Site, made: Object, source: Value, v: Value) -> Value:
    """What an iterator gives of what its source has for each sample."""
    if _in_order(site, made, source):
        return v
    if made.name == "reversed" and all(samples.all_of_batch(site.m, o, one=True) for o in site.m.objects(source)):
        return sample_orders.reordered(site.m, v, site.node, sample_orders.REVERSED)
    return samples.loose(site.m, v)


def _own_order(site: Site, source: Value) -> bool:
    """Whether something has its items in an order of its own, or others than those for each sample."""
    held = site.m.objects(source)
    return any(samples.OWN_ORDER in o.marks or (o.kind == "iterator" and o.name in _REORDERED) for o in held)


#: iterators that give more, fewer or others than what their source has, or in another order
_REORDERED = ("chain", "filter", "reversed", "cycle", "islice", "tee")


def _index(site: Site, made: Object) -> Value:
    """The number of a turn: where each rank has turns of its own, another one on each."""
    count = site.m.heap.read((made.number, LENGTH))
    if made.number in site.m.fresh:
        return site.m.heap.read((made.number, FIRST)) or SETTING
    if samples.counts(count) and site.m.heap.read((made.number, FIRST)) == const(0):
        return value(Setting(PLACE))
    if not count or all(d.placement.kind in _ALIKE for d in data(count)):
        return SETTING
    origin = Origin(site.node, OWN_TURN)
    return value(Data("number", placements.PER_RANK, origin=origin))


def _call(site: Site, function: Value, given: list[Value]) -> Value:
    return site.m.call(function, Arguments(given), site.node, site.frame)


def next_(site: Site) -> Value:
    """``next(it)``, ``next(it, default)``."""
    source = site.get(0) or NOTHING
    if site.m.library.draws(site.m, source):  # batches, of which each rank has its own
        return join(site.m.elements(source, site.node, site.frame), site.get(1) or NOTHING)
    given = [o for o in site.m.objects(source) if o.kind == "generator"]
    if given:
        before = (site.m.heap.read((o.number, TAKEN)) or NOTHING for o in given)
        further = site.m.parting(join(*before), site.node)
        found = site.m.somehow(lambda: site.m.elements(source, site.node, site.frame), further)
    else:
        # the exception of an iterator of the program goes to whoever asks
        site.m.asking = "" if site.get(1) is not None else "next"
        found = site.m.elements(source, site.node, site.frame)
        site.m.asking = ""
    found = join(found, site.get(1) or NOTHING)
    left = site.m.parting(site.m.counts([source]), site.node)
    if site.get(1) is None:
        site.m.may_raise(left, "StopIteration")
    for made in site.m.objects(source):
        moved = site.m.heap.read((made.number, TAKEN)) or NOTHING
        left = left or site.m.parting(moved, site.node)  # ranks have come to other elements
        site.m.heap.widen((made.number, TAKEN), SETTING)
    return differing(found, left) if left is not None and found else found


ROWS = (
    Row("builtins.range", range_, source=_DOC),
    Row("builtins.enumerate", enumerate_, source=_DOC),
    Row("builtins.zip itertools.zip_longest", zip_, source=_DOC),
    Row("builtins.iter builtins.reversed", wrapped, source=_DOC),
    Row("itertools.cycle itertools.islice itertools.tee", wrapped, source=_DOC),
    Row("itertools.repeat", repeated, source=_DOC),
    Row("builtins.next", next_, source=_DOC),
    Row("<iterator|bar|loader>.next <iterator|bar|loader>.__next__", next_, source=_DOC),
    Row("<iterator>.__iter__", iterate, source=_DOC),
)  # fmt: skip
