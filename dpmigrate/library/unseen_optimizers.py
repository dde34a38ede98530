"""Optimizers of unseen code: what is made of parameters and stepped is taken for one, which is told.

An optimizer changes parameters by their gradients, which all ranks have
(https://docs.pytorch.org/docs/stable/notes/ddp.html). What else one of a library may go by is not seen.
"""

from __future__ import annotations

from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import Data, Value
from dpmigrate.library import torch_optim
from dpmigrate.library.effects import none
from dpmigrate.library.sites import Effect, Row, Site

_DOC = "https://docs.pytorch.org/docs/stable/optim.html"


def made(site: Site, new: Object) -> None:
    """Unseen code has made an object: of parameters of modules, ``Lamb(model.parameters(), lr=0.1)``, it may be an optimizer."""
    held = site.arguments.get(0, "params") or ()
    if any(isinstance(d, Data) and d.reached for d in site.deep(held)):
        torch_optim.given(site, new.number, held)


def _of_parameters(effect: Effect, otherwise: Effect | None = None) -> Effect:
    """A method of an optimizer, where the object was made of parameters."""

    def done(site: Site) -> Value | None:
        owner = site.object
        if owner is None or not site.m.heap.read((owner.number, "parameters")):
            return otherwise(site) if otherwise is not None else None
        return effect(site)

    return done


ROWS = (
    Row("<opaque>.step", _of_parameters(torch_optim.step), source=_DOC),
    Row("<opaque>.zero_grad", _of_parameters(torch_optim.cleared, none), source=_DOC),
    Row("<opaque>.add_param_group", _of_parameters(none), source=_DOC),
)  # fmt: skip
ATTRIBUTES = (Row("<opaque>.param_groups", _of_parameters(torch_optim.groups), source=_DOC),)
