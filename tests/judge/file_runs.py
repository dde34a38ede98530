"""Runs of programs that work with files, at two ranks of which one is always behind at its files.

A program is run as a fork of this process, which has imported torch and computed nothing with it.
Before each operation on a file, and after it has opened one for writing, a rank that is held back
waits until the other one waits in its turn: then whatever a barrier does not keep apart happens in
the order that does most harm.
"""

from __future__ import annotations

import builtins
import contextlib
import datetime
import gc
import io
import json
import os
import pickle
import re
import runpy
import shutil
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._dynamo  # what torch imports by itself sooner or later: a fork has it at once
import torch.distributed.distributed_c10d
import torch.nn.parallel.distributed

#: who is held back
SCHEDULES = ("rank 0 late", "rank 1 late")
#: seconds after which a run counts as one that does not end
LIMIT = 40.0
#: seconds for which a rank waits at most until the other one waits
PATIENCE = 1.0
#: seconds by which the clock of each rank is ahead of that of the rank before it
AHEAD = 100.0
gc.freeze()  # a collection in a fork would copy the memory of all that is imported


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: what went wrong, '' if nothing did, and the files that it left."""

    failure: str
    files: dict[str, Any]


def alone(folder: Path, script: str, commands: Sequence[Sequence[str]]) -> Ended:
    """The program as a plain process, started with each command line in turn."""
    for i, arguments in enumerate(commands):
        failure = _together(folder, script, arguments, 1, "", 1000.0 * i)
        if failure:
            return Ended(failure, {})
    return Ended("", left(folder))


def at_two(folder: Path, script: str, commands: Sequence[Sequence[str]], schedule: str) -> Ended:
    """The program at two gloo ranks, started with each command line in turn."""
    for i, arguments in enumerate(commands):
        failure = _together(folder, script, arguments, 2, schedule, 1000.0 * i)
        if failure:
            return Ended(f"{' '.join(arguments)}: {failure}", {})
    return Ended("", left(folder))


# ---------------------------------------------------------------- processes


def _together(folder: Path, script: str, arguments: Sequence[str], ranks: int, schedule: str, later: float) -> str:
    """Run the processes of one start; what went wrong."""
    said = folder.parent / f"{folder.name}.said"
    shutil.rmtree(said, ignore_errors=True)
    said.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running: dict[int, int] = {}
    for rank in range(ranks):
        pid = os.fork()
        if not pid:
            _be(folder, script, arguments, rank, ranks, port, said, schedule, later)
        running[pid] = rank
    (said / "ids.new").write_text(json.dumps({r: p for p, r in running.items()}))
    (said / "ids.new").rename(said / "ids")  # from here on they run
    failures: list[tuple[int, str]] = []
    end = time.monotonic() + LIMIT
    while running and time.monotonic() < end:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(0.005)
            continue
        rank = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code:
            failures.append((rank, f"rank {rank} ends with {code}: {_told(said, rank)}"))
            end = min(end, time.monotonic() + 8)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if failures:
        # a rank that lost another one only says so
        own = [f for f in failures if "LostRank" not in f[1] and "Connection closed" not in f[1]]
        return (own or failures)[0][1]
    return f"ranks {sorted(running.values())} do not end" if running else ""


def _told(said: Path, rank: int) -> str:
    try:
        return (said / f"error{rank}").read_text()
    except OSError:
        return ""


def _be(
    folder: Path, script: str, arguments: Sequence[str], rank: int, ranks: int, port: int, said: Path, schedule: str,
    later: float,
) -> None:  # fmt: skip
    """In a fork: be one process of a start, and end."""
    code = 0
    try:
        os.setsid()
        while not (said / "ids").exists():
            time.sleep(0.001)
        ids = {int(r): p for r, p in json.loads((said / "ids").read_text()).items()}
        out = os.open(said / f"out{rank}", os.O_CREAT | os.O_WRONLY)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if ranks > 1:
            places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
            os.environ.update({k: str(v) for k, v in places.items()})
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        os.chdir(folder)
        sys.argv = [script, *arguments]
        sys.path.insert(0, str(folder))
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(time.time_ns() % 2**31)
        arranged = torch.arange
        torch.randperm = lambda n, **_: arranged(n)
        _shift_clock(rank * AHEAD + later)
        if ranks > 1:
            late = schedule == f"rank {rank} late"
            _hold_back(folder, lambda: _wait(ids[1 - rank]) if late else None)
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if code:
            (said / f"error{rank}").write_text(f"SystemExit {error.code}")
    except BaseException as error:
        code = 1
        lines = [f"{f.name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(str(folder)) or f.filename.endswith(script)]
        (said / f"error{rank}").write_text(f"{type(error).__name__}: {error} ({', '.join(lines)})")
    finally:
        os._exit(_flushed(code))


def _flushed(code: int) -> int:
    import logging

    for flush in (logging.shutdown, sys.stdout.flush, sys.stderr.flush):
        with contextlib.suppress(OSError, ValueError):
            flush()
    return code


def _shift_clock(seconds: float) -> None:
    """Clocks of two processes never show the same."""
    plain, local, form = time.time, time.localtime, time.strftime
    time.time = lambda: plain() + seconds
    time.localtime = lambda at=None: local(time.time() if at is None else at)
    time.strftime = lambda text, *at: form(text, *(at or (time.localtime(),)))
    datetime.datetime = Clock  # type: ignore[misc]


class Clock(datetime.datetime):
    """A moment by the clock of the process."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def today(cls) -> Any:
        return cls.now()


