"""Losses of libraries beside torch, by the names of functions and classes: a number for each sample,
reduced as is asked.
"""

from __future__ import annotations

from dataclasses import replace

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Data,
    Origin,
    Value,
    const,
    data,
    known,
    placement_of,
    value,
)
from dpmigrate.library.effects import none
from dpmigrate.library.sites import Effect, Row, Site, methods, prefixed

#: options of losses by which samples meet, or do not all count
_WHOLE = ("batch", "weight", "ignore_index", "normalized")
#: how many arguments of such a function are no reduction where they are given by their place
_PLAIN = 3


def by_reduction(default: str) -> Effect:
    """``ssim(x, y, reduction="mean")``: a number for each sample, reduced as is asked."""

    def effect(site: Site) -> Value:
        if len(site.arguments.positional) > _PLAIN:
            return site.unknown("the reduction of a loss")
        return _reduced(site, dict(site.arguments.keywords), default, site.arguments.all()[:2])

    return effect


def _reduced(site: Site, fields: dict[str, Value], default: str, given: list[Value]) -> Value:
    reduction = known(fields["reduction"]) if "reduction" in fields else default
    average = fields.get("size_average")
    if average:
        reduction = "none" if known(average) is False else "mean"
    whole = [v for n in _WHOLE if (v := fields.get(n)) and v not in (NONE, const(False))]
    operands = [v for v in (site.flat(a) for a in given) if v]
    # labels (B,) of predictions (B, C) are taken by sample: no elements are put beside each other
    p = placements.elementwise(map(placement_of, operands))
    if reduction == "" and not all(d.whole or d.placement.kind in placements.EQUAL for v in operands for d in data(v)):
        return _of_a_part(site, p, operands)
    if p.kind is Kind.ROWS:
        if whole or p.axis:
            return _of_a_part(site, p, operands)
        match reduction:
            case "mean" | "batchmean":  # of all elements, or of the samples
                p = placements.mean_over(p)
            case "sum":
                p = placements.SUM
            case "none":
                pass
            case _:
                return site.unknown("the reduction of a loss")
    axes = 0 if reduction in ("mean", "batchmean", "sum") else None
    return derivation.derived(
        site.word, p, operands, site.node, kind="tensor", axes=axes, keep_axes=False
    )


def _of_a_part(site: Site, p: Placement, operands: list[Value]) -> Value:
    """What a loss gives of which it is not known how it takes the samples together: of a rank's part something else than of the whole batch. Given the samples
    of all ranks it is right whatever it does.
    """
    words = f"how {site.word} takes the samples together"
    if p.kind is not Kind.ROWS or p.axis or not site.grad():
        return site.unknown(words)
    made = derivation.derived(site.word, placements.PER_RANK, operands, site.node, kind="tensor", axes=0, keep_axes=False)
    origin = Origin(site.node, words)
    return tuple(a._replace(origin=origin, bent=a.bent | {site.node}) if isinstance(a, Data) else a for a in made)


def loss(default: str) -> Effect:
    """``SSIMLoss(reduction="mean")``: an object that is called as a loss."""

    def effect(site: Site) -> Value:
        made = site.ref("loss of a library", **site.arguments.keywords)
        by_place = len(site.arguments.positional) > 1  # one of them may be the reduction
        site.m.objects(made)[0].extra = "" if by_place else default
        return made

    return effect


def loss_called(site: Site) -> Value:
    """A call of such an object."""
    made = site.object
    assert made is not None
    fields = {str(n): v for n, v in site.m.heap.names(made.number) if isinstance(n, str)}
    named = replace(site, name=made.name)
    given = site.arguments.all()
    return _reduced(named, fields, made.extra or "", given[:2] if made.extra else given)


def itself(site: Site) -> Value:
    """``criterion.to(device)``."""
    return value(site.receiver) if site.receiver is not None else NOTHING


#: packages of losses of which it is not said here how they take the samples together
LOSS_PACKAGES = (
    "segmentation_models_pytorch.losses", "segmentation_models_pytorch.utils.losses",
    "kornia.losses", "pytorch_metric_learning.losses", "pytorch_metric_learning.distances",
    "monai.losses", "timm.loss", "piq", "pytorch_toolbelt.losses", "lightly.loss", "info_nce",
    "focal_loss", "torchgeometry.losses", "geomloss", "auraloss", "IQA_pytorch", "pyiqa",
)  # fmt: skip
LOSS_SOURCE = "https://smp.readthedocs.io/en/latest/losses.html"
#: losses by what they reduce by unless they are told; a number for each sample or element
_MEANS = {
    "piq": (
        "ssim multi_scale_ssim psnr vif_p fsim gmsd multi_scale_gmsd vsi haarpsi mdsi dss srsim"
        " information_weighted_ssim total_variation brisque",
        "SSIMLoss MultiScaleSSIMLoss VIFLoss FSIMLoss GMSDLoss MultiScaleGMSDLoss VSILoss"
        " HaarPSILoss MDSILoss DSSLoss SRSIMLoss InformationWeightedSSIMLoss TVLoss BRISQUELoss",
        "https://piq.readthedocs.io/en/latest/",
    ),
    "pytorch_msssim": (
        "ssim ms_ssim",
        "SSIM MS_SSIM",
        "https://github.com/VainF/pytorch-msssim",
    ),
    "timm.loss": (
        "",
        "LabelSmoothingCrossEntropy SoftTargetCrossEntropy BinaryCrossEntropy"
        " AsymmetricLossSingleLabel",
        "https://github.com/huggingface/pytorch-image-models/tree/main/timm/loss",
    ),
    "monai.losses": (
        "",
        "DiceLoss DiceCELoss DiceFocalLoss TverskyLoss GeneralizedDiceLoss FocalLoss",
        "https://docs.monai.io/en/stable/losses.html",
    ),
    "segmentation_models_pytorch.losses": (
        "",
        "FocalLoss SoftBCEWithLogitsLoss SoftCrossEntropyLoss",
        "https://smp.readthedocs.io/en/latest/losses.html",
    ),
    "kornia.losses": (
        "ssim_loss dice_loss tversky_loss",
        "SSIMLoss DiceLoss TverskyLoss",
        "https://kornia.readthedocs.io/en/latest/losses.html",
    ),
}  # fmt: skip
_LOSSES = tuple(
    row
    for package, (functions, classes_, source) in _MEANS.items()
    for row in (
        Row(prefixed(f"{package}.", functions), by_reduction("mean"), source=source),
        Row(prefixed(f"{package}.", classes_), loss("mean"), source=source),
    )
    if row.names
)


ROWS = (
    *_LOSSES,
    Row("<loss_of_a_library>.__call__ <loss_of_a_library>.forward", loss_called),
    Row(methods("loss_of_a_library", "to cuda cpu eval train float double half"), itself),
    Row(methods("loss_of_a_library", "requires_grad_ zero_grad"), none),
    Row("torchvision.ops.sigmoid_focal_loss torchvision.ops.focal_loss.sigmoid_focal_loss",
        by_reduction("none"),
        source="https://docs.pytorch.org/vision/stable/ops.html"),
)  # fmt: skip
