"""torch.amp: scalers of losses and autocast (https://docs.pytorch.org/docs/stable/amp.html)."""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NONE, NOTHING, Ref, Value, const, value
from dpmigrate.library import forward_pass
from dpmigrate.library.effects import same, uniform
from dpmigrate.library.sites import Row, Site
from dpmigrate.library.torch_optim import step

_DOC = "https://docs.pytorch.org/docs/stable/amp.html"


def scaler(site: Site) -> Value:
    """``GradScaler()``."""
    return site.ref("scaler", enabled=site.arguments.keywords.get("enabled"))


def scaled(site: Site) -> Value:
    """``scaler.scale(loss)``: the loss times a number that goes with its gradient."""
    found, made = site.get(1) or NOTHING, site.object
    if made is None:
        return found
    return forward_pass.each_data(site.m, found, lambda d: forward_pass.reaching(d, made.number))


#: fields of a scaler: what it has done with an optimizer since its last ``update()``
DONE = "done with "


def done_with(m: Machine, scaler: int, optimizer: int) -> Value:
    """What a scaler has done with an optimizer since its last update: ``nothing``, ``unscaled``,
    ``stepped``.
    """
    return m.heap.read((scaler, f"{DONE}{optimizer}")) or const("nothing")


def _does(site: Site, kind: str, word: str) -> list[Object]:
    """The optimizers that a scaler is given; what it did with each before is kept in the event."""
    found = site.m.objects(site.get(1) or NOTHING)
    for o in found:
        made = site.object
        before = done_with(site.m, made.number, o.number) if made is not None else NOTHING
        scaler = value(Ref(made.number)) if made is not None else NOTHING
        site.event(kind, optimizer=value(Ref(o.number)), before=before, scaler=scaler)
        if made is not None:
            site.m.heap.write((made.number, f"{DONE}{o.number}"), const(word))
    if not found and site.object is not None:  # with one that is not followed
        site.m.heap.write((site.object.number, f"{DONE}another"), const(word))
    return found


def unscaled(site: Site) -> Value:
    """``scaler.unscale_(optimizer)``: the scale leaves the gradients."""
    _does(site, "unscale", "unscaled")
    return NONE


def updated(site: Site) -> Value:
    """``scaler.update()``: another scale for the steps that come."""
    made = site.object
    if made is None:
        return NONE
    names = [n for n, _ in site.m.heap.names(made.number) if str(n).startswith(DONE)]
    done = [site.m.bound(site.m.heap.read((made.number, n)) or NOTHING) for n in names]
    # one optimizer is enough for the next scale
    sure = next((v for v in done if const("nothing")[0] not in v), None)
    site.event("scaler update", before=sure or join(*done) or const("nothing"))
    for name in names:
        site.m.heap.write((made.number, name), const("nothing"))
    return NONE


def scaler_step(site: Site) -> Value:
    """``scaler.step(optimizer)``: the optimizer's step, unless a gradient overflowed."""
    for o in _does(site, "scaler step", "stepped"):
        method = site.m.method_of(o, "step")
        if method is not None:
            held = site.m.attribute(value(Ref(o.number)), "step", site.node, site.frame)
            site.m.call(held, Arguments(), site.node, site.frame)
        else:
            step(Site(site.m, ".step", Arguments(), site.node, site.frame, Ref(o.number)))
    return NONE


def precision(site: Site) -> Value:
    """``autocast(...)``."""
    return site.ref("context", enabled=site.arguments.keywords.get("enabled"))


def round_function(site: Site) -> Value:
    """``@autocast()``: the context is called with a function."""
    return site.get(1) or NOTHING


ROWS = (
    Row("torch.amp.GradScaler torch.GradScaler", scaler, source=_DOC),
    Row(
        "torch.amp.autocast torch.autocast torch.amp.autocast_mode.autocast", precision, source=_DOC
    ),
    Row("torch.amp.custom_fwd torch.amp.custom_bwd", same, source=_DOC),
    Row("<context>.__call__", round_function, source=_DOC),
    Row("<scaler>.scale", scaled, source=_DOC),
    Row("<scaler>.step", scaler_step, source=_DOC),
    Row("<scaler>.unscale_", unscaled, source=_DOC),
    Row("<scaler>.update", updated, source=_DOC),
    Row("<scaler>.get_scale <scaler>.is_enabled", uniform, source=_DOC),
)  # fmt: skip
