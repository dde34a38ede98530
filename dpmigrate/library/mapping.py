"""``map`` and ``filter``: a function that is called for each item
(https://docs.python.org/3/library/functions.html).
"""

from __future__ import annotations

from dpmigrate.execution import samples
from dpmigrate.execution.containers import CALLED
from dpmigrate.execution.divergence import differing
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import LENGTH
from dpmigrate.execution.values import NONE, NOTHING, SETTING, SOME, Value
from dpmigrate.library.iterators import over
from dpmigrate.library.sites import Row, Site

_DOC = "https://docs.python.org/3/library/functions.html"


def mapped(site: Site) -> Value:
    """``map(f, xs)``: the function is called for each element."""
    function, *sources = site.arguments.positional or [NOTHING]
    if any(site.m.library.draws(site.m, s) for s in sources):
        return _applied(site, "map", function, sources)
    made = site.m.harmless(lambda: _at_once(site, function, sources)) if site.node not in site.m.at_once else None
    if made is None and site.node not in site.m.at_once:
        return site.m.made_later("map", [function, *sources], site.node, site.frame)
    return made or _at_once(site, function, sources)


def _at_once(site: Site, function: Value, sources: list[Value]) -> Value:
    """``map`` where all items are taken, or making them does no more than that."""
    found = site.m.call_each(function, sources, site.node, site.frame)
    exact = all(site.m.known_elements(s, CALLED) is not None for s in sources)
    return site.m.listed(found, site.node, site.frame, exact=exact, by=[] if exact else sources)


def _applied(site: Site, name: str, function: Value, sources: list[Value]) -> Value:
    """``map`` and ``filter`` of batches: the function is called where a batch is taken."""
    made = over(site, name, sources)
    site.m.heap.write((site.m.objects(made)[0].number, "function"), function)
    return made


def filtered(site: Site) -> Value:
    """``filter(f, xs)``: of parameters some, of rows some."""
    function, source = site.get(0) or NOTHING, site.get(1) or NOTHING
    if site.m.library.draws(site.m, source):
        return _applied(site, "filter", function, [source])
    if function == NONE or site.node in site.m.at_once:
        return _some(site, function, source)
    made = site.m.harmless(lambda: _some(site, function, source))
    return made if made is not None else site.m.made_later("filter", [function, source], site.node, site.frame)


def _some(site: Site, function: Value, source: Value) -> Value:
    """``filter`` where all items are taken, or choosing them does no more than that."""
    source = site.m.laid_out(source, site.node, site.frame)
    elements = site.m.taken(source, site.node, site.frame)
    test = elements
    if function != NONE:
        test = join(*site.m.call_each(function, [source], site.node, site.frame))
    test = site.m.condition(test, site.node, site.frame)
    out = site.m.listed([samples.loose(site.m, elements, SOME)], site.node, site.frame, exact=False, by=[source])
    parted = site.m.parting(test, site.node)
    if parted is not None:  # other items on each rank
        (made,) = site.m.objects(out)
        site.m.mixed(made, parted)
        site.m.heap.write((made.number, LENGTH), differing(SETTING, parted))
    return out


ROWS = (
    Row("builtins.map", mapped, ("list(map(torch.exp, [x, y]))[0]",), _DOC),
    Row("builtins.filter", filtered, source=_DOC),
)  # fmt: skip
