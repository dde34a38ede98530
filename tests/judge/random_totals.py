"""Random training programs that add up, keep and tell numbers: what the migrated ones tell, against the originals.

``python -m tests.judge.random_totals --count 200`` prints the programs of which a number differs at two or three
ranks and no message tells of it (wrong), of which a message tells though the numbers are the same (noise), and that
are refused (needless).
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dpmigrate import engine
from dpmigrate.model import Status, left
from dpmigrate.settings import Settings
from tests.judge.random_tellers import Maker, program
from tests.judge.random_units import Unit
from tests.judge.told_runs import differing, run_alone, run_ranks, together


@dataclass(slots=True)
class Verdict:
    """What is said of a program against what its migration tells."""

    wrong: dict[str, str] = field(default_factory=dict)
    noise: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    #: told of on a line that tells other numbers as well
    loose: dict[str, str] = field(default_factory=dict)
    equal: int = 0
    refused: str = ""
    skipped: str = ""
    after: str = ""
    messages: list[str] = field(default_factory=list)


def migrated(text: str) -> tuple[str | None, list[tuple[int, str]], str]:
    """The result, the messages with their lines, and why there is none."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "train.py"
        path.write_text(text)
        kept: list[str] = []

        def keep(_: Path, after: object) -> None:
            kept.extend(data.decode() for data in after.values())  # type: ignore[attr-defined]

        (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False, gate=keep))
    said = [(f.span.line, f"{f.code} {f.message} {f.advice}") for f in left(outcome.findings)]
    said += [(0, n) for n in outcome.notes]
    if outcome.status is not Status.CHANGED:
        words = [f"{f.span.line}: {f.code} {f.message}" for f in outcome.findings if f.severity.value == "blocker"]
        problem = outcome.problem.message if outcome.problem is not None else ""
        return None, said, f"{outcome.status.value}: {outcome.reason} {problem} {words}"
    return kept[0], said, ""


def covered(tag: str, unit: Unit | None, text: str, message: tuple[int, str]) -> str:
    """How a message tells of a number: by its name or its own line ("told"), by a line that tells others as well ("loose"), or not at all."""
    line, words = message
    if words.startswith("DPM216"):
        return ""
    tags = [tag, *([unit.tag, f"h{tag[1:]}"] if unit is not None else [])]
    names = [x for x in (unit.names if unit is not None else []) if x != "loss"]
    if any(re.search(rf"\b{re.escape(x)}\b", words) for x in names):
        return "told"
    if re.search(r"writer\.writerows\(rows\)|json\.dump\(history", words):
        return "loose"  # one file has all numbers
    numbered = {line, *(int(m) for m in re.findall(r"\bline (\d+)", words))}
    found = ""
    for n, part in enumerate(text.splitlines(), 1):
        if not any(re.search(rf"\b{re.escape(x)}\b", part) for x in (*tags, *names)):
            continue
        if n in numbered or part.strip()[:40] in words:
            others = set(re.findall(r"\b[udh](\d+)\b", part)) - {tag[1:]}
            if not others:
                return "told"
            found = "loose"
    return found


def judged(text: str, maker: Maker, worlds: tuple[int, ...] = (2, 3)) -> Verdict:
    """Whether what a migrated program tells is what the original tells, or is said not to be."""
    out = Verdict()
    after, said, why = migrated(text)
    out.messages = [f"{n}: {m}" for n, m in said]
    units = {u.tag[1:]: u for u in (*maker.trained, *maker.tested)}
    if after is None:
        alone = run_alone(text, {})
        if alone.failure:
            out.skipped = alone.failure
        else:
            out.refused = why
        return out
    out.after = after
    differ: dict[str, str] = {}
    tags: dict[str, None] = {}
    for world in worlds:
        ranks = run_ranks(after, world)
        failed = [r.failure for r in ranks if r.failure]
        original = run_alone(text, together(ranks) if not failed else {})
        if original.failure:
            out.skipped = original.failure
            return out
        if failed:
            out.wrong["run"] = f"at {world} ranks: {failed[0]}"
            return out
        tags |= dict.fromkeys(original.told)
        for tag, words in differing(original, ranks[0]).items():
            differ.setdefault(tag, f"at {world}: {words}")
    about: dict[str, list[str]] = {m: [] for _, m in said}
    for tag in tags | dict.fromkeys(differ):
        unit = units.get(tag[1:])
        kind = unit.kind if unit is not None else ""
        how = {m: c for n, m in said if (c := covered(tag, unit, text, (n, m)))}
        for m in how:
            about[m].append(tag)
        if tag in differ:
            told = next((m for m, c in how.items() if c == "told"), "")
            into = out.told if told else out.loose if how else out.wrong
            into[tag] = f"{kind}: {differ[tag]} {told or next(iter(how), '')}"
        elif not how:
            out.equal += 1
    for message, its in about.items():
        if its and not any(t in differ or t[1:] in {d[1:] for d in differ} for t in its):
            kinds = ", ".join(u.kind for t in its if (u := units.get(t[1:])) is not None)
            out.noise[" ".join(its)] = f"{kinds}: {message}"
    return out


def main() -> None:
    """Run many programs and print what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--worlds", type=int, nargs="*", default=[2, 3])
    parser.add_argument("--text", action="store_true", help="print the text of the first, and what became of it")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(args.first, args.first + args.count):
        text, maker = program(seed)
        if args.text:
            print(text)
        found = judged(text, maker, tuple(args.worlds))
        if args.text:
            print(found.after, *found.messages, sep="\n")
        counts["programs"] += 1
        counts["skipped"] += bool(found.skipped)
        counts["refused"] += bool(found.refused)
        counts["wrong"] += len(found.wrong)
        counts["noise"] += len(found.noise)
        counts["told"] += len(found.told)
        counts["loose"] += len(found.loose)
        counts["equal"] += found.equal
        for what, words in [*(("WRONG " + t, w) for t, w in found.wrong.items()), *(("noise " + t, w) for t, w in found.noise.items()), *(("loose " + t, w) for t, w in found.loose.items()), *(("told " + t, w) for t, w in found.told.items())]:
            print(f"{seed}: {what}: {words}", flush=True)
        for what, words in (("refused", found.refused), ("skipped", found.skipped)):
            if words:
                print(f"{seed}: {what}: {words}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    sys.setrecursionlimit(5000)
    main()
