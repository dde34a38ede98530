"""``dpmigrate verify`` and ``apply --verify`` as a user calls them; the report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpmigrate.report.text import Style
from dpmigrate.verify import page, proof, scratch, show
from dpmigrate.verify.judge import Distance, Line, Verdict
from dpmigrate.verify.proof import Proof
from tests import forkserver
from tests.verify.pair import MIGRATED, ORIGINAL, changed

ROOT = Path(__file__).resolve().parents[2]


#: all but one proof: that one starts new interpreters, as a user's does
forked = pytest.mark.usefixtures("forked_python")


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    import os

    served = {**forkserver.ENVIRONMENT, "PYTHONHASHSEED": "0"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **served}
    return subprocess.run([sys.executable, "-m", "dpmigrate", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


def test_a_proof_with_arguments_report_and_json(tmp_path: Path) -> None:
    text = changed(ORIGINAL, ("import torch\n", "import sys\nimport torch\n"), ("range(3)", "range(int(sys.argv[1]))"))
    (tmp_path / "train.py").write_text(text)
    done = _run(tmp_path, "verify", "train.py", "--output-format", "json", "--report", "out", "--", "2")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["proved"] and len(found["distances"]) == 8
    page_text = (tmp_path / "out" / "index.html").read_text()
    assert "Proved" in page_text and "<svg" in page_text and "ddp.setup()" in page_text
    assert (tmp_path / "train.py").read_text() == text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "train.py"]


@forked
def test_a_pair_that_differs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ORIGINAL)
    (tmp_path / "other.py").write_text(changed(MIGRATED, ("batch_size=8 // world", "batch_size=8")))
    done = _run(tmp_path, "verify", "train.py", "other.py")
    assert done.returncode == 1
    assert "samples per step" in done.stdout and "NOT proved" in done.stdout


@forked
@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("import torch\nraise SystemExit('usage: train.py DATA')\n" + ORIGINAL, "pass the script's arguments after --", id="arguments are missing"),
        pytest.param("x = 3\n", "torch is not used", id="nothing to migrate"),
    ],
)
def test_what_cannot_run(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(text)
    done = _run(tmp_path, "verify", "train.py")
    assert done.returncode == 2
    assert words in done.stdout + done.stderr


@forked
def test_apply_writes_what_is_proved(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ORIGINAL)
    done = _run(tmp_path, "apply", "--verify", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Proved" in done.stderr and "ddp.setup()" in (tmp_path / "train.py").read_text()


@forked
def test_apply_gives_arguments_to_the_script(tmp_path: Path) -> None:
    text = changed(ORIGINAL, ("import torch\n", "import sys\nimport torch\n"), ("range(3)", "range(int(sys.argv[1]))"))
    (tmp_path / "train.py").write_text(text)
    refused = _run(tmp_path, "apply", "--verify", "train.py")
    assert refused.returncode == 1 and "pass the script's arguments after --" in refused.stderr
    assert (tmp_path / "train.py").read_text() == text
    done = _run(tmp_path, "apply", "--verify", "train.py", "--", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ddp.setup()" in (tmp_path / "train.py").read_text()


def test_without_verify_two_dashes_end_the_options(tmp_path: Path) -> None:
    (tmp_path / "-train.py").write_text(ORIGINAL)
    done = _run(tmp_path, "apply", "--diff", "--", "-train.py")
    assert done.returncode == 0 and "+ddp.setup()" in done.stdout, done.stdout + done.stderr


@forked
def test_what_apply_has_written_in_place_is_proved_with_the_original_that_it_kept(tmp_path: Path) -> None:
    """The last line of apply is the command."""
    (tmp_path / "train.py").write_text(ORIGINAL)
    applied = _run(tmp_path, "apply", "train.py")
    last = applied.stdout.splitlines()[-1]
    assert last == "  Prove it with: dpmigrate verify train.py  (the script's own arguments go after --)"

    done = _run(tmp_path, "verify", "train.py", "--steps", "2", "--report", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Proved for 2 optimizer steps" in done.stdout
    assert "compared with the original that the last apply kept: train.py" in done.stderr
    assert "ddp.setup()" in (tmp_path / "out" / "index.html").read_text()  # the diff

    spoilt = changed((tmp_path / "train.py").read_text(), ("ddp.local_batch(", "("))
    (tmp_path / "train.py").write_text(spoilt)
    differs = _run(tmp_path, "verify", "train.py", "--steps", "2")
    assert differs.returncode == 1 and "NOT proved" in differs.stdout


@forked
def test_apply_writes_nothing_that_is_not_proved(tmp_path: Path) -> None:
    text = "import missing_module\n" + ORIGINAL
    (tmp_path / "train.py").write_text(text)
    done = _run(tmp_path, "apply", "--verify", "train.py")
    assert done.returncode == 1
    assert "Could not be proved" in done.stdout and "missing_module" in done.stderr
    assert (tmp_path / "train.py").read_text() == text


_PROOF = Proof(
    (Line("parameters", Verdict.EQUAL, "<b>[red]"), Line("lines", Verdict.DIFFERS, "\x1b[31m")),
    distances=(Distance(1, 1e-16, "w", 0.0), Distance(2, float("inf"), "w", 0.0)),
    losses=((1, 1.0, 1.1), (2, float("nan"), 0.6)),
    notes=("float64",),
)


def test_nothing_of_the_users_is_interpreted() -> None:
    shown = "\n".join(show.table(_PROOF, Style(False)))
    assert "\x1b" not in shown and "[red]" in shown and "NOT proved: lines." in shown
    drawn = page.page(_PROOF, "<script>", [("<file>", "a = '<i>'\n", "b\n")])
    assert "<script>" not in drawn and "<file>" not in drawn and "&lt;b&gt;" in drawn and "nan" not in drawn


def test_proofs_without_numbers() -> None:
    failed = Proof(failure="why\nnot")
    assert list(show.table(failed, Style(False))) == ["  why", "  not", "Could not be proved."]
    assert "why" in page.page(failed, "a", [])
    assert "could not be compared" in show.verdict(Proof((Line("a", Verdict.EQUAL, ""),)))
    assert page.curves([[(1, float("nan"))]]) == "<p>nothing to draw</p>"


def test_a_copy_holds_code_and_links_data(tmp_path: Path) -> None:
    source = tmp_path / "source"
    files = ("train.py", "lib/part.py", "few/points.bin", ".git/config", "env/pyvenv.cfg", "envs/pole.py", "big.bin", "small.bin")
    for name in (*files, *(f"many/{i}.bin" for i in range(scratch.FEW + 1))):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * (scratch.SMALL + 1 if name == "big.bin" else 3))
    found = scratch.place(source / "train.py", source / "lib").copied_to(tmp_path / "copy")
    copy = tmp_path / "copy"
    assert found == scratch.Place(copy / "train.py", copy, copy / "lib", (source / "big.bin", source / "many"))
    assert sorted(p.name for p in copy.iterdir()) == ["big.bin", "envs", "few", "lib", "many", "small.bin", "train.py"]
    assert sorted(p.name for p in copy.iterdir() if p.is_symlink()) == ["big.bin", "many"]


def test_the_script_is_copied_wherever_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among more files than are copied, larger than what is copied, in a folder that is left out elsewhere: the migrated text is written over it."""
    monkeypatch.setattr(scratch, "MANY", 3)
    folder = tmp_path / "home" / ".venv" / "many"
    folder.mkdir(parents=True)
    (tmp_path / "home" / ".git").mkdir()
    (folder / "train.py").write_bytes(b"x" * (scratch.SMALL + 1))
    for i in range(5):
        (folder / f"{i}.py").touch()
    found = scratch.place(folder / "train.py", folder).copied_to(tmp_path / "copy")
    assert found.script.resolve() == (tmp_path / "copy" / ".venv" / "many" / "train.py").resolve()
    assert (tmp_path / "copy") in found.script.resolve().parents and found.script.exists()


