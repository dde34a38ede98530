"""``loss.backward(gradient)``: what is differentiated is the sum of the elements, each times the one of the gradient."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from tests.judge.trained import result

_ROWS = "rows = (model(x) - 1).pow(2).mean(1)\n"


def _said(step: str) -> list[tuple[bool, str]]:
    return [(f.established, f.words) for f in judge.faults(result(step=step)) if "loss" in f.words]


@pytest.mark.parametrize(
    "step",
    [
        "model(x).mean().backward(None)",
        "model(x).mean().backward(torch.tensor(2.0))",
        "model(x).mean().backward(gradient=torch.ones(()), retain_graph=True)",
        "torch.autograd.backward(model(x).mean(), torch.tensor(2.0))",
    ],
)
def test_a_number_that_all_ranks_have_is_a_factor(step: str) -> None:
    assert _said(step) == []


@pytest.mark.parametrize(
    ("step", "established", "words"),
    [
        ("model(x).mean().backward(x.abs().max())", False, "a rank's loss may be no mean over its samples"),
        ("model(x).mean().backward(gradient=x.abs().max())", False, "a rank's loss may be no mean over its samples"),
        ("torch.autograd.backward(model(x).mean(), grad_tensors=x.abs().max())", False, "a rank's loss may be no mean over its samples"),
        (f"{_ROWS}rows.backward(torch.ones_like(rows))", True, "the loss is partial(sum)"),
        (f"{_ROWS}rows.backward(y.float())", True, "the loss is partial(sum)"),
        # of a mean the gradients of a rank's samples are larger than those of the global batch
        ("x.requires_grad_()\nx.pow(2).mean().backward()\nout = model(x)\nout.backward(x.grad)", False, "a backward pass that goes on from the gradient of another one"),
    ],
)
def test_what_each_rank_gives_of_its_own(step: str, established: bool, words: str) -> None:
    found = _said(step)
    assert found
    assert all(e is established and words in w for e, w in found)
