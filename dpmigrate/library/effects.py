"""The common words of the tables: what operations do to placements."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from dpmigrate.execution import arithmetic, derivation, folding, masking, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Location
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Data,
    Ref,
    Setting,
    Value,
    const,
    data,
    origins,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.sites import OWN_SIZE, Effect, Site


def elementwise(site: Site) -> Value:
    """Each element by itself; tensors are put beside each other element by element."""
    return site.each(even=True)


def world_size(site: Site) -> Value:
    """The number of ranks: a number of samples times it is that of all ranks together."""
    return folding.WORLD


def bounded(site: Site) -> Value:
    """``x.clamp(min=1)``, ``max(n, 1)``: a number of samples, which all ranks have as many of,
    stays one that sums may be divided by.
    """
    return within(site.each(), site.operands())


def within(made: Value, operands: Iterable[Value]) -> Value:
    """What is made of operands of which one at most differs and bounds are the others."""
    moving = [p for v in operands if (p := placement_of(v)).kind not in placements.EQUAL]
    if [p.kind for p in moving] != [Kind.SIZE]:
        return made
    number = placements.size(0)
    return tuple(a._replace(placement=number) if isinstance(a, Data) else a for a in made)


def mask(site: Site) -> Value:
    """A test of each element: its result may choose samples."""
    made = _mask(site.each())
    return masking.compared(made, site.word in _EQUAL, site.operands()) if site.word in _COMPARED else made


#: the comparisons for being equal, or not
_EQUAL, _COMPARED = ("eq", "equal"), ("eq", "equal", "ne", "not_equal")


def _mask(made: Value) -> Value:
    return tuple(
        a._replace(kind="mask", gradient="none", reached=frozenset())
        if isinstance(a, Data) and a.kind == "tensor"
        else a
        for a in made
    )


def operator(word: str) -> Effect:
    """``torch.add(a, b)``: as the operator, which is linear; a factor ``alpha`` is the same on
    all ranks.
    """

    def effect(site: Site) -> Value:
        operands = [site.flat(v) or v for v in site.all()[:2]]
        alpha = site.arguments.keywords.get("alpha")
        if len(operands) < 2 or (alpha and placement_of(alpha).kind not in placements.EQUAL):
            return site.each()
        if site.arguments.keywords.get("rounding_mode", NONE) != NONE:
            return site.each()
        left, right = operands
        if alpha:
            right = arithmetic.binary("mul", right, alpha, site.node)
        return arithmetic.binary(word, left, right, site.node)

    return effect


def negated(site: Site) -> Value:
    """``torch.neg(x)``."""
    first = site.flat(site.get(0) or ())
    p = placements.negate(placement_of(first))
    return derivation.derived("-", p, [first], site.node)


def number(site: Site) -> Value:
    """A plain number made of numbers."""
    return site.each(kind="number") if site.operands() else SETTING


def same(site: Site) -> Value | None:
    """The tensor itself, or a copy of it: moved, cast, cloned."""
    given = site.get(0)
    return given if given else None


def rounded(site: Site) -> Value | None:
    """A cast to whole numbers: no part of a sum any more, and no gradient."""
    given = site.flat(site.get(0) or ())
    if placement_of(given).kind in (Kind.ROWS, *placements.EQUAL):
        return cut(given)
    return site.data(placements.elementwise([placement_of(given)]), gradient="none")


def as_mask(site: Site) -> Value | None:
    """``x.bool()``."""
    return mask(site)


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


def plain(site: Site) -> Value:
    """Plain data made of what it is given (``hex(n)``, ``json.dumps(x)``)."""
    return site.m.plain(site.all(), site.word, site.node, site.frame)


def none(site: Site) -> Value:
    """No result."""
    return NONE


def in_place(effect: Effect) -> Effect:
    """What stores its result in its receiver (``x.add_(y)``), or in the first argument."""

    def changed(site: Site) -> Value | None:
        own, site.name = site.name, site.name.removesuffix("_")  # effects ask for the word
        result = effect(site)
        site.name = own
        func, given = getattr(site.node, "func", None), getattr(site.node, "args", [])
        target = getattr(func, "value", None) if site.receiver is not None else next(iter(given), None)
        held, into = site.get(0) or NOTHING, whole(site, target)
        part = held if placement_of(into).kind in placements.EQUAL and into is not held else NOTHING
        # of what all ranks have each may have chosen another part
        new = join(result or NOTHING, part) if placement_of(part).kind not in placements.EQUAL else result
        site.event("in place", target=into, new=new or NOTHING)
        if result and isinstance(target, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            site.m.write_in_place(target, result, site.node, site.frame, site.get(0))
        return result

    return changed


def whole(site: Site, target: ast.expr | None) -> Value:
    """What is written in place: of ``weight.data`` and its parts the parameter, which has the gradient; nothing
    that is known where the tensor has just been computed (``eps.mul(std).add_(mu)``).
    """
    while isinstance(target, ast.Call) and getattr(target.func, "attr", "").endswith("_"):
        target = target.func.value  # type: ignore[attr-defined]
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)

    def plain(node: ast.expr) -> bool:  # reading it again does no more
        return all(isinstance(n, parts) for n in ast.walk(node))

    base = target
    while isinstance(base, ast.Subscript) and plain(base.value) and data(site.m.evaluate(base.value, site.frame)):
        base = base.value
    if base is None or not plain(base):
        return NOTHING
    if isinstance(base, ast.Attribute) and base.attr == "data":
        return site.m.evaluate(base.value, site.frame)
    return site.m.evaluate(base, site.frame) if base is not target else site.get(0) or NOTHING


#: since when a tensor has a place for each sample of a batch, and other elements in it
RESIZED = "another form"


def _formed(v: Value) -> Value:
    """What is filled: of a tensor that was given another form, this."""
    return tuple(a._replace(placement=placements.rows(0), origin=None) if isinstance(a, Data) and a.origin and a.origin.word == RESIZED else a for a in v)


def filled(site: Site) -> Value:
    """``x.fill_(v)``, ``x.copy_(y)``, ``x.zero_()``: other elements in the same shape."""
    first = _formed(site.flat(site.get(0) or ()))
    p = placement_of(first)
    given = [v for v in (site.flat(a) for a in site.all()[1:]) if v]
    sized_apart = p == placements.PER_RANK and any(o.word == OWN_SIZE for d in data(first) for o in origins(d.origin))
    if p.kind is not Kind.ROWS and p.kind is not Kind.UNKNOWN and not sized_apart:
        p = placements.elementwise(placement_of(v) for v in given)
        if len(given) == 1:
            p = placement_of(given[0])
        if p == placements.rows(0) and site.word == "copy" and any(d.lengths and d.lengths[0] is not None for d in data(first)):
            return derivation.since(site.data(placements.UNKNOWN), "a rank's rows are copied into a tensor of another size", site.node)
    elif given:
        p = placements.elementwise([p, *(placement_of(v) for v in given)])
    made = derivation.derived(site.word, p, [first, *given], site.node)
    one = all(d.kind == "number" for v in given for d in data(v))
    return tuple(a._replace(even=one) if isinstance(a, Data) else a for a in made)


def scalar(v: Value) -> bool:
    """Whether it is plain data of the host."""
    return all(
        isinstance(a, Const | Setting) or (isinstance(a, Data) and a.kind == "number") for a in v
    )


def coupled(site: Site) -> Value:
    """Rows meet each other: what comes out is made of the rank's samples alone."""
    if not any(rows_of(v) for v in site.operands()):
        return shapeless(site)
    lost = any(placement_of(v).kind is Kind.UNKNOWN for v in site.operands())
    return site.data(placements.UNKNOWN if lost else placements.PER_RANK, keep_axes=False)


