"""DPM905: one loop for training and evaluation."""

from __future__ import annotations

import pytest

from tests.rules.program import found, refused

_STEP = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nif {}:\n    loss.backward()\n    optimizer.step()"
_LOADERS = "loaders = {'train': DataLoader(train_set, batch_size=4), 'val': DataLoader(val_set, batch_size=4)}"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="a loop that always trains"),
        pytest.param({"step": _STEP.format("epoch > 0")}, id="a test on a counter"),
        pytest.param({"loader": _LOADERS, "epochs": "for phase in ('train', 'val'):", "batches": "for x, y in loaders[phase]:", "step": _STEP.format("phase == 'train'")}, id="literals"),
        pytest.param({"end": "print('if phase: loss.backward()')  # if training"}, id="in a string and a comment"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM905", **parts) == []


def _function(test: str) -> str:
    body = "".join(f"        {line}\n" for line in _STEP.format(test).splitlines())
    return f"def run(model, loader, optimizer=None, training=False):\n    for x, y in loader:\n{body}"


def test_known_from_the_calls() -> None:
    parts = {
        "defs": _function("optimizer is not None"),
        "batches": "if True:",
        "step": "run(model, loader, optimizer)",
        "end": "run(model, DataLoader(val_set))",
    }
    assert found("DPM905", **parts) == []


def test_a_side_that_trains_and_that_no_call_comes_to() -> None:
    parts = {"defs": _function("optimizer is not None"), "end": "run(model, DataLoader(val_set))"}
    assert found("DPM905", **parts) == []
    assert refused("DPM905", **{**parts, "end": "run(model, DataLoader(val_set), optimizer if os.environ.get('MORE') else None)"})


@pytest.mark.parametrize(
    "test",
    [pytest.param("state.training", id="attribute"), pytest.param("mode == 'train'", id="global"), pytest.param("is_train()", id="call")],
)
def test_refused(test: str) -> None:
    defs = "import types\nstate = types.SimpleNamespace(training=True)\nmode = str(1)\ndef is_train():\n    return True\n" + _function(test)
    parts = {"defs": defs, "batches": "if True:", "step": "run(model, loader, optimizer)", "end": "run(model, DataLoader(val_set))"}
    assert refused("DPM905", **parts) == ["for x, y in loader:"]


def test_module_level() -> None:
    assert refused("DPM905", module_level=True, setup="training = bool(os.environ)", step=_STEP.format("training")) == ["for x, y in loader:"]


def test_a_loader_without_a_variable_of_its_own() -> None:
    loader = "made = {k: DataLoader(s, batch_size=4) for k, s in (('a', train_set), ('b', val_set))}\nloader = made['a']"
    assert refused("DPM905", loader=loader) == ["DataLoader(s, batch_size=4)"]
