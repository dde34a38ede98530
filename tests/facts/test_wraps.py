"""Where each model is wrapped, which DataParallel calls go, and what cannot be placed."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from tests.pipeline import script

_TOP = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
loader = DataLoader(train_set, shuffle=True)
"""
_LOOP = "for epoch in range(3):\n    for x, y in loader:\n        loss = F.mse_loss({model}(x), y)\n        loss.backward()\n        optimizer.step()\n"
_OPTIMIZER = "optimizer = torch.optim.SGD({model}.parameters(), lr=0.1)\n"


def _program(body: str, model: str = "model") -> str:
    return _TOP + body + "\n" + _OPTIMIZER.format(model=model) + _LOOP.format(model=model)


def _plan(text: str) -> tuple[list[tuple[str, str, str]], list[str], list[str]]:
    """(how, statement, variable) of each wrap, the calls that go, the problems."""
    plan = script(text).wraps
    wraps = [(w.how, ast.unparse(w.stmt).splitlines()[0], w.target) for w in plan.wraps]
    return wraps, sorted(ast.unparse(c) for c in plan.removed), [told.words for _, told in plan.problems]


@pytest.mark.parametrize(
    ("body", "wraps", "removed"),
    [
        pytest.param("model = nn.Linear(3, 2)", [("value", "model = nn.Linear(3, 2)", "model")], [], id="made and nothing else"),
        pytest.param(
            "model = nn.DataParallel(nn.Linear(3, 2))", [("call", "model = nn.DataParallel(nn.Linear(3, 2))", "model")], [], id="a wrap where it is made"
        ),
        pytest.param(
            "class Both(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n"
            "    def forward(self, x):\n        return self.net(x)\nmodel = nn.Linear(3, 2)\nmodel = nn.DataParallel(Both(model))",
            [("call", "model = nn.DataParallel(Both(model))", "model")], [], id="round a module that holds the model",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nif n > 1:\n    model = nn.DataParallel(model)",
            [("after", "if n > 1:", "model")],
            ["nn.DataParallel(model)"],
            id="a wrap in an if",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nif n > 1:\n    model = nn.DataParallel(model)\nelse:\n    model = nn.DataParallel(model)",
            [("after", "if n > 1:", "model")],
            ["nn.DataParallel(model)", "nn.DataParallel(model)"],
            id="a wrap in both branches",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nmodel = nn.DataParallel(model) if n > 1 else model",
            [("after", "model = nn.DataParallel(model) if n > 1 else model", "model")],
            ["nn.DataParallel(model)"],
            id="a wrap in a conditional",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\ntry:\n    if n > 1:\n        model = nn.DataParallel(model)\nfinally:\n    pass",
            [("after", "try:", "model")],
            ["nn.DataParallel(model)"],
            id="a wrap in an if in a try",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nmodel.eval()\nmodel.load_state_dict(s)",
            [("after", "model.load_state_dict(s)", "model")],
            [],
            id="after the last use that wants it bare",
        ),
        pytest.param("model = nn.Linear(3, 2)\nmodel = model.train()\nshow(f'{model}')", [("after", "show(f'{model}')", "model")], [], id="after it was shown"),
        pytest.param("model = nn.Linear(3, 2)\nfor p in z:\n    p.requires_grad = False", [("after", "for p in z:", "model")], [], id="after freezing"),
        pytest.param("if n:\n    model = nn.Linear(3, 2)\nelse:\n    model = nn.ReLU()", [("after", "if n:", "model")], [], id="made in two branches"),
        pytest.param("model = None\nif n:\n    model = nn.Linear(3, 2)", [("value", "model = nn.Linear(3, 2)", "model")], [], id="made in one branch"),
        pytest.param("if n:\n    if m:\n        model = nn.Linear(3, 2)", [("value", "model = nn.Linear(3, 2)", "model")], [], id="made in a branch of a branch"),
        pytest.param("if n:\n    model = nn.Linear(3, 2)\nmodel.to(d)", [("after", "model.to(d)", "model")], [], id="made in one branch, moved behind it"),
        pytest.param("model = build()\nif n:\n    model = nn.Linear(3, 2)", [("after", "if n:", "model")], [], id="another one in one branch"),
        pytest.param("a, model = 3, nn.Linear(3, 2)", [("after", "a, model = (3, nn.Linear(3, 2))", "model")], [], id="made in a tuple"),
        pytest.param(
            "model = nn.Linear(3, 2)\ncriterion = nn.DataParallel(nn.MSELoss())",
            [("value", "model = nn.Linear(3, 2)", "model")],
            ["nn.DataParallel(nn.MSELoss())"],
            id="a loss that is wrapped",
        ),
        pytest.param(
            "model = nn.Linear(3, 2)\nmodel.part = nn.DataParallel(model.part)",
            [("after", "model.part = nn.DataParallel(model.part)", "model")],
            ["nn.DataParallel(model.part)"],
            id="a part that is wrapped",
        ),
    ],
)
def test_placed(body: str, wraps: list[tuple[str, str, str]], removed: list[str]) -> None:
    assert _plan(_program(body)) == (wraps, removed, [])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param("model = nn.Linear(3, 2)\nmodel = nn.DataParallel()", "DataParallel is called without a module", id="without a module"),
        pytest.param(
            "net = nn.Linear(3, 2)\nmodel = net\nif n:\n    use(nn.DataParallel(net))",
            "this DataParallel wrap is made under a condition and not bound to a name; bind it to a variable first",
            id="not bound to a name",
        ),
    ],
)
def test_calls_that_cannot_be_placed(body: str, problem: str) -> None:
    assert problem in _plan(_program(body))[2]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            _program("models = sorted([nn.Linear(3, 2)], key=id)", "models[0]"),
            "the model that models[0] means cannot be traced to one variable",
            id="in a list",
        ),
        pytest.param(
            _program("def a():\n    global model\n    model = nn.Linear(3, 2)\ndef b():\n    global model\n    model = pruned(model)\na()\nb()"),
            "model is given another model, made of itself, which should have a name of its own",
            id="made of itself in another function",
        ),
        pytest.param(
            _TOP
            + f"model = nn.Linear(3, 2)\nif c:\n    model = pruned(model)\n{indent(_OPTIMIZER.format(model='model') + _LOOP.format(model='model'), '    ')}",
            "model is given another model, made of itself, which should have a name of its own",
            id="made of itself where training runs",
        ),
        pytest.param(
            _program("net = nn.Linear(3, 2)\nboth = nn.DataParallel(net)\nmodel = both\nif n:\n    model = net"),
            "model may be the wrapped or the bare model here",
            id="the wrapper or the model",
        ),
        pytest.param(
            _TOP
            + "model = nn.Linear(3, 2)\nfor fold in range(2):\n    model = nn.Linear(3, 2)\n"
            + indent(_OPTIMIZER.format(model="model") + _LOOP.format(model="model"), "    "),
            "model is given another value where training runs",
            id="given again in a loop round training",
        ),
        pytest.param(
            _program("model = nn.Linear(3, 2)\nfast = torch.compile(model)").replace("loss.backward", "loss = loss + fast(x).mean()\n        loss.backward"),
            "fast holds a model that another variable, model ({place}), holds too: it would be wrapped twice",
            id="under two names",
        ),
    ],
)
def test_models_that_cannot_be_placed(text: str, problem: str) -> None:
    assert problem in _plan(text)[2]


