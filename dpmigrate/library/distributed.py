"""torch.distributed (https://docs.pytorch.org/docs/stable/distributed.html)."""

from __future__ import annotations

import ast

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Atom,
    Data,
    Differs,
    Items,
    Origin,
    Ref,
    Setting,
    Unknown,
    Value,
    const,
    value,
)
from dpmigrate.library.effects import none, uniform, world_size
from dpmigrate.library.natures import MAIN_ALONE
from dpmigrate.library.sites import Row, Site, prefixed

_DOC = "https://docs.pytorch.org/docs/stable/distributed.html"


#: collectives through which gradients flow (torch.distributed.nn)
_WITH_GRADIENT = (
    "all_reduce all_gather all_to_all all_to_all_single broadcast gather reduce scatter"
)


def rank(site: Site) -> Value:
    """The number of this rank."""
    return value(Data("number", placements.PER_RANK, origin=Origin(site.node, site.word)))


def is_main(site: Site) -> Value:
    """Whether this is rank 0."""
    return value(Data("number", placements.PER_RANK, origin=Origin(site.node, MAIN_ALONE)))


def spawned(site: Site) -> Value:
    """``mp.spawn(f, args)``: processes of the program's own."""
    site.event("process", target=site.get(0) or NOTHING)
    given = site.get(1, "args") or NOTHING
    listed = site.m.known_elements(given) or []
    site.m.call(site.get(0) or NOTHING, Arguments([rank(site), *listed]), site.node, site.frame)
    return NONE


def collective(site: Site) -> Value:
    """All ranks come together."""
    given = join(*[site.flat(v) for v in site.all()])
    site.event("collective", name=const(site.word), given=given)
    return NONE


def whole(site: Site, v: Value) -> Value:
    """A value that is the same on all ranks after a reduction, and so is what a container of
    them holds.
    """
    found: list[Atom] = []
    for a in v:
        made = site.m.object(a)
        if isinstance(a, Data):
            a = a._replace(
                placement=placements.UNIFORM, origin=None, gradient="none", reached=frozenset()
            )
        elif isinstance(a, Items):
            a = Items(tuple(whole(site, i) for i in a.items))
        elif isinstance(a, Unknown | Setting):
            a = Data("number", placements.UNIFORM)
        elif made is not None and made.kind in ("list", "dict"):
            fields = list(site.m.heap.names(made.number))
            new = site.in_place_of(made)
            for name, held in fields:
                plain = isinstance(name, str) and name.startswith("#")
                site.m.heap.widen((new.number, name), held if plain else whole(site, held))
            a = Ref(new.number)
        if not isinstance(a, Differs):
            found.append(a)
    return tuple(found)


def reduced_in_place(site: Site) -> Value:
    """``dist.all_reduce(x)``, ``dist.broadcast(x)``: the tensor is the same on every rank
    afterwards.
    """
    collective(site)
    first = next(iter(getattr(site.node, "args", [])), None)
    new = whole(site, site.get(0, "tensor") or NOTHING)
    if type(first).__name__ in ("Name", "Attribute") and first is not None:
        site.m.assign(first, new, site.node, site.frame)
    return NONE


def gathered(site: Site) -> Value:
    """``dist.all_gather(list, x)``: the list holds what the ranks have, without its gradient."""
    collective(site)
    held = whole(site, site.flat(site.get(1) or NOTHING))
    for made in site.m.objects(site.get(0) or NOTHING):
        if made.kind == "list":
            site.m.heap.widen((made.number, "*"), held)
    return NONE


def dealt_out(site: Site) -> Value:
    """``dist.scatter(x, …)``, ``dist.all_to_all(list, …)``: each rank gets something else."""
    collective(site)
    found = value(Data("tensor", placements.PER_RANK, origin=Origin(site.node, site.word)))
    first = next(iter(getattr(site.node, "args", [])), None)
    for made in site.m.objects(site.get(0) or NOTHING):
        if made.kind == "list":
            site.m.collapse(made)
            site.m.heap.widen((made.number, "*"), found)
            return NONE
    if isinstance(first, ast.Name | ast.Attribute):
        site.m.assign(first, found, site.node, site.frame)
    return NONE


def with_gradient(site: Site) -> Value:
    """``torch.distributed.nn.all_reduce(x)``: how its gradient lies is not established."""
    collective(site)
    return site.unknown(f"the gradient of {site.word}")


ROWS = (
    Row("torch.distributed.get_rank torch.distributed.get_node_local_rank", rank, source=_DOC),
    Row("torch.distributed.get_world_size", world_size, source=_DOC),
    Row(
        """
torch.distributed.is_initialized torch.distributed.new_group
torch.distributed.is_available torch.distributed.get_backend torch.distributed.is_nccl_available
torch.distributed.is_torchelastic_launched
""",
        uniform,
        source=_DOC,
    ),
    Row(
        "torch.distributed.init_process_group torch.distributed.destroy_process_group",
        none,
        source=_DOC,
    ),
    Row("torch.distributed.barrier torch.distributed.monitored_barrier", collective, source=_DOC),
    Row(
        """
torch.distributed.all_reduce torch.distributed.broadcast torch.distributed.reduce
torch.distributed.broadcast_object_list
""",
        reduced_in_place,
        source=_DOC,
    ),
    Row(
        """
torch.distributed.all_gather torch.distributed.all_gather_object
torch.distributed.gather torch.distributed.all_gather_into_tensor torch.distributed.gather_object
""",
        gathered,
        source=_DOC,
    ),
    Row(
        """
torch.distributed.scatter torch.distributed.scatter_object_list torch.distributed.all_to_all
torch.distributed.all_to_all_single torch.distributed.reduce_scatter
torch.distributed.reduce_scatter_tensor
""",
        dealt_out,
        source=_DOC,
    ),
    Row(
        " ".join(
            prefixed(f"torch.distributed.nn.{where}", _WITH_GRADIENT)
            for where in ("", "functional.")
        ),
        with_gradient,
        source=_DOC,
    ),
    Row(
        "torch.multiprocessing.spawn",
        spawned,
        source="https://docs.pytorch.org/docs/stable/multiprocessing.html",
    ),
)  # fmt: skip
