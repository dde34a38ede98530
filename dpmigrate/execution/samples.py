"""Loops over the samples of a batch: ``for i in range(len(x))``, ``for a, b in zip(x, y)``.

Each rank has as many turns as it has samples, and a turn does to one sample what the others do to
theirs. What a turn makes of its sample alone is a TERM: added up over the turns it is the rank's
part of the sum over the global batch, and put into a list it is a row for each sample. The place
of a sample (``i``) is the same number on all ranks and that of another sample on one process:
what depends on it otherwise than by taking that sample differs from what one process has.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dpmigrate.execution import placements
from dpmigrate.execution.derivation import of_others
from dpmigrate.execution.joins import join, normal
from dpmigrate.execution.objects import ELEMENTS, EXISTS, LENGTH, SCOPES, Delta, Location, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    ONE,
    ONE_SAMPLE,
    OTHERS,
    PLACE,
    RESULTS,
    SOME_TURNS,
    Atom,
    Const,
    Data,
    Items,
    Origin,
    Ref,
    Setting,
    Unbound,
    Value,
    value,
)

if TYPE_CHECKING:
    from dpmigrate.execution.machine import Machine

#: since when a number is how many turns there were
COUNTED = "counted"
#: a mark of a list or a dictionary that a sample holds
OF_A_SAMPLE = "of a sample"
#: a mark of a list in an order of its own
OWN_ORDER = "in its own order"
#: data whose rows are no samples, or not in the order of the batch; what is gone through of a batch of
#: unknown form may be its fields, each of all samples (``x, y = (t.to(device) for t in batch)``), and so may
#: what a network of unseen code gives
_OTHERS = ("order", "places", "shape", "packed", "batch", RESULTS)


def counts(n: Value | None) -> bool:
    """Whether a number is that of the samples of one batch."""
    return bool(n) and all(isinstance(a, Data) and a.placement == placements.size(1) for a in n or ())


def through(m: Machine, iterable: Value) -> bool:
    """Whether a loop has a turn for each sample of a batch, in their order.

    Loops in turns that each rank has of its own have no need of this: whatever such a turn makes
    is the turn's.
    """
    if m.turns or m.parted is not None or len(iterable) != 1:
        return False
    atom, made = iterable[0], m.object(iterable[0])
    if isinstance(atom, Data):
        p = atom.placement
        return p.kind is Kind.ROWS and not (p.axis or p.ragged) and atom.kind not in _OTHERS
    return made is not None and made.kind in ("list", "iterator") and all_of_batch(m, made)


def all_of_batch(m: Machine, made: Object, *, one: bool = False) -> bool:
    """Whether a list or an iterator has items for each sample of a batch; ``one``: one of each."""
    held = m.heap.read((made.number, LENGTH)) or NOTHING
    sized = [a for a in held if isinstance(a, Data)]
    return (
        bool(sized)
        and all(a.placement.kind is Kind.SIZE for a in sized)
        and (not one or all(a.placement == placements.size(1) for a in sized))
        and all(isinstance(a, Data) or _zero(a) for a in held)
    )


def some(m: Machine, iterable: Value) -> bool:
    """Whether a loop over samples has a turn for certain: no batch is without samples, but a list that
    holds something for each may not be filled.
    """
    made = m.object(iterable[0])
    return made is None or not any(map(_zero, m.heap.read((made.number, LENGTH)) or NOTHING))


def element(m: Machine, v: Value, node: ast.AST) -> Value:
    """What a turn takes: of what has an item for each sample that of its own sample, of anything
    else one that depends on the sample's place. ``node`` is what is gone through.
    """
    return normal(tuple(_element(m, a, node) for a in v))


def _element(m: Machine, a: Atom, node: ast.AST) -> Atom:
    match a:
        case Items():
            return Items(tuple(element(m, v, node) for v in a.items))
        case Ref() if OF_A_SAMPLE in m.heap.objects[a.object].marks:
            return _container(m, m.heap.objects[a.object], node)
        case Data() if is_one(a):
            return a._replace(placement=placements.TERM, turn=True, whose="")
        case Data() if a.placement.kind in placements.EQUAL:
            return a._replace(turn=True)
        case Setting():
            word = a.word if a.word == PLACE else "beside a sample"
            return Data("number", placements.UNIFORM, origin=Origin(node, word), turn=True)
    return a


def _container(m: Machine, made: Object, node: ast.AST) -> Ref:
    """A list or a dictionary of a sample as that of the turn's own one: what it holds is the turn's, and what is read of
    another sample's is not.
    """
    own = twin(m, made, node, "of the turn", lambda held: element(m, held, node))
    own.marks.add(OF_A_SAMPLE)
    count = m.heap.read((own.number, LENGTH))
    if count:
        m.heap.write((own.number, LENGTH), normal(tuple(_own_count(a) for a in count)))
    return Ref(own.number)


def twin(m: Machine, made: Object, node: ast.AST, which: object, as_seen: Callable[[Value], Value]) -> Object:
    """Another object for a list or a dictionary, with what it holds as that is seen there; notes of the machine stay."""
    other = m.heap.new(made.kind, made.name, node, made.context, key=(which, made.number))
    for name, held in list(m.heap.names(made.number)):
        noted = isinstance(name, str) and name.startswith("#")
        m.heap.write((other.number, name), held if noted else as_seen(held))
    return other


def others(m: Machine, v: Value, node: ast.AST) -> Value:
    """What is taken of samples in another order than that of the turns, or of one that is not the turn's own."""
    return normal(tuple(_others(m, a, node) for a in v))


