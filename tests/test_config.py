"""[tool.dpmigrate] in pyproject.toml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpmigrate import config
from tests.test_cli import TRAINS, run

pytestmark = pytest.mark.usefixtures("forked_tool")


def _project(folder: Path, table: str, *scripts: str) -> Path:
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'x'\n\n[tool.dpmigrate]\n{table}\n")
    for script in scripts or ("train.py",):
        (folder / script).parent.mkdir(parents=True, exist_ok=True)
        (folder / script).write_bytes(TRAINS)
    return folder


def _found(folder: Path, *words: str) -> dict[str, set[str]]:
    """The codes found, by file."""
    done = run("check", *words, "--output-format", "json", cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return {f["path"]: {x["code"] for x in f["findings"]} for f in json.loads(done.stdout)["files"]}


def test_no_configuration(tmp_path: Path) -> None:
    assert config.load(tmp_path) == config.Config()
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert config.load(tmp_path) == config.Config()


def test_the_nearest_one_that_speaks_of_the_tool(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.dpmigrate]\namp = true\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n")
    found = config.load(tmp_path / "a" / "b" / "train.py")
    assert found.root == tmp_path and found.options == {"amp": True}
    (tmp_path / "a" / ".git").mkdir()
    assert config.load(tmp_path / "a" / "b") == config.Config()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        pytest.param("slect = ['DPM5']", "has no key 'slect'; it knows amp", id="a key that is none"),
        pytest.param("ignore = 'DPM5'", "ignore must be a list of codes, as", id="no list"),
        pytest.param("exclude = [1]", "exclude must be a list of patterns", id="a list of something else"),
        pytest.param("amp = 1", "amp must be true or false, not 1", id="no flag"),
        pytest.param("batch = 'local'", 'batch must be "global" or "per-rank"', id="no choice"),
        pytest.param("per-file-ignores = ['DPM5']", "per-file-ignores must be a table", id="no table"),
        pytest.param("ignore = ['XYZ']", "no rule is called 'XYZ'", id="a code that is none"),
        pytest.param("per-file-ignores = { 'a.py' = ['XYZ'] }", "no rule is called 'XYZ'", id="a code for a file that is none"),
        pytest.param("x = = 1", "pyproject.toml: ", id="no TOML"),
    ],
)
@pytest.mark.parametrize("command", ["check", "apply", "verify"])
def test_what_is_not_understood_ends_the_command(command: str, table: str, said: str, tmp_path: Path) -> None:
    done = run(command, "train.py", cwd=_project(tmp_path, table))
    assert done.returncode == 2 and said in " ".join(done.stderr.decode().split())
    assert (tmp_path / "train.py").read_bytes() == TRAINS


def test_a_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = { dpmigrate = 3 }\n")
    with pytest.raises(config.ConfigError, match="is not a table"):
        config.load(tmp_path)


def test_codes(tmp_path: Path) -> None:
    everything = _found(_project(tmp_path, ""))["train.py"]
    assert "DPM210" in everything
    assert "DPM210" not in _found(_project(tmp_path, "ignore = ['dpm210']"))["train.py"]
    assert "DPM210" in _found(tmp_path, "--ignore", "DPM5")["train.py"]  # the command line takes its place


def test_files_of_their_own(tmp_path: Path) -> None:
    found = _found(_project(tmp_path, "per-file-ignores = { 'old/*.py' = ['DPM210'] }", "train.py", "old/train.py"))
    assert "DPM210" in found["train.py"] and "DPM210" not in found[str(Path("old", "train.py"))]


def test_excluded_files_are_not_met_in_a_walk(tmp_path: Path) -> None:
    _project(tmp_path, "exclude = ['/old/', '*_draft.py']", "train.py", "old/train.py", "new/old/train.py", "a_draft.py")
    (tmp_path / ".gitignore").write_text("!a_draft.py\n")
    assert sorted(_found(tmp_path)) == [str(Path("new", "old", "train.py")), "train.py"]
    assert sorted(_found(tmp_path, "a_draft.py")) == ["a_draft.py"]  # what is named is meant


def test_choices_about_the_result(tmp_path: Path) -> None:
    _project(tmp_path, "amp = true\namp-dtype = 'bfloat16'\nbatch = 'per-rank'\noutput-format = 'json'")
    done = run("apply", "--diff", "train.py", cwd=tmp_path)
    assert json.loads(done.stdout)["files"]
    text = run("apply", "--diff", "--output-format", "text", "train.py", cwd=tmp_path).stdout.decode()
    assert "bfloat16" in text and "local_batch" not in text
    text = run("apply", "--diff", "--output-format", "text", "--batch", "global", "train.py", cwd=tmp_path).stdout.decode()
    assert "local_batch" in text
    for words in (("apply", "--verify", "train.py"), ("verify", "train.py")):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 2 and b"cannot go with --batch per-rank" in done.stderr


def test_check_speaks_of_what_apply_would_write(tmp_path: Path) -> None:
    assert "DPM321" not in _found(_project(tmp_path, ""))["train.py"]
    assert "DPM321" in _found(_project(tmp_path, "amp = true"))["train.py"]
