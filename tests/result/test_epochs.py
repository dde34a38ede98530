"""A sampler that shuffles is told which epoch it is, in the loop over epochs and before the pass."""

from __future__ import annotations

import pytest

from dpmigrate.result.epochs import same_order
from tests.result.checked import Edits, mutated

_EPOCH = "        loader.sampler.set_epoch(epoch)\n"
_LOOP = "        for x, y in loader:\n            loss ="


@pytest.mark.parametrize(
    ("edits", "both"),
    [
        pytest.param([], [], id="as it is"),
        pytest.param([(_EPOCH, ""), ("DistributedSampler(data)", "DistributedSampler(data, shuffle=False)")], [], id="in order"),
        pytest.param([(_EPOCH, ""), (_LOOP, _LOOP.replace("loader", "ddp.next_epoch(loader)"))], [], id="counted by itself"),
        pytest.param([(_EPOCH, "")], [("for epoch in range(2):", "if data:")], id="one pass"),
        pytest.param([(_EPOCH, "        ddp.next_epoch()\n        shop.sampler.set_epoch(epoch)\n")], [("    for epoch", "    import shop\n    for epoch")], id="another loader is told"),
        pytest.param([("batch_size=ddp.local_batch(8), sampler=DistributedSampler(data)", "data, ddp.local_batch(8), sampler=ddp.shard_sampler(data)"), (_EPOCH, "")], [], id="another sampler"),
        pytest.param([("        loader.sampler", "        1\n        loader.sampler")], [("import torch", "import os, torch")], id="later in the block"),
        pytest.param([(_EPOCH, _EPOCH + "        scheduler = 0\n")], [], id="earlier in the block"),
    ],
)  # fmt: skip
def test_nothing_is_said(edits: Edits, both: Edits) -> None:
    assert mutated(same_order, edits, both) == []


_SAME = "would have the same order: nothing tells its sampler the epoch"
_LATE = "no set_epoch stands before this pass in the loop that repeats it: every epoch would have the same order"


@pytest.mark.parametrize(
    ("edits", "both", "words"),
    [
        pytest.param([(_EPOCH, "")], [], f"train.py:19: every pass over loader {_SAME}", id="nothing tells it"),
        pytest.param([(_EPOCH, "")], [("in loader:\n            loss =", "in batches(loader):\n            loss ="), ("def main", "def batches(loader):\n    while True:\n        yield from loader\n\n\ndef main")], f"train.py:15: every pass over loader {_SAME}", id="a generator without end"),
        pytest.param([(_EPOCH, "")], [("        for x, y in loader:\n            loss =", "        it = iter(loader)\n        for x, y in it:\n            loss =")], f"train.py:19: every pass over loader {_SAME}", id="iter"),
        pytest.param([(_EPOCH, ""), ("    for epoch", "    loader.sampler.set_epoch(0)\n    for epoch")], [], f"train.py:19: {_LATE}", id="before the loop over epochs"),
        pytest.param([(_EPOCH, ""), ("            opt.zero_grad", "            loader.sampler.set_epoch(epoch)\n            opt.zero_grad")], [], f"train.py:19: {_LATE}", id="in the loop over batches"),
        pytest.param([(_EPOCH, ""), ("        print", "        loader.sampler.set_epoch(epoch)\n        print")], [], f"train.py:19: {_LATE}", id="after the loop over batches"),
    ],
)  # fmt: skip
def test_the_same_order_again(edits: Edits, both: Edits, words: str) -> None:
    assert words in mutated(same_order, edits, both)
