"""The vocabulary of the tables: what operations do to placements."""

from __future__ import annotations

from collections.abc import Callable

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    SETTING,
    Const,
    Data,
    Setting,
    Value,
    const,
    data,
    items,
    join,
    placement_of,
    value,
)
from dpmigrate.library.sites import Effect, Site, dims_of, on_axis, rows_of


def elementwise(site: Site) -> Value:
    """Each element by itself; tensors are put beside each other element by element."""
    return site.each()


def number(site: Site) -> Value:
    """A plain number made of numbers."""
    return site.each(kind="number") if site.operands() else SETTING


def same(site: Site) -> Value | None:
    """The tensor itself, or a copy of it: moved, cast, cloned."""
    given = site.get(0)
    return given if given else None


def detached(site: Site) -> Value | None:
    """The same without its gradient."""
    given = site.get(0)
    return cut(given) if given else None


def cut(v: Value) -> Value:
    """A value through which no gradient flows."""
    return tuple(
        a._replace(gradient="none", reached=frozenset()) if isinstance(a, Data) else a for a in v
    )


def host(kind: str) -> Effect:
    """The same as a number or an array of the host."""

    def effect(site: Site) -> Value | None:
        given = site.get(0)
        if not given:
            return None
        return tuple(a._replace(kind=kind) if isinstance(a, Data) else a for a in cut(given))

    return effect


def uniform(site: Site) -> Value:
    """Plain data, the same on every rank."""
    return SETTING


def none(site: Site) -> Value:
    """No result."""
    return NONE


def reduce(how: str) -> Effect:
    """A reduction over axes, over all of them where none is named; ``how`` is "" for other statistics."""

    def effect(site: Site) -> Value:
        first = site.get(0) or ()
        found = rows_of(first)
        second = site.get(1)
        if second and any(d.kind != "number" for d in data(second)):
            return site.each()  # torch.max(x, y)
        if found is None:
            return _not_rows(site, how)
        try:
            dims = dims_of(site, 1)
        except LookupError:
            return site.unknown(f"the axes of {site.word}")
        if dims is None:
            return site.data(_over(found.placement, how), axes=0)
        hits = [on_axis(d, found) for d in dims]
        if None in hits:
            return site.unknown(f"which axis of {site.word} runs over the samples")
        left = found.axes - len(dims) if found.axes is not None else None
        if any(hits):
            return _pair(site, site.data(_over(found.placement, how), axes=left))
        keep = site.constant(2, "keepdim", site.constant(-1, "keepdims", False))
        before = 0 if keep else sum(1 for d in dims if 0 <= d < found.placement.axis)
        placement = found.placement._replace(axis=found.placement.axis - before)
        axes = found.axes if keep else left
        return _pair(site, site.data(placement, axes=axes, keep_axes=bool(keep)))

    return effect


def _pair(site: Site, v: Value) -> Value:
    """``max(dim)`` gives values and places."""
    if site.word in ("max", "min", "median", "mode", "kthvalue", "topk", "cummax") and (
        site.receiver is None or isinstance(site.receiver, Data)
    ):
        if any(d.kind == "tensor" for d in data(v)):
            return items([v, cut(v)])
    return v


def _over(p: Placement, how: str) -> Placement:
    """A reduction over the samples."""
    match how:
        case "mean":
            return placements.RATIO if p.ragged else placements.MEAN
        case "sum":
            return placements.SUM
        case "max":
            return placements.MAX
        case "min":
            return placements.MIN
        case _:
            return placements.PER_RANK


def _not_rows(site: Site, how: str) -> Value:
    """A reduction of what has no rows: of parts it keeps the linear ones."""
    p = placement_of(site.flat(site.get(0) or ()))
    linear = (
        how in ("sum", "mean")
        and p.kind in (Kind.PARTIAL, Kind.SIZE)
        and p.how in ("sum", "mean", "")
    )
    if linear or p.kind in (*placements.EQUAL, Kind.PER_RANK, Kind.RATIO, Kind.UNKNOWN):
        return site.data(p, keep_axes=False)
    return site.data(placements.PER_RANK, keep_axes=False)