def test_a_second_name_for_the_wrapper_is_no_second_wrap() -> None:
    text = _program("model = nn.Linear(3, 2)\nother = model").replace("loss.backward", "loss = loss + other(x).mean()\n        loss.backward")
    assert _plan(text)[2] == []


@pytest.mark.parametrize(
    ("before", "line", "placed"),
    [
        pytest.param("model = nn.Linear(3, 2)", "model = model.to(device)", True, id="to one place"),
        pytest.param("model = nn.Linear(3, 2).to(device)", "model = model.to(device)", True, id="to where it is"),
        pytest.param("model = nn.Linear(3, 2).to(device)", "model = model.to(batch.device)", False, id="to another place"),
        pytest.param("model = nn.Linear(3, 2)", "model = model.half()", False, id="to another type"),
    ],
)
def test_a_model_that_is_moved_in_the_loop_that_trains(before: str, line: str, placed: bool) -> None:
    text = _program(f"device = 'cuda'\n{before}").replace("loss.backward()", f"loss.backward()\n        {line}")
    problems = _plan(text)[2]
    assert problems == ([] if placed else ["model is given another value where training runs"])


_TRAINING = indent(_OPTIMIZER.format(model="model") + _LOOP.format(model="model"), "    ")
_BUILT = """
class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 2)
        self.model.to(device)
    def {name}(self):
        self.model = {value}
        self.model.load_state_dict(s)
    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for x, y in loader:
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            optimizer.step()
t = Trainer()
t.train()
t.{name}()
"""


