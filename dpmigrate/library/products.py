"""Products of matrices, and einsum."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, derivation, masking, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NOTHING, Data, Value, const, data, only, placement_of
from dpmigrate.library.axes import rows_of
from dpmigrate.library.shapes import axes_of, with_lengths
from dpmigrate.library.sites import PADDING, Site


def matmul(site: Site) -> Value:
    """A product of matrices: contracts the last axis of the first with the one before last of
    the second.
    """
    operands = [site.flat(v) for v in site.all()]
    _by_weights(site, operands)
    if site.word in ("addmm", "baddbmm", "addmv", "addbmm"):
        bias, *rest = operands
        made = _product(site, rest[:2])
        return arithmetic.binary("add", bias, made, site.node)
    return _product(site, operands[:2])


def _by_weights(site: Site, operands: list[Value]) -> None:
    """Note a product that adds up what samples are filled up with."""
    if masking.adds_up_filling(operands):
        site.event(PADDING, given=operands[1])


def _product(site: Site, operands: list[Value]) -> Value:
    if len(operands) < 2:
        return site.unknown("the operands of a product")
    a, b = (rows_of(v) for v in operands)
    if a is None or b is None:
        return _one_sided(site, operands, a, b)
    p = placements.join(a.placement._replace(axis=0), b.placement._replace(axis=0))
    if site.word in ("bmm", "baddbmm"):
        a, b = a._replace(axes=3), b._replace(axes=3)
    if site.word == "mm":
        a, b = a._replace(axes=2), b._replace(axes=2)
    first, second = a.axes or b.axes, b.axes or a.axes
    if first is None or second is None:
        if {a.placement.axis, b.placement.axis} == {0}:
            return site.unknown("whether the samples meet in a product of tensors")
        return site.data(placements.PER_RANK, keep_axes=False)
    if a.axes is None or b.axes is None:
        if a.placement.axis == b.placement.axis == 0 and first == 2:
            return site.unknown("whether the samples meet in a product of tensors")
    ours, theirs = first - 1 - a.placement.axis, second - 1 - b.placement.axis  # from the last
    contracted = 0 if second == 1 or site.word == "inner" else 1
    axes = max(first, second) - (first == 1) - (second == 1) if max(first, second) > 1 else 0
    if ours == 0 and theirs == contracted:
        return site.data(placements.SUM, axes=axes, keep_axes=False)
    if ours == theirs >= 2 and site.word not in ("inner", "dot"):
        made = site.data(p._replace(axis=axes - 1 - ours), axes=axes, keep_axes=False)
        columns = b.lengths[-1] if len(b.lengths) == second == axes else None
        return with_lengths(made, [*[None] * (axes - 1), columns])
    return site.data(placements.PER_RANK, keep_axes=False)


def _axes_of_plain(site: Site, operands: list[Value]) -> int | None:
    """How many axes a product has of tensors that have no rows."""
    word = site.word.strip("._")
    if word not in ("matmul", "mm", "bmm", "mv", "dot"):
        return None
    first, second = map(axes_of, operands)
    if not first or not second or (word == "dot" and max(first, second) > 2):
        return None
    return max(first, second) - (first == 1) - (second == 1) if max(first, second) > 1 else 0


def _one_sided(site: Site, operands: list[Value], a: Data | None, b: Data | None) -> Value:
    """A product in which one operand at most is rows."""
    left, right = (placement_of(v) for v in operands)
    found, other = (a, right) if a is not None else (b, left)
    if found is None:
        p = placements.multiply(left, right)
        if placements.ZERO not in (left, right) and Kind.SIZE in (left.kind, right.kind):
            p = placements.SUM
        kind = "" if any(data(v) for v in operands) else site.kind
        axes = _axes_of_plain(site, operands)
        return derivation.derived(
            site.word, p, operands, site.node, kind=kind, axes=axes, keep_axes=False
        )
    if other.kind not in placements.EQUAL:
        lost = other.kind is Kind.UNKNOWN
        p = placements.UNKNOWN if lost else placements.PER_RANK
        return site.data(p, keep_axes=False)
    axis, axes = found.placement.axis, found.axes
    plain = next((d.axes for d in data(operands[1] if a is not None else operands[0])), None)
    if axes is None:
        if a is None and site.word not in ("bmm", "baddbmm"):
            return site.unknown("whether a product of matrices adds up over the samples")
        return site.data(found.placement, keep_axes=False)
    last = axes - 1 if a is not None or axes == 1 or site.word == "inner" else axes - 2
    if axis == last:
        return site.unknown("whether a product of matrices adds up over the samples")
    if plain is None:
        return site.data(found.placement, keep_axes=False)
    made = max(axes, plain) - (axes == 1) - (plain == 1) if max(axes, plain) > 1 else 0
    if a is None and axis == axes - 1:  # the columns of the second are those of the result
        axis = made - 1
    else:
        axis += max(plain - axes, 0)
    return site.data(found.placement._replace(axis=axis), axes=made, keep_axes=False)


def distances(site: Site) -> Value:
    """``cdist(x, y)``: a number for each row of one matrix with each row of the other; axes before the last two go with each other."""
    operands = [site.flat(site.get(i) or NOTHING) for i in range(2)]
    a, b = (rows_of(v) for v in operands)
    axes = [axes_of(v) for v in operands]
    one = a or b
    if one is None:
        known = max(n for n in axes if n is not None) if None not in axes else None
        return site.data(placements.elementwise(placement_of(v) for v in operands), axes=known, keep_axes=False)
    if (a is None or b is None) and any(placement_of(v).kind not in (*placements.EQUAL, Kind.ROWS) for v in operands):
        lost = any(placement_of(v).kind is Kind.UNKNOWN for v in operands)
        return site.data(placements.UNKNOWN if lost else placements.PER_RANK, keep_axes=False)
    if b is None and axes[0] is None:  # the last axis is not that of the samples where it is not known how many there are
        return site.data(one.placement, keep_axes=False)
    own = [n for r, n in zip((a, b), axes, strict=True) if r is not None]  # of what is not known the one has as many axes as the other
    first, second = axes[0] or axes[1], axes[1] or axes[0]
    if first is None or second is None or (None in own and (first == 2 or a is None)):
        return site.unknown("whether the samples meet in cdist")
    made = max(first, second)
    found = [None if r is None else n - 1 - r.placement.axis for r, n in ((a, first), (b, second))]  # counted from the last axis
    ours, theirs = found
    if ours == theirs and ours is not None and ours >= 2 and a is not None and b is not None:
        p = placements.join(a.placement._replace(axis=0), b.placement._replace(axis=0))
        return site.data(p._replace(axis=made - 1 - ours), axes=made, keep_axes=False)
    if (a is not None and b is not None) or 0 in found:
        return site.data(placements.PER_RANK, keep_axes=False)
    behind = ours if ours is not None else 0 if theirs == 1 else theirs  # the rows of the second are the last axis of the result
    assert behind is not None
    return site.data(one.placement._replace(axis=made - 1 - behind), axes=made, keep_axes=False)


def with_weights(site: Site) -> Value:
    """``F.linear``, ``F.conv2d``: rows meet weights that are the same on all ranks."""
    first, *rest = [site.flat(v) for v in site.all()] or [()]
    found = rows_of(first)
    others = [placement_of(v).kind for v in rest]
    if found is None or all(k in placements.EQUAL for k in others):
        if found is not None and site.word == "linear" and found.axes is not None:
            if found.placement.axis == found.axes - 1:
                return site.unknown("whether a product of matrices adds up over the samples")
        return site.each() if found is None else site.data(
            found.placement, axes=found.axes, keep_axes=False
        )
    lost = Kind.UNKNOWN in others
    return site.data(placements.UNKNOWN if lost else placements.PER_RANK, keep_axes=False)


def tensordot(site: Site) -> Value:
    """``tensordot(a, b, dims)``: an einsum, whose letters are those of the axes that are added up:
    of the last and the first ones, or of the axes of two lists.
    """
    operands = [site.flat(v) for v in (site.get(0) or NOTHING, site.get(1, "b") or NOTHING)]
    rows = any(rows_of(v) for v in operands)
    axes = [_axes(v) for v in operands]
    pairs = _contracted(site, axes[0])
    if not rows or pairs is None or axes[0] is None:
        return site.unknown("which axes of tensordot are added up") if rows else _one_sided(
            site, operands, None, None
        )
    first = _LETTERS[: axes[0]]
    count = axes[1] if axes[1] is not None else max((b for _, b in pairs), default=-1) + 1
    if min((n for pair in pairs for n in pair), default=0) < 0 and axes[1] is None:
        return site.unknown("which axes of tensordot are added up")
    second = list(_LETTERS[axes[0] : axes[0] + count])
    try:
        for a, b in pairs:
            second[b] = first[a]
    except IndexError:
        return site.unknown("which axes of tensordot are added up")
    right = "".join(c for c in (*first, *second) if (c in first) != (c in second))
    made = _by_letters(site, operands, [first, "".join(second)], right)
    return made if axes[1] is not None else tuple(
        a._replace(axes=None) if isinstance(a, Data) else a for a in made
    )


def _contracted(site: Site, axes: int | None) -> list[tuple[int, int]] | None:
    """The axes of both operands that tensordot adds up; None where they are not known."""
    dims = site.get(2, "dims") or const(2)
    listed = site.m.known_elements(dims)
    try:
        if listed is None:
            count = only(dims)
            return [(axes - count + i, i) for i in range(count)] if axes is not None else None
        both = [site.m.known_elements(v) for v in listed]
        ours, theirs = [[int(only(v)) for v in each] for each in both if each is not None]
        return list(zip(ours, theirs, strict=True))
    except (LookupError, TypeError, ValueError):
        return None


def einsum(site: Site) -> Value:
    """``einsum(rule, …)``: by the letter of the samples' axis."""
    rule = site.constant(0, "equation")
    operands = [site.flat(v) for v in site.arguments.positional[1:]]
    if len(operands) == 1:
        listed = site.m.known_elements(site.arguments.positional[1])
        operands = [site.flat(v) for v in listed] if listed is not None else operands
    _by_weights(site, operands)
    if not isinstance(rule, str):
        return site.unknown("the rule of einsum")
    return _by_letters(site, operands, *_spelled_out(rule.replace(" ", ""), [_axes(v) for v in operands]))


