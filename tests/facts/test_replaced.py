"""What trains and is not seen, and what takes the place of functions that train."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.replaced import forwards_given, replacing, unseen_training
from tests.pipeline import script
from tests.rules.program import program

_TRAIN = """
def timed(function):
    def inner(*args):
        {body}
    return inner
@timed
def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("body", ["return function(*args)", "out = function(*args)\n        return out"])
def test_a_decorator_that_calls_the_function(body: str) -> None:
    found = script(program(defs=_TRAIN.format(body=body), batches="", step="train(model, loader, optimizer)"))
    assert list(replacing(found.roles)) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("pass", "never calls it"),
        ("function(*args)\n        return function(*args)", "calls it more than once"),
        ("for i in range(2): function(*args)", "calls it more than once"),
        ("return pool.submit(function, *args)", "hands it to code that is not seen"),
        ("return function(args[0], *args[1:])", "gives it something else"),
    ],
)
def test_a_decorator_that_does_something_else(body: str, words: str) -> None:
    found = script(program(defs=_TRAIN.format(body=body), batches="", step="train(model, loader, optimizer)"))
    ((_, why),) = replacing(found.roles)
    assert words in why.words


@pytest.mark.parametrize(("line", "given"), [("model.forward = fast", "model.forward"), ("setattr(model, 'forward', fast)", "setattr(model, 'forward', fast)")])
def test_another_forward_of_the_wrapper(line: str, given: str) -> None:
    wrapped = "model = nn.DataParallel(Net())"
    assert list(forwards_given(script(program(before="model.name = 'net'\nsetattr(model, 'name', 'net')", model=wrapped)).roles, parallel=True)) == []
    assert [ast.unparse(n) for n in forwards_given(script(program(before=line, model=wrapped)).roles, parallel=True)] == [given]


@pytest.mark.parametrize("parallel", [True, False])
def test_a_computed_name_may_be_forward_where_nothing_takes_it_inside(parallel: bool) -> None:
    text = program(imports="import sys", before="setattr(model, sys.argv[1], fast)", model="model = nn.DataParallel(Net())")
    assert len(list(forwards_given(script(text).roles, parallel=parallel))) == parallel


@pytest.mark.parametrize(("given", "found"), [("model, 3", []), ("model, loader, optimizer", ["getattr(lib, args.trainer)"])])
def test_training_by_a_computed_name(given: str, found: list[str]) -> None:
    text = program(imports="import lib", setup="args = lib.args()", batches="", step=f"getattr(lib, args.trainer)({given})")
    assert [ast.unparse(call.func) for call, _ in unseen_training(script(text).roles)] == found
