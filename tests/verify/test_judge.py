"""The judgement of records, line by line, without a run."""

from __future__ import annotations

import pytest

from dpmigrate.verify.judge import Distance, Evidence, Verdict, judge, proved
from dpmigrate.verify.judge.data import global_order
from tests.verify.records import a_pass as _pass
from tests.verify.records import judged as _line
from tests.verify.records import record as _record


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
    assert not proved(judge(Evidence(_record(), [_record()])))


def test_an_original_that_runs_away_is_not_compared_from_there_on() -> None:
    """Parameters that are no numbers on both sides are neither equal nor different; before them the comparison stands."""
    lost = Distance(3, float("inf"), "a", 0.0, float("nan"))
    distances = [Distance(1, 1e-16, "a", 0.0), Distance(2, 1e-16, "a", 0.0), lost]
    verdict, text = _line("parameters after step 3", _record(), [_record(), _record(1)], distances)
    assert verdict is Verdict.NONE and "no numbers from step 3 on" in text
    assert _line("parameters after step 1", _record(), [_record(), _record(1)], distances)[0] is Verdict.EQUAL
    assert _line("ranks alike", _record(), [_record(), _record(1)], distances)[0] is Verdict.EQUAL
    assert not proved(judge(Evidence(_record(), [_record(), _record(1)], distances)))
    early = [Distance(1, 1e-3, "a", 0.0), lost]
    assert _line("parameters after step 1", _record(), [_record(), _record(1)], early)[0] is Verdict.DIFFERS
    assert "random numbers" in _line("parameters after step 3", _record(draws=0), [_record(), _record(1)], distances)[1]


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


def test_a_step_of_a_sum_and_a_mean() -> None:
    """Each backward of a step is the ranks' mean or their sum; where the ranks have others in number, those of the step together."""
    own = _record(losses=[[8.0, 4, 0], [1.0, 4, 0]])
    assert _line("loss per step", own, [_record(i, losses=[[4.0, 2, 0], [1.0, 2, 0]]) for i in (0, 1)])[0] is Verdict.EQUAL
    assert _line("loss per step", own, [_record(i, losses=[[4.0, 2, 0], [0.9, 2, 0]]) for i in (0, 1)])[0] is Verdict.DIFFERS
    assert _line("loss per step", own, [_record(i, losses=[[4.5, 2, 0]]) for i in (0, 1)])[0] is Verdict.EQUAL


def test_losses_that_are_not_seen_or_not_finite() -> None:
    assert _line("loss per step", _record(losses=[]), [_record()])[0] is Verdict.NONE
    nan = float("nan")
    assert _line("loss per step", _record(losses=[[nan, 4, 0]]), [_record(losses=[[nan, 4, 0]])])[0] is Verdict.EQUAL


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_on_one_side_differs(wrong: float) -> None:
    later = [[1.0, 4, 0], [wrong, 4, 1]]
    assert _line("loss per step", _record(losses=[[1.0, 4, 0], [1.0, 4, 1]]), [_record(losses=later)])[0] is Verdict.DIFFERS
    steps = [{"optimizer": 0, "lr": [0.1], "gradient": wrong}]
    assert _line("gradient norm", _record(), [_record(steps=steps)])[0] is Verdict.DIFFERS
    line, other = [[False, "val loss 0.53", "stdout"]], [[False, f"val loss {wrong}", "stdout"]]
    assert _line("numbers printed", _record(lines=line), [_record(lines=other)])[0] is Verdict.DIFFERS


def _two_steps(second: float, draws: int | None) -> list[tuple[Verdict, str]]:
    """Two runs whose second step differs, or not; random numbers are drawn from a step on."""
    steps = _record()["steps"] * 2
    original = _record(draws=draws, steps=steps, losses=[[1.0, 4, 0], [1.0, 4, 1]])
    ranks = [_record(steps=steps, losses=[[1.0, 4, 0], [1.0 + second, 4, 1]])]
    distances = [Distance(1, 0.0, "a", 0.0), Distance(2, second, "a", 0.0)]
    found = judge(Evidence(original, ranks, distances))
    return [(line.verdict, line.text) for line in found if line.name in ("parameters after step 2", "loss per step")] + [(Verdict.NONE, str(proved(found)))]