def _by_letters(site: Site, operands: list[Value], words: list[str], right: str) -> Value:
    """A product of operands of which each axis has a letter, as the axes of the result have."""
    rows = [(w, r) for w, v in zip(words, operands, strict=False) if (r := rows_of(v))]
    others = [placement_of(v) for v in operands if rows_of(v) is None]
    if len(words) != len(operands) or any(p.kind is Kind.UNKNOWN for p in others):
        return site.unknown("the operands of einsum")
    if not rows:
        p = others[0]
        for q in others[1:]:
            p = placements.multiply(p, q)
        return site.data(p, keep_axes=False)
    if any(p.kind not in placements.EQUAL for p in others):
        return site.data(placements.PER_RANK, keep_axes=False)
    letters = {_letter(w, r.placement.axis) for w, r in rows}
    if "" in letters:
        return site.unknown("the rule of einsum")
    if len(letters) > 1:
        return site.data(placements.PER_RANK, keep_axes=False)
    (letter,) = letters
    p = placements.joined(r.placement._replace(axis=0) for _, r in rows)
    if letter not in right:
        return site.data(placements.SUM, axes=None if "." in right else len(right), keep_axes=False)
    if "." in right.split(letter)[0]:
        return site.unknown("the rule of einsum")
    axes = None if "." in right else len(right)
    return site.data(p._replace(axis=right.index(letter)), axes=axes, keep_axes=False)


