"""DPM201: training loaders get a sampler."""

from __future__ import annotations

import re

import pytest

from dpmigrate import rules
from dpmigrate.edit import SetArg
from dpmigrate.settings import Settings
from tests.pipeline import script_of
from tests.rules.program import STEP, after, found, whole

_KW = "batch_size=ddp.local_batch(4)"
_COMMON = ""


def _lines(**parts: str | bool) -> list[str]:
    return [one.strip() for one in whole(**parts).splitlines()]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "v = DataLoader(val_set, shuffle=True)\nprint(v)"}, id="not used for training"),
        pytest.param({"end": "print('DataLoader(val_set)')  # DataLoader(val_set)"}, id="in a string and a comment"),
        pytest.param({"imports": "import lib", "end": "v = lib.DataLoader(val_set)"}, id="another library's"),
    ],
)
def test_only_the_training_loader(parts: dict[str, str]) -> None:
    assert found("DPM201", **parts) == ["DataLoader(train_set, batch_size=16, shuffle=True)"]


@pytest.mark.parametrize(
    ("loader", "new"),
    [
        pytest.param("DataLoader(train_set, batch_size=4)", f"DataLoader(train_set, {_KW}, sampler=ddp.DistributedSampler(train_set, shuffle=False))", id="not shuffled"),
        pytest.param("DataLoader(train_set, 4, True)", "DataLoader(train_set, ddp.local_batch(4), sampler=ddp.DistributedSampler(train_set))", id="positional"),
        pytest.param("DataLoader(train_set, 4, False)", "DataLoader(train_set, ddp.local_batch(4), sampler=ddp.DistributedSampler(train_set, shuffle=False))", id="positional False"),
        pytest.param("DataLoader(dataset=train_set, batch_size=4, shuffle=True)", f"DataLoader(dataset=train_set, {_KW}, sampler=ddp.DistributedSampler(train_set))", id="keywords"),
        pytest.param("DataLoader(train_set, 4, True, num_workers=0)", "DataLoader(train_set, ddp.local_batch(4), num_workers=0, sampler=ddp.DistributedSampler(train_set))", id="workers"),
        pytest.param(
            "DataLoader(train_set, 4, True, None, num_workers=2)",
            "DataLoader(train_set, ddp.local_batch(4), sampler=ddp.DistributedSampler(train_set), num_workers=2)", id="many positional",
        ),
        pytest.param(
            "DataLoader(train_set, batch_size=4, shuffle=flag)", f"DataLoader(train_set, {_KW}, sampler=ddp.DistributedSampler(train_set, shuffle=flag))", id="shuffle is a setting",
        ),
        pytest.param(
            "DataLoader(train_set, batch_size=4, drop_last=True)",
            f"DataLoader(train_set, {_KW}, drop_last=True, sampler=ddp.DistributedSampler(train_set, shuffle=False, drop_last=True))", id="drop_last",
        ),
        pytest.param(
            "DataLoader(train_set, batch_size=4, drop_last=flag)",
            f"DataLoader(train_set, {_KW}, drop_last=flag, sampler=ddp.DistributedSampler(train_set, shuffle=False, drop_last=flag))", id="drop_last is a setting",
        ),
        pytest.param(
            "DataLoader(train_set, batch_size=4, drop_last=False)",
            f"DataLoader(train_set, {_KW}, drop_last=False, sampler=ddp.DistributedSampler(train_set, shuffle=False))", id="drop_last=False",
        ),
        pytest.param("DataLoader(sets[0].part, batch_size=4)", f"DataLoader(sets[0].part, {_KW}, sampler=ddp.DistributedSampler(sets[0].part, shuffle=False))", id="a path to the set"),
        pytest.param("DataLoader(train_set, batch_size=4, sampler=None)", f"DataLoader(train_set, {_KW}, sampler=ddp.DistributedSampler(train_set, shuffle=False))", id="sampler=None"),
        pytest.param(
            "DataLoader(train_set, batch_size=4, sampler=own, drop_last=flag)",
            f"DataLoader(train_set, {_KW}, sampler=ddp.shard_sampler(own, drop_last=flag), drop_last=flag)", id="a sampler of its own, drop_last",
        ),
        pytest.param(
            "DataLoader(train_set, batch_size=4, sampler=own)", f"DataLoader(train_set, {_KW}, sampler=ddp.shard_sampler(own))", id="a sampler of its own",
        ),
        pytest.param(
            "DataLoader(train_set, batch_sampler=own)", "ddp.distribute(DataLoader(train_set, batch_sampler=own))", id="a batch sampler",
        ),
        pytest.param("DataLoader(train_set, **dict(a=1, batch_size=4))", "ddp.distribute(DataLoader(train_set, **dict(a=1, batch_size=4)))", id="hidden arguments"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(loader: str, new: str, module_level: bool) -> None:
    setup = "flag = True\nsets = [train_set]\nown = torch.utils.data.RandomSampler(train_set)"
    parts: dict[str, str | bool] = {"setup": setup, "loader": f"loader = {loader}", "module_level": module_level}
    assert found("DPM201", **parts) == [loader]
    assert f"loader = {new}" in after(**parts)


def test_positional_none_for_the_sampler() -> None:
    lines = _lines(loader="loader = DataLoader(train_set, 4, sampler=None, shuffle=True)")
    assert "loader = DataLoader(train_set, ddp.local_batch(4), sampler=ddp.DistributedSampler(train_set))" in lines


def test_a_set_that_is_made_inside_gets_a_name() -> None:
    lines = _lines(loader="loader = DataLoader(TensorDataset(torch.ones(8, 8), torch.ones(8)), batch_size=4)")
    assert "train_set_2 = TensorDataset(torch.ones(8, 8), torch.ones(8))" in lines
    assert f"loader = DataLoader(train_set_2, {_KW}, sampler=ddp.DistributedSampler(train_set_2, shuffle=False))" in lines


def test_two_sets_that_are_made_inside() -> None:
    made = "DataLoader(TensorDataset(torch.ones(8, 8), torch.ones(8)), batch_size=4)"
    lines = _lines(data="", loader=f"a = {made}\nb = {made}\nfor e in range(2):\n    for x, y in b:\n        F.cross_entropy(model(x), y).backward()", batches="for x, y in a:",
                   model="", setup="model = Net()")  # fmt: skip
    assert "train_set = TensorDataset(torch.ones(8, 8), torch.ones(8))" in lines
    assert "train_set_2 = TensorDataset(torch.ones(8, 8), torch.ones(8))" in lines


@pytest.mark.parametrize(
    ("setup", "seed"),
    [
        pytest.param("torch.manual_seed(7)", ", seed=7", id="a number"),
        pytest.param("s = 7\ntorch.manual_seed(s)", ", seed=s", id="a name"),
        pytest.param("s = os.environ\ntorch.manual_seed(s.seed)", ", seed=s.seed", id="a setting"),
        pytest.param("torch.manual_seed(seed=7)", _COMMON, id="by keyword: not followed"),
        pytest.param("torch.manual_seed(int('7'))", _COMMON, id="an expression"),
        pytest.param("if os.environ:\n    torch.manual_seed(7)", _COMMON, id="under a test"),
        pytest.param("if os.environ:\n    torch.manual_seed(s.seed)", _COMMON, id="a setting under a test"),
        pytest.param("", _COMMON, id="nowhere in this file"),
    ],
)
def test_the_seed_of_the_script(setup: str, seed: str) -> None:
    new = f"loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set{seed}))"
    assert new in _lines(setup=setup)


def test_seeds_that_the_loader_does_not_see() -> None:
    plain = f"loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set{_COMMON}))"
    assert plain in _lines(defs="def fix():\n    torch.manual_seed(7)", setup="fix()")
    assert plain in _lines(before="s = 7\ntorch.manual_seed(s)")
    assert plain in _lines(defs="s = 7\ntorch.manual_seed(s)", setup="s = 8")


def test_a_seed_that_is_set_later() -> None:
    """The order is drawn when the epochs begin."""
    assert any("seed=7" in line for line in _lines(before="torch.manual_seed(7)"))
    assert any("seed=s.seed" in line for line in _lines(setup="s = os.environ", before="torch.manual_seed(s.seed)"))


_FIX = "def fix(s, t=0):\n    torch.manual_seed(s)"


@pytest.mark.parametrize(
    ("defs", "setup", "seed"),
    [
        pytest.param(_FIX, "fix(7)", ", seed=7", id="a number"),
        pytest.param(_FIX, "a = os.environ\nfix(t=1, s=a.seed)", ", seed=a.seed", id="by keyword"),
        pytest.param(_FIX, "fix(7)\nfix(8)", _COMMON, id="called twice"),
        pytest.param(_FIX, "if os.environ:\n    fix(7)", _COMMON, id="called under a test"),
        pytest.param("def fix(s=3):\n    torch.manual_seed(s)", "fix()", _COMMON, id="not given"),
        pytest.param("def fix(s):\n    if s:\n        torch.manual_seed(s)", "fix(7)", _COMMON, id="set under a test"),
        pytest.param("def fix(s):\n    s = s + 1\n    torch.manual_seed(s)", "fix(7)", _COMMON, id="counted up"),
        pytest.param("def fix(s):\n    torch.manual_seed(s + 1)", "fix(7)", _COMMON, id="an expression"),
    ],
)
def test_a_seed_that_a_function_sets(defs: str, setup: str, seed: str) -> None:
    new = f"loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set{seed}))"
    assert new in _lines(defs=defs, setup=setup)


@pytest.mark.parametrize(
    ("generator", "seed"),
    [
        pytest.param("g", "ddp.common_seed(g)", id="a name"),
        pytest.param("torch.Generator().manual_seed(3)", "3", id="made in place"),
        pytest.param("g if g else None", "", id="else"),
    ],
)
def test_the_seed_of_the_loader_s_generator(generator: str, seed: str) -> None:
    loader = f"loader = DataLoader(train_set, batch_size=4, shuffle=True, generator={generator})"
    lines = _lines(setup="g = torch.Generator().manual_seed(3)", loader=loader)
    option = f", seed={seed}" if seed else ""
    assert any(f"sampler=ddp.DistributedSampler(train_set{option})" in line for line in lines)


def test_a_seed_of_the_module_and_of_the_guard() -> None:
    assert any("seed=7" in line for line in _lines(defs="torch.manual_seed(7)"))
    text = "loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=S))"
    assert text in _lines(defs="S = 7\ntorch.manual_seed(S)")


def test_no_seed_where_the_order_is_fixed() -> None:
    assert not any("seed=" in line for line in _lines(setup="torch.manual_seed(7)", loader="loader = DataLoader(train_set, 4, False)"))
    assert not any("seed=" in line for line in _lines(setup="torch.manual_seed(7)", loader="loader = DataLoader(train_set, 4)"))


def test_a_factory_for_training_and_evaluation() -> None:
    defs = "def make(s):\n    return DataLoader(s, batch_size=4)"
    end = "v = make(val_set)\nn = 0\nfor a, b in v:\n    n += model(a).sum().item()"
    assert "loader = ddp.distribute(make(train_set))" in _lines(defs=defs, loader="loader = make(train_set)", end=end)


def test_a_factory_beside_a_loader_of_another_loop() -> None:
    defs = "def make(s):\n    return DataLoader(s, batch_size=4)"
    end = "v = make(val_set)\nn = 0\nfor a, b in v:\n    n += model(a).sum().item()"
    setup = "warm = DataLoader(val_set, batch_size=4)\nopt = torch.optim.SGD(model.parameters(), lr=1)\nfor x, y in warm:\n    F.cross_entropy(model(x), y).backward()\n    opt.step()"
    lines = _lines(defs=defs, loader="loader = make(train_set)", before=setup, end=end)
    assert "loader = ddp.distribute(make(train_set))" in lines
    assert not any("ddp.distribute" in line for line in lines if "warm" in line)


def test_a_dict_of_loaders() -> None:
    loader = "loaders = {k: DataLoader(s, batch_size=4) for k, s in (('train', train_set), ('val', val_set))}"
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()"
    lines = _lines(loader=loader, batches="for x, y in loaders['train']:", step=step)
    assert "loaders['train'] = ddp.distribute(loaders['train'])" in lines


def test_per_rank_batches() -> None:
    settings = Settings(batch="per-rank")
    loader = "loader = DataLoader(train_set, **dict(a=1, batch_size=4))"
    assert "loader = ddp.distribute(DataLoader(train_set, **dict(a=1, batch_size=4)), keep_batch_size=True)" in after(settings, loader=loader)


def test_loaders_of_a_dict_that_another_function_makes() -> None:
    """What is divided has its name where it is made, not where it is used."""
    make = "def get(train_set):\n    made = {k: DataLoader(train_set, batch_size=16, shuffle=True) for k in ('train', 'val')}\n    return made\n"
    lines = whole(defs=make, loader="loaders = get(train_set)", batches="for x, y in loaders['train']:").splitlines()
    assert "    made['train'] = ddp.distribute(made['train'])" in lines


_SCRIPT = """\
import torch
from torch import nn
import data
model = nn.DataParallel(nn.Linear(4, 1))
{}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""
_DATA = "from torch.utils.data import DataLoader\n{}\n"
_FUNCTION = "def get():\n    return DataLoader(train_set, batch_size=4, shuffle=True)"


@pytest.mark.parametrize(
    ("data", "start", "seed"),
    [
        pytest.param(_FUNCTION, "torch.manual_seed(7)\nloader = data.get()", "", id="set before a function of another file is called"),
        pytest.param(_FUNCTION, "loader = data.get()\ntorch.manual_seed(7)", "7", id="set after it is called"),
        pytest.param("loader = DataLoader(train_set, 4, True)", "torch.manual_seed(7)\nloader = data.loader", "7", id="built when the other file is imported"),
    ],
)
def test_a_number_that_another_file_sets(data: str, start: str, seed: str) -> None:
    """Two scripts that share a file may seed it differently."""
    script = script_of({"data": _DATA.format(data), "train": _SCRIPT.format(start)})
    (edit,) = [e for f in rules.check(script) if f.code == "DPM201" for e in f.edits if isinstance(e, SetArg) and e.name == "sampler"]
    assert edit.value == f"ddp.DistributedSampler(train_set{f', seed={seed}' if seed else ''})"


def test_a_seed_of_a_name_that_only_functions_bind() -> None:
    lines = "global opt\nopt = argparse.Namespace(seed=7)\ntorch.manual_seed(opt.seed)"
    assert "seed=opt.seed" in whole(imports="import argparse", setup=lines)
    late = "opt = argparse.Namespace(seed=7)\ntorch.manual_seed(opt.seed)"
    assert "ddp.DistributedSampler(train_set)" in whole(imports="import argparse", before="global opt\n" + late)


_SECOND = "train_set_b = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))\n"
_BOTH = {"batches": "for (x, y), (u, v) in zip(loader, other):"}


def _seeds(**parts: str | bool) -> list[str]:
    """The seeds of the samplers, '' where the runtime asks for it."""
    return re.findall(r"DistributedSampler\([\w.]+(?:, shuffle=bool[^,\n]+)?(?:, seed=([^,\n]*?))?\)\)$", whole(**parts), re.MULTILINE)


_FIRST = "loader = DataLoader(train_set, batch_size=16, shuffle=True)\n"


@pytest.mark.parametrize(
    ("parts", "seeds"),
    [
        pytest.param({"loader": _FIRST}, ["s"], id="one loader"),
        pytest.param({"loader": _FIRST + "other = DataLoader(train_set_b, batch_size=16)", **_BOTH}, ["s"], id="the other is not shuffled"),
        pytest.param(
            {"loader": _FIRST + "other = DataLoader(train_set_b, 16, shuffle=True)", "end": "for a, b in other:\n    print(model(a))"}, ["s"], id="the other evaluates",
        ),
        pytest.param(
            {"loader": "if os.environ:\n    loader = DataLoader(train_set, batch_size=16, shuffle=True)\nelse:\n    loader = DataLoader(train_set_b, batch_size=8, shuffle=True)"},
            ["s", "s"], id="one or the other",
        ),
        pytest.param(
            {"loader": "g = torch.Generator().manual_seed(5)\n" + _FIRST + "other = DataLoader(train_set_b, batch_size=16, shuffle=True, generator=g)", **_BOTH},
            ["s", "ddp.common_seed(g)"], id="a generator of its own",
        ),
        pytest.param(
            {
                "loader": "loader = DataLoader(train_set, 16, True, generator=torch.Generator().manual_seed(5))\n"
                "other = DataLoader(train_set_b, 16, True, generator=torch.Generator().manual_seed(5))", **_BOTH,
            },
            ["5", "5"], id="the program's own pairs",
        ),
        pytest.param({"epoch_start": "loader = DataLoader(train_set, batch_size=16, shuffle=True)", "loader": ""}, ["s"], id="built in each epoch"),
        pytest.param(
            {
                "defs": "def run(s, model, optimizer, train_set):\n    loader = DataLoader(train_set, batch_size=16, shuffle=True)\n    for x, y in loader:\n"
                "        optimizer.zero_grad()\n        F.cross_entropy(model(x), y).backward()\n        optimizer.step()",
                "loader": "", "epoch_start": "run(s, model, optimizer, train_set)", "batches": "for k in range(1):", "step": "pass",
            },
            [""], id="built in a function for each epoch",
        ),
    ],
)  # fmt: skip
def test_no_other_seed(parts: dict[str, str | bool], seeds: list[str]) -> None:
    assert _seeds(**{"setup": f"s = 7\ntorch.manual_seed(s)\n{_SECOND}", **parts}) == seeds


@pytest.mark.parametrize(
    ("parts", "seeds"),
    [
        pytest.param({"loader": _FIRST + "other = DataLoader(train_set_b, batch_size=16, shuffle=True)", **_BOTH}, ["s", "s + 1000"], id="two in step"),
        pytest.param({"loader": _FIRST + "other = DataLoader(train_set_b, 16, True)", **_BOTH}, ["s", "s + 1000"], id="positional"),
        pytest.param({"loader": _FIRST + "other = DataLoader(train_set_b, 16, shuffle=bool(s))", **_BOTH}, ["s", "s + 1000"], id="shuffle is a setting"),
        pytest.param(
            {"loader": _FIRST + "other = DataLoader(train_set_b, 16, shuffle=True)\nthird = DataLoader(train_set, 16, shuffle=True)",
             "batches": "for (x, y), (u, v), (p, q) in zip(loader, other, third):"},
            ["s", "s + 1000", "s + 2000"], id="three",
        ),
        pytest.param(
            {"loader": _FIRST + "other = DataLoader(train_set_b, 16, shuffle=True)\nits = iter(other)", "step": "u, v = next(its)\n" + STEP.replace("y)", "y) + model(u).mean()")}, ["s", "s + 1000"], id="next()",
        ),
        pytest.param(
            {"loader": _FIRST + "if os.environ:\n    other = DataLoader(train_set_b, 16, shuffle=True)\nelse:\n    other = DataLoader(train_set, 8, shuffle=True)", **_BOTH},
            ["s", "s + 1000", "s + 1000"], id="beside one or the other",
        ),
        pytest.param(
            {"loader": _FIRST + "own = torch.utils.data.RandomSampler(train_set_b)\nother = DataLoader(train_set_b, batch_size=16, sampler=own)", **_BOTH},
            [""], id="beside a sampler that asks the runtime",
        ),
        pytest.param(
            {"loader": "options = dict(shuffle=True)\n" + _FIRST + "other = DataLoader(train_set_b, 16, **options)", **_BOTH},
            [""], id="beside a loader that the runtime divides",
        ),
        pytest.param(
            {"defs": "def get(data):\n    return DataLoader(data, batch_size=16, shuffle=True)", "loader": _FIRST + "other = get(train_set_b)", **_BOTH},
            ["", ""], id="beside one that does not see the seed",
        ),
    ],
)  # fmt: skip
def test_each_of_several_has_its_own_seed(parts: dict[str, str | bool], seeds: list[str]) -> None:
    assert _seeds(**{"setup": f"s = 7\ntorch.manual_seed(s)\n{_SECOND}", **parts}) == seeds


def test_a_number_is_counted_up() -> None:
    loader = _FIRST + "other = DataLoader(train_set_b, batch_size=16, shuffle=True)"
    assert _seeds(setup=f"torch.manual_seed(7)\n{_SECOND}", loader=loader, **_BOTH) == ["7", "1007"]


_SET_AND_GET = "s = 7\ntorch.manual_seed(s)\ndef get(data):\n    return DataLoader(data, batch_size=16, shuffle=True)"


@pytest.mark.parametrize(
    ("parts", "seed"),
    [
        pytest.param({"loader": "loader = get(train_set)"}, "s", id="called once"),
        pytest.param({"loader": "loader, other = get(train_set), get(train_set_b)", **_BOTH}, "", id="called for each"),
        pytest.param({"loader": "both = [get(d) for d in (train_set, train_set_b)]", "batches": "for x, y in both[0]:"}, "", id="in a comprehension"),
        pytest.param(
            {"loader": "both = []\nfor d in (train_set, train_set_b):\n    both.append(get(d))", "batches": "for x, y in both[0]:"}, "", id="in a loop",
        ),
    ],
)  # fmt: skip
def test_a_function_that_makes_loaders(parts: dict[str, str | bool], seed: str) -> None:
    """What one place makes is told apart when the program runs."""
    assert _seeds(defs=_SET_AND_GET, setup=_SECOND, **parts) == [seed]


def test_the_last_of_several_seeds_counts() -> None:
    once = "torch.manual_seed(1)\n"
    assert "seed=1)" in whole(loader=once + "loader = DataLoader(train_set, batch_size=16, shuffle=True)")
    assert "ddp.DistributedSampler(train_set)" in whole(defs=once, loader="torch.manual_seed(seed)\nloader = DataLoader(train_set, batch_size=16, shuffle=True)")


_BY_PHASE = """
from tqdm import tqdm


def make(phase, size):
    data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
    return DataLoader(data, batch_size=size, shuffle=phase == "train")


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.phases = ["train", "val"]
        self.loaders = {phase: make(phase, 16) for phase in self.phases}

    def run(self, phase):
        loader = self.loaders[phase]
        loader = tqdm(loader)
        for i, (x, y) in enumerate(loader):
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(self.model(x), y)
                if phase == "train":
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
"""


@pytest.mark.parametrize("bar", [True, False], ids=["bound anew", "as it is"])
def test_a_factory_of_a_comprehension_for_training_and_evaluation(bar: bool) -> None:
    defs = _BY_PHASE if bar else _BY_PHASE.replace("        loader = tqdm(loader)\n", "")
    run = "trainer = Trainer(model, optimizer)\nfor epoch in range(2):\n    trainer.run('train')\n    trainer.run('val')"
    lines = whole(defs=defs, loader="", epochs="if True:", batches="if True:", step="pass", end=run).splitlines()
    assert [line.strip() for line in lines if "distribute(" in line] == ["self.loaders['train'] = ddp.distribute(self.loaders['train'])"]
    assert "    return DataLoader(data, batch_size=size, shuffle=phase == \"train\")" in lines
