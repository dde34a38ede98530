"""What may have no value where it is read, and which definitions reach a read."""

from __future__ import annotations

import ast
import contextlib
import itertools
import random
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from dpmigrate.result.flow import Flow


def unbound(code: str, *, learning: bool = True) -> set[str]:
    """``name:line`` of each read that may have no value."""
    flow = Flow(ast.parse(textwrap.dedent(code)), learning=learning)
    return {f"{r.name}:{r.node.lineno}" for r in flow.unbound}


def function(*lines: str) -> str:
    """A function of one parameter with these lines, the first of which is line 2."""
    return "def f(p):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["pass"], id="nothing"),
        pytest.param(["return p"], id="a parameter"),
        pytest.param(["a = 1", "a"], id="a variable"),
        pytest.param(["a, (b, *c) = p", "a, b, c"], id="unpacked"),
        pytest.param(["a: int = 1", "a"], id="annotated"),
        pytest.param(["import a.b, c as d", "from e import f as g", "a, d, g"], id="imported"),
        pytest.param(["def g(): ...", "class C: ...", "g, C"], id="defined"),
        pytest.param(["if p:", "    a = 1", "else:", "    a = 2", "a"], id="both branches"),
        pytest.param(["if p:", "    a = 1", "else:", "    return", "a"], id="the other returns"),
        pytest.param(["if p:", "    a = 1", "else:", "    raise ValueError", "a"], id="the other raises"),
        pytest.param(["if p:", "    a = 1", "else:", "    import sys", "    sys.exit()", "a"], id="the other exits"),
        pytest.param(["if p:", "    a = 1", "else:", "    exit(1)", "a"], id="the other exits by a builtin"),
        pytest.param(["if p:", "    a = 1", "else:", "    assert False", "a"], id="the other asserts"),
        pytest.param(["assert (a := p)", "a"], id="asserted"),
        pytest.param(["while True:", "    a = 1", "    if p:", "        break", "a"], id="while True"),
        pytest.param(["while 1:", "    pass", "a", "a = 1"], id="what nothing reaches"),
        pytest.param(["while (a := p):", "    a", "a"], id="a test that binds"),
        pytest.param(["for i in p:", "    i"], id="in a loop"),
        pytest.param(["for i in p:", "    a = 1", "    break", "else:", "    a = 2", "a"], id="for, else"),
        pytest.param(["for i in p:", "    if i:", "        continue", "    a = 1", "    a"], id="continue"),
        pytest.param(["try:", "    a = p()", "except ValueError:", "    a = 1", "a"], id="try, except"),
        pytest.param(["try:", "    a = p()", "except ValueError:", "    raise", "a"], id="the handler raises"),
        pytest.param(["try:", "    a = 1", "    p()", "except ValueError:", "    a"], id="what cannot raise comes first"),
        pytest.param(["try:", "    p()", "except ValueError:", "    a = 1", "else:", "    a = 2", "a"], id="try, else"),
        pytest.param(["try:", "    p()", "finally:", "    a = 1", "a"], id="finally"),
        pytest.param(["try:", "    a = p()", "finally:", "    p()", "a"], id="after finally"),
        pytest.param(["try:", "    p()", "except ValueError as e:", "    e"], id="the exception"),
        pytest.param(["try:", "    p()", "except* ValueError as e:", "    e"], id="the group"),
        pytest.param(["with p as a:", "    a", "a"], id="with"),
        pytest.param(["with p:", "    a = p()", "a"], id="in with"),
        pytest.param(["match p:", "    case [a, *b]:", "        a, b", "    case {'k': c, **d}:", "        c, d", "    case _:", "        pass"], id="captured"),
        pytest.param(["match p:", "    case 1:", "        a = 1", "    case _:", "        a = 2", "a"], id="match, all cases"),
        pytest.param(["match p:", "    case 1:", "        a = 1", "    case x:", "        a = x", "a"], id="match, a name"),
        pytest.param(["match p:", "    case 1:", "        a = 1", "    case 2 | _:", "        a = 2", "a"], id="match, an alternative"),
        pytest.param(["match p:", "    case 1:", "        a = 1", "    case (_ as x):", "        a = x", "a"], id="match, as"),
        pytest.param(["match p:", "    case 1 if (a := p):", "        a", "    case int(y, real=2) | y:", "        y"], id="match, a guard"),
        pytest.param(["(a := p) and a"], id="walrus, and"),
        pytest.param(["p and (a := p) and a"], id="walrus, one after the other"),
        pytest.param(["if not (p and (a := p)):", "    return", "a"], id="walrus, not"),
        pytest.param(["if (a := p) or a:", "    a", "a"], id="walrus, or"),
        pytest.param(["a if (a := p) else a"], id="walrus, conditional"),
        pytest.param(["[x for x in p if x for y in x if y]"], id="comprehension"),
        pytest.param(["{x: y for x, y in p}, {x for x in p}, (x for x in p)"], id="the other comprehensions"),
        pytest.param(["g = lambda q=p, *r, s=p, **t: (q, r, s, t)"], id="lambda"),
        pytest.param(["g = lambda: a", "a = 1", "g()"], id="free in a lambda"),
        pytest.param(["def g():", "    return a", "a = 1", "g()"], id="free in a function"),
        pytest.param(["def g():", "    nonlocal a", "    a += 1", "a = 1", "g()"], id="nonlocal"),
        pytest.param(["class C:", "    x = 1", "    y = x", "    def m(self):", "        return x", "x = 2"], id="class"),
        pytest.param(["class C:", "    x = [x for x in p]"], id="comprehension in a class"),
        pytest.param(["a = 1", "class C:", "    b = a"], id="a class reads what is round it"),
        pytest.param(["a = 1", "a += 1", "a.x = p[a]", "del a.x, (p[a], a)"], id="augmented and deleted"),
        pytest.param(["x: p[int] = 1", "y.z: int = x", "y.z: int"][:1], id="annotation of a local"),
        pytest.param(["yield p", "a = yield from p", "a"], id="generator"),
        pytest.param(["global g", "g = 1", "g", "print(later)"], id="global"),
        pytest.param(["with p.suppress(ValueError):", "    p()", "p"], id="suppress"),
        pytest.param(["a = b = [p]", "a[0], *b = p", "f'{a!r:{b}}'"], id="stars and texts"),
        pytest.param(["try:", "    return p", "finally:", "    pass", "a", "a = 1"], id="finally, all return"),
        pytest.param(["for i in p:", "    try:", "        break", "    finally:", "        a = 1", "    continue", "p"], id="finally, break"),
        pytest.param(["for i in p:", "    try:", "        continue", "    except E:", "        pass"], id="continue in try"),
        pytest.param(["try:", "    p()", "except:", "    return", "p"], id="bare except"),
        pytest.param(["if False:", "    a", "a = 1"], id="if False"),
    ],
)
def test_all_have_values(lines: list[str]) -> None:
    assert unbound(function(*lines)) == set()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["a", "a = 1"], {"a:2"}, id="before"),
        pytest.param(["a += 1"], {"a:2"}, id="augmented"),
        pytest.param(["a: int", "a"], {"a:3"}, id="annotated, no value"),
        pytest.param(["del a", "a = 1"], {"a:2"}, id="deleted before"),
        pytest.param(["a = 1", "del a", "a"], {"a:4"}, id="deleted"),
        pytest.param(["a = 1", "if p:", "    del [a]", "a"], {"a:5"}, id="perhaps deleted"),
        pytest.param(["for i in p:", "    a", "    del a", "    a = 1"], {"a:3", "a:4"}, id="deleted in a loop"),
        pytest.param(["if p:", "    a = 1", "a"], {"a:4"}, id="if"),
        pytest.param(["if p:", "    a = 1", "elif p > 1:", "    a = 2", "a", "a"], {"a:6", "a:7"}, id="elif"),
        pytest.param(["for a in p:", "    pass", "a"], {"a:4"}, id="loop variable"),
        pytest.param(["for i in p:", "    a = 1", "a"], {"a:4"}, id="for"),
        pytest.param(["for i in p:", "    if i:", "        break", "    a = 1", "else:", "    a", "a"], {"a:7", "a:8"}, id="for, break"),
        pytest.param(["for i in p:", "    a = 1", "    break", "else:", "    pass", "a"], {"a:7"}, id="for, empty"),
        pytest.param(["while p:", "    a = 1", "a"], {"a:4"}, id="while"),
        pytest.param(["while True:", "    if p:", "        break", "    a = 1", "a"], {"a:6"}, id="while True, break"),
        pytest.param(["while p:", "    if p > 1:", "        continue", "    a = 1", "else:", "    a"], {"a:7"}, id="while, else"),
        pytest.param(["try:", "    a = p()", "except ValueError:", "    pass", "a"], {"a:6"}, id="handler passes"),
        pytest.param(["try:", "    a = p()", "except ValueError:", "    a"], {"a:5"}, id="in the handler"),
        pytest.param(["try:", "    p()", "    a = 1", "except* ValueError:", "    a"], {"a:6"}, id="in the handler of a group"),
        pytest.param(["try:", "    a = p()", "finally:", "    a"], {"a:5"}, id="in finally"),
        pytest.param(["try:", "    import a", "except ImportError:", "    pass", "a"], {"a:6"}, id="import"),
        pytest.param(["try:", "    p()", "except ValueError as e:", "    pass", "e"], {"e:6"}, id="the exception afterwards"),
        pytest.param(["e = 1", "try:", "    p()", "except ValueError as e:", "    pass", "e"], {"e:7"}, id="the exception takes it away"),
        pytest.param(["for i in p:", "    try:", "        p()", "    except ValueError as e:", "        break", "    e = 1", "e"], {"e:8"}, id="the exception, break"),
        pytest.param(["with p.suppress(ValueError):", "    a = p()", "a"], {"a:4"}, id="suppress"),
        pytest.param(["with suppress, q() as b:", "    a = p()", "b, a"], {"a:4"}, id="suppress, by its name"),
        pytest.param(["match p:", "    case 1:", "        a = 1", "a"], {"a:5"}, id="match"),
        pytest.param(["match p:", "    case [a]:", "        pass", "a"], {"a:5"}, id="match, capture"),
        pytest.param(["match p:", "    case a if p.x:", "        b = 1", "a", "b"], {"b:6"}, id="match, a guard that fails"),
        pytest.param(["p and (a := 1)", "a"], {"a:3"}, id="walrus, and"),
        pytest.param(["if p or (a := 1):", "    a"], {"a:3"}, id="walrus, or"),
        pytest.param(["if not (p and (a := 1)):", "    a"], {"a:3"}, id="walrus, not"),
        pytest.param(["(a := 1) if p else 2", "a"], {"a:3"}, id="walrus, conditional"),
        pytest.param(["p and (a := 1)", "if p or (a and p):", "    pass"], {"a:3"}, id="walrus, in a test"),
        pytest.param(["[(a := x) for x in p]", "a"], {"a:3"}, id="walrus, comprehension"),
        pytest.param(["[x for x in x]"], set(), id="first iterable, of the builtins"),
        pytest.param(["[a for x in a]", "a = 1"], {"a:2"}, id="comprehension reads"),
        pytest.param(["[y for x in p for z in y for y in x]"], {"y:2"}, id="comprehension, order"),
        pytest.param(["[y for x in p if x for y in x if b if y]", "b = 1"], {"b:2"}, id="comprehension, test"),
        pytest.param(["(a for x in p)", "a = 1"], {"a:2"}, id="generator expression"),
        pytest.param(["{a: b for x in p}", "a = b = 1"], {"a:2", "b:2"}, id="dict"),
        pytest.param(["lambda q=a, *, r=b: 1", "a = b = 1"], {"a:2", "b:2"}, id="defaults of a lambda"),
        pytest.param(["def g(q=a, *, r: b = c) -> d: ...", "a = b = c = d = 1"], {"a:2", "b:2", "c:2", "d:2"}, id="defaults of a function"),
        pytest.param(["@a", "async def g(): ...", "a = 1"], {"a:2"}, id="decorator"),
        pytest.param(["class C(a, k=b):", "    c", "a = b = c = 1"], {"a:2", "b:2", "c:3"}, id="class"),
        pytest.param(["class C:", "    if p:", "        v_ = 1", "    v_"], {"v_:5"}, id="in a class"),
        pytest.param(["def g():", "    nonlocal a", "    del a", "a = 1", "g()", "a"], {"a:7"}, id="deleted elsewhere"),
        pytest.param(["a[0] = a[1]", "a = 1"], {"a:2"}, id="subscript"),
        pytest.param(["a[0]: int", "a = 1"], {"a:2"}, id="annotated subscript"),
        pytest.param(["a[p] += b", "a = b = 1"], {"a:2", "b:2"}, id="augmented subscript"),
        pytest.param(["match p:", "    case [*_]:", "        a = 1", "    case {'k': 1}:", "        a = 2", "a"], {"a:7"}, id="match, nothing is captured"),
        pytest.param(["raise a from b", "a = b = 1"], {"a:2", "b:2"}, id="raise"),
        pytest.param(["assert p, a", "a = 1"], {"a:2"}, id="assert"),
        pytest.param(["return a", "a = 1"], {"a:2"}, id="return"),
        pytest.param(["async with a: ...", "async for i in b: ...", "a = b = 1"], {"a:2", "b:3"}, id="async"),
        pytest.param(["try:", "    return", "finally:", "    if p:", "        a = 1", "    a"], {"a:7"}, id="finally, return"),
        pytest.param(["for i in p:", "    try:", "        if i: continue", "        a = 1", "    finally:", "        a"], {"a:7"}, id="finally, continue"),
        pytest.param(["try:", "    try:", "        return p", "    finally:", "        p()", "        a = 1", "        p()", "finally:", "    a"], {"a:10"}, id="finally raises"),
        pytest.param(["for i in p:", "    try:", "        break", "    finally:", "        if i: break", "        a = 1", "    a = 2", "a"], {"a:9"}, id="finally breaks"),
        pytest.param(["try:", "    assert p, p(a := 1)", "except E:", "    a"], {"a:5"}, id="assert raises"),
        pytest.param(["try:", "    raise p from p(a := 1)", "except E:", "    a"], {"a:5"}, id="raise raises"),
    ],
)
def test_some_may_have_none(lines: list[str], expected: set[str]) -> None:
    code = function(*lines)
    assert unbound(("async " if "async with" in code else "") + code, learning=False) == expected


