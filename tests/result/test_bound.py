"""No name is read before it has a value where it had one before the migration."""

from __future__ import annotations

import pytest

from dpmigrate.result.bound import newly_unbound, unbound
from tests.result.checked import migrated

_TEST = """\
def test(model, loader):
    correct = 0
    for x, y in loader:
        net = model.eval()
        correct += net(x, y)
    return correct
"""


def new(before: str, after: str) -> list[tuple[int, str]]:
    return list(newly_unbound(before, after, ("ddp",)))


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, now in edits:
        assert old in text
        text = text.replace(old, now, 1)
    return text


@pytest.mark.parametrize(
    ("before", "edits"),
    [
        pytest.param(_TEST, [], id="nothing new"),
        pytest.param("a\na = 1\n", [], id="unbound as before"),
        pytest.param(_TEST, [("    for", "    sync(model)\n    for")], id="bound"),
        pytest.param(_TEST, [("net(x, y)", "net(x, y)\n        sync(net)")], id="bound by then"),
        # if, elif and no else: without a value the program would fail as it did before
        pytest.param("if p():\n    net = 1\nnet.to()\n", [("net.to()", "net = wrap(net.to())"), ("if", "def p(): ...\nif")], id="rewritten"),
        pytest.param("import p\nif p:\n    net = 1\nuse(net)\ndef use(x): ...\n", [("use(net)", "net = wrap(net)\nuse(net)")], id="read afterwards"),
        pytest.param("import p\nif p:\n    net = 1\nfor i in p:\n    net()\n", [("for", "sync(net)\nfor")], id="read in a loop"),
        pytest.param("import p\nif p:\n    net = 1\nwhile p:\n    p()\n    net()\n", [("while", "sync(net)\nwhile")], id="read in while"),
        pytest.param("import p\nfor i in p:\n    if p:\n        net = 1\n    net()\n", [("    net()", "    sync(net)\n    net()")], id="read in the same loop"),
        pytest.param("import p\nfor i in p:\n    if p:\n        net = 1\n    net()\n    p()\n", [("    p()", "    p(net)")], id="read above"),
        pytest.param("import p\nif p:\n    net = 1\nif p:\n    net()\nelse:\n    net[0]\n", [("if p:\n    net()", "sync(net)\nif p:\n    net()")], id="read on both sides"),
        pytest.param("import p\nif p:\n    net = 1\nnet = p(net)\nnet()\n", [("net = p(net)\n", "")], id="the first read is gone"),
        pytest.param("import p\nif p:\n    net = 1\nnet += 1\nnet()\n", [("net += 1\n", "")], id="the first read, which adds, is gone"),
        pytest.param("import p\nif p:\n    net = 1\nnet = p.x(*net[0], k=net.y)\nnet()\n", [("net = p.x(*net[0], k=net.y)\n", "")], id="the first read, deep in a call, is gone"),
        pytest.param("import p\nif p:\n    a = 1\np(a)\np(a)\n", [("p(a)", "p(1)")], id="another is rewritten"),
        pytest.param("import p\nif p:\n    n = 0\nfor i in p:\n    n = p(n)\nn()\n", [("n()", "n = total(n)\nn()"), ("import p", "import p, total")], id="after a loop"),
        pytest.param("from m import *\nx\n", [("x\n", "x\ny\n")], id="a star import may bring it"),
        pytest.param("nowhere\n", [("nowhere", "nowhere, nowhere")], id="nowhere as before"),
        pytest.param("def f():\n    return a\nf()\na = 1\n", [("return a", "return a, a")], id="called too early as before"),
        pytest.param("def f():\n    return a\na = 1\nf()\n", [("return a", "return a, b"), ("a = 1", "a = b = 1")], id="called late enough"),
        pytest.param("import p\nif p:\n    t = 1\nl = p(\n    p.x(t),\n    3)\n", [("l = p(\n    p.x(t),\n    3)", "s = p.x(t)\nl = p(\n    s,\n    3)")], id="taken out of a statement"),
        pytest.param("import p\nif p:\n    net = 1\ntry:\n    net()\nfinally:\n    p()\n", [("try:", "sync(net)\ntry:")], id="read in try"),
    ],
)
def test_nothing_is_said(before: str, edits: list[tuple[str, str]]) -> None:
    after = "def sync(x): ...\ndef wrap(x): ...\n" + edited(before, *edits)
    assert new("def sync(x): ...\ndef wrap(x): ...\n" + before, after) == []


_MAY = "where it may have no value yet"


