"""What several facts ask of one list they all know."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts import library
from dpmigrate.facts.batch import size_as_loaded
from dpmigrate.facts.losses import Norm
from tests.facts.probe import probed
from tests.pipeline import script

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm_notebook
model = nn.Linear(3, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8)
for x, y in {source}:
    z = {batch}
    loss = criterion(model(z), y)
    probe(z.size(0))
    optimizer.zero_grad()
    {loss}.backward()
    optimizer.step()
"""


def test_lists_of_containers_are_parts_of_each_other() -> None:
    assert library.PUTS_ONE.isdisjoint(library.PUTS_ALL)
    assert library.PUTS_ONE | library.PUTS_ALL == library.GROWS < library.MUTATORS


@pytest.mark.parametrize("method", sorted(library.MOVES | library.FLOATS))
def test_a_loss_that_is_moved_or_of_another_type_is_the_same_mean(method: str) -> None:
    found = script(_PROGRAM.format(source="loader", batch="x", loss=f"loss.{method}()"))
    (backward,) = found.roles.backwards
    assert found.losses.of_backward(backward).norm is Norm.MEAN


@pytest.mark.parametrize("method", sorted(library.MOVES | library.FLOATS | library.INTEGERS))
def test_a_batch_that_is_moved_or_of_another_type_is_as_it_was_loaded(method: str) -> None:
    found, node = probed(_PROGRAM.format(source="loader", batch=f"x.{method}()", loss="loss"))
    assert size_as_loaded(found.roles, node)


@pytest.mark.parametrize("bar", sorted(library.PROGRESS))
def test_a_loop_with_a_bar_goes_over_the_loader(bar: str) -> None:
    found = script(_PROGRAM.format(source=f"{bar}(loader)", batch="x", loss="loss"))
    assert [ast.unparse(c) for c in found.train_loader_calls] == ["DataLoader(data, batch_size=8)"]
