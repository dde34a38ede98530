"""DPM508: files that are fetched."""

from __future__ import annotations

import re

import pytest

from tests.rules.program import STEP, after, found, hits, refused, whole


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("s = datasets.CIFAR10('d')", id="no download asked for"),
        pytest.param("s = datasets.CIFAR10('d', download=False)", id="download=False"),
        pytest.param("m = models.resnet18(weights=None)", id="no weights"),
        pytest.param("m = lib.build(weights='x')", id="weights of something else"),
        pytest.param("print('CIFAR10(download=True)')  # CIFAR10(download=True)", id="in a string and a comment"),
        pytest.param("if True:\n    pass", id="no call"),
    ],
)
def test_nothing_to_say(setup: str) -> None:
    assert found("DPM508", imports="import lib\nfrom torchvision import datasets, models", setup=setup) == []


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        pytest.param("from torchvision import datasets", "s = datasets.CIFAR10('d', download=True)", id="data set"),
        pytest.param("from torchvision.datasets import MNIST as M", "s: object = M(root='d', download=args)", id="alias, a setting, annotated"),
        pytest.param("from torchvision import models", "m = models.resnet18(weights='DEFAULT')", id="weights"),
        pytest.param("from torchvision import models", "m = models.resnet18(pretrained=True)", id="pretrained"),
        pytest.param("", "m = torch.hub.load('a/b', 'c')", id="torch.hub"),
        pytest.param("from torch.hub import load_state_dict_from_url", "w = load_state_dict_from_url('u')", id="from torch.hub"),
        pytest.param("from transformers import AutoModel", "m = AutoModel.from_pretrained('bert')", id="from_pretrained"),
        pytest.param("import urllib.request", "urllib.request.urlretrieve('u', 'f')", id="urlretrieve"),
        pytest.param("import kagglehub", "kagglehub.dataset_download('a/b')", id="a function called so"),
        pytest.param("import nltk", "nltk.download('punkt')", id="nltk"),
        pytest.param("from datasets import load_dataset", "d = load_dataset('x')", id="datasets"),
        pytest.param("import gdown", "gdown.download('u')", id="gdown"),
        pytest.param("from tensorflow.keras.datasets import mnist", "d = mnist.load_data()", id="keras"),
        pytest.param("from sklearn.datasets import fetch_openml", "d = fetch_openml('x')", id="sklearn"),
        pytest.param("from torch_geometric.datasets import Planetoid", "d = Planetoid('data', 'Cora')", id="a data set of graphs"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "setup": f"args = True\n{line}", "module_level": module_level}
    assert found("DPM508", **parts) == [line]
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(line) - 1] == "with ddp.main_first():"


def test_in_a_function_that_the_program_calls() -> None:
    parts = {"imports": "import gdown", "defs": "def get(u):\n    return gdown.download(u)", "setup": "get('x')"}
    assert found("DPM508", **parts) == ["return gdown.download(u)"]


def test_the_question_whether_the_file_is_there_goes_with_it() -> None:
    """Otherwise a rank could find the file half written, and not wait."""
    fetch = "if not os.path.exists('f'):\n    for u in ['a']:\n        gdown.download(u)"
    lines = [one.strip() for one in whole(imports="import gdown", setup=fetch).splitlines()]
    assert lines[lines.index("if not os.path.exists('f'):") - 1] == "with ddp.main_first():"
    fetch = "if not pathlib.Path('f').is_file():\n    gdown.download('u')"
    lines = [one.strip() for one in whole(imports="import gdown, pathlib", setup=fetch).splitlines()]
    assert lines[lines.index("if not pathlib.Path('f').is_file():") - 1] == "with ddp.main_first():"


def test_a_setting_stays_outside() -> None:
    assert after(imports="import gdown", setup="if os.environ.get('A'):\n    gdown.download('u')") == ["with ddp.main_first():"]
    lines = [one.strip() for one in whole(imports="import gdown", setup="if os.environ.get('A'):\n    gdown.download('u')").splitlines()]
    assert lines[lines.index("gdown.download('u')") - 1] == "with ddp.main_first():"


