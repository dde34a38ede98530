"""DPM402: files that have just been written are read after a barrier."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused, whole

_SAVE = "torch.save(1, 'best.pt')"
_LOAD = "x = torch.load('best.pt', map_location='cpu')"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": _LOAD}, id="nothing is saved here"),
        pytest.param({"before": _LOAD, "end": _SAVE}, id="before training"),
        pytest.param({"epoch_end": _SAVE, "end": "import lib\nlib.load('other.pt')"}, id="another library's load of another file"),
        pytest.param({"epoch_end": _SAVE, "end": "print('torch.load(p)')  # torch.load(p)"}, id="in a string and a comment"),
        pytest.param({"epoch_end": _SAVE, "defs": "def load(p):\n    return torch.load(p)", "before": "load('a')"}, id="a function called before training"),
        pytest.param({"epoch_end": _SAVE, "defs": "def load(p):\n    return load(torch.load(p))"}, id="a function that only calls itself"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM402", **parts) == []


@pytest.mark.parametrize(
    ("imports", "load"),
    [
        pytest.param("", _LOAD, id="full name"),
        pytest.param("from torch import load as read", "x = read(f='best.pt', map_location='cpu')", id="from-import with alias, keyword"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_after_training(imports: str, load: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "epoch_end": _SAVE, "end": load, "module_level": module_level}
    assert len(found("DPM402", **parts)) == 1
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(load) - 1] == "ddp.barrier()"


def test_in_the_epoch_loop_and_once_a_statement() -> None:
    parts = {"epoch_end": f"{_SAVE}\nx = torch.load('a', map_location='cpu'), torch.load('b', map_location='cpu')"}
    assert len(found("DPM402", **parts)) == 1
    assert after(**parts) == ["ddp.save(1, 'best.pt')", "ddp.barrier()"]


def test_above_the_training_in_the_loop() -> None:
    assert found("DPM402", epoch_start=_LOAD, epoch_end=_SAVE) == ["torch.load('best.pt', map_location='cpu')"]


def test_in_a_function_and_a_method() -> None:
    defs = "class T:\n    def best(self, p):\n        return torch.load(p)\ndef best(p):\n    return T().best(p)"
    assert found("DPM402", epoch_end=_SAVE, defs=defs, end="best('a')") == ["torch.load(p)"]


def test_a_function_that_trains_first() -> None:
    defs = "def run(loss):\n    def later():\n        pass\n    loss.backward()\n    return torch.load('a')"
    assert found("DPM402", defs=defs, step="optimizer.zero_grad()\nrun(F.cross_entropy(model(x), y))\noptimizer.step()", end=_SAVE) == ["torch.load('a')"]


def test_training_in_the_other_branch() -> None:
    defs = "def run(loss, a):\n    if a:\n        loss.backward()\n    else:\n        torch.load('a')"
    assert found("DPM402", defs=defs, before="run(torch.ones(1), 0)", end=_SAVE) == []


def test_the_question_whether_the_file_is_there_comes_after_the_barrier() -> None:
    """Otherwise a rank that does not see it yet would not come to the barrier."""
    ask = "if os.path.exists('best.pt'):"
    lines = [one.strip() for one in whole(epoch_end=_SAVE, end=f"{ask}\n    {_LOAD}").splitlines()]
    assert lines[lines.index(ask) - 1] == "ddp.barrier()" and lines.count("ddp.barrier()") == 1
    lines = [one.strip() for one in whole(epoch_end=_SAVE, end=f"if epoch:\n    {_LOAD}").splitlines()]
    assert lines[lines.index(_LOAD) - 1] == "ddp.barrier()"


_STATISTICS = """\
def statistics(train):
    if train:
        x = torch.ones(2)
        torch.save(x, path + 'mean.pt')
    else:
        x = torch.load(path + '{name}.pt', map_location='cpu')
    return x
