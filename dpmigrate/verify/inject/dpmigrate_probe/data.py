"""Which samples each pass over a DataLoader took, in which batches; and another run's batches in place of this one's.

A *view* is a data set together with the part of it that a chain of Subsets shows: both parts of a ``random_split`` are views of the same data.
"""

from __future__ import annotations

import operator
import random
import sys
import weakref
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from dpmigrate_probe.comparable import seed
from dpmigrate_probe.places import note
from dpmigrate_probe.state import CONFIG, RECORD, STATE, limit_reached

HEAD = 64  # so many indices tell one order from another
SAMPLED = 1000  # so many of its indices tell one part of a data set from another


def install(torch: Any) -> None:
    """Record passes, replay orders, cut after the steps or epochs asked for, seed augmentation by the sample."""
    from torch.utils.data import dataloader
    from torch.utils.data._utils import fetch

    _passes(torch, dataloader)
    _cut(torch, dataloader)
    if CONFIG["still"]:
        _augmentation(torch, fetch._MapDatasetFetcher)


# ---------------------------------------------------------------- what is what
def _base(dataset: Any) -> tuple[Any, list[Any]]:
    """The data set under all Subsets, and their indices, the outermost first."""
    chain = []
    while hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        chain.append(dataset.indices)
        dataset = dataset.dataset
    return dataset, chain


def _index(chain: list[Any], i: Any) -> int | None:
    """The sample's place in the data set under all Subsets; None for what is no place, as in a stream."""
    try:
        for indices in chain:
            i = indices[operator.index(i)]
        return operator.index(i)
    except TypeError:
        return None


