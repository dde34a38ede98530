"""Which models normalise over the batch, and so keep running statistics."""

from __future__ import annotations

from collections.abc import Collection

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.objects import UNSEEN, Object
from dpmigrate.execution.values import NOTHING, const
from dpmigrate.library.batch_state import keeps
from dpmigrate.library.layers import foreign_name
from dpmigrate.library.module_tree import owned
from dpmigrate.library.modules import CHILD, MODEL

#: families of ready-made models without BatchNorm, and such that have it
#: (https://docs.pytorch.org/vision/stable/models.html)
_WITHOUT = ("alexnet", "vgg", "squeezenet", "vit", "swin", "convnext", "maxvit")
_WITH = (
    "BatchNorm", "LazyBatchNorm", "resnet", "resnext", "wide_resnet", "densenet", "mobilenet",
    "efficientnet", "inception", "googlenet", "regnet", "shufflenet", "mnasnet", "deeplab", "fcn_", "lraspp_",
)  # fmt: skip
#: families whose BatchNorm stands behind a pooling to one value (the image pooling of https://arxiv.org/abs/1706.05587)
_POOLED = "deeplab"
_POOLS = ("AdaptiveAvgPool", "AdaptiveMaxPool")


def layers(execution: Execution, called: Collection[int]) -> list[tuple[str, bool]]:
    """The layers of modules that normalise over the batch, and the models whose code is not seen,
    each with whether it is known to normalise.
    """
    named = [(_family(execution, o), o) for o in _parts(execution, called)]
    return [
        (name, _normalises(name)) for name, o in named
        if name.startswith(_WITH[:2]) or (_unseen(o) and not _without(name)) or (o.kind == "library model" and _normalises(name.lower()))
    ]  # fmt: skip


def observing(execution: Execution, called: Collection[int]) -> list[Object]:
    """The layers of modules, and modules, that keep something else of their batches: ranges of values, running statistics."""
    return [o for o in _parts(execution, called) if keeps(execution, o, _word(foreign_name(execution, o)))]


def of_one_value(execution: Execution, called: Collection[int]) -> bool:
    """Whether a BatchNorm stands in a ``Sequential`` behind a pooling to one value of each channel:
    of one sample it has then as little to normalise over as behind a linear layer.
    """
    parts = _parts(execution, called)
    return any(_pooled_first(execution, made) if made.kind == "container" else _pools(execution, made) for made in parts)


def _parts(execution: Execution, called: Collection[int]) -> list[Object]:
    """Modules with all that they are made of."""
    return [execution.heap.objects[n] for n in sorted({n for number in called for n in owned(execution, number)})]


def _pools(execution: Execution, made: Object) -> bool:
    """Whether it is a ready-made network that does so."""
    return _word(foreign_name(execution, made)).lower().startswith(_POOLED)


def _pooled_first(execution: Execution, made: Object) -> bool:
    pooled = False
    for _, held in execution.heap.names(made.number):
        for layer in execution.objects(held):
            word = _word(foreign_name(execution, layer))
            if pooled and word.startswith(_WITH[:2]):
                return True
            pooled = pooled or (word.startswith(_POOLS) and _to_one(execution, layer))
    return False


def _to_one(execution: Execution, pool: Object) -> bool:
    given = execution.heap.read((pool.number, "=output_size")) or NOTHING
    sizes = execution.known_elements(given) or [given]
    return all(v == const(1) for v in sizes)


def _family(execution: Execution, made: Object) -> str:
    """The class of a layer, or the family of a ready-made network; that of which a child may be any is this family's."""
    while made.name.endswith(f".{CHILD}") and made.owner:
        made = execution.heap.objects[made.owner]
    return _word(foreign_name(execution, made))


def _word(name: str) -> str:
    return name.rpartition(".")[2]


def _unseen(made: Object) -> bool:
    return made.kind in UNSEEN or made.extra == MODEL


def _normalises(name: str) -> bool:
    """Whether a layer, or a family of ready-made models, is known to normalise over the batch."""
    return name.startswith(_WITH) or name.endswith("_bn")


def _without(name: str) -> bool:
    return name.lower().startswith(_WITHOUT) and not name.endswith("_bn")
