"""Runs a script in a folder of its own: in one process, or under torchrun at two gloo ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"


@dataclass(frozen=True)
class Run:
    """What one run left behind: its output by rank and its folder."""

    folder: Path
    code: int
    outputs: tuple[str, ...]
    errors: str

    @property
    def lines(self) -> list[str]:
        return [line for text in self.outputs for line in text.splitlines() if line.strip()]


def environment() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
    return clean | {"PYTHONPATH": str(RUNTIME), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": ""}


def run(folder: Path, text: str, arguments: list[str], ranks: int = 0, timeout: float = 120) -> Run:
    """Run the source as ``train.py`` in a new folder; ``ranks`` 0 is plain Python."""
    folder.mkdir(parents=True)
    (folder / "train.py").write_bytes(text.encode())
    command = [sys.executable, "train.py", *arguments]
    if ranks:
        logs = folder.parent / f"{folder.name}-logs"
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", f"--log-dir={logs}", "--redirects=3"]
        command = [sys.executable, *launcher, "train.py", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=timeout)
    if not ranks:
        return Run(folder, done.returncode, (done.stdout,), done.stderr)
    texts = tuple("".join(p.read_text() for p in sorted(logs.rglob(f"{r}/stdout.log"))) for r in range(ranks))
    errors = "".join(p.read_text() for p in sorted(logs.rglob("stderr.log")))
    return Run(folder, done.returncode, texts, done.stderr + errors)


def numbers(outputs: tuple[str, ...], patterns: list[str]) -> list[list[str]]:
    """Everything that the patterns' groups catch, in order."""
    return [list(m if isinstance(m, tuple) else (m,)) for p in patterns for text in outputs for m in re.findall(p, text)]


def kinds(lines: list[str]) -> Counter[str]:
    """Lines with their numbers masked."""
    return Counter(re.sub(r"[-+]?(\d+(\.\d+)?([eE][-+]?\d+)?|nan|inf)", "#", line).strip() for line in lines)


def tensors(value: Any, prefix: str = "") -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint by path, the prefix of DataParallel taken out."""
    if isinstance(value, torch.Tensor):
        return {prefix: value}
    if isinstance(value, torch.nn.Module):
        return tensors(value.state_dict(), prefix)
    if isinstance(value, dict):
        return {k: t for name, v in value.items() for k, t in tensors(v, f"{prefix}.{str(name).removeprefix('module.').replace('.module.', '.')}").items()}
    if isinstance(value, list | tuple):
        return {k: t for i, v in enumerate(value) for k, t in tensors(v, f"{prefix}[{i}]").items()}
    return {}


def files(folder: Path) -> set[str]:
    """The files that a run wrote, numbers masked."""
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    return {re.sub(r"\d+", "#", f) for f in found - {"train.py"}}
