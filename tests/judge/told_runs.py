"""What a program and its migration tell, run in forks of this process: one of the original, which is
given the batches that the ranks took together, and one for each gloo rank.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpmigrate_runtime
import numpy as np
import torch
import torch._dynamo
import torch.distributed.nn.functional
import torch.nn.parallel
import torch.utils.data

#: what every fork would import for itself; torch imports ``torch._dynamo`` with the first step of an optimizer
_BEFOREHAND = (dpmigrate_runtime, np, torch._dynamo, torch.nn.parallel)

#: seconds that one program may take
LIMIT = 60
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b")
_TAG = re.compile(r"\b[updh]\d+\b")

Batches = list[list[int]]


@dataclass(slots=True)
class Ran:
    """What one process has done: what it has told, by tags; the passes over loaders that are dealt
    out; how it failed.
    """

    told: dict[str, list[tuple[str, list[float]]]] = field(default_factory=dict)
    passes: dict[tuple[str, int], Batches | None] = field(default_factory=dict)
    failure: str = ""
    started: bool = True


# ---------------------------------------------------------------- in a fork


class _Recorder:
    """Notes the batches of each pass over a loader that deals samples out; or gives such batches."""

    def __init__(self, replay: dict[tuple[str, int], Batches | None]) -> None:
        self.replay = replay
        self.passes: dict[tuple[str, int], Batches | None] = {}
        self.counts: dict[str, int] = defaultdict(int)

    def install(self) -> None:
        loaders = torch.utils.data.dataloader
        before = loaders._BaseDataLoaderIter.__init__
        recorder = self

        def begin(one: Any, loader: Any) -> None:
            before(one, loader)
            name = f"data of {len(loader.dataset)}"
            key = (name, recorder.counts[name])
            recorder.counts[name] += 1
            if (given := recorder.replay.get(key)) is not None:
                one._sampler_iter = iter(given)
                return
            sampler = loader.sampler if loader.batch_sampler is None else getattr(loader.batch_sampler, "sampler", loader.sampler)
            dealt = "Distributed" in type(sampler).__name__ or "Shard" in type(sampler).__name__
            taken: Batches = []
            recorder.passes[key] = taken if dealt else None

            def noted(inner: Any) -> Any:
                for batch in inner:
                    taken.append(list(batch) if isinstance(batch, list | tuple) else [batch])
                    yield batch

            one._sampler_iter = noted(one._sampler_iter)

        loaders._BaseDataLoaderIter.__init__ = begin  # type: ignore[method-assign, assignment]


class _Wandb(types.ModuleType):
    """Takes the place of the tracker."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("wandb")
        self.lines = lines

    def init(self, *_: Any, **__: Any) -> _Wandb:
        return self

    def log(self, values: dict[str, Any], *_: Any, **__: Any) -> None:
        self.lines += [f"{k} {float(v)!r}" for k, v in values.items()]

    def finish(self) -> None:
        """Nothing."""


def _became(text: str, folder: Path, place: Callable[[], None], replay: dict[tuple[str, int], Batches | None]) -> Ran:
    """The program run as ``__main__`` of this process."""
    out = Ran()
    warnings.resetwarnings()  # those of a test are errors
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    recorder = _Recorder(replay)
    recorder.install()
    os.chdir(folder)
    lines: list[str] = []
    sys.modules["wandb"] = _Wandb(lines)
    shown = io.StringIO()
    sys.stdout, sys.stderr = shown, io.StringIO()
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    path = str(folder / "train.py")
    main.__dict__["__file__"] = path
    sys.argv = [path]
    try:
        place()
        exec(compile(text, path, "exec"), main.__dict__)
    except SystemExit:
        pass
    except BaseException:
        out.failure = traceback.format_exc(limit=-4)
    out.passes = recorder.passes
    _lines(out, [*shown.getvalue().splitlines(), *lines])
    for file in sorted(folder.iterdir()):
        if file.suffix == ".json":
            for k, v in json.loads(file.read_text()).items():
                out.told.setdefault(k, []).append((file.name, _flat(v)))
        elif file.suffix == ".csv":
            for row in csv.DictReader(io.StringIO(file.read_text())):
                for k, v in row.items():
                    out.told.setdefault(str(k), []).append((file.name, _flat(v)))
        elif file.suffix in (".txt", ".log"):
            _lines(out, file.read_text().splitlines())
    return out


def _flat(v: Any) -> list[float]:
    if isinstance(v, dict):
        return [x for part in v.values() for x in _flat(part)]
    if isinstance(v, list | tuple):
        return [x for part in v for x in _flat(part)]
    return [float(x) for x in _NUMBER.findall(str(v))]


