"""Libraries that compute from what they are given, and objects of which nothing else is known.

A function of such a library, a class, and whatever they give gives the same where it is given the
same: a source of one prefix stands for all of its names. Where something that it is given differs
between ranks, its result is *per rank* (*unknown* if that is not established) and never rows: which
axis of its result runs over the samples, if one does, no page says of a whole library.

What comes back of equal operands is an object of kind ``any``. It may be anything, None as well;
a method that is given what differs may store it, so that the object differs from there on.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import ELEMENTS
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Bound,
    Data,
    Method,
    Value,
    data,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.collating import assembled
from dpmigrate.library.effects import none, plain
from dpmigrate.library.sites import Effect, Row, Site, methods

#: the kind of objects, and of data, that may be anything
ANY = "any"


@dataclass(frozen=True, slots=True)
class Family:
    """The names of a library that begin with a prefix: where that is written down; the stream that
    its functions draw from, with the words that those begin with; whether they show what they are
    given.
    """

    source: str
    draws: str = ""
    names: tuple[str, ...] = ()
    shows: bool = False


#: families by their prefixes, which other tables fill
FAMILIES: dict[str, Family] = {}


def family_of(name: str) -> Family | None:
    """The family of a dotted name: that of its longest prefix."""
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        found = FAMILIES.get(".".join(parts[:n]))
        if found is not None:
            return found
    return None


def computed(site: Site) -> Value:
    """A function of what it is given: equal on all ranks where that is, and per rank elsewhere."""
    given = [*site.all(), *_called_back(site)]
    moving = [v for v in given if site.m.depends(v).kind not in placements.EQUAL]
    if any(site.m.library.draws(site.m, v) for v in given):
        made = site.unknown(f"what {site.word} takes from a loader")
    elif not moving:
        _in_part(site)
        return _new(site)
    else:
        made = differing(site, moving)
    _held(site, made)
    return made


def _new(site: Site) -> Value:
    """An object of the library, with the seed that it is given."""
    made = site.ref(ANY)
    new = site.m.objects(made)[0]
    owner = site.m.object(_owner(site.receiver)) if site.receiver is not None else None
    new.extra = family_of(site.name) or (owner.extra if owner is not None else None)
    for name in ("random_state", "seed", "rng"):
        given = site.arguments.keywords.get(name)
        if given:
            new_place = (new.number, f"={name}")
            site.m.heap.write(new_place, given)
    return made


def _apart(v: Value) -> Value:
    """Of the data those that differ between ranks: what is made of them comes from nothing else, as
    a table of the training's own numbers from no evaluation that stands in it beside them.
    """
    return tuple(a for a in v if not (isinstance(a, Data) and a.placement.kind in placements.EQUAL and not a.turn))


def differing(site: Site, moving: list[Value]) -> Value:
    """What is made of values that differ between ranks."""
    unknown = any(site.m.depends(v).kind is Kind.UNKNOWN for v in moving)
    matter = [_apart(site.flat(v)) or v for v in moving]
    if assembled(site.m):
        # of a whole batch it may do something with each sample by itself
        unknown = unknown or any(d.placement.kind is Kind.ROWS for v in matter for d in data(v))
    lying = placements.UNKNOWN if unknown else placements.PER_RANK
    return derivation.derived(
        site.word, lying, matter, site.node, kind=ANY, gradient="none", keep_axes=False
    )


def _called_back(site: Site) -> list[Value]:
    """What the functions of the program give that a library is handed and may call."""
    functions = [
        a for v in site.arguments.all() for a in v
        if isinstance(a, Bound) or ((o := site.m.object(a)) is not None and o.kind == "function")
    ]  # fmt: skip
    if not functions:
        return []
    others = [v for v in site.all() if not any(a in functions for a in v)]
    moving = [v for v in others if site.m.depends(v).kind not in placements.EQUAL]
    one = Arguments(star=differing(site, moving) if moving else SETTING)
    found = []
    for function in functions:
        site.m.heap.mark()
        found.append(site.m.call(value(function), one, site.node, site.frame))
        site.m.heap.apply([site.m.heap.rollback(), {}])
    return found


def _held(site: Site, made: Value) -> None:
    """The objects that are given what differs may hold it from now on."""
    given = site.arguments.all() if site.word in _ASKING else site.all()
    for v in given:
        for found in site.m.objects(tuple(_owner(a) for a in v)):
            if found.kind == ANY:
                site.m.heap.widen((found.number, ELEMENTS), made)


#: methods that change nothing in their object
_ASKING = (
    "__getitem__", "__iter__", "__len__", "__contains__", "get", "predict", "predict_proba",
    "transform", "inverse_transform", "encode", "decode", "tokenize", "resize", "crop", "rotate",
    "convert", "sample", "query", "groupby", "head",
)  # fmt: skip


def _owner(atom: Atom) -> Atom:
    """The object that a method or an attribute of it belongs to."""
    while isinstance(atom, Method):
        atom = atom.receiver
    return atom


def _in_part(site: Site) -> None:
    """A method that not all ranks come to: what it changes in its object, if anything, differs."""
    parted, made = site.m.parted, site.object
    if parted is None or made is None or made.kind != ANY or site.word in _ASKING:
        return
    lying = placements.PER_RANK if parted.certain else placements.UNKNOWN
    site.m.heap.widen(
        (made.number, ELEMENTS), value(Data(ANY, lying, origin=parted.origin))
    )


def member(site: Site) -> Value:
    """An attribute: a part of the object, or a method of it."""
    if isinstance(site.receiver, Data):
        writes = site.word.startswith(WRITING)
        return value(Method(site.receiver, site.word) if writes else site.receiver)
    made = site.object
    assert made is not None and site.receiver is not None
    whole = value(site.receiver)
    if site.m.depends(whole).kind in placements.EQUAL:
        return value(Method(site.receiver, site.word))
    return differing(site, [whole])


def went_in(site: Site) -> Value:
    """``with x as y``: y is x, or made of it."""
    return value(site.receiver) if site.receiver is not None else NOTHING


def wrote(site: Site) -> Value:
    """A file is written, or something is shown; what is written does not hold where it goes."""
    site.event("write", values=join(*_contents(site)) or NONE)
    if site.receiver is None:
        moving = [v for v in site.all() if site.m.depends(v).kind not in placements.EQUAL]
        if moving and all(_names_file(site, v) for v in moving):
            return differing(site, moving)
    return computed(site)


def _names_file(site: Site, v: Value) -> bool:
    """Whether a value is a path or a file."""
    return all((isinstance(a, Data) and a.kind == "text") or _kind(site, a) == "file" for a in v)


def _kind(site: Site, atom: Atom) -> str:
    made = site.m.object(atom)
    return made.kind if made is not None else ""


def _contents(site: Site) -> list[Value]:
    """What is written: the arguments, with what the object holds."""
    owner = [site.m.contents(site.object)] if site.object is not None else []
    return [*owner, *site.all()]


def read(site: Site) -> Value:
    """A file is read: the same on every rank."""
    site.event("read", path=site.get(0) or NOTHING)
    return computed(site)


def printed(site: Site) -> Value:
    """Printed, by a library that makes it look well."""
    site.tell("print")
    return NONE


def drawing(stream: str, effect: Effect = computed) -> Effect:
    """A function that draws from a stream of the process, unless it has a seed of its own."""

    def drawn(site: Site) -> Value | None:
        made = effect(site)
        return streams.drawn(site, stream, made) if made and not _seeded(site) else made

    return drawn


def _seeded(site: Site) -> bool:
    """Whether it is given a seed, or its object was."""
    names = ("random_state", "seed", "rng")
    given = [site.arguments.keywords.get(n) for n in names]
    if site.object is not None:
        given += [site.m.heap.read((site.object.number, f"={n}")) for n in names]
    return any(v is not None and v != NONE for v in given)


def plotted(site: Site) -> Value:
    """A plot shows, or will show, what it is given."""
    site.tell("write")
    return computed(site)


def stored(site: Site) -> Value | None:
    """``x[key] = v``: kept under the key, as the machine does."""
    moving = [v for v in site.all() if site.m.depends(v).kind not in placements.EQUAL]
    if moving:
        _held(site, differing(site, moving))
    return None


#: what the names of functions and methods begin with that write files, and that read them
WRITING = (
    "save", "write", "imwrite", "imsave", "mimsave", "mimwrite", "volwrite", "export", "to_csv",
    "to_json", "to_excel", "to_pickle", "to_parquet", "to_hdf", "to_sql", "to_feather",
    "to_filename", "to_disk", "to_file", "imshow",
)  # fmt: skip
READING = ("read", "load", "open", "imread", "parse", "from_file", "from_disk", "mimread")
#: methods of estimators that may draw from numpy's stream
_DRAWING = ("fit", "split", "sample", "rvs", "resample", "shuffle", "partial_fit")


def choose(word: str, family: Family | None = None) -> Effect:
    """The effect of a function or a method by its last word and its library."""
    if family is not None and family.shows:
        return plotted
    if word.startswith(WRITING) or word == "dump":
        return wrote
    effect = read if word.startswith(READING) else computed
    if family is not None and family.draws:
        names = family.names or _DRAWING
        if word.startswith(names):
            return drawing(family.draws, effect)
    return effect


def method(site: Site) -> Value | None:
    """Any method of an object of a pure library."""
    made = site.m.object(_owner(site.receiver)) if site.receiver is not None else None
    family = made.extra if made is not None and isinstance(made.extra, Family) else None
    return choose(site.word, family)(site)


ROWS = (
    Row("<any>.*", method),
    Row("<any>.__enter__", went_in),
    Row("<any>.__exit__", none),
    Row("<any>.__call__", method),
    Row(methods("any", "__iter__ __getitem__"), computed),
    Row("<any>.__len__ <any>.__contains__ <any>.__bool__ <any>.__str__", plain),
    Row("<any>.__setitem__", stored),
    Row("<any>.__delitem__", computed),
)  # fmt: skip
ATTRIBUTES = (Row("<any>.*", member),)


def pattern(name: str) -> Row | None:
    """Any name of a library that computes from what it is given."""
    family = family_of(name)
    if family is None:
        return None
    word = name.rpartition(".")[2]
    return Row(f"{name.partition('.')[0]}.*", choose(word, family), source=family.source)
