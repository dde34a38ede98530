"""Images: torchvision's transforms and models, PIL, OpenCV, albumentations, timm."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import (
    SETTING,
    Data,
    Ref,
    Value,
    const,
    placement_of,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import same
from dpmigrate.library.pure import choose
from dpmigrate.library.sites import Row, Site

_DOC = "https://docs.pytorch.org/vision/stable/"
#: functions of images, which treat each image of a batch by itself
_IMAGES = (
    "torchvision.transforms.functional.", "kornia.color.", "kornia.enhance.", "kornia.filters.",
    "kornia.geometry.transform.", "kornia.morphology.",
)  # fmt: skip
#: files of images and sound
_FILES = ("torchvision.io.", "torchaudio.load", "torchaudio.info")
#: libraries of transforms of one sample
_TRANSFORMS = (
    "torchvision.transforms.", "albumentations.", "imgaug.", "monai.transforms.",
    "torchaudio.transforms.", "timm.data.", "kornia.augmentation.",
)  # fmt: skip
#: what the names of transforms begin with that draw random numbers
_RANDOM = (
    "Random", "Color", "Auto", "Trivial", "AugMix", "Rand", "MixUp", "CutMix", "Elastic",
    "TimeMasking", "FrequencyMasking", "SpecAugment",
)  # fmt: skip
#: transforms of albumentations that draw nothing, unless a probability is given; all others do
_PLAIN_ALBUMENTATIONS = frozenset(
    {"Resize", "Normalize", "ToTensorV2", "ToTensor3D", "CenterCrop", "Crop", "PadIfNeeded", "LongestMaxSize"}
    | {"SmallestMaxSize", "ToFloat", "FromFloat", "NoOp", "BboxParams", "KeypointParams"}
)
#: what puts transforms one after the other, or chooses some
_IN_TURN = frozenset({"Compose", "Sequential", "ReplayCompose"})
_OF_SEVERAL = _IN_TURN | {"OneOf", "SomeOf", "OneOrOther"}
#: transforms of albumentations that make a tensor (C, H, W) of an image, with their mark, and that of parts that are not seen
_TO_TENSOR = frozenset({"ToTensorV2"})
_MAKES_TENSORS, _UNSEEN_PARTS = "makes tensors", "parts that are not seen"
#: a field of a Compose: its transforms
_PARTS = "parts"


def transform(site: Site) -> Value:
    """A transform: a function of one sample."""
    made = site.made("transform")
    made.extra = "albumentations" if site.name.startswith("albumentations.") else None
    inner = [o for v in site.arguments.all() for o in site.m.objects(tuple(site.deep(v)))]
    if site.word.startswith(_RANDOM) or any("random" in o.marks for o in inner) or (made.extra and _draws(site)):
        made.marks.add("random")
    if site.word in _TO_TENSOR or any(_MAKES_TENSORS in o.marks for o in inner):
        made.marks.add(_MAKES_TENSORS)
    elif made.extra and not _seen(site):
        made.marks.add(_UNSEEN_PARTS)
    if site.word == "Compose":
        site.m.heap.write((made.number, _PARTS), site.get(0, "transforms"))
    return value(Ref(made.number))


def _draws(site: Site) -> bool:
    """Whether a transform of albumentations may draw by itself, and not by those that it is made of."""
    if site.arguments.keywords.get("p", const(1)) not in (const(1), const(1.0)):
        return True
    return not _seen(site) if site.word in _IN_TURN else site.word not in _PLAIN_ALBUMENTATIONS


def _seen(site: Site) -> bool:
    """Whether all that a transform is made of is seen."""
    parts = site.get(0, "transforms") if site.word in _OF_SEVERAL else None
    known = site.m.known_elements(parts) if parts else ()
    return known is not None and all(site.m.objects(v) for v in known)


def composed(site: Site) -> Value | None:
    """What transforms make of a sample one after the other, where the program has written one of them
    itself: it may take samples of several parts. None where that is not so.
    """
    held = site.m.heap.read((site.object.number, _PARTS)) if site.object is not None else None
    parts = site.m.known_elements(held) if held else None
    own = [o for v in parts or () for o in site.m.objects(v) if o.kind in ("function", "instance")]
    given = site.get(0)
    if not parts or not own or given is None:
        return None
    for part in parts:
        given = site.m.call(part, Arguments([given]), site.node, site.frame)
    return given


def transformed(site: Site) -> Value:
    """A transform is called with a sample, or with a batch."""
    if site.object is not None and site.object.extra == "albumentations":
        return transformed_sample(site)
    found = composed(site)
    if found is not None:
        return found
    apart = site.object is not None and "random" in site.object.marks and streams.own(site, "torch")
    if apart:
        site.event("drawn apart")
    axes = 3 if site.object is not None and site.object.name in ("ToTensor", "ToTensorV2") else None
    if any(placement_of(v).kind not in placements.EQUAL for v in site.operands()):
        moving = any(rows_of(v) for v in site.operands())
        return of_axes(site.each(kind="tensor"), None if moving else axes)
    found = value(Data("tensor", placements.UNIFORM, axes=axes))
    return streams.of_ranks(site, found) if apart else found


def transformed_sample(site: Site) -> Value:
    """albumentations gives a dictionary: ``transform(image=x)["image"]``. An image without channels, (H, W), gets an axis for them where it becomes a tensor; a
    mask does not.
    """
    made = site.made("dict")
    marks = site.object.marks if site.object is not None else {_UNSEEN_PARTS}
    for name, held in site.arguments.keywords.items():
        p = site.flat(held)
        found = site.each(kind="tensor") if p else value(Data("tensor", placements.UNIFORM))
        if name == "image" and marks & {_MAKES_TENSORS, _UNSEEN_PARTS}:
            found = of_axes(found, 3 if _MAKES_TENSORS in marks else None)
        if site.object is None or "random" in site.object.marks:
            found = streams.drawn(site, "random", found)
        site.m.set_item(value(Ref(made.number)), const(name), found, site.node, site.frame)
    return value(Ref(made.number))


def image(site: Site) -> Value | None:
    """A function of images: as divided as what it is given, plain if that is."""
    return of_axes(site.each(), None) if site.operands() else SETTING


def of_axes(v: Value, axes: int | None) -> Value:
    """Data of so many axes: those of a path or an index are not those of the image."""
    return tuple(a._replace(axes=axes) if isinstance(a, Data) else a for a in v)


ROWS = (
    Row("<transform>.__call__", transformed, source=_DOC),
    Row("timm.data.create_transform torchvision.models.get_weight.transforms", transform,
        source="https://huggingface.co/docs/timm/reference/data"),
    Row("<transform>.to <transform>.cuda <transform>.eval <transform>.train", same, source=_DOC),
    Row("torchvision.tv_tensors.Image torchvision.tv_tensors.Mask torchvision.tv_tensors.Video"
        " torchvision.tv_tensors.BoundingBoxes torchvision.tv_tensors.wrap", same,
        source="https://docs.pytorch.org/vision/stable/tv_tensors.html"),
    Row("<transform>.__getitem__ <transform>.append", lambda site: SETTING, source=_DOC),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """Families of names."""
    word = name.rsplit(".", 1)[-1]
    if name.startswith(_IMAGES):
        return Row(name, image)
    if name.startswith(_FILES):
        return Row(name, choose(word), source=_DOC)
    if name.startswith(_TRANSFORMS) and word[:1].isupper():
        return Row(name, transform, source=_DOC)
    if name.startswith("torchvision.models.") and word == "transforms":
        return Row(name, transform, source=_DOC)  # ResNet50_Weights.DEFAULT.transforms()
    if name.startswith("albumentations."):
        return Row(name, choose(word), source="https://albumentations.ai/docs/")
    return None
