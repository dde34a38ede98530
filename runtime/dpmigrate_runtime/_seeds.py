"""Random streams: common until data is split and the model is built, then one per rank."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import get_worker_info

from ._exchange import from_all, from_main
from ._meet import as_bytes, as_tensor, packed_from_main
from ._places import meeting
from ._state import STATE, alone, rank, world_size

#: how far the seeds of several loaders lie apart: a sampler adds the epoch to its seed, and neighbours would have one order an epoch later
_BETWEEN = 1000


def _numpy() -> Any:
    return sys.modules.get("numpy")


def _streams() -> dict[str, Any]:
    numpy = _numpy()
    return {
        "torch": torch.get_rng_state(),
        "random": random.getstate(),
        "numpy": numpy.random.get_state() if numpy else None,
        "cuda": torch.cuda.get_rng_state().cpu() if torch.cuda.is_available() else None,
    }


def _restore(streams: dict[str, Any]) -> None:
    torch.set_rng_state(streams["torch"])
    random.setstate(streams["random"])
    numpy = _numpy()
    if numpy and streams["numpy"] is not None:
        numpy.random.set_state(streams["numpy"])
    if streams["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(streams["cuda"])


def share_streams() -> None:
    """Give every rank the streams of rank 0, whose own stay as they are. A collective.

    Without it an unseeded ``random_split`` differs between ranks and validation samples are trained on (85 of 200 measured).
    """
    packed = packed_from_main(_packed(_streams()) if rank() == 0 else b"")
    if rank() != 0:
        _restore(_unpacked(packed))


def _packed(streams: dict[str, Any]) -> bytes:
    """States of streams as bytes: in a loop they are exchanged in each step, and ``torch.save`` takes longer than the exchange."""
    return pickle.dumps({name: as_bytes(state) if isinstance(state, torch.Tensor) else state for name, state in streams.items()})


def _unpacked(packed: bytes) -> dict[str, Any]:
    streams: dict[str, Any] = pickle.loads(packed)
    return {name: as_tensor(state) if isinstance(state, bytes) else state for name, state in streams.items()}


def packed_streams() -> str:
    """This rank's streams for ``take_streams``, in a form that a store takes; '' once each rank has its own."""
    return _packed(_streams()).hex() if STATE.common_seed is None else ""


def take_streams(packed: str) -> None:
    """Go on with another rank's streams; '' leaves this one's as they are."""
    if packed:
        _restore(_unpacked(bytes.fromhex(packed)))


@contextmanager
def same_stream() -> Iterator[None]:
    """Run the body with rank 0's random streams on every rank; the other ranks' own go on afterwards. A collective.

    For data that are drawn anew while training runs (negative samples, another subset): each rank would train on other data. Before ``seed_ranks``, and
    behind ``own_streams``, the ranks have one stream: all go on with what the body leaves, also where it seeds torch.
    """
    if alone():
        yield
        return
    own = _streams()
    with meeting("ddp.same_stream"):
        share_streams()
    try:
        yield
    finally:
        if rank() != 0 and STATE.common_seed is not None:
            _restore(own)


def seed_ranks() -> None:
    """Give each rank but 0 its own torch, CUDA, ``random`` and numpy stream, and one of imgaug where that is loaded; rank 0's go on undisturbed. A
    collective.

    With equal streams all ranks draw the same dropout masks and the same augmentations. One process: nothing happens. Raises RuntimeError
    where ``common_seed`` has not been the same on all ranks: the program has seeded them differently, and their samplers draw different orders.
    """
    if alone():
        return
    with meeting("ddp.seed_ranks"):
        agree_on_seeds()
        base = int(from_main(torch.initial_seed()))
    STATE.common_seed = base
    times, STATE.seedings = STATE.seedings, STATE.seedings + 1
    if rank() == 0:
        return
    seed = (base + rank() + times * world_size()) % 2**64
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := _numpy():
        numpy.random.seed(seed % 2**32)
    if imgaug := sys.modules.get("imgaug"):  # whose stream begins with a draw of numpy's, which was the same on all ranks
        imgaug.seed(seed % 2**32)


@contextmanager
def own_streams() -> Iterator[None]:
    """Run the body with streams of each rank's own, as after ``seed_ranks``; afterwards all ranks go on with rank 0's. A collective at both ends.

    For a training after which more is built that must be the same on all ranks: the next fold of a cross-validation, a second stage. A rank that leaves
    the body by an exception asks nobody, and goes on with the streams from before it. Once ``seed_ranks`` has been called the body runs as it is. Raises
    what ``seed_ranks`` raises.
    """
    if alone() or STATE.common_seed is not None:
        yield
        return
    before = _streams()
    seed_ranks()
    try:
        yield
    except BaseException:
        _restore(before)
        STATE.common_seed = None
        raise
    with meeting("ddp.own_streams"):
        share_streams()
    STATE.common_seed = None


