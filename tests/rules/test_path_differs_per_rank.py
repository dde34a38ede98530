"""DPM506: names that are made from the time."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from dpmigrate.rules.path_differs_per_rank import path_differs_per_rank
from tests.pipeline import script
from tests.rules.program import STEP, after, found, hits, program, whole

_IMPORTS = "import datetime, shutil, tempfile, time, uuid\nimport matplotlib.pyplot as plt"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"setup": "start = time.time()", "end": "print(time.time() - start)"}, id="a duration"),
        pytest.param({"setup": "start = time.time()", "end": "torch.save({'t': time.time() - start}, 'a')"}, id="a duration that is saved"),
        pytest.param({"setup": "start = time.time()", "end": "t = time.time() - start\ntorch.save(t, 'a')"}, id="a duration with a name"),
        pytest.param({"end": "kept = {'w': 1, 't': time.strftime('x')}\ntorch.save(kept, 'a')"}, id="a time that is saved"),
        pytest.param({"end": "torch.save(obj=time.time(), f='a')"}, id="a time that is saved, by name"),
        pytest.param({"setup": "now = time.time()"}, id="not used at all"),
        pytest.param({"setup": "now = time.time()\nprint(now)"}, id="printed"),
        pytest.param({"epoch_end": "p = os.path.join('a', time.strftime('x'))"}, id="in the loop: written by rank 0"),
        pytest.param({"end": "plt.savefig(time.strftime('x'))"}, id="a file that only rank 0 writes"),
        pytest.param({"end": "shutil.copy('a', os.path.join('b', time.strftime('x')))"}, id="inside a statement of rank 0"),
        pytest.param({"end": "print('os.makedirs(time.time())')  # os.makedirs(time.time())"}, id="in a string and a comment"),
        pytest.param({"setup": "import lib\nos.makedirs(lib.time(), exist_ok=True)"}, id="another library's time"),
        pytest.param({"setup": "x = time.strftime('x').join(['a'])"}, id="it is the function that is called"),
        pytest.param({"setup": "f()(time.strftime('x'))", "defs": "def f():\n    return print"}, id="a function without a name"),
        pytest.param({"defs": "class D:\n    def __getitem__(self, i):\n        return open(time.strftime('x'))"}, id="in a worker process"),
        pytest.param({"setup": "line = ' '.join([time.strftime('x'), 'began'])\nsep = ','\nline = sep.join([time.strftime('x')])"}, id="a text"),
        pytest.param({"setup": "d = {}\nd['t'] = time.time()\nos.makedirs(d['u'], exist_ok=True)"}, id="another entry"),
        pytest.param({"setup": "for y in [time.time()]:\n    pass"}, id="not as a path"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM506", imports=_IMPORTS, **parts) == []


@pytest.mark.parametrize(
    ("line", "clock"),
    [
        pytest.param("p = os.path.join('a', time.strftime('x'))", "time.strftime('x')", id="joined"),
        pytest.param("os.makedirs(name=f'a{time.time()}', exist_ok=True)", "time.time()", id="keyword, f-string"),
        pytest.param("p = datetime.datetime.now().strftime('x')\nos.makedirs(p, exist_ok=True)", "datetime.datetime.now()", id="through a name"),
        pytest.param("p = str(uuid.uuid4())\nq = p + 'x'\nr = os.path.join('a', q)", "uuid.uuid4()", id="through two names"),
        pytest.param("vars()['t'] = str(time.time())\nos.makedirs(vars()['t'], exist_ok=True)", "time.time()", id="through an entry"),
        pytest.param("a = time.time()\nb = a\nc = b\nd = c\ne = d\nos.makedirs(str(e), exist_ok=True)", "time.time()", id="through many names"),
        pytest.param("p = tempfile.mkdtemp()\nos.makedirs(os.path.join(p, 'a'), exist_ok=True)", "tempfile.mkdtemp()", id="mkdtemp"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, clock: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": _IMPORTS, "setup": line, "module_level": module_level}
    assert found("DPM506", **parts) == [clock]
    assert after(**parts) == [line.split("\n")[0].replace(clock, f"ddp.from_main({clock})")]


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("run = Path('runs') / time.strftime('%H')", id="a path by /"),
        pytest.param("run = time.strftime('%H')\nout = Path('runs') / 'a' / run", id="a path by /, through a variable"),
        pytest.param("run = make_id()\nout = os.path.join('runs', run)", id="returned by a function"),
        pytest.param("out = Path('runs') / make_id()", id="returned by a function, by /"),
    ],
)
def test_other_ways_into_a_path(setup: str) -> None:
    assert found("DPM506", imports=_IMPORTS + "\nfrom pathlib import Path", defs="def make_id():\n    return time.strftime('%H')", setup=setup) == [
        "time.strftime('%H')"
    ]


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        pytest.param("import hydra", "hydra.main(config_path='conf')", id="called"),
        pytest.param("from hydra import main as configured", "configured()", id="from-import with alias"),
        pytest.param("import hydra", "hydra.main", id="not called"),
    ],
)
def test_the_folder_of_hydra_is_told(imports: str, decorator: str) -> None:
    defs = f"@{decorator}\ndef train(cfg):\n    F.cross_entropy(Net()(cfg.x), cfg.y).backward()"
    (hit,) = hits("DPM506", imports=imports, defs=defs)
    assert "hydra.run.dir=" in hit.advice and not hit.edits


def test_a_function_of_hydra_that_does_not_train() -> None:
    assert found("DPM506", imports="import hydra", defs="@hydra.main()\ndef show(cfg):\n    print(cfg)") == []


def test_a_class_method_makes_the_configuration() -> None:
    defs = (
        "class Options:\n    def __init__(self, args):\n        self.dir = os.path.join('runs', time.strftime('%H'))\n"
        "    @classmethod\n    def parsed(cls, args):\n        return cls(args)"
    )
    assert found("DPM506", imports=_IMPORTS, defs=defs, setup="options = Options.parsed([])") == ["time.strftime('%H')"]


def test_from_import_and_an_attribute() -> None:
    defs = "class T:\n    def __init__(self):\n        self.dir = now('x')\n        os.makedirs(self.dir, exist_ok=True)"
    parts = {"imports": "from time import strftime as now", "defs": defs, "before": "t = T()"}
    assert after(**parts) == ["self.dir = ddp.from_main(now('x'))"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step_end": "if loss.item() > 1.5:\n    note()"}, id="a function that some ranks call"),
        pytest.param({"end": "note()", "early": "    if time.time() % 2 > 1:\n        return\n"}, id="an early end"),
    ],
)
def test_no_exchange_where_not_all_ranks_come(parts: dict[str, str]) -> None:
    defs = "def note():\n" + parts.pop("early", "") + "    p = os.path.join('a', time.strftime('x'))\n    print(p)"
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()\n" + parts.pop("step_end", "")
    (one,) = hits("DPM506", imports=_IMPORTS, defs=defs, step=step, **parts)
    assert not one.edits and one.severity is Severity.WARNING


def test_a_test_for_the_data_that_ends_the_program_is_decided_together() -> None:
    setup = "data = os.path.abspath('.')\nif not os.path.exists(data):\n    exit(1)\nos.makedirs(time.strftime('x'), exist_ok=True)"
    assert after(imports=_IMPORTS, setup=setup) == ["if ddp.from_main(not os.path.exists(data)):", "os.makedirs(ddp.from_main(time.strftime('x')), exist_ok=True)"]


# ---------------------------------------------------------------------- the next free name
_FILES = "import glob, itertools, re\nfrom os import listdir\nfrom pathlib import Path"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("files = glob.glob('a/*')\nx = open(os.path.join('a', files[0]))", id="files that are read"),
        pytest.param("for f in os.listdir('a'):\n    x = open(os.path.join('a', f))", id="files that are read in turn"),
        pytest.param("n = len(os.listdir('a'))\nprint(n)", id="counted and shown"),
        pytest.param("f = os.listdir('a')\nf = f[: int(0.7 * len(f))]\nx = open(os.path.join('a', f[0]))", id="counted for a part of them"),
        pytest.param("n = len(os.listdir('a')) - 1\nassert n", id="counted and tested"),
        pytest.param("for k in range(2):\n    n = len(os.listdir(str(k)))\n    os.makedirs(f'b{n}', exist_ok=True)", id="counted in a loop"),
        pytest.param("while not os.path.exists('flag'):\n    pass", id="waiting for a file"),
        pytest.param("for d in ['a', 'b']:\n    if os.path.exists(d):\n        break", id="one of several places"),
        pytest.param("for k in range(3):\n    if os.path.exists(str(k)):\n        print(k)", id="a loop that goes on"),
        pytest.param("print(\"while os.path.exists('a'): i += 1\")  # while os.path.exists('a'): i += 1", id="in a string and a comment"),
        pytest.param("names = ' '.join(str(len(os.listdir('a'))))", id="a text"),
        pytest.param("n, *rest = os.listdir('a')", id="no number"),
        pytest.param("d = {}\nd['n'] = len(os.listdir('a'))", id="in a table"),
    ],
)
def test_listings_that_make_no_path(setup: str) -> None:
    assert found("DPM506", imports=_FILES, setup=setup) == []


def test_a_data_set_lists_its_files() -> None:
    defs = (
        "class D:\n    def __getitem__(self, i):\n        while os.path.exists(str(i)):\n            i += 1\n        return open(f'{len(os.listdir(str(i)))}')"
    )
    assert found("DPM506", imports=_FILES, defs=defs + "\n    def free(self):\n        return Path('a') / str(len(os.listdir('a')))") == []


@pytest.mark.parametrize(
    ("setup", "new"),
    [
        pytest.param("os.makedirs(f'run{len(os.listdir(\"a\"))}', exist_ok=True)", "os.makedirs(f'run{len(ddp.from_main(os.listdir(\"a\")))}', exist_ok=True)", id="counted"),
        pytest.param("n = len(listdir('a')) - 1\np = os.path.join('a', str(n))", "n = len(ddp.from_main(listdir('a'))) - 1", id="from-import"),
        pytest.param("n = max([int(f) for f in os.listdir(path='a')], default=0) + 1\np = 'a/%d' % n\nos.mkdir(p)", "n = max([int(f) for f in ddp.from_main(os.listdir(path='a'))], default=0) + 1", id="the highest number, keyword"),
        pytest.param("runs = sorted(glob.glob('a/*'))\nk = int(runs[-1][2:]) + 1 if runs else 0\nos.makedirs('a/%d' % k, exist_ok=True)", "runs = sorted(ddp.from_main(glob.glob('a/*')))", id="the last one"),
        pytest.param("p = Path('a') / str(len(list(Path('a').iterdir())))", "p = Path('a') / str(len(list(ddp.from_main(list(Path('a').iterdir())))))", id="pathlib"),
        pytest.param("_, dirs, _ = next(os.walk('a'))\np = os.path.join('a', str(len(dirs)))", "_, dirs, _ = next(iter(ddp.from_main(list(os.walk('a')))))", id="a walk"),
        pytest.param("ids = []\nfor f in os.listdir('a'):\n    ids.append(int(f))\np = os.path.join('a', str(max(ids)))", "for f in ddp.from_main(os.listdir('a')):", id="a list that is filled"),
        pytest.param("if os.path.exists('a'):\n    n = len(os.listdir('a'))\nelse:\n    n = 0\nos.makedirs(f'a/{n}', exist_ok=True)", "if ddp.from_main(os.path.exists('a')):|n = len(ddp.from_main(os.listdir('a')))", id="where the directory is there"),
        pytest.param("n = len(os.listdir('a')) if os.path.isdir('a') else 0\nos.makedirs(f'a/{n}', exist_ok=True)", "n = len(ddp.from_main(os.listdir('a'))) if ddp.from_main(os.path.isdir('a')) else 0", id="in one expression"),
        pytest.param("i = 0\nwhile os.path.exists(f'a/{i}'):\n    i += 1", "while ddp.from_main(os.path.exists(f'a/{i}')):", id="one after the other"),
        pytest.param("p = Path('a')\nwhile p.exists():\n    p = Path(str(p) + '_')", "while ddp.from_main(p.exists()):", id="pathlib, one after the other"),
        pytest.param("for i in itertools.count():\n    p = f'a/{i}'\n    if not os.path.isdir(p):\n        break", "if not ddp.from_main(os.path.isdir(p)):|if ddp.from_main(not os.path.isdir(p)):", id="counted up"),
        pytest.param("i = 0\nwhile True:\n    if os.path.exists(str(i)):\n        i += 1\n    else:\n        break", "if ddp.from_main(os.path.exists(str(i))):", id="the other branch ends it"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_the_next_free_name(setup: str, new: str, module_level: bool) -> None:
    lines = after(imports=_FILES, setup=setup, module_level=module_level)
    assert any(line in new.split("|") for line in lines), lines


def test_a_function_of_the_program_finds_the_name() -> None:
    defs = "def free(root):\n    return len(os.listdir(root))\ndef made(name, root):\n    os.makedirs(os.path.join(root, name), exist_ok=True)"
    assert "return len(ddp.from_main(os.listdir(root)))" in after(defs=defs, setup="made(str(free('a')), 'a')")


def test_an_attribute_holds_the_name() -> None:
    defs = "class Runs:\n    def __init__(self):\n        self.n = len(os.listdir('a'))\n    def path(self):\n        return os.path.join('a', str(self.n))"
    assert after(defs=defs, setup="r = Runs()\nprint(r.path())") == ["self.n = len(ddp.from_main(os.listdir('a')))"]


def test_where_not_all_ranks_come() -> None:
    assert not any(f.edits for f in hits("DPM506", imports="import lib", setup="if lib.now():\n    os.makedirs(f'a{len(os.listdir())}', exist_ok=True)"))


def test_where_an_exception_met_one_rank() -> None:
    setup = "try:\n    open('f')\nexcept OSError:\n    os.makedirs(f'a{len(os.listdir())}', exist_ok=True)"
    (hit,) = hits("DPM506", imports=_FILES, setup=setup)
    assert not hit.edits and "where all ranks come" in hit.advice


def test_a_folder_for_each_fold() -> None:
    steps = "".join(f"        {line}\n" for line in STEP.splitlines())
    fold = f"run = f'runs/{{time.time_ns()}}'\nos.makedirs(run, exist_ok=True)\nfor epoch in range(2):\n    for x, y in loader:\n{steps}"
    assert found("DPM506", imports="import time", epochs="for fold in range(2):", batches=fold, step="") == ["time.time_ns()"]


def test_a_clock_that_another_one_writes_down() -> None:
    line = "os.makedirs(time.strftime('%H', time.localtime()), exist_ok=True)"
    assert after(imports="import time", setup=line) == ["os.makedirs(ddp.from_main(time.strftime('%H', time.localtime())), exist_ok=True)"]


def test_a_time_that_is_one_of_several_arguments() -> None:
    """What else the function is given has no time in it."""
    defs = "def make(root, stamp, other):\n    print(stamp)\n    print(root)\n    os.makedirs(os.path.join(root, stamp), exist_ok=True)"
    assert found("DPM506", defs=defs, imports=_IMPORTS, setup="make('a', time.strftime('x'), 3)") == ["time.strftime('x')"]


def test_a_time_in_a_test() -> None:
    assert found("DPM506", imports=_IMPORTS, setup="if time.strftime('x') > 'y':\n    print(3)") == []


_FOLDER = "import tempfile\nfrom tempfile import TemporaryDirectory"
_INSIDE = "    p = os.path.join(d, 'best.pt')\n    torch.save(model.state_dict(), p)\n    model.load_state_dict(torch.load(p))"


@pytest.mark.parametrize("made", ["tempfile.TemporaryDirectory()", "TemporaryDirectory(prefix='run')"])
def test_a_checkpoint_in_a_temporary_directory_is_in_that_of_rank_0(made: str) -> None:
    text = whole(imports=_FOLDER, end=f"with {made} as d:\n{_INSIDE}")
    assert f"with ddp.main_folder({made}) as d:" in text


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("with tempfile.TemporaryDirectory() as d:\n    print(d)", id="nothing is saved"),
        pytest.param("with tempfile.TemporaryDirectory():\n    torch.save(1, 'a.pt')", id="without a name"),
    ],
)
def test_other_temporary_directories(end: str) -> None:
    assert "main_folder" not in whole(imports=_FOLDER, end=end)


_CONFIGURED = "import hydra, secrets, time\nfrom pathlib import Path\nfrom omegaconf import OmegaConf"


@pytest.mark.parametrize(
    ("setup", "new"),
    [
        pytest.param("config.run.id = secrets.token_hex(4)", "config.run.id = ddp.from_main(secrets.token_hex(4))", id="a random name"),
        pytest.param("config.began = time.time()", "config.began = ddp.from_main(time.time())", id="the time"),
        pytest.param(
            "config.id = ''.join(secrets.choice('ab') for _ in range(4))", "config.id = ddp.from_main(''.join(secrets.choice('ab') for _ in range(4)))",
            id="drawn letter by letter",
        ),
        pytest.param("name = make_id()\nconfig.id = name", "config.id = ddp.from_main(name)", id="by a function and a name"),
        pytest.param("config.lr = 0.3", "config.lr = 0.3", id="a number that all have"),
        pytest.param("print(time.time())", "print(time.time())", id="not stored"),
    ],
)
def test_what_a_configuration_is_given(setup: str, new: str) -> None:
    """What else is read of a configuration may be made of it: ``${run.id}`` in a file of settings."""
    defs = "def make_id():\n    return secrets.token_hex(4)\n\ndef prepare(config):\n" + "".join(f"    {line}\n" for line in setup.split("\n"))
    assert new in whole(imports=_CONFIGURED, defs=defs, setup="prepare(hydra.compose('a'))")


def test_a_folder_that_ends_the_program_is_asked_of_rank_0() -> None:
    defs = (
        "def prepare(config):\n    name, folder = None, Path(config.out)\n    if folder.exists():\n"
        "        if config.resume:\n            name = 'old'\n        elif not config.anew:\n            raise ValueError('it is there')\n"
        "    folder.mkdir(exist_ok=True)\n    if name is None:\n        name = secrets.token_hex(4)\n    config.run.id = name"
    )
    text = whole(imports=_CONFIGURED, defs=defs, setup="prepare(hydra.compose('a'))")
    assert "if ddp.from_main(folder.exists()):" in text and "config.run.id = ddp.from_main(name)" in text


def test_a_listing_that_rank_0_is_asked_for_already() -> None:
    """The result has shown that it is asked too early or too late by other ranks: that is mended by DPM402."""
    read = script(program(imports=_IMPORTS, setup="n = len(os.listdir('out'))\nos.makedirs(f'out/run{n}')"))
    (call,) = read.calls("os.listdir")
    assert [h.node for h in path_differs_per_rank(read)] == [call]
    read.shown_questions.append(call)
    assert list(path_differs_per_rank(read)) == []
