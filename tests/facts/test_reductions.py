"""Which expressions reduce a tensor over the batch."""

from __future__ import annotations

import pytest

from dpmigrate.facts.reductions import over_batch
from tests.facts.probe import probed


def reduces(text: str) -> bool:
    body = "\n".join(f"    {line}" for line in text.splitlines())
    found, expression = probed(f"import torch\nimport math\ndef forward(self, x, y):\n{body}")
    return over_batch(found.roles, expression)


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
        pytest.param("probe(self.weight.sum())", id="of a parameter"),
        pytest.param("probe(torch.ones(x.size(1)).mean())", id="of a table"),
        pytest.param("probe(torch.stack([one.mean() for one in x]))", id="of each sample"),
        pytest.param("probe(torch.arange(x.max()))", id="a bound"),
        pytest.param("probe(x.max() + y)", id="a shift"),
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
        pytest.param("probe(torch.bincount(y, minlength=3) / 3)", id="a count of classes"),
        pytest.param("probe(x / x.max())", id="scaled by an extreme"),
        pytest.param("probe(x.mean(dim=-2))", id="the last but one, which may be the first"),
        pytest.param("x = x * 2\nx = x + 1\nx = x - y\nprobe(x.sum())", id="by several names of one"),
        pytest.param("probe(x / x.norm())", id="scaled by a norm"),
        pytest.param("i = (x * y).sum()\nu = x + y\nprobe((i + 1) / u)", id="by a name"),
    ],
)
def test_it_may(text: str) -> None:
    assert reduces(text)