def along(index: int = 1, default: int | None = None) -> Effect:
    """A function along one axis (softmax, sort, cumsum): coupled where that axis runs over the samples."""

    def effect(site: Site) -> Value:
        found = rows_of(site.get(0) or ())
        if found is None:
            return site.each()
        try:
            dims = dims_of(site, index)
        except LookupError:
            return site.unknown(f"the axis of {site.word}")
        dims = dims if dims is not None else ([default] if default is not None else [0])
        hits = [on_axis(d, found) for d in dims]
        if None in hits:
            return site.unknown(f"which axis of {site.word} runs over the samples")
        placement = placements.PER_RANK if any(hits) else found.placement
        made = site.data(placement, axes=found.axes)
        if site.word in ("sort", "topk", "kthvalue", "median", "mode", "cummax", "cummin"):
            return items([made, cut(made)])
        return made

    return effect


def reshape(site: Site) -> Value:
    """``view``, ``reshape``: the rows stay in front where the first size is theirs."""
    first = site.get(0) or ()
    found = rows_of(first)
    if found is None:
        return site.data(placement_of(site.flat(first)), keep_axes=False)
    sizes = _sizes(site)
    if sizes is None:
        return site.unknown(f"the sizes of {site.word}")
    p = found.placement
    for i, s in enumerate(sizes):
        if placement_of(s).kind is Kind.SIZE:
            return site.data(p._replace(axis=i), axes=len(sizes))
    if sizes and _is(sizes[0], -1):
        # the rows are merged with what stands beside them, or are the first axis as before
        single = len(sizes) == 1 and found.axes != 1
        times = 0 if single or (found.axes or 0) > len(sizes) else p.times
        return site.data(p._replace(axis=0, times=times), axes=len(sizes))
    if any(_is(s, -1) for s in sizes):
        if p.axis == 0 and len(sizes) > 1:
            # a constant in front of -1: the batch size written as a number, or rows merged
            return site.unknown("whether the first axis of a view is the samples")
    return site.unknown("which axis of a view runs over the samples")


def _sizes(site: Site) -> list[Value] | None:
    given = (
        site.arguments.positional if site.receiver is not None else site.arguments.positional[1:]
    )
    if len(given) == 1:
        listed = site.m.known_elements(given[0])
        if listed is not None:
            return listed
        if data(given[0]) and placement_of(given[0]).kind is Kind.ROWS:
            return [value(Data("number", placements.size())), SETTING]  # x.view(y.shape)
    if site.arguments.star:
        return None
    return list(given)


def _is(v: Value, n: int) -> bool:
    return v == const(n)


def permute(site: Site) -> Value:
    """``permute`` and ``transpose``: the axis of the rows moves."""
    first = site.get(0) or ()
    found = rows_of(first)
    if found is None:
        return site.data(placement_of(site.flat(first)))
    p, axes = found.placement, found.axes
    try:
        if site.word in ("t", "T", "mT", "adjoint"):
            return site.data(p._replace(axis=1 - p.axis), axes=2)
        if site.word in ("transpose", "swapaxes", "swapdims"):
            pair = [dims_of(site, 1, "dim0"), dims_of(site, 2, "dim1")]
            a, b = (d[0] for d in pair if d)
            hits = [on_axis(a, found), on_axis(b, found)]
            if None in hits:
                return site.unknown("which axes are swapped")
            to = b if hits[0] else a if hits[1] else p.axis
            if to < 0:
                if axes is None:
                    return site.unknown("which axes are swapped")
                to += axes
            return site.data(p._replace(axis=to), axes=axes)
        order = [d for v in (_sizes(site) or []) for d in [_int(v)]]
        axes = len(order)
        order = [d + axes if d < 0 else d for d in order]
        return site.data(p._replace(axis=order.index(p.axis)), axes=axes)
    except (LookupError, ValueError):
        return site.unknown(f"the axes of {site.word}")


