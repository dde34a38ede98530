"""A run in its copy: what it may write, what it leaves behind, and why it may fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dpmigrate.verify import failures, proof, runs, scratch
from dpmigrate.verify.progress import Progress
from dpmigrate.verify.runs import Config, Ran, _by_itself, run


def _ran(folder: Path, text: str, *arguments: str) -> Ran:
    """Run a script of the folder ``user`` in a copy, as plain Python."""
    script = folder / "user" / "train.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text(text)
    place = scratch.place(script, folder)
    copy = place.copied_to((folder / "copy").resolve())
    config = Config(str(folder / "out"), str(copy.root), str(place.root), str(copy.script), str(copy.folder), 0)
    return run(arguments, config, timeout=600)


def test_a_module_is_started_as_one(tmp_path: Path) -> None:
    script = tmp_path / "user" / "proj" / "train.py"
    script.parent.mkdir(parents=True)
    (script.parent / "net.py").write_text("name = 'net'\n")
    script.write_text("from . import net\nprint(net.name, __package__)\n")
    place = scratch.place(script, tmp_path)
    copy = place.copied_to((tmp_path / "copy").resolve())
    config = Config(str(tmp_path / "out"), str(copy.root), str(place.root), str(copy.script), str(copy.folder), 0, module=copy.module)
    assert run((), config, timeout=600).stdout == ("net proj\n",)


def test_float32_is_whole_on_a_gpu(tmp_path: Path) -> None:
    """TF32 would round otherwise in convolutions of other batch sizes, also where the program asks for it."""
    assert _ran(tmp_path, "import os\nprint(os.environ['NVIDIA_TF32_OVERRIDE'])\n").stdout == ("0\n",)


def _user(folder: Path) -> Path:
    """A folder with a large checkpoint, which is linked, and a folder of data, which is linked as well."""
    user = folder / "user"
    (user / "data" / "deep").mkdir(parents=True)
    for i in range(scratch.FEW + 1):
        (user / "data" / f"{i}.bin").write_bytes(b"data")
    (user / "data" / "deep" / "a.bin").write_bytes(b"data")
    (user / "best.pt").write_bytes(b"x" * (scratch.SMALL + 1))
    return user


def _state(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "train.py"}


@pytest.mark.parametrize(
    ("code", "holds"),
    [
        pytest.param("open('best.pt', 'wb').write(b'new')", {"best.pt": b"new"}, id="a file overwritten"),
        pytest.param("open('best.pt', 'ab').write(b'y')", {"best.pt": b"x" * 1_000_001 + b"y"}, id="a file appended to"),
        pytest.param("import torch; torch.save(3, 'best.pt')", {}, id="a checkpoint saved"),
        pytest.param("open('data/new.bin', 'wb').write(b'new')", {"data/new.bin": b"new", "data/7.bin": b"data"}, id="a new file in a folder of data"),
        pytest.param("open('data/deep/a.bin', 'wb').write(b'new')", {"data/deep/a.bin": b"new"}, id="deeper"),
        pytest.param("import os; os.remove('data/7.bin')", {"data/8.bin": b"data"}, id="a file removed"),
        pytest.param(
            "import os; os.rename('data/7.bin', 'data/8.bin'); open('data/8.bin', 'r+b').write(b'DATA')",
            {"data/8.bin": b"DATA"},
            id="a file renamed, and then written",
        ),
        pytest.param("import shutil; shutil.rmtree('data'); import os; os.makedirs('data/deep')", {}, id="a folder made anew"),
        pytest.param(
            """import subprocess, sys; subprocess.run([sys.executable, "-c", "open('best.pt', 'wb').write(b'new')"], check=True)""",
            {"best.pt": b"new"},
            id="by a Python that the script starts",
        ),
        pytest.param(
            "import os; place = os.path.realpath('best.pt'); open(place + '.new', 'wb').write(b'new'); os.replace(place + '.new', place)",
            {"best.pt": b"new"},
            id="a file put in place where the link leads",
        ),
        pytest.param(
            "from pathlib import Path; (Path('data').resolve() / 'new.bin').write_bytes(b'new')",
            {"data/new.bin": b"new", "data/7.bin": b"data"},
            id="a new file where the link leads",
        ),
        pytest.param(
            "import os; assert os.path.realpath(b'best.pt') == os.path.abspath(b'best.pt'); assert os.path.realpath('/proc/self') != '/proc/self'",
            {},
            id="where links lead, as bytes; other links",
        ),
        pytest.param("import os; os.truncate('best.pt', 3)", {"best.pt": b"xxx"}, id="a file truncated"),
        pytest.param("import sqlite3; sqlite3.connect('data/x.db').execute('create table a (b)')", {"data/7.bin": b"data"}, id="a data base"),
    ],
)
def test_nothing_of_the_users_is_written(code: str, holds: dict[str, bytes], tmp_path: Path) -> None:
    before = _state(_user(tmp_path))
    done = _ran(tmp_path, code)
    assert done.code == 0, done.stderr
    assert _state(tmp_path / "user") == before
    for name, content in holds.items():
        assert (tmp_path / "copy" / name).read_bytes() == content


@pytest.mark.parametrize("command", ["printf new > best.pt", "rm data/7.bin", "printf new > data/new.bin"])
def test_what_no_guard_can_see_is_told(command: str, tmp_path: Path) -> None:
    """A shell writes through a link; the proof says so, and nothing else."""
    user = _user(tmp_path)
    (user / "train.py").write_text(f"import os, torch\nos.system({command!r})\n")
    found = proof.prove(user / "train.py", user / "train.py", proof.Wish(ranks=0))
    assert "was changed while the program ran" in found.failure and str(user) in found.failure


@pytest.mark.parametrize("place", ["user/data/7.bin", "user/new.bin", "user/../user/new.bin"])
def test_other_places_are_refused(place: str, tmp_path: Path) -> None:
    """Also where temporary files may lie."""
    before = _state(_user(tmp_path))
    done = _ran(tmp_path, f"open({str(tmp_path / place)!r}, 'w')")
    assert done.code == 1 and "lies outside the scratch copy" in done.stderr
    assert _state(tmp_path / "user") == before


@pytest.mark.parametrize("code", ["import tempfile; tempfile.mkdtemp()", "open('/dev/null', 'w')", "import os; os.makedirs('/usr', exist_ok=True)"])
def test_temporary_files_and_devices_are_nobodys(code: str, tmp_path: Path) -> None:
    done = _ran(tmp_path, code)
    assert done.code == 0, done.stderr


def test_temporary_files_may_lie_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR=./tmp: what is written there is nobody's, its neighbours are the user's."""
    user = _user(tmp_path)
    (user / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(user / "tmp"))
    done = _ran(tmp_path, f"import tempfile; tempfile.mkdtemp(); open({str(user / 'new.bin')!r}, 'w')")
    assert done.code == 1 and "lies outside the scratch copy" in done.stderr
    assert len(list((user / "tmp").glob("tmp*"))) == 1 and not (user / "new.bin").exists()


