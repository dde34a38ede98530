"""Starting jobs of several processes for the tests, with and without torchrun."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import forkserver

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "runtime"
#: seconds after which a job hangs, however much the machine has to do; never reached where all is well
LIMIT = 600
LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "DPMIGRATE_BACKEND")


@dataclass
class Ended:
    """How a job ended: exit status per process (torchrun: one), what was printed."""

    codes: list[int]
    out: list[str]
    err: list[str]


def environment(**more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    path = os.pathsep.join([str(RUNTIME), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**clean, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error", **more}


#: below the ports that systems hand out by themselves (Linux from 32768, others from 49152); another range for each process that runs tests
_PORTS = itertools.count(10_000 + os.getpid() * 20 % 20_000)


def free_port() -> int:
    """A port that nobody listens at, and that nobody is given between now and the start of the job."""
    for port in _PORTS:
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError


#: what the forks of ``forked_python`` have, which are no interpreters that read PYTHONWARNINGS
FORKED = {**forkserver.ENVIRONMENT, "PYTHONHASHSEED": forkserver.HASH_SEEDS[0]}


def ranks(world: int, *command: str, limit: float = LIMIT, forked: bool = False) -> Ended:
    """``python *command`` once per rank, without a launcher (quicker to start than torchrun).

    ``forked``: under the fixture ``forked_python``, as forks; the command sees to its warnings.
    """
    port = str(free_port())
    jobs = []
    for rank in range(world):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env = environment(**place, **(FORKED if forked else {}))
        if forked:
            del env["PYTHONWARNINGS"]
        jobs.append(subprocess.Popen([sys.executable, *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    ends = []
    try:
        ends = [job.communicate(timeout=limit) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    return Ended([job.returncode for job in jobs], [out for out, _ in ends], [err for _, err in ends])


def alone(*command: str, limit: float = LIMIT, **env: str) -> Ended:
    """``python *command`` as one plain process."""
    end = subprocess.run([sys.executable, *command], env=environment(**env), capture_output=True, text=True, timeout=limit, check=False)
    return Ended([end.returncode], [end.stdout], [end.stderr])


def torchrun(world: int, *command: str, limit: float = LIMIT) -> Ended:
    """``torchrun --standalone``; the launcher's own warnings are not this package's."""
    launch = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}", *command)
    return alone(*launch, limit=limit, PYTHONWARNINGS="default")
