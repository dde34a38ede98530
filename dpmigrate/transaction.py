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

from dpmigrate import writing
from dpmigrate.model import Problem

FOLDER = ".dpmigrate"
_PLAN, _DONE = "plan.json", "done"
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
    ``beside`` are the scripts that are written with this one, in whatever folders: they may need its files.
    """
    shared = [c.path for c in changes if c.before != c.after and c.path.is_file() and _content(c.path) == c.after]
    changes = [c for c in changes if c.path not in shared]
    for change in changes:
        problem = writing.obstacle(change.path, change.before)
        if problem is not None:
            return _named(change.path, problem, changes)
    try:
        place = _prepare(script, changes, shared, beside)
        _carry_out(place, changes)
    except OSError as e:
        return Problem(f"cannot be written: {e.strerror or e}")
    return None


def unfinished(script: Path) -> bool:
    """Whether an ``apply`` of this script was interrupted while it wrote."""
    place = _place(script)
    return (place / _PLAN).is_file() and not (place / _DONE).exists()


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
    except (OSError, ValueError, KeyError) as e:
        return Problem(f"an interrupted apply could not be finished: {e}; the old files are in {place}")
    return f"an interrupted apply was finished: {', '.join(str(c.path) for c in changes)}"


def undo(script: Path) -> Sequence[Path] | Problem:
    """Bring back what the last ``apply`` of this script replaced, if nothing has been changed since; the files that were brought back."""
    place = _place(script)
    if not (place / _PLAN).is_file():
        return Problem(f"there is no apply of this script to undo: {place} does not exist")
    try:
        changes = _read(place)
        changed = [c.path for c in changes if _content(c.path) not in ((c.after,) if (place / _DONE).exists() else (c.before, c.after))]
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
    except (OSError, ValueError, KeyError) as e:
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
        for name in json.loads((place / _PLAN).read_text()).get("shared", []):
            path = Path(os.path.normpath(script.parent / name))
            records = (c for other in _others(place) for c in _read(other) if os.path.abspath(c.path) == os.path.abspath(path))
            record = next(records, None)
            if record is None:
                return Problem(f"{path} was rewritten with another script, and what it held before is not known")
            found[path] = record.before
    except (OSError, ValueError, KeyError) as e:
        return Problem(f"what apply kept cannot be read: {e}")
    return found


def _prepare(script: Path, changes: Sequence[Change], shared: Sequence[Path], beside: Sequence[Path]) -> Path:
    """Put both contents of every file where they survive; from the last step on the new program holds."""
    place = _place(script)
    place.parent.mkdir(exist_ok=True)
    ignore = place.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    for stale in place.parent.glob(f"{_NEW}{script.name}-*"):
        shutil.rmtree(stale, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f"{_NEW}{script.name}-", dir=place.parent))
    plan = []
    for i, c in enumerate(changes):
        _store(new / f"{i}.old", c.before)
        _store(new / f"{i}.new", c.after)
        plan.append({"path": os.path.relpath(c.path, script.parent), "old": _digest(c.before), "new": _digest(c.after)})
    told = {"files": plan, "shared": _from(script, shared), "beside": _from(script, beside)}
    _store(new / _PLAN, json.dumps(told, indent=1).encode())
    _sync_folder(new)
    if place.exists():
        shutil.rmtree(place)
    new.rename(place)
    _sync_folder(place.parent)
    return place


def _carry_out(place: Path, changes: Sequence[Change]) -> None:
    for c in changes:
        if _content(c.path) != c.after:
            writing.replace(c.path, c.after)
    _store(place / _DONE, b"")
    _sync_folder(place)


def _read(place: Path) -> list[Change]:
    """The changes of a plan. OSError, ValueError or KeyError where it is damaged."""
    plan = json.loads((place / _PLAN).read_text())
    folder = place.parent.parent
    changes = []
    for i, entry in enumerate(plan["files"]):
        old, new = (place / f"{i}.old").read_bytes(), (place / f"{i}.new").read_bytes()
        if (_digest(old), _digest(new)) != (entry["old"], entry["new"]):
            raise ValueError(f"{place} is damaged")
        changes.append(Change(folder / entry["path"], old, new))
    return changes


def _others(place: Path) -> list[Path]:
    """The records of other scripts: those of the folder, and those that were written with this one."""
    near = [p for p in sorted(place.parent.iterdir()) if not p.name.startswith(_NEW)]
    beside = [_place(place.parent.parent / name) for name in json.loads((place / _PLAN).read_text()).get("beside", [])]
    found = {os.path.abspath(p): p for p in (*near, *beside) if (p / _PLAN).is_file()}
    return [p for path, p in found.items() if path != os.path.abspath(place)]


def _needed(place: Path) -> frozenset[str]:
    """The files that a script needs as its apply left them; none where its own files have been brought back in another way."""
    changes = _read(place)
    if changes and not any(c.path.is_file() and _content(c.path) == c.after for c in changes):
        return frozenset()
    shared = json.loads((place / _PLAN).read_text()).get("shared", [])
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
    return path.read_bytes()


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
