"""What can be seen without looking in: lines printed, files and checkpoints written, processes."""

from __future__ import annotations

import re
from collections import Counter

from dpmigrate.verify.judge import text
from dpmigrate.verify.judge.evidence import Evidence, Line, Record, Verdict

#: Python's and torch's own, which every process may give; a category of the program's need not be called a warning
_WARNING = re.compile(r"Warning|warnings\.warn|^\s+|^W\d{4}|^\[[WEI]\d|^\S.*\.py:\d+: \w+: ")


def _printed(record: Record) -> list[tuple[bool, str]]:
    """The lines, each with whether it was printed in a training pass."""
    return [(inside, text.bare(line)) for inside, line, kind in record["lines"] if kind == "stdout" or (kind == "stderr" and not _WARNING.search(line))]


def _results(record: Record) -> list[str]:
    return [line for inside, line in _printed(record) if not inside and text.numbers(line)]


def metrics(e: Evidence) -> Line:
    """Lines printed outside training hold results; those printed in it may speak of one rank's batch."""
    name = "numbers printed"
    own = _results(e.original)
    if not own:
        return Line(name, Verdict.NONE, "no line with numbers is printed outside the training loop")
    found = text.compared(own, [line for r in e.ranks for line in _results(r)], e)
    if found.differs:
        return e.excused(Line(name, Verdict.DIFFERS, found.differs))
    more = f"; {found.shares} numbers are the loss of a batch, of which a rank prints its part" if found.shares else ""
    return Line(name, Verdict.BOUND if found.worst or found.shares else Verdict.EQUAL, f"{found.lines} lines outside the training loop{more}")


def lines_once(e: Evidence) -> Line:
    """Each line is printed by one rank, as often as the original prints it."""
    name = "lines printed once"
    own = Counter(text.form(line) for _, line in _printed(e.original))
    theirs = [Counter(text.form(line) for _, line in _printed(r)) for r in e.ranks]
    bars = [{text.words(line) for _, line, kind in r["lines"] if kind == "bar"} for r in e.ranks]
    if not own:
        return Line(name, Verdict.NONE, "nothing is printed")
    repeated = [form for form, n in sum(theirs, Counter()).items() if form in own and n > own[form] and sum(form in t for t in theirs) > 1]
    repeated += [bar for bar in sorted(set().union(*bars)) if sum(bar in b for b in bars) > 1]
    if repeated:
        return Line(name, Verdict.DIFFERS, f"printed by several ranks: {repeated[0][:100]}")
    words = {text.words(line) for r in e.ranks for _, line in _printed(r)}
    lines = [line for _, line, stream in e.original["lines"] if stream == "stdout" and not text.of_a_clock(line)]
    gone = [line for line in lines if text.words(text.bare(line)) not in words | {""}]
    if gone:
        return Line(name, Verdict.DIFFERS, f"not printed any more: {gone[0][:100]}")
    return Line(name, Verdict.EQUAL, f"{sum(own.values())} lines, by one rank")


def masked(name: str) -> str:
    """A file's name without its numbers, which may be a date."""
    return re.sub(r"\d+", "#", name)


def files(e: Evidence) -> Line:
    """Each file is written by one rank, and none is missing."""
    name = "files written"
    own = {masked(f) for f in e.original["writes"]}
    writers: dict[str, set[int]] = {}
    for r in e.ranks:
        for f in r["writes"]:
            writers.setdefault(f, set()).add(r["rank"])
    several = sorted(f for f, who in writers.items() if len(who) > 1)
    if several:
        return Line(name, Verdict.DIFFERS, f"{several[0]} is written by {len(writers[several[0]])} ranks")
    gone = sorted(own - {masked(f.removesuffix(".tmp")) for f in writers})
    if gone:
        return Line(name, Verdict.DIFFERS, f"not written any more: {gone[0]}")
    return Line(name, Verdict.EQUAL, f"{len(own)} kinds, each by one rank" if own else "none")


def contents(e: Evidence) -> Line:
    """The numbers in small text files. Those of a file that is open while training runs may speak of one rank's batches."""
    name, unclear, worst, lines = "text files", "", 0.0, 0
    if not e.texts:
        return Line(name, Verdict.NONE, "none was written")
    for file, (own, theirs) in sorted(e.texts.items()):
        found = text.compared([text.bare(line) for line in text.untimed(own)], [text.bare(line) for line in text.untimed(theirs)], e)
        worst, lines = max(worst, found.worst), lines + found.lines
        if found.differs and e.original["writes"].get(file, []) == ["between"]:
            return e.excused(Line(name, Verdict.DIFFERS, f"{file}: {found.differs}"))
        if found.differs or found.shares:
            unclear = unclear or f"{file}: {found.differs or 'the losses of batches'} (opened before training, or in it: a rank may write its part of a batch)"
    if unclear:
        return Line(name, Verdict.NONE, unclear)
    return Line(name, Verdict.BOUND if worst else Verdict.EQUAL, f"{len(e.texts)} files, {lines} lines")


#: the words of the probe's ``compare``, as verdicts
_KINDS = {"equal": Verdict.EQUAL, "allowed": Verdict.BOUND, "unreadable": Verdict.NONE, "values": Verdict.DIFFERS, "differs": Verdict.DIFFERS}


def checkpoints(e: Evidence) -> Line:
    """They hold the same keys, shapes, types and values, and the original's program can load them."""
    name = "checkpoints"
    if e.saved is None or not e.original["saves"]:
        return Line(name, Verdict.NONE, "they could not be read" if e.original["saves"] else "none was saved" + (" before the cut" if e.cut else ""))
    order = list(_KINDS)
    file, (kind, why) = max(e.saved.items(), key=lambda item: order.index(item[1][0]), default=("", ("equal", "")))
    if kind == "equal":
        return Line(name, Verdict.EQUAL, f"{len(e.saved)} files: same keys, shapes, types and values")
    line = Line(name, _KINDS[kind], f"{file}: {why}")
    return e.excused(line) if kind == "values" else line


#: what a rank died of that had finished: it says nothing about a migration
ABORT = (
    "aborted in the interpreter's exit, after it had finished everything: a known fault of torch "
    "over gloo (pytorch/pytorch#179291). The cure: import torch.distributed.nn.functional before "
    "init_process_group(), and drop what holds the group (the reducers of the "
    "DistributedDataParallel models) before destroy_process_group(); ddp.setup() and ddp.cleanup() "
    "do both"
)


def aborted(e: Evidence) -> Line:
    """The ranks that did not come through the interpreter's exit."""
    return Line("exit", Verdict.KNOWN, f"rank {', '.join(map(str, e.aborted))} {ABORT}")


def process_group(e: Evidence) -> Line:
    """It is gone when the program ends, and so are all processes."""
    name = "process group"
    if e.left:
        return Line(name, Verdict.DIFFERS, f"{len(e.left)} processes outlived the program: {e.left[0][:100]}")
    processes = "no process is left" if e.left is not None else "processes that are left cannot be looked for on this system"
    if e.ranks[0]["cut"]:
        return Line(name, Verdict.NONE, f"the runs were cut after the steps asked for; {processes}")
    left = [r["rank"] for r in e.ranks if r["group_left"]]
    if left:
        return Line(name, Verdict.DIFFERS, f"still there at exit on ranks {left}")
    code = "" if e.aborted else "exit code 0, "
    return Line(name, Verdict.EQUAL, f"gone at exit; {code}{processes}")
