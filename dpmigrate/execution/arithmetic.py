"""Operators on constants and on data: what becomes of the placement."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    RESULTS,
    Atom,
    Const,
    Data,
    Items,
    Origin,
    Setting,
    Unknown,
    Value,
    atom_placement,
    const,
    gradient_join,
    join,
    known,
    only,
    placement_of,
    value,
)

#: the number of ranks
WORLD: Value = (Setting("world size"),)
#: a number of which that is a factor
TIMES_WORLD: Value = (Setting("times the world size"),)

#: a number divided by the number of ranks
SHARE_OF_NUMBER: Value = (Setting("over the number of ranks"),)

_BINARY: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    # CPython keeps one object of equal texts and numbers that a program writes down
    ast.Is: lambda a, b: type(a) is type(b) and a == b,
    ast.IsNot: lambda a, b: type(a) is not type(b) or a != b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
#: numbers whose size does not explode when they are computed
_SMALL = 10**9


def word_of(op: ast.operator) -> str:
    """The word of an operator in Python's data model: ``add``, ``matmul``."""
    return _BINARY[type(op)][0] if type(op) in _BINARY else "matmul"


def folded(op: ast.operator, left: Value, right: Value) -> Value | None:
    """The result on constants; on settings with a default a setting with the default's result."""
    if type(op) not in _BINARY:
        return None
    soft = False
    if isinstance(op, ast.Div) and right == WORLD and len(left) == 1 and isinstance(left[0], Const):
        return SHARE_OF_NUMBER
    if isinstance(op, ast.Mult) and any(v in (WORLD, TIMES_WORLD) for v in (left, right)):
        if all(isinstance(a, Const | Setting) for a in (*left, *right)):
            return TIMES_WORLD
    try:
        a, b = only(left), only(right)
    except LookupError:
        if len(left) != 1 or len(right) != 1:
            return None
        if not all(isinstance(x, Const | Setting) for x in (*left, *right)):
            return None
        a, b, soft = known(left), known(right), True
        if a is None or b is None:
            return value(Setting())
    if isinstance(op, ast.Mult | ast.Pow | ast.LShift) and not _small(a, b):
        return value(Setting())
    try:
        result = _BINARY[type(op)][1](a, b)
    except Exception:  # whatever the program's own constants do wrong
        return None
    if isinstance(result, complex) or not _plain(result):
        return value(Setting())
    made = const(result)
    return value(Setting("", next(iter(made)))) if soft else made  # type: ignore[arg-type]


def _small(*operands: Any) -> bool:
    return all(isinstance(x, int | float) and abs(x) < _SMALL for x in operands)


def _plain(result: Any) -> bool:
    if isinstance(result, str | bytes):
        return len(result) < 10_000
    return isinstance(result, int | float | bool)


def _mean_beside_part(v: Value, other: Value) -> Value:
    """A mean of all ranks, without a gradient, beside a part of a sum: the same on each of them."""
    if placement_of(other) != placements.SUM and placement_of(other).kind is not Kind.SIZE:
        return v
    return tuple(
        a._replace(placement=placements.UNIFORM, whole=False)
        if isinstance(a, Data) and a.whole and a.gradient == "none" and a.placement == placements.MEAN
        else a
        for a in v
    )


