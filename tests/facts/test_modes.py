"""The program without its own distributed mode."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.modes import default_path
from dpmigrate.facts.names import Names

_TOP = """\
import argparse
import os
import torch.distributed as dist
import torch.multiprocessing as mp
p = argparse.ArgumentParser()
p.add_argument("-d", "--distributed", action="store_true")
p.add_argument("--single-rank", action="store_false")
p.add_argument("--world-size", default=-1)
p.add_argument("--local_rank", default=int(os.environ["X"]))
p.add_argument("--rank")
p.add_argument("--batch", default=3)
p.add_argument(*names)
args = p.parse_args()
"""


def left(text: str) -> str | None:
    """What is left of the text; None where there is no default path."""
    found = default_path(Names(ast.parse(_TOP + text)))
    return None if found is None else ast.unparse(found.trees[-1]).removeprefix(ast.unparse(ast.parse(_TOP))).strip()


def start(test: str) -> str:
    return f"if {test}:\n    dist.init_process_group()\nelse:\n    one()"


@pytest.mark.parametrize(
    "test",
    [
        "args.distributed",
        "not not args.distributed",
        "args.distributed or args.world_size > 1",
        "args.distributed and unknown",
        "args.rank is not None",
        "args.world_size in [0, 1]",
        "args.world_size not in (-1,)",
        "False",
    ],
)
def test_decided(test: str) -> None:
    assert left(start(test)) == "one()"
    assert left(f"if not ({test}):\n    one()\nelse:\n    mp.spawn(main)") == "one()"


@pytest.mark.parametrize(
    "test",
    [
        pytest.param("args.batch == 4", id="an option about something else"),
        pytest.param("args.local_rank > 1", id="the environment decides"),
        pytest.param("args.local_rank or args.batch", id="nothing is known"),
        pytest.param("not args.local_rank", id="the opposite of it"),
        pytest.param("args.rank > 1", id="a comparison that would fail"),
        pytest.param("0 < args.world_size < 3", id="a chain"),
        pytest.param("dist.is_available()", id="a question"),
        pytest.param("args.single_rank", id="it is on by default"),
        pytest.param("distributed", id="a variable from somewhere"),
    ],
)
def test_undecided(test: str) -> None:
    assert left(start(test)) is None


@pytest.mark.parametrize(
    ("before", "known"),
    [
        pytest.param("args.distributed = args.world_size > 1", True, id="made of options"),
        pytest.param("args.distributed = False\nargs.distributed = args.world_size > 1", True, id="twice the same"),
        pytest.param("args.distributed = args.distributed or args.world_size > 1", False, id="made of itself"),
        pytest.param("args.distributed = False\nargs.distributed = True", False, id="two values"),
        pytest.param("args.distributed = int(os.environ['WORLD_SIZE']) > 1", False, id="made of the environment"),
        pytest.param("if args.world_size > 1:\n    args.distributed = f()", True, id="set where the defaults do not come"),
        pytest.param("if args.world_size < 1:\n    pass\nelse:\n    args.distributed = f()", True, id="nor in the other branch"),
        pytest.param("if args.batch:\n    args.distributed = f()", False, id="set somewhere"),
        pytest.param("args.distributed += 1", False, id="added to"),
        pytest.param("def f(distributed):\n    pass", False, id="a parameter of the name"),
    ],
)
def test_what_a_variable_holds(before: str, known: bool) -> None:
    assert (left(f"{before}\n{start('args.distributed')}") is not None) == known


def test_nothing_to_switch() -> None:
    assert left("if args.distributed:\n    other()") is None


def test_what_is_left() -> None:
    text = """
class Meter:
    def reduce(self):
        dist.all_reduce(self.total)
    def show(self):
        print(self.total)
def gather(x):
    dist.all_gather(x)
def outer(x):
    if args.distributed:
        gather(x)
    if args.distributed:
        meter.reduce()
    elif x:
        one()
    if x:
        if args.distributed:
            two()
    return dist.get_rank() if args.distributed else 0
"""
    got = left(f"{text}\n{start('args.distributed')}")
    assert got is not None
    assert "dist" not in got.replace("args.distributed", "")
    assert "def show(self)" in got and "def reduce" not in got and "def gather" not in got
    assert "elif" not in got and "return 0" in got
    compile(got, "left", "exec")
