"""What rank 0's part of the samples decides or is told as."""

from __future__ import annotations

import pytest

from dpmigrate.judge import judged, totals
from tests.judge.trained import result


def said(word: str, **parts: str) -> list[str]:
    return [s for s in judged(result(**parts)).assumed if word in s]


_SAVE = "ddp.save(net.state_dict(), 'best.pt')"


@pytest.mark.parametrize(
    ("end", "told"),
    [
        pytest.param(f"if total < best:\n    best = total\n    {_SAVE}", True, id="a sum"),
        pytest.param(f"if ddp.from_main(loss.item() < best):\n    {_SAVE}", True, id="the last batch, by rank 0"),
        pytest.param("if ddp.from_main(total > best):\n    break", True, id="an early stop"),
        pytest.param(f"if ddp.mean_all(total) < best:\n    {_SAVE}", False, id="of all ranks"),
        pytest.param(f"if epoch % 2:\n    {_SAVE}", False, id="the epoch"),
        pytest.param("if ddp.from_main(np.random.rand() < 0.5):\n    print(epoch)", False, id="a draw"),
    ],
)
def test_what_goes_by_rank_0s_part(end: str, told: bool) -> None:
    assert bool(said("goes by numbers of rank 0", end=end)) is told


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        pytest.param("if i % 10 == 0:\n    print(f'{total / 10:.3f}', np.exp(total / 10))", True, id="every tenth, a power"),
        pytest.param("meter.update(loss.item(), len(x))\nprint('\\t'.join([str(m) for m in [meter]]))", True, id="texts of meters in a list"),
        pytest.param("total = ddp.mean_all(total)\nprint('%.3f' % total)", False, id="of all ranks"),
        pytest.param("print('step %d' % i)", False, id="the turn"),
    ],
)
def test_numbers_in_texts(turn: str, told: bool) -> None:
    assert bool(said("tells numbers of rank 0's part", turn=turn)) is told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param("loss.item()", False, id="a mean"),
        pytest.param("accuracy.item()", False, id="a sum times 100 / size"),
        pytest.param("(10 * torch.log10(1 / nn.functional.mse_loss(out[:, 0], x[:, 0]))).item()", True, id="a ratio in decibels"),
        pytest.param("loss.item() ** 0.5", True, id="a root"),
    ],
)
def test_totals_of_what_is_no_mean_over_the_samples(value: str, told: bool) -> None:
    turn = f"meter.update({value}, x.size(0))"
    end = "meter.sum, meter.count = ddp.sum_all(meter.sum, meter.count)"
    assert bool(said("no sums or means over the samples", turn=turn, end=end)) is told


def test_totals_over_all_batches_are_those_of_all_ranks() -> None:
    loop = "seen = 0.0\nfor x, y in val_loader:\n    seen += nn.functional.cross_entropy(net(x), y).item() * len(x)\nseen = ddp.sum_all(seen, over={0})\n"
    step = "scheduler.step(ddp.mean_all(seen / len(data)))"
    known = judged(result(end=loop.format("val_loader") + step)).faults
    assert not [f for f in known if f.invariant == totals.NAME]
