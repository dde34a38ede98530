"""DPM210: ranks draw differently once everything is built."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, hits, migrated, whole

_RUN = """
def run(stage):
    data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
    part, rest = torch.utils.data.random_split(data, [32, 32])
    loader = DataLoader(part, batch_size=16, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
"""
_ONLY_RUN = {"defs": _RUN, "data": "", "loader": "", "model": "", "optimizer": "", "epochs": "if True:", "batches": "if True:"}


def _before(loop: str, **parts: str | bool) -> str:
    lines = [one.strip() for one in whole(**parts).splitlines() if one.strip()]
    return lines[lines.index(loop) - 1]


def test_without_epochs_the_streams_part_before_the_loop_over_batches() -> None:
    lines = [line.strip() for line in whole(epochs="if True:").splitlines()]
    assert lines[lines.index("for x, y in loader:") - 1] == "ddp.seed_ranks()"


@pytest.mark.parametrize(
    ("before", "epochs", "last"),
    [
        pytest.param("", "for epoch in range(3):", "", id="for"),
        pytest.param("n = 0", "while n < 3:", "n += 1", id="while"),
        pytest.param("def unused():\n    pass", "for _ in range(3):", "", id="another function stands by"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_before_the_loop(before: str, epochs: str, last: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"before": before, "epochs": epochs, "epoch_end": last, "module_level": module_level}
    assert found("DPM210", **parts) == [epochs]
    assert _before(epochs, **parts) == "ddp.seed_ranks()"


def test_only_before_the_outermost_loop() -> None:
    assert whole(before="print('ddp.seed_ranks')", epochs="for a in range(2):", batches="for k in range(2):", step="for x, y in loader:\n    " + STEP.strip().replace("\n", "\n    ")).count(
        "ddp.seed_ranks()"
    ) == 1  # fmt: skip


def test_in_a_function_and_a_method() -> None:
    assert _before("for epoch in range(3):", **{**_ONLY_RUN, "step": "run(1)"}) == "ddp.seed_ranks()"
    method = "class T:\n" + "".join(f"    {line}\n" for line in _RUN.replace("run(stage)", "run(self)").strip().splitlines())
    assert _before("for epoch in range(3):", **{**_ONLY_RUN, "defs": method, "step": "T().run()"}) == "ddp.seed_ranks()"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("run(1)\nrun(2)", id="a second stage"),
        pytest.param("for k in range(3):\n    run(k)", id="cross-validation"),
        pytest.param("run(1)\na, b = torch.utils.data.random_split([1, 2], [1, 1])", id="data split afterwards"),
    ],
)
def test_what_is_built_later_needs_equal_streams(step: str) -> None:
    """Otherwise the ranks would split the data differently and train on each other's validation samples."""
    text = whole(**{**_ONLY_RUN, "step": step})
    assert "    with ddp.own_streams():\n        for epoch in range(3):\n            loader.sampler.set_epoch(epoch)\n" in text
    assert "seed_ranks" not in text


def test_a_model_built_in_the_loop() -> None:
    parts = {"epoch_start": "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)", "model": "", "optimizer": ""}
    text = whole(**parts)
    assert "with ddp.own_streams():\n            for x, y in loader:\n" in text
    assert "seed_ranks" not in text


@pytest.mark.parametrize("step", ["model = Net()\n" + STEP.strip(), "model = make()\n" + STEP.strip()])
def test_a_model_built_in_the_loop_over_the_batches(step: str) -> None:
    (one,) = hits("DPM210", defs="def make():\n    return Net()", model="", step=step)
    assert not one.edits
    assert one.severity.value == "note"


def test_a_loop_in_a_generator() -> None:
    run = _RUN.replace("            optimizer.step()", "            optimizer.step()\n        yield epoch")
    (one,) = hits("DPM210", **{**_ONLY_RUN, "defs": run, "step": "for k in range(3):\n    for _ in run(k):\n        pass"})
    assert not one.edits


def test_a_loader_after_the_loop() -> None:
    second = "other = DataLoader(train_set, batch_size=16)\nfor e in range(2):\n    for x, y in other:\n        " + STEP.strip().replace("\n", "\n        ")
    assert [bool(f.edits) for f in hits("DPM210", end=second)] == [True, True]
    drawn = second.replace("batch_size=16", "batch_size=16, sampler=order")
    text = whole(end=f"order = torch.utils.data.RandomSampler(train_set)\n{drawn}")
    assert "    with ddp.own_streams():\n        for epoch in range(3):\n" in text
    assert "    ddp.seed_ranks()\n    for e in range(2):\n" in text


_INSIDE = "loader = DataLoader({}, batch_size=16, shuffle=True{})"


@pytest.mark.parametrize(
    ("loader", "drawn"),
    [
        pytest.param(_INSIDE.format("train_set", ""), False, id="a loader alone"),
        pytest.param(_INSIDE.format("TensorDataset(torch.randn(64, 8), torch.ones(64).long())", ""), True, id="with its data"),
        pytest.param(_INSIDE.format("train_set", ", generator=torch.Generator()"), False, id="with an order of its own"),
        pytest.param("args = {'shuffle': True}\nloader = DataLoader(train_set, batch_size=16, **args)", False, id="with arguments from somewhere"),
        pytest.param("loader = make_loader(train_set, 16)", True, id="of another file"),
    ],
)
def test_a_loader_that_is_built_in_every_epoch_draws_with_the_others(loader: str, drawn: bool) -> None:
    parts = {"imports": "from data import make_loader", "loader": "", "epoch_start": loader}
    (one,) = hits("DPM210", **parts)
    assert one.edits
    assert bool(hits("DPM222", **parts)) == drawn


def test_data_that_are_split_in_every_epoch_are_drawn_together() -> None:
    parts = {"loader": "", "epoch_start": "part, rest = torch.utils.data.random_split(train_set, [32, 32])\n" + _INSIDE.format("part", "")}
    assert "with ddp.same_stream():\n            part, rest = torch" in whole(**parts)
    assert _before("for epoch in range(3):", **parts) == "ddp.seed_ranks()"


_MODES = """
def fit(model, optimizer):
    for epoch in range(3):
        for x, y in loader:
            {step}
{test} c:
    a = Net()
    fit(a, torch.optim.SGD(a.parameters(), lr=0.1))
{other}:
    b = Net()
    fit(b, torch.optim.SGD(b.parameters(), lr=0.2))
"""


@pytest.mark.parametrize(
    ("test", "other", "own"),
    [
        pytest.param("if", "else", True, id="one or the other"),
        pytest.param("if", "if d", False, id="both may run"),
        pytest.param("while", "if d", False, id="in a loop"),
    ],
)
def test_models_of_other_branches(test: str, other: str, own: bool) -> None:
    """A model that another branch builds is not built after this one's loop."""
    lines = _MODES.format(test=test, other=other, step=STEP.strip().replace("\n", "\n            "))
    setup = "c, d = os.environ.get('C'), os.environ.get('D')"
    text = whole(module_level=True, setup=setup, model="", optimizer="", before=lines, epochs="if c:", batches="if c:", step="pass")
    assert ("seed_ranks()" in text) == own
    assert ("with ddp.own_streams():" in text) != own


@pytest.mark.parametrize(("end", "own"), [("t.run()\nt.load()", True), ("t.load()\nt.run()", True), ("t.run()\nt.load()\nt.run()", False)])
def test_a_model_that_is_read_after_training(end: str, own: bool) -> None:
    """DDP gives all ranks rank 0's weights, and this model is not trained."""
    defs = f"""
    class T:
        def __init__(self, loader):
            self.loader = loader
            self.net = Net()

        def load(self):
            self.net = Net()

        def run(self):
            opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
            for epoch in range(2):
                for x, y in self.loader:
                    {STEP.replace("model", "self.net").replace("optimizer", "opt").strip().replace(chr(10), chr(10) + " " * 20)}
    """
    text = whole(defs=defs, model="", optimizer="", before="t = T(loader)", epochs="if True:", batches="if True:", step="pass", end=end)
    assert ("seed_ranks()" in text) == own
    assert ("with ddp.own_streams():" in text) != own


_TUNE = """
def tune(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("otherwise", "seeded"),
    [
        pytest.param("tune(model, loader, 3)", ["for epoch in range(3):", "tune(model, loader, 3)"], id="beside the loop"),
        pytest.param("print(epochs)", ["for epoch in range(3):"], id="in the loop alone"),
        pytest.param("for k in range(2):\n        tune(model, loader, k)", ["for epoch in range(3):", "for k in range(2):"], id="in another loop"),
    ],
)
def test_a_function_that_trains_in_a_loop_and_beside_it(otherwise: str, seeded: list[str]) -> None:
    """On the way past the loop the ranks would keep one stream."""
    parts = {"defs": _TUNE, "before": "epochs = 2", "epoch_end": "tune(model, loader, 1)", "end": f"if epochs > 5:\n    {otherwise}"}
    lines = [line.strip() for line in whole(**parts).splitlines()]
    after = [lines[i + 1] for i, line in enumerate(lines) if line == "ddp.seed_ranks()"]
    assert after == seeded


_SEED = "def set_seed(seed):\n    np.random.seed(seed)\n    torch.manual_seed(seed)"


@pytest.mark.parametrize(
    ("start", "last"),
    [
        pytest.param("torch.manual_seed(7 + epoch)", "torch.manual_seed(7 + epoch)", id="a call"),
        pytest.param("set_seed(epoch)", "set_seed(epoch)", id="a function"),
        pytest.param("torch.manual_seed(epoch)\nnp.random.seed(epoch)\nprint(epoch)", "np.random.seed(epoch)", id="the last of several"),
    ],
)
def test_the_streams_part_again_where_each_epoch_is_seeded(start: str, last: str) -> None:
    lines = [one.strip() for one in whole(imports="import numpy as np", defs=_SEED, epoch_start=start).splitlines()]
    assert lines[lines.index(last) + 1] == "ddp.seed_ranks()" and lines.count("ddp.seed_ranks()") == 2


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "set_seed(0)"}, id="before the loop"),
        pytest.param({"epoch_end": "torch.manual_seed(epoch)"}, id="after the training of a turn"),
        pytest.param({"epoch_start": "print(torch.initial_seed())"}, id="asked"),
    ],
)
def test_other_seeds(parts: dict[str, str]) -> None:
    assert whole(imports="import numpy as np", defs=_SEED, **parts).count("ddp.seed_ranks()") == 1


_NEXT = "try:\n    x, y = next(batches)\nexcept StopIteration:\n    batches = iter(loader)\n    x, y = next(batches)\n"
_WORKERS = "loader = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=2)"


@pytest.mark.parametrize(
    ("before", "new"),
    [
        pytest.param("batches = iter(loader)\ndone = len(loader)", "ddp.seed_ranks()\nbatches = iter(loader)\ndone = len(loader)\nfor", id="numbers between them"),
        pytest.param(
            "batches = iter(loader)\nnoise = torch.randn(3)",
            "with ddp.own_streams():\n    batches = iter(loader)\nnoise = torch.randn(3)\nddp.seed_ranks()\nfor", id="a draw for all ranks between them",
        ),
        pytest.param(
            "def made():\n    begun = iter(loader)\n    return begun\nbatches = made()", "ddp.seed_ranks()\nbatches = made()\nfor", id="in a function",
        ),
    ],
)  # fmt: skip
def test_an_iterator_that_is_made_before_the_loop(before: str, new: str) -> None:
    """It seeds the workers of the first pass."""
    parts: dict[str, str | bool] = {"module_level": True, "loader": _WORKERS, "before": before, "epochs": "for step in range(9):", "batches": "if True:"}
    assert new in whole(**parts, step=_NEXT + STEP)


@pytest.mark.parametrize(
    ("loader", "before"),
    [
        pytest.param(_WORKERS.replace(", num_workers=2", ""), "batches = iter(loader)", id="no workers"),
        pytest.param(_WORKERS.replace("=2", "=0"), "batches = iter(loader)", id="none of them"),
    ],
)
def test_an_iterator_that_seeds_no_workers(loader: str, before: str) -> None:
    parts: dict[str, str | bool] = {"module_level": True, "loader": loader, "before": before, "epochs": "for step in range(9):", "batches": "if True:"}
    assert "batches = iter(loader)\nddp.seed_ranks()\nfor" in whole(**parts, step=_NEXT + STEP)


def test_an_iterator_that_is_looked_at() -> None:
    """The training goes through the loader anew."""
    before = "shown = iter(loader)\nx, y = next(shown)\nprint(x.shape)"
    assert "\nddp.seed_ranks()\nfor epoch" in whole(module_level=True, loader=_WORKERS, before=before)


_FITS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 1)
        self.drop = nn.Dropout(0.5)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)

    def forward(self, x):
        return self.line(self.drop(x))

    def fit(self, loader):
        self.train()
        for x, y in loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self(x), y).backward()
            self.optimizer.step()


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8, shuffle=True)
{built}for epoch in range(3):
    {again}net.fit(loader)
"""


def test_a_model_that_wraps_itself_is_built_where_it_is_made() -> None:
    """Its wrapper is the same in each epoch."""
    assert "ddp.seed_ranks()\nfor epoch in range(3):" in migrated(_FITS.format(built="net = Net()\n", again=""))
    assert "ddp.seed_ranks()" not in migrated(_FITS.format(built="", again="net = Net()\n    "))
