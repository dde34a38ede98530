"""Where a variable holds no wrapper, since the program tests for one or takes it off."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.facts.values import Val, Values
from tests.facts.probe import all_probed

_HEAD = """\
import torch.nn as nn
from torch.nn import DataParallel
from torch.nn.parallel import DistributedDataParallel
model = DataParallel(nn.Linear(2, 2))
save(model)
"""


def _held(body: str) -> list[list[str]]:
    """What each probed expression may hold in a function that is given a wrapped model."""
    found, nodes = all_probed(f"{_HEAD}def save(net):\n{indent(body, '    ')}\n")
    values = Values(found.names)  # as the program stands, before what is not trained is unwrapped
    return [sorted({"wrapped" if v.kind == "wrapped" else "bare" for v in _models(values.eval(n))}) for n in nodes]


def _models(vals: frozenset[Val]) -> list[Val]:
    return [v for v in vals if v.kind in ("wrapped", "call")]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("probe(net)", id="nothing is tested"),
        pytest.param("if isinstance(net, nn.Linear):\n    net = net.module\nprobe(net)", id="a test for something else"),
        pytest.param("if hasattr(net, 'modules'):\n    pass\nelse:\n    probe(net)", id="another attribute"),
        pytest.param("if hasattr(net, 'module') and flag:\n    pass\nelse:\n    probe(net)", id="a test of two things"),
        pytest.param("if isinstance(net, (DataParallel, nn.Linear)):\n    pass\nelse:\n    probe(net)", id="a tuple with something else"),
        pytest.param("if isinstance(net, DataParallel):\n    probe(net)", id="the side with the wrapper"),
        pytest.param("if not isinstance(net, DataParallel):\n    net = DataParallel(net)\n    probe(net)", id="wrapped where there was none"),
        pytest.param("if isinstance(other, DataParallel):\n    return\nprobe(net)", id="another variable"),
        pytest.param("if type(net) is DataParallel:\n    probe(net)", id="the side with the wrapper, by its type"),
        pytest.param("if type(net) is not DataParallel:\n    pass\nelse:\n    probe(net)", id="no other type"),
        pytest.param("if type(net) is nn.Linear:\n    return\nprobe(net)", id="the type of something else"),
        pytest.param("if type(net) == type(other):\n    return\nprobe(net)", id="another variable's type"),
        pytest.param(
            "if isinstance(net, DataParallel):\n    def later():\n        pass\nelse:\n    def later():\n        probe(net)", id="a function that runs later"
        ),
        pytest.param("if flag:\n    if isinstance(net, DataParallel):\n        return\nprobe(net)", id="returned under another test"),
        pytest.param("if isinstance(net, DataParallel):\n    save(net)\nprobe(net)", id="not returned"),
    ],
)
def test_it_may_be_the_wrapper(body: str) -> None:
    ((*held,),) = _held(body)
    assert "wrapped" in held


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("if isinstance(net, nn.DataParallel):\n    net = net.module\nprobe(net)", id="taken off under isinstance"),
        pytest.param("if type(net) in [DataParallel, DistributedDataParallel]:\n    net = net.module\nprobe(net)", id="taken off by its type"),
        pytest.param("if type(net) != DataParallel:\n    bare = net\nelse:\n    bare = net.module\nprobe(bare)", id="the side of another type"),
        pytest.param("if isinstance(net, (DataParallel, DistributedDataParallel)):\n    net = net.module\nprobe(net)", id="a tuple of wrappers"),
        pytest.param("if hasattr(net, 'module'):\n    net = net.module\nfor i in range(3):\n    probe(net)", id="taken off under hasattr, read in a loop"),
        pytest.param("net = net.module\nprobe(net)", id="taken off"),
        pytest.param("probe(net.module if hasattr(net, 'module') else net)", id="one expression"),
        pytest.param("probe(net if not hasattr(net, 'module') else net.module)", id="one expression, the other way round"),
        pytest.param("if isinstance(net, DataParallel):\n    bare = net.module\nelse:\n    bare = net\nprobe(bare)", id="another name, by branches"),
        pytest.param("bare = net.module if isinstance(net, DataParallel) else net\nprobe(bare)", id="another name, by an expression"),
        pytest.param(
            "def unwrap(m):\n    if isinstance(m, DataParallel):\n        return m.module\n    return m\nprobe(unwrap(net))", id="a function that returns early"
        ),
    ],
)
def test_it_is_the_model(body: str) -> None:
    ((*held,),) = _held(body)
    assert held == ["bare"]


def test_what_is_stored_again_is_not_narrowed() -> None:
    again = "if hasattr(net, 'module'):\n    net = net.module\nprobe(net)\nnet = build(net)\nprobe(net)"
    assert [("wrapped" in held) for held in _held(again)] == [False, True]


def test_before_it_is_taken_off() -> None:
    assert _held("if flag:\n    net = net.module\n    probe(net)\nprobe(net)")[0] == ["bare"]
    assert "wrapped" in _held("if flag:\n    net = net.module\nprobe(net)")[0]
    assert "wrapped" in _held("probe(net)\nnet = net.module")[0]


def test_attributes() -> None:
    text = "class T:\n    def __init__(self):\n        self.net = DataParallel(nn.Linear(2, 2))\n    def save(self):\n        {}\n"
    one = text.format("bare = self.net.module if hasattr(self.net, 'module') else self.net\n        probe(bare)")
    found, (node,) = all_probed(_HEAD + one)
    assert [v.kind for v in _models(Values(found.names).eval(node))] == ["call"]


def test_at_module_level() -> None:
    """A function may run before the variable is given the bare model."""
    found, nodes = all_probed(
        _HEAD + "def show():\n    probe(model)\nprobe(model)\nif hasattr(model, 'module'):\n    model = model.module\nprobe(model)\nshow()\n"
    )
    values = Values(found.names)
    assert [any(v.kind == "wrapped" for v in values.eval(n)) for n in nodes] == [True, True, False]