def test_collections_of_projects_are_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MANY", 3)
    for i in range(5):
        (tmp_path / "home" / "projects").mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / "projects" / f"{i}.py").touch()
    (tmp_path / "home" / "train.py").touch()
    found = scratch.place(tmp_path / "home" / "train.py", tmp_path).copied_to(tmp_path / "copy")
    assert (found.root / "projects").is_symlink() and (found.root / "projects" / "3.py").exists()


@pytest.mark.parametrize("place", ["copy", "tmp/copy"])
def test_a_copy_inside_what_is_copied(place: str, tmp_path: Path) -> None:
    """TMPDIR may lie in the program's folder."""
    (tmp_path / "train.py").touch()
    found = scratch.place(tmp_path / "train.py", tmp_path).copied_to(tmp_path / place)
    assert [p.name for p in found.root.iterdir()] == ["train.py"]


def test_all_files_of_a_program_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a repository its root holds what lies above the script; a link would be written through."""
    monkeypatch.setattr(scratch, "MANY", 3)
    script, module = tmp_path / "a" / "tools" / "train.py", tmp_path / "a" / "lib" / "net.py"
    for path in (script, module, *(module.with_name(f"{i}.py") for i in range(5))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * (scratch.SMALL + 1 if path == module else 3))
    found = scratch.place(script, tmp_path, (module,))
    assert found.root == tmp_path / "a"
    assert scratch.place(script, tmp_path, (module, Path("/elsewhere/a.py"))).root == tmp_path / "a"
    found.copied_to(tmp_path / "copy")
    assert (tmp_path / "copy" / "lib" / "net.py").is_file() and not (tmp_path / "copy" / "lib" / "net.py").is_symlink()


def test_what_is_changed_outside_of_the_copy_is_told(tmp_path: Path) -> None:
    script, module = tmp_path / "a" / "train.py", tmp_path / "lib" / "net.py"
    for path in (script, module):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (tmp_path / "a" / ".git").mkdir()
    found = proof.prove(script, {script: b"x = 1\n", module: b"x = 2\n"}, proof.Wish(ranks=0))
    assert found.failure.startswith(f"{module} is changed and lies outside of")
    assert module.read_text() == "x = 1\n"


def test_a_module_of_a_package_starts_above_it(tmp_path: Path) -> None:
    script = tmp_path / "proj" / "tools" / "train.py"
    script.parent.mkdir(parents=True)
    for folder in (script.parent, script.parent.parent):
        (folder / "__init__.py").touch()
    script.write_text("from ..net import Net\n")
    assert scratch.place(script, tmp_path / "proj") == scratch.Place(script, tmp_path, tmp_path, module="proj.tools.train")


def test_where_a_program_belongs(tmp_path: Path) -> None:
    (tmp_path / "a" / "tools").mkdir(parents=True)
    script = tmp_path / "a" / "tools" / "train.py"
    script.touch()
    assert scratch.place(script, tmp_path) == scratch.Place(script, script.parent, script.parent)
    (tmp_path / "a" / ".git").mkdir()
    assert scratch.place(script, tmp_path / "a") == scratch.Place(script, tmp_path / "a", tmp_path / "a")
    assert scratch.place(script, tmp_path).folder == script.parent
