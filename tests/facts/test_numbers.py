"""Plain numbers: factors that change nothing about what a loss is normalised by."""

from __future__ import annotations

import pytest

from tests.facts.probe import probed

_PROGRAM = """
import math, random
import numpy as np
import torch
from torch.utils.data import DataLoader
def ramp(step):
    return float(np.clip(step / 16, 0.0, 1.0))
def box(size, lam):
    side = int(size[2] * np.sqrt(1.0 - lam))
    return side, side + 1
def rows(x):
    return x.size(0), x
def alone(x):
    return x.size(1)
def nothing():
    pass
def recursive(n):
    return recursive(n - 1)
class Thing:
    pass
import json, yaml
config = json.load(open('c.json'))
config['steps'] = 3
written = {'loss': {'alpha': 0.1, 'name': 'a'}}
part = config['loss']
def read(path):
    with open(path) as file:
        return yaml.safe_load(file)
def handed(given):
    return given['alpha']
held = {'alpha': 0.1}
held['alpha'] = torch.ones(3)
grown = {'alpha': 0.1}
grown.update(other)
starred = {**config}
mixed = {'alpha': torch.ones(3)}
again = again
loader = DataLoader(train_set)
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        lam = np.random.beta(1, 1)
        h, w = box(x.size(), lam)
        both = 1, x
        (deep, other), flat = (1, 2), x
        single, more = 3, x
        first, second = alone(x)
        n, kept = rows(x)
        steps = 0
        steps += 1
        area = 1 - h * w / (x.size(-1) * x.shape[1])
        with thing as entered:
            probe({expression})
"""


def plain(expression: str) -> bool:
    found, node = probed(_PROGRAM.replace("{expression}", expression))
    return found.losses.numbers.plain(node)


@pytest.mark.parametrize(
    "expression",
    [
        "2",
        "-0.5",
        "lam",
        "1 - lam",
        "area",
        "h",
        "epoch",
        "i",
        "ramp(epoch)",
        "args.alpha",
        "torch.cuda.device_count()",
        "lam if epoch else 1",
        "random.random()",
        "math.sqrt(2)",
        "max(lam, 1 - lam)",
        "np.random.rand(2)[0]",
        "x.size(1)",
        "x.size()[-1]",
        "x.shape[2]",
        "steps",
        "recursive(3)",
        "single",
        "config['loss']['alpha']",
        "part['alpha']",
        "written['loss']['alpha']",
        "read('c.yaml')['alpha']",
        "handed(config)",
    ],
)
def test_a_number(expression: str) -> None:
    assert plain(expression)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("'text'", id="a text"),
        pytest.param("x.size(0)", id="the size of the batch"),
        pytest.param("x.size()[0]", id="the size of the batch, as an item"),
        pytest.param("n", id="the size of the batch, through a function"),
        pytest.param("x", id="the batch"),
        pytest.param("x[1]", id="a part of the batch"),
        pytest.param("kept", id="the batch, through a function"),
        pytest.param("both", id="a tuple"),
        pytest.param("x.mean()", id="computed from the batch"),
        pytest.param("math.exp(x.mean())", id="computed from the batch by a function of math"),
        pytest.param("unknown", id="nothing binds it"),
        pytest.param("unknown(1)", id="a function of somewhere"),
        pytest.param("nothing()", id="a function that gives nothing back"),
        pytest.param("Thing()", id="an object"),
        pytest.param("ramp(1)[0]", id="an element of a number"),
        pytest.param("entered", id="what a context gives"),
        pytest.param("y", id="an element of what a loader gives"),
        pytest.param("lambda: 1", id="a function"),
        pytest.param("deep", id="an element of an element"),
        pytest.param("flat", id="an element that is the batch"),
        pytest.param("held['alpha']", id="an item that is stored"),
        pytest.param("grown['alpha']", id="of a dictionary that is given others"),
        pytest.param("starred['alpha']", id="of a dictionary made of others"),
        pytest.param("mixed['alpha']", id="of a dictionary of tensors"),
        pytest.param("again['alpha']", id="of itself"),
        pytest.param("read['alpha']", id="of a function"),
        pytest.param("unknown()['alpha']", id="of what a function of somewhere gives"),
        pytest.param("first", id="an element of what a function does not give as a tuple"),
    ],
)
def test_no_plain_number(expression: str) -> None:
    assert not plain(expression)
