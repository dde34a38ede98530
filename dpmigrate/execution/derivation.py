"""Data made of operands: what they inherit from those."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from dpmigrate.execution import masking, placements
from dpmigrate.execution.joins import gradient_join
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    ONE,
    ONE_SAMPLE,
    OTHERS,
    RESULTS,
    SOME,
    SOME_TURNS,
    TWO_ORDERS,
    Atom,
    Const,
    Data,
    Items,
    Origin,
    Setting,
    Unknown,
    Value,
    atom_placement,
    value,
)

#: how messages write the operators
SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "matmul": "@"}


def since(v: Value, word: str, node: ast.AST) -> Value:
    """Data that are what they are since an operation that leaves their placement as it is."""
    return tuple(a._replace(origin=Origin(node, word, a.origin)) if isinstance(a, Data) else a for a in v)


def _one_number(a: Atom) -> bool:
    """Whether it is a number, or a tensor that holds one all over; of what is given from outside that is known
    where it has a default.
    """
    held = a.default if isinstance(a, Setting) else a
    return isinstance(held, Const) or (isinstance(held, Data) and (held.even or held.kind == "number"))


def drawn(operands: Iterable[Value]) -> bool:
    """Whether what is made of the operands element by element has nothing in it but draws of a rank's own, and the same for each element."""
    given = [a for v in operands for a in v]
    draws = [isinstance(a, Data) and a.drawn for a in given]
    return any(draws) and all(d or isinstance(a, Setting) or _one_number(a) for d, a in zip(draws, given, strict=True))


def derived(
    word: str, placement: Placement, operands: Iterable[Value], node: ast.AST, *,
    kind: str = "", gradient: str | None = None, axes: int | None = None, keep_axes: bool = True,
    alone: bool = False, carries: bool = False, lengths: tuple[int | None, ...] = (), even: bool = False,
) -> Value:  # fmt: skip
    """Data made of operands: where it comes from, what a gradient reaches, and since when it
    lies so; ``alone`` where an unknown number of axes may be one; ``carries`` where an operand may
    be the 0 at which a sum over several turns begins; ``even`` where it holds one number all over if
    the operands do, and draws alone if they are such.
    """
    operands = list(operands)
    found = list(data_in(operands))
    moving = [d for d in found if d.placement.kind not in placements.EQUAL]
    orders = {d.order for d in moving if d.order and d.placement.kind in _ORDERED}
    # samples meet in two orders, or what is not known of others
    crossed = len(orders) > 1 or any(isinstance(a, Unknown) and a.whose == OTHERS for v in operands for a in v)
    # what depends on the place of a sample, and on more than the sample
    placed = any(d.turn and d.placement.kind in placements.EQUAL for d in found)
    turn = bool(moving) and not placed
    if placement == placements.TERM_OF_MEAN:
        turn = turn and all(d.turn for d in moving if d.placement.kind is Kind.TERM)
    else:
        # what is made of a part of a mean by anything but sums depends on how many parts there are
        scaled = any(d.placement == placements.TERM_OF_MEAN for d in moving)
        turn = turn and not scaled and all(d.turn for d in moving)
    turn = turn and not crossed and not (carries and any(_begins(v) for v in operands))
    whole = bool(moving) and all(d.whole and d.placement == placements.MEAN for d in moving)
    if whole and placement.kind in (Kind.PER_RANK, Kind.RATIO):
        placement = placements.MEAN  # whatever is made of numbers of all ranks is one
    if any(d.placement == placements.PADDED for d in found):
        placement = _by_padding(placement)
    if placement.kind is not Kind.UNKNOWN and (crossed or _unlike(found)):
        placement = placements.PER_RANK
    placement = placements.in_turn(placement, (d.placement for d in moving), turn=turn)
    if placed and moving and placement.kind is not Kind.UNKNOWN:
        placement = placements.PER_RANK  # on one process its samples have other places
    turn = placed if placement.kind in placements.EQUAL else turn
    first = next((d for d in found if d.placement == placement and d.origin is not None), None)
    first = None if placed else first
    before = moving[0].origin if moving else None
    origin = first.origin if first is not None else _origin(node, word, before, placement, operands)
    whose, others = "", [d for d in moving if of_others(d)]
    said = TWO_ORDERS if len(orders) > 1 else SOME_TURNS
    if placement.kind is Kind.PER_RANK and any(d.turn and d.placement.kind is Kind.TERM for d in moving):
        if others or placed or crossed:  # the turn's own sample meets others, or is told by its place from them
            whose, origin = OTHERS, Origin(node, said, others[0].origin if others else before)
    elif placement.kind in (Kind.PER_RANK, Kind.UNKNOWN):
        spoilt = next((d for d in others if d.whose == OTHERS), None)
        whose = ONE if others or word == ONE_SAMPLE else ""
        whose = SOME if any(d.whose == SOME for d in others) else whose
        whose = OTHERS if spoilt is not None or crossed else whose
        if placement.kind is Kind.PER_RANK and whose == OTHERS:
            origin = spoilt.origin if spoilt is not None else Origin(node, said, before)
    flows = gradient_join(*(d.gradient for d in found)) if gradient is None else gradient
    known_axes = {d.axes for d in found if d.kind != "number"}
    if axes is None and keep_axes and len(known_axes) == 1:
        (axes,) = known_axes
    kind = kind or _kind_made(word, found)
    every = any(d.every and (d.kind == "number") == (kind == "number") for d in found)
    made = Data(
        kind,
        placement,
        flows,
        frozenset().union(*(d.sources for d in found)),
        frozenset().union(*(d.reached for d in found)) if flows != "none" else frozenset(),
        axes,
        origin,
        turn,
        alone and axes is None,
        whole and placement == placements.MEAN,
        lengths if len(lengths) == axes else (),
        marks=frozenset().union(*(d.marks for d in moving)),
        bent=_bent(placement, moving, node, adding=word in ("+", "-")),
        every=every and (kind == "number" or axes != 0),
        even=even and all(_one_number(a) for v in operands for a in v),
        drawn=even and word != SIGNS["matmul"] and drawn(operands),
        alike=word in _AS_IT_WAS and bool(moving) and all(d.alike for d in moving),
        whose=whose,
        order=frozenset().union(*orders) if placement.kind in _ORDERED else frozenset(),
        masked=masking.made(word, kind, found),
        fraction=word != "int" and (any(d.fraction for d in moving) or _shared_out(word, operands)),
    )
    return value(made)


