"""The judgement of records, line by line, without a run."""

from __future__ import annotations

from typing import Any

import pytest

from dpmigrate.verify.judge import Distance, Verdict, global_order, judge, proved


def _pass(
    batches: list[list[int]], *, data: str = "D of 8", nth: int = 0, trains: bool = True, ended: bool = True, cut: bool = False, **more: Any
) -> dict[str, Any]:
    kept: dict[str, Any] = {"data": data, "nth": nth, "batches": batches, "delivered": len(batches), "ended": ended, "cut": cut}
    kept["backwards"] = len(batches) if trains else 0
    return {**kept, "sampler": "RandomSampler", "replacement": False, "length": 8, "batch": 4, "first_step": 0, **more}


def _record(rank: int = 0, **more: Any) -> dict[str, Any]:
    steps = [{"optimizer": 0, "lr": [0.1], "gradient": 2.0}]
    base: dict[str, Any] = {"rank": rank, "steps": steps, "losses": [[1.0, 4, 0]], "passes": [], "lines": [], "writes": {}, "saves": []}
    return {**base, "wrapped": 1, "cut": False, "draws": False, "group_left": False, **more}


def _line(
    name: str, original: dict[str, Any], ranks: list[dict[str, Any]], distances: list[Distance] | None = None, saved: dict[str, str] | None = None
) -> tuple[Verdict, str]:
    near = [Distance(1, 1e-16, "w", 0.0)] if distances is None else distances
    found = {line.name: line for line in judge(original, ranks, near, float64=True, saved=saved)}
    return found[name].verdict, found[name].text


@pytest.mark.parametrize(
    ("far", "verdict"),
    [pytest.param(0.0, Verdict.EQUAL, id="nothing"), pytest.param(1e-9, Verdict.BOUND, id="rounding"), pytest.param(1e-3, Verdict.DIFFERS, id="more")],
)
def test_parameters(far: float, verdict: Verdict) -> None:
    distances = [Distance(1, 0.0, "a", 0.0), Distance(5, far, "b.weight", 0.0)]
    found, text = _line("parameters after step 5", _record(), [_record()], distances)
    assert found is verdict and ("part at step 5, b.weight first" in text) is (verdict is Verdict.DIFFERS)


def test_no_parameters_is_no_proof() -> None:
    assert _line("parameters", _record(), [_record()], [])[0] is Verdict.NONE
    assert not proved(judge(_record(), [_record()], [], float64=True))


def test_ranks_that_part() -> None:
    verdict, text = _line("ranks alike", _record(), [_record(wrapped=0), _record(1)], [Distance(3, 0.0, "a", 0.5)])
    assert verdict is Verdict.DIFFERS and "step 3" in text and "no DistributedDataParallel" in text
    assert _line("ranks alike", _record(), [_record()])[0] is Verdict.NONE


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        pytest.param([0.5, 1.5], Verdict.EQUAL, id="a mean of the ranks' means"),
        pytest.param([0.4, 0.6], Verdict.EQUAL, id="a sum of the ranks' sums"),
        pytest.param([0.9, 0.9], Verdict.DIFFERS, id="neither"),
    ],
)
def test_losses(values: list[float], verdict: Verdict) -> None:
    assert _line("loss per step", _record(), [_record(i, losses=[[v, 2, 0]]) for i, v in enumerate(values)])[0] is verdict


def test_losses_that_are_not_seen_or_not_finite() -> None:
    assert _line("loss per step", _record(losses=[]), [_record()])[0] is Verdict.NONE
    nan = float("nan")
    assert _line("loss per step", _record(losses=[[nan, 4, 0]]), [_record(losses=[[nan, 4, 0]])])[0] is Verdict.EQUAL


def test_random_numbers_between_a_batch_and_its_step() -> None:
    verdict, text = _line("loss per step", _record(draws=True), [_record(losses=[[9.0, 4, 0]])])
    assert verdict is Verdict.NONE and "each rank its own" in text


