"""What two runs did, compared: one line for each thing that a right migration keeps.

The records are the probe's (``inject/sitecustomize.py``). Bounds are measured, not chosen to pass: in float64, DDP at the same global batch is within
1e-15 of one process after one step and within 1e-12 after 50 (Adam: 1e-9); in float32 within 1e-6 for SGD. Distances are relative to how far the
parameters have moved.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
#: relative distance of parameters, losses and gradients, by the precision of the runs
BOUND = {True: 1e-7, False: 2e-3}
EXACT = {True: 1e-12, False: 1e-6}
ALLOWED = "allowed: "  # the probe's word before a difference of checkpoints that a right migration may make
PRINTED = 2e-3  # numbers are printed with few digits


class Verdict(enum.Enum):
    """How a line came out."""

    EQUAL = "equal"
    BOUND = "within bound"
    DIFFERS = "DIFFERS"
    NONE = "not comparable"


@dataclass(frozen=True)
class Line:
    """One thing compared."""

    name: str
    verdict: Verdict
    text: str


@dataclass(frozen=True)
class Distance:
    """How far the parameters of the two runs are apart after one step, relative to how far they have moved, and the first parameter that differs."""

    step: int
    relative: float
    parameter: str
    spread: float  # between the ranks, largest absolute difference
    moved: float = 1.0  # by the original, as a norm


def global_order(ranks: Sequence[Record]) -> list[tuple[str, int, list[list[int]]]]:
    """The batches that the ranks took together in each training pass: for the other run to take the same."""
    found = []
    for p in ranks[0]["passes"]:
        if not p["backwards"]:
            continue
        parts = [q["batches"] for r in ranks for q in r["passes"] if (q["data"], q["nth"]) == (p["data"], p["nth"])]
        batches = [[i for part in batch for i in part] for batch in zip(*parts, strict=False)]
        if not any(-1 in batch for batch in batches):
            found.append((p["data"], p["nth"], batches))
    return found


def judge(
    original: Record,
    ranks: Sequence[Record],
    distances: Sequence[Distance],
    *,
    float64: bool,
    saved: Mapping[str, str] | None = None,
    left: Sequence[str] = (),
) -> list[Line]:
    """All lines; ``saved`` are the differences of the checkpoints by file, empty where there is none, ``left`` the processes that outlived the program."""
    numbers = [*_parameters(distances, float64), _losses(original, ranks, float64), _gradients(original, ranks, float64)]
    if any(r["draws"] for r in (original, *ranks)):  # mixing of samples, noise of another shape: each rank draws its own, as it should
        why = "random numbers are drawn between a batch and its step, by each rank its own"
        numbers = [Line(n.name, Verdict.NONE, f"{why} ({n.text})") if n.verdict is Verdict.DIFFERS else n for n in numbers]
    return [
        *numbers,
        _ranks_alike(distances, ranks),
        _steps(original, ranks),
        _rates(original, ranks),
        _samples(original, ranks),
        _shards(original, ranks),
        _order(original, ranks),
        _evaluation(original, ranks),
        _metrics(original, ranks),
        _lines_once(original, ranks),
        _files(original, ranks),
        _checkpoints(original, saved),
        _group(ranks, left),
    ]


def proved(lines: Sequence[Line]) -> bool:
    """Whether nothing differs and the parameters were compared."""
    compared = any(line.name.startswith("parameters") and line.verdict in (Verdict.EQUAL, Verdict.BOUND) for line in lines)
    return compared and all(line.verdict is not Verdict.DIFFERS for line in lines)


# ---------------------------------------------------------------- numbers
def _near(value: float, float64: bool) -> Verdict:
    return Verdict.EQUAL if value <= EXACT[float64] else Verdict.BOUND if value <= BOUND[float64] else Verdict.DIFFERS


def _parameters(distances: Sequence[Distance], float64: bool) -> Iterator[Line]:
    if not distances:
        yield Line("parameters", Verdict.NONE, "no optimizer step that both runs took was seen")
        return
    for d in dict.fromkeys((distances[0], distances[-1])):
        first = next((x for x in distances if _near(x.relative, float64) is Verdict.DIFFERS), None)
        where = f"; they part at step {first.step}, {first.parameter} first" if first is not None else ""
        text = f"{d.relative:.1e} of the distance moved{where}" if d.moved else f"the original does not move them{', the ranks do' if d.relative else ''}"
        yield Line(f"parameters after step {d.step}", _near(d.relative, float64), text)


def _ranks_alike(distances: Sequence[Distance], ranks: Sequence[Record]) -> Line:
    if len(ranks) < 2 or not distances:
        return Line("ranks alike", Verdict.NONE, "one rank only" if len(ranks) < 2 else "no steps")
    apart = next((d for d in distances if d.spread > 0), None)
    if apart is None:
        return Line("ranks alike", Verdict.EQUAL, f"the parameters of all {len(ranks)} ranks are the same after every step")
    why = " (no DistributedDataParallel was built)" if not ranks[0]["wrapped"] else ""
    return Line("ranks alike", Verdict.DIFFERS, f"the ranks' parameters part at step {apart.step}, by {apart.spread:.1e}{why}")


def _by_step(record: Record) -> dict[int, tuple[float, int]]:
    """Loss and samples of each step: means over its backwards, weighted by their samples."""
    out: dict[int, tuple[float, int]] = {}
    for value, samples, step in record["losses"]:
        total, count = out.get(step, (0.0, 0))
        out[step] = (total + value * max(samples, 1), count + max(samples, 1))
    return {step: (total / count, count) for step, (total, count) in out.items()}


def _apart(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), abs(b), 1e-12) if a == a or b == b else 0.0


def loss_curves(original: Record, ranks: Sequence[Record]) -> list[tuple[int, float, float]]:
    """For each step that both runs took: the original's loss and that of all ranks together, their mean or, for a loss that sums over the batch, their sum."""
    mine, theirs = _by_step(original), [_by_step(r) for r in ranks]
    found = []
    for s in sorted(set(mine).intersection(*theirs)):
        count = sum(t[s][1] for t in theirs)
        together = sum(t[s][0] * t[s][1] for t in theirs) / count, sum(t[s][0] for t in theirs)
        found.append((s + 1, mine[s][0], min(together, key=lambda v: _apart(mine[s][0], v))))
    return found


