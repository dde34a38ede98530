"""Where a value goes that has a row for each sample."""

from __future__ import annotations

import pytest

from dpmigrate.facts.destinations import Destinations
from tests.facts.probe import probed
from tests.rules.program import STEP, program

_EVAL = "val_loader = DataLoader(val_set, batch_size=16)\nwith torch.no_grad():\n    for a, b in val_loader:\n        {}"


def _meets(step: str, evaluated: str = "print(model(a))") -> set[str]:
    found, node = probed(program(before="noise = probe(torch.zeros(16, 8))", step=step + STEP, end=_EVAL.format(evaluated)))
    return Destinations(found.roles).meets(found.names.parent[node])


@pytest.mark.parametrize("step", ["", "print(noise)\n", "save_image(noise, 'a.png')\n", "n = noise.size(0)\n", "noise = x\nz = noise + x\n"])
def test_past_both(step: str) -> None:
    assert _meets(step) == set()


@pytest.mark.parametrize("step", ["x = x + noise\n", "model(noise).sum().backward()\n", "x = torch.cat([x, noise])\n", "fake = noise * 2\nx = x + fake\n"])
def test_into_a_training_step(step: str) -> None:
    assert _meets(step) == {"train"}


def test_into_an_evaluation_and_both() -> None:
    assert _meets("", "print(model(a + noise))") == {"eval"}
    assert _meets("x = x + noise\n", "print(model(a + noise))") == {"train", "eval"}
