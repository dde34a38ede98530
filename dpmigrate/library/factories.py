"""New tensors: of given sizes, like others, of literals, drawn."""

from __future__ import annotations

from collections.abc import Iterable

from dpmigrate.execution import derivation, placements, sample_orders
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import LENGTH
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.samples import COUNTED, is_one
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Const,
    Data,
    Items,
    Ref,
    Setting,
    Value,
    const,
    data,
    known,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.collating import assembled, filled_up, is_filled_up
from dpmigrate.library.shapes import with_lengths
from dpmigrate.library.sites import OWN_SIZE, SINGLE, Site


def factory(site: Site) -> Value:
    """A tensor of given sizes: rows where one of them is the number of samples."""
    sizes, filled = _given_sizes(site)
    if site.arguments.star:
        return _open(site, sizes)
    if any(_several(site, s) for s in sizes):
        held = join(*[site.flat(s) for s in sizes])
        kind = placement_of(held).kind
        # as of sizes that are known one by one: what has a size of a rank's own is the rank's own
        lost = placements.PER_RANK if kind is Kind.PER_RANK else placements.UNKNOWN
        p = placements.UNIFORM if kind in placements.EQUAL else lost
        return _made(site, p, [held, *filled], None, filled)
    placement, axes = placements.UNIFORM, len(sizes)
    for i, s in enumerate(sizes):
        shaped = rows_of(s)
        if shaped is not None and shaped.kind == "shape":  # torch.zeros(x.shape)
            return _made(site, shaped.placement, [s, *filled], shaped.axes if axes == 1 else None, filled)
        p = placement_of(s)
        if p.kind in placements.EQUAL:
            continue
        if placement.kind is Kind.ROWS and (p.kind is Kind.PER_RANK or p == placements.MAX):
            placement = placement._replace(padded=True)  # as long as the longest that a rank has
            filled_up(site.m, s)
        else:
            placement = sized(p, i) if placement.kind is Kind.UNIFORM else placements.PER_RANK
    if site.word in ("zeros", "new_zeros") and placement.kind is Kind.UNIFORM:
        placement = placements.ZERO
    made = _made(site, placement, [*sizes, *filled], axes, filled)
    if placement.kind not in placements.EQUAL or not sizes:
        return made
    # what has no rows yet may grow; of two or three axes are the states of recurrent layers, and nobody asks for others
    return with_lengths(made, _written_out(sizes)) if known(sizes[0]) == 0 or 2 <= axes <= 3 else made


def _written_out(sizes: list[Value]) -> list[int | None]:
    """The sizes that the program has as numbers, as those of the states that a recurrent layer begins with."""
    found = [known(s) for s in sizes]
    return [n if type(n) is int else None for n in found]


def _several(site: Site, v: Value) -> bool:
    """Whether a size is a list of sizes that are not known one by one."""
    shaped = rows_of(v)
    if shaped is not None and shaped.kind == "shape":
        return False
    return bool(site.m.objects(v)) or any(
        isinstance(a, Data) and a.kind == "number" and a.placement.kind is Kind.UNKNOWN for a in v
    )


def _open(site: Site, sizes: list[Value]) -> Value:
    """A tensor of sizes of which only the first are known: ``torch.zeros(b, *others)``."""
    star = placement_of(site.arguments.star)
    lying = [placement_of(s) for s in sizes]
    moving = [i for i, p in enumerate(lying) if p.kind not in placements.EQUAL]
    if star.kind not in placements.EQUAL or len(moving) > 1:
        return _made(site, placements.UNKNOWN, [*sizes, site.arguments.star], None)
    p = sized(lying[moving[0]], moving[0]) if moving else placements.UNIFORM
    return _made(site, p, [*sizes, site.arguments.star], None)


def _made(site: Site, p: Placement, given: list[Value], axes: int | None, filled: Iterable[Value] = ()) -> Value:
    sources = [v for v in (site.flat(g) for g in given) if v]
    kind = "array" if site.name.startswith("numpy.") else "tensor"
    others = [q for v in given if (q := placement_of(v)).kind not in (Kind.SIZE, Kind.ROWS)]
    fitting = (*placements.EQUAL, *_SIZES, *((Kind.PER_RANK,) if p.padded else ()))
    if p.kind is Kind.ROWS and any(q.kind not in fitting for q in others):
        p = placements.PER_RANK
    made = derivation.derived(
        site.word, p, sources, site.node, kind=kind, axes=axes, gradient="none", keep_axes=False
    )
    if p == placements.PER_RANK:
        made = derivation.since(made, OWN_SIZE, site.node)
    return evened(made) if site.word.removeprefix("new_") in _FILLED and _one_number(filled) else made


