"""How a loss takes its samples together, and of which samples a number is, behind numbers that each rank has drawn for itself."""

from __future__ import annotations

import pytest

from dpmigrate.judge import own_totals, totals
from dpmigrate.judge.trial import Trial, executed
from tests.judge.trained import result

_STEP = "out = model(x)\n{}\nloss.backward()\noptimizer.step()\noptimizer.zero_grad()"
#: draws that are the rank's own, with what each makes of the scores
_DRAWS = {
    "columns": "out = out[:, torch.randperm(2)]",
    "a factor": "out = out * random.random()",
    "a factor of numpy": "out = out * np.random.beta(1.0, 1.0)",
    "a shared noise": "out = out + torch.randn(2)",
    "a seed of the system": "own = torch.Generator()\nown.seed()\nout = out[:, torch.randperm(2, generator=own)]",
    "a test": "if random.random() < 0.5:\n    out = out * random.random()",
}
#: losses that compare samples with each other
_COUPLED = {
    "softmax over the batch": "loss = (torch.softmax(out.sum(1), 0) * out[:, 0]).sum()",
    "the mean of the batch in a square": "loss = out.mean() ** 2",
    "a quotient of two sums": "loss = (out * x).sum() / (x ** 2).sum()",
    "the greatest of the batch": "loss = out.max()",
}
#: losses that take each sample by itself
_ALONE = {
    "cross entropy": "loss = nn.functional.cross_entropy(out, y)",
    "a mean": "loss = out.pow(2).mean()",
    "mixed targets": "lam = random.random()\nloss = lam * nn.functional.cross_entropy(out, y) + (1 - lam) * nn.functional.cross_entropy(out, y.flip(0))",
    "a penalty of the weights": "loss = nn.functional.cross_entropy(out, y) + 0.01 * random.random() * sum(p.pow(2).sum() for p in net.parameters())",
}


def _words(step: str, turn: str = "", end: str = "") -> list[str]:
    return [f.words for f in totals.faults(Trial(executed(result(step=step, turn=turn, end=end))))]


@pytest.mark.parametrize("draw", _DRAWS.values(), ids=_DRAWS)
@pytest.mark.parametrize("loss", _ALONE.values(), ids=_ALONE)
def test_each_sample_by_itself(draw: str, loss: str) -> None:
    assert _words(_STEP.format(f"{draw}\n{loss}")) == []


@pytest.mark.parametrize("draw", ["", *_DRAWS.values()], ids=["no draw", *_DRAWS])
@pytest.mark.parametrize("loss", _COUPLED.values(), ids=_COUPLED)
def test_samples_together(draw: str, loss: str) -> None:
    assert _words(_STEP.format(f"{draw}\n{loss}"))


def test_executed_again_only_where_a_draw_is_in_a_loss() -> None:
    case = Trial(executed(result()))
    list(totals.faults(case))
    assert totals.without_draws(case) is case
    assert totals.telling(case) is case


def test_executed_again_once() -> None:
    case = Trial(executed(result(step=_STEP.format(f"{_DRAWS['a factor']}\n{_ALONE['a mean']}"))))
    again = totals.without_draws(case)
    assert again.result is not case.result
    assert totals.without_draws(Trial(case.result)).result is again.result


@pytest.mark.parametrize(
    "weight, told",
    [("0.5", True), ("random.random()", True), ("np.random.beta(1.0, 1.0)", True)],
    ids=["no draw", "a draw", "a draw of numpy"],
)
def test_a_total_that_holds_draws(weight: str, told: bool) -> None:
    turn = f"meter.update({weight} * (out.argmax(1) == y).float().mean().item(), x.size(0))"
    case = Trial(executed(result(turn=turn, end="print(meter.avg)")))
    assert bool([f.words for f in own_totals.faults(case)]) is told


def test_a_draw_alone_is_told_without_a_word() -> None:
    case = Trial(executed(result(turn="meter.update(random.random())", end="print(meter.avg)")))
    assert list(own_totals.faults(case)) == []


_MIXED = "lam = random.random()\nx = lam * x + (1 - lam) * {0}\nout = model(x)\nloss = lam * nn.functional.cross_entropy(out, y) + (1 - lam) * nn.functional.cross_entropy(out, {1})"


@pytest.mark.parametrize(
    "x, y",
    [("x.flip(0)", "y.flip([0])"), ("torch.roll(x, 1, 0)", "y.roll(1, 0)"), ("torch.flipud(x)", "torch.flip(y, dims=(0,))"), ("x[order]", "y[order]")],
)
@pytest.mark.parametrize("lam", ["random.random()", "0.3"])
def test_partners_of_a_batch(x: str, y: str, lam: str) -> None:
    """Each sample is mixed with another one of its rank."""
    step = _MIXED.format(x, y).replace("random.random()", lam)
    assert _words(_STEP.format(f"order = torch.randperm(x.size(0))\n{step}")) == []


@pytest.mark.parametrize("x", ["x.flip((0, 1)).roll(1)", "x.roll(1)", "torch.cat([x, x]).flip(0)[:16]", "(out - out.flip(0)).detach()"])
def test_other_neighbours(x: str) -> None:
    """Elements of one sample come to another one, or samples of two parts to each other's places."""
    assert _words(_STEP.format(f"loss = (model({x}) * out).mean()"))


_PUT = "j = random.randrange(2)\nc = ddp.{}(out[:, j]{})\nloss = (c * c).mean()"


@pytest.mark.parametrize(("call", "of"), [("batch_rows", ""), ("batch_mean", ".mean()"), ("batch_sum", ".sum()")])
def test_what_is_put_together_is_one_draw(call: str, of: str) -> None:
    """Each rank has its own column: those of all ranks are no column of the batch."""
    step = _STEP.format(_PUT.format(call, of))
    assert _words(step)
    assert _words(step.replace("random.randrange(2)", "1")) == []


def test_padded_rows_in_another_order() -> None:
    """They are as long as before."""
    step = "a = nn.utils.rnn.pad_sequence(list(x), batch_first=True)\nout = model(x)\nloss = ({} ** 2).mean() + out.mean()\nloss.backward()\noptimizer.step()"
    assert all(_words(step.format(a)) for a in ("a", "a.flip(0)", "a[torch.randperm(a.size(0))]", "a.roll(1, 0)"))
    assert _words(step.format("x.flip(0)")) == []