path = 'data/'
"""


@pytest.mark.parametrize(
    ("calls", "name", "waits"),
    [
        pytest.param("print(statistics(True), statistics(False))", "mean", True, id="saved in one call, loaded in the next"),
        pytest.param("print(statistics(False), statistics(True))", "mean", False, id="loaded first"),
        pytest.param("print(statistics(True), statistics(False))", "other", False, id="another file"),
    ],
)
def test_a_function_that_saves_in_one_call_and_loads_in_another(calls: str, name: str, waits: bool) -> None:
    """The text does not tell which comes first: the execution on paper does."""
    lines = [one.strip() for one in whole(defs=_STATISTICS.format(name=name), setup=calls).splitlines()]
    load = next(i for i, one in enumerate(lines) if "torch.load" in one)
    assert (lines[load - 1] == "ddp.barrier()") is waits


def test_what_only_some_ranks_load_is_not_waited_for() -> None:
    defs = "def keep(save):\n    if save:\n        torch.save(1, 'a')\n    else:\n        torch.load('a')"
    assert found("DPM402", defs=defs, setup="keep(True)\nif random() > 0.5:\n    keep(False)", imports="from random import random") == []


_FILES = "import imageio, json\nimport numpy as np\nfrom pathlib import Path\nfrom matplotlib import pyplot as plt"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"epoch_end": "plt.savefig('a.png')", "end": "x = np.load('b.npy')"}, id="another file"),
        pytest.param({"setup": "x = np.load('a.npy')", "end": "np.save('a.npy', 3)"}, id="read before"),
        pytest.param({"epoch_end": "np.save(p(), 3)", "end": "x = np.load(p())"}, id="a path of which nothing is known"),
        pytest.param({"epoch_end": "np.save('a.npy', 3)", "end": "np.save('b.npy', np.load('a.npy'))"}, id="rank 0 alone reads"),
        pytest.param({"defs": "def get():\n    return np.load('a.npy')", "end": "np.save('a.npy', 3)"}, id="a function that nothing calls"),
        pytest.param({"setup": "if not os.path.exists('a.npy'):\n    np.save('a.npy', 3)\nx = np.load('a.npy')"}, id="a cache: DPM516"),
        pytest.param(
            {"setup": "if os.path.exists('a.npy'):\n    x = np.load('a.npy')\nelse:\n    x = 3\n    np.save('a.npy', x)"}, id="a cache that is read there"
        ),
        pytest.param({"end": "x = np.load('a.npy')\nos.system('make plots')"}, id="a command that comes after it"),
        pytest.param({"defs": "def make():\n    os.system('make data')", "end": "make()\nx = np.load('a.npy')"}, id="a command of another function"),
        pytest.param({"setup": "import h5py\nf = h5py.File('a', 'w')"}, id="only written"),
        pytest.param({"end": "np.save('a.npy', 3)\nx = np.load()"}, id="nothing is read"),
    ],
)
def test_no_file_of_its_own(parts: dict[str, str]) -> None:
    assert found("DPM402", imports=_FILES, **parts) == []


@pytest.mark.parametrize(
    ("write", "read"),
    [
        pytest.param("plt.savefig('e.png')", "x = plt.imread('e.png')", id="a plot"),
        pytest.param("plt.savefig(fname='e%d.png' % epoch)", "x = [imageio.imread(f'e{i}.png') for i in range(3)]", id="formats, keyword"),
        pytest.param("plt.savefig('e{}.png'.format(epoch))", "x = imageio.imread('e' + str(epoch) + '.png')", id="format and sum"),
        pytest.param("np.save(os.path.join(out, 'a.npy'), 3)", "x = np.load(os.path.join(out, 'a.npy'))", id="join"),
        pytest.param("np.save(Path(out) / 'a.npy', 3)", "x = np.load(f'{out}/a.npy')", id="pathlib"),
        pytest.param("with open(log, 'w') as f:\n    f.write('')", "x = json.load(open(log))", id="a variable"),
        pytest.param(
            "with open('out/log.json', 'a') as f:\n    f.write('')", "with open(log) as f:\n    x = json.load(f)", id="a variable that holds it, with"
        ),
        pytest.param("Path('a').write_text('3')", "x = Path('a').read_text()", id="methods"),
        pytest.param("np.save(args.out, 3)", "x = np.load(args.out)", id="a setting"),
        pytest.param("np.save(place('a'), 3)", "x = np.load(place('a'))", id="a path that a function of the program makes"),
        pytest.param("np.save(a, 3)", "x = np.load(a)", id="one of two that a function gives"),
    ],
)
def test_a_file_that_the_program_has_written(write: str, read: str) -> None:
    before = "import argparse\nargs = argparse.Namespace(out='a')\nout = 'out'\nlog = f'{out}/log.json'\na, b = two()"
    defs = "def place(name):\n    return os.path.join('out', name)"
    text = whole(imports=_FILES, defs=defs, before=before, epoch_end=write, end=read)
    lines = [one.strip() for one in text.splitlines()]
    first = read.partition("\n")[0]
    assert lines[lines.index(first) - 1] == "ddp.barrier()" and lines.count("ddp.barrier()") == 1


def test_archives() -> None:
    parts = {"imports": "import h5py", "epoch_end": "f = h5py.File('a.h5', 'w')", "end": "x = h5py.File('a.h5', 'r')"}
    assert found("DPM402", **parts) == ["h5py.File('a.h5', 'r')"]


def test_all_ranks_wait_once_before_a_loop_that_reads() -> None:
    read = "x = []\nfor i in range(3):\n    x.append(imageio.imread('e%d.png' % i))"
    lines = [one.strip() for one in whole(imports=_FILES, epoch_end="plt.savefig('e%d.png' % epoch)", end=read).splitlines()]
    assert lines[lines.index("for i in range(3):") - 1] == "ddp.barrier()"
    text = whole(imports=_FILES, epoch_end="plt.savefig('e%d.png' % epoch)", end=read, module_level=True)
    assert "ddp.barrier()\nfor i in range(3):" in text


def test_and_in_each_turn_of_a_loop_that_writes() -> None:
    lines = [
        one.strip()
        for one in whole(
            imports=_FILES, defs="def put():\n    plt.savefig('e.png')", end="for i in range(3):\n    x = plt.imread('e.png')\n    put()"
        ).splitlines()
    ]
    assert lines[lines.index("x = plt.imread('e.png')") - 1] == "ddp.barrier()"


def test_in_a_function_and_in_the_epochs() -> None:
    defs = "def show(p):\n    plt.savefig(p)\n    return plt.imread(p)"
    assert found("DPM402", imports=_FILES, defs=defs, epoch_end="show('a.png')") == ["plt.imread(p)"]


def test_a_test_on_the_way_is_decided_together() -> None:
    lines = after(imports=_FILES, epoch_end="plt.savefig('a.png')\nif loss.item() < 3:\n    x = plt.imread('a.png')")
    assert lines == ["if ddp.is_main():", "if ddp.from_main(loss.item() < 3):", "ddp.barrier()"]


@pytest.mark.parametrize("command", [pytest.param("os.system('make data')", id="system"), pytest.param("subprocess.run(['make'])", id="subprocess")])
def test_a_command_may_write_any_file(command: str) -> None:
    lines = [one.strip() for one in whole(imports=f"{_FILES}\nimport subprocess", end=f"{command}\nx = np.load('a.npy')").splitlines()]
    here = lines.index("x = np.load('a.npy')")
    assert lines[here - 3 : here] == ["if ddp.is_main():", command, "ddp.barrier()"]


_SHOWN = """
val_loader = DataLoader(val_set, batch_size=16)
with torch.no_grad():
    for a, b in val_loader:
        out = model(a)
        {line}