def compared(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """The result of a comparison of constants, None where it is not known.

    What is executed is executed by several ranks: so it is known of their number that it is no 1.
    """
    if WORLD in (left, right):
        return _of_ranks(op, left, right)
    try:
        return bool(_COMPARE[type(op)](only(left), only(right)))
    except Exception:  # not constants, or constants that do not compare
        return None


def _of_ranks(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """What a comparison of the number of ranks with a constant gives for any number from 2 on; None
    where that depends on it.
    """
    number = only(right if left == WORLD else left) if Const in map(type, (*left, *right)) else None
    if type(number) is not int or len(left) + len(right) != 2:
        return None
    compare = _COMPARE[type(op)]
    tried = {n for n in (2, number - 1, number, number + 1) if n >= 2}
    found = {compare(n, number) if left == WORLD else compare(number, n) for n in tried}
    return bool(found.pop()) if len(found) == 1 else None


def binary(
    word: str, left: Value, right: Value, node: ast.AST, *, carries: bool = False
) -> Value:
    """An operator on data; ``carries`` where an operand may be the 0 at which a sum over several
    turns begins.
    """
    if cases := _alternatives([left, right]):
        return join(*[binary(word, a, b, node, carries=carries) for a, b in cases])
    if word == "mul":  # ddp.weighted_mean(loss, n).item() * n
        left, right = _mean_beside_part(left, right), _mean_beside_part(right, left)
    a, b = aligned([left, right])
    said = _WORDS.get(word, word)
    match word:
        case "add":
            placement = placements.add(a, b)
            if placement.kind is Kind.PER_RANK and _whole_and_part(a, b, left, right):
                said = WHOLE_AND_PART
            if SHARE_OF_NUMBER in (left, right):  # mean_count(n) + 1e-8 / world_size()
                placement = next((d.placement for d in _data([left, right]) if _of_all(d)), placement)
        case "sub":
            placement = placements.subtract(a, b)
        case "mul":
            placement = _product(a, b, left, right)
            if Kind.PARTIAL in (a.kind, b.kind) and any(map(_by_all_counts, (left, right))):
                said = WEIGHTED_AGAIN if placement.kind is Kind.PER_RANK else said
        case "truediv":
            placement = placements.divide(a, b)
            if placement == placements.TERM_OF_MEAN and any(d.turn for d in _data([right])):
                placement = placements.TERM  # the batch is the turn's
            counted = b.kind is Kind.SIZE or b == placements.SUM
            if counted and any(d.sources and a.kind is Kind.UNIFORM for d in _data([left])):
                said = WHOLE_BY_PART
            elif counted and a == placements.MEAN:
                said = MEAN_BY_PART
            elif any(map(_of_all, _data([right]))):
                said = BY_COUNT_OF_ALL
        case "floordiv":
            placement = placements.floor_divide(a, b, _whole_number(right))
        case _:
            placement = placements.elementwise((a, b))
    said = CROSSED if crossed([left, right], (a, b)) else said
    made = derived(
        said, placement, [left, right], node, axes=axes_of([left, right]), keep_axes=False,
        alone=bare([left, right]), carries=carries and word in ("add", "sub"),
    )  # fmt: skip
    if word == "truediv" and placement == placements.SUM and b.kind is Kind.UNIFORM:
        return tuple(_said(a, PART_BY_WHOLE, node) for a in made)
    return made


def _said(a: Atom, word: str, node: ast.AST) -> Atom:
    """Data since an operation that leaves its placement as it is."""
    return a._replace(origin=Origin(node, word, a.origin)) if isinstance(a, Data) else a


#: since when a number that is divided by the wrong one differs
MEAN_BY_PART = "a mean divided by one rank's part of a total"
WHOLE_BY_PART = "a number of all ranks divided by one rank's part of a total"
PART_BY_WHOLE = "one rank's part of a total divided by a number of all ranks"
#: since when a total holds samples of all ranks, and then the rank's own
WHOLE_AND_PART = "a total of all ranks and one rank's part of a total added up"
#: a count as all ranks have it on average; what is divided by that, and what is made of this
COUNT_OF_ALL = "mean_count"
BY_COUNT_OF_ALL = "divided by the count of all ranks"
WEIGHTED_AGAIN = "divided by the count of all ranks, and multiplied by a rank's own"
#: since when a value is made of pairs of samples
CROSSED = "every sample meets every other one, as a column (B, 1) and a vector (B,) do"
#: since when a value depends on how long the longest sample of a rank's part is
FILLED_UP = "a loss over what fills the samples up to the longest of a rank's part"
_WORDS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "matmul": "@"}


def _whole_and_part(a: Placement, b: Placement, left: Value, right: Value) -> bool:
    """Whether one operand is made of what the samples of all ranks give, and the other is a sum
    over the rank's own.
    """
    for p, v, q in ((a, left, b), (b, right, a)):
        part = q == placements.SUM or q.kind is Kind.SIZE
        if p.kind is Kind.UNIFORM and part and any(d.sources for d in _data([v])):
            return True
    return False


def _of_all(d: Data) -> bool:
    """Whether data are a count as all ranks have it on average."""
    return d.origin is not None and d.origin.word == COUNT_OF_ALL


def _by_all_counts(v: Value) -> bool:
    """Whether a value was divided by a count that all ranks have."""
    return any(d.origin is not None and d.origin.word == BY_COUNT_OF_ALL for d in _data([v]))


def _product(a: Placement, b: Placement, left: Value, right: Value) -> Placement:
    """``a * b``; a number of samples times a whole number that is known is one as well."""
    placement = placements.multiply(a, b)
    for p, other in ((a, right), (b, left)):
        if p.kind is Kind.SIZE and len(other) == 1 and isinstance(other[0], Const):
            factor = other[0].value
            if not isinstance(factor, int):
                return placements.SUM
            return placements.size(p.times * factor)
        if p.kind is Kind.SIZE and other in (WORLD, TIMES_WORLD):
            return placements.UNIFORM  # that of all ranks: every rank has as many samples
        if other == const(-1):
            return placements.negate(p)
    return placement


def _whole_number(v: Value) -> int | None:
    """The whole number that a value is for certain."""
    number = v[0].value if len(v) == 1 and isinstance(v[0], Const) else None
    return number if type(number) is int else None


def elementwise(word: str, operands: list[Value], node: ast.AST, *, kind: str = "") -> Value:
    """A function of each element."""
    if cases := _alternatives(operands):
        return join(*[elementwise(word, case, node, kind=kind) for case in cases])
    lying = aligned(operands)
    placement = placements.elementwise(lying)
    word = CROSSED if crossed(operands, lying) else word
    return derived(
        word, placement, operands, node, kind=kind, axes=axes_of(operands), keep_axes=False,
        alone=bare(operands),
    )  # fmt: skip


def _alternatives(operands: list[Value]) -> list[list[Value]]:
    """The operands with one that is the same on all ranks on some ways, and on others not, once as
    the one and once as the other; empty where there is none.
    """
    for i, v in enumerate(operands):
        equal = tuple(a for a in v if not isinstance(a, Data) or a.placement.kind in placements.EQUAL)
        rest = tuple(a for a in v if isinstance(a, Data) and a not in equal)
        if rest and any(isinstance(a, Data) for a in equal):
            return [[*operands[:i], side, *operands[i + 1 :]] for side in (equal, rest)]
    return []


def aligned(operands: Iterable[Value]) -> list[Placement]:
    """How operands lie in what is made of them element by element.

    Axes are aligned from the last one
    (https://numpy.org/doc/stable/user/basics.broadcasting.html). An operand whose number of
    axes is not known is taken to have as many as the others. Where the axes of the samples come
    to lie beside each other, every sample meets every other one: PER_RANK.
    """
    counts = [_axes(v) for v in operands]
    most = max((n for n in counts if n is not None), default=None)
    found: list[Placement] = []
    known_rows: set[int] = set()
    for v, n in zip(operands, counts, strict=True):
        p = placement_of(v)
        if p.kind is Kind.ROWS and n is not None and most is not None:
            p = p._replace(axis=p.axis + most - n)
            known_rows.add(p.axis)
        found.append(p)
    if len(known_rows) > 1:
        return [placements.PER_RANK if p.kind is Kind.ROWS else p for p in found]
    return found


def crossed(operands: Iterable[Value], lying: Iterable[Placement]) -> bool:
    """Whether the samples of operands meet each other in what is made of them element by element,
    where they lie as ``aligned`` says.
    """
    pairs = zip(operands, lying, strict=True)
    return any(p == placements.PER_RANK and placement_of(v).kind is Kind.ROWS for v, p in pairs)


def axes_of(operands: Iterable[Value]) -> int | None:
    """The number of axes of what is made of operands element by element.

    What is the same on all ranks, and of unknown form, is taken to have no more than rows with
    several axes, as in ``aligned``; rows have as many as rows with which they lie sample by sample.
    """
    operands = list(operands)
    counts = [_axes(v) for v in operands]
    most = max((n for n in counts if n is not None), default=0)
    unknown = [placement_of(v) for v, n in zip(operands, counts, strict=True) if n is None]
    beside = [placement_of(v) for v, n in zip(operands, counts, strict=True) if n == most]
    fitting = [placements.UNIFORM, *(p for p in beside if p.kind is Kind.ROWS and not p.axis)]
    if unknown and (most < 2 or any(p not in fitting for p in unknown)):
        return None
    return most


def bare(operands: Iterable[Value]) -> bool:
    """Whether what is made of operands element by element may have the axis of the samples alone:
    one of them may, and none is known to have more.
    """
    found = list(_data(operands))
    return any(d.bare for d in found) and all(d.axes is None or d.axes < 2 for d in found)


def _axes(v: Value) -> int | None:
    """The number of axes of a value; a plain number has none."""
    counts = {0 if d.kind == "number" and d.placement.kind is not Kind.ROWS else d.axes
              for d in _data([v])}  # fmt: skip
    if len(counts) > 1:
        return None
    return next(iter(counts), 0)


def derived(
    word: str, placement: Placement, operands: Iterable[Value], node: ast.AST, *,
    kind: str = "", gradient: str | None = None, axes: int | None = None, keep_axes: bool = True,
    alone: bool = False, carries: bool = False,
) -> Value:  # fmt: skip
    """Data made of operands: where it comes from, what a gradient reaches, and since when it
    lies so; ``alone`` where an unknown number of axes may be one; ``carries`` where an operand may
    be the 0 at which a sum over several turns begins.
    """
    operands = list(operands)
    found = list(_data(operands))
    moving = [d for d in found if d.placement.kind not in placements.EQUAL]
    # what depends on the place of a sample, and on more than the sample
    placed = any(d.turn and d.placement.kind in placements.EQUAL for d in found)
    turn = bool(moving) and not placed
    if placement == placements.TERM_OF_MEAN:
        turn = turn and all(d.turn for d in moving if d.placement.kind is Kind.TERM)
    else:
        # what is made of a part of a mean by anything but sums depends on how many parts there are
        scaled = any(d.placement == placements.TERM_OF_MEAN for d in moving)
        turn = turn and not scaled and all(d.turn for d in moving)
    turn = turn and not (carries and any(_begins(v) for v in operands))
    whole = bool(moving) and all(d.whole for d in moving)
    if whole and placement.kind in (Kind.PER_RANK, Kind.RATIO):
        placement = placements.MEAN  # whatever is made of numbers of all ranks is one
    placement = placements.in_turn(placement, (d.placement for d in moving), turn=turn)
    if placed and moving and placement.kind is not Kind.UNKNOWN:
        placement = placements.PER_RANK  # on one process its samples have other places
    turn = placed if placement.kind in placements.EQUAL else turn
    first = next((d for d in found if d.placement == placement and d.origin is not None), None)
    first = None if placed else first
    before = moving[0].origin if moving else None
    origin = first.origin if first is not None else _origin(node, word, before, placement, operands)
    flows = gradient_join(*(d.gradient for d in found)) if gradient is None else gradient
    known_axes = {d.axes for d in found if d.kind != "number"}
    if axes is None and keep_axes and len(known_axes) == 1:
        (axes,) = known_axes
    made = Data(
        kind or _kind_made(word, found),
        placement,
        flows,
        frozenset().union(*(d.sources for d in found)),
        frozenset().union(*(d.reached for d in found)) if flows != "none" else frozenset(),
        axes,
        origin,
        turn,
        alone and axes is None,
        whole and placement == placements.MEAN,
        marks=frozenset().union(*(d.marks for d in moving)),
        bent=_bent(placement, moving, node, adding=word in ("+", "-")),
    )
    return value(made)


def _bent(placement: Placement, moving: list[Data], node: ast.AST, *, adding: bool) -> frozenset[ast.AST]:
    """The operations that have taken a rank's part of a sum or mean for more than sums: those
    before, and this one. What is added to a result of such a one is not bent by that.
    """
    before = frozenset().union(*(d.bent for d in moving))
    parts = [d.placement in (placements.SUM, placements.MEAN) for d in moving]
    counted = (p or d.placement.kind is Kind.SIZE for p, d in zip(parts, moving, strict=True))
    bends = placement.kind in (Kind.PER_RANK, Kind.RATIO) or (adding and placement.kind is Kind.UNKNOWN)
    return before | {node} if bends and any(parts) and (not adding or all(counted)) else before


def _begins(v: Value) -> bool:
    """Whether a value may be the 0 at which a sum begins."""
    return any(atom_placement(a).kind is Kind.ZERO for a in v)


def _kind_made(word: str, found: list[Data]) -> str:
    """What an operation makes: comparisons make masks, and so do operations on masks alone."""
    kind = kind_of(found)
    masks = word == "comparison" or all(d.kind == "mask" for d in found)
    return "mask" if kind == "tensor" and word in _MASKS and masks else kind


def _origin(
    node: ast.AST, word: str, before: Origin | None, placement: Placement, operands: Iterable[Value]
) -> Origin | None:
    if placement.kind in placements.EQUAL:
        return None
    if placement.kind is Kind.UNKNOWN:
        for v in operands:
            for a in v:
                if isinstance(a, Unknown):
                    return Origin(a.node or node, a.word)
                if isinstance(a, Data) and a.placement.kind is Kind.UNKNOWN and a.origin:
                    return a.origin
    if word.startswith("__"):  # a method of Python's data model
        word = _WORDS.get(word.strip("_"), word.strip("_"))
    return Origin(node, word, before)


def kind_of(found: list[Data]) -> str:
    """A tensor makes a tensor of all, an array an array of numbers; what may be anything, as a part
    of a sample whose data set is not seen, makes what may be anything.
    """
    kinds = {"tensor" if d.kind in _TENSORS else d.kind for d in found}
    opaque = "any" if kinds & {"samples", "any"} else "number"
    return next((k for k in ("tensor", "array", "text") if k in kinds), opaque)


#: kinds of data that are tensors when something is made of them
_TENSORS = ("batch", "mask", "places", "order", RESULTS)
#: operations on masks that make a mask, or put its elements elsewhere
_MASKS = (
    "comparison", "~", "and", "or", "xor", "not", "cat", "concat", "concatenate", "stack", "hstack",
    "vstack", "expand", "expand_as", "broadcast_to", "repeat", "tile", "repeat_interleave", "flip", "roll",
    "split", "chunk", "unbind", "narrow", "select",
)  # fmt: skip


def _data(operands: Iterable[Value]) -> Iterable[Data]:
    for v in operands:
        for a in v:
            if isinstance(a, Data):
                yield a
            elif isinstance(a, Items):
                yield from _data(a.items)
