"""What else a turn of an evaluation leaves behind."""

from __future__ import annotations

import pytest

from dpmigrate.facts.reasons import Why
from dpmigrate.facts.traces import trace
from tests.pipeline import script
from tests.rules.program import program


def _why(body: str, head: str = "for a, b in val_loader:", defs: str = "") -> Why | None:
    inside = body.replace("\n", "\n        ")
    end = f"val_loader = DataLoader(val_set, batch_size=16)\nwith torch.no_grad():\n    {head}\n        {inside}"
    found = script(program(imports="import itertools", defs=defs, end=end))
    (loop,) = found.roles.eval_loops
    reason = trace(found.roles, loop, ())
    return reason.why if reason is not None else None


@pytest.mark.parametrize(
    ("body", "head"),
    [
        pytest.param("z = model(a)", "for a, b in val_loader:", id="a pass"),
        pytest.param("z = model(a)\nn = len(a) + int(b.sum())", "for a, b in val_loader:", id="numbers"),
        pytest.param("z = model(a)", "for i, (a, b) in enumerate(val_loader):", id="a number that nobody reads"),
        pytest.param("model.eval()\nz = model(a.float())", "for a, b in val_loader:", id="settings"),
    ],
)
def test_nothing_is_left(body: str, head: str) -> None:
    assert _why(body, head) is None


@pytest.mark.parametrize(
    ("body", "head", "why"),
    [
        pytest.param("z = model(a)\nbreak", "for a, b in val_loader:", Why.LEAVES, id="left"),
        pytest.param("z = model(a)\ntry:\n    pass\nfinally:\n    pass", "for a, b in val_loader:", Why.HOLDS, id="a try"),
        pytest.param("z = model(a) * i", "for i, (a, b) in enumerate(val_loader):", Why.BATCH_NUMBER, id="the number of the batch"),
        pytest.param("model.last = model(a)", "for a, b in val_loader:", Why.CHANGED, id="an attribute"),
        pytest.param("z = model(a)", "for a, b in itertools.islice(val_loader, 3):", Why.OTHER_BATCHES, id="other batches"),
    ],
)
def test_something_is_left(body: str, head: str, why: Why) -> None:
    assert _why(body, head) is why