def test_gradients_tell_their_ratio() -> None:
    half = [{"optimizer": 0, "lr": [0.1], "gradient": 1.0}]
    assert "a ratio of 0.5" in _line("gradient norm", _record(), [_record(steps=half)])[1]
    none = [{"optimizer": 0, "lr": [0.1], "gradient": None}]
    assert _line("gradient norm", _record(), [_record(steps=none)])[0] is Verdict.NONE


def test_steps_and_rates() -> None:
    twice = _record(steps=_record()["steps"] * 2)
    assert _line("optimizer steps", _record(), [twice])[0] is Verdict.DIFFERS
    other = [{"optimizer": 0, "lr": [0.2], "gradient": 2.0}]
    assert _line("learning rate", _record(), [_record(steps=other)])[0] is Verdict.DIFFERS
    assert _line("learning rate", _record(steps=[]), [_record(steps=[])])[0] is Verdict.NONE


def test_the_order_that_the_ranks_took_together() -> None:
    ranks = [_record(0, passes=[_pass([[1, 2], [3]])]), _record(1, passes=[_pass([[5, 6], [7]])])]
    assert global_order(ranks) == [("D of 8", 0, [[1, 2, 5, 6], [3, 7]])]
    unknown = [_record(0, passes=[_pass([[1, -1]]), _pass([[1]], nth=1, trains=False)])]
    assert global_order(unknown) == []


_WHOLE = [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("parts", "samples", "shards"),
    [
        pytest.param([[[0, 1], [4, 5]], [[2, 3], [6, 7]]], Verdict.EQUAL, Verdict.EQUAL, id="equal shares"),
        pytest.param([_WHOLE, _WHOLE], Verdict.DIFFERS, Verdict.DIFFERS, id="everything twice"),
        pytest.param([[[0, 1], [2, 3]], [[4, 5], [0, 1]]], Verdict.EQUAL, Verdict.BOUND, id="two samples twice, for equal shares"),
        pytest.param([[[0, 1]], [[2, 3]]], Verdict.DIFFERS, Verdict.DIFFERS, id="half of it never"),
        pytest.param([[[0], [4]], [[2, 3], [6, 7]]], Verdict.DIFFERS, Verdict.EQUAL, id="another batch"),
    ],
)
def test_shares_of_an_epoch(parts: list[list[list[int]]], samples: Verdict, shards: Verdict) -> None:
    original, ranks = _record(passes=[_pass(_WHOLE)]), [_record(i, passes=[_pass(p)]) for i, p in enumerate(parts)]
    assert _line("samples per step", original, ranks)[0] is samples
    assert _line("shards of an epoch", original, ranks)[0] is shards


@pytest.mark.parametrize(
    ("parts", "length", "verdict"),
    [
        pytest.param([[[0, 1]], [[2, 3]]], 4, Verdict.EQUAL, id="the rest of it was never asked for"),
        pytest.param([[[0, 1]], [[2, 0]]], 4, Verdict.DIFFERS, id="nothing is filled up before the end"),
        pytest.param([[[0, 1], [4, 5]], [[2, 3], [6, 0]]], 4, Verdict.BOUND, id="cut at its very end"),
    ],
)
def test_shares_of_an_epoch_that_was_cut(parts: list[list[list[int]]], length: int, verdict: Verdict) -> None:
    original = _record(passes=[_pass(_WHOLE, cut=True)], cut=True)
    ranks = [_record(i, passes=[_pass(p, cut=True, length=length)], cut=True) for i, p in enumerate(parts)]
    assert _line("shards of an epoch", original, ranks)[0] is verdict


def test_a_last_batch_that_grew_for_equal_shares() -> None:
    original = _record(passes=[_pass([[0, 1, 2, 3], [4, 5, 6]], length=7)])
    ranks = [_record(0, passes=[_pass([[0, 1], [4, 5]])]), _record(1, passes=[_pass([[2, 3], [6, 0]])])]
    assert _line("samples per step", original, ranks)[0] is Verdict.BOUND


