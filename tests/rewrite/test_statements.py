"""Before, After, First, Enclose and Delete in every layout."""

from __future__ import annotations

import pytest

from dpmigrate.edit import After, Before, Comment, Delete, Enclose, First, Hoist, SetArg, Wrap
from dpmigrate.rewrite.anchors import Refused

MAIN = "if ddp.is_main():"


@pytest.mark.parametrize(
    ("marked", "edits"),
    [
        pytest.param("⟦x⟧\n", lambda s: [Before(s[0], "x = ")], id="before: code does not parse"),
        pytest.param("⟦x⟧\n", lambda s: [After(s[0], "# only a comment")], id="after: code holds no statement"),
        pytest.param("⟦x⟧\n", lambda s: [First(s[0], "y")], id="first: no body"),
        pytest.param("⟦match x:\n    case 1:\n        y⟧\n", lambda s: [First(s[0], "y")], id="first: cases are no body"),
        pytest.param("if a:\n    b\n⟦elif c:\n    d⟧\n", lambda s: [Before(s[0], "y")], id="before: an elif"),
        pytest.param("if a:\n    b\n⟦elif c:\n    d⟧\n", lambda s: [Comment(s[0], ("# y",))], id="comment: an elif"),
        pytest.param("⟦a⟧\nif b:\n    ⟦c⟧\n", lambda s: [Enclose(s[0], s[1], MAIN)], id="enclose: no siblings"),
        pytest.param("⟦a⟧\n⟦b⟧\n", lambda s: [Enclose(s[1], s[0], MAIN)], id="enclose: in the wrong order"),
        pytest.param("a = ⟦b⟧\n", lambda s: [Delete(s[0])], id="delete: an expression is no statement"),
    ],
)
def test_refused(carry, marked, edits):
    with pytest.raises(Refused):
        carry(marked, edits)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("⟦x⟧\n", "new\nx\n", id="first of the file"),
        pytest.param("# top\n⟦x⟧\n", "# top\nnew\nx\n", id="below the head of the file"),
        pytest.param("# top\n\n# mine\n⟦x⟧\n", "# top\n\nnew\n# mine\nx\n", id="comment stays attached, first of the file"),
        pytest.param("a\n\n# far\n\n# mine\n⟦x⟧\n", "a\n\n# far\n\nnew\n# mine\nx\n", id="blank lines above, comment attached"),
        pytest.param("if a:\n    ⟦x⟧  # c\n", "if a:\n    new\n    x  # c\n", id="in a block"),
        pytest.param("if a: ⟦x⟧  # c\n", "if a:\n    new\n    x  # c\n", id="one-line suite"),
        pytest.param("if a: x; ⟦y⟧; z\nelse: b\n", "if a:\n    x\n    new\n    y; z\nelse: b\n", id="one-line suite of several"),
        pytest.param("a; b  # c\n⟦x⟧\n", "a; b  # c\nnew\nx\n", id="below a shared line"),
        pytest.param("a = 1; ⟦b = 2⟧; c = 3;  # c\n", "a = 1\nnew\nb = 2; c = 3;  # c\n", id="shared line"),
        pytest.param("a\n\n\n⟦def f():\n    pass⟧\n", "a\n\n\nnew\n\n\ndef f():\n    pass\n", id="a definition keeps its distance"),
        pytest.param("a\n\n\n@d\n⟦class A:\n    pass⟧\n", "a\n\n\nnew\n\n\n@d\nclass A:\n    pass\n", id="decorator"),
        pytest.param("if a:\n\t⟦x⟧\n", "if a:\n\tnew\n\tx\n", id="tabs"),
        pytest.param("if a:\n  ⟦x⟧\n", "if a:\n  new\n  x\n", id="two spaces"),
        pytest.param("⟦if a:\n    x;⟧\n", "new\nif a:\n    x;\n", id="semicolon at the end of a compound"),
        pytest.param("⟦for a in b:\n    x⟧\n    # end\n", "new\nfor a in b:\n    x\n    # end\n", id="comment at the end"),
    ],
)
def test_before(check, marked, expected):
    check(marked, lambda s: [Before(s[0], "new")], expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("⟦x⟧\n", "x\nnew\n", id="last of the file"),
        pytest.param("⟦x⟧  # c\n\n# next\ny\n", "x  # c\nnew\n\n# next\ny\n", id="comment stays, blank line below"),
        pytest.param("if a: ⟦x⟧  # c\n", "if a:\n    x  # c\n    new\n", id="one-line suite"),
        pytest.param("⟦a = 1⟧; b = 2  # c\n", "a = 1\nnew\nb = 2  # c\n", id="shared line"),
        pytest.param("⟦for a in b:\n    x⟧\ny\n", "for a in b:\n    x\nnew\ny\n", id="compound"),
        pytest.param("⟦for a in b: x⟧\ny\n", "for a in b: x\nnew\ny\n", id="one-line compound"),
        pytest.param("⟦for a in b:\n    x⟧\n    # end\ny\n", "for a in b:\n    x\n    # end\nnew\ny\n", id="comment at the end of a compound"),
        pytest.param("⟦def f():\n    pass⟧\n\n\nx\n", "def f():\n    pass\n\n\nnew\n\n\nx\n", id="definition"),
        pytest.param("class A:\n    ⟦def f(self): pass⟧\n\n    x = 1\n", "class A:\n    def f(self): pass\n\n    new\n\n    x = 1\n", id="method"),
    ],
)
def test_after(check, marked, expected):
    check(marked, lambda s: [After(s[0], "new")], expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("⟦for a in b:  # c\n    # mine\n    x⟧\n", "for a in b:  # c\n    new\n    # mine\n    x\n", id="for"),
        pytest.param("⟦for a in b: x; y⟧  # c\n", "for a in b:\n    new\n    x; y  # c\n", id="one-line for"),
        pytest.param("⟦while a:\n    x⟧\n", "while a:\n    new\n    x\n", id="while"),
        pytest.param("⟦with a as b:\n    x⟧\n", "with a as b:\n    new\n    x\n", id="with"),
        pytest.param("⟦if a:\n    x\nelse:\n    y⟧\n", "if a:\n    new\n    x\nelse:\n    y\n", id="if"),
        pytest.param("if a:\n    x\n⟦elif b:\n    y⟧\n", "if a:\n    x\nelif b:\n    new\n    y\n", id="elif"),
        pytest.param("@d\n⟦def f():\n    x⟧\n", "@d\ndef f():\n    new\n    x\n", id="def"),
        pytest.param('⟦def f():\n    """Doc."""\n    x⟧\n', 'def f():\n    """Doc."""\n    new\n    x\n', id="after a docstring"),
        pytest.param(
            '⟦def f():\n    "Doc" "."\n\n    # c\n    x⟧\n',
            'def f():\n    "Doc" "."\n\n    new\n    # c\n    x\n',
            id="blank line below the docstring",
        ),
        pytest.param('⟦def f():\n    """Doc."""⟧\n', 'def f():\n    """Doc."""\n    new\n', id="only a docstring"),
        pytest.param("⟦def f(): pass⟧\n", "def f():\n    new\n    pass\n", id="one-line def"),
        pytest.param(
            "⟦async def f():\n    async for a in b:\n        x⟧\n",
            "async def f():\n    new\n    async for a in b:\n        x\n",
            id="async",
        ),
        pytest.param("⟦for a in b:\n\n    x⟧\n", "for a in b:\n    new\n\n    x\n", id="blank line at the start"),
    ],
)
def test_first(check, marked, expected):
    check(marked, lambda s: [First(s[0], "new")], expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("⟦for a in b: ⟦x⟧⟧\n", "for a in b:\n    new\n", id="one line"),
        pytest.param("⟦for a in b:\n    ⟦x⟧⟧\n", "for a in b:\n    new\n", id="block"),
        pytest.param("⟦if a:\n    ⟦x⟧⟧\n", "if a:\n    new\n", id="if that would have died"),
    ],
)
def test_first_in_a_body_whose_only_statement_goes(check, marked, expected):
    check(marked, lambda s: [First(s[0], "new"), Delete(s[1])], expected)


