"""Starting jobs of several processes for the tests, with and without torchrun."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "runtime"
LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "DPMIGRATE_BACKEND")


@dataclass
class Ended:
    """How a job ended: exit status per process (torchrun: one), what was printed, how long it took."""

    codes: list[int]
    out: list[str]
    err: list[str]
    seconds: float


def environment(**more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    path = os.pathsep.join([str(RUNTIME), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**clean, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error", **more}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def ranks(world: int, *command: str, limit: float = 60) -> Ended:
    """``python *command`` once per rank, without a launcher (quicker to start than torchrun)."""
    port, started = str(free_port()), time.monotonic()
    jobs = []
    for rank in range(world):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env = environment(**place)
        jobs.append(subprocess.Popen([sys.executable, *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    ends = []
    try:
        ends = [job.communicate(timeout=limit) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    return Ended([job.returncode for job in jobs], [out for out, _ in ends], [err for _, err in ends], time.monotonic() - started)


def alone(*command: str, limit: float = 60, **env: str) -> Ended:
    """``python *command`` as one plain process."""
    started = time.monotonic()
    end = subprocess.run([sys.executable, *command], env=environment(**env), capture_output=True, text=True, timeout=limit, check=False)
    return Ended([end.returncode], [end.stdout], [end.stderr], time.monotonic() - started)


def torchrun(world: int, *command: str, limit: float = 90) -> Ended:
    """``torchrun --standalone``; the launcher's own warnings are not this package's."""
    launch = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}", *command)
    return alone(*launch, limit=limit, PYTHONWARNINGS="default")
