"""DPM910: a program with a distributed path of its own."""

from __future__ import annotations

import pytest

from tests.pipeline import findings, script
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
