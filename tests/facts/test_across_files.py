"""Facts that have one answer whether a program stands in one file or in several."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from dpmigrate import migration, rules
from dpmigrate.facts.control import uniform
from dpmigrate.facts.script import Script
from dpmigrate.linking import link
from dpmigrate.settings import Settings
from dpmigrate.source import Source, parse

_TRAIN = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
{imports}
loader = DataLoader(range(64), batch_size=16, shuffle=True)
net = nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for x in loader:
        optimizer.zero_grad()
        loss = net(x).mean()
        loss.backward()
        optimizer.step()
        {step}
    {end}
"""


def program(folder: Path, files: Mapping[str, str]) -> Script:
    for name, text in files.items():
        (folder / name).write_text(text)
    source = parse((folder / "train.py").read_bytes(), str(folder / "train.py"))
    assert isinstance(source, Source)
    return Script(link(folder / "train.py", source), Settings())


def trained(folder: Path, files: Mapping[str, str], imports: str, step: str = "pass", end: str = "pass") -> Script:
    return program(folder, {**files, "train.py": _TRAIN.format(imports=imports, step=step, end=end)})


# ------------------------------------------------------------------ decisions
_FLAG = "stop = False\ndef watch(v):\n    global stop\n    stop = v > 3\n"
_TABLE = "flags = {'stop': False}\n"


@pytest.mark.parametrize(
    ("state", "imports", "step", "test"),
    [
        pytest.param("stop = False\n", "import state", "pass", "state.stop", id="nobody changes it"),
        pytest.param("stop = False\n", "from state import *", "pass", "stop", id="by star, nobody changes it"),
        pytest.param(_TABLE, "from state import flags as f", "f['stop'] = epoch > 1", "f['stop']", id="changed alike"),
    ],
)
def test_the_same_on_every_rank(tmp_path: Path, state: str, imports: str, step: str, test: str) -> None:
    assert _decides_alike(trained(tmp_path, {"state.py": state}, imports, f"{step}\n        if {test}: break"))


@pytest.mark.parametrize(
    ("state", "imports", "step", "test"),
    [
        pytest.param(_FLAG, "import state", "state.watch(loss.item())", "state.stop", id="a flag of a module, set by its function"),
        pytest.param(_TABLE, "from state import flags", "flags['stop'] = loss.item() > 3", "flags['stop']", id="a table that is filled here"),
        pytest.param(_TABLE, "from state import flags as f\nimport state", "f['stop'] = loss.item() > 3", "state.flags['stop']", id="under two names"),
        pytest.param(_TABLE, "from state import *\nfrom elsewhere import *", "flags['stop'] = loss.item() > 3", "flags['stop']", id="by star, beside another"),
        pytest.param(
            "stop = []\ndef note(v):\n    if v > 3:\n        stop.append(1)\ndef stopped():\n    return len(stop) > 0\n",
            "from state import note as n, stopped",
            "n(loss.item())",
            "stopped()",
            id="a function under another name",
        ),
    ],
)
def test_may_differ(tmp_path: Path, state: str, imports: str, step: str, test: str) -> None:
    assert not _decides_alike(trained(tmp_path, {"state.py": state}, imports, f"{step}\n        if {test}: break"))


def _decides_alike(found: Script) -> bool:
    (test,) = [n.test for n in found.names.nodes if isinstance(n, ast.If) and isinstance(n.body[0], ast.Break)]
    return uniform(found.names, test)


# ------------------------------------------------------------------ totals
@pytest.mark.parametrize(
    ("imports", "end"),
    [
        pytest.param("import state", "print(state.total)", id="as an attribute of the module"),
        pytest.param("import state as s", "print(s.total)", id="alias"),
    ],
)
def test_a_total_that_another_file_reads(tmp_path: Path, imports: str, end: str) -> None:
    state = "total = 0\ndef run(loader, net, optimizer):\n    global total\n    total = 0\n    for x in loader:\n        optimizer.zero_grad()\n"
    state += "        loss = net(x).mean()\n        loss.backward()\n        optimizer.step()\n        total += loss.item()\n"
    script = (
        "import torch\nfrom torch.utils.data import DataLoader\n" + imports + "\nnet = torch.nn.Linear(1, 1)\nloader = DataLoader(range(64), batch_size=16)\n"
    )
    word = imports.split()[-1]
    script += f"for epoch in range(3):\n    {word}.run(loader, net, torch.optim.SGD(net.parameters(), lr=0.1))\n    {end}\n"
    read = program(tmp_path, {"state.py": state, "train.py": script})
    assert [f.message for f in rules.check(read) if f.code == "DPM602"] == ["total would cover one rank's share of the epoch"]


