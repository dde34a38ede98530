"""Start and end of the process group."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Collection
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from ._launch import Launch, backend, check_device, read_launch
from ._meet import rows
from ._nets import cast_nets, nets, take_in_nets
from ._places import meeting
from ._quiet import quiet, report_failures
from ._seeds import share_streams
from ._state import DEFAULT_TIMEOUT, STATE, is_child, rank, world_size
from ._watch import begin as begin_watch
from ._watch import end as end_watch
from ._watch import wait_for_all


def setup(timeout: float = DEFAULT_TIMEOUT, unwatched: str | Collection[str] = ()) -> None:
    """Join the process group that the launcher describes, or make a group of one under plain ``python``.

    ``timeout``: seconds after which a waiting collective fails. With several processes the random streams of rank 0 become
    everybody's, and the other ranks fall silent (stdout, logging up to WARNING, warnings, tqdm). A second call does nothing, and so
    does a call in a DataLoader worker; a group that somebody else made is used as it is.

    With several processes the ranks watch themselves from here on, and stop with RuntimeError where
    the run would go wrong without an error. ``unwatched`` turns nets off, one name or several:
    ``"parameters"`` (an optimizer trains what is in no wrapped model), ``"batches"`` (all ranks
    train on the same samples), ``"passes"`` (the ranks go through their data in different orders),
    ``"weights"`` (the ranks' weights part), ``"places"`` (the ranks are in different collectives).
    It must be the same on all ranks.

    A collective that fails says where every rank is: the last collective of this package that it
    called, with file and line, and the line that it runs now. For that each rank has a thread that
    looks twice a second whether another one asks. Ranks that are in different collectives raise at
    once, before their numbers are mixed; over gloo the collectives of this package have a group of
    their own for that. NCCL ends the process itself when the time is up, so a rank that has waited
    nine tenths of it prints where all are. ``unwatched="places"`` turns all this off.

    Raises RuntimeError naming the environment variable that is missing or wrong, ValueError for a
    timeout that is not positive or a net that does not exist.
    """
    if STATE.active or is_child():
        return
    if not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, but it is {timeout!r}")
    STATE.unwatched = nets(unwatched)
    foreign = dist.is_initialized()
    if not foreign:
        _init(read_launch(), timedelta(seconds=timeout))
    STATE.active, STATE.owns_group, STATE.timeout = True, not foreign, timeout
    if world_size() > 1:
        if "places" not in STATE.unwatched:
            _watch_ranks()
        with meeting("ddp.setup"):
            share_streams()
        _settle()
        cast_nets()


def _watch_ranks() -> None:
    if dist.get_backend() != "nccl":
        # a second communicator of NCCL would take memory of the GPU, and may wait for the first one for ever
        STATE.group = dist.new_group(backend="gloo", timeout=timedelta(seconds=STATE.timeout))
    begin_watch(STATE.timeout)


def _settle() -> None:
    if STATE.quieted:
        return
    STATE.quieted = True
    report_failures()
    if rank() != 0:
        quiet()


def _init(launch: Launch, timeout: timedelta) -> None:
    chosen = backend()
    device = check_device(launch.local_rank)
    _bind_defaults_early()
    store: Store
    if launch.world_size == 1:
        # in memory: needs no port, so two single-process runs never collide
        store = dist.HashStore()  # type: ignore[attr-defined]
    else:
        store, _, _ = next(rendezvous("env://", timeout=timeout))
        store.set_timeout(timeout)
    # torchrun's store outlives a group: a second group (one per fold) must not find the addresses of the first
    store = PrefixStore(f"dpmigrate/{STATE.generation}", store)
    STATE.generation += 1
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(
        chosen,
        store=store,
        rank=launch.rank,
        world_size=launch.world_size,
        timeout=timeout,
        # tells NCCL the GPU, which it otherwise guesses from the rank, with a warning at the first barrier
        device_id=device if chosen == "nccl" else None,
    )


def _bind_defaults_early() -> None:
    # The functions of this module take the default group as default argument, bound at import. DDP's constructor imports it; were
    # that after init_process_group, the defaults would hold the group for ever, its gloo threads would outlive destroy, and some
    # processes would abort at interpreter exit (pytorch/pytorch#179291; 5 of 40 jobs without this line, 0 of 90 with it).
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch.distributed.nn.functional  # noqa: F401


def cleanup() -> None:
    """Leave the process group: wait for the others, let go of what holds the group, destroy it. Safe to call twice.

    A rank that is still at work is waited for as long as it takes, also beyond the timeout (not with ``unwatched="places"``).
    For the normal end of the program. While an exception is on its way the wait is left out, because the other ranks may never
    come. A group that somebody else made is not destroyed. The models stay usable through ``.module``.
    """
    if not STATE.active or is_child():
        return
    if sys.exc_info()[0] is not None:
        end_watch("has left by ddp.cleanup() because of an exception")
    elif world_size() > 1:
        with meeting("ddp.cleanup"):
            wait_for_all()
            rows()
            end_watch()
            # the store may go with rank 0's process: nobody looks into it any more
            rows()
    for model in list(STATE.wrapped):
        # each of these references keeps the group, and with it its worker threads, alive
        model._remove_autograd_hooks()
        model.reducer = None
        model.logger = None
        model.process_group = None
    STATE.wrapped.clear()
    STATE.completed.clear()
    take_in_nets()
    if STATE.owns_group:
        dist.destroy_process_group()
    else:
        for group in (STATE.cpu_group, STATE.group):
            if group is not None:
                dist.destroy_process_group(group)
    STATE.cpu_group = STATE.group = None
    STATE.active = STATE.owns_group = False
    STATE.common_seed = None
    STATE.seeds_given.clear()
    STATE.generators.clear()
    gc.collect()
