"""The wheel holds both packages and works outside the tree; the demo proves a migration end to end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline import FIXTURES

ROOT = FIXTURES.parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder), str(ROOT)], check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    target = folder / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(target), str(wheel)], check=True, capture_output=True)
    return target


def test_the_wheel_holds_both_packages(installed: Path) -> None:
    assert {p.name for p in installed.iterdir() if p.is_dir() and not p.name.endswith("dist-info")} - {"bin"} == {"dpmigrate", "dpmigrate_runtime"}


def test_the_wheel_works_outside_the_tree(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes((FIXTURES / "single_trainer_class" / "before.py").read_bytes())
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, "-m", "dpmigrate", "apply", "--vendor", "train.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "train.py").read_bytes() == (FIXTURES / "single_trainer_class" / "after.py").read_bytes()
    assert (tmp_path / "dpmigrate_runtime" / "__init__.py").exists()


def test_the_demo_agrees(installed: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, "-m", "dpmigrate", "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The two agree." in done.stdout