def test_only_the_first_read_is_told_unless_each_is_judged_by_itself() -> None:
    code = function("if p:", "    a = 1", "a", "a")
    assert unbound(code) == {"a:4"}
    assert unbound(code, learning=False) == {"a:4", "a:5"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("if x:\n    print = 1\nprint\nx = 1\n", {"x:1"}, id="a builtin"),
        pytest.param("from m import *\na\n", set(), id="star import"),
        pytest.param("x: T = 1\nT = int\n", {"T:1"}, id="annotations are evaluated"),
        pytest.param("from __future__ import annotations\nx: T = 1\ndef f(p: T) -> T: ...\nT = int\n", set(), id="annotations are not evaluated"),
        pytest.param("def f():\n    return a\nf()\na = 1\n", {"a:3"}, id="a function that reads"),
        pytest.param("def f():\n    return a\na = 1\nf()\n", set(), id="a function that reads, later"),
        pytest.param("def f():\n    return a\ndef g():\n    f()\ng()\na = 1\n", {"a:5"}, id="a function that calls one that reads"),
        pytest.param("def f():\n    global a, b\n    a = 1\n    return b\ndef g():\n    global a\n    f()\n    a += 1\ng()\na, b\nb = 1\n", {"b:9", "b:10"}, id="a function that calls one that binds"),
        pytest.param("def f():\n    g()\ndef g():\n    def h(): return a\n    return h\nf()\na = 1\n", {"a:6"}, id="through another"),
        pytest.param("def f():\n    global a\n    a = 1\nf()\na\nif a: a = 2\n", set(), id="a function that binds"),
        pytest.param("def f():\n    global a\n    if q(): a = 1\nf()\na\nif a: a = 2\ndef q(): ...\n", {"a:5", "q:4"}, id="a function that may bind"),
        pytest.param("def f():\n    global a\n    a = 1\nif __file__:\n    def f(): ...\nf()\na\na = 2\n", {"a:7"}, id="one of two binds"),
        pytest.param("def f():\n    global a\n    a = 1\n    yield a\nf()\na\na = 2\n", {"a:6"}, id="a generator binds later"),
        pytest.param("def f():\n    yield a\nf()\na = 2\n", set(), id="a generator reads later"),
        pytest.param("def usage():\n    raise SystemExit\nif p:\n    a = 1\nelse:\n    usage()\na\np = 1\n", {"p:3"}, id="a function that never returns"),
        pytest.param("def first():\n    return last()\ndef last():\n    raise E\nif __file__:\n    a = 1\nelse:\n    first()\na\n", {"a:9"}, id="one after it"),
        pytest.param("def f():\n    return f() if f else a\nf()\na = 1\n", {"a:3"}, id="recursive"),
        pytest.param("@d\ndef f():\n    return a\nd = 1\nf()\na = 1\n", {"d:1"}, id="decorated"),
        pytest.param("import sys\nif sys.x:\n    a = 1\nelse:\n    sys.exit()\na\n", set(), id="exit"),
        pytest.param("def exit(): ...\nif __name__:\n    a = 1\nelse:\n    exit()\na\n", {"a:6"}, id="an exit of its own"),
        pytest.param("def f():\n    global a\n    del a\na = 1\na\n", {"a:5"}, id="a function deletes it"),
        pytest.param("class C:\n    a = 1\n    def f(self): return a\na = C().a\n", set(), id="class"),
        pytest.param("class C:\n    x = x\nx = 1\n", set(), id="a class looks further"),
        pytest.param("class C:\n    global g\n    g = 1\ng\n", set(), id="global in a class"),
        pytest.param("def f():\n    class C:\n        nonlocal a\n        a = 1\n    a\n    a = 2\nf\n", set(), id="nonlocal in a class"),
        pytest.param("def f():\n    def g():\n        a\n        def h():\n            nonlocal b\n            b = 1\n    a = b = 1\n", set(), id="free"),
        pytest.param("global a\na = 1\na\n", set(), id="global in the module"),
        pytest.param("def f():\n    global g\n    def h():\n        return [g for _ in g]\n    class K:\n        def m(self): return g\n", set(), id="global, from inside"),
    ],
)
def test_modules(code: str, expected: set[str]) -> None:
    assert unbound(code) == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of Python 3.12")
