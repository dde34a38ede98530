"""DPM509: a file is opened for writing on rank 0."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "open('a')"}, id="read"),
        pytest.param({"end": "open('a', 'rb')"}, id="read, with a mode"),
        pytest.param({"setup": "mode = 'r'\nif os.environ:\n    mode = 'w'", "end": "open('a', mode)"}, id="a mode that may read"),
        pytest.param({"setup": "mode = what()", "end": "open('a', mode)"}, id="a mode that is not known"),
        pytest.param({"end": "open(mode='w')"}, id="no path"),
        pytest.param({"end": "open('a', 3)"}, id="a mode that is no text"),
        pytest.param({"end": "print(\"open('a', 'w')\")  # open('a', 'w')"}, id="in a string and a comment"),
        pytest.param({"imports": "from PIL import Image", "end": "Image.open('a', 'r')"}, id="another library's open, to read"),
        pytest.param({"imports": "import lib", "end": "lib.plot([3.0, 4.0], 'x')\nlib.join('a', 'x')\nlib.draw('a.txt', 'wide')"}, id="no mode, or no path"),
        pytest.param({"end": "with open('a.txt', 'a+') as f:\n    f.write('b')\n    print(len(f.readlines()))"}, id="a file that is read again"),
        pytest.param({"end": "f = open('a.txt', 'w+')\nf.write('b')\nfor line in f:\n    print(line)"}, id="a file whose lines are read again"),
        pytest.param({"imports": "import json\nfrom pathlib import Path", "end": "with Path('a').open('a+') as f:\n    x = json.load(f)"}, id="a loaded file"),
        pytest.param({"imports": "import csv", "end": "with open('a.csv', 'a+') as f:\n    print(len(list(csv.DictReader(f))))"}, id="rows that are read"),
        pytest.param({"end": "with open('a.json', 'r+') as f:\n    f.write(f.read())"}, id="a file that is changed"),
        pytest.param({"imports": "import lib", "end": "for i in range(3):\n    x = lib.File('a.dat', 'r+')"}, id="what writes and reads"),
        pytest.param({"imports": "import lib", "end": "with lib.File('a.dat', 'a') as f:\n    x = f['x']"}, id="what is read in part"),
        pytest.param({"imports": "import lib", "end": "if rank == 0:\n    lib.File('a.dat', 'w')", "setup": "import os\nrank = int(os.environ['RANK'])"}, id="rank 0 alone"),
        pytest.param({"imports": "import logging", "end": "logging.basicConfig(level=3)"}, id="logging without a file"),
        pytest.param({"imports": "import logging", "end": "logging.basicConfig(filename=None)"}, id="logging to no file"),
        pytest.param({"imports": "import logging", "end": "logging.FileHandler()"}, id="a handler without a path"),
        pytest.param({"imports": "from pathlib import Path", "end": "Path('a').open()\nPath('a').open('r')"}, id="a Path that is read"),
        pytest.param({"end": "make().open('w')"}, id="an open without pathlib"),
        pytest.param({"imports": "import webbrowser\nfrom pathlib import Path", "end": "shop.open('wax')\nshop.open('water')"}, id="another open"),
        pytest.param({"imports": "import h5py", "end": "h5py.File('a')\nh5py.File('a', 'r')"}, id="an archive that is read"),
        pytest.param({"imports": "import sys\nfrom loguru import logger", "end": "logger.add(sys.stderr)\nlogger.add()"}, id="loguru to the terminal"),
        pytest.param({"defs": "def open(p, m):\n    return p", "end": "open('a', 'w')"}, id="a function of this file"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM509", **parts) == []


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "f = open('a', 'w')", "f = open(ddp.main_path('a'), 'w')", id="positional"),
        pytest.param("", "f = open(file='a', mode='ab')", "f = open(file=ddp.main_path('a'), mode='ab')", id="keyword"),
        pytest.param("", "with open('a', 'x') as f:\n    f.write('')", "with open(ddp.main_path('a', new=True), 'x') as f:", id="with"),
        pytest.param("", "f = open('a', mode='xb')", "f = open(ddp.main_path('a', new=True), mode='xb')", id="a new file, keyword"),
        pytest.param("import logging", "h = logging.FileHandler('a', mode='x')", "h = logging.FileHandler(ddp.main_path('a', new=True), mode='x')", id="a new log"),
        pytest.param("", "with open('a', 'a+') as f:\n    f.write('b')", "with open(ddp.main_path('a'), 'a+') as f:", id="lines behind others"),
        pytest.param("import io", "f = io.open('a', 'w')", "f = io.open(ddp.main_path('a'), 'w')", id="io.open"),
        pytest.param("from gzip import open as gz", "f = gz('a', 'w')", "f = gz(ddp.main_path('a'), 'w')", id="from-import with alias"),
        pytest.param("import logging", "h = logging.FileHandler('a')", "h = logging.FileHandler(ddp.main_path('a'))", id="handler"),
        pytest.param(
            "from logging.handlers import RotatingFileHandler as R", "h = R(filename='a')", "h = R(filename=ddp.main_path('a'))", id="rotating, keyword",
        ),
        pytest.param("import logging", "logging.basicConfig(filename='a')", "logging.basicConfig(filename=ddp.main_path('a'))", id="basicConfig"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "end": line, "module_level": module_level}
    assert found("DPM509", **parts) == ["'a'"]
    assert after(**parts) == [new]


@pytest.mark.parametrize(
    ("defs", "line", "new"),
    [
        pytest.param("", "mode = 'a'\nif os.environ:\n    mode = 'w'\nf = open('a', mode)", "f = open(ddp.main_path('a'), mode)", id="one or the other"),
        pytest.param("def note(p, mode='w'):\n    f = open(p, mode)", "note('a')\nnote('b', 'a')", "f = open(ddp.main_path(p), mode)", id="a parameter"),
        pytest.param("", "f = open('a', 'w' if os.environ else 'x')", "f = open(ddp.main_path('a', new=True), 'w' if os.environ else 'x')", id="perhaps a new file"),
    ],
)  # fmt: skip
def test_a_mode_that_is_computed(defs: str, line: str, new: str) -> None:
    assert after(defs=defs, end=line) == [new]


@pytest.mark.parametrize(
    ("defs", "line", "new"),
    [
        pytest.param("def o(p, m='r'):\n    return open(p, m)", "o('a')\no('b', 'w')", "o(ddp.main_path('b'), 'w')", id="a default that reads"),
        pytest.param("def o(m, p):\n    return open(p, m)", "o('r', 'a')\no('x', p='b')", "o('x', p=ddp.main_path('b', new=True))", id="a new file, by name"),
        pytest.param(
            "class T:\n    def o(self, p, m):\n        return open(p, m)", "T().o('a', 'r')\nT().o('b', 'w')", "T().o(ddp.main_path('b'), 'w')", id="a method",
        ),
        pytest.param(
            "import os\ndef o(p, m):\n    os.makedirs(os.path.dirname(p), exist_ok=True)\n    return open(p, m)", "o('a', 'r')\no('b', 'w')", None,
            id="a path that is used beside",
        ),
        pytest.param("def o(p, m):\n    p = p + '.txt'\n    return open(p, m)", "o('a', 'r')\no('b', 'w')", None, id="another path"),
        pytest.param("def o(p, m):\n    if m == 'w':\n        print(p)\n    return open(p, m)", "o('a', 'r')\no('b', 'w')", None, id="a mode that is asked for"),
        pytest.param("def o(p, m):\n    return open(p, m)", "o('a', 'r')\nfor m in ('r', 'w'):\n    o('b', m)", None, id="a mode of the call that may read"),
    ],
)  # fmt: skip
def test_a_helper_that_reads_and_writes(defs: str, line: str, new: str | None) -> None:
    """The calls that write are given rank 0's path."""
    changed = [found for found in after(defs=defs, end=line) if "main_path" in found]
    assert changed == ([] if new is None else [new])