def _lines(out: Ran, lines: list[str]) -> None:
    for line in lines:
        found = list(_TAG.finditer(line))
        ends = [*(m.start() for m in found[1:]), len(line)]
        for m, end in zip(found, ends, strict=True):
            part = line[m.end() : end]
            out.told.setdefault(m[0], []).append((_NUMBER.sub("#", part), _flat(part)))


def _as_rank(rank: int, world: int, store: str) -> Callable[[], None]:
    def place() -> None:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
        import torch.distributed as dist
        from dpmigrate_runtime import _process_group

        def rendezvous(*_: Any, **__: Any) -> Any:
            yield dist.FileStore(store, world), rank, world  # type: ignore[attr-defined]

        _process_group.rendezvous = rendezvous  # type: ignore[attr-defined]

    return place


# ---------------------------------------------------------------- here


def _forked(work: Callable[[], Ran], folder: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.alarm(LIMIT)
        found = work()
        (folder / "ran.new").write_bytes(pickle.dumps(found))
        (folder / "ran.new").rename(folder / "ran.pickle")
    finally:
        os._exit(0)


def _waited(pids: list[int], folders: list[Path]) -> list[Ran]:
    """What processes have done, one folder each. Where one fails, the others are not waited for."""
    left = dict(zip(pids, folders, strict=True))
    end = time.monotonic() + LIMIT
    while left:
        pid = _any_of(left)
        if pid:
            folder = left.pop(pid)
            failed = not (folder / "ran.pickle").exists() or pickle.loads((folder / "ran.pickle").read_bytes()).failure
            if failed:
                end = min(end, time.monotonic() + 5)
        elif time.monotonic() > end:
            for other in left:
                os.kill(other, signal.SIGKILL)
            end += 5
        else:
            time.sleep(0.005)
    return [pickle.loads((f / "ran.pickle").read_bytes()) if (f / "ran.pickle").exists() else Ran(failure="killed, or too long") for f in folders]


def _any_of(pids: dict[int, Path]) -> int:
    """A process that has ended; 0 where none has."""
    return next((pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0]), 0)


def run_ranks(text: str, world: int) -> list[Ran]:
    """The migrated program at so many ranks."""
    root = Path(tempfile.mkdtemp(prefix="told-"))
    try:
        shared = root / "shared"  # ranks write into one folder
        shared.mkdir()
        folders = [root / str(r) for r in range(world)]
        for f in folders:
            f.mkdir()
        pids = [
            _forked(lambda r=r: _became(text, shared, _as_rank(r, world, str(root / "store")), {}), folders[r])  # type: ignore[misc]
            for r in range(world)
        ]
        return _waited(pids, folders)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run_alone(text: str, replay: dict[tuple[str, int], Batches | None]) -> Ran:
    """The original, with given batches."""
    root = Path(tempfile.mkdtemp(prefix="told-"))
    try:
        (root / "own").mkdir()
        (root / "out").mkdir()
        return _waited([_forked(lambda: _became(text, root / "own", lambda: None, replay), root / "out")], [root / "out"])[0]
    finally:
        shutil.rmtree(root, ignore_errors=True)


def together(ranks: list[Ran]) -> dict[tuple[str, int], Batches | None]:
    """The batches that ranks took together, by their passes."""
    found: dict[tuple[str, int], Batches | None] = {}
    for key, own in ranks[0].passes.items():
        parts = [r.passes.get(key) for r in ranks]
        if own is None or any(p is None for p in parts):
            found[key] = None
        else:
            found[key] = [_dealt(batch) for batch in zip(*(p for p in parts if p is not None), strict=False)]
    return found


def _dealt(shares: tuple[list[int], ...]) -> list[int]:
    longest = max(map(len, shares))
    return [s[i] for i in range(longest) for s in shares if i < len(s)]


def differing(original: Ran, rank: Ran) -> dict[str, str]:
    """The tags whose numbers differ, each with the first difference."""
    out: dict[str, str] = {}
    for tag in dict.fromkeys([*original.told, *rank.told]):
        own, theirs = original.told.get(tag, []), rank.told.get(tag, [])
        if len(own) != len(theirs):
            out[tag] = f"told {len(own)} times, and {len(theirs)} times by rank 0: {own[:2]} {theirs[:2]}"
            continue
        for (shape, numbers), (other, others) in zip(own, theirs, strict=True):
            if shape != other or len(numbers) != len(others):
                out[tag] = f"{shape!r} {numbers} {other!r} {others}"
                break
            pairs = list(zip(numbers, others, strict=True))
            wrong = [(a, b) for a, b in pairs if abs(a - b) > 2e-5 + 1e-6 * abs(a) or (a != a) != (b != b)]
            if wrong:
                out[tag] = f"{wrong[0][0]} is told as {wrong[0][1]}"
                break
    return out

