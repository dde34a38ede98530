"""A sample of mutants: what is refused stays refused, what is noticed stays noticed.

It is the same sample in each run of the tests, so that a change and not chance makes them fail. Others are drawn by
hand (``python -m tests.mutation --static --sample 500 --seed 3``).
"""

from __future__ import annotations

import random

from tests.mutation import baseline, running, static, work
from tests.mutation.mutants import mutants
from tests.mutation.outcomes import Outcome, Result
from tests.mutation.subjects import Key, keys, opened

SEED = 16
PROGRAMS, EACH = 8, 5
RUNS = 3
#: of what the run stage has noticed; a hang would take its whole time
QUICK = [o.value for o in baseline.NOTICED if o is not Outcome.HANG]


def test_what_is_refused_stays_refused() -> None:
    known = baseline.load()
    results: list[Result] = []
    for key in random.Random(SEED).sample(keys(), PROGRAMS):
        with opened(key) as subject:
            of = [m.described for m in mutants(subject)]
            telling = [d for d in of if not known.passes(d.kind, d.case)]
            drawn = work.sampled(telling, SEED)[:EACH]
            results += static.judged(subject, {d.id for d in drawn})
    passed = [r.mutant.id for r in baseline.grown(results, known)]
    assert not passed, f"not refused any more; see docs/mutation.md: {passed}"


def test_what_is_noticed_stays_noticed() -> None:
    known = sorted(i for i, o in baseline.load().noticed.items() if o in QUICK)
    drawn = random.Random(SEED).sample(known, min(RUNS, len(known)))
    ends = {id: _ended(id) for id in drawn}
    missed = {i: o.value for i, o in ends.items() if o not in (Outcome.REFUSED, *baseline.NOTICED)}
    assert not missed, f"not noticed any more; see docs/mutation.md: {missed}"


def _ended(id: str) -> Outcome:
    """The outcome of a mutant that is recorded."""
    case, script = id.split(":")[0].split("/", 1)
    with opened(Key(case, script)) as subject:
        found = list(static.judged(subject, {id}))
        assert found, f"there is no mutant {id} any more: record the baseline anew"
        if found[0].outcome is Outcome.PASSED:
            return running.tried(subject, id, 120).outcome
        return found[0].outcome