def test_random_numbers_between_a_batch_and_its_step() -> None:
    *lines, (_, proven) = _two_steps(9.0, draws=1)
    assert [v for v, _ in lines] == [Verdict.NONE] * 2 and all("each rank its own" in t for _, t in lines) and proven == "False"
    *lines, (_, proven) = _two_steps(0.0, draws=1)
    assert [v for v, _ in lines] == [Verdict.EQUAL] * 2 and proven == "True"


@pytest.mark.parametrize("draws", [None, 2])
def test_random_numbers_excuse_nothing_before_them(draws: int | None) -> None:
    *lines, _ = _two_steps(9.0, draws)
    assert [v for v, _ in lines] == [Verdict.DIFFERS] * 2


def test_results_after_what_cannot_be_compared() -> None:
    original = _record(draws=0, lines=[[False, "accuracy 0.75", "stdout"]], saves={"a.pt": "/a.pt"})
    ranks, values = [_record(lines=[[False, "accuracy 0.50", "stdout"]])], {"a.pt": ("values", "w is apart")}
    assert _line("numbers printed", original, ranks)[0] is Verdict.NONE
    assert _line("checkpoints", original, ranks, saved=values)[0] is Verdict.NONE
    assert _line("checkpoints", original, ranks, saved={"a.pt": ("differs", "keys")})[0] is Verdict.DIFFERS


def test_streams_have_no_samples() -> None:
    stream = _pass([[None] * 4], data="D, a stream")
    original, ranks = _record(passes=[stream]), [_record(i, passes=[_pass([[None] * 2], data="D, a stream")]) for i in range(2)]
    for name in ("shards of an epoch", "order from epoch to epoch"):
        assert _line(name, original, ranks)[0] is Verdict.NONE
    assert _line("samples per step", original, ranks)[0] is Verdict.EQUAL
    assert _line("loss per step", original, [_record(losses=[[9.0, 4, 0]])])[0] is Verdict.NONE


def test_gradients_tell_their_ratio() -> None:
    half = [{"optimizer": 0, "lr": [0.1], "gradient": 1.0}]
    assert "a ratio of 0.5" in _line("gradient norm", _record(), [_record(steps=half)])[1]
    none = [{"optimizer": 0, "lr": [0.1], "gradient": None}]
    assert _line("gradient norm", _record(), [_record(steps=none)])[0] is Verdict.NONE


def test_a_loss_of_single_precision() -> None:
    """A program may compute its loss in float32 while its weights are in float64: rounding is no difference, more is."""
    for own, far, verdict in ((0.7021828889846802, 3e-7, Verdict.BOUND), (0.7021828889846, 3e-7, Verdict.DIFFERS), (0.5, 1e-2, Verdict.DIFFERS)):
        assert _line("loss per step", _record(losses=[[own, 4, 0]]), [_record(losses=[[own * (1 + far), 4, 0]])])[0] is verdict


def test_steps_and_rates() -> None:
    twice = _record(steps=_record()["steps"] * 2)
    assert _line("optimizer steps", _record(), [twice])[0] is Verdict.DIFFERS
    other = [{"optimizer": 0, "lr": [0.2], "gradient": 2.0}]
    assert _line("learning rate", _record(), [_record(steps=other)])[0] is Verdict.DIFFERS
    assert _line("learning rate", _record(steps=[]), [_record(steps=[])])[0] is Verdict.NONE


def test_the_order_that_the_ranks_took_together() -> None:
    ranks = [_record(0, passes=[_pass([[1, 2], [3]])]), _record(1, passes=[_pass([[5, 6], [7]])])]
    assert global_order(ranks) == [("D of 8", 0, True, [[1, 5, 2, 6], [3, 7]], "D of 8")]
    assert global_order([_record(0, passes=[_pass([[1, None]])])]) == []