"""


@pytest.mark.parametrize(
    ("defs", "line", "said"),
    [
        ("def show(p):\n    plt.savefig(p)", "show('a.png')", []),
        ("def show(p):\n    return plt.imread(p)", "show('a.png')", []),
        ("def show(p):\n    plt.savefig(p)\n    return plt.imread(p)", "show('a.png')", ["plt.imread(p)"]),
        ("", "plt.savefig('a.png'); x = plt.imread('a.png')", ["plt.imread('a.png')"]),
        ("", "x = plt.imread('b.png'); plt.savefig('a.png')", []),
    ],
)
def test_in_a_loop_over_batches_is_no_place_to_wait(defs: str, line: str, said: list[str]) -> None:
    assert refused("DPM402", imports=_FILES, defs=defs, end=_SHOWN.format(line=line)) == said


def test_the_file_of_the_epoch_before_in_a_step() -> None:
    parts = {"epoch_end": "np.save('a.npy', 3)", "step": f"z = np.load('a.npy')\n{STEP}"}
    assert refused("DPM402", imports=_FILES, **parts) == ["np.load('a.npy')"]


_RECORD = """
def record(value, path='best.json'):
    best = 0
    if os.path.exists(path):
        with open(path) as f:
            best = json.load(f)
{between}
    if value > best:
        with open({path}, 'w') as f:
            json.dump(value, f)
