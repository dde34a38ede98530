"""Which objects an expression may mean."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.values import Val, Values
from tests.facts.probe import all_probed, probed

_HEAD = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from tqdm import tqdm
"""


def _said(v: Val) -> str:
    if v.kind == "ext":
        return v.qual
    text = v.node.name if isinstance(v.node, ast.ClassDef | ast.FunctionDef) else ast.unparse(v.node)
    return f"{v.kind} {text}" + (f"[{v.part}]" if v.part is not None else "")


def _means(text: str) -> list[str]:
    found, node = probed(_HEAD + text)
    return sorted(_said(v) for v in found.values.eval(node))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("probe(x)", ["?.x"], id="from nowhere"),
        pytest.param("probe(a + b)", [], id="a sum"),
        pytest.param("def f(x): probe(x)", [], id="a parameter that nobody gives"),
        pytest.param("x: int\nprobe(x)", ["?.x"], id="only an annotation"),
        pytest.param("probe(3)", ["const 3"], id="a literal"),
        pytest.param("probe(nn.Linear)", ["torch.nn.Linear"], id="a library's"),
        pytest.param("a = nn.Linear(3, 2)\nprobe(a)", ["call nn.Linear(3, 2)"], id="a variable"),
        pytest.param("a: nn.Module = nn.ReLU()\nprobe(a)", ["call nn.ReLU()"], id="with an annotation"),
        pytest.param("if c: a = nn.ReLU()\nelse: a = nn.Tanh()\nprobe(a)", ["call nn.ReLU()", "call nn.Tanh()"], id="one of two"),
        pytest.param("probe(nn.ReLU() if c else nn.Tanh())", ["call nn.ReLU()", "call nn.Tanh()"], id="a conditional"),
        pytest.param("a = None\nprobe(a or nn.Tanh())", ["call nn.Tanh()", "const None"], id="or"),
        pytest.param("probe((a := nn.ReLU()))", ["call nn.ReLU()"], id="walrus"),
        pytest.param("a, (b, c) = 1, (2, nn.ReLU())\nprobe(c)", ["call nn.ReLU()"], id="in a tuple"),
        pytest.param("a = nn.ReLU().to(device).eval()\nprobe(a)", ["call nn.ReLU()"], id="methods that return the module"),
        pytest.param("with nn.ReLU() as a: probe(a)", ["call nn.ReLU()"], id="with"),
        pytest.param("for a in [nn.ReLU(), nn.Tanh()]: probe(a)", ["call nn.ReLU()", "call nn.Tanh()"], id="for"),
        pytest.param("for i, a in enumerate([nn.ReLU(), nn.Tanh()]): probe(a)", ["call nn.ReLU()", "call nn.Tanh()"], id="for with enumerate"),
        pytest.param("for i, a in enumerate([nn.ReLU()]): probe(i)", [], id="the numbers of enumerate"),
        pytest.param("for i, (a, b) in enumerate([(nn.ReLU(), 3)]): probe(a)", ["call nn.ReLU()"], id="for with enumerate, of pairs"),
        pytest.param("for n, a in zip(names, [nn.ReLU(), nn.Tanh()]): probe(a)", ["call nn.ReLU()", "call nn.Tanh()"], id="for with zip"),
        pytest.param("for n, a in zip(names): probe(a)", [], id="zip of too few"),
        pytest.param("for a in [nn.ReLU()]: print(a)\nfor a in []: probe(a)", [], id="another loop's, not that of an empty list"),
        pytest.param("for a in [nn.ReLU()]: print(a)\nfor b in []: probe(a)", ["call nn.ReLU()"], id="a loop's, behind it"),
        pytest.param("for n, a in zip(*[[3], [nn.ReLU()]]): probe(n)", [], id="zip of a list"),
        pytest.param("for n, a in [('a', nn.ReLU())]: probe(a)", ["call nn.ReLU()"], id="pairs"),
        pytest.param("l = [nn.ReLU(), 3]\nprobe(l[0])", ["call nn.ReLU()"], id="an element"),
        pytest.param("l = [nn.ReLU(), 3]\nprobe(l[9])", ["call nn.ReLU()", "const 3"], id="an element that is not there: any"),
        pytest.param("l = [nn.ReLU(), 3]\nprobe(l[i])", ["call nn.ReLU()", "const 3"], id="some element"),
        pytest.param("l = []\nl.append(nn.ReLU())\nprobe(l[0])", ["call nn.ReLU()"], id="appended"),
        pytest.param("l = [nn.ReLU() for i in range(3)]\nprobe(l[0])", ["call nn.ReLU()"], id="a list comprehension"),
        pytest.param("d = {'a': nn.ReLU(), 'b': 3}\nprobe(d['a'])", ["call nn.ReLU()"], id="an item"),
        pytest.param("d = {'a': nn.ReLU(), 'b': 3}\nprobe(d[k])", ["call nn.ReLU()", "const 3"], id="some item"),
        pytest.param("d = {'a': nn.ReLU()}\nfor k in d: probe(k)", [], id="a dict's keys"),
        pytest.param("d = {}\nd['a'] = nn.ReLU()\nprobe(d['a'])", ["call nn.ReLU()"], id="an item put in later"),
        pytest.param("d = {}\nd[k] = nn.ReLU()\nprobe(d['a'])", ["call nn.ReLU()"], id="an item put in under some key"),
        pytest.param("d = {'a': nn.ReLU()}\nfor v in d.values(): probe(v)", ["call nn.ReLU()"], id="values"),
        pytest.param("d = {'a': nn.ReLU()}\nfor k, v in d.items(): probe(v)", ["call nn.ReLU()"], id="items"),
        pytest.param("d = {'a': nn.ReLU()}\nfor k, v in d.items(): probe(k)", [], id="the keys of items"),
        pytest.param("d = {'a': nn.ReLU()}\nfor k in d.keys(): probe(k)", [], id="keys"),
        pytest.param("d = {'a': nn.ReLU()}\ne = d.copy()\nprobe(e['a'])", ["call nn.ReLU()"], id="a copy"),
        pytest.param("d = {'a': nn.ReLU()}\nd = d.copy()\nprobe(d['a'])", ["call nn.ReLU()"], id="a copy of itself"),
        pytest.param("d = dict(a=nn.ReLU(), b=3)\nprobe(d['a'])", ["call nn.ReLU()"], id="dict with keywords"),
        pytest.param("d = {'a': nn.ReLU(), 'b': 3}\nprobe(d.get('a'))", ["call nn.ReLU()"], id="get"),
        pytest.param("d = {'a': nn.ReLU(), 'b': 3}\nprobe(d.get(k))", ["call nn.ReLU()", "const 3"], id="get of some key"),
        pytest.param("d = {'a': nn.ReLU()}\nprobe(d.pop('b', nn.Tanh()))", ["call nn.Tanh()"], id="pop with another"),
        pytest.param("d = {1.5: nn.ReLU()}\nprobe(d.get(1.5))", ["call nn.ReLU()"], id="a key that is no text"),
        pytest.param("l = [nn.ReLU()]\nprobe(l.pop())", ["call nn.ReLU()"], id="pop of a list"),
        pytest.param("probe(q.get('a'))", ["call q.get('a')"], id="get of something else"),
        pytest.param("d = dict(a=nn.ReLU())\nd['b'] = 3\nfor v in d.values(): probe(v)", ["call nn.ReLU()", "const 3"], id="values of dict with keywords"),
        pytest.param("d = {}\nd.update(a=nn.ReLU(), b=3)\nprobe(d['a'])", ["call nn.ReLU()"], id="update by keyword"),
        pytest.param("d = {}\nd.update({'a': nn.ReLU(), 'b': 3})\nprobe(d['a'])", ["call nn.ReLU()"], id="update by a dict"),
        pytest.param("d = {}\nd.update({k: nn.ReLU()})\nprobe(d['a'])", ["call nn.ReLU()"], id="update by a dict with some key"),
        pytest.param("d = dict()\ne = {'a': nn.ReLU()}\nd.update(**e)\nprobe(d['a'])", ["call nn.ReLU()"], id="update by stars"),
        pytest.param("d = dict(a=nn.ReLU())\nd = dict(d)\nprobe(d['a'])", ["call nn.ReLU()"], id="dict of itself"),
        pytest.param("d = {}\nd.setdefault('a', nn.ReLU())\nprobe(d['a'])", ["call nn.ReLU()"], id="setdefault"),
        pytest.param("l = []\nl.extend([nn.ReLU(), 3])\nprobe(l[0])", ["call nn.ReLU()", "const 3"], id="extend"),
        pytest.param("l = []\nl.insert(0, nn.ReLU())\nfor a in l: probe(a)", ["call nn.ReLU()"], id="insert"),
        pytest.param("l = []\nl.append()\nprobe(l)", ["display []"], id="nothing is appended"),
        pytest.param("def f(**d): probe(d['a'])\nf(a=nn.ReLU(), b=3)", ["call nn.ReLU()"], id="star arguments by keyword"),
        pytest.param("def f(b, **d):\n    for k, v in d.items(): probe(v)\nf(a=nn.ReLU(), b=3)", ["call nn.ReLU()"], id="all of them"),
        pytest.param("def f(**d):\n    for k in d: probe(k)\nf(a=nn.ReLU())", [], id="their names"),
        pytest.param("def g(**d): probe(d['a'])\ndef f(**d): g(**d)\nf(a=nn.ReLU(), b=3)", ["call nn.ReLU()"], id="handed on"),
        pytest.param("def f(a, b): probe(a)\nd = {'a': nn.ReLU(), 'b': 3}\nf(**d)", ["call nn.ReLU()"], id="a dict for parameters"),
        pytest.param("def f(a, b): probe(a)\nd = {'a': nn.ReLU(), 'b': 3}\nf(nn.Tanh(), **d)", ["call nn.Tanh()"], id="a dict for the other parameters"),
        pytest.param("def f(n, *l): probe(l[0])\nf(3, nn.ReLU(), 4)", ["call nn.ReLU()"], id="star arguments by position"),
        pytest.param("def f(n, *l):\n    for a in l: probe(a)\nf(3, nn.ReLU(), nn.Tanh())", ["call nn.ReLU()", "call nn.Tanh()"], id="each of them"),
        pytest.param("def g(*l): probe(l[0])\ndef f(*l): g(*l)\nf(nn.ReLU())", ["call nn.ReLU()"], id="handed on by position"),
        pytest.param("d = {k: nn.ReLU() for k in ('a', 'b')}\nprobe(d['a'])", ["call nn.ReLU()[a]"], id="an entry of a dict comprehension"),
        pytest.param("d = {k: nn.ReLU() for k in ('a', 'b')}\nprobe(d[k])", ["call nn.ReLU()[a]", "call nn.ReLU()[b]"], id="some entry"),
        pytest.param("d = {k: nn.ReLU() for k in names}\nprobe(d['a'])", ["call nn.ReLU()"], id="an entry of unknown keys"),
        pytest.param("d = {k: nn.ReLU() for k in ('a', 'b')}\nprobe(d['c'])", [], id="an entry that is not there"),
        pytest.param("d = {k: nn.ReLU() for k in ('a', 'b')}\nd['c'] = nn.Tanh()\nprobe(d['c'])", ["call nn.Tanh()"], id="an entry that is put beside them"),
        pytest.param(
            "d = {k: nn.ReLU() for k in ('a',)}\nd['c'] = nn.Tanh()\nprobe(d[k])", ["call nn.ReLU()[a]", "call nn.Tanh()"], id="some entry, also one beside them"
        ),
        pytest.param("m = nn.ReLU()\nd = {k: m for k in ('a', 'b')}\nprobe(d['a'])", ["call nn.ReLU()"], id="one object under all keys"),
        pytest.param("d = {k: 3 for k in ('a', 'b')}\nfor k in d: probe(k)", [], id="the keys of a comprehension"),
        pytest.param("probe(tqdm(l))\nl = DataLoader(s)", ["call DataLoader(s)"], id="a progress bar"),
        pytest.param("probe(tqdm(iterable=l))\nl = DataLoader(s)", ["call DataLoader(s)"], id="a progress bar, by name"),
        pytest.param("async def f(): probe(await nn.ReLU())", ["call nn.ReLU()"], id="await"),
        pytest.param("x = x2\nx2 = x\nprobe(x)", [], id="two that mean each other"),
        pytest.param("x = {'a': x2}\nx2 = x['a']\nprobe(x2)", [], id="two that hold each other"),
        pytest.param("f = lambda: nn.ReLU()\nprobe(f())", ["call nn.ReLU()"], id="a lambda"),
        pytest.param("def f(): return nn.ReLU()\nprobe(f())", ["call nn.ReLU()"], id="a function's result"),
        pytest.param("def f():\n    return\nprobe(f())", [], id="a function without a result"),
        pytest.param("def f(): return nn.ReLU(), 3\na, b = f()\nprobe(a)", ["call nn.ReLU()"], id="a part of a result"),
        pytest.param("def f(m): return m\na, b = f(nn.ReLU()), f(nn.Tanh())\nprobe(a)", ["call nn.ReLU()"], id="what a call hands back"),
        pytest.param(
            "def f(m, on): return m.cuda() if on else m\na, b = f(nn.ReLU(), c), f(x, c)\nprobe(a)",
            ["call nn.ReLU()"],
            id="what a call hands back, moved or not",
        ),
        pytest.param("def f(m): return m.cuda()\na, b = f(m=nn.ReLU()), f(nn.Tanh())\nprobe(a)", ["call nn.ReLU()"], id="what a call hands back, moved"),
        pytest.param("def f(m):\n    m = m.to(d)\n    return m\na, b = f(nn.ReLU()), f(nn.Tanh())\nprobe(b)", ["call nn.Tanh()"], id="moved before"),
        pytest.param(
            "def f(m):\n    m = wrap(m)\n    return m\na, b = f(nn.ReLU()), f(nn.Tanh())\nprobe(b)",
            ["call nn.ReLU()", "call nn.Tanh()", "call wrap(m)"],
            id="changed before",
        ),
        pytest.param("def f(k, m): return k, m\n_, a = f(1, nn.ReLU())\n_, b = f(2, nn.Tanh())\nprobe(a)", ["call nn.ReLU()"], id="handed back in a tuple"),
        pytest.param("def f(k, m): return k, m\nfor a in f(1, nn.ReLU()): probe(a)", ["call nn.ReLU()", "const 1"], id="some part of a tuple handed back"),
        pytest.param("def f(m=nn.ReLU()): return m\nprobe(f())", ["call nn.ReLU()"], id="a default handed back"),
        pytest.param("def f(m, *, n=nn.ReLU()): probe(n)\nf(1)", ["call nn.ReLU()"], id="a keyword-only default"),
        pytest.param("def f(m, *, n): probe(n)\nf(1, n=nn.ReLU())", ["call nn.ReLU()"], id="a keyword-only argument"),
        pytest.param("def f(m): return m\nprobe(f(*all))", [], id="star arguments"),
        pytest.param(
            "def f(m): return m\ndef g(m): return m, 1\nh = f if c else g\nprobe(h(nn.ReLU()))",
            ["call nn.ReLU()", "display h(nn.ReLU())"],
            id="one of two functions",
        ),
        pytest.param("m = nn.ReLU()\nprobe(torch.compile(m))", ["call nn.ReLU()"], id="a compiled model"),
        pytest.param("m = nn.ReLU()\nprobe(torch.compile(model=m, mode='max-autotune'))", ["call nn.ReLU()"], id="a compiled model by keyword"),
        pytest.param("probe(torch.compile(mode='max-autotune'))", ["call torch.compile(mode='max-autotune')"], id="a decorator that compiles"),
    ],
)
def test_expressions(text: str, expected: list[str]) -> None:
    assert _means(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("class C:\n    def __init__(self, m):\n        self.m = m\nc = C(nn.ReLU())\nprobe(c.m)", ["call nn.ReLU()"], id="an attribute"),
        pytest.param(
            "class C:\n    def __init__(self):\n        self.a, self.b = nn.ReLU(), 3\n    def f(self):\n        probe(self.a)",
            ["call nn.ReLU()"],
            id="in a tuple",
        ),
        pytest.param("args = parse()\nargs.m = nn.ReLU()\nprobe(args.m)", ["call nn.ReLU()"], id="an attribute of something"),
        pytest.param("class C:\n    def make(self): return nn.ReLU()\nprobe(C().make())", ["call nn.ReLU()"], id="a method's result"),
        pytest.param("class C:\n    @staticmethod\n    def make(m): return m\nprobe(C.make(nn.ReLU()))", ["call nn.ReLU()"], id="a static method"),
        pytest.param("class C:\n    def make(self, m): return m\nprobe(C.make(C(), nn.ReLU()))", ["call nn.ReLU()"], id="a method by its class"),
        pytest.param("class C:\n    def __call__(self, m): return m\nc = C()\nx = c(nn.ReLU())\nprobe(c)", ["object C()"], id="an object that is called"),
        pytest.param(
            "class B:\n    def __init__(self, m): self.m = m\nclass C(B):\n    def __init__(self, m): super().__init__(m)\nprobe(C(nn.ReLU()).m)",
            ["call nn.ReLU()"],
            id="set by the base's init",
        ),
        pytest.param(
            "class B:\n    def __init__(self, m): self.m = m\nclass C(B):\n    def __init__(self, m): super(C, self).__init__(m)\nprobe(C(nn.ReLU()).m)",
            ["call nn.ReLU()"],
            id="set by the base's init, long ago",
        ),
        pytest.param(
            "class C:\n    def f(self):\n        self.a = nn.ReLU()\n        probe(getattr(self, 'a'))",
            ["call getattr(self, 'a')", "call nn.ReLU()"],
            id="getattr",
        ),
        pytest.param(
            "class C:\n    def f(self, n):\n        self.net_a, self.net_b, self.c = nn.ReLU(), 3, 4\n        probe(getattr(self, 'net_' + n))",
            ["call getattr(self, 'net_' + n)", "call nn.ReLU()", "const 3"],
            id="getattr by the beginning of a name",
        ),
        pytest.param(
            "class C:\n    def f(self, n):\n        self.a = 4\n        probe(getattr(self, f'{n}_a'))",
            ["call getattr(self, f'{n}_a')", "const 4"],
            id="getattr by some name",
        ),
        pytest.param(
            "class C:\n    def f(self, n):\n        self.na = 4\n        probe(getattr(self, f'n{n}'))",
            ["call getattr(self, f'n{n}')", "const 4"],
            id="getattr by a formatted name",
        ),
        pytest.param(
            "class C:\n    def f(self, n):\n        self.na = 4\n        probe(getattr(self, 'n%s' % n))",
            ["call getattr(self, 'n%s' % n)", "const 4"],
            id="getattr by a name with %",
        ),
        pytest.param(
            "class C:\n    def f(self, n):\n        self.a = 4\n        probe(getattr(self, 'n{}'.format(n)))",
            ["call getattr(self, 'n{}'.format(n))"],
            id="getattr of another name",
        ),
        pytest.param("probe(getattr())", ["call getattr()"], id="getattr of nothing"),
        pytest.param("class C:\n    def f(self):\n        self.add_module('a', nn.ReLU())\n        probe(self.a)", ["call nn.ReLU()"], id="add_module"),
        pytest.param(
            "class C:\n    def f(self):\n        self.register_module(module=nn.ReLU(), name='a')\n        probe(self.a)",
            ["call nn.ReLU()"],
            id="register_module, named",
        ),
        pytest.param(
            "class C:\n    def f(self):\n        self.add_module('a', module=nn.ReLU())\n        probe(self.a)", ["call nn.ReLU()"], id="add_module, one named"
        ),
        pytest.param("class C:\n    def f(self):\n        setattr(self, 'a', nn.ReLU())\n        probe(self.a)", ["call nn.ReLU()"], id="setattr"),
        pytest.param("class C:\n    def f(self, n):\n        self.add_module(n, nn.ReLU())\n        probe(self.a)", [], id="add_module under some name"),
        pytest.param("class C:\n    def f(self, n):\n        self.add_module('0', nn.ReLU())\n        probe(self.a)", [], id="add_module under a number"),
        pytest.param("class C:\n    def f(self, n):\n        self.add_module('a')\n        probe(self.a)", [], id="add_module of nothing"),
        pytest.param("class C:\n    def f(self, n):\n        self.add_module('a', x=3)\n        probe(self.a)", [], id="another add_module"),
        pytest.param("class C:\n    def f(self, n):\n        self.add_module(**n)\n        probe(self.a)", [], id="add_module with stars"),
        pytest.param("class C:\n    def f(self, n):\n        setattr(n, 'a', nn.ReLU())\n        probe(self.a)", [], id="setattr of another object"),
        pytest.param("class C(Elsewhere):\n    def f(self): probe(super())", [], id="super of a class of another file"),
        pytest.param("probe(super())", [], id="super outside a class"),
        pytest.param(
            "class B:\n    def run(self): return self.make()\nclass C(B):\n    def make(self): return nn.ReLU()\nprobe(C().run())",
            ["call nn.ReLU()"],
            id="a method of the class below",
        ),
        pytest.param(
            "class B:\n    def make(self): return nn.ReLU()\nclass C(B): pass\nclass D(B, C): pass\nprobe(D().make())",
            ["call nn.ReLU()"],
            id="two ways up to one base",
        ),
    ],
)
def test_objects(text: str, expected: list[str]) -> None:
    assert _means(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("m = nn.ReLU()\nprobe(m)\nm = nn.DataParallel(m)", ["call nn.ReLU()"], id="before its wrap"),
        pytest.param("m = nn.ReLU()\nm = nn.DataParallel(m)\nprobe(m)", ["wrapped nn.DataParallel(m)"], id="after its wrap"),
        pytest.param("m = nn.ReLU()\nm = nn.DataParallel(m)\nprobe(m.module)", ["call nn.ReLU()"], id="inside the wrapper"),
        pytest.param("m = nn.ReLU()\nm = nn.DataParallel(module=m)\nprobe(m.module)", ["call nn.ReLU()"], id="inside the wrapper, by keyword"),
        pytest.param(
            "m = nn.ReLU()\nif c:\n    m = nn.DataParallel(m)\nelse:\n    probe(m)",
            ["call nn.ReLU()", "wrapped nn.DataParallel(m)"],
            id="in the other branch: both",
        ),
        pytest.param("m = nn.ReLU()\nif probe(m):\n    m = nn.DataParallel(m)", ["call nn.ReLU()"], id="in the test of the branch"),
        pytest.param("def use(m): probe(m)\nm = nn.ReLU()\nm = nn.DataParallel(m)\nuse(m)", ["wrapped nn.DataParallel(m)"], id="passed on after the wrap"),
        pytest.param(
            "def use(): probe(m)\nm = nn.ReLU()\nm = nn.DataParallel(m)\nuse()",
            ["wrapped nn.DataParallel(m)"],
            id="a global read by a function called after the wrap",
        ),
        pytest.param("def use(): probe(m)\nm = nn.ReLU()\nuse()\nm = nn.DataParallel(m)", ["call nn.ReLU()"], id="called before the wrap"),
        pytest.param(
            "def use(): probe(m)\nm = nn.ReLU()\nuse()\nm = nn.DataParallel(m)\nuse()",
            ["call nn.ReLU()", "wrapped nn.DataParallel(m)"],
            id="called before and after",
        ),
        pytest.param(
            "def use(): use()\n    \ndef use2(): probe(m); use2()\nm = nn.ReLU()\nm = nn.DataParallel(m)",
            ["call nn.ReLU()", "wrapped nn.DataParallel(m)"],
            id="called by itself only",
        ),
        pytest.param(
            "def main():\n    global m\n    m = nn.DataParallel(m)\nm = nn.ReLU()\nprobe(m)\nmain()",
            ["call nn.ReLU()"],
            id="at module level before the function that wraps",
        ),
        pytest.param(
            "def main():\n    global m\n    m = nn.DataParallel(m)\nm = nn.ReLU()\nmain()\nprobe(m)",
            ["wrapped nn.DataParallel(m)"],
            id="at module level after the call of the function that wraps",
        ),
        pytest.param(
            "class T:\n    def __init__(self):\n        self.m = nn.ReLU()\n        self.m = nn.DataParallel(self.m)\n    def f(self): probe(self.m)",
            ["wrapped nn.DataParallel(self.m)"],
            id="in another method than init",
        ),
        pytest.param(
            "class T:\n    def __init__(self):\n        self.m = nn.ReLU()\n        self.f()\n        self.m = nn.DataParallel(self.m)\n    def f(self): probe(self.m)",
            ["call nn.ReLU()"],
            id="in a method that init calls before",
        ),
        pytest.param("DP = nn.DataParallel\nm = nn.ReLU()\nm = DP(m)\nprobe(m)", ["wrapped DP(m)"], id="by another name"),
    ],
)
def test_wraps(text: str, expected: list[str]) -> None:
    """As the source has it, before the migration takes wraps away or adds them."""
    found, node = probed(_HEAD + text)
    assert sorted(_said(v) for v in Values(found.names).eval(node)) == expected