def test_passes_belong_together_by_their_turn() -> None:
    """Rank 0 alone evaluates."""
    evaluated = _pass([[8], [9]], data="V of 2", trains=False)
    ranks = [_record(0, passes=[_pass([[1]]), evaluated, _pass([[2]], nth=1)]), _record(1, passes=[_pass([[3]]), _pass([[4]], nth=1)])]
    assert global_order(ranks) == [("D of 8", 0, True, [[1, 3]], "D of 8"), ("V of 2", 0, False, [[8], [9]], "V of 2"), ("D of 8", 0, True, [[2, 4]], "D of 8")]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        pytest.param([[[3, 1], [2]], [[3, 1], [2]]], [[3, 1], [2]], id="each rank evaluates all"),
        pytest.param([[[3, 1], [2]], []], [[3, 1], [2]], id="rank 0 alone"),
        pytest.param([[[4], [1, 0]], [[3, 2]]], [[1, 0], [3, 2], [4]], id="divided: the short one last"),
        pytest.param([[[0, 1]], [[1, 2]]], [[0, 1]], id="some twice: the first batch, for the original to know its own"),
        pytest.param([[[0, 1]], [[None]]], [[0, 1]], id="of a stream"),
    ],
)
def test_evaluations_as_the_original_needs_them(parts: list[list[list[int | None]]], told: list[list[int]]) -> None:
    ranks = [_record(i, passes=[_pass(batches, data="V of 5", trains=False)]) for i, batches in enumerate(parts)]
    assert global_order(ranks) == [("V of 5", 0, False, told, "V of 5")]


def test_an_evaluation_of_fewer_batches_than_ranks() -> None:
    """Rank 0 has no share of it; its empty pass must not be taken for a pass over other samples, nor put the passes that follow out of turn."""
    own = [_pass([[8, 9]], data="V of 2", trains=False), _pass([[1], [2]], data="T of 3", trains=False)]
    shares = ([[], [[1]]], [[[8, 9]], [[2]]])
    ranks = [_record(i, passes=[{**p, "batches": b, "delivered": len(b)} for p, b in zip(own, given, strict=True)]) for i, given in enumerate(shares)]
    assert global_order(ranks) == [("V of 2", 0, False, [[8, 9]], "V of 2"), ("T of 3", 0, False, [[1], [2]], "T of 3")]
    assert _line("samples of an evaluation", _record(passes=own), ranks)[0] is Verdict.EQUAL
    assert global_order([_record(passes=[_pass([], data="V of 2", trains=False)])]) == []


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


def test_samples_that_a_sampler_draws_more_than_once() -> None:
    """Balanced batches take rare samples again; that both ranks draw alike is still a fault."""
    original = _record(passes=[_pass(_WHOLE, natural=[0, 1, 0, 2])])
    ranks = [_record(i, passes=[_pass(p)]) for i, p in enumerate(([[0, 1], [4, 5]], [[2, 0], [6, 0]]))]
    assert _line("shards of an epoch", original, ranks)[0] is Verdict.EQUAL
    same = [_record(i, passes=[_pass(_WHOLE)]) for i in range(2)]
    assert _line("shards of an epoch", original, same)[0] is Verdict.DIFFERS


def test_shares_of_an_epoch_that_was_left_at_its_end() -> None:
    """A loop that counts its batches never asks for one more."""
    original = _record(passes=[_pass(_WHOLE, ended=False)])
    ranks = [_record(i, passes=[_pass(p, ended=False, length=4)]) for i, p in enumerate(([[0, 1], [4, 5]], [[2, 3], [6, 0]]))]
    assert _line("shards of an epoch", original, ranks)[0] is Verdict.BOUND


def test_a_last_batch_that_grew_for_equal_shares() -> None:
    original = _record(passes=[_pass([[0, 1, 2, 3], [4, 5, 6]], length=7)])
    ranks = [_record(0, passes=[_pass([[0, 1], [4, 5]])]), _record(1, passes=[_pass([[2, 3], [6, 0]])])]
    assert _line("samples per step", original, ranks)[0] is Verdict.BOUND