def _names(dataset: Any) -> tuple[str, int, str]:
    """The kind of data, its number among those of a kind, and the view of it: each the same in every run that looks at its data in the same order."""
    base, chain = _base(dataset)
    try:
        kind = f"{type(base).__name__} of {len(base)}"
    except TypeError:
        kind = f"{type(base).__name__}, a stream"
    seen = STATE["data"].setdefault(kind, [])
    number = next((n for n, known in enumerate(seen) if known() is base), len(seen))
    if number == len(seen):
        try:
            seen.append(weakref.ref(base))
        except TypeError:  # a list
            seen.append(lambda: base)
    if not chain:
        return kind, number, f"{kind} ({number})"
    length = len(chain[0])
    some = [_index(chain, i) for i in range(0, length, max(1, length // SAMPLED))]
    return kind, number, f"{kind} ({number}), {length} of it, {zlib.crc32(repr(some).encode()):08x}"


def _flat(found: Any, chain: list[Any]) -> list[int | None]:
    return [_index(chain, i) for i in (found if isinstance(found, list | tuple) else [found])]


def _head(torch: Any, indices: Any, chain: list[Any]) -> list[int | None]:
    """The first samples of an order, without a trace in the random generators."""
    with _undisturbed(torch):
        found: list[int | None] = []
        for item in islice(indices, HEAD):
            found += _flat(item, chain)
            if len(found) >= HEAD:
                break
        return found[:HEAD]


# ---------------------------------------------------------------- passes
def _new(loader: Any) -> dict[str, Any]:
    """The record of a pass that begins."""
    (kind, number, view), sampler = _names(loader.dataset), loader.sampler
    return {
        "data": kind,
        "number": number,
        "view": view,
        "nth": sum(p["view"] == view for p in RECORD["passes"]),
        "batches": [],
        "natural": None,  # the first samples of the loader's own order, where another run's is taken
        "delivered": 0,
        "ended": False,
        "cut": False,
        "backwards": 0,
        "first_step": len(RECORD["steps"]),
        "replacement": bool(getattr(sampler, "replacement", False)),
        "length": len(sampler) if hasattr(sampler, "__len__") else None,
        "batch": loader.batch_size,
    }


def _passes(torch: Any, module: Any) -> None:
    iterator = module._BaseDataLoaderIter
    init, again, advance, draw = iterator.__init__, iterator._reset, iterator.__next__, iterator._next_index

    def made(self: Any, loader: Any) -> None:
        init(self, loader)
        begins(self, loader)

    def reset(self: Any, loader: Any, first_iter: bool = False) -> None:
        """Iterators with workers: called by their ``__init__``, and by every pass of persistent ones."""
        again(self, loader, first_iter)
        if first_iter:
            replayed(self, loader)
        else:
            begins(self, loader)

    def begins(self: Any, loader: Any) -> None:
        self._probe_outer = None
        _, self._probe_chain = _base(loader.dataset)
        self._probe = _new(loader)
        RECORD["passes"].append(self._probe)
        self._probe_other = _others(loader, self._probe_chain, self._probe)
        replayed(self, loader)

    def replayed(self: Any, loader: Any) -> None:
        """Another run's batches, whatever sampler the loader has."""
        if self._probe_other is not None:
            if self._probe["natural"] is None:
                self._probe["natural"] = _head(torch, self._sampler_iter, self._probe_chain)
            self._sampler_iter = iter(_own_batches(loader, self._probe_other, self._auto_collation))

    def next_index(self: Any) -> Any:
        found = draw(self)
        self._probe["batches"].append(_flat(found, self._probe_chain))
        return found

    def next_batch(self: Any) -> Any:
        try:
            if self._probe["backwards"] and limit_reached():
                RECORD["cut"] = self._probe["cut"] = True
                if self._probe["first_step"] >= CONFIG["steps"]:  # this pass was not known to train
                    raise SystemExit(0)
                raise StopIteration
            data = advance(self)
            note("batch")
        except StopIteration:
            self._probe["ended"] = True
            outer = self._probe_outer() if self._probe_outer is not None else None
            _stand_in(outer if outer is not None and not outer._probe["ended"] else None)
            raise
        if not self._probe["delivered"]:
            self._probe_outer = STATE["iterator"]
        self._probe["delivered"] += 1
        _stand_in(self)
        if torch.is_grad_enabled():
            STATE["fresh"].append((self._probe, weakref.ref(self)))
        if RECORD["draws"] is None:
            STATE["random"] = random_state(torch)
        return data

    iterator.__init__, iterator._reset, iterator._next_index, iterator.__next__ = made, reset, next_index, next_batch


def _stand_in(iterator: Any) -> None:
    """The program is now in this pass: one that runs inside another, such as an evaluation between batches, gives way to it at its end."""
    STATE["iterator"] = weakref.ref(iterator) if iterator is not None else None
    STATE["current"], STATE["drawn"] = (iterator._probe, 0) if iterator is not None else (None, 0)


def feeding() -> list[dict[str, Any]]:
    """The passes whose batches a backward rests on: the one that the program is in, and those of other loaders that it took in the same step."""
    now = STATE["current"]
    others = [p for p, iterator in STATE["fresh"] if iterator() is not None and not p["ended"] and p is not now]
    STATE["fresh"].clear()
    return [*({id(p): p for p in others}.values()), now] if now is not None else []


def _others(loader: Any, chain: list[Any], mine: dict[str, Any]) -> list[list[int]] | None:
    """What the other run took in its pass of the same turn over this view, in this loader's indices; None where it is left alone.

    The other program may look at its part in another way: where it has no such view, its passes are known by their samples. An evaluation is left alone
    unless it shuffles: which samples stand together in a batch is then nobody's fault, but a mean of batches shows it.
    """
    same = [e for e in CONFIG["replay"] if e[0] == mine["data"]]
    if not same:
        return None
    back = {_index(chain, i): i for i in range(len(loader.dataset))}
    if mine["view"] not in STATE["queues"]:
        same = [e for e in same if e[1] == mine["number"]] or same
        same = [e for e in same if all(i in back for batch in e[3] for i in batch)]  # ranks that split the data each in its own way have others
        STATE["queues"][mine["view"]] = iter([e for e in same if e[4] == mine["view"]] or same)
    *_, trains, batches, _ = next(STATE["queues"][mine["view"]], (False, [], ""))
    if not trains and (type(loader.sampler).__name__ != "RandomSampler" or Counter(i for b in batches for i in b) != Counter(back.keys())):
        return None
    return [[back[i] for i in batch] for batch in batches]


def _own_batches(loader: Any, batches: list[list[int]], collated: bool) -> list[Any]:
    """Another run's batches, in the loader's own size where it has the ordinary batch sampler."""
    from torch.utils.data import BatchSampler

    flat = [i for batch in batches for i in batch]
    size = loader.batch_size
    if size is not None and type(loader.batch_sampler) is BatchSampler:
        batches = [flat[i : i + size] for i in range(0, len(flat), size) if not loader.drop_last or i + size <= len(flat)]
    return batches if collated else flat


def _cut(torch: Any, module: Any) -> None:
    """A training pass that begins after the steps or epochs asked for ends the program; how it would have begun is kept."""
    iterate = module.DataLoader.__iter__

    def loader_iter(self: Any) -> Any:
        *_, view = _names(self.dataset)
        epochs = sum(p["view"] == view and p["backwards"] > 0 for p in RECORD["passes"])
        if (view in STATE["training"] and limit_reached()) or (CONFIG["epochs"] and epochs >= CONFIG["epochs"]):
            RECORD["cut"] = True
            RECORD["next"] = [view, _head(torch, iter(self._index_sampler), _base(self.dataset)[1])]
            raise SystemExit(0)
        note("pass")
        return iterate(self)

    module.DataLoader.__iter__ = loader_iter


# ---------------------------------------------------------------- random numbers
def random_state(torch: Any) -> Any:
    """What the process's generators would draw next."""
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state()[1:3] if numpy else None
    return (
        bytes(torch.get_rng_state().numpy().tobytes()) if numpy else torch.get_rng_state().tolist(),
        random.getstate(),
        (drawn[0].tobytes(), drawn[1]) if drawn else None,
        bytes(torch.cuda.get_rng_state().numpy().tobytes()) if numpy and torch.cuda.is_initialized() else None,
    )


@contextmanager
def _undisturbed(torch: Any) -> Iterator[None]:
    """The process's generators are put back at the end."""
    numpy = sys.modules.get("numpy")
    kept = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
    # those that are used for the first time within are seeded as the program has seeded all of them
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else ()
    try:
        yield
    finally:
        if gpus:
            torch.cuda.set_rng_state_all(gpus)
        torch.set_rng_state(kept[0])
        random.setstate(kept[1])
        if numpy:
            numpy.random.set_state(kept[2])


def _augmentation(torch: Any, fetcher: Any) -> None:
    """It depends on the sample alone, not on who draws it when."""

    def fetched(self: Any, wanted: Any) -> Any:
        _, chain = _base(self.dataset)
        STATE["fetching"] = True
        try:
            with _undisturbed(torch):
                samples = []
                for i in wanted if self.auto_collation else [wanted]:
                    place = _index(chain, i)
                    seed(torch, 977 * ((place if place is not None else zlib.crc32(repr(i).encode())) + 1) + 13)
                    samples.append(self.dataset[i])
        finally:
            STATE["fetching"] = False
        return self.collate_fn(samples if self.auto_collation else samples[0])

    fetcher.fetch = fetched