def _losses(original: Record, ranks: Sequence[Record], float64: bool) -> Line:
    steps = loss_curves(original, ranks)
    if not steps:
        return Line("loss per step", Verdict.NONE, "no scalar loss was differentiated in both runs")
    worst, at = max(((_apart(a, b), -s) for s, a, b in steps), default=(0.0, 0))
    return Line("loss per step", _near(worst, float64), f"{len(steps)} steps, at most {worst:.1e} apart" + (f" (step {-at})" if worst else ""))


def _gradients(original: Record, ranks: Sequence[Record], float64: bool) -> Line:
    pairs = [(a["gradient"], b["gradient"]) for a, b in zip(original["steps"], ranks[0]["steps"], strict=False)]
    known = [(i, a, b) for i, (a, b) in enumerate(pairs, 1) if a is not None and b is not None]
    if not known:
        return Line("gradient norm", Verdict.NONE, "no gradients were seen at a step")
    worst = max(known, key=lambda k: _apart(k[1], k[2]))
    far = _apart(worst[1], worst[2])
    text = f"{len(known)} steps, at most {far:.1e} apart"
    if _near(far, float64) is Verdict.DIFFERS:
        first = next(k for k in known if _near(_apart(k[1], k[2]), float64) is Verdict.DIFFERS)
        text = f"step {first[0]}: {first[1]:.6g} and {first[2]:.6g}, a ratio of {first[2] / first[1] if first[1] else float('inf'):.3g}"
    return Line("gradient norm", _near(far, float64), text)


def _steps(original: Record, ranks: Sequence[Record]) -> Line:
    counts = [len(r["steps"]) for r in ranks]
    own = len(original["steps"])
    cut = " (cut)" if original["cut"] else ""
    same = set(counts) == {own}
    return Line("optimizer steps", Verdict.EQUAL if same else Verdict.DIFFERS, f"{own}{cut}" if same else f"original {own}, ranks {counts}")


