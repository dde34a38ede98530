"""Lines of text that hold numbers: which are the same line, and how far their numbers are apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpmigrate.verify.judge.evidence import Evidence, apart

#: relative distance of what is printed or saved, by whether the runs were in float64; programs may compute results in float32 by themselves
PRINTED = {True: 1e-6, False: 2e-3}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_STAMP = re.compile(
    r"(?<!\d)(?:20\d\d([-_./]?)[01]\d\1[0-3]\d(?:[-_T ]?[0-2]\d([-_:.h]?)[0-5]\d(?:\2[0-5]\d)?(?:[.,]\d+)?)?"
    r"|[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:[.,]\d+)?|1[6-9]\d{8}(?:\.\d+)?)(?!\d)"
)
_VALUE = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_SPAN = re.compile(
    rf"(?:time|elapsed|took|eta|duration|speed|throughput)\w*\W{{0,3}}{_VALUE}(?:\s*\({_VALUE}\))?"
    rf"|\d+m \d+s|{_VALUE}\s*(?:s/it|it/s|s/\w+|\w+/s(?:ec)?\b|(?:s|secs?|seconds|ms|mins?|minutes|h|hours)\b)",
    re.IGNORECASE,
)
_CLOCK = re.compile(  # the sign is what ``bare`` leaves
    r"~|\bs/|/s\b|\bsec|\bms\b|time|elapsed|took|\beta\b|speed|\d ?s\b", re.IGNORECASE
)
_TIMED = re.compile(r"(?:^|[\W_])(?:time|seconds|secs?|elapsed|duration)(?![a-z])", re.IGNORECASE)
_RESULT = re.compile(r"(?:acc|loss|f1|err|psnr|ssim|iou|map|bleu|ppl|perplexity|auc|mae|mse|rmse|precision|recall|score)\w*[^\w\d]{0,4}$", re.IGNORECASE)


_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
#: what the representation of a wrapped model has more than that of the model
_WRAPPER = re.compile(r"^\s*(?:DataParallel|DistributedDataParallel|Single)\($|(?<=\s)\(module\): ")


def bare(line: str) -> str:
    """Without the date and time that loggers put before it, what a clock has measured, places in memory, and the wrapper of a printed model."""
    return _WRAPPER.sub("", _ADDRESS.sub("0x", _SPAN.sub("~", _STAMP.sub("", line))))


def untimed(lines: Sequence[str]) -> list[str]:
    """The lines of a file; of a table without the columns that hold times, by their names in its first line."""
    for mark in (",", "\t", ";"):
        heads = lines[0].split(mark) if lines else []
        timed = {i for i, head in enumerate(heads) if _TIMED.search(head)}
        if timed and not numbers(lines[0]):
            rows = [line.split(mark) for line in lines]
            return [mark.join(cell for i, cell in enumerate(row) if i not in timed or len(row) != len(heads)) for row in rows]
    return list(lines)


def form(line: str) -> str:
    """The line with its numbers taken out."""
    return _NUMBER.sub("#", line).strip()


def words(line: str) -> str:
    """Its words alone."""
    return " ".join(re.findall(r"[^\W\d_]+", _STAMP.sub("", line)))


def numbers(line: str) -> list[str]:
    """Its numbers, as they are written."""
    return _NUMBER.findall(line)


def of_a_clock(line: str) -> bool:
    """Whether a line speaks of time."""
    return bool(_CLOCK.search(line))


@dataclass(frozen=True)
class Compared:
    """How lines came out: ``differs`` is the first that does, with its other, or that is gone."""

    lines: int = 0
    worst: float = 0.0
    shares: int = 0  # numbers that are one rank's part of a batch's loss
    differs: str = ""


def compared(own: Sequence[str], theirs: Sequence[str], e: Evidence) -> Compared:
    """Each of our lines with the next of theirs that has the same form."""
    by_form: dict[str, list[str]] = {}
    for line in theirs:
        by_form.setdefault(form(line), []).append(line)
    shares, worst = 0, 0.0
    for line in own:
        found = by_form.get(form(line))
        if not found:
            return Compared(differs=f"this line is gone: {line[:100]}")
        other = found.pop(0)
        for a, b in _pairs(line, other):
            far = _apart(a, b)
            if far <= PRINTED[e.float64]:
                worst = max(worst, far)
            elif share_of_a_batch(a, b, e):
                shares += 1
            else:
                return Compared(differs=f"{line[:100]}  |  {other[:100]}")
    return Compared(len(own), worst, shares)


def _pairs(line: str, other: str) -> Iterator[tuple[str, str]]:
    """The numbers of two lines of one form; of lines that speak of time only those that a result's name stands before."""
    for a, b in zip(_NUMBER.finditer(line), _NUMBER.finditer(other), strict=False):
        if not of_a_clock(line) or _RESULT.search(line[: a.start()]):
            yield a.group(), b.group()


def digits(number: str) -> float:
    """The value of the last digit printed."""
    return 10.0 ** -len(number.partition(".")[2]) if "." in number and "e" not in number.lower() else 0.0


def _apart(a: str, b: str) -> float:
    x, y = float(a), float(b)
    return 0.0 if abs(x - y) <= 1.01 * digits(a) else apart(x, y)


def share_of_a_batch(a: str, b: str, e: Evidence) -> bool:
    """Whether the original printed the loss of a batch and the ranks that of their part of the same one."""
    if "." not in a or "." not in b:
        return False
    mine = {i for i, (value, _, _) in enumerate(e.original["losses"]) if abs(value - float(a)) <= digits(a)}
    return any(abs(r["losses"][i][0] - float(b)) <= digits(b) for r in e.ranks for i in mine if i < len(r["losses"]))
