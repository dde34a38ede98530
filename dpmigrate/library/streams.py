"""Random streams: all ranks draw the same numbers until ``ddp.seed_ranks`` gives each its own.

torch, NumPy and Python have a stream of the process each. A generator that the program makes has a
stream of its own, which is the same on all ranks if its seed is.
"""

from __future__ import annotations

from dpmigrate.execution import divergence, placements
from dpmigrate.execution.in_place import holds_elements
from dpmigrate.execution.machine import PROCESS
from dpmigrate.execution.objects import ELEMENTS, Location
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SOME,
    Data,
    Origin,
    Ref,
    Value,
    const,
    data,
    placement_of,
    value,
)
from dpmigrate.library.effects import switched
from dpmigrate.library.natures import DRAW
from dpmigrate.library.sites import Effect, Row, Site, methods

_DOC = "README.md#the-runtime"
#: fields of the process: whether each rank draws numbers of its own from one of its streams
OWN: dict[str, Location] = {s: (PROCESS, f"own {s} stream") for s in ("torch", "numpy", "random")}
_YES, _NO = const(True), const(False)
#: the stream of an event that draws from a generator of the program
GENERATOR = "a generator"
#: objects that have a stream of their own: of torch, NumPy and Python
GENERATORS = ("generator_of_numbers", "random_stream", "python_stream")
#: a field of a generator
_SEED = "seed of the stream"
#: the kind of the mark of what is made of one number for all samples of a rank, as of columns that it has drawn
DRAWN = "drawn by each rank"
#: they draw the same on purpose: the body of ``with ddp.same_stream():``
SHARED = const("same stream")
#: they draw the same again, since the program has seeded them alike
SEEDED = const("seeded")


def own(site: Site, stream: str) -> bool:
    """Whether each rank may draw numbers of its own here, from a stream of the process."""
    return not site.m.drawn_alike and _YES[0] in (site.m.heap.read(OWN[stream]) or _NO)


def parted(site: Site, *streams: str) -> None:
    """From here on each rank has streams of its own."""
    for stream in streams or OWN:
        site.m.heap.write(OWN[stream], _YES)


def rejoined(site: Site, *streams: str) -> None:
    """From here on all ranks draw the same again, where each had its own."""
    for stream in streams or OWN:
        if own(site, stream):
            site.m.heap.write(OWN[stream], SEEDED)


def entropy(site: Site) -> Value:
    """A seed that the system gives: each process has another one."""
    placement = placements.UNIFORM if site.m.drawn_alike else placements.PER_RANK
    return value(Data("number", placement, origin=Origin(site.node, DRAW)))


def generator(site: Site, kind: str, seed: Value) -> Value:
    """A generator of the program, with the seed that it is given, or one that the system gives."""
    made = site.made(kind)
    seed = site.flat(seed) or seed  # also a list of numbers
    site.m.heap.write((made.number, _SEED), entropy(site) if seed == NONE else seed)
    return value(Ref(made.number))


def drawn(site: Site, stream: str, made: Value) -> Value:
    """What is drawn, and the event: from the generator that is given, or whose method this is; else
    from a stream of the process. It is the same on all ranks as long as their streams are.
    """
    seeds = _seeds(site)
    alike = site.m.drawn_alike or all(placement_of(s).kind in placements.EQUAL for s in seeds)
    # of a seed that belongs to the sample every rank draws the same for it
    apart = not site.m.drawn_alike and any(d.origin and d.origin.word == DRAW for s in seeds for d in data(s))
    if seeds:
        site.event("draw", stream=const(GENERATOR), same=const(alike), made=made or NONE)
    else:
        site.event("draw", stream=const(stream), made=made or NONE)
        alike = not own(site, stream)
        apart = not alike
    if apart:
        site.event("drawn apart")
    made = tuple(a._replace(even=False) if isinstance(a, Data) else a for a in made)
    return made if alike or not made else of_ranks(site, made)


def drawing(stream: str, effect: Effect, *, each: bool = False) -> Effect:
    """A draw from a stream of random numbers; ``each``: of each element by itself."""

    def draw(site: Site) -> Value | None:
        made = effect(site)
        found = drawn(site, stream, made or NOTHING)
        if each and own(site, stream) and not _seeds(site):
            found = of_draws(found)
        return found if made else made

    return draw


def _seeds(site: Site) -> list[Value]:
    """The seeds of the generators that numbers may be drawn from; empty for the process's own."""
    generator = site.arguments.keywords.get("generator") or NONE
    given = (*generator, *([site.receiver] if site.receiver is not None else ()))
    found = [o for o in site.m.objects(tuple(given)) if o.kind in GENERATORS]
    return [site.m.heap.read((o.number, _SEED)) or NONE for o in found]


def of_draws(v: Value) -> Value:
    """A rank's own tensor, each element of which is a draw."""
    one = placements.PER_RANK
    return tuple(a._replace(drawn=True) if isinstance(a, Data) and a.placement == one and a.kind != "number" else a for a in v)


def of_samples(site: Site, v: Value) -> Value:
    """As many draws of a rank's own as it has samples: each belongs to its sample, whatever the number that was drawn hung on."""
    objects = site.m.heap.objects
    return tuple(
        a._replace(marks=frozenset(m for m in a.marks if objects[m].kind != DRAWN), bent=frozenset(), origin=Origin(site.node, site.word))
        if isinstance(a, Data) else a
        for a in v
    )  # fmt: skip


def of_ranks(site: Site, v: Value) -> Value:
    """A draw that is another one on each rank; what is made of one for all samples is marked."""
    mark = site.m.heap.new(DRAWN, DRAWN, None, 0, key=DRAWN).number
    made = divergence.apart(v, Origin(site.node, DRAW))
    one = placements.PER_RANK
    return tuple(a._replace(marks=a.marks | {mark}) if isinstance(a, Data) and a.placement == one else a for a in made)


def seeded_by(site: Site) -> Value:
    """``generator.manual_seed(s)``, ``random.Random().seed(s)``."""
    if site.object is not None:
        seed = site.get(1, "seed") or site.get(1, "a") or entropy(site)
        site.m.heap.write((site.object.number, _SEED), seed)
    return site.get(0) or NONE


def shuffled(site: Site) -> Value:
    """``random.shuffle(xs)``: in place, also what an array or a tensor holds that shares its memory with others."""
    stream = "numpy" if site.name.startswith("numpy.") else "random"
    place = 1 if site.object is not None else 0
    listed = site.get(place) or ()
    for made in site.m.objects(listed):
        if made.kind == "list":
            site.m.collapse(made, whose=SOME)  # which item is where is not known any more
            held = site.m.heap.read((made.number, ELEMENTS))
            if held:
                site.m.heap.write((made.number, ELEMENTS), drawn(site, stream, held))
                return NONE
    new = drawn(site, stream, listed if holds_elements(listed) else NOTHING)
    target = next(iter(getattr(site.node, "args", ())), None)
    if new and new is not listed and target is not None:
        site.m.write_in_place(target, new, site.node, site.frame, listed)
    return NONE


shared, entered, left = switched("same stream", OWN.values(), SHARED)
each_own, each_entered, _left = switched("own streams", OWN.values(), _YES)


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
    Row("random.shuffle numpy.random.shuffle <random_stream|python_stream>.shuffle", shuffled),
    Row(methods("generator_of_numbers|random_stream|python_stream", "manual_seed seed"), seeded_by,
        source=_DOC),
)  # fmt: skip
