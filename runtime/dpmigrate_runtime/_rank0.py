"""What only rank 0 does, or does first."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from torch.distributed.distributed_c10d import _get_default_store

from ._places import meeting
from ._seeds import packed_streams, take_streams
from ._state import STATE, alone, is_main
from ._watch import TICK, LostRankError, is_at_work, where_all_are


@contextmanager
def main_first() -> Iterator[None]:
    """Rank 0 runs the body, then the others run it: for downloads and other files that must be made once.

    Behind it the others go on with rank 0's streams, as long as all ranks have one stream: rank 0 alone may have drawn random numbers in it, or seeded
    them (it makes a file that the others then find). Waits on the group's store and not in a collective, and longer than ``setup``'s timeout where rank 0
    is still at work: data may take hours to prepare.
    Raises RuntimeError on the other ranks, with rank 0's message, when the body fails there. Raises LostRankError when rank 0 waits for another rank by
    then, has left, or says nothing for the timeout.
    """
    if alone():
        yield
        return
    key = f"dpmigrate/main_first/{STATE.sections}"
    STATE.sections += 1
    store = _get_default_store()
    if is_main():
        try:
            yield
        except BaseException as error:
            store.set(key, f"{type(error).__name__}: {error}")
            raise
        store.set(f"{key}/streams", packed_streams())
        store.set(key, "")
        return
    with meeting("ddp.main_first"):
        _wait_for(store, key)
    failure = store.get(key).decode()
    if failure:
        raise RuntimeError(f"main_first() block failed on rank 0: {failure}")
    yield
    take_streams(store.get(f"{key}/streams").decode())


def _wait_for(store: Any, key: str) -> None:
    """Wait until rank 0 has set the key, as long as it is at work. It is looked for now and then: torch warns of each wait that ends without it."""
    pause, heard = 0.001, time.monotonic()
    try:
        while not store.check([key]):
            if time.monotonic() - heard > STATE.timeout:
                if not is_at_work(0):
                    raise LostRankError(f"rank 0 did not end its main_first() block within {STATE.timeout:g} s, or is gone. {where_all_are()}")
                heard = time.monotonic()
            time.sleep(pause)
            pause = min(2 * pause, TICK)
    except LostRankError:
        raise
    except RuntimeError as error:  # the store is gone
        raise LostRankError(f"rank 0 is gone: {error}. {where_all_are()}") from error


class Nothing:
    """Stands on the other ranks for an object that exists on rank 0 only: takes any call, gives no value."""

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__") and name.endswith("__"):
            # copy, pickle and numpy ask for protocols by such names and would take any answer for a yes
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Nothing:
        return self

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Nothing:
        return NoValue(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __fspath__(self) -> str:
        """A folder of the process's own: ``os.makedirs(writer.log_dir, exist_ok=True)`` makes nothing that is seen."""
        return _folder()

    def __str__(self) -> str:
        return ""

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return ""


class NoValue(Nothing):
    """Stands for an item of such an object: its methods may be called (``run["train/loss"].log(x)``), but it is no value."""

    def __init__(self, key: Any) -> None:
        object.__setattr__(self, "_key", key)

    def _asked(self, *others: Any) -> Any:
        raise RuntimeError(f"[{self._key!r}] asks for a value that exists on rank 0 only; compute it on every rank or use from_main()")

    __bool__ = __len__ = __iter__ = __contains__ = __float__ = __int__ = __index__ = __array__ = _asked
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _asked
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _asked
    __str__ = __repr__ = __fspath__ = _asked

    def __format__(self, spec: str) -> str:
        return str(self._asked())

    def __call__(self, *args: Any, **kwargs: Any) -> Nothing:
        return Nothing()

    def __getattr__(self, name: str) -> Nothing:
        return Nothing().__getattr__(name)


def main_only(factory: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``factory(*args, **kwargs)`` on rank 0, a null object elsewhere: for summary writers, loggers and progress displays.

    Attributes and calls of the null object give the null object; it is false, empty, a context manager, and prints as ''.
    As a path it is a temporary folder, which is removed when the process ends. Methods of its items may be called
    (``run["train/loss"].log(x)``); an item that is used as a value raises RuntimeError, because a number read from it would
    differ from rank 0's.
    """
    return factory(*args, **kwargs) if is_main() else Nothing()


def main_path(path: Any, new: bool = False) -> Any:
    """``path`` on rank 0 and os.devnull elsewhere (a Path where it is one), so that ``open(main_path(p), "w")`` writes once.

    ``new``: the file must not exist, as ``open(p, "x")`` wants it; elsewhere it is then one in a temporary directory, which is removed when the process ends.
    """
    if is_main():
        return path
    other = os.devnull
    if new:
        other = os.path.join(tempfile.mkdtemp(dir=_folder()), os.path.basename(os.fspath(path)))
    return Path(other) if isinstance(path, Path) else other


@cache
def _folder() -> str:
    """A folder for what a rank beside rank 0 writes in vain; it is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="dpmigrate-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
