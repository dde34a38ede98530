"""How the time and the memory of ``check`` grow with a repository: with its files, its scripts, and the depth of their imports.

    python benchmarks/repositories.py [ROUNDS]

The repositories are generated. Files that no training script reaches must cost reading alone, and memory must not grow with their number.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from timing import ROOT

ROUNDS = 3
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes
FILES = (300, 1000, 3000)
SCRIPTS = (1, 10, 40)
DEPTHS = (1, 10, 40, 160)

IDLE = "import os\n\n\n" + "".join(f"def f{k}(x):\n    return os.path.join(str(x), '{k}')\n\n\n" for k in range(60))
SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

from {package} import {module}


def evaluate(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed({seed})
    data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = torch.nn.DataParallel({module}.build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader), evaluate(model, loader))
    torch.save(model.state_dict(), "model{seed}.pt")


if __name__ == "__main__":
    main()
"""
LAST = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
        self.head = torch.nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.body(x))


def build():
    return Net()
"""
LINK = """\
import torch

from . import {below}


class Block{i}(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)
        self.scale = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = self.inner(x).relu()
        return x + self.scale * y


def build():
    return torch.nn.Sequential(Block{i}(), {below}.build())
"""


@dataclass(frozen=True)
class Cost:
    """Seconds, and the most memory that the process held, in MB."""

    seconds: float
    peak: float


def chain(folder: Path, package: str, depth: int) -> str:
    """A package of modules each of which imports the next; the first one's name."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    for i in range(depth):
        text = LAST if i == depth - 1 else LINK.format(i=i, below=f"part{i + 1}")
        (folder / package / f"part{i}.py").write_text(text)
    return "part0"


def repository(folder: Path, *, idle: int, scripts: int, depth: int) -> None:
    """Scripts that share one chain of modules, and files that have nothing to do with them."""
    first = chain(folder, "parts", depth)
    for i in range(scripts):
        (folder / f"train{i}.py").write_text(SCRIPT.format(package="parts", module=first, seed=i))
    for i in range(idle):
        place = folder / f"tools{i // 50}"
        place.mkdir(exist_ok=True)
        (place / f"tool{i}.py").write_text(IDLE)


def measured(folder: Path, cache: Path, rounds: int) -> Cost:
    """The median time of ``check`` on the folder, and its peak memory."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(cache)}
    found = [_run([sys.executable, "-m", "dpmigrate", "check", str(folder)], environment, {0, 1}) for _ in range(rounds)]
    return Cost(statistics.median(c.seconds for c in found), max(c.peak for c in found))


def _run(command: list[str], environment: dict[str, str], codes: set[int]) -> Cost:
    start = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    process = os.posix_spawn(command[0], command, environment, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status) not in codes:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(time.perf_counter() - start, usage.ru_maxrss * _RSS_UNIT / 1e6)


def table(title: str, sizes: tuple[int, ...], make: Callable[[Path, int], None], cache: Path, rounds: int) -> None:
    """A line for each size of the repository."""
    print(f"\n{title:32} {'s':>8} {'MB':>8}")
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            make(Path(scratch), size)
            cost = measured(Path(scratch), cache, rounds)
        print(f"{size:>32} {cost.seconds:8.2f} {cost.peak:8.0f}")


def _warm(cache: Path) -> None:
    """Write the bytecode, which the first run would pay for."""
    with tempfile.TemporaryDirectory() as scratch:
        repository(Path(scratch), idle=1, scripts=1, depth=1)
        measured(Path(scratch), cache, 1)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as scratch:
        cache = Path(scratch)
        _warm(cache)
        table("files beside one script", FILES, lambda folder, n: repository(folder, idle=n, scripts=1, depth=3), cache, rounds)
        table("scripts with three shared modules", SCRIPTS, lambda folder, n: repository(folder, idle=100, scripts=n, depth=3), cache, rounds)
        table("modules in a chain of imports", DEPTHS, lambda folder, n: repository(folder, idle=0, scripts=1, depth=n), cache, rounds)


if __name__ == "__main__":
    main()
