"""What is asked for its sampler is a DataLoader."""

from __future__ import annotations

import pytest

from dpmigrate.result.loaders import no_loaders
from tests.result.checked import Edits, mutated

_EPOCH = "        loader.sampler.set_epoch(epoch)\n"
_LOOP = "        for x, y in loader:\n            loss ="
_BAR = [("from torch import", "from tqdm import tqdm\nfrom torch import"), (_LOOP, "        bar = tqdm(loader)\n        for x, y in bar:\n            loss =")]


@pytest.mark.parametrize(
    ("edits", "both"),
    [
        pytest.param([], [], id="as it is"),
        pytest.param([(".sampler.", ".batch_sampler.")], [], id="of the batches"),
        pytest.param([], _BAR, id="beside a bar"),
        pytest.param([(_EPOCH, "        bar = loader\n        bar.sampler.set_epoch(epoch)\n")], _BAR, id="what the name holds there"),
        pytest.param([("DistributedSampler(data))\n", "DistributedSampler(data))\n    loader = ddp.distribute(loader)\n")], [], id="distribute"),
        pytest.param([("DistributedSampler(data))\n", "DistributedSampler(data))\n    import copy\n    loader = copy.copy(loader)\n")], [], id="a copy"),
        pytest.param([("def main", "def same(loader):\n    return loader\n\n\ndef main"), (_EPOCH, "        same(loader).sampler.set_epoch(epoch)\n")], [], id="a function hands it back"),
        pytest.param([(_EPOCH, "        both = {'train': loader}\n        both['train'].sampler.set_epoch(epoch)\n")], [], id="in a dict"),
        pytest.param([(_EPOCH, "        for each in [loader]:\n            each.sampler.set_epoch(epoch)\n")], [], id="in a list"),
        pytest.param([(_EPOCH, "        each: DataLoader = loader\n        each.sampler.set_epoch(epoch)\n")], [], id="annotated"),
        pytest.param([(_EPOCH, "        loader.sampler.part().set_epoch(epoch)\n        print(set_epoch)\n")], [], id="another method"),
        pytest.param([("ddp.shard(loader)", "ddp.shard(tqdm(loader))")], [("from torch import", "from tqdm import tqdm\nfrom torch import")], id="a share of a bar"),
        pytest.param([], [*_BAR, ("bar = tqdm(loader)", "bar = tqdm(loader)\n        bar.sampler.set_epoch(epoch)")], id="the program's own words"),
        pytest.param([(_EPOCH, "        lone = ddp.next_epoch()\n" + _EPOCH)], [], id="no argument"),
        pytest.param([(_EPOCH, "        one = loader if epoch else loader\n        one.sampler.set_epoch(epoch)\n")], [], id="either is one"),
        pytest.param([(_EPOCH, "        x = x if epoch else loader\n        x.sampler.set_epoch(epoch)\n")], [], id="made of itself"),
    ],
)  # fmt: skip
def test_nothing_is_said(edits: Edits, both: Edits) -> None:
    assert mutated(no_loaders, edits, both) == []


_IS = "would be asked for its sampler, but may be"