def evened(made: Value) -> Value:
    """Tensors that hold one number all over."""
    return tuple(a._replace(even=True) if isinstance(a, Data) else a for a in made)


def _one_number(filled: Iterable[Value]) -> bool:
    """Whether it is a number that a tensor is filled with, as far as one is given."""
    return all(d.kind == "number" for v in filled for d in data(v))


#: what makes tensors that hold one number
_FILLED = ("zeros", "ones", "full")
_SIZES = (Kind.SIZE, Kind.PARTIAL)


def sized(p: Placement, axis: int) -> Placement:
    """How a tensor lies whose axis has a size that is no setting."""
    if p.kind is Kind.SIZE:
        return placements.rows(axis, times=max(p.times, 0))
    if p == placements.SUM:
        return placements.rows(axis, ragged=True, times=0)
    return placements.UNKNOWN if p.kind is Kind.UNKNOWN else placements.PER_RANK


def _given_sizes(site: Site) -> tuple[list[Value], list[Value]]:
    """The sizes that a factory is given, one by one, and what it is filled with."""
    named = site.arguments.keywords.get("size") or site.arguments.keywords.get("shape")
    positional = list(site.arguments.positional)
    filled: list[Value] = []
    if site.word in ("full", "new_full"):
        fill = site.arguments.keywords.get("fill_value") or (positional[-1] if positional else ())
        filled = [fill]
        positional = positional[:1]
    if site.word in ("randint", "normal", "uniform") and named is None:
        # the sizes are the last argument that is a sequence
        lists = [
            v for v in positional
            if site.m.known_elements(v) is not None or ((r := rows_of(v)) and r.kind == "shape")
        ]  # fmt: skip
        filled = [v for v in positional if v not in lists[-1:]]
        if not lists:
            third = site.get(2, "size")
            return ([third] if third and site.name.startswith("numpy.") else []), filled
        positional = lists[-1:]
    found: list[Value] = []
    for v in [named] if named is not None else positional:
        listed = site.m.known_elements(v)
        found += listed if listed is not None else [v]
    return found, filled


def like(site: Site) -> Value:
    """A tensor of the shape of another one."""
    given = site.flat(site.get(0) or ())
    p = placement_of(given)
    # of a single sample the rank has another one, of the same form; a scalar has one form alone
    formed = any(d.origin is not None and d.origin.word == SINGLE for d in data(given)) or all(d.axes == 0 for d in data(given))
    if p.kind not in (Kind.ROWS, Kind.PER_RANK, Kind.UNKNOWN) or (p.kind is Kind.PER_RANK and formed and site.word.endswith("_like")):
        p = placements.ZERO if site.word == "zeros_like" else placements.UNIFORM
    fill = site.get(1, "fill_value") if site.word == "full_like" else None
    if fill and placement_of(fill).kind not in placements.EQUAL:
        p = placements.elementwise([p, placement_of(fill)])
    made = derivation.derived(site.word, p, [given], site.node, gradient="none")
    if site.word.endswith("_like"):  # nothing of the samples is in it
        made = sample_orders.given(made, frozenset())
    return evened(made) if site.word.removesuffix("_like") in _FILLED and _one_number([fill or NOTHING]) else made


#: since what there are places of samples
PLACES = "places in the batch"
#: since what an order of the samples is drawn
DRAWN_ORDER = "an order of the samples"


def permuted(site: Site) -> Value:
    """``randperm(n)``: an order of the rank's own samples where n is their number."""
    given = site.flat(site.get(0) or ())
    p = placement_of(given)
    kind = "array" if site.name.startswith("numpy.") else "tensor"
    if rows_of(given) is not None:  # numpy.random.permutation(x)
        return site.data(placements.PER_RANK)
    if p.kind is Kind.SIZE and kind == "tensor":
        kind = "order"
    if p.kind not in placements.EQUAL:
        p = placements.UNKNOWN if p.kind is Kind.UNKNOWN else placements.PER_RANK
    return derivation.derived(
        DRAWN_ORDER, p if p.kind is not Kind.ZERO else placements.UNIFORM, [given],
        site.node, kind=kind, axes=1, gradient="none", keep_axes=False,
    )  # fmt: skip


