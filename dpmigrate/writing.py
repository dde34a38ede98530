"""Writing the user's files: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from dpmigrate.model import Problem

#: temporary files end in this, never in .py, so that no tool takes one for source
SUFFIX = ".dpmigrate"


def obstacle(path: Path, before: bytes) -> Problem | None:
    """What stands in the way of replacing the file's content: it must be writable, one link, and still hold ``before``."""
    try:
        target = _target(path)
        if target.stat().st_nlink > 1:
            return Problem("has several hard links: writing would separate them; copy the file first")
        if not os.access(target, os.W_OK):
            return Problem("is read-only")
        if target.read_bytes() != before:
            return Problem("has changed since it was read: not written")
    except OSError as e:
        return Problem(f"cannot be written: {e.strerror or e}")
    return None


def replace(path: Path, after: bytes) -> None:
    """Replace the file's content. OSError if that cannot be done.

    The new content goes to a temporary file in the same folder, is forced to disk and then renamed over the old one: a reader, or a crash at any
    moment, sees the old content or the new. Mode is kept, owner where allowed; the target of a symbolic link is written and the link stays.
    """
    target = _target(path)
    _replace(target, after, target.stat())


def _target(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def create(path: Path, data: bytes) -> Problem | None:
    """Write a file that may be new (``-o``)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            problem = obstacle(path, path.read_bytes())
            if problem is None:
                replace(path, data)
            return problem
        _replace(path, data, None)
    except OSError as e:
        return Problem(f"cannot be written: {e.strerror or e}")
    return None


def _replace(target: Path, data: bytes, status: os.stat_result | None) -> None:
    clean(target.parent, target.name)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=SUFFIX, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        if status is not None:
            os.chmod(name, stat.S_IMODE(status.st_mode))
            with contextlib.suppress(OSError):
                os.chown(name, status.st_uid, status.st_gid)
        else:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def clean(folder: Path, name: str) -> None:
    """Remove temporary files that a killed run left for this file."""
    for stale in folder.glob(f".{name}.*{SUFFIX}"):
        with contextlib.suppress(OSError):
            stale.unlink()


def vendor(folder: Path) -> Problem | None:
    """Copy the runtime package beside the script; refuse over a folder that is not a copy of ours."""
    source = runtime_folder()
    if source is None:
        return Problem("the runtime package is not found in this installation")
    target = folder / source.name
    if target.is_symlink() or (target.exists() and not (target / "_process_group.py").exists()):
        return Problem(f"{target} exists and is not the runtime package: not overwritten")
    try:
        target.mkdir(exist_ok=True)
        for file in sorted(source.iterdir()):
            if file.is_file() and file.suffix in (".py", ".typed"):
                problem = create(target / file.name, file.read_bytes())
                if problem is not None:
                    return problem
    except OSError as e:
        return Problem(f"{target} cannot be written: {e.strerror or e}")
    return None


def runtime_folder() -> Path | None:
    """Where the runtime package lies: installed beside this package, or in the source tree."""
    here = Path(__file__).resolve().parent
    for candidate in (here.parent / "dpmigrate_runtime", here.parent / "runtime" / "dpmigrate_runtime"):
        if candidate.is_dir():
            return candidate
    return None


__all__ = ["SUFFIX", "clean", "create", "obstacle", "replace", "runtime_folder", "vendor"]
