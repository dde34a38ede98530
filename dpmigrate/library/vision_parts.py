"""The parts that networks of torchvision have, by the names of their functions.

Sources: the ``__init__`` of each network, https://docs.pytorch.org/vision/stable/models.html
"""

from __future__ import annotations

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
