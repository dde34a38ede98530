"""The command line as a user meets it: what is printed, what is written, how it exits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpmigrate import cli
from dpmigrate.model import File, Finding, Outcome, Severity, Span, Status
from dpmigrate.report.text import Style, apply_result
from tests.pipeline import FIXTURES

pytestmark = pytest.mark.usefixtures("forked_tool")

ROOT = FIXTURES.parent
DONE = FIXTURES / "noop_already_ddp" / "before.py"
REFUSED = FIXTURES / "refuse_no_dataloader" / "before.py"
MIGRATED = FIXTURES / "single_trainer_class"
TRAINS = (MIGRATED / "before.py").read_bytes()


def run(*words: str, cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, "-m", "dpmigrate", *words], cwd=cwd, input=stdin, capture_output=True, env=environment)


def put(folder: Path, data: bytes, name: str = "train.py") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("data", [b"", b"# DataParallel\n", b"print(1)\n"], ids=["empty", "comment only", "nothing trained"])
def test_check_says_clean(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, data)
    done = run("check", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"1 file: 1 with nothing to migrate.\n")


def test_check_reports_path_line_column_code(tmp_path: Path) -> None:
    put(tmp_path, (MIGRATED / "before.py").read_bytes())
    done = run("check", cwd=tmp_path)
    assert done.returncode == 1
    assert b"train.py:54:9: DPM102 error self.model is not wrapped" in done.stdout
    assert run("check", "--exit-zero", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("beside", [b"", b"import torch\n\nmodel = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters())\n"], ids=["alone", "with more of torch"])
@pytest.mark.parametrize("command", ["check", "apply"])
def test_a_training_that_stands_in_a_file_that_does_not_parse(tmp_path: Path, command: str, beside: bytes) -> None:
    """As where it is written for a later Python: nothing can be said of the program."""
    put(tmp_path, b"import torch\n\n\ndef run(loss):\n    loss.backward()\n    x =\n", "steps.py")
    put(tmp_path, beside + b"from steps import run\n\nrun(1)\n")
    done = run(command, "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert b"steps.py, which it imports, cannot be read: line 6: syntax error: " in done.stdout + done.stderr
    put(tmp_path, b"def run(a):\n    x =\n", "steps.py")
    assert run(command, "train.py", cwd=tmp_path).returncode == 0


def test_check_json_is_one_document(tmp_path: Path) -> None:
    put(tmp_path, (MIGRATED / "before.py").read_bytes())
    done = run("check", "--output-format", "json", "train.py", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["summary"] == {"findings": 1}
    first = document["files"][0]["findings"][0]
    assert (first["code"], first["line"], first["column"], first["fix"]) == ("DPM102", 54, 9, "safe")
    assert (first["fixed"], first["left"]) == (True, False)


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """They are taken for code of others, which may not be what the user thinks."""
    told = b"utils.py is imported and taken for code of others: syntax error: "
    put(tmp_path, b"print 'a'\n", "utils.py")
    put(tmp_path, b"import utils\n" + TRAINS)
    assert b"train.py: " + told in run("check", "train.py", cwd=tmp_path).stdout
    assert b"  " + told in run("apply", "--diff", "train.py", cwd=tmp_path).stdout
    assert told not in run("check", "--explain-roles", "train.py", cwd=tmp_path).stdout
    put(tmp_path, b"import utils\n" + REFUSED.read_bytes())
    assert b"  " + told in run("apply", "train.py", cwd=tmp_path).stdout
    put(tmp_path, b"import utils\n")
    assert b"train.py: " + told in run("check", "train.py", cwd=tmp_path).stdout
    assert b"  " + told in run("apply", "train.py", cwd=tmp_path).stdout
    assert run("check", "--explain-roles", "train.py", cwd=tmp_path).stdout == b"train.py: no roles: torch is not used in this file\n"


_SAVES = b"import torch\ndef save(net):\n    torch.save(net.state_dict(), 'a.pt')\n"


def test_a_program_of_several_files_is_told_as_one(tmp_path: Path) -> None:
    """Its script, the files that change, and what is left to the user; nothing changes where it is refused."""
    put(tmp_path, b"from saving import save\n" + TRAINS + b"    save(model)\n")
    put(tmp_path, _SAVES, "saving.py")
    put(tmp_path, b"", "other.py")
    for words, first in ((("check", "."), b"train.py: apply will make "), (("apply", "--diff", "."), b"train.py: would be migrated, ")):
        lines = run(*words, cwd=tmp_path).stdout.splitlines()
        (at,) = [i for i, line in enumerate(lines) if line.startswith(first)]
        assert b" in 2 files" in lines[at]
        assert lines[at + 1] in (b"  Files: train.py, saving.py", b"  Files changed: train.py, saving.py")
        told = json.loads(run(*words[:1], "--output-format", "json", *words[1:], cwd=tmp_path).stdout)["files"]
        assert [(p["path"], p["changed"]) for p in told] == [("train.py", ["train.py", "saving.py"]), ("other.py", [])]
    put(tmp_path, b"from saving import save\n" + REFUSED.read_bytes())
    (program,) = json.loads(run("check", "--output-format", "json", "train.py", cwd=tmp_path).stdout)["files"]
    assert program["changed"] == []


def test_lines_that_start_the_program_are_told_with_their_new_commands(tmp_path: Path) -> None:
    put(tmp_path, TRAINS)
    put(tmp_path, b"".join(b"python train.py --seed %d\n" % i for i in range(10)), "run.sh")
    first = b"  run.sh:1: torchrun --standalone --nproc-per-node=NUMBER_OF_GPUS train.py --seed 0\n"
    for words in (("check", "train.py"), ("apply", "--diff", "train.py")):
        told = run(*words, cwd=tmp_path).stdout
        assert first in told
        assert b"run.sh:9" not in told
        assert b"... and 2 more" in told
    other = run("apply", "train.py", "-o", "ddp.py", cwd=tmp_path).stdout
    assert first.replace(b"train.py", b"ddp.py") in other
    document = json.loads(run("check", "--output-format", "json", "train.py", cwd=tmp_path).stdout)
    assert document["files"][0]["starts"][9] == {
        "path": "run.sh",
        "line": 10,
        "command": "torchrun --standalone --nproc-per-node=NUMBER_OF_GPUS train.py --seed 9",
    }
    put(tmp_path, REFUSED.read_bytes())
    assert b"run.sh" not in run("check", cwd=tmp_path).stdout


def test_diff_writes_nothing_and_shows_what_apply_writes(tmp_path: Path) -> None:
    path = put(tmp_path, (MIGRATED / "before.py").read_bytes())
    shown = run("apply", "--diff", "train.py", cwd=tmp_path)
    assert path.read_bytes() == (MIGRATED / "before.py").read_bytes()
    patch = b"".join(line + b"\n" for line in shown.stdout.split(b"\n") if line[:1] in b" +-@\\" and line)
    subprocess.run(["git", "apply", "--unsafe-paths", "-p1", "-"], cwd=tmp_path, input=patch.split(b"train.py: would")[0], check=True)
    assert path.read_bytes() == (MIGRATED / "after.py").read_bytes()


def test_the_diff_of_a_file_with_windows_newlines_can_be_applied(tmp_path: Path) -> None:
    after = (MIGRATED / "after.py").read_bytes().replace(b"\n", b"\r\n")
    path = put(tmp_path, TRAINS.replace(b"\n", b"\r\n"))
    shown = run("apply", "--diff", "train.py", cwd=tmp_path).stdout
    subprocess.run(["git", "apply", "--unsafe-paths", "-p1", "-"], cwd=tmp_path, input=shown.split(b"train.py: would")[0], check=True)
    assert path.read_bytes() == after


def test_the_last_line_of_apply_says_how_to_prove_the_result(tmp_path: Path) -> None:
    put(tmp_path, TRAINS)
    put(tmp_path, TRAINS, "-b c.py")

    def last(*words: str, stdin: bytes = b"") -> list[str]:
        done = run("apply", *words, cwd=tmp_path, stdin=stdin)
        return [line for line in (done.stdout + done.stderr).decode().splitlines() if "Prove it" in line or line == done.stdout.decode().splitlines()[-1]]

    def command(words: str) -> str:
        return f"  Prove it with: dpmigrate verify {words}  (the script's own arguments go after --)"

    assert last("train.py", "--diff") == [command("train.py")]
    assert last("train.py", "--diff", "--sync-bn", "--ignore", "DPM5") == [command("train.py --sync-bn --ignore DPM5")]
    assert last("train.py", "-o", "out.py", "--sync-bn") == [command("train.py out.py")]
    assert not any("Prove" in line for line in last("train.py", "--diff", "--batch", "per-rank"))
    assert not any("Prove" in line for line in last("-", stdin=TRAINS))
    both = last("--", "train.py", "-b c.py")
    assert sorted(both) == sorted([command("train.py"), command("'./-b c.py'"), "2 files: 2 migrated."])
    assert not any("Prove" in line for line in last("train.py"))  # nothing is left to migrate


def test_the_command_of_a_proof_has_the_choices_of_a_result_that_was_only_shown() -> None:
    assert cli._proof("a.py", None, True, "float16", True, ("DPM2",), ("DPM5",)) == (
        "dpmigrate verify a.py --amp --sync-bn --amp-dtype float16 --select DPM2 --ignore DPM5"
    )


def test_apply_writes_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    path = put(tmp_path, (MIGRATED / "before.py").read_bytes())
    path.chmod(0o750)
    done = run("apply", "train.py", cwd=tmp_path)
    assert done.returncode == 0
    assert path.read_bytes() == (MIGRATED / "after.py").read_bytes()
    assert path.stat().st_mode & 0o777 == 0o750
    assert b"torchrun --standalone --nproc-per-node" in done.stdout
    again = run("apply", "train.py", cwd=tmp_path)
    assert again.returncode == 0
    assert b"unchanged: already uses the dpmigrate runtime" in again.stdout
    assert sorted(os.listdir(tmp_path)) == [".dpmigrate", "train.py"]


@pytest.mark.parametrize("name", ["already_ddp", "accelerate", "lightning", "deepspeed", "horovod", "hf_trainer"])
def test_apply_leaves_distributed_programs_alone(tmp_path: Path, name: str) -> None:
    data = (FIXTURES / f"noop_{name}" / "before.py").read_bytes()
    path = put(tmp_path, data)
    done = run("apply", "train.py", cwd=tmp_path)
    assert (done.returncode, path.read_bytes()) == (0, data)
    assert b"unchanged: already uses" in done.stdout


def test_apply_refuses_with_file_line_and_reason(tmp_path: Path) -> None:
    path = put(tmp_path, REFUSED.read_bytes())
    done = run("apply", "train.py", cwd=tmp_path)
    assert (done.returncode, path.read_bytes()) == (1, REFUSED.read_bytes())
    assert b"DPM901" in done.stdout
    assert b"the batches are cut from X_train and Y_train by hand" in done.stdout


def test_a_batch_size_that_ranks_cannot_divide_is_told_beside_the_reason_of_a_refusal() -> None:
    span = Span(3, 0, 3, 5)
    found = (Finding("DPM202", span, "batches of one", Severity.WARNING, advice="more"), Finding("DPM602", span, "totals", Severity.WARNING))
    refused = Outcome("train.py", Status.REFUSED, (File("train.py", found),), "it compares samples")
    assert list(apply_result(refused, Style(False), written=None))[1:] == ["  train.py:3: DPM202 batches of one", "    help: more"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"import torch\nloss.backward(\n", b"train.py:2:14: error syntax error"),
        (b"import torch\nprint loss.backward()\n", b"Python 2"),
        (b"import torch\nx = x.cuda(async=True)\nx.backward()\n", b"write non_blocking="),
        (b"# -*- coding: utf-8 -*-\n# \xff\nloss.backward()\n", b"train.py:2: error cannot be decoded"),
        (b"# coding: nonsense\nloss.backward()\n", b"unknown encoding"),
        (b"loss.backward()\n\0", b"NUL"),
    ],
    ids=["syntax error", "python 2", "async", "undecodable", "unknown cookie", "nul byte"],
)
def test_bad_input_is_one_line_and_the_others_go_on(tmp_path: Path, data: bytes, words: bytes) -> None:
    put(tmp_path, data)
    put(tmp_path, b"print(1)\n", "other.py")
    for command in ("check", "apply"):
        done = run(command, "train.py", "missing.py", "other.py", cwd=tmp_path)
        assert done.returncode == 2
        assert words in done.stdout
        assert b"missing.py: error No such file" in done.stdout
    assert run("check", "--exit-zero", "train.py", cwd=tmp_path).returncode == 2


def test_standard_input_and_output(tmp_path: Path) -> None:
    done = run("apply", "-", "--stdin-filename", "a.py", cwd=tmp_path, stdin=(MIGRATED / "before.py").read_bytes())
    assert done.stdout == (MIGRATED / "after.py").read_bytes()
    assert b"a.py: would be migrated" in done.stderr


def test_output_and_vendor(tmp_path: Path) -> None:
    data = (MIGRATED / "before.py").read_bytes()
    path = put(tmp_path, data)
    assert run("apply", "train.py", "-o", "out/ddp.py", "--vendor", cwd=tmp_path).returncode == 0
    assert path.read_bytes() == data
    assert (tmp_path / "out" / "ddp.py").read_bytes() == (MIGRATED / "after.py").read_bytes()
    assert (tmp_path / "out" / "dpmigrate_runtime" / "__init__.py").exists()


def test_a_module_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    path = put(tmp_path / "proj", b"from . import net\n" + (MIGRATED / "before.py").read_bytes())
    (path.parent / "net.py").touch()
    command = b"Start it with: torchrun --standalone --nproc-per-node=NUMBER_OF_GPUS -m proj."
    assert command + b"train\n" in run("apply", "--diff", "proj/train.py", cwd=tmp_path).stdout
    assert command + b"train  (in ..)\n" in run("apply", "--diff", "train.py", cwd=path.parent).stdout
    assert command + b"ddp\n" in run("apply", "proj/train.py", "-o", "proj/ddp.py", "--vendor", cwd=tmp_path).stdout
    assert (tmp_path / "dpmigrate_runtime" / "__init__.py").exists()
    assert b'"module": "proj.train"' in run("apply", "--diff", "--output-format", "json", "proj/train.py", cwd=tmp_path).stdout


def test_explain_and_rules(tmp_path: Path) -> None:
    assert b"DPM301 sum-loss" in run("explain", "dpm301", cwd=tmp_path).stdout
    assert run("explain", "DPM000", cwd=tmp_path).returncode == 2
    assert run("rules", cwd=tmp_path).stdout.count(b"\n") > 40


def test_check_imports_neither_torch_nor_libcst_nor_rich(tmp_path: Path) -> None:
    put(tmp_path, (MIGRATED / "before.py").read_bytes())
    code = "import sys\nfrom dpmigrate.cli import cli\ntry:\n    cli.main(['check', 'train.py'])\nexcept SystemExit:\n    pass\nprint(sorted({'torch', 'libcst', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_names_and_source_cannot_drive_the_terminal(tmp_path: Path) -> None:
    put(tmp_path, b"import torch\nloss.backward(\x1b[31m\n", "a[red]\x1b[2J:smile:.py")
    done = run("check", cwd=tmp_path)
    assert b"\x1b" not in done.stdout
    assert b"a[red]\\x1b[2J:smile:.py" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("apply",), "say what to rewrite", id="no path"),
        pytest.param(("apply", "--diff", "-o", "x.py", "train.py"), "--diff writes nothing", id="diff and output"),
        pytest.param(("apply", "--verify", "-"), "needs a file to be run", id="standard input cannot be proved"),
        pytest.param(("apply", "--verify", "--batch", "per-rank", "train.py"), "trains in another way", id="another batch cannot be proved"),
        pytest.param(("apply", "--amp-dtype", "bfloat16", "train.py"), "give --amp as well", id="a precision without amp"),
        pytest.param(("check", "--select", "XYZ", "train.py"), "no rule is called 'XYZ'", id="a code that is none"),
        pytest.param(("apply", "--ignore", "DPM1,DPM999", "train.py"), "no rule is called 'DPM999'", id="one of several"),
        pytest.param(("verify", "train.py", "--data", "x"), "Options of the script go after --", id="an option of the script"),
    ],
)
def test_options_that_do_not_fit(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TRAINS)
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr.decode()
    assert (tmp_path / "train.py").read_bytes() == TRAINS


def test_a_proof_of_what_is_migrated_already_is_told_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TRAINS)
    assert run("apply", "train.py", cwd=tmp_path).returncode == 0
    (tmp_path / ".dpmigrate").rename(tmp_path / "moved")  # what apply has kept is gone
    done = run("verify", "train.py", cwd=tmp_path)
    assert done.returncode == 2 and b"dpmigrate verify ORIGINAL MIGRATED" in done.stdout


def test_how_the_runtime_gets_there_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    cli._runtime_wanted()
    said = capsys.readouterr().err
    assert "this Python lacks" in said and "(pip)" in said and "--vendor" in said
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    cli._runtime_wanted()
    said = capsys.readouterr().err
    assert "lacks" not in said and "(pip)" in said and "--vendor" in said


def test_who_needs_no_runtime_is_not_told_of_it(tmp_path: Path) -> None:
    put(tmp_path, TRAINS)
    assert b"dpmigrate_runtime" not in run("apply", "--diff", "train.py", cwd=tmp_path).stderr
    assert run("apply", "--vendor", "train.py", cwd=tmp_path).stderr == b""
    assert run("apply", "train.py", cwd=tmp_path).stderr == b""  # there is nothing to change


@pytest.mark.parametrize("words", [["apply", "--help"], ["apply"], ["--help"], ["apply", "--nothing", "x.py"]], ids=" ".join)
def test_the_usage_line_names_the_command(tmp_path: Path, words: list[str]) -> None:
    done = run(*words, cwd=tmp_path)
    assert b"Usage: dpmigrate " in done.stdout + done.stderr and b"python -m" not in done.stdout + done.stderr


def test_the_command_to_start_it_can_be_pasted(tmp_path: Path) -> None:
    (tmp_path / "my train.py").write_bytes(TRAINS)
    assert b"NUMBER_OF_GPUS 'my train.py'" in run("apply", "my train.py", cwd=tmp_path).stdout


def test_the_roles_of_a_program_are_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TRAINS)
    (tmp_path / "broken.py").write_bytes(b"import torch\nloss.backward(\n")
    (tmp_path / "other.py").write_bytes(b"print(1)\n")
    done = run("check", "--explain-roles", ".", cwd=tmp_path)
    text = done.stdout.decode()
    assert done.returncode == 2 and "syntax error" in text
    assert "train.py:" in text and ": training loop for " in text and "reaches backward() in line" in text
    assert "other.py: no roles: torch is not used in this file" in text
    (told,) = json.loads(run("check", "--explain-roles", "--output-format", "json", "train.py", cwd=tmp_path).stdout)["files"]
    assert any("the optimizer of line" in note for note in told["notes"])