#: keywords of functions that count
_COUNTS = ("start", "end", "stop", "step", "steps", "num", "n", "N", "m", "M")


def _end_of_a_range(site: Site) -> Value | None:
    """The end of ``arange(n)`` and ``arange(0, n)``, which give each place up to it; None for numbers that begin elsewhere or leave some out."""
    positional, named = site.arguments.positional, site.arguments.keywords
    ends = positional[:1] if len(positional) == 1 else positional[1:2]
    first, step = positional[0] if len(positional) > 1 else named.get("start"), positional[2] if len(positional) > 2 else named.get("step")
    if "start" in named and positional:  # arange(n, start=0) is none of torch's, and NumPy's stop is named beside it
        return None
    given = [*ends, *(v for name, v in named.items() if name in ("end", "stop"))]
    return given[0] if len(given) == 1 and first in (None, const(0)) and step in (None, const(1)) else None


def counted(site: Site) -> Value:
    """``arange(n)``, ``linspace``: numbers by their places; of the rank's samples they are
    their order.
    """
    kind = "array" if site.name.startswith("numpy.") else "tensor"
    named = [v for name, v in site.arguments.keywords.items() if name in _COUNTS]
    given = [*site.arguments.positional, *named]
    lying = [placement_of(v) for v in given]
    moving = [p for p in lying if p.kind not in placements.EQUAL]
    axes = 2 if site.word in ("eye", "tri", "identity") else 1
    if not moving:
        return value(Data(kind, placements.UNIFORM, axes=axes))
    lost = any(p.kind is Kind.UNKNOWN for p in moving)
    end = _end_of_a_range(site) if site.word == "arange" else None
    whole = end is not None and placement_of(end).kind is Kind.SIZE
    return derivation.derived(
        PLACES,
        placements.UNKNOWN if lost else placements.PER_RANK,
        given,
        site.node,
        kind="order" if whole else kind,
        axes=axes,
        gradient="none",
        keep_axes=False,
    )


def literal(site: Site) -> Value:
    """``torch.tensor(x)``, ``np.array(x)``: data of what a list holds."""
    first = 0 if site.receiver is None else 1
    given = site.get(first, "data") or site.get(first, "object") or ()
    found = site.flat(given)
    kind = "array" if site.name.startswith("numpy.") else "tensor"
    if not found and _zero(site, given):
        return value(Data(kind, placements.ZERO))
    if not site.arguments.all() or (given and site.m.known_elements(given) == []):
        return value(Data(kind, placements.UNIFORM, axes=1, lengths=(0,)))
    if not found:
        return value(Data(kind, placements.UNIFORM, axes=_nested(site, given)))
    if _filled_lists(site, given):
        return site.unknown("lists filled up to the longest")
    listed = site.m.known_elements(given)
    keep = listed is None and bool(data(given))
    lying = placement_of(found)
    if listed is not None:
        lying = placements.joined(placement_of(site.flat(v) or v) for v in listed)
    rows = rows_of(found) if lying.kind is Kind.ROWS else None
    if listed is not None and rows is not None:  # a list of rows is stacked
        axes = rows.axes + 1 if rows.axes is not None else None
        p = rows.placement._replace(axis=rows.placement.axis + 1)
        return derivation.derived(
            site.word, p, [found], site.node, kind=kind, gradient="none", axes=axes, keep_axes=False
        )
    one = keep and all(isinstance(a, Data) and a.kind == "number" and a.placement.kind is not Kind.ROWS for a in given)
    return derivation.derived(
        site.word,
        lying,
        [found],
        site.node,
        kind=kind,
        gradient="none",
        axes=0 if one else None if keep else _nested(site, given),
        keep_axes=keep,
    )


