"""The demo agrees with itself from end to end, and says so when it does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from dpmigrate import demo  # noqa: E402 - after the test for torch


def test_the_demo_runs_and_agrees() -> None:
    lines: list[str] = []
    assert demo.run_demo(lines.append) == 0, "\n".join(lines)
    text = "\n".join(lines)
    assert "train.py:93:17: DPM101" in text
    assert "+    ddp.setup()" in text
    for row in ("final test loss", "test accuracy", "checkpoint keys"):
        assert next(line for line in text.splitlines() if line.startswith(row)).endswith("equal")
    assert lines[-1].strip() == "The two agree."


def run(folder: Path, name: str, loss: str = "0.5", accuracy: str = "0.9", **model: float) -> demo.Run:
    path = folder / name
    torch.save({"model": {k: torch.tensor([v]) for k, v in model.items()}}, path)
    return demo.Run(loss, accuracy, 1.0, path)


@pytest.mark.parametrize(
    ("changed", "row"),
    [
        ({"loss": "0.6"}, "final test loss"),
        ({"accuracy": "0.8"}, "test accuracy"),
        ({"weight": 1.1}, "parameter distance"),
        ({"weight": float("nan")}, "parameter distance"),
        ({"other": 1.0}, "checkpoint keys"),
    ],
)
def test_what_differs_is_named_and_the_exit_code_is_1(changed: dict[str, str | float], row: str, tmp_path: Path) -> None:
    original = run(tmp_path, "a.pt", weight=1.0)
    migrated = run(tmp_path, "b.pt", **({"weight": 1.0} | changed))  # type: ignore[arg-type]
    lines: list[str] = []
    assert demo._verdict(original, migrated, lines.append) == 1
    assert next(line for line in lines if line.startswith(row)).endswith("DIFFERS")
    assert "DISAGREE" in lines[-1]


def test_equal_ends_are_0_and_a_missing_checkpoint_is_2(tmp_path: Path) -> None:
    original = run(tmp_path, "a.pt", weight=1.0)
    lines: list[str] = []
    assert demo._verdict(original, run(tmp_path, "b.pt", weight=1.0), lines.append) == 0
    assert demo._verdict(original, demo.Run("0.5", "0.9", 1.0, tmp_path / "missing.pt"), lines.append) == 2
    assert "missing.pt" in lines[-1]


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    lines: list[str] = []
    assert demo.run_demo(lines.append) == 2
    assert "dpmigrate[runtime]" in lines[0]


def test_a_script_that_fails_is_2_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text(demo.SCRIPT.read_text().replace("    main()\n", '    raise SystemExit("no data here")\n'))
    monkeypatch.setattr(demo, "SCRIPT", broken)
    lines: list[str] = []
    assert demo.run_demo(lines.append) == 2
    assert any("no data here" in line for line in lines)


def test_a_run_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TIMEOUT", 0.2)
    lines: list[str] = []
    assert demo._train([sys.executable, "-c", "import time; time.sleep(30)"], tmp_path, lines.append) is None
    assert "did not end" in lines[0]


def test_the_demo_itself_does_not_import_torch() -> None:
    code = "import sys, dpmigrate.demo; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=demo._environment()).returncode == 0
