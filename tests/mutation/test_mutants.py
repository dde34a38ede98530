"""Mutants of recorded programs: which there are, that each is one fault, and what the static stage says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from dpmigrate import engine, rules
from dpmigrate.edit import AddImport, Before
from dpmigrate.judge import Judgement
from dpmigrate.migration import Judged, Shown
from dpmigrate.model import Status
from tests.mutation import equivalent, static, work
from tests.mutation.mutants import FINDING, WAYS, Mutant, mutants
from tests.mutation.outcomes import Outcome, Result
from tests.mutation.subjects import Key, Subject, keys, opened
from tests.pipeline import FIXTURES, PROGRAMS

#: between them they have a mutant of every way
FIXTURE = Key("grad_accumulation", "train.py")
PROGRAM = Key("two_entries_one_engine", "finetune.py")


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    with opened(FIXTURE) as one:
        yield one


@pytest.fixture(scope="module")
def made(subject: Subject) -> list[Mutant]:
    return list(mutants(subject))


def named(made: list[Mutant], words: str) -> Mutant:
    return next(m for m in made if words in m.described.id)


def judged(subject: Subject, mutant: Mutant) -> Result:
    (result,) = static.judged(subject, {mutant.described.id})
    return result


def test_every_program_that_is_migrated_is_a_subject() -> None:
    cases = {key.case for key in keys()}
    assert {p.parent.name for p in FIXTURES.glob("*/after.py")} <= cases
    assert {p.parent.name for p in PROGRAMS.glob("*/after")} <= cases


def test_the_result_without_a_fault_is_the_recorded_one(subject: Subject) -> None:
    (text,) = subject.texts.values()
    assert text == (FIXTURES / FIXTURE.case / "after.py").read_bytes().decode()


def test_a_program_of_several_scripts_is_the_recorded_one() -> None:
    with opened(PROGRAM) as several:
        after = PROGRAMS / PROGRAM.case / "after"
        for part, text in several.texts.items():
            assert text == (after / part.source.name).read_bytes().decode()
        assert several.key.script in {p.source.name for p in several.texts}


def test_a_program_that_is_not_migrated_is_no_subject() -> None:
    key = Key("noop_already_ddp", "train.py")
    with pytest.raises(ValueError, match=r"noop_already_ddp/train\.py is not"), opened(key):
        pass


def test_every_way_makes_mutants(made: list[Mutant]) -> None:
    assert {m.described.way for m in made} == set(WAYS)


def test_ids_are_unique_and_the_same_each_time(subject: Subject, made: list[Mutant]) -> None:
    ids = [m.described.id for m in made]
    assert len(set(ids)) == len(ids)
    assert [m.described.id for m in mutants(subject)] == ids


def test_every_edit_is_taken_away_once(subject: Subject, made: list[Mutant]) -> None:
    edits = {e for f in subject.found for e in f.edits}
    missing = [m for m in made if m.described.way == "missing"]
    gone = [edits - {e for f in m.findings for e in f.edits} for m in missing]
    assert all(len(one) == 1 for one in gone)
    assert set().union(*gone) == edits


def test_a_finding_goes_with_all_its_edits_but_the_imports(made: list[Mutant]) -> None:
    mutant = named(made, f"DPM601:{FINDING}")
    left = [e for f in mutant.findings if f.code == "DPM601" for e in f.edits]
    assert all(isinstance(e, AddImport) for e in left)
    assert mutant.described.label == "DPM601"


def test_the_diff_is_one_fault(subject: Subject, made: list[Mutant]) -> None:
    result = judged(subject, named(made, ".set_epoch():missing"))
    changed = [line for line in result.diff.splitlines() if line[:1] in "+-"]
    assert changed[2:] == ["-        loader.sampler.set_epoch(epoch)"]
    assert result.mutant.place == "train.py:51"


def test_a_collective_on_rank_0_alone_is_refused(subject: Subject, made: list[Mutant]) -> None:
    result = judged(subject, named(made, "ddp.sum_all:on rank 0 alone"))
    assert result.outcome is Outcome.REFUSED
    assert "waits for every rank but stands under the rank-0 guard" in result.why


def test_apply_refuses_what_the_static_stage_refuses(
    subject: Subject, made: list[Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage calls what apply calls: with the mutant's findings apply writes nothing."""
    cases = [("sum_all:on rank 0", Status.REFUSED), ("seed_ranks:missing", Status.CHANGED)]
    for words, status in cases:
        mutant = named(made, words)
        monkeypatch.setattr(rules, "check", lambda script, mutant=mutant: mutant.findings)
        how = engine.Writing(write=False)
        (outcome,) = engine.apply([Path(FIXTURE.script)], subject.settings, how)
        assert outcome.status is status
        refused = judged(subject, mutant).outcome is Outcome.REFUSED
        assert refused == (status is Status.REFUSED)


