"""Writing the user's files: whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmigrate import reading
from dpmigrate.model import Problem

#: temporary files end in this, never in .py, so that no tool takes one for source
SUFFIX = ".dpmigrate"
#: the package that rewritten programs import
RUNTIME = "dpmigrate_runtime"
_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def obstacle(path: Path, before: bytes) -> Problem | None:
    """What stands in the way of replacing the file's content: it must be writable, one link, and still hold ``before``.

    A file or folder without write permission for anybody is meant to stay as it is, also where root could write it.
    """
    try:
        target = _target(path)
        status = target.stat()
        if status.st_nlink > 1:
            return Problem("has several hard links: writing would separate them; copy the file first")
        if not _writable(target, status):
            return Problem("is read-only")
        if not _writable(target.parent, target.parent.stat()):
            return Problem(f"cannot be written: the folder {target.parent} is read-only")
        if reading.content(target) != before:
            return Problem("has changed since it was read: not written")
    except OSError as e:
        return Problem(f"cannot be written: {reading.why(e)}")
    return None


def _writable(path: Path, status: os.stat_result) -> bool:
    return bool(status.st_mode & _ANY_WRITE) and os.access(path, os.W_OK)


@dataclass(frozen=True)
class Staged:
    """New content on the disk, beside the file that it will replace; up to ``commit`` nothing has happened to that."""

    target: Path
    temporary: Path

    def commit(self) -> None:
        """Put the new content in place: a reader, or a crash at any moment, sees the old or the new. OSError if that cannot be done."""
        os.replace(self.temporary, self.target)

    def discard(self) -> None:
        """Take the new content away, if it is still there."""
        with contextlib.suppress(OSError):
            self.temporary.unlink()


def stage(path: Path, after: bytes) -> Staged:
    """Write the new content of a file beside it and force it to the disk. OSError if that cannot be done, and then nothing is left.

    Mode is kept, owner where allowed; of a symbolic link it is the target that is replaced, and the link stays.
    """
    target = _target(path)
    return _stage(target, after, target.stat())


def replace(path: Path, after: bytes) -> None:
    """Replace the file's content. OSError if that cannot be done, and then it is as it was."""
    _commit(stage(path, after))


