"""Each net catches a right result of the tool from which the edit is taken that it protects.

The programs are goldens of fixtures, and run at two ranks. Where no change is made they run to the
end, and where the samplers go on by themselves the orders are right without the edit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.launching import Ended, ranks

pytestmark = pytest.mark.usefixtures("forked_python")

ROOT = Path(__file__).resolve().parents[2]
#: prints the order of each training pass of rank 0, without changing anything
_ORDERS = """
import dpmigrate_runtime as _ddp
_begin = _ddp.DistributedSampler.__iter__
def _told(self):
    order = list(_begin(self))
    print("order", *order[:12])
    return iter(order)
_ddp.DistributedSampler.__iter__ = _told
"""


def result(name: str, *changes: tuple[str, str]) -> str:
    """A fixture's golden with some lines changed, each of which must be there."""
    text = (ROOT / "fixtures" / name / "after.py").read_text()
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def run(folder: Path, text: str) -> Ended:
    """The program at two ranks, in a folder of its own."""
    script = folder / "train.py"
    script.write_text(text)
    starter = folder / "start.py"
    starter.write_text(
        f"import os, runpy, warnings\nwarnings.simplefilter('error')\nos.chdir({str(folder)!r})\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
    )
    return ranks(2, str(starter), limit=300, forked=True)


WRAP = ("model = ddp.wrap(Scorer(cfg.dim).to(DEVICE))", "model = Scorer(cfg.dim).to(DEVICE)")
BARE = ("model.module.state_dict()", "model.state_dict()")
INNER = ("model.module(left, right)", "model(left, right)")
SAMPLER = (
    "batch_size=ddp.local_batch(cfg.batch_size), sampler=ddp.DistributedSampler(train_set, shuffle=cfg.shuffle, seed=cfg.seed))",
    "batch_size=cfg.batch_size // 2, shuffle=True)",
)
SHUFFLED = ("shuffle: bool = False", "shuffle: bool = True")
SET_EPOCH = ("        train_loader.sampler.set_epoch(epoch)\n", "")
PRINTED = '        print(f"epoch {epoch} pairwise accuracy {pairwise_accuracy(model, test_loader):.4f}")\n'
LATE = (PRINTED, PRINTED + "        train_loader.sampler.set_epoch(epoch)\n")
LOOK = "        if ddp.is_main():\n            next(iter(train_loader))\n"
PEEK = ("        model.train()\n", LOOK + "        model.train()\n")
SEEDED = ("    ddp.seed_ranks()\n", "")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param(
            [WRAP, BARE, INNER],
            "SGD has trained 'net.0.weight' of Scorer (of shape [12, 10]), which is in no wrapped model",
            id="no wrap",
        ),
        pytest.param(
            [SAMPLER, SET_EPOCH],
            "every rank trains on all of the data (Pairs of 256): an epoch is 2 epochs",
            id="no sampler",
        ),
        pytest.param(
            [SAMPLER, SET_EPOCH, SEEDED],
            "every rank trains on all of the data (Pairs of 256)",
            id="no sampler, equal seeds",
        ),
        pytest.param(
            [SHUFFLED, PEEK],
            "the ranks go through their training data in different orders",
            id="a look on rank 0",
        ),
        pytest.param(
            [SHUFFLED, SET_EPOCH, PEEK],
            "the ranks go through their training data in different orders",
            id="a look on rank 0, no set_epoch",
        ),
    ],
)
def test_the_net_stops_all_ranks(changes: list[tuple[str, str]], text: str, tmp_path: Path) -> None:
    ended = run(tmp_path, result("single_device_object", *changes))
    assert [
        code != 0 and text in err for code, err in zip(ended.codes, ended.err, strict=True)
    ] == [True, True], ended.err
    assert "first" not in ended.out[0], "stopped before the end of the first epoch"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([], id="as it is"),
        pytest.param([SET_EPOCH], id="no set_epoch"),
        pytest.param([SET_EPOCH, LATE], id="a late set_epoch"),
    ],
)
def test_no_order_comes_twice(changes: list[Any], tmp_path: Path) -> None:
    text = result(
        "single_device_object",
        SHUFFLED,
        ("import dpmigrate_runtime as ddp\n", f"import dpmigrate_runtime as ddp\n{_ORDERS}"),
        *changes,
    )
    ended = run(tmp_path, text)
    assert ended.codes == [0, 0], ended.err
    orders = [line for line in ended.out[0].splitlines() if line.startswith("order ")]
    assert len(orders) == len(set(orders)) == 3


def test_the_right_result_ends_well(tmp_path: Path) -> None:
    ended = run(tmp_path, result("single_device_object"))
    assert ended.codes == [0, 0], ended.err
