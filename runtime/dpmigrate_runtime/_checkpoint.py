"""Checkpoints: written by one process, and whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Any

import torch

from ._state import is_main


def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """``torch.save`` on rank 0 only; the other ranks return at once (this is not a collective).

    A path is written atomically: to a hidden file beside it, flushed to the disk, then renamed over it, so that a reader or a
    killed job never meets half a checkpoint. Errors are those of torch.save and the file system; the hidden file is removed then.
    File objects are written directly.
    """
    if not is_main():
        return
    if not isinstance(f, str | os.PathLike):
        torch.save(obj, f, *args, **kwargs)
        return
    # through a link to its target, as a plain write would go
    target = os.path.realpath(os.fspath(f))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        # /dev/null, a pipe: nothing there to replace
        torch.save(obj, target, *args, **kwargs)
        return
    folder, name = os.path.split(target)
    # never the suffix of the target: a watcher of *.pt must not pick the half-written file up
    partial = os.path.join(folder, f".{name[:200]}.partial-{os.getpid()}")
    try:
        torch.save(obj, partial, *args, **kwargs)
        if mode is not None:
            os.chmod(partial, stat.S_IMODE(mode))
        with open(partial, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except OSError:
        return None
