"""DPM901: training that no loader feeds."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.pipeline import findings
from tests.rules.program import STEP, found, hits, refused


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="a loop over a loader"),
        pytest.param({"batches": "for i, (x, y) in enumerate(loader):"}, id="enumerate"),
        pytest.param({"batches": "for x, y in list(loader):"}, id="list"),
        pytest.param({"end": "print('for i in range(3): loss.backward()')  # loss.backward()"}, id="in a string and a comment"),
        pytest.param({"step": STEP.replace("loss.backward()", "back(loss)"), "defs": "def back(loss):\n    loss.backward()"}, id="backward in a function"),
        pytest.param(
            {"step": "optimizer.zero_grad()\nfor a in x.chunk(2):\n    F.mse_loss(model(a), a[:, :2]).backward()\noptimizer.step()"}, id="chunks of one step"
        ),
        pytest.param({"step": "for k in range(2):\n    " + STEP.replace("\n", "\n    ")}, id="several steps on one batch"),
        pytest.param({"step": STEP + "for a in x:\n    print(a)"}, id="a loop over a batch that does not train"),
        pytest.param(
            {
                "before": "batches = iter(loader)",
                "epochs": "for epoch in range(1):",
                "batches": "while epoch < 3:",
                "step": "x, y = next(batches)\nfor k in range(2):\n    " + STEP.replace("\n", "\n    "),
            },
            id="several steps on one batch of next()",
        ),
        pytest.param({"imports": "from tqdm import trange", "before": "train_iterator = trange(3)", "epochs": "for epoch in train_iterator:"}, id="a bar of epochs"),
        pytest.param({"epochs": "while True:", "epoch_end": "break"}, id="inside a loop that reads no loader"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM901", **parts) == []


_BATCH = "x, y = torch.randn(4, 8), torch.ones(4).long()\n"
_CUT = "loss = F.cross_entropy(model(x[i:i + 4]), y[i:i + 4])\nloss.backward()\noptimizer.step()"
_ORDER = "idx = order[i]\na, b = x[idx], y[idx]\nF.cross_entropy(model(a), b).backward()\noptimizer.step()"
_ARRAY = "part = torch.from_numpy(x[i:i + 2])\nmodel(part).sum().backward()\noptimizer.step()"


@pytest.mark.parametrize(
    ("parts", "why", "help"),
    [
        pytest.param(
            {"data": "x, y = torch.ones(99, 8), torch.ones(99).long()", "loader": "", "batches": "for i in range(0, 99, 3):", "step": _CUT},
            "the batches are cut from x and y by hand, x[i:i + 4]",
            "write `loader = DataLoader(TensorDataset(x, y), batch_size=4)` before the loop, and `for x_batch, y_batch in loader:` in place",
            id="slices",
        ),
        pytest.param(
            {"setup": "x, y = train_set.tensors\norder = torch.randperm(9)", "batches": "for i in range(9):", "step": _ORDER},
            "cut from x and y by hand",
            "DataLoader(TensorDataset(x, y), batch_size=…, shuffle=True)` before the loop, and `for a, b in loader:`",
            id="in a drawn order",
        ),
        pytest.param(
            {"setup": "x = torch.ones(9, 8)", "batches": "for i in range(9):", "step": "part = x[i:i + 2]\nmodel(part).sum().backward()\noptimizer.step()"},
            "cut from x by hand",
            "`for (part,) in loader:`",
            id="one tensor",
        ),
        pytest.param(
            {"setup": "import numpy as np\nx = np.ones((9, 8))", "batches": "for i in range(9):", "step": _ARRAY},
            "cut from x by hand",
            "TensorDataset(torch.as_tensor(x))",
            id="an array",
        ),
        pytest.param(
            {"setup": "x, y = train_set.tensors", "batches": "for i in range(3):"},
            "every step trains on all of x and y at once",
            "batch_size=len(x))",
            id="all at once",
        ),
        pytest.param(
            {
                "setup": "x, y = train_set.tensors\npicked = torch.arange(9)", "batches": "for i in range(3):",
                "step": "out = model(x)\nscores = out.log_softmax(1)\nF.nll_loss(scores[picked], y[picked]).backward()\noptimizer.step()",
            },
            "every step runs the model on all of x at once, and the loss takes scores[picked] of what it makes",
            "NeighborLoader",
            id="all at once, of which the loss takes some",
        ),
        pytest.param(
            {"setup": "x, y = train_set.tensors\nadj = torch.eye(9)", "batches": "for i in range(3):", "step": "F.cross_entropy(model(x, adj), y).backward()\noptimizer.step()"},
            "every step runs the model on all of x at once, with adj: parts of one whole",
            "NeighborLoader",
            id="a graph",
        ),
        pytest.param(
            {"batches": "for i in range(3):", "step": _BATCH + STEP},
            "the program makes its samples itself, by torch.randn(4, 8)",
            "__getitem__",
            id="made by the program",
        ),
        pytest.param(
            {"batches": "while epoch:", "step": "x, y = next(source)\n" + STEP, "setup": "source = endless()", "defs": "def endless():\n    yield 3"},
            "the program makes its samples itself, by endless()",
            "__getitem__",
            id="made by a generator",
        ),
        pytest.param(
            {"batches": "for i in range(3):", "step": "x, y = batches.next()\n" + STEP, "imports": "import torchtext", "setup": "batches = torchtext.go()"},
            "the loop goes over batches, batches of torchtext",
            "collate_fn",
            id="another library's",
        ),
        pytest.param(
            {"batches": "for x, y in batches:", "imports": "import petastorm", "setup": "batches = petastorm.go()"},
            "of Petastorm",
            "torch Dataset of what",
            id="a rarer library's",
        ),
        pytest.param(
            {"before": "h = model.begin()", "batches": "for i in range(3):", "step": "out, h = model(i, h)\nout.backward()\noptimizer.step()"},
            "h is carried from one batch to the next",
            "fresh state",
            id="a state",
        ),
        pytest.param(
            {"batches": "for x, y in missing:"}, "the loop goes over missing, which nothing in this program gives a value (line 18)", "make the", id="no value"
        ),
        pytest.param(
            {"imports": "import importlib", "loader": "batches = __import__(os.environ['A'])", "batches": "for x, y in batches:"},
            "it is not seen that batches, which is found by __import__() when the program runs, gives the batches of a DataLoader",
            "a Dataset",
            id="found by name",
        ),
        pytest.param(
            {"loader": "batches = torch.utils.DataLoader(train_set, batch_size=4)", "batches": "for i, (x, y) in enumerate(batches):"},
            "the loop goes over batches, and torch has no torch.utils.DataLoader",
            "from torch.utils.data import",
            id="a name that torch does not have",
        ),
        pytest.param(
            {
                "defs": "class Own:\n    def __iter__(self):\n        yield 3, 4", "loader": "batches = Own()", "batches": "for a, b in batches:",
                "step": "for _ in range(3):\n    x, y = a.to(0), b.to(0)\n" + indent(STEP, "    "),
            },
            "the loop goes over batches, an object of Own, and not over a DataLoader itself",
            "what Own does with each batch",
            id="steps that are repeated for each batch",
        ),
        pytest.param({"batches": "for x, y in 3 * [0]:"}, "it is not seen that 3 * [0] gives the batches of a DataLoader", "a Dataset", id="unknown"),
        pytest.param({"batches": "while epoch:", "step": "x = y = object()\n" + STEP}, "where the while loop has its batches from", "a Dataset", id="while"),
        pytest.param({"batches": "if True:", "epochs": "if True:", "step": "x = y = object()\n" + STEP}, "it stands in no loop", "a Dataset", id="no loop"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused_with_what_was_found_instead(parts: dict[str, str], why: str, help: str, module_level: bool) -> None:
    (one,) = hits("DPM901", module_level=module_level, **parts)
    assert why.partition(" (line")[0] in one.message
    assert help in one.advice
    assert refused("DPM901", module_level=module_level, **parts)[0].endswith(".backward()")


def test_the_step_is_spoken_of_and_not_an_attack() -> None:
    defs = "def attack(a):\n    for i in range(3):\n        F.mse_loss(a, a).backward()\n"
    (one,) = hits("DPM901", defs=defs, batches="for x, y in missing:", step="attack(x)\n" + STEP)
    assert "missing, which nothing" in one.message
    assert hits("DPM901", defs=defs, end="attack(3)")[0].message.startswith("no DataLoader is seen to feed this step")


def test_a_function_and_a_method_that_nobody_calls() -> None:
    defs = "class T:\n    def step(self, loss):\n        loss.backward()\ndef step(loss):\n    loss.backward()"
    assert refused("DPM901", defs=defs) == ["loss.backward()"]


def test_a_loop_inside_another_loop_over_a_loader() -> None:
    step = "for a, b in loader:\n    " + STEP.strip().replace("\n", "\n    ")
    parts = {"step": step, "setup": "other = DataLoader(val_set, batch_size=4)", "batches": "for x, y in other:"}
    assert refused("DPM901", **parts) == ["for a, b in loader:"]


@pytest.mark.parametrize(
    "batches",
    [pytest.param("for batch in loader:", id="plain"), pytest.param("for i, batch in enumerate(loader):", id="enumerate")],
)
def test_steps_over_parts_of_a_batch_are_refused(batches: str) -> None:
    step = "for x, y in batch:\n    " + STEP.replace("\n", "\n    ")
    assert refused("DPM901", batches=batches, step=step) == ["for x, y in batch:"]


def test_batches_that_are_chosen() -> None:
    (hit,) = hits("DPM901", batches="for x, y in reversed(list(loader)):")
    assert "which leaves out batches of a loader or turns them round" in hit.message
    assert "itertools.islice(loader, n)" in hit.advice


def test_batches_of_what_is_not_seen_to_be_a_loader() -> None:
    step = "a, b = it.next()\na, b = a.to(device), b.to(device)\n" + STEP.replace("model(x), y", "model(a), b")
    parts = {"before": "device = torch.device('cpu')\nsets = [0] * 3\nsets[1] = loader", "epoch_start": "it = iter(sets[epoch])"}
    (one,) = hits("DPM901", batches="for i in range(9):", step=step, **parts)
    assert "each batch is the next one of sets[epoch], and it is not seen that this is a DataLoader" in one.message


_LOOP = "def fit({parameters}):\n    for x, y in {over}:\n        optimizer.zero_grad()\n        F.cross_entropy(model(x), y).backward()\n        optimizer.step()\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(_LOOP.format(parameters="loaders", over="loaders['train']"), "nothing in this program calls fit", id="a key of what nobody gives"),
        pytest.param(
            _LOOP.format(parameters="batches, **options", over="enumerate(batches)") + "fit(loader=1)\n",
            "the loop goes over batches, a parameter of fit that this call of it does not give", id="a parameter that is not given",
        ),
        pytest.param(
            "samples = [(1, 2), (3, 4)]\nkept = samples[:1]\n" + _LOOP.format(parameters="data", over="enumerate(data)") + "fit(kept)\n",
            "it is not seen that enumerate(data) gives the batches of a DataLoader; data is samples[:1]", id="where a list comes from",
        ),
        pytest.param(
            "bar = tqdm(range(9))\n" + _LOOP.format(parameters="", over="bar").replace("x, y in", "step in").replace("def fit():\n", "if True:\n").replace("y)", "x)"),
            "the loop over bar counts steps, and it is not seen where each of them has its samples from", id="a bar that counts",
        ),
    ],
)  # fmt: skip
def test_what_feeds_it_instead(text: str, said: str) -> None:
    top = "import torch\nimport torch.nn.functional as F\nfrom tqdm import tqdm\nmodel = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    (message,) = [f.message for f in findings(top + text) if f.code == "DPM901"]
    assert said in message


def test_a_loop_over_a_loader_inside_of_a_step() -> None:
    text = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
loader = DataLoader(torch.load("x.pt"), batch_size=8)
def gathered(batches):
    loss = 0
    for x, y in batches:
        loss = loss + F.cross_entropy(model(x), y)
    return loss
for step in range(9):
    optimizer.zero_grad()
    loss = gathered(loader)
    loss.backward()
    optimizer.step()
"""
    (message,) = [f.message for f in findings(text) if f.code == "DPM901"]
    assert "each step goes over batches in a loop of its own, and trains on all the batches that it takes there at once (line 9)" in message


