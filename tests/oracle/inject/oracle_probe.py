"""Writes down a fingerprint of each value that a rewritten program hands through it; runs in the
ranks.

Each rank leaves ``seen<R>`` in the folder of the run, one JSON list a line: site, meeting, how many
times the site was come to since that meeting, fingerprint. Lines are written at once, so that a
rank that is killed keeps them. *Meetings* are what all ranks do together (collectives, and forward
passes whose backward DDP averages): between two of them the ranks are compared run by run, so that
one place where they part does not shift all that follows.
"""

from __future__ import annotations

import atexit
import builtins
import functools
import json
import os
import random
import sys
import threading
import zlib
from collections.abc import Iterable
from typing import Any

#: runs of a site between two meetings that are written; the others are counted
KEPT = 48
#: meetings that are all written; of later ones each sixteenth
DENSE = 256
#: what of a container is looked at
DEPTH, ELEMENTS = 3, 32
#: what of a state dictionary is not compared
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
TOGETHER = (
    "all_reduce", "broadcast", "barrier", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "broadcast_object_list", "gather", "reduce", "reduce_scatter_tensor",
    "scatter",
)  # fmt: skip


class Seen:
    """The probe of a rank."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.meeting = 0
        self.counts: dict[
            int, list[int]
        ] = {}  # site -> the meeting of its last run, runs since then
        self.process, self.thread = os.getpid(), threading.get_ident()
        self.busy = self.patched = False

    def begin(self) -> None:
        """The script begins: the random numbers are those of a rank by itself."""
        import torch

        torch.seed()
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()

    def __call__(self, number: int, value: Any) -> Any:
        """A value passes by."""
        torch = sys.modules.get("torch")
        if self.busy or threading.get_ident() != self.thread or os.getpid() != self.process:
            return value
        if torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling():
            return value
        self.busy = True
        try:
            if not self.patched and "torch.nn.parallel.distributed" in sys.modules:
                self.patched = True
                self._count_meetings(torch)
            self._note(number, value)
        finally:
            self.busy = False
        return value

    def _note(self, number: int, value: Any) -> None:
        run = self.counts.setdefault(number, [self.meeting, 0])
        if run[0] != self.meeting:
            self._settle(number, run)
            run[:] = [self.meeting, 0]
        run[1] += 1
        if run[1] <= KEPT and (self.meeting < DENSE or not self.meeting % 16):
            try:
                found = fingerprint(value)
            except Exception as error:  # whatever it is, the program must not see it
                found = f"object {type(value).__name__}: {type(error).__name__}"
            self._write([number, self.meeting, run[1], found])

    def _settle(self, number: int, run: list[int]) -> None:
        if run[1] > KEPT:
            self._write([number, run[0], run[1], None])

    def end(self) -> None:
        """The process ends; what the interpreter still runs, as it flushes its streams, is not
        looked at.
        """
        if os.getpid() == self.process:
            self.busy = True
            for number, run in self.counts.items():
                self._settle(number, run)
            self._write(["end"])

    def _write(self, event: list[Any]) -> None:
        os.write(self.file, (json.dumps(event) + "\n").encode())

    def _count_meetings(self, torch: Any) -> None:
        collectives = sys.modules["torch.distributed.distributed_c10d"]
        for name in TOGETHER:
            plain = getattr(collectives, name)
            counted = self._counted(plain)
            for module in (collectives, torch.distributed):
                if getattr(module, name) is plain:
                    setattr(module, name, counted)
        ddp = torch.nn.parallel.DistributedDataParallel
        forward = ddp.forward

        @functools.wraps(forward)
        def passed(module: Any, *a: Any, **k: Any) -> Any:
            if torch.is_grad_enabled() and module.require_backward_grad_sync and module.training:
                self.meeting += 1
            return forward(module, *a, **k)

        ddp.forward = passed

    def _counted(self, plain: Any) -> Any:
        @functools.wraps(plain)
        def met(*a: Any, **k: Any) -> Any:
            self.meeting += 1
            return plain(*a, **k)

        return met


def fingerprint(value: Any, depth: int = 0) -> str:
    """What is compared of a value. Of what is no plain data it is the type alone, behind the word
    ``object``.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return cut(f"{kind.__name__} {value!r}")
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return tensor(torch, value)
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        if value.dtype.kind not in "biufcSU":
            return f"object {kind.__name__} of {value.dtype}"
        first = ", ".join(map(repr, value.reshape(-1)[:3].tolist()))
        code = zlib.crc32(value.tobytes())
        return f"{kind.__name__} {value.dtype}{list(value.shape)} ({first}) {code:08x}"
    if isinstance(value, list | tuple | dict | set | frozenset):
        return container(value, kind.__name__, depth)
    if kind.__module__.partition(".")[0] in ("pathlib", "datetime", "decimal") or kind in (
        range,
        slice,
    ):
        return cut(f"{kind.__name__} {value}")
    if kind.__module__ in ("argparse", "types") and kind.__name__ in (
        "Namespace",
        "SimpleNamespace",
    ):
        return container(vars(value), kind.__name__, depth)
    return f"object {kind.__module__}.{kind.__qualname__}"


def tensor(torch: Any, value: Any) -> str:
    """Type, shape, the first numbers, and a checksum of all bytes."""
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        flat = value.detach().contiguous().reshape(-1)
        first = ", ".join(
            f"{x:.6g}" if isinstance(x, float) else repr(x) for x in flat[:3].tolist()
        )
        code = zlib.crc32(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else 0
    return f"tensor {str(value.dtype)[6:]}{list(value.shape)} ({first}) {code:08x}"


def container(value: Any, name: str, depth: int) -> str:
    """The elements of a container one by one, those of a set in an order of their own."""
    if depth >= DEPTH:
        return f"{name} of {len(value)}"
    elements: Iterable[Any] = value
    if isinstance(value, dict):
        elements = (x for pair in dict.items(value) if not _statistic(pair[0]) for x in pair)
    found = [fingerprint(x, depth + 1) for x, _ in zip(elements, range(ELEMENTS), strict=False)]
    if isinstance(value, set | frozenset):
        found = sorted(found) if len(value) <= ELEMENTS else []
    return cut(f"{name} of {len(value)}: " + "; ".join(found))


def _statistic(key: Any) -> bool:
    """Whether it names statistics of BatchNorm, which every rank has of its own batches until DDP
    takes rank 0's.
    """
    return isinstance(key, str) and key.endswith(STATISTICS)


def cut(text: str) -> str:
    """A long text by its beginning and a checksum."""
    return (
        text
        if len(text) <= 160
        else f"{text[:120]}... {zlib.crc32(text.encode('utf-8', 'replace')):08x}"
    )


def install() -> None:
    """In a rank of a run that ``dpmigrate verify`` describes."""
    described, rank = os.environ.get("DPMIGRATE_PROBE"), os.environ.get("RANK")
    if described and rank is not None and not os.environ.get("DPMIGRATE_PROBED"):
        probe = Seen(os.path.join(os.path.dirname(described), f"seen{rank}"))
        atexit.register(probe.end)
        vars(builtins).update(_oracle_seen_=probe, _oracle_begin_=probe.begin)
