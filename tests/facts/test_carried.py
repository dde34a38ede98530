"""What a variable is when a loop begins, and who reads what the loop leaves in it."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from dpmigrate.facts.carried import Carried, Start, is_number, is_zero
from tests.pipeline import script

_PROGRAM = """
import collections, contextlib
from collections import Counter, defaultdict
import torch, numpy as np
from torch import zeros
from torch.utils.data import DataLoader
{top}
def run(given=0):
{before}
{loop}
{after}
run()
"""
_LOOP = "for x in DataLoader(data):\n    v = x\n    w += helper(x)"


def _carried(before: str = "pass", loop: str = _LOOP, after: str = "pass", top: str = "") -> Carried:
    parts = {"before": indent(before, "    "), "loop": indent(loop, "    "), "after": indent(after, "    ")}
    found = script(_PROGRAM.format(top=top, **parts))
    (batches,) = found.roles.batch_loops
    return Carried(found.roles, batches)


# ---------------------------------------------------------------------- who reads it
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="nobody"),
        pytest.param({"after": "print('v')  # v"}, id="in a string and a comment"),
        pytest.param({"before": "v = 0\nprint(v)"}, id="before the loop"),
        pytest.param({"before": "v = 0\nprint(sum(k + v for k in range(3)))"}, id="before the loop, by a generator in a call"),
        pytest.param({"after": "v = 1\nprint(v)"}, id="something else is stored"),
        pytest.param({"after": "v: int = 1\nprint(v)"}, id="something else is stored, with a type"),
        pytest.param({"after": "v, k = 1, 2\nprint(v)"}, id="something else is stored, in a tuple"),
        pytest.param({"after": "for v in range(3):\n    print(v)"}, id="another loop's variable"),
        pytest.param({"after": "async def g():\n    async for v in h():\n        print(v)"}, id="a variable of another function's loop"),
        pytest.param({"after": "with open('f') as v:\n    print(v)"}, id="a variable of a with"),
        pytest.param({"after": "print([v for v in range(3)])"}, id="a comprehension's variable"),
        pytest.param({"after": "if w:\n    v = 1\nelse:\n    v = 2\nprint(v)"}, id="stored on both ways"),
        pytest.param({"after": "if w:\n    return 0\nelse:\n    v = 2\nprint(v)"}, id="stored on the way that goes on"),
        pytest.param({"after": "try:\n    v = 1\nexcept OSError:\n    v = 2\nprint(v)"}, id="stored in all parts of a try"),
        pytest.param({"after": "try:\n    v = 1\nexcept OSError:\n    raise\nprint(v)"}, id="stored where no exception came"),
        pytest.param({"after": "try:\n    pass\nfinally:\n    v = 1\nprint(v)"}, id="stored in the end"),
        pytest.param({"after": "with torch.no_grad():\n    v = 1\nprint(v)"}, id="stored in a with"),
        pytest.param({"after": "def g(v):\n    return v"}, id="a parameter of that name"),
        pytest.param({"after": "def g():\n    v = 1\n    return v"}, id="another function's own inside this one"),
        pytest.param({"top": "def g():\n    v = 1\n    return v"}, id="another function's own"),
        pytest.param({"top": "v = 0\ndef g():\n    return v"}, id="the module's"),
        pytest.param({"after": "v += 1"}, id="only added to"),
        pytest.param({"before": "v = 0", "loop": "for k in range(3):\n    v = 0\n    print(v)\n    for x in DataLoader(data):\n        v = x"}, id="stored in the next turn"),
        pytest.param({"loop": "for v in range(3):\n    print(v)\n    for x in DataLoader(data):\n        v = x"}, id="the variable of the loop round it"),
        pytest.param({"loop": "for k in range(3):\n    if k:\n        print(v)\n    for x in DataLoader(data):\n        v = x\n    v = 0"}, id="stored before the next turn"),
    ],
)  # fmt: skip
def test_not_read_after(parts: dict[str, str]) -> None:
    assert not _carried(**parts).read_after("v")


_TURN = "for k in range(3):\n{before}    for x in DataLoader(data):\n        v = x\n{after}"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"after": "print(v)"}, id="below"),
        pytest.param({"after": "v += 1\nprint(v)"}, id="with something added"),
        pytest.param({"after": "print(v)\nv = 1"}, id="stored too late"),
        pytest.param({"after": "v = v + 1"}, id="to store it"),
        pytest.param({"after": "if w:\n    v = 1\nprint(v)"}, id="stored at times"),
        pytest.param({"after": "if w and (v := 1):\n    pass\nprint(v)"}, id="perhaps stored in a test"),
        pytest.param({"after": "for k in range(w):\n    v = 1\nprint(v)"}, id="stored in a loop that need not turn"),
        pytest.param({"after": "while w:\n    v = 1\nprint(v)"}, id="stored in a while"),
        pytest.param({"after": "while v:\n    w = 1"}, id="the test of a while"),
        pytest.param({"after": "for k in range(v):\n    pass"}, id="what a loop goes over"),
        pytest.param({"after": "try:\n    v = 1\nexcept OSError:\n    pass\nprint(v)"}, id="stored if no exception comes"),
        pytest.param({"after": "try:\n    v = 1\nfinally:\n    print(v)"}, id="read in the end"),
        pytest.param({"after": "with contextlib.suppress(OSError):\n    v = 1\nprint(v)"}, id="stored if nothing is suppressed"),
        pytest.param({"after": "with v as k:\n    pass"}, id="what a with opens"),
        pytest.param({"after": "match w:\n    case 1:\n        v = 1\nprint(v)"}, id="stored in a case"),
        pytest.param({"after": "match w:\n    case 1 if v:\n        pass"}, id="the guard of a case"),
        pytest.param({"after": "match v:\n    case 1:\n        pass"}, id="what is matched"),
        pytest.param({"after": "if w:\n    v = 1\n    return 0\nelse:\n    pass\nprint(v)"}, id="stored on the way that ends"),
        pytest.param({"after": "print([v := k for k in range(w)])\nprint(v)"}, id="perhaps stored round a comprehension"),
        pytest.param({"after": "class A:\n    v = 1\nprint(v)"}, id="an attribute of a class"),
        pytest.param({"after": "def g():\n    return v\nv = 1"}, id="by a function inside"),
        pytest.param({"after": "def g(k=v):\n    pass"}, id="the default of a parameter"),
        pytest.param({"before": "def g():\n    return v"}, id="by a function above"),
        pytest.param({"before": "g = lambda: v"}, id="by a lambda above"),
        pytest.param({"before": "g = (k + v for k in range(3))"}, id="by a generator above"),
        pytest.param({"before": "global v", "top": "def g():\n    return v"}, id="a global"),
        pytest.param({"before": "global v\nprint(v)", "top": "v = 0"}, id="a global, the next time"),
        pytest.param({"loop": "if w:\n    for x in DataLoader(data):\n        v = x\nprint(v)"}, id="below the if round it"),
        pytest.param({"loop": "with contextlib.suppress(OSError):\n    for x in DataLoader(data):\n        v = x\n    v = 1\nprint(v)"}, id="below a with that swallows"),
        pytest.param({"loop": "for x in DataLoader(data):\n    v = x\nelse:\n    print(v)"}, id="the loop's own else"),
        pytest.param({"loop": _TURN.format(before="    print(v)\n", after="")}, id="in the next turn"),
        pytest.param({"loop": _TURN.format(before="    v = v\n", after="")}, id="in the next turn, to store it"),
        pytest.param({"loop": _TURN.format(before="    if k:\n        v = 1\n    print(v)\n", after="")}, id="in the next turn, stored at times"),
        pytest.param({"loop": "while f(v):\n    for x in DataLoader(data):\n        v = x"}, id="in the test of the next turn"),
        pytest.param({"loop": "for k in range(3):\n    for x in DataLoader(data, v):\n        v = x"}, id="what the loop goes over in the next turn"),
        pytest.param({"loop": _TURN.format(before="    if k:\n        print(v)\n", after="    if k:\n        continue\n    v = 0\n")}, id="in the next turn after a continue"),
        pytest.param({"loop": _TURN.format(before="", after="    if k:\n        break\n    v = 0\n") + "print(v)"}, id="after a break"),
        pytest.param({"loop": _TURN.format(before="", after="    v = 0\n") + "else:\n    print(v)"}, id="in the else of the loop round it"),
        pytest.param({"loop": "for j in range(2):\n    print(v)\n    for k in range(3):\n        for x in DataLoader(data):\n            v = x"}, id="two loops up"),
        pytest.param({"loop": "try:\n    for x in DataLoader(data):\n        v = x\n    v = 0\nexcept OSError:\n    print(v)"}, id="in a handler"),
        pytest.param({"loop": "try:\n    for x in DataLoader(data):\n        v = x\nexcept OSError:\n    pass\nelse:\n    print(v)"}, id="where no exception came"),
        pytest.param({"loop": "try:\n    for x in DataLoader(data):\n        v = x\n    v = 0\nfinally:\n    print(v)"}, id="in a finally"),
        pytest.param({"loop": "try:\n    pass\nexcept OSError:\n    for x in DataLoader(data):\n        v = x\nfinally:\n    print(v)"}, id="from a handler to the finally"),
        pytest.param({"loop": "try:\n    pass\nexcept OSError:\n    for x in DataLoader(data):\n        v = x\nprint(v)"}, id="from a handler on"),
        pytest.param({"loop": "try:\n    for x in DataLoader(data):\n        v = x\n    v = 0\nexcept OSError:\n    pass\nprint(v)"}, id="after an exception"),
        pytest.param({"loop": "match w:\n    case 1:\n        for x in DataLoader(data):\n            v = x\nprint(v)"}, id="below the match round it"),
    ],
)  # fmt: skip
def test_read_after(parts: dict[str, str]) -> None:
    assert _carried(**parts).read_after("v")


def test_at_the_level_of_the_module() -> None:
    text = "from torch.utils.data import DataLoader\n{}\nfor x in DataLoader(data):\n    v = x\n"
    for above, read in (("def g():\n    return v", True), ("def g():\n    v = 1\n    return v", False)):
        found = script(text.format(above))
        assert Carried(found.roles, found.roles.batch_loops[0]).read_after("v") is read


@pytest.mark.parametrize(
    ("loop", "top", "read"),
    [
        pytest.param("for x in DataLoader(data):\n    w += 1", "", False, id="not read"),
        pytest.param("for x in DataLoader(data):\n    w += 1\n    print(w)", "", True, id="read"),
        pytest.param("for x in DataLoader(data):\n    w += 1\nelse:\n    print(w)", "", True, id="read in its else"),
        pytest.param("for x in DataLoader(data):\n    w += 1\n    print([w for w in x])", "", False, id="a comprehension's"),
        pytest.param("def g():\n    return w\nfor x in DataLoader(data):\n    w += 1\n    g()", "", True, id="by a function that it calls"),
        pytest.param("def g():\n    return w\nfor x in DataLoader(data):\n    w += 1", "", False, id="by a function that it does not call"),
    ],
)
def test_read_inside(loop: str, top: str, read: bool) -> None:
    assert _carried("w = 0", loop, top=top).read_inside("w", ()) is read


# ---------------------------------------------------------------------- what it is when the loop begins
@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param("pass", None, id="nothing"),
        pytest.param("given += 1", None, id="a parameter"),
        pytest.param("w = 0", "0", id="a number"),
        pytest.param("w = 1\nw = 0", "0", id="the last value counts"),
        pytest.param("w: int = 0", "0", id="with a type"),
        pytest.param("w, k = 0, 1", "0", id="one of two"),
        pytest.param("(w, j), k = [0, 1], 2", "0", id="a part of a part"),
        pytest.param("w = k = 0", "0", id="in a chain"),
        pytest.param("*w, k = 0, 1", None, id="with a star"),
        pytest.param("w, k = *j, 1", None, id="from a star"),
        pytest.param("w, k = f()", None, id="a part of what a function gives"),
        pytest.param("k, w = (1,)", None, id="a part that is not there"),
        pytest.param("w = 0\nw += 1", None, id="something is added"),
        pytest.param("if k:\n    w = 0", None, id="at times"),
        pytest.param("k = j and (w := 0)", None, id="perhaps"),
        pytest.param("for w in range(3):\n    pass", None, id="a loop's"),
        pytest.param("w = 0\nk = [w for w in range(3)]", "0", id="a comprehension's of that name"),
        pytest.param("w = 0\ndef g():\n    w = 1", "0", id="another function's of that name"),
        pytest.param("w = 0\ndef g():\n    nonlocal w\n    w = 1", None, id="another function changes it"),
        pytest.param("with torch.no_grad():\n    k = 1\nw = 0", "0", id="below a with"),
    ],
)
def test_beginning(before: str, expected: str | None) -> None:
    found = _carried(before).beginning("w")
    assert (found and ast.unparse(found)) == expected


def test_beginning_in_a_loop() -> None:
    turns = "for k in range(3):\n{}    for x in DataLoader(data):\n        w += 1"
    assert _carried("w = 0", turns.format("")).beginning("w") is None
    assert _carried("w = 0", turns.format("    w = 0\n")).from_zero("w")
    assert not _carried("w = 0", turns.format("    if k:\n        w = 0\n")).from_zero("w")


def test_a_global_that_the_module_begins() -> None:
    assert _carried("global w\nw = 0", top="w = 1").from_zero("w")
    assert not _carried("global w\nw = 0", top="w = 1\ndef g():\n    global w\n    w = 2").from_zero("w")
    assert not _carried("global w\nw = []", top="w = 1").from_zero("w")  # others may hold the list


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        pytest.param("w = 1", False, id="one"),
        pytest.param("w = False", False, id="a truth value"),
        pytest.param("w = None", False, id="nothing"),
        pytest.param("w = load()", False, id="from somewhere"),
        pytest.param("w = [1]", False, id="a list of one"),
        pytest.param("w = torch.tensor(3)", False, id="tensor(3)"),
        pytest.param("w = torch.tensor([0, 1])", False, id="tensor([0, 1])"),
        pytest.param("w = torch.Tensor(0)", False, id="a size"),
        pytest.param("w = torch.empty(3)", False, id="whatever is in memory"),
        pytest.param("w = 0\nw = f(w)", False, id="changed"),
        pytest.param("w = torch.zeros(3)\nw.add_(1)", False, id="a tensor that is used"),
        pytest.param("w = []\nf(w)", False, id="a list that is used"),
        pytest.param("w = k = []", False, id="a list with two names"),
        pytest.param("w = []\ndef helper(x):\n    return len(w)", False, id="a list that the loop's function reads"),
        pytest.param("w = 0\nprint(w)", True, id="a number that is shown"),
        pytest.param("w = k = 0", True, id="a number with two names"),
        pytest.param("w = 0.0", True, id="a float"),
        pytest.param("w = []", True, id="a list"),
        pytest.param("w = list()", True, id="list()"),
        pytest.param("w = torch.zeros(3)", True, id="zeros"),
        pytest.param("w = zeros(size=(3,))", True, id="zeros, from-import, keyword"),
        pytest.param("w = np.zeros(shape=3)", True, id="an array"),
        pytest.param("w = torch.zeros(1).to(device)", True, id="zeros on a device"),
        pytest.param("w = torch.tensor(0.).cuda()", True, id="tensor(0)"),
        pytest.param("w = torch.tensor(data=0)", True, id="tensor(data=0)"),
        pytest.param("w = torch.tensor([[0, 0.0], [0]])", True, id="a tensor of zeros"),
    ],
)
def test_from_zero(before: str, answer: bool) -> None:
    assert _carried(before).from_zero("w") is answer


@pytest.mark.parametrize(
    ("before", "entry", "answer"),
    [
        pytest.param("w = {'a': 1}", "w['a']", False, id="one"),
        pytest.param("w = {'b': 0}", "w['a']", False, id="another entry"),
        pytest.param("w = {'a': 0, **k}", "w['a']", False, id="with unknown entries"),
        pytest.param("w = {j: 0, 'a': 1}", "w['a']", False, id="with an unknown key"),
        pytest.param("w = load()", "w['a']", False, id="from somewhere"),
        pytest.param("w = {'a': 0}\nw['a'] = 3", "w['a']", False, id="changed"),
        pytest.param("w = {}", "w.k['a']", False, id="of an attribute"),
        pytest.param("w = {'a': 0, 'b': load()}", "w['a']", True, id="zero"),
        pytest.param("w = {'a': 0, j: 1}", "w['a']", True, id="beside an unknown key"),
        pytest.param("w = {'a': 0.0}", "w[k]", True, id="an unknown entry of zeros"),
        pytest.param("w = defaultdict(float)", "w['a']", True, id="a defaultdict"),
        pytest.param("w = collections.Counter()", "w['a']", True, id="a Counter"),
    ],
)
def test_entries(before: str, entry: str, answer: bool) -> None:
    target = ast.parse(entry, mode="eval").body
    assert isinstance(target, ast.Subscript)
    assert _carried(before).entry_from_zero(target) is answer


def test_kinds_of_beginnings() -> None:
    kinds = {
        "0": Start.ZERO, "None": Start.NOTHING, "[]": Start.LIST, "{'a': []}": Start.LISTS, "defaultdict(list)": Start.LISTS,
        "np.array([])": Start.EMPTY, "torch.empty(0, 3)": Start.EMPTY, "torch.zeros(3)": Start.ZEROS, "[0] * 3": Start.NUMBERS, "'a'": None, "f()": None,
        "[0 for k in j]": Start.NUMBERS, "[k for k in j]": None, "{k: [] for k in j}": Start.LISTS, "{k: 0 for k in j}": Start.NUMBERS, "{k: j for k in j}": None,
        "torch.ones(3)": None, "[1] * 3": None, "-1": None,
    }  # fmt: skip
    assert {value: _carried(f"w = {value}").start("w") for value in kinds} == kinds
    assert _carried().start("w") is None


def test_numbers() -> None:
    names = _carried().names
    texts = ("3", "0.0", "np.array([1])", "torch.tensor(3).cuda()", "True", "'a'", "f()", "[]")
    given = [_carried(f"w = {t}") for t in texts]
    assert [is_number(c.names, c.last_value("w")) for c in given] == [True] * 4 + [False] * 4
    assert not is_number(names, None) and not is_zero(None)
    assert _carried("w = 0\nw += 1").last_value("w") is not None  # it has been a number


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        pytest.param("for x in DataLoader(data):\n    v = x\n    print(v)", (), id="stored first"),
        pytest.param("for x in DataLoader(data):\n    print(v)\n    v = x", ("v",), id="read first"),
        pytest.param("for x in DataLoader(data):\n    print([v for v in x])\n    v = x", (), id="a comprehension's"),
        pytest.param("for x in DataLoader(data):\n    w += 1\n    v = max(v, x)", ("w", "v"), id="two"),
    ],
)
def test_what_goes_on_from_batch_to_batch(loop: str, expected: tuple[str, ...]) -> None:
    assert _carried(loop=loop).going_on == expected
