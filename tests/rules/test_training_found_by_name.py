"""DPM911: training that is not in the text of the program."""

from __future__ import annotations

import pytest

from tests.pipeline import findings, script
from tests.rules.program import hits, program, refused

_UNSEEN = """
import argparse
import importlib
import hydra
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import metrics

args = argparse.ArgumentParser().parse_args()
loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=16, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=16, shuffle=False)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
{}
"""


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("", id="nothing is looked up"),
        pytest.param("metrics.accuracy(model, loader)", id="code of others, by its name"),
        pytest.param("print(getattr(metrics, args.metric)(model, test_loader))", id="a metric"),
        pytest.param("importlib.import_module(args.plot).draw(args)", id="a plot"),
        pytest.param("hydra.utils.instantiate(args.logger, scheduler)", id="a logger"),
        pytest.param("def fit(model, loader):\n    pass\nglobals()['fit'](model, loader)", id="a function of this file"),
    ],
)
def test_nothing_is_trained(lines: str) -> None:
    text = _UNSEEN.format(lines)
    assert script(text).exempt.startswith("no backward()") and findings(text) == ()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        pytest.param("importlib.import_module(args.t).train(model, loader, optimizer)", "import_module()", id="a function"),
        pytest.param("importlib.import_module(args.t).train(model, optim=optimizer)", "import_module()", id="by keyword"),
        pytest.param("t = importlib.import_module(args.t)\nt.train(model, loader)", "import_module()", id="through a variable"),
        pytest.param("train = importlib.import_module(args.t).train\ntrain(model, loader)", "import_module()", id="a member through a variable"),
        pytest.param("getattr(importlib.import_module(args.t), args.c)(model, loader)", "getattr() with a name that is computed", id="getattr"),
        pytest.param("trainer = hydra.utils.instantiate(args.t)\ntrainer.fit(model, loader)", "instantiate()", id="a method of what is made"),
        pytest.param("hydra.utils.instantiate(args.t, optimizer=optimizer)", "instantiate()", id="hydra"),
        pytest.param("eval(args.t)(model, loader)", "eval()", id="eval"),
        pytest.param("exec(open('steps.py').read())\ntrain(model, loader, optimizer)", "exec()", id="exec"),
    ],
)
def test_training_that_is_not_seen(lines: str, words: str) -> None:
    (hit,) = findings(_UNSEEN.format(lines))
    assert (hit.code, hit.message) == ("DPM911", f"what trains is found by {words} when the program runs, and not seen")
    assert "from trainers.base import Trainer" in hit.advice


# ------------------------------------------------------------------ decorators
_EPOCH = """
def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


def decorated(decorator: str, written: str = "@deco") -> dict[str, str]:
    return {
        "imports": "import copy, functools, threading, time\nimport lib",
        "defs": f"{decorator}\n{written}{_EPOCH}",
        "batches": "",
        "step": "train_epoch(model, loader, optimizer)",
    }


@pytest.mark.parametrize(
    ("decorator", "written"),
    [
        pytest.param("", "", id="none"),
        pytest.param("", "@lib.timed", id="of a library"),
        pytest.param("", "@torch.enable_grad()", id="of torch"),
        pytest.param(
            "def deco(f):\n    def inner(*a, **k):\n        start = time.time()\n        out = f(*a, **k)\n        print(time.time() - start)\n        return out\n    return inner",
            "@deco",
            id="a timer",
        ),
        pytest.param("def deco(f):\n    @functools.wraps(f)\n    def inner(*a, **k):\n        return f(*a, **k)\n    return inner", "@deco", id="with wraps"),
        pytest.param(
            "def deco(f):\n    def inner(model, loader, optimizer):\n        return f(model, loader, optimizer)\n    return inner", "@deco", id="by names"
        ),
        pytest.param("def deco(f):\n    def inner(*a):\n        return f(*a, **{})\n    return inner", "@deco", id="with options of its own"),
        pytest.param("STEPS = {}\ndef deco(f):\n    STEPS[f.__name__] = f\n    return f", "@deco", id="keeps it in a table"),
        pytest.param(
            "def deco(name):\n    def wrap(f):\n        def inner(*a):\n            return f(*a)\n        return inner\n    return wrap",
            "@deco('a')",
            id="with an argument",
        ),
        pytest.param("def deco(f, g):\n    return g", "@deco", id="no decorator of one function"),
    ],
)
def test_decorators_that_call_it_once(decorator: str, written: str) -> None:
    assert refused("DPM911", **decorated(decorator, written)) == []


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        pytest.param("for _ in range(3):\n            f(*a)", "calls it more than once", id="in a loop"),
        pytest.param("f(*a)\n        f(*a)", "calls it more than once", id="twice"),
        pytest.param("model = copy.deepcopy(a[0])\n        f(copy.deepcopy(a[0]), *a[1:])", "gives it something else, copy.deepcopy(a[0])", id="with a copy"),
        pytest.param("f(*a[:1])", "gives it something else, *a[:1]", id="with a part"),
        pytest.param("threading.Thread(target=f, args=a).start()", "hands it to code that is not seen", id="in a thread"),
        pytest.param("lib.run(f, a)", "hands it to code that is not seen", id="to a library"),
        pytest.param("pass", "never calls it", id="never"),
    ],
)
def test_decorators_that_do_something_else(inner: str, words: str) -> None:
    parts = decorated(f"def deco(f):\n    @functools.wraps(f)\n    def inner(*a):\n        {inner}\n    return inner")
    (hit,) = hits("DPM911", **parts)
    assert refused("DPM911", **parts) == ["deco"]
    assert hit.message.startswith(f"deco() takes the place of train_epoch and {words}") and "(line " in hit.message


def test_a_decorator_with_an_argument_is_named() -> None:
    text = (
        "def deco(n):\n    def wrap(f):\n        def inner(*a):\n            for _ in range(n):\n                f(*a)\n        return inner\n    return wrap"
    )
    (hit,) = hits("DPM911", **decorated(text, "@deco(2)"))
    assert hit.message.startswith("deco() takes the place of train_epoch")


# ------------------------------------------------------------------ the wrapper's forward
@pytest.mark.parametrize(
    "before",
    [
        pytest.param("setattr(model, 'name', 'a')", id="another attribute"),
        pytest.param("setattr(optimizer, 'forward', 3)", id="of something else"),
        pytest.param("setattr(model.module, 'forward', f)", id="of the model"),
        pytest.param("model.module.forward = f", id="of the model, as an attribute"),
        pytest.param("model.forward", id="read"),
        pytest.param("lib.setattr(model, 'forward', f)", id="another setattr"),
    ],
)
def test_the_wrapper_keeps_its_forward(before: str) -> None:
    assert refused("DPM911", imports="import lib\nfrom lib import f", model="model = nn.DataParallel(Net())", before=before) == []


@pytest.mark.parametrize(
    ("before", "pointed"),
    [
        pytest.param("model.forward = f", "model.forward", id="an attribute"),
        pytest.param("setattr(model, 'forward', f)", "setattr(model, 'forward', f)", id="setattr"),
        pytest.param("setattr(model, name, f)", "setattr(model, name, f)", id="setattr by a computed name"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_the_wrapper_gets_another_forward(before: str, pointed: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": "from lib import f, name", "model": "model = nn.DataParallel(Net())", "before": before}
    assert refused("DPM911", **parts, module_level=module_level) == [pointed]


def test_what_is_set_before_the_wrap_is_the_models_own() -> None:
    assert "DPM911" not in {f.code for f in findings(program(imports="from lib import f", model="model = Net()", before="setattr(model, 'forward', f)"))}