def _commit(staged: Staged) -> None:
    try:
        staged.commit()
    except BaseException:
        staged.discard()
        raise


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def create(path: Path, data: bytes) -> Problem | None:
    """Write a file that may be new (``-o``). Folders that are missing are made, and removed again if the file cannot be written."""
    missing = [p for p in path.parents if not os.path.lexists(p)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            problem = obstacle(path, reading.content(path))
            if problem is None:
                replace(path, data)
            return problem
        _commit(_stage(_target(path), data, None))
    except OSError as e:
        _remove_folders(missing)
        return Problem(f"cannot be written: {reading.why(e)}")
    return None


def _remove_folders(folders: Sequence[Path]) -> None:
    """Remove folders that were made for nothing, the innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _stage(target: Path, data: bytes, status: os.stat_result | None) -> Staged:
    clean(target.parent, target.name)
    handle, name = tempfile.mkstemp(prefix=f".{short(target.name)}.", suffix=SUFFIX, dir=target.parent)
    staged = Staged(target, Path(name))
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
            os.chmod(name, 0o666 & ~_mask())
    except BaseException:
        staged.discard()
        raise
    return staged


def _mask() -> int:
    """The permissions that new files do not get; it can only be asked by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def clean(folder: Path, name: str) -> None:
    """Remove temporary files that a killed run left for this file."""
    before = f".{short(name)}."
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            drawn = entry.name.removeprefix(before).removesuffix(SUFFIX)
            if entry.name == f"{before}{drawn}{SUFFIX}" and "." not in drawn:  # with a dot it belongs to a file of a longer name
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def short(name: str) -> str:
    """The name, or a shorter one of its own that leaves room for what is put before and after it (255 bytes in all)."""
    data = os.fsencode(name)
    return name if len(data) <= 200 else hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------ the runtime beside the script
def vendor(folder: Path) -> Problem | None:
    """Copy the runtime package beside the script, whole or not at all; refuse over anything of its name that is not a copy of it.

    A copy that another version made is replaced file by file; one of this version that differs has been changed by somebody, and is refused.
    """
    source = runtime_folder()
    if source is None:
        return Problem("the runtime package is not found in this installation")
    target = folder / source.name
    try:
        if os.path.lexists(target):
            return _vendored_again(source, target)
        missing = [p for p in (folder, *folder.parents) if not os.path.lexists(p)]
        folder.mkdir(parents=True, exist_ok=True)
        if not _writable(folder, folder.stat()):
            return Problem(f"{target} cannot be written: the folder {folder} is read-only")
        try:
            _new_copy(source, target)
        except OSError:
            _remove_folders(missing)
            raise
    except OSError as e:
        return Problem(f"{target} cannot be written: {reading.why(e)}")
    return None


def vendored(folder: Path) -> Path:
    """Where ``vendor`` puts the runtime package."""
    return folder / RUNTIME


def unvendor(folder: Path) -> None:
    """Take a copy away that ``vendor`` has just made, where the program that needs it could not be written."""
    shutil.rmtree(vendored(folder), ignore_errors=True)


def _vendored_again(source: Path, target: Path) -> Problem | None:
    strange = _strange(source, target)
    if strange is not None:
        return Problem(f"{strange} exists and is not of the runtime package: not overwritten")
    other = [(name, data) for name, data in _package(source) if _held(target / name) != data]
    changed = [name for name, _ in other if _version(target) == _version(source) and (target / name).exists()]
    if changed:
        return Problem(f"{target / changed[0]} has been changed since it was copied: not overwritten; remove {target} to have it copied again")
    for name, data in other:
        problem = create(target / name, data)
        if problem is not None:
            return Problem(f"{target / name} {problem.message}")
    return None


def _new_copy(source: Path, target: Path) -> None:
    """The package under another name, then renamed. OSError if that cannot be done, and then nothing is left."""
    _clean_folders(target.parent, f".{source.name}.")
    new = Path(tempfile.mkdtemp(prefix=f".{source.name}.", suffix=SUFFIX, dir=target.parent))
    try:
        for name, data in _package(source):
            _commit(_stage(new / name, data, None))
        new.chmod(0o777 & ~_mask())
        new.rename(target)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _clean_folders(folder: Path, before: str) -> None:
    """Remove temporary folders of this prefix that a killed run left."""
    for stale in folder.iterdir():
        if stale.name.startswith(before) and stale.name.endswith(SUFFIX):
            shutil.rmtree(stale, ignore_errors=True)


def _package(source: Path) -> list[tuple[str, bytes]]:
    """The files of the runtime package with their content."""
    return [(p.name, p.read_bytes()) for p in sorted(source.iterdir()) if p.is_file() and p.suffix in (".py", ".typed")]


def _strange(source: Path, target: Path) -> Path | None:
    """What is in the place of the runtime package and is not of it; None where all is."""
    if target.is_symlink() or not target.is_dir():
        return target
    files = [target / name for name, _ in _package(source)]
    linked = next((p for p in files if p.is_symlink() or (p.exists() and not p.is_file())), None)
    return linked or (None if _version(target) else target)


_MARK = b"What a migrated training script calls"
_VERSION = re.compile(rb'^__version__ = "([^"]+)"', re.MULTILINE)


def _version(package: Path) -> bytes:
    """The version of a copy of the runtime; b'' of what is none."""
    data = _held(package / "__init__.py") or b""
    found = _VERSION.search(data)
    return found[1] if found is not None and _MARK in data else b""


def _held(path: Path) -> bytes | None:
    """The content of a file; None where there is none."""
    return reading.content(path) if path.exists() else None


def runtime_folder() -> Path | None:
    """Where the runtime package lies: installed beside this package, or in the source tree."""
    here = Path(__file__).resolve().parent
    for candidate in (here.parent / RUNTIME, here.parent / "runtime" / RUNTIME):
        if candidate.is_dir():
            return candidate
    return None


__all__ = ["SUFFIX", "Staged", "clean", "create", "obstacle", "replace", "runtime_folder", "short", "stage", "unvendor", "vendor", "vendored"]