def test_processes_that_outlive_the_program(tmp_path: Path) -> None:
    done = _ran(tmp_path, "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])")
    assert done.left is not None and len(done.left) == 1 and "time.sleep" in done.left[0]
    from dpmigrate.verify.runs import _processes

    assert _processes(tmp_path / "out") == []


def test_the_users_own_sitecustomize_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.mine = 3")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = _ran(tmp_path, "import builtins; assert builtins.mine == 3")
    assert done.code == 0, done.stderr


def test_the_users_own_search_path_is_the_one_of_his_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy runs elsewhere: ``PYTHONPATH=lib`` means the folder in which the command was given."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mine.py").write_text("x = 3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "lib")
    done = _ran(tmp_path, "import mine; assert mine.x == 3")
    assert done.code == 0, done.stderr


def test_arguments_and_output(tmp_path: Path) -> None:
    done = _ran(tmp_path, "import sys; print(sys.argv[1:])", "--a", "b c")
    assert done.stdout == ("['--a', 'b c']\n",)


_CONFIG = Config("out", "/copy", "/mine", "/copy/train.py", "/copy/run", 2)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        pytest.param("train.py: error: the following arguments are required: data", "after --", id="arguments"),
        pytest.param("urllib.error.URLError: <urlopen error [Errno -3]>", "the data must be there before", id="a download"),
        pytest.param("RuntimeError: Expected to have finished reduction in the prior iteration before", "ddp.wrap(model)", id="an unused parameter"),
        pytest.param("RuntimeError: Found no NVIDIA driver on your system", "--device cuda", id="a GPU"),
        pytest.param("FileNotFoundError: [Errno 2] No such file or directory: 'x'", "started in /mine/run", id="a file"),
        pytest.param("train.py: error: unrecognized arguments: --epochz 1", "does not know", id="a word too much"),
        pytest.param("EOFError: EOF when reading a line", "asks for input", id="input"),
        pytest.param("ModuleNotFoundError: No module named 'x'", "install what the program needs", id="a package"),
        pytest.param("PermissionError: dpmigrate verify: the program wants to write /x", "pass another place", id="a place outside"),
    ],
)
def test_why_a_run_failed(words: str, hint: str) -> None:
    found = failures.unfinished(Ran(Path(), 1, 0.0, (), words, ()), 1, 3, _CONFIG)
    assert found.startswith("exit code 1") and words in found and hint in found.splitlines()[-1]


