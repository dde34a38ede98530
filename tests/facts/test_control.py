"""Which expressions have one value on all ranks, and which exits of a loop only some ranks may take."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.control import uniform
from dpmigrate.facts.endings import exit_value
from dpmigrate.facts.exits import exits
from tests.facts.probe import probed
from tests.pipeline import script

_HEAD = """
import argparse, os, random, sys, time
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm, trange
"""


def _uniform(text: str) -> bool:
    found, expression = probed(_HEAD + text)
    return uniform(found.names, expression)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("probe(3 > 2)", id="literals"),
        pytest.param("args = argparse.ArgumentParser().parse_args()\nprobe(args.patience > 3)", id="the command line"),
        pytest.param("cfg = load_config('a.yaml')\nprobe(cfg['lr'] > 3)", id="a configuration"),
        pytest.param("for epoch in range(9):\n    probe(epoch % 2 == 0)", id="the loop's counter"),
        pytest.param(
            "class Trainer:\n    def __init__(self):\n        self.rows = load_dataset('a')\n    def fit(self):\n        probe(len(self.rows) > 3)\nTrainer().fit()",
            id="how many data an object has",
        ),
        pytest.param("for epoch in trange(9):\n    probe(epoch)", id="trange"),
        pytest.param("for epoch in tqdm(range(9)):\n    probe(epoch)", id="a progress bar over range"),
        pytest.param("for i, x in enumerate(loader):\n    probe(i)", id="the index of enumerate"),
        pytest.param("turns = enumerate(loader)\nfor i, x in turns:\n    probe(i)", id="the index of enumerate, by name"),
        pytest.param("turns = tqdm(enumerate(loader))\nfor i, x in turns:\n    probe(i)", id="the index of enumerate under a progress bar, by name"),
        pytest.param("loader = make()\nloader = enumerate(loader)\nloader = tqdm(loader)\nfor i, x in loader:\n    probe(i)", id="the index, of names in turn"),
        pytest.param("n, loss = 3, model(x)\nprobe(n)", id="an element of a tuple"),
        pytest.param("def run(x):\n    return 3, model(x)\nn, loss = run(x)\nprobe(n)", id="an element that a function hands back"),
        pytest.param(
            "def run(n, x):\n    for y in loader:\n        n += 1\n    return n, (model(x), n)\nn = 0\nfor e in range(3):\n    n, (loss, m) = run(n, x=loss)\n    probe(n + m)",
            id="a counter that a function hands back",
        ),
        pytest.param("s = torch.optim.SGD(ps)\nif torch.rand(1) > 0.5:\n    s = torch.optim.Adam(ps)\nprobe(s is None)", id="whether an object is there, whichever"),
        pytest.param(
            "def run(s=None):\n    probe(s is not None)\nargs = argparse.ArgumentParser().parse_args()\ns = None\nif args.s:\n    s = torch.optim.lr_scheduler.StepLR(o)\nrun(s)",
            id="an object that an option decides on",
        ),
        pytest.param("from yacs.config import CfgNode as CN\nC = CN()\nC.T = CN()\nC.T.S = [3, 4]\nfor e in range(3):\n    probe(e in C.T.S)", id="a configuration by its name in the library"),
        pytest.param("import fire\ndef main(n=3):\n    probe(n > 3)\nif __name__ == '__main__':\n    fire.Fire()", id="the command line, by a library that calls functions"),
        pytest.param("def load(p):\n    return torch.load(p)\nc = load('a.pt')\nprobe(c['step'] > 3)", id="a file, by a function of the program"),
        pytest.param("n = 3 if len(sys.argv) > 1 else 4\nprobe(n)", id="one of two"),
        pytest.param("d = 'mps' if torch.backends.mps.is_available() else 'cpu'\nprobe(d)", id="what the machine has"),
        pytest.param("s = torch.amp.GradScaler() if torch.cuda.is_bf16_supported() else None\nprobe(s is None)", id="an object that the machine decides on"),
        pytest.param("for a, b in zip(range(3), [1, 2, 3]):\n    probe(b)", id="zip of uniform things"),
        pytest.param("for phase in ['train', 'val']:\n    probe(phase == 'train')", id="an element of a display"),
        pytest.param("step = 0\nfor x in loader:\n    step += 1\n    probe(step)", id="a counter of batches"),
        pytest.param("try:\n    import apex\n    has = True\nexcept ImportError:\n    has = False\nprobe(has)", id="whether a package is there"),
        pytest.param(
            "try:\n    import apex\n    a = 1\n    b = 2\nexcept (ImportError, ModuleNotFoundError):\n    b = 3\nprobe(b)", id="two exceptions about imports"
        ),
        pytest.param("try:\n    a = 1\n    b = 2\n    probe(b)\nexcept OSError:\n    pass", id="read in the body that set it"),
        pytest.param("try:\n    pass\nfinally:\n    b = 2\nprobe(b)", id="set in finally"),
        pytest.param("b = 0\ntry:\n    b = 2\nexcept OSError:\n    pass\nprobe(b)", id="set first in the body: it cannot be missed"),
        pytest.param("sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)\nprobe(sched is not None)", id="whether a thing of torch's is there"),
        pytest.param("x = Thing(random.random()) if args else None\nargs = 3\nprobe(x is None)", id="whether an object is there"),
        pytest.param(
            "class N:\n    def __init__(self):\n        self.main = Sequential()\n    def f(self, x):\n        self.main(x)\ndef main(cfg):\n    probe(cfg.lr)\ngiven = load_config('a')\nmain(given)",
            id="a function, beside an attribute of its name",
        ),
        pytest.param(
            "class M:\n    def save(self, name):\n        probe(name)\nM().save(3)\ntorch.save(random.random(), 'a')",
            id="a library's function of a method's name",
        ),
        pytest.param("def save(name=None):\n    probe(name is None)", id="whether an argument is given"),
        pytest.param("def save(name=None):\n    if probe(name is None):\n        name = time.strftime('x')\nsave()", id="before it is given something else"),
        pytest.param("state = torch.load('a.pt')\nprobe(state['epoch'] > 3)", id="a file that is read before any loop"),
        pytest.param(
            "class T:\n    def __init__(self, data):\n        self.data = data\n    def f(self):\n        probe(len(self.data))\nloader = DataLoader(3)\nT(data=loader)",
            id="the length of a loader that an object is given",
        ),
        pytest.param(
            "class T:\n    def __init__(self):\n        self.args = torch.load('a.pt')\n    def f(self):\n        probe(self.args.steps > 3)",
            id="a file, by self",
        ),
        pytest.param(
            "class N(nn.Module):\n    def __init__(self):\n        self.steps = 3\nclass T:\n    def __init__(self):\n        self.net = N().to(0)\n    def f(self):\n        probe(self.net.steps)",
            id="what a model of this program counts",
        ),
        pytest.param(
            "class T:\n    def __init__(self, net):\n        self.net = net\n    def f(self):\n        probe(self.net.training)", id="the mode of a model"
        ),
        pytest.param("class C:\n    steps: int = 4\n    lr: float\nc = C(lr=0.1)\nprobe(c.steps > 3 and c.lr > 1)", id="fields of a settings class"),
        pytest.param("class C:\n    def __init__(self, n):\n        self.n = n\nc = C(3)\nprobe(c.n)", id="an attribute set from an argument"),
        pytest.param(
            "class Config:\n    n = 3\nclass C:\n    def __init__(self, cfg):\n        self.cfg, self.seen = cfg, []\n"
            "    def run(self):\n        self.seen.append(model(x))\n        probe(1 % self.cfg.n)\nC(Config()).run()",
            id="a setting of an object that also keeps results",
        ),
        pytest.param("class C:\n    limit = 3\n    def run(self):\n        probe(self.limit)", id="a class attribute"),
        pytest.param("class C:\n    def run(self):\n        probe(self.get('a'))", id="a method that gives what is held"),
        pytest.param("def limit(n):\n    if n > 3:\n        return 1\n    return 2\nprobe(limit(4))", id="a function of literals"),
        pytest.param("def again(n):\n    return again(n - 1) if n else 0\nprobe(again(4))", id="a recursive function"),
        pytest.param(
            "def get(x):\n    parser = argparse.ArgumentParser()\n    return parser.parse_args()\nargs = get(1)\nprobe(args.n)",
            id="a function that gives the settings",
        ),
        pytest.param("def f(n, *, k=2):\n    probe(n + k)\nf(3)\nf(n=4, k=5)", id="parameters by their calls"),
        pytest.param("@click.command()\ndef main(epochs):\n    probe(epochs)", id="parameters that a decorator gives"),
        pytest.param("data = ImageFolder('x')\nn = len(data) // 3\nprobe(n > 0)", id="the length of the data"),
        pytest.param("class S(Dataset):\n    pass\ndata = S()\nloader = DataLoader(data)\nprobe(len(data))", id="the length of what a loader gets"),
        pytest.param("d = {}\nfor i in range(3):\n    d[i] = i\nprobe(d[1] > 0)", id="a dict filled with counters"),
        pytest.param("d = []\nd.append(3)\nprobe(d[0])", id="a list filled with literals"),
        pytest.param("def fill(d):\n    d['a'] = 1\nd = {}\nfill(d)\nprobe(d['a'])", id="a function that fills with literals"),
        pytest.param("n = 0\nfor epoch in range(3):\n    if epoch == 1:\n        continue\n    n += 1\nprobe(n)", id="turns skipped by all"),
        pytest.param("match args:\n    case 1:\n        n = 2\nargs = 1\nprobe(n)", id="a case of a uniform subject"),
        pytest.param("n = 3\ndef f():\n    global n\n    n = 4\nf()\nprobe(n)", id="a global set by a function that all call"),
        pytest.param("probe(__file__ == 'a')", id="what Python itself sets"),
        pytest.param("from settings import *\nprobe(LIMIT > 3)", id="a constant of a star import"),
        pytest.param("from settings import *\nprobe(hp.limit > 3)", id="a module that a star import brings"),
        pytest.param("from settings import *\ncfg = small if LIMIT else large\nprobe(3 in cfg['steps'])", id="a table that a star import brings"),
        pytest.param("import json\nwith open('a.json') as f:\n    cfg = json.load(f)\nprobe(cfg['n'])", id="a file of settings"),
        pytest.param("import yaml\ncfg = yaml.load(open('a'), yaml.Loader)\nprobe(cfg['a']['n'])", id="a file of settings of another kind"),
        pytest.param("from utils import read_json\ncfg = read_json('a.json')\nprobe(cfg['n'])", id="a file of settings by another file's function"),
        pytest.param("import utils\ncfg = utils.Params('a.json')\nprobe(cfg.n)", id="settings by another file's class"),
        pytest.param("def train(model, args):\n    probe(args.n > 3)", id="settings that another file gives"),
        pytest.param(
            "class T:\n    def __init__(self, config):\n        self.config = config\n    def run(self):\n        probe(self.config['n'])",
            id="settings of an object",
        ),
        pytest.param("args = argparse.ArgumentParser().parse_args()\nprobe(args.n + args.n)", id="a setting twice"),
        pytest.param("def main(args):\n    probe(args.resume)\nmain(parser.parse_args())", id="settings that a call is given at once"),
        pytest.param("def main(cfg):\n    probe(cfg['n'])\nmain(cfg=json.load(open('a.json')))\nimport json", id="a file of settings, by keyword"),
        pytest.param(
            "opt = parser.parse_args()\nparts = opt.steps.split(',')\nopt.steps = list([])\nfor p in parts:\n    opt.steps.append(int(p))\nprobe(opt.n)",
            id="a list of settings that is filled",
        ),
        pytest.param(
            "args = parser.parse_args()\nsteps = sorted(tuple(args.steps))\nprobe(3 in steps and sum(steps) > 9)", id="made of settings by functions of Python"
        ),
        pytest.param("import math\nfor e in range(9):\n    probe(math.cos(e) > 0)", id="a schedule"),
        pytest.param("cfg = get_config()\nprobe(cfg.train.epochs)", id="a setting in a setting"),
        pytest.param("n = 0\nfor x in tqdm(loader):\n    n += 1\nprobe(n)", id="a counter of batches under a progress bar"),
        pytest.param("n = 0\nfor x in loader:\n    for i in range(3):\n        if i: continue\n    n += 1\nprobe(n)", id="turns of an inner loop skipped"),
        pytest.param("def f():\n    x = 1\n    def g():\n        probe(x)\n    g()", id="a variable round the function"),
        pytest.param("import signal\nn = 0\ndef ring(s, f):\n    n = 1\n    exit(n)\nsignal.signal(10, ring)\nprobe(n)", id="a handler's own variable"),
        pytest.param("d = {}\nfill(lambda: d.update(a=1))\nprobe(d['a'])", id="set in a lambda that is no handler"),
        pytest.param("answer = input('again? ')\nprobe(answer == 'y' or input(f'{loss.item()}') == 'y')", id="an answer, which rank 0 tells the others"),
    ],
)
def test_the_same_on_every_rank(text: str) -> None:
    assert _uniform(text)


def _test_uniform(text: str) -> bool:
    """Whether the test of the ``if`` whose body is ``mark()`` falls out alike."""
    found = script(_HEAD + text)
    (test,) = (n.test for n in found.names.nodes if isinstance(n, ast.If) and ast.unparse(n.body[0]) == "mark()")
    return uniform(found.names, test)


_OPTION = "args = argparse.ArgumentParser().parse_args()\n"
_HELD = """
class Trainer:
    def __init__(self, loader):
        self.loader = loader
        if {test}:
            self.scheduler = torch.optim.lr_scheduler.StepLR(o, 3)
        else:
            self.scheduler = None
    def fit(self):
        if {asked}:
            mark()
