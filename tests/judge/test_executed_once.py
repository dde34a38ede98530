"""What one planning asks for is executed once: also where a loss is no mean, a program is planned anew, or was given up."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.execution import budget
from dpmigrate.execution.engine import Execution
from dpmigrate.facts.executed import Executed
from dpmigrate.judge import judged
from dpmigrate.judge.trial import executed
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.judge.test_invariants import RIGHT


def _program(text: str) -> Program:
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return Program.of(source)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Execution]:
    """The executions that a test runs."""
    found: list[Execution] = []
    run = Execution.run

    def noted(self: Execution) -> Execution:
        found.append(self)
        return run(self)

    monkeypatch.setattr(Execution, "run", noted)
    return found


def test_a_result_with_a_bent_loss_is_executed_once(runs: list[Execution]) -> None:
    text = RIGHT.replace("nn.functional.cross_entropy(model(x), y)", "torch.exp(nn.functional.cross_entropy(model(x), y))")
    assert [b.call for b in judged(_program(text)).bent] == ["batch_mean({})"]
    assert len(runs) == 1


def test_original_and_results_of_one_planning_are_kept(runs: list[Execution]) -> None:
    texts = [RIGHT.replace("batch_size=16", f"batch_size={n}") for n in (171, 172, 173)]
    for _ in range(2):
        for text in texts:
            executed(_program(text))
            executed(_program(text), by_default="all")
    assert len(runs) == 6


def test_what_is_too_large_is_not_executed_with_more_notes(runs: list[Execution], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "STEPS", 50)
    program = _program("x = print()\n" * 60)
    facts = Executed(program)
    call = next(n for n in ast.walk(program.parts[0].tree) if isinstance(n, ast.Call))
    assert not facts.steering(call) and not facts.lying(())(call)
    assert [r.exhausted for r in runs] == [True]