def test_worker_processes_and_models_do_not_wait() -> None:
    dataset = "class Pictures:\n    def __getitem__(self, i):\n        return gdown.download(i)"
    model = "class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.m = resnet18(pretrained=True)"
    assert found("DPM508", imports="import gdown", defs=dataset + "\n" + model, setup="p = Part()") == []


def test_a_part_of_a_model_that_a_hub_unpacks() -> None:
    part = "class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.m = torch.hub.load('a', 'b')\n\n"
    parts = {"defs": part + "    def forward(self, x):\n        return torch.hub.load('a', 'c')(x)", "setup": "p = Part()"}
    assert found("DPM508", **parts) == ["self.m = torch.hub.load('a', 'b')"]
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index("self.m = torch.hub.load('a', 'b')") - 1] == "with ddp.main_first():"


def test_a_statement_that_also_trains_is_refused() -> None:
    parts = {
        "imports": "import gdown", "defs": "def train(path, model, loader, optimizer):\n    for x, y in loader:\n" + "".join(f"        {s}\n" for s in STEP.splitlines()),
        "batches": "if True:", "step": "x = train(gdown.download('u'), model, loader, optimizer)",
    }  # fmt: skip
    assert refused("DPM508", **parts) == ["x = train(gdown.download('u'), model, loader, optimizer)"]


def test_a_statement_that_also_makes_buffers_equal_is_refused() -> None:
    """An evaluation in full is no division of the batches, but the ranks meet before it."""
    defs = "def show(f, net, batches):\n    for a, b in batches:\n        print(net(a))\n    return f"
    parts = {"imports": "import gdown", "defs": defs, "end": "x = show(gdown.download('u'), model, DataLoader(val_set))"}
    assert refused("DPM508", **parts) == []
    assert refused("DPM508", model="model = nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2))", **parts) == [parts["end"]]


def test_an_early_return_goes_with_it() -> None:
    """A rank that finds the file half written would return, and not wait."""
    defs = "def fetch(path):\n    if os.path.exists(path):\n        return path\n    gdown.download(path)\n    return path"
    lines = whole(imports="import gdown", defs=defs, setup="fetch('f')").splitlines()
    start = lines.index("def fetch(path):")
    assert lines[start + 1 : start + 6] == [
        "    with ddp.main_first():",
        "        if os.path.exists(path):",
        "            return path",
        "        gdown.download(path)",
        "        return path",
    ]


def test_a_loop_goes_with_the_turns_that_it_leaves_out() -> None:
    """Rank 0 makes what the others then find: their turns would end before they come to where they wait."""
    text = whole(
        imports="import os\nimport gdown",
        defs="def fetch(names):\n    for name in names:\n        if os.path.isdir(name):\n            continue\n        gdown.download(name)\n        print(name)\n",
        setup="fetch(['a', 'b'])",
    )
    lines = [one.strip() for one in text.splitlines()]
    assert lines[lines.index("for name in names:") - 1] == "with ddp.main_first():"
    assert lines.count("with ddp.main_first():") == 1


def test_two_in_one_function_wait_once() -> None:
    defs = "def fetch(path):\n    if os.path.exists(path):\n        return\n    gdown.download(path)\n    gdown.download(path + 'x')"
    assert whole(imports="import gdown", defs=defs, setup="fetch('f')").count("main_first") == 1
    assert all(hit.edits for hit in hits("DPM508", imports="import gdown", defs=defs, setup="fetch('f')"))


def test_several_in_one_question_wait_once() -> None:
    setup = "if os.path.exists('f'):\n    gdown.download('f')\nelse:\n    gdown.download('g')\n    gdown.download('h')"
    found_here = hits("DPM508", imports="import gdown", setup=setup)
    assert len(found_here) == 3 and all(hit.edits for hit in found_here)
    assert whole(imports="import gdown", setup=setup).count("main_first") == 1


