"""What samples are filled up with, and the masks that take it out of what is made of them (``Data.masked``).

A rank fills its samples up to the longest of its own part of a batch. What goes by that has other numbers than on one process, unless a mask takes
it out: a product with weights, which a softmax makes of all that a sample is filled up to, adds up what is filled up as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Const, Data, Value

#: a mask that is true where samples are filled up, and one that is true where they are not
FILLED, OWN = "filled", "own"
#: a mask has taken what is filled up out of it, or has been put into it in a way that is not followed
TAKEN_OUT = "taken out"
#: weights over all that a sample is filled up to
WEIGHTS = "weights"
_OTHER = {FILLED: OWN, OWN: FILLED}
#: operations that turn a mask of truths round
_NEGATIONS = ("~", "not", "__invert__", "logical_not", "bitwise_not")
#: those that give the same truths, or put them elsewhere
_MOVES = frozenset({
    "unsqueeze", "squeeze", "view", "reshape", "expand", "expand_as", "repeat", "tile", "transpose", "permute", "t", "flatten", "contiguous", "clone",
    "detach", "to", "cuda", "cpu", "bool", "type", "type_as", "index", "repeat_interleave", "broadcast_to", "swapaxes", "movedim", "numpy", "from_numpy",
})
#: those by which a mask puts other elements where it is true
_FILLS = ("masked_fill", "masked_fill_")


def made(word: str, kind: str, found: Sequence[Data]) -> str:
    """What is known of what an operation makes of data."""
    states = {d.masked for d in found}
    masks = [d for d in found if d.kind == "mask"]
    if kind == "mask" or (word in _MOVES and len(masks) == len(found)):
        known = states & _OTHER.keys()
        one = known.pop() if len(known) == 1 else ""
        return _OTHER.get(one, "") if word in _NEGATIONS else one
    if masks and not (word in _FILLS and all(d.masked == OWN for d in masks)):
        return TAKEN_OUT
    return TAKEN_OUT if TAKEN_OUT in states else WEIGHTS if WEIGHTS in states else ""


def joined(a: str, b: str) -> str:
    """What is known of one of two."""
    if a == b:
        return a
    return next((word for word in (TAKEN_OUT, WEIGHTS) if word in (a, b)), "")


def compared(v: Value, equal: bool, operands: Iterable[Value]) -> Value:
    """A mask that a comparison for being ``equal``, or not, makes of samples that are filled up: with the number they are filled up with; or of such a mask."""
    given = [a for operand in operands for a in operand]
    data = [a for a in given if isinstance(a, Data)]
    masks = {a.masked for a in data if a.kind == "mask"} & _OTHER.keys()
    if len(masks) == 1:
        told = [a.value for a in given if isinstance(a, Const)]
        state = masks.pop() if told and bool(told[0]) is equal else _OTHER[masks.pop()] if told else ""
    elif len(data) == 1 and data[0].placement.kind is Kind.ROWS and data[0].placement.padded and data[0].kind != "mask":
        state = FILLED if equal else OWN
    else:
        state = ""
    return tuple(a._replace(masked=state) if isinstance(a, Data) and a.kind == "mask" else a for a in v)


def by_operator(v: Value, op: ast.cmpop, operands: Iterable[Value]) -> Value:
    """The same for ``==`` and ``!=``."""
    return compared(v, isinstance(op, ast.Eq), operands) if isinstance(op, ast.Eq | ast.NotEq) else v


def weighed(v: Value) -> Value:
    """What a softmax makes: of what has nothing taken out weights of all of it."""
    return tuple(
        a._replace(masked=WEIGHTS) if isinstance(a, Data) and a.placement.kind is Kind.ROWS and a.placement.padded and not a.masked else a for a in v
    )


def adds_up_filling(operands: Sequence[Value]) -> bool:
    """Whether a product adds up, by such weights, what samples are filled up with."""
    if len(operands) < 2:
        return False
    weights, rows = ([a for a in v if isinstance(a, Data)] for v in operands[:2])
    filled = any(a.placement.kind is Kind.ROWS and a.placement.padded and a.masked != TAKEN_OUT for a in rows)
    return filled and any(a.masked == WEIGHTS for a in weights)
