"""Wrappers of models: DataParallel, DistributedDataParallel."""

from __future__ import annotations

from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Value,
)
from dpmigrate.library.effects import none, same
from dpmigrate.library.forward_pass import forward, through
from dpmigrate.library.modules import DOC
from dpmigrate.library.sites import Row, Site
from dpmigrate.library.unseen_models import taken_for_model


def wrapper(site: Site) -> Value:
    """``DataParallel(model)``, ``DistributedDataParallel(model)``."""
    module = site.get(0, "module")
    taken_for_model(site, module or NOTHING)
    made = site.ref(
        "wrapper",
        module=module,
        find_unused=site.arguments.keywords.get("find_unused_parameters"),
        device_ids=site.get(1, "device_ids"),
    )
    if site.word == "DistributedDataParallel":
        site.event("wrap", object=made, module=module or NOTHING)
    return made


def constructed(site: Site) -> Value:
    """``super().__init__(model)`` of a class of the program that derives from DataParallel."""
    if site.object is not None:
        site.m.heap.write((site.object.number, "module"), site.get(1, "module") or NOTHING)
    return NONE


def wrapper_called(site: Site) -> Value:
    """A call of a wrapper: its module is called, and what comes out has passed through the
    wrapper.
    """
    made = site.object
    assert made is not None
    forward(site, made)
    inner = site.m.heap.read((made.number, "module")) or NOTHING
    result = site.m.call(inner, site.arguments, site.node, site.frame)
    return through(result, made, site) if site.grad() else result


def wrapper_attribute(site: Site) -> Value:
    """``wrapped.module``."""
    made = site.object
    assert made is not None
    return site.m.heap.read((made.number, "module")) or SETTING


def no_sync(site: Site) -> Value:
    """``model.no_sync()``."""
    return site.ref("no_sync", of=site.get(0))


ROWS = (
    Row("""
torch.nn.DataParallel torch.nn.parallel.DataParallel torch.nn.parallel.data_parallel.DataParallel
torch.nn.parallel.DistributedDataParallel torch.nn.DistributedDataParallel
""", wrapper, source=DOC),
    Row("<wrapper>.__call__ <wrapper>.forward", wrapper_called, source=DOC),
    Row("<wrapper>.__init__", constructed, source=DOC),
    Row("<wrapper>.no_sync", no_sync, source=DOC),
    Row("<no_sync>.__enter__", same),
    Row("<no_sync>.__exit__", none),
)  # fmt: skip
ATTRIBUTES = (Row("<wrapper>.module", wrapper_attribute, source=DOC),)
KINDS = {
    "torch.nn.DataParallel": frozenset({"wrapper"}),
    "torch.nn.parallel.DataParallel": frozenset({"wrapper"}),
    "torch.nn.parallel.data_parallel.DataParallel": frozenset({"wrapper"}),
    "torch.nn.parallel.DistributedDataParallel": frozenset({"wrapper"}),
}
