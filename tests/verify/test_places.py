"""The record of a run says at which lines of the program things happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.verify.runs import Config, run

pytestmark = pytest.mark.usefixtures("forked_python")

PARTS = """\
import sys


def told(text):
    sys.stdout.writelines([text, "\\n"])
"""
PROGRAM = """\
import atexit, functools, os, subprocess, sys
import torch
from torch.utils.data import DataLoader, TensorDataset
from parts import told

model = torch.nn.Linear(3, 1)
loader = DataLoader(TensorDataset(torch.ones(4, 3)), 2)
optimizer = torch.optim.SGD(
    model.parameters(),
    lr=0.1,
)
for (x,) in loader:
    model(x).mean().backward()
    optimizer.step()
list(map(print, ["called by a library"]))
told("by a module")
torch.save(model.state_dict(), "last.pt")
subprocess.run([sys.executable, "parts.py"], check=True)
if os.fork() == 0:
    print("by a process of its own")
    os._exit(0)
os.wait()
atexit.register(functools.partial(print, "at the end, when no line of the program is under way"))
"""


def test_what_is_recorded_is_recorded_with_its_line(tmp_path: Path) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    (folder / "parts.py").write_text(PARTS)
    root = str(folder)
    ran = run([], Config(str(tmp_path / "out"), root, root, str(folder / "train.py"), root, 0), timeout=300)
    assert ran.code == 0 and len(ran.records) == 1, ran.stderr
    assert ran.records[0]["places"] == [
        ["backward", "train.py", 13],
        ["batch", "train.py", 12],
        ["optimizer", "train.py", 8],
        ["pass", "train.py", 12],
        ["print", "parts.py", 5],
        ["print", "train.py", 15],
        ["save", "train.py", 17],
        ["step", "train.py", 14],
        ["write", "train.py", 17],
    ]
    assert "at the end" in ran.stdout[0]
