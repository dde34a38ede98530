"""Buffers that are given something of the batch."""

from __future__ import annotations

import pytest

from dpmigrate.facts.buffers import updates
from tests.pipeline import script
from tests.rules.program import program

_NET = """\
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.register_buffer("kept", torch.zeros(8))
        self.register_buffer(name="other", tensor=torch.zeros(8))
        self.register_buffer(word, torch.zeros(8))
        self.register_buffer()

class Net(Base):
    def forward(self, x):
        {line}
        return self.fc(x)

    def put(self, value, by=1):
        self.other += value
"""


def written(line: str) -> list[str]:
    found = script(program(net=_NET.format(line=line.replace("\n", "\n        "))))
    return [u.name for u in updates(found.modules)]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("pass", id="nothing"),
        pytest.param("self.kept += 1", id="steps"),
        pytest.param("kept = self.kept + x", id="only read"),
        pytest.param("self.kept.mul_(0.9)", id="of the model alone"),
        pytest.param("self.kept.__init__(x)", id="no method in place"),
        pytest.param("self.last = x", id="no buffer"),
        pytest.param("print(x)\nx.add_(1)", id="another tensor"),
        pytest.param("self.put(3)", id="a number by a method"),
        pytest.param("self.kept[:] = torch.zeros(x.size(1), dtype=x.dtype)", id="another size"),
        pytest.param("n, width = x.shape\nself.kept += width", id="another size, unpacked"),
        pytest.param("n = n2\nn2 = n\nself.kept += n", id="names that mean each other"),
    ],
)
def test_nothing_of_the_batch(line: str) -> None:
    assert written(line) == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        pytest.param("self.kept = 0.9 * self.kept + 0.1 * x.mean(0)", ["kept"], id="assigned"),
        pytest.param("self.kept += x.size(0)", ["kept"], id="a number of samples"),
        pytest.param("self.kept += x.shape[0]", ["kept"], id="a number of samples, by shape"),
        pytest.param("n, width = x.shape\nself.kept += n", ["kept"], id="a number of samples, unpacked"),
        pytest.param("self.kept.data[:4] = x[0]", ["kept"], id="a part"),
        pytest.param("self.kept.copy_(x[0])", ["kept"], id="in place, positional"),
        pytest.param("self.kept.mul_(0.9).add_(other=x.mean(0), alpha=0.1)", ["kept"], id="in place, keyword, in a chain"),
        pytest.param("self.put(x)", ["other"], id="by a method"),
        pytest.param("self.put(by=2, value=x)", ["other"], id="by a method, keyword"),
        pytest.param("self.kept = x[0]\nself.other = x[1]\nself.kept += x", ["kept", "other"], id="the first of each"),
    ],
)
def test_something_of_the_batch(line: str, names: list[str]) -> None:
    assert written(line) == names
