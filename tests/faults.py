"""What the tests of faults share: a program that is migrated, and the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOOL = (sys.executable, "-m", "dpmigrate")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}

#: small, and migrated without anything left to the user
TRAINS = b"""\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

net = nn.DataParallel(nn.Linear(4, 2)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.zeros(64).long()), batch_size=8, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
    print(epoch)
torch.save(net.module.state_dict(), "a.pt")
"""
#: what another file of the program holds, and what the script has to say to need it
SAVES = b'import torch\n\n\ndef save(net):\n    torch.save(net.state_dict(), "b.pt")\n'
IMPORTS = b"from saving import save\n"
CALLS = b"save(net)\n"


def run(*words: str, cwd: Path, tool: tuple[str, ...] = TOOL, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """The command with what it prints; whatever happens it must not end in a traceback."""
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if "input" not in how else {}
    given |= {name: subprocess.PIPE for name in ("stdout", "stderr") if name not in how}
    done: subprocess.CompletedProcess[bytes] = subprocess.run([*tool, *words], cwd=cwd, env=ENVIRONMENT, **(given | how))
    for told in (done.stdout, done.stderr):
        assert b"Traceback" not in (told or b"") and b"internal error" not in (told or b""), told
    return done


def put(folder: Path, data: bytes = TRAINS, name: str = "train.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def several(folder: Path) -> dict[Path, bytes]:
    """A program of two files, which both change."""
    files = {folder / "train.py": IMPORTS + TRAINS + CALLS, folder / "saving.py": SAVES}
    for path, data in files.items():
        path.write_bytes(data)
    return files


def listing(folder: Path) -> dict[str, bytes | str]:
    """All that lies below a folder, with its content, or where it leads."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        found[str(path.relative_to(folder))] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found
