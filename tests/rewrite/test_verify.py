"""verify: silent on right results, one sentence for each thing wrong."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.edit import AddImport, After, Before, Delete, Enclose, First, Hoist, SetArg, Wrap
from dpmigrate.model import Span
from dpmigrate.rewrite.compose import Plan
from dpmigrate.rewrite.confined import strayed
from dpmigrate.rewrite.guards import guarded_collectives
from dpmigrate.rewrite.verify import verify

NOTHING = Plan(())


def test_silence():
    assert () == verify("x\n", "x\n", NOTHING)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param("x\n", "x = \n", "does not compile", id="syntax error"),
        pytest.param("x\n", "return\n", "does not compile", id="return outside a function"),
        pytest.param("x\n", "x\x00\n", "does not compile", id="NUL"),
        pytest.param("a\n", "a is 1\n", "brings in a warning", id="new warning"),
        pytest.param("a\n", "a\n\x0cb\n", "could not be rewritten again", id="does not round-trip"),
        pytest.param("a\n", "b\n", "no edit names it", id="stray change"),
        pytest.param("a\n", "a\nif ddp.is_main():\n    ddp.barrier()\n", "waits for every rank", id="hang"),
    ],
)
def test_wrong(before, after, sentence):
    assert any(sentence in problem for problem in verify(before, after, NOTHING))


def test_an_old_warning_is_not_ours():
    assert () == verify("a is 1\nb\n", "a is 1\nb\n", NOTHING)


A, B, C = Span(1, 0, 1, 1), Span(2, 0, 2, 1), Span(3, 0, 3, 1)


@pytest.mark.parametrize(
    ("before", "after", "edits"),
    [
        pytest.param("a\nb\nc\n", "a\nB\nc\n", (), id="changed line"),
        pytest.param("a\nb\nc\n", "a\nc\n", (), id="lost line"),
        pytest.param("a\nb\nc\n", "a\nb\n", (), id="lost last line"),
        pytest.param("a\nb\nc\n", "new\na\nb\nc\n", (), id="new first line"),
        pytest.param("a\nb\nc\n", "a\nb\nnew\nc\n", (), id="new line in the middle"),
        pytest.param("a\nb\nc\n", "a\nb\nc\nnew\n", (), id="new last line"),
        pytest.param("a\nb\nc\n", "c\nb\na\n", (), id="other order"),
        pytest.param("a\nb\nc\n", "a\r\nb\r\nc\r\n", (), id="other newlines"),
        pytest.param("a\nb\nc\n", "f(a)\nb\nC\n", (Wrap(A, "f({})"),), id="beside an edit"),
        pytest.param("a\nb\nc\n", "A\nnew\nb\nc\n", (Before(A, "new"),), id="the statement that something stands beside"),
        pytest.param("a\nb\nc\n", "a\nb\nnew\nc\n", (Before(A, "new"),), id="insertion at the wrong place"),
        pytest.param("a\nb\nc\n", "a\nc\n", (Enclose(A, A, "if b:"),), id="lost beside a guard"),
        pytest.param("a\n# c\n\nb\n", "a\n", (Delete(Span(4, 0, 4, 1)),), id="lost comment above a deleted statement"),
        pytest.param("a\nb\n", "a\nb\nimport x\n", (AddImport("import x"),), id="import at the end"),
    ],
)
def test_strayed(before, after, edits):
    assert strayed(before, after, Plan(edits))


@pytest.mark.parametrize(
    ("before", "after", "edits"),
    [
        pytest.param("a\nb", "a\nb\n", (), id="final newline"),
        pytest.param("", "import x\n", (AddImport("import x"),), id="import into nothing"),
        pytest.param("b", "b\nnew", (After(A, "new"),), id="after the only line"),
        pytest.param("(\n)\nf(\n)\nc\n", "(\n)\nf(\nk=1,\n)\nc\n", (SetArg(Span(3, 0, 4, 1), "k", "1"),), id="equal lines around an edit"),
    ],
)
def test_confined(before, after, edits):
    assert () == strayed(before, after, Plan(edits))


def test_hoists_and_first_statements_are_named_by_their_statement():
    before = "x = f(\n  g()\n)\nfor a in b:\n  # c\n  c\n"
    after = "n = g()\nx = f(\n  n\n)\nfor a in b:\n  new\n  # c\n  c\n"
    edits = (Hoist(Span(2, 2, 2, 5), "n"), First(Span(4, 0, 6, 3), "new"))

    assert () == strayed(before, after, Plan(edits))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ddp.barrier()\n", id="no guard"),
        pytest.param("if ddp.is_main():\n    print(ddp.rank())\nddp.barrier()\n", id="below a guard"),
        pytest.param("if a:\n    ddp.barrier()\n", id="another condition"),
        pytest.param("if is_main():\n    ddp.barrier()\n", id="another is_main"),
        pytest.param("if ddp.any_rank(ddp.is_main() and a):\n    ddp.barrier()\n", id="the answer of a collective is the same everywhere"),
        pytest.param("if ddp.sum_all(a) and ddp.is_main():\n    b\n", id="collective before the guard in one test"),
        pytest.param("if ddp.is_main():\n    ddp.save(a)\n    ddp.main_only(f)\n", id="calls for one rank"),
        pytest.param("def f():\n    ddp.barrier()\nf()\nif ddp.is_main():\n    g()\n", id="function called outside"),
        pytest.param(
            "import torch\ndef save():\n    ddp.barrier()\nif ddp.is_main():\n    torch.save(a)\n    torch.x.save(b)\n",
            id="function of a module",
        ),
        pytest.param("if ddp.is_main():\n    x = [a for a in b]\n    f()()\n", id="other code"),
        pytest.param("if ddp.is_main():\n    pass\nelse:\n    pass\nddp.barrier()\n", id="guard that does not leave"),
    ],
)
def test_no_hang(text):
    assert () == guarded_collectives(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("if ddp.is_main():\n    ddp.barrier()\n", id="is_main"),
        pytest.param("if ddp.rank() == 0:\n    ddp.barrier()\n", id="rank"),
        pytest.param("if a and not ddp.is_main():\n    b\nelse:\n    ddp.barrier()\n", id="other branch"),
        pytest.param("import dpmigrate_runtime as rt\nif rt.is_main():\n    for a in b:\n        x = rt.sum_all(a)\n", id="other alias, nested"),
        pytest.param("import dpmigrate_runtime\nif dpmigrate_runtime.is_main():\n    dpmigrate_runtime.setup()\n", id="no alias"),
        pytest.param("ddp.is_main() and ddp.barrier()\n", id="and"),
        pytest.param("x = ddp.sum_all(a) if ddp.is_main() else 0\n", id="conditional expression"),
        pytest.param("while ddp.is_main():\n    ddp.barrier()\n", id="while"),
        pytest.param("def f():\n    if not ddp.is_main():\n        return\n    ddp.barrier()\n", id="early return"),
        pytest.param("def f():\n    ddp.barrier()\nif ddp.is_main():\n    f()\n", id="function called under a guard"),
        pytest.param("def f():\n    ddp.barrier()\ndef g():\n    f()\nif ddp.is_main():\n    g()\n", id="function called by a function"),
        pytest.param(
            "class A:\n    def f(self):\n        ddp.barrier()\n    def g(self):\n        if ddp.is_main():\n            self.f()\n",
            id="method",
        ),
        pytest.param("async def f():\n    ddp.barrier()\nif ddp.is_main():\n    run(f())\n", id="async"),
        pytest.param("if ddp.is_main():\n    try:\n        a\n    finally:\n        ddp.barrier()\n", id="finally"),
        pytest.param("if ddp.is_main():\n    match a:\n        case 1:\n            ddp.barrier()\n", id="case"),
        pytest.param("if ddp.is_main():\n    f = lambda: ddp.barrier()\n", id="lambda"),
    ],
)
def test_hang(text):
    (sentence,) = guarded_collectives(ast.parse(text))

    assert "waits for every rank" in sentence
