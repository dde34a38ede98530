"""DPM146: programs that may train although no backward() stands in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Severity, Status
from dpmigrate.plans import Writing
from dpmigrate.settings import Settings
from tests.pipeline import findings, script

_TOP = """
import argparse
import runpy
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
import lib
from lib import *

args = argparse.ArgumentParser().parse_args()
train_set = TensorDataset(torch.randn(64, 8))
loader = DataLoader(train_set, batch_size=16, shuffle=True)
test_loader = DataLoader(train_set, batch_size=16)
model = nn.Linear(8, 2)
"""
_OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def _found(lines: str) -> list[str]:
    found = findings(_TOP + lines)
    assert {f.code for f in found} <= {"DPM146"} and all(f.severity is Severity.BLOCKER and not f.edits for f in found)
    return [f.message for f in found]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("", id="nothing is handed out"),
        pytest.param("with torch.no_grad():\n    for x in test_loader:\n        print(model(x[0]))", id="an evaluation"),
        pytest.param("print(lib.evaluate(model, test_loader))", id="an evaluation by a library"),
        pytest.param("print(lib.accuracy(model, loader))", id="an evaluation over a loader that shuffles"),
        pytest.param("lib.summary(model, (3, 32, 32))", id="a summary"),
        pytest.param(_OPTIMIZER + "lib.load_checkpoint('a.pt', model, optimizer)\nlib.evaluate(model, test_loader)", id="a checkpoint with an optimizer"),
        pytest.param(
            _OPTIMIZER + "schedule = lib.Warmup(optimizer)\nfor i in range(9):\n    schedule.step()\n    print(schedule.get_last_lr())",
            id="a schedule by a library",
        ),
        pytest.param(
            "opt = torch.optim.SGD([torch.zeros(1)], lr=1.0)\ns = torch.optim.lr_scheduler.StepLR(opt, 3)\nprint(s)\nlib.plot(s)",
            id="a schedule is drawn",
        ),
        pytest.param("net = lib.create('resnet18')\nnet.train()\nnet.train(False)\nnet.train(mode=True)\nnet.train(not args.eval)", id="the mode of a module"),
        pytest.param("net = lib.Wrapped(model)\nfor mode in (True, False):\n    net.train(mode)", id="a mode that is a variable"),
        pytest.param("net = lib.Wrapped(model)\nnet.fit = 3\nnet.train(is_train)", id="another"),
        pytest.param("from sklearn.linear_model import LogisticRegression\nLogisticRegression().fit(model, loader)", id="a classifier of sklearn"),
        pytest.param("lib.KMeans(8).fit(torch.randn(3, 3))", id="clusters of arrays"),
        pytest.param("a, b = lib.train_test_split(args.x, args.y)", id="a split"),
        pytest.param("t = lib.train_transform(224)\nfit = lib.fit\nfit(3)", id="a transform for training"),
        pytest.param("trainer = lib.Trainer(model)\nprint(trainer.evaluate(test_loader), trainer.predict(loader))", id="a trainer that only evaluates"),
        pytest.param("lib.BpeTrainer(vocab_size=100)", id="a trainer of something else"),
        pytest.param(
            "x = torch.randn(1, 8).requires_grad_()\n(g,) = torch.autograd.grad(model(x).sum(), x)\nx = x - 0.1 * g.sign()", id="gradients of a sample"
        ),
        pytest.param(
            "for (x,) in loader:\n    x = x.clone().requires_grad_()\n    g = torch.autograd.grad(model(x).sum(), [x])[0]\n    x -= 0.1 * g", id="of a batch"
        ),
        pytest.param("gs = torch.autograd.grad(model(torch.ones(8)).sum(), model.parameters())\nprint(gs)", id="gradients that are shown"),
        pytest.param("img = torch.randn(1, 3, requires_grad=True)\ntorch.func.grad(model)(img)", id="a gradient that changes nothing"),
        pytest.param("exec(open('version.py').read())\nDataLoader = None", id="text where nothing is there to train"),
        pytest.param(_OPTIMIZER + "exec('print(1)')", id="text that is known"),
        pytest.param("def train():\n    lib.fit(model, loader)", id="a function that nothing calls"),
        pytest.param("class Net(lib.Base):\n    def run(self):\n        return 1\nNet(model, loader).run()", id="a method of the program's own"),
        pytest.param("class Net(nn.Module):\n    pass\nNet().train(test_loader)", id="of torch's"),
        pytest.param("print(sum([1]), *loader)", id="builtins beside a star import"),
    ],
)
def test_nothing_is_trained(lines: str) -> None:
    text = _TOP.replace(", shuffle=True", "") + lines if "exec(open" in lines else _TOP + lines
    assert script(text).exempt.startswith("no backward()") and findings(text) == ()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        pytest.param("lib.go(model, optimizer, loader)", "lib.go is given optimizer and loader", id="a function"),
        pytest.param("lib.go(model, opt=torch.optim.Adam, data=train_set)", "lib.go is given torch.optim.Adam and train_set", id="the class of an optimizer"),
        pytest.param("go(model, optimizer, train_set)", "lib.go is given optimizer and train_set", id="through a star import"),
        pytest.param("step = lib.Step(model, optimizer=optimizer)\nstep.run(loader)", "lib.Step is given optimizer and loader", id="an object and its method"),
        pytest.param("step = lib.Step(model, optimizer)\nfor batch in loader:\n    step(batch)", "", id="an object that is called"),
        pytest.param(
            "step = lib.Step(model, optimizer)\nfor batch in loader:\n    step.update(batch)", "lib.Step is given optimizer and batch", id="batch for batch"
        ),
        pytest.param(
            "lib.Loop(models={'a': model}, optimizers={'a': optimizer}, dataset=train_set).train()", "lib.Loop is given optimizer and train_set", id="in tables"
        ),
        pytest.param("o = lib.make_optimizer(model)\nlib.go(optimizer=o, data=loader)", "lib.go is given o and loader", id="an optimizer by its keyword"),
        pytest.param(
            "class Opt(torch.optim.Optimizer):\n    pass\nlib.go(Opt(), loader)", "lib.go is given Opt() and loader", id="an optimizer of the program"
        ),
        pytest.param("class Data(Dataset):\n    pass\nlib.go(optimizer, Data())", "lib.go is given optimizer and Data()", id="a data set of the program"),
        pytest.param("lib.fit(model, x=args.x)", "lib.fit is given model", id="told to fit a model"),
        pytest.param("lib.train_model(test_loader)", "lib.train_model is given test_loader", id="told to train on a loader"),
        pytest.param("class Net(nn.Module):\n    pass\nlib.finetune([Net()])", "lib.finetune is given Net()", id="a model by its class"),
        pytest.param("lib.pretrain(optimizer)", "lib.pretrain is given optimizer", id="told to train with an optimizer"),
        pytest.param("lib.Net('a.pt').train(data='a.yaml', epochs=3)", "lib.Net is given 3", id="told how long"),
        pytest.param("lib.Net(model).fit()", "lib.Net is given model", id="told to fit what it has"),
        pytest.param("lib.Net('a').train(loader)", "lib.Net is given loader", id="train with data is no mode"),
        pytest.param("t = lib.Trainer(model=model)\nt.go()\nt.evaluate()", "lib.Trainer is given model", id="a trainer by its name"),
        pytest.param("fit = lib.fit\nfit(model)", "lib.fit is given model", id="by another name"),
        pytest.param(
            "class Mine(lib.Trainer):\n    def loss(self):\n        return 1\nm = Mine(model, optimizer, loader)\nm.loss()\nm.start()",
            "lib.Trainer.start is given optimizer and loader",
            id="a class that derives from theirs",
        ),
    ],
)
def test_what_is_handed_out(lines: str, words: str) -> None:
    expected = [f"{words}: whether and how it trains is not seen"] if words else []
    assert _found(_OPTIMIZER + lines) == expected


def test_what_stands_in_functions_is_seen_too() -> None:
    text = "def main():\n    optimizer = torch.optim.SGD(model.parameters(), 0.1)\n    lib.Step(model, optimizer).run(loader)\n\nif __name__ == '__main__':\n    main()"
    assert _found(text) == ["lib.Step is given optimizer and loader: whether and how it trains is not seen"]


_BY_HAND = "for (x,) in loader:\n    loss = model(x).sum()\n    {}\n"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            _BY_HAND.format("for p, g in zip(model.parameters(), torch.autograd.grad(loss, model.parameters())):\n        p.data -= 0.1 * g"),
            id="less a product",
        ),
        pytest.param(_BY_HAND.format("gs = torch.autograd.grad(loss, inputs=list(model.parameters()))\n    lib.use(p.sub_(g) for p, g in gs)"), id="in place"),
        pytest.param(
            _BY_HAND.format("ps = list(model.parameters())\n    gs = torch.autograd.grad(loss, ps)\n    new = [p - 0.1 * g for p, g in zip(ps, gs)]"), id="anew"
        ),
        pytest.param(
            _OPTIMIZER + _BY_HAND.format("model.weight.grad = torch.autograd.grad(loss, model.weight)[0]\n    optimizer.step()"), id="for an optimizer"
        ),
        pytest.param("w = torch.zeros(8, requires_grad=True)\n" + _BY_HAND.format("g = torch.autograd.grad(loss, w)[0]\n    w.data.sub_(g)"), id="of a tensor"),
        pytest.param("w = nn.Parameter(torch.zeros(8))\n" + _BY_HAND.format("g = torch.autograd.grad(loss, w)[0]\n    w.data.add_(g)"), id="of a parameter"),
        pytest.param("from torch.func import grad_and_value as gv\n" + _BY_HAND.format("g, v = gv(lib.loss)(w, x)\n    w = w - 0.1 * g"), id="torch.func"),
        pytest.param("import functorch\n" + _BY_HAND.format("g = functorch.grad(lib.loss)(w, x)\n    w = w - 0.1 * g"), id="functorch"),
    ],
)
def test_gradients_without_backward(lines: str) -> None:
    (message,) = _found(lines)
    assert message.startswith("gradients are taken by ") and "those of backward() alone" in message


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        pytest.param(_OPTIMIZER + "for (x,) in loader:\n    lib.grads(model, x)\n    optimizer.step()", "optimizer.step() is called", id="a step over data"),
        pytest.param(_OPTIMIZER + "exec(open(args.step).read())", "text is executed", id="text that is not known, beside an optimizer"),
        pytest.param("exec(args.step)", "text is executed", id="beside a loader that shuffles"),
        pytest.param("runpy.run_path(args.script)", "runpy.run_path runs args.script, which is not read", id="another script"),
        pytest.param(
            "import importlib\nimportlib.import_module(args.t).train(args)", "what is found by import_module() is called", id="a module found by name"
        ),
        pytest.param(
            "from importlib.util import module_from_spec as made, spec_from_file_location\n"
            "def load(path):\n    spec = spec_from_file_location('t', path)\n    m = made(spec)\n    spec.loader.exec_module(m)\n    return m\n"
            "steps = load('steps.py')\nsteps.train_model(args)",
            "what is found by importlib.util.module_from_spec() is given args",
            id="a module of a file",
        ),
        pytest.param(
            "import hydra\nt = hydra.utils.instantiate(args.t)\nt.fit(model, data=args.d)", "what is found by instantiate() is given model", id="an object"
        ),
    ],
)
def test_other_signs(lines: str, words: str) -> None:
    (message,) = _found(lines)
    assert message.startswith(words)


def test_a_comment_says_that_nothing_is_trained() -> None:
    assert _found("lib.fit(model, loader)  # dpmigrate: ignore[DPM146]") == []


def test_a_module_starts_nothing() -> None:
    text = "import torch\nimport lib\ndef train(model, optimizer, loader):\n    lib.go(model, optimizer, loader)\n"
    assert script(text).exempt.startswith("it starts nothing") and findings(text) == ()


# ------------------------------------------------------------------ files of the program that are not there
Files = dict[str, str]


@pytest.fixture
def outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Files], tuple[Outcome, Outcome]]:
    """Write the files; what check and apply say of train.py."""

    def run(files: Files) -> tuple[Outcome, Outcome]:
        for name, text in {"pyproject.toml": "", **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text) if not name.endswith("/") else (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path)
        (checked,) = engine.check([Path("train.py")], Settings())
        (applied,) = engine.apply([Path("train.py")], Settings(), Writing())
        assert all((tmp_path / name).read_text() == text for name, text in files.items() if not name.endswith("/"))
        return checked, applied

    return run


_TAIL = _TOP.replace("import lib\nfrom lib import *\n", "") + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param({"train.py": "from tools.engine import fit\n" + _TAIL + "fit(args)", "tools/a.py": ""}, "tools/engine.py does not exist", id="a module"),
        pytest.param({"train.py": "from src.sub.engine import Trainer\n" + _TAIL + "Trainer(args)", "src/a.py": ""}, "src/sub does not exist", id="a folder"),
        pytest.param({"train.py": "import engine.train\n" + _TAIL + "engine.train.main(args)", "engine/": ""}, "engine is empty", id="an empty folder"),
        pytest.param(
            {"train.py": "from sub import engine\n" + _TAIL + "engine.go(optimizer, loader)", ".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = x\n'},
            "sub is a git submodule that is not checked out",
            id="a submodule that is not there",
        ),
        pytest.param(
            {"train.py": "from sub.engine import go\n" + _TAIL + "go(optimizer, loader)", ".gitmodules": '[submodule "s"]\n\tpath = sub\n', "sub/": ""},
            "sub is a git submodule that is not checked out",
            id="a submodule that is empty",
        ),
        pytest.param(
            {"train.py": "from engine import go\n" + _TAIL + "go(optimizer, loader)", "engine.py": "print 1"}, "engine.py: syntax error", id="not Python"
        ),
        pytest.param(
            {"train.py": "from .engine import go\n" + _TAIL + "go(model, loader)"}, "engine.py does not exist", id="a model and shuffled data, relative"
        ),
    ],
)
def test_a_file_that_is_not_there(outcomes: Callable[[Files], tuple[Outcome, Outcome]], files: Files, why: str) -> None:
    checked, applied = outcomes(files)
    assert (checked.status, applied.status) == (Status.FINDINGS, Status.REFUSED)
    for outcome in (checked, applied):
        (hit,) = outcome.findings
        assert hit.code == "DPM146" and why in hit.message
        assert ("git submodule update" in hit.advice) == ("submodule" in why)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"train.py": "from tools.engine import measure\n" + _TAIL + "measure(model, test_loader)", "tools/a.py": ""}, id="a measure"),
        pytest.param({"train.py": "from engine import measure\n" + _TAIL + "measure(model, loader)"}, id="an installed package"),
        pytest.param(
            {"train.py": "from wandb.sdk import go\n" + _TAIL + "go(model, loader)", "wandb/run/a.txt": ""}, id="a folder of data called as a package"
        ),
        pytest.param(
            {"train.py": "from tools import engine\n" + _TAIL + "engine.go(model, loader)", "tools/engine.cpython-312.so": ""}, id="a compiled module"
        ),
        pytest.param({"train.py": "from numpy.fit import go\n" + _TAIL + "go(model, loader)", "numpy/a.py": ""}, id="a library's name"),
        pytest.param({"train.py": "import torch\nprint(torch.__version__)"}, id="nothing that could train"),
        pytest.param({"train.py": "import lib\nlib.fit(1, epochs=3)"}, id="no torch"),
    ],
)
def test_nothing_is_missing(outcomes: Callable[[Files], tuple[Outcome, Outcome]], files: Files) -> None:
    checked, applied = outcomes(files)
    assert (checked.status, applied.status) == (Status.CLEAN, Status.UNCHANGED)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({"train.py": "import os"}, "torch is not used in this file", id="no torch"),
        pytest.param({"train.py": "import tools", "tools.py": ""}, "torch is not used in this file or those that it imports", id="no torch in two files"),
        pytest.param({"train.py": "import torch"}, "nothing is trained in this file", id="no sign"),
        pytest.param(
            {"train.py": "import torch\nmodel.train()\nmodel.train(False)\nsplit = 'train'\noptimal = 3"}, "nothing is trained in this file", id="words"
        ),
        pytest.param({"train.py": "import torch\nimport lib\nlib.fit(3)"}, "no backward() in this program: nothing is trained here", id="looked at"),
        pytest.param({"train.py": "import torch\n# my Trainer\nprint(1)"}, "no backward() in this program: nothing is trained here", id="a comment"),
    ],
)
def test_why_nothing_is_said(outcomes: Callable[[Files], tuple[Outcome, Outcome]], files: Files, reason: str) -> None:
    checked, applied = outcomes(files)
    assert (checked.status, checked.reason, applied.status) == (Status.CLEAN, reason, Status.UNCHANGED)


def test_roles_are_not_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nimport lib\nlib.fit(model=lib.model(), epochs=3)\n")
    (outcome,) = engine.explain([tmp_path / "train.py"], Settings())
    assert outcome.reason == "what trains is not seen, as a check says"
