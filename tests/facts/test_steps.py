"""The training step in detail."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.steps import forward_of, steps, unplaced
from tests.pipeline import script

_PROGRAM = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, shuffle=True)
def run(x): return model(x)
for epoch in range(3):
    for x, y in loader:
{body}
"""


def _forward(body: str, which: int = -1) -> tuple[str, ...] | None:
    found = script(_PROGRAM.format(body="\n".join("        " + line for line in body.splitlines())))
    forward = forward_of(found.roles, sorted(found.roles.backwards, key=lambda b: b.lineno)[which])
    return None if forward is None else tuple(ast.unparse(n).splitlines()[0] for n in (*(forward.statements or ()), forward.inline) if n is not None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("loss = model(x).sum()\nloss.backward()", ("loss = model(x).sum()", "loss = model(x).sum()"), id="one statement"),
        pytest.param("z = x\nout = model(x)\nloss = out.sum()\nprint(loss)\nloss.backward()", ("out = model(x)", "loss = out.sum()"), id="up to the loss"),
        pytest.param("out = run(x)\nloss = out.sum()\nloss.backward()", ("out = run(x)", "loss = out.sum()"), id="through a function"),
        pytest.param("loss = model(x).sum()\nif epoch:\n    loss.backward()", ("loss = model(x).sum()", "loss = model(x).sum()"), id="backward in an if"),
        pytest.param(
            "with a:\n    loss = model(x).sum()\n    if b:\n        if c:\n            loss.backward()",
            ("loss = model(x).sum()", "loss = model(x).sum()"),
            id="in an if in an if in a with",
        ),
        pytest.param("loss = model(x).sum()\nz = 3\nloss.backward()", ("loss = model(x).sum()", "loss = model(x).sum()"), id="another name after the loss"),
        pytest.param(
            "parts = []\nparts.append(model(x))\nsum(parts).backward()", ("parts.append(model(x))", "parts.append(model(x))"), id="a list that is begun before"
        ),
        pytest.param("model(x).sum().backward()", ("model(x).sum()",), id="all in one"),
        pytest.param(
            "out = model(x)\nmodel(x).sum().backward()", ("out = model(x)", "out = model(x)", "model(x).sum()"), id="all in one after another forward"
        ),
        pytest.param("out = model(x)\ncriterion(out).backward()", ("out = model(x)", "out = model(x)", "criterion(out)"), id="the loss in the backward"),
        pytest.param("for z in x:\n    model(z).sum().backward()", ("model(z).sum()",), id="all in one in a loop"),
        pytest.param("a = model(x)\nb = a.sum()\n(a.mean() + 2 * b).backward()", ("a = model(x)", "b = a.sum()"), id="losses that are added"),
        pytest.param("a = model(x)\n(a - x).mean().backward()", ("a = model(x)", "a = model(x)", "(a - x).mean()"), id="a loss by hand"),
        pytest.param("a = model(x)\ntorch.stack([a.sum()]).mean().backward()", ("a = model(x)", "a = model(x)"), id="losses that are stacked"),
        pytest.param("x.backward()", None, id="no model is called before"),
        pytest.param("loss = model(x).sum()\nfor i in z:\n    loss.backward()", None, id="backward in a loop"),
        pytest.param("model(x).sum().backward()\nif a:\n    x.backward()", None, id="only a forward that another backward has used"),
        pytest.param(
            "loss = model(x).sum()\nif a:\n    loss.backward(retain_graph=True)\n    loss.backward()", None, id="the same forward for the second time"
        ),
        pytest.param(
            "model(x).sum().backward()\nmodel(x).sum().backward()\nc = model(x).sum()\nc.backward()",
            ("c = model(x).sum()", "c = model(x).sum()"),
            id="the last of three",
        ),
        pytest.param(
            "a = model(x).sum()\na.backward()\nb = model(x).sum()\nb.backward()", ("b = model(x).sum()", "b = model(x).sum()"), id="the second of two"
        ),
    ],
)
def test_forward(body: str, expected: tuple[str, ...] | None) -> None:
    assert _forward(body) == expected


def test_steps_and_clipping() -> None:
    body = "\n".join(
        "        " + line
        for line in [
            "optimizer.zero_grad()",
            "model(x).sum().backward()",
            "nn.utils.clip_grad_norm_(model.parameters(), 1)",
            "optimizer.step()",
            "second.step()",
            "other.step()",
            "optimizer.step(closure)",
            "z = optimizer.step()",
        ]
    )
    found = script(_PROGRAM.format(body=body))
    told = [(ast.unparse(s.receiver), len(s.optimizers), [ast.unparse(c) for c in s.clips]) for s in steps(found.roles)]
    clip = "nn.utils.clip_grad_norm_(model.parameters(), 1)"
    assert told == [("optimizer", 1, [clip]), ("second", 1, [clip])]
    assert [ast.unparse(c) for c in unplaced(found.roles)] == ["optimizer.step(closure)", "optimizer.step()"]
