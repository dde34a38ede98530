"""Which expressions reduce a tensor over the batch."""

from __future__ import annotations

import pytest

from dpmigrate.facts.reductions import over_batch
from tests.facts.probe import probed


def reduces(text: str) -> bool:
    found, expression = probed("import torch\nimport math\n" + text)
    return over_batch(found.names, expression)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("probe(x / y)", id="nothing"),
        pytest.param("probe(x.sum(1) / y.sum(dim=(1, 2)))", id="axes behind the first"),
        pytest.param("probe(x.sum(-1))", id="the last axis"),
        pytest.param("probe(x.mean((-2, -1), True))", id="the last two, kept"),
        pytest.param("probe(torch.sum(x, 1))", id="function, position"),
        pytest.param("probe(torch.mean(x, dim=[1, 2]))", id="function, keyword"),
        pytest.param("d = (1, 2)\nprobe(x.sum(dim=d))", id="axes by a name"),
        pytest.param("probe(math.prod(x))", id="another library's"),
        pytest.param("probe(sum(x))", id="Python's sum"),
        pytest.param("s = s * 2\nprobe(s)", id="a name that is made of itself"),
    ],
)
def test_it_does_not(text: str) -> None:
    assert not reduces(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("probe(x.sum() / y)", id="over everything"),
        pytest.param("probe(x.sum(0))", id="the first axis"),
        pytest.param("probe(x.sum(dim=(0, 2, 3)))", id="the first among others"),
        pytest.param("probe(x.sum(dim=(-1, -2, -3)))", id="counted from the end, as far as the first may be"),
        pytest.param("d = (-1, -2) if y else (-1, -2, -3)\nprobe(x.sum(dim=d))", id="one of two"),
        pytest.param("def f(d):\n    probe(x.sum(dim=d))", id="a parameter"),
        pytest.param("probe(x.sum(dim=d))", id="axes that nobody gives"),
        pytest.param("probe(x.sum(dim=d()))", id="axes of a call"),
        pytest.param("probe(x.sum(dim='batch'))", id="a name of an axis"),
        pytest.param("probe(torch.mean(x, 0))", id="function"),
        pytest.param("i = (x * y).sum()\nu = x + y\nprobe((i + 1) / u)", id="by a name"),
    ],
)
def test_it_may(text: str) -> None:
    assert reduces(text)
