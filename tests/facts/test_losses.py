"""What the differentiated loss is normalised by."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.losses import Loss, Losses, Norm, _join
from tests.pipeline import script

_PROGRAM = """
import math, random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
{defs}
{setup}
scaler = torch.amp.GradScaler()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()
loader = DataLoader(train_set, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        out = model(x)
{step}
        ({loss}).backward()
        optimizer.step()
"""


def _norm(loss: str, step: str = "pass", setup: str = "model = nn.Linear(3, 2)", defs: str = "") -> Norm:
    lines = "\n".join("        " + line for line in step.splitlines())
    found = script(_PROGRAM.format(loss=loss, step=lines, setup=setup, defs=defs))
    calls = [n for n in found.names.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "backward"]
    return found.losses.of_backward(calls[-1]).norm


_MEAN = [
    pytest.param("ce(out, y)", id="a loss object"),
    pytest.param("F.mse_loss(out, y)", id="a function"),
    pytest.param("F.mse_loss(out, y, reduction='mean')", id="a function, spelled out"),
    pytest.param("ce(out, y) / 2", id="halved"),
    pytest.param("0.5 * ce(out, y)", id="weighted"),
    pytest.param("ce(out, y) * args.alpha", id="weighted by a setting"),
    pytest.param("ce(out, y) + mse(out, y)", id="two"),
    pytest.param("ce(out, y) + 0.1 * sum(p.abs().sum() for p in model.parameters())", id="with a regulariser"),
    pytest.param("ce(out, y) + torch.stack([p.norm() for p in model.parameters()]).sum()", id="with a regulariser by torch"),
    pytest.param("-ce(out, y)", id="with a sign"),
    pytest.param("ce(out, y) if epoch else mse(out, y)", id="chosen"),
    pytest.param("ce(out, y).float().to('cpu')", id="moved"),
    pytest.param("scaler.scale(ce(out, y))", id="scaled"),
    pytest.param("out.mean()", id="a mean"),
    pytest.param("torch.mean(out)", id="a mean, as a function"),
    pytest.param("F.mse_loss(out, y, reduction='sum') / x.size(0)", id="a sum over the batch's size"),
    pytest.param("F.mse_loss(out, y, reduction='sum') / len(x)", id="a sum over the batch's length"),
    pytest.param("nn.CTCLoss()(out, y, a, b)", id="CTC"),
    pytest.param("random.random() * ce(out, y)", id="weighted by a draw"),
    pytest.param("np.random.beta(1, 1) * ce(out, y)", id="weighted by a draw of numpy's"),
    pytest.param("math.sqrt(2) * ce(out, y)", id="weighted by a computed number"),
    pytest.param("ce(out, y) * model.bias.item()", id="weighted by a number that is no batch's"),
    pytest.param("ce(out, y) / args.parts", id="over a setting"),
    pytest.param("(1.0 / x.size(0)) * F.mse_loss(out, y, reduction='sum')", id="a part of a sum"),
    pytest.param("F.mse_loss(out, y, reduction='sum') * (args.scale / len(x))", id="a scaled part of a sum"),
    pytest.param("nn.MSELoss(size_average=True)(out, y)", id="a mean as long ago"),
    pytest.param("F.binary_cross_entropy(out, y, weight=w)", id="weights of a loss that divides by the batch"),
    pytest.param("nn.BCELoss(w)(out, y)", id="weights of such a loss object"),
]


@pytest.mark.parametrize("loss", _MEAN)
def test_a_mean(loss: str) -> None:
    assert _norm(loss) is Norm.MEAN


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        pytest.param("3", Norm.CONST, id="a number"),
        pytest.param("F.mse_loss(out, y, reduction='sum')", Norm.SUM, id="a sum"),
        pytest.param("nn.MSELoss(size_average=False)(out, y)", Norm.SUM, id="a sum as long ago"),
        pytest.param("((out - y) ** 2).sum()", Norm.SUM, id="a sum by hand"),
        pytest.param("sum(losses.values())", Norm.UNKNOWN, id="losses of a dict added up"),
        pytest.param("sum([ce(out, y), mse(out, y)])", Norm.MEAN, id="losses of a list added up"),
        pytest.param("torch.stack([ce(out, y), mse(out, y)]).sum()", Norm.UNKNOWN, id="stacked losses added up"),
        pytest.param("ce(out, y).sum()", Norm.MEAN, id="the sum of a number"),
        pytest.param("torch.sum(ce(out, y))", Norm.MEAN, id="the sum of a number, as a function"),
        pytest.param("out.sum().mean()", Norm.SUM, id="the mean of a sum"),
        pytest.param("out.sum(1)", Norm.UNKNOWN, id="a sum over another dimension"),
        pytest.param("nn.MSELoss(None, False)(out, y)", Norm.UNKNOWN, id="a reduction by position"),
        pytest.param("F.mse_loss(out, y, False)", Norm.UNKNOWN, id="a reduction by position, as a function"),
        pytest.param("nn.MSELoss(reduce=False)(out, y)", Norm.UNKNOWN, id="reduce"),
        pytest.param("nn.MSELoss(*a)(out, y)", Norm.UNKNOWN, id="a star"),
        pytest.param("torch.sum(out)", Norm.SUM, id="a sum, as a function"),
        pytest.param("ce(out, y) * x.size(0)", Norm.SUM, id="a mean times the batch's size"),
        pytest.param("out * x.size(0)", Norm.UNKNOWN, id="something times the batch's size"),
        pytest.param("torch.log(1 + out.sum(0)).sum()", Norm.UNKNOWN, id="a sum that is not plain"),
        pytest.param("out.sum(0).sum()", Norm.SUM, id="a sum of sums"),
        pytest.param("F.mse_loss(out, y, reduction='sum') / mask.sum()", Norm.MEAN, id="over a count"),
        pytest.param("F.mse_loss(out, y, reduction='sum') / out.sum()", Norm.WEIGHTED, id="over a sum of what the model gives"),
        pytest.param("(1 / x.size(0)) * ce(out, y)", Norm.UNKNOWN, id="a part of a mean"),
        pytest.param("(out.mean() / x.size(0)) * F.mse_loss(out, y, reduction='sum')", Norm.UNKNOWN, id="a sum times something of the batch"),
        pytest.param("(1 / 3) * F.mse_loss(out, y, reduction='sum')", Norm.SUM, id="a third of a sum"),
        pytest.param("ce(out, y) / x.size(0)", Norm.UNKNOWN, id="a mean over the batch's size"),
        pytest.param("x.size(0) * ce(out, y)", Norm.SUM, id="the batch's size times a mean"),
        pytest.param("F.mse_loss(out, y, reduction='sum') / (epoch + 1)", Norm.SUM, id="a sum over the loop's counter"),
        pytest.param("nn.CrossEntropyLoss(weight=w)(out, y)", Norm.MEAN, id="class weights"),
        pytest.param("nn.CrossEntropyLoss(w)(out, y)", Norm.MEAN, id="class weights by position"),
        pytest.param("nn.CrossEntropyLoss(make(w))(out, y)", Norm.MEAN, id="class weights that are made with the loss object"),
        pytest.param("F.cross_entropy(out, make(y), w)", Norm.WEIGHTED, id="targets that are made on the way"),
        pytest.param("F.cross_entropy(out, y, make(w))", Norm.WEIGHTED, id="class weights that are made on the way"),
        pytest.param("F.cross_entropy(*pair, weight=w)", Norm.UNKNOWN, id="a star"),
        pytest.param("F.cross_entropy(out, y, w)", Norm.MEAN, id="class weights of a function, by position"),
        pytest.param("nn.CrossEntropyLoss(weight=make(w))(out, make(y)) + mse(out, y)", Norm.MEAN, id="class weights and a mean"),
        pytest.param("F.cross_entropy(out, make(y), w) + mse(out, y)", Norm.WEIGHTED, id="class weights of a function and a mean"),
        pytest.param("what(out) + F.cross_entropy(out, make(y), w)", Norm.WEIGHTED, id="class weights and something unknown"),
        pytest.param("F.cross_entropy(out, y, ignore_index=0)", Norm.MEAN, id="ignored targets"),
        pytest.param("F.mse_loss(out, y, reduction='none')", Norm.UNKNOWN, id="no reduction"),
        pytest.param("F.mse_loss(out, y, reduction=how)", Norm.UNKNOWN, id="a reduction from elsewhere"),
        pytest.param("F.mse_loss(out, y, **kw)", Norm.UNKNOWN, id="star arguments"),
        pytest.param("out.mean(1)", Norm.UNKNOWN, id="a mean over another dimension"),
        pytest.param("torch.mean(out, dim=1)", Norm.UNKNOWN, id="a mean over another dimension, as a function"),
        pytest.param("torch.mean(out, 1)", Norm.UNKNOWN, id="a mean over another dimension, by position"),
        pytest.param("torch.mean(input=out)", Norm.UNKNOWN, id="a mean of what is given by name"),
        pytest.param("torch.sum(input=out)", Norm.UNKNOWN, id="a sum of what is given by name"),
        pytest.param("F.relu(out)", Norm.UNKNOWN, id="a function that is no loss"),
        pytest.param("ce(out, y) + out.norm()", Norm.UNKNOWN, id="a mean and a norm"),
        pytest.param("2 ** ce(out, y)", Norm.UNKNOWN, id="a power"),
        pytest.param("ce(out, y) + out.sum()", Norm.MEAN, id="a mean and a sum"),
        pytest.param("out.sum() + sum(p.norm() for p in model.parameters())", Norm.MEAN, id="a sum and a regulariser"),
        pytest.param("ce(out, y) ** 2", Norm.MEAN, id="squared"),
        pytest.param("torch.sqrt(mse(out, y) + 1e-6)", Norm.MEAN, id="a root"),
        pytest.param("((out - y) ** 2).mean().log()", Norm.MEAN, id="a logarithm"),
        pytest.param("torch.sqrt(F.mse_loss(out, y, reduction='sum'))", Norm.UNKNOWN, id="a root of a sum"),
        pytest.param("torch.sqrt(F.mse_loss(out, y, reduction='sum') / len(x))", Norm.WEIGHTED, id="a root of a mean that is divided by hand"),
        pytest.param("torch.sqrt(out.mean() + out.sum())", Norm.WEIGHTED, id="a root of both"),
        pytest.param("torch.sqrt(torch.tensor(2.0))", Norm.CONST, id="a root of a number"),
        pytest.param("args.a ** 2", Norm.CONST, id="a setting squared"),
        pytest.param("ce(out, y) / out", Norm.UNKNOWN, id="over something"),
        pytest.param("ce(out, y) * mse(out, y)", Norm.UNKNOWN, id="a product"),
        pytest.param("what(out, y)", Norm.UNKNOWN, id="a function from elsewhere"),
        pytest.param("out[0]", Norm.UNKNOWN, id="an element"),
        pytest.param("out[y]", Norm.UNKNOWN, id="chosen elements"),
        pytest.param("[out][0].mean()", Norm.MEAN, id="of an element"),
        pytest.param("f'{x}'", Norm.UNKNOWN, id="not a loss at all"),
        pytest.param("x", Norm.UNKNOWN, id="the batch"),
        pytest.param("epoch", Norm.CONST, id="the loop's counter"),
        pytest.param("ce(out, y) * ce(out, y).item()", Norm.UNKNOWN, id="weighted by a number of the batch"),
        pytest.param("ce(out, y) * math.exp(-ce(out, y).item())", Norm.UNKNOWN, id="weighted by what is computed from one"),
        pytest.param("F.mse_loss(out, y, reduction='sum') / (y > 0).sum().item()", Norm.MEAN, id="over a count that is a number"),
    ],
)
def test_others(loss: str, norm: Norm) -> None:
    assert _norm(loss) is norm


@pytest.mark.parametrize(
    ("step", "norm"),
    [
        pytest.param("loss = ce(out, y)", Norm.MEAN, id="a name"),
        pytest.param("loss = ce(out, y)\nloss = loss / 2", Norm.MEAN, id="given again from itself"),
        pytest.param("loss = F.mse_loss(out, y, reduction='sum')\nloss = loss / 2", Norm.SUM, id="a sum given again from itself"),
        pytest.param("loss = ce(out, y)\nloss += mse(out, y)", Norm.MEAN, id="added to"),
        pytest.param("loss = ce(out, y)\nloss /= 2", Norm.MEAN, id="divided in place"),
        pytest.param("loss = out.sum()\nloss /= x.size(0)", Norm.UNKNOWN, id="divided by the batch in place"),
        pytest.param("loss = ce(out, y)\nloss *= x.size(0)", Norm.UNKNOWN, id="times the batch in place"),
        pytest.param("loss = ce(out, y)\nloss -= out.sum()", Norm.MEAN, id="a sum taken away"),
        pytest.param("loss = out.sum()\nloss = ce(out, y)", Norm.MEAN, id="the last one counts"),
        pytest.param("loss = out.sum()\nwith lock:\n    loss = ce(out, y)", Norm.MEAN, id="the last one counts, in a with"),
        pytest.param("loss = 0\nloss += out.sum()\nloss = ce(out, y)", Norm.MEAN, id="what was added before is gone"),
        pytest.param("loss = out.sum()\nif epoch:\n    loss = ce(out, y)", Norm.MEAN, id="one in a branch"),
        pytest.param("loss, n = ce(out, y), 3", Norm.MEAN, id="in a tuple"),
        pytest.param("(loss, n), m = (ce(out, y), 3), 4", Norm.MEAN, id="in a tuple in a tuple"),
        pytest.param("loss, *rest = *both, 3", Norm.UNKNOWN, id="star"),
        pytest.param("both = ce(out, y), 3\nloss = both[0]", Norm.MEAN, id="an element of a tuple"),
        pytest.param("both = f()\nboth = g()\nloss = both[0]", Norm.UNKNOWN, id="an element of unknown tuples"),
        pytest.param("both = (ce(out, y), 3)\nboth += more\nloss = both[0]", Norm.UNKNOWN, id="an element of a tuple that grows"),
        pytest.param("if isinstance(out, tuple):\n    out, n = out\nloss, n = out", Norm.UNKNOWN, id="a part of itself"),
        pytest.param("both = ce(out, y), 3\nif epoch:\n    both, n = both\nloss = both[0]", Norm.MEAN, id="a part of itself, of a tuple"),
        pytest.param("a = ce(out, y), 3\nb, n = a\na, m = b\nloss, n = a", Norm.MEAN, id="parts of each other"),
        pytest.param("loss, n = out", Norm.UNKNOWN, id="a part of the output"),
        pytest.param("losses = {'a': ce(out, y)}\nloss = losses['a']", Norm.UNKNOWN, id="an item of a dict"),
        pytest.param("loss, n = x.shape", Norm.UNKNOWN, id="a part of an attribute"),
        pytest.param("loss, n = what()", Norm.UNKNOWN, id="a part of a call's result"),
        pytest.param("n = x.size(0)\nloss = F.mse_loss(out, y, reduction='sum') / n", Norm.MEAN, id="over the batch's size by name"),
        pytest.param("n = x.size(0)\nn = 3\nloss = F.mse_loss(out, y, reduction='sum') / n", Norm.SUM, id="over what is not always the batch's size"),
        pytest.param("n = 3\nloss = ce(out, y) / n", Norm.MEAN, id="over a number by name"),
    ],
)
def test_through_names(step: str, norm: Norm) -> None:
    assert _norm("loss", step) is norm


@pytest.mark.parametrize(
    ("defs", "loss", "norm"),
    [
        pytest.param("def f(a, b):\n    return F.mse_loss(a, b)", "f(out, y)", Norm.MEAN, id="a function of the file"),
        pytest.param("def f(a, b):\n    return F.mse_loss(a, b), 3", "f(out, y)[0]", Norm.MEAN, id="a part of what it gives"),
        pytest.param("def f(a, b):\n    return 3, a.sum()", "f(out, y)[1]", Norm.SUM, id="another part of what it gives"),
        pytest.param("def f(a, b):\n    return 3, a.sum()", "f(out, y)[2]", Norm.UNKNOWN, id="a part that it lacks"),
        pytest.param("def f(c, a, b):\n    return c(a, b)", "f(ce, out, y)", Norm.MEAN, id="a loss as an argument"),
        pytest.param("g = lambda a: a.backward()\ndef f(a):\n    return g2(a)\ng2 = lambda a: a", "f(out)", Norm.UNKNOWN, id="the parameter of a lambda"),
        pytest.param("total = 3\ndef f(a):\n    global total\n    total = F.mse_loss(a, a)\n    return total", "f(out)", Norm.MEAN, id="a global"),
        pytest.param("def f(c, a):\n    return c", "f(ce(out, y), 3)", Norm.MEAN, id="a value as an argument"),
        pytest.param("def f(a):\n    pass", "f(out)", Norm.UNKNOWN, id="no result"),
        pytest.param("def f(a):\n    if a:\n        return F.mse_loss(a, a), a\n    return (a,)", "f(out)[0]", Norm.MEAN, id="one result has no loss in it"),
        pytest.param(
            "def f(a):\n    if a:\n        return F.mse_loss(a, a)\n    return my_loss(a)", "f(out)", Norm.UNKNOWN, id="one result is an unknown loss"
        ),
        pytest.param("def f(a):\n    return f(a) + F.mse_loss(a, a)", "f(out)", Norm.MEAN, id="recursive"),
        pytest.param("f = lambda a, b: F.mse_loss(a, b)", "f(out, y)", Norm.MEAN, id="a lambda"),
        pytest.param("f = lambda a, b: (3, a.sum())", "f(out, y)[1]", Norm.SUM, id="a part of a lambda's"),
        pytest.param("f = F.mse_loss", "f(out, y)", Norm.MEAN, id="a function by another name"),
        pytest.param("f = torch.relu", "f(out)", Norm.UNKNOWN, id="another function of torch's"),
        pytest.param(
            "class L(nn.Module):\n    def forward(self, a, b):\n        return (a - b).mean()\nf = L()", "f(out, y)", Norm.MEAN, id="a module of the file"
        ),
        pytest.param("class L:\n    def __call__(self, a, b):\n        return (a - b).sum()\nf = L()", "f(out, y)", Norm.SUM, id="an object of the file"),
        pytest.param("class L:\n    pass\nf = L()", "f(out, y)", Norm.UNKNOWN, id="an object that cannot be called"),
        pytest.param("f = nn.MSELoss(reduction='sum')", "f(out, y)", Norm.SUM, id="a loss object made above"),
        pytest.param("f = nn.Linear(3, 2)", "f(out)", Norm.UNKNOWN, id="a layer"),
        pytest.param("from other import MSELoss\nf = MSELoss()", "f(out, y)", Norm.UNKNOWN, id="a library's loss of the same name"),
    ],
)
def test_calls(defs: str, loss: str, norm: Norm) -> None:
    assert _norm(loss, defs=defs) is norm


@pytest.mark.parametrize(
    ("step", "loss", "norm"),
    [
        pytest.param("loss = ce(out, y)", "loss / args.k", Norm.MEAN, id="over a setting"),
        pytest.param("loss = ce(out, y)", "loss / self.cfg.k", Norm.MEAN, id="over a setting of a setting"),
        pytest.param("loss = ce(out, y)", "loss * (1 / cfg.train.k)", Norm.MEAN, id="times a setting of a setting"),
        pytest.param("", "out.loss", Norm.UNKNOWN, id="what a model gives"),
        pytest.param("loss = ce(out, y)", "loss + out.aux.loss", Norm.UNKNOWN, id="and more that a model gives"),
        pytest.param("loss = ce(out, y)", "loss + x.extra.loss", Norm.UNKNOWN, id="a part of the batch"),
    ],
)
def test_settings_and_what_only_looks_like_one(step: str, loss: str, norm: Norm) -> None:
    assert _norm(loss, step) is norm


_NET = "class Net(nn.Module):\n    def forward(self, x, y=None):\n        return {}\n"


@pytest.mark.parametrize(
    ("defs", "setup", "norm"),
    [
        pytest.param(_NET.format("F.mse_loss(x, y), x"), "model = nn.DataParallel(Net())", Norm.MEAN, id="a model that gives its loss"),
        pytest.param(_NET.format("x.sum(), x"), "model = nn.DataParallel(Net())", Norm.SUM, id="a model that gives a sum"),
        pytest.param("", "model = nn.DataParallel(load())", Norm.UNKNOWN, id="a model from elsewhere"),
        pytest.param("class Net(Base):\n    pass", "model = nn.DataParallel(Net())", Norm.UNKNOWN, id="a model whose forward is elsewhere"),
    ],
)
def test_the_loss_of_a_model(defs: str, setup: str, norm: Norm) -> None:
    assert _norm("loss", "loss, out = model(x, y)", setup=setup, defs=defs) is norm


def test_a_loss_in_a_method_and_from_a_global() -> None:
    defs = "def step(x, y):\n    total = ce(x, y)\n    return total"
    assert _norm("step(out, y)", defs=defs) is Norm.MEAN
    assert _norm("weight", setup="model = nn.Linear(3, 2)\nweight = 3") is Norm.CONST
    found = script(_PROGRAM.format(loss="a + b", step="        pass", setup="model = nn.Linear(3, 2)", defs=""))
    calls = [n for n in found.names.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "backward"]
    assert found.losses.names_of(calls[0]) == {"a", "b"}


def test_the_first_place_is_named_whatever_the_order_of_the_values() -> None:
    """Values come as sets, whose order changes from run to run."""
    first, second = (Loss(Norm.WEIGHTED, ast.parse(f"{gap}f(x)").body[0], "") for gap in ("", "\n"))
    assert _join(first.node, [first, second]) is _join(first.node, [second, first]) is first


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        pytest.param("F.mse_loss(out, y, reduction='sum') / len(x)", Norm.MEAN, id="the batch"),
        pytest.param("own(out, y)", Norm.MEAN, id="a parameter"),
        pytest.param("F.mse_loss(out, y, reduction='sum') / len(loader)", Norm.SUM, id="the loader"),
        pytest.param("F.mse_loss(out, y, reduction='sum') / len(classes)", Norm.SUM, id="the classes"),
    ],
)
def test_lengths(loss: str, norm: Norm) -> None:
    assert _norm(loss, setup="model, classes = nn.Linear(3, 2), ['a', 'b']", defs="def own(p, y):\n    return ((p - y) ** 2).sum() / len(p)") is norm


@pytest.mark.parametrize(
    ("step", "norm"),
    [
        pytest.param("for o in (out, out):\n    loss = loss + ce(o, y)", Norm.MEAN, id="several outputs"),
        pytest.param("for k in range(len(outs)):\n    loss = loss + ce(outs[k], y)", Norm.MEAN, id="as many as the model gives"),
        pytest.param("for k in range(3):\n    loss += ce(out, y)", Norm.MEAN, id="a number of times"),
        pytest.param("for k in range(x.size(0)):\n    loss = loss + ce(out[k:k+1], y[k:k+1])", Norm.SUM, id="each sample"),
        pytest.param("for k in range(0, x.shape[0]):\n    loss += ce(out[k:k+1], y[k:k+1])", Norm.SUM, id="each sample, shape, in place"),
        pytest.param("for o, t in zip(out, y):\n    loss += ce(o, t)", Norm.UNKNOWN, id="in step with the targets"),
        pytest.param("for t in y.to('cpu'):\n    loss += ce(out, t)", Norm.UNKNOWN, id="the targets"),
        pytest.param(
            "for k in range(x.size(0)):\n    loss = loss + ce(out[k:k+1], y[k:k+1])\nloss = loss / x.size(0)",
            Norm.MEAN,
            id="over the size",
        ),
    ],
)
def test_losses_that_are_added_up(step: str, norm: Norm) -> None:
    assert _norm("loss", f"outs = model(x)\nloss = 0\n{step}") is norm


@pytest.mark.parametrize(
    ("test", "norm"),
    [
        pytest.param("epoch > 1", Norm.MEAN, id="a setting"),
        pytest.param("aux is not None", Norm.MEAN, id="whether there is something"),
        pytest.param("len(x) > 1", Norm.MEAN, id="a size"),
        pytest.param("torch.isnan(loss)", Norm.MEAN, id="no number"),
        pytest.param("loss > 1", Norm.UNKNOWN, id="the loss"),
        pytest.param("(y > 0).any()", Norm.UNKNOWN, id="the targets"),
    ],
)
def test_losses_that_are_chosen(test: str, norm: Norm) -> None:
    assert _norm("loss", f"aux = model(x)\nloss = ce(out, y)\nif {test}:\n    loss = loss * 0.1") is norm


def test_a_number_that_an_object_keeps() -> None:
    defs = "class T:\n    def __init__(self):\n        self.k, self.j = 1.0, 1.0\n    def step(self, out, y):\n        loss = nn.CrossEntropyLoss()(out, y) * self.{}\n"
    defs += "        self.k += out.mean().item()\n        return loss"
    assert _norm("t.step(out, y)", defs=defs.format("k"), setup="model, t = nn.Linear(3, 2), T()") is Norm.UNKNOWN
    assert _norm("t.step(out, y)", defs=defs.format("j"), setup="model, t = nn.Linear(3, 2), T()") is Norm.MEAN


@pytest.mark.parametrize(("links", "norm"), [(20, Norm.MEAN), (60, Norm.UNKNOWN)])
def test_what_is_read_twice_is_classified_once(links: int, norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loss of a chain is made of the one before it, twice: each is looked at once, and not 2**20 times; a chain that is too long is not known."""
    seen: list[ast.expr] = []
    classify = Losses._norm

    def counted(self: Losses, node: ast.expr) -> Loss:
        seen.append(node)
        assert len(seen) < 500
        return classify(self, node)

    monkeypatch.setattr(Losses, "_norm", counted)
    assert _norm(f"l{links}", "\n".join(["l0 = ce(out, y)", *(f"l{n + 1} = l{n} + 0.5 * l{n}" for n in range(links))])) is norm
    assert len(seen) > 20
