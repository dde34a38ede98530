"""DPM901: training that no loader feeds."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, hits, refused


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="a loop over a loader"),
        pytest.param({"batches": "for i, (x, y) in enumerate(loader):"}, id="enumerate"),
        pytest.param({"batches": "for x, y in list(loader):"}, id="list"),
        pytest.param({"end": "print('for i in range(3): loss.backward()')  # loss.backward()"}, id="in a string and a comment"),
        pytest.param({"step": STEP.replace("loss.backward()", "back(loss)"), "defs": "def back(loss):\n    loss.backward()"}, id="backward in a function"),
        pytest.param(
            {"step": "optimizer.zero_grad()\nfor a in x.chunk(2):\n    F.mse_loss(model(a), a[:, :2]).backward()\noptimizer.step()"}, id="chunks of one step"
        ),
        pytest.param({"step": "for k in range(2):\n    " + STEP.replace("\n", "\n    ")}, id="several steps on one batch"),
        pytest.param({"step": STEP + "for a in x:\n    print(a)"}, id="a loop over a batch that does not train"),
        pytest.param({"epochs": "while True:", "epoch_end": "break"}, id="inside a loop that reads no loader"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM901", **parts) == []


_BATCH = "x, y = torch.ones(4, 8), torch.ones(4).long()\n"


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        pytest.param({"loader": "", "batches": "for i in range(3):", "step": _BATCH + STEP}, "no DataLoader is built in this file", id="slices"),
        pytest.param({"batches": "for i in range(3):", "step": _BATCH + STEP}, "the loop goes over range(3), which is not", id="a range beside a loader"),
        pytest.param({"batches": "for i in range(3):", "step": "x, y = next(batches)\n" + STEP}, "batches are taken with next()", id="next"),
        pytest.param({"batches": "for i in range(3):", "step": "x, y = batches.next()\n" + STEP}, "batches are taken with next()", id="a method next"),
        pytest.param({"batches": "while epoch:", "step": _BATCH + STEP}, "the loop is a while loop that makes its own batches", id="while"),
        pytest.param(
            {"batches": "if True:", "epochs": "if True:", "step": _BATCH + STEP}, "it stands in a function that no loop of this file calls", id="no loop"
        ),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused_with_what_was_found_instead(parts: dict[str, str], why: str, module_level: bool) -> None:
    (one,) = hits("DPM901", module_level=module_level, **parts)
    assert why in one.message
    assert refused("DPM901", module_level=module_level, **parts) == ["loss.backward()"]


def test_a_function_and_a_method_that_nobody_calls() -> None:
    defs = "class T:\n    def step(self, loss):\n        loss.backward()\ndef step(loss):\n    loss.backward()"
    assert refused("DPM901", defs=defs) == ["loss.backward()"]


def test_a_loop_inside_another_loop_over_a_loader() -> None:
    step = "for a, b in loader:\n    " + STEP.strip().replace("\n", "\n    ")
    parts = {"step": step, "setup": "other = DataLoader(val_set, batch_size=4)", "batches": "for x, y in other:"}
    assert refused("DPM901", **parts) == ["for a, b in loader:"]


@pytest.mark.parametrize(
    "batches",
    [pytest.param("for batch in loader:", id="plain"), pytest.param("for i, batch in enumerate(loader):", id="enumerate")],
)
def test_steps_over_parts_of_a_batch_are_refused(batches: str) -> None:
    step = "for x, y in batch:\n    " + STEP.replace("\n", "\n    ")
    assert refused("DPM901", batches=batches, step=step) == ["for x, y in batch:"]
