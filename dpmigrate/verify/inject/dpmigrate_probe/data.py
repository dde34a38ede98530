"""Which samples each pass over a DataLoader took, in which batches; and another run's batches in place of this one's."""

from __future__ import annotations

import operator
import random
import sys
import weakref
from typing import Any

from dpmigrate_probe.comparable import seed
from dpmigrate_probe.state import CONFIG, RECORD, STATE, limit_reached


def install(torch: Any) -> None:
    """Record passes, replay orders, cut after the steps or epochs asked for, seed augmentation by the sample."""
    from torch.utils.data import dataloader
    from torch.utils.data._utils import fetch

    _passes(torch, dataloader)
    _cut(dataloader)
    if CONFIG["still"]:
        _augmentation(torch, fetch._MapDatasetFetcher)


def _base(dataset: Any) -> tuple[Any, list[Any]]:
    """The data set under all Subsets, and their indices, the outermost first."""
    chain = []
    while hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        chain.append(dataset.indices)
        dataset = dataset.dataset
    return dataset, chain


def _index(chain: list[Any], i: Any) -> int:
    """The sample's place in the data set under all Subsets; -1 for what is no place."""
    try:
        for indices in chain:
            i = indices[operator.index(i)]
        return operator.index(i)
    except TypeError:
        return -1


def _key(dataset: Any) -> str:
    base, _ = _base(dataset)
    try:
        return f"{type(base).__name__} of {len(base)}"
    except TypeError:
        return f"{type(base).__name__}, a stream"


def _passes(torch: Any, module: Any) -> None:
    iterator = module._BaseDataLoaderIter
    init, again, advance, draw = iterator.__init__, iterator._reset, iterator.__next__, iterator._next_index
    replay = {(key, nth): batches for key, nth, batches in CONFIG["replay"]}

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
        key, sampler = _key(loader.dataset), loader.sampler
        nth = sum(p["data"] == key for p in RECORD["passes"])
        self._probe = {
            "data": key,
            "nth": nth,
            "batches": [],
            "delivered": 0,
            "ended": False,
            "cut": False,
            "backwards": 0,
            "first_step": len(RECORD["steps"]),
            "sampler": type(sampler).__name__,
            "replacement": bool(getattr(sampler, "replacement", False)),
            "length": len(sampler) if hasattr(sampler, "__len__") else None,
            "batch": loader.batch_size,
        }
        RECORD["passes"].append(self._probe)
        replayed(self, loader)

    def replayed(self: Any, loader: Any) -> None:
        """Another run's batches, whatever sampler the loader has."""
        batches = replay.get((self._probe["data"], self._probe["nth"]))
        if batches is not None:
            self._sampler_iter = iter(_own_batches(loader, self._probe_chain, batches, self._auto_collation))

    def next_index(self: Any) -> Any:
        found = draw(self)
        flat = found if isinstance(found, list | tuple) else [found]
        self._probe["batches"].append([_index(self._probe_chain, i) for i in flat])
        return found

    def next_batch(self: Any) -> Any:
        try:
            if self._probe["backwards"] and limit_reached():
                RECORD["cut"] = self._probe["cut"] = True
                raise StopIteration
            data = advance(self)
        except StopIteration:
            self._probe["ended"] = True
            outer = self._probe_outer() if self._probe_outer is not None else None
            _stand_in(outer if outer is not None and not outer._probe["ended"] else None)
            raise
        if not self._probe["delivered"]:
            self._probe_outer = STATE["iterator"]
        self._probe["delivered"] += 1
        _stand_in(self)
        if not RECORD["draws"]:
            STATE["random"] = random_state(torch)
        return data

    iterator.__init__, iterator._reset, iterator._next_index, iterator.__next__ = made, reset, next_index, next_batch


def _stand_in(iterator: Any) -> None:
    """The program is now in this pass: one that runs inside another, such as an evaluation between batches, gives way to it at its end."""
    STATE["iterator"] = weakref.ref(iterator) if iterator is not None else None
    STATE["current"], STATE["drawn"] = (iterator._probe, 0) if iterator is not None else (None, 0)


def _own_batches(loader: Any, chain: list[Any], batches: list[list[int]], collated: bool) -> list[Any]:
    """Another run's batches in this loader's terms: its own indices, and its own batch size where it has the ordinary batch sampler."""
    from torch.utils.data import BatchSampler

    back = {_index(chain, i): i for i in range(len(loader.dataset))}
    mine = [[back[i] for i in batch if i in back] for batch in batches]
    flat = [i for batch in mine for i in batch]
    size = loader.batch_size
    if size is not None and type(loader.batch_sampler) is BatchSampler:
        mine = [flat[i : i + size] for i in range(0, len(flat), size) if not loader.drop_last or i + size <= len(flat)]
    return mine if collated else flat


def _cut(module: Any) -> None:
    """A training pass that begins after the steps or epochs asked for ends the program."""
    iterate = module.DataLoader.__iter__

    def loader_iter(self: Any) -> Any:
        key = _key(self.dataset)
        epochs = sum(p["data"] == key and p["backwards"] > 0 for p in RECORD["passes"])
        if (key in STATE["training"] and limit_reached()) or (CONFIG["epochs"] and epochs >= CONFIG["epochs"]):
            RECORD["cut"] = True
            raise SystemExit(0)
        return iterate(self)

    module.DataLoader.__iter__ = loader_iter


def random_state(torch: Any) -> Any:
    """What the process's generators would draw next."""
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state()[1:3] if numpy else None
    return (
        bytes(torch.get_rng_state().numpy().tobytes()) if numpy else torch.get_rng_state().tolist(),
        random.getstate(),
        (drawn[0].tobytes(), drawn[1]) if drawn else None,
    )


def _augmentation(torch: Any, fetcher: Any) -> None:
    """It depends on the sample alone, not on who draws it when."""

    def fetched(self: Any, wanted: Any) -> Any:
        numpy = sys.modules.get("numpy")
        kept = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
        _, chain = _base(self.dataset)
        STATE["fetching"] = True
        try:
            samples = []
            for i in wanted if self.auto_collation else [wanted]:
                seed(torch, 977 * (_index(chain, i) + 1) + 13)
                samples.append(self.dataset[i])
        finally:
            STATE["fetching"] = False
            torch.set_rng_state(kept[0])
            random.setstate(kept[1])
            if numpy:
                numpy.random.set_state(kept[2])
        return self.collate_fn(samples if self.auto_collation else samples[0])

    fetcher.fetch = fetched