def _int(v: Value) -> int:
    if len(v) == 1 and isinstance(v[0], Const) and isinstance(v[0].value, int):
        return v[0].value
    raise LookupError


def squeeze(step: int) -> Effect:
    """``unsqueeze`` (1) and ``squeeze`` (-1): the axis of the rows moves by one if it lies behind."""

    def effect(site: Site) -> Value:
        found = rows_of(site.get(0) or ())
        if found is None:
            return site.data(placement_of(site.flat(site.get(0) or ())), keep_axes=False)
        axes = found.axes + step if found.axes is not None else None
        try:
            dims = dims_of(site, 1)
        except LookupError:
            return site.unknown(f"the axis of {site.word}")
        if dims is None:  # squeeze(): the samples are not one alone
            return site.data(found.placement, keep_axes=False)
        dim = dims[0]
        if dim < 0 and axes is not None:
            dim += axes if step > 0 else axes - step
        behind = 0 <= dim <= found.placement.axis if step > 0 else 0 <= dim < found.placement.axis
        placement = found.placement
        if behind:
            placement = placement._replace(axis=placement.axis + step)
        return site.data(placement, axes=axes, keep_axes=False)

    return effect


def flatten(site: Site) -> Value:
    """Axes made one."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.data(placement_of(site.flat(site.get(0) or ())), keep_axes=False)
    start = site.constant(1, "start_dim", 0)
    if isinstance(start, int) and start > found.placement.axis:
        return site.data(found.placement, axes=start + 1)
    if start == 0 and found.placement.axis == 0:
        return site.data(found.placement._replace(times=0), axes=1)
    return site.unknown("axes flattened with that of the samples")


def cat(site: Site) -> Value:
    """Tensors put end to end along an axis."""
    parts = _parts(site)
    try:
        dim = (dims_of(site, 1) or [0])[0]
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    placement = placement_of(join(*parts)) if parts else placements.UNIFORM
    found = next((d for v in parts for d in data(v) if d.placement.kind is Kind.ROWS), None)
    if found is None:
        # numbers of ranks put side by side stay the parts that they are
        return site.data(placement, keep_axes=False)
    if (
        any(placement_of(v).kind is not Kind.ROWS for v in parts)
        and on_axis(dim, found) is not False
    ):
        return site.data(placements.PER_RANK if placement.kind is not Kind.UNKNOWN else placement)
    hit = on_axis(dim, found)
    if hit is None:
        return site.unknown(f"the axis of {site.word}")
    p = placements.elementwise(placement_of(v) for v in parts)
    if hit:
        return site.data(p._replace(segments=max(2, len(parts))), axes=found.axes)
    return site.data(p, axes=found.axes)


def stack(site: Site) -> Value:
    """Tensors put side by side along a new axis."""
    parts = _parts(site)
    try:
        dim = (dims_of(site, 1) or [0])[0]
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    p = placements.elementwise(placement_of(v) for v in parts)
    found = next((d for v in parts for d in data(v) if d.placement.kind is Kind.ROWS), None)
    if found is None:
        return site.data(placement_of(join(*parts)), keep_axes=False)
    if p.kind is not Kind.ROWS:
        return site.data(p, keep_axes=False)
    shift = 1 if 0 <= dim <= found.placement.axis else 0
    axes = found.axes + 1 if found.axes is not None else None
    return site.data(p._replace(axis=p.axis + shift), axes=axes, keep_axes=False)


def _parts(site: Site) -> list[Value]:
    """The tensors of a list argument."""
    given = site.get(0, "tensors") or ()
    listed = site.m.known_elements(given)
    if listed is None:
        return [site.flat(site.m.elements(given, site.node, site.frame))]
    return [site.flat(v) for v in listed]


def matmul(site: Site) -> Value:
    """A product of matrices: contracts the last axis of the first with the one before last of the second."""
    operands = [site.flat(v) for v in site.all()[:2]]
    a, b = (rows_of(v) for v in operands)
    if a is None and b is None:
        return site.data(placements.elementwise(placement_of(v) for v in operands), keep_axes=False)
    if a is not None and b is not None:
        both = a.placement.axis == b.placement.axis == 0
        if both and min(a.axes or 0, b.axes or 0) >= 3:
            return site.data(placements.join(a.placement, b.placement), axes=a.axes)
        if both and site.word in ("bmm", "baddbmm"):
            return site.data(placements.join(a.placement, b.placement), axes=3)
        if a.placement.axis == 1 and b.placement.axis == 0 and a.axes in (2, None):
            return site.data(placements.SUM, axes=2)  # x.T @ y adds up over the samples
        if both and site.word == "matmul" and None in (a.axes, b.axes):
            return site.unknown("whether the samples meet in a product of tensors")
        return site.data(placements.PER_RANK, keep_axes=False)
    found = a or b
    assert found is not None
    other = operands[1] if a is not None else operands[0]
    if placement_of(other).kind not in placements.EQUAL:
        return site.data(placements.PER_RANK, keep_axes=False)
    contracted = found.axes is not None and (
        found.placement.axis == (found.axes - 1 if a is not None else max(found.axes - 2, 0))
    )
    if contracted:
        return site.data(placements.SUM, keep_axes=False)
    if b is not None and found.axes is None and found.placement.axis == 0:
        return site.unknown("whether a product of matrices adds up over the samples")
    return site.data(found.placement, axes=found.axes)


def factory(site: Site) -> Value:
    """A tensor of given sizes: rows where one of them is the number of samples."""
    sizes = _given_sizes(site)
    placement, axes = placements.UNIFORM, len(sizes)
    for i, s in enumerate(sizes):
        kind = placement_of(s).kind
        if kind is Kind.SIZE:
            placement = placements.rows(i)
        elif kind is Kind.ROWS:  # torch.zeros(x.shape)
            return arithmetic.derived(
                site.word, placement_of(s), [s], site.node, kind="tensor", gradient="none"
            )
        elif kind not in placements.EQUAL:
            placement = placement_of(s)
    if site.word in ("zeros", "new_zeros") and placement.kind is Kind.UNIFORM:
        placement = placements.ZERO
    sources = [v for v in sizes if data(v)]
    return arithmetic.derived(
        site.word, placement, sources, site.node, kind="tensor", axes=axes, gradient="none"
    )


def _given_sizes(site: Site) -> list[Value]:
    """The sizes that a factory is given, one by one."""
    given = site.arguments.keywords.get("size")
    positional = site.arguments.positional
    if given is None and site.word in ("randint", "normal", "full", "new_full", "uniform"):
        # the sizes are one argument: the last that is a sequence
        lists = [v for v in positional if site.m.known_elements(v) is not None or rows_of(v)]
        if not lists:
            return [v for v in positional[-1:] if site.word != "full"] or positional[:1]
        given = lists[0] if site.word in ("full", "new_full") else lists[-1]
    found: list[Value] = []
    for v in [given] if given is not None else positional:
        listed = site.m.known_elements(v)
        found += listed if listed is not None else [v]
    return found


def permuted(site: Site) -> Value:
    """``randperm(n)``: an order of the rank's own samples where n is their number."""
    p = placement_of(site.get(0) or ())
    placement = placements.UNIFORM if p.kind in placements.EQUAL else placements.PER_RANK
    return arithmetic.derived(
        "an order of the samples", placement, [site.get(0) or ()], site.node, kind="tensor",
        axes=1, gradient="none", keep_axes=False,
    )  # fmt: skip


