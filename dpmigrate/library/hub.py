"""Networks that ``torch.hub.load(repository, name)`` makes, where the repository is known to hold
networks of rows in and rows out. Of other entries it is taken that they are modules, and nothing
is known of what they do.

Sources: https://docs.pytorch.org/docs/stable/hub.html, and the ``hubconf.py`` of each repository.
"""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import NOTHING, Value, known
from dpmigrate.library import networks
from dpmigrate.library.modules import library_network
from dpmigrate.library.sites import Row, Site

_DOC = "https://docs.pytorch.org/docs/stable/hub.html"
_VISION = "pytorch/vision"
#: entries of torchvision's hubconf.py that lie in a package of torchvision.models
_SEGMENTING = ("fcn_", "deeplabv3", "lraspp")
#: entries that give something else than a network of rows
_OTHERS = ("raft", "get_")
#: repositories by what the names of their networks begin with
_REPOSITORIES = {
    "facebookresearch/deit": ("deit_",),
    "facebookresearch/dino": ("dino_",),
    "facebookresearch/dinov2": ("dinov2_",),
    "mateuszbuda/brain-segmentation-pytorch": ("unet",),
    "zhanghang1989/ResNeSt": ("resnest",),
}


def loaded(site: Site) -> Value:
    """``torch.hub.load("pytorch/vision:v0.10.0", "resnet18", pretrained=True)``."""
    repository = known(site.get(0, "repo_or_dir") or NOTHING)
    entry = known(site.get(1, "model") or NOTHING)
    source = site.arguments.keywords.get("source")
    seen = isinstance(repository, str) and isinstance(entry, str)
    if not seen or (source is not None and known(source) != "github"):
        return site.ref("module")
    name = str(repository).partition(":")[0]
    if name == _VISION:
        return _of_torchvision(site, str(entry))
    if str(entry).startswith(_REPOSITORIES.get(name, ())):
        return library_network(site)
    return site.ref("module")


def _of_torchvision(site: Site, entry: str) -> Value:
    """The entries are the functions of torchvision.models."""
    inner = "segmentation." if entry.startswith(_SEGMENTING) else ""
    name = f"torchvision.models.{inner}{entry}"
    row = networks.pattern(name)
    if row is None or entry.startswith(_OTHERS):
        return site.ref("module")
    given = Arguments(site.arguments.positional[2:], site.arguments.keywords, site.arguments.star, site.arguments.stars)
    return row.effect(Site(site.m, name, given, site.node, site.frame)) or site.ref("module")


ROWS = (Row("torch.hub.load", loaded, source=_DOC),)
