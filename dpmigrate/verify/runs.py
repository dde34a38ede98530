"""One run of one side: its processes, their time and memory, where they hang, and the records that the probe leaves."""

from __future__ import annotations

import contextlib
import json
import os
import re
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
    origin: str  # the user's folder that root is a copy of
    script: str
    folder: str  # where it is started
    ranks: int  # 0: plain Python
    steps: int | None = None
    epochs: int | None = None
    float64: bool = True
    still: bool = True  # no dropout, no statistics of a batch, augmentation and noise by the sample
    cpu: bool = True
    module: str = ""  # what python -m calls the script, where it is started so
    start: str = ""  # what the run that went first has left: the weights to start from, and what to compare with
    replay: list[tuple[str, int, bool, list[list[int]], str]] = field(default_factory=list)


@dataclass(frozen=True)
class Ran:
    """What came of a run. ``records`` by rank; a rank that left none is missing."""

    folder: Path
    code: int
    seconds: float
    stdout: tuple[str, ...]
    stderr: str
    records: tuple[dict[str, Any], ...]
    stacks: tuple[str, ...] = ()  # where each rank stood when the time was over
    left: tuple[str, ...] | None = ()  # commands of processes that outlived the program; None where they cannot be looked for
    exits: tuple[tuple[int, int], ...] = ()  # rank and exit code of those that failed by themselves; minus the signal's number

    @property
    def late(self) -> bool:
        return bool(self.stacks)


def run(arguments: Sequence[str], config: Config, *, timeout: float, paths: Sequence[Path] = (), watch: Callable[[int], None] | None = None) -> Ran:
    """Run the script with the probe inside; ``paths`` are put on PYTHONPATH.

    ``watch`` hears how many optimizer steps are done. After ``timeout`` seconds the stacks are taken and all is ended.
    """
    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(asdict(config)), encoding="utf-8")
    program = ["-m", config.module] if config.module else [os.path.relpath(config.script, config.folder)]
    logs = out / "logs"
    launcher = _launcher(config.ranks, logs) if config.ranks else []
    command = [sys.executable, *launcher, *program, *arguments]
    began = time.monotonic()
    stacks: tuple[str, ...] = ()
    last = _LastToGo(out, config.ranks)
    with (out / "stdout.txt").open("w") as stdout, (out / "stderr.txt").open("w") as stderr:
        process = subprocess.Popen(command, cwd=config.folder, env=environment(config, paths), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        try:
            while process.poll() is None:
                if time.monotonic() - began > timeout:
                    stacks = _stacks(out)
                    break
                if last.hangs():
                    process.kill()
                    break
                if watch is not None:
                    watch(_size(out / "progress0"))
                time.sleep(0.05)
            seconds = time.monotonic() - began
            left = None if stacks else _outliving(out)
        finally:
            process.kill()
            process.wait()
            _end(out)
    texts = [p.read_text(errors="replace") for p in sorted(logs.rglob("stdout.log"))] if config.ranks else [(out / "stdout.txt").read_text(errors="replace")]
    of_ranks = sorted((p.read_text(errors="replace") for p in sorted(logs.rglob("stderr.log"), reverse=True)), key=_by_itself)
    launched = (out / "stderr.txt").read_text(errors="replace")
    errors = launched + "".join(of_ranks)
    code = 0 if last.hung else process.returncode
    exits = _exits(launched) if config.ranks else ((0, code),) if code else ()
    records = tuple(json.loads(p.read_text()) for p in sorted(out.glob("rank*.json")))
    return Ran(out, code, seconds, tuple(texts), errors, records, stacks, left, exits)


def _launcher(ranks: int, logs: Path) -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", f"--log-dir={logs}", "--redirects=3"]


#: seconds that torchrun may take to end when all ranks are gone
LAUNCHER_ENDS = 20


class _LastToGo:
    """Sees that the launcher is still there long after every rank has finished and is gone.

    It waits for agents of other machines up to 300 s, and sometimes for itself
    (torch.distributed.elastic.agent.server, ``exit_barrier_timeout``).
    """

    def __init__(self, out: Path, ranks: int) -> None:
        self._out = out
        self._ranks = ranks
        self._since: float | None = None
        self.hung = False

    def hangs(self) -> bool:
        """Whether that is so; asked again and again while the launcher is there."""
        if not self._ranks or not self._recorded():
            return False
        if self._since is None:
            self._since = time.monotonic()
        late = time.monotonic() - self._since > LAUNCHER_ENDS
        self.hung = late and _SEEN.exists() and self._finished() and not _processes(self._out, b"\0RANK=")
        return self.hung

    def _recorded(self) -> bool:
        return all((self._out / f"rank{rank}.json").exists() for rank in range(self._ranks))

    def _finished(self) -> bool:
        with contextlib.suppress(ValueError):  # a record that is being written
            return all(json.loads(p.read_text()).get("ended") for p in self._out.glob("rank*.json"))
        return False


#: a process in torchrun's list of failures
_FAILED = re.compile(r"^\s*rank\s*:\s*(\d+)\b.*\n\s*exitcode\s*:\s*(-?\d+)", re.MULTILINE)


def _exits(launched: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(rank), int(code)) for rank, code in _FAILED.findall(launched))