@pytest.mark.parametrize(
    ("text", "wraps"),
    [
        pytest.param("if a:\n    model = nn.ReLU()\n" + _TRAINING, ["model = nn.ReLU()"], id="training in a branch"),
        pytest.param("if a:\n    if b:\n        model = nn.ReLU()\n" + indent(_TRAINING, "    "), ["model = nn.ReLU()"], id="training in a branch of a branch"),
        pytest.param(
            f"if a:\n    model = nn.ReLU()\n{_TRAINING}else:\n    model = nn.Tanh()\n    model.load_state_dict(s)\n{_TRAINING}",
            ["model = nn.ReLU()", "model.load_state_dict(s)"],
            id="training in two branches",
        ),
        pytest.param(
            f"if a:\n    model = nn.ReLU()\n{_TRAINING}elif b:\n    model: nn.Module = nn.Tanh()\n    model(x)",
            ["model = nn.ReLU()", "model: nn.Module = nn.Tanh()"],
            id="training in one branch",
        ),
        pytest.param(
            f"if a:\n    model = nn.ReLU()\n{_TRAINING}elif b:\n    model = nn.Tanh()\nelif c:\n    model = nn.Identity()\n    model.load_state_dict(s)",
            ["model = nn.ReLU()", "model = nn.Tanh()", "model.load_state_dict(s)"],
            id="training in one of several branches",
        ),
        pytest.param(
            f"model = nn.ReLU()\nif a:\n    model = nn.Tanh()\n{_TRAINING}else:\n{_TRAINING}",
            ["model = nn.ReLU()", "model = nn.Tanh()"],
            id="another model for a branch",
        ),
        pytest.param(
            "def a():\n    global model\n    model = nn.ReLU()\n    fit()\ndef b():\n    global model\n    other, model = 3, nn.Tanh()\n    fit()\ndef fit():\n"
            + _TRAINING + "a()\nb()",
            ["model = nn.ReLU()", "other, model = (3, nn.Tanh())"],
            id="made in two functions",
        ),
        pytest.param(_BUILT.format(name="load", value="nn.Tanh()"), ["self.model.to(device)", "self.model.load_state_dict(s)"], id="made again in another method"),
        pytest.param(_BUILT.format(name="move", value="self.model.to(device)"), ["self.model.to(device)"], id="moved in another method"),
        pytest.param(_BUILT.format(name="drop", value="'none'"), ["self.model.to(device)"], id="no model in another method"),
    ],
)  # fmt: skip
def test_each_of_several_models_has_its_wrap(text: str, wraps: list[str]) -> None:
    plan = script(_TOP + text).wraps
    assert [told.words for _, told in plan.problems] == []
    assert [ast.unparse(w.stmt).splitlines()[0] for w in plan.wraps] == wraps


