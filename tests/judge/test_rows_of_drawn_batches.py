"""A batch that every rank has drawn alike, of which each trains on its rows."""

from __future__ import annotations

import pytest

from dpmigrate.judge import Judgement, judged
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TEXT = """\
import random
import numpy as np
import torch
from torch import nn
import dpmigrate_runtime as ddp

ddp.setup()
X, Y = torch.randn(200, 4), torch.randint(0, 2, (200,))
text = torch.randint(0, 4, (900,))
rows, labels = [[float(v) for v in line.split()] for line in open("rows.txt")], [int(line) for line in open("labels.txt")]

def batch():
    ix = torch.randint(len(text) - 8, (16,))
    return torch.stack([text[i : i + 8] for i in ix]), torch.stack([text[i + 1 : i + 9] for i in ix])

model = ddp.wrap(nn.Linear(4, 2))
words = ddp.wrap(nn.Embedding(4, 4))
optimizer = torch.optim.SGD([*model.parameters(), *words.parameters()], lr=0.1)
ddp.seed_ranks()
for step in range(10):
{draw}
    optimizer.zero_grad()
    {loss}.backward()
    optimizer.step()
ddp.cleanup()
"""
_LOSS = "nn.functional.cross_entropy(model(X[ix]), Y[ix])"
_OF_TEXT = "nn.functional.cross_entropy(words(x).view(-1, 4), y.view(-1))"
_OF_DICT = "nn.functional.cross_entropy(model(x), y)"
_ALIKE = "    with ddp.same_stream():\n        "


def _judged(draw: str, loss: str) -> Judgement:
    source = parse(_TEXT.format(draw=draw, loss=loss).encode(), "train.py")
    assert isinstance(source, Source)
    return judged(Program.of(source))


@pytest.mark.parametrize(
    ("draw", "loss"),
    [
        ("ix = ddp.local_rows(torch.randint(0, 200, (16,)))", _LOSS),
        ("ix = ddp.local_rows(torch.randperm(200)[:16])", _LOSS),
        ("ix = ddp.local_rows(np.random.choice(200, 16, replace=False))", _LOSS),
        ("x, y = ddp.local_rows(batch())", _OF_TEXT),
        (
            "ix = ddp.local_rows(torch.randint(892, (16,)))\n    x = torch.stack([text[i : i + 8] for i in ix])\n"
            "    y = torch.stack([text[i + 1 : i + 9] for i in ix])",
            _OF_TEXT,
        ),
        ("part = ddp.local_rows({'x': X[:16], 'y': Y[:16], 'name': ['a', 'b']}, pad=True)\n    x, y = part['x'], part['y']", _OF_DICT),
        ("x, y = ddp.local_rows((torch.tensor(rows[:16]), torch.tensor(labels[:16])), pad=True)", _OF_DICT),
    ],
)
def test_a_loss_of_the_ranks_rows_is_a_mean(draw: str, loss: str) -> None:
    found = _judged(_ALIKE + draw, loss)
    assert not found.faults
    assert found.means


def test_what_each_rank_has_drawn_for_itself_is_no_common_batch() -> None:
    found = _judged("    ix = ddp.local_rows(torch.randint(0, 200, (16,)))", _LOSS)
    assert any("not shown to be a batch that is the same on all ranks" in f.words for f in found.faults)


def test_what_one_rank_sums_up_is_a_part() -> None:
    found = _judged(_ALIKE + "ix = ddp.local_rows(torch.randint(0, 200, (16,)))", "nn.functional.cross_entropy(model(X[ix]), Y[ix], reduction='sum')")
    assert any("partial(sum)" in f.words for f in found.faults)


def test_what_it_gives_is_used() -> None:
    found = _judged(_ALIKE + "ix = torch.randint(0, 200, (16,))\n    ddp.local_rows(ix)", _LOSS)
    assert any("local_rows(): what it gives is dropped" in f.words for f in found.faults)


def test_why_a_batch_is_not_known_is_what_it_says_itself() -> None:
    here = "    class Here:\n        def __init__(self):\n            self.other = 1\n"
    found = _judged(f"{here}    x, y = ddp.local_rows((X[:16] * Here().weight, Y[:16]), pad=True)", _OF_DICT)
    assert "the loss is unknown: Here has no attribute weight here, line 24" in {f.words for f in found.faults}
