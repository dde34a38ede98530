"""DPM602: totals of an epoch cover all ranks."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import STEP, after, found, hits


def _parts(add: str, start: str = "total = 0.0", end: str = "print(total)") -> dict[str, str]:
    return {"epoch_start": start, "step": STEP + add, "epoch_end": end}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="nothing is added up"),
        pytest.param(_parts("total += loss.item()", end="print('total')  # total"), id="not read afterwards"),
        pytest.param(_parts("print(loss.item())"), id="printed in the loop"),
        pytest.param(_parts("total += 1"), id="a number of steps"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert not any(f.edits for f in hits("DPM602", **parts))


def test_only_the_unknown_is_noted() -> None:
    assert found("DPM602") == []


@pytest.mark.parametrize(
    ("add", "start", "line"),
    [
        pytest.param("total += loss.item()", "total = 0.0", "total = ddp.mean_all(total)", id="losses"),
        pytest.param("total += loss.item() * x.size(0)", "total = 0.0", "total = ddp.sum_all(total)", id="sums of losses"),
        pytest.param("total += (model(x).argmax(1) == y).sum().item()", "total = 0", "total = ddp.sum_all(total)", id="a count"),
        pytest.param("total = total + len(x)", "total = 0", "total = ddp.sum_all(total)", id="samples, written out"),
        pytest.param("total += loss.detach()", "total = torch.zeros(1)", "total = ddp.mean_all(total)", id="a tensor"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(add: str, start: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {**_parts(add, start), "module_level": module_level}
    assert found("DPM602", **parts) == ["for x, y in loader:"]
    assert after(**parts) == [line]


def test_both_kinds() -> None:
    parts = _parts("total += loss.item()\ncount += x.size(0)", "total = 0.0\ncount = 0", "print(total, count)")
    assert after(**parts) == ["count = ddp.sum_all(count)", "total = ddp.mean_all(total)"]


def test_a_sum_of_losses_of_a_program_that_sums() -> None:
    parts = _parts("total += loss.item()")
    parts["step"] = parts["step"].replace("y)", "y, reduction='sum')")
    assert "total = ddp.sum_all(total)" in after(**parts)


def test_a_sum_that_goes_on_over_the_epochs_is_noted() -> None:
    """Summed after every epoch, it would count what all ranks had before once for each rank."""
    parts = {"before": "seen = 0", "step": STEP + "seen += x.size(0)", "epoch_end": "print(seen)"}
    (one,) = hits("DPM602", **parts)
    assert not one.edits and "seen, read after the loop" in one.message


def test_a_mean_that_goes_on_is_right() -> None:
    parts = {"before": "total = 0.0", "step": STEP + "total += loss.item()", "epoch_end": "print(total)"}
    assert after(**parts) == ["total = ddp.mean_all(total)"]


@pytest.mark.parametrize(
    ("kept", "line"),
    [
        pytest.param("kept.append(loss.item())", "kept = ddp.mean_all(kept)", id="losses"),
        pytest.param("kept.append(float(loss))", "kept = ddp.mean_all(kept)", id="losses as float"),
        pytest.param("kept.append(loss.detach())", "kept = ddp.mean_all(kept)", id="losses as tensors"),
        pytest.param("kept.append(x.size(0) * loss.item())", "kept = ddp.sum_all(kept)", id="losses of all samples"),
        pytest.param("kept.append((out.argmax(1) == y).sum().item())", "kept = ddp.sum_all(kept)", id="counts"),
    ],
)
def test_lists_of_numbers_are_reduced_by_element(kept: str, line: str) -> None:
    assert line in after(**_parts(kept, "kept = []", "print(kept)"))


def test_a_list_that_goes_on_over_the_epochs() -> None:
    """The mean of means is itself, the sum of sums is not."""
    parts = {"before": "kept = []", "step": STEP + "kept.append(loss.item())", "epoch_end": "print(kept)"}
    assert after(**parts) == ["kept = ddp.mean_all(kept)"]
    (one,) = hits("DPM602", **{**parts, "step": STEP + "kept.append(x.size(0))"})
    assert not one.edits and "the list kept" in one.message


@pytest.mark.parametrize("kept", ["kept.append(out.argmax(1))", "kept.extend([y.max()])", "kept.append((loss.item(), 1))"])
def test_other_lists_are_left_to_the_user(kept: str) -> None:
    (one,) = hits("DPM602", **_parts(kept, "kept = []", "print(kept)"))
    assert not one.edits and "the list kept" in one.message and one.severity is Severity.WARNING


def test_a_list_of_constants_is_the_same_on_every_rank() -> None:
    assert hits("DPM602", **_parts("kept.append(1)", "kept = []", "print(kept)")) == []


def test_unknown_sums_are_noted() -> None:
    (one,) = hits("DPM602", **_parts("total += f(x)", "total = 0\nf = print"))
    assert not one.edits and "what total adds up is not known" in one.message


def test_a_loop_that_also_evaluates_averages_over_its_loader() -> None:
    defs = "def run(model, loader, optimizer=None):\n    total = 0.0\n    for x, y in loader:\n        loss = F.cross_entropy(model(x), y)\n        if optimizer is not None:\n"
    defs += "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n        total += loss.item()\n    return total"
    parts = {"defs": defs, "batches": "if True:", "step": "run(model, loader, optimizer)", "end": "run(model, DataLoader(val_set, batch_size=4))"}
    assert "total = ddp.mean_all(total, over=loader)" in after(**parts)


def test_a_method() -> None:
    body = "".join(f"            {s}\n" for s in STEP.splitlines())
    defs = f"class T:\n    def turn(self, model, loader, optimizer):\n        total = 0.0\n        for x, y in loader:\n{body}            total += loss.item()\n        return total"
    assert "total = ddp.mean_all(total)" in after(defs=defs, before="t = T()", batches="if True:", step="t.turn(model, loader, optimizer)")