def test_what_a_variable_holds_between_a_model_and_its_wrap() -> None:
    """Bare in the function that makes it, and in what that calls before the wrap; wrapped elsewhere."""
    text = _BUILT.format(name="load", value="nn.Tanh()").replace("        self.model.load_state_dict(s)\n", "        self.read(s)\n        use(self.model)\n")
    text = text.replace("    def train(self):", "    def read(self, s):\n        self.model.load_state_dict(s)\n    def train(self):")
    found = script(_TOP + text.replace("t.train()\nt.load()", "t.load()\nt.train()"))
    nodes = {ast.unparse(found.names.parent[n]): found.roles.wrapped(n) for n in found.names.attributes("model") if isinstance(n.ctx, ast.Load)}
    assert nodes["self.model.to"] is False
    assert nodes["use(self.model)"] is False
    assert nodes["self.model.load_state_dict"] is None
    assert nodes["self.model(x)"] is True


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        pytest.param(f"net = nn.ReLU()\nif a:\n    model = net\n{_TRAINING}else:\n    tuned = net\n" + _TRAINING.replace("model", "tuned"), False, id="in branches"),
        pytest.param(f"net = nn.ReLU()\nif a:\n    model = net\n{_TRAINING}if b:\n    tuned = net\n" + _TRAINING.replace("model", "tuned"), True, id="in two tests"),
        pytest.param(
            f"def f(model):\n    model = net\n{_TRAINING}def g(tuned):\n    tuned = net\n{_TRAINING.replace('model', 'tuned')}net = nn.ReLU()\nf(net) if a else g(net)\n",
            True,
            id="in functions that a conditional calls",
        ),
        pytest.param(
            f"def f():\n    model = net\n{_TRAINING}def g():\n    tuned = net\n{_TRAINING.replace('model', 'tuned')}net = nn.ReLU()\nif a:\n    f()\nelse:\n    g()\n",
            False,
            id="in functions that branches call",
        ),
        pytest.param(
            f"def f():\n    model = net\n{_TRAINING}def g():\n    tuned = net\n{_TRAINING.replace('model', 'tuned')}net = nn.ReLU()\nf()\ng()\n",
            True,
            id="in functions that both run",
        ),
        pytest.param(
            f"def f():\n    model = net\n{_TRAINING}def g():\n    tuned = net\n{_TRAINING.replace('model', 'tuned')}net = nn.ReLU()\n"
            + "".join(f"def {x}{i}(): {x}{i - 1 or ''}()\n" for x in "fg" for i in range(1, 5)) + "if a:\n    f4()\nelse:\n    g4()\n",
            True,
            id="in functions that branches call from too far away",
        ),
    ],
)  # fmt: skip
def test_two_names_for_one_model(text: str, twice: bool) -> None:
    problems = [told.words for _, told in script(_TOP + text).wraps.problems]
    assert any("holds a model that another variable" in p for p in problems) == twice


_HALF = "if args.half:\n    model.half()"


@pytest.mark.parametrize(
    ("body", "wraps", "removed"),
    [
        pytest.param(f"model = nn.DataParallel(nn.Linear(3, 2))\n{_HALF}", [("after", "if args.half:", "model")], ["nn.DataParallel(nn.Linear(3, 2))"], id="under a test"),
        pytest.param("model = nn.Linear(3, 2)\nmodel = nn.DataParallel(model).cuda()\nmodel = model.to(dtype=torch.float64)", [("after", "model = model.to(dtype=torch.float64)", "model")], ["nn.DataParallel(model)"], id="bound again"),
        pytest.param(f"model = nn.Linear(3, 2)\nif n > 1:\n    model = nn.DataParallel(model)\n{_HALF}", [("after", "if args.half:", "model")], ["nn.DataParallel(model)"], id="both under tests"),
        pytest.param("net = nn.Linear(3, 2)\nmodel = nn.DataParallel(net)\nnet.double()", [("after", "net.double()", "model")], ["nn.DataParallel(net)"], id="by the other name"),
        pytest.param("model = nn.DataParallel(nn.Linear(3, 2))\nmodel.half()\nprint(1)\nfor m in model.modules():\n    m.float()\nprint(2)", [("after", "for m in model.modules():", "model")], ["nn.DataParallel(nn.Linear(3, 2))"], id="the last of several"),
        pytest.param(f"model = nn.DataParallel(nn.Linear(3, 2))\nprint(model.module)\n{_HALF}", [("call", "model = nn.DataParallel(nn.Linear(3, 2))", "model")], [], id="not where the wrapper is asked"),
        pytest.param("model = nn.DataParallel(nn.Linear(3, 2))\nmodel.float()", [("call", "model = nn.DataParallel(nn.Linear(3, 2))", "model")], [], id="not for the usual type"),
        pytest.param("model = nn.Linear(3, 2)\nmodel.half()\nmodel = nn.DataParallel(model)", [("call", "model = nn.DataParallel(model)", "model")], [], id="changed before"),
    ],
)  # fmt: skip
def test_a_wrap_follows_a_change_of_type(body: str, wraps: list[tuple[str, str, str]], removed: list[str]) -> None:
    assert _plan(_program(body)) == (wraps, removed, [])


def test_a_change_of_type_after_training_moves_nothing() -> None:
    assert _plan(_program("model = nn.DataParallel(nn.Linear(3, 2))") + "model.half()\n")[0] == [("call", "model = nn.DataParallel(nn.Linear(3, 2))", "model")]


_SOLVER = """
class Solver:
    def __init__(self, again):
        {start}
    def build(self):
        self.net = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        {extra}
    def train(self):
        for epoch in range(3):
            self.epoch()
        {end}
    def epoch(self):
        for x, y in loader:
            F.mse_loss(self.net(x), y).backward()
            self.optimizer.step()
Solver(True).train()
"""


