"""Programs of ``random_steps``, migrated, and run before and after: what a migration changes of a training must be said.

``python -m tests.judge.step_runs --count 200`` prints the programs whose migration trains otherwise without a word, those
that end otherwise, and those that are refused. Original and result have the same weights and the same global batches, and what is drawn for
each sample is drawn by what is in it. A second run of the result, in which each rank draws numbers of its own, must leave
all ranks with equal parameters.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import os
import pickle
import random
import re
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils.data

from dpmigrate import engine
from dpmigrate.model import Status, blockers, left
from dpmigrate.plans import Writing
from dpmigrate.settings import Settings
from tests.judge.random_steps import program

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
#: seconds after which a run is taken to hang
LIMIT = 60.0
#: how far parameters may lie apart, and how large they may be where they are compared at all
NEAR = 1e-8
GROWN = 1e3


@dataclass(slots=True)
class Ran:
    """What one process has left: the parameters of its optimizers, what it printed, and its exception."""

    parameters: list[Any] = field(default_factory=list)
    printed: str = ""
    error: str = ""


# ---------------------------------------------------------------- in the process of a rank


def _order(size: int, number: int) -> list[int]:
    generator = torch.Generator().manual_seed(1000 + number)
    return torch.randperm(size, generator=generator).tolist()


class Alike:
    """Makes orders and draws those of the samples, however these are divided."""

    def __init__(self) -> None:
        self.passes: Counter[int] = Counter()
        self.batch: Any = None
        self.drawn = 0

    def next_order(self, data: Any) -> list[int]:
        """The order of the next pass over a data set."""
        self.passes[id(data)] += 1
        return _order(len(data), self.passes[id(data)])

    def rows(self, size: tuple[int, ...]) -> Any:
        """Numbers for the samples of the batch, by what is in them."""
        base = self.batch
        sums = base.detach().reshape(len(base), -1).sum(1)
        more = 1
        for n in size[1:]:
            more *= n
        wave = torch.arange(1, more + 1, dtype=sums.dtype)
        return torch.sin(sums[:, None] * 977.0 * wave[None] + wave[None]).reshape(size)

    def install(self) -> None:
        """Replace what draws by the batch, and the orders of samplers."""
        alike = self
        torch.utils.data.RandomSampler.__iter__ = lambda s: iter(alike.next_order(s.data_source))  # type: ignore[method-assign]

        def dealt(s: Any) -> Any:
            order = alike.next_order(s.dataset) if s.shuffle else list(range(len(s.dataset)))
            if s.drop_last:
                order = order[: s.total_size]
            else:
                order += order[: s.total_size - len(order)]
            return iter(order[s.rank : s.total_size : s.num_replicas])

        torch.utils.data.DistributedSampler.__iter__ = dealt  # type: ignore[method-assign]
        fetch = torch.utils.data.dataloader._SingleProcessDataLoaderIter._next_data

        def next_data(s: Any) -> Any:
            made = fetch(s)
            alike.batch = made[0] if isinstance(made, list | tuple) else made
            return made

        torch.utils.data.dataloader._SingleProcessDataLoaderIter._next_data = next_data  # type: ignore[method-assign]
        for name in ("randn_like", "rand_like"):
            old = getattr(torch, name)
            setattr(torch, name, _like(alike, old, name == "rand_like"))
        for name in ("randn", "rand"):
            old = getattr(torch, name)
            setattr(torch, name, _sized(alike, old, name == "rand"))


def _like(alike: Alike, old: Any, positive: bool) -> Any:
    def draw(given: Any, **more: Any) -> Any:
        if alike.batch is None or given.dim() == 0 or len(given) != len(alike.batch):
            return old(given, **more)
        made = alike.rows(tuple(given.shape))
        return (made + 1) / 2 if positive else made

    return draw


def _sized(alike: Alike, old: Any, positive: bool) -> Any:
    def draw(*size: Any, **more: Any) -> Any:
        shape = tuple(size[0]) if size and isinstance(size[0], tuple | list | torch.Size) else tuple(size)
        if alike.batch is None or not shape or shape[0] != len(alike.batch):
            return old(*size, **more)
        made = alike.rows(shape)
        return (made + 1) / 2 if positive else made

    return draw


def _kept_streams() -> None:
    """``seed_ranks`` leaves every rank the stream of rank 0."""
    import dpmigrate_runtime as ddp
    from dpmigrate_runtime import _seeds

    real = _seeds.seed_ranks

    def seed_ranks() -> None:
        state = torch.get_rng_state(), random.getstate(), np.random.get_state()
        real()
        torch.set_rng_state(state[0])
        random.setstate(state[1])
        np.random.set_state(state[2])

    _seeds.seed_ranks = ddp.seed_ranks = seed_ranks


def _run(text: str, *, own_streams: bool, folder: str) -> Ran:
    out = Ran()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    Alike().install()
    if "dpmigrate_runtime" in text:
        sys.path.insert(0, str(RUNTIME))
        if not own_streams:
            _kept_streams()
    kept: list[list[Any]] = []
    begin = torch.optim.Optimizer.__init__

    def init(self: Any, *given: Any, **more: Any) -> None:
        begin(self, *given, **more)
        kept.append([p for g in self.param_groups for p in g["params"]])

    torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]
    os.chdir(folder)
    sys.argv = ["train.py"]
    path = os.path.join(folder, "train.py")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(text, path, "exec"), {"__name__": "__main__", "__file__": path})
    except BaseException:
        out.error = traceback.format_exc(limit=-4)
    out.parameters = [[p.detach().numpy().tolist() for p in one] for one in kept]
    out.printed = printed.getvalue()
    return out


# ---------------------------------------------------------------- in the process of the tests


def _port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def run(text: str, world: int, *, own_streams: bool = False) -> list[Ran]:
    """A program at so many ranks, each a fork of this process."""
    with tempfile.TemporaryDirectory(prefix="dpm-steps-") as folder:
        port = _port()
        children: list[int] = []
        for rank in range(world):
            pid = os.fork()
            if pid == 0:
                _child(text, rank, world, port, folder, own_streams)
            children.append(pid)
        _wait(children)
        out = []
        for rank in range(world):
            try:
                out.append(pickle.loads((Path(folder) / f"rank{rank}.pickle").read_bytes()))
            except OSError:
                out.append(Ran(error="no end: it hangs, or was killed"))
        return out


def _child(text: str, rank: int, world: int, port: int, folder: str, own_streams: bool) -> None:
    status = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        if world > 1:
            told = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            os.environ.update({k: str(v) for k, v in told.items()})
        made = _run(text, own_streams=own_streams, folder=folder)
        (Path(folder) / f"rank{rank}.pickle").write_bytes(pickle.dumps(made))
        status = 0
    finally:
        os._exit(status)


def _wait(children: list[int]) -> None:
    end = time.monotonic() + LIMIT
    waiting = set(children)
    while waiting and time.monotonic() < end:
        for pid in list(waiting):
            if os.waitpid(pid, os.WNOHANG)[0]:
                waiting.discard(pid)
        time.sleep(0.01)
    for pid in waiting:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _apart(a: Any, b: Any) -> float:
    """How far the parameters of two runs lie apart."""
    if [len(one) for one in a] != [len(one) for one in b]:
        return float("inf")
    worst = 0.0
    for one, other in zip(a, b, strict=True):
        for p, q in zip(one, other, strict=True):
            d = float(np.max(np.abs(np.array(p) - np.array(q)), initial=0.0))
            worst = max(worst, d if d == d else float("inf"))
    return worst


_NUMBER = re.compile(r"-?\d+\.\d+|-?\d+")


def _printed_alike(a: str, b: str) -> bool:
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(abs(float(p) - float(q)) < 2e-3 for p, q in pairs)


@dataclass(slots=True)
class Verdict:
    """What became of a program."""

    kind: str
    words: str = ""
    after: str = ""
    told: tuple[str, ...] = ()


def migrated(text: str) -> tuple[str | None, str, tuple[str, ...]]:
    """The result, or why there is none; and what the user is told."""
    (outcome,) = engine.apply([("train.py", text.encode())], Settings(), Writing(write=False))
    told = (*(f"{f.code} {f.message}" for f in left(outcome.findings)), *outcome.notes)
    if outcome.status is Status.CHANGED:
        return outcome.files[0].after, "", told
    why = outcome.reason or (outcome.problem.message if outcome.problem else "")
    if outcome.status is Status.REFUSED:
        why = "; ".join([*(f"{f.code} line {f.span.line}: {f.message}" for f in blockers(outcome.findings)), *([why] if why else [])])
    return None, f"{outcome.status.name}: {why}", told


#: draws of numbers that are not shaped by the batch
_DRAWS = re.compile(r"(?<!torch\.)\brandom\.(?!seed)(?!rand\b\()")
#: what of the words that a user is told says that the training itself may be another one
SAID = re.compile(r"DPM303|DPM305|DPM331|Not established|goes by numbers of rank 0's part")


def judged(seed: int, spoilt: Callable[[str], str] = str) -> Verdict:
    """A program migrated and run at two or three ranks; ``spoilt`` may change the result before."""
    worlds = (2 + seed % 4 // 3,)
    text = program(seed)
    after, why, told = migrated(text)
    if after is None:
        return Verdict("refused", why, told=told)
    (original,) = run(text, 1)
    if original.error:
        return Verdict("broken", original.error, after, told)
    if any(not np.all(np.abs(p) < GROWN) for one in original.parameters for p in one):
        return Verdict("grown", "", after, told)  # the smallest difference grows as fast
    after = spoilt(after)
    for world in worlds:
        ranks = run(after, world)
        errors = [r.error for r in ranks if r.error]
        if errors:
            return Verdict("crashed", errors[0], after, told)
        far = _apart(original.parameters, ranks[0].parameters)
        between = max(_apart(ranks[0].parameters, r.parameters) for r in ranks)
        if between > NEAR:
            return Verdict("parted", f"{world} ranks, {between:.2g} apart", after, told)
        if far > NEAR:
            said = [t for t in told if SAID.search(t)]
            return Verdict("told" if said else "wrong", f"{world} ranks, {far:.2g} from the original", after, told)
        if not _printed_alike(original.printed, ranks[0].printed) and not any("rank 0" in t for t in told):
            return Verdict("tells", f"{world} ranks: {original.printed!r} {ranks[0].printed!r}", after, told)
    if not _DRAWS.search(after):
        return Verdict("right", after=after, told=told)
    own = run(after, worlds[0], own_streams=True)
    errors = [r.error for r in own if r.error]
    if errors:
        return Verdict("crashed", "own streams: " + errors[0], after, told)
    between = max(_apart(own[0].parameters, r.parameters) for r in own)
    if between > NEAR:
        return Verdict("parted", f"own streams, {between:.2g} apart", after, told)
    return Verdict("right", after=after, told=told)


#: what is a fault of the tool
WRONG = ("wrong", "parted", "crashed", "tells")


def _load() -> None:
    """Import here what each of the forked processes would import."""
    sys.path.insert(0, str(RUNTIME))
    for name in ("torch._dynamo", "torch.distributed.nn.functional", "torch.nn.parallel.distributed", "dpmigrate_runtime"):
        importlib.import_module(name)

    gc.freeze()  # a collection in a fork would copy the memory of all that is imported


def main() -> None:
    """Judge many programs and print those that go wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="*")
    parser.add_argument("--show", action="store_true", help="the texts of programs as well")
    parser.add_argument("--without", help="a function of the runtime that is taken out of the results: what is wrong then has to be found")
    parser.add_argument("--out", type=Path, help="a folder for the texts of programs that are not right")
    args = parser.parse_args()
    _load()
    counts: Counter[str] = Counter()
    for seed in args.seeds or range(args.first, args.first + args.count):
        v = judged(seed, lambda text: text.replace(f"ddp.{args.without}(", "(") if args.without else text)
        counts[v.kind] += 1
        if v.kind != "right" or args.show:
            print(f"{seed} {v.kind}: {v.words}", flush=True)
            for t in v.told if v.kind in (*WRONG, "told") else ():
                print(f"      said: {t[:300]}", flush=True)
            if args.out is not None:
                args.out.mkdir(exist_ok=True)
                (args.out / f"{seed}.{v.kind}.py").write_text(program(seed) + (f"\n\n# ------------- after\n{v.after}" if v.after else ""))
    print(dict(counts))
    sys.exit(any(counts[kind] for kind in WRONG))


if __name__ == "__main__":
    main()
