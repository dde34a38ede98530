"""Replace, Wrap, MainOnly and Hoist."""

from __future__ import annotations

import pytest

from dpmigrate.edit import Hoist, MainOnly, Replace, SetArg, Wrap
from dpmigrate.rewrite.anchors import Refused


@pytest.mark.parametrize(
    ("marked", "edits"),
    [
        pytest.param("x = ⟦a⟧\n", lambda s: [Replace(s[0], "1 +")], id="replace: code is no expression"),
        pytest.param("x = ⟦a⟧\n", lambda s: [Wrap(s[0], "f()")], id="wrap: template without a hole"),
        pytest.param("x = ⟦a⟧\n", lambda s: [Wrap(s[0], "f({}, {})")], id="wrap: template with two holes"),
        pytest.param("x = ⟦a⟧\n", lambda s: [MainOnly(s[0], "m")], id="main_only: a name is no call"),
        pytest.param("x = ⟦{}⟧\n", lambda s: [SetArg(s[0], "k", "1")], id="set_arg: a dict is no call"),
        pytest.param("if ⟦f()⟧:\n    pass\n", lambda s: [Hoist(s[0], "n")], id="hoist: out of a test"),
        pytest.param("while ⟦f()⟧:\n    pass\n", lambda s: [Hoist(s[0], "n")], id="hoist: out of the head of a loop that asks again"),
        pytest.param("for ⟦a[0]⟧ in f():\n    pass\n", lambda s: [Hoist(s[0], "n")], id="hoist: what a loop assigns"),
        pytest.param("x = [⟦f(i)⟧ for i in y]\n", lambda s: [Hoist(s[0], "n")], id="hoist: out of a comprehension"),
        pytest.param("x = lambda i: ⟦f(i)⟧\n", lambda s: [Hoist(s[0], "n")], id="hoist: out of a lambda"),
        pytest.param("@⟦f()⟧\ndef g(): pass\n", lambda s: [Hoist(s[0], "n")], id="hoist: out of a decorator"),
        pytest.param("f'{⟦a⟧}'\n", lambda s: [Replace(s[0], "b['c']")], id="replace: the quote of the f-string around"),
    ],
)
def test_refused(carry, marked, edits):
    with pytest.raises(Refused):
        carry(marked, edits)


@pytest.mark.parametrize(
    ("marked", "code", "expected"),
    [
        pytest.param("x = ⟦a⟧\n", "b", "x = b\n", id="name"),
        pytest.param("x = ⟦a⟧\n", "b or c", "x = b or c\n", id="loose expression where any may stand"),
        pytest.param("x = ⟦a⟧ * 2\n", "b + c", "x = (b + c) * 2\n", id="loose expression where it would fall apart"),
        pytest.param("x = ⟦a + 1⟧ - 2\n", "b - c", "x = b - c - 2\n", id="as tight as before"),
        pytest.param("x = (⟦a or b⟧) and c\n", "d", "x = d and c\n", id="parentheses that no longer serve go"),
        pytest.param("x = (⟦a or b⟧) and c\n", "d or e", "x = (d or e) and c\n", id="parentheses that serve stay"),
        pytest.param("x = (⟦a⟧)\n", "d or e", "x = d or e\n", id="parentheses around a name go"),
        pytest.param("def f():\n    return(⟦a⟧)\n", "b", "def f():\n    return(b)\n", id="parentheses against a keyword stay"),
        pytest.param("x = 1 if⟦[a]⟧else 2\n", "b", "x = 1 if(b)else 2\n", id="no space around: parentheses"),
        pytest.param("x = ⟦(a, b)⟧\n", "c", "x = c\n", id="tuple with its parentheses"),
        pytest.param("x = (⟦(a, b)⟧)\n", "c", "x = c\n", id="tuple in parentheses"),
        pytest.param("for i in ⟦a, b⟧: pass\n", "c", "for i in c: pass\n", id="bare tuple"),
        pytest.param(
            "x = f(\n  (  # why\n    ⟦(  # that\n      a, b)⟧))\n",
            "c",
            "x = f(\n  (  # why\n    c))\n",
            id="tuple with comments in its parentheses",
        ),
        pytest.param("def f():\n    x = ⟦a⟧\n", "(yield)", "def f():\n    x = (yield)\n", id="parentheses of the code"),
        pytest.param("x = not ⟦a⟧\n", "b == c", "x = not (b == c)\n", id="comparison under not"),
        pytest.param("é = 'ß'; x = ⟦a⟧\n", "b", "é = 'ß'; x = b\n", id="columns count bytes"),
        pytest.param("x = ⟦a.b().c⟧().d()\n", "e", "x = e().d()\n", id="several nodes start here: shortest"),
        pytest.param("x = ⟦a.b().c()⟧.d()\n", "e", "x = e.d()\n", id="several nodes start here: longer"),
        pytest.param("⟦f()⟧\n", "g()", "g()\n", id="expression statement of the same span"),
        pytest.param("x = f'a{b}' f'{⟦c⟧!r:>{w}}'\n", "d", "x = f'a{b}' f'{d!r:>{w}}'\n", id="inside an f-string"),
        pytest.param("x = a[⟦b⟧:c]\n", "d + 1", "x = a[d + 1:c]\n", id="slice"),
        pytest.param("class A(⟦B⟧): pass\n", "C", "class A(C): pass\n", id="base class"),
        pytest.param("@⟦a⟧\ndef f(): pass\n", "b", "@b\ndef f(): pass\n", id="decorator"),
        pytest.param("async def f():\n    await ⟦a⟧\n", "b()", "async def f():\n    await b()\n", id="await"),
        pytest.param("x = f(⟦(i for i in y)⟧, 1)\n", "z", "x = f(z, 1)\n", id="generator in parentheses"),
    ],
)
def test_replace(check, marked, code, expected):
    check(marked, lambda s: [Replace(s[0], code)], expected)


