"""What must hold for any program that compiles, whatever is in it."""

from __future__ import annotations

import itertools
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

#: outcomes that say that the tool is wrong, not the program
FAULTS = ("internal error", "please report it", "self-check", "two rules disagree")
#: the settings take turns, so that each is tried with many programs
SETTINGS = (Settings(unproven=True), Settings(), Settings(amp=True, unproven=True), Settings(batch="per-rank", sync_bn=True, unproven=True), Settings(amp=True, amp_dtype="bfloat16"), Settings(follow=False, unproven=True))


def broken(files: Mapping[str, bytes], seed: int = 0) -> str:
    """Which property does not hold for a program, in a line; '' where all do. The script is ``train.py``."""
    settings = SETTINGS[seed % len(SETTINGS)]
    with tempfile.TemporaryDirectory(prefix="dpmigrate-property-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        (folder / ".git").mkdir()  # nothing above it belongs to the program
        for file, data in files.items():
            (folder / file).write_bytes(data)
        try:
            return next(_broken(folder, files, settings, annotate=seed % 7 == 3), "")
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            return f"raised {type(e).__name__}: {e} ({Path(where.filename).name}:{where.lineno})"


def _broken(folder: Path, files: Mapping[str, bytes], settings: Settings, *, annotate: bool) -> Iterator[str]:
    script = folder / "train.py"

    def now() -> dict[str, bytes]:
        return {file: (folder / file).read_bytes() for file in files}

    def apply() -> Outcome:
        return next(engine.apply([script], settings, engine.Writing(annotate=annotate)))

    for outcome in itertools.chain(engine.check([script], settings), engine.explain([script], settings)):
        yield from _fault("check", outcome)
    if now() != files:
        yield "check has written"
    outcome = apply()
    yield from _fault("apply", outcome)
    written = now()
    if outcome.status is Status.CHANGED:
        for file, data in written.items():
            try:
                compile(data, file, "exec")
            except (SyntaxError, ValueError) as e:
                yield f"the result does not compile: {file}: {e}"
        again = apply()
        if again.status is not Status.UNCHANGED or now() != written:
            yield f"a second run is not without effect: {again.status.value}: {again.reason}"
    elif written != files and not (annotate and outcome.status is Status.REFUSED):
        yield f"{outcome.status.value}, and the files are not as they were"


def _fault(command: str, outcome: Outcome) -> Iterator[str]:
    said = outcome.problem.message if outcome.problem is not None else outcome.reason
    if outcome.status is Status.FAILED or any(word in said for word in FAULTS):
        yield f"{command}: {outcome.status.value}: {said}"


def smaller(files: Mapping[str, bytes], seed: int, told: str) -> Mapping[str, bytes]:
    """The same fault in as few lines as leaving out pieces of lines gives: by halves, quarters, …, single ones."""
    kind = _kind(told)
    files = dict(files)
    for name in [n for n in files if n != "train.py"]:
        others = {n: data for n, data in files.items() if n != name}
        files = others if _kind(broken(others, seed)) == kind else files
    for name in files:
        lines = files[name].splitlines(keepends=True)
        size = max(1, len(lines) // 2)
        while True:
            at, changed = 0, False
            while at < len(lines):
                for end in {at + size, _block_end(lines, at)}:
                    left = lines[:at] + lines[end:]
                    if _compiled(b"".join(left)) and _kind(broken({**files, name: b"".join(left)}, seed)) == kind:
                        lines, changed = left, True
                        break
                else:
                    at += size
            if size == 1 and not changed:
                break
            size = max(1, size // 2)
        files[name] = b"".join(lines)
    return files


def _block_end(lines: Sequence[bytes], at: int) -> int:
    """Behind the lines that are indented below this one."""

    def depth(line: bytes) -> int:
        return len(line) - len(line.lstrip(b" \t")) if line.strip() else 999

    return next((i for i in range(at + 1, len(lines)) if depth(lines[i]) <= depth(lines[at])), len(lines))


def _kind(told: str) -> str:
    """A fault without what differs between programs."""
    return "".join(c for c in told if not c.isdigit())[:60]


def _compiled(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "train.py", "exec")
    except (SyntaxError, ValueError):
        return False
    return True
