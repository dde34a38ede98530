"""DPM910: a program with a distributed path of its own."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.pipeline import findings, migrate, script
from tests.rules.program import after, found, hits, program, refused

_PATH = "if os.environ.get('D'):\n    model = torch.nn.parallel.DistributedDataParallel(model)\nelse:\n    model = nn.DataParallel(model)"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="one process"),
        pytest.param({"model": "model = nn.DataParallel(Net())"}, id="DataParallel alone"),
        pytest.param({"before": "model = torch.nn.parallel.DistributedDataParallel(model)"}, id="DistributedDataParallel alone"),
        pytest.param(
            {"model": "model = nn.DataParallel(Net())", "end": "print('DistributedDataParallel')  # torch.distributed"}, id="in a string and a comment"
        ),
        pytest.param(
            {"imports": "from torch.nn.parallel import DistributedDataParallel as DDP", "model": "model = nn.DataParallel(Net())"},
            id="an import that nothing uses",
        ),
        pytest.param({"imports": "from lib import DistributedDataParallel", "model": "model = nn.DataParallel(Net())"}, id="another library's"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM910", **parts) == []


@pytest.mark.parametrize(
    "imports",
    [
        pytest.param("", id="plain"),
        pytest.param("import torch.distributed as dist\ndist.init_process_group('gloo')", id="a process group"),
        pytest.param("from torch.nn.parallel import DistributedDataParallel as DDP", id="from-import with alias"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(imports: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "before": _PATH, "module_level": module_level}
    assert refused("DPM910", **parts) == ["nn.DataParallel(model)"]


_OPTIONS = """\
import argparse
import torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--local-rank", type=int, default=-1)
args = parser.parse_args()
"""
_OWN = "if {test}:\n    dist.init_process_group('gloo')\n    model = nn.parallel.DistributedDataParallel(model)\nelse:\n    model = nn.DataParallel(model)"


@pytest.mark.parametrize("test", ["args.distributed", "args.local_rank != -1", "args.local_rank >= 0"])
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_behind_an_option_it_is_switched_off(test: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": _OPTIONS, "before": _OWN.format(test=test), "module_level": module_level}
    assert found("DPM910", **parts) == ["dist.init_process_group('gloo')"]
    new = after(**parts)
    assert "model = ddp.wrap(model)" in new
    assert 'raise SystemExit("start this program with torchrun: its own distributed mode is switched off")' in new


def test_the_own_mode_in_the_other_branch() -> None:
    own = "if args.local_rank == -1:\n    model = nn.DataParallel(model)\nelse:\n    dist.init_process_group('gloo')"
    assert found("DPM910", imports=_OPTIONS, before=own) == ["dist.init_process_group('gloo')"]


def test_said_once_and_by_this_rule_alone() -> None:
    text = program(before=_PATH + "\nmodel = nn.DataParallel(model)")
    assert [f.code for f in findings(text)] == ["DPM910"]


def test_in_a_class() -> None:
    defs = "class T:\n    def __init__(self, m):\n        self.m = torch.nn.DataParallel(m)"
    assert refused("DPM910", imports="import horovod.torch as hvd\nhvd.init()", defs=defs) == ["torch.nn.DataParallel(m)"]


def test_the_advice_says_how_it_is_started() -> None:
    (plain,) = hits("DPM910", before=_PATH)
    assert "torchrun --standalone" in plain.advice
    (spawned,) = hits("DPM910", imports="import torch.multiprocessing as mp", before=_PATH, end="mp.spawn(main)")
    assert "not torchrun" in spawned.advice


def test_an_option_without_data_parallel_beside_it_is_the_programs_own_mode() -> None:
    """Without the option it trains on one GPU; with it, as its author wants: nothing is switched off."""
    alone = "if args.distributed:\n    dist.init_process_group('gloo')\n    model = nn.parallel.DistributedDataParallel(model)"
    text = program(imports=_OPTIONS, before=alone)
    assert script(text).exempt
    assert findings(text) == ()


_TOLD = """\
import argparse
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def validate(loader, model, loss_fn):
    with torch.no_grad():
        for i, (x, y) in enumerate(loader):
            print(f"{i} loss {loss_fn(model(x), y).item()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default=-1, type=int)
    args = parser.parse_args()
    args.distributed = args.ranks > 1
    model = nn.Linear(4, 1)
    if args.distributed:
        dist.init_process_group("gloo", world_size=args.ranks)
        model = nn.parallel.DistributedDataParallel(model)
    else:
        model = nn.DataParallel(model)
    data, held_out = (TensorDataset(torch.randn(64, 4), torch.randn(64, 1)) for _ in range(2))
    sampler = DistributedSampler(held_out, shuffle=False) if args.distributed else None
    loader = DataLoader(data, batch_size=8, shuffle=True)
    val_loader = DataLoader(held_out, batch_size=8, sampler=sampler)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
        validate(val_loader, model, loss_fn)


if __name__ == "__main__":
    main()
"""


def test_what_the_own_mode_would_do_is_no_part_of_the_result() -> None:
    """The sampler of the switched-off mode gives no rank a part of the evaluation that rank 0 would tell."""
    new = migrate(_TOLD)
    assert new is not None
    result = parse(new.encode(), "train.py")
    assert isinstance(result, Source)
    assert list(judge.faults(Program.of(result))) == []
