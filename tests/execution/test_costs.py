"""What is not done twice: calls of which only an answer mattered, executions of equal texts, joins of a chain."""

from __future__ import annotations

import ast
import gc
from pathlib import Path

import pytest

from dpmigrate.execution.engine import Execution, execute
from dpmigrate.execution.heap import Heap
from dpmigrate.execution.joins import SIZE, join
from dpmigrate.execution.syntax import below
from dpmigrate.execution.values import LARGE, UNBOUND, Items, Unknown, const, items
from dpmigrate.judge.trial import before, executed
from dpmigrate.library.tables import Tables
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_AT = (1, "begun")
_YES = const(True)[0]


def _program(text: str) -> Program:
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return Program.of(source)


def test_a_question_is_answered_alike_by_other_values() -> None:
    heap = Heap()
    heap.write(_AT, const(True))
    heap.reading()
    assert heap.holds(_AT, _YES)
    reads = heap.read_since(2)
    heap.write(_AT, (UNBOUND, *const(True)))
    assert heap.unchanged(reads)
    heap.write(_AT, const(False))
    assert not heap.unchanged(reads)


def test_a_question_of_what_the_call_wrote_is_none_of_what_was_before() -> None:
    heap = Heap()
    heap.reading()  # the call outside
    heap.write(_AT, const(True))
    heap.reading()
    assert heap.holds(_AT, _YES)
    inner = heap.read_since(2)
    assert inner
    outer = heap.read_since(3)
    assert not outer
    heap.reading()
    heap.write(_AT, const(True))
    heap.note(inner)
    assert not heap.read_since(2)


def test_equal_texts_are_executed_once() -> None:
    text = "import torch\nprint(torch.ones(2))\n"
    assert executed(_program(text)) is executed(_program(text)) is before(_program(text))
    assert executed(_program(text), by_default="all") is not executed(_program(text))
    assert executed(_program(text + "print(1)\n")) is not executed(_program(text))


def test_another_budget_is_another_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\nprint(torch.ones(3))\n"
    whole = executed(_program(text))
    monkeypatch.setattr("dpmigrate.execution.budget.STEPS", 2)
    assert whole.trace.ended is None
    assert executed(_program(text)).trace.ended is not None


def test_the_arms_of_a_long_chain_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = []
    apply = Heap.apply

    def counted(self: Heap, deltas: list[dict[object, object]], *args: object) -> bool:
        outcomes = list(deltas)
        joined.append(len(outcomes))
        return apply(self, outcomes, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Heap, "apply", counted)
    arms = "".join(f"elif name == '{n}':\n    x = {n}\n" for n in range(1, 30))
    text = f"import os\nname = os.environ['NAME']\nif name == '0':\n    x = 0\n{arms}else:\n    x = 30\n"
    execute(_program(text), Tables())
    assert [n for n in joined if n > 1] == [31]


def test_the_collector_works_as_often_afterwards() -> None:
    before_it = gc.get_threshold()
    execute(_program("x = 1\n"), Tables())
    assert gc.get_threshold() == before_it


def test_what_is_written_in_a_try_within_a_try_is_noted_for_both() -> None:
    heap = Heap()
    outer = heap.watch()
    heap.write(_AT, const(1))
    inner = heap.watch()
    heap.write(_AT, const(2))
    assert heap.watched(inner)[_AT] == const(2)
    heap.write(_AT, const(3))
    assert heap.watched(outer)[_AT] == (*const(1), *const(2), *const(3))
    assert not heap.watching


def test_a_block_without_gradients_leaves_what_was_before_it() -> None:
    text = """\
import os
import torch
model = torch.nn.Linear(2, 2)
x = torch.ones(2, 2)
for _ in range(int(os.environ["N"])):
    model(x)
    if os.environ.get("TEST"):
        with torch.no_grad():
            model(x)
"""
    trained, tested = executed(_program(text)).trace.of("forward")
    assert trained.values["grad"] == const(True)
    assert tested.values["grad"] == const(False)


def test_no_node_that_means_something_is_passed_over() -> None:
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    said_of_others = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    assert set(below(tree)) == {n for n in ast.walk(tree) if not isinstance(n, said_of_others)}


def test_tuples_are_told_apart_up_to_a_bound() -> None:
    few, others = (items([items([const(n + k)]) for n in range(SIZE // 3)]) for k in range(2))
    assert isinstance(join(few, others)[0], Items)
    many, more = (items([items([const(n + k)]) for n in range(SIZE)]) for k in range(2))
    assert isinstance(join(many, more)[0], Unknown)
    assert isinstance(items([const(n) for n in range(LARGE + 1)])[0], Unknown)


def test_a_tuple_of_tensors_keeps_the_places_that_it_has() -> None:
    text = "import torch\nx = (torch.ones(2), (torch.ones(2), 1))\ny = (x, x)\nx[0].zero_()\n"
    ex = execute(_program(text), Tables())
    module = next(o.number for o in ex.heap.objects.values() if o.kind == "pymodule")
    x, y = (ex.heap.read((module, name)) for name in "xy")
    assert x and y and isinstance(y[0], Items)
    assert y[0].items == (x, x)


#: lists that all hold each other
_TANGLED = "".join(f"d{n} = []\n" for n in range(12)) + "".join(
    f"d{a}.append(d{b})\n" for a in range(12) for b in range(12)
)  # fmt: skip


def test_each_list_in_a_module_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"import torch\n{_TANGLED}model = torch.nn.Linear(2, 2)\nmodel.held = d0\n"
    peeked: list[int] = []
    peek = Heap.peek

    def counted(self: Heap, owner: int):  # type: ignore[no-untyped-def]
        peeked.append(owner)
        return peek(self, owner)

    monkeypatch.setattr(Heap, "peek", counted)
    execute(_program(text + "model.eval()\n"), Tables())
    assert len(peeked) < 100


def test_each_list_that_a_function_is_given_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    contents = Execution.contents

    def counted(self: Execution, made):  # type: ignore[no-untyped-def]
        seen.append(made.number)
        return contents(self, made)

    monkeypatch.setattr(Execution, "contents", counted)
    execute(_program(f"import torch\n{_TANGLED}x = torch.sum(d0)\n"), Tables())
    assert len(seen) < 200


def test_what_an_answer_does_not_hang_on_is_not_read() -> None:
    text = """def is_list(x):
    return isinstance(x, list)

held = [[1]]
a = is_list(held)
held[0].append(2)
b = is_list(held)
"""
    ex = execute(_program(text), Tables())
    assert list(ex._executions.values()) == [1]


def test_a_call_is_the_same_whatever_the_one_before_has_written_into_its_parameter() -> None:
    text = """
import torch
def fill(t, number):
    t.add_(number)
def small():
    x = torch.zeros(2)
    fill(x, 1)
    return x.sum()
def large():
    x = torch.ones(2, 3)
    fill(x, torch.rand(3))
    return x.sum()
small(); large()
small(); large()
small(); large()
"""
    found = execute(_program(text), Tables())
    assert isinstance(found, Execution)
    counts = {found.heap.objects[number].name: n for (number, _), n in found._executions.items()}
    assert counts == {"fill": 2, "small": 1, "large": 1}
