"""Where ranks go together, where they may part, and what rank 0 does alone."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from dpmigrate.facts.ranks import asks_files, ends_before, left_to_main, local_tests, parted, reached_together, run_by_all, stops_at_file, stretch
from tests.facts.probe import probed

_TRAINING = """
import os, torch, wandb
import torch.nn as nn
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    for x, y in DataLoader(data):
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("text", "together"),
    [
        pytest.param("probe(1)", True, id="the module"),
        pytest.param("if len(data) > 3:\n    probe(1)", True, id="a test that all answer alike"),
        pytest.param("def f():\n    probe(1)\nf()", True, id="a function"),
        pytest.param("def f():\n    if len(data) > 3:\n        return\n    probe(1)\nf()", True, id="a return that all meet"),
        pytest.param("def f(k):\n    probe(1)\n    f(k - 1)\nf(3)", True, id="a function that calls itself"),
        pytest.param("def f():\n    probe(1)\n    if torch.rand(1) > 2:\n        return\nf()", True, id="a return below"),
        pytest.param("if torch.rand(1) > 2:\n    probe(1)", False, id="a test of chance"),
        pytest.param("k = probe(1) if torch.rand(1) > 2 else 3", False, id="in an expression"),
        pytest.param("def f():\n    probe(1)\nif torch.rand(1) > 2:\n    f()", False, id="through a function"),
        pytest.param("def f():\n    if torch.rand(1) > 2:\n        return\n    probe(1)\nf()", False, id="below a return"),
        pytest.param("k and probe(1)", False, id="a part of a test"),
        pytest.param("print(probe(1))", False, id="an argument"),
        pytest.param("try:\n    pass\nexcept OSError:\n    probe(1)", False, id="in a handler"),
        pytest.param("try:\n    pass\nfinally:\n    probe(1)", False, id="in a finally"),
        pytest.param("try:\n    probe(1)\nfinally:\n    pass", True, id="in a try"),
        pytest.param("with f(probe(1)):\n    pass", False, id="what a with opens"),
    ],
)
def test_reached_together(text: str, together: bool) -> None:
    found, inner = probed(_TRAINING + text)
    assert reached_together(found.roles, found.names.parent[inner]) is together


def test_what_decides_the_training_is_decided_together() -> None:
    text = "def main():\n    if not os.path.exists(os.path.abspath('.')):\n        return\n    train()\n    probe(1)\nmain()"
    found, inner = probed(_TRAINING + text)
    place = found.names.parent[inner]
    assert list(ends_before(found.roles, place)) and reached_together(found.roles, place)


def test_the_tests_that_part_them() -> None:
    found, inner = probed(_TRAINING + "def f(k):\n    if torch.rand(1) > 5:\n        return\n    probe(1)\nif torch.rand(1) > 2:\n    f(3)")
    assert [ast.unparse(t) for t in local_tests(found.roles, inner)] == ["torch.rand(1) > 2"]
    assert [ast.unparse(t) for t in ends_before(found.roles, inner)] == ["torch.rand(1) > 5"]
    found, inner = probed(_TRAINING + "if probe(torch.rand(1) > 2):\n    pass")
    assert list(local_tests(found.roles, inner)) == []


@pytest.mark.parametrize(
    ("guard", "tests"),
    [
        pytest.param("if os.path.exists(d):\n    exit()\nos.makedirs(d)", ["os.path.exists(d)"], id="the program ends"),
        pytest.param("if os.path.exists(d):\n    raise OSError(d)\nelse:\n    os.mkdir(d)", ["os.path.exists(d)"], id="an error"),
        pytest.param("if p.exists():\n    return\np.mkdir()", ["p.exists()"], id="a path, and a return"),
        pytest.param("if os.path.exists(d):\n    exit()", [], id="nobody makes it"),
        pytest.param("if os.path.exists(d):\n    exit()\nos.makedirs(e)", [], id="another one is made"),
        pytest.param("if os.path.exists(d):\n    print(d)\nos.makedirs(d)", [], id="it only says so"),
        pytest.param("if torch.rand(1) > 5:\n    exit()", ["torch.rand(1) > 5"], id="an end by chance"),
        pytest.param("if torch.rand(1) > 5:\n    raise OSError", [], id="an error of one rank"),
        pytest.param("if torch.rand(1) > 5:\n    raise SystemExit", ["torch.rand(1) > 5"], id="an end that is raised"),
        pytest.param("if len(data) > 5:\n    exit()", [], id="a test that all answer alike"),
    ],
)
def test_what_would_end_one_rank_before(guard: str, tests: list[str]) -> None:
    found, inner = probed(f"{_TRAINING}def f(d, e, p):\n{indent(guard, '    ')}\n    probe(1)\nf('a', 'b', c)")
    assert [ast.unparse(t) for t in ends_before(found.roles, inner)] == tests


