"""Optimizers of libraries whose code is not seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings
from tests.execution.paper import executed

_HEAD = """
import torch
from torch import nn
from strange_optimizers import Lamb, Ema, by_hand
model = nn.Linear(4, 2)
"""
_PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from strange_optimizers import Lamb

data = TensorDataset(torch.randn(64, 4), torch.randn(64, 2))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Linear(4, 2)
optimizer = {made}
scaler = torch.amp.GradScaler()
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        {step}
"""
_SCALED = "scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()"


def applied(folder: Path, text: str) -> Outcome:
    path = folder / "train.py"
    path.write_text(text)
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    return outcome


@pytest.mark.parametrize(
    "made",
    [
        pytest.param("Lamb(model.parameters(), lr=0.1)", id="parameters"),
        pytest.param("Lamb(params=list(model.parameters()))", id="a keyword"),
        pytest.param("Lamb([{'params': model.weight, 'lr': 0.1}, {'params': [model.bias]}])", id="groups"),
    ],
)
def test_what_is_made_of_parameters_steps_them(made: str) -> None:
    ex = executed(_HEAD + f"opt = {made}\nopt.zero_grad()\nmodel(torch.ones(3, 4)).mean().backward()\nopt.step()\n")
    (step,) = ex.trace.of("step")
    assert step.values["parameters"] and step.values["gradients"]
    assert len(list(ex.trace.of("zero grad"))) == 1


@pytest.mark.parametrize("text", ["opt = Lamb(0.1)", "opt = Lamb()", "opt = by_hand(lr=0.1)"])
def test_what_is_made_of_something_else_is_no_optimizer(text: str) -> None:
    ex = executed(_HEAD + f"{text}\nopt.zero_grad()\nopt.param_groups[0]['lr'] = 0.1\nopt.step()\n")
    assert not list(ex.trace.of("step", "zero grad", "optimizer"))


def test_what_is_made_of_parameters_and_never_stepped() -> None:
    """An average of the weights."""
    ex = executed(_HEAD + "ema = Ema(model.parameters(), decay=0.9)\nema.update()\n")
    assert not list(ex.trace.of("step"))


@pytest.mark.parametrize("made", ["Lamb(model.parameters(), lr=0.1)", "Lamb([{'params': model.parameters()}])"])
@pytest.mark.parametrize("step", [_SCALED, "loss.backward()\n        optimizer.step()"], ids=["scaled", "plain"])
def test_a_program_with_one_is_migrated_and_that_is_told(tmp_path: Path, made: str, step: str) -> None:
    found = applied(tmp_path, _PROGRAM.format(made=made, step=step))
    assert found.status is Status.CHANGED, found
    assert any(n.startswith("The code of strange_optimizers.Lamb is not seen: it is taken for an optimizer") for n in found.notes)


def test_its_settings_are_the_same_on_all_ranks(tmp_path: Path) -> None:
    step = "loss.backward()\n        for group in optimizer.param_groups:\n            group['lr'] = 0.1 * float(x.max())\n        optimizer.step()"
    assert applied(tmp_path, _PROGRAM.format(made="Lamb(model.parameters(), lr=0.1)", step=step)).status is Status.REFUSED


def test_an_optimizer_that_a_scaler_alone_steps(tmp_path: Path) -> None:
    """Nothing is told of a library whose optimizers are known, by whatever module."""
    text = _PROGRAM.format(made="Lamb(model.parameters(), lr=0.1)", step=_SCALED).replace("from strange_optimizers import Lamb", "from transformers.optimization import AdamW as Lamb")
    found = applied(tmp_path, text.replace("optimizer.zero_grad()", "model.zero_grad()"))
    assert found.status is Status.CHANGED and not any("is not seen" in n for n in found.notes)