def _others(m: Machine, a: Atom, node: ast.AST) -> Atom:
    match a:
        case Items():
            return Items(tuple(others(m, v, node) for v in a.items))
        case Data() if of_others(a):
            return a._replace(origin=Origin(node, SOME_TURNS, a.origin), whose=OTHERS)
        case Ref() if OF_A_SAMPLE in m.heap.objects[a.object].marks:
            made = m.heap.objects[a.object]
            other = twin(m, made, node, "of others", lambda held: others(m, held, node))
            count = m.heap.read((other.number, LENGTH))
            if count:
                m.heap.write((other.number, LENGTH), tuple(n._replace(whose=OTHERS) if isinstance(n, Data) else n for n in count))
            return Ref(other.number)
    return a


def of_turns(m: Machine, v: Value, node: ast.AST) -> Value:
    """What a turn puts into a list: lists and dictionaries of samples that are not the turn's own are told from those that are."""
    return tuple(others(m, (a,), node)[0] if isinstance(a, Ref) and _held_by_others(m, a) else a for a in v)


def _held_by_others(m: Machine, a: Ref) -> bool:
    made = m.heap.objects[a.object]
    return OF_A_SAMPLE in made.marks and any(map(of_others, m.contents(made)))


def _own_count(a: Atom) -> Atom:
    """How many items a list of the turn's own sample has."""
    own = isinstance(a, Data) and a.placement.kind is Kind.PER_RANK
    return a._replace(placement=placements.TERM, turn=True) if own and isinstance(a, Data) else a


def is_place(v: Value) -> bool:
    """Whether a value is the place of the turn's own sample."""
    return bool(v) and all(map(_is_place, v)) and all(isinstance(a, Data) and a.turn for a in v)


def _is_place(a: Atom) -> bool:
    return isinstance(a, Data) and a.placement.kind in placements.EQUAL and a.origin is not None and a.origin.word == PLACE


def of_turn(v: Value) -> bool:
    """Whether a value is made of the turn's own sample alone."""
    return bool(v) and all(
        isinstance(a, Data) and a.turn and a.placement.kind is Kind.TERM for a in v
    )


def is_one(a: Atom) -> bool:
    """Whether it is one item of what has an item for each sample."""
    return isinstance(a, Data) and a.placement.kind is Kind.PER_RANK and a.whose == ONE


def kept(v: Value, node: ast.AST) -> Value:
    """What a list holds of what each turn appends: an item for each sample."""
    out: list[Atom] = []
    for a in added(v, node):
        if isinstance(a, Const) and a.type in ("int", "float"):
            a = Data("number", placements.TERM, turn=True)
        if isinstance(a, Data) and a.turn and a.placement == placements.TERM:
            origin = Origin(node, ONE_SAMPLE, a.origin)
            a = a._replace(placement=placements.PER_RANK, origin=origin, turn=False, whose=ONE)
        elif isinstance(a, Data) and of_others(a):
            a = a._replace(origin=Origin(node, SOME_TURNS, a.origin), whose=OTHERS)
        elif isinstance(a, Items):
            a = a._replace(items=tuple(kept(v, node) for v in a.items))
        out.append(a)
    return normal(tuple(out))