def test_the_last_place_in_the_users_files_is_shown() -> None:
    inner = "".join(f'  File "/lib/torch/{i}.py", line 1, in f\n    f()\n' for i in range(9))
    errors = f'Traceback:\n  File "/copy/train.py", line 7, in <module>\n    main()\n{inner}RuntimeError: shapes'
    found = failures.unfinished(Ran(Path(), 1, 0.0, (), errors, ()), 1, 3, _CONFIG)
    assert 'File "/mine/train.py", line 7' in found and "main()" in found and found.endswith("RuntimeError: shapes") and "Traceback:" not in found


def test_the_rank_that_failed_by_itself_comes_last() -> None:
    own = 'Traceback (most recent call last):\n  File "/copy/train.py", line 3\nPermissionError: no'
    lost = "Traceback (most recent call last):\nRuntimeError: Connection closed by peer [127.0.0.1]:3"
    assert sorted([own, lost, "a warning"], key=_by_itself) == ["a warning", lost, own]
    assert sorted([lost, own, own + "!"], key=_by_itself) == [lost, own, own + "!"]


def test_other_ends_of_a_run() -> None:
    assert failures.unfinished(Ran(Path(), 1, 0.0, (), "ValueError: x", ()), 1, 3, _CONFIG) == "exit code 1\nValueError: x"
    assert "it was not done after 3 s" in failures.unfinished(Ran(Path(), -9, 0.0, (), "", (), ("at x",)), 1, 3, _CONFIG)
    assert "1 of 2 processes left a record" in failures.unfinished(Ran(Path(), 0, 0.0, (), "", ({},)), 2, 3, _CONFIG)
    assert failures.unfinished(Ran(Path(), 0, 0.0, (), "", ({},)), 1, 3, _CONFIG) == ""


@pytest.mark.parametrize(
    ("exits", "ended", "aborted", "short"),
    [
        pytest.param([(1, -6)], [True, True], (1,), False, id="when all had finished"),
        pytest.param([(0, -6), (1, -6)], [True, True], (0, 1), False, id="both ranks"),
        pytest.param([(1, -6)], [None, True], (1,), True, id="before the other had finished"),
        pytest.param([(1, -6), (0, -15)], [None, True], (1,), True, id="the other is told of"),
        pytest.param([(1, -6)], [False, True], (1,), True, id="the other failed on its way"),
        pytest.param([(1, -6)], [True, None], (), False, id="in the middle"),
        pytest.param([(1, -6)], [True, False], (), False, id="after an exception"),
        pytest.param([(1, -6), (0, 1)], [True, True], (), False, id="beside another failure"),
        pytest.param([(1, -11)], [True, True], (), False, id="of something else"),
        pytest.param([], [True, True], (), False, id="none that is told of"),
    ],
)
def test_aborts_in_the_exit(
    exits: list[tuple[int, int]], ended: list[bool | None], aborted: tuple[int, ...], short: bool
) -> None:
    records = tuple({"rank": i, "ended": e} for i, e in enumerate(ended) if e is not None)
    ran = Ran(Path(), 1, 0.0, (), "words", records, exits=tuple(exits))
    assert failures.aborted_at_exit(ran) == aborted
    assert failures.cut_short(ran, 2) is short
    words = failures.unfinished(ran, 2, 3, _CONFIG)
    assert words.startswith("exit code 1") if not aborted else bool(words) is short
    assert not short or "a known fault of torch" in words
    hung = Ran(Path(), 1, 0.0, (), "", records, ("at x",), exits=tuple(exits))
    assert failures.aborted_at_exit(hung) == ()


