"""The demo: what check, apply and verify say of a bundled script, in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "data" / "demo_train.txt"
#: the proof first: what is not proved is not written
COMMANDS = (["check", "train.py"], ["apply", "--diff", "train.py"], ["verify", "train.py", "--steps", "0"], ["apply", "train.py"])


def run_demo(write: Callable[[str], None]) -> int:
    """Show each command with what it prints. 0: the migration is proved and written; 1: it differs; 2: it could not run."""
    if importlib.util.find_spec("torch") is None:
        write("The demo runs the script before and after, which needs torch: pip install 'dpmigrate[runtime]'")
        return 2
    with tempfile.TemporaryDirectory(prefix="dpmigrate-demo-") as folder:
        (Path(folder) / "train.py").write_bytes(SCRIPT.read_bytes())
        for words in COMMANDS:
            write(f"\n$ dpmigrate {' '.join(words)}\n")
            done = _tool(words, Path(folder))
            write(done.stdout.rstrip())
            if done.returncode and words[0] != "check":
                write(done.stderr.rstrip())
                return done.returncode
    write("\nIt stays `python train.py` for one process; for two: torchrun --standalone --nproc-per-node=2 train.py")
    return 0


def _tool(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpmigrate", *words], cwd=folder, env=_environment(), capture_output=True, text=True, encoding="utf-8")


def _environment() -> dict[str, str]:
    """This package importable from wherever this one was imported; plain text."""
    paths = [str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
