"""Totals of a training loop: how each is put together again, and those of which that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from dpmigrate.facts.totals import Totals, Unclear, totals
from tests.pipeline import script
from tests.rules.program import STEP, program


def _totals(add: str = "", start: str = "", end: str = "", **parts: Any) -> Totals:
    found = script(program(epoch_start=start, step=STEP + add, epoch_end=end, **parts))
    (loop,) = found.roles.train_loops
    return totals(found, loop)


@pytest.mark.parametrize(
    ("add", "start", "end"),
    [
        pytest.param("", "", "", id="nothing is added up"),
        pytest.param("total += loss.item()", "total = 0", "print('total')  # total", id="not read"),
        pytest.param("total += 1", "total = 0", "print(total)", id="steps"),
        pytest.param("kept.append(1)", "kept = []", "print(kept)", id="a list of steps"),
        pytest.param("v = loss.item()", "v = 0", "print(v)", id="the last value"),
        pytest.param("v = v * 0.9", "v = 1", "print(v)", id="a factor of each batch"),
        pytest.param("v += len(x)\ng(v)", "v = 0", "print(v)", id="a count by which training goes"),
        pytest.param("v = 0.5 * v + 0.5 * v", "v = 1", "print(v)", id="a sum of itself"),
        pytest.param("v['a'] += len(x)", "v = {'a': 0}", "print(3)", id="an entry that nobody reads"),
        pytest.param("update(loss.item())\nf(3).update(loss.item())", "", "", id="an update of nobody"),
        pytest.param("hits[0] += 1", "hits = [0]", "print(hits)", id="an entry that grows by one a batch"),
        pytest.param("hits[epoch] += 1", "hits = [0] * 3", "print(hits)", id="an entry by epoch"),
        pytest.param("hits = [0]\nhits[y] += 1", "", "print(hits)", id="a table of the batch's own"),
        pytest.param("kept['a'].append(loss.item())", "kept = {'a': []}", "print(3)", id="a list in a dict that nobody reads"),
        pytest.param("kept.a.append(1)", "kept = F", "print(kept.a)", id="a list of an attribute, of steps"),
        pytest.param("out = make()\nout.a.append(loss.item())", "", "print(out.a)", id="a list of the batch's own object"),
        pytest.param("f(3)[0] += loss.item()\nf(3)[0].append(loss.item())", "", "", id="of nobody"),
    ],
)
def test_nothing(add: str, start: str, end: str) -> None:
    found = _totals(add, start, end)
    assert (found.sums, found.means, found.told) == ([], [], [])


@pytest.mark.parametrize(
    ("add", "start", "sums", "means", "again"),
    [
        pytest.param("v += len(x)", "v = 0", ["v"], [], [], id="a count"),
        pytest.param("v += loss.item()", "v = torch.zeros(1).cuda()", [], ["v"], [], id="losses on a device"),
        pytest.param("v += loss.item()\nn += len(x)", "v = n = 0", ["n"], ["v"], [], id="both"),
        pytest.param("v = loss.item() * (1 - 0.9) + v * 0.9", "v = 0", [], ["v"], [], id="a moving average, the other way round"),
        pytest.param("n += (y > 0).sum().item()\nv = n / 2", "n = v = 0", ["n"], [], ["v = n / 2"], id="a ratio"),
        pytest.param("r = n / 2\nn += 1\nv += len(x)", "n = r = v = 0", ["v"], [], [], id="a ratio of a counter of the steps, beside a count"),
        pytest.param("v = 0.9 * v + 0.1 * loss.item()", "v = 0", [], ["v"], [], id="a moving average"),
        pytest.param("v['a'] += len(x)", "v = {'a': 0}", ["v['a']"], [], [], id="an entry"),
        pytest.param("v['a'] = v['a'] + loss.item()", "v = {'a': 0}", [], ["v['a']"], [], id="an entry, written out"),
        pytest.param('v["a"] += len(x)', "from collections import defaultdict\nv = defaultdict(int)", ['v["a"]'], [], [], id="an entry of a defaultdict"),
        pytest.param("v.append(loss.item())", "v = []", [], ["v"], [], id="a list of losses"),
        pytest.param("v.append(len(x))", "v = []", ["v"], [], [], id="a list of counts"),
        pytest.param("v.extend(y.tolist())", "v = []", [], [], [], id="rows, which are gathered"),
        pytest.param("v['a'].extend(y.tolist())", "v = {'a': []}", [], [], [], id="rows in a dict"),
        pytest.param("v = loss.item() if v is None else 0.9 * v + 0.1 * loss.item()", "v = None", [], ["v"], [], id="a moving average that begins with the first"),
        pytest.param("v['a'] += len(x)", "v = {}\nv['a'] = 0", ["v['a']"], [], [], id="an entry that is given 0"),
        pytest.param("v['a'] += len(x)", "from collections import defaultdict\nv = defaultdict(lambda: 0.0)", ["v['a']"], [], [], id="an entry of a defaultdict with a lambda"),
        pytest.param("for k in y.tolist():\n    v[k] += 1", "v = torch.zeros(2)", ["v"], [], [], id="a table by the samples"),
        pytest.param("v[0] += loss.item() * len(x)\nv[1] += len(x)", "v = torch.zeros(2)", ["v"], [], [], id="an array of sums"),
        pytest.param("v += (y == 1).sum().item() / len(y)", "v = 0.0", [], ["v"], [], id="shares of the batch"),
        pytest.param("v += y.numel()", "v = 0", ["v"], [], [], id="elements"),
        pytest.param("v += torch.bincount(y, minlength=2)", "v = torch.zeros(2)", ["v"], [], [], id="numbers of classes"),
        pytest.param("v += nn.functional.mse_loss(x, x, reduction='sum').item()", "v = 0", ["v"], [], [], id="a sum of losses"),
    ],
)
def test_put_together(add: str, start: str, sums: list[str], means: list[str], again: list[str]) -> None:
    found = _totals(add, start, "print(n, v)" if "n" in start.split() else "print(v)")
    assert (found.sums, found.means, found.again, found.told) == (sums, means, again, [])


_HOLDER = "class H:\n    def clear(self):\n        self.v = 3\n    def look(self):\n        return self.w\nh = H()"


@pytest.mark.parametrize(
    ("add", "start", "sums", "means"),
    [
        pytest.param("h.v += len(x)", "h.v = 0", ["h.v"], [], id="a count"),
        pytest.param("h.v = h.v + loss.item()", "h.v = 0.0", [], ["h.v"], id="losses, written out"),
        pytest.param("h.v += len(x)", "h.v, h.w = 0, 0", ["h.v"], [], id="one of two"),
        pytest.param("h.look()\nh.v += len(x)", "h.v = 0", ["h.v"], [], id="beside a method that writes something else"),
        pytest.param("h.v.append(loss.item())", "h.v = []", [], ["h.v"], id="a list of losses"),
        pytest.param("h.v.extend(y.tolist())", "h.v = []", [], [], id="rows, which are gathered"),
    ],
)
def test_attributes(add: str, start: str, sums: list[str], means: list[str]) -> None:
    found = _totals(add, start, "print(h.v)", defs=_HOLDER)
    assert (found.sums, found.means, found.told) == (sums, means, [])


@pytest.mark.parametrize(
    ("add", "start"),
    [
        pytest.param("h.v += len(x)", "", id="no beginning"),
        pytest.param("h.v += len(x)", "h.v = 3", id="another beginning"),
        pytest.param("h.v += len(x)", "h.v = 0\nh.v += 2", id="added to before"),
        pytest.param("h.v += len(x)", "if epoch:\n    h.v = 0", id="a beginning under a test"),
        pytest.param("h.v += len(x)", "h.v = 0\nh.clear()", id="a method that writes it"),
        pytest.param("h.v += len(x)", "h.v = 0\nh = H()", id="another object"),
        pytest.param("h.v += loss.item()\nh.v = min(h.v, 3)", "h.v = 0", id="bounded as well"),
        pytest.param("h.v += [loss.item()]", "h.v = []", id="a list that grows by one a batch"),
        pytest.param("h.v.append(loss.item())\nh.v.pop(0)", "h.v = []", id="a window"),
    ],
)
def test_attributes_that_are_told(add: str, start: str) -> None:
    found = _totals(add, start, "print(h.v)", defs=_HOLDER)
    assert (found.sums, found.means) == ([], [])
    assert [t.names for t in found.told] == [("h.v",)]


_METER = "class M:\n    def __init__(self):\n        self.sum = self.n = 0\n    def add(self, v, n):\n        self.sum += v * n\n        self.n += n\n        self.avg = self.sum / self.n"
_TABLE = "class K:\n    def __init__(self):\n        self.rows = {}\n    def update(self, k, v):\n        self.rows[k] = self.rows.get(k, 0) + v"
_KEEPER = "class T:\n    def __init__(self):\n        self.total, self.losses = 0, []\nt = T()"


def test_a_meter() -> None:
    found = _totals("v.add(loss.item(), len(x))", "v = M()", "print(v.avg)", defs=_METER)
    assert (found.sums, found.again, found.told) == (["v.sum", "v.n"], ["v.avg = v.sum / v.n"], [])


@pytest.mark.parametrize(
    ("add", "start", "end", "parts", "why", "names"),
    [
        pytest.param("v += f(x)", "v = 0", "print(v)", {}, Unclear.COUNTER, ("v",), id="what is added is not known"),
        pytest.param("v += f(x)\nn += len(x)", "v = n = 0", "print(v / n)", {}, Unclear.COUNTER, ("v", "n"), id="all or none"),
        pytest.param("v += len(x)", "", "print(v)", {"before": "v = 0"}, Unclear.COUNTER, ("v",), id="a sum that goes on"),
        pytest.param("v['a'] += len(x)", "v = {'a': 1}", "print(v)", {}, Unclear.COUNTER, ("v['a']",), id="an entry from one"),
        pytest.param("v['a'] += len(x)", "v = {'a': 0}\nv['a'] = 5", "print(v)", {}, Unclear.COUNTER, ("v['a']",), id="an entry that is set before"),
        pytest.param("v.add(loss.item(), len(x))", "", "print(v.avg)", {"defs": _METER, "before": "v = M()"}, Unclear.METER, ("v",), id="a meter that goes on"),
        pytest.param("v.update(loss.item(), 3)", "v = Meter()", "print(v)", {"imports": "from lib import Meter"}, Unclear.FOREIGN_METER, ("v",), id="a meter of another file"),
        pytest.param("v.update('a', loss.item())", "v = K()", "print(v.rows)", {"defs": _TABLE}, Unclear.FOREIGN_METER, ("v",), id="a table with a method of its own"),
        pytest.param("v['a'].update(loss.item())", "v = f()", "print(v)", {}, Unclear.FOREIGN_METER, ("v['a']",), id="a meter in a dict"),
        pytest.param("t.total += loss.item()", "", "print(t.total)", {"defs": _KEEPER}, Unclear.GROWS, ("t.total",), id="an attribute"),
        pytest.param("v += loss.item()", "v = f()", "print(v)", {}, Unclear.GROWS, ("v",), id="from somewhere"),
        pytest.param("v = max(v, loss.item())", "v = 0", "print(v)", {}, Unclear.GROWS, ("v",), id="the largest"),
        pytest.param("v = v * 0.5 + loss.item()", "v = 0", "print(v)", {}, Unclear.GROWS, ("v",), id="a sum that forgets"),
        pytest.param("v = v * x.sum() + 0.1 * loss.item()", "v = 0", "print(v)", {}, Unclear.GROWS, ("v",), id="a factor of the batch"),
        pytest.param("v *= loss.item()", "v = 1", "print(v)", {}, Unclear.GROWS, ("v",), id="a product"),
        pytest.param("v[y] += 1", "v = torch.zeros(2)", "print(v)", {}, Unclear.GROWS, ("v",), id="a table"),
        pytest.param("for k in y:\n    v[k] += 1\n    v[k] += 2", "v = f()", "print(v)", {}, Unclear.GROWS, ("v",), id="a table from somewhere, once"),
        pytest.param("t.total[y] += 1", "", "print(t.total)", {"defs": _KEEPER}, Unclear.GROWS, ("t.total",), id="a table of an object"),
        pytest.param("t.total['a'] += loss.item()", "", "print(t.total)", {"defs": _KEEPER}, Unclear.GROWS, ("t.total['a']",), id="an entry of an object"),
        pytest.param("v.append(model(x))", "v = []", "print(v)", {}, Unclear.LIST, ("v",), id="a list of something"),
        pytest.param("t.losses.append(loss.item())\nt.losses.append(loss.item())", "", "print(t.losses)", {"defs": _KEEPER}, Unclear.LIST, ("t.losses",), id="a list of an object, once"),
        pytest.param("v['a'].append(loss.item())", "v = f()", "print(v)", {}, Unclear.LIST, ("v['a']",), id="a list in a container"),
    ],
)  # fmt: skip
def test_told(add: str, start: str, end: str, parts: dict[str, str], why: Unclear, names: tuple[str, ...]) -> None:
    found = _totals(add, start, end, **parts)
    assert [(t.why, t.names) for t in found.told] == [(why, names)]
    assert (found.sums, found.means) == ([], [])


def test_a_meter_of_steps_and_losses() -> None:
    found = _totals("v.add(loss.item(), 1)", "v = M()", "print(v.avg)", defs=_METER)
    assert (found.sums, found.means, found.again) == ([], ["v.sum"], ["v.avg = v.sum / v.n"])


def test_the_reason_is_named() -> None:
    (told,) = _totals("v += f(x)\nn += len(x)", "v = n = 0", "print(v / n)").told
    assert told.of == ("v",)


@pytest.mark.parametrize(
    ("end", "alone"),
    [
        pytest.param("print(v, n)", True, id="shown together"),
        pytest.param("print(f'{v / 2} {n / 3}')", True, id="shown in one text"),
        pytest.param("print(v)\nif n > 3:\n    print(n)", True, id="asked for by itself"),
        pytest.param("print(v / n)", False, id="a ratio"),
        pytest.param("print(f'{v / n}')", False, id="a ratio in a text"),
        pytest.param("w = v / 2\nprint(w, n)", True, id="one of them computed"),
        pytest.param("pair = (v, n)\nprint(pair)", False, id="kept together"),
        pytest.param("print(v > n)", False, id="compared"),
        pytest.param("if v > n:\n    print(v, n)", False, id="compared in a test"),
        pytest.param("m = v * k\nprint(m, k / n)", False, id="by way of a third"),
    ],
)
def test_what_has_nothing_to_do_with_what_is_not_known_is_put_together(end: str, alone: bool) -> None:
    found = _totals("v += f(x)\nn += len(x)\nk += len(y)", "v = n = k = 0", end, defs="def show(a, b):\n    print(a / b)")
    assert [t.why for t in found.told] == [Unclear.COUNTER]
    assert ("n" in found.sums) is alone and ("n" in found.told[0].names) is not alone


def test_what_others_may_read_is_left_with_what_is_not_known() -> None:
    told = _totals("v += f(x)\nw['n'] += len(x)", "v, w = 0, {'n': 0}", "print(v, w['n'])").told
    assert [t.names for t in told] == [("v", "w['n']")]


def test_a_list_of_a_loop_that_also_evaluates() -> None:
    defs = "def run(model, batches, optimizer=None):\n    kept = []\n    for x, y in batches:\n        loss = F.cross_entropy(model(x), y)\n        if optimizer is not None:\n"
    defs += "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n        kept.append(loss.item())\n    return kept"
    found = script(program(defs=defs, batches="if True:", step="run(model, loader, optimizer)", end="run(model, DataLoader(val_set))"))
    (loop,) = found.roles.train_loops
    assert totals(found, loop).means == ["kept"]


_TRAINER = """
class K:
    def __init__(self):
        self.rows = {}
    def update(self, k, v):
        self.rows[k] = self.rows.get(k, 0) + v
    def show(self, v):
        print(v)