def shapeless(site: Site) -> Value:
    """A function of its operands whose result has axes of its own."""
    p = placements.elementwise(placement_of(v) for v in site.operands())
    return site.data(p, keep_axes=False)


def batched(least: int, *, square: bool = False) -> Effect:
    """A function of the last axes of tensors (``svd``): coupled where there are fewer than ``least``.

    ``square``: of two axes that are as long as each other (``inverse``), as those of the samples and
    the features of one batch are not: the samples stand before them.
    """

    def effect(site: Site) -> Value:
        found = rows_of(site.get(0) or ())
        if found is None:
            return site.each()
        if found.axes is None:
            if square and not found.placement.axis:
                return site.data(found.placement, keep_axes=False)
            return site.unknown(f"whether samples meet in {site.word}")
        beside = found.placement.axis < found.axes - least
        return site.data(found.placement if beside else placements.PER_RANK, keep_axes=False)

    return effect


def unestablished(word: str) -> Effect:
    """The result is UNKNOWN where an operand is not the same on all ranks."""

    def effect(site: Site) -> Value:
        moving = [v for v in site.operands() if placement_of(v).kind not in placements.EQUAL]
        return site.unknown(word) if moving else shapeless(site)

    return effect


def switched(
    kind: str, fields: Iterable[Location], inside: Value
) -> tuple[Effect, Effect, Effect]:
    """A manager of the runtime that all ranks come to, and in whose body fields of the process have
    another value: how it is made, entered and left.
    """

    def made(site: Site) -> Value:
        site.event("collective", name=const(site.word))
        manager = site.made(kind)
        for at in fields:
            before = site.m.heap.read(at) or const(False)
            site.m.heap.write((manager.number, ("before", at)), before)
        return value(Ref(manager.number))

    def entered(site: Site) -> Value:
        for at in fields:
            site.m.heap.write(at, inside)
        return NONE

    def left(site: Site) -> Value:
        assert site.object is not None
        for at in fields:
            site.m.heap.write(at, site.m.heap.read((site.object.number, ("before", at))))
        return NONE

    return made, entered, left
