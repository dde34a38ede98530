"""Random streams: all ranks draw the same numbers until ``ddp.seed_ranks`` gives each its own."""

from __future__ import annotations

from dpmigrate.execution import divergence, placements
from dpmigrate.execution.heap import ELEMENTS
from dpmigrate.execution.machine import PROCESS
from dpmigrate.execution.values import NONE, Origin, Value, const, placement_of, value
from dpmigrate.library.effects import switched
from dpmigrate.library.sites import Row, Site

_DOC = "README.md#the-runtime"
#: a field of the process: whether each rank draws numbers of its own
OWN = (PROCESS, "own streams")
_YES, _NO = const(True), const(False)
#: since what a value differs that is made of such a draw
DRAW = "a draw of each rank's own"
#: they draw the same on purpose: the body of ``with ddp.same_stream():``
SHARED = const("same stream")
#: they draw the same again, since the program has seeded them alike
SEEDED = const("seeded")


def own(site: Site) -> bool:
    """Whether each rank may draw numbers of its own here, from the streams of the process."""
    return _YES[0] in (site.m.heap.read(OWN) or _NO)


def parted(site: Site) -> None:
    """From here on each rank has streams of its own."""
    site.m.heap.write(OWN, _YES)


def rejoined(site: Site) -> None:
    """From here on all ranks draw the same again."""
    site.m.heap.write(OWN, SEEDED)


def drawn(site: Site, v: Value) -> Value:
    """What is drawn: the same on all ranks as long as the stream is that it is drawn from."""
    generator = site.arguments.keywords.get("generator") or value(site.receiver or NONE[0])
    seeds = _seeds(site, generator)
    apart = any(placement_of(s).kind not in placements.EQUAL for s in seeds)
    return of_ranks(site, v) if (apart if seeds else own(site)) else v


def same_seed(site: Site, generator: Value) -> bool:
    """Whether a generator has been given a seed that is the same on all ranks."""
    seeds = _seeds(site, generator)
    return bool(seeds) and all(
        s != NONE and placement_of(s).kind in placements.EQUAL for s in seeds
    )


def _seeds(site: Site, generator: Value) -> list[Value]:
    """The seeds that a generator may have; None where it has none."""
    return [site.m.heap.read((o.number, "seed")) or NONE for o in site.m.objects(generator)]


def of_ranks(site: Site, v: Value) -> Value:
    """A draw that is another one on each rank."""
    return divergence.apart(v, Origin(site.node, DRAW))


def shuffled(site: Site) -> Value:
    """``random.shuffle(xs)``: in place."""
    site.event("draw", stream=const("numpy" if site.name.startswith("numpy.") else "random"))
    for made in site.m.objects(site.get(0) or ()):
        if made.kind == "list":
            site.m.collapse(made)  # which item is where is not known any more
            held = site.m.heap.read((made.number, ELEMENTS))
            if held:
                site.m.heap.write((made.number, ELEMENTS), drawn(site, held))
    return NONE


shared, entered, left = switched("same stream", OWN, SHARED)
each_own, each_entered, _left = switched("own streams", OWN, _YES)


def each_left(site: Site) -> Value:
    """``own_streams()`` ends: from here on all ranks draw the same again."""
    site.event("streams joined")
    return _left(site) or NONE


ROWS = (
    Row("dpmigrate_runtime.same_stream", shared, source=_DOC),
    Row("<same_stream>.__enter__", entered, source=_DOC),
    Row("<same_stream>.__exit__", left, source=_DOC),
    Row("dpmigrate_runtime.own_streams", each_own, source=_DOC),
    Row("<own_streams>.__enter__", each_entered, source=_DOC),
    Row("<own_streams>.__exit__", each_left, source=_DOC),
    Row("random.shuffle numpy.random.shuffle <random_stream>.shuffle", shuffled),
)