def test_calls_nested_deeply_take_no_time() -> None:
    """What lies deeper than the limit is unknown; it was asked again at every level once, twice as often at each."""
    assert len(_means("probe(" + "(" * 70 + "nn.ReLU" + "())" * 70 + ")")) == 1


def test_a_chain_longer_than_the_passes() -> None:
    """What is not settled then is unknown, not wrong."""
    chain = "\n".join(f"def f{i}(): return f{i + 1}()" for i in range(30))
    found, nodes = all_probed(_HEAD + chain + "\ndef f30(): return nn.ReLU()\nprobe(f29())\nprobe(f0())")
    near, far = (found.values.eval(n) for n in nodes)
    assert [_said(v) for v in near] == ["call nn.ReLU()"]
    assert {_said(v) for v in far} <= {"call nn.ReLU()"}


_HOOKS = """
class Hook:
    def start(self, t):
        probe(t)
    def end(self, t): ...
class T:
    def __init__(self, hooks):
        self.hooks = hooks
    def notify(self, event):
        for hook in self.hooks:
            {}
t = T([Hook()])
t.notify("start")
"""


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        pytest.param("getattr(hook, event)(self)", ["object T"], id="a name that is handed on"),
        pytest.param("getattr(hook, 'start')(self)", ["object T"], id="a literal"),
        pytest.param("getattr(hook, 'end')(self)", [], id="another method"),
        pytest.param("getattr(hook, 'other', None)(self)", [], id="none of its own"),
        pytest.param("getattr(hook, event + '_of')(self)", [], id="a computed name"),
        pytest.param("getattr(event, 'start')(self)", [], id="of something else"),
    ],
)
def test_methods_found_by_name(call: str, meant: list[str]) -> None:
    assert sorted({said.partition("(")[0] for said in _means(_HOOKS.format(call))}) == meant