@pytest.mark.parametrize("indent", [pytest.param("    ", id="four"), pytest.param("  ", id="two"), pytest.param("\t", id="tab")])
def test_code_of_several_lines_takes_the_indentation_of_the_file(check, indent):
    code = "with a:\n    if b:\n        f(\n            1,\n        )\n\n    c\n# note\nd\n"
    wanted = "with a:\n>if b:\n>>f(\n>        1,\n>    )\n\n>c\n# note\nd\nx\n".replace(">        1", ">>    1").replace(">    )", ">>)")
    check(
        f"for i in j:\n{indent}⟦x⟧\n",
        lambda s: [Before(s[0], code)],
        "for i in j:\n" + "".join(f">{line}" if line.strip() else line for line in wanted.splitlines(keepends=True)).replace(">", indent),
    )


_AND = "and ddp.is_main():"


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("if a:\n    ⟦x⟧\n    ⟦y⟧\n", f"if a {_AND}\n    x\n    y\n", id="the whole branch"),
        pytest.param("if a:  # c\n    # d\n    ⟦⟦x⟧⟧  # e\n    # f\ny\n", f"if a {_AND}  # c\n    # d\n    x  # e\n    # f\ny\n", id="with comments"),
        pytest.param("if a: ⟦⟦x⟧⟧\n", f"if a {_AND}\n    x\n", id="on one line"),
        pytest.param("if a:\n    b\nelif c:\n    ⟦⟦x⟧⟧\n", f"if a:\n    b\nelif c {_AND}\n    x\n", id="elif"),
        pytest.param("if a or b:\n    ⟦⟦x⟧⟧\n", f"if (a or b) {_AND}\n    x\n", id="or"),
        pytest.param("if (a or\n        b):\n    ⟦⟦x⟧⟧\n", f"if (a or\n        b) {_AND}\n    x\n", id="brackets, two lines"),
        pytest.param("if a if b else c:\n    ⟦⟦x⟧⟧\n", f"if (a if b else c) {_AND}\n    x\n", id="a conditional expression"),
        pytest.param("if not a and b:\n    ⟦⟦x⟧⟧\n", f"if not a and b {_AND}\n    x\n", id="and"),
        pytest.param("if a:\n    ⟦⟦x⟧⟧\nelse:\n    y\n", f"if a:\n    {MAIN}\n        x\nelse:\n    y\n", id="not where there is an else"),
        pytest.param("if a:\n    ⟦⟦x⟧⟧\n    y\n", f"if a:\n    {MAIN}\n        x\n    y\n", id="not a part of a branch"),
        pytest.param("while a:\n    ⟦⟦x⟧⟧\n", f"while a:\n    {MAIN}\n        x\n", id="not a loop"),
        pytest.param(
            "if a:\n    ⟦⟦if b:\n        x\n    else:\n        y⟧⟧\n", f"if a {_AND}\n    if b:\n        x\n    else:\n        y\n", id="an if inside"
        ),
    ],
)
def test_a_guard_of_a_whole_branch_goes_into_its_test(check, marked, expected):
    check(marked, lambda s: [Enclose(s[0], s[1], MAIN)], expected)


