"""Files of one name: what every rank writes, who asks for them too early, and what is written while others read it."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.judge import judged
from tests.judge.trained import result

_ALL = "every rank writes this file"
_ANEW = "other ranks may still be reading the file of this folder that rank 0 writes here"
_OTHER = "each rank reads a file of another name here: the time is in it"
_HEAD = "import glob, lib, os\nimport h5py\nfrom PIL import Image\nfrom pathlib import Path\n"


def _said(last: str) -> list[str]:
    return [f.words for f in judge.faults(result(last=_HEAD + last))]


def _early(last: str) -> bool:
    """Whether every rank comes to what rank 0 may still be writing, by the file itself or by the order of what is done with it."""
    return any(w.startswith("rank 0 may still be writing ") for w in _said(last))


@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        ("Image.fromarray(net(torch.rand(3)).numpy()).resize(3).save('a.png')", True),
        ("lib.Thing(net(torch.rand(3))).save('a.obj')", True),
        ("lib.Thing().mesh.export(path='a.obj')", True),
        ("import cProfile\ncProfile.Profile().dump_stats('a.prof')", True),
        ("import soundfile\nsoundfile.write('a.wav', [3.0], 8000)", True),
        ("import sys\nsys.stdout.write('a/b')", False),
        ("with lib.open('a.txt', 'a') as f:\n    f.write(3)", True),
        ("lib.Thing('a', mode='wb')", True),
        ("lib.Thing(f'{lib.folder()}/a.txt', 'x')", True),
        ("lib.thing(mode='w', suffix='.txt')\nlib.thing('a.txt', 'x')", False),
        ("import re\nre.sub('a.txt', 'x', lib.text())", False),
        ("import tempfile\nfile, path = tempfile.mkstemp()\nos.fdopen(file, 'w')", False),
        ("lib.File(lib.folder(), 'r+')", True),
        ("np.memmap('a.bin', mode='w+', shape=(3,))", True),
        ("with ddp.main_only(lib.open, 'a.txt', 'a') as f:\n    f.write(3)", False),
        ("if ddp.is_main():\n    lib.open('a.txt', 'w')", False),
        ("lib.open(f'{os.getpid()}.txt', 'w')", False),
        ("lib.open('a.txt', 'r')", False),
        ("lib.open('a.txt', 'wide')", False),
        ("lib.plot([3.0], 'x')\nlib.plot(torch.rand(3), 'x')\nlib.plot('b', 'x')", False),
        ("lib.Thing().save(str(Path(os.environ['A']) / 'a'))", True),
        ("lib.Thing().save('{}.obj'.format(os.environ['A']))", True),
        ("if ddp.is_main():\n    lib.Thing().save('a.obj')", False),
        ("with ddp.main_first():\n    lib.Thing().save('a.obj')", False),
        ("lib.Thing().save(f'{os.getpid()}.obj')", False),
        ("lib.Thing().save('word')", False),
        ("lib.Thing().save(3)", False),
        ("lib.Thing().write('a.txt')", False),
        ("class Thing:\n    def save(self, path):\n        pass\nThing().save('a.obj')\nlib.Thing().save('a.obj')", True),
        ("class Thing:\n    def save(self, path):\n        pass\nThing().save('a.obj')\nlib.kept(Thing()).save('a.obj')", False),
        ("class Data(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        lib.Thing().keep('a.obj')\nData()[0]", False),
    ],
)
def test_what_is_named_like_saving(last: str, wrong: bool) -> None:
    assert (_ALL in _said(last)) is wrong


@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        ("import time\nimport pandas as pd\npd.read_csv(f'{time.time()}.csv')", True),
        ("import time\nimport pandas as pd\np = time.strftime('%d') + '.csv'\nopen(p).read()", True),
        ("import time\nimport pandas as pd\np = ddp.from_main(time.time())\npd.read_csv(f'{p}.csv')", False),
        ("import time\nimport pandas as pd\nif ddp.is_main():\n    pd.read_csv(f'{time.time()}.csv')", False),
        ("import time\nimport pandas as pd\nfor i in range(int(time.time()) * 0 + 2):\n    pd.read_csv('a.csv')", False),
    ],
)
def test_a_time_in_the_name_of_a_file_that_is_read(last: str, wrong: bool) -> None:
    assert (_OTHER in _said(last)) is wrong


@pytest.mark.parametrize(
    ("write", "ask"),
    [
        ("ddp.save(3, 'a.pt')", "os.path.getsize('a.pt')"),
        ("ddp.save(3, lib.P)", "os.path.exists(str(lib.P))"),
        ("if ddp.is_main():\n    lib.Thing().save('a.obj')", "lib.read_mesh('a.obj')"),
        ("if ddp.is_main():\n    Path('a').write_text('3')", "Path('a').read_text()"),
        ("if ddp.is_main():\n    os.rename('a', 'b')", "h5py.File('b')"),
        ("with open(ddp.main_path('x/a.txt'), 'w') as f:\n    f.write('3')", "os.listdir('x')"),
        ("f = ddp.main_only(h5py.File, 'a.h5', 'w')", "os.stat('a.h5')"),
        ("out = os.environ['OUT']\nddp.save(3, out + '/a.pt')", "for p in Path(out).iterdir():\n    pass"),
        ("class A:\n    def save(self):\n        ddp.save(3, self.p)\n    def size(self):\n        return os.stat(self.p)\na = A()\na.p = lib.P\na.save()", "a.size()"),
    ],
)
def test_questions(write: str, ask: str) -> None:
    assert _early(f"{write}\n{ask}")
    assert not _early(f"{write}\nddp.barrier()\n{ask}")
    assert not _early(f"{write}\nif ddp.is_main():\n" + "\n".join(f"    {line}" for line in ask.splitlines()))
    assert not _early(f"{ask}\n{write}" if "out" not in ask and "a.size" not in ask else "")


_LOOP = "for p in {over}:\n    x = np.load({read})\n    if ddp.is_main():\n        np.save({write}, x)"


@pytest.mark.parametrize(
    ("over", "read", "write", "wrong"),
    [
        ("glob.glob('a/*')", "p", "os.path.join('a', os.path.basename(p))", True),
        ("os.listdir('a')", "os.path.join('a', p)", "f'a/{p}'", True),
        ("os.listdir('a')", "os.path.join('a', p)", "f'b/{p}'", False),
        ("os.listdir('a')", "os.path.join('a', p)", "os.path.join('a', p)", True),
        ("Path('a').iterdir()", "p", "Path('a') / p.name", True),
        ("glob.glob('a/*')", "p", "os.path.join('b', os.path.basename(p))", False),
        ("glob.glob('a/*')", "p", "os.path.join('a', 'all.npy')", False),
    ],
)
def test_files_of_a_folder_that_are_written_anew(over: str, read: str, write: str, wrong: bool) -> None:
    assert (_ANEW in _said(_LOOP.format(over=over, read=read, write=write))) is wrong
    loop = _LOOP.format(over=over, read=read, write=write)
    assert _ANEW not in _said("if ddp.is_main():\n" + "\n".join(f"    {line}" for line in loop.splitlines()))


_ALONE = "some ranks may not come here: they ask for a file that rank 0 may have written by then"
_RECORDS = """\
def read(path):
    with open(path, 'rb') as f:
        past = f.read()
    ddp.barrier()
    return past


