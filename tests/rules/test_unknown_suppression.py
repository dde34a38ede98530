"""DPM001, and what a comment does to the other rules."""

from __future__ import annotations

import pytest

from dpmigrate import engine
from dpmigrate.model import Status
from dpmigrate.settings import Settings
from tests.rules.program import STEP, hits, migrated, of, program, refused


@pytest.mark.parametrize("comment", ["", "  # dpmigrate: ignore", "  # dpmigrate: ignore[DPM401]", "  # dpmigrate: ignore[DPM4, dpm205]"])
def test_nothing_to_say(comment: str) -> None:
    assert hits("DPM001", end=f"torch.save(3, 'a.pt'){comment}") == []


def test_a_code_that_is_none() -> None:
    (hit,) = of("DPM001", "import torch\n" + program(end="torch.save(3, 'a.pt')  # dpmigrate: ignore[DPM4O1, DPM401]"))
    assert "no rule is called DPM4O1" in hit.message


def test_a_finding_is_silent_on_its_line_alone() -> None:
    two = "torch.save(model.state_dict(), 'a.pt')  # dpmigrate: ignore[DPM505]\nos.makedirs('x'){}"
    assert len(hits("DPM505", imports="import os", end=two.format(""))) == 1
    assert hits("DPM505", imports="import os", end=two.format("  # dpmigrate: ignore[DPM505]")) == []


def test_what_every_migration_needs_is_done_all_the_same() -> None:
    (hit,) = hits("DPM201", loader="loader = DataLoader(train_set, batch_size=16, shuffle=True)  # dpmigrate: ignore")
    assert hit.edits


def test_a_doubt_can_be_waived() -> None:
    """The user may know that a setting is the same on every rank."""
    step = STEP.replace("optimizer.step()", "if lucky(x):\n    optimizer.step(){}")
    assert refused("DPM322", step=step.format("")) == ["optimizer.step()"]
    assert hits("DPM322", step=step.format("  # dpmigrate: ignore[DPM322]")) == []


def test_a_refusal_cannot() -> None:
    build = "optimizer = build()"
    assert len(hits("DPM904", optimizer=build)) == len(hits("DPM904", optimizer=f"{build}  # dpmigrate: ignore")) > 0
    assert hits("DPM904", Settings(ignore=("DPM9",)), optimizer=build)


def test_a_file_is_left_alone() -> None:
    text = "# dpmigrate: ignore-file\n" + program()
    (checked,) = engine.check([("train.py", text.encode())], Settings())
    assert checked.status is Status.CLEAN and not checked.findings
    (applied,) = engine.apply([("train.py", text.encode())], Settings(), engine.Writing(write=False))
    assert applied.status is Status.UNCHANGED and "ignore-file" in applied.reason
    assert "ddp.setup()" in migrated(program())