val = DataLoader(d) if args.val else None
Trainer(val).fit()
"""


_STOPPER = """
args = argparse.ArgumentParser().parse_args()
class Stopper{base}:
    {body}
class Trainer:
    def __init__(self):
        self.stopper = None
        if {test}:
            self.stopper = Stopper(random.random())
    def fit(self):
        if self.stopper:
            mark()
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_OPTION + _HELD.format(test="args.s", asked="self.scheduler"), id="an object or None, by an option"),
        pytest.param(_OPTION + _HELD.format(test="args.s", asked="self.loader"), id="a loader or None, by an expression"),
        pytest.param(_OPTION + _HELD.format(test="args.s", asked="not self.loader and self.scheduler"), id="both"),
        pytest.param("s = torch.optim.SGD(p)\nif torch.rand(1) > 0.5:\n    s = torch.optim.Adam(p)\nif s:\n    mark()", id="one of two objects"),
        pytest.param("n = 0\nfor x in loader:\n    n += 1\nif n:\n    mark()", id="a counter"),
        pytest.param(_STOPPER.format(base="", body="pass", test="args.s"), id="an object of the program or None, made of what differs"),
        pytest.param("class Base:\n    pass\n" + _STOPPER.format(base="(Base)", body="pass", test="args.s"), id="of a class that derives from another"),
    ],
)
def test_tests_that_fall_out_alike(text: str) -> None:
    assert _test_uniform(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_OPTION + _HELD.format(test="random.random() < 0.5", asked="self.scheduler"), id="an object or None, by a draw"),
        pytest.param(_OPTION + _HELD.format(test="torch.rand(1) < 0.5", asked="self.scheduler is None"), id="asked for None"),
        pytest.param("s = None\nif torch.rand(1) < 0.5:\n    s = torch.optim.SGD(p)\nif s:\n    mark()", id="a draw decides whether it is there"),
        pytest.param("s = torch.optim.SGD(p) if torch.rand(1) < 0.5 else None\nif s is not None:\n    mark()", id="a draw in an expression"),
        pytest.param("for x in loader:\n    hit = torch.any(x > 0)\n    if hit:\n        mark()", id="a tensor"),
        pytest.param("for x in loader:\n    t = torch.Tensor(x)\n    if t:\n        mark()", id="a tensor by its class"),
        pytest.param("d = DataLoader(a)\nx = next(iter(d))\nif x:\n    mark()", id="a batch"),
        pytest.param("s = torch.optim.SGD(p)\nlr = s.param_groups[0]['lr'] * random.random()\nif lr:\n    mark()", id="a number of an object"),
        pytest.param(_STOPPER.format(base="", body="pass", test="random.random() < 0.5"), id="a draw decides whether the object is there"),
        pytest.param(_STOPPER.format(base="", body="def __bool__(self):\n        return self.a > 0.5", test="args.s"), id="an object that says when it is true"),
        pytest.param("class Base:\n    def __len__(self):\n        return 0\n" + _STOPPER.format(base="(Base)", body="pass", test="args.s"), id="a base that does"),
        pytest.param(_STOPPER.format(base="(dict)", body="pass", test="args.s"), id="a dictionary"),
        pytest.param(_STOPPER.format(base="(metaclass=M)", body="pass", test="args.s"), id="a class of another kind"),
    ],
)
def test_tests_that_may_fall_out_differently(text: str) -> None:
    assert not _test_uniform(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("def main(n=3):\n    probe(n > 3)\nif __name__ == '__main__':\n    lib.Fire()", id="called by a library that is not known"),
        pytest.param("for e in range(3):\n    def load(p):\n        return torch.load(p)\n    c = load('a.pt')\n    probe(c['step'] > 3)", id="a file that is read again and again"),
        pytest.param("def load(p):\n    return model(p)\nc = load('a.pt')\nprobe(c['step'] > 3)", id="a function that reads no file"),
        pytest.param("n = 3 if random.random() > 0.5 else 4\nprobe(n)", id="one of two, by a draw"),
        pytest.param("n = random.random() if len(sys.argv) > 1 else 4\nprobe(n)", id="a draw or a number"),
        pytest.param("n = 4 if len(sys.argv) > 1 else random.random()\nprobe(n)", id="a number or a draw"),
        pytest.param(
            "def save(name=None):\n    for x in [1, 2]:\n        probe(name is None)\n        name = time.time()\nsave()",
            id="given something else in the turn before",
        ),
        pytest.param("def save(name=None):\n    name = time.time()\n    probe(name > 3)\nsave()", id="given something else before"),
        pytest.param("probe(random.random() > 0.5)", id="a random draw"),
        pytest.param("from settings import *\nprobe(limit() > 3)", id="a function that a star import brings"),
        pytest.param("def main(n):\n    probe(n > 3)\nmain(loss.item())", id="a loss that a call is given"),
        pytest.param("probe(sorted([loss])[0] > 3)\nloss = model(x)", id="a sorted loss"),
        pytest.param("probe(list({1, x})[0])", id="a list of a set"),
        pytest.param("import torch\nworst = torch.argsort(torch.rand(3))\nprobe(worst[0] > 1)", id="a function that is called like one for arguments"),
        pytest.param("probe(time.time() - start > 60)\nstart = time.time()", id="the clock"),
        pytest.param("probe(loss.item() > 3)\nloss = model(x)", id="a loss"),
        pytest.param("probe(os.environ['LOCAL_RANK'] == '0')", id="the rank"),
        pytest.param("probe(unknown)", id="a name from nowhere"),
        pytest.param("f = lambda: 3\nprobe((lambda: 3)())", id="a lambda"),
        pytest.param("probe({x for x in (1, 2)})", id="a set: its order differs"),
        pytest.param("def f():\n    probe((yield))", id="what is sent to a generator"),
        pytest.param("import json\nfor i in range(3):\n    state = json.load(open('a'))\n    probe(state['n'])", id="a file that is read in every turn"),
        pytest.param("def train(model, limit):\n    probe(limit > 3)", id="what another file gives"),
        pytest.param("def train(model, args):\n    probe(args.n > 3)\ntrain(model, model(x))", id="no settings, whatever they are called"),
        pytest.param("for x in loader:\n    probe(x > 0)", id="a batch"),
        pytest.param("for x in {1, 2}:\n    probe(x)", id="an element of a set"),
        pytest.param("for x in get():\n    probe(x)", id="an element of a call's result"),
        pytest.param("for i, x in enumerate(loader):\n    probe(x)", id="the batch of enumerate"),
        pytest.param("turns = enumerate(loader)\nfor i, x in turns:\n    probe(x)", id="the batch of enumerate, by name"),
        pytest.param("turns = pairs(loader)\nfor i, x in turns:\n    probe(i)", id="the first of pairs, by name"),
        pytest.param("turns = enumerate(loader)\nif args:\n    turns = loader\nfor i, x in turns:\n    probe(i)", id="of what may be no enumerate"),
        pytest.param("if args:\n    turns = enumerate(loader)\nelse:\n    for i, x in turns:\n        probe(i)", id="of an enumerate in another branch"),
        pytest.param("_, turns = model(x), enumerate(loader)\nfor i, x in turns:\n    probe(x)", id="the batch of an enumerate in a tuple"),
        pytest.param("n, loss = 3, model(x)\nprobe(loss)", id="another element of a tuple"),
        pytest.param("n, *loss = 3, model(x)\nprobe(loss)", id="the rest of a tuple"),
        pytest.param("n, loss = *a, 3\na = [model(x)]\nprobe(n)", id="an element after a star"),
        pytest.param("def run(x):\n    return 3, model(x)\nn, loss = run(x)\nprobe(loss)", id="another element that a function hands back"),
        pytest.param(
            "def run(x):\n    if model(x):\n        return 3, 4\n    return 5, 6\nn, m = run(x)\nprobe(n)", id="an element of what is handed back by chance"
        ),
        pytest.param(
            "def run(x):\n    if x:\n        return 3, 4\n    return model(x)\nn, m = run(3)\nprobe(n)", id="an element that is no tuple's in another return"
        ),
        pytest.param("def run(n):\n    return n, 3\nn, m = run(model(x))\nprobe(n)", id="an element that a call is given"),
        pytest.param("def run(x):\n    yield 3\n    return 3, 4\nn, m = run(x)\nprobe(n)", id="an element of a generator's"),
        pytest.param("def run(x):\n    yield from x\n    return 3, 4\nn, m = run(x)\nprobe(n)", id="an element of a generator's by another one"),
        pytest.param("class Run:\n    pass\nn, m = Run(model(x))\nprobe(n)", id="an element of an object"),
        pytest.param("with open('f') as f:\n    probe(f)", id="what a context manager gives"),
        pytest.param("try:\n    pass\nexcept OSError as e:\n    probe(e)", id="an exception"),
        pytest.param("match loss:\n    case [a, *rest]:\n        probe(a)\nloss = model(x)", id="what a pattern catches"),
        pytest.param("def f(n):\n    probe(n)\nf(loss)\nloss = model(x)", id="a parameter given a loss"),
        pytest.param("def f(n):\n    probe(n)", id="a parameter that nobody is seen to give"),
        pytest.param("def f(*n):\n    probe(n)\nf(3)", id="star parameters"),
        pytest.param("def f(n):\n    probe(n)\nf(*a)\na = [1]", id="star arguments"),
        pytest.param("g = lambda n: probe(n)\ng(3)", id="the parameter of a lambda"),
        pytest.param("def f(x):\n    return model(x)\nprobe(f(3))", id="a function of the model"),
        pytest.param("def f(x):\n    yield 3\n    return 4\nprobe(f(3))", id="a generator"),
        pytest.param("def f(x):\n    pass\nprobe(f(3))", id="a function without a result"),
        pytest.param("def f(x):\n    return 1\ndef f(x):\n    return 2\nprobe(f(3))", id="a function defined twice"),
        pytest.param("def f():\n    if random.random() > 0.5:\n        return 1\n    return 2\nprobe(f())", id="a result by chance"),
        pytest.param("class S(Dataset):\n    pass\nprobe(S())", id="a data set is not a setting"),
        pytest.param("n = 0\nif model(x) > 3:\n    n = 1\nprobe(n)", id="set under a test on the model"),
        pytest.param("n = 0\nwhile model(x) > 3:\n    n += 1\nprobe(n)", id="counted while a test on the model holds"),
        pytest.param("n = 1\nfor x in loader:\n    for y in x:\n        n += 1\nprobe(n)", id="counted over what is in a batch"),
        pytest.param("n = 1\nfor x in loader:\n    z = x.nonzero()\n    for y in z:\n        n += 1\nprobe(n)", id="counted over what comes of a batch"),
        pytest.param("n = 1\nfor i in range(int(loss)):\n    n += 1\nprobe(n)\nloss = model(x)", id="counted over a range by the loss"),
        pytest.param("n = 0\nfor x in loader:\n    if x.sum() > 3:\n        continue\n    n += 1\nprobe(n)", id="counted where others go on"),
        pytest.param(
            "n = 0\nfor x in loader:\n    try:\n        step()\n    except RuntimeError:\n        continue\n    n += 1\nprobe(n)",
            id="counted where nothing failed",
        ),
        pytest.param("n = 0\ntry:\n    step()\nexcept RuntimeError:\n    n = 1\nprobe(n)", id="set where something failed"),
        pytest.param("n = 0\ntry:\n    step()\n    n = 1\nexcept RuntimeError:\n    pass\nprobe(n)", id="set after what may fail"),
        pytest.param("match model(x):\n    case 1:\n        n = 2\nprobe(n)", id="a case of the model's answer"),
        pytest.param("n = 2 if model(x) else 3\nprobe(n)", id="chosen by the model"),
        pytest.param("n = 3\ndef f():\n    global n\n    n = 4\nif model(x):\n    f()\nprobe(n)", id="a global set by a function that some call"),
        pytest.param("d = {}\nd['a'] = model(x)\nprobe(d['a'])", id="a dict filled from the model"),
        pytest.param("d = []\nfor x in loader:\n    d.append(model(x))\nprobe(d[0])", id="a list filled from the model"),
        pytest.param("d = []\nif model(x):\n    d.append(3)\nprobe(len(d))", id="a list filled by some"),
        pytest.param("def fill(d):\n    d['a'] = model(x)\nd = {}\nfill(d)\nprobe(d['a'])", id="a function that fills from the model"),
        pytest.param("d = [0]\nd[0] += model(x)\nprobe(d[0])", id="an element added to"),
        pytest.param("d = [0]\nfor d[0] in loader:\n    pass\nprobe(d[0])", id="an element as the target of a loop"),
        pytest.param("args = argparse.ArgumentParser().parse_args()\nargs.best = model(x)\nprobe(args.best)", id="a setting overwritten by the model"),
        pytest.param("class C:\n    def f(self):\n        self.best = model(x)\n        probe(self.best)", id="an attribute from the model"),
        pytest.param("class C:\n    def f(self):\n        for self.x in loader:\n            probe(self.x)", id="an attribute as the target of a loop"),
        pytest.param(
            "class C:\n    def __init__(self):\n        self.seen = []\n    def f(self):\n        self.seen.append(model(x))\n        probe(self.seen[0])",
            id="a list of results",
        ),
        pytest.param("class C:\n    def f(self):\n        self.cfg.n = model(x)\n        probe(self.cfg.n)", id="a setting that follows the model"),
        pytest.param("class C(Base):\n    def f(self):\n        probe(self.best)", id="an inherited attribute"),
        pytest.param("class C:\n    best = model(x)\n    def f(self):\n        probe(self.best)", id="a class attribute from the model"),
        pytest.param("class C:\n    def see(self, v):\n        self.stop = v > 3\nc = C()\nc.see(model(x))\nprobe(c.stop)", id="an object told of the model"),
        pytest.param("for x in loader:\n    state = torch.load('a.pt')\n    probe(state['epoch'])", id="a file that is read in a loop"),
        pytest.param(
            "class N(nn.Module):\n    def __init__(self):\n        self.steps = random.random()\nclass T:\n    def __init__(self):\n        self.net = N()\n    def f(self):\n        probe(self.net.steps)",
            id="what a model of this program draws",
        ),
        pytest.param("f = os.walk\nfor x in loader:\n    data = x\n    probe(len(data))", id="the length of a batch"),
        pytest.param("loader = make_loader()\nfor x in loader:\n    probe(len(x))", id="the length of a batch of a loader"),
        pytest.param("probe(find() is None)", id="whether a search found something"),
        pytest.param(
            "import signal\nstop = False\ndef ring(n, f):\n    global stop\n    stop = True\nsignal.signal(10, ring)\nprobe(stop)", id="set by a signal"
        ),
        pytest.param(
            "import signal\nclass K:\n    stop = False\n    def __init__(self):\n        signal.signal(10, handler=self.ring)\n"
            "    def ring(self, n, f):\n        self.stop = True\nk = K()\nprobe(k.stop)",
            id="set by a signal, in a class",
        ),
        pytest.param("import signal\nd = {}\nsignal.signal(10, lambda n, f: d.update(stop=True))\nprobe(d['stop'])", id="set by a signal, in a lambda"),
        pytest.param(
            "import threading\nlate = False\ndef ring():\n    global late\n    late = True\nthreading.Timer(9, function=ring).start()\nprobe(late)",
            id="set by a timer",
        ),
    ],
)
def test_may_differ(text: str) -> None:
    assert not _uniform(text)