def test_an_own_if_that_is_left_alone_beside_a_guarded_statement_that_goes(check):
    marked = "if a:\n    ⟦x⟧\n    if b:\n        y\n    else:\n        z\n"
    expected = "if a:\n    if b:\n        y\n    else:\n        z\n"
    check(marked, lambda s: [Enclose(s[0], s[0], MAIN), Delete(s[0])], expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("⟦⟦x⟧⟧\n", f"{MAIN}\n    x\n", id="one statement"),
        pytest.param("a\n\n# log\n⟦⟦x⟧⟧  # c\n\ny\n", f"a\n\n# log\n{MAIN}\n    x  # c\n\ny\n", id="comments around it"),
        pytest.param("# top\n⟦⟦x⟧⟧\n", f"# top\n{MAIN}\n    x\n", id="first of the file"),
        pytest.param("⟦x⟧\n\n# two\ny\n⟦z⟧\nw\n", f"{MAIN}\n    x\n\n    # two\n    y\n    z\nw\n", id="several: blank lines stay empty"),
        pytest.param("⟦x⟧\n⟦f(a,\n\n  b)⟧\n", f"{MAIN}\n    x\n    f(a,\n\n      b)\n", id="blank line in brackets stays empty"),
        pytest.param("⟦x = '''\na\n'''⟧\n⟦y⟧\n", f"{MAIN}\n    x = '''\na\n'''\n    y\n", id="string over several lines"),
        pytest.param("for a in b: ⟦⟦x⟧⟧  # c\n", f"for a in b:\n    {MAIN}\n        x  # c\n", id="one-line suite"),
        pytest.param("if a: ⟦x⟧; ⟦y⟧; z\n", f"if a:\n    {MAIN}\n        x; y\n    z\n", id="one-line suite of several"),
        pytest.param("a = 1; ⟦⟦b = 2⟧⟧; c = 3\n", f"a = 1\n{MAIN}\n    b = 2\nc = 3\n", id="shared line"),
        pytest.param("@d\n⟦⟦def f():\n    x⟧⟧\n", f"{MAIN}\n    @d\n    def f():\n        x\n", id="definition"),
        pytest.param("⟦⟦if a:\n    x⟧⟧\n    # end\nelse_\n", f"{MAIN}\n    if a:\n        x\n        # end\nelse_\n", id="comment at its end"),
        pytest.param("for a in b:\n\t⟦⟦x⟧⟧\n\ty\n", f"for a in b:\n\t{MAIN}\n\t\tx\n\ty\n", id="tabs"),
        pytest.param("if a:\n  b\n  while c:\n      ⟦⟦x⟧⟧\n", f"if a:\n  b\n  while c:\n      {MAIN}\n          x\n", id="a block with its own indentation"),
    ],
)
def test_enclose(check, marked, expected):
    check(marked, lambda s: [Enclose(s[0], s[1], MAIN)], expected)


