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


#: named tuples of torchvision, by their classes
INCEPTION, GOOGLENET = (
    "torchvision.models.inception.InceptionOutputs", "torchvision.models.googlenet.GoogLeNetOutputs",
)  # fmt: skip
_FIELDS = {INCEPTION: ("logits", "aux_logits"), GOOGLENET: ("logits", "aux_logits2", "aux_logits1")}


def fields_of(named: str) -> tuple[str, ...]:
    """The names of the items of such a tuple."""
    return _FIELDS.get(named, ())


def tuple_class(name: str) -> str:
    """The class that a name of torchvision means, if it is one of these: ``models.InceptionOutputs``."""
    word = name.rpartition(".")[2].removeprefix("_")
    return next((c for c in _FIELDS if name.startswith("torchvision.models.") and c.endswith(f".{word}")), "")


def field_of(result: Items, name: str) -> Value | None:
    """A field of a tuple; None where its name is not one of torch's."""
    if name in fields_of(result.named):
        return result.items[fields_of(result.named).index(name)]
    place = _PLACES.get((len(result.items), name))
    return result.items[place] if place is not None else None


def part_of_results(site: Site, held: Data, name: str) -> Value:
    """``outputs.logits``, ``outputs["loss"]`` of what such a model, or one of a library, gives: rows as
    well, but of a loss it is not known how it takes the samples together.
    """
    if "loss" in name.lower() and held.placement.kind not in placements.EQUAL:
        return site.unknown(f"how {name} takes the samples together")
    return value(held)