def like(site: Site) -> Value:
    """A tensor of the shape of another one."""
    p = placement_of(site.flat(site.get(0) or ()))
    if p.kind is not Kind.ROWS:
        p = placements.UNIFORM
    return site.data(p, gradient="none")


def literal(site: Site) -> Value:
    """``torch.tensor(x)``, ``np.array(x)``: data of what a list holds."""
    given = site.get(0) or ()
    found = site.flat(given)
    kind = "array" if site.name.startswith("numpy.") else "tensor"
    if not found:
        return value(Data(kind, placements.UNIFORM, axes=None))
    listed = site.m.known_elements(given)
    keep = listed is None and bool(data(given))
    return arithmetic.derived(
        site.word, placement_of(found), [found], site.node, kind=kind, gradient="none", keep_axes=keep
    )  # fmt: skip


def shape(site: Site) -> Value:
    """``x.shape``, ``x.size()``, ``x.size(0)``."""
    given = site.get(0) or ()
    found = rows_of(given)
    index = site.constant(1, "dim") if len(site.all()) > 1 else None
    if found is None:
        p = placement_of(site.flat(given))
        if p.kind in (Kind.UNKNOWN,):
            return site.unknown("the size of what is not known")
        if index is None and data(given) and data(given)[0].axes is not None:
            return items([SETTING] * (data(given)[0].axes or 0))
        return SETTING
    if index is None:
        if found.axes is not None:
            return items([size_of(site, found, i) for i in range(found.axes)])
        return value(found._replace(kind="shape", gradient="none", reached=frozenset()))
    return size_of(site, found, index)


