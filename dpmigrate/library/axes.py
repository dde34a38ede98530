"""Which axes an argument names, and which one runs over the samples."""

from __future__ import annotations

from dpmigrate.execution import samples
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    SETTING,
    Const,
    Data,
    Value,
    const,
    data,
    known,
    only,
    placement_of,
)
from dpmigrate.library.sites import LEAST, MATTER, Site


def dims_of(site: Site, index: int, name: str = "dim") -> list[int] | None:
    """The axes that an argument names (``dim``, ``axis`` or ``dims``); None where it is left out.

    Raises:
        LookupError: they are not constants.
    """
    given = _dim_given(site, index) if name == "dim" else site.get(index, name)
    if given is None or given == const(None):
        return None
    if len(given) == 1 and isinstance(given[0], Const):
        if type(given[0].value) is bool:
            return None  # x.var(False): the first place is that of ``unbiased`` where no axis is named
        if type(given[0].value) is not int:
            raise LookupError
        return [given[0].value]
    listed = site.m.known_elements(given)
    if listed is None:
        raise LookupError
    return [int(only(v)) for v in listed]


def _dim_given(site: Site, index: int) -> Value | None:
    """What says the axes, whatever the library calls them."""
    words = ("dim", "axis", "dims")
    known = (w for w in words if w in site.arguments.keywords or w in site.arguments.names)
    return site.get(index, next(known, "dim"))


def least_dim(site: Site, index: int) -> int | None:
    """The least of the axes that an argument names where they are ``range(a, n)``."""
    given = _dim_given(site, index) or ()
    made = site.m.objects(given)
    if len(made) != 1 or len(given) != 1:
        return None
    held = site.m.heap.read((made[0].number, LEAST)) or ()
    if not set(site.m.contents(made[0])) <= {*SETTING, *held}:
        return None  # more was put into the list
    least = known(held)
    return least if type(least) is int and least >= 0 else None


def one_dim(site: Site, index: int, default: int, name: str = "dim") -> int:
    """The one axis that an argument names.

    Raises:
        LookupError: it is no constant, or several.
    """
    found = dims_of(site, index, name)
    if found is None:
        return default
    (dim,) = found if len(found) == 1 else _several()
    return dim


def _several() -> list[int]:
    raise LookupError


def on_axis(dim: int, found: Data) -> bool | None:
    """Whether ``dim`` is the axis of the rows; None where that depends on the number of axes.

    The last axis (-1) of a tensor whose number of axes is not known counts as one of the others: a
    tensor of samples alone is rarely given a negative axis, unless ``squeeze()`` made it one.
    """
    axis = found.placement.axis
    if dim >= 0:
        return dim == axis
    if found.axes is not None:
        return dim + found.axes == axis
    return None if dim < -1 or found.bare else False


def on_axes(dims: list[int], found: Data) -> list[bool | None]:
    """The same of several axes. The last ones of all, two or more, are those of a grid (``(-2, -1)``
    of images), as a layer on a grid goes over them: the samples stand before them.
    """
    last = sorted(dims) == list(range(-len(dims), 0)) and len(dims) > 1
    if last and found.axes is None and not found.bare and not found.placement.axis:
        return [False] * len(dims)
    return [on_axis(d, found) for d in dims]


def rows_of(v: Value) -> Data | None:
    """The data of a value whose axis runs over samples, whichever of its atoms it is."""
    found = tuple(a for a in v if isinstance(a, MATTER))
    p = placement_of(found)
    if p.kind is not Kind.ROWS:
        return None
    rows = [d for d in data(found) if d.placement.kind is Kind.ROWS]
    axes = rows[0].axes if len({d.axes for d in rows}) == 1 else None
    bare = axes is None and any(d.bare for d in rows)
    lengths = rows[0].lengths if len({d.lengths for d in rows}) == 1 else ()
    alike = all(d.alike for d in rows)
    return rows[0]._replace(placement=p, axes=axes, bare=bare, lengths=lengths, alike=alike)


def rows_in_list(site: Site) -> Data | None:
    """A list as first argument with an item for each sample, as the rows of one tensor."""
    given = site.get(0, "tensors") or ()
    made = site.m.object(given[0]) if len(given) == 1 else None
    rows = samples.listed(site.m, made) if made is not None and made.kind == "list" else None
    return rows_of(rows) if rows else None


def is_rows(v: Value) -> bool:
    """Whether an axis of it runs over samples."""
    return rows_of(v) is not None
