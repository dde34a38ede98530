"""What rank 0 does with files while other ranks may be reading them, or asking for them."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from tests.judge.trained import result

_EARLY = "rank 0 may still be writing or removing what this reads or asks for: barrier() is missing"
_HASTY = "another rank may still be reading what rank 0 writes or removes here: barrier() is missing"
_OVERTAKEN = "rank 0 writes or removes what this asks for before another rank may have asked: from_main() is missing"
_HEAD = """\
import glob, json, os, shutil
from pathlib import Path
out = os.environ['OUT']
class Saver:
    def __init__(self, folder):
        self.folder = folder
        self.last = os.path.join(folder, 'last.pt')
    def path(self, epoch):
        return os.path.join(self.folder, f'epoch_{epoch}.pt')
    def save(self):
        ddp.save(net.state_dict(), self.last)
    def save_one(self, epoch):
        ddp.save(net.state_dict(), self.path(epoch))
    def newest(self):
        return sorted(os.listdir(self.folder))[-1]
    def load(self):
        return torch.load(self.last)
def write(path):
    if ddp.is_main():
        np.save(path, 3)
def write_some(folder):
    for i in range(3):
        if ddp.is_main():
            np.save(os.path.join(folder, f'{i}.npy'), i)
def remove(path):
    if ddp.is_main():
        os.remove(path)
def read(path):
    return np.load(path)