@pytest.mark.parametrize(
    ("marked", "edits", "expected"),
    [
        pytest.param("⟦x⟧\n\n⟦y⟧\nz\n", lambda s: [Enclose(n, n, MAIN) for n in s], f"{MAIN}\n    x\n\n    y\nz\n", id="neighbours merge"),
        pytest.param("⟦x⟧\n# c\n⟦y⟧\n", lambda s: [Enclose(n, n, MAIN) for n in s], f"{MAIN}\n    x\n# c\n{MAIN}\n    y\n", id="not across a comment"),
        pytest.param("⟦x⟧\nz\n⟦y⟧\n", lambda s: [Enclose(n, n, MAIN) for n in s], f"{MAIN}\n    x\nz\n{MAIN}\n    y\n", id="not across a statement"),
        pytest.param(
            "⟦x⟧\n⟦y⟧\n",
            lambda s: [Enclose(s[0], s[0], MAIN), Enclose(s[1], s[1], "if a:")],
            f"{MAIN}\n    x\nif a:\n    y\n",
            id="not under another header",
        ),
        pytest.param(
            "⟦x⟧\n⟦y⟧\n",
            lambda s: [*(Enclose(n, n, MAIN) for n in s), Before(s[1], "new")],
            f"{MAIN}\n    x\nnew\n{MAIN}\n    y\n",
            id="not across an insertion",
        ),
        pytest.param(
            "⟦x⟧\n⟦y⟧\n⟦z⟧\n",
            lambda s: [*(Enclose(n, n, MAIN) for n in (s[0], s[2])), Delete(s[1])],
            f"{MAIN}\n    x\n    z\n",
            id="across a deletion",
        ),
        pytest.param(
            "⟦x⟧\n⟦y⟧\n",
            lambda s: [Enclose(s[0], s[1], MAIN), Before(s[0], "a"), After(s[0], "b"), Before(s[1], "c"), After(s[1], "d")],
            f"a\n{MAIN}\n    x\n    b\n    c\n    y\nd\n",
            id="insertions at its edges stand outside",
        ),
        pytest.param(
            "⟦x⟧\n⟦y⟧\n⟦z⟧\n",
            lambda s: [Enclose(s[0], s[2], "if a:"), Enclose(s[0], s[1], MAIN), Before(s[0], "new"), After(s[1], "old")],
            f"new\nif a:\n    {MAIN}\n        x\n        y\n    old\n    z\n",
            id="one inside the other",
        ),
        pytest.param("⟦x⟧\n⟦y⟧\n", lambda s: [Enclose(s[0], s[1], MAIN), Delete(s[0])], f"{MAIN}\n    y\n", id="first statement deleted"),
        pytest.param(
            "# top\n\n# c\n⟦x⟧\n⟦y⟧\n",
            lambda s: [Enclose(s[0], s[1], MAIN), Delete(s[0]), Delete(s[1]), After(s[1], "z")],
            "# top\n\n# c\nz\n",
            id="all deleted",
        ),
        pytest.param(
            "⟦x = f(⟦g()⟧)⟧\n",
            lambda s: [Enclose(s[0], s[0], MAIN), Hoist(s[1], "a"), Before(s[0], "b")],
            f"b\n{MAIN}\n    a = g()\n    x = f(a)\n",
            id="hoists stand inside",
        ),
        pytest.param(
            "⟦for i in ⟦j⟧:\n    ⟦save(⟦m⟧.state(), 1)⟧⟧\n",
            lambda s: [
                Enclose(s[0], s[0], "if a:"),
                Enclose(s[2], s[2], MAIN),
                Wrap(s[3], "{}.module"),
                SetArg(s[2], "k", "2"),
                Wrap(s[1], "t({})"),
                First(s[0], "z"),
            ],
            f"if a:\n    for i in t(j):\n        z\n        {MAIN}\n            save(m.module.state(), 1, k=2)\n",
            id="edits nest",
        ),
    ],
)
def test_enclose_with_company(check, marked, edits, expected):
    check(marked, edits, expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("⟦x⟧\n", "", id="the only statement of the file"),
        pytest.param("# top\n⟦x⟧\ny\n", "# top\ny\n", id="first of the file"),
        pytest.param("# top\n\n# c\n⟦x⟧\n", "# top\n\n# c\n", id="the only one, with a comment"),
        pytest.param("a\n\n⟦x⟧\nb\n", "a\n\nb\n", id="blank line above stays"),
        pytest.param("a\n⟦x⟧  # c\n\nb\n", "a\n\nb\n", id="blank line below stays, its comment goes"),
        pytest.param("a\n\n⟦x⟧\n\nb\n", "a\n\nb\n", id="blank lines on both sides: once"),
        pytest.param("a\n\n# c\n⟦x⟧\nb\n", "a\n\n# c\nb\n", id="comment above stays"),
        pytest.param("def f():\n    ⟦x⟧\n\n    y\n", "def f():\n    y\n", id="no blank line at the start of a block"),
        pytest.param("def f():\n    y\n\n    # c\n    ⟦x⟧\nz\n", "def f():\n    y\n\n    # c\nz\n", id="comment at the end of a block"),
        pytest.param("def f():\n    y\n\n    ⟦x⟧\nz\n", "def f():\n    y\nz\n", id="last of a block"),
        pytest.param("a = 1; ⟦b = 2⟧; c = 3\n", "a = 1; c = 3\n", id="in the middle of a line"),
        pytest.param("⟦a = 1⟧; b = 2  # c\n", "b = 2  # c\n", id="first of a line"),
        pytest.param("a = 1; ⟦b = 2⟧  # c\n", "a = 1  # c\n", id="last of a line"),
        pytest.param("if a: x; ⟦y⟧\n", "if a: x\n", id="last of a one-line suite"),
        pytest.param("@d\n⟦def f():\n    pass⟧\n    # end\nx\n", "x\n", id="definition with decorator and comment"),
        pytest.param("def f(): ⟦x⟧\n", "def f(): pass\n", id="function on one line"),
        pytest.param("def f():\n    ⟦x⟧\n", "def f():\n    pass\n", id="function"),
        pytest.param(
            "class A:\n    def f(self):\n        # c\n        ⟦x⟧\n    y = 1\n",
            "class A:\n    def f(self):\n        pass\n        # c\n    y = 1\n",
            id="method",
        ),
        pytest.param("for a in b:\n    ⟦x⟧\nelse:\n    y\n", "for a in b:\n    pass\nelse:\n    y\n", id="for with else"),
        pytest.param("a\n# c\nif b:\n    ⟦x⟧\n    # d\ny\n", "a\n# c\ny\n", id="if"),
        pytest.param("if b: ⟦x⟧\ny\n", "y\n", id="if on one line"),
        pytest.param("if b:\n    ⟦x⟧\nelse:\n    y\n", "if b:\n    pass\nelse:\n    y\n", id="if with else"),
        pytest.param("if b:\n    y\nelse:\n    # c\n    ⟦x⟧\nz\n", "if b:\n    y\nz\n", id="else"),
        pytest.param("for a in b: y\nelse: ⟦x⟧\n", "for a in b: y\n", id="else of a loop"),
        pytest.param("try:\n    y\nexcept E:\n    z\nelse:\n    ⟦x⟧\n", "try:\n    y\nexcept E:\n    z\n", id="else of a try"),
        pytest.param("try:\n    ⟦x⟧\nfinally:\n    z\n", "try:\n    pass\nfinally:\n    z\n", id="try"),
        pytest.param("if a:\n    y\nelif b:\n    ⟦x⟧\nz\n", "if a:\n    y\nz\n", id="last elif"),
        pytest.param("if a:\n    y\nelif b:\n    ⟦x⟧\nelse:\n    z\n", "if a:\n    y\nelif b:\n    pass\nelse:\n    z\n", id="elif before else"),
        pytest.param("def f():\n    if a:\n        if b:\n            ⟦x⟧\n    y\n", "def f():\n    y\n", id="if in if"),
        pytest.param("for i in j:\n    if a:\n        ⟦x⟧\n", "for i in j:\n    pass\n", id="if in for"),
        pytest.param("if a:\n    y\nelse:\n    if b:\n        ⟦x⟧\nz\n", "if a:\n    y\nz\n", id="if in else"),
        pytest.param("match a:\n    case 1:\n        ⟦x⟧\n", "match a:\n    case 1:\n        pass\n", id="case"),
    ],
)
def test_delete(check, marked, expected):
    check(marked, lambda s: [Delete(s[0])], expected)


