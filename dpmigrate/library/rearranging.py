"""einops: the axes of a tensor by their names (https://einops.rocks/api/rearrange/)."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from string import ascii_letters
from typing import NamedTuple

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Data,
    Ref,
    Value,
    atom_placement,
    const,
    items,
    known,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import none
from dpmigrate.library.products import einsum
from dpmigrate.library.shapes import plain
from dpmigrate.library.sites import Row, Site, prefixed

_DOC = "https://einops.rocks/api/"
_WHOLE = {
    "mean": placements.MEAN, "sum": placements.SUM, "max": placements.MAX, "min": placements.MIN,
}  # fmt: skip
Side = list[list[str]]


class Pattern(NamedTuple):
    """The names of the axes before and after; an axis that is put together of several has them
    all.
    """

    left: Side
    right: Side


def parsed(text: str, axes: int | None) -> Pattern | None:
    """``b c h w -> b (h w) c``; ``...`` stands for as many axes as the tensor has, where that is
    known. None: no pattern.
    """
    sides = [_side(part) for part in text.split("->")]
    if len(sides) != 2 or None in sides:
        return None
    left, right = (s or [] for s in sides)
    more = ["..."]
    if more in left and axes is not None:
        count = axes - len(left) + 1
        left, right = _laid_out(left, count), _laid_out(right, count)
    return Pattern(left, right)


def _side(text: str) -> Side | None:
    found: Side = []
    inside = False
    for word in text.replace("(", " ( ").replace(")", " ) ").replace("…", "...").split():
        if word in "()":
            if inside == (word == "("):
                return None
            inside = word == "("
            found += [[]] if inside else []
        elif inside:
            found[-1].append(word)
        else:
            found.append([word])
    return found


def _laid_out(side: Side, count: int) -> Side:
    """The axes that the three dots stand for, one by one."""
    names = [f"...{i}" for i in range(count)]
    found: Side = []
    for group in side:
        if group == ["..."]:
            found += [[n] for n in names]
        else:
            found.append([n for word in group for n in (names if word == "..." else [word])])
    return found


def rearranged(site: Site) -> Value:
    """``rearrange(x, pattern)``, ``reduce(x, pattern, how)``, ``repeat(x, pattern, n=2)``."""
    text = site.constant(1, "pattern")
    sizes = dict(site.arguments.keywords)
    how = known(site.get(2, "reduction") or NOTHING) if site.word == "reduce" else None
    return _of(site, text, sizes, how)


def _of(site: Site, text: object, sizes: dict[str, Value], how: object) -> Value:
    given = site.get(0, "tensor") or NOTHING
    found, listed = rows_of(site.flat(given)), _listed(site, given)
    if found is None:
        return _uniform(site, text, sizes, reducing=how is not None)
    if listed:  # a list of tensors is stacked
        axes = found.axes + 1 if found.axes is not None else None
        moved = found.placement._replace(axis=found.placement.axis + 1)
        found = found._replace(placement=moved, axes=axes)
    pattern = parsed(text, found.axes) if isinstance(text, str) else None
    if pattern is None:
        return site.unknown(f"the pattern of {site.word}")
    p = _lying(pattern, found.placement, sizes, how)
    if p is None:
        return site.unknown(f"where the samples come to lie in {site.word}")
    count = None if any("..." in g for g in pattern.right) else len(pattern.right)
    return site.data(p, axes=count, keep_axes=False)


def _listed(site: Site, given: Value) -> bool:
    return not any(isinstance(a, Data) for a in given)


def _lying(
    pattern: Pattern, p: Placement, sizes: dict[str, Value], how: object
) -> Placement | None:
    """Where the axis of the samples comes to lie."""
    before = pattern.left[: p.axis + 1]
    if len(before) <= p.axis or any("..." in g for g in before):
        return None
    parted = _parted(before[-1], p, sizes)
    if parted is None:
        return None
    name, p = parted
    place = next((i for i, g in enumerate(pattern.right) if name in g), None)
    if place is None:
        whole = _WHOLE.get(how) if isinstance(how, str) else None
        if whole is placements.MEAN:
            return placements.mean_over(p)
        return whole or (placements.PER_RANK if how is not None else None)
    if any("..." in g for g in pattern.right[:place]):
        return None
    group = pattern.right[place]
    at = group.index(name)
    if len(group) == 1:
        return p._replace(axis=place)
    ahead, behind = (_product(names, sizes) for names in (group[:at], group[at + 1 :]))
    if p.segments != 1 and at:
        ahead = 0
    return p._replace(axis=place, times=p.times * behind, segments=p.segments * ahead)


def _parted(
    group: list[str], p: Placement, sizes: dict[str, Value]
) -> tuple[str, Placement] | None:
    """The name of the samples among those of their axis; None where that is not known."""
    if len(group) == 1:
        return (group[0], p) if not group[0].isdigit() else None
    first, rest = group[0], _product(group[1:], sizes)
    given = placement_of(sizes[first]).kind if first in sizes else Kind.SIZE
    if given is Kind.SIZE and p.segments == 1:
        # the first size is the number of samples, or what is left: samples stay whole
        return first, p._replace(times=1 if rest and rest == p.times else 0)
    count = known(sizes[first]) if first in sizes else None
    if len(group) == 2 and p.segments > 1 and count == p.segments:
        return group[1], p._replace(segments=1)
    return None


def _product(names: list[str], sizes: dict[str, Value]) -> int:
    """How many elements axes have together; 0 where that is not known."""
    found = [int(n) if n.isdigit() else _size(sizes.get(n)) for n in names]
    return prod(found)


def _size(v: Value | None) -> int:
    if v is None or len(v) != 1:
        return 0
    count = getattr(v[0], "value", None)
    return count if type(count) is int else 0


def _uniform(site: Site, text: object, sizes: dict[str, Value], *, reducing: bool) -> Value:
    """Of a tensor without samples: an axis that is their number, where it is repeated so often."""
    moving = {n: v for n, v in sizes.items() if placement_of(v).kind not in placements.EQUAL}
    first = site.flat(site.get(0, "tensor") or NOTHING)
    if not moving:
        p = placement_of(first)
        if reducing and p.kind not in placements.EQUAL:
            p = placements.elementwise([p])
        return derivation.derived(site.word, p, [first], site.node, keep_axes=False) if (
            first
        ) else plain(site)
    pattern = parsed(text, None) if isinstance(text, str) else None
    (name, size), *others = moving.items()
    p = atom_placement(size[0]) if len(size) == 1 else placement_of(size)
    lone = not others and p.kind is Kind.SIZE and placement_of(first).kind in placements.EQUAL
    place = next((i for i, g in enumerate(pattern.right) if name in g), None) if pattern else None
    if pattern is None or place is None or not lone or any("..." in g for g in pattern.right):
        return site.unknown(f"the sizes of {site.word}")
    group = pattern.right[place]
    if group[0] != name:
        return site.unknown(f"the sizes of {site.word}")
    times = max(p.times, 0) * (_product(group[1:], sizes) if len(group) > 1 else 1)
    return derivation.derived(
        site.word, placements.rows(place, times=times), [first, size], site.node, kind="tensor",
        axes=len(pattern.right), keep_axes=False,
    )  # fmt: skip


def named_einsum(site: Site) -> Value:
    """``einsum(x, y, "b i, b j -> b i j")``: with a letter for each name."""
    *operands, rule = site.arguments.positional or [NOTHING]
    text = known(rule)
    if not isinstance(text, str) or "..." in text:
        return site.unknown("the rule of einsum")
    letters: dict[str, str] = {}
    for word in text.replace(",", " ").replace("->", " ").split():
        letters.setdefault(word, ascii_letters[len(letters) % len(ascii_letters)])
    sides = [
        ",".join("".join(letters[w] for w in part.split()) for part in side.split(","))
        for side in text.split("->")
    ]
    inner = replace(site, arguments=Arguments([const("->".join(sides)), *operands]))
    return einsum(inner)


def packed(site: Site) -> Value:
    """``pack([x, y], "b * d")``: tensors put together, with their shapes."""
    return items([_unpacked(site), SETTING])


def _unpacked(site: Site) -> Value:
    moving = [v for v in site.operands() if placement_of(v).kind not in placements.EQUAL]
    return site.unknown(f"the pattern of {site.word}") if moving else plain(site)


def layer(site: Site) -> Value:
    """``einops.layers.torch.Rearrange(pattern)``: a module without parameters."""
    made = site.made("rearranging")
    at = 1 if site.word == "Reduce" else 0
    for name, held in site.arguments.keywords.items():
        site.m.heap.write((made.number, f"={name}"), held)
    for name, v in (("pattern", site.get(0)), ("reduction", site.get(1) if at else None)):
        if v:
            site.m.heap.write((made.number, f"={name}"), v)
    return value(Ref(made.number))


def layer_called(site: Site) -> Value:
    """A call of such a layer."""
    made = site.object
    assert made is not None
    names = site.m.heap.names(made.number)
    held = {n[1:]: v for n, v in names if isinstance(n, str) and n.startswith("=")}
    word = made.name.lower()
    inner = replace(site, name=f"einops.{word}", receiver=None)
    how = known(held.get("reduction", NOTHING)) if word == "reduce" else None
    return _of(inner, known(held.get("pattern", NOTHING)), held, how)


def layer_itself(site: Site) -> Value:
    """``layer.to(device)``."""
    return value(site.receiver) if site.receiver is not None else NOTHING


ROWS = (
    Row(prefixed("einops.", "rearrange reduce repeat"), rearranged, source=_DOC),
    Row("einops.einsum", named_einsum, source=_DOC),
    Row("einops.pack", packed, source=_DOC),
    Row("einops.unpack", _unpacked, source=_DOC),
    Row("einops.parse_shape", lambda site: SETTING, source=_DOC),
    Row("einops.layers.torch.Rearrange einops.layers.torch.Reduce", layer, source=_DOC),
    Row("<rearranging>.__call__ <rearranging>.forward", layer_called, source=_DOC),
    Row("<rearranging>.to <rearranging>.cuda <rearranging>.eval <rearranging>.train", layer_itself,
        source=_DOC),
    Row("<rearranging>.requires_grad_ <rearranging>.zero_grad", none, source=_DOC),
)  # fmt: skip