def added(v: Value, node: ast.AST) -> Value:
    """What each turn adds to a sum: its own, or the same in each; what belongs to all samples is
    added as often as a rank has some.
    """
    return normal(tuple(
        a._replace(placement=placements.TERM, turn=True, origin=Origin(node, "in each turn"))
        if isinstance(a, Data) and not a.turn and a.placement.kind is Kind.UNIFORM
        else _so_far(a, node, placements.EQUAL)
        for a in v
    ))  # fmt: skip


def so_far(v: Value, node: ast.AST) -> Value:
    """A value in a turn for each sample where it is used for more than adding to it: a sum is that
    of the samples so far.
    """
    return normal(tuple(_so_far(a, node, _WHOLE) for a in v))


#: what a turn may read of all samples: the batch, and how many there are
_WHOLE = (*placements.EQUAL, Kind.ROWS, Kind.SIZE)


def _so_far(a: Atom, node: ast.AST, fine: tuple[Kind, ...]) -> Atom:
    if not isinstance(a, Data) or a.turn or a.placement.kind in (Kind.UNKNOWN, Kind.PER_RANK):
        return a
    counted = a.placement.kind is Kind.SIZE and a.origin is not None and a.origin.word == COUNTED
    if a.placement.kind in fine and not counted:
        return a
    return a._replace(placement=placements.PER_RANK, origin=Origin(node, SOME_TURNS), whose=OTHERS)


def of_some(v: Value, node: ast.AST) -> Value:
    """What is made of one sample and of others beside it, or of samples in another order."""
    return normal(tuple(
        a._replace(placement=placements.PER_RANK, turn=False, origin=Origin(node, SOME_TURNS), whose=OTHERS)
        if isinstance(a, Data) and a.placement.kind not in (*placements.EQUAL, Kind.UNKNOWN) else a
        for a in v
    ))  # fmt: skip


def begun(v: Value) -> bool:
    """Whether a value may be what earlier turns have added up: a 0 beside it is where that began."""
    return any(isinstance(a, Data) and not a.turn and a.placement == placements.SUM for a in v)


def loose(m: Machine, v: Value, whose: str = OTHERS) -> Value:
    """Samples, and places of samples, of which it is not known any more which turn has which; ``whose`` is ``SOME`` where each
    may be where it was.
    """
    out: list[Atom] = []
    for a in v:
        if isinstance(a, Data) and is_one(a) and a.origin is not None:
            a = a._replace(origin=Origin(a.origin.node, "some samples", a.origin), whose=whose)
        elif _is_place(a) or (isinstance(a, Setting) and a.word == PLACE):
            a = Setting()
        elif isinstance(a, Items):
            a = a._replace(items=tuple(loose(m, v, whose) for v in a.items))
        elif whose == OTHERS and isinstance(a, Ref) and OF_A_SAMPLE in m.heap.objects[a.object].marks:
            a = _others(m, a, m.heap.objects[a.object].node or ast.Pass())
        out.append(a)
    return tuple(out)


def listed(m: Machine, made: Object) -> Value | None:
    """A list with an item for each sample as a tensor of rows; None where it is not one."""
    held = m.contents(made)
    if not held or not all(map(is_one, held)):
        return None
    count = m.heap.read((made.number, LENGTH)) or NOTHING
    sized = [a for a in count if isinstance(a, Data)]
    if not sized or not all(isinstance(a, Data) or _zero(a) for a in count):
        return None
    ragged = any(a.placement == placements.SUM for a in sized)
    if not all(a.placement == placements.SUM or a.placement.kind is Kind.SIZE for a in sized):
        return None
    lying = placements.rows(ragged=ragged, times=0)
    out: list[Atom] = []
    for a in held:
        if isinstance(a, Data):
            inner = 0 if a.kind == "number" else a.axes
            out.append(a._replace(placement=lying, axes=None if inner is None else inner + 1, whose=""))
    return tuple(out)


def _zero(a: Atom) -> bool:
    return isinstance(a, Const) and a.value == 0


def after_turn(v: Value) -> Value:
    """A value after the turn that made it: what is the next turn's own is no longer this one's."""
    if not any(_of_a_turn(a) for a in v):
        return v
    return normal(tuple(_after(a) for a in v))