@pytest.mark.parametrize(
    ("start", "end", "extra", "clear"),
    [
        pytest.param("self.build()", "pass", "pass", True, id="when it is made"),
        pytest.param("self.build()", "self.build()", "pass", True, id="and again after training"),
        pytest.param("self.build()", "if self.net:\n            self.build()", "pass", True, id="and again under a test"),
        pytest.param("if again:\n            self.build()", "self.build()", "pass", False, id="not always when it is made"),
        pytest.param("self.build()", "self.build()", "self.epoch()", True, id="it trains when the model is made"),
    ],
)
def test_a_method_that_makes_the_model_again(start: str, end: str, extra: str, clear: bool) -> None:
    wraps, _, problems = _plan(_TOP + _SOLVER.format(start=start, end=end, extra=extra))
    assert not problems if clear else problems
    assert not clear or wraps == [("value", "self.net = nn.Linear(3, 2)", "self.net")]


_FACTORY = """
def build(n=3):
    {}
def make():
    return build()
def train(model, tuned):
    for x, y in DataLoader(d):
        loss = (model(x) - tuned(x)).mean()
        loss.backward()
        optimizer.step()
{}
optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for epoch in range(3):
    train(a, b)
    train(b, a)
"""
_LOCAL = "model = nn.Linear(3, 2)\n    model = model.cuda()\n    return model"
_BESIDE = "model = nn.Linear(3, 2)\n    made, o = model.cuda(), torch.optim.SGD(model.parameters(), lr=0.1)\n    return model, o"


@pytest.mark.parametrize(
    ("body", "made", "twice"),
    [
        pytest.param(_LOCAL, "a = build()\nb = build()", False, id="two calls"),
        pytest.param(_LOCAL, "a = build(n=3).cuda()\nb = build(3)", False, id="keyword, moved"),
        pytest.param(_LOCAL, "a, b = build(), build()", False, id="in a tuple"),
        pytest.param(_LOCAL, "a = make()\nb = build()", False, id="through another function"),
        pytest.param("return nn.Linear(3, 2)", "a = make()\nb = make()", False, id="handed back at once"),
        pytest.param(_BESIDE, "a, o = build()\nb, p = build()", False, id="beside its optimizer"),
        pytest.param(_BESIDE.replace("return model, o", "return model, model"), "a, b = build()", True, id="twice by one call"),
        pytest.param(_BESIDE.replace("made, o", "models[0], o"), "a, o = build()\nb, p = build()", True, id="kept beside another thing"),
        pytest.param(_LOCAL, "c = build()\na = c\nb = c", True, id="one call"),
        pytest.param("global model\n    model = nn.Linear(3, 2)\n    return model", "a = build()\nb = build()", True, id="a global"),
        pytest.param("model = nn.Linear(3, 2)\n    cache[n] = model\n    return cache[n]", "a = build()\nb = build()", True, id="kept in a dict"),
        pytest.param("model = nn.Linear(3, 2)\n    models.append(model)\n    return model", "a = build()\nb = build()", True, id="kept in a list"),
        pytest.param("build.model = nn.Linear(3, 2)\n    return build.model", "a = build()\nb = build()", True, id="an attribute"),
    ],
)
def test_models_that_a_function_makes(body: str, made: str, twice: bool) -> None:
    """Two calls of a function that makes a model anew make two models."""
    problems = [told.words for _, told in script(_TOP + "cache = {}\nmodels = []\n" + _FACTORY.format(body, made)).wraps.problems]
    assert any("holds a model that another variable" in p for p in problems) == twice, problems


def test_a_function_that_remembers_what_it_made() -> None:
    text = "import functools\n" + _FACTORY.format(_LOCAL, "a = build()\nb = build()").replace("def build", "@functools.cache\ndef build")
    assert any("wrapped twice" in told.words for _, told in script(_TOP + text).wraps.problems)


_FIT = """\
def fit(net, {more}batches, opt):
    {move}
    for epoch in range(3):
        for x, y in batches:
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
model = nn.Linear(3, 2){made}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{call}
"""
_CALL = "fit(model, loader, optimizer)"