@pytest.mark.parametrize(
    ("marked", "template", "expected"),
    [
        pytest.param("f(batch=⟦64⟧)\n", "ddp.local_batch({})", "f(batch=ddp.local_batch(64))\n", id="argument"),
        pytest.param("x = ⟦model⟧.state_dict()\n", "{}.module", "x = model.module.state_dict()\n", id="attribute"),
        pytest.param("x = ⟦a or b⟧\n", "{}.module", "x = (a or b).module\n", id="operand gets parentheses"),
        pytest.param("x = (⟦a or b⟧)\n", "{}.module", "x = (a or b).module\n", id="operand keeps its parentheses"),
        pytest.param("x = (⟦a or b⟧)\n", "f({})", "x = f(a or b)\n", id="parentheses of the call suffice"),
        pytest.param("x = (⟦a\n     .b()⟧)\n", "{}.c", "x = (a\n     .b()).c\n", id="operand over two lines"),
        pytest.param("x = (⟦a\n     .b()⟧)\n", "f({})", "x = f(a\n     .b())\n", id="argument over two lines"),
        pytest.param("x = f((  # why\n  ⟦a⟧))\n", "g({})", "x = f((  # why\n  g(a)))\n", id="comment inside the parentheses"),
        pytest.param("x = ⟦a + b⟧\n", "{} // n", "x = (a + b) // n\n", id="operator"),
        pytest.param("x = 2 ** ⟦a⟧\n", "{} // n", "x = 2 ** (a // n)\n", id="operator inside a tighter one"),
        pytest.param("x = ⟦a⟧\n", "f(*{})", "x = f(*a)\n", id="starred hole"),
        pytest.param("x = ⟦(a, b)⟧\n", "f({})", "x = f((a, b))\n", id="tuple"),
        pytest.param("for i in ⟦a, b⟧: pass\n", "f({})", "for i in f((a, b)): pass\n", id="bare tuple"),
        pytest.param("x = f⟦(i for i in y)⟧\n", "g({})", "x = f(g((i for i in y)))\n", id="generator in the brackets of the call"),
        pytest.param("x = f⟦( i for i in y )⟧\n", "g({})", "x = f( g((i for i in y)) )\n", id="generator with spaces in the brackets of the call"),
        pytest.param("x = ⟦1⟧\n", "{}.real", "x = (1).real\n", id="attribute of a number"),
        pytest.param("x = ⟦a⟧\n", "{}", "x = a\n", id="nothing but the hole"),
        pytest.param("x = f(⟦a⟧, ⟦a⟧)\n", "g({}, a)", "x = f(g(a, a), a)\n", id="only the marked one"),
    ],
)
def test_wrap(check, marked, template, expected):
    check(marked, lambda s: [Wrap(s[0], template)], expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("w = ⟦SummaryWriter('runs')⟧\n", "w = ddp.main_only(SummaryWriter, 'runs')\n", id="one argument"),
        pytest.param("w = ⟦a.B()⟧\n", "w = ddp.main_only(a.B)\n", id="no argument"),
        pytest.param("w = ⟦A (x, *y, **z)⟧\n", "w = ddp.main_only(A, x, *y, **z)\n", id="space before the bracket, stars"),
        pytest.param("w = ⟦A(\n    x,\n    y=1,\n)⟧\n", "w = ddp.main_only(\n    A,\n    x,\n    y=1,\n)\n", id="one argument a line"),
        pytest.param("w = ⟦A(i for i in x)⟧\n", "w = ddp.main_only(A, (i for i in x))\n", id="lone generator"),
    ],
)
def test_main_only(check, marked, expected):
    check(marked, lambda s: [MainOnly(s[0], "ddp.main_only")], expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param(
            "x = DataLoader(⟦Foo(a, # c\n b)⟧, 1)\n",
            "data = Foo(a, # c\n b)\nx = DataLoader(data, 1)\n",
            id="over two lines, with a comment",
        ),
        pytest.param("x = f(⟦a\n  .b()⟧)\n", "data = (a\n  .b())\nx = f(data)\n", id="line break that relied on the call's brackets"),
        pytest.param("x = f((⟦a\n  .b⟧))\n", "data = (a\n  .b)\nx = f(data)\n", id="own parentheses go with it"),
        pytest.param("x = f⟦(i for i in y)⟧\n", "data = (i for i in y)\nx = f(data)\n", id="lone generator"),
        pytest.param("x = f((  # why\n  ⟦a⟧))\n", "data = a\nx = f((  # why\n  data))\n", id="comment inside the parentheses"),
        pytest.param("x = f((⟦a := b⟧))\n", "data = (a := b)\nx = f(data)\n", id="walrus"),
        pytest.param("y = 1\n\n# loaders\nx = f(⟦g()⟧)  # end\n", "y = 1\n\n# loaders\ndata = g()\nx = f(data)  # end\n", id="comment stays above"),
        pytest.param("if a: x = f(⟦g()⟧)\n", "if a:\n    data = g()\n    x = f(data)\n", id="one-line suite"),
        pytest.param("y = 1; x = f(⟦g()⟧); z = 2\n", "y = 1\ndata = g()\nx = f(data); z = 2\n", id="shared line"),
        pytest.param("for a in f(⟦g()⟧):\n    pass\n", "data = g()\nfor a in f(data):\n    pass\n", id="head of a loop"),
        pytest.param("def f():\n\n    return(⟦g()⟧)\n", "def f():\n\n    data = g()\n    return(data)\n", id="against a keyword"),
    ],
)
def test_hoist(check, marked, expected):
    check(marked, lambda s: [Hoist(s[0], "data")], expected)