def _filled_lists(site: Site, given: Value) -> bool:
    """Whether a list that is put together of samples holds, or is, one that is filled up to the longest."""
    held = site.m.elements(given, site.node, site.frame) if any(o.kind == "list" for o in site.m.objects(given)) else NOTHING
    lists = [o for v in (given, held) for o in site.m.objects(v) if o.kind == "list"]
    lengths = [site.m.heap.read((o.number, LENGTH)) or NOTHING for o in lists]
    by_all = any(filled_up(site.m, v) for v in lengths if not all(is_one(a) or _several_of_each(a) for a in v))
    return by_all or (bool(assembled(site.m)) and is_filled_up(site.m) and any(_holds_more(site, a) for a in held))


def _several_of_each(a: Atom) -> bool:
    """Whether it is how many items there are in a list of some of each sample: they are put end to end, and none is filled up."""
    return isinstance(a, Data) and a.placement == placements.SUM and a.origin is not None and a.origin.word == COUNTED


def _holds_more(site: Site, a: Atom) -> bool:
    """Whether an item of a list is no number, and none that the data set gives."""
    made = site.m.object(a)
    return made.kind == "list" if made is not None else isinstance(a, Data) and a.kind not in ("number", "any")


def _nested(site: Site, given: Value, depth: int = 4) -> int | None:
    """How many axes data have that are made of a value: one for each list, and those of what is in
    it; 0 for a number.
    """
    held = known(given)
    if isinstance(held, int | float):
        return 0
    counts = {0 if d.kind == "number" else d.axes for d in data(given)}
    if len(counts) == len(given) == 1:
        return counts.pop()
    if not depth or not all(o.kind in ("list", "tuple") for o in site.m.objects(given)):
        return None
    listed = site.m.known_elements(given)
    if listed is None and site.m.objects(given):
        listed = [site.m.elements(given, site.node, site.frame)]
    if any(isinstance(a, Const) and isinstance(a.value, int | float) for v in listed or () for a in v):
        return 1  # beside a number stand only numbers
    inner = {_nested(site, v, depth - 1) for v in listed or ()}
    first = inner.pop() if len(inner) == 1 else None
    return first + 1 if first is not None else None


def _zero(site: Site, given: Value) -> bool:
    """Whether it is the number 0, or a list of it."""
    listed = site.m.known_elements(given)
    held = [known(v) for v in (listed if listed is not None else [given])]
    return bool(held) and all(type(h) in (int, float) and h == 0 for h in held)


def literal_or_sizes(site: Site) -> Value:
    """``torch.Tensor(2, 3)`` and ``x.new(x.size())`` have sizes, ``torch.Tensor([2, 3])`` has elements."""
    given = site.arguments.positional
    if len(given) == 1 and _is_size(given[0]):
        return factory(site)
    plain = all(not site.m.objects(v) and site.m.known_elements(v) is None for v in given)
    numbers = all(d.kind in ("number", "shape") for v in given for d in data(v))
    if len(given) == 1 and _size_or_elements(given[0]):
        return value(Data("tensor", placements.UNIFORM))
    return factory(site) if given and plain and numbers else literal(site)


def _size_or_elements(v: Value) -> bool:
    """Whether nothing says what a value is that all ranks share: a size, or an array whose elements
    are taken over with all of its axes.
    """
    named = (Const, Data, Items, Ref)
    return placement_of(v).kind in placements.EQUAL and any(
        not isinstance(a, named) and not (isinstance(a, Setting) and a.default) for a in v
    )


def _is_size(v: Value) -> bool:
    """Whether a value is the size of a batch, with the number of its samples."""
    sizes = [a.items for a in v if isinstance(a, Items)]
    return len(sizes) == len(v) == 1 and any(
        isinstance(a, Data) and a.placement.kind is Kind.SIZE for i in sizes[0] for a in i
    )


def converted(site: Site) -> Value | None:
    """``torch.from_numpy``, ``torch.as_tensor``: the same data as a tensor."""
    given = site.get(0) or NOTHING
    if site.word == "from_numpy" and data(given):  # it takes no tuple
        given = tuple(a for a in given if not isinstance(a, Items))
    if data(given):
        kinds = ("mask", "places", "order")
        return tuple(
            a._replace(kind="tensor") if isinstance(a, Data) and a.kind not in kinds else a
            for a in given
        )
    return literal(site)
