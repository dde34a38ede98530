"""What all ranks go through in full is the same on each, unless they have drawn other orders."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import placement_of
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.watching import Watching
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.execution.paper import held

_PROGRAM = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
ddp.setup()
g = torch.Generator()
{seeds}
for (x,) in DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4{options}):
    pass
"""


@pytest.mark.parametrize(
    ("seeds", "options", "placement"),
    [
        ("ddp.seed_ranks()", ", shuffle=True", "rows(axis 0)"),
        ("ddp.seed_ranks()", ', shuffle=input() == "y"', "rows(axis 0)"),
        ("ddp.seed_ranks()", "", "uniform"),
        ("ddp.seed_ranks()", ", shuffle=False", "uniform"),
        ("ddp.seed_ranks()", ", shuffle=None", "uniform"),
        ("ddp.seed_ranks()", ", shuffle=True, generator=g", "uniform"),
        ("ddp.seed_ranks()", ", shuffle=True, generator=None", "rows(axis 0)"),
        ("", ", shuffle=True", "uniform"),
    ],
)
def test_the_order_of_a_loader_that_is_not_divided(seeds: str, options: str, placement: str) -> None:
    source = parse(_PROGRAM.format(seeds=seeds, options=options).encode(), "train.py")
    assert isinstance(source, Source)
    execution = Judged(Program.of(source), Watching())
    execution.run()
    assert str(placement_of(held(execution, "x"))) == placement
