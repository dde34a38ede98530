"""Branches that train and that no call comes to."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dpmigrate.execution.engine import Execution
from dpmigrate.facts import executed
from dpmigrate.facts.executed import take_out_untrained
from dpmigrate.facts.names import Names
from dpmigrate.judge import before
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TRAINED = "w = torch.ones(2, requires_grad=True)\nw.sum().backward()\n"


def left(text: str) -> int:
    """How many calls of ``backward`` are left in a program that trains beside ``text``."""
    source = parse(f"import os, torch\n{_TRAINED}{dedent(text)}".encode(), "train.py")
    assert isinstance(source, Source)
    program = Program.of(source)
    names = Names(source.tree)
    taken = take_out_untrained(program, names)
    found = len(Names(source.tree).attributes("backward"))
    assert bool(taken) == (found < len(names.attributes("backward")))
    return found


_RUN = """
def run(loss, optimizer=None, how="train"):
    if TEST:
        loss.backward()
        return 1
    else:
        return OTHER
"""


@pytest.mark.parametrize(
    ("test", "calls", "count"),
    [
        ("optimizer is not None", "run(w.sum())", 1),
        ("optimizer is not None", "run(w.sum(), 3)", 2),
        ("optimizer is not None", "run(w.sum())\nrun(w.sum(), 3)", 2),
        ("optimizer is not None", "run(w.sum(), os.environ.get('A'))", 2),
        ("how == 'train' and optimizer", "run(w.sum(), how='test')", 1),
        ("optimizer is not None", "print(1)", 2),  # nothing is known of what is not called
        ("optimizer is not None", "import other\nother.call(run)", 2),
        ("optimizer is not None", "import other\nrun(w.sum())\nother.call(run)", 2),
        ("True", "run(w.sum())", 2),
    ],
)
def test_what_no_call_comes_to_is_left_out(test: str, calls: str, count: int) -> None:
    assert left(_RUN.replace("TEST", test).replace("OTHER", "0") + calls) == count


def test_either_side_of_a_test() -> None:
    text = _RUN.replace("TEST", "optimizer is None").replace("OTHER", "loss.backward()")
    assert left(text + "run(w.sum(), 3)") == 2


def test_of_tests_inside_each_other_the_side_that_does_not_run() -> None:
    text = """
    def run(loss, optimizer=None):
        if os.environ.get("A"):
            if optimizer is not None:
                loss.backward()
        return loss
    run(w.sum())
    """
    assert left(text) == 1


def test_all_of_it_stays_where_nothing_else_trains() -> None:
    text = "import torch\ndef run(loss, o=None):\n    if o:\n        loss.backward()\nrun(torch.ones(1))\n"
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    assert not take_out_untrained(Program.of(source), Names(source.tree))


def test_nothing_is_left_out_where_the_execution_has_not_come_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = _RUN.replace("TEST", "optimizer").replace("OTHER", "0") + "run(w.sum())\n"
    assert left(text) == 1

    def ended(program: Program) -> Execution:
        result = before(program)
        result.trace.ended = "a loop that does not settle"
        return result

    monkeypatch.setattr(executed, "before", ended)
    assert left(text) == 2


def test_a_method_backward_that_nothing_enters_is_left_out() -> None:
    own = "class Net(torch.nn.Module):\n    def backward(self, x):\n        self(x).sum().backward()\n"
    assert left(own + "net = Net()\n") == 1
    assert left(own + "net = Net()\nnet.backward(w)\n") == 3


@pytest.mark.parametrize(
    ("called", "stays"),
    [
        pytest.param("", False, id="nothing enters it"),
        pytest.param("Trainer().load()\n", True, id="entered"),
        pytest.param("import other\nother.call(trainer.load)\n", True, id="handed on"),
    ],
)
def test_a_method_that_wraps_a_model_and_that_nothing_enters_is_left_out(called: str, stays: bool) -> None:
    text = f"""
class Trainer:
    def __init__(self):
        self.net = torch.nn.Linear(2, 1)
    def load(self):
        self.net = torch.nn.DataParallel(self.net)
    def plain(self):
        return self.net
trainer = Trainer()
{called}"""
    source = parse(f"import os, torch\n{_TRAINED}{text}".encode(), "train.py")
    assert isinstance(source, Source)
    assert bool(take_out_untrained(Program.of(source), Names(source.tree))) is not stays
    assert bool(list(Names(source.tree).calls("DataParallel"))) is stays
    assert list(Names(source.tree).attributes("backward"))