def _rates(original: Record, ranks: Sequence[Record]) -> Line:
    for i, a in enumerate(original["steps"]):
        for r in ranks:
            if i < len(r["steps"]) and any(_apart(x, y) > 1e-9 for x, y in zip(a["lr"], r["steps"][i]["lr"], strict=False)):
                return Line("learning rate", Verdict.DIFFERS, f"step {i + 1}: original {a['lr']}, rank {r['rank']} {r['steps'][i]['lr']}")
    last = original["steps"][-1]["lr"] if original["steps"] else []
    return Line("learning rate", Verdict.EQUAL if last else Verdict.NONE, f"the same at every step, {last} at the last" if last else "no steps")


# ---------------------------------------------------------------- data
def _training(record: Record) -> list[Record]:
    return [p for p in record["passes"] if p["backwards"]]


def _taken(p: Record) -> list[int]:
    return [i for batch in p["batches"][: p["delivered"]] for i in batch]


def _samples(original: Record, ranks: Sequence[Record]) -> Line:
    mine = _training(original)
    if not mine or not all(_training(r) for r in ranks):
        return Line("samples per step", Verdict.NONE, "training does not go through a DataLoader")
    sizes = [len(b) for b in mine[0]["batches"][: mine[0]["delivered"]]]
    theirs = [[len(b) for b in _training(r)[0]["batches"][: _training(r)[0]["delivered"]]] for r in ranks]
    together = [sum(parts) for parts in zip(*theirs, strict=False)]
    if sizes == together:
        return Line("samples per step", Verdict.EQUAL, f"{sizes[0]}: {' + '.join(str(t[0]) for t in theirs)}")
    at = next((i for i, (a, b) in enumerate(zip(sizes, together, strict=False)) if a != b), min(len(sizes), len(together)))
    if at == len(sizes) - 1 and len(sizes) == len(together) and 0 < together[at] - sizes[at] < len(ranks):
        return Line("samples per step", Verdict.BOUND, f"{sizes[0]}; in the last batch {sizes[at]} became {together[at]}, so that the ranks have equal shares")
    if at >= len(sizes) or at >= len(together):
        return Line(
            "samples per step", Verdict.DIFFERS, f"original {len(sizes)} batches of {sizes[0]}, ranks {len(together)} of {together[0] if together else 0}"
        )
    return Line("samples per step", Verdict.DIFFERS, f"batch {at + 1}: original {sizes[at]}, ranks {[t[at] for t in theirs]}")


def _shards(original: Record, ranks: Sequence[Record]) -> Line:
    name = "shards of an epoch"
    passes = [_training(r) for r in ranks]
    if len(ranks) < 2 or not all(passes):
        return Line(name, Verdict.NONE, "one rank only" if len(ranks) < 2 else "training does not go through a DataLoader")
    padded = 0
    for n, parts in enumerate(zip(*passes, strict=False)):
        taken = [_taken(p) for p in parts]
        twice = sum(map(len, taken)) - len(set().union(*taken))
        whole = all(p["ended"] and (not p["cut"] or len(_taken(p)) == p["length"]) for p in parts)
        own = _training(original)[n] if n < len(_training(original)) else None
        repeats = twice if own is not None and own["replacement"] else 0  # drawn with replacement, or weighted
        if twice > repeats + (len(ranks) if whole else 0):
            return Line(name, Verdict.DIFFERS, f"pass {n + 1}: {twice} of {sum(map(len, taken))} samples are taken by more than one rank")
        if whole and own is not None and own["length"] and not own["replacement"]:
            never = own["length"] - len(set().union(*taken))
            if never >= (own["batch"] or 1):  # less may be the last batch, dropped
                return Line(name, Verdict.DIFFERS, f"pass {n + 1}: {never} of {own['length']} samples are taken by no rank")
        padded = max(padded, twice - repeats)
    together = f"{len(passes[0])} passes, disjoint"
    return Line(name, Verdict.BOUND if padded else Verdict.EQUAL, f"{together}; {padded} samples twice, for equal shares" if padded else together)


def _order(original: Record, ranks: Sequence[Record]) -> Line:
    name = "order from epoch to epoch"
    own = [_taken(p) for p in _training(original)]
    shuffled = any(p["sampler"] not in ("SequentialSampler",) for p in _training(original))
    passes = [_taken(p) for p in _training(ranks[0]) if p["ended"] or len(_taken(p)) > 1]
    pairs = [(a[: len(b)], b) for a, b in itertools.pairwise(passes) if b]
    if not shuffled or not pairs or len(own) < 2:
        return Line(name, Verdict.NONE, "one epoch only" if len(own) < 2 else "the original does not shuffle")
    same = sum(a == b for a, b in pairs)
    if same:
        return Line(name, Verdict.DIFFERS, f"{same} of {len(pairs)} epochs repeat the order of the one before (set_epoch?)")
    return Line(name, Verdict.EQUAL, "another one in every epoch")


