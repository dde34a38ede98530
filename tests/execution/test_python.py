"""Python as people write it: each program is run, and executed on paper.

What the run gives each name must be among what the execution on paper says it may be; the names of
``exact`` must be known there as the run has them.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.execution.paper import constant, executed, held, lines, run, shown, uncovered

#: id: (program, the names that must be constants)
PROGRAMS: dict[str, tuple[str, str]] = {
    "nothing": ("pass", ""),
    "what an object holds, as a dictionary": (
        "class P:\n    def __init__(self, given):\n        self.a = 1\n        self.__dict__.update(given)\n"
        "    def put(self, **more):\n        self.__dict__.update(more)\n        self.__dict__['z'] = 5\n"
        "p = P({'b': 2})\np.put(c=3)\nx, y, z, w, v = p.a, p.b, p.c, p.z, p.__dict__['b']\n",
        "x y z w v",
    ),
    "what an object holds, given as a whole": (
        "class P:\n    def __init__(self, given):\n        self.__dict__ = given\n    def m(self):\n        return self.a\n"
        "def f():\n    p = P({'a': 1, 'b': 2})\n    p.c = 3\n    return p.a, p.b, p.c, p.m()\nx, y, z, w = f()\n",
        "x y z w",
    ),
    "what an object holds, read from a file": (
        "import json\nclass P:\n    def __init__(self, text):\n        self.__dict__.update(json.loads(text))\n"
        "p = P('{\"a\": 3}')\nx = p.a\ny = p.a == 3\n",
        "",
    ),
    "attributes that are items": (
        "class A(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__\n"
        "class B(dict):\n    def __init__(self, *given):\n        super().__init__(*given)\n        self.__dict__ = self\n"
        "class C(dict):\n    def __getattr__(self, k):\n        return self[k]\n"
        "a, c = A({'x': 1}), C({'x': 3})\na.y = 4\nx, y, z, w = a.x, B({'x': 2}).x, c.x, a.y\nn = len(a.keys())\n",
        "w",
    ),
    "aliases": ("a = [1]\nb = a\nb.append(2)\nx = a[1]\nn = len(a)\n", "x n"),
    "re-bound in a callee": (
        "class Net:\n    def to(self, d):\n        self.d = d\n        return self\n"
        "def move(net, d):\n    net = net.to(d)\n    return net\n"
        "net = Net()\nother = move(net, 'gpu')\nx = net.d\ny = other.d\n",
        "x y",
    ),
    "tuple targets": ("a, (b, c) = 1, (2, 3)\n[d, e] = (4, 5)\na, b = b, a\n", "a b c d e"),
    "attribute and item targets": (
        "class C: pass\nc = C()\nc.x, c.y = 1, 2\nd = {}\nd['k'], l = 3, [0, 0]\nl[0], l[-1] = 4, 5\n"
        "x, y, k, p, q = c.x, c.y, d['k'], l[0], l[1]\n",
        "x y k p q",
    ),
    "starred targets": ("a, *b, c = [1, 2, 3, 4]\n*d, e = (1, 2)\nn = len(b)\nx = b[0]\ny = d[0]\n", "a c e n x y"),
    "chained assignment": ("a = b = []\na.append(1)\nx = b[0]\n", "x"),
    "augmented": ("a = 1\na += 2\na *= 3\nl = [1]\nm = l\nl += [2]\nx = m[1]\nd = {'a': 1}\nd['a'] += 1\ny = d['a']\n", "a x y"),
    "helpers that hand back": (
        "def build(n):\n    xs = [n]\n    return xs, {'n': n}\nxs, cfg = build(3)\nx = xs[0]\ny = cfg['n']\n",
        "x y",
    ),
    "early returns": (
        "def f(k):\n    if k == 'a':\n        return 1\n    elif k == 'b':\n        return 2\n    return 3\nx = f('a')\ny = f('b')\nz = f('c')\n",
        "x y z",
    ),
    "list methods": (
        "l = [1, 2]\nl.append(3)\nl.extend([4, 5])\nl.insert(0, 0)\na = l.pop()\nb = l.pop(0)\nc = l[1:3]\nd = c[0]\n"
        "e = l[-1]\nl.reverse()\nf = l[0]\nn = len(l)\nm = l.copy()\nm.clear()\ng = len(m)\nh = l.index(2)\n",
        "a b d e f n g",
    ),
    "list removal": ("l = [3, 1, 2]\nl.sort()\nx = l[0]\nl.remove(1)\nn = len(l)\ny = 2 in l\ndel l[0]\n", ""),
    "list operators": ("a = [1] + [2]\nb = [0] * 3\nc = (1,) + (2,)\nx, y, z = a[1], len(b), c[1]\n", "x y z"),
    "nested lists": ("m = [[1, 2], [3, 4]]\nm[1][0] = 9\nx = m[1][0]\nr = m[0]\nr.append(5)\nn = len(m[0])\n", "x n"),
    "slices that are set": (
        "l = [1, 2, 3]\nl[:] = (7, 8)\na, b, n = l[0], l[1], len(l)\n"
        "m = [1, 2, 3]\nm[1:] = [9]\nc = m[0]\nk = len(m)\n"
        "o = [4]\no[:] = [v + 1 for v in o] * 2\nd = o[-1]\n",
        "a b n",
    ),
    "slices": ("l = [1, 2, 3, 4]\na = l[:2]\nb = l[-2:]\nc = l[::2]\nd = (1, 2, 3)[1:]\nx, y, z, w = a[1], b[0], c[1], d[0]\n", "x y z w"),
    "dict methods": (
        "d = {'a': 1}\nd['b'] = 2\nx = d.get('a')\ny = d.get('z', 7)\nz = d.setdefault('c', 3)\nw = d.pop('b')\nd.update({'e': 5}, f=6)\n"
        "v = d['e'] + d['f']\nk = list(d)\nn = len(d)\nh = 'a' in d\ng = 'b' in d\n",
        "x y z w v n h g",
    ),
    "dict loops": ("d = {'a': 1, 'b': 2}\ns = 0\nfor k, v in d.items():\n    s += v\nt = 0\nfor v in d.values():\n    t += v\nu = ''\nfor k in d:\n    u += k\n", "s t u"),
    "dict spread": ("a = {'x': 1}\nb = {**a, 'y': 2}\nc = dict(a, z=3)\nd = a | {'x': 9}\np, q, r = b['x'], c['z'], d['x']\n", "p q r"),
    "dict removal": ("d = {'a': 1, 'b': 2}\ndel d['a']\nx = d.get('a', 0)\nn = len(d)\nk, v = d.popitem()\n", "x n"),
    "sets": ("s = {1, 2}\ns.add(2)\ns.add(3)\nx = 3 in s\nn = len(s)\nt = s | {4}\nu = s.union([5])\ny = 9 in s\nfor e in s:\n    last = e\n", "x y n"),
    "tuples repeated": (
        "t = (1, 2) * 2\nu = 2 * (None,) + (3,)\nx = 1 if t == (1, 2, 1, 2) else 2\ny = 1 if isinstance(t, tuple) else 2\nd = {t: 4}\nz = d[1, 2, 1, 2]\nw = u[2]\n"
        "l = [5] * 2\nl[0] = 6\nv = l[1]\ne = len((7,) * 0)\n", "y w v e",
    ),
    "tuples": ("t = (1, 'a', None)\nx, y = t[0], t[-1]\nn = len(t)\nz = t.index('a')\n", "x y n"),
    "defaultdict": (
        "from collections import defaultdict\nd = defaultdict(list)\nd['a'].append(1)\nd['a'].append(2)\nx = len(d['a'])\nc = defaultdict(int)\n"
        "for w in ['p', 'q', 'p']:\n    c[w] += 1\ny = c['p']\n",
        "x",
    ),
    "deque": ("from collections import deque\nq = deque()\nq.append(1)\nq.appendleft(0)\nx = q.popleft()\ny = q.pop()\nr = deque([1, 2], maxlen=2)\n", "x y"),
    "OrderedDict": ("from collections import OrderedDict\nd = OrderedDict()\nd['a'] = 1\nd['b'] = 2\nks = []\nfor k in d:\n    ks.append(k)\nx = ks[1]\n", "x"),
    "Counter": ("from collections import Counter\nc = Counter(['a', 'b', 'a'])\nx = c['a']\n", ""),
    "dataclass": (
        "from dataclasses import dataclass, field\n@dataclass\nclass C:\n    a: int\n    b: str = 'x'\n    c: list = field(default_factory=list)\n    def __post_init__(self):\n        self.d = self.a + 1\n"
        "c = C(1)\ne = C(a=2, b='y')\nc.c.append(3)\nx, y, z, w = c.b, e.b, c.d, c.c[0]\nn = len(e.c)\n",
        "x y z w n",
    ),
    "dataclass that derives": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    a: int = 1\n@dataclass(eq=False)\nclass B(A):\n    b: int = 2\no = B(3)\nx, y = o.a, o.b\n",
        "x y",
    ),
    "namedtuple": (
        "from collections import namedtuple\nfrom typing import NamedTuple\nP = namedtuple('P', 'x y')\np = P(1, y=2)\na, b = p\nc, d = p.x, p[1]\n"
        "class Q(NamedTuple):\n    u: int\n    v: int = 5\nq = Q(4)\ne, f = q.u, q.v\n"
        "g, h = q\ni, j = q[1], q[-2]\nk = [n for n in q][1]\n",
        "a b c d e f g h i j k",
    ),
    "argparse": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\np.add_argument('--no-cuda', action='store_true')\n"
        "args = p.parse_args([])\nargs.extra = 5\nx = args.extra\nlr = args.lr\nc = args.no_cuda\n",
        "x",
    ),
    "Namespace": ("from types import SimpleNamespace\ns = SimpleNamespace(a=1, b=[2])\ns.c = 3\nx, y, z = s.a, s.b[0], s.c\n", "x y z"),
    "config dicts": ("cfg = {'train': {'lr': 0.1, 'steps': [1, 2]}, 'name': 'n'}\nt = cfg['train']\nt['lr'] = 0.2\nx = cfg['train']['lr']\ny = cfg['train']['steps'][-1]\nz = cfg.get('train').get('lr')\n", "x y z"),
    "super": (
        "class A:\n    def __init__(self, n):\n        self.n = n\n    def f(self):\n        return self.g() + 1\n    def g(self):\n        return 10\n"
        "class B(A):\n    def __init__(self, n):\n        super().__init__(n + 1)\n        self.m = n\n    def g(self):\n        return super().g() + self.n\n"
        "class C(B):\n    def g(self):\n        return super(C, self).g() * 2\nb, c = B(1), C(1)\nx, y, z = b.f(), c.f(), c.m\n",
        "x y z",
    ),
    "diamond": (
        "class A:\n    def f(self): return ['A']\nclass B(A):\n    def f(self): return ['B'] + super().f()\nclass C(A):\n    def f(self): return ['C'] + super().f()\n"
        "class D(B, C):\n    def f(self): return ['D'] + super().f()\nl = D().f()\nx, y, z, w = l\n",
        "x y z w",
    ),
    "base called by name": ("class A:\n    def __init__(self): self.a = 1\nclass B(A):\n    def __init__(self):\n        A.__init__(self)\n        self.b = self.a\nx = B().b\n", "x"),
    "properties and setters": (
        "class C:\n    def __init__(self): self._x = 1\n    @property\n    def x(self): return self._x\n    @x.setter\n    def x(self, v): self._x = v * 2\nc = C()\na = c.x\nc.x = 5\nb = c.x\nc.x += 1\nd = c.x\n",
        "a b d",
    ),
    "class and static methods": (
        "class C:\n    k = 3\n    @classmethod\n    def make(cls, n):\n        o = cls()\n        o.n = n + cls.k\n        return o\n    @staticmethod\n    def twice(n): return 2 * n\nx = C.make(1).n\ny = C.twice(4)\nz = C().twice(5)\n",
        "x y z",
    ),
    "call": ("class F:\n    def __init__(self, k): self.k = k\n    def __call__(self, x): return x + self.k\nf = F(2)\nx = f(3)\n", "x"),
    "getitem": ("class D:\n    def __getitem__(self, i): return i * 2\n    def __len__(self): return 3\n    def __setitem__(self, k, v): self.last = v\nd = D()\nx = d[4]\nn = len(d)\nd['a'] = 7\ny = d.last\n", "x n y"),
    "iter and next": (
        "class It:\n    def __init__(self, n): self.n, self.i = n, 0\n    def __iter__(self): return self\n    def __next__(self):\n        if self.i >= self.n: raise StopIteration\n        self.i += 1\n        return self.i\n"
        "s = 0\nfor v in It(3):\n    s += v\n",
        "",
    ),
    "iter as a generator": ("class It:\n    def __iter__(self):\n        yield 'a'\n        yield 'b'\ns = ''\nfor v in It():\n    s += v\n", "s"),
    "getattr of a class": ("class C:\n    def __init__(self): self.inner = {'a': 1}\n    def __getattr__(self, name): return self.inner[name]\nx = C().a\n", "x"),
    "class attributes": ("class C:\n    n = 0\n    items = []\n    def __init__(self):\n        C.n += 1\n        self.items.append(1)\na, b = C(), C()\nx, y = C.n, len(a.items)\na.n = 9\nz = b.n\n", "x y z"),
    "operators of a class": ("class V:\n    def __init__(self, x): self.x = x\n    def __add__(self, o): return V(self.x + o.x)\n    def __radd__(self, o): return V(o + self.x)\n    def __eq__(self, o): return True\nx = (V(1) + V(2)).x\ny = (1 + V(5)).x\n", "x y"),
    "closures": ("def counter():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n        return n\n    return step\nc = counter()\na = c()\nb = c()\n", "a b"),
    "two closures of one function": ("def adder(k):\n    def add(x): return x + k\n    return add\nf, g = adder(1), adder(10)\nx, y = f(1), g(1)\n", "x y"),
    "closures made in a loop": ("def adder(k):\n    def add(x): return x + k\n    return add\nfs = []\nfor k in (1, 10):\n    fs.append(adder(k))\nx, y = fs[0](1), fs[1](1)\n", ""),
    "closures in a comprehension": ("fs = [lambda: i for i in (1, 2)]\nx = fs[0]()\ngs = [(lambda k: lambda: k)(i) for i in (1, 2)]\ny = gs[0]()\n", ""),
    "globals": ("n = 0\ndef f():\n    global n, made\n    n += 1\n    made = 'yes'\nf()\nf()\n", "n made"),
    "lambdas": ("f = lambda a, b=2, *c, **d: a + b\nx = f(1)\ny = f(1, b=5)\nkey = {'sum': lambda v: v + 1}\nz = key['sum'](3)\n", "x y z"),
    "partial": ("from functools import partial\ndef f(a, b, c=0): return a * 100 + b * 10 + c\ng = partial(f, 1, c=3)\nx = g(2)\ny = partial(g, 5)()\n", "x y"),
    "decorators": (
        "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def wrapper(*args, **kw):\n        return f(*args, **kw) * 2\n    return wrapper\n"
        "def times(k):\n    def deco(f):\n        def wrapper(*a):\n            return f(*a) * k\n        return wrapper\n    return deco\n"
        "@twice\ndef f(x): return x + 1\n@times(3)\n@twice\ndef g(x): return x\n@times(k=2)\ndef h(): return 5\nx, y, z = f(1), g(1), h()\n",
        "x y z",
    ),
    "decorated methods": (
        "def loud(f):\n    def wrapper(self, *a):\n        self.calls += 1\n        return f(self, *a)\n    return wrapper\n"
        "class C:\n    calls = 0\n    @loud\n    def f(self, x): return x\nc = C()\nx = c.f(3)\ny = c.f(4)\nn = c.calls\n",
        "x y n",
    ),
    "decorator that is a class": ("class Count:\n    def __init__(self, f): self.f, self.n = f, 0\n    def __call__(self, *a):\n        self.n += 1\n        return self.f(*a)\n@Count\ndef f(x): return x\na = f(1)\nb = f(2)\nn = f.n\n", "a b n"),
    "context managers": (
        "class M:\n    def __enter__(self):\n        log.append('in')\n        return self\n    def __exit__(self, *a):\n        log.append('out')\nlog = []\nwith M() as m:\n    log.append('body')\nx = ' '.join(log)\nn = len(log)\na, b, c = log\n",
        "n a b c",
    ),
    "context manager and return": (
        "log = []\nclass M:\n    def __enter__(self): return self\n    def __exit__(self, *a): log.append('out')\ndef f():\n    with M():\n        return 1\nx = f()\nn = len(log)\nfor i in (1, 2):\n    with M():\n        continue\nm = len(log)\n",
        "x n m",
    ),
    "context manager as a generator": (
        "from contextlib import contextmanager\nlog = []\n@contextmanager\ndef man(k):\n    log.append(k)\n    try:\n        yield k + 1\n    finally:\n        log.append('end')\nwith man(1) as v:\n    log.append(v)\na, b, c = log\n"
        "def f():\n    with man(5) as w:\n        return w\nx = f()\nn = len(log)\n",
        "a b c x n",
    ),
    "two managers": ("class M:\n    def __init__(self, k): self.k = k\n    def __enter__(self): return self.k\n    def __exit__(self, *a): return None\nwith M(1) as a, M(a + 1) as b:\n    c = a + b\n", "a b c"),
    "manager that swallows": ("class M:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\nx = 1\nwith M():\n    x = 2\n    raise ValueError\n    x = 3\n", ""),
    "generators": ("def gen(n):\n    yield n\n    yield n + 1\ns = 0\nfor v in gen(1):\n    s += v\nl = list(gen(5))\n", "s"),
    "generator with a loop": ("def gen(xs):\n    for x in xs:\n        yield x * 2\ns = 0\nfor v in gen([1, 2, 3]):\n    s += v\n", "s"),
    "generator and break": ("def gen():\n    yield 1\n    yield 2\n    yield 3\nfor v in gen():\n    if v == 2:\n        break\nelse:\n    v = 0\n", "v"),
    "yield from": ("def inner():\n    yield 1\n    yield 2\n    return 'r'\ndef outer():\n    global got\n    got = yield from inner()\n    yield from [3, 4]\ns = 0\nfor v in outer():\n    s += v\n", "s got"),
    "yield from and break": ("def inner():\n    yield 1\n    yield 2\ndef outer():\n    yield from inner()\n    yield 3\nlast = 0\nfor v in outer():\n    last = v\n    if v == 2:\n        break\n", "last"),
    "generator consumed twice": ("def gen():\n    yield 1\n    yield 2\ng = gen()\na = b = 0\nfor v in g:\n    a += v\nfor v in g:\n    b += v\n", "a b"),
    "next": ("def gen():\n    n = 0\n    while True:\n        n += 1\n        yield n\ng = gen()\na = next(g)\nb = next(g)\nc = next(iter([7]), None)\n", ""),
    "comprehensions": ("a = [x * 2 for x in (1, 2, 3)]\nb = {k: v for k, v in zip('ab', (1, 2))}\nc = {x for x in [1]}\nd = [x for x in (1, 2, 3, 4) if x % 2]\np, q, r, n = a[2], b['b'], d[1], len(d)\n", "p q r n"),
    "nested comprehensions": ("m = [[i * j for j in (1, 2)] for i in (1, 2, 3)]\nf = [x for row in m for x in row if x > 1]\nx, n = m[2][1], len(f)\n", ""),
    "comprehension and its scope": ("x = [1, 2]\ny = [x for x in x]\na, b = y\nn = 5\nz = [n for _ in (1,)]\nc = z[0]\nw = x[0]\n", "a b c w"),
    "walrus in a comprehension": ("y = [last := v for v in (1, 2)]\nif (n := len(y)) > 1:\n    m = n\n", "last n m"),
    "generator expressions": ("s = sum(x for x in (1, 2))\nl = list(x for x in (3, 4))\nt = tuple(x + 1 for x in [1])\na, b = l[0], t[0]\nw = any(x > 1 for x in (1, 2))\n", "a b"),
    "comprehension with effects": ("log = []\ndef f(x):\n    log.append(x)\n    return x > 1\ny = [x for x in (1, 2, 3) if f(x)]\nn = len(log)\n", "n"),
    "star-arguments": ("def f(a, *b, c=0, **d): return (a, b, c, d)\nx = f(1, 2, 3, c=4, e=5)\np, q, r, s = x\nt = q[1]\nu = s['e']\nargs = [7, 8]\nkw = {'c': 9}\nv = f(*args, **kw)\nw = v[1][0]\ny = v[2]\n", "p r t u w y"),
    "keyword-only and positional-only": ("def f(a, /, b, *, c=3): return a * 100 + b * 10 + c\nx = f(1, 2)\ny = f(1, b=2, c=4)\n", "x y"),
    "defaults are kept": ("def f(x, acc=[]):\n    acc.append(x)\n    return len(acc)\na = f(1)\nb = f(2)\n", "a b"),
    "callable": (
        "class C:\n    def __call__(self): return 1\ndef f(): return 2\ndef g(v):\n    return v() if callable(v) else v\n"
        "x = g(f)\ny = g(lambda: 3)\nz = g(4)\nw = g('b')\nu = g(C())\nt = callable([1])\ns = callable('a'.upper)\nr = callable(C)\nq = callable((1, f))\n",
        "x y z w u t r q",
    ),
    "getattr and setattr": ("class C: pass\nc = C()\nsetattr(c, 'k', 3)\nx = getattr(c, 'k')\ny = getattr(c, 'missing', 7)\nfor n in ('p', 'q'):\n    setattr(c, n, n)\nz = c.q\nh = hasattr(c, 'k')\n", "x z h"),
    "registries": (
        "MODELS = {}\ndef register(name):\n    def deco(cls):\n        MODELS[name] = cls\n        return cls\n    return deco\n@register('a')\nclass A:\n    def f(self): return 'fa'\n@register('b')\nclass B:\n    def f(self): return 'fb'\nx = MODELS['b']().f()\nn = len(MODELS)\n",
        "x n",
    ),
    "conditional imports": ("try:\n    import not_there_at_all\n    have = True\nexcept ImportError:\n    have = False\ntry:\n    import json\nexcept ImportError:\n    json = None\nx = have\n", ""),
    "early exits in branches": ("def f(x):\n    if x:\n        if x > 1:\n            return 'big'\n        return 'one'\n    return 'none'\na, b, c = f(0), f(1), f(5)\n", "a b c"),
    "continue and break": ("s = []\nfor i in (0, 1, 2, 3, 4):\n    if i == 1:\n        continue\n    if i == 3:\n        break\n    s.append(i)\na, b = s\nn = len(s)\n", "a b n i"),
    "for and else": ("for i in (1, 2):\n    if i == 5:\n        break\nelse:\n    x = 'no'\nfor i in (1, 2):\n    if i == 2:\n        y = 'yes'\n        break\nelse:\n    y = 'no'\n", "x y"),
    "while": ("i = 0\nwhile i < 10:\n    i += 1\nj = 0\nwhile True:\n    j += 1\n    if j == 3:\n        break\nelse:\n    j = -1\n", ""),
    "while with a walrus": ("n = -1\nwhile (n := n + 1) < 3:\n    last = n\nafter = 'here'\n", "after"),
    "while and else": ("i = 2\nwhile i > 5:\n    i -= 1\nelse:\n    x = 'else'\n", "i x"),
    "long loops": ("s = 0\nl = []\nd = {}\nfor i in range(50):\n    s += i\n    l.append(i)\n    d[i] = s\nn = len(l)\nlast = l[-1]\nx = d[49]\n", ""),
    "carried over four turns": ("a = b = c = d = e = 0\nfor i in range(100):\n    e = d\n    d = c\n    c = b\n    b = a\n    a = 'late'\n", ""),
    "try and except": (
        "def f(x):\n    try:\n        y = 1\n        z = {'a': 1}[x]\n        y = 2\n    except KeyError:\n        return 'missing', y\n    else:\n        return 'found', y\n    finally:\n        log.append(x)\nlog = []\na = f('a')\nb = f('b')\nn = len(log)\n",
        "n",
    ),
    "finally on every way out": (
        "log = []\ndef f(k):\n    for i in (1, 2):\n        try:\n            if k == 'break':\n                break\n            if k == 'continue':\n                continue\n            if k == 'return':\n                return i\n        finally:\n            log.append(k)\n    return 0\na = f('break')\nb = f('continue')\nc = f('return')\nd = f('none')\nn = len(log)\n",
        "a b c d n",
    ),
    "finally that returns": ("def f():\n    try:\n        return 1\n    finally:\n        return 2\nx = f()\n", "x"),
    "finally re-binds": ("def f():\n    x = 1\n    try:\n        return x\n    finally:\n        x = 2\na = f()\ng = 0\ndef h():\n    global g\n    try:\n        g = 1\n        return g\n    finally:\n        g = 5\nb = h()\n", "a b g"),
    "handler after any write": ("x = 1\ntry:\n    x = 2\n    int('z')\n    x = 3\nexcept ValueError as e:\n    y = x\n", ""),
    "raised and caught": ("class Stop(Exception):\n    def __init__(self, v): self.v = v\ndef f():\n    raise Stop(3)\ntry:\n    f()\n    x = 1\nexcept Stop as e:\n    x = 2\n", ""),
    "nested try": ("def f():\n    try:\n        try:\n            raise KeyError\n        finally:\n            log.append(1)\n    except KeyError:\n        log.append(2)\n        return 'caught'\nlog = []\nx = f()\nn = len(log)\n", ""),
    "match": (
        "def f(v):\n    match v:\n        case 'train' | 'fit':\n            return 1\n        case {'mode': m}:\n            return m\n        case [a, b, *rest]:\n            return a + b\n        case int(n) if n > 5:\n            return n\n        case None:\n            return 'none'\n        case _:\n            return 0\n"
        "a, b, c, d, e, g = f('fit'), f({'mode': 'x'}), f([1, 2, 3]), f(7), f(None), f('zzz')\n",
        "a g",
    ),
    "del": ("x = 1\ndel x\ny = 2\nclass C: pass\nc = C()\nc.a = 1\ndel c.a\n", "y"),
    "maybe unbound": ("import os\nif os.environ.get('A') == '1':\n    x = 1\nelse:\n    z = 1\ntry:\n    y = x\nexcept NameError:\n    y = 0\n", ""),
    "recursion": ("def fact(n):\n    if n <= 1:\n        return 1\n    return n * fact(n - 1)\nx = fact(1)\ny = fact(2)\nz = fact(6)\n", "x"),
    "recursion with effects": ("n = 0\nseen = []\ndef walk(k):\n    global n\n    n += 1\n    seen.append(k)\n    if k > 0:\n        walk(k - 1)\nwalk(9)\nm = len(seen)\n", ""),
    "mutual recursion": ("def even(n):\n    return True if n == 0 else odd(n - 1)\ndef odd(n):\n    return False if n == 0 else even(n - 1)\nx = even(7)\ny = odd(7)\n", ""),
    "objects within each other": (
        "class B:\n    def __init__(self, inner=None): self.inner = inner\n    def run(self, x):\n        if self.inner is None: return x\n"
        "        return self.inner.run(x)\na = B()\nb = B(a)\nc = B(b)\nd = B(c)\nx = d.run(7)\n"
        "for i in range(3):\n    d = B(d)\ny = B(B(d)).run(8)\n",
        "x y",
    ),
    "recursion over a tree": ("class N:\n    def __init__(self, v, kids=()): self.v, self.kids = v, kids\n    def total(self): return self.v + sum([k.total() for k in self.kids])\nt = N(1, (N(2), N(3, (N(4),))))\nx = t.total()\n", ""),
    "k-fold": (
        "class Net:\n    def __init__(self, k): self.k, self.steps = k, 0\n    def step(self): self.steps += 1\nresults = []\nnets = []\nfor fold in range(5):\n    net = Net(fold)\n    for e in range(3):\n        net.step()\n    results.append(net.steps)\n    nets.append(net)\nfirst = nets[0].k\nlast = nets[-1].k\n",
        "",
    ),
    "objects of one place": ("class L:\n    def __init__(self, n): self.n = n\nls = [L(n) for n in (1, 2, 3)]\nx = ls[0].n\ny = ls[2].n\nms = []\nfor n in (4, 5):\n    ms.append(L(n))\nz = ms[0].n\n", ""),
    "lists of one place": ("rows = []\nfor i in (1, 2):\n    row = []\n    for j in (1, 2, 3)[:i]:\n        row.append(i * j)\n    rows.append(row)\na = len(rows[0])\nb = rows[0][0]\n", ""),
    "conditional expression": ("import os\nx = 1 if os.environ.get('A') == '1' else 2\ny = 'a' if x else 'b'\n", ""),
    "and, or": ("log = []\ndef f(v):\n    log.append(v)\n    return v\na = f(0) and f(1)\nb = f(0) or f(2)\nc = f(3) or f(4)\nn = len(log)\nd = None or 'default'\n", "a b c n d"),
    "and of what is not known": ("import os\nlog = []\ndef f():\n    log.append(1)\n    return True\nx = os.environ.get('A') == '1' and f()\nn = len(log)\n", ""),
    "chained comparison": ("x = 1 < 2 < 3\ny = 1 < 5 < 3\nz = None is None\nw = 'a' != 'b'\n", "z w"),
    "strings": ("n = 3\na = f'epoch {n}'\nb = 'x %d' % n\nc = '{}-{}'.format(1, 'z')\nd = 'abc'.upper()\ne = 'a,b'.split(',')\nf = a + '!'\ng = f'{n:03d}'\n", "a f"),
    "numbers": ("a = 7 // 2\nb = 7 % 4\nc = 2 ** 10\nd = -3\ne = int('5')\nf = float(2)\ng = round(2.6)\nh = max(1, 2)\ni = 10 ** 40\nj = 1 / 2\nk = abs(-1)\n", "a b c d e f j"),
    "class in a function": ("def make(k):\n    class C:\n        size = k\n        def f(self): return k + self.size\n    return C\nA, B = make(1), make(10)\nx, y = A().f(), B().f()\n", "x y"),
    "method kept": ("class C:\n    def __init__(self): self.n = 0\n    def inc(self):\n        self.n += 1\n        return self.n\nc = C()\nf = c.inc\na = f()\nb = c.inc()\nhooks = {'end': c.inc}\nd = hooks['end']()\n", "a b d"),
    "callbacks": ("class T:\n    def __init__(self): self.hooks = []\n    def on(self, f):\n        self.hooks.append(f)\n        return f\n    def fire(self):\n        for h in self.hooks:\n            h(self)\nt = T()\n@t.on\ndef first(x): x.a = 1\n@t.on\ndef second(x): x.b = x.a + 1\nt.fire()\nx = t.b\n", "x"),
    "enumerate, zip, map": ("s = 0\nfor i, v in enumerate([5, 6]):\n    s += i * v\nt = 0\nfor a, b in zip([1, 2], (3, 4)):\n    t += a * b\nm = list(map(lambda v: v + 1, [1, 2]))\nx = m[1]\nr = [v for v in reversed([1, 2])]\ny = r[0]\n", "s t x y"),
    "the first turn": (
        "import os\nn = int(os.environ.get('A', '3')) + 20\nfor i in range(n):\n"
        "    if i == 0:\n        first = 'a'\n    else:\n        first = first + ''\n"
        "    last = i\nempty = [k for k in range(n) if k < 0]\nlast = 0\n",
        "last",
    ),
    "a loop that has a turn": (
        "for i in range(50):\n    kind = 'batch'\n"
        "for i in range(3, 90):\n    other = 'x'\n"
        "done = False\nwhile not done:\n    step = 'made'\n    done = True\n",
        "kind other step done",
    ),
    "a loop that may have none": (
        "import os\nkind = 'none'\nfor i in range(int(os.environ.get('A', '0'))):\n"
        "    kind = 'some'\nelse:\n    end = kind\n",
        "",
    ),
    "break in the first turn": (
        "import os\nout = []\nfor i, v in enumerate(range(40)):\n    out.append(i)\n"
        "    if os.environ.get('A') != '1' or i > 3:\n        break\nn = len(out)\n",
        "",
    ),
    "a first turn without an end": (
        "n = 0\nfor i in range(30):\n    n = 1\n    if i == 0:\n        break\n    n = 2\n",
        "n",
    ),
    "enumerate from another number": (
        "a = 0\nfor i, v in enumerate([5, 6], 1):\n    a += i * v\n"
        "b = [i for i, _ in enumerate(range(40), start=7)][0]\n"
        "for c, _ in enumerate(range(40), 3):\n    break\n"
        "it = enumerate(range(40))\nnext(it)\nfor d, _ in it:\n    break\n",
        "a c",
    ),
    "enumerations": ("from enum import Enum\nclass Mode(Enum):\n    TRAIN = 1\n    TEST = 'b'\nx = Mode.TRAIN.value\nm = Mode.TEST\ny = m is Mode.TEST\nz = m.name\n", ""),
    "abstract classes": ("from abc import ABC, abstractmethod\nclass A(ABC):\n    @abstractmethod\n    def f(self): ...\n    def g(self): return self.f() + 1\nclass B(A):\n    def f(self): return 2\nx = B().g()\n", "x"),
    "slots and object": ("class A(object):\n    __slots__ = ('x',)\n    def __init__(self): self.x = 1\n    def __getattr__(self, n): return 'got ' + n\na = A()\nx = a.x\ny = a.other\n", "x y"),
    "async": ("import asyncio\nasync def g(): return 1\nasync def f(): return await g() + 1\nx = asyncio.run(f())\n", ""),
    "memo of what is global": ("cfg = {'k': 1}\ndef get(): return cfg['k']\na = get()\ncfg['k'] = 2\nb = get()\ncfg = {'k': 3}\nc = get()\n", "a b c"),
    "memo of a growing dictionary": ("d = {}\ndef total():\n    s = 0\n    for k in d:\n        s += d[k]\n    return s\na = total()\nd['x'] = 1\nb = total()\nd['y'] = 2\nc = total()\n", "a b c"),
    "memo of what a branch leaves": ("import os\ng = 1\ndef f():\n    global g\n    if os.environ.get('A') == '1':\n        g = 5\nf()\na = g\ng = 2\nf()\nb = g\n", ""),
    "identical texts": (
        "a, b, c, d = 'GlaS', 'other', 'GlaS', 1\nif a is b:\n    x = 1\nelif a is c:\n    x = 2\nelse:\n    x = 3\ny = a is not c\nz = d is True\n",
        "x y z",
    ),
    "products": (
        "import itertools\nfrom itertools import product\na = [(i, j) for i, j in product(range(2), repeat=2)]\nb = a[3][1]\n"
        "c = [x + y for x, y in itertools.combinations([1, 2, 3], 2)]\ne = len(list(itertools.permutations([1, 2]))[0])\nd = [p for p, q in product('ab', [1, 2])][1]\n",
        "",
    ),
    "arrangements": (
        "import itertools\nimport os\nn = int(os.environ.get('A', '2'))\n"
        "for i, (p, q) in enumerate(itertools.permutations(['u', 'v'])):\n    s = p if i == 0 else s + q\n"
        "for t in itertools.product((1, 2), repeat=2):\n    last = t\n"
        "for c in itertools.combinations('xyz', r=2):\n    pair = c[0]\n"
        "for o in itertools.permutations('xyz', n):\n    found = len(o)\n"
        "for e in itertools.permutations('xyz', None):\n    whole = len(e)\n"
        "once = itertools.permutations([1, 2])\na = list(once)\nb = len(list(once))\n",
        "",
    ),
    "enumerate by name": ("x = [i for i, v in enumerate(iterable=['a', 'b'], start=1)]\nn = x[1]\n", "n"),
    "complement": ("a = ~5\nb = ~0\n", "a b"),
    "format with a tuple": ("a = '%s_%d' % ('run', 3)\nb = 'x%s' % (1,)\nc = '%d %%' % 3\n", "a b"),
    "methods of sets": ("a = {1, 2}.intersection({2})\nb = 1 in a\nc = len({1, 2}.difference({2}))\nd = len({1, 2}.symmetric_difference({2, 3}))\ne = {1, 2}\ne.difference_update({1})\nf = len(e)\n", ""),
    "order of bases": (
        "class B:\n    def f(self): return 1\nclass M(B): pass\nclass N(B):\n    def f(self): return 2\nclass C(M, N, B): pass\nx = C().f()\n", "x"
    ),
    "the class of a value": (
        "v = (1,)\nx = 1 if type(v) == tuple else 2\ny = 1 if type(v) is list else 2\nz = 1 if type([1]) in (list, tuple) else 2\nu = 1 if type({}) not in (list, tuple) else 2\n"
        "w = 1 if type(True) == int else 2\nt = 1 if type(v) != tuple else 2\nclass T(tuple): pass\ns = 1 if type(T((1,))) == tuple else 2\n"
        "from collections import OrderedDict\nr = 1 if type(OrderedDict()) == dict else 2\n",
        "x y z u w t",
    ),
    "the class of either": (
        "import os\nv = (1,) if 'A' in os.environ else [2, 3]\nif type(v) == tuple:\n    x = len(v)\nelse:\n    x = v[1]\ny = v[-1] if not type(v) is list else 5\n", ""
    ),
    "truth of an object": (
        "class B:\n    def __bool__(self): return False\nclass L:\n    def __len__(self): return 0\nx = 1 if B() else 2\ny = 1 if L() else 2\n", ""
    ),
    "a long chain of variables": ("c0 = 0; c1 = 0; c2 = 0; c3 = 0; c4 = 0; c5 = 0; c6 = 0; c7 = 0; c8 = 0; c9 = 0; c10 = 0; c11 = 0; c12 = 0; c13 = 0\nfor i in range(100):\n    c0 = c1; c1 = c2; c2 = c3; c3 = c4; c4 = c5; c5 = c6; c6 = c7; c7 = c8; c8 = c9; c9 = c10; c10 = c11; c11 = c12; c12 = c13; c13 = 7\n", ""),
    "counts": (
        "from collections import Counter\nc = Counter('aab')\nk = c.most_common(1)[0][0]\nn = c.most_common()[0][1]\nc.update('bb')\nm = c['b']\n"
        "s = sorted(c.elements())[0]\nt = c.total()\nc.subtract('a')\nu = c['a']\n",
        "",
    ),
    "a dictionary filled in a loop and copied": (
        "held = []\nfor v in ('a', 'b'):\n    d = {'v': v}\n    d.update(w=v)\n    held.append(d.copy())\n    held.append(dict(d, x=v))\nx = held[0]['v']\ny = held[1]['x']\nz = held[0]['w']\n",
        "",
    ),
    "memo of what is made": ("class C:\n    def __init__(self): self.v = []\ndef make(): return C()\na = [make() for _ in (1, 2)]\na[0].v.append(1)\nn = len(a[1].v)\nm = len(a[0].v)\n", ""),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_run_gives_what_is_said_on_paper(name: str) -> None:
    text, exact = PROGRAMS[name]
    ex = executed(text)
    for settings in ({}, {"A": "1"}):
        scope = run(text, settings)
        assert not uncovered(ex, scope)
    for word in exact.split():
        assert len(held(ex, word)) == 1, f"{word}: {shown(ex, held(ex, word))}"
        assert constant(ex, word) == scope[word] and type(constant(ex, word)) is type(scope[word])
    assert ex.trace.ended is None


def test_what_a_name_may_be_where_it_may_have_no_value() -> None:
    ex = executed(dedent(PROGRAMS["maybe unbound"][0]))
    assert lines(ex, "maybe unbound") == [7]


def test_a_name_without_a_value() -> None:
    ex = executed("x = 1\ndel x\nprint(x)\n")
    assert lines(ex, "unbound") == [3]


@pytest.mark.parametrize(("names", "settles"), [(8, True), (60, False)])
def test_a_loop_that_does_not_settle_ends_what_is_understood(names: int, settles: bool) -> None:
    begin = "; ".join(f"c{i} = 0" for i in range(names))
    steps = "; ".join(f"c{i} = c{i + 1}" for i in range(names - 1))
    ex = executed(f"{begin}\nfor i in range(100):\n    {steps}; c{names - 1} = 7\n")
    assert (ex.trace.ended is None) is settles
