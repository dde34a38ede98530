"""DPM516: caches that are made where they are missing."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits, whole

_IMPORTS = "import h5py, json, pickle, shutil, sqlite3\nfrom pathlib import Path\nimport numpy as np"


def _new(**parts: str | bool) -> list[str]:
    return after(imports=_IMPORTS, **parts)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"setup": "if not os.path.exists('out'):\n    os.makedirs('out')"}, id="a directory only"),
        pytest.param({"setup": "if os.path.exists('a'):\n    shutil.rmtree('a')"}, id="removed where it is there"),
        pytest.param({"setup": "if not os.path.exists('a'):\n    raise ValueError"}, id="nothing is made"),
        pytest.param({"setup": "if os.path.exists('a'):\n    d = np.load('a')\nnp.save('b', 3)"}, id="made whatever is there"),
        pytest.param({"setup": "if verbose:\n    np.save('a', 3)"}, id="no question about files"),
        pytest.param({"setup": "if os.path.getsize('a') > 3:\n    np.save('a', 3)"}, id="another question"),
        pytest.param({"setup": "if 0 < os.path.getsize('a') < 3:\n    np.save('a', 3)"}, id="a question in two parts"),
        pytest.param({"setup": "if not (os.path.exists('a') and verbose):\n    np.save('a', 3)"}, id="not both"),
        pytest.param({"setup": "if os.path.exists('a') or not os.path.exists('b'):\n    np.save('a', 3)"}, id="two questions"),
        pytest.param({"setup": "if (verbose and os.path.exists('a')) or x:\n    y = 1\nelse:\n    np.save('a', 3)"}, id="a question within one"),
        pytest.param(
            {"setup": "n = 0\nwhile True:\n    if not os.path.exists(str(n)):\n        os.makedirs(str(n))\n        np.save(f'{n}/a', 3)\n        break\n    n += 1"},
            id="a search for a free path",
        ),
        pytest.param({"epoch_end": "if not os.path.exists('a'):\n    np.save('a', 3)"}, id="between the epochs"),
        pytest.param({"end": "if not os.path.exists('a'):\n    np.save('a', 3)"}, id="after training"),
        pytest.param({"defs": "class D:\n    def __getitem__(self, i):\n        if not os.path.exists('a'):\n            np.save('a', 3)"}, id="workers"),
        pytest.param({"imports": "import gdown", "setup": "if not os.path.exists('a'):\n    gdown.download('a')"}, id="fetched right here: DPM508"),
        pytest.param({"setup": "print(\"if not os.path.exists('a'): np.save('a', 3)\")  # not os.path.exists"}, id="in a string and a comment"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM516", **{**parts, "imports": f"{_IMPORTS}\n{parts.get('imports', '')}"}) == []


def test_a_loop_of_the_branch_s_own() -> None:
    setup = "if not os.path.exists('a'):\n    for n in range(3):\n        np.save('a', n)\n        break"
    assert found("DPM516", imports=_IMPORTS, setup=setup)


@pytest.mark.parametrize(
    ("test", "body"),
    [
        pytest.param("not os.path.exists('a')", "np.save('a', 3)", id="numpy"),
        pytest.param("not os.path.isfile(path='a')", "torch.save(3, 'a')", id="torch"),
        pytest.param("not Path('a').exists()", "pickle.dump(3, open('a', 'wb'))", id="pickle"),
        pytest.param("os.path.exists('a') == False", "with open('a', 'w') as f:\n        f.write('3')", id="compared, a text"),
        pytest.param("not os.path.exists('a')", "h5py.File('a', 'w')", id="an archive"),
        pytest.param("os.path.exists('a') is False", "sqlite3.connect('a').execute('create table t (x)')", id="a data base"),
        pytest.param("len(os.listdir('a')) == 0", "os.makedirs('a')\n    make('a')", id="an empty folder, a function"),
        pytest.param("cached and not os.path.exists('a')", "os.system('make a')", id="where it is asked for, a command"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_rank_0_first_and_nothing_else(test: str, body: str, module_level: bool) -> None:
    defs = "def make(p):\n    store(p)\ndef store(p):\n    np.save(p, 3)"
    lines = _new(defs=defs if "make(" in body else "", setup=f"cached = True\nif {test}:\n    {body}", module_level=module_level)
    assert [one for one in lines if "torch.save" not in one and "ddp.save" not in one] == ["with ddp.main_first():"]


@pytest.mark.parametrize(
    ("log", "first"),
    [
        pytest.param("os.path.join('out', 'log.txt')", False, id="another file"),
        pytest.param("os.path.join('out', 'last.pt')", True, id="the file that is asked for"),
        pytest.param("os.environ['LOG']", True, id="a file that may be it"),
    ],
)
def test_an_object_that_both_branches_make(log: str, first: bool) -> None:
    """Its files are there either way, and all ranks wait for each other where it wraps the model."""
    defs = f"""
    class Trainer:
        def __init__(self, model, optimizer=None):
            self.model = model
            self.optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
            self.log = {log}
            with open(self.log, 'w') as f:
                f.write('begun')
        def train(self, loader):
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            torch.save(self.model.state_dict(), 'out/last.pt')
    """
    made = """
    if os.path.exists('out/last.pt'):
        net.load_state_dict(torch.load('out/last.pt'))
        trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1))
    else:
        trainer = Trainer(net)
    """
    text = whole(defs=defs, model="net = Net()", optimizer=made, batches="trainer.train(loader)", step="")
    assert "self.model = ddp.wrap(model)" in text
    assert ("main_first" in text) is first


def test_in_the_constructor_of_a_data_set() -> None:
    defs = """
    class Cached:
        def __init__(self, path):
            if not os.path.exists(path):
                shutil.rmtree(path, ignore_errors=True)
                self.build(path)
            self.rows = np.load(path + '/a.npy')
        def build(self, path):
            os.makedirs(path)
            names = list(set('abc'))
            np.save(path + '/a.npy', names)
            self.done = path
    """
    assert _new(defs=defs, setup="Cached('c')") == ["with ddp.main_first():"]


def test_read_where_it_is_there() -> None:
    lines = _new(setup="if os.path.exists('a'):\n    d = np.load('a')\nelse:\n    d = 3\n    np.save('a', d)\nprint(d)")
    assert lines == ["with ddp.main_first():"]


def test_a_function_that_ends_where_it_is_there() -> None:
    defs = "def load(p):\n    if os.path.exists(p):\n        return np.load(p)\n    d = list(range(3))\n    np.save(p, d)\n    return d"
    text = whole(imports=_IMPORTS, defs=defs, setup="d = load('a')")
    assert (
        "    with ddp.main_first():\n        if os.path.exists(p):\n            return np.load(p)\n        d = list(range(3))\n        np.save(p, d)\n        return d\n"
        in text
    )


def test_what_else_makes_it_anew_is_left_to_rank_0() -> None:
    assert _new(setup="again = True\nif again or not os.path.exists('a'):\n    np.save('a', 3)") == [
        "with ddp.main_first():",
        "if (again and ddp.is_main()) or not os.path.exists('a'):",
    ]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "if off or not os.path.exists('a'):\n    d = 3\n    if not off:\n        np.save('a', d)\nelse:\n    d = np.load('a')", id="saved under a test"
        ),
        pytest.param("if not off and os.path.exists('a'):\n    d = np.load('a')\nelse:\n    d = 3\n    np.save('a', d)", id="read under a setting"),
    ],
)
def test_where_others_may_make_it_too_they_do_not_write(code: str) -> None:
    lines = _new(setup=f"off = True\n{code}")
    assert lines[0] == "with ddp.main_first():" and lines[1].endswith("ddp.is_main():") and len(lines) == 2


def test_an_elif_goes_with_its_if() -> None:
    lines = [
        one.strip() for one in whole(imports=_IMPORTS, setup="x = 3\nif x > 3:\n    pass\nelif not os.path.exists('a'):\n    np.save('a', 3)").splitlines()
    ]
    assert lines[lines.index("if x > 3:") - 1] == "with ddp.main_first():"


@pytest.mark.parametrize(
    ("setup", "kept"),
    [
        pytest.param("if not os.path.exists('a'):\n    d = 3\n    np.save('a', d)\nprint(d)", ["d"], id="read later"),
        pytest.param("if not os.path.exists('a'):\n    d = 3\n    np.save('a', d)\nif x:\n    d = 4\nprint(d)", ["d"], id="perhaps given anew"),
        pytest.param("if not os.path.exists('a'):\n    d = 3\n    np.save('a', d)\nd = np.load('a')\nprint(d)", [], id="given anew"),
        pytest.param("if not os.path.exists('a'):\n    for i in 'ab':\n        np.save(i, 3)\nfor i in 'ab':\n    print(i)", [], id="a loop's own"),
        pytest.param("class T:\n    pass\nt = T()\nif not os.path.exists('a'):\n    t.d = 3\n    np.save('a', t.d)\nprint(t.d)", ["t.d"], id="an attribute"),
    ],
)
def test_what_the_branch_alone_leaves_behind(setup: str, kept: list[str]) -> None:
    hit = hits("DPM516", imports=_IMPORTS, setup=f"x = 1\n{setup}")[0]
    assert bool(hit.edits) is not bool(kept) and all(name in hit.advice for name in kept)


def test_the_outermost_question_and_once() -> None:
    defs = "def make(p):\n    if not os.path.exists(p):\n        np.save(p, 3)\n        make(p)"
    assert _new(defs=defs, setup="if not os.path.exists('a'):\n    make('a')") == ["with ddp.main_first():"]
    assert len(found("DPM516", imports=_IMPORTS, defs=defs, setup="make('a')")) == 1


def test_a_function_that_is_also_called_elsewhere_keeps_its_guards() -> None:
    defs = "def make(p):\n    np.save(p, 3)"
    assert _new(defs=defs, setup="make('b')\nif not os.path.exists('a'):\n    make('a')") == ["if ddp.is_main():", "with ddp.main_first():"]


def test_a_branch_that_trains_is_left_alone() -> None:
    step = "if not os.path.exists('a'):\n    for x, y in loader:\n        loss = F.cross_entropy(model(x), y)\n        loss.backward()\n    np.save('a', 3)"
    assert found("DPM516", imports=_IMPORTS, before=step) == []


def test_a_function_that_fetches_under_the_question() -> None:
    defs = "def get(p):\n    gdown.download(p)"
    assert after(imports="import gdown", defs=defs, setup="if not os.path.exists('a'):\n    get('a')") == ["with ddp.main_first():"]


def test_told_where_perhaps_not_all_ranks_come() -> None:
    (hit,) = hits("DPM516", imports=_IMPORTS, setup="if torch.rand(1) > 0.5:\n    if not os.path.exists('a'):\n        np.save('a', 3)")
    assert not hit.edits and "where every rank comes by" in hit.advice


@pytest.mark.parametrize(
    ("body", "first"),
    [
        pytest.param("if p.exists():\n        return False\n    p.mkdir()\n    return True", True, id="it tells whether it has made it"),
        pytest.param("if p.exists():\n        return False\n    else:\n        p.mkdir()\n    return True", True, id="in an else"),
        pytest.param("if p.exists():\n        return True\n    p.mkdir()\n    return True", False, id="it tells the same"),
        pytest.param("if p.exists():\n        return\n    p.mkdir()", False, id="it tells nothing"),
    ],
)
def test_a_folder_that_the_caller_fills(body: str, first: bool) -> None:
    defs = f"def made(p):\n    {body}\ndef fill(p):\n    if not made(p):\n        return\n    np.save(p / 'a', 3)"
    assert ("with ddp.main_first():" in _new(defs=defs, setup="fill(Path('a'))")) is first


def test_functions_that_are_handed_on_make_files() -> None:
    defs = "def store(p):\n    np.save(p, 3)\ndef make(paths):\n    Parallel(2)(delayed(store)(p) for p in paths)"
    parts = {"imports": f"{_IMPORTS}\nfrom joblib import Parallel, delayed", "defs": defs, "setup": "if not os.path.exists('a'):\n    make(['a'])"}
    assert "with ddp.main_first():" in after(**parts)


@pytest.mark.parametrize("question", ["path.exists()", "Path.exists(path)", "os.path.exists(path)", "path.is_file()"])
@pytest.mark.parametrize("path", ["str(path)", "path", "path.as_posix()", "f'{path}'", "'vocabulary.json'"])
def test_what_an_object_of_a_library_saves(question: str, path: str) -> None:
    """Of no table: ``save`` with a path that all ranks have makes a file."""
    imports = f"{_IMPORTS}\nfrom tokenizers import Tokenizer\nfrom tokenizers.models import WordLevel"
    defs = f"def vocabulary(name):\n    path = Path('vocabulary_' + name)\n    if not {question}:\n        made = Tokenizer(WordLevel())\n"
    defs += f"        made.save({path})\n    else:\n        made = Tokenizer.from_file(str(path))\n    return made"
    text = whole(imports=imports, defs=defs, setup="made = vocabulary('en')")
    assert f"    with ddp.main_first():\n        if not {question}:" in text


@pytest.mark.parametrize(
    ("left_out", "new"),
    [
        pytest.param("if not os.path.isdir(name):\n        continue", "if ddp.from_main(not os.path.isdir(name)):", id="no folder"),
        pytest.param("if os.path.exists(name + '.skip'):\n        break", "if ddp.from_main(os.path.exists(name + '.skip')):", id="the end"),
        pytest.param("if name == 'a':\n        continue", "if name == 'a':", id="by a name"),
    ],
)
def test_rank_0_says_what_a_loop_leaves_out(left_out: str, new: str) -> None:
    setup = f"for name in sorted(os.listdir('data')):\n    {left_out}\n    if not os.path.exists(name + '.npy'):\n        np.save(name + '.npy', 3)"
    text = whole(imports=_IMPORTS, setup=setup)
    assert new in text and "with ddp.main_first():" in text
