"""The parts that networks of torchvision have, by the names of their functions, and the axes of what they give.

Sources: the ``__init__`` of each network, https://docs.pytorch.org/vision/stable/models.html
"""

from __future__ import annotations

from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NOTHING, Value, const
from dpmigrate.library.modules import MODEL, library_network
from dpmigrate.library.sites import Site

_CLASSIFIED = frozenset({"features", "avgpool", "classifier"})
_RESIDUAL = frozenset(["conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4", "avgpool", "fc"])
#: by what the name of a network begins with
_PARTS = {
    "resnet": _RESIDUAL,
    "resnext": _RESIDUAL,
    "wide_resnet": _RESIDUAL,
    "alexnet": _CLASSIFIED,
    "vgg": _CLASSIFIED,
    "densenet": _CLASSIFIED,
    "mobilenet": _CLASSIFIED,
    "efficientnet": _CLASSIFIED,
    "convnext": _CLASSIFIED,
    "squeezenet": _CLASSIFIED,
    "mnasnet": frozenset({"layers", "classifier"}),
    "shufflenet": frozenset(["conv1", "maxpool", "stage2", "stage3", "stage4", "conv5", "fc"]),
    "regnet": frozenset(["stem", "trunk_output", "avgpool", "fc"]),
    "swin": frozenset(["features", "norm", "permute", "avgpool", "flatten", "head"]),
    "vit_": frozenset(["conv_proj", "encoder", "heads", "class_token"]),
    "maxvit": frozenset(["stem", "blocks", "classifier"]),
}


def own_parts(network: str) -> frozenset[str]:
    """The names of the parts that a network uses in its forward; none where they are not known."""
    return next((parts for begin, parts in _PARTS.items() if network.startswith(begin)), frozenset())


#: a field of a network that gives a row of numbers for each sample: how many axes they have
AXES = "#axes"
#: networks whose forward makes one row of each sample before its last part, by that part's name
_ROWS = {
    "fc": ("resnet", "resnext", "wide_resnet", "shufflenet", "regnet"),
    "classifier": ("alexnet", "vgg", "densenet", "mobilenet_v", "efficientnet", "mnasnet"),
    "heads": ("vit_",),
}
#: layers that give as many axes as they are given
_KEEPING = frozenset((
    "Linear", "Identity", "BatchNorm1d", "LayerNorm", "Dropout", "AlphaDropout", "ReLU", "ReLU6", "LeakyReLU", "PReLU",
    "ELU", "SELU", "GELU", "SiLU", "Hardswish", "Mish", "Sigmoid", "Tanh", "Softplus", "Softmax", "LogSoftmax",
))  # fmt: skip


def _last_part(network: str) -> str:
    """The name of the last part of such a network; '' where that is not known."""
    return next((part for part, begins in _ROWS.items() if network.startswith(begins)), "")


def classifier(site: Site) -> Value:
    """``torchvision.models.resnet18()``: numbers for each sample."""
    made = library_network(site)
    if _last_part(site.word):
        for o in site.m.objects(made):
            site.m.heap.write((o.number, AXES), const(2))
    return made


def axes_given(m: Machine, made: Object) -> int | None:
    """The axes of what a network gives, also where its last part has been replaced: ``model.fc = nn.Linear(512, 10)``."""
    last = (m.heap.read((made.number, _last_part(made.name))) or NOTHING) if m.heap.read((made.number, AXES)) == const(2) else None
    return 2 if last is not None and all(_keeps_axes(m, o) for o in m.objects(last)) and len(m.objects(last)) == len(last) else None


def _keeps_axes(m: Machine, made: Object) -> bool:
    """Whether a layer gives as many axes as it is given, or all layers that it holds do."""
    if made.kind == "container" or (made.extra == MODEL and "." in made.name):  # a part of such a network, as it was
        fields = [v for name, v in m.heap.names(made.number) if not str(name).startswith(("mode ", "#"))]
        return all(len(m.objects(v)) == len(v) and all(_keeps_axes(m, o) for o in m.objects(v)) for v in fields)
    return made.kind == "module" and made.name in _KEEPING