_LOOP = """
import sys, torch
from torch.utils.data import DataLoader
loader = DataLoader(torch.zeros(8))
for epoch in range(9):
    {}
    for x in loader:
        loss = model(x)
        loss.backward()
        if loss > 5: sys.exit()
    {}
"""


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        pytest.param("pass", "pass", [], id="none"),
        pytest.param("pass", "if epoch == 3: break", [], id="decided by the counter"),
        pytest.param("pass", "print(loss > 3)", [], id="a call that is no exit"),
        pytest.param("pass", "raise ValueError(3)", [], id="an error"),
        pytest.param("pass", "if loss > 3: break", ["loss > 3"], id="break"),
        pytest.param("if loss > 3: continue", "pass", ["loss > 3"], id="continue"),
        pytest.param("pass", "if loss > 3: sys.exit()", ["loss > 3"], id="sys.exit"),
        pytest.param("pass", "if loss > 3: raise SystemExit", ["loss > 3"], id="raise SystemExit"),
        pytest.param("pass", "if epoch > 3 and loss > 3:\n        if epoch: break", ["epoch > 3 and loss > 3"], id="the outer test differs"),
        pytest.param("pass", "try: pass\n    except ValueError: break", [None], id="in a handler"),
        pytest.param("pass", "for i in range(3):\n        if loss > 3: break", [], id="another loop's"),
        pytest.param("pass", "def f():\n        return 3", [], id="another function's"),
    ],
)
def test_exits_that_some_ranks_may_take(first: str, last: str, expected: list[str | None]) -> None:
    found = script(_LOOP.format(first, last))
    (loop,) = [n for n in found.names.tree.body if isinstance(n, ast.For)]
    assert [e.test and ast.unparse(e.test) for e in exits(found.names, found.roles, loop)] == expected