"""


def _said(last: str) -> set[str]:
    return {f.words for f in judge.faults(result(last=_HEAD + last))} & {_EARLY, _HASTY, _OVERTAKEN}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("write('a.npy')", "x = read('a.npy')"),
        ("write(os.path.join(out, 'a.npy'))", "x = read(out + '/a.npy')"),
        ("write(f'{out}/{epoch}.npy')", "x = glob.glob(os.path.join(out, '*.npy'))\nprint(len(x))"),
        ("write(f'{out}/{epoch}.npy')", "x = os.listdir(out)"),
        ("write_some('out/parts')", "x = np.load('out/parts/1.npy')"),
        ("write_some('out/parts')", "import torchvision\nx = torchvision.datasets.ImageFolder('out')"),
        ("write_some(out)", "x = read(os.path.join(out, '1.npy'))"),
        ("write(f'{out}/cat/{epoch}.npy')", "import torchvision\nx = torchvision.datasets.ImageFolder(out)"),
        ("write(f'{out}/cat/{epoch}.npy')", "from torchvision.datasets import DatasetFolder\nx = DatasetFolder(root=out, loader=np.load)"),
        ("write(f'{out}/{epoch}.npy')", "for n in os.listdir(out):\n    x = np.load(os.path.join(out, n))"),
        ("write(Path(out) / 'a.npy')", "x = np.load('{}/a.npy'.format(out))"),
        ("remove('a.npy')", "if os.path.exists('a.npy'):\n    ddp.barrier()"),
        ("if ddp.is_main():\n    shutil.rmtree(out)", "x = np.load(os.path.join(out, 'parts', 'a.npy'))"),
        ("if ddp.is_main():\n    os.rename(out, 'old')", "x = np.load('old/a.npy')"),
        ("if ddp.is_main():\n    Path(out, 'a').touch()", "x = Path(out, 'a').stat()"),
        ("saver = Saver(out)\nsaver.save()", "x = saver.load()"),
        ("saver = Saver(out)\nsaver.save_one(3)", "x = saver.newest()"),
        ("saver = Saver(out)\nsaver.save_one(3)", "x = torch.load(os.path.join(out, 'epoch_3.pt'))"),
        ("log = open(ddp.main_path('a.json'), 'w')\njson.dump([3], log)\nlog.close()", "x = json.load(open('a.json'))"),
    ],
)
def test_reading_what_rank_0_has_just_written(first: str, then: str) -> None:
    assert _said(f"{first}\n{then}") == {_EARLY}
    assert _said(f"{first}\nddp.barrier()\n{then}") == set()
    assert _said(f"{first}\nn = ddp.from_main(3)\n{then}") == set()


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("x = read('a.npy')", "write('a.npy')"),
        ("x = read('a.npy')", "remove('a.npy')"),
        ("found = sorted(ddp.from_main(list(Path(out).glob('*.pt'))), key=lambda p: p.stat().st_mtime)", "if ddp.is_main():\n    found[0].unlink()"),
        ("found = list(ddp.from_main(glob.glob(out + '/*.pt')))\nfound.sort(key=lambda p: os.path.getmtime(p))", "if ddp.is_main():\n    os.remove(found[0])"),
        ("found = ddp.from_main(glob.glob(out + '/*.pt'))\nx = list(map(lambda p: torch.load(p), found))", "if ddp.is_main():\n    os.remove(found[0])"),
        ("name = 'a.npy'\nx = read(name)", "write(name.replace('.txt', '.npy'))"),
        ("x = read(f'{out}/a.npy')", "write(f'{out}/a.txt'.replace('.txt', '.npy'))"),
        ("x = list(os.scandir(out))", "remove(os.path.join(out, 'a.npy'))"),
        ("x = np.load(os.path.join(out, 'parts', 'a.npy'))", "if ddp.is_main():\n    shutil.rmtree(out)"),
        ("saver = Saver(out)\nx = saver.load()", "saver.save()"),
        ("with ddp.main_first():\n    x = read('a.npy')", "write('a.npy')"),
        ("x = open('a.json').read()", "if ddp.is_main():\n    os.replace('b.json', 'a.json')"),
    ],
)
def test_writing_what_others_may_still_be_reading(first: str, then: str) -> None:
    assert _said(f"{first}\n{then}") == {_HASTY}
    assert _said(f"{first}\nddp.barrier()\n{then}") == set()


@pytest.mark.parametrize(
    ("question", "then"),
    [
        ("os.path.exists('a.npy')", "write('a.npy')"),
        ("len(glob.glob(os.path.join(out, '*.npy')))", "write(os.path.join(out, 'b.npy'))"),
        ("sorted(os.listdir(out))", "remove(os.path.join(out, 'a.npy'))"),
        ("Path(out, 'a.npy').exists()", "remove(os.path.join(out, 'a.npy'))"),
    ],
)
def test_answers_that_come_too_late(question: str, then: str) -> None:
    assert _said(f"there = {question}\n{then}\nif there:\n    print(3)") == {_OVERTAKEN}
    assert _said(f"there = ddp.from_main({question})\n{then}\nif there:\n    print(3)") == set()


@pytest.mark.parametrize(
    "last",
    [
        "write('a.npy')\nx = read('b.npy')",
        "write(os.path.join(out, 'a.npy'))\nx = os.listdir(os.environ['IN'])",
        "write('a.npy')\nif os.path.exists('a.npy') and ddp.is_main():\n    os.remove('a.npy')",
        "if os.path.exists('a.npy'):\n    if ddp.is_main():\n        os.remove('a.npy')",
        "for old in glob.glob('*.npy'):\n    if ddp.is_main():\n        os.remove(old)",
        "if not os.path.exists(out):\n    os.makedirs(out, exist_ok=True)\nwrite(os.path.join(out, 'a.npy'))",
        "with ddp.main_first():\n    if not os.path.exists('a.npy'):\n        np.save('a.npy', 3)\nx = read('a.npy')",
        "if ddp.is_main():\n    np.save('a.npy', 3)\n    x = np.load('a.npy')",
        "write(out)\nx = read(os.environ['IN'])",
        "name = 'a.txt'\nx = read(name)\nwrite(name.replace('.txt', '.npy'))",
        "x = read(f'{out}/a.txt')\nwrite(f'{out}/a.txt'.replace('.txt', '.npy'))",
    ],
)
def test_what_is_in_order(last: str) -> None:
    assert _said(last) == set()


def test_a_loop_that_trains_is_a_meeting() -> None:
    loop = "for epoch in range(3):\n    for x, y in loader:\n        nn.functional.cross_entropy(model(x), y).backward()\n"
    assert _said(f"x = torch.load('last.pt')\n{loop}    ddp.save(net.state_dict(), 'last.pt')") == set()
    assert _said(f"{loop}    ddp.save(net.state_dict(), 'last.pt')\nx = torch.load('last.pt')") == {_EARLY}


@pytest.mark.parametrize("made", ["os.makedirs(out, exist_ok=True)", "Path(out, 'parts').mkdir(exist_ok=True)"])
def test_a_folder_that_is_removed_and_made(made: str) -> None:
    words = "rank 0 may still be removing a folder where this makes one: barrier() is missing"
    removed = "if ddp.is_main():\n    shutil.rmtree(out)"

    def said(last: str) -> set[str]:
        return {f.words for f in judge.faults(result(last=_HEAD + last))} & {words, _HASTY}

    assert said(f"{removed}\n{made}") == {words}
    assert said(f"{removed}\nddp.barrier()\n{made}") == set()
    assert said(f"{removed}\nos.makedirs(os.environ['IN'], exist_ok=True)") == set()
    assert said(f"{made}\n{removed}") == {_HASTY}


_RUN = "import subprocess, sys\ndef score(path):\n    return float(subprocess.run([sys.executable, 'score.py', path], capture_output=True).stdout)\n"


@pytest.mark.parametrize(
    "then",
    [
        "score(path)",
        "subprocess.check_output(f'python score.py {path}', shell=True)",
        "command = ['wc', '-l', path]\nsubprocess.check_output(command)",
        "os.popen('wc -l %s' % path).read()",
    ],
)
def test_a_command_may_read_what_it_is_told(then: str) -> None:
    first = _RUN + "path = os.path.join(out, 'a.pt')\nddp.save(net.state_dict(), path)\n"
    assert _EARLY in _said(first + then)
    assert _EARLY not in _said(f"{first}ddp.barrier()\n{then}")
    assert _EARLY not in _said(f"{first}if ddp.is_main():\n    " + then.replace("\n", "\n    "))


def test_a_command_that_is_told_of_no_file() -> None:
    first = _RUN + "ddp.save(net.state_dict(), os.path.join(out, 'a.pt'))\n"
    assert _EARLY not in _said(first + "subprocess.check_output(['git', 'rev-parse', 'HEAD'])\nsubprocess.run([*sys.argv])\nscore('b.pt')")


_MADE = """
def make(path):
    np.save(path, 3)
