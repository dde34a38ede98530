"""Targets of an assignment that take the sizes of a tensor, or the results of a network of which it is
not seen how many there are: ``b, c, h, w = x.shape``, ``features, logits = model(x)``.
"""

from __future__ import annotations

import ast

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NOTHING, RESULTS, SETTING, Const, Data, Setting, Value, placement_of, value
from dpmigrate.library.sites import Site
from dpmigrate.library.sizes import is_shape, size_of


def unpacked(site: Site, new: Value, count: int, star: int | None) -> list[Value] | None:
    """The sizes, or results, one by one where ``count`` targets take them, the one at ``star`` any
    number.

    A tensor whose shape goes into so many targets has so many axes: the variable that holds it
    is told. None where the value is neither.
    """
    (atom,) = new if len(new) == 1 else (None,)
    if isinstance(atom, Data) and atom.kind == RESULTS:
        return _results(site, atom, count, star)
    if isinstance(atom, Data) and atom.kind == "packed" and star is None:
        # the places of all samples, the numbers of places of each turn, two orders
        rest = site.unknown("a field of packed sequences")
        return [value(atom._replace(kind="tensor")), *[rest] * (count - 1)]
    if not is_shape(atom):
        return None
    if star is None:
        whole = atom._replace(axes=count)
        _told(site, count)
        return [size_of(site, whole, i) for i in range(count)]
    if atom.placement.axis >= star:
        return None
    rest = site.m.listed([SETTING], site.node, site.frame, exact=False)
    return [size_of(site, atom, i) if i < star else SETTING for i in range(star)] + [
        rest, *[SETTING] * (count - star - 1)
    ]  # fmt: skip


def _results(site: Site, atom: Data, count: int, star: int | None) -> list[Value]:
    """What a network gives, one by one: no batch is taken apart into so many samples."""
    each = value(atom)  # each may be several again
    rest = site.m.listed([each], site.node, site.frame, exact=False)
    return [each if i != star else rest for i in range(count)]


def opening(site: Site, v: Value) -> list[Value]:
    """The sizes that a shape of unknown length begins with, up to the number of samples; none of
    any other value: ``x.view(*x.shape[:-1], heads, -1)``.
    """
    (atom,) = v if len(v) == 1 else (None,)
    if not is_shape(atom) or atom.placement.kind is not Kind.ROWS:
        return []
    axis = atom.placement.axis
    sizes = unpacked(site, v, axis + 2, axis + 1)
    return sizes[: axis + 1] if sizes is not None else []


def lengthened(site: Site, first: list[Value], rest: Value) -> Value:
    """A tuple that begins with sizes and goes on with others of which it is not known how many, ``(len(x),) + (1,) * (x.dim() - 1)``:
    the shape of a tensor with that many samples along one axis. Nothing where it is no such tuple.
    """
    at = [i for i, s in enumerate(first) if placement_of(s).kind is Kind.SIZE]
    others = [s for i, s in enumerate(first) if i not in at]
    plain = all(s and all(isinstance(a, Const | Setting) for a in s) for s in (*others, rest))
    if len(at) != 1 or not plain or not all(isinstance(a, Data) and a.kind == "number" for a in first[at[0]]):
        return NOTHING
    p = placement_of(first[at[0]])
    made = derivation.derived(
        "size", placements.rows(at[0], times=max(p.times, 0)), [first[at[0]]], site.node, kind="shape", gradient="none", keep_axes=False
    )
    return made


def _told(site: Site, axes: int) -> None:
    """The variable in ``x.shape`` or ``x.size()`` holds a tensor of so many axes from here on."""
    source = site.node.value if isinstance(site.node, ast.Assign) else None
    if isinstance(source, ast.Call) and not source.args and not source.keywords:
        source = source.func
    if not isinstance(source, ast.Attribute) or source.attr not in ("shape", "size"):
        return
    owner = source.value
    if not isinstance(owner, ast.Name):
        return
    held = site.m.evaluate(owner, site.frame)
    if any(not isinstance(a, Data) or a.axes is not None for a in held) or not held:
        return
    told = tuple(a._replace(axes=axes) for a in held if isinstance(a, Data))
    site.m.assign(owner, told, site.node, site.frame)