def test_rows_that_are_made_of_themselves() -> None:
    """``rows = [row[i] for row in rows]``: what a row may be is asked while it is being found."""
    text = "rows = (nn.Linear(1, 1), nn.ReLU())\nrows = tuple(tuple(row[i] for i in order) for row in rows)\nprobe(rows[0][0])"
    assert _means(text) == []


def test_what_two_functions_hand_back() -> None:
    text = "def f(net, x):\n    return net, x\ndef g(net, x):\n    return x, net\na, b = f(nn.Linear(1, 1), 3)\nc, d = g(nn.ReLU(), 4)\nprobe(a)"
    assert _means(text) == ["call nn.Linear(1, 1)"]


def test_what_may_be_too_much_is_unknown() -> None:
    several = "d = {}\n" + "".join(f"d['{i}'] = nn.Linear({i}, 1)\n" for i in range(24))
    assert len(_means(several + "probe(d[k])")) == 24
    held = "def put(x):\n    probe(x)\n"
    assert len(_means(held + "".join(f"put(nn.Linear({i}, 1))\n" for i in range(24)))) == 24
    assert _means(held + "".join(f"put(nn.Linear({i}, 1))\n" for i in range(25))) == []
    own = "class Net(nn.Module): ...\n" + held + "".join("put(Net())\n" for i in range(40))
    assert len(_means(own)) == 40


def test_what_is_called_is_known_later() -> None:
    found, node = probed(_HEAD + "class A:\n    def __init__(self, c):\n        self.c = c(1)\n    def f(self):\n        probe(self.c)\nA(nn.Sigmoid).f()")
    assert [v.qual for v in found.values.eval(node)] == ["torch.nn.Sigmoid"]
