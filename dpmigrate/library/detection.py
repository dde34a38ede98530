"""Detectors of torchvision: losses while they train, boxes of each picture otherwise.

Source: https://docs.pytorch.org/vision/stable/models.html#object-detection-instance-segmentation-and-person-keypoint-detection
and the classes in https://github.com/pytorch/vision/tree/main/torchvision/models/detection
"""

from __future__ import annotations

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NOTHING, Ref, Value, const, known, placement_of, value
from dpmigrate.library.effects import unestablished
from dpmigrate.library.modules import library_network
from dpmigrate.library.sites import Row, Site

_PACKAGE = "torchvision.models.detection"
_SOURCE = "https://docs.pytorch.org/vision/stable/models.html"
#: the losses of a detector, by what its name begins with
_LOSSES = {
    "fasterrcnn": ("loss_classifier", "loss_box_reg", "loss_objectness", "loss_rpn_box_reg"),
    "maskrcnn": ("loss_classifier", "loss_box_reg", "loss_mask", "loss_objectness", "loss_rpn_box_reg"),
    "keypointrcnn": (
        "loss_classifier", "loss_box_reg", "loss_keypoint", "loss_objectness", "loss_rpn_box_reg",
    ),
    "retinanet": ("classification", "bbox_regression"),
    "fcos": ("classification", "bbox_regression", "bbox_ctrness"),
    "ssd": ("bbox_regression", "classification"),
}  # fmt: skip
#: the detector whose losses are divided by the boxes of each picture, and by the pictures
_BY_PICTURE = "retinanet"
#: the family of a detector, a field of it
_FAMILY = "#detector"
#: an event: a mean over the boxes of a rank's pictures counts as one over its pictures
TAKEN = "taken for a mean over the pictures"


def detector(site: Site) -> Value:
    """``fasterrcnn_resnet50_fpn()``, ``RetinaNet(backbone, 3)``."""
    made = library_network(site)
    for o in site.m.objects(made):
        site.m.heap.write((o.number, _FAMILY), const(_family(site.word)))
    return made


def _family(word: str) -> str:
    return next((f for f in _LOSSES if word.lower().startswith(f)), "")


def called(site: Site, made: Object) -> Value | None:
    """A call of a detector; None where the module is none.

    The losses are means over boxes that are sampled or matched in the pictures of the batch.
    torchvision's own training under DDP takes the mean of those of the ranks; the user is told.
    """
    held = site.m.heap.read((made.number, _FAMILY))
    family = known(held) if held else None
    if not isinstance(family, str):
        return None
    mode = site.m.heap.read((made.number, "mode training")) or const(True)
    found = NOTHING
    if const(True)[0] in mode:
        found = _losses(site, family)
    return found if mode == const(True) else join(found, _boxes(site) or NOTHING)


def _losses(site: Site, family: str) -> Value:
    operands = [v for v in (site.flat(a) for a in site.arguments.all()) if v]
    differs = any(placement_of(v).kind not in placements.EQUAL for v in operands)
    if differs and site.grad() and family != _BY_PICTURE:
        site.event(TAKEN, name=const(site.word))
    p = placements.MEAN if differs else placements.UNIFORM
    made = value(Ref(site.made("dict").number))
    for name in _LOSSES[family]:
        loss = derivation.derived(name, p, operands, site.node, kind="tensor", axes=0, keep_axes=False)
        site.m.set_item(made, const(name), loss, site.node, site.frame)
    return made


#: a dictionary of boxes, labels and scores for each picture
_boxes = unestablished("which samples the boxes belong to")


def pattern(name: str) -> Row | None:
    """Detectors and their parts (``FastRCNNPredictor``), by the names of functions and classes."""
    head, _, word = name.rpartition(".")
    if not head.startswith(_PACKAGE) or "Weights" in name:
        return None
    if _family(word):
        return Row(name, detector, source=_SOURCE)
    part = word[:1].isupper() or word.endswith(("_backbone", "_extractor"))
    return Row(name, library_network, source=_SOURCE) if part else None


ROWS: tuple[Row, ...] = ()
