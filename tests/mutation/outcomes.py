"""What becomes of a mutant, and how that is kept: one JSON object a line."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutation.mutants import Described


class Outcome(enum.Enum):
    """How a mutant ends. The values stand in the files of results."""

    # not a mutant: there is no new program, or none of its own
    SAME = "same as the right result"
    TWICE = "same as another mutant"
    IMPOSSIBLE = "cannot be carried out"
    BROKEN = "does not compile"
    # the static stage
    REFUSED = "refused before writing"
    TOLD = "told after writing"
    EQUIVALENT = "as right as the right result"
    PASSED = "not refused, to be run"
    PASSED_IDLE = "not refused, not runnable"
    # the run stage
    NET = "stopped by the runtime"
    CRASH = "crashes by itself"
    HANG = "hangs until the timeout"
    DIFFERS = "caught by verify"
    UNPROVED = "not proved by verify"
    HARMLESS = "harmless, proved equal"
    UNNOTICED = "unnoticed"
    # the harness itself
    ERROR = "error of the harness"


#: these are counted, and are no mutants
DROPPED = (Outcome.SAME, Outcome.TWICE, Outcome.IMPOSSIBLE, Outcome.BROKEN)
#: these end a mutant in the static stage
STATIC = (
    *DROPPED, Outcome.REFUSED, Outcome.TOLD, Outcome.EQUIVALENT, Outcome.PASSED, Outcome.PASSED_IDLE,
)  # fmt: skip
#: the columns of the table
COLUMNS = tuple(o for o in Outcome if o not in DROPPED)


@dataclass(frozen=True)
class Result:
    """A mutant and its outcome; ``why`` is said by who noticed it, ``diff`` is against the right result.

    ``digest`` is the same for mutants of one program that are the same to Python.
    """

    mutant: Described
    outcome: Outcome
    why: str = ""
    diff: str = ""
    digest: str = ""
    seconds: float = 0.0

    def line(self) -> str:
        """The result as one line of a file."""
        return json.dumps({**asdict(self), "outcome": self.outcome.value}, ensure_ascii=False)


def read(path: Path) -> dict[str, Result]:
    """The results of a file by the mutants' ids; of several for one mutant the last.

    A last line that was cut off when the writer was killed is left out. Raises ValueError with file and line for
    any other line that is none of ours.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")[:-1]  # what has no end was not written wholly
    out: dict[str, Result] = {}
    for number, line in enumerate(lines, 1):
        try:
            result = _parsed(line)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}:{number}: not a result: {error!r}") from error
        out[result.mutant.id] = result
    return out


def _parsed(line: str) -> Result:
    data = json.loads(line)
    described, outcome = Described(**data["mutant"]), Outcome(data["outcome"])
    return Result(**{**data, "mutant": described, "outcome": outcome})


def settled(results: Iterable[Result]) -> dict[str, Result]:
    """The results by id; of mutants that are one program the one that stands first by its id counts."""
    out: dict[str, Result] = {}
    first: dict[tuple[str, str, str], str] = {}
    for r in sorted(results, key=lambda one: one.mutant.id):
        same = r.mutant.case, r.mutant.script, r.digest
        if r.digest and first.setdefault(same, r.mutant.id) != r.mutant.id:
            r = Result(r.mutant, Outcome.TWICE, first[same])
        out[r.mutant.id] = r
    return out


class Writer:
    """Appends results to a file, each line at once, so that a killed process loses only what it was at."""

    def __init__(self, path: Path) -> None:
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:  # the writer before us was killed within a line
            path.write_bytes(whole)
        self._path = path

    def write(self, results: Iterable[Result]) -> None:
        """Append them."""
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(f"{result.line()}\n" for result in results)


def by_outcome(results: Iterable[Result], *wanted: Outcome) -> Iterator[Result]:
    """Those with one of the outcomes."""
    return (r for r in results if r.outcome in wanted)