def test_in_a_method() -> None:
    assert found("DPM509", defs="class T:\n    def start(self, path):\n        self.f = open(path, 'w')") == ["path"]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("f = Path('a').open('w')", "f = ddp.main_path(Path('a')).open('w')", id="positional"),
        pytest.param("with p.open(mode='ab') as f:\n    pass", "with ddp.main_path(p).open(mode='ab') as f:", id="keyword"),
    ],
)
def test_a_path_that_is_opened(line: str, new: str) -> None:
    assert after(imports="from pathlib import Path", top="p = Path('b')", end=line) == [new]


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("import h5py", "h = h5py.File('a', 'w')", "h = ddp.main_only(h5py.File, 'a', 'w')", id="h5py"),
        pytest.param("from zipfile import ZipFile as Z", "z = Z('a', mode='a')", "z = ddp.main_only(Z, 'a', mode='a')", id="from-import with alias, keyword"),
        pytest.param("import tarfile", "t = tarfile.open('a', 'w:gz')", "t = ddp.main_only(tarfile.open, 'a', 'w:gz')", id="tarfile"),
    ],
)
def test_archives(imports: str, line: str, new: str) -> None:
    assert after(imports=imports, end=line) == [new]


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("import lib", "with lib.open('a', 'a') as f:\n    f.write(3)", "with ddp.main_only(lib.open, 'a', 'a') as f:", id="by its name"),
        pytest.param("import lib", "f = lib.Thing(path='a', mode='wb')", "f = ddp.main_only(lib.Thing, path='a', mode='wb')", id="by its mode"),
        pytest.param("import lib", "f = lib.Thing(f'{lib.folder()}/a.txt', 'x')", "f = ddp.main_only(lib.Thing, f'{lib.folder()}/a.txt', 'x')", id="by its path"),
        pytest.param("from lib import open as o", "o(os.environ['OUT'], 'w').put(3)", "ddp.main_only(o, os.environ['OUT'], 'w').put(3)", id="at once"),
    ],
)
def test_what_a_library_opens_that_no_table_knows(imports: str, line: str, new: str) -> None:
    assert after(imports=imports, end=line) == [new]