def agree_on_seeds() -> None:
    """Raise RuntimeError where samplers have been given other seeds on other ranks. A collective."""
    told = from_all(sorted(STATE.seeds_given.items()))
    if any(given != told[0] for given in told):
        raise RuntimeError(
            "the ranks seeded torch differently before their loaders were built, or built other loaders, so they would not divide one order; "
            "give all ranks one seed, and build all training loaders on every rank"
        )


def common_seed(generator: Any = None) -> int:
    """A seed, the same on every rank without asking the others, and another one with each call: for what draws data, on which all ranks must agree.

    The first is that of torch's generator: the program's own where it seeds torch, wherever it does so, and another one in each run where it does not, as the
    order of a shuffled loader is. From ``seed_ranks`` on it is what rank 0 had then. Each further call serves a loader beside the first, where sample i
    of the one must not meet sample i of the other in every epoch. Not negative, below 2**62 (what ``DistributedSampler(seed=…)`` takes, with room for
    the epoch). A ``generator`` that a loader has of its own comes first; as in torch, two generators with one seed give one order, and two loaders with
    one generator do not. That the seeds were the same everywhere is checked where the ranks meet next, in ``wrap`` and ``seed_ranks``.
    """
    own = isinstance(generator, torch.Generator)
    seed = generator.initial_seed() % 2**62 if own else main_seed()
    before = STATE.generators.get(generator, 0) if own else STATE.seeds_given.total()
    STATE.seeds_given[seed] += 1
    if own:
        STATE.generators[generator] = before + 1
    return (seed + before * _BETWEEN) % 2**62


def main_seed() -> int:
    """The seed of rank 0's torch generator, not negative and below 2**62."""
    return (torch.initial_seed() if STATE.common_seed is None else STATE.common_seed) % 2**62


class SeedOfPasses:
    """The seed of a sampler's orders: the one that it is given, or, with None, the program's own when its first pass begins.

    A shuffled loader of torch draws when it is gone through, so the program may seed torch after it has made the loader. Which of several samplers this
    one is, is settled when it is made: rank 0 alone may look at a batch first, and the ranks must agree. Among several ranks the seed is settled by
    ``seed_ranks``, which all of them call before they train. That the seeds were the same everywhere when the sampler was made is checked as for
    ``common_seed``.
    """

    def __init__(self, seed: int | None) -> None:
        self._settled = seed
        self._number = STATE.seeds_given.total()
        if seed is None:
            STATE.seeds_given[main_seed()] += 1

    def __call__(self) -> int:
        """The seed, not negative and below 2**62 where the program has not given it."""
        if self._settled is not None:
            return self._settled
        seed = (main_seed() + self._number * _BETWEEN) % 2**62
        if world_size() == 1 or STATE.common_seed is not None:
            self._settled = seed
        return seed


def rank_generator(generator: Any) -> Any:
    """The generator for the DataLoader of this rank, whose workers are seeded from it: itself on rank 0, elsewhere one with another seed.

    None stays None: workers are then seeded from torch's own stream.
    """
    if generator is None or rank() == 0:
        return generator
    return torch.Generator(generator.device).manual_seed((generator.initial_seed() + rank()) % 2**63)


def worker_number(worker_id: int) -> int:
    """The number of a DataLoader worker among those of all ranks: ``rank * num_workers + worker_id``, for seeds in ``worker_init_fn``.

    Outside workers it counts one for each rank.
    """
    info = get_worker_info()
    return worker_id + rank() * (1 if info is None else info.num_workers)


class OwnStreams:
    """CPU streams and ``generators``, seeded by ``seed`` for what runs ``inside``, which may go on there later; outside all is as if nothing had run."""

    def __init__(self, seed: int, generators: list[torch.Generator]) -> None:
        self.seed = seed
        self.generators = generators
        self.kept: tuple[dict[str, Any], list[torch.Tensor]] | None = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Run the body with these streams, and put the program's own back afterwards."""
        outer = self._now()
        if self.kept is None:
            self._seed()
        else:
            self._set(self.kept)
        try:
            yield
        finally:
            self.kept = self._now()
            self._set(outer)

    def _seed(self) -> None:
        # not torch.manual_seed: that would also reseed the GPUs, which are not put back here
        for generator in (torch.default_generator, *self.generators):
            generator.manual_seed(self.seed % 2**63)
        random.seed(self.seed)
        if numpy := _numpy():
            numpy.random.seed(self.seed % 2**32)

    def _now(self) -> tuple[dict[str, Any], list[torch.Tensor]]:
        return _streams() | {"cuda": None}, [generator.get_state() for generator in self.generators]

    def _set(self, kept: tuple[dict[str, Any], list[torch.Tensor]]) -> None:
        _restore(kept[0])
        for generator, state in zip(self.generators, kept[1], strict=True):
            generator.set_state(state)