@pytest.mark.parametrize(
    ("parts", "wrap"),
    [
        pytest.param({"move": "net.to(place)"}, ("after", "net.to(place)", "net"), id="moved in place"),
        pytest.param({"move": "net = net.cuda()"}, ("value", "net = net.cuda()", "net"), id="moved and bound"),
        pytest.param({"move": "net.cuda()\n    net.apply(init)"}, ("after", "net.apply(init)", "net"), id="set up after the move"),
        pytest.param({"move": "net.to(torch.float64)"}, ("value", "model = nn.Linear(3, 2)", "model"), id="another type"),
        pytest.param({"move": "pass"}, ("value", "model = nn.Linear(3, 2)", "model"), id="not moved"),
        pytest.param({"move": "net.to(place)", "made": ".to(place)"}, ("value", "model = nn.Linear(3, 2).to(place)", "model"), id="moved before"),
        pytest.param({"move": "net.to(place)", "call": f"{_CALL}\n{_CALL}"}, ("value", "model = nn.Linear(3, 2)", "model"), id="called twice"),
        pytest.param({"move": "net.to(place)", "call": f"for k in range(2):\n    {_CALL}"}, ("value", "model = nn.Linear(3, 2)", "model"), id="called again and again"),
        pytest.param({"move": "net.cuda()\n    net = other(net)"}, None, id="given another value"),
    ],
)
def test_a_model_that_is_moved_where_it_trains(parts: dict[str, str], wrap: tuple[str, str, str] | None) -> None:
    filled = {"more": "", "made": "", "call": _CALL, **parts}
    wraps, _, _ = _plan(_TOP + "place = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n" + _FIT.format(**filled))
    assert wraps == [wrap] if wrap is not None else ("after", "net.cuda()", "net") not in wraps


def test_a_model_that_is_moved_and_handed_on() -> None:
    step = "def step(net, x, y):\n    loss = F.mse_loss(net(x), y)\n    loss.backward()\n"
    text = _FIT.format(more="", made="", call=_CALL, move="net.to(place)").replace("            loss = F.mse_loss(net(x), y)\n            loss.backward()", "            step(net, x, y)")
    assert _plan(_TOP + step + text)[0] == [("after", "net.to(place)", "net")]


_GIVEN = """\
def fit(net, batches):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in batches:
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
"""
_FIRST = ("before", "opt = torch.optim.SGD(net.parameters(), lr=0.1)", "net")


@pytest.mark.parametrize(
    ("calls", "wrap"),
    [
        pytest.param("fit(nn.Linear(3, 2), loader)", _FIRST, id="made in the call"),
        pytest.param("fit(nn.Linear(3, 2), loader)\nfit(nn.Linear(3, 1), loader)", _FIRST, id="another one in each call"),
        pytest.param("def build():\n    return nn.Linear(3, 2)\nfit(build(), loader)", _FIRST, id="by a function"),
        pytest.param("kept = nn.Linear(3, 2)\ndef get():\n    return kept\nfor k in range(2):\n    fit(get(), loader)", ("value", "kept = nn.Linear(3, 2)", "kept"), id="one that is kept"),
        pytest.param(
            "nets = {}\ndef get():\n    net = nn.Linear(3, 2)\n    nets[0] = net\n    return net\nfit(get(), loader)",
            ("value", "net = nn.Linear(3, 2)", "net"),
            id="by a function that keeps it",
        ),
        pytest.param("def run(net):\n    fit(net, loader)\nrun(nn.Linear(3, 2))", None, id="handed on"),
        pytest.param("import unseen\nfit(nn.Linear(3, 2), loader)\nfit(unseen.models[0], loader)", None, id="another one that is not seen"),
        pytest.param("nets = [nn.Linear(3, 2)]\nfit(nets[0], loader)", ("part", "nets = [nn.Linear(3, 2)]", "nn.Linear(3, 2)"), id="in a list"),
    ],
)
def test_a_model_that_is_made_in_the_call(calls: str, wrap: tuple[str, str, str] | None) -> None:
    wraps, _, problems = _plan(f"{_TOP}{_GIVEN}{calls}\n")
    assert wraps == ([wrap] if wrap is not None else [])
    assert bool(problems) is (wrap is None)


_ELEMENT = ("part", "nets = [nn.Linear(3, 2)]", "nn.Linear(3, 2)")


