"""Writing the files of a program together: after an interruption at any moment the next run makes it wholly the old program or wholly the new one.

What will be written, and what stood there before, is put into ``.dpmigrate/<script>/`` beside the script first. The renaming of that folder to its
name is the moment from which the new program holds; until then nothing of the user's has been touched. The folder stays, so that ``dpmigrate undo``
can bring the old files back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmigrate import interrupts, reading, writing
from dpmigrate.model import Problem

FOLDER = ".dpmigrate"
_PLAN, _PENDING, _DONE = "plan.json", "pending", "done"
_NEW = ".new-"


@dataclass(frozen=True)
class Change:
    """One file with its content before and after."""

    path: Path
    before: bytes
    after: bytes


def write(script: Path, changes: Sequence[Change], beside: Sequence[Path] = ()) -> Problem | None:
    """Replace the files of the program that ``script`` starts, all or none, if each still holds what was read.

    A file that another program has just been given in the same way is not written again; it is recorded, so that undoing the other keeps it.
    ``beside`` are the scripts that are written with this one, in whatever folders: they may need its files. A signal waits until the files are whole.
    """
    with interrupts.held():
        shared = [c.path for c in changes if c.before != c.after and _is(c.path, c.after)]
        changes = [c for c in changes if c.path not in shared]
        for change in changes:
            problem = writing.obstacle(change.path, change.before)
            if problem is not None:
                return _named(change.path, problem, changes)
        return _written(script, changes, shared, beside)


def _written(script: Path, changes: Sequence[Change], shared: Sequence[Path], beside: Sequence[Path]) -> Problem | None:
    """Put everything on the disk that needs room there, then the record, from which on the new program holds, then rename."""
    staged: list[writing.Staged] = []
    try:
        for c in changes:
            try:
                staged.append(writing.stage(c.path, c.after))
            except OSError as e:
                return _named(c.path, Problem(f"cannot be written: {reading.why(e)}"), changes)
        try:
            record = _prepare(script, changes, shared, beside)
        except OSError as e:
            return Problem(f"cannot be written: {_place(script).parent}: {reading.why(e)}")
        problem = _renamed(record, changes, staged)
    finally:
        for s in staged:
            s.discard()
    return problem


def _renamed(record: _Record, changes: Sequence[Change], staged: Sequence[writing.Staged]) -> Problem | None:
    """Put the new contents in place; where that fails, the old ones again, and the record of the apply before."""
    try:
        for s in staged:
            s.commit()
        _finish(record.place)
    except OSError as e:
        try:
            for c in changes:
                if not _is(c.path, c.before):
                    writing.replace(c.path, c.before)
            record.withdraw()
        except OSError as again:
            told = "'dpmigrate apply' finishes what is half written, 'dpmigrate undo' takes it back"
            return Problem(f"cannot be written: {reading.why(e)}; nor can the old files be brought back ({reading.why(again)}): {told}")
        return Problem(f"cannot be written: {reading.why(e)}")
    record.keep()
    return None


def unfinished(script: Path) -> bool:
    """Whether an ``apply`` of this script was interrupted while it wrote."""
    place = _place(script)
    return os.path.isfile(place / _PLAN) and not os.path.exists(place / _DONE)


def recover(script: Path) -> str | Problem:
    """Finish what was interrupted and say so; a Problem where a file has been changed since, which is then left for the user."""
    place = _place(script)
    try:
        changes = _read(place)
        strange = [c.path for c in changes if _content(c.path) not in (c.before, c.after)]
        if strange:
            names = ", ".join(map(str, strange))
            return Problem(f"an interrupted apply left part of this program rewritten, and {names} changed since; the old files are in {place}")
        _carry_out(place, changes)
    except (OSError, ValueError) as e:
        return Problem(f"an interrupted apply could not be finished: {e}; the old files are in {place}")
    return f"an interrupted apply was finished: {', '.join(str(c.path) for c in changes)}"


def undo(script: Path) -> Sequence[Path] | Problem:
    """Bring back what the last ``apply`` of this script replaced, if nothing has been changed since; the files that were brought back."""
    place = _place(script)
    _restore(script)
    if not os.path.isfile(place / _PLAN):
        return Problem(f"there is no apply of this script to undo: {place} does not exist")
    try:
        changes = _read(place)
        changed = [c.path for c in changes if _content(c.path) not in ((c.after,) if os.path.exists(place / _DONE) else (c.before, c.after))]
        if changed:
            return Problem(f"changed since the last apply, so nothing was undone: {', '.join(map(str, changed))}; the old files are in {place}")
        for other in _others(place):
            needed = [c.path for c in changes if os.path.abspath(c.path) in _needed(other)]
            if needed:
                names = ", ".join(os.path.normpath(path) for path in needed)
                first = os.path.normpath(_script(other))
                return Problem(f"{first} was migrated with it and needs {names} as it is: first 'dpmigrate undo {first}'")
        back = [Change(c.path, _content(c.path), c.before) for c in changes]
        problem = write(script, back)
        if problem is None:
            shutil.rmtree(place)
            _remove_empty(place.parent)
    except (OSError, ValueError) as e:
        return Problem(f"cannot be undone: {e}")
    return problem if problem is not None else [c.path for c in changes]


def originals(script: Path) -> Mapping[Path, bytes] | Problem:
    """What the files of the program held before the last ``apply`` of this script; nothing where there was none.

    A Problem where the record is damaged, or where a file was rewritten with another script of which there is none.
    """
    place = _place(script)
    if not (place / _PLAN).is_file():
        return {}
    try:
        found = {c.path: c.before for c in _read(place)}
        for name in _plan(place).get("shared", []):
            path = Path(os.path.normpath(script.parent / name))
            records = (c for other in _others(place) for c in _read(other) if os.path.abspath(c.path) == os.path.abspath(path))
            record = next(records, None)
            if record is None:
                return Problem(f"{path} was rewritten with another script, and what it held before is not known")
            found[path] = record.before
    except (OSError, ValueError, KeyError) as e:
        return Problem(f"what apply kept cannot be read: {e}")
    return found


@dataclass(frozen=True)
class _Record:
    """The record of an apply; that of the one before lies in ``aside`` until the new one is carried out."""

    place: Path
    aside: Path | None

    def keep(self) -> None:
        if self.aside is not None:
            shutil.rmtree(self.aside, ignore_errors=True)

    def withdraw(self) -> None:
        """As if there had been no apply. OSError if that cannot be done."""
        shutil.rmtree(self.place)
        if self.aside is not None:
            self.aside.rename(self.place)
        _remove_empty(self.place.parent)


def _prepare(script: Path, changes: Sequence[Change], shared: Sequence[Path], beside: Sequence[Path]) -> _Record:
    """Put both contents of every file where they survive; from the last step on the new program holds. OSError, and then nothing is left of it."""
    place = _place(script)
    before = f"{_NEW}{writing.short(script.name)}-"
    aside = new = None
    ignore = place.parent / ".gitignore"
    try:
        if place.parent.is_symlink():
            raise OSError(None, "is a symbolic link")
        place.parent.mkdir(exist_ok=True)
        if not ignore.exists() or not ignore.stat().st_size:
            _store(ignore, b"*\n")
        _restore(script)
        for stale in [p for p in place.parent.iterdir() if p.name.startswith(before)]:
            shutil.rmtree(stale, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix=before, dir=place.parent))
        plan = []
        for i, c in enumerate(changes):
            _store(new / f"{i}.old", c.before)
            _store(new / f"{i}.new", c.after)
            plan.append({"path": os.path.relpath(c.path, script.parent), "old": _digest(c.before), "new": _digest(c.after)})
        told = {"files": plan, "shared": _from(script, shared), "beside": _from(script, beside)}
        _store(new / _PENDING, b"")
        _store(new / _PLAN, json.dumps(told, indent=1).encode())
        _sync_folder(new)
        if place.exists():
            aside = _aside(script)
            place.rename(aside)
        new.rename(place)
    except BaseException:
        if new is not None:
            shutil.rmtree(new, ignore_errors=True)
        if aside is not None and aside.exists():
            aside.rename(place)
        _remove_empty(place.parent)
        raise
    _sync_folder(place.parent)
    return _Record(place, aside)


def _aside(script: Path) -> Path:
    return _place(script).with_name(f"{_NEW}{writing.short(script.name)}-aside")


def _restore(script: Path) -> None:
    """The record of the apply before, where one that came after it was broken off."""
    with contextlib.suppress(OSError):
        if not _place(script).exists() and (_aside(script) / _PLAN).is_file():
            _aside(script).rename(_place(script))


def _remove_empty(folder: Path) -> None:
    """Remove our folder where it holds nothing but its .gitignore."""
    with contextlib.suppress(OSError):
        if not folder.is_symlink() and os.listdir(folder) in ([], [".gitignore"]):
            shutil.rmtree(folder)


def _carry_out(place: Path, changes: Sequence[Change]) -> None:
    for c in changes:
        if not _is(c.path, c.after):
            writing.replace(c.path, c.after)
        writing.clean(c.path.parent, c.path.name)
    _finish(place)


def _finish(place: Path) -> None:
    """Mark the record as carried out, which needs no room on the disk."""
    try:
        os.rename(place / _PENDING, place / _DONE)
    except FileNotFoundError:  # done already, or the record of an older version
        _store(place / _DONE, b"")
    _sync_folder(place)


def _read(place: Path) -> list[Change]:
    """The changes of a record. OSError where it cannot be read, ValueError where it is damaged, or is none that apply has written."""
    plan = _plan(place)
    folder = place.parent.parent
    changes = []
    for i, entry in enumerate(plan["files"]):
        old, new = (reading.content(place / f"{i}.{which}") for which in ("old", "new"))
        if (_digest(old), _digest(new)) != (entry["old"], entry["new"]):
            raise ValueError(f"{place} is damaged")
        changes.append(Change(folder / entry["path"], old, new))
    return changes


def _plan(place: Path) -> dict[str, Any]:
    """What a record says. OSError where it cannot be read, ValueError where it is none that apply has written.

    A folder that came with somebody's repository must not reach beyond what apply writes: the script, and modules, which end in .py.
    """
    try:
        plan = json.loads(reading.content(place / _PLAN))
        paths = [entry["path"] for entry in plan["files"]]
        lists = [plan.get("shared", []), plan.get("beside", [])]
        sound = all(isinstance(e["old"], str) and isinstance(e["new"], str) for e in plan["files"])
        sound = sound and all(isinstance(path, str) and "\0" not in path for path in (*paths, *lists[0], *lists[1]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(f"{place} is damaged") from e
    if not sound or not all(path == place.name or path.endswith(".py") for path in paths):
        raise ValueError(f"{place} is damaged")
    return dict(plan)


def _others(place: Path) -> list[Path]:
    """The records of other scripts: those of the folder, and those that were written with this one."""
    near = [p for p in sorted(place.parent.iterdir()) if not p.name.startswith(_NEW)]
    beside = [_place(place.parent.parent / name) for name in _plan(place).get("beside", [])]
    found = {os.path.abspath(p): p for p in (*near, *beside) if os.path.isfile(p / _PLAN)}
    return [p for path, p in found.items() if path != os.path.abspath(place)]


def _needed(place: Path) -> frozenset[str]:
    """The files that a script needs as its apply left them; none where its own files have been brought back in another way."""
    changes = _read(place)
    if changes and not any(_is(c.path, c.after) for c in changes):
        return frozenset()
    shared = _plan(place).get("shared", [])
    return frozenset(os.path.abspath(p) for p in (*(c.path for c in changes), *(place.parent.parent / name for name in shared)))


def _place(script: Path) -> Path:
    return script.parent / FOLDER / script.name


def _script(place: Path) -> Path:
    return place.parent.parent / place.name


def _from(script: Path, paths: Sequence[Path]) -> list[str]:
    """The paths as the folder of the script sees them."""
    return [os.path.relpath(path, script.parent) for path in paths]


def _named(path: Path, problem: Problem, changes: Sequence[Change]) -> Problem:
    return problem if len(changes) == 1 else Problem(f"{path}: {problem.message}")


def _content(path: Path) -> bytes:
    return reading.content(path)


def _is(path: Path, data: bytes) -> bool:
    """Whether the file holds this; not where it cannot be read."""
    try:
        return reading.content(path, len(data) + 1) == data
    except OSError:
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _store(path: Path, data: bytes) -> None:
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system knows it
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
