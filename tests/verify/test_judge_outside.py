"""The judgement of what can be seen without looking in: lines, files, checkpoints, processes."""

from __future__ import annotations

import pytest

from dpmigrate.verify.judge import Verdict
from tests.verify.records import judged as _line
from tests.verify.records import record as _record


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        pytest.param("accuracy 0.7500 of 21", Verdict.EQUAL, id="the same"),
        pytest.param("accuracy 0.7501 of 21", Verdict.EQUAL, id="one in the last digit"),
        pytest.param("accuracy 0.7600 of 21", Verdict.DIFFERS, id="another number"),
        pytest.param("nothing", Verdict.DIFFERS, id="gone"),
    ],
)
def test_numbers_printed(printed: str, verdict: Verdict) -> None:
    original = _record(
        lines=[[False, "accuracy 0.7500 of 21", "stdout"], [False, "took 3.2 s", "stdout"], [True, "loss 0.3", "stdout"], [False, "no number", "stdout"]]
    )
    assert _line("numbers printed", original, [_record(lines=[[False, printed, "stdout"]])])[0] is verdict


@pytest.mark.parametrize(
    ("line", "other", "verdict"),
    [
        pytest.param("epoch 0 acc 0.91 time 3.1s", "epoch 0 acc 0.91 time 9.4s", Verdict.EQUAL, id="seconds"),
        pytest.param("epoch 0 acc 0.91 time 3.1s", "epoch 0 acc 0.11 time 3.1s", Verdict.DIFFERS, id="a result beside seconds"),
        pytest.param("Time 0.123 (0.120) Acc 3.00", "Time 0.456 (0.470) Acc 3.00", Verdict.EQUAL, id="an average of seconds"),
        pytest.param("complete in 0m 2s", "complete in 1m 5s", Verdict.NONE, id="minutes"),
        pytest.param("12.5 it/s, 80 samples/sec", "11.5 it/s, 70 samples/sec", Verdict.NONE, id="speed"),
        pytest.param("elapsed: 5 | 7", "elapsed: 6 | 8", Verdict.EQUAL, id="a number without a name beside a clock's"),
        pytest.param("logs/20261121-104501.123 3", "logs/20261121-104509.456 3", Verdict.EQUAL, id="a folder's date"),
        pytest.param("runs/2026-11-21_10-45-01 3", "runs/2026-11-21_10-46-33 3", Verdict.EQUAL, id="another folder's date"),
        pytest.param(
            "parse <method of <Config object at 0x7f9a19f1e5d0>> 3", "parse <method of <Config object at 0x7fb077f83f90>> 3", Verdict.EQUAL, id="a place"
        ),
        pytest.param("run 1795258801 of 3", "run 1795258909 of 3", Verdict.EQUAL, id="seconds since 1970"),
        pytest.param("seen 20261340 of 3", "seen 20991350 of 3", Verdict.DIFFERS, id="a number that is no date"),
        pytest.param("loss 2.3026", "loss 2.2995", Verdict.DIFFERS, id="near, but not by rounding"),
    ],
)
def test_what_a_clock_has_measured_is_no_result(line: str, other: str, verdict: Verdict) -> None:
    assert _line("numbers printed", _record(lines=[[False, line, "stdout"]]), [_record(lines=[[False, other, "stdout"]])])[0] is verdict


def test_lines_that_are_gone() -> None:
    lines = [[True, "model saved 3", "stdout"], [False, "took 3 s", "stdout"], [False, "a warning", "stderr"]]
    verdict, text = _line("lines printed once", _record(lines=lines), [_record()])
    assert verdict is Verdict.DIFFERS and text == "not printed any more: model saved 3"
    assert _line("lines printed once", _record(lines=lines), [_record(lines=[[True, "model saved 9", "stdout"]])])[0] is Verdict.EQUAL


@pytest.mark.parametrize("head", ["DataParallel(", "Net("])
def test_a_printed_model_is_the_same_in_its_wrapper(head: str) -> None:
    layers = ["  (module): Net(", "    (fc): Linear(in_features=6, out_features=2, bias=True)", "  )", ")"]
    own = [head, *layers] if head == "DataParallel(" else ["Net(", "  (fc): Linear(in_features=6, out_features=2, bias=True)", ")"]
    original = _record(lines=[[False, line, "stdout"] for line in own])
    ranks = [_record(lines=[[False, line, "stdout"] for line in ("DistributedDataParallel(", *layers)]), _record(1)]
    assert _line("lines printed once", original, ranks)[0] is Verdict.EQUAL
    assert _line("numbers printed", original, ranks)[0] is Verdict.EQUAL
    other = [_record(lines=[[False, line.replace("=6", "=7"), "stdout"] for line in ("DistributedDataParallel(", *layers)])]
    assert _line("numbers printed", original, other)[0] is Verdict.DIFFERS


def test_progress_bars_are_one_ranks() -> None:
    bar = [[True, "Epoch 1: 100%|###| 40/40", "bar"]]
    line = [[False, "done", "stdout"]]
    assert _line("lines printed once", _record(lines=line + bar), [_record(lines=line + bar), _record(1, lines=bar)])[0] is Verdict.DIFFERS
    assert _line("lines printed once", _record(lines=line + bar), [_record(lines=line + bar), _record(1)])[0] is Verdict.EQUAL


def test_loggers_lines_without_their_date() -> None:
    lines = [[False, "2026-01-01 10:20:30,123 INFO accuracy 0.7500", "stderr"], [False, "UserWarning: 3", "stderr"]]
    later = [[False, "2026-01-01 10:21:00,456 INFO accuracy 0.9500", "stderr"]]
    assert _line("numbers printed", _record(lines=lines), [_record(lines=later)])[0] is Verdict.DIFFERS
    assert _line("lines printed once", _record(lines=lines), [_record(lines=lines), _record(1, lines=lines)])[1].startswith("printed by several ranks: INFO")