def test_no_loader() -> None:
    ranks = [_record(), _record(1)]
    assert {
        _line(name, _record(), ranks)[0] for name in ("samples per step", "shards of an epoch", "samples of an evaluation", "order from epoch to epoch")
    } == {Verdict.NONE}


_MIXED = [[3, 0, 9, 4, 7], [1, 8, 2, 6, 5]]
_SORTED = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


@pytest.mark.parametrize(
    ("natural", "first", "second", "verdict"),
    [
        pytest.param((_MIXED, _MIXED[::-1]), _MIXED, _MIXED[::-1], Verdict.EQUAL, id="another order"),
        pytest.param((_MIXED, _MIXED[::-1]), _MIXED, _MIXED, Verdict.DIFFERS, id="the same order"),
        pytest.param((_MIXED, _MIXED), _MIXED, _MIXED, Verdict.EQUAL, id="the original repeats its order as well"),
        pytest.param((_MIXED, _MIXED[::-1]), _SORTED, _SORTED, Verdict.DIFFERS, id="no shuffle any more"),
        pytest.param((_MIXED,), _SORTED, None, Verdict.DIFFERS, id="no shuffle any more, one epoch"),
        pytest.param((_MIXED,), _MIXED, None, Verdict.NONE, id="one epoch"),
        pytest.param((_SORTED, _SORTED), _SORTED, _SORTED, Verdict.NONE, id="the original does not shuffle"),
    ],
)
def test_order_from_epoch_to_epoch(natural: tuple[list[list[int]], ...], first: list[list[int]], second: list[list[int]] | None, verdict: Verdict) -> None:
    """The original's own order is that which its sampler gave before the ranks' was taken."""
    original = _record(passes=[_pass(_WHOLE, nth=i, natural=[i for b in batches for i in b]) for i, batches in enumerate(natural)])
    rank = _record(passes=[_pass(p, nth=i) for i, p in enumerate((first, second)) if p is not None])
    assert _line("order from epoch to epoch", original, [rank])[0] is verdict


@pytest.mark.parametrize(("head", "verdict"), [(_MIXED[0], Verdict.DIFFERS), (_MIXED[1], Verdict.EQUAL)])
def test_the_order_of_the_pass_that_the_cut_did_not_let_begin(head: list[int], verdict: Verdict) -> None:
    original = _record(passes=[_pass(_MIXED)], next=["D of 8", _MIXED[1]])
    assert _line("order from epoch to epoch", original, [_record(passes=[_pass(_MIXED)], next=["D of 8", head])])[0] is verdict


def test_draws_with_replacement_are_each_ranks_own() -> None:
    drawn = _pass(_MIXED, replacement=True)
    for other, verdict in ((_MIXED, Verdict.DIFFERS), (_MIXED[::-1], Verdict.EQUAL)):
        ranks = [_record(0, passes=[drawn]), _record(1, passes=[_pass(other, replacement=True)])]
        assert _line("shards of an epoch", _record(passes=[drawn]), ranks)[0] is verdict


def test_a_look_at_some_shuffled_samples() -> None:
    """Each rank draws a batch of its own; samples in their order, and passes to the end, are held to the rule."""
    for own, theirs, verdict in (
        ([[5, 2]], [[[5, 2]], [[7, 1]]], Verdict.EQUAL),
        ([[0, 1]], [[[0, 1]], [[2, 3]]], Verdict.DIFFERS),
    ):
        ranks = [_record(i, passes=[_pass(p, trains=False)]) for i, p in enumerate(theirs)]
        assert _line("samples of an evaluation", _record(passes=[_pass(own, trains=False)]), ranks)[0] is verdict
    whole = [[3, 0, 2, 1], [7, 6, 5, 4]]
    ranks = [_record(i, passes=[_pass([p], trains=False)]) for i, p in enumerate(([0, 1, 2], [4, 5, 6, 7]))]
    assert _line("samples of an evaluation", _record(passes=[_pass(whole, trains=False)]), ranks)[0] is Verdict.DIFFERS


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
