"""Which samples were used: in each step, in each epoch, in which order, and in an evaluation."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmigrate.verify.judge.evidence import Evidence, Line, Record, Verdict, training

Sample = int | None
Pass = tuple[str, int, bool, list[list[int]], str]
LONG = 8  # so many samples do not stand in order by chance
_NO_LOADER = "training does not go through a DataLoader"
_STREAM = "the samples of a stream have no numbers"


def global_order(ranks: Sequence[Record]) -> list[Pass]:
    """The passes of rank 0, for the other run to take the same: their data and its number, whether they train, the batches that all ranks took together,
    and the view.

    Training passes belong together by their turn, whatever else a rank does, and so do evaluations of one view. What an original that shuffles its
    evaluation needs of them is how the samples stood together in batches; of an evaluation that is not of every sample once only one batch is told, by
    which the original knows its own.
    """
    trained = [iter(training(r)) for r in ranks]
    tried: dict[str, list[Iterator[Record]]] = {}
    found = []
    for p in ranks[0]["passes"]:
        trains, view = bool(p["backwards"]), p["view"]
        if not trains and view not in tried:
            tried[view] = [iter([q for q in r["passes"] if q["view"] == view and not q["backwards"]]) for r in ranks]
        parts = [part for t in (trained if trains else tried[view]) if (part := next(t, None)) is not None]
        batches = [_dealt(batch) for batch in zip(*(part["batches"] for part in parts), strict=False)] if trains else _evaluated(parts)
        if (trains or batches) and not any(i is None for batch in batches for i in batch):  # one without a sample could be any
            found.append((p["data"], p["number"], trains, batches, view))
    return found


def _dealt(shares: Sequence[Sequence[Any]]) -> list[Any]:
    """The batch of which each rank has taken its share in turn, as samplers deal them out: a loss may compare samples by their places in it."""
    nobody = object()
    return [i for turn in itertools.zip_longest(*shares, fillvalue=nobody) for i in turn if i is not nobody]


def _evaluated(parts: Sequence[Record]) -> list[list[int]]:
    """The batches of one evaluation: rank 0's where it takes what the others take, too, or those of all ranks, the short one last."""
    first, *others = ([b for b in p["batches"] if b] for p in parts)
    flat = [{i for b in batches for i in b} for batches in (first, *others)]
    if all(samples <= flat[0] for samples in flat):
        return first
    together = [b for batches in (first, *others) for b in batches]
    if sum(map(len, flat)) != len(set().union(*flat)) or None in set().union(*flat):
        return first[:1]
    return sorted(together, key=lambda b: (-len(b), min(b)))


def _taken(p: Record) -> list[Sample]:
    return [i for batch in p["batches"][: p["delivered"]] for i in batch]


def _sizes(p: Record) -> list[int]:
    return [len(b) for b in p["batches"][: p["delivered"]]]


def samples(e: Evidence) -> Line:
    """The samples of all ranks in each step are as many as the original's."""
    name, grown = "samples per step", ""
    passes = [training(r) for r in (e.original, *e.ranks)]
    if not all(passes):
        return Line(name, Verdict.NONE, _NO_LOADER)
    for own, *theirs in zip(*passes, strict=False):
        sizes, parts = _sizes(own), [_sizes(p) for p in theirs]
        together = [sum(part) for part in zip(*parts, strict=False)]
        if sizes == together:
            continue
        at = next((i for i, (a, b) in enumerate(zip(sizes, together, strict=False)) if a != b), min(len(sizes), len(together)))
        if at >= len(sizes) or at >= len(together):
            text = f"original {len(sizes)} batches of {max(sizes, default=0)}, ranks {len(together)} of {max(together, default=0)}"
            return Line(name, Verdict.DIFFERS, text)
        if at < len(sizes) - 1 or len(sizes) != len(together) or not 0 < together[at] - sizes[at] < len(e.ranks):
            return Line(name, Verdict.DIFFERS, f"batch {at + 1}: original {sizes[at]}, ranks {[p[at] for p in parts]}")
        grown = f"{sizes[0]}; in the last batch {sizes[at]} became {together[at]}, so that the ranks have equal shares"
    first = [_sizes(p[0]) for p in passes]
    return Line(name, Verdict.BOUND if grown else Verdict.EQUAL, grown or f"{first[0][0]}: {' + '.join(str(s[0]) for s in first[1:])}")


