"""What workers run first, how it seeds them, and which generators a data set keeps."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.workers import alike_seeds, kept_streams, worker_starts
from tests.pipeline import script

_TRAINING = """
import os, random
import numpy as np
import torch
from functools import partial
from torch.utils.data import DataLoader
def init(worker_id, seed=0): pass
class Init:
    def __call__(self, number): pass
    def method(self, i): pass
def make():
    def inner(n): pass
    return inner
start = None
kwargs = {'a': 1}
LINES
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        pytest.param("loader = DataLoader(d)", [], id="none"),
        pytest.param("loader = DataLoader(d, worker_init_fn=None)", [], id="None"),
        pytest.param("loader = DataLoader(d, worker_init_fn=start)", [], id="a name of None"),
        pytest.param("other = DataLoader(d, worker_init_fn=init)\nloader = DataLoader(d)", [], id="another loader's"),
        pytest.param("loader = DataLoader(d, worker_init_fn=init)", ["init worker_id"], id="a function"),
        pytest.param("loader = DataLoader(d, 1, True, None, None, 2, None, False, False, 0, init)", ["init worker_id"], id="positional"),
        pytest.param("loader = DataLoader(d, worker_init_fn=init)\nkwargs['worker_init_fn'] = init", ["init worker_id"], id="once"),
        pytest.param("kwargs['worker_init_fn'] = init\nloader = DataLoader(d, **kwargs)", ["init worker_id"], id="put into a dict"),
        pytest.param("kwargs['b'] = init\nkwargs = init\nloader = DataLoader(d, **kwargs)", [], id="something else put into a dict"),
        pytest.param("kwargs = {'worker_init_fn': init, **kwargs}\nloader = DataLoader(d, **kwargs)", ["init worker_id"], id="in a dict"),
        pytest.param("kwargs = dict(worker_init_fn=init)\nloader = DataLoader(d, **kwargs)", ["init worker_id"], id="in dict()"),
        pytest.param("f = lambda n: None\nloader = DataLoader(d, worker_init_fn=f)", ["lambda n"], id="a lambda"),
        pytest.param("loader = DataLoader(d, worker_init_fn=lambda: 0)", ["lambda "], id="without a parameter"),
        pytest.param("loader = DataLoader(d, worker_init_fn=partial(init, seed=3))", ["init worker_id"], id="a keyword filled"),
        pytest.param("loader = DataLoader(d, worker_init_fn=partial(init, 3))", ["init seed"], id="the first filled"),
        pytest.param("loader = DataLoader(d, worker_init_fn=partial(init, worker_id=3))", ["init seed"], id="the first filled by keyword"),
        pytest.param("loader = DataLoader(d, worker_init_fn=Init())", ["__call__ number"], id="an object"),
        pytest.param("loader = DataLoader(d, worker_init_fn=Init().method)", ["method i"], id="a method"),
        pytest.param("loader = DataLoader(d, worker_init_fn=make())", ["inner n"], id="made by a function"),
        pytest.param("import lib\nloader = DataLoader(d, worker_init_fn=lib.init)", ["?"], id="another file's"),
        pytest.param("loader = DataLoader(d, worker_init_fn=given[0])", ["?"], id="from nowhere"),
    ],
)
def test_what_workers_run_first(lines: str, found: list[str]) -> None:
    starts = worker_starts(script(_TRAINING.replace("LINES", lines)))
    assert [f"{getattr(s.function, 'name', 'lambda')} {s.number}" if s.function else "?" for s in starts] == found


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("pass", "no seed"),
        ("np.random.seed()", "the system's"),
        ("np.random.seed(torch.initial_seed() % 2**32)", "torch's, which each rank has for itself"),
        ("random.seed(worker_id + rank)", "the author counts the ranks"),
        ("print(worker_id)", "not a seed"),
    ],
)
def test_seeds_that_are_the_rank_s_own(body: str, why: str) -> None:
    assert _alike(body) == [], why


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("np.random.seed(worker_id)", [("worker_id", True)]),
        ("random.seed(a=3 + worker_id)", [("worker_id", True)]),
        ("info = torch.utils.data.get_worker_info()\n    random.seed(info.id)", [("info.id", True)]),
        ("np.random.seed(3)", [("3", False)]),
        ("s = 4\n    np.random.seed(s)", [("4", False)]),
    ],
)
def test_seeds_that_are_alike_on_all_ranks(body: str, parts: list[tuple[str, bool]]) -> None:
    assert _alike(body) == parts


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        pytest.param("rank=0, seed=3", ["rank + seed"], id="one number"),
        pytest.param("rank=rank, seed=3", ["rank + seed"], id="a variable of one number"),
        pytest.param("0, 3", ["rank + seed"], id="by place"),
        pytest.param("rank=int(os.environ['RANK']), seed=3", [], id="what the launcher says"),
        pytest.param("rank=given, seed=3", [], id="from nowhere"),
    ],
)
def test_a_rank_that_a_partial_gives_is_looked_at(given: str, parts: list[str]) -> None:
    lines = f"rank = 0\ndef seeding(rank, seed, number):\n    random.seed(rank + seed)\nloader = DataLoader(d, worker_init_fn=partial(seeding, {given}))"
    found = script(_TRAINING.replace("LINES", lines))
    assert [ast.unparse(seed.node) for start in worker_starts(found) for seed in alike_seeds(found, start)] == parts


def test_what_is_made_elsewhere_is_not_read() -> None:
    found = script(_TRAINING.replace("LINES", "import lib\nloader = DataLoader(d, worker_init_fn=lib.init)"))
    assert [list(alike_seeds(found, start)) for start in worker_starts(found)] == [[]]


@pytest.mark.parametrize(
    ("made", "draws", "kept"),
    [
        pytest.param("rng = 3", "x = i", [], id="no generator"),
        pytest.param("rng = random.Random(3)", "x = i", [], id="a generator that draws for no sample"),
        pytest.param("rng = 3", "x = random.Random(i).random()", [], id="one that each sample makes"),
        pytest.param("rng = random.Random(3)", "x = rng.random()", ["rng.random()"], id="a method"),
        pytest.param("rng = torch.Generator()", "x = torch.rand(3, generator=rng)", ["torch.rand(3, generator=rng)"], id="an argument"),
    ],
)
def test_generators_that_a_data_set_keeps(made: str, draws: str, kept: list[str]) -> None:
    lines = f"{made}\nclass Data:\n    def __getitem__(self, i):\n        {draws}\n        return x\nloader = DataLoader(Data())"
    assert [ast.unparse(c) for c in kept_streams(script(_TRAINING.replace("LINES", lines)))] == kept


def _alike(body: str) -> list[tuple[str, bool]]:
    text = _TRAINING.replace("LINES", f"def seeding(worker_id):\n    {body}\nloader = DataLoader(d, worker_init_fn=seeding)")
    found = script(text)
    return [(ast.unparse(seed.node), seed.number) for start in worker_starts(found) for seed in alike_seeds(found, start)]
