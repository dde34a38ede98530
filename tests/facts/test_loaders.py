"""What the star arguments of a DataLoader call may carry."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.loaders import critical_star, dict_keys
from tests.facts.probe import probed


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param("probe(x)", None, id="from nowhere"),
        pytest.param("def f(x): probe(x)", None, id="a parameter that nobody gives"),
        pytest.param("probe({})", set(), id="an empty dict"),
        pytest.param("probe({'a': 1, 'b': 2})", {"a", "b"}, id="a dict"),
        pytest.param("probe({'a': 1, k: 2})", None, id="a key that is no literal"),
        pytest.param("probe(dict(a=1))", {"a"}, id="dict()"),
        pytest.param("probe([1])", None, id="a list"),
        pytest.param("d = {'a': 1}\nd['b'] = 2\nprobe(d)", {"a", "b"}, id="put in later"),
        pytest.param("d = {'a': 1}\nd.update(b=2)\nprobe(d)", {"a", "b"}, id="update with keywords"),
        pytest.param("d = {'a': 1}\nd.update({'b': 2})\nprobe(d)", {"a", "b"}, id="update with a dict"),
        pytest.param("d = {'a': 1}\nd.update(x)\nprobe(d)", None, id="update from elsewhere"),
        pytest.param("d = {'a': 1}\ne = {}\ne.update(x)\nprobe(d)", {"a"}, id="another's update"),
        pytest.param("probe(load(a=1))", None, id="another function's keywords"),
        pytest.param("probe(dict(**x))", None, id="dict() from elsewhere"),
        pytest.param("probe(dict(x, a=1))", None, id="dict() on top of something from elsewhere"),
        pytest.param("def f(d):\n    d = dict(d, a=1)\n    probe(d)", None, id="dict() on top of itself"),
        pytest.param("d = {'a': 1}\nd[k] = 2\nprobe(d)", None, id="put in under a key that is no literal"),
        pytest.param("d = {'a': 1}\nd |= x\nprobe(d)", None, id="joined in place"),
        pytest.param("d = {'a': 1}\nd = d | x\nprobe(d)", None, id="joined"),
        pytest.param("d = {'a': 1}\nd.update(**x)\nprobe(d)", None, id="update with stars from elsewhere"),
        pytest.param("d = {'a': 1}\nd.update(d)\nprobe(d)", None, id="update with itself"),
        pytest.param("d = {'a': 1}\nd.setdefault('b', 2)\nprobe(d)", None, id="setdefault"),
        pytest.param("probe(dict({'b': 2}, a=1, **{'c': 3}))", {"a", "b", "c"}, id="dict() of everything"),
        pytest.param("d = dict(a=1)\nd['b'] = 2\nprobe(d)", {"a", "b"}, id="put into a dict()"),
        pytest.param("d = {'a': 1}\nd.update({'b': 2}, c=3)\nprobe(d)", {"a", "b", "c"}, id="update with a dict and keywords"),
        pytest.param("d = {'a': 1}\ne = d\ne.update(b=2)\nprobe(d)", {"a", "b"}, id="update by another name"),
        pytest.param("def f(e): e.update(b=2)\nd = {'a': 1}\nf(d)\nprobe(d)", {"a", "b"}, id="update in a function"),
        pytest.param(
            "class A:\n    def __init__(self):\n        self.d = {'a': 1}\n        self.d.update(b=2)\n        probe(self.d)",
            {"a", "b"},
            id="an attribute's update",
        ),
        pytest.param("d = {'a': 1}\ne = {}\ne['b'] = 2\nprobe(d)", {"a"}, id="put into another"),
        pytest.param("d = {'a': 1}\nother.d.update(x)\nprobe(d)", {"a"}, id="an unknown object's update"),
        pytest.param("d, n = {'a': 1}, load()\nprobe(d)", {"a"}, id="one of two values at once"),
        pytest.param("d = {'a': 1} if c else {'b': 1}\nprobe(d)", {"a", "b"}, id="one of two"),
    ],
)
def test_keys(text: str, keys: set[str] | None) -> None:
    found, node = probed(text)
    assert dict_keys(found, node) == keys


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param("DataLoader(s, batch_size=3)", False, id="no star"),
        pytest.param("DataLoader(*a)", True, id="one star"),
        pytest.param("DataLoader(s, **{'num_workers': 2})", False, id="workers"),
        pytest.param("DataLoader(s, **{'shuffle': True})", True, id="shuffle"),
        pytest.param("DataLoader(s, **kw)", True, id="from elsewhere"),
    ],
)
def test_stars(call: str, answer: bool) -> None:
    found, node = probed(f"from torch.utils.data import DataLoader\nprobe({call})")
    assert isinstance(node, ast.Call)
    assert critical_star(found, node) is answer