def test_no_loader() -> None:
    ranks = [_record(), _record(1)]
    assert {
        _line(name, _record(), ranks)[0] for name in ("samples per step", "shards of an epoch", "samples of an evaluation", "order from epoch to epoch")
    } == {Verdict.NONE}


@pytest.mark.parametrize(
    ("second", "sampler", "verdict"),
    [
        pytest.param([[4, 1], [0, 5]], "RandomSampler", Verdict.EQUAL, id="another order"),
        pytest.param([[0, 1], [4, 5]], "RandomSampler", Verdict.DIFFERS, id="the same order"),
        pytest.param([[0, 1], [4, 5]], "SequentialSampler", Verdict.NONE, id="the original does not shuffle"),
    ],
)
def test_order_from_epoch_to_epoch(second: list[list[int]], sampler: str, verdict: Verdict) -> None:
    original = _record(passes=[_pass(_WHOLE, sampler=sampler), _pass(_WHOLE, nth=1, sampler=sampler)])
    rank = _record(passes=[_pass([[0, 1], [4, 5]]), _pass(second, nth=1)])
    assert _line("order from epoch to epoch", original, [rank])[0] is verdict


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        pytest.param([[[0, 1], [2]], [[0, 1], [2]]], Verdict.EQUAL, id="every rank all of it"),
        pytest.param([[[0, 1]], [[2]]], Verdict.EQUAL, id="dealt out"),
        pytest.param([[[0, 1]], [[2, 0]]], Verdict.DIFFERS, id="padded"),
        pytest.param([[[0, 1]], [[0, 1]]], Verdict.DIFFERS, id="some never"),
        pytest.param([], Verdict.DIFFERS, id="nobody"),
    ],
)
def test_evaluation(parts: list[list[list[int]]], verdict: Verdict) -> None:
    original = _record(passes=[_pass([[0, 1], [2]], trains=False)])
    ranks = [_record(i, passes=[_pass(p, trains=False)]) for i, p in enumerate(parts)] or [_record()]
    assert _line("samples of an evaluation", original, ranks)[0] is verdict


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


def test_lines_that_are_gone() -> None:
    lines = [[True, "model saved 3", "stdout"], [False, "took 3 s", "stdout"], [False, "a warning", "stderr"]]
    verdict, text = _line("lines printed once", _record(lines=lines), [_record()])
    assert verdict is Verdict.DIFFERS and text == "not printed any more: model saved 3"
    assert _line("lines printed once", _record(lines=lines), [_record(lines=[[True, "model saved 9", "stdout"]])])[0] is Verdict.EQUAL


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
        pytest.param([{"a3.pt": 1}, {}], Verdict.EQUAL, id="one rank"),
        pytest.param([{"a3.pt": 1}, {"a3.pt": 1}], Verdict.DIFFERS, id="two ranks"),
        pytest.param([{}, {}], Verdict.DIFFERS, id="none"),
    ],
)
def test_files(writes: list[dict[str, int]], verdict: Verdict) -> None:
    assert _line("files written", _record(writes={"a1.pt": 1}), [_record(i, writes=w) for i, w in enumerate(writes)])[0] is verdict


def test_checkpoints_and_group() -> None:
    saving = _record(saves=["a.pt"])
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": ""})[0] is Verdict.EQUAL
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": "keys: x"}) == (Verdict.DIFFERS, "a.pt: keys: x")
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": "allowed: more", "b.pt": "x"}) == (Verdict.DIFFERS, "b.pt: x")
    assert _line("checkpoints", saving, [_record()], saved={"a.pt": "allowed: more"}) == (Verdict.BOUND, "a.pt: more")
    assert _line("checkpoints", saving, [_record()])[0] is _line("checkpoints", _record(), [_record()], saved={})[0] is Verdict.NONE
    assert _line("process group", _record(), [_record(group_left=True)])[0] is Verdict.DIFFERS
    assert _line("process group", _record(), [_record(cut=True)])[0] is Verdict.NONE
