"""What functions of the program keep of a training loop's numbers, as DPM602 says it."""

from __future__ import annotations

import re

import pytest

from tests.rules.program import STEP, hits

_DEFS = """
class Tracker:
    def __init__(self):
        self.values = []
        self.table = {}
        self.n = 0
    def log_loss(self, value):
        self.values.append(value)
    def scaled(self, value):
        twice = 2 * value
        self.last = twice
    def by_name(self, name, value):
        self.table.setdefault(name, []).append(value)
    def tick(self, value):
        self.n += 1
        print(value)
    def odd(self, value):
        [value][0:1].append(value)
        value = value + 1
        value += value
        make().rows[0] = value
    def mean(self):
        return sum(self.values) / len(self.values)
    def reset(self):
        self.values = []
class Box:
    def __init__(self):
        self.t = Tracker()
def record(history, v):
    history["loss"] = history.get("loss", 0) + v
def put(v):
    KEPT.append(v)
def drop(v):
    rows = []
    rows.append(v)
    UNREAD.append(v)
def moved(rows):
    rows[0] = 2 * rows[1]
    return rows
class Loss(nn.Module):
    def keep(self, v):
        self.kept = v
def static():
    pass
KEPT, UNREAD = [], []
"""


def _told(add: str, start: str = "", end: str = "") -> list[str]:
    found = hits("DPM602", defs=_DEFS, before=start, step=STEP + add, epoch_end=end)
    return [re.split(" (?:is|are) read", f.message)[0] for f in found if not f.edits]


@pytest.mark.parametrize(
    ("add", "start", "end"),
    [
        pytest.param("t.log_loss(loss.item())", "t = Tracker()", "", id="not read"),
        pytest.param("t.log_loss(loss.item())", "t = Tracker()", "t.reset()", id="begun anew alone"),
        pytest.param("t.log_loss(3)", "t = Tracker()", "print(t.mean())", id="no number of the batch"),
        pytest.param("t.tick(loss.item())", "t = Tracker()", "print(t.mean())", id="a method that keeps nothing of it"),
        pytest.param("t.odd(loss.item())", "t = Tracker()", "print(t.mean())", id="in what is made there"),
        pytest.param("t = Tracker()\nt.log_loss(loss.item())\nprint(t.mean())", "", "", id="made anew in every turn"),
        pytest.param("drop(loss.item())", "", "", id="where nobody reads it"),
        pytest.param("model.zero_grad(loss.item())\nstatic()", "", "", id="others"),
        pytest.param("b.t.log_loss(loss.item())", "b = Box()", "b.t.reset()", id="an attribute that is begun anew"),
        pytest.param("d['t'].log_loss(loss.item())", "d = {'t': Tracker()}", "d['t'].reset()", id="an entry that is begun anew"),
        pytest.param("x.data = moved(x.data)", "", "print(x)", id="the batch itself"),
        pytest.param("c.keep(loss.item())", "c = Loss()", "print(c.kept)", id="a module, of which others speak"),
        pytest.param("make().log_loss(loss.item())", "make = Tracker", "print(3)", id="of nobody"),
    ],
)
def test_nothing_to_tell(add: str, start: str, end: str) -> None:
    assert _told(add, start, end) == []


@pytest.mark.parametrize(
    ("add", "start", "end", "name"),
    [
        pytest.param("t.log_loss(loss.item())", "t = Tracker()", "print(t.mean())", "t", id="a method"),
        pytest.param("v = loss.item()\nt.log_loss(value=v)", "t = Tracker()", "print(t.mean())", "t", id="by a variable"),
        pytest.param("t.scaled(loss.detach())", "t = Tracker()", "print(t.last)", "t", id="computed first"),
        pytest.param("t.by_name('loss', loss.item())", "t = Tracker()", "print(t.table)", "t", id="under a name"),
        pytest.param("t.log_loss(loss.item())\nt.log_loss(loss.item())", "t = Tracker()", "show = t", "t", id="once"),
        pytest.param("b.t.log_loss(loss.item())", "b = Box()", "print(b.t.mean())", "b.t", id="of an attribute"),
        pytest.param("d['t'].log_loss(loss.item())", "d = {'t': Tracker()}", "print(d['t'].mean())", "d['t']", id="of an entry"),
        pytest.param("record(h, loss.item())", "h = {}", "print(h)", "h", id="a function's parameter"),
        pytest.param("record(v=loss.item(), history=h)", "h = {}", "print(h)", "h", id="by keyword"),
        pytest.param("put(loss.item())", "", "print(KEPT)", "KEPT", id="a global"),
        pytest.param("h.setdefault('loss', []).append(loss.item())", "h = {}", "print(h)", "the list h", id="setdefault"),
    ],
)
def test_told(add: str, start: str, end: str, name: str) -> None:
    assert _told(add, start, end) == [name]


@pytest.mark.parametrize(("end", "told"), [("        print(self.losses)\n", ["self.losses"]), ("", [])])
def test_a_method_of_the_same_object(end: str, told: list[str]) -> None:
    defs = "class Trainer:\n    def __init__(self, model, optimizer, loader):\n        self.model, self.optimizer, self.loader = model, optimizer, loader\n"
    defs += "        self.losses = []\n    def keep(self, v):\n        self.losses.append(v)\n    def run(self):\n        for x, y in self.loader:\n"
    defs += "            self.optimizer.zero_grad()\n            loss = F.cross_entropy(self.model(x), y)\n            loss.backward()\n"
    defs += "            self.optimizer.step()\n            self.keep(loss.item())\n" + end
    found = hits("DPM602", defs=defs, batches="if True:", step="Trainer(model, optimizer, loader).run()")
    assert [re.split(" (?:is|are) read", f.message)[0] for f in found] == told
