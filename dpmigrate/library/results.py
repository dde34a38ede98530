"""Fields of the tuples that torch's functions give (``x.max(1).values``): ``torch.return_types``,
and the named tuples of Python modules of torch; of networks whose code is not seen.
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.values import Data, Items, Value, value
from dpmigrate.library.sites import Site

#: the place of a field, by its name, in a result of so many parts
_PLACES = {
    (2, "values"): 0, (2, "indices"): 1,  # max, min, median, mode, kthvalue, sort, topk, cummax
    (2, "min"): 0, (2, "max"): 1,  # aminmax
    (2, "Q"): 0, (2, "R"): 1, (2, "eigenvalues"): 0, (2, "eigenvectors"): 1, (2, "sign"): 0,
    (2, "logabsdet"): 1, (3, "U"): 0, (3, "S"): 1, (3, "V"): 2, (3, "Vh"): 2,
    (2, "output"): 0, (2, "loss"): 1,  # AdaptiveLogSoftmaxWithLoss
    (2, "data"): 0, (2, "batch_sizes"): 1,
}  # fmt: skip


def field_of(result: Items, name: str) -> Value | None:
    """A field of a tuple; None where its name is not one of torch's."""
    place = _PLACES.get((len(result.items), name))
    return result.items[place] if place is not None else None


def part_of_results(site: Site, held: Data, name: str) -> Value:
    """``outputs.logits``, ``outputs["loss"]`` of what such a model, or one of a library, gives: rows as
    well, but of a loss it is not known how it takes the samples together.
    """
    if "loss" in name.lower() and held.placement.kind not in placements.EQUAL:
        return site.unknown(f"how {name} takes the samples together")
    return value(held)
