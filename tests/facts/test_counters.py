"""What a loop over batches adds up, whether it does anything else, and what the additions are."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from dpmigrate.facts.additions import Holds, holds
from dpmigrate.facts.counters import collected
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.script import Script
from tests.pipeline import script

_PROGRAM = """
import torch, numpy as np, time
from torch import mean
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
{top}
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
train_loader = DataLoader(train_set, shuffle=True)
val_loader = DataLoader(val_set)
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

def evaluate(bar=None):
{before}
    for {target} in {source}:
        out = model(x)
{body}
{after}
evaluate()
"""


def _loop(
    body: str, before: str = "n = 0", after: str = "print(n)", target: str = "x, y", source: str = "val_loader", top: str = ""
) -> tuple[Script, BatchLoop]:
    parts = {"before": indent(before, "    "), "body": indent(body, "        "), "after": indent(after, "    ")}
    found = script(_PROGRAM.format(top=top, target=target, source=source, **parts))
    (loop,) = found.roles.eval_loops
    return found, loop


def _counters(body: str, **parts: str) -> list[str]:
    found, loop = _loop(body, **parts)
    return [c.name for c in found.counting(loop).counters]


@pytest.mark.parametrize(
    ("body", "before"),
    [
        pytest.param("pass", "n = 0", id="nothing is added"),
        pytest.param("n -= 1", "n = 0", id="taken away"),
        pytest.param("n = n - 1", "n = 0", id="taken away, written out"),
        pytest.param("n = n * 2", "n = 0", id="multiplied"),
        pytest.param("n = x", "n = 0", id="replaced"),
        pytest.param("n = 3 + x", "n = 0", id="a sum without itself"),
        pytest.param("n += 1\nn = 3", "n = 0", id="added to and replaced"),
        pytest.param("n, m = n + 1, 2", "n = 0", id="in a tuple"),
        pytest.param("n = m = n + 1", "n = 0", id="in a chain"),
        pytest.param("n = m + 3", "n = 0", id="a sum of something else"),
        pytest.param("n = 3 + m", "n = 0", id="a sum of something else, the other way round"),
        pytest.param("n += 1", "n = []", id="a list"),
        pytest.param("n += 1", "n = True", id="a truth value"),
        pytest.param("n += 1", "n = 'a'", id="a string"),
        pytest.param("n += 1", "n = load()", id="from somewhere"),
        pytest.param("d[0] += 1", "d = [0]", id="an element"),
    ],
)
def test_no_counter(body: str, before: str) -> None:
    assert _counters(body, before=before) == []


@pytest.mark.parametrize(
    ("body", "before"),
    [
        pytest.param("n += 1", "n = 0", id="augmented"),
        pytest.param("n = n + 1", "n = 0.0", id="written out"),
        pytest.param("n = 1 + n", "n = 0", id="written out the other way round"),
        pytest.param("n += 1\nn += 2", "n = 0", id="twice"),
        pytest.param("n += 1", "m, n = 0, 0", id="begun in a tuple"),
        pytest.param("n += 1", "m = n = 0", id="begun in a chain"),
        pytest.param("n += 1", "n = torch.zeros(3)", id="a tensor"),
        pytest.param("n += 1", "n = np.zeros((2, 2))", id="an array"),
        pytest.param("n += 1", "n = load()\nn = 0", id="the last value counts"),
        pytest.param("n += 1", "n = 0\nprint(n)", id="read before"),
        pytest.param("n += 1", "n = 0\ndef other():\n    n = []", id="another function's of that name"),
        pytest.param("n += 1", "n, m = load(), 3\nn = 0", id="begun in a tuple and again"),
        pytest.param("n += 1\nm[n2] = 3", "n = n2 = 0", id="beside an element"),
    ],
)
def test_a_counter(body: str, before: str) -> None:
    assert _counters(body, before=before) == ["n"]


def _obstacle(body: str, **parts: str) -> str:
    found, loop = _loop(body, **parts)
    return str(found.counting(loop).obstacle or "")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("n += (out.argmax(1) == y).sum().item()", id="counts"),
        pytest.param("n += criterion(out, y).item() * len(x)", id="the sum of a loss object's means"),
        pytest.param("n += F.cross_entropy(out, y, reduction='sum').item()", id="the sum of a functional loss"),
        pytest.param("pred = out.argmax(1)\nn += pred.eq(y).sum()", id="with a value of the batch between"),
        pytest.param("n += metric(out, y)", id="a function of the file that only computes"),
        pytest.param("n += sum(1 for a in x)", id="a built-in"),
        pytest.param("n += own(out).item()", id="a module of the file"),
        pytest.param("n = n + 1", id="written out"),
        pytest.param("model.eval()\nn += 1", id="a setting that every batch repeats"),
        pytest.param("total = out.sum()\ntotal = total * 2\nn += total", id="a name given again from itself"),
        pytest.param("if epoch:\n    z = x.cuda()\nelse:\n    z = x\nn += z.sum()", id="one name in both branches"),
        pytest.param("with torch.no_grad() as g:\n    z = x * 2\nn += z.sum() if g else 0", id="a name given in a with"),
        pytest.param("for z in out:\n    a = z * 2\n    n += a.sum()", id="a loop in the loop"),
        pytest.param("with torch.no_grad():\n    z = x * 2\n    n += z.sum()", id="a name given and read in a with"),
        pytest.param("z = [z for z in x]\nn += len(z)", id="a comprehension with the same name"),
        pytest.param("n += names.get(3).sum()", id="a value out of a dict()"),
    ],
)
def test_nothing_but_counting(body: str) -> None:
    top = "names = dict(a=torch.zeros(3))\ndef metric(out, y):\n    found = []\n    found.append(3)\n    return (out.argmax(1) == y).sum().item()\n"
    top += "class Own(nn.Module):\n    def forward(self, x):\n        return parts(x, 3)[1].log()\nown = Own()\n"
    top += "def parts(x, n):\n    a = [0, 0]\n    a[1] = x.sum()\n    a[1].b = [parts(x, n - 1)] if n else []\n    return a"
    assert _obstacle(body, top=top) == ""


@pytest.mark.parametrize(
    ("body", "parts", "obstacle"),
    [
        pytest.param("pass", {}, "nothing is added up or collected in variables of its own", id="no counter"),
        pytest.param("n += 1\nm = n / 2", {}, "n is read while the loop runs", id="a running mean"),
        pytest.param("n += 1\nbreak", {}, "the loop has a break", id="break"),
        pytest.param("n += 1\nif n: return", {"before": "n = 0"}, "n is read while the loop runs", id="return under the counter"),
        pytest.param("n += 1\nreturn", {}, "the loop has a return", id="return"),
        pytest.param("n += 1\nraise ValueError", {}, "the loop has a raise", id="raise"),
        pytest.param("n += 1\nwhile x: pass", {}, "the loop holds a while statement", id="while"),
        pytest.param("n += 1\nmatch x:\n    case 3: pass", {}, "the loop holds a match statement", id="match"),
        pytest.param("n += 1\ntry:\n    pass\nexcept OSError:\n    pass", {}, "the loop holds a try statement", id="try"),
        pytest.param("n += 1\ndef f(): pass", {}, "the loop holds a functiondef statement", id="def"),
        pytest.param("n += i", {"target": "i, (x, y)", "source": "enumerate(val_loader)"}, "the number of the batch (i) is used", id="the index"),
        pytest.param(
            "n += i",
            {"target": "i, (x, y)", "source": "tqdm(enumerate(val_loader))"},
            "the number of the batch (i) is used",
            id="the index under a progress bar",
        ),
        pytest.param(
            "n += i",
            {"target": "i, (x, y)", "source": "batches", "before": "n = 0\nbatches = enumerate(val_loader)"},
            "the number of the batch (i) is used",
            id="the index of an enumeration by name",
        ),
        pytest.param("n += pair[0]", {"target": "pair", "source": "enumerate(val_loader)"}, "the number of the batch (pair) is used", id="the index in a pair"),
        pytest.param("n += len(x)", {"source": "tqdm.tqdm(val_loader)"}, "", id="a progress bar"),
        pytest.param("n += 1", {"source": "itertools.islice(val_loader, 3)"}, "islice() gives other batches than the loader", id="some of the batches"),
        pytest.param(
            "n += 1", {"source": "map(f, val_loader)"}, "map(f, val_loader) need not give the batches of the loader as they are", id="made of the batches"
        ),
        pytest.param(
            "n += 1",
            {"source": "some", "before": "n = 0\nsome = islice(val_loader, 3)"},
            "islice() gives other batches than the loader",
            id="some of the batches, by name",
        ),
        pytest.param("n += 1\nd[0] = x", {"before": "n = 0\nd = {}"}, "d[0] is changed in the loop", id="an element is set"),
        pytest.param("n += 1\nmodel.last = x", {}, "model.last is changed in the loop", id="an attribute is set"),
        pytest.param("n += 1\nprint(x)", {}, "print() has an effect in every batch", id="print"),
        pytest.param("n += 1\ntell(x)", {"top": "def tell(x):\n    torch.cuda.synchronize()"}, "", id="a function that waits"),
        pytest.param("n += 1\ntorch.save(x, 'f')", {}, "torch.save() has an effect in every batch", id="torch.save"),
        pytest.param(
            "n += 1\nkept.append(x)", {"before": "n = 0\nkept = [1]"}, "kept.append() may have an effect in every batch", id="a list that is not empty"
        ),
        pytest.param(
            "n += 1\nkept.add_(x)", {"before": "n = 0\nkept = torch.zeros(1)"}, "kept.add_() may have an effect in every batch", id="a tensor in place"
        ),
        pytest.param("n += kept.pop()", {"before": "n = 0\nkept = [1]"}, "kept.pop() may have an effect in every batch", id="a list that shrinks"),
        pytest.param("n += who.see(x)", {}, "who.see() may have an effect in every batch", id="a name from nowhere"),
        pytest.param(
            "n += metric(out)",
            {"top": "import metrics\nmetric = metrics.Metric()"},
            "what metric() does is not known",
            id="an object of a library that is called",
        ),
        pytest.param("n += 1\nbar.see(x)", {}, "bar.see() may have an effect in every batch", id="a method for its effect"),
        pytest.param("n += out.numpy().tofile(f)", {}, "", id="a method whose value is taken"),
        pytest.param("n += 1\nout.numpy().tofile(f)", {}, "out.numpy().tofile() may have an effect in every batch", id="a method of a value for its effect"),
        pytest.param(
            "n += metric.see(x, out)",
            {"top": "import metrics\nmetric = metrics.Metric()"},
            "metric.see() may have an effect in every batch",
            id="an object of a library that may add up by itself",
        ),
        pytest.param(
            "n += see(metric, out)",
            {"top": "import metrics\nmetric = metrics.Metric()\ndef see(m, out):\n    return m.see(out)"},
            "see() may have an effect in every batch",
            id="an object of a library in a function",
        ),
        pytest.param(
            "n += see(metric, out)",
            {"top": "import metrics\nmetric = metrics.Metric()\ndef see(m, out):\n    return m(out)"},
            "see() may have an effect in every batch",
            id="an object of a library that a function calls",
        ),
        pytest.param("n += see(criterion, out, y)", {"top": "def see(c, out, y):\n    return c(out, y)"}, "", id="a loss that a function calls"),
        pytest.param("n += see(model, x)", {"top": "def see(m, x):\n    return m(x).sum()"}, "", id="the model that a function calls"),
        pytest.param("n += h.sum()\nh = out * h", {"before": "n = 0\nh = 0"}, "h goes on from one batch to the next", id="a state that goes on"),
        pytest.param(
            "for z in out:\n    n += h.sum()\n    h = z", {"before": "n = 0\nh = x"}, "h goes on from one batch to the next", id="a state that a loop reads"
        ),
        pytest.param("n += h.sum()\nh *= 2", {"before": "n = 0\nh = 1"}, "h goes on from one batch to the next", id="a factor that goes on"),
        pytest.param("h *= 2\nn += 1", {"before": "n = 0\nh = 1"}, "h goes on from one batch to the next", id="a factor that nothing reads"),
        pytest.param("out, h = model(x, h)\nn += 1", {"before": "n = 0\nh = 0"}, "h goes on from one batch to the next", id="a hidden state"),
        pytest.param("if epoch:\n    h = x\nn += h.sum()", {"before": "n = 0\nh = 1"}, "h goes on from one batch to the next", id="a state of some batches"),
        pytest.param(
            "if epoch:\n    pass\nelse:\n    h = x\nn += h.sum()", {"before": "n = 0\nh = 1"}, "h goes on from one batch to the next", id="of the others"
        ),
        pytest.param("for z in out:\n    h = z\nn += h.sum()", {"before": "n = 0\nh = 1"}, "h goes on from one batch to the next", id="a state of a loop"),
        pytest.param("for z in h:\n    h = z\nn += 1", {"before": "n = 0\nh = x"}, "h goes on from one batch to the next", id="a state that a loop goes over"),
        pytest.param("with h:\n    h = x\nn += 1", {"before": "n = 0\nh = x"}, "h goes on from one batch to the next", id="a state in a with"),
        pytest.param("n += 1\ntime.sleep(1)", {}, "time.sleep() may have an effect in every batch", id="a library's function"),
        pytest.param("n += 1\ntell(x)", {"top": "def tell(x):\n    print(x)"}, "tell() may have an effect in every batch", id="a function that prints"),
        pytest.param("n += 1\ntell(x)", {"top": "def tell(x):\n    return torch.log(x).sum()"}, "", id="a function that calls torch's"),
        pytest.param(
            "n += 1\ntell(x)", {"top": "def tell(x):\n    torch.save(x, 'f')"}, "tell() may have an effect in every batch", id="a function that saves"
        ),
        pytest.param("n += 1\ntell(x)", {"top": "def tell(x):\n    log.write(x)"}, "tell() may have an effect in every batch", id="a function that writes"),
        pytest.param(
            "n += 1\ntell(x)", {"top": "def tell(x):\n    global g\n    g = x"}, "tell() may have an effect in every batch", id="a function with a global"
        ),
        pytest.param(
            "n += 1\ntell(x)",
            {"top": "def tell(x):\n    deeper(x)\ndef deeper(x):\n    print(x)"},
            "tell() may have an effect in every batch",
            id="deeper down",
        ),
        pytest.param(
            "n += 1\nmeter.see(x)",
            {"top": "class Meter:\n    def see(self, v):\n        self.total = max(self.total, v)\nmeter = Meter()"},
            "meter.see() may have an effect in every batch",
            id="an object of the file that keeps the largest",
        ),
        pytest.param(
            "n += 1\nmeter.see(x)",
            {"top": "class Meter:\n    def see(self, v):\n        self.seen.append(v)\nmeter = Meter()"},
            "meter.see() may have an effect in every batch",
            id="an object of the file that collects",
        ),
        pytest.param("n += 1\nkeep(x, n2)", {"top": "def keep(x, d):\n    d[0] = x"}, "keep() may have an effect in every batch", id="an argument is filled"),
        pytest.param("n += 1\nseen.add(3)", {}, "seen.add() may have an effect in every batch", id="a set"),
        pytest.param("n += 1\nbar(x)", {}, "what bar() does is not known", id="a function from somewhere"),
        pytest.param("n += 1", {"after": "print(n, out)"}, "out of the last batch is read after the loop", id="the last batch is shown"),
        pytest.param("n += 1", {"after": "out = 3\nprint(n, out)"}, "", id="the last batch is replaced first"),
        pytest.param("n += 1", {"after": "print(n, out)\nout = 3"}, "out of the last batch is read after the loop", id="the last batch is replaced too late"),
        pytest.param(
            "n += 1", {"after": "if n:\n    out = 3\nprint(out)"}, "out of the last batch is read after the loop", id="the last batch is replaced at times"
        ),
        pytest.param("n += 1", {"after": "out += 3\nprint(n, out)"}, "out of the last batch is read after the loop", id="the last batch is added to"),
        pytest.param("n += 1", {"after": "out = 3\nif n:\n    print(out)"}, "", id="the last batch is replaced before a test"),
        pytest.param(
            "n += 1", {"before": "n = 0\ndef show(): return out"}, "out of the last batch is read after the loop", id="a function above reads the last batch"
        ),
        pytest.param(
            "n += 1", {"after": "del x, out"}, "out of the last batch is deleted after the loop, and a rank may have had no batch", id="the last batch is deleted"
        ),
        pytest.param("n += 1", {"before": "out = n = 0\ndel out"}, "", id="what was there before is deleted"),
        pytest.param("n += 1", {"after": "def other():\n    out = 3\n    del out"}, "", id="another function's is deleted"),
        pytest.param("n += 1", {"after": "for x in other:\n    print(x)"}, "", id="another loop's variable"),
        pytest.param(
            "n += 1", {"after": "def show(): print(out)\nshow()"}, "out of the last batch is read after the loop", id="a function reads the last batch"
        ),
        pytest.param("n += 1", {"target": "(i, j), (x, y)", "source": "enumerate(val_loader)"}, "", id="an index that is no name"),
    ],
)
def test_more_than_counting(body: str, parts: dict[str, str], obstacle: str) -> None:
    assert _obstacle(body, **parts) == obstacle


def test_lists_that_are_read_later() -> None:
    found, loop = _loop(
        "a.append(x)\nb.extend(x)\nc.append(x)\nnp.append(a, x)\nf = []\nf.append(x)\nself.d.append(x)\ne.count(x)",
        before="a, b, c, e = [], [], [], []",
        after="print(a, b, e, f, np)",
    )
    lists = {c.name: [ast.unparse(a) for a in c.adds] for c in collected(found.counting(loop).carried)}
    assert lists == {"a": ["x"], "b": ["[]"], "f": ["[]"]}  # what extend adds is not known, nor what a list of the last batch holds


_LOSS = "loss = criterion(out, y)\n"


@pytest.mark.parametrize(
    ("added", "kind"),
    [
        pytest.param("1", Holds.STEP, id="one for each batch"),
        pytest.param("loss", Holds.MEAN, id="the loss"),
        pytest.param("loss.item()", Holds.MEAN, id="its number"),
        pytest.param("loss.data[0]", Holds.MEAN, id="its number as long ago"),
        pytest.param("loss.data", Holds.MEAN, id="its data"),
        pytest.param("float(loss)", Holds.MEAN, id="float of it"),
        pytest.param("float()", Holds.UNKNOWN, id="float of nothing"),
        pytest.param("loss.item() * x.size(0)", Holds.SUM, id="times the batch's size"),
        pytest.param("loss.item() * x.shape[0]", Holds.SUM, id="times the batch's shape"),
        pytest.param("loss.item() * x.num_graphs", Holds.SUM, id="times the number of graphs"),
        pytest.param("loss.item() * x.size()[0]", Holds.SUM, id="times the batch's size, as an item"),
        pytest.param("loss.item() * x.shape[1]", Holds.UNKNOWN, id="times another dimension"),
        pytest.param("loss.item() * 2", Holds.MEAN, id="times a number"),
        pytest.param("loss.item() * loss.item()", Holds.UNKNOWN, id="squared"),
        pytest.param("loss.item() / 2", Holds.MEAN, id="halved"),
        pytest.param("loss.item() / len(x)", Holds.UNKNOWN, id="over a size"),
        pytest.param("loss.item() + loss.item()", Holds.MEAN, id="two of a kind"),
        pytest.param("loss.item() + len(x)", Holds.UNKNOWN, id="two of two kinds"),
        pytest.param("len(x)", Holds.SUM, id="the batch's length"),
        pytest.param("(out == y).sum().item()", Holds.SUM, id="hits"),
        pytest.param("torch.sum(out == y)", Holds.SUM, id="hits, as a function"),
        pytest.param("(out == y).float().mean()", Holds.MEAN, id="a share"),
        pytest.param("torch.mean(out)", Holds.MEAN, id="a share, as a function"),
        pytest.param("time.time()", Holds.STEP, id="a clock"),
        pytest.param("mean(out)", Holds.MEAN, id="a share, from-import"),
        pytest.param("hits", Holds.SUM, id="through a name"),
        pytest.param("circle", Holds.UNKNOWN, id="through names that mean each other"),
        pytest.param("odd", Holds.UNKNOWN, id="a name that is two things"),
        pytest.param("weight", Holds.UNKNOWN, id="a name from outside"),
        pytest.param("x[0]", Holds.UNKNOWN, id="an element"),
        pytest.param("-loss", Holds.UNKNOWN, id="a sign"),
        pytest.param("loss.relu()", Holds.UNKNOWN, id="another method"),
        pytest.param("metric(x)", Holds.UNKNOWN, id="another function"),
        pytest.param("loss ** 2", Holds.UNKNOWN, id="to a power"),
        pytest.param("abs(loss)", Holds.UNKNOWN, id="a built-in that is no conversion"),
        pytest.param("x.size(0)", Holds.SUM, id="the batch's size"),
        pytest.param("x.size(1)", Holds.UNKNOWN, id="another size"),
        pytest.param("x.size()", Holds.UNKNOWN, id="all sizes"),
        pytest.param("x.shape[1]", Holds.UNKNOWN, id="another dimension"),
        pytest.param("loss.relu(0)", Holds.UNKNOWN, id="another method of 0"),
        pytest.param("x.shape[0] * x.shape[0]", Holds.UNKNOWN, id="the size squared"),
        pytest.param("loss.parts[0]", Holds.UNKNOWN, id="an element of an attribute"),
        pytest.param("loss.sign", Holds.UNKNOWN, id="another attribute"),
    ],
)
def test_what_is_added(added: str, kind: Holds) -> None:
    body = _LOSS + "hits = (out == y).sum()\ncircle = circle2\ncircle2 = circle\nodd = len(x)\nodd = loss.mean()\nn += " + added
    found, loop = _loop(body)
    counter = next(c for c in found.counting(loop).counters if c.name == "n")
    assert holds(found.roles, loop, counter, {"loss": False}) is kind


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        pytest.param("return loss.item()", Holds.MEAN, id="the loss"),
        pytest.param("return (model(x) == y).sum().item()", Holds.SUM, id="hits"),
        pytest.param("if x is None:\n        return 0\n    return loss.item()", Holds.UNKNOWN, id="one thing or another"),
        pytest.param("return loss.item(), 1", Holds.UNKNOWN, id="two things"),
        pytest.param("return", Holds.UNKNOWN, id="nothing"),
        pytest.param("return step(x, y)", Holds.UNKNOWN, id="itself"),
    ],
)
def test_what_a_function_gives_back(result: str, kind: Holds) -> None:
    found, loop = _loop("n += step(x, y)", top=f"def step(x, y):\n    loss = criterion(model(x), y)\n    {result}")
    (counter,) = found.counting(loop).counters
    assert holds(found.roles, loop, counter, {"loss": False}) is kind


def test_a_sum_loss_adds_sums() -> None:
    found, loop = _loop(_LOSS + "n += loss.item()")
    (counter,) = found.counting(loop).counters
    assert holds(found.roles, loop, counter, {"loss": True}) is Holds.SUM


def test_additions_of_two_kinds() -> None:
    found, loop = _loop(_LOSS + "n += loss.item()\nn += len(x)")
    (counter,) = found.counting(loop).counters
    assert holds(found.roles, loop, counter, {"loss": False}) is Holds.UNKNOWN
    assert [ast.unparse(a) for a in counter.adds] == ["loss.item()", "len(x)"]