def made(path):
    with ddp.main_first():
        {test}
    return np.load(path)
"""


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("if not os.path.exists(path):\n            make(path)", set()),
        ("if epoch and not os.path.isfile(path):\n            make(path)", set()),
        ("if os.path.exists(path):\n            pass\n        else:\n            make(path)", set()),
        ("if os.path.exists(path):\n            make(path)", {_HASTY}),
        ("if not os.path.exists('other.npy'):\n            make(path)", {_HASTY}),
        ("if epoch or not os.path.exists(path):\n            make(path)", {_HASTY}),
        ("make(path)", {_HASTY}),
    ],
)
def test_what_is_made_where_it_is_missing_is_not_made_while_others_read_it(test: str, said: set[str]) -> None:
    made = _MADE.format(test=test)
    assert _said(f"{made}\nx = made('a.npy')\ny = made('a.npy')") == said
    assert _said(f"{made}\nx = made('a.npy')\ny = made('b.npy')") == set()


def test_a_function_that_others_call_too_may_write_while_others_read() -> None:
    made = _MADE.format(test="if not os.path.exists(path):\n            make(path)")
    assert _said(f"{made}\nx = made('a.npy')\nwith ddp.main_first():\n    make('a.npy')") == {_HASTY}


_ANEW = """
def made(path, n):
    with ddp.main_first():
        if os.path.exists(path) and len(np.load(path)) >= n:
            rows = np.load(path)
        else:
            rows = np.zeros(n)
            np.save(path, rows)
    return rows
"""


def test_what_the_others_read_in_their_turn_is_not_made_anew_in_the_next() -> None:
    assert _said(f"{_ANEW}\nx = made('a.npy', 3)") == set()
    assert _said(f"{_ANEW}\nx = made('a.npy', 3)\ny = made('b.npy', 4)") == set()
    assert _said(f"{_ANEW}\nx = made('a.npy', 3)\ny = made('a.npy', 4)") == {_HASTY}
    assert _said(f"{_ANEW}\nx = made('a.npy', 3)\nddp.barrier()\ny = made('a.npy', 4)") == set()


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ("again = os.path.exists(out)\nos.makedirs(out, exist_ok=True)\nprint(again)", {_OVERTAKEN}),
        ("again = ddp.from_main(os.path.exists(out))\nos.makedirs(out, exist_ok=True)\nprint(again)", set()),
        ("again = os.path.exists(out)\nddp.barrier()\nos.makedirs(out, exist_ok=True)\nprint(again)", set()),
        ("if not os.path.exists(out):\n    os.makedirs(out, exist_ok=True)", set()),
        ("os.makedirs(out, exist_ok=True)\nagain = os.path.exists(out)\nprint(again)", set()),
    ],
)
def test_asking_for_a_folder_that_all_ranks_make_next(asks: str, said: set[str]) -> None:
    assert _said(asks) == said


_LOG = "import sys\nlog = open(ddp.main_path('log.csv'), {})\nlog.write('1')\n"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("'a' if 'more' in sys.argv else 'w'", set()),
        ("'w' if 'new' in sys.argv else 'x'", set()),
        ("{True: 'a', False: 'w'}['more' in sys.argv]", set()),
        ("'w' if 'new' in sys.argv else 'r'", {_EARLY}),
        ("'r'", {_EARLY}),
    ],
)
def test_a_file_that_is_opened_in_one_of_several_modes(mode: str, said: set[str]) -> None:
    """It is read where one of them reads."""
    assert _said(_LOG.format(mode)) == said


@pytest.mark.parametrize("mode", ["'a' if 'more' in sys.argv else 'w'", "'r' if 'old' in sys.argv else 'w'"])
def test_a_file_that_some_mode_writes_is_written(mode: str) -> None:
    assert _EARLY in _said(f"import sys\nif ddp.is_main():\n    f = open('log.csv', {mode})\nx = read('log.csv')")