"""


@pytest.mark.parametrize(
    ("add", "end", "told"),
    [
        pytest.param("v.show(loss.item())", "print(v.rows)", False, id="a method that keeps nothing"),
        pytest.param("v.update('a', loss.item())", "pass", False, id="nobody asks for it"),
        pytest.param("v.update('a', 3)", "print(v.rows)", False, id="no number of the batch"),
        pytest.param("v.update('a', loss.item())", "print(v.rows)", True, id="kept and read"),
    ],
)
def test_tables_with_methods_of_their_own(add: str, end: str, told: bool) -> None:
    assert bool(_totals(add, "v = K()", end, defs=_TRAINER).told) == told


_SET = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--size', type=int)\nargs = parser.parse_args()\nv = 0\n"


@pytest.mark.parametrize(
    ("add", "told"),
    [
        pytest.param("v += args.size", [], id="a setting"),
        pytest.param("v += 2 * args.size + 1", [], id="made of a setting"),
        pytest.param("if loss > 1:\n    v += args.size", ["v"], id="a setting where the loss says so"),
        pytest.param("for one in x:\n    v += args.size", ["v"], id="a setting for each sample"),
        pytest.param("v += f(args.size, x)", ["v"], id="what is not known of a setting and a batch"),
    ],
)
def test_what_settings_say_of_each_batch(add: str, told: list[str]) -> None:
    found = _totals(add, before=_SET, end="print(v)")
    assert [name for doubt in found.told for name in doubt.names] == told