def of_others(a: Atom) -> bool:
    """Whether it is made of samples, and not of the turn's own: of one that the turn has not, of several, or of all."""
    if isinstance(a, Data):
        return bool(a.whose) and not a.turn and a.placement.kind in (Kind.PER_RANK, Kind.UNKNOWN)
    return isinstance(a, Unknown) and bool(a.whose)


#: how data lie that have their samples in an order, or are one of these
_ORDERED = (Kind.ROWS, Kind.TERM, Kind.PER_RANK)


def _shared_out(word: str, operands: list[Value]) -> bool:
    """Whether an operation makes of a whole number one that need not be whole: a quotient, or the
    product with a number that is not known to be whole.
    """
    if word in ("/", "truediv"):
        return True
    return word in ("*", "mul") and any(not _may_count(a) for v in operands for a in v)


def _may_count(a: Atom) -> bool:
    """Whether a factor may be a whole number: data may count something."""
    held = a.default if isinstance(a, Setting) else a
    return held.type == "int" if isinstance(held, Const) else isinstance(held, Data)


def _by_padding(placement: Placement) -> Placement:
    """How what is made of the length of a rank's padding lies, that would lie so without it."""
    if placement.kind in placements.EQUAL:
        return placements.PADDED
    if placement.kind is Kind.ROWS:
        return placement._replace(padded=True)
    return placement if placement.kind is Kind.UNKNOWN else placements.PER_RANK


def _unlike(found: list[Data]) -> bool:
    """Whether the samples of all ranks meet those of one, of which there are fewer."""
    every = any(d.every and d.kind != "number" and d.axes != 0 for d in found)
    return every and any(d.placement.kind is Kind.ROWS and not d.every for d in found)


def _bent(placement: Placement, moving: list[Data], node: ast.AST, *, adding: bool) -> frozenset[ast.AST]:
    """The operations that have taken a rank's part of the batch for what no reduction mends: those
    before, and this one. What is added to a result of such a one is not bent by that. Where a result
    lies as one of each sample, or is a part, none has done harm.
    """
    if placement.kind not in (Kind.PER_RANK, Kind.RATIO, Kind.UNKNOWN):
        return frozenset()
    before = frozenset().union(*(d.bent for d in moving))
    counts = [d.placement in (placements.SUM, placements.MEAN) or d.placement.kind is Kind.SIZE for d in moving]
    rows = placement.kind is Kind.PER_RANK and any(d.placement.kind is Kind.ROWS for d in moving)
    bends = placement.kind in (Kind.PER_RANK, Kind.RATIO) or (adding and placement.kind is Kind.UNKNOWN)
    return before | {node} if bends and (rows or any(counts)) and (rows or not adding or all(counts)) else before


def _begins(v: Value) -> bool:
    """Whether a value may be the 0 at which a sum begins."""
    return any(atom_placement(a).kind is Kind.ZERO for a in v)


def _kind_made(word: str, found: list[Data]) -> str:
    """What an operation makes: comparisons make masks, and so do operations on masks alone."""
    kind = kind_of(found)
    if word == "+" and all(d.kind == RESULTS for d in found):
        return RESULTS  # they may be lists, which are put end to end
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
        word = SIGNS.get(word.strip("_"), word.strip("_"))
    return Origin(node, word, before)


#: operations that give the same elements, in the same places
_AS_IT_WAS = (
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "type", "clone", "detach", "contiguous", "pin_memory",
    "as_tensor", "from_numpy", "numpy",
)  # fmt: skip


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


def data_in(operands: Iterable[Value]) -> Iterable[Data]:
    for v in operands:
        for a in v:
            if isinstance(a, Data):
                yield a
            elif isinstance(a, Items):
                yield from data_in(a.items)