# ------------------------------------------------------------------ alternatives, loaders through constructors
@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_each_of_two_imports_may_be_meant(tmp_path: Path, order: tuple[str, str]) -> None:
    files = {"a.py": "from torch import nn\nclass Net(nn.Linear): ...\n", "b.py": "from torch import nn\nclass Net(nn.Bilinear): ...\n"}
    script = f"try:\n    from {order[0]} import Net\nexcept ImportError:\n    from {order[1]} import Net\nprobe(Net)\n"
    found = program(tmp_path, {**files, "train.py": script})
    (call,) = found.names.calls("probe")
    assert {ast.unparse(v.cls.bases[0]) for v in found.values.eval(call.args[0]) if v.cls is not None} == {"nn.Linear", "nn.Bilinear"}


def test_loaders_of_a_factory_are_divided_where_their_results_are_kept(tmp_path: Path) -> None:
    """One call makes them all; that of the training loop comes through a constructor, and an evaluation uses it as well."""
    data = "from torch.utils.data import DataLoader\ndef make(n, mode):\n    return DataLoader(range(n), batch_size=16, shuffle=mode == 'train')\n"
    solver = """
import torch
class Solver:
    def __init__(self, first, second):
        self.first, self.second = first, second
        self.net = torch.nn.Linear(1, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def train(self, which):
        loader = self.first if which else self.second
        if which:
            loader = self.first
        for epoch in range(2):
            for x in loader:
                self.optimizer.zero_grad()
                self.net(x).mean().backward()
                self.optimizer.step()
    def test(self):
        with torch.no_grad():
            for x in self.first:
                print(self.net(x))
"""
    script = "from data import make\nfrom solver import Solver\nfirst = make(64, 'train')\ns = Solver(first, make(32, 'test'))\ns.train(1)\ns.test()\n"
    found = program(tmp_path, {"data.py": data, "solver.py": solver, "train.py": script})
    (call,) = found.train_loader_calls
    assert "make(64, 'train')" in [found.text(e) for e in found.distributed_at(call)]


# ------------------------------------------------------------------ half a migration
_STEP = "import torch\nimport dpmigrate_runtime as ddp\ndef wrapped(net):\n    return ddp.wrap(net)\n"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        pytest.param("import step, dpmigrate_runtime as ddp\nddp.setup()\nstep.wrapped(1)\n", "", id="it sets up the ranks"),
        pytest.param("import step\nfrom dpmigrate_runtime import setup as begin\nbegin()\nstep.wrapped(1)\n", "", id="under another name"),
        pytest.param("import step, torch.distributed as dist\ndist.init_process_group()\nstep.wrapped(1)\n", "", id="torch's own set-up"),
        pytest.param("import step\nprint(1)\n", "", id="nothing that runs uses the runtime"),
        pytest.param("import step\nstep.wrapped(1)\n", "step.py was migrated with another script", id="only the module was"),
        pytest.param("import step, lib\nlib.setup()\nstep.wrapped(1)\n", "step.py was migrated with another script", id="another setup"),
        pytest.param("import dpmigrate_runtime as ddp\ndef f(n):\n    return ddp.wrap(n)\n", "", id="a module by itself"),
        pytest.param("import dpmigrate_runtime as ddp\nprint(ddp.rank())\n", "it was migrated as a module of another script", id="the script was, as a module"),
    ],
)
def test_half_a_migration(tmp_path: Path, script: str, told: str) -> None:
    said = migration.half_done(program(tmp_path, {"step.py": _STEP, "train.py": script}))
    assert (told in said) if told else said == ""


# ------------------------------------------------------------------ names
@pytest.mark.parametrize("imports", ["import model", "from model import Net as model"])
def test_a_name_that_is_imported_and_given_anew(tmp_path: Path, imports: str) -> None:
    """Before the new value it is the module's; after it the script's own."""
    made = "model.Net" if imports == "import model" else "model"
    files = {"model.py": "import torch.nn as nn\nclass Net(nn.Linear):\n    rows = 3\n"}
    found = trained(tmp_path, files, f"{imports}\nfirst = {made}\nmodel = {made}(1, 1)\nlast = model")
    names = found.names
    reads = [n for n in names.reads("model") if isinstance(n.ctx, ast.Load)]
    meant = [m for m in map(names.meant, reads) if m is not None]
    assert len(meant) == 3
    assert meant[0] == meant[1] != meant[2]
    assert meant[2][1] == "model"


def test_a_name_that_is_imported_twice(tmp_path: Path) -> None:
    files = {"model.py": "import torch.nn as nn\nclass Net(nn.Linear):\n    pass\n"}
    found = trained(tmp_path, files, "from model import Net\nfrom model import Net\nprobe = Net")
    (read,) = [n for n in found.names.reads("Net") if isinstance(n.ctx, ast.Load)]
    (value,) = found.values.eval(read)
    assert value.cls is not None and value.cls.name == "Net"
