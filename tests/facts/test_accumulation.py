"""Windows of gradient accumulation: which loops have them, and when the ranks have to average."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.accumulation import clipped_in_every_turn, uses, windows
from tests.pipeline import script
from tests.rules.program import program

_BATCHES = "for i, (x, y) in enumerate(loader):"
_STEP = "loss = F.cross_entropy(model(x), y)\nloss.backward()\n"
_EVERY = _STEP + "if {}:\n    optimizer.step()\n    optimizer.zero_grad()"


def told(step: str, batches: str = _BATCHES, **more: str) -> list[tuple[str, str]]:
    """The condition of each window, and why there is none."""
    found = script(program(batches=batches, step=step, **more))  # type: ignore[arg-type]
    return [(w.sync, w.problem) for w in windows(found)]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(_STEP + "optimizer.step()", id="a step for each backward"),
        pytest.param(_EVERY.format("y.sum() > 3"), id="a test that counts nothing"),
        pytest.param(_STEP + "nn.utils.clip_grad_norm_(model.parameters(), 1)\nif i % 4 == 3:\n    optimizer.step()", id="each turn is clipped"),
    ],
)
def test_no_window(step: str) -> None:
    assert told(step) == []


@pytest.mark.parametrize(
    ("step", "sync"),
    [
        pytest.param(_EVERY.format("(i + 1) % 4 == 0"), "(i + 1) % 4 == 0", id="by the number of the batch"),
        pytest.param(_EVERY.format("i % 4 == 3 and i > 8"), "i % 4 == 3", id="one of two tests"),
        pytest.param("count = i + 1\n" + _EVERY.format("count % 4 == 0"), "count % 4 == 0", id="by a name"),
        pytest.param(_STEP + "count = i + 1\nif count % 4 == 0:\n    optimizer.step()", "(i + 1) % 4 == 0", id="by a name that is given later"),
        pytest.param(_EVERY.format("(i + 1) % 4 == 0 or i + 1 == len(loader)"), "(i + 1) % 4 == 0 or i + 1 == len(loader)", id="the last batch too"),
        pytest.param(_EVERY.format("not (i + 1) % 4"), "not (i + 1) % 4", id="without a comparison"),
    ],
)
def test_when_the_ranks_average(step: str, sync: str) -> None:
    (window,) = told(step)
    assert window[1] == ""
    assert window[0].startswith(sync)


def test_a_counter_is_read_before_it_is_raised() -> None:
    step = _STEP + "count += 1\nif count % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()"
    assert told(step, before="count = 0")[0][0].startswith("(count + 1) % 4 == 0")


def test_turns_that_only_add_up() -> None:
    step = "optimizer.zero_grad()\nfor k in range(4):\n    F.cross_entropy(model(x), y).backward()\noptimizer.step()"
    assert told(step) == [("k + 1 == 4", "")]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        pytest.param("out = model(x)\nif i > 2:\n    F.cross_entropy(out, y).backward()\nif i % 4 == 3:\n    optimizer.step()", "backward() stands under a test", id="backward under a test"),
        pytest.param("if i % 4 == 0:\n    optimizer.step()\n" + _STEP, "gradients are used before backward()", id="used in the next turn"),
        pytest.param(_STEP + "if (y.sum() + i) % 4 == 3:\n    optimizer.step()", "it is not known before the forward pass", id="the data decide"),
        pytest.param(_STEP + "count = helper(i)\nif count % 4 == 3:\n    optimizer.step()", "it is not known before the forward pass", id="a function decides"),
        pytest.param("optimizer.zero_grad()\nfor k in range(int(y.sum())):\n    F.cross_entropy(model(x), y).backward()\noptimizer.step()", "the last turn of the inner loop", id="a number of turns that a call gives"),
        pytest.param("optimizer.zero_grad()\nfor k in range(2):\n    if k:\n        continue\n    F.cross_entropy(model(x), y).backward()\noptimizer.step()", "the last turn of the inner loop", id="turns that are left"),
    ],
)  # fmt: skip
def test_nothing_is_known(step: str, why: str) -> None:
    ((_, problem),) = told(step)
    assert problem.startswith(why)


@pytest.mark.parametrize(
    ("batches", "why"),
    [
        pytest.param("for x, y in loader:", "gradients are used after the loop, whose batches are not counted", id="not counted"),
        pytest.param("for i, (x, y) in enumerate(itertools.islice(loader, 9)):", "gradients are used after the loop, whose length", id="a part of the loader"),
    ],
)
def test_the_last_batch_is_not_known(batches: str, why: str) -> None:
    step = "i = step = 3\n" + _EVERY.format("seen % 4 == 3") + "\nseen += 1"
    ((_, problem),) = told(step, batches, imports="import itertools", before="seen = 0", epoch_end="optimizer.step()")
    assert problem.startswith(why)


def test_a_loop_that_is_left_early() -> None:
    step = _STEP + "if i % 4 == 3:\n    optimizer.step()\nif i > 50:\n    break"
    assert told(step) == [("i % 4 == 3", "")]
    ((_, problem),) = told(step, epoch_end="optimizer.step()")
    assert problem.startswith("gradients are used after the loop, whose last batch")


def test_what_uses_gradients() -> None:
    """What steps and is not seen to be a scheduler counts as an optimizer."""
    setup = "from torch.optim.swa_utils import SWALR\nimport torch.optim.lr_scheduler as ls"
    before = "a = ls.StepLR(optimizer, 3)\nb = SWALR(optimizer, 0.1)\nc = make()"
    end = "a.step()\nb.step()\nc.step()\nprint(model.fc.weight.grad)\nx.step_size()\nmanual_step(model)"
    found = script(program(imports=setup, before=before, step=_STEP + "optimizer.step()", epoch_end=end))
    assert sorted(ast.unparse(n) for n in uses(found.roles)) == ["c.step()", "manual_step(model)", "model.fc.weight.grad", "optimizer.step()", "x.step_size()"]


def test_clipping_in_every_turn() -> None:
    step = _STEP + "nn.utils.clip_grad_norm_(model.parameters(), 1)\nif i % 4 == 3:\n    optimizer.step()"
    found = script(program(batches=_BATCHES, step=step))
    assert [ast.unparse(n) for n in clipped_in_every_turn(found)] == ["nn.utils.clip_grad_norm_(model.parameters(), 1)"]
    found = script(
        program(
            batches=_BATCHES,
            step=_EVERY.format("i % 4 == 3").replace("    optimizer.step", "    nn.utils.clip_grad_norm_(parameters=p, max_norm=1)\n    optimizer.step"),
        )
    )
    assert list(clipped_in_every_turn(found)) == []


def test_models_of_other_loops_are_not_of_the_window() -> None:
    other = "for x, y in other_loader:\n    F.cross_entropy(other(x), y).backward()\n    second.step()\n    second.zero_grad()"
    setup = "other = Net()\nsecond = torch.optim.SGD(other.parameters(), lr=0.1)\nother_loader = DataLoader(train_set, batch_size=16, shuffle=True)"
    found = script(program(batches=_BATCHES, step=_EVERY.format("(i + 1) % 4 == 0"), setup=setup, epoch_end=other))
    assert [w.models for w in windows(found)] == [("model",)]


def test_a_step_of_another_loop_uses_that_loops_gradients() -> None:
    step = _STEP + "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()"
    alone = "for k in range(2):\n    {}optimizer.step()"
    again = alone.format("F.cross_entropy(model(x), y).backward()\n    ")
    assert told(step, epoch_end=again)[0][0] == "(i + 1) % 4 == 0"
    # without gradients of its own it uses what the window has left
    assert told(step, epoch_end=alone.format("print(k)\n    "))[0][0] == "(i + 1) % 4 == 0 or i + 1 == len(loader)"
