"""Models of libraries that give their loss when they are called: the mean over the samples that they
are given.

What else gives a loss is known by nothing: how it takes the samples together has to be told.
"""

from __future__ import annotations

from dpmigrate.execution.values import Ref, Value, value
from dpmigrate.library.modules import GIVES_LOSS, library_network
from dpmigrate.library.sites import Effect, Row, Site, prefixed
from dpmigrate.library.unseen_models import taken_for_model

_VITS = "https://github.com/lucidrains/vit-pytorch"
_DIFFUSION = "https://github.com/lucidrains/denoising-diffusion-pytorch"


def with_loss(*, leaves_out: bool) -> Effect:
    """A model that holds the models it is given, which a gradient comes to as well.

    ``leaves_out``: not to all of their layers. The encoder of ``MAE`` keeps a head that only its own
    forward calls.
    """

    def effect(site: Site) -> Value:
        made = library_network(site)
        (own,) = site.m.objects(made)
        reached = made
        if leaves_out:
            body = site.m.heap.new("module", f"{own.name}.body", site.node, own.context,
                                   key=(own.number, "body"))  # fmt: skip
            body.many = own.many
            reached = value(Ref(body.number))
            site.m.heap.write((own.number, "body"), reached)
        for place, given in [*enumerate(site.arguments.positional), *site.arguments.keywords.items()]:
            taken_for_model(site, given)
            site.m.heap.write((own.number, f"={place}"), given)
        site.m.heap.write((own.number, GIVES_LOSS), reached)
        return made

    return effect


ROWS = (
    Row("vit_pytorch.MAE vit_pytorch.mae.MAE vit_pytorch.SimMIM vit_pytorch.simmim.SimMIM",
        with_loss(leaves_out=True), source=_VITS),
    Row(prefixed("denoising_diffusion_pytorch.", "GaussianDiffusion GaussianDiffusion1D"),
        with_loss(leaves_out=False), source=_DIFFUSION),
)  # fmt: skip
