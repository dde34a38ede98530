"""The demo proves its own migration, and says so when it cannot."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from dpmigrate import demo


def _demo() -> tuple[int, str]:
    lines: list[str] = []
    return demo.run_demo(lines.append), "\n".join(lines)


def test_the_demo_proves_its_migration() -> None:
    code, text = _demo()
    assert code == 0, text
    assert "train.py:93:17: DPM101" in text
    assert "+    ddp.setup()" in text
    assert "Proved: the migrated program trains like the original." in text
    assert text.index("Proved") < text.index("$ dpmigrate apply train.py\n")


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, text = _demo()
    assert code == 2 and "dpmigrate[runtime]" in text


def test_a_script_that_fails_is_2_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text(demo.SCRIPT.read_text().replace("    main()\n", '    if not __import__("os").environ.get("WITH_DATA"):\n        raise ValueError("no data here")\n    main()\n'))
    monkeypatch.setattr(demo, "SCRIPT", broken)
    code, text = _demo()
    assert code == 2 and "no data here" in text and "$ dpmigrate apply train.py\n" not in text


def test_the_demo_itself_does_not_import_torch() -> None:
    code = "import sys, dpmigrate.demo; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=demo._environment()).returncode == 0
