"""What only looks at the model while it trains has samples of its own, in their whole size."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, whole

_SETUP = "batch_size = 16"
_LOADER = "loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)"
_OTHER = "others = DataLoader(val_set, batch_size=batch_size)\nfixed, _ = next(iter(others))"


def _sizes(look: str, *, before: str = _OTHER, step: str = "look()", top: str = "") -> set[str]:
    """How the function ``look``, which the loop calls after each step, writes its sizes."""
    body = "\n".join(f"    {line}" for line in look.splitlines())
    before = f"{before}\ndef look():\n{body}" if "def look" not in before else before
    new = whole(top=top, setup=_SETUP, loader=_LOADER, before=before, step=STEP + step)
    return {line.strip() for line in new.splitlines() if "randn(" in line and "TensorDataset" not in line}


@pytest.mark.parametrize(
    "look",
    [
        pytest.param("noise = torch.randn(batch_size, 8)\nwith torch.no_grad():\n    print(model(fixed + noise))", id="drawn above the no_grad"),
        pytest.param("with torch.no_grad():\n    out = model(fixed)\nprint(out[:, :1] + torch.randn(batch_size, 1))", id="drawn below it"),
        pytest.param("kept.append(torch.randn(batch_size, 8))\nwith torch.no_grad():\n    print(model(fixed + kept[-1]))", id="put into a list"),
    ],
)
def test_its_sizes_are_whole(look: str) -> None:
    assert not any("local_batch" in line for line in _sizes(look, before="kept = []\n" + _OTHER))


_NOISE = "noise = torch.randn(batch_size, 8)\nwith torch.no_grad():\n    print(model({} + noise))"


@pytest.mark.parametrize(
    ("look", "before", "step"),
    [
        pytest.param(_NOISE.format("fixed"), "fixed, _ = next(iter(loader))", "look()", id="a batch of the loader that trains"),
        pytest.param(_NOISE.format("held[0]"), "held = [None]", "held[0] = x\nlook()", id="the batch, put into a list"),
        pytest.param(_NOISE.format("held[-1]"), "held = []", "held.append(x)\nlook()", id="the batch, at the end of a list"),
        pytest.param(_NOISE.format("fixed").replace("with torch.no_grad", "if True"), _OTHER, "look()", id="with gradients"),
    ],
)
def test_what_has_samples_of_the_step_has_their_size(look: str, before: str, step: str) -> None:
    assert any("local_batch" in line for line in _sizes(look, before=before, step=step))


def test_what_it_hands_on_is_for_the_looking() -> None:
    """The function that compares is called by the step as well; what the step gives it is another thing."""
    defs = "def apart(a, b):\n    return F.mse_loss(a, b)"
    look = "with torch.no_grad():\n    out = model(fixed)\nprint(apart(out, randn))"
    text = whole(
        defs=defs,
        setup=_SETUP,
        loader=_LOADER,
        before=_OTHER + "\nrandn = torch.ones(batch_size, 2)\ndef look():\n" + "\n".join(f"    {line}" for line in look.splitlines()),
        step=STEP.replace("F.cross_entropy(model(x), y)", "apart(model(x), y)") + "look()",
    )
    assert "randn = torch.ones(batch_size, 2)" in text
