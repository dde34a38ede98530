"""What the tool's checks let pass today, by kinds of mutants: a list that may only shrink.

``baseline.json`` holds under ``static`` the kinds of mutants that are not all refused before writing: the cases in which one passes, or
``*`` where none is refused in any case. A kind that is not there is refused whatever the program is. Under ``noticed`` it holds
mutants that the run stage has noticed, with their outcomes: tests draw from them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.mutation.outcomes import DROPPED, Outcome, Result, by_outcome
from tests.mutation.running import CONTROL
from tests.mutation.subjects import keys

FILE = Path(__file__).with_name("baseline.json")
EVERYWHERE = "*"
#: the outcomes of the run stage that a test may wait for
NOTICED = (Outcome.NET, Outcome.CRASH, Outcome.DIFFERS, Outcome.HANG)


@dataclass(frozen=True)
class Baseline:
    """The recorded state; ``static`` by kind."""

    static: Mapping[str, str | list[str]] = field(default_factory=dict)
    noticed: Mapping[str, str] = field(default_factory=dict)

    def passes(self, kind: str, case: str) -> bool:
        """Whether a mutant of this kind is known to pass in this case."""
        where = self.static.get(kind, [])
        return where == EVERYWHERE or case in where


def load() -> Baseline:
    """The recorded baseline; an empty one where there is no file."""
    return Baseline(**json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else Baseline()


def judged(results: Iterable[Result]) -> list[Result]:
    """The mutants among them, without controls, errors and what is no mutant.

    One that is the same as another has its outcome: a sample may hold either of them.
    """
    every = list(results)
    outcomes = {r.mutant.id: r.outcome for r in every}
    left_out = (*DROPPED, Outcome.ERROR)
    found = [
        replace(r, outcome=outcomes.get(r.why, r.outcome)) if r.outcome is Outcome.TWICE else r
        for r in every
    ]
    return [r for r in found if r.outcome not in left_out and r.mutant.way != CONTROL]


def grown(results: Iterable[Result], known: Baseline) -> list[Result]:
    """The mutants that pass and are not known to; one that a rule shows to be right is no fault that passes."""
    passed = (r for r in judged(results) if r.outcome not in (Outcome.REFUSED, Outcome.EQUIVALENT))
    return [r for r in passed if not known.passes(r.mutant.kind, r.mutant.case)]


def of(results: Iterable[Result], before: Baseline) -> Baseline:
    """The baseline of whole results; what earlier runs have noticed is kept where nothing newer is known."""
    passing: dict[str, set[str]] = defaultdict(set)
    cases: dict[str, set[str]] = defaultdict(set)
    refused: set[str] = set()
    real = judged(results)
    for r in real:
        cases[r.mutant.kind].add(r.mutant.case)
        if r.outcome is Outcome.REFUSED:
            refused.add(r.mutant.kind)
        else:
            passing[r.mutant.kind].add(r.mutant.case)
    static: dict[str, str | list[str]] = {
        kind: sorted(where) if kind in refused else EVERYWHERE
        for kind, where in sorted(passing.items())
    }
    known = {r.mutant.id: r.outcome for r in real}
    ran = {r.mutant.id: r.outcome.value for r in by_outcome(real, *NOTICED)}
    waiting = (Outcome.PASSED, Outcome.PASSED_IDLE)
    kept = {i: o for i, o in before.noticed.items() if known.get(i) in waiting}
    return Baseline(static, dict(sorted({**kept, **ran}.items())))


def command(results: Iterable[Result], *, record: bool, admit: bool) -> int:
    """Hold results against the baseline, or write it; the exit code of the command line."""
    every = list(results)
    before = load()
    new = grown(every, before)
    if record:
        seen = {(r.mutant.case, r.mutant.script) for r in every}
        absent = [str(key) for key in keys() if (key.case, key.script) not in seen]
        if absent or any(by_outcome(every, Outcome.ERROR)):
            print("not recorded: the static stage is not whole, or has errors:", *absent[:5])
            return 1
    if new and not (record and admit):
        print(f"\n{len(new)} mutants pass the tool's checks and are not in the baseline:")
        for r in new[:20]:
            print(f"  {r.mutant.id}")
        return 1
    if record:
        now = of(every, before)
        text = json.dumps({"static": now.static, "noticed": now.noticed}, indent=1)
        FILE.write_text(text + "\n", encoding="utf-8")
        print(f"\n{FILE.name}: {len(before.static)} kinds before, {len(now.static)} now")
    return 0