@pytest.mark.parametrize(
    ("made", "loop", "wrap"),
    [
        pytest.param("{'a': nn.Linear(3, 2)}", "for name, net in nets.items():\n    fit(net, loader)", ("before", "fit(net, loader)", "net"), id="of a dictionary"),
        pytest.param("[nn.Linear(3, 2)]", "for net in nets:\n    print(net)\n    fit(net, loader)", ("before", "print(net)", "net"), id="of a list"),
        pytest.param("[nn.Linear(3, 2)]", "for net in nets:\n    pass\nfit(net, loader)", _ELEMENT, id="read after the loop"),
        pytest.param("[nn.Linear(3, 2)]", "for net in nets:\n    fit(net, loader)\nfor net in nets:\n    print(net)", _ELEMENT, id="the variable of two loops"),
    ],
)
def test_a_loop_over_models_wraps_one_in_each_turn(made: str, loop: str, wrap: tuple[str, str, str] | None) -> None:
    wraps, _, problems = _plan(f"{_TOP}{_GIVEN}nets = {made}\n{loop}\n")
    assert wraps == ([wrap] if wrap is not None else [])
    assert bool(problems) is (wrap is None)


_MOVES = """\
def fit(net, batches):
    net = net.to(place)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in batches:
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
"""


@pytest.mark.parametrize(
    ("calls", "wraps"),
    [
        pytest.param("a = nn.Linear(3, 2)\nfit(a, loader)", [("value", "net = net.to(place)", "net")], id="once"),
        pytest.param(
            "a = nn.Linear(3, 2)\nfit(a, loader)\nb = nn.Linear(3, 1)\nfit(b, loader)",
            [("value", "a = nn.Linear(3, 2)", "a"), ("value", "b = nn.Linear(3, 1)", "b")],
            id="two models",
        ),
        pytest.param("a = nn.Linear(3, 2)\nfit(a, loader)\nfit(a, loader)", [("value", "a = nn.Linear(3, 2)", "a")], id="one model twice"),
        pytest.param("a = nn.Linear(3, 2)\nfor k in range(3):\n    fit(a, loader)", [("value", "a = nn.Linear(3, 2)", "a")], id="in each epoch"),
    ],
)
def test_a_function_that_moves_what_it_is_given_and_trains_it(calls: str, wraps: list[tuple[str, str, str]]) -> None:
    found, _, problems = _plan(f"{_TOP}place = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n{_MOVES}{calls}\n")
    assert found == wraps
    assert not problems



_KEEPER = """\
class Attack:
    def __init__(self, net, scale):
        self.net = net
        self.scale = scale

    def step(self, x, y):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(F.mse_loss(self.net(x), y), x)[0]

def fit(net, attack):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            loss = F.mse_loss(net(x + attack.step(x, y)), y)
            loss.backward()
            opt.step()
"""


@pytest.mark.parametrize(
    ("calls", "wraps"),
    [
        pytest.param("a = nn.Linear(3, 2).to(place)\nfit(a, Attack(a, 1))", [("value", "a = nn.Linear(3, 2).to(place)", "a")], id="in the call"),
        pytest.param(
            "a = nn.Linear(3, 2)\nkeeper = Attack(a, 1)\na.cuda()\nfit(a, keeper)", [("value", "a = nn.Linear(3, 2)", "a")], id="made before the model is moved"
        ),
        pytest.param(
            "a = nn.Linear(3, 2)\na.load_state_dict(torch.load(path))\nkeeper = Attack(a, 1)\nfit(a, keeper)",
            [("after", "a.load_state_dict(torch.load(path))", "a")],
            id="made after it is loaded",
        ),
        pytest.param(
            "a = nn.Linear(3, 2)\ndef build():\n    return Attack(a, 1)\nkeeper = build()\na.cuda()\nfit(a, keeper)",
            [("value", "a = nn.Linear(3, 2)", "a")],
            id="in a function",
        ),
    ],
)
def test_an_object_that_keeps_the_model(calls: str, wraps: list[tuple[str, str, str]]) -> None:
    assert _plan(f"{_TOP}{_KEEPER}{calls}\n") == (wraps, [], [])


def test_an_object_that_is_given_other_models_as_well_has_a_wrap_of_its_own() -> None:
    calls = "a = nn.Linear(3, 2)\nkeeper = Attack(a, 1)\nkeeper.net = nn.Linear(3, 2)\nfit(a, keeper)"
    assert ("value", "self.net = net", "self.net") in _plan(f"{_TOP}{_KEEPER}{calls}\n")[0]