def test_loguru() -> None:
    assert after(imports="from loguru import logger", setup="logger.add('a.log', level=3)") == ["logger.add(ddp.main_path('a.log'), level=3)"]


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "f = open('a')\nos.fsync(f.fileno())", ["if ddp.is_main():", "os.fsync(f.fileno())"], id="a statement"),
        pytest.param(
            "from os import fdatasync as sync", "f = open('a')\nsync(fd=f.fileno())", ["if ddp.is_main():", "sync(fd=f.fileno())"], id="alias, keyword"
        ),
        pytest.param("", "f = open('a')\nx = os.fsync(f)", ["x = ddp.main_only(os.fsync, f)"], id="its value is kept"),
    ],
)
def test_what_is_brought_to_the_disk(imports: str, line: str, new: list[str]) -> None:
    lines = after(imports=imports, end=line)
    assert lines == new or lines == new[:1]  # a line that is only indented is not new


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("import sqlite3", "c = sqlite3.connect('a.db')\nc.execute('insert into t values (1)')", "c = ddp.main_only(sqlite3.connect, 'a.db')", id="sqlite"),
        pytest.param("from sqlite3 import connect", "with connect('a.db') as c:\n    c.cursor().execute(words)\n    c.commit()", "with ddp.main_only(connect, 'a.db') as c:", id="what is committed"),
        pytest.param("import shelve", "s = shelve.open('a')\ns['x'] = 1\ns.close()", "s = ddp.main_only(shelve.open, 'a')", id="shelve"),
        pytest.param("import dbm", "with dbm.open('a', 'c') as s:\n    s['x'] = '1'", "with ddp.main_only(dbm.open, 'a', 'c') as s:", id="dbm"),
    ],
)  # fmt: skip
def test_databases(imports: str, line: str, new: str) -> None:
    assert after(imports=imports, end=line) == [new]


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("import sqlite3", "c = sqlite3.connect('a.db')\nn = c.execute('select * from t').fetchone()"),
        ("import sqlite3", "c = sqlite3.connect('a.db')\nc.execute('insert into t values (1)')\nn = c.execute(words).fetchall()"),
        ("import sqlite3", "c = sqlite3.connect('a.db')\nc.execute('drop table t')\nfor row in c.execute('select * from t'):\n    pass"),
        ("import sqlite3, pandas", "c = sqlite3.connect('a.db')\nc.commit()\npandas.read_sql('select * from t', c)"),
        ("import shelve", "s = shelve.open('a', 'r')\nn = s['x']"),
        ("import shelve", "s = shelve.open('a')\ns['x'] = s.get('x', 0) + 1"),
        ("import shelve", "s = shelve.open('a')\ns['x'] += 1"),
        ("import dbm", "s = dbm.open('a')\nn = s['x']"),
    ],
)
def test_databases_that_are_read(imports: str, line: str) -> None:
    assert found("DPM509", imports=imports, end=line) == []


def test_handlers_of_a_configuration() -> None:
    line = "logging.config.dictConfig({'handlers': {'f': {'class': 'logging.FileHandler', 'filename': 'a', 'mode': 'w'}, 'g': {'class': 'logging.StreamHandler'}}})"
    assert after(imports="import logging.config", end=line) == [line.replace("'a'", "ddp.main_path('a')")]