def size_of(site: Site, found: Data, index: int) -> Value:
    """The size of one axis."""
    hit = on_axis(index, found)
    if not hit:
        return SETTING
    p = found.placement
    if p.ragged:
        return arithmetic.derived(
            "size", placements.SUM, [value(found)], site.node, kind="number", gradient="none"
        )
    made = placements.size(p.segments * p.times)
    return arithmetic.derived(
        "size", made, [value(found)], site.node, kind="number", gradient="none"
    )


def elements_count(site: Site) -> Value:
    """``x.numel()``: a multiple of the number of samples."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return SETTING
    p = placements.SUM if found.placement.ragged else placements.size(0)
    return site.data(p, kind="number", gradient="none", keep_axes=False)


def choose(site: Site) -> Value:
    """Chosen elements: masked_select, nonzero, unique; their number depends on the data."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    return site.data(found.placement._replace(axis=0, ragged=True), keep_axes=False)


def in_place(effect: Effect) -> Effect:
    """The method that stores its result in its receiver (``x.add_(y)``)."""

    def changed(site: Site) -> Value | None:
        result = effect(site)
        func = getattr(site.node, "func", None)
        target = getattr(func, "value", None)
        if result and target is not None and type(target).__name__ in ("Name", "Attribute"):
            site.m.assign(target, result, site.node, site.frame)
        return result

    return changed


def scalar(v: Value) -> bool:
    """Whether it is plain data of the host."""
    return all(
        isinstance(a, Const | Setting) or (isinstance(a, Data) and a.kind == "number") for a in v
    )


def coupled(site: Site) -> Value:
    """Rows meet each other: what comes out is made of the rank's samples alone."""
    if not any(rows_of(v) for v in site.operands()):
        return site.each()
    return site.data(placements.PER_RANK, keep_axes=False)


def object_of(kind: str, *names: str) -> Effect:
    """A new object that keeps its arguments under names."""

    def effect(site: Site) -> Value:
        fields: dict[str, Value | None] = {}
        for i, name in enumerate(names):
            fields[name] = site.get(i, name)
        return site.ref(kind, **fields)

    return effect


def first_of(*effects: Callable[[Site], Value | None]) -> Effect:
    """The first effect that has a result."""

    def effect(site: Site) -> Value | None:
        for e in effects:
            found = e(site)
            if found is not None:
                return found
        return None

    return effect