@pytest.mark.parametrize("category", ["OldError", "Deprecated", "UserWarning"])
def test_a_warning_stands_at_another_line_of_the_migrated_program(category: str) -> None:
    lines, moved = [[[False, f"/home/x/train.py:{n}: {category}: 2 old options", "stderr"]] for n in (12, 14)]
    assert _line("numbers printed", _record(lines=lines), [_record(lines=moved)])[0] is Verdict.NONE
    assert _line("lines printed once", _record(lines=lines), [_record(lines=moved)])[0] is not Verdict.DIFFERS


def test_the_loss_of_a_batch_is_a_ranks_own() -> None:
    original = _record(lines=[[False, "last loss 1.000", "stdout"]])
    assert _line("numbers printed", original, [_record(lines=[[False, "last loss 1.250", "stdout"]], losses=[[1.25, 2, 0]])])[0] is Verdict.BOUND
    assert _line("numbers printed", original, [_record(lines=[[False, "last loss 1.250", "stdout"]], losses=[[1.75, 2, 0]])])[0] is Verdict.DIFFERS
    whole = _record(lines=[[False, "seen 8", "stdout"]], losses=[[8.0, 4, 0]])
    assert _line("numbers printed", whole, [_record(lines=[[False, "seen 4", "stdout"]], losses=[[4.0, 4, 0]])])[0] is Verdict.DIFFERS


def test_nothing_printed() -> None:
    assert _line("numbers printed", _record(), [_record()])[0] is Verdict.NONE
    assert _line("lines printed once", _record(), [_record()])[0] is Verdict.NONE


def test_lines_of_several_ranks() -> None:
    line = [[False, "epoch 1", "stdout"]]
    assert _line("lines printed once", _record(lines=line), [_record(lines=line), _record(1, lines=line)])[0] is Verdict.DIFFERS
    assert _line("lines printed once", _record(lines=line), [_record(lines=line), _record(1)])[0] is Verdict.EQUAL


@pytest.mark.parametrize(
    ("writes", "verdict"),
    [
        pytest.param([{"a3.pt": ["between"]}, {}], Verdict.EQUAL, id="one rank"),
        pytest.param([{"a3.pt": ["between"]}, {"a3.pt": ["between"]}], Verdict.DIFFERS, id="two ranks"),
        pytest.param([{}, {}], Verdict.DIFFERS, id="none"),
    ],
)
def test_files(writes: list[dict[str, list[str]]], verdict: Verdict) -> None:
    assert _line("files written", _record(writes={"a1.pt": ["between"]}), [_record(i, writes=w) for i, w in enumerate(writes)])[0] is verdict


@pytest.mark.parametrize(
    ("theirs", "opened", "verdict"),
    [
        pytest.param("1,0.7500", ["between"], Verdict.EQUAL, id="the same"),
        pytest.param("1,0.7600", ["between"], Verdict.DIFFERS, id="another number"),
        pytest.param("1,0.7600", ["before"], Verdict.NONE, id="it was open while training ran"),
        pytest.param("1,0.7600", ["between", "training"], Verdict.NONE, id="it was written in training as well"),
        pytest.param("", ["between"], Verdict.DIFFERS, id="a row is gone"),
    ],
)
def test_text_files(theirs: str, opened: list[str], verdict: Verdict) -> None:
    original = _record(writes={"log.csv": opened})
    assert _line("text files", original, [_record()], texts={"log.csv": (["epoch,accuracy", "1,0.7500"], ["epoch,accuracy", theirs])})[0] is verdict


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        pytest.param("epoch,time(s),loss", Verdict.EQUAL, id="named time"),
        pytest.param("epoch,train_seconds,loss", Verdict.EQUAL, id="named seconds"),
        pytest.param("epoch,timestep,loss", Verdict.DIFFERS, id="another name"),
        pytest.param("0,0,0.9", Verdict.DIFFERS, id="no names"),
    ],
)
def test_a_column_of_times_is_no_result(head: str, verdict: Verdict) -> None:
    original = _record(writes={"log.csv": ["between"]}, lines=[])
    found, _ = _line("text files", original, [_record()], texts={"log.csv": ([head, "1,12,0.5"], [head, "1,9,0.5"])})
    assert found is verdict


def test_checkpoints_and_group() -> None:
    saving = _record(saves={"a.pt": "/a.pt"})
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": ("equal", "")})[0] is Verdict.EQUAL
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": ("differs", "keys: x")}) == (Verdict.DIFFERS, "a.pt: keys: x")
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": ("values", "w")}) == (Verdict.DIFFERS, "a.pt: w")
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": ("allowed", "more"), "b.pt": ("differs", "x")}) == (Verdict.DIFFERS, "b.pt: x")
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": ("allowed", "more"), "b.pt": ("equal", "")}) == (Verdict.BOUND, "a.pt: more")
    assert _line("checkpoints", saving, [_record()], saved={"": ("unreadable", "torn")})[0] is Verdict.NONE
    assert _line("checkpoints", saving, [_record()])[0] is _line("checkpoints", _record(), [_record()], saved={})[0] is Verdict.NONE
    assert "before the cut" in _line("checkpoints", _record(cut=True), [_record()], saved={})[1]
    assert _line("process group", _record(), [_record(group_left=True)])[0] is Verdict.DIFFERS
    assert _line("process group", _record(), [_record(cut=True)])[0] is Verdict.NONE
    assert "cannot be looked for" in _line("process group", _record(), [_record()], left=None)[1]
    assert _line("process group", _record(), [_record()], left=["python x"])[0] is Verdict.DIFFERS