def test_type_parameters_have_values() -> None:
    assert unbound("type X[T] = list[T]\ndef f[T](a: T) -> T:\n    return T\nclass C[T](list[T]):\n    x: T = X\n") == set()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        pytest.param("import os\nos, len, __file__, __name__\ndef f(a): return lambda b: (a, b)\n", set(), id="none"),
        pytest.param("class C:\n    x = __qualname__\n    def m(self): return __class__\n", set(), id="of classes"),
        pytest.param("def f():\n    global g\n    g = 1\ng\n", set(), id="global"),
        pytest.param("nowhere\ndef f():\n    return [lost for x in x]\n", {"nowhere", "lost", "x"}, id="some"),
        pytest.param("class C:\n    x = 1\n    def m(self): return x\n", {"x"}, id="of a class"),
    ],
)
def test_names_that_nothing_binds(code: str, names: set[str]) -> None:
    assert Flow(ast.parse(code)).variables.undefined.keys() == names


@pytest.mark.parametrize(
    ("lines", "name", "expected"),
    [
        pytest.param(["a = 1", "a"], "a", {2}, id="one"),
        pytest.param(["a = 1", "a = 2", "a"], "a", {3}, id="the last"),
        pytest.param(["a = 1", "if p:", "    a = 2", "a"], "a", {2, 4}, id="two"),
        pytest.param(["a = 1", "for i in p:", "    a", "    a = 2"], "a", {2, 5}, id="round a loop"),
        pytest.param(["a = 1", "with p() as a:", "    a"], "a", {3}, id="with"),
        pytest.param(["a = 1", "del a", "a"], "a", set(), id="deleted"),
        pytest.param(["p"], "p", {1}, id="a parameter"),
        pytest.param(["len"], "len", set(), id="of nobody"),
    ],
)
def test_definitions_that_reach(lines: list[str], name: str, expected: set[int]) -> None:
    tree = ast.parse(function(*lines))
    flow = Flow(tree)
    read = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)][-1]
    assert {d.node.lineno for d in flow.reaching(read)} == expected  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- against Python itself