@pytest.mark.parametrize(
    ("before", "edits", "line", "words"),
    [
        pytest.param(_TEST, [("    for", "    print(net)\n    for")], 3, f"the new code reads 'net' {_MAY}: print(net)", id="before the loop that binds it"),
        pytest.param(_TEST, [("    return", "    print(net)\n    return")], 6, f"the new code reads 'net' {_MAY}: print(net)", id="after a loop that may not run"),
        pytest.param(_TEST, [("    correct = 0\n", "    if model:\n        correct = 0\n"), ("    return correct", "    return 0")], 5, f"the new code reads 'correct' {_MAY}: correct += net(x, y)", id="bound under a test"),
        pytest.param("a = 1\nprint(a)\n", [("a = 1\n", "")], 2, "the new code reads 'a', which nothing in this file gives a value", id="bound nowhere any more"),
        pytest.param("print()\n", [("print()", "print(ddp)")], 1, "the new code reads 'ddp', which nothing in this file gives a value", id="no import"),
        pytest.param("from m import *\n", [("import *\n", "import *\nddp\n")], 1, "the new code reads 'ddp', which nothing in this file gives a value", id="no import, star"),
        pytest.param("import p\nif p:\n    net = 1\np()\n", [("p()", "p(net)")], 4, f"the new code reads 'net' {_MAY}: p(net)", id="new in an old line"),
        pytest.param("import p\nif p:\n    t = 1\nl = p(\n    p.x() and t)\n", [("l = p(\n    p.x() and t)", "s = t\nl = p(\n    s)")], 4, f"the new code reads 't' {_MAY}: s = t", id="taken out of what may be left out"),
        pytest.param("import p\nif p:\n    net = 1\nif p:\n    net()\n", [("if p:\n    net()", "p(net)\nif p:\n    net()")], 4, f"the new code reads 'net' {_MAY}: p(net)", id="read on one side"),
        pytest.param("import p\nif p:\n    net = 1\nnet = 2\nnet()\n", [("net = 2", "p(net)\nnet = 2")], 4, f"the new code reads 'net' {_MAY}: p(net)", id="bound before it is read"),
        pytest.param("import p\nif p:\n    net = 1\nfor net in p:\n    net()\n", [("for", "p(net)\nfor")], 4, f"the new code reads 'net' {_MAY}: p(net)", id="bound by a loop"),
        pytest.param("def f(p):\n    if p:\n        net = 1\n    if p.x:\n        return 0\n    net()\n", [("    if p.x", "    p(net)\n    if p.x")], 4, f"the new code reads 'net' {_MAY}: p(net)", id="returned before"),
        pytest.param("import p\nfor i in p:\n    if p:\n        break\n    net = 1\nelse:\n    net()\n", [("    if p", "    p(net)\n    if p")], 3, f"the new code reads 'net' {_MAY}: p(net)", id="in a loop, before"),
        pytest.param("import p\nwhile True:\n    if p:\n        net = 1\n    p()\n    if p.x: break\n", [("    p()", "    p(net)")], 5, f"the new code reads 'net' {_MAY}: p(net)", id="in an endless loop"),
        pytest.param("import p\nif p:\n    net = 1\nnet = [p for net in p]\nnet()\n", [("net = [p for net in p]\n", "")], 5, f"the new code reads 'net' {_MAY}: net()", id="the value is gone"),
        pytest.param("def f():\n    return 0\nf()\na = 1\n", [("return 0", "return a")], 3, f"the call of f() reads 'a' {_MAY}: f()", id="called too early"),
        pytest.param("import p\ndef f():\n    return a\nif p:\n    a = 1\np()\nf()\n", [("p()", "p(a)")], 6, f"the new code reads 'a' {_MAY}: p(a)", id="a function may read it afterwards"),
    ],
)  # fmt: skip
def test_what_is_new_is_told(before: str, edits: list[tuple[str, str]], line: int, words: str) -> None:
    assert new(before, edited(before, *edits)) == [(line, words)]


def test_lines_are_those_of_the_old_text() -> None:
    before = "def f(x):\n    if x:\n        y = 1\n    return x\n"
    after = "import a\nimport b\n\ndef f(x):\n    if x:\n        y = 1\n    print(y)\n    return x\n\n\n"
    assert [line for line, _ in new(before, after)] == [4]


def test_only_files_that_change_are_looked_at() -> None:
    before = {"lib": "def f():\n    return lost\n", "train": "import lib\nlib.f()\n"}
    assert [*unbound(migrated(before, {"train": "import lib\nlib.f()\nlib.f()\n"}))] == []
    (fault,) = unbound(migrated(before, {"train": "import lib\nlib.f()\nprint(ddp)\n"}))
    assert (fault.place, fault.words) == ("train.py:2", "the new code reads 'ddp', which nothing in this file gives a value")
