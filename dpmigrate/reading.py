"""Reading the user's files: only regular ones, so that a pipe or a device is never waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

#: absent on Windows, which has neither pipes nor devices in its folders
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def content(path: Path, limit: int | None = None) -> bytes:
    """The bytes of a regular file, the first ``limit`` of them where that is given. OSError for whatever cannot be read as one."""
    _regular(os.stat(path), path)
    handle = os.open(path, _FLAGS)
    try:
        _regular(os.fstat(handle), path)  # it may be another file by now
        with os.fdopen(handle, "rb", closefd=False) as f:
            return f.read() if limit is None else f.read(limit)
    finally:
        os.close(handle)


def _regular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(None, "is a directory", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(None, "not a regular file", str(path))


def why(error: OSError) -> str:
    """What is wrong, without the name."""
    return error.strerror or str(error)