class _Writer:
    """Writes small programs at random: every branch asks ``q()``, every ``r()`` may raise, every read is a call (Python 3.11 names the line before for a plain one)."""

    def __init__(self, seed: int, kinds: str) -> None:
        self.random = random.Random(seed)
        self.kinds = kinds
        self.lines: list[str] = []

    def program(self) -> str:
        self.lines = ["def f():", *(f"    if q(): {name} = 1" for name in "ab" if not self.kinds)]
        self.block(1, 3, loop=False)
        return "\n".join([*self.lines, "    return 0", "    a = b = 0", ""])

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def name(self) -> str:
        return self.random.choice("ab")

    def block(self, depth: int, left: int, *, loop: bool) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, left, loop=loop)

    def statement(self, depth: int, left: int, *, loop: bool) -> None:
        simple = ["bind", "bind", "read", "read"] + ["del"] * ("d" in self.kinds) + ["walrus", "and"] + ["leave"]
        nested = ["if", "for", "while"] + ["try", "finally", "as", "suppress"] * ("t" in self.kinds) + ["match", "comprehension"]
        kind = self.random.choice(simple + nested * (left > 0))
        getattr(self, f"w_{kind}")(depth, left, loop)

    def w_bind(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, f"{self.name()} = {'r()' if 't' in self.kinds and self.random.random() < 0.5 else '1'}")

    def w_read(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, f"use({self.name()})")

    def w_del(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, f"del {self.name()}")

    def w_walrus(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, f"q() {self.random.choice(['and', 'or'])} ({self.name()} := 1)")

    def w_and(self, depth: int, left: int, loop: bool) -> None:
        name = self.name()
        self.put(depth, f"if {self.random.choice(['', 'not '])}(q() {self.random.choice(['and', 'or'])} (({name} := 1) {self.random.choice(['and', 'or'])} q())):")
        self.put(depth + 1, f"use({name})")

    def w_leave(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, "if q():")
        self.put(depth + 1, self.random.choice(["return 1", *(["break", "continue"] if loop else []), *(["raise ValueError"] if "t" in self.kinds else [])]))

    def w_if(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, "if q():")
        self.block(depth + 1, left - 1, loop=loop)
        if self.random.random() < 0.6:
            self.put(depth, "else:")
            self.block(depth + 1, left - 1, loop=loop)

    def w_for(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, f"for {self.random.choice('abc')} in s():")
        self.loop(depth, left, loop)

    def w_while(self, depth: int, left: int, loop: bool) -> None:
        if self.random.random() < 0.3:
            self.put(depth, "while True:")
            self.put(depth + 1, "if q():")
            self.put(depth + 2, "break")
        else:
            self.put(depth, "while q():")
        self.loop(depth, left, loop)

    def loop(self, depth: int, left: int, loop: bool) -> None:
        self.block(depth + 1, left - 1, loop=True)
        if self.random.random() < 0.3:
            self.put(depth, "else:")
            self.block(depth + 1, left - 1, loop=loop)

    def w_try(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, "try:")
        self.block(depth + 1, left - 1, loop=loop)
        self.put(depth, "except ValueError:")
        self.block(depth + 1, left - 1, loop=loop)
        if self.random.random() < 0.4:
            self.put(depth, "else:")
            self.block(depth + 1, left - 1, loop=loop)
        if self.random.random() < 0.4:
            self.put(depth, "finally:")
            self.block(depth + 1, left - 1, loop=False)

    def w_finally(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, "try:")
        self.block(depth + 1, left - 1, loop=loop)
        self.put(depth, "finally:")
        self.block(depth + 1, left - 1, loop=False)

    def w_as(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, "try:")
        self.block(depth + 1, left - 1, loop=loop)
        self.put(depth, f"except ValueError as {self.name()}:")
        self.block(depth + 1, left - 1, loop=loop)

    def w_suppress(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, "with suppress(ValueError):")
        self.block(depth + 1, left - 1, loop=loop)

    def w_match(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, "match q():")
        self.put(depth + 1, f"case True{self.random.choice(['', f' as {self.name()}', ' if q()'])}:")
        self.block(depth + 2, left - 1, loop=loop)
        if self.random.random() < 0.5:
            self.put(depth + 1, f"case {self.random.choice(['_', self.name()])}:")
            self.block(depth + 2, left - 1, loop=loop)

    def w_comprehension(self, depth: int, left: int, loop: bool) -> None:
        self.put(depth, self.random.choice(["[a for c in s() if q()]", "[(b := c) for c in s()]", "{c for c in s() for d in s() if (a := q())}"]))