@pytest.mark.parametrize(
    ("marked", "edits", "expected"),
    [
        pytest.param("if a:\n    ⟦x⟧\nelse:\n    ⟦y⟧\nz\n", lambda s: [Delete(s[0]), Delete(s[1])], "z\n", id="both branches"),
        pytest.param("a\n\n# c\n⟦x⟧\n\nb\n", lambda s: [Delete(s[0]), Before(s[0], "new")], "a\n\n# c\nnew\n\nb\n", id="before takes its place"),
        pytest.param("a\n\n# c\n⟦x⟧\n\nb\n", lambda s: [Delete(s[0]), After(s[0], "new")], "a\n\n# c\nnew\n\nb\n", id="after takes its place"),
        pytest.param(
            "a\n# c\n⟦if b:\n    ⟦x⟧⟧\ny\n",
            lambda s: [Delete(s[1]), After(s[0], "new")],
            "a\n# c\nnew\ny\n",
            id="after an if that dies takes its place",
        ),
        pytest.param(
            "⟦if b:\n    ⟦x⟧⟧\n",
            lambda s: [Delete(s[1]), Before(s[0], "new"), After(s[0], "old")],
            "new\nold\n",
            id="before and after an if that dies",
        ),
        pytest.param("if b: ⟦x⟧\n", lambda s: [Delete(s[0]), After(s[0], "new")], "if b:\n    new\n", id="inside an if that lives on"),
        pytest.param("a\n\n# c\n⟦x⟧\n# d\n⟦y⟧\nz\n", lambda s: [Delete(n) for n in s], "a\n\n# c\n# d\nz\n", id="two neighbours"),
        pytest.param("a = 1; ⟦b = 2⟧; ⟦c = 3⟧  # c\n", lambda s: [Delete(n) for n in s], "a = 1  # c\n", id="two at the end of a line"),
        pytest.param("⟦x = f(⟦g()⟧)⟧\ny\n", lambda s: [Delete(s[0]), Hoist(s[1], "a")], "y\n", id="nothing is hoisted out of it"),
    ],
)
def test_delete_with_company(check, marked, edits, expected):
    check(marked, edits, expected)