def _spelled_out(rule: str, axes: list[int | None]) -> tuple[list[str], str]:
    """The letters of the operands and of the result of an einsum: also where the rule leaves the
    result out, and for the axes under ``...``, as far as the numbers of axes are known. These are
    aligned from the last one (https://docs.pytorch.org/docs/stable/generated/torch.einsum.html).
    """
    left, arrow, right = rule.partition("->")
    words = left.split(",")
    if not arrow:
        once = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    if len(words) != len(axes) or "..." not in left:
        return words, right
    wide = [n - len(w) + 3 if n is not None else None for w, n in zip(words, axes, strict=True) if "..." in w]
    known_wide = [n for n in wide if n is not None]
    free = [c for c in _LETTERS if c not in rule]
    if len(known_wide) < len(wide) or not 0 <= min(known_wide) <= max(known_wide) <= len(free):
        return words, right
    letters = "".join(free[: max(known_wide)])
    counts = iter(known_wide)
    words = [w.replace("...", letters[len(letters) - next(counts) :]) if "..." in w else w for w in words]
    return words, right.replace("...", letters)


def _axes(v: Value) -> int | None:
    found = rows_of(v)
    return found.axes if found is not None else axes_of(v)


#: letters for the axes under ``...``
_LETTERS = "ZYXWVUTSRQPONMLKJIHGFEDCBA"


def _letter(word: str, axis: int) -> str:
    """The letter of an axis, "" where the rule leaves that open."""
    if axis >= len(word) or "." in word[: axis + 1]:
        return ""
    return word[axis]