@pytest.mark.parametrize(
    ("line", "value"),
    [
        pytest.param("print(3)", None, id="no exit"),
        pytest.param("raise ValueError(3)", None, id="another exception"),
        pytest.param("raise", None, id="raised again"),
        pytest.param("sys.exit()", "0", id="sys.exit without a value"),
        pytest.param("sys.exit(f(3))", "f(3)", id="sys.exit with a value"),
        pytest.param("quit(2)", "2", id="quit"),
        pytest.param("raise SystemExit", "0", id="SystemExit without a call"),
        pytest.param("raise SystemExit(main())", "main()", id="SystemExit with a value"),
    ],
)
def test_what_a_statement_ends_the_program_with(line: str, value: str | None) -> None:
    found = script("import sys\n" + line)
    given = exit_value(found.names, found.names.tree.body[-1])
    assert (given and ast.unparse(given)) == value


_SCHEDULED = """
class Trainer:
    def __init__(self, config):
        self.config = config
        self.scheduler = self.make()
    def make(self):
        if {test}:
            return torch.optim.lr_scheduler.StepLR(o)
        return None
    def fit(self):
        for epoch in range(3):
            probe(self.scheduler is not None)
{more}
config = load_config('a.yaml')
Trainer(config).fit()
"""


@pytest.mark.parametrize(
    ("test", "more", "same"),
    [
        pytest.param("self.config.name == 'step'", "", True, id="by a setting"),
        pytest.param("random.random() > 0.5", "", False, id="by a draw"),
        pytest.param("self.config.name == 'step'", "class Other:\n    def make(self):\n        return None", False, id="one of two methods"),
        pytest.param("self.config.name == 'step'", "Trainer.make = None", False, id="another one is put there"),
    ],
)
def test_what_a_method_of_the_object_gives(test: str, more: str, same: bool) -> None:
    assert _uniform(_SCHEDULED.format(test=test, more=more)) is same


@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param("epoch = model(x)\nfor epoch in range(3):\n    probe(epoch == 2)", True, id="given anew by the loop"),
        pytest.param("epoch = model(x)\nfor epoch in range(3):\n    pass\nprobe(epoch == 2)", False, id="after the loop, which may have no turn"),
        pytest.param("epoch = model(x)\nfor epoch in range(3):\n    epoch = model(x)\n    probe(epoch == 2)", False, id="given anew in the loop"),
        pytest.param("epoch = model(x)\nfor e in range(3):\n    probe(epoch == 2)", False, id="another variable"),
        pytest.param("epoch = model(x)\nfor epoch in range(epoch):\n    pass\nelse:\n    probe(epoch)", False, id="where the loop has ended"),
        pytest.param("def f():\n    global epoch\n    epoch = model(x)\nfor epoch in range(3):\n    f()\n    probe(epoch == 2)", False, id="given by a function"),
    ],
)
def test_the_variable_of_a_loop_inside_it(text: str, same: bool) -> None:
    assert _uniform(text) is same