@pytest.mark.parametrize(
    ("guard", "tests"),
    [
        pytest.param("if os.path.exists(d):\n    exit()", ["os.path.exists(d)"], id="the program ends"),
        pytest.param("if (p / 'a').exists():\n    raise OSError", ["(p / 'a').exists()"], id="an error"),
        pytest.param("if not e and p.is_file():\n    raise OSError", ["not e and p.is_file()"], id="unless it may be overwritten"),
        pytest.param("if not os.path.exists(d):\n    raise OSError", [], id="a file that must be there"),
        pytest.param("if not (os.path.exists(d) or p.exists()):\n    raise OSError", [], id="none of two is there"),
        pytest.param("assert not os.path.exists(d), d", ["not os.path.exists(d)"], id="an assertion"),
        pytest.param("assert os.path.exists(d)", [], id="an assertion that it is there"),
        pytest.param("if os.path.exists(d):\n    return", [], id="nothing stops"),
        pytest.param("while True:\n    if os.path.exists(d):\n        raise OSError", [], id="in a loop"),
    ],
)
def test_what_stops_at_a_file(guard: str, tests: list[str]) -> None:
    made = f"class Log:\n    def __init__(self, d, e, p):\n{indent(guard, '        ')}\nLog('a', 'b', c)\nprobe(1)"
    found, _ = probed(_TRAINING + made)
    assert [ast.unparse(t) for t in stops_at_file(found.roles)] == tests
    found, _ = probed(_TRAINING + made.replace("Log('a', 'b', c)", ""))
    assert list(stops_at_file(found.roles)) == []  # nothing makes one


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("probe(1)", True, id="the module"),
        pytest.param("def f():\n    probe(1)\nf()", True, id="a function of the module"),
        pytest.param("def f():\n    probe(1)\n    train()\napp.run(f)", True, id="a main that a library calls"),
        pytest.param("def f():\n    probe(1)\npool.map(f)", False, id="a worker"),
        pytest.param("def f(k):\n    probe(1)\n    f(k - 1)\npool.map(f)", False, id="a worker that calls itself"),
    ],
)
def test_run_by_all(text: str, answer: bool) -> None:
    found, inner = probed(_TRAINING + text)
    assert run_by_all(found.roles, inner) is answer


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        pytest.param("k > 3", False, id="a number"),
        pytest.param("'exists' in k", False, id="a word"),
        pytest.param("os.path.isabs(k)", False, id="a question about words"),
        pytest.param("os.path.exists(k)", True, id="os.path"),
        pytest.param("k.is_file()", True, id="pathlib"),
        pytest.param("len(os.listdir(k)) > 3", True, id="a folder"),
    ],
)
def test_asks_files(test: str, answer: bool) -> None:
    found, inner = probed(_TRAINING + f"probe({test})")
    assert asks_files(found.roles, inner) is answer


_ASKS = "if os.path.exists('a'):"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        pytest.param("if k:\n    probe(1)", "probe(1)", "probe(1)", id="a setting"),
        pytest.param(f"if k:\n    {_ASKS}\n        if j:\n            probe(1)", _ASKS, _ASKS, id="the outermost question"),
        pytest.param(f"def f():\n    probe(1)\n{_ASKS}\n    f()", "probe(1)", "probe(1)", id="another function's question"),
        pytest.param("try:\n    probe(1)\nexcept OSError:\n    pass", "probe(1)", "probe(1)", id="tried"),
        pytest.param("try:\n    k()\nexcept OSError:\n    probe(1)", "try:", "try:", id="where it failed"),
        pytest.param("try:\n    import k\nexcept ImportError:\n    probe(1)", "probe(1)", "probe(1)", id="no rank has the package"),
        pytest.param(f"def f():\n    j()\n    {_ASKS}\n        return 1\n    probe(1)\n    return 2\nf()", _ASKS, "return 2", id="an early return"),
        pytest.param(f"def f():\n    {_ASKS}\n        k()\n    probe(1)\nf()", "probe(1)", "probe(1)", id="no return"),
        pytest.param("def f():\n    if j:\n        return 1\n    probe(1)\nf()", "probe(1)", "probe(1)", id="an early return by a setting"),
        pytest.param(f"def f():\n    {_ASKS}\n        return 1\n    {_ASKS}\n        return 2\n    probe(1)\nf()", _ASKS, "probe(1)", id="the first of two"),
        pytest.param(f"def f():\n    for i in j:\n        {_ASKS}\n            return 1\n        probe(1)\nf()", None, None, id="a return from a loop"),
    ],
)
def test_stretch(text: str, first: str | None, last: str | None) -> None:
    found, inner = probed(_TRAINING + text)
    whole = stretch(found.roles, found.names.statement(inner), lambda test: asks_files(found.roles, test))
    assert (whole and ast.unparse(whole.first).splitlines()[0]) == first
    assert (whole and ast.unparse(whole.last).splitlines()[0]) == last


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("probe(1)", False, id="no test"),
        pytest.param("if k:\n    probe(1)", True, id="a test"),
        pytest.param("def f():\n    if k:\n        return\n    probe(1)\nf()", True, id="a return"),
        pytest.param("try:\n    probe(1)\nexcept OSError:\n    pass", False, id="tried"),
        pytest.param("try:\n    train()\nexcept (OSError, ImportError):\n    probe(1)", True, id="where it failed"),
        pytest.param("try:\n    train()\nexcept:\n    probe(1)", True, id="where anything failed"),
        pytest.param("def f():\n    probe(1)\ntry:\n    train()\nexcept OSError:\n    f()", True, id="a function called where it failed"),
        pytest.param("try:\n    train()\nexcept ModuleNotFoundError:\n    probe(1)", False, id="no rank has the package"),
    ],
)
def test_parted(text: str, answer: bool) -> None:
    found, inner = probed(f"import random\nk = random.random()\n{_TRAINING}{text}")
    assert parted(found.roles, inner) is answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("k = probe(1)", False, id="a value"),
        pytest.param("print(probe(1))", False, id="any call"),
        pytest.param("os.remove(probe(1))", True, id="a file"),
        pytest.param("wandb.log(probe(1))", True, id="a tracker"),
        pytest.param("breakpoint(probe(1))", True, id="a question"),
    ],
)
def test_left_to_main(text: str, answer: bool) -> None:
    found, inner = probed(_TRAINING + text)
    assert left_to_main(found.roles, inner) is answer