"""


@pytest.mark.parametrize(
    ("between", "path", "told"),
    [
        pytest.param("", "path", ["open(path)"], id="anew"),
        pytest.param("", "'last.json'", [], id="another file"),
        pytest.param("    if best:\n        return", "path", ["open(path)"], id="perhaps"),
        pytest.param("            return", "path", [], id="where it is read nothing is written"),
        pytest.param("    loss.backward()", "path", [], id="after training"),
    ],
)
def test_a_record_that_is_read_and_written_anew(between: str, path: str, told: list[str]) -> None:
    """A rank may read it while rank 0 writes; a barrier would need that all ranks decide alike, so none is written."""
    parts = {"imports": _FILES, "defs": _RECORD.format(between=between, path=path), "epoch_end": "record(loss.item())"}
    assert found("DPM402", **parts) == told
    assert not told or "ddp.barrier()" not in whole(**parts)


_RECORDS = """
class Records:
    def __init__(self, path):
        self.path = path
        if os.path.exists(self.path):
            with open(self.path) as f:
                self.rows = json.load(f)
    def add(self, row):
        with open({path}, 'w') as f:
            json.dump(row, f)
"""


@pytest.mark.parametrize(
    ("path", "before", "end", "waits"),
    [
        pytest.param("self.path", "r = Records('a.json')\nr.add(1)", "", 1, id="before training"),
        pytest.param("self.path", "r = Records('a.json')\nif epochs:\n    r.add(1)", "", 1, id="perhaps"),
        pytest.param("self.path", "r = Records('a.json')", "r.add(1)", 0, id="after training"),
        pytest.param("'other.json'", "r = Records('a.json')\nr.add(1)", "", 0, id="another file"),
    ],
)
def test_a_file_that_another_function_writes_anew(path: str, before: str, end: str, waits: int) -> None:
    defs = _RECORDS.format(path=path)
    lines = whole(imports=_FILES, defs=defs, before=f"epochs = 3\n{before}", end=end).splitlines()
    stripped = [one.strip() for one in lines]
    assert stripped.count("ddp.barrier()") == waits
    if waits:
        assert lines[stripped.index("ddp.barrier()")].startswith("        ddp")
        assert stripped[stripped.index("ddp.barrier()") - 1] == "self.rows = json.load(f)"


@pytest.mark.parametrize(("paths", "waits"), [(("'a.npz'", "'a.npz'"), 1), (("'a.npz'", "'b.npz'"), 0)])
def test_a_path_that_functions_are_given(paths: tuple[str, str], waits: int) -> None:
    defs = "def keep(path, x):\n    np.savez(path, x=x)\ndef value(path):\n    return np.load(path)['x'].mean()"
    parts = {"imports": _FILES, "defs": defs, "end": f"keep({paths[0]}, 3)\nprint(value({paths[1]}))"}
    assert len(found("DPM402", **parts)) == waits
    assert whole(**parts).count("ddp.barrier()") == waits


@pytest.mark.parametrize(
    ("find", "imports"),
    [
        pytest.param("latest = max(glob.glob('*.pt'), key=os.path.getmtime)", "import glob", id="glob"),
        pytest.param("latest = sorted(os.listdir('.'))[-1]", "import glob", id="listdir"),
        pytest.param("latest = sorted(Path('.').glob('*.pt'))[-1]", "from pathlib import Path", id="a method"),
    ],
)
def test_ranks_list_checkpoints_when_all_are_there(find: str, imports: str) -> None:
    """A rank that lists before rank 0 has written would load another file."""
    end = f"{find}\nx = torch.load(latest, map_location='cpu')"
    lines = [one.strip() for one in whole(imports=imports, epoch_end=_SAVE, end=end).splitlines()]
    assert lines[lines.index(find) - 1] == "ddp.barrier()"
    before = [one.strip() for one in whole(imports=imports, before=end, end=_SAVE).splitlines()]
    assert "ddp.barrier()" not in before


def test_a_listing_without_a_checkpoint_is_not_waited_for() -> None:
    assert "ddp.barrier()" not in whole(imports="import glob", epoch_end=_SAVE, end="print(len(glob.glob('*.png')))")


_QUESTIONS = "import glob, lib, os\nfrom pathlib import Path\nfrom lib import out"


@pytest.mark.parametrize(
    ("write", "ask"),
    [
        pytest.param(_SAVE, "x = os.path.getsize('best.pt')", id="its size"),
        pytest.param(_SAVE, "x = lib.load('best.pt')", id="another library's load"),
        pytest.param("torch.save(1, lib.P)", "print(os.stat(lib.P))", id="a path that is not known"),
        pytest.param("p = Path(out) / 'a'\ntorch.save(1, p)", "x = p.stat().st_size", id="a method of the path"),
        pytest.param("torch.save(1, os.path.join(out, 'a'))", "x = len(os.listdir(out))", id="its folder"),
        pytest.param("torch.save(1, f'{out}/a')", "x = sorted(glob.glob(os.path.join(out, '*')))", id="files of its folder"),
        pytest.param("with open('a/b.txt', 'w') as f:\n    f.write('3')", "x = list(Path('a').iterdir())", id="a folder with a name"),
        pytest.param("lib.Thing().save('a.obj')", "x = os.path.getmtime('a.obj')", id="of a class that no table knows"),
        pytest.param("Path('a').write_text('3')", "if os.path.exists('a'):\n    x = 3", id="in a test"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_questions_about_a_file(write: str, ask: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": _QUESTIONS, "end": f"{write}\n{ask}", "module_level": module_level}
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(ask.splitlines()[0]) - 1] == "ddp.barrier()"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(f"x = os.path.exists('best.pt')\n{_SAVE}", id="before it is written"),
        pytest.param(f"{_SAVE}\nx = os.path.exists('other.pt')", id="another file"),
        pytest.param("torch.save(1, lib.a())\nx = os.path.exists(lib.b())", id="paths of which nothing is known"),
        pytest.param(f"{_SAVE}\nif lib.ask():\n    pass\nelif os.path.exists('best.pt'):\n    print(3)", id="perhaps an elif"),
        pytest.param(f"{_SAVE}\nwhile not os.path.exists('best.pt'):\n    pass", id="asked in each turn"),
    ],
)
def test_no_question_about_it(end: str) -> None:
    assert found("DPM402", imports=_QUESTIONS, end=end) == []


_TABLE = """\
import json
from pathlib import Path
PATH = Path("table.json")
class Table:
    def __init__(self, rows):
        self.rows = rows
    @classmethod
    def load(cls):
        with open(PATH) as f:
            return cls(json.load(f))
    def save(self, path):
        with open(path, "w") as f:
            json.dump(self.rows, f)
