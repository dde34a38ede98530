"""Images: torchvision's transforms and models, PIL, OpenCV, albumentations, timm."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.values import SETTING, Data, Ref, Value, const, placement_of, value
from dpmigrate.library.modules import MODEL
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
#: libraries of models by class or by a function
_MODELS = (
    "torchvision.models.", "segmentation_models_pytorch.", "efficientnet_pytorch.", "timm.models.",
    "pretrainedmodels.", "lpips.", "monai.networks.", "facenet_pytorch.",
)  # fmt: skip


def transform(site: Site) -> Value:
    """A transform: a function of one sample."""
    made = site.made("transform")
    made.extra = "albumentations" if site.name.startswith("albumentations.") else None
    return value(Ref(made.number))


def transformed(site: Site) -> Value:
    """A transform is called with a sample, or with a batch."""
    if site.object is not None and site.object.extra == "albumentations":
        return transformed_sample(site)
    if any(placement_of(v).kind not in placements.EQUAL for v in site.operands()):
        return site.each(kind="tensor")
    axes = 3 if site.object is not None and site.object.name in ("ToTensor", "ToTensorV2") else None
    return value(Data("tensor", placements.UNIFORM, axes=axes))


def transformed_sample(site: Site) -> Value:
    """albumentations gives a dictionary: ``transform(image=x)["image"]``."""
    made = site.made("dict")
    for name, held in site.arguments.keywords.items():
        p = site.flat(held)
        found = site.each(kind="tensor") if p else value(Data("tensor", placements.UNIFORM))
        site.m.set_item(value(Ref(made.number)), const(name), found, site.node, site.frame)
    return value(Ref(made.number))


def model(site: Site) -> Value:
    """A model of a library."""
    made = site.made("module", extra=MODEL)
    return value(Ref(made.number))


def image(site: Site) -> Value | None:
    """A function of images: as divided as what it is given, plain if that is."""
    return site.each() if site.operands() else SETTING


ROWS = (
    Row("timm.create_model timm.models.create_model timm.models.factory.create_model", model),
    Row("<transform>.__call__", transformed, source=_DOC),
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
    if name.startswith(_MODELS):
        return Row(name, model, source=_DOC)
    return None
