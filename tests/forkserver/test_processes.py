"""A fork of the server is what a new interpreter would be, as far as a program, its launcher and the proof can see."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forkserver

pytestmark = pytest.mark.skipif(not forkserver.possible, reason="forks stand in for interpreters on Linux alone")
#: what the command answers, said twice: by a new interpreter and by a fork
_QUESTIONS = """\
import __main__, builtins, os, sys
print(sys.argv, sys.orig_argv[1:], [p for p in sys.path if "tests" not in p], __name__, __file__, __spec__ and __spec__.name, __package__)
print(sorted(vars(__main__)), __main__.__dict__ is globals(), getattr(builtins, "mine", None), "torch" in sys.modules)
print(dict(os.environ), os.getcwd(), sys.stdin.read(), sys.flags, hash("a"))
import torch, torch.nn.functional
print(torch.__spec__.origin, torch.nn is sys.modules["torch.nn"], torch.get_num_threads(), getattr(builtins, "hooked", None))
"""
_HOOK = """\
import builtins, importlib.abc, importlib.util, sys
builtins.mine = "sitecustomize has run"
class Hook(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "torch":
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            execute = spec.loader.exec_module
            def exec_module(module):
                execute(module)
                builtins.hooked = module.__name__
            spec.loader.exec_module = exec_module
            return spec
sys.meta_path.insert(0, Hook())
"""


@pytest.fixture(scope="module")
def python(_forked_python: Path | None) -> Path:
    if _forked_python is None:
        pytest.skip("--fresh-processes")
    return _forked_python


def _environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG") or k.startswith("LC_")}
    return {**kept, "PYTHONHASHSEED": "0", "PYTHONPATH": str(folder / "hooks"), **forkserver.ENVIRONMENT, **more}


def _said(interpreter: Path | str, folder: Path, *words: str, **more: str) -> tuple[int, str, str]:
    environment = _environment(folder, **more)
    done = subprocess.run([str(interpreter), *words], cwd=folder, env=environment, input="lines", capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def _program(folder: Path, text: str) -> None:
    (folder / "package").mkdir(exist_ok=True)
    (folder / "hooks").mkdir(exist_ok=True)
    (folder / "package" / "program.py").write_text(text)


@pytest.mark.parametrize("words", [("package/program.py", "-a", "b c"), ("-u", "package/program.py"), ("-m", "package.program", "-a")], ids=" ".join)
@pytest.mark.parametrize("seed", forkserver.HASH_SEEDS)
def test_it_is_what_an_interpreter_is(words: tuple[str, ...], seed: str, python: Path, tmp_path: Path) -> None:
    _program(tmp_path, _QUESTIONS)
    (tmp_path / "hooks" / "sitecustomize.py").write_text(_HOOK)
    want = _said(sys.executable, tmp_path, *words, PYTHONHASHSEED=seed)
    assert want[0] == 0 and "sitecustomize has run" in want[1] and want[1].endswith("torch\n"), want
    assert _said(python, tmp_path, *words, PYTHONHASHSEED=seed) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import sys; sys.exit(3)", id="a code"),
        pytest.param("import sys; sys.exit('the reason')", id="a reason"),
        pytest.param("import sys, torch; sys.exit(torch.ones(4).sum().item() == 4 and 5)", id="a code after torch"),
        pytest.param("import ctypes\nctypes.CDLL(None).printf(b'in the buffer of C')", id="what C prints"),
        pytest.param("import sys, torch\nclass Last:\n    def __del__(self, say=print):\n        say('gone')\nsys.last = torch.last = Last()", id="what modules hold"),
        pytest.param("def f():\n    raise ValueError('no')\ntry:\n    f()\nexcept ValueError as e:\n    raise KeyError('more') from e", id="an error"),
        pytest.param("import sys\nsys.excepthook = lambda *about: print('hook', about[1])\nraise OSError(3)", id="a hook"),
        pytest.param("import atexit, threading\natexit.register(print, 'at exit')\nthreading.Timer(0.1, print, ['thread']).start()", id="threads"),
        pytest.param("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", id="killed"),
        pytest.param("import os\nos._exit(7)", id="at once"),
        pytest.param("import missing_module", id="an import"),
        pytest.param("import os, sys\nif len(sys.argv) < 2:\n    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], 'again'])\nprint(sys.argv)", id="exec"),
        pytest.param("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import sys; print(sys.argv)', 'a'], check=True)", id="a child"),
    ],
)  # fmt: skip
def test_it_ends_as_an_interpreter_does(text: str, python: Path, tmp_path: Path) -> None:
    _program(tmp_path, text)
    assert _said(python, tmp_path, "package/program.py") == _said(sys.executable, tmp_path, "package/program.py")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 5), (signal.SIGUSR1, -signal.SIGUSR1)])
def test_signals_reach_the_process(sent: signal.Signals, code: int, python: Path, tmp_path: Path) -> None:
    _program(tmp_path, "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\nprint('ready', flush=True)\ntime.sleep(600)")
    with subprocess.Popen([python, "package/program.py"], cwd=tmp_path, env=_environment(tmp_path), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.send_signal(sent)
            assert process.wait() == code
        finally:
            process.kill()


def test_it_is_found_by_its_environment_and_dies_with_who_waits_for_it(python: Path, tmp_path: Path) -> None:
    _program(tmp_path, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)")
    environment = _environment(tmp_path, MARK="here")
    with subprocess.Popen([python, "package/program.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            pid = int(process.stdout.readline())
            shown = Path(f"/proc/{pid}/environ").read_bytes().rstrip(b"\0").split(b"\0")
            assert sorted(shown) == sorted(os.fsencode(f"{k}={v}") for k, v in environment.items())
        finally:
            process.kill()
        assert process.stdout.read() == ""  # until nobody holds the other end


def test_no_random_numbers_are_shared(python: Path, tmp_path: Path) -> None:
    _program(
        tmp_path,
        "import random, numpy, torch, uuid\n"
        "print(random.random(), numpy.random.rand(), torch.rand(1).item(), torch.initial_seed(), uuid.uuid4())",
    )
    first, other = (_said(python, tmp_path, "package/program.py")[1].split() for _ in range(2))
    assert not set(first) & set(other)


def test_what_the_server_cannot_do_the_interpreter_does(python: Path, tmp_path: Path) -> None:
    _program(tmp_path, "import sys\nprint(sys.executable)")
    assert _said(python, tmp_path, "package/program.py")[1] == f"{python}\n"
    for more in ({"PYTHONOPTIMIZE": "1"}, {"PYTHONHASHSEED": "7"}, {"OMP_NUM_THREADS": "2"}, {"COVERAGE_PROCESS_CONFIG": ""}):
        assert _said(python, tmp_path, "package/program.py", **more)[1] == f"{sys.executable}\n"