def _evaluation(original: Record, ranks: Sequence[Record]) -> Line:
    name = "samples of an evaluation"
    trained_on = {p["data"] for p in _training(original)}  # a look at the first batch is no evaluation
    passes = [[p for p in r["passes"] if not p["backwards"] and p["delivered"] and (p["ended"] or p["data"] not in trained_on)] for r in (original, *ranks)]
    own, theirs = passes[0], passes[1:]
    if not own:
        return Line(name, Verdict.NONE, "no evaluation goes through a DataLoader")
    for n, p in enumerate(own):
        parts = [t[n] for t in theirs if n < len(t) and t[n]["data"] == p["data"]]
        want, taken = Counter(_taken(p)), [Counter(_taken(q)) for q in parts]
        if not parts:
            return Line(name, Verdict.DIFFERS, f"pass {n + 1} over {p['data']}: no rank evaluated")
        if all(t == want for t in taken) or sum(taken, Counter()) == want:
            continue
        together = sum(taken, Counter())
        twice, never = sum((together - want).values()), sum((want - together).values())
        return Line(name, Verdict.DIFFERS, f"pass {n + 1} over {p['data']}: of {sum(want.values())} samples {twice} are counted too often, {never} never")
    return Line(name, Verdict.EQUAL, f"{len(own)} passes, every sample once")


# ---------------------------------------------------------------- what is seen from outside
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]?|\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?")
_CLOCK = re.compile(r"\bs/|it/s|\bsec|\bms\b|time|elapsed|took|\d+m \d+s|\d+\.\d+ ?s\b|\beta\b", re.IGNORECASE)
_WARNING = re.compile(r"Warning|warnings\.warn|^\s+|^W\d{4}|^\[[WEI]\d")  # Python's and torch's own, which every process may give


def _printed(record: Record, *, results: bool = False) -> list[str]:
    """The lines, without the date and time that loggers put before them; ``results``: those with numbers, outside training, that speak of no clock."""
    seen = [(inside, text) for inside, text, kind in record["lines"] if kind == "stdout" or (kind == "stderr" and not _WARNING.search(text))]
    lines = [(inside, _STAMP.sub("", text)) for inside, text in seen]
    return [t for inside, t in lines if not results or (not inside and _NUMBER.search(t) and not _CLOCK.search(t))]


def _form(line: str) -> str:
    return _NUMBER.sub("#", line).strip()


def _words(line: str) -> str:
    return " ".join(re.findall(r"[^\W\d_]+", _STAMP.sub("", line)))


def _metrics(original: Record, ranks: Sequence[Record]) -> Line:
    """Lines printed outside training hold results; those printed in it may speak of one rank's batch."""
    name = "numbers printed"
    own = _printed(original, results=True)
    theirs = [t for r in ranks for t in _printed(r, results=True)]
    if not own:
        return Line(name, Verdict.NONE, "no line with numbers is printed outside the training loop")
    by_form: dict[str, list[str]] = {}
    for t in theirs:
        by_form.setdefault(_form(t), []).append(t)
    compared, shares, worst = 0, 0, 0.0
    for line in own:
        found = by_form.get(_form(line))
        if not found:
            return Line(name, Verdict.DIFFERS, f"this line is gone: {line[:100]}")
        other = found.pop(0)
        for a, b in zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=False):
            far = _printed_apart(a, b)
            if far > PRINTED and _share_of_a_batch(a, b, original, ranks):
                shares += 1
                continue
            worst = max(worst, far)
            if far > PRINTED:
                return Line(name, Verdict.DIFFERS, f"{line[:100]}  |  {other[:100]}")
        compared += 1
    more = f"; {shares} numbers are the loss of a batch, of which a rank prints its part" if shares else ""
    return Line(name, Verdict.BOUND if worst or shares else Verdict.EQUAL, f"{compared} lines outside the training loop{more}")


