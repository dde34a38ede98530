"""DPM219: lengths and batch sizes of a rank's share."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, hits, whole

_OWN = "loader = DataLoader(train_set, batch_size=16, sampler=torch.utils.data.SubsetRandomSampler(range(32)))"
_VAL = "val_loader = DataLoader(val_set, batch_size=4, shuffle=True)\n"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "print(len(loader))"}, id="batches"),
        pytest.param({"end": "print(loader.sampler)"}, id="the sampler itself"),
        pytest.param({"setup": _VAL, "end": "print(len(val_loader.sampler), len(val_loader) * val_loader.batch_size)"}, id="another loader's"),
        pytest.param({"setup": _VAL, "end": "print(len(val_set) / val_loader.batch_size)"}, id="another loader's batches"),
        pytest.param({"step": STEP + "x.view(loader.batch_size, -1)"}, id="a shape"),
        pytest.param({"step": STEP + "print((x.sum() / loader.batch_size).item())"}, id="a count of the batch"),
        pytest.param({"end": "print(3 * loader.batch_size, len() * loader.batch_size)"}, id="a number of batches"),
        pytest.param({"step": STEP + "n = 1\nn += 2\nprint(n * loader.batch_size)"}, id="no number of steps"),
        pytest.param({"setup": "n = 0", "step": STEP + "n -= 1\nprint(n * loader.batch_size)"}, id="counted down"),
        pytest.param({"setup": "n = 0", "step": STEP + "n += 1\nprint(n % 10 * loader.batch_size)"}, id="a part of the steps"),
        pytest.param({"step": STEP + "for i in range(3):\n    print(x.view(i * loader.batch_size, -1))"}, id="a loop in the step"),
        pytest.param({"end": "n = 0\nn += 1\nprint(n * loader.batch_size)"}, id="counted outside of the training"),
        pytest.param({"end": "print(len(loader) * 3)"}, id="batches times something else"),
        pytest.param({"end": "n = len(train_set) + 1\nprint(n / loader.batch_size)"}, id="a variable that is given more"),
        pytest.param({"end": "print('len(loader.sampler)')  # len(loader.sampler)"}, id="in a string and a comment"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM219", **parts) == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("print(1 / len(loader.sampler))", "print(1 / len(loader.dataset))", id="length of the sampler"),
        pytest.param(
            "print(1 / (len(loader) * loader.batch_size))", "print(1 / (len(loader) * loader.batch_size * ddp.world_size()))", id="batches times size"
        ),
        pytest.param("n = loader.batch_size * len(loader)", "n = loader.batch_size * len(loader) * ddp.world_size()", id="the other way round"),
        pytest.param("n = len(train_set) // loader.batch_size", "n = len(train_set) // (loader.batch_size * ddp.world_size())", id="steps"),
        pytest.param(
            "n = 3 * len(loader.dataset) / loader.batch_size", "n = 3 * len(loader.dataset) / (loader.batch_size * ddp.world_size())", id="steps of all epochs"
        ),
        pytest.param("b = loader.batch_size\nn = len(train_set) / b", "n = len(train_set) / (b * ddp.world_size())", id="through a name of the batch size"),
        pytest.param("total = len(train_set)\nn = total / loader.batch_size", "n = total / (loader.batch_size * ddp.world_size())", id="through a name"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, new: str, module_level: bool) -> None:
    assert new in after(end=line, module_level=module_level)


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("print(steps * loader.batch_size)", "print(steps * loader.batch_size * ddp.world_size())", id="steps that are counted"),
        pytest.param("n = (2 * len(loader) + steps) * loader.batch_size / 1000", "n = (2 * len(loader) + steps) * loader.batch_size * ddp.world_size() / 1000", id="of all epochs"),
        pytest.param("n = loader.batch_size * (steps + 1)", "n = loader.batch_size * (steps + 1) * ddp.world_size()", id="one more"),
    ],
)
def test_steps_that_are_counted(line: str, new: str) -> None:
    assert new in after(setup="steps = 0", step=f"{STEP}steps += 1", end=line)


_PROGRESS = "def progress(i, n):\n    return f'{i * n.batch_size}/{len(n.dataset)}'"


def test_steps_that_a_function_is_given() -> None:
    parts = {"setup": "steps = 0", "defs": _PROGRESS, "step": f"{STEP}steps += 1\nprint(progress(steps, loader))"}
    assert "{i * n.batch_size * ddp.world_size()}" in whole(**parts)
    assert "{i * n.batch_size}" in whole(**parts, end="print(progress(3, loader))")


def test_a_sampler_of_its_own() -> None:
    assert "print(len(loader.sampler.whole))" in whole(loader=_OWN, end="print(len(loader.sampler))")


def test_a_function_for_both_loaders() -> None:
    parts = {"setup": _VAL, "defs": "def size(l):\n    return len(l.sampler)", "end": "print(size(loader), size(val_loader))"}
    assert "return len(l.dataset)" in whole(**parts)
    (one,) = hits("DPM219", **{**parts, "loader": _OWN})
    assert not one.edits and one.advice
