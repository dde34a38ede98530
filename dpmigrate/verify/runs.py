"""One run of one side: its processes, their time and memory, where they hang, and the records that the probe leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

INJECT = Path(__file__).resolve().parent / "inject"


@dataclass(frozen=True)
class Config:
    """What the probe is told; the names are its own."""

    out: str
    root: str
    ranks: int  # 0: plain Python
    steps: int | None = None
    float64: bool = True
    still: bool = True  # no dropout, frozen BatchNorm, augmentation by sample
    cpu: bool = True
    start: str = ""  # folder with the weights to start from
    replay: list[tuple[str, int, list[list[int]]]] = field(default_factory=list)


@dataclass(frozen=True)
class Ran:
    """What came of a run. ``records`` and ``parameters`` by rank; a rank that left none is missing."""

    folder: Path
    code: int
    seconds: float
    stdout: tuple[str, ...]
    stderr: str
    records: tuple[dict[str, Any], ...]
    stacks: tuple[str, ...] = ()  # where each rank stood when the time was over

    @property
    def late(self) -> bool:
        return bool(self.stacks)

    def last_words(self) -> str:
        """The end of what the processes said of their failure."""
        lines = [line for line in self.stderr.splitlines() if line.strip()]
        return "\n".join(lines[-12:])


def run(script: Path, arguments: Sequence[str], config: Config, *, timeout: float, paths: Sequence[Path] = (), watch: Callable[[], None] | None = None) -> Ran:
    """Run the script in its folder with the probe inside; ``paths`` are put on PYTHONPATH. After ``timeout`` seconds the stacks are taken and all is ended."""
    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, script.name, *arguments]
    logs = out / "logs"
    if config.ranks:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={config.ranks}", f"--log-dir={logs}", "--redirects=3"]
        command = [sys.executable, *launcher, script.name, *arguments]
    began = time.monotonic()
    with (out / "stdout.txt").open("w") as stdout, (out / "stderr.txt").open("w") as stderr:
        process = subprocess.Popen(
            command, cwd=script.parent, env=environment(config, paths), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
        stacks: tuple[str, ...] = ()
        while process.poll() is None:
            if time.monotonic() - began > timeout:
                stacks = _stacks(process.pid, out)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                break
            if watch is not None:
                watch()
            time.sleep(0.05)
    texts = [p.read_text(errors="replace") for p in sorted(logs.rglob("stdout.log"))] if config.ranks else [(out / "stdout.txt").read_text(errors="replace")]
    errors = (out / "stderr.txt").read_text(errors="replace") + "".join(p.read_text(errors="replace") for p in sorted(logs.rglob("stderr.log")))
    records = tuple(json.loads(p.read_text()) for p in sorted(out.glob("rank*.json")))
    return Ran(out, process.returncode, time.monotonic() - began, tuple(texts), errors, records, stacks)


def environment(config: Config, paths: Sequence[Path]) -> dict[str, str]:
    """The user's environment without what a launcher may have left, one thread a process."""
    left = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "DPMIGRATE_PROBED")
    kept = {k: v for k, v in os.environ.items() if k not in left and not k.startswith("TORCHELASTIC_")}
    search = [str(INJECT), *map(str, paths), kept.get("PYTHONPATH", "")]
    added = {
        "DPMIGRATE_PROBE": json.dumps(asdict(config)),
        "PYTHONPATH": os.pathsep.join(p for p in search if p),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "WANDB_MODE": "disabled",
    }
    if config.cpu:
        added["CUDA_VISIBLE_DEVICES"] = ""
    return kept | added


def _stacks(leader: int, out: Path) -> tuple[str, ...]:
    """Ask every process that the probe is in for its stack."""
    if not hasattr(signal, "SIGUSR1"):
        return ("(stacks are not available on this system)",)
    for pid in _descendants(leader):
        with_probe = any(str(out) in link for link in _open_files(pid))
        if with_probe:
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                continue
    time.sleep(0.5)
    found = tuple(p.read_text(errors="replace").strip() for p in sorted(out.glob("stack*.txt")))
    return found or ("(no process left a stack)",)


def _descendants(pid: int) -> list[int]:
    """The process and all below it; on Linux."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def _open_files(pid: int) -> list[str]:
    try:
        return [os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