def test_no_step_and_no_comparison() -> None:
    after = Ran(Path(), 0, 0.0, (), "", ({"steps": []},))
    assert "no optimizer step" in proof._judged(after, after, proof.Wish(), {}).failure
    before = Ran(Path(), 0, 0.0, (), "", ({"steps": [1], "compared": {"error": "torn"}},))
    assert "torn" in proof._judged(before, after, proof.Wish(), {}).failure


@pytest.mark.parametrize("steps", [5, None])
def test_progress(steps: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(steps) as shown:
        shown.steps(1)  # before anything has begun
        shown.begins("one [/run]")
        shown.steps(3)
        shown.begins("another")
    text = capsys.readouterr().err
    assert "one [/run]" in text and "another" in text and ("3 of 5 steps" if steps else "3 steps") in text


_OWN_WAY_OUT = "import sys, torch\nclass Last:\n    def __del__(self, abort=__import__('os').abort):\n        abort()\nsys.last = Last()\n"


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        pytest.param("", True, id="by itself"),
        pytest.param("sys.exit()", True, id="sys.exit"),
        pytest.param("raise SystemExit", True, id="SystemExit"),
        pytest.param("sys.exit(3)", False, id="a status"),
        pytest.param("1 / 0", False, id="an exception"),
    ],
)
def test_what_came_before_an_abort_in_the_exit(code: str, ended: bool, tmp_path: Path) -> None:
    done = _ran(tmp_path, _OWN_WAY_OUT + code)
    assert (done.code, done.exits) == (-6, ((0, -6),))
    assert [record["ended"] for record in done.records] == [ended]
    assert failures.aborted_at_exit(done) == ((0,) if ended else ())


_LAUNCHER = """
import os, subprocess, sys, time
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": str(i), "WORLD_SIZE": "2"}) for i in range(2)]
for rank in ranks:
    rank.wait()
time.sleep(300)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("code", "waits"),
    [
        pytest.param("", False, id="the ranks are gone"),
        pytest.param("class Last:\n    def __del__(self, sleep=time.sleep):\n        sleep(300)\nlast = Last() if os.environ['RANK'] == '1' else None", True, id="one is there"),
        pytest.param("if os.environ['RANK'] == '1':\n    raise ValueError", True, id="one has failed"),
        pytest.param("if os.environ['RANK'] == '1':\n    os._exit(1)", True, id="one is not seen to end"),
    ],
)
def test_a_launcher_that_does_not_end(code: str, waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, launcher = tmp_path / "train.py", tmp_path / "launcher.py"
    script.write_text(f"import os, time, torch\n{code}\n")
    launcher.write_text(_LAUNCHER)
    monkeypatch.setattr(runs, "_launcher", lambda ranks, logs: [str(launcher)])
    monkeypatch.setattr(runs, "LAUNCHER_ENDS", 1.0)
    config = Config(str(tmp_path / "out"), str(tmp_path), str(tmp_path), str(script), str(tmp_path), 2)
    done = run((), config, timeout=5 if waits else 250)
    assert done.late is waits
    if not waits:
        assert (done.code, done.left, len(done.records)) == (0, (), 2)


def test_silence() -> None:
    proof.Listener().begins("x")
    proof.Listener().steps(1)


@pytest.mark.skipif(sys.platform != "linux", reason="process groups are looked up in /proc")
def test_a_run_that_does_not_end(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time\ndef wait():\n    time.sleep(300)\nwait()")
    config = Config(str(tmp_path / "out"), str(tmp_path), str(tmp_path), str(script), str(tmp_path), 0)
    # the stack can be asked for as soon as the probe is in, which takes longer on a busy machine
    done = next(done for limit in (1.5, 15, 150) if "in wait" in (done := run((), config, timeout=limit)).stacks[0] or limit == 150)
    assert done.late and "in wait" in done.stacks[0] and done.code != 0
