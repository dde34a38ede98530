"""The wheel holds both packages and works outside the tree, where check loads no more than it needs; the installed demo proves a migration."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpmigrate import __version__
from tests.pipeline import FIXTURES

ROOT = FIXTURES.parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder), str(ROOT)], check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    target = folder / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(target), str(wheel)], check=True, capture_output=True
    )
    return target


def python(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python outside the tree, with the installed wheel first."""
    return subprocess.run([sys.executable, *words], cwd=folder, env=os.environ | {"PYTHONPATH": str(installed)}, capture_output=True, text=True)


def test_the_wheel_holds_both_packages(installed: Path) -> None:
    assert {p.name for p in installed.iterdir() if p.is_dir() and not p.name.endswith("dist-info")} - {"bin"} == {"dpmigrate", "dpmigrate_runtime"}


def test_the_wheel_works_outside_the_tree(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes((FIXTURES / "single_trainer_class" / "before.py").read_bytes())
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, "-m", "dpmigrate", "apply", "--vendor", "train.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "train.py").read_bytes() == (FIXTURES / "single_trainer_class" / "after.py").read_bytes()
    assert (tmp_path / "dpmigrate_runtime" / "__init__.py").exists()


def test_version_and_metadata(installed: Path, tmp_path: Path) -> None:
    done = python(installed, tmp_path, "-m", "dpmigrate", "--version")
    assert (done.returncode, done.stdout) == (0, f"dpmigrate, version {__version__}\n"), done.stderr
    [information] = installed.glob("dpmigrate-*.dist-info")
    metadata = email.message_from_string((information / "METADATA").read_text(encoding="utf-8"))
    assert metadata["Version"] == __version__
    base = {re.split(r"[^\w.-]", r)[0] for r in metadata.get_all("Requires-Dist", []) if "extra ==" not in r}
    assert base == {"libcst", "click", "rich", "pathspec"}
    assert "dpmigrate = dpmigrate.cli:main" in (information / "entry_points.txt").read_text(encoding="utf-8")
    assert list(information.glob("licenses/LICENSE"))


#: check in a process of its own; the heavy modules that are loaded at its end go to stderr
LOADED = """
import sys
from dpmigrate.cli import main
sys.argv = ["dpmigrate", "check", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"torch", "numpy", "libcst", "rich", "dpmigrate_runtime"}
    print(*sorted(heavy & {name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize("option", ["--output-format=text", "--output-format=json"])
def test_check_loads_neither_torch_nor_libcst_nor_rich(installed: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / "train.py").write_bytes((FIXTURES / "single_trainer_class" / "before.py").read_bytes())
    (tmp_path / "other.py").write_bytes(b"print(1)\n")
    done = python(installed, tmp_path, "-c", LOADED, option, "train.py", "other.py")
    assert (done.returncode, done.stderr.strip()) == (1, ""), done.stderr
    assert "DPM102" in done.stdout


def test_apply_works_where_torch_cannot_be_imported(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes((FIXTURES / "single_trainer_class" / "before.py").read_bytes())
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['dpmigrate', 'apply', 'train.py']; from dpmigrate.cli import main; main()"
    done = python(installed, tmp_path, "-c", code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "train.py").read_bytes() == (FIXTURES / "single_trainer_class" / "after.py").read_bytes()


def test_hooks_name_commands_that_exist(tmp_path: Path, installed: Path) -> None:
    entries = re.findall(r"entry: (\S+) (\S+)", (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert entries == [("dpmigrate", "check"), ("dpmigrate", "apply")]
    for _, command in entries:
        assert python(installed, tmp_path, "-m", "dpmigrate", command, "--help").returncode == 0


def test_the_demo_agrees(installed: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, "-m", "dpmigrate", "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Proved:" in done.stdout
