"""What executions may cost: places that are gone through count, results of what is too large are not executed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dpmigrate.execution import budget
from dpmigrate.execution.heap import Heap
from dpmigrate.execution.store import Store
from dpmigrate.execution.values import UNBOUND, Value, const
from dpmigrate.judge.trial import executed
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.execution.paper import executed as on_paper


def _program(text: str, former: str | None = None) -> Program:
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    program = Program.of(source)
    if former is None:
        return program
    (part,) = program.parts
    return Program((replace(part, former=former),))


#: each object may be any of sixty, and what is read of one is read of all of them
_FAN = "import os\nclass C:\n    def get(self, k):\n        return k\nmade = [" + "C(), " * 60 + "]\ndef one():\n    return made[int(os.environ['N'])]\n"


def test_a_call_of_one_of_many_costs_more_than_its_steps() -> None:
    few, many = (on_paper(_FAN + f"c = {which}\n" + "c.get(1)\n" * 50) for which in ("C()", "one()"))
    assert many.steps < few.steps + 200
    assert many.cost > few.cost + 50 * 30


def test_the_reason_names_what_was_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "STEPS", 600)
    text = "def small():\n    return 1\ndef large(n):\n" + "    n = n + small()\n" * 100 + "    return n\nfor i in range(9):\n    large(i)\n" + "large(99)\n" * 20
    assert (on_paper(text).trace.ended or "").endswith(", most of them in large (train.py:4)")


def test_a_result_of_what_is_too_large_is_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "STEPS", 50)
    text = "x = 1\n" * 60
    with budget.planning():
        original = executed(_program(text))
        result = executed(_program(text + "y = 2\n", former=text))
        by_default = executed(_program(text), by_default="all")
    assert original.exhausted and by_default.steps > 50
    assert result.steps == 0 and result.trace.ended == original.trace.ended
    assert executed(_program(text + "y = 2\n", former=text)).steps > 50  # by itself it is


def test_all_that_is_executed_for_one_program_has_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PLANNED", 300)
    texts = [f"x = {n}\n" * 80 for n in range(4)]
    with budget.planning():
        ended = [executed(_program(t)).trace.ended for t in texts]
    assert ended[0] is None
    assert (ended[-1] or "").startswith("the program and its results take more steps than the budget has")
    assert executed(_program(texts[-1])).trace.ended is None  # what was cut short is not kept


def test_what_the_only_way_has_written_is_not_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = 0
    store_at = Store._store_at

    def counted(self: Store, location: tuple[int, str], new: Value | None) -> None:
        nonlocal stored
        stored += 1
        store_at(self, location, new)

    monkeypatch.setattr(Store, "_store_at", counted)
    sets = "".join(f"    o.a{n} = [{n}]\n" for n in range(40))
    calls = "".join(f"def f{n}(o):\n    f{n - 1}(o)\n    return o\n" for n in range(1, 20))
    on_paper(f"class C:\n    pass\ndef f0(o):\n{sets}{calls}f19(C())\n")
    assert stored < 600


@pytest.mark.parametrize("seed", range(40))
def test_an_only_way_is_adopted_as_it_would_be_applied(seed: int) -> None:
    """On two stores with the same history: the values, the notes of reads, and what a rollback of what is round it gives."""
    heaps = []
    for adopts in (True, False):
        draw, heap = random.Random(seed), Heap()
        values = [const(1), const(2), (UNBOUND, *const(1)), (*const(2), *const(1)), None]
        places = [(n, name) for n in (1, 2, 3) for name in ("a", "b", "#exists")]

        def some(draw: random.Random = draw, heap: Heap = heap, values: list[Value | None] = values) -> None:
            for _ in range(draw.randrange(6)):
                at = draw.choice(places)  # noqa: B023
                if draw.random() < 0.6:
                    heap.write(at, draw.choice(values))
                else:
                    heap.read(at)

        some()
        heap.mark()
        some()
        heap.reading()
        heap.mark()
        some()
        heap.mark()
        some()
        for own in (None, 3):
            if adopts:
                heap.adopt(own)
            else:
                delta = heap.rollback()
                heap.apply([{at: v for at, v in delta.items() if at[0] != own}])
            some()
        reads = heap.read_since(99)
        heaps.append((dict(heap._store), reads, dict(heap.rollback()), dict(heap._store)))
    assert heaps[0] == heaps[1]


