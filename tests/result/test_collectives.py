"""No rank comes to a collective more often than another one."""

from __future__ import annotations

import pytest

from dpmigrate.result.collectives import torn_apart
from tests.result.checked import Edits, mutated

_SUM = "    loss = ddp.sum_all(loss)\n"
_TURN = "            loss = nn"


@pytest.mark.parametrize(
    ("edits", "both"),
    [
        pytest.param([], [], id="as it is"),
        pytest.param([(_TURN, "            ddp.barrier()\n" + _TURN)], [], id="in the loop over batches"),
        pytest.param([(_TURN, "            if ddp.any_rank(x.mean() > 3):\n                break\n" + _TURN)], [(_TURN, _TURN)], id="decided together"),
        pytest.param([(_TURN, "            if epoch > 3:\n                break\n            ddp.barrier()\n" + _TURN)], [], id="by a counter"),
        pytest.param([("    for epoch", "    step = lambda: ddp.barrier()\n    for epoch")], [], id="in a lambda"),
        pytest.param([(_SUM, "        ddp.weighted_mean(x.mean(), 2)\n")], [("def evaluate", "@torch.no_grad()\ndef evaluate")], id="for gradients alone, without any"),
        pytest.param([("ddp.shard(loader)", "[ddp.shard(loader)]"), (_SUM, "")], [], id="a share that nothing goes through"),
        pytest.param([("    loss = 0.0\n", "    loss = 0.0\n    part = ddp.shard(loader)\n    while loss < len(part):\n        break\n")], [], id="a share in a variable"),
        pytest.param([], [(_TURN, "            if x.mean() > 3:\n                break\n" + _TURN)], id="the program's own end, no collective"),
    ],
)  # fmt: skip
def test_nothing_is_said(edits: Edits, both: Edits) -> None:
    assert mutated(torn_apart, edits, both) == []


_ALONE = "waits for every rank, but its loop may end on one alone, by"
_SHARE = "waits for every rank, but stands in a loop over a rank's share of batches: ddp.shard(loader)"
_CLIMB = "        while x.norm() > 1:\n            x = x / 2\n"


@pytest.mark.parametrize(
    ("edits", "both", "words"),
    [
        pytest.param([(_TURN, "            ddp.barrier()\n" + _TURN)], [(_TURN, "            if x.mean() > 3:\n                break\n" + _TURN)], f"train.py:22: barrier() {_ALONE} x.mean() > 3", id="break"),
        pytest.param([(_TURN, "            ddp.barrier()\n" + _TURN)], [(_TURN, "            if x.mean() > 3:\n                return\n" + _TURN)], f"train.py:22: barrier() {_ALONE} x.mean() > 3", id="return"),
        pytest.param([("x = x / 2", "x = ddp.mean_all(x) / 2")], [("        print", _CLIMB + "        print")], f"train.py:25: mean_all() {_ALONE} x.norm() > 1", id="while"),
        pytest.param([(_SUM, "        loss = ddp.sum_all(loss)\n")], [], f"train.py:9: sum_all() {_SHARE}", id="in a share"),
        pytest.param([(_SUM, "        ddp.weighted_mean(x.mean(), 2)\n")], [], f"train.py:9: weighted_mean() {_SHARE}", id="for gradients, in a share"),
        pytest.param([("    return loss", "        meet(loss)\n    return loss"), (_SUM, ""), ("def evaluate", "def meet(loss):\n    ddp.barrier()\n\n\ndef evaluate")], [], f"train.py:6: barrier() {_SHARE}", id="in a share, by a function"),
    ],
)  # fmt: skip
def test_what_is_torn_apart(edits: Edits, both: Edits, words: str) -> None:
    assert mutated(torn_apart, edits, both) == [words]