def _digits(number: str) -> float:
    """The value of the last digit printed."""
    return 10.0 ** -len(number.partition(".")[2]) if "." in number and "e" not in number.lower() else 0.0


def _printed_apart(a: str, b: str) -> float:
    x, y = float(a), float(b)
    return 0.0 if abs(x - y) <= 1.01 * _digits(a) or (x != x and y != y) else _apart(x, y)


def _share_of_a_batch(a: str, b: str, original: Record, ranks: Sequence[Record]) -> bool:
    """Whether the original printed the loss of a batch and the ranks that of their part of the same one."""
    if "." not in a or "." not in b:
        return False
    mine = {i for i, (value, _, _) in enumerate(original["losses"]) if abs(value - float(a)) <= _digits(a)}
    return any(abs(r["losses"][i][0] - float(b)) <= _digits(b) for r in ranks for i in mine if i < len(r["losses"]))


def _lines_once(original: Record, ranks: Sequence[Record]) -> Line:
    name = "lines printed once"
    own = Counter(map(_form, _printed(original)))
    theirs = [Counter(map(_form, _printed(r))) for r in ranks]
    bars = [{_words(text) for _, text, kind in r["lines"] if kind == "bar"} for r in ranks]
    if not own:
        return Line(name, Verdict.NONE, "nothing is printed")
    repeated = [form for form, n in sum(theirs, Counter()).items() if form in own and n > own[form] and sum(form in t for t in theirs) > 1]
    repeated += [bar for bar in sorted(set().union(*bars)) if sum(bar in b for b in bars) > 1]
    if repeated:
        return Line(name, Verdict.DIFFERS, f"printed by several ranks: {repeated[0][:100]}")
    words = {_words(t) for r in ranks for t in _printed(r)}
    gone = [text for _, text, stream in original["lines"] if stream == "stdout" and _words(text) and _words(text) not in words and not _CLOCK.search(text)]
    if gone:
        return Line(name, Verdict.DIFFERS, f"not printed any more: {gone[0][:100]}")
    return Line(name, Verdict.EQUAL, f"{sum(own.values())} lines, by one rank")


def _masked(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _files(original: Record, ranks: Sequence[Record]) -> Line:
    name = "files written"
    own = {_masked(f) for f in original["writes"]}
    writers: dict[str, set[int]] = {}
    for r in ranks:
        for f in r["writes"]:
            writers.setdefault(f, set()).add(r["rank"])
    several = sorted(f for f, who in writers.items() if len(who) > 1)
    if several:
        return Line(name, Verdict.DIFFERS, f"{several[0]} is written by {len(writers[several[0]])} ranks")
    gone = sorted(own - {_masked(f.removesuffix(".tmp")) for f in writers})
    if gone:
        return Line(name, Verdict.DIFFERS, f"not written any more: {gone[0]}")
    return Line(name, Verdict.EQUAL, f"{len(own)} kinds, each by one rank" if own else "none")


def _checkpoints(original: Record, saved: Mapping[str, str] | None) -> Line:
    name = "checkpoints"
    if saved is None or not original["saves"]:
        return Line(name, Verdict.NONE, "the original saves none" if not original["saves"] else "they could not be read")
    differing = {f: why for f, why in saved.items() if why}
    for f, why in sorted(differing.items(), key=lambda d: d[1].startswith(ALLOWED)):
        return Line(name, Verdict.BOUND if why.startswith(ALLOWED) else Verdict.DIFFERS, f"{f}: {why.removeprefix(ALLOWED)}")
    return Line(name, Verdict.EQUAL, f"{len(saved)} files: same keys, shapes and types")


def _group(ranks: Sequence[Record], processes: Sequence[str]) -> Line:
    name = "process group"
    if processes:
        return Line(name, Verdict.DIFFERS, f"{len(processes)} processes outlived the program: {processes[0][:100]}")
    left = [r["rank"] for r in ranks if r["group_left"]]
    if ranks[0]["cut"]:
        return Line(name, Verdict.NONE, "the runs were cut after the steps asked for; no process is left")
    text = f"still there at exit on ranks {left}" if left else "gone at exit; exit code 0, no process is left"
    return Line(name, Verdict.DIFFERS if left else Verdict.EQUAL, text)
