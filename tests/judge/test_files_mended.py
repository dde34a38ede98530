"""Files that rank 0 writes or removes while others read or ask for them: what the execution of a result shows is mended."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from dpmigrate import proving
from dpmigrate.model import Status
from dpmigrate.settings import Settings

_PROGRAM = """\
import argparse
import glob
import os
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="runs")
parser.add_argument("--keep", action="store_true")
args = parser.parse_args()
out = args.out
{first}
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=6, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
{end}
"""


def _migrated(folder: Path, first: str = "", end: str = "pass") -> list[str]:
    script = folder / "train.py"
    script.write_text(_PROGRAM.format(first=first, end=indent(end, "    ")))
    outcome, files = proving.migration(script, Settings())
    assert outcome.status is Status.CHANGED, outcome
    assert files is not None
    return files[script].decode().splitlines()


def _has(lines: list[str], wanted: str) -> bool:
    """Whether the lines stand in the text one after the other."""
    return wanted in "\n".join(lines)


@pytest.mark.parametrize(
    ("first", "wanted"),
    [
        (
            "there = os.path.exists('a.npy')\nif not there:\n    np.save('a.npy', np.ones(3))\nelse:\n    print(3)",
            "there = ddp.from_main(os.path.exists('a.npy'))\n",
        ),
        (
            "old = list(Path(out).glob('*.npy'))\nfor path in old:\n    path.unlink()\nif old:\n    print(len(old))",
            "old = list(ddp.from_main(list(Path(out).glob('*.npy'))))\n",
        ),
        (
            "np.save('a.npy', np.ones(3))\nwith open('a.npy', 'rb') as f:\n    a = f.read()\nos.remove('a.npy')",
            "ddp.barrier()\nwith open('a.npy', 'rb') as f:\n    a = f.read()\nddp.barrier()\nif ddp.is_main():\n    os.remove('a.npy')\n",
        ),
        (
            "def fill(folder):\n    for i in range(3):\n        np.save(os.path.join(folder, f'{i}.npy'), np.ones(3))\n"
            "def listed(folder):\n    return sorted(os.listdir(folder))\nfill(out)\nnames = listed(out)",
            "    ddp.barrier()\n    return sorted(os.listdir(folder))\n",
        ),
        (
            "if os.path.exists(out):\n    if not args.keep:\n        shutil.rmtree(out)\n        os.makedirs(out)\nelse:\n    os.makedirs(out)",
            "if ddp.is_main():\n    if os.path.exists(out):\n        if not args.keep:\n            shutil.rmtree(out)\n            os.makedirs(out)\n"
            "    else:\n        os.makedirs(out)\nddp.barrier()\n",
        ),
        (
            "if os.path.exists(out):\n    if args.keep or input('remove? ') == 'y':\n        shutil.rmtree(out)\n        os.makedirs(out)\n"
            "else:\n    os.makedirs(out)",
            "if ddp.is_main():\n    if os.path.exists(out):\n        if args.keep or input('remove? ') == 'y':\n            shutil.rmtree(out)\n",
        ),
        (
            "if os.path.exists(out):\n    answer = input('remove? ').strip().lower()\n    if answer == 'y':\n        shutil.rmtree(out)\n        os.makedirs(out)",
            "if ddp.is_main():\n    if os.path.exists(out):\n        answer = input('remove? ').strip().lower()\n",
        ),
    ],
)
def test_before_the_training(first: str, wanted: str, tmp_path: Path) -> None:
    assert _has(_migrated(tmp_path, first=first), wanted)


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (
            "if os.path.exists('last.pt'):\n    os.remove('last.pt')\ntorch.save(model.state_dict(), 'last.pt')",
            "    if os.path.exists('last.pt') and ddp.is_main():\n        os.remove('last.pt')\n    ddp.save(model.module.state_dict(), 'last.pt')\n",
        ),
        (
            "target = Path(out) / 'last.pt'\nif target.exists():\n    target.replace(Path(out) / 'old.pt')\ntorch.save(model.state_dict(), target)",
            "    if target.exists() and ddp.is_main():\n        target.replace(Path(out) / 'old.pt')\n",
        ),
        ("if os.path.exists('STOP'):\n    break", "    if ddp.from_main(os.path.exists('STOP')):\n        break\n"),
        (
            "found = sorted(glob.glob(os.path.join(out, '*.npy')))\nwhile len(found) > 2:\n    os.remove(found.pop(0))",
            "    found = sorted(ddp.from_main(glob.glob(os.path.join(out, '*.npy'))))\n"
            "    while len(found) > 2:\n        ddp.main_only(os.remove, found.pop(0))\n",
        ),
        ("Path(out, f'{epoch}').touch()", "    if ddp.is_main():\n        Path(out, f'{epoch}').touch()\n"),
    ],
)
def test_in_an_epoch(end: str, wanted: str, tmp_path: Path) -> None:
    assert _has(_migrated(tmp_path, end=end), wanted)


def test_a_data_set_of_a_folder_waits_for_what_is_copied_there(tmp_path: Path) -> None:
    first = "import torchvision\ndef copied(names, folder):\n    for n in names:\n        shutil.copy(n, os.path.join(folder, n))\ncopied(['a', 'b'], 'train')\ncopied(['c'], 'val')\n"
    lines = _migrated(tmp_path, first + "val_set = torchvision.datasets.ImageFolder('val')\nprint(len(val_set))")
    assert lines[lines.index("val_set = torchvision.datasets.ImageFolder('val')") - 1] == "ddp.barrier()"


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("if os.path.exists(out):\n    answer = input('remove? ')\n    if answer == 'y':\n        shutil.rmtree(out)\n        os.makedirs(out)\nprint(answer)", id="read later"),
        pytest.param(
            "if os.path.exists(out):\n    if (answer := input('remove? ')) == 'y':\n        shutil.rmtree(out)\n        os.makedirs(out)\nlr = 1 if answer else 2",
            id="read later, of a test",
        ),
        pytest.param(
            "def sure():\n    return input('remove? ') == 'y'\nif os.path.exists(out):\n    if sure():\n        shutil.rmtree(out)\n        os.makedirs(out)",
            id="asked by a function",
        ),
    ],
)
def test_a_question_that_rank_0_alone_cannot_ask(first: str, tmp_path: Path) -> None:
    """Rank 0 would have the answer alone, or wait in the function for the others."""
    script = tmp_path / "train.py"
    script.write_text(_PROGRAM.format(first=first, end="    pass"))
    outcome, files = proving.migration(script, Settings())
    text = files[script].decode() if files else ""
    assert outcome.status is not Status.CHANGED or "ddp.from_main(ddp.main_only(input" in text
    assert "if ddp.is_main():\n    if os.path.exists(out)" not in text


_LISTED = """
import json
import yaml
KINDS = {{}}
def kind(word):
    def keep(cls):
        KINDS[word] = cls
        return cls
    return keep