@pytest.mark.parametrize(
    ("setup", "first"),
    [
        pytest.param("try:\n    open('f')\nexcept OSError:\n    gdown.download('f')", "try:", id="where it is missing"),
        pytest.param("if torch.rand(1) > 0.5:\n    gdown.download('f')", "if torch.rand(1) > 0.5:", id="a test that may differ"),
    ],
)
def test_what_decides_goes_with_it(setup: str, first: str) -> None:
    lines = [one.strip() for one in whole(imports="import gdown", setup=setup).splitlines()]
    assert lines[lines.index(first) - 1] == "with ddp.main_first():"


@pytest.mark.parametrize(
    ("defs", "setup"),
    [
        pytest.param("def get():\n    gdown.download('f')", "if torch.rand(1) > 0.5:\n    get()", id="its caller decides"),
        pytest.param(
            "def get(us):\n    for u in us:\n        if os.path.exists(u):\n            return\n        gdown.download(u)", "get('f')", id="a loop decides"
        ),
    ],
)
def test_told_where_not_all_ranks_come(defs: str, setup: str) -> None:
    parts = {"imports": "import gdown", "defs": defs, "setup": setup}
    assert len(found("DPM508", **parts)) == 1
    assert "main_first" not in whole(**parts)


NESTED = """\
from torch.utils import model_zoo


def resnet(pretrained=False):
    net = nn.Linear(1, 1)
    if pretrained:
        net.load_state_dict({fetch})
    return net


def build(pretrained):
    return resnet(pretrained=pretrained)
"""


@pytest.mark.parametrize(
    ("fetch", "first"),
    [
        pytest.param("model_zoo.load_url('u')", "net.load_state_dict(model_zoo.load_url('u'))", id="the statement that fetches"),
        pytest.param("something_of_ours('u')", "return resnet(pretrained=pretrained)", id="the call of what fetches in ways unknown"),
    ],
)
def test_rank_0_goes_first_once(fetch: str, first: str) -> None:
    text = whole(imports=NESTED.format(fetch=fetch), setup="extra = build(pretrained=True)")

    assert text.count("ddp.main_first()") == 1
    assert re.search(rf"with ddp\.main_first\(\):\n +{re.escape(first)}\n", text)


# ------------------------------------------------------------------ what fetches only when it is called
_MAKERS = "from functools import partial\nfrom torchvision.datasets import CIFAR10"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("make = lambda: CIFAR10('d')", id="a lambda that fetches nothing"),
        pytest.param("make = partial(CIFAR10, 'd', download=False)", id="a partial call that fetches nothing"),
        pytest.param("kinds = {'a': CIFAR10}\ns = kinds['a']('d')", id="a table of classes"),
    ],
)
def test_nothing_is_fetched(setup: str) -> None:
    assert found("DPM508", imports=_MAKERS, setup=setup) == []