def shards(e: Evidence) -> Line:
    """In each epoch the ranks take different samples, and all of them."""
    name, padded = "shards of an epoch", 0
    passes = [training(r) for r in e.ranks]
    if len(e.ranks) < 2 or not all(passes):
        return Line(name, Verdict.NONE, "one rank only" if len(e.ranks) < 2 else _NO_LOADER)
    own = training(e.original)
    for n, parts in enumerate(zip(*passes, strict=False), 1):
        taken = [_taken(p) for p in parts]
        if any(None in t for t in taken):
            return Line(name, Verdict.NONE, _STREAM)
        mine = own[n - 1] if n <= len(own) else None
        if mine is not None and _drawn_again(mine):
            if any(a == b and len(a) >= LONG for a, b in itertools.combinations(taken, 2)):
                return Line(name, Verdict.DIFFERS, f"pass {n}: the ranks draw the same samples")
            continue
        different = set().union(*taken)
        twice = sum(map(len, taken)) - len(different)
        whole = all((p["ended"] and not p["cut"]) or len(_taken(p)) == p["length"] for p in parts)
        if twice > (len(e.ranks) if whole else 0):
            return Line(name, Verdict.DIFFERS, f"pass {n}: {twice} of {sum(map(len, taken))} samples are taken by more than one rank")
        if whole and mine is not None and mine["length"] and mine["length"] - len(different) >= (mine["batch"] or 1):  # less may be the last batch, dropped
            return Line(name, Verdict.DIFFERS, f"pass {n}: {mine['length'] - len(different)} of {mine['length']} samples are taken by no rank")
        padded = max(padded, twice)
    drawn = any(_drawn_again(p) for p in own)
    text = f"{len(passes[0])} passes, {'drawn with replacement, by each rank its own' if drawn else 'disjoint'}"
    return Line(name, Verdict.BOUND if padded else Verdict.EQUAL, f"{text}; {padded} samples twice, for equal shares" if padded else text)


def _drawn_again(p: Record) -> bool:
    """Whether the original's sampler draws samples more than once in a pass: said by itself, or seen in the beginning of its order."""
    head = p["natural"] or []
    return bool(p["replacement"]) or len(set(head)) < len(head)


def _heads(record: Record) -> dict[str, list[list[Sample]]]:
    """The beginnings of the orders that a run's own samplers gave, by the view of the data; that of the pass that was cut off before it began is the last."""
    found: dict[str, list[list[Sample]]] = {}
    for p in training(record):
        found.setdefault(p["view"], []).append(p["natural"] if p["natural"] is not None else [i for batch in p["batches"] for i in batch])
    if record["next"] is not None:
        view, head = record["next"]
        found.setdefault(view, []).append(head)
    return found


def _ascending(head: Sequence[Any]) -> bool:
    return all(a < b for a, b in itertools.pairwise(head))


def _repeats(heads: Mapping[str, Sequence[Sequence[Sample]]]) -> tuple[int, int]:
    """How many epochs begin as the one before, of how many."""
    pairs = [(a, b) for of in heads.values() for a, b in itertools.pairwise(of) if a and b]
    return sum(a[: min(len(a), len(b))] == b[: min(len(a), len(b))] for a, b in pairs), len(pairs)


def order(e: Evidence) -> Line:
    """Where the original shuffles, the ranks shuffle, another way in every epoch."""
    name = "order from epoch to epoch"
    own, theirs = _heads(e.original), _heads(e.ranks[0])
    first, other = (next(iter(h.values()), [[]])[0] for h in (own, theirs))
    if None in first or None in other:
        return Line(name, Verdict.NONE, _STREAM)
    repeated, epochs = _repeats(own)
    if _ascending(first) and repeated == epochs:
        return Line(name, Verdict.NONE, "the original does not shuffle")
    if not _ascending(first) and len(other) >= LONG and _ascending(other):
        return Line(name, Verdict.DIFFERS, "the original shuffles, the ranks take the samples in their order")
    same, pairs = _repeats(theirs)
    if not epochs or not pairs:
        return Line(name, Verdict.NONE, "shuffled as the original is; one epoch only")
    if same > repeated:
        return Line(name, Verdict.DIFFERS, f"{same} of {pairs} epochs repeat the order of the one before (set_epoch?)")
    return Line(name, Verdict.EQUAL, "another one in every epoch" if not repeated else "as often another one as in the original")


def evaluation(e: Evidence) -> Line:
    """Every sample is evaluated once: by each rank, by one, or by all together."""
    name = "samples of an evaluation"
    trained_on = {p["view"] for p in training(e.original)}  # a look at the first batch is no evaluation
    passes = [
        [p for p in r["passes"] if not p["backwards"] and (p["ended"] or (p["delivered"] and p["view"] not in trained_on))] for r in (e.original, *e.ranks)
    ]
    own, theirs = passes[0], passes[1:]
    if not own:
        return Line(name, Verdict.NONE, "no evaluation goes through a DataLoader")
    for n, p in enumerate(own):
        if len(_taken(p)) < (p["length"] or 0) and None not in _taken(p) and not _ascending(_taken(p)):
            continue  # a look at a few samples of a shuffled loader, left early: other ones on every rank
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
