"""Quick Python processes for proofs: forks of a server that has imported torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: what the processes of a run have in their environment (dpmigrate/verify/runs.py), as far as an
#: interpreter reads it once, at its start
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
#: of strings: 0 is the original's and rank 0's, 1 is rank 1's
HASH_SEEDS = ("0", "1")
#: bytes for the environment of a client, beside what the server has
ROOM = 16_384

possible = sys.platform == "linux"


@contextmanager
def running(folder: Path) -> Iterator[Path]:
    """Servers in the folder; the path of the program that takes the place of ``python``."""
    (folder / "served.json").write_text(json.dumps([sys.executable, ENVIRONMENT]), encoding="utf-8")
    # the first line of a script may hold neither spaces nor a long path
    (folder / "interpreter").symlink_to(sys.executable)
    python = folder / "python"
    text = (HERE / "client.py").read_text(encoding="utf-8")
    python.write_text(f"#!{folder}/interpreter -IS\n{text}", encoding="utf-8")
    python.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE"))}
    kept |= ENVIRONMENT | {"CUDA_VISIBLE_DEVICES": "", "FORKSERVER_ROOM": "x" * ROOM}
    servers = []
    try:
        for seed in HASH_SEEDS:
            command = [sys.executable, str(HERE / "server.py"), str(folder / seed)]
            server = subprocess.Popen(
                command,
                env=kept | {"PYTHONHASHSEED": seed},
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
            servers.append(server)
        for seed, server in zip(HASH_SEEDS, servers, strict=True):
            while not (folder / seed).exists():
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