#: what a rank says whose partner is gone
_LOST = re.compile(r"closed by peer|reset by peer|Broken pipe|remote process exited|Timed out waiting|Connection refused|wait timeout", re.IGNORECASE)


def _by_itself(errors: str) -> int:
    """How much a rank has to say of a failure, its own last: one that lost its partner says only that."""
    end = errors[errors.rfind("Traceback") :] if "Traceback" in errors else ""
    return 2 if end and not _LOST.search(end) else bool(end)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def environment(config: Config, paths: Sequence[Path]) -> dict[str, str]:
    """The user's environment without what a launcher may have left, one thread a process."""
    left = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "DPMIGRATE_PROBED")
    kept = {k: v for k, v in os.environ.items() if k not in left and not k.startswith("TORCHELASTIC_")}
    search = [str(INJECT), *map(str, paths), *map(os.path.abspath, filter(None, kept.get("PYTHONPATH", "").split(os.pathsep)))]
    added = {
        "DPMIGRATE_PROBE": str(Path(config.out, "config.json")),
        "PYTHONPATH": os.pathsep.join(p for p in search if p),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        # else a GPU rounds float32 to the 10 bits of TF32 in convolutions, in other ways for other sizes of a batch
        "NVIDIA_TF32_OVERRIDE": "0",
        "MPLBACKEND": "Agg",
        "WANDB_MODE": "disabled",
    }
    if config.cpu:
        added["CUDA_VISIBLE_DEVICES"] = ""
    return kept | added


# ---------------------------------------------------------------- the processes of a run, known by the folder in their environment; on Linux
#: where the environment of a process can be seen
_SEEN = Path("/proc/self/environ")


def _processes(out: Path, beside: bytes = b"") -> list[int]:
    """The processes of a run, or those that have something else in their environment beside."""
    mark = f"DPMIGRATE_PROBE={out / 'config.json'}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            given = (entry / "environ").read_bytes()
            if mark in given and beside in given and b") Z " not in (entry / "stat").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _outliving(out: Path) -> tuple[str, ...] | None:
    """The commands of processes that are still there a little after the program's end."""
    if not _SEEN.exists():
        return None
    for _ in range(30):
        left = _processes(out)
        if not left:
            return ()
        time.sleep(0.1)
    return tuple(_command(pid) for pid in left)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return f"process {pid}"


def _end(out: Path) -> None:
    """Kill what is left and wait until it is gone: the scratch copy is deleted next."""
    for _ in range(50):
        left = _processes(out)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _stacks(out: Path) -> tuple[str, ...]:
    """Ask every process that the probe is in for its stack."""
    if not hasattr(signal, "SIGUSR1"):
        return ("(stacks are not available on this system)",)
    for pid in _processes(out):
        if any(str(out / "stack") in link for link in _open_files(pid)):  # others would be ended by the signal
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
    time.sleep(0.5)
    found = tuple(p.read_text(errors="replace").strip() for p in sorted(out.glob("stack*.txt")))
    return found or ("(no process left a stack)",)


def _open_files(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(entry))
    return found
