"""The demo: migrate a bundled script, run it before and after, compare what came out."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmigrate.writing import runtime_folder

SCRIPT = Path(__file__).resolve().parent / "data" / "demo_train.txt"
TIMEOUT = 300  # seconds for one run, which takes a few
TOLERANCE = 1e-5  # float32 SGD with momentum drifts by 1e-6 in 50 steps; the demo takes 64
_LINE = re.compile(r"test loss ([\d.]+) accuracy ([\d.]+)")

#: read in a process of its own, so that the tool never imports torch
_COMPARE = """
import json, sys, torch
a, b = (torch.load(p, map_location="cpu", weights_only=True)["model"] for p in sys.argv[1:])
bare = lambda d: {k.removeprefix("module."): v for k, v in d.items()}
x, y = bare(a), bare(b)
far = max((x[k] - y[k]).abs().max().item() for k in x) if x.keys() == y.keys() else float("inf")
json.dump({"distance": far, "keys": [list(a), list(b)]}, sys.stdout)
"""


@dataclass(frozen=True)
class Run:
    """What one side of the demo ended with."""

    loss: str
    accuracy: str
    seconds: float
    checkpoint: Path


def run_demo(write: Callable[[str], None]) -> int:
    """Show findings and diff, run both sides, print one table. 0: they agree; 1: they do not; 2: it could not run."""
    if importlib.util.find_spec("torch") is None:
        write("The demo runs the script before and after, which needs torch: pip install 'dpmigrate[runtime]'")
        return 2
    with tempfile.TemporaryDirectory(prefix="dpmigrate-demo-") as scratch:
        before, after = (Path(scratch) / side for side in ("before", "after"))
        for folder in (before, after):
            folder.mkdir()
            (folder / "train.py").write_bytes(SCRIPT.read_bytes())
        for words in (["check", "train.py"], ["apply", "--diff", "train.py"], ["apply", "train.py"]):
            write(f"\n$ dpmigrate {' '.join(words)}\n")
            done = _tool(words, after)
            write(done.stdout.rstrip())
            if done.returncode > 1:
                write(done.stderr)
                return 2
        options = ["train.py", "--no-shuffle"]
        write("\n$ python train.py --no-shuffle                      (the original, one process)")
        original = _train([sys.executable, *options], before, write)
        write("$ torchrun --standalone --nproc-per-node=2 train.py --no-shuffle   (the result, two processes, gloo)\n")
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        migrated = _train([*launcher, *options], after, write)
        if original is None or migrated is None:
            return 2
        return _verdict(original, migrated, write)


def _tool(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpmigrate", *words], cwd=folder, env=_environment(), capture_output=True, text=True, encoding="utf-8")


def _environment() -> dict[str, str]:
    """One thread a process, CPU only, and both packages importable from wherever this one was imported."""
    runtime = runtime_folder()
    paths = [str(Path(__file__).resolve().parent.parent), *([str(runtime.parent)] if runtime is not None else []), os.environ.get("PYTHONPATH", "")]
    clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
    return clean | {
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }


def _train(command: list[str], folder: Path, write: Callable[[str], None]) -> Run | None:
    start = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        write(f"the run did not end within {TIMEOUT} seconds")
        return None
    seconds = time.monotonic() - start
    found = _LINE.findall(done.stdout)
    if done.returncode or not found:
        write(f"the run failed with exit code {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return None
    loss, accuracy = found[-1]
    return Run(loss, accuracy, seconds, folder / "checkpoints" / "last.pt")


def _verdict(original: Run, migrated: Run, write: Callable[[str], None]) -> int:
    command = [sys.executable, "-c", _COMPARE, str(original.checkpoint), str(migrated.checkpoint)]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        write(f"the checkpoints could not be compared:\n{done.stderr}")
        return 2
    compared: dict[str, Any] = json.loads(done.stdout)
    keys = compared["keys"]
    rows = [
        ("", "original, 1 process", "migrated, 2 processes", ""),
        ("final test loss", original.loss, migrated.loss, _same(original.loss == migrated.loss)),
        ("test accuracy", original.accuracy, migrated.accuracy, _same(original.accuracy == migrated.accuracy)),
        ("parameter distance", "", f"{compared['distance']:.1e}", _same(compared["distance"] <= TOLERANCE, f"within {TOLERANCE:g}")),
        ("checkpoint keys", f"{len(keys[0])}, {keys[0][0]} ...", f"{len(keys[1])}, {keys[1][0]} ...", _same(keys[0] == keys[1])),
        ("seconds", f"{original.seconds:.1f}", f"{migrated.seconds:.1f}", ""),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    agree = all(row[3] != "DIFFERS" for row in rows)
    write("\nThe two agree." if agree else "\nThe two DISAGREE.")
    return 0 if agree else 1


def _same(equal: bool, word: str = "equal") -> str:
    return word if equal else "DIFFERS"