@kind("arrays")
class Arrays:
    def __init__(self, folder, listed, how="plain"):
        with open(listed) as f:
            names = json.load(f)["names"]
        self.files = []
        for name in names:
            if {left_out}:
                continue
            if how == "small":
                kept = os.path.join(folder, "small_" + name)
                if not os.path.exists(kept):
                    with open(kept, "wb") as f:
                        np.save(f, np.load(os.path.join(folder, name))[::2])
                self.files.append(kept)
with open("set.yaml") as f:
    settings = yaml.safe_load(f)
data = KINDS[settings["kind"]](**settings["given"])
"""


def test_rank_0_is_asked_in_a_loop_of_equal_turns(tmp_path: Path) -> None:
    """That all ranks leave out the same names is not seen in the text, but in an execution."""
    lines = _migrated(tmp_path, first=_LISTED.format(left_out="not name.endswith('.npy')"))
    assert _has(lines, "ddp.barrier()\n                if not ddp.from_main(os.path.exists(kept)):\n")


@pytest.mark.parametrize("least", ["time.time() - 60", "float(os.environ.get('RANK', 0))"])
def test_no_rank_is_asked_in_a_loop_of_other_turns(least: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    left_out = f"os.stat(os.path.join(folder, name)).st_mtime > {least}"
    script.write_text(_PROGRAM.format(first=_LISTED.format(left_out=left_out), end="    pass"))
    outcome, _ = proving.migration(script, Settings())
    assert outcome.status is Status.REFUSED, outcome
    assert "its loop may end on one alone, by os.stat(" in outcome.reason, outcome.reason


def test_ranks_that_take_turns_have_waited_before(tmp_path: Path) -> None:
    """A barrier among what rank 0 does first would never end: the others come to it when rank 0 has gone on."""
    first = (
        "weights = np.load(os.path.join('data', args.out))\nif os.path.exists('data/words.npy'):\n    words = np.load('data/words.npy')\n"
        "else:\n    words = np.arange(8)\n    np.save('data/words.npy', words)"
    )
    lines = _migrated(tmp_path, first)
    assert lines[lines.index("with ddp.main_first():") - 1] == "ddp.barrier()" and lines.count("ddp.barrier()") == 1
