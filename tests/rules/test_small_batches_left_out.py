"""DPM334: a test of the size of a rank's part of a batch that leaves small batches out."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, hits


def _left_out(test: str) -> dict[str, str]:
    return {"step": f"if {test}:\n    continue\n{STEP}"}


@pytest.mark.parametrize(
    ("test", "samples"),
    [
        pytest.param("x.shape[0] == 1", "as many", id="one"),
        pytest.param("len(x) < 2", "as many", id="fewer than two"),
        pytest.param("1 >= x.size(0)", "as many", id="the number first"),
        pytest.param("epoch > 1 and x.size(0) <= 1", "as many", id="with a test on something else"),
        pytest.param("x.size(0) <= 2", "twice as many", id="two"),
    ],
)
def test_small_batches(test: str, samples: str) -> None:
    (one,) = hits("DPM334", **_left_out(test))
    assert f"a last batch of up to {samples} samples as there are ranks is left out" in one.message
    assert not one.edits


def test_a_step_under_the_test() -> None:
    inner = "".join(f"    {line}\n" for line in STEP.splitlines())
    (one,) = hits("DPM334", step=f"if len(x) > 1:\n{inner}")
    assert one.message.startswith("len(x) > 1 asks for the size of a rank's part")


_FULL = "loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_left_out("len(x) == 0"), id="no sample"),
        pytest.param(_left_out("len(x) < 1"), id="fewer than one"),
        pytest.param(_left_out("x.shape[1] == 1"), id="another axis"),
        pytest.param(_left_out("epoch == 1"), id="another number"),
        pytest.param({**_left_out("len(x) == 1"), "loader": _FULL}, id="no batch is small"),
        pytest.param({"step": f"if len(x) == 1:\n    print('one')\n{STEP}"}, id="nothing is left out"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM334", **parts) == []