def _wait(other: int) -> None:
    """Wait until another process waits: it is seen asleep several times in a row."""
    end = time.monotonic() + PATIENCE
    asleep = 0
    path = f"/proc/{other}/task/{other}/stat"
    while asleep < 4 and time.monotonic() < end:
        file = -1
        try:
            file = _OS["open"](path, os.O_RDONLY)
            state = os.read(file, 512).rpartition(b")")[2].split()[0]
        except OSError:
            return
        finally:
            if file >= 0:
                os.close(file)
        if state in (b"Z", b"X"):
            return
        asleep = asleep + 1 if state == b"S" else 0
        time.sleep(0.001)


_OS: dict[str, Any] = {}


def _hold_back(folder: Path, wait: Callable[[], object]) -> None:
    """Wait before each operation on a file of the folder, and after a file is opened for writing."""
    root = str(folder)
    within = [False]

    def inside(path: Any) -> bool:
        if isinstance(path, int):
            return False
        try:
            text = os.fsdecode(path)
        except TypeError:
            return False
        return (not os.path.isabs(text) or text.startswith(root)) and not text.endswith((".py", ".pyc"))

    def pause(path: Any) -> None:
        if not within[0] and inside(path):
            within[0] = True
            try:
                wait()
            finally:
                within[0] = False

    def before(plain: Any) -> Any:
        def held(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            pause(path)
            return plain(path, *args, **kwargs)

        return held

    _OS["open"] = os.open
    for name in ("stat", "lstat", "listdir", "scandir", "mkdir", "remove", "unlink", "rename", "replace", "rmdir", "symlink", "link", "readlink"):
        plain = getattr(os, name)
        made = before(plain)
        for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if plain in known:
                known.add(made)
        setattr(os, name, made)
    opened = io.open

    def open_(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        pause(path)
        file = opened(path, mode, *args, **kwargs)
        if set(mode) & set("wax"):
            pause(path)
        return file

    builtins.open = io.open = open_  # type: ignore[assignment]
    save = torch.save

    def saved(what: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(path, str | os.PathLike):
            save(what, path, *args, **kwargs)
            return
        packed = io.BytesIO()
        save(what, packed, *args, **kwargs)
        with open_(path, "wb") as file:
            file.write(packed.getvalue())

    torch.save = saved  # type: ignore[assignment]


# ---------------------------------------------------------------- what is left

_STAMP = re.compile(r"\d{4}-?\d\d-?\d\d[-_ T]?\d\d[-:]?\d\d[-:]?\d\d(\.\d+)?|(?<!\d)1[6-9]\d{8}(?!\d)")
_NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+|nan|inf")


def left(folder: Path) -> dict[str, Any]:
    """The files of a folder by their paths without time stamps, each with what it holds."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = _STAMP.sub("STAMP", path.relative_to(folder).as_posix())
        if "__pycache__" in path.parts:
            continue
        while name in found:
            name += " again"
        found[name] = _held(path)
    return found


def _held(path: Path) -> Any:
    if path.is_symlink():
        return "link to " + _STAMP.sub("STAMP", os.readlink(path))
    if path.is_dir():
        return "folder"
    if path.suffix in (".py", ".zip", ".gz", ".tar"):
        return "file"  # the program itself
    data = path.read_bytes()
    try:
        if ".pt" in path.suffixes:
            return torch.load(path, weights_only=False)
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=True)
        if path.suffix == ".npz":
            return dict(np.load(path, allow_pickle=True))
        if path.suffix == ".pkl":
            return pickle.loads(data)
        text = data.decode()
    except (ValueError, EOFError, RuntimeError, pickle.UnpicklingError, struct.error) as error:
        return f"{type(error).__name__}: {len(data)} bytes"
    numbers = [float(n) for n in _NUMBER.findall(text)]
    return [_NUMBER.sub("#", _STAMP.sub("STAMP", text)), numbers]


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """How the files of two runs differ."""
    found = [f"{n} is not there" for n in one if n not in other]
    found += [f"{n} is there" for n in other if n not in one]
    return found + [f"{n}: {w}" for n in one if n in other and (w := _apart(one[n], other[n]))]


def _apart(a: Any, b: Any) -> str:
    if isinstance(a, torch.Tensor | np.ndarray) and isinstance(b, torch.Tensor | np.ndarray):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{x.dtype} {x.shape} and {y.dtype} {y.shape}"
        near = np.allclose(x, y, rtol=1e-5, atol=1e-7) if x.dtype.kind in "fiub" else bool((x == y).all())
        return "" if near else f"values of {x.shape} differ"
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return f"{list(a)} and {list(b)}"
        return next((f"[{k!r}] {w}" for k in a if (w := _apart(a[k], b[k]))), "")
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            return f"{len(a)} and {len(b)} items"
        return next((w for x, y in zip(a, b, strict=True) if (w := _apart(x, y))), "")
    if isinstance(a, float | int) and isinstance(b, float | int):
        return "" if a == b or abs(a - b) <= 1e-4 * (1 + abs(a)) or (a != a and b != b) else f"{a} and {b}"
    if isinstance(a, str) and isinstance(b, str):
        return "" if a == b else f"{a[:400]!r} and {b[:400]!r}"
    return "" if type(a) is type(b) and bool(a == b) else f"{a!r} and {b!r}"
