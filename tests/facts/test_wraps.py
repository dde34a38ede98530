"""Where each model is wrapped, which DataParallel calls go, and what cannot be placed."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from tests.pipeline import script

_TOP = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
loader = DataLoader(train_set, shuffle=True)
"""
_LOOP = "for epoch in range(3):\n    for x, y in loader:\n        loss = F.mse_loss({model}(x), y)\n        loss.backward()\n        optimizer.step()\n"
_OPTIMIZER = "optimizer = torch.optim.SGD({model}.parameters(), lr=0.1)\n"


def _program(body: str, model: str = "model") -> str:
    return _TOP + body + "\n" + _OPTIMIZER.format(model=model) + _LOOP.format(model=model)


def _plan(text: str) -> tuple[list[tuple[str, str, str]], list[str], list[str]]:
    """(how, statement, variable) of each wrap, the calls that go, the problems."""
    plan = script(text).wraps
    wraps = [(w.how, ast.unparse(w.stmt).splitlines()[0], w.target) for w in plan.wraps]
    return wraps, sorted(ast.unparse(c) for c in plan.removed), [told.words for _, told in plan.problems]


@pytest.mark.parametrize(
    ("body", "wraps", "removed"),
    [
        pytest.param("model = nn.Linear(3, 2)", [("value", "model = nn.Linear(3, 2)", "model")], [], id="made and nothing else"),
        pytest.param(
            "model = nn.DataParallel(nn.Linear(3, 2))", [("call", "model = nn.DataParallel(nn.Linear(3, 2))", "model")], [], id="a wrap where it is made"
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nif n > 1:\n    model = nn.DataParallel(model)",
            [("after", "if n > 1:", "model")],
            ["nn.DataParallel(model)"],
            id="a wrap in an if",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nif n > 1:\n    model = nn.DataParallel(model)\nelse:\n    model = nn.DataParallel(model)",
            [("after", "if n > 1:", "model")],
            ["nn.DataParallel(model)", "nn.DataParallel(model)"],
            id="a wrap in both branches",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nmodel = nn.DataParallel(model) if n > 1 else model",
            [("after", "model = nn.DataParallel(model) if n > 1 else model", "model")],
            ["nn.DataParallel(model)"],
            id="a wrap in a conditional",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\ntry:\n    if n > 1:\n        model = nn.DataParallel(model)\nfinally:\n    pass",
            [("after", "try:", "model")],
            ["nn.DataParallel(model)"],
            id="a wrap in an if in a try",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nmodel.eval()\nmodel.load_state_dict(s)",
            [("after", "model.load_state_dict(s)", "model")],
            [],
            id="after the last use that wants it bare",
        ),
        pytest.param("model = nn.Linear(3, 2)\nmodel = model.train()\nshow(f'{model}')", [("after", "show(f'{model}')", "model")], [], id="after it was shown"),
        pytest.param("model = nn.Linear(3, 2)\nfor p in z:\n    p.requires_grad = False", [("after", "for p in z:", "model")], [], id="after freezing"),
        pytest.param("if n:\n    model = nn.Linear(3, 2)\nelse:\n    model = nn.ReLU()", [("after", "if n:", "model")], [], id="made in two branches"),
        pytest.param("model = None\nif n:\n    model = nn.Linear(3, 2)", [("after", "if n:", "model")], [], id="made in one branch"),
        pytest.param("a, model = 3, nn.Linear(3, 2)", [("after", "a, model = (3, nn.Linear(3, 2))", "model")], [], id="made in a tuple"),
        pytest.param(
            "model = nn.Linear(3, 2)\ncriterion = nn.DataParallel(nn.MSELoss())",
            [("value", "model = nn.Linear(3, 2)", "model")],
            ["nn.DataParallel(nn.MSELoss())"],
            id="a loss that is wrapped",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nmodel.part = nn.DataParallel(model.part)",
            [("after", "model.part = nn.DataParallel(model.part)", "model")],
            ["nn.DataParallel(model.part)"],
            id="a part that is wrapped",
        ),
    ],
)
def test_placed(body: str, wraps: list[tuple[str, str, str]], removed: list[str]) -> None:
    assert _plan(_program(body)) == (wraps, removed, [])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param("model = nn.Linear(3, 2)\nmodel = nn.DataParallel()", "DataParallel is called without a module", id="without a module"),
        pytest.param(
            "net = nn.Linear(3, 2)\nmodel = net\nif n:\n    use(nn.DataParallel(net))",
            "this DataParallel wrap is made under a condition and not bound to a name; bind it to a variable first",
            id="not bound to a name",
        ),
    ],
)
def test_calls_that_cannot_be_placed(body: str, problem: str) -> None:
    assert problem in _plan(_program(body))[2]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(_program("models = [nn.Linear(3, 2)]", "models[0]"), "the model that models[0] means cannot be traced to one variable", id="in a list"),
        pytest.param(
            _program("def a():\n    global model\n    model = nn.Linear(3, 2)\ndef b():\n    global model\n    model = nn.ReLU()\na()\nb()"),
            "model is given its model in several functions",
            id="made in two functions",
        ),
        pytest.param(
            _program("net = nn.Linear(3, 2)\nboth = nn.DataParallel(net)\nmodel = both\nif n:\n    model = net"),
            "model may be the wrapped or the bare model here",
            id="the wrapper or the model",
        ),
        pytest.param(
            _TOP
            + "model = nn.Linear(3, 2)\nfor fold in range(2):\n    model = nn.Linear(3, 2)\n"
            + indent(_OPTIMIZER.format(model="model") + _LOOP.format(model="model"), "    "),
            "model is given another value where training runs",
            id="given again in a loop round training",
        ),
        pytest.param(
            _program("model = nn.Linear(3, 2)\nfast = torch.compile(model)").replace("loss.backward", "loss = loss + fast(x).mean()\n        loss.backward"),
            "model and fast are one model, which would be wrapped twice",
            id="under two names",
        ),
    ],
)
def test_models_that_cannot_be_placed(text: str, problem: str) -> None:
    assert problem in _plan(text)[2]


def test_a_second_name_for_the_wrapper_is_no_second_wrap() -> None:
    text = _program("model = nn.Linear(3, 2)\nother = model").replace("loss.backward", "loss = loss + other(x).mean()\n        loss.backward")
    assert _plan(text)[2] == []
