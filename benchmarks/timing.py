"""Medians of rounds, and processes that are timed; the benchmarks share them."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def medians(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each one's median round, after one that is not counted. They take turns, so that a busy moment falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for i in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if i:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def process(command: list[str], cache: Path, *, folder: Path | None = None, paths: tuple[Path, ...] = (ROOT,), code: int = 0) -> Callable[[], object]:
    """A process with its bytecode in ``cache``; one that fails would look fast, so its exit code is checked."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONPYCACHEPREFIX": str(cache), "OMP_NUM_THREADS": "1"}

    def run() -> None:
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        if done.returncode != code:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")

    return run