def test_hoists_of_one_statement_keep_their_order(check):
    check(
        "x = f(⟦g(⟦h()⟧)⟧, ⟦k()⟧)\n",
        lambda s: [Hoist(s[2], "third"), Hoist(s[0], "second"), Hoist(s[1], "first")],
        "first = h()\nsecond = g(first)\nthird = k()\nx = f(second, third)\n",
    )


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("x = f(\n    ⟦g(1,\n      2)⟧)\n", "d = g(1,\n      2)\nx = f(\n    d)\n", id="aligned with a bracket, on a line of its own"),
        pytest.param("longer = f(⟦g(1,\n             2)⟧, 3)\n", "d = g(1,\n      2)\nlonger = f(d, 3)\n", id="aligned with a bracket, in the line"),
        pytest.param("x = f(\n    ⟦g(\n        1,\n    )⟧,\n)\n", "d = g(\n    1,\n)\nx = f(\n    d,\n)\n", id="hanging"),
        pytest.param(
            "if a:\n  x = f(\n      ⟦g(\n        1,\n      )⟧)\n", "if a:\n  d = g(\n    1,\n  )\n  x = f(\n      d)\n", id="hanging, in a block of two columns"
        ),
        pytest.param("x = f(⟦g(\n1)⟧)\n", "d = g(\n1)\nx = f(d)\n", id="never left of the margin"),
        pytest.param("x = f(\n\t⟦g(1,\n\t\t2)⟧)\n", "d = g(1,\n\t\t2)\nx = f(\n\td)\n", id="tabs stay"),
        pytest.param('x = f(\n    ⟦g("""a\n    b""")⟧)\n', 'd = g("""a\n    b""")\nx = f(\n    d)\n', id="the lines of a string stay"),
    ],
)
def test_lines_move_with_a_hoisted_expression(check, marked, expected):
    check(marked, lambda s: [Hoist(s[0], "d")], expected)


def test_statements_between_a_hoisted_expression_and_its_statement(check):
    check("leave(⟦main()⟧)\n", lambda s: [Hoist(s[0], "status", "stop()\nwave()")], "status = main()\nstop()\nwave()\nleave(status)\n")