def write(path):
    {test}
        past = read(path)
    {more}with open(ddp.main_path(path), 'wb') as f:
        f.write(b'3')


write('a.txt')
"""


@pytest.mark.parametrize(
    ("test", "more", "wrong"),
    [
        pytest.param("if os.path.exists(path):", "", True, id="each rank asks"),
        pytest.param("if ddp.from_main(os.path.exists(path)):", "", False, id="rank 0 asks for all"),
        pytest.param("if os.path.exists(path):", "ddp.barrier()\n    ", False, id="they meet before it is written"),
        pytest.param("if not os.path.exists(path):\n        pass\n    else:", "", True, id="the other branch"),
        pytest.param("if os.path.exists('b.txt'):", "", False, id="another file"),
    ],
)
def test_asked_before_it_is_written(test: str, more: str, wrong: bool) -> None:
    assert any(s.startswith(_ALONE) for s in _said(_RECORDS.format(test=test, more=more))) is wrong


def test_a_rank_that_finds_none_leaves() -> None:
    early = "def past():\n    if not os.path.exists('a.txt'):\n        return None\n    ddp.barrier()\n    return 3\npast()\n"
    write = "if ddp.is_main():\n    lib.Thing().save('a.txt')"
    assert any(s.startswith(_ALONE) for s in _said(early + write))
    assert not any(s.startswith(_ALONE) for s in _said(early + "ddp.barrier()\n" + write))


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        pytest.param("Path(writer.get_logdir()) / 'a.pt'", True, id="a folder that its method gives"),
        pytest.param("writer.log_dir + '/a.pt'", True, id="one that it has"),
        pytest.param("ddp.from_main(Path(writer.get_logdir()) / 'a.pt')", False, id="rank 0's for all"),
        pytest.param("Path('runs') / 'a.pt'", False, id="one that all have"),
    ],
)
def test_a_file_is_read_whose_path_rank_0_alone_has(path: str, wrong: bool) -> None:
    last = f"from torch.utils.tensorboard import SummaryWriter\nwriter = ddp.main_only(SummaryWriter, 'runs')\npath = {path}\nddp.save(net.state_dict(), path)\n"
    assert ("each rank reads a file of another name here: per rank: rank 0 alone" in " ".join(_said(last + "ddp.barrier()\ntorch.load(path)"))) is wrong


@pytest.mark.parametrize(
    ("write", "told"),
    [
        ("np.save(f'{i}.npy', 3)", True),
        ("torch.save(3, f'{i}.pt')", True),
        ("lib.read(f'{i}.npy')", False),
        ("if ddp.is_main():\n            np.save(f'{i}.npy', 3)", False),
    ],
)
def test_files_of_single_samples(write: str, told: bool) -> None:
    data = f"class Data(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        {write}\nData()[0]"
    sentences = judged(result(last=_HEAD + data)).assumed
    assert any("keeps a sample in a file of its own" in s for s in sentences) is told
