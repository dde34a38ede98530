"""DPM505: directories that two ranks create."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("os.makedirs('a', exist_ok=True)", id="keyword"),
        pytest.param("os.makedirs('a', 0o777, True)", id="positional"),
        pytest.param("os.makedirs('a', exist_ok=flag)", id="a setting"),
        pytest.param("Path('a').mkdir(exist_ok=True)", id="pathlib"),
        pytest.param("Path('a').mkdir(0o777, True, True)", id="pathlib, positional"),
        pytest.param("sftp = lib.Sftp()\nsftp.mkdir('a')", id="another library's mkdir takes a path"),
        pytest.param("try:\n    os.makedirs('a')\nexcept OSError:\n    pass", id="the script is ready for it"),
        pytest.param("try:\n    os.mkdir('a')\nexcept (ValueError, FileExistsError):\n    pass", id="one of several exceptions"),
        pytest.param("try:\n    Path('a').mkdir()\nexcept:\n    pass", id="any exception"),
        pytest.param("try:\n    os.makedirs('a')\nexcept OSError as e:\n    if e.errno != errno.EEXIST:\n        raise", id="other errors are raised"),
        pytest.param("print(\"os.makedirs('a')\")  # os.makedirs('a')", id="in a string and a comment"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM505", imports="import lib\nfrom pathlib import Path", setup="flag = True", end=end) == []


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "os.makedirs('a')", "os.makedirs('a', exist_ok=True)", id="makedirs"),
        pytest.param("", "os.makedirs(name='a', exist_ok=False)", "os.makedirs(name='a', exist_ok=True)", id="False by keyword"),
        pytest.param("", "os.makedirs('a', 0o777, False)", "os.makedirs('a', 0o777, True)", id="False by position"),
        pytest.param("from os import makedirs as make", "make('a')", "make('a', exist_ok=True)", id="from-import with alias"),
        pytest.param("", "os.mkdir('a')", "os.makedirs('a', exist_ok=True)", id="mkdir"),
        pytest.param("import os as system", "system.mkdir('a', 0o777)", "system.makedirs('a', 0o777, exist_ok=True)", id="mkdir, alias"),
        pytest.param("from os import mkdir", "mkdir('a')", "os.makedirs('a', exist_ok=True)", id="mkdir from os"),
        pytest.param("from pathlib import Path", "Path('a').mkdir(parents=True)", "Path('a').mkdir(parents=True, exist_ok=True)", id="pathlib"),
        pytest.param("from pathlib import Path", "Path('a').mkdir(0o777)", "Path('a').mkdir(0o777, exist_ok=True)", id="pathlib with a mode"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, new: str, module_level: bool) -> None:
    asked = f"if not os.path.exists('a'):\n    {line}"
    parts: dict[str, str | bool] = {"imports": imports, "end": asked, "module_level": module_level}
    assert found("DPM505", **parts) == [line]
    assert [changed.strip() for changed in after(**parts)] == [new]


_PARENT = "root = 'x'\nif not os.path.exists(root):\n    os.makedirs(root)\n"


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "os.makedirs('a')", "os.makedirs('a', exist_ok=not ddp.is_main())", id="makedirs"),
        pytest.param("", "os.mkdir('a')", "os.makedirs('a', exist_ok=not ddp.is_main())", id="mkdir"),
        pytest.param("", _PARENT + "os.makedirs(os.path.join(root, 'b'))", "os.makedirs(os.path.join(root, 'b'), exist_ok=not ddp.is_main())", id="in a folder that is asked for"),
        pytest.param("", _PARENT + "own = root + '/b'\nos.makedirs(f'{own}/c')", "os.makedirs(f'{own}/c', exist_ok=not ddp.is_main())", id="two below it"),
        pytest.param("from pathlib import Path\nroot = Path('x')", _PARENT + "(root / 'b').mkdir()", "(root / 'b').mkdir(exist_ok=not ddp.is_main())", id="a path in it"),
        pytest.param("", _PARENT + "os.makedirs('b')", "os.makedirs('b', exist_ok=not ddp.is_main())", id="beside it"),
        pytest.param("import time\nbegun = f'{time.time()}'\nos.makedirs(begun, exist_ok=True)", "os.makedirs('a')", "os.makedirs('a', exist_ok=not ddp.is_main())", id="beside one with a new name"),
        pytest.param("from pathlib import Path", "Path('a').mkdir(parents=True)", "Path('a').mkdir(parents=True, exist_ok=not ddp.is_main())", id="pathlib"),
    ],
)
def test_a_second_run_stops_as_before(imports: str, line: str, new: str) -> None:
    changed = [text.strip() for text in after(imports=imports, setup=line)]
    assert changed[-2:] == ["with ddp.main_first():", new]


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("if args.a:\n    os.makedirs('a')", id="not always, by an option"),
        pytest.param("import time\nos.makedirs(f'a{time.time()}')", id="a new name each time"),
        pytest.param("if os.path.exists('a'):\n    print('there')\nos.makedirs('a')", id="asked before"),
        pytest.param("own = 'a' + str(3)\nif os.path.exists(own):\n    print('there')\nos.makedirs(own)", id="asked before, in a variable"),
        pytest.param("own = str(3)\nif os.path.exists(path=own):\n    print('there')\nos.makedirs(own)", id="asked before, by a keyword"),
        pytest.param("own = str(3)\nif glob.glob(own + '*'):\n    own = own + '_'\nos.makedirs(own)", id="asked before for another"),
    ],
)
def test_a_directory_that_may_be_there(setup: str) -> None:
    args = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--a')\nargs = p.parse_args()\n"
    assert any("exist_ok=True" in changed for changed in after(setup=args + setup)) is ("args.a" not in setup)


@pytest.mark.parametrize(
    "line", ["os.makedirs('a', exist_ok={})", "os.makedirs('a', 0o777, {})", "Path('a').mkdir(exist_ok={})", "Path('a').mkdir(0o777, True, {})"]
)
@pytest.mark.parametrize(
    ("option", "new"),
    [
        pytest.param("args.again", "args.again or not ddp.is_main()", id="an option"),
        pytest.param("os.environ.get('AGAIN') == '1'", "os.environ.get('AGAIN') == '1' or not ddp.is_main()", id="a comparison"),
        pytest.param("False if args.a else True", "(False if args.a else True) or not ddp.is_main()", id="a choice"),
    ],
)
def test_the_program_decides_whether_it_may_be_there(line: str, option: str, new: str) -> None:
    setup = "import argparse\nargs = argparse.ArgumentParser().parse_args()"
    found_lines = after(imports="from pathlib import Path", setup=setup, before=line.format(option))
    assert [f for f in found_lines if "arg" not in f or "mkdir" in f or "makedirs" in f] == ["with ddp.main_first():", line.format(new)]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("made = os.makedirs('a', exist_ok=bool(args.a))", id="no statement of its own"),
        pytest.param("if torch.rand(1) > 0.5:\n    os.makedirs('a', exist_ok=bool(args.a))", id="under a test that ranks may answer differently"),
    ],
)
def test_where_ranks_do_not_come_together_it_is_told(before: str) -> None:
    (hit,) = hits("DPM505", imports="import argparse", setup="args = argparse.ArgumentParser().parse_args()", before=before)
    assert not hit.edits and "the second would stop" in hit.message and "exist_ok=True" in hit.advice


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("try:\n    os.makedirs('a')\n    x = 3\nexcept OSError:\n    pass", id="what follows would be left out"),
        pytest.param("try:\n    os.makedirs('a')\nexcept ValueError:\n    pass", id="another exception"),
        pytest.param("try:\n    os.makedirs('a')\nexcept OSError:\n    raise", id="raised again"),
        pytest.param("try:\n    os.makedirs('a')\nexcept OSError:\n    print(1)", id="told"),
        pytest.param("try:\n    pass\nexcept OSError:\n    os.makedirs('a')", id="in the handler"),
        pytest.param("try:\n    def f():\n        os.makedirs('a')\nexcept OSError:\n    pass", id="in a function"),
    ],
)
def test_a_handler_that_is_not_for_it(end: str) -> None:
    assert found("DPM505", end=end) == ["os.makedirs('a')"]


def test_behind_a_test_and_in_a_method() -> None:
    parts = {"defs": "class T:\n    def prepare(self, p):\n        if not os.path.isdir(p):\n            os.mkdir(p)"}
    assert after(**parts) == ["os.makedirs(p, exist_ok=True)"]


_SEARCH = "n = 0\nwhile True:\n    try:\n        {making}{after}\n    except {error}:\n        n += 1{ends}"


@pytest.mark.parametrize("making", ["os.mkdir(f'run{n}')", "os.makedirs('run%d' % n)"])
@pytest.mark.parametrize(
    ("after", "error", "ends"),
    [
        pytest.param("\n        break", "FileExistsError", "", id="left where it is made"),
        pytest.param("\n        path = n\n        break", "Exception", "", id="left later"),
        pytest.param("", "OSError", "\n    else:\n        break", id="left by the else"),
    ],
)
def test_a_search_for_a_free_name_is_for_rank_0(making: str, after: str, error: str, ends: str) -> None:
    end = _SEARCH.format(making=making, after=after, error=error, ends=ends)
    (hit,) = hits("DPM505", end=end)
    assert "goes on by whether it is there" in hit.message and not hit.edits


def test_what_is_done_beside_the_folder_decides_nothing() -> None:
    end = "try:\n    os.mkdir('a')\n    print('made')\nexcept FileExistsError:\n    print('there')"
    assert hits("DPM505", end=end)[0].edits


@pytest.mark.parametrize(
    ("defs", "told"),
    [
        pytest.param("class Run:\n    def __enter__(self):\n        os.mkdir('a')\n    def __exit__(self, *_):\n        pass\nwith Run():\n    pass", True, id="a context manager"),
        pytest.param("class Run:\n    def __enter__(self):\n        if not os.path.exists('a'):\n            os.mkdir('a')\nwith Run():\n    pass", False, id="asked"),
        pytest.param("def make(p):\n    os.mkdir(p)\nif not os.path.exists('a'):\n    make('a')", False, id="asked before the call"),
    ],
)
def test_a_second_run_that_does_not_stop_is_told(defs: str, told: bool) -> None:
    (hit,) = hits("DPM505", defs=defs)
    assert hit.edits
    assert ("a second run does not stop" in hit.advice) is told