@pytest.mark.parametrize(
    ("edits", "both", "words"),
    [
        pytest.param([(_EPOCH, ""), ("        for x, y in bar", "        bar.sampler.set_epoch(epoch)\n        for x, y in bar")], _BAR, f"train.py:21: bar {_IS} tqdm(loader), which is no DataLoader", id="a bar"),
        pytest.param([(_EPOCH, ""), ("        for x, y in bar", "        bar.batch_sampler.set_epoch(epoch)\n        for x, y in bar")], _BAR, f"train.py:21: bar {_IS} tqdm(loader), which is no DataLoader", id="its batches"),
        pytest.param([("        for x, y in loader:\n            loss =", "        with tqdm(loader) as bar:\n            bar.sampler.set_epoch(epoch)\n        for x, y in loader:\n            loss =")], [("from torch import", "from tqdm import tqdm\nfrom torch import")], f"train.py:20: bar {_IS} tqdm(loader), which is no DataLoader", id="with"),
        pytest.param([(_EPOCH, "        (bar := tqdm(loader))\n        bar.sampler.set_epoch(epoch)\n")], [("from torch import", "from tqdm import tqdm\nfrom torch import")], f"train.py:20: bar {_IS} tqdm(loader), which is no DataLoader", id="walrus"),
        pytest.param([(_EPOCH, "        tqdm(loader).sampler.set_epoch(epoch)\n")], [("from torch import", "from tqdm import tqdm\nfrom torch import")], f"train.py:20: tqdm(loader) {_IS} tqdm(loader), which is no DataLoader", id="at once"),
        pytest.param([(_EPOCH, "        one = tqdm(loader) if epoch else loader\n        one.sampler.set_epoch(epoch)\n")], [("from torch import", "from tqdm import tqdm\nfrom torch import")], f"train.py:20: one {_IS} tqdm(loader), which is no DataLoader", id="perhaps"),
        pytest.param([(_EPOCH, "        Fetcher(loader).sampler.set_epoch(epoch)\n")], [("def main", "class Fetcher:\n    def __init__(self, loader):\n        self.loader = loader\n\n\ndef main")], f"train.py:24: Fetcher(loader) {_IS} Fetcher(loader), which is no DataLoader", id="a class of its own"),
        pytest.param([("        self.bar = tqdm(loader)\n", "        self.bar = tqdm(loader)\n        self.bar.sampler.set_epoch(0)\n")], [("from torch import", "from tqdm import tqdm\nfrom torch import"), ("def main", "class Run:\n    def __init__(self, loader):\n        self.bar = tqdm(loader)\n\n\ndef main"), ("    opt =", "    run = Run(loader)\n    opt =")], f"train.py:17: self.bar {_IS} tqdm(loader), which is no DataLoader", id="an attribute"),
        pytest.param([(_EPOCH, "        told(tqdm(loader), epoch)\n"), ("def told(bar, epoch):\n", "def told(bar, epoch):\n    bar.sampler.set_epoch(epoch)\n")], [("from torch import", "from tqdm import tqdm\nfrom torch import"), ("def main", "def told(bar, epoch):\n    print(epoch)\n\n\ndef main")], f"train.py:15: bar {_IS} tqdm(loader), which is no DataLoader", id="a parameter"),
        pytest.param([("in loader:\n            loss =", "in ddp.next_epoch(tqdm(loader)):\n            loss =")], [("from torch import", "from tqdm import tqdm\nfrom torch import")], "train.py:20: next_epoch() would be given tqdm(loader), but that may be tqdm(loader), which is no DataLoader", id="next_epoch"),
        pytest.param([("in loader:\n            loss =", "in ddp.whole(tqdm(ddp.distribute(DataLoader(data)))):\n            loss =")], [("from torch import", "from tqdm import tqdm\nfrom torch import")], "train.py:20: whole() would be given tqdm(ddp.distribute(DataLoader(data))), but that may be tqdm(ddp.distribute(DataLoader(data))), which is no DataLoader", id="whole"),
    ],
)  # fmt: skip
def test_what_is_none(edits: Edits, both: Edits, words: str) -> None:
    assert mutated(no_loaders, edits, both) == [words]


@pytest.mark.parametrize("words", ["    def __getattr__(self, name):\n        return getattr(self.loader, name)\n", "    @property\n    def sampler(self):\n        return self.loader.sampler\n", "    def reset(self):\n        self.sampler = self.loader.sampler\n"])  # fmt: skip
def test_a_class_with_a_sampler(words: str) -> None:
    own = f"class Fetcher:\n    def __init__(self, loader):\n        self.loader = loader\n\n{words}\n\ndef main"
    assert mutated(no_loaders, [(_EPOCH, "        Fetcher(loader).sampler.set_epoch(epoch)\n")], [("def main", own)]) == []
