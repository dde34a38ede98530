"""Containers and functions of the standard library: collections, itertools, functools, copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from dpmigrate.execution import arithmetic, divergence, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.containers import CALLED
from dpmigrate.execution.dict_methods import COUNTS
from dpmigrate.execution.joins import join, same
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Foreign,
    Ref,
    Value,
    items,
    known,
    unknown,
    value,
)
from dpmigrate.execution.widening import TURNS, counted
from dpmigrate.library.copies import copied
from dpmigrate.library.iterators import over
from dpmigrate.library.sites import Row, Site

_DOC = "https://docs.python.org/3/library/"


def partial(site: Site) -> Value:
    """``functools.partial(f, …)``."""
    made = site.made("partial")
    a = site.arguments
    if a.positional:
        site.m.heap.write((made.number, "function"), a.positional[0])
    made.extra = Arguments(a.positional[1:], dict(a.keywords), a.star, a.stars)
    return value(Ref(made.number))


def wraps(site: Site) -> Value:
    """``functools.wraps(f)``: a decorator that changes nothing."""
    return value(Foreign("dpmigrate.identity"))


def identity(site: Site) -> Value:
    """A decorator that gives back what it is given."""
    return site.get(0) or NOTHING


def default_dict(site: Site) -> Value:
    """``defaultdict(list)``."""
    made = site.made("dict")
    factory = site.get(0)
    if factory:
        site.m.heap.write((made.number, "#factory"), factory)
    return value(Ref(made.number))


def counter(site: Site) -> Value:
    """``Counter()``."""
    made = site.made("dict", extra=COUNTS)
    for v in site.arguments.positional:
        elements = site.m.taken(v, site.node, site.frame)
        held = (
            arithmetic.elementwise("count", [elements], site.node)
            if site.flat(elements)
            else SETTING
        )
        held = samples.others(site.m, held, site.node)  # how often those of several samples are there
        site.m.heap.widen((made.number, "*"), held)
        site.m.heap.widen((made.number, "#keys"), elements or SETTING)
    return value(Ref(made.number))


def chained(site: Site) -> Value:
    """``chain(a, b)``: the elements of all, taken where the chain is gone through."""
    sources = site.arguments.positional
    if site.word == "from_iterable" and sources:
        sources = site.m.known_elements(sources[0]) or [
            site.m.taken(sources[0], site.node, site.frame)
        ]
    return over(site, "chain", sources)


#: up to this number of items a tuple is known item by item
_REPEATED = 8
#: up to this number of tuples, those of all orders of four things, each is known
_ARRANGED = 24


def arranged(site: Site) -> list[Value] | None:
    """The tuples of ``permutations(a)`` and the like one by one; None where what they are made of
    is not known, or they are too many.
    """
    parts = [site.m.known_elements(s, _REPEATED) for s in site.arguments.positional[:1]]
    if site.word == "product":
        parts = [site.m.known_elements(s, _REPEATED) for s in site.arguments.positional]
    known_parts = [p for p in parts if p is not None]
    if not parts or len(known_parts) < len(parts) or site.arguments.star or site.arguments.stars:
        return None
    whole = len(known_parts[0]) if site.word == "permutations" else 1
    given = site.get(*((-1, "repeat") if site.word == "product" else (1, "r")))
    times = whole if given is None or given == NONE else known(given)
    if type(times) is not int or not 0 <= times < _REPEATED:
        return None
    found = _MADE[site.word](known_parts, times)
    listed = [items(list(t)) for t in itertools.islice(found, _ARRANGED + 1)]
    return listed if len(listed) <= _ARRANGED else None


_MADE: dict[str, Callable[[list[list[Value]], int], Iterator[tuple[Value, ...]]]] = {
    "product": lambda parts, times: itertools.product(*parts, repeat=times),
    "permutations": lambda parts, times: itertools.permutations(parts[0], times),
    "combinations": lambda parts, times: itertools.combinations(parts[0], times),
}


def product(site: Site) -> Value:
    """``itertools.product(a, b)``, ``product(a, repeat=2)``, ``combinations(a, 2)``."""
    one_by_one = arranged(site)
    if one_by_one is not None:
        return over(site, "iter", [site.m.listed(one_by_one, site.node, site.frame)])
    parts = [site.m.taken(s, site.node, site.frame) for s in site.arguments.positional]
    times = site.constant(-1, "repeat", 1) if site.word == "product" else site.constant(1, "r")
    if site.word != "product":
        parts = parts[:1]
    if type(times) is int and 0 < times < _REPEATED:
        each = items(parts * times)
    else:  # how many items a tuple has is not known
        each = site.m.listed(parts, site.node, site.frame, exact=False)
    return site.m.listed([each], site.node, site.frame, exact=False)


def named_tuple(site: Site) -> Value:
    """``namedtuple("P", "a b")``: a class of tuples with names."""
    made = site.made("tuple class")
    fields = site.get(1)
    listed = site.m.known_elements(fields) if fields else None
    words = known(fields) if fields else None
    if isinstance(words, str):
        made.extra = words.replace(",", " ").split()
    elif listed is not None:
        made.extra = [str(known(v)) for v in listed]
    return value(Ref(made.number))


def tuple_made(site: Site) -> Value:
    """A call of a namedtuple class."""
    cls = site.object
    made = site.made("namespace")
    for i, name in enumerate(cls.extra or () if cls is not None else ()):
        held = site.arguments.get(i, name)
        if held is not None:
            site.m.heap.write((made.number, name), held)
            site.m.heap.write((made.number, Const("int", i)), held)
    return value(Ref(made.number))


def folded(site: Site) -> Value:
    """``functools.reduce(f, xs, start)``: the function is called with two of them."""
    function, source = site.get(0) or NOTHING, site.get(1) or NOTHING
    listed = site.m.known_elements(source, CALLED)
    if listed is not None:
        given = [v for v in (site.get(2), *listed) if v is not None]
        out = given[0] if given else NOTHING
        for v in given[1:]:
            out = site.m.call(function, Arguments([out, v]), site.node, site.frame)
        return out
    each = site.m.taken(source, site.node, site.frame)
    out, parted = site.get(2) or each, site.m.trips(source, site.node)

    def turn() -> bool:
        nonlocal out
        given = Arguments([out, each])
        out = join(out, site.m.call(function, given, site.node, site.frame))
        return True

    for _ in range(TURNS):
        before = out
        site.m.repeat(turn, site.node, parted)
        out = counted(out)
        if same(before, out):
            break
    else:
        out = join(out, unknown("changes from turn to turn", site.node))
    return divergence.differing(out, parted) if parted is not None else out


ROWS = (
    Row("functools.partial functools.partialmethod", partial, source=_DOC),
    Row("functools.wraps", wraps, source=_DOC),
    Row(
        """
dpmigrate.identity functools.lru_cache functools.cache functools.total_ordering
abc.abstractmethod
""",
        identity,
        source=_DOC,
    ),
    Row("functools.reduce", folded, source=_DOC),
    Row("collections.defaultdict", default_dict, source=_DOC),
    Row("collections.Counter", counter, source=_DOC),
    Row("collections.namedtuple", named_tuple, source=_DOC),
    Row("<tuple_class>.__call__", tuple_made, source=_DOC),
    Row("itertools.chain itertools.chain.from_iterable", chained, source=_DOC),
    Row(
        """
itertools.product itertools.combinations itertools.permutations
""",
        product,
        source=_DOC,
    ),
    Row("copy.deepcopy copy.copy", copied, ("copy.deepcopy(x)",), _DOC),
)  # fmt: skip
