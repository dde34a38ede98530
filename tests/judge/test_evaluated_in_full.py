"""What a loss shares with the training puts together in evaluations that every rank goes through in full."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate import judge
from tests.judge.trained import result

_WORDS = "has to be under no_grad()"
_MEAN = "ddp.weighted_mean(nn.functional.cross_entropy(net(a), b), len(b))"
_SUM = "ddp.batch_sum(nn.functional.cross_entropy(net(a), b, reduction='sum'))"


def _said(loss: str, over: str = "val_loader", under: str = "if True:") -> bool:
    turn = f"tested = 0.0\nfor a, b in {over}:\n    tested = tested + {loss}.item()"
    return any(_WORDS in f.words for f in judge.faults(result(end=f"net.eval()\n{under}\n" + indent(turn, " " * 4))))


@pytest.mark.parametrize("loss", [_MEAN, _SUM])
def test_batches_of_each_rank_s_own_order(loss: str) -> None:
    assert _said(loss)
    assert not _said(loss, under="with torch.no_grad():")


def test_batches_that_all_ranks_have() -> None:
    same = "DataLoader(data, batch_size=16)"
    assert not _said(_MEAN, over=same)
    assert not _said(_MEAN, over="ddp.whole(val_loader)")
    assert _said(_SUM, over=same)


@pytest.mark.parametrize("loss", [_MEAN, _SUM])
@pytest.mark.parametrize("under", ["if True:", "with torch.no_grad():"])
def test_one_function_for_training_and_evaluation(loss: str, under: str) -> None:
    function = f"def shared(net, a, b):\n    return {loss}"
    turn = "tested = 0.0\nfor a, b in val_loader:\n    tested = tested + shared(net, a, b).item()"
    program = result(epoch=function, step="kept = shared(model, x, y)", end=f"net.eval()\n{under}\n" + indent(turn, " " * 4))
    assert any(_WORDS in f.words for f in judge.faults(program)) is (under == "if True:")
