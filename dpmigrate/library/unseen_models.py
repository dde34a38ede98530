"""Models of unseen code: what is called like a module is taken for one, which is told."""

from __future__ import annotations

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    RESULTS,
    Data,
    Origin,
    Ref,
    Value,
    value,
)
from dpmigrate.library.effects import cut
from dpmigrate.library.forward_pass import forward, reaching
from dpmigrate.library.modules import (
    DOC,
    applied,
    frozen,
    itself,
    mode,
    modules,
    parameters,
    state,
    state_loaded,
)
from dpmigrate.library.sites import UNSEEN_CODE, Effect, Row, Site, methods

_MODEL = "opaque"


def taken_for_model(site: Site, v: Value) -> None:
    """What is wrapped is a model, also where its code is not seen."""
    for made in site.m.objects(v):
        if made.kind == _MODEL:
            made.marks.add("module")


def unseen(effect: Effect) -> Effect:
    """A method that shows of an object of unseen code that it is a model."""

    def shown(site: Site) -> Value | None:
        if site.object is not None:
            site.object.marks.add("module")
        return effect(site)

    return shown


def unseen_called(site: Site) -> Value | None:
    """A model whose code is not seen is called: a gradient comes to it. It is taken for one that
    treats each sample of a batch by itself, which is noted.
    """
    made = site.object
    if made is None or "module" not in made.marks:
        return None
    forward(site, made)
    placement = _of_samples(site)
    if placement is None:
        found = site.unknown(f"the code of {made.name} is not seen")
    else:
        site.event("taken for samples", module=value(Ref(made.number)))
        origin = Origin(site.node, f"{made.name}, {UNSEEN_CODE}")
        found = derivation.derived(
            origin.word, placement, site.operands(), site.node, kind=RESULTS, keep_axes=False
        )
        found = tuple(a._replace(origin=origin) if isinstance(a, Data) else a for a in found)
    if not site.grad():
        return cut(found)
    return tuple(
        reaching(a, made.number)._replace(gradient="whole") if isinstance(a, Data) else a
        for a in found
    )


def _of_samples(site: Site) -> Placement | None:
    """How what a model gives lies, that is given samples of a batch, first in each; None where it
    is given something else.
    """
    given = [d for d in site.flat(site.arguments.joined()) if isinstance(d, Data)]
    whole = len(given) == len(site.flat(site.arguments.joined()))
    lying = [d.placement for d in given if d.placement.kind is not Kind.UNIFORM]
    sampled = all(p.kind is Kind.ROWS and p.axis == 0 and not p.ragged for p in lying)
    return placements.joined(lying) if whole and lying and sampled else None


ROWS = (
    Row(methods(_MODEL, "to cuda cpu float double half"), itself, source=DOC),
    Row(methods(_MODEL, "train eval"), unseen(mode), source=DOC),
    Row(methods(_MODEL, "parameters named_parameters"), unseen(parameters), source=DOC),
    Row(methods(_MODEL, """
modules named_modules children named_children
"""), unseen(modules), source=DOC),
    Row(methods(_MODEL, "state_dict"), state, source=DOC),
    Row(methods(_MODEL, "load_state_dict"), state_loaded, source=DOC),
    Row(methods(_MODEL, "requires_grad_"), frozen, source=DOC),
    Row(methods(_MODEL, "apply"), unseen(applied), source=DOC),
    Row(methods(_MODEL, "__call__ forward"), unseen_called, source=DOC),
)  # fmt: skip