"""
_MADE = "if PATH.is_file():\n    table = Table.load()\nelse:\n    table = Table([1, 2])\n    table.save(PATH)"


@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_what_rank_0_makes_first_is_there_when_the_others_read_it(module_level: bool) -> None:
    """Under main_first() a barrier in the method that reads would wait for ranks that wait for rank 0; the file is written elsewhere as well."""
    parts: dict[str, str | bool] = {"defs": _TABLE, "setup": _MADE, "end": "table.save(Path('runs') / 'table.json')", "module_level": module_level}
    assert found("DPM402", **parts) == []
    assert found("DPM511", **parts) == []
    assert found("DPM516", **parts) == ["PATH.is_file()"]


@pytest.mark.parametrize(("made", "waits"), [("io.BytesIO()", False), ("'a.png'", True)])
def test_a_picture_in_memory_is_each_rank_s_own(made: str, waits: bool) -> None:
    """Nobody has to wait for what is written into memory, nor is it left to rank 0: the others would read nothing."""
    imports = "import io\nimport matplotlib.pyplot as plt\nfrom PIL import Image"
    defs = f"def picture(x):\n    plt.imshow(x)\n    held = {made}\n    plt.savefig(held)\n    return Image.open(held)"
    step = STEP + "if epoch == 1:\n    shown = picture(x[0].reshape(2, 4))\n"
    assert bool(refused("DPM402", imports=imports, defs=defs, step=step)) is waits
    if not waits:
        assert "    plt.savefig(held)\n    return" in whole(imports=imports, defs=defs, step=step)