def _answers(length: int) -> Iterator[tuple[bool, ...]]:
    return itertools.product((False, True), repeat=length)


class _Asked:
    """The answers that a run gets; it asks for each in turn, and ends where there are no more."""

    def __init__(self, answers: tuple[bool, ...]) -> None:
        self.answers = answers
        self.used = 0

    def ask(self) -> bool:
        self.used += 1
        return self.answers[self.used - 1]

    def risky(self) -> int:
        if self.ask():
            raise ValueError
        return 1

    def some(self) -> Iterator[bool]:
        while self.ask():
            yield True


def run(code: str, length: int) -> tuple[set[str], bool]:
    """``name:line`` of the reads that fail when the program runs with all answers of a length; whether each run came to its end in as many."""
    found, complete = set(), True
    namespace: dict[str, Any] = {"suppress": contextlib.suppress, "use": id}
    exec(compile(code, "<program>", "exec"), namespace)
    seen: set[tuple[bool, ...]] = set()
    for answers in _answers(length):
        if answers in seen:
            continue
        asked = _Asked(answers)
        namespace |= {"q": asked.ask, "r": asked.risky, "s": asked.some}
        try:
            namespace["f"]()
        except IndexError:
            complete = False
        except ValueError:
            pass
        except NameError as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            name = re.search(r"'(\w+)'", str(error))
            assert trace is not None and name is not None
            found.add(f"{name[1]}:{trace.tb_lineno}")
        if asked.used < length:
            seen.update(answers[: asked.used] + rest for rest in _answers(length - asked.used))
    return found, complete


@pytest.mark.parametrize("seed", range(150))
def test_what_fails_in_a_run_was_foreseen(seed: int) -> None:
    code = _Writer(seed, "td").program()
    failed, _ = run(code, 9)
    assert failed <= unbound(code), code
    assert failed <= unbound(code, learning=False), code


@pytest.mark.parametrize("seed", range(150))
def test_what_is_foreseen_fails_in_a_run(seed: int) -> None:
    """Where no exception and no deletion stands in the way the analysis is exact: each test may fall out either way."""
    code = _Writer(seed, "").program()
    failed, complete = run(code, 12)
    assert failed == unbound(code) if complete else failed <= unbound(code), code
