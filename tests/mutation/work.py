"""Spreads the mutants over processes; each result is handed on as soon as it is there."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.mutation import running, static
from tests.mutation.mutants import Described, mutants
from tests.mutation.outcomes import Outcome, Result
from tests.mutation.subjects import Key, Subject, keys, opened


@dataclass(frozen=True)
class Choice:
    """Which mutants are asked for. Empty ``kinds`` and ``cases`` choose all; ``done`` are left out.

    ``shard`` is the part (from 1) of so many; it goes by the ids, so that it is the same on every machine.
    """

    kinds: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    shard: tuple[int, int] = (1, 1)
    ids: frozenset[str] | None = None
    done: frozenset[str] = frozenset()

    def has(self, said: Described) -> bool:
        """Whether the mutant is asked for."""
        number, of = self.shard
        return (
            (not self.kinds or any(kind in said.kind for kind in self.kinds))
            and zlib.crc32(said.id.encode()) % of == number - 1
            and (self.ids is None or said.id in self.ids)
            and said.id not in self.done
        )

    def programs(self) -> list[Key]:
        """The programs that may hold one."""
        found = [key for key in keys() if not self.cases or key.case in self.cases]
        if self.ids is None:
            return found
        return [key for key in found if any(i.startswith(f"{key}:") for i in self.ids)]


# --------------------------------------------------------------------- in the processes
def described(key: Key, choice: Choice) -> list[Described]:
    """The mutants of a program, by their descriptions; those that will be dropped among them."""
    with opened(key) as subject:
        return [m.described for m in mutants(subject) if choice.has(m.described)]


def judged(key: Key, choice: Choice) -> list[Result]:
    """The static stage of a program."""
    try:
        with opened(key) as subject:
            wanted = {m.described.id for m in mutants(subject) if choice.has(m.described)}
            return list(map(_portable, static.judged(subject, wanted))) if wanted else []
    except Exception as error:  # one program must not end the work on the others
        return [_error(key, f"{key}:static", error)]
    except _Ended:
        os._exit(1)


def tried(key: Key, id: str, timeout: float) -> list[Result]:
    """The run stage of one mutant, or of the control of its program."""
    try:
        return [_portable(running.tried(_kept(key), id, timeout))]
    except Exception as error:
        return [_error(key, id, error)]
    except _Ended:  # the proof has ended its processes
        close()
        os._exit(1)


_open: tuple[Key, Subject, contextlib.ExitStack] | None = None


def _kept(key: Key) -> Subject:
    """The program, open until another one is asked for: its mutants come one after the other."""
    global _open
    if _open is None or _open[0] != key:
        close()
        stack = contextlib.ExitStack()
        _open = key, stack.enter_context(opened(key)), stack
    return _open[1]


def close() -> None:
    """Remove the folder of the program that is open, if one is."""
    global _open
    if _open is not None:
        _open[2].close()
        _open = None


def _portable(result: Result) -> Result:
    """The result without the name of the temporary folder."""
    return replace(result, why=result.why.replace(f"{Path.cwd()}/", ""))


def _error(key: Key, id: str, error: Exception) -> Result:
    said = Described(id, key.case, key.script, "", "error", "error", "", "")
    return Result(said, Outcome.ERROR, f"{type(error).__name__}: {error}")


#: seconds in which a process that is told to end removes its folder and ends what it has started
LAST = 10.0


class _Ended(BaseException):
    """This process is to end, and what it has started with it."""


def _begin() -> None:
    """A process of the pool ends when it is told to, and when the one that started it is gone."""

    def end(number: int, frame: object) -> None:
        # what is under way may swallow the exception: a finalizer, a callback of a library
        last = threading.Timer(LAST, os._exit, (1,))
        last.daemon = True
        last.start()
        raise _Ended

    def watch(parent: BaseProcess) -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started it hears it, and tells it
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=watch, args=(parent,), daemon=True).start()


# --------------------------------------------------------------------- over the processes
@contextlib.contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Processes that share nothing: each has a current folder of its own. They end when the block is left, also by an interrupt."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=spawn, initializer=_begin) as pool:
        try:
            yield pool
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def all_described(pool: Executor, choice: Choice) -> list[Described]:
    """Every mutant that is asked for, in one order."""
    wanted = choice.programs()
    return [d for found in pool.map(described, wanted, [choice] * len(wanted)) for d in found]


def static_stage(pool: Executor, choice: Choice) -> Iterator[list[Result]]:
    """The results of the static stage, a program at a time."""
    yield from _each(pool, judged, [(key, choice) for key in choice.programs()])


def run_stage(
    pool: Executor, ids: Iterable[tuple[Key, str]], timeout: float
) -> Iterator[list[Result]]:
    """The results of the run stage, a mutant at a time."""
    try:
        yield from _each(pool, tried, [(key, id, timeout) for key, id in ids])
    finally:
        close()  # where the pool is this process


def _each(
    pool: Executor, function: Callable[..., list[Result]], calls: Sequence[tuple[object, ...]]
) -> Iterator[list[Result]]:
    futures = [pool.submit(function, *call) for call in calls]
    try:
        for future in as_completed(futures):
            if results := future.result():
                yield results
    finally:
        for future in futures:
            future.cancel()


def sampled(of: Sequence[Described], seed: int) -> list[Described]:
    """The mutants in an order by chance, one of each kind before a second one of any; the same for one seed."""
    draw = random.Random(seed)
    kinds: dict[str, list[Described]] = defaultdict(list)
    for said in of:
        kinds[said.kind].append(said)
    groups = [kinds[kind] for kind in sorted(kinds)]
    for group in groups:
        draw.shuffle(group)
    draw.shuffle(groups)
    longest = max(map(len, groups), default=0)
    return [group[turn] for turn in range(longest) for group in groups if turn < len(group)]
