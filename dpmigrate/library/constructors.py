"""Containers made of what they are given: list, tuple, set, dict
(https://docs.python.org/3/library/stdtypes.html).
"""

from __future__ import annotations

from dpmigrate.execution import placements, sample_orders, samples
from dpmigrate.execution.divergence import in_no_order
from dpmigrate.execution.objects import LENGTH, Object
from dpmigrate.execution.values import (
    NOTHING,
    OTHERS,
    Const,
    Data,
    Origin,
    Ref,
    Value,
    data,
    items,
    origins,
    value,
)
from dpmigrate.library.collating import HOW_MANY, is_put_together
from dpmigrate.library.iterators import counted_by
from dpmigrate.library.sites import DIFFERENT, LEAST, Effect, Row, Site
from dpmigrate.library.sizes import is_shape

_DOC = "https://docs.python.org/3/library/functions.html"


def collected(kind: str) -> Effect:
    """``list(x)``, ``tuple(x)``, ``set(x)``, ``sorted(x)``."""

    def effect(site: Site) -> Value:
        source = site.get(0)
        if source is None:
            return site.m.listed([], site.node, site.frame, kind=kind)
        listed = site.m.known_elements(source)
        if site.word in ("list", "tuple") and len(source) == 1 and is_shape(source[0]):
            return source  # its length is not known, and it is no other sequence
        if listed is not None:
            if site.word == "tuple":
                return items(listed)
            exact = site.word not in ("set", "frozenset", "sorted")
            made = site.m.listed(listed, site.node, site.frame, exact=exact, kind=kind)
            return _sorted(site, made)
        elements = site.m.taken(source, site.node, site.frame)
        # whoever puts a batch together takes its samples in this order from here on
        whole = site.word == "sorted" and is_put_together(site, source)
        if site.word not in ("list", "tuple"):
            elements = in_no_order(elements) if site.word != "deque" else elements
            by = (site.node, *(o.number for o in site.m.objects(source)))
            elements = sample_orders.reordered(site.m, elements, site.node, by) if whole else samples.loose(site.m, elements)
        made = site.m.listed([elements], site.node, site.frame, exact=False, kind=kind)
        counted_by(site, site.m.objects(made)[0], [source])
        if kind == "set":
            _different_ones(site, site.m.objects(made)[0], elements)
        least = [site.m.heap.read((o.number, LEAST)) for o in site.m.objects(source)]
        if len(least) == len(source) == 1 and least[0]:
            site.m.heap.write((site.m.objects(made)[0].number, LEAST), least[0])
        return made if whole else _sorted(site, made)

    return effect


def _different_ones(site: Site, made: Object, elements: Value) -> None:
    """A set has as many items as there are different ones: of samples each rank has its own number of these."""
    own = [d for d in data(site.flat(elements)) if d.placement.kind not in placements.EQUAL]
    count = data(site.m.heap.read((made.number, LENGTH)) or NOTHING)
    of_one = any(o.word == HOW_MANY for d in count for o in origins(d.origin))  # of what one sample holds the number is that sample's
    if own and not of_one:
        number = Data("number", placements.PER_RANK, sources=own[0].sources, origin=Origin(site.node, DIFFERENT, own[0].origin), whose=OTHERS)
        site.m.heap.write((made.number, LENGTH), value(number))


def _sorted(site: Site, made: Value) -> Value:
    """What ``sorted`` gives, in an order that its key says."""
    if site.word == "sorted":
        (listed,) = site.m.objects(made)
        site.m.mixed(listed, site.m.order_of(made, site.arguments, site.node, site.frame))
    return made


def dictionary(site: Site) -> Value:
    """``dict(a=1)``, ``dict(other)``, ``dict(pairs)``."""
    made = site.made("dict")
    for v in site.arguments.positional:
        listed = site.m.known_elements(v)
        pairs = [site.m.known_elements(p) for p in listed] if listed is not None else []
        if (
            listed is not None
            and all(p is not None and len(p) == 2 for p in pairs)
            and not _dicts(site, v)
        ):
            for p in pairs:
                assert p is not None
                site.m.set_item(value(Ref(made.number)), p[0], p[1], site.node, site.frame)
        else:
            site.m.merge(made, v, site.node, site.frame)
    for name, v in site.arguments.keywords.items():
        site.m.heap.put((made.number, Const("str", name)), v)
    if site.arguments.stars:
        site.m.heap.widen((made.number, "*"), site.arguments.stars)
    return value(Ref(made.number))


def _dicts(site: Site, v: Value) -> bool:
    return any(o.kind == "dict" for o in site.m.objects(v))


ROWS = (
    Row(
        "builtins.list builtins.tuple",
        collected("list"),
        ("list([x, y])[1]", "tuple([x, y])[0]"),
        _DOC,
    ),
    Row(
        "collections.deque",
        collected("list"),
        source="https://docs.python.org/3/library/collections.html",
    ),
    Row("builtins.sorted", collected("list"), source=_DOC),
    Row("builtins.set builtins.frozenset", collected("set"), source=_DOC),
    Row("builtins.dict collections.OrderedDict", dictionary, ("dict(a=x)['a']",), _DOC),
)  # fmt: skip