def _of_a_turn(a: Atom) -> bool:
    return isinstance(a, Items) or (isinstance(a, Data) and a.turn)


def _after(a: Atom) -> Atom:
    if isinstance(a, Items):
        return a._replace(items=tuple(after_turn(v) for v in a.items))
    if not isinstance(a, Data) or not a.turn:
        return a
    if a.placement.kind in (*placements.EQUAL, Kind.UNKNOWN):
        return a._replace(turn=False)
    return a._replace(placement=placements.PER_RANK, turn=False, whose=ONE)


def ended(m: Machine, outcomes: list[Delta], found: list[Value] | None = None) -> list[Delta]:
    """What a turn leaves behind on each of its ways to its end.

    ``found``: what a comprehension lists.
    """
    left: list[Delta] = []
    for outcome in outcomes:
        own = _own_lists(m, outcome)
        left.append({at: v and after_turn(_listing(m, at, v, own)) for at, v in outcome.items()})
        if found:
            found[:] = [_as_items(v, own) for v in found]
        for n in own:
            m.heap.let_go(n)
    return left


def _own_lists(m: Machine, outcome: Delta) -> dict[int, Value]:
    """Lists that a turn makes of its own sample, if nothing but names and older lists holds them:
    what each is as one item.
    """
    objects = m.heap.objects
    made = {n for n, name in outcome if name == EXISTS and n in objects and objects[n].kind == "list"}
    made -= {n for n in made if OF_A_SAMPLE in objects[n].marks}
    if not made:
        return {}
    for (owner, name), v in outcome.items():
        if v and owner in objects and objects[owner].kind not in SCOPES:
            listed = name == ELEMENTS and owner not in made
            made -= {n for a in v for n in _held(a) if not (listed and isinstance(a, Ref))}
    return {n: item for n in made if (item := _item(outcome, n))}


def _held(a: Atom) -> Iterator[int]:
    if isinstance(a, Ref):
        yield a.object
    elif isinstance(a, Items):
        for v in a.items:
            for inner in v:
                yield from _held(inner)


def _listing(m: Machine, at: Location, v: Value, own: dict[int, Value]) -> Value:
    if at[1] != ELEMENTS or not any(isinstance(a, Ref) and a.object in own for a in v):
        return v
    node = m.heap.objects[at[0]].node or ast.Pass()  # what other turns have put there is theirs still
    return join(*(kept(own[a.object], node) if isinstance(a, Ref) and a.object in own else (a,) for a in v))


def _as_items(v: Value, own: dict[int, Value]) -> Value:
    return join(*(own.get(a.object, (a,)) if isinstance(a, Ref) else (a,) for a in v))


def _item(outcome: Delta, number: int) -> Value:
    """A list as one item of the turn's own sample; nothing where it holds anything else."""
    fields = {name: v for (n, name), v in outcome.items() if n == number and v}
    held = join(*(v for name, v in fields.items() if name == ELEMENTS or isinstance(name, int)))
    own = [a for a in held if isinstance(a, Data) and a.turn and a.placement == placements.TERM]
    plain = all(a in own or isinstance(a, Const | Unbound) for a in held)
    counted = all(
        isinstance(a, Const | Setting) or (isinstance(a, Data) and a.turn)
        for a in fields.get(LENGTH, NOTHING)
    )
    if not own or not plain or not counted:
        return NOTHING
    sources = frozenset[int]().union(*(a.sources for a in own))
    return value(own[0]._replace(kind="tensor", axes=None, sources=sources))


def by_place(v: Value, origin: Origin) -> Value:
    """What the place of a sample has chosen, or how many turns there were before it."""
    out: list[Atom] = []
    for a in v:
        match a:
            case Data() if a.placement.kind in placements.EQUAL:
                out.append(a._replace(turn=True, origin=a.origin or origin))
            case Data() if a.placement.kind is not Kind.UNKNOWN:
                out.append(a._replace(placement=placements.PER_RANK, origin=origin, turn=False))
            case Const(type="NoneType") | Unbound():
                out.append(a)
            case Const() | Setting():
                text = isinstance(a, Const) and isinstance(a.value, str)
                kind = "text" if text else "number"
                out.append(Data(kind, placements.UNIFORM, origin=origin, turn=True))
            case _:
                out.append(a)
    return normal(tuple(out))
