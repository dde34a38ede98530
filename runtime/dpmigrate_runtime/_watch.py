"""How the ranks learn where the others are when a collective fails: through the group's store.

Nobody writes there as long as all is well. A rank whose collective has failed asks; a thread of
each other rank answers, whatever its main thread waits for or computes. A rank that ends, by an
exception or otherwise, leaves a last word. The thread ends in ``cleanup`` or when the interpreter
exits: a thread that is inside torch while the interpreter goes away aborts the process
(pytorch/pytorch#179291).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import threading
import time
from types import TracebackType
from typing import Any, Final

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

from ._places import HERE, line_of, sentence
from ._state import STATE, rank, wire, world_size

#: seconds between two looks at whether somebody asks; more where many ranks look at one store
TICK: Final = 0.5
_RANKS_PER_SECOND: Final = 256
#: part of the timeout after which a rank that waits under NCCL says so: at its end NCCL ends the
#: process, without an exception
_NEARLY: Final = 0.9
#: seconds for which a rank at its end waits before it asks where the others are
_PATIENCE: Final = 2.0
#: how the sentence of a rank begins that waits for nobody
_AT_WORK: Final = "is at "
#: what torch says when the connection to another rank is lost, or the time is up
_LOST: Final = re.compile(
    "gloo/transport|Connection (was likely )?(closed|reset)|Timed out waiting|Broken pipe|NCCL"
    # gloo says so, without the place in its source, where another wait has closed the connection
    "|Application timeout caused pair closure"
)


class LostRankError(RuntimeError):
    """A collective has failed. The message says where each rank is."""


class Watch:
    """One rank's thread, and what it says in the store.

    ``timeout``: of the group, in seconds. ``aborts``: after it the process is ended without an
    exception, so this thread has to speak before.
    """

    def __init__(self, store: Any, timeout: float, aborts: bool) -> None:
        self.store = store
        self.rank, self.world, self.timeout = rank(), world_size(), timeout
        self.aborts = aborts
        self.tick = max(TICK, self.world / _RANKS_PER_SECOND)
        self.last_word = ""
        self.warned = False
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, name="dpmigrate watch", daemon=True)
        self.process = os.getpid()
        self.thread.start()

    def _run(self) -> None:
        while not self.ending.wait(self.tick):
            try:
                if self.store.check(["asked"]):
                    self._answer()
                if self.aborts and not self.warned:
                    self._warn()
            except RuntimeError:
                return  # the store is gone with the process that kept it

    def _answer(self) -> None:
        self.store.set(str(self.rank), self.last_word or sentence())

    def _warn(self) -> None:
        now = HERE.now
        if now is None or not now.waiting:
            return
        if time.monotonic() - now.since > _NEARLY * self.timeout:
            self.warned = True
            _say(f"rank {self.rank} has waited long in {now.where}. {self.places()}")

    def places(self) -> str:
        """Where all ranks are, a line each. Waits a moment for their answers."""
        others = [number for number in range(self.world) if number != self.rank]
        told = {self.rank: self.last_word or sentence()}
        try:
            self._answer()
            self.store.set("asked", "1")
            deadline = time.monotonic() + 2 * self.tick + 1
            while time.monotonic() < deadline:
                if self.store.check([str(number) for number in others]):
                    break
                time.sleep(0.05)
            for number in others:
                if self.store.check([str(number)]):
                    told[number] = self.store.get(str(number)).decode()
            silent = "does not answer: it is gone, or in code that lets no other thread run"
        except RuntimeError:
            silent = "cannot be asked: the group's store is gone, with rank 0 or the launcher"
        lines = [f"\n  rank {number} {told.get(number) or silent}" for number in range(self.world)]
        return "The ranks:" + "".join(lines)

    def wait_for_all(self) -> None:
        """Wait until every rank has come here, longer than the timeout of the group where one is
        still at work: rank 0 may have an evaluation of its own, or show a figure. Comes back early
        where another rank waits for this one elsewhere, has left, or says nothing for the timeout.
        """
        others = [number for number in range(self.world) if number != self.rank]
        pause, heard = 0.001, time.monotonic()
        look = heard + _PATIENCE
        with contextlib.suppress(RuntimeError):  # the store is gone
            self.store.set(f"end {self.rank}", "1")
            while not self.store.check([f"end {number}" for number in others]):
                time.sleep(pause)
                pause = min(2 * pause, self.tick)
                if time.monotonic() > look:
                    said = self._late(others)
                    if any(words and not words.startswith(_AT_WORK) for words in said):
                        return
                    heard = time.monotonic() if all(said) else heard
                    if time.monotonic() - heard > self.timeout:
                        return
                    look = time.monotonic() + _PATIENCE

    def _late(self, others: list[int]) -> list[str]:
        """What those say now that are not at the end of the program yet; '' of who is silent."""
        return self._said_by([number for number in others if not self.store.check([f"end {number}"])])

    def is_at_work(self, number: int) -> bool:
        """Whether a rank says that it waits for nobody."""
        try:
            (said,) = self._said_by([number])
        except RuntimeError:  # the store is gone
            return False
        return said.startswith(_AT_WORK)

    def _said_by(self, numbers: list[int]) -> list[str]:
        """What ranks say now; '' of who is silent."""
        for number in numbers:
            self.store.set(str(number), "")
        self.store.set("asked", "1")
        time.sleep(2 * self.tick)
        return [self.store.get(str(number)).decode() for number in numbers]

    def leave(self, how: str) -> None:
        """A last word, for those who ask later. The first one stays."""
        if self.last_word:
            return
        self.last_word = sentence(how)
        # who has no store left has nobody left who could read it
        with contextlib.suppress(RuntimeError):
            self._answer()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self.ending.set()
        self.thread.join(timeout=10)


def begin(timeout: float) -> None:
    """Start the thread of this rank. Every rank of the group has to."""
    store = _get_default_store()
    if hasattr(store, "clone"):
        # one thread that waits on a connection blocks it for the other (older torch has no clone)
        store = store.clone()
    store = PrefixStore(f"dpmigrate/places/{STATE.watches}", store)
    STATE.watch = Watch(store, timeout, wire().type == "cuda")
    STATE.watches += 1
    if STATE.watches == 1:
        atexit.register(_at_exit)
        sys.excepthook = _Hook(sys.excepthook)


def end(how: str = "") -> None:
    """Stop the thread of this rank, if it has one, and leave word how the rank ended."""
    watch, STATE.watch = _own(), None
    if watch is not None:
        watch.leave(how)
        watch.stop()


def wait_for_all() -> None:
    """Wait until all ranks are at the end of the program; at once where nobody watches."""
    watch = _own()
    if watch is not None:
        watch.wait_for_all()


def is_at_work(number: int) -> bool:
    """Whether a rank says that it is at work and waits for nobody; False where nobody watches."""
    watch = _own()
    return watch is not None and watch.is_at_work(number)


def _own() -> Watch | None:
    """This process's. A forked one has a copy of its parent's, whose connection it must not use."""
    watch = STATE.watch
    return watch if watch is not None and watch.process == os.getpid() else None


def _at_exit() -> None:
    end("has ended")


def lost(error: BaseException) -> LostRankError:
    """What to raise when torch has failed in an exchange: where this rank waited, where all are."""
    now = HERE.now
    name = "a collective" if now is None else now.where
    return LostRankError(f"{name} failed: {_first_line(error)}. {where_all_are()}")


def where_all_are() -> str:
    """Where all ranks are, a line each; '' where ``setup`` was told not to watch."""
    watch = _own()
    return "" if watch is None else watch.places()


def _first_line(error: BaseException) -> str:
    """Of torch's error, without the place in its source: ``Connection closed by peer``."""
    line = re.sub(r"^\[/.*?\] ", "", (str(error).splitlines() or [""])[0])
    return line.partition(" This is typically caused")[0].rstrip(".")[:200]


def is_lost(error: BaseException) -> bool:
    """Whether torch says that another rank is gone or did not come, as in a backward pass."""
    if isinstance(error, LostRankError) or not isinstance(error, RuntimeError):
        return False
    return isinstance(error, dist.DistError) or bool(_LOST.search(str(error)))


class _Hook:
    """``sys.excepthook``: leaves word of the exception; says where all are if a rank is lost."""

    def __init__(self, previous: Any) -> None:
        self.previous = previous

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        watch = _own()
        if isinstance(error, LostRankError) and watch is not None:
            watch.leave("has given up waiting")
        elif watch is not None:
            what = f"{kind.__name__}: {_first_line(error)}".removesuffix(": ")
            watch.leave(f"has ended by {what}, at {line_of(None, trace)}")
        self.previous(kind, error, trace)
        if watch is not None and is_lost(error):
            _say(f"another rank is gone, or did not come. {watch.places()}")


def _say(text: str) -> None:
    print(f"dpmigrate: {text}", file=sys.stderr, flush=True)
