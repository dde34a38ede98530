"""Quick Python processes: forks of a server that has imported torch, for proofs, or this tool, for its commands."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import dpmigrate

HERE = Path(__file__).resolve().parent
#: what the processes of a run have in their environment (dpmigrate/verify/runs.py), as far as an
#: interpreter reads it once, at its start
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
#: of strings: 0 is the original's and rank 0's, 1 is rank 1's
HASH_SEEDS = ("0", "1")
#: what the processes of a proof import sooner or later: torch itself imports torch._dynamo with the
#: first step of an optimizer
TORCH = (
    "torch",
    "torch._dynamo",
    "torch.distributed.run",
    "torch.nn.parallel",
    "torch.utils.data",
    "numpy",
)
#: bytes for the environment of a client, beside what the server has
ROOM = 16_384

possible = sys.platform == "linux"


@contextmanager
def running(
    folder: Path,
    preloaded: Sequence[str] = TORCH,
    environment: Mapping[str, str] = MappingProxyType(ENVIRONMENT),
    seeds: Sequence[str | None] = HASH_SEEDS,
) -> Iterator[Path]:
    """Servers in the folder; the path of the program that takes the place of ``python``.

    They have imported ``preloaded`` and serve who has ``environment``, of what an interpreter reads
    at its start, and one of the ``seeds`` of hashes; None is a server for who asks for no seed.
    """
    served = json.dumps([sys.executable, dict(environment)])
    (folder / "served.json").write_text(served, encoding="utf-8")
    # the first line of a script may hold neither spaces nor a long path
    (folder / "interpreter").symlink_to(sys.executable)
    python = folder / "python"
    text = (HERE / "client.py").read_text(encoding="utf-8")
    python.write_text(f"#!{folder}/interpreter -IS\n{text}", encoding="utf-8")
    python.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE"))}
    kept |= {**environment, "CUDA_VISIBLE_DEVICES": "", "FORKSERVER_ROOM": "x" * ROOM}
    places = {folder / (seed or "none"): seed for seed in seeds}
    servers = []
    try:
        for place, seed in places.items():
            command = [sys.executable, str(HERE / "server.py"), str(place), *preloaded]
            server = subprocess.Popen(
                command,
                env=kept if seed is None else kept | {"PYTHONHASHSEED": seed},
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
            servers.append(server)
        for place, server in zip(places, servers, strict=True):
            while not place.exists():
                if server.poll() is not None:
                    raise RuntimeError(f"the fork server ended with {server.returncode}")
                time.sleep(0.05)
        yield python
    finally:
        for server in servers:
            assert server.stdin is not None
            server.stdin.close()
        for server in servers:
            server.wait()


def of_tool() -> tuple[str, ...]:
    """The modules of this tool, all that its commands import sooner or later."""
    found = (m.name for m in pkgutil.walk_packages(dpmigrate.__path__, "dpmigrate."))
    own = tuple(n for n in found if "__main__" not in n and ".inject" not in n)
    return ("dpmigrate", *own, "libcst", "click")


def of_commands() -> dict[str, str]:
    """What the tests of the commands have in their environment, as far as an interpreter reads it."""
    given = {k: v for k, v in os.environ.items() if k.startswith("PYTHON")}
    rest = {k: v for k, v in given.items() if k not in ("PYTHONPATH", "PYTHONHASHSEED")}
    return rest | {"PYTHONIOENCODING": "utf-8"}
