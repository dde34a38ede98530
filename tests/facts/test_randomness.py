"""What draws from a stream of random numbers, and what does so only later."""

from __future__ import annotations

import pytest

from dpmigrate.facts.randomness import drawing, draws, postponed
from tests.facts.probe import probed

_TOP = """
import random
import numpy as np
import torch
def flip(p):
    return random.random() < p
def plain(p):
    return p
class Flip:
    def __init__(self):
        self.p = random.random()
def around(n):
    return around(n - 1)
def twice(p):
    return flip(p) + 1
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("probe(len([]))", False, id="no draw"),
        pytest.param("probe(plain(3))", False, id="a function without one"),
        pytest.param("probe(random.seed(3))", False, id="a seed is set"),
        pytest.param("probe(Flip())", False, id="an object is made"),
        pytest.param("probe(random.random())", True, id="python's"),
        pytest.param("probe(np.random.rand(3))", True, id="numpy's"),
        pytest.param("probe(torch.randn(3))", True, id="torch's"),
        pytest.param("rng = np.random.default_rng(3)\nprobe(rng.integers(3))", True, id="a stream of its own"),
        pytest.param("from random import random as draw\nprobe(draw())", True, id="by another name"),
        pytest.param("x = torch.zeros(3)\nprobe(x.normal_())", True, id="in place"),
        pytest.param("probe(flip(.5))", True, id="in a function"),
    ],
)
def test_drawing(text: str, expected: bool) -> None:
    found, call = probed(_TOP + text)
    assert drawing(found.roles, call) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("probe([random.random() for i in range(3)])", False, id="a list"),
        pytest.param("probe(random.random())", False, id="a call"),
        pytest.param("probe(lambda: random.random())", True, id="a lambda"),
        pytest.param("probe(random.random() for i in range(3))", True, id="a generator"),
        pytest.param("probe(map(flip, [3]))", True, id="map"),
    ],
)
def test_postponed(text: str, expected: bool) -> None:
    found, node = probed(_TOP + text)
    assert postponed(found.roles, node) is expected


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("plain(3)", "computes"),
        ("around(3)", "calls itself, and draws nowhere"),
        ("random.seed(3)", "sets the stream"),
        ("np.random.default_rng(3)", "makes a stream"),
        ("torch.randn(3, generator=g)", "a stream of its own, the same on every rank"),
        ("random.shuffle", "is not called"),
        ("'random.random()'", "a text"),
    ],
)
def test_draws_nothing(expression: str, why: str) -> None:
    found, node = probed(f"{_TOP}probe({expression})")
    assert not draws(found.roles, node), why


@pytest.mark.parametrize("expression", ["random.random()", "torch.randn(3, generator=None)", "data.shuffle()", "twice(.5)", "list(map(flip, x))"])
def test_draws(expression: str) -> None:
    found, node = probed(f"{_TOP}probe({expression})")
    assert draws(found.roles, node)


@pytest.mark.parametrize(
    ("signature", "call", "own"),
    [
        ("n, g=None", "make(3)", False),
        ("n, g", "make(3, None)", False),
        ("n, g=None", "make(3, own)", True),
        ("n, g=own", "make(3)", True),
        ("n, g=None if key else own", "make(3)", False),
        ("n, g=other", "make(3)", False),
        ("n, g=box.g", "make(3)", False),
    ],
)
def test_a_generator_that_may_be_none_is_that_of_the_process(signature: str, call: str, own: bool) -> None:
    top = "own = torch.Generator()\nother = None\nif key:\n    other = own\nclass Box:\n    def __init__(self):\n        self.g = None\nbox = Box()\n"
    lines = f"{top}def make({signature}):\n    return torch.randn(n, generator=g)\nprobe({call})"
    found, node = probed(_TOP + lines)
    assert draws(found.roles, node) is not own