def test_an_edit_that_contradicts_another_in_its_new_place_is_no_mutant(
    subject: Subject, made: list[Mutant]
) -> None:
    result = judged(subject, named(made, "ddp.wrap:one level in"))
    assert result.outcome is Outcome.IMPOSSIBLE
    assert "contradict each other" in result.why


def test_a_text_that_does_not_compile_is_no_mutant(subject: Subject, made: list[Mutant]) -> None:
    mutant = named(made, "ddp.seed_ranks:missing")
    anchor = next(e.stmt for f in subject.found for e in f.edits if isinstance(e, Before))
    broken = replace(mutant.findings[0], edits=(Before(anchor, "break"),))
    spoiled = replace(mutant, findings=(broken,))
    with mock.patch.object(static, "mutants", lambda _: [spoiled]):
        result = judged(subject, mutant)
    assert (result.outcome, "outside loop" in result.why) == (Outcome.BROKEN, True)


def test_the_right_result_again_is_no_mutant(subject: Subject, made: list[Mutant]) -> None:
    mutant = replace(named(made, "ddp.seed_ranks:missing"), findings=subject.found)
    with mock.patch.object(static, "mutants", lambda _: [mutant]):
        assert judged(subject, mutant).outcome is Outcome.SAME


def test_a_program_that_cannot_be_run_is_told_apart(subject: Subject, made: list[Mutant]) -> None:
    mutant = named(made, "ddp.seed_ranks:missing")
    with mock.patch.object(equivalent, "RULES", ()):  # else it is as right as the right result
        assert judged(subject, mutant).outcome is Outcome.PASSED
        assert judged(replace(subject, runnable=False), mutant).outcome is Outcome.PASSED_IDLE


def test_what_is_told_beside_the_right_result_is_noticed() -> None:
    with opened(Key("amp_resume_scaler", "train.py")) as subject:
        mutant = named(list(mutants(subject)), "DPM321:['scaler']=:missing")
        with mock.patch.object(equivalent, "RULES", ()):  # else it is as right as the right result
            result = judged(subject, mutant)
    assert (result.outcome, "without its GradScaler" in result.why) == (Outcome.TOLD, True)


def test_a_finding_that_loses_its_edit_is_not_left_to_the_user() -> None:
    """What is left is told, and the judge goes by that."""
    with opened(Key("data_redrawn", "train.py")) as subject:
        mutant = named(list(mutants(subject)), "DPM602:ddp.mean_all:missing")
        with mock.patch.object(equivalent, "RULES", ()):  # numbers that are only told may be rank 0's where that is said
            result = judged(subject, mutant)
    assert "DPM602" not in {f.code for f in mutant.findings}
    assert (result.outcome, "rank 0's own batches" in result.why) == (Outcome.TOLD, True)


def test_what_is_told_is_compared_without_its_lines() -> None:
    judgement = Judgement((), ("train.py:12 tells it, line 7",), (), True)
    assert static.sentences(Judged({}, judgement, Shown(""))) == {"tells it"}
    assert static.sentences({}) == static.sentences(None) == set()


def test_the_choice_of_mutants() -> None:
    all_of_them = work.described(FIXTURE, work.Choice())
    first = all_of_them[0]
    assert work.described(FIXTURE, work.Choice(kinds=("set_epoch", "barrier"))) == [
        d for d in all_of_them if "set_epoch" in d.kind
    ]
    assert work.described(FIXTURE, work.Choice(ids=frozenset({first.id}))) == [first]
    assert first not in work.described(FIXTURE, work.Choice(done=frozenset({first.id})))
    shards = [work.described(FIXTURE, work.Choice(shard=(i, 3))) for i in (1, 2, 3)]
    assert sorted(d.id for shard in shards for d in shard) == sorted(d.id for d in all_of_them)
    assert all(shards)
    assert work.Choice(cases=(FIXTURE.case,)).programs() == [FIXTURE]
    assert work.Choice(ids=frozenset({first.id})).programs() == [FIXTURE]


def test_a_sample_has_every_kind_before_it_has_one_twice() -> None:
    of = work.described(FIXTURE, work.Choice())
    kinds = {d.kind for d in of}
    drawn = work.sampled(of, 1)
    assert {d.kind for d in drawn[: len(kinds)]} == kinds
    assert sorted(d.id for d in drawn) == sorted(d.id for d in of)
    assert work.sampled(of, 1) == drawn != work.sampled(of, 2)
    assert work.sampled([], 1) == []
