"""Results are kept line by line, settled, counted, and held against the baseline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mutation import __main__ as command
from tests.mutation import baseline
from tests.mutation.baseline import Baseline
from tests.mutation.mutants import Described
from tests.mutation.outcomes import Outcome, Result, Writer, read, settled
from tests.mutation.running import CONTROL
from tests.mutation.subjects import Key
from tests.mutation.table import report


def result(
    outcome: Outcome,
    case: str = "a",
    name: str = "ddp.wrap",
    way: str = "missing",
    number: int = 1,
    digest: str = "",
) -> Result:
    id = f"{case}/train.py:DPM102:{name}:{way}:{number}"
    said = Described(id, case, "train.py", "DPM102", name, way, "train.py:3", "Wrap(…)")
    return Result(said, outcome, "because", "--- a\n+++ b\n-x", digest)


# ---------------------------------------------------------------------------- the file
def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    one, two = result(Outcome.PASSED, digest="abc"), result(Outcome.REFUSED, "b")
    Writer(path).write([one])
    Writer(path).write([two])
    assert read(path) == {one.mutant.id: one, two.mutant.id: two}


def test_the_last_result_of_a_mutant_counts(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Writer(path).write([result(Outcome.PASSED), result(Outcome.NET)])
    assert [r.outcome for r in read(path).values()] == [Outcome.NET]


def test_a_line_that_was_cut_off_is_left_out_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    one, two = result(Outcome.PASSED), result(Outcome.NET, "b")
    path.write_text(f"{one.line()}\n{two.line()[:40]}", encoding="utf-8")
    assert list(read(path)) == [one.mutant.id]
    Writer(path).write([two])
    assert list(read(path)) == [one.mutant.id, two.mutant.id]


@pytest.mark.parametrize("line", ["{", "{}", '{"mutant": 3, "outcome": "unnoticed"}'])
def test_a_line_of_others_is_an_error_with_its_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(f"{result(Outcome.NET).line()}\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"r\.jsonl:2: not a result"):
        read(path)


def test_of_mutants_that_are_one_program_the_first_counts() -> None:
    one = result(Outcome.NET, number=1, digest="d")
    again = result(Outcome.NET, number=2, digest="d")
    other = result(Outcome.NET, case="b", number=3, digest="d")
    got = settled([again, other, one])
    assert got[one.mutant.id] == one
    assert (got[again.mutant.id].outcome, got[again.mutant.id].why) == (Outcome.TWICE, one.mutant.id)
    assert got[other.mutant.id] == other


def test_mutants_without_a_text_are_not_the_same() -> None:
    several = [result(Outcome.IMPOSSIBLE, number=i) for i in (1, 2)]
    assert list(settled(several).values()) == several


# ---------------------------------------------------------------------------- the page
def test_every_mutant_is_counted_once() -> None:
    page = report(
        [
            result(Outcome.REFUSED, number=1),
            result(Outcome.PASSED_IDLE, number=2),
            result(Outcome.UNNOTICED, name=".module", number=3),
            result(Outcome.SAME, number=4),
            result(Outcome.HARMLESS, name="control", way=CONTROL),
        ]
    )
    assert "3 mutants of 1 programs. Not counted: 1 same as the right result;" in page
    heads = "| edit | refused before writing | not refused, not runnable | unnoticed | all |"
    assert page.count(heads) == 2
    assert "| `ddp.wrap` | 1 | 1 |  | 2 |" in page
    assert "| `.module` |  |  | 1 | 1 |" in page
    assert "| `missing` | 1 | 1 | 1 | 3 |" in page
    assert page.count("| **all** | 1 | 1 | 1 | 3 |") == 2


def test_what_is_unnoticed_or_harmless_is_listed_with_its_diff() -> None:
    page = report([result(Outcome.UNNOTICED), result(Outcome.HARMLESS, name="ddp.cleanup")])
    assert "## Unnoticed" in page and "## Harmless" in page
    assert page.count("  -x") == 2
    assert "(because)" in page.split("## Harmless")[1]
    assert "not proved without any fault" not in page


def test_of_what_was_not_run_there_are_examples_if_they_are_wanted() -> None:
    several = [result(Outcome.PASSED, number=i) for i in range(5)]
    assert "```diff" not in report(several)
    assert report(several, examples=2).count("```diff") == 2


def test_a_control_that_is_not_proved_is_told() -> None:
    page = report([result(Outcome.HANG, name="control", way=CONTROL)])
    assert "- a (train.py): hangs until the timeout: because" in page


def test_there_may_be_nothing_to_report() -> None:
    assert "0 mutants of 0 programs" in report([])


# ---------------------------------------------------------------------------- the baseline
def test_what_passes_is_recorded_by_kind() -> None:
    whole = [
        result(Outcome.PASSED, "a"),
        result(Outcome.DIFFERS, "b"),
        result(Outcome.REFUSED, "c"),
        result(Outcome.PASSED_IDLE, "a", "ddp.save"),
        result(Outcome.REFUSED, "a", "ddp.sum_all"),
        result(Outcome.SAME, "a", "ddp.setup"),
        result(Outcome.ERROR, "a", "ddp.setup"),
    ]
    made = baseline.of(whole, Baseline())
    assert made.static == {"ddp.save: missing": "*", "ddp.wrap: missing": ["a", "b"]}
    assert made.noticed == {whole[1].mutant.id: "caught by verify"}


def test_what_was_noticed_before_is_kept_while_nothing_newer_is_known() -> None:
    passed, refused = result(Outcome.PASSED, "a"), result(Outcome.REFUSED, "b")
    ids = (passed.mutant.id, refused.mutant.id, "gone")
    before = Baseline(noticed=dict.fromkeys(ids, "caught by verify"))
    assert baseline.of([passed, refused], before).noticed == {passed.mutant.id: "caught by verify"}


def test_only_what_is_known_may_pass() -> None:
    known = Baseline({"ddp.wrap: missing": ["a"], "ddp.save: missing": "*"})
    assert baseline.grown([result(Outcome.PASSED, "a")], known) == []
    assert baseline.grown([result(Outcome.PASSED, "z", "ddp.save")], known) == []
    assert baseline.grown([result(Outcome.REFUSED, "b")], known) == []
    new = result(Outcome.PASSED, "b")
    unknown = result(Outcome.UNNOTICED, "a", "ddp.setup")
    assert baseline.grown([new, unknown], known) == [new, unknown]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"static": {"ddp.wrap: missing": "*"}, "noticed": {}}))
    monkeypatch.setattr(baseline, "FILE", path)
    monkeypatch.setattr(baseline, "keys", list)
    return path


def test_a_baseline_shrinks_by_itself_and_grows_on_demand(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused, passed = result(Outcome.REFUSED), result(Outcome.PASSED, name="ddp.save")
    assert baseline.command([refused], record=False, admit=False) == 0
    assert baseline.load().static == {"ddp.wrap: missing": "*"}
    assert baseline.command([refused], record=True, admit=False) == 0
    assert baseline.load().static == {}
    assert baseline.command([passed], record=True, admit=False) == 1
    assert passed.mutant.id in capsys.readouterr().out
    assert baseline.load().static == {}
    assert baseline.command([passed], record=True, admit=True) == 0
    assert baseline.load().static == {"ddp.save: missing": "*"}


def test_a_part_of_the_mutants_is_no_baseline(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recorded.read_bytes()
    error = result(Outcome.ERROR, name="error", way="error")
    assert baseline.command([error], record=True, admit=False) == 1
    monkeypatch.setattr(baseline, "keys", lambda: [Key("other", "train.py")])
    assert baseline.command([result(Outcome.REFUSED)], record=True, admit=False) == 1
    assert recorded.read_bytes() == before


def test_without_a_file_nothing_may_pass(recorded: Path) -> None:
    recorded.unlink()
    assert baseline.load() == Baseline()


# ---------------------------------------------------------------------------- the command line
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --static, --run, or --resume"),
        (["--static", "--sample", "0"], "--sample takes a number from 1"),
        (["--static", "-j", "0"], "-j takes a number from 1"),
        (["--static", "--shard", "3/2"], "not of the form I/N"),
        (["--static", "--shard", "1"], "not of the form I/N"),
        (["--resume", "--out", "none.jsonl"], "none.jsonl does not exist"),
        (["--static", "--out", "is.jsonl"], "is.jsonl exists: --resume goes on with it"),
    ],
)
def test_arguments_that_make_no_sense(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("is.jsonl").write_text("")
    with pytest.raises(SystemExit, match="2"):
        command.main(arguments)
    assert message in capsys.readouterr().err


def test_the_page_of_what_is_there(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.jsonl"
    Writer(path).write([result(Outcome.PASSED)])
    assert command.main(["--resume", "--out", str(path)]) == 0
    assert "1 mutants of 1 programs" in capsys.readouterr().out
    page = tmp_path / "page.md"
    assert command.main(["--resume", "--out", str(path), "--table", str(page)]) == 0
    assert "1 mutants of 1 programs" in page.read_text(encoding="utf-8")


def test_a_file_of_others_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("words\n")
    with pytest.raises(SystemExit, match=r"r\.jsonl:1: not a result"):
        command.main(["--resume", "--out", str(path)])
    assert path.read_text() == "words\n"


def test_a_mutant_that_is_the_same_as_another_has_its_outcome_in_the_baseline() -> None:
    first = result(Outcome.PASSED, way="missing", digest="x")
    twin = result(Outcome.PASSED, way="too early", digest="x")
    now = baseline.of(settled([first, twin]).values(), Baseline())
    assert now.static.keys() == {first.mutant.kind, twin.mutant.kind}


def test_a_run_that_was_stopped_before_its_first_result_goes_on(tmp_path: Path) -> None:
    args = command._arguments(["--static", "--resume", "--out", str(tmp_path / "none.jsonl")])
    assert command._begun(args) == {}
