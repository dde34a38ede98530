"""What a loop fills: how a variable must begin, which uses fill it, and what makes it doubtful."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from dpmigrate.facts.carried import Carried
from dpmigrate.facts.filled import Filled, Fills, filled, is_rows
from dpmigrate.facts.reasons import Why
from tests.pipeline import script

_PROGRAM = """
import collections
from collections import Counter, defaultdict
import torch, numpy as np
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
{top}
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(train_set, shuffle=True)
val_loader = DataLoader(val_set)
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

def evaluate():
{before}
    for x, y in val_loader:
        out = model(x)
{body}
{after}
evaluate()
"""


def _all(body: str, before: str, after: str = "print(v)", top: str = "") -> tuple[Carried, list[Filled]]:
    parts = {"before": indent(before, "    "), "body": indent(body, "        "), "after": indent(after, "    ")}
    found = script(_PROGRAM.format(top=top, **parts))
    (loop,) = found.roles.eval_loops
    carried = Carried(found.roles, loop)
    return carried, filled(carried, found.executed)


def _one(body: str, before: str, after: str = "print(v)", top: str = "") -> Filled | None:
    return next((f for f in _all(body, before, after, top)[1] if f.name == "v"), None)


_ROWS = [
    pytest.param("v.append(out)", "v = []", id="append"),
    pytest.param("v.extend(out.tolist())", "v = list()", id="extend"),
    pytest.param("v += out.tolist()", "v, w = [], 0", id="added to"),
    pytest.param("v.append(out)", "v: list = []", id="annotated"),
    pytest.param("for o in out:\n    if o > 0:\n        v.append(o)", "v = []", id="some rows of a batch"),
    pytest.param("v['a'].append(out)", "v = {'a': []}", id="a dict of lists"),
    pytest.param("v['a'] += y.tolist()", "v = defaultdict(list)", id="a defaultdict of lists"),
    pytest.param("v[0].extend(out)", "v = {k: [] for k in range(3)}", id="a comprehension of lists"),
]
_JOINED = [
    pytest.param("v = v + out.tolist()", "v = []", id="a sum of lists"),
    pytest.param("v = np.append(v, out.numpy())", "v = np.array([])", id="np.append"),
    pytest.param("v = np.append(v, out.numpy())", "v = []", id="np.append to a list"),
    pytest.param("v = np.append(v, out.numpy(), axis=0)", "v = np.empty((0, 2))", id="np.append of rows"),
    pytest.param("v = np.append(v, out.numpy(), 0)", "v = np.zeros([0, 2])", id="np.append, axis by position"),
    pytest.param("v = np.concatenate((v, out))", "v = np.array([]).astype(int)", id="np.concatenate"),
    pytest.param("v = np.concatenate((v, out), 0)", "v = np.empty(0)", id="axis by position"),
    pytest.param("v = np.vstack((v, out))", "v = np.empty((0, 2))", id="vstack"),
    pytest.param("v = np.hstack([v, out])", "v = np.array([])", id="hstack"),
    pytest.param("v = torch.cat((v, out), dim=0)", "v = torch.tensor([]).to(device)", id="cat"),
    pytest.param("v = torch.cat([v, out])", "v = torch.Tensor().cuda()", id="cat of a list"),
    pytest.param("v = torch.cat((v, out))", "v = torch.empty(0, 2)", id="cat to no rows"),
    pytest.param("if v is None:\n    v = out\nelse:\n    v = torch.cat((v, out))", "v = None", id="from None"),
    pytest.param("if len(v) == 0:\n    v = out\nelse:\n    v = np.append(v, out, axis=0)", "v = []", id="from an empty list"),
    pytest.param("if v is None:\n    v = out\n    w = y\nelse:\n    w = torch.cat((w, y))\n    v = torch.cat((v, out))", "v = w = None", id="two at once"),
    pytest.param(
        "if w is None:\n    v = out\n    w = y\nelse:\n    w = torch.cat((w, y))\n    v = torch.cat((v, out))", "v, w = None, None", id="by the other"
    ),
]
_TABLES = [
    pytest.param("v[y] += 1", "v = np.zeros(3)", id="an array"),
    pytest.param("v[y, out] += out", "v = torch.zeros(3, 3)", id="a tensor"),
    pytest.param("v[y, 0] += out.sum()", "v = torch.zeros((3, 3), dtype=torch.long).to(device)", id="a tensor on a device"),
    pytest.param("v[y][out] += 1", "v = np.zeros((3, 3), dtype=int)", id="an element of an element"),
    pytest.param("np.add.at(v, (y, out), 1)", "v = np.zeros((3, 3))", id="np.add.at"),
    pytest.param("v[y] += out[0].item()", "v = [0.0] * 3", id="a list"),
    pytest.param("v[y] += len(x)", "v = [0, 0, 0]", id="a list of zeros"),
    pytest.param("v[y] += int(out) * 2", "v = [0 for i in range(3)]", id="a comprehension"),
    pytest.param("v[y] += 1", "v = list(0.0 for i in range(3))", id="a generator"),
    pytest.param("v[y] += 1", "v = {'a': 0, 'b': 0}", id="a dict"),
    pytest.param("v[y] += 1", "v = {k: 0 for k in names}", id="a dict comprehension"),
    pytest.param("v[y] += 1", "v = defaultdict(int)", id="a defaultdict"),
    pytest.param("v[y] += float(out)", "v = collections.defaultdict(float)", id="of floats"),
    pytest.param("v[y] += 1", "v = Counter()", id="a Counter"),
]


@pytest.mark.parametrize(("body", "before"), _ROWS)
def test_lists(body: str, before: str) -> None:
    f = _one(body, before)
    assert f is not None and (f.how, f.obstacle, f.in_order, f.read_after) == (Fills.ROWS, None, True, True)


@pytest.mark.parametrize(("body", "before"), _JOINED)
def test_joined(body: str, before: str) -> None:
    f = _one(body, before)
    assert f is not None and (f.how, f.obstacle, f.in_order) == (Fills.JOINED, None, True)


@pytest.mark.parametrize(("body", "before"), _TABLES)
def test_tables(body: str, before: str) -> None:
    f = _one(body, before)
    assert f is not None and (f.how, f.obstacle, f.in_order) == (Fills.TABLE, None, before.endswith(("(int)", "(float)", "Counter()")))


@pytest.mark.parametrize(
    ("body", "before"),
    [
        pytest.param("v.append(out)", "pass", id="begins elsewhere"),
        pytest.param("v.append(out)", "v = [1]", id="not empty"),
        pytest.param("v.append(out)", "v = load()", id="from a function"),
        pytest.param("v.append(out)", "v = []\nv += load()", id="filled before"),
        pytest.param("v.append(out)", "if out:\n    v = []", id="empty at times"),
        pytest.param("v.insert(0, out)", "v = []", id="from the front"),
        pytest.param("v.append(out, out)", "v = []", id="no list"),
        pytest.param("v.append(x=out)", "v = []", id="no list, by keyword"),
        pytest.param("v.append(out)", "v = {'a': []}", id="a dict"),
        pytest.param("v[0].append(out)", "v = []", id="an element of a list"),
        pytest.param("v += 1", "v = np.zeros(2)", id="a counter"),
        pytest.param("v[0] += 1", "v = []", id="an element of an empty list"),
        pytest.param("v[0] -= 1", "v = [0]", id="taken away"),
        pytest.param("v[0] = 1", "v = [0]", id="an element is set"),
        pytest.param("w[0] += 1\nlog(v)", "v = w = [0]", id="another's"),
        pytest.param("np.add.at(v, y)", "v = np.zeros(3)", id="add.at without a value"),
        pytest.param("v = torch.cat((out, v))", "v = torch.tensor([])", id="put before"),
        pytest.param("v = torch.cat((v, out), dim=1)", "v = torch.empty(0, 2)", id="side by side"),
        pytest.param("v = torch.cat((v, out, out))", "v = torch.tensor([])", id="three at once"),
        pytest.param("v = torch.cat((v, out), out=w)", "v = torch.tensor([])", id="another option"),
        pytest.param("v = np.append(v, out, 1)", "v = np.array([])", id="append side by side"),
        pytest.param("v = torch.stack((v, out))", "v = torch.tensor([])", id="stacked"),
        pytest.param("v = join()", "v = torch.tensor([])", id="given anew"),
        pytest.param("v = v + out", "v = torch.zeros(0)", id="a sum of tensors"),
        pytest.param("v = w = v + out", "v = []", id="two names"),
        pytest.param("v = torch.cat((v, out))", "v = torch.zeros(3)", id="cat to zeros"),
        pytest.param("v = torch.cat((v, out))", "v = torch.ones(3)", id="cat to ones"),
        pytest.param("v[0] += 1", "v = torch.zeros()", id="zeros of no size"),
        pytest.param("v[0] += 1", "v = Counter(names)", id="a filled Counter"),
        pytest.param("v[0] += 1", "v = defaultdict(lambda: 3)", id="a defaultdict from 3"),
        pytest.param("v[0] += 1", "v = {'a': 1}", id="a dict of ones"),
        pytest.param("v[0] += 1", "v = {}", id="an empty dict"),
        pytest.param("v[0] += 1", "v = {k: k for k in names}", id="a dict of others"),
        pytest.param("v[0] += 1", "v = [k for k in names]", id="a list of others"),
        pytest.param("v[0] += 1", "v = [1] * 3", id="a list of ones"),
        pytest.param("v[0] += 1", "v = 2 * 3", id="a number"),
        pytest.param("v.append(out)", "v = list(names)", id="a list of names"),
        pytest.param("if v is None:\n    v = out\nelse:\n    v = np.append(v, out)", "v = None", id="the first batch is not flattened"),
        pytest.param("if v is None:\n    v = out\nelse:\n    v = np.vstack((v, out))", "v = None", id="the first batch is not stacked"),
        pytest.param("if v is None:\n    v = out\n    log(v)\nelse:\n    v = torch.cat((v, out))", "v = None", id="more than the first batch"),
        pytest.param("if v is not None:\n    v = out\nelse:\n    v = torch.cat((v, out))", "v = None", id="the wrong way round"),
        pytest.param("if epoch == 0:\n    v = out\nelse:\n    v = torch.cat((v, out))", "v = None", id="another test"),
        pytest.param("if flag:\n    v = out\nelse:\n    v = torch.cat((v, out))", "v = None", id="a flag"),
        pytest.param("if len(v) == 1:\n    v = out\nelse:\n    v = torch.cat((v, out))", "v = []", id="another length"),
        pytest.param("if v is None:\n    v = out\n    w = y\nelse:\n    v = torch.cat((v, out))", "v = w = None", id="one of two"),
        pytest.param("if w is None:\n    v = out\nelse:\n    v = torch.cat((v, out))", "v = w = None", id="by a stranger"),
    ],
)
def test_not_filled(body: str, before: str) -> None:
    assert _one(body, before) is None


@pytest.mark.parametrize(
    ("body", "before", "top", "obstacle"),
    [
        pytest.param("v.append(out)\nprint(len(v))", "v = []", "", Why.READ_INSIDE, id="read"),
        pytest.param("v.append(out)\nlater(lambda: v)", "v = []", "", Why.READ_INSIDE, id="read in a lambda"),
        pytest.param("v.append(out)", "v = w = []", "", Why.KNOWN_ELSEWHERE, id="two names"),
        pytest.param("v.append(out)", "v = []\nw = v", "", Why.KNOWN_ELSEWHERE, id="another name"),
        pytest.param("v.append(out)", "v = []\nd['v'] = v", "", Why.KNOWN_ELSEWHERE, id="kept elsewhere"),
        pytest.param("v.append(out)", "global v\nv = []", "v = 3", Why.KNOWN_ELSEWHERE, id="global"),
        pytest.param("v.append(out)\nshow()", "def show():\n    return len(v)\nv = []", "", Why.KNOWN_ELSEWHERE, id="a function that the loop calls"),
        pytest.param("v[y] += out", "v = [0] * 3", "", Why.NO_NUMBERS, id="a list of tensors"),
        pytest.param("v[y] += out.sum()", "v = {'a': 0}", "", Why.NO_NUMBERS, id="a dict of tensors"),
    ],
)
def test_doubts(body: str, before: str, top: str, obstacle: Why) -> None:
    f = _one(body, before, top=top)
    assert f is not None and f.obstacle is obstacle


def test_names_that_mean_something_else() -> None:
    before = "v = []\ndef other(v):\n    return v"
    f = _one("v.append(out)", before)
    assert f is not None and f.obstacle is None


def test_two_ways_at_once_are_none() -> None:
    assert _one("v += out.tolist()\nv = v + out.tolist()", "v = []") is None


def test_read_by_nobody() -> None:
    f = _one("v.append(out)", "v = []", after="print(3)")
    assert f is not None and not f.read_after


@pytest.mark.parametrize(
    ("body", "after", "rows"),
    [
        pytest.param("v.extend(out)", "print(v)", True, id="spread out"),
        pytest.param("v.append(out)", "v = torch.cat(v)\nprint(v)", True, id="put together"),
        pytest.param("v.append(out)", "print(np.concatenate(v, 0), torch.cat(v).sum())", True, id="put together twice"),
        pytest.param("v.append(out)", "print(v)", False, id="parts"),
        pytest.param("v.append(out)", "pass", False, id="not read"),
        pytest.param("v.append(out)", "print(len(v))\nv = torch.cat(v)", False, id="counted first"),
        pytest.param("v.append(out)", "w = torch.cat(v)\nprint(v)", False, id="under another name"),
        pytest.param("v.append(out)", "if x:\n    v = torch.cat(v)\nprint(v)", False, id="at times"),
        pytest.param("v.append(out)", "print(torch.cat([v]), torch.cat())", False, id="not its parts"),
        pytest.param("v += [out.mean()]", "print(v)", False, id="one element a batch"),
        pytest.param("v.extend((out.mean(), 3))", "print(v)", False, id="two elements a batch"),
    ],
)
def test_rows(body: str, after: str, rows: bool) -> None:
    carried, all_of_it = _all(body, "v = []", after)
    assert [is_rows(carried, f) for f in all_of_it] == [rows]


def test_an_item_a_batch_is_no_row() -> None:
    carried, (f,) = _all("v = np.append(v, out.mean().item())", "v = np.array([])")
    assert not is_rows(carried, f)


def test_a_table_is_no_row() -> None:
    carried, (f,) = _all("v[y] += 1", "v = np.zeros(3)")
    assert not is_rows(carried, f)
    assert [ast.unparse(a) for a in f.adds] == ["1"]