def test_the_words_are_about_what_is_used() -> None:
    spare = _LOOP.format(parameters="batches", over="batches").replace("fit", "spare")
    used = _LOOP.format(parameters="batches", over="batches")
    top = "import torch\nimport torch.nn.functional as F\nimport data\nmodel = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    text = top + "class Trainer(data.Base):\n" + "".join(f"    {line}\n" for line in (spare + used).splitlines()).replace("(batches)", "(self, batches)") + "Trainer().fit(data.stream())\n"
    (message,) = [f.message for f in findings(text) if f.code == "DPM901"]
    assert "nothing in this program calls" not in message


_HANDED_OUT = """\
import torch
from torch import nn

data = torch.randn(64, 8)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
class Batches:
    def __init__(self, rows):
        self.rows = rows
    def __iter__(self):
        for i in range(0, len(self.rows), 8):
            yield self.rows[i : i + 8]
made = Batches(data)
for epoch in range(2):
    {epoch}
    for {head}:
        {first}
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("head", "first", "epoch", "words"),
    [
        ("x in made", "if len(x) < 8:\n            continue", "pass", "an object of Batches, and not over a DataLoader itself, and len(x) < 8 (line 17) may go with the whole batch"),
        (
            "i in range(0, 64, 8)", "x = data[order[i : i + 8]]", "order = torch.randperm(64); data = torch.randn(64, 4)",
            "(line 17) takes its samples of data that are made anew while training runs, of which each rank may have others (line 17)",
        ),
    ],
)  # fmt: skip
def test_what_keeps_batches_that_are_cut_from_being_divided(head: str, first: str, epoch: str, words: str) -> None:
    told = next(f for f in findings(_HANDED_OUT.format(head=head, first=first, epoch=epoch)) if f.code == "DPM901")
    assert words in told.message