@pytest.mark.parametrize(
    ("setup", "line"),
    [
        pytest.param("make = lambda: CIFAR10('d', download=True)\ns = make()", "s = make()", id="a lambda"),
        pytest.param("make = partial(CIFAR10, 'd', download=True)\ns = make()", "s = make()", id="a partial call"),
        pytest.param("make = {'a': lambda: CIFAR10('d', download=True)}\ns = make['a']()", "s = make['a']()", id="a table of lambdas"),
        pytest.param("make = {'a': partial(CIFAR10, download=True)}\ns = make[args]('d')", "s = make[args]('d')", id="a table of partial calls"),
        pytest.param("make = {'a': CIFAR10}\ns = make['a']('d', download=True)", "s = make['a']('d', download=True)", id="a table of classes"),
        pytest.param("s = (lambda n=1: CIFAR10('d', download=True))()", "s = (lambda n=1: CIFAR10('d', download=True))()", id="a lambda that is called at once"),
        pytest.param("f = lambda s=CIFAR10('d', download=True): s", "f = lambda s=CIFAR10('d', download=True): s", id="the default of a lambda"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_the_block_goes_round_the_call(setup: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": _MAKERS, "setup": f"args = 'a'\n{setup}", "module_level": module_level}
    assert found("DPM508", **parts) == [line]
    lines = [one.strip() for one in whole(**parts).splitlines()]
    assert lines[lines.index(line) - 1] == "with ddp.main_first():" and lines.count("with ddp.main_first():") == 1


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        pytest.param("lib.use(lambda: CIFAR10('d', download=True))", "lambda: CIFAR10('d', download=True)", id="a lambda"),
        pytest.param("lib.use(partial(CIFAR10, download=True))", "partial(CIFAR10, download=True)", id="a partial call"),
    ],
)
def test_calls_that_are_not_seen(setup: str, told: str) -> None:
    (hit,) = hits("DPM508", imports=f"import lib\n{_MAKERS}", setup=setup)
    assert not hit.edits and "which is not seen" in hit.message
    assert found("DPM508", imports=f"import lib\n{_MAKERS}", setup=setup) == [told]
    assert "main_first" not in whole(imports=f"import lib\n{_MAKERS}", setup=setup)


GRAPHS = """
class Roads(Base):
    def __init__(self, root):
        super().__init__(root)
        self.x = torch.load(self.processed_paths[0])
{methods}
    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]
"""
_PROCESS = """
    def process(self):
        torch.save(torch.randn(64, 8), self.processed_paths[0])
"""


@pytest.mark.parametrize(
    ("base", "methods", "prepares"),
    [
        pytest.param("from torch_geometric.data import InMemoryDataset as Base", _PROCESS, True, id="torch_geometric"),
        pytest.param("from dgl.data import DGLDataset as Base", _PROCESS, True, id="dgl"),
        pytest.param("from torch_geometric.data import InMemoryDataset as Base", _PROCESS.replace("process", "download"), True, id="download"),
        pytest.param("from torch_geometric.data import InMemoryDataset as Base", "", False, id="nothing of its own"),
        pytest.param("from torch.utils.data import Dataset as Base", _PROCESS, False, id="a class that calls nothing by itself"),
    ],
)
def test_data_sets_that_prepare_their_files(base: str, methods: str, prepares: bool) -> None:
    parts: dict[str, str | bool] = {"imports": base, "defs": GRAPHS.format(methods=methods), "setup": "roads = Roads('data')"}
    assert found("DPM508", **parts) == (["roads = Roads('data')"] if prepares else [])
    if prepares:
        lines = [one.strip() for one in whole(**parts).splitlines()]
        assert lines[lines.index("roads = Roads('data')") - 1] == "with ddp.main_first():"


DIGITS = """
class Digits(torch.utils.data.Dataset):
    def __init__(self, root, download=False):
        self.root = root
        if download:
            self.download()
        if not self.there():
            raise RuntimeError("no files")
        self.x = torch.load(os.path.join(root, "train.pt"))
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.x[i]
    def there(self):
        return os.path.exists(os.path.join(self.root, "train.pt"))
    def download(self):
        if self.there():
            return
        os.makedirs(self.root, exist_ok=True)
        torch.save(torch.randn(64, 8), os.path.join(self.root, "train.pt"))
"""


@pytest.mark.parametrize(
    ("setup", "waits"),
    [
        pytest.param("digits = Digits('data', download=True)", False, id="rank 0 runs all of it first"),
        pytest.param("digits = Digits('data', download=True)\nagain = Digits('data')", True, id="read elsewhere as well"),
    ],
)
def test_what_rank_0_runs_first_is_not_waited_for_inside(setup: str, waits: bool) -> None:
    parts = {"imports": "import os", "defs": DIGITS, "setup": setup}
    assert found("DPM508", **parts) == ["digits = Digits('data', download=True)"]
    assert bool(found("DPM402", **parts)) is waits
    if not waits:
        assert "with ddp.main_first():" in whole(**parts) and "ddp.barrier()" not in whole(**parts)