_EACH = """\
for epoch in range(3):
    for x, y in loader:
        for {name} in {over}:
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opts[0].step()
"""


@pytest.mark.parametrize(
    ("made", "name", "over", "part"),
    [
        pytest.param("nets = [nn.Linear(3, k) for k in (1, 2)]", "net", "nets", "nn.Linear(3, k)", id="of a list comprehension"),
        pytest.param("nets = {k: nn.Linear(3, k).cuda() for k in (1, 2)}", "net", "nets.values()", "nn.Linear(3, k).cuda()", id="moved where it is made"),
        pytest.param("nets = []\nfor k in (1, 2):\n    nets.append(nn.Linear(3, k))", "net", "nets", "nn.Linear(3, k)", id="put into a list"),
        pytest.param("nets = {}\nfor k in (1, 2):\n    nets[k] = nn.Linear(3, k)", "_, net", "nets.items()", "nn.Linear(3, k)", id="stored by a key"),
    ],
)
def test_models_of_each_step_are_wrapped_where_they_are_put_into_their_container(made: str, name: str, over: str, part: str) -> None:
    each = "nets.values()" if made.startswith("nets = {") else "nets"
    opts = f"opts = [torch.optim.SGD(n.parameters(), lr=0.1) for n in {each}]\n"
    wraps, removed, problems = _plan(f"{_TOP}{made}\n{opts}{_EACH.format(name=name, over=over)}")
    assert [(how, target) for how, _, target in wraps] == [("part", part)]
    assert not removed
    assert not problems


@pytest.mark.parametrize(
    "made",
    [
        pytest.param("nets = nn.ModuleDict()\nnets['a'] = nn.Linear(3, 2)", id="stored"),
        pytest.param("nets = nn.ModuleDict({'a': nn.Linear(3, 2)})", id="given"),
        pytest.param("nets = nn.ModuleList()\nnets.append(nn.Linear(3, 2))", id="appended"),
    ],
)
def test_a_part_of_a_module_is_no_element_of_a_container(made: str) -> None:
    key = "'a'" if "Dict" in made else "0"
    loop = _LOOP.format(model=f"nets[{key}]")
    wraps, _, _ = _plan(f"{_TOP}{made}\noptimizer = torch.optim.SGD(nets[{key}].parameters(), lr=0.1)\n{loop}")
    assert not [w for w in wraps if w[0] == "part"]


def test_a_model_that_has_a_name_before_it_is_put_into_a_container_is_wrapped_there() -> None:
    wraps, _, problems = _plan(f"{_TOP}{_GIVEN}net = nn.Linear(3, 2)\nnets = [net, nn.Linear(3, 1)]\nfit(nets[k], loader)\n")
    assert sorted((how, target) for how, _, target in wraps) == [("part", "nn.Linear(3, 1)"), ("value", "net")]
    assert not problems


_TRAINER = """
class Trainer:
    def __init__(self, model):
        self.model = model
    def fit(self, device):
{moves}
        for epoch in range(3):
            self.step()
    def step(self):
        for x, y in loader:
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            optimizer.step()
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
trainer = Trainer(net)
{start}
"""


@pytest.mark.parametrize(
    ("moves", "start", "after"),
    [
        pytest.param("self.model.to(device)", "trainer.fit(d)", "self.model.to(device)", id="moved"),
        pytest.param("self.model = self.model.cuda()\nself.model.train()", "trainer.fit(d)", "self.model = self.model.cuda()", id="moved, and given again"),
        pytest.param("if device:\n    self.model.to(device)", "trainer.fit(d)", "if device:", id="moved under a test"),
        pytest.param("print(device)", "trainer.fit(d)", "self.model = model", id="not moved"),
        pytest.param("self.model.to(device)", "net.to(d)\ntrainer.fit(d)", "self.model = model", id="moved elsewhere too"),
        pytest.param("self.model.to(device)", "trainer.fit(d)\ntrainer.fit(d)", "self.model = model", id="trained twice"),
        pytest.param("self.model.to(device)", "for fold in range(3):\n    trainer.fit(d)", "self.model = model", id="trained in a loop"),
    ],
)
def test_a_trainer_that_moves_its_model(moves: str, start: str, after: str) -> None:
    wraps, _, _ = _plan(_TOP + _TRAINER.format(moves=indent(moves, " " * 8), start=start))
    assert [(stmt, target) for _, stmt, target in wraps] == [(after, "self.model")]