def test_insertions_at_one_place_keep_the_order_of_the_plan(check):
    check(
        "for i in j:\n    ⟦for k in l:\n        x⟧\n",
        lambda s: [make(s[0], f"{word}{n}") for make, word in ((Before, "b"), (First, "f"), (After, "a")) for n in (1, 2)],
        "for i in j:\n    b1\n    b2\n    for k in l:\n        f1\n        f2\n        x\n    a1\n    a2\n",
    )


@pytest.mark.parametrize(
    ("marked", "edits", "expected"),
    [
        pytest.param("⟦x⟧\n", lambda s: [], "# c\n#   d\nx\n", id="first of the file"),
        pytest.param("a\n\n# mine\n⟦x⟧\n", lambda s: [], "a\n\n# mine\n# c\n#   d\nx\n", id="below the statement's own comment"),
        pytest.param("if a:\n    ⟦x⟧; y\n", lambda s: [], "if a:\n    # c\n    #   d\n    x; y\n", id="a shared line"),
        pytest.param("if a:\n    ⟦x⟧\n", lambda s: [Before(s[0], "new")], "if a:\n    new\n    # c\n    #   d\n    x\n", id="below what is inserted"),
        pytest.param("@d\n⟦def f():\n    pass⟧\n", lambda s: [], "# c\n#   d\n@d\ndef f():\n    pass\n", id="above the decorators"),
        pytest.param("⟦x⟧\n", lambda s: [Delete(s[0])], "", id="goes with its statement"),
    ],
)
def test_comment(check, marked, edits, expected):
    check(marked, lambda s: [Comment(s[0], ("# c", "#   d")), *edits(s)], expected)
