"""``len(x)``: how many rows a batch has, and how many items a container
(https://docs.python.org/3/library/functions.html#len).
"""

from __future__ import annotations

from dpmigrate.execution import derivation, placements, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import ELEMENTS, KEYS, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    ONE,
    ONE_SAMPLE,
    RESULTS,
    SETTING,
    Data,
    Origin,
    Value,
    const,
    data,
    origins,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.collating import HOW_MANY
from dpmigrate.library.sites import DIFFERENT, OF_ONE_SIZE, Row, Site, examples
from dpmigrate.library.sizes import as_many_as_all, size_of

_DOC = "https://docs.python.org/3/library/functions.html"


def length(site: Site) -> Value:
    """``len(x)``: of rows their number, of a container what is known of it."""
    given = site.get(0) or ()
    found: list[Value] = []
    for atom in given:
        made = site.m.object(atom)
        listed = site.m.known_elements((atom,))
        if isinstance(atom, Data) and atom.kind == "shape":
            found.append(SETTING)
        elif isinstance(atom, Data) and atom.kind == RESULTS and atom.placement.kind is Kind.ROWS:
            found.append(site.unknown("how many results a network gives"))
        elif isinstance(atom, Data):
            rows = rows_of((atom,))
            if rows is not None:
                found.append(size_of(site, rows, 0))
                continue
            if atom.every and atom.axes != 0:
                found.append(as_many_as_all(site, (atom,)))
                continue
            if any(o.word == OF_ONE_SIZE for o in origins(atom.origin)):
                found.append(SETTING)
                continue
            # a sample's own sequence may be as long as no other one
            own = atom.turn and atom.placement.kind is Kind.TERM
            lost = atom.placement.kind in (Kind.UNKNOWN, Kind.PER_RANK)
            p = placements.TERM if own else atom.placement if lost else placements.UNIFORM
            found.append(
                derivation.derived(
                    "len", p, [(atom,)], site.node, kind="number", gradient="none", keep_axes=False
                )
            )
        elif listed is not None:
            found.append(const(len(listed)))
        elif made is not None and (method := site.m.method_of(made, "__len__")) is not None:
            found.append(site.m.call(value(method), Arguments(), site.node, site.frame))
        elif made is not None:
            held = site.m.count(made)
            said = site.m.library.method(site.m, atom, "__len__", Arguments(), site.node, site.frame)
            of_all = _of_one(site, held) or (held if samples.all_of_batch(site.m, made) else None)
            number = _counted(site, made)
            different = tuple(a for a in held if isinstance(a, Data) and any(o.word == DIFFERENT for o in origins(a.origin)))
            found.append(different or of_all or _samples_in(site, made) or held or said or number or SETTING)
        else:
            found.append(SETTING)
    return join(*found)


def _of_one(site: Site, held: Value) -> Value:
    """The number of items of a list that one sample holds: it is that sample's own."""
    own = [a for a in held if isinstance(a, Data) and a.origin is not None and a.origin.word == HOW_MANY]
    if len(held) != 1 or not own:
        return NOTHING
    origin = Origin(site.node, ONE_SAMPLE, own[0].origin)
    return value(own[0]._replace(kind="number", origin=origin, whose="" if own[0].turn else own[0].whose or ONE))


def _counted(site: Site, made: Object) -> Value:
    """The number of what a list was made of, where it is one of something else."""
    count = site.m.counted.get(made.number)
    return count.base if count is not None and not count.more else NOTHING


def _samples_in(site: Site, made: Object) -> Value:
    """The number of items of a list into which a rank has put its samples one by one: a part of
    those of all ranks; that of different ones, as a dictionary has by its keys, is the rank's own.
    """
    keys = site.m.heap.read((made.number, KEYS)) or NOTHING if made.kind == "dict" else NOTHING
    if any(d.placement.kind not in placements.EQUAL for d in data(site.flat(keys))):
        return derivation.since(site.data(placements.PER_RANK, kind="number"), DIFFERENT, site.node)
    for d in data(site.m.heap.read((made.number, ELEMENTS)) or NOTHING):
        if d.placement.kind is Kind.PER_RANK and any(o.word == ONE_SAMPLE for o in origins(d.origin)):
            return derivation.derived(
                "len", placements.SUM, [value(d)], site.node, kind="number", gradient="none",
                keep_axes=False,
            )  # fmt: skip
    return NOTHING


ROWS = (
    Row(
        "builtins.len",
        length,
        examples("""
len(x)
len(torch.cat([x, y]))
len(x[x[:, 0] > 0])
len([x, y])
len(x.t())
len(x.mean(0))
"""),
        _DOC,
    ),
)  # fmt: skip
