"""Classes whose ``__init__`` is written for them, and attributes that are computed where they are read."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.redrawn import redrawn
from tests.facts.probe import probed
from tests.pipeline import script

_HEAD = """
import attrs
import random
import torch
import torch.nn as nn
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pydantic import BaseModel
from torch.utils.data import DataLoader, Subset
from typing import ClassVar, NamedTuple
"""
_FIELDS = "    train: DataLoader\n    val: DataLoader = None\n"
_MADE = "b = B(DataLoader(one), val=DataLoader(two))\n"
_ONE, _TWO = "DataLoader(one)", "DataLoader(two)"


def _means(text: str) -> list[str]:
    found, node = probed(_HEAD + text)
    return sorted(ast.unparse(v.node) for v in found.values.eval(node))


@pytest.mark.parametrize(
    "opening",
    [
        "@dataclass\nclass B:\n",
        "@dataclass(frozen=True)\nclass B:\n",
        "@attrs.define\nclass B:\n",
        "class B(NamedTuple):\n",
        "class B(BaseModel):\n",
        "@dataclass\nclass A:\n    pass\nclass B(A):\n",
    ],
)
@pytest.mark.parametrize(("read", "expected"), [("b.train", _ONE), ("b.val", _TWO)])
def test_what_an_object_is_given(opening: str, read: str, expected: str) -> None:
    assert _means(f"{opening}{_FIELDS}{_MADE}probe({read})") == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"class B:\n{_FIELDS}{_MADE}probe(b.train)", [], id="only annotated"),
        pytest.param(f"@dataclass\nclass B:\n    n: ClassVar[int] = 3\n{_FIELDS}{_MADE}probe(b.train)", [_ONE], id="an attribute of the class"),
        pytest.param(f"@dataclass\nclass B:\n    n: int = field(init=False)\n{_FIELDS}{_MADE}probe(b.train)", [_ONE], id="no parameter"),
        pytest.param(f"@dataclass\nclass A:\n    n: int\n@dataclass\nclass B(A):\n{_FIELDS}b = B(3, DataLoader(one))\nprobe(b.train)", [_ONE], id="a base's first"),
        pytest.param(f"@dataclass\nclass B:\n{_FIELDS}b = B(*x)\nprobe(b.train)", [], id="a list that is not known"),
        pytest.param(f"@dataclass\nclass B:\n{_FIELDS}b = B(**{{'train': {_ONE}, 'val': {_TWO}}})\nprobe(b.val)", [_TWO], id="keywords of a dict"),
        pytest.param(
            f"@dataclass\nclass B:\n{_FIELDS}    def __init__(self, val, train):\n        self.train = train\nb = B({_TWO}, {_ONE})\nprobe(b.train)",
            [_ONE],
            id="an __init__ of its own",
        ),
        pytest.param(
            "@dataclass\nclass B:\n    data: list\n    def __post_init__(self):\n        self.train = DataLoader(self.data)\nb = B([])\nprobe(b.train)",
            ["DataLoader(self.data)"],
            id="what follows",
        ),
        pytest.param(f"class B(NamedTuple):\n{_FIELDS}{_MADE}x, y = b\nprobe(y)", [_TWO], id="taken apart"),
        pytest.param(f"class B(NamedTuple):\n{_FIELDS}{_MADE}probe(b[0])", [_ONE], id="by index"),
        pytest.param(f"@dataclass\nclass B:\n{_FIELDS}{_MADE}x, y = b\nprobe(y)", [], id="a data class is no tuple"),
    ],
)
def test_fields(text: str, expected: list[str]) -> None:
    assert _means(text) == expected


_PROPERTY = "class C:\n    def __init__(self):\n        self._x = DataLoader(one)\n    @{}\n    def x(self):\n        return {}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(_PROPERTY.format("property", "self._x") + "probe(C().x)", [_ONE], id="handed on"),
        pytest.param(_PROPERTY.format("property", _TWO) + "probe(C().x)", [_TWO], id="made"),
        pytest.param(_PROPERTY.format("cached_property", _TWO) + "probe(C().x)", [_TWO], id="kept"),
        pytest.param("class A(ABC):\n    @property\n    @abstractmethod\n    def x(self):\n        pass\n" + _PROPERTY.replace("C:", "C(A):").format("property", _TWO)
                     + "def f(c: A):\n    probe(c.x)\nf(C())", [_TWO], id="of a base"),
    ],
)  # fmt: skip
def test_properties(text: str, expected: list[str]) -> None:
    assert _means(text) == expected


def test_a_method_is_no_property() -> None:
    found, node = probed(_HEAD + _PROPERTY.format("torch.no_grad()", _TWO) + "probe(C().x)")
    assert [v.kind for v in found.values.eval(node)] == ["func"]


_TRAINING = """
class Data:
    @property
    def train(self):
        return {made}
data = Data()
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in data.train:
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    ("made", "drawn"),
    [
        ("DataLoader(rows, batch_size=4, shuffle=True)", []),
        ("DataLoader(Subset(rows, random.sample(range(9), 8)), batch_size=4)", ["data.train"]),
    ],
)
def test_a_property_runs_where_it_is_read(made: str, drawn: list[str]) -> None:
    found = script(_HEAD + _TRAINING.format(made=made))
    assert [ast.unparse(r.node) for r in redrawn(found)] == drawn
    (loop,) = found.roles.train_feeds
    assert [p.loader for p in found.epoch_places(loop)] == [None]  # read again, it were another loader
