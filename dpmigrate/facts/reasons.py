"""Why a loop over batches is not split over the ranks: every reason there is, with its words."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass


class Why(enum.Enum):
    """The kinds of reasons; ``{}`` is what the reason is about."""

    # what the loop is
    SEVERAL_LOADERS = "its batches come from several loaders or from next()"
    OTHER_BATCHES = "{}() gives other batches than the loader"
    MADE = "{} need not give the batches of the loader as they are"
    KEPT_BATCHES = "the batches in {} are used by another loop"
    NO_MODEL = "no call of a model is seen in it"
    TRAINING_MODE = "nothing calls {}.eval(): in training mode a model with buffers (BatchNorm) changes them with every batch"
    MODEL_ELSEWHERE = "the model, whose buffers would have to be synchronised, is not called in the loop itself"
    # what it leaves behind
    NOTHING_ADDED = "nothing is added up or collected in variables of its own"
    READ_INSIDE = "{} is read while the loop runs"
    KNOWN_ELSEWHERE = "{} may be known by another name or to a function when the loop runs"
    NO_NUMBERS = "{} may hold something other than numbers"
    LAST_BATCH = "{} of the last batch is read after the loop"
    DELETED = "{} of the last batch is deleted after the loop, and a rank may have had no batch"
    GOES_ON = "{} goes on from one batch to the next"
    NOT_ZERO = "{} is not 0 when the loop begins"
    NOT_RESET = "{} is not reset when the loop begins"
    # what its statements do
    LEAVES = "the loop has a {}"
    HOLDS = "the loop holds a {} statement"
    BATCH_NUMBER = "the number of the batch ({}) is used"
    CHANGED = "{} is changed in the loop"
    EFFECT = "{}() has an effect in every batch"
    MAY_HAVE_EFFECT = "{}() may have an effect in every batch"
    UNKNOWN_CALL = "what {}() does is not known"


@dataclass(frozen=True, eq=False, slots=True)
class Reason:
    """One reason: its kind, what it is about, and the node that shows it."""

    why: Why
    where: ast.AST
    about: str = ""

    def __str__(self) -> str:
        return self.why.value.format(self.about)
