"""How many samples a batch has, and who says so."""

from __future__ import annotations

import pytest

from dpmigrate.facts.asked_sizes import counted
from dpmigrate.facts.batch import measured, of_loader, size, size_as_loaded
from tests.facts.probe import probed

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
classes = ["a", "b"]
loader = DataLoader(data, batch_size=32)
packed = DataLoader(data, batch_size=32, collate_fn=pack)
per_rank = loader.batch_size
other = loader.batch_size
other = 3
for x, y in loader:
    z = x.to("cuda")
    w = x[x > 0]
    n = x.size(0)
    m = n
    m = m * 2
    a = b
    b = a
    k = x.size(1)
    loss = net(x).sum()
    probe({expression})
    loss.backward()
    optimizer.step()
for u, v in packed:
    pass
"""


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("x.size(1)", "another axis"),
        ("x.shape", "all axes"),
        ("x.shape[-1]", "the last axis"),
        ("x.numel()", "elements"),
        ("k", "a name for another axis"),
        ("len(classes)", "made before the loop"),
        ("len(loader)", "batches"),
        ("len(data)", "the data set's"),
        ("loader.batch_size", "what the loader says"),
        ("a", "names for one another and nothing else"),
        ("n + 1", "another number"),
        ("n * x.mean()", "the factor is one of the batch"),
        ("32", "a number"),
    ],
)
def test_no_number_of_samples(expression: str, why: str) -> None:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    assert not size(found.roles, node), why


@pytest.mark.parametrize(
    "expression", ["x.size(0)", "x.size(dim=0)", "x.size()[0]", "x.shape[0]", "len(x)", "x.num_graphs", "len(x.data)", "n", "m", "n * 2", "2 * len(y)", "n / 4"]
)
def test_number_of_samples(expression: str) -> None:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    assert size(found.roles, node)


def test_a_length_is_measured_and_not_counted() -> None:
    found, node = probed(_PROGRAM.replace("{expression}", "len(x)"))
    assert counted(node) is None
    assert getattr(measured(found.names, node), "id", "") == "x"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("args.batch_size", "a setting"),
        ("loader.num_workers", "another word"),
        ("other", "a name that is given something else, too"),
        ("n", "a name for a size that is asked of the batch"),
    ],
)
def test_no_loader_says_so(expression: str, why: str) -> None:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    assert not of_loader(found.roles, node), why


@pytest.mark.parametrize("expression", ["loader.batch_size", "per_rank"])
def test_a_loader_says_so(expression: str) -> None:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    assert of_loader(found.roles, node)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("w.size(0)", "a selection of the samples"),
        ("len(u)", "a collate function may leave samples out"),
        ("a", "names for one another and nothing else"),
        ("k", "another axis"),
    ],
)
def test_not_as_the_loader_gives_it(expression: str, why: str) -> None:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    assert not size_as_loaded(found.roles, node), why


@pytest.mark.parametrize("expression", ["x.size(0)", "len(y)", "n", "z.shape[0]"])
def test_as_the_loader_gives_it(expression: str) -> None:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    assert size_as_loaded(found.roles, node)


@pytest.mark.parametrize(("source", "right"), [("loader", True), ("packed", False), ("unknown", False)])
def test_a_batch_taken_with_next(source: str, right: bool) -> None:
    found, node = probed(_PROGRAM.replace("for x, y in loader:", f"for i in range(9):\n    x, y = next({source})").replace("{expression}", "len(x)"))
    assert size_as_loaded(found.roles, node) is right
