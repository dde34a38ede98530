"""Programs in which ranks part, or hold one tensor under several names, run as both ranks: nothing
that is said of them on paper is otherwise when they run.
"""

from __future__ import annotations

import pytest

from tests.execution.paper import constant, executed, parted, placed
from tests.execution.random_ranks import CHOICES
from tests.execution.two_ranks import judged

_HEAD = "import copy\nimport functools\nimport itertools\nimport os\nimport dpmigrate_runtime as ddp\nimport torch\nrank = ddp.rank()\nn = int(os.environ['N'])\n"

_MATCH = {
    "a pattern that fails binds nothing": "class B:\n    def __init__(self, v, w):\n        self.v, self.w = v, w\nc = 7\nmatch B(rank, 1):\n    case B(w=c, v=0):\n        pass\n",
    "a tuple": "y = 0\nmatch (rank, 1):\n    case (0, 1):\n        ddp.barrier()\n        y = 1\n",
    "an attribute": "class B:\n    def __init__(self, v):\n        self.v = v\ny = 0\nmatch B(rank):\n    case B(v=1):\n        ddp.barrier()\n        y = 1\n",
    "places of a class": "class P:\n    __match_args__ = ('x', 'y')\n    def __init__(self, x, y):\n        self.x, self.y = x, y\na = b = 0\nmatch P(1, rank):\n    case P(2, b):\n        ddp.barrier()\n    case P(a, 1):\n        ddp.barrier()\n",
    "places of a data class": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int\na = b = 0\nmatch P(1, rank):\n    case P(a, b):\n        ddp.barrier()\n",
    "1 is True": "y = 0\nmatch True:\n    case 1:\n        y = rank\n",
    "parts of parts": "y = 0\nmatch {'k': (n, rank)}:\n    case {'k': (1, 0)}:\n        y = 1\n        ddp.barrier()\n    case {'k': (w, z)}:\n        ddp.barrier()\n",
}
_TENSORS = {
    "in a list": "t = torch.zeros(2)\nl = [t, t]\nfor q in l:\n    q.add_(rank)\n",
    "an item": "t = torch.zeros(2)\nh = [t]\nh[0] += rank\n",
    "by the same on all ranks": "t = torch.zeros(2)\nh = [t]\nh[-1] += 2\n",
    "in a dictionary": "t = torch.zeros(2)\nd = {'a': t}\nd['a'].fill_(rank)\n",
    "items of a dictionary": "t = torch.zeros(2)\nd = {'a': t}\nfor k, v in d.items():\n    v.add_(rank)\n",
    "an attribute that a method writes": "class B:\n    def __init__(self, t):\n        self.t = t\n    def up(self):\n        self.t.add_(rank)\nt = torch.zeros(2)\nB(t).up()\n",
    "out=": "t, u = torch.zeros(2), torch.zeros(2)\ntorch.add(u, rank, out=t)\n",
    "in a tuple, in a function": "def f(a, b):\n    for x in (a, b):\n        x.add_(rank)\nt, u = torch.zeros(2), torch.zeros(2)\nf(t, u)\n",
    "returned": "def f(a):\n    return a\nt = torch.zeros(2)\nu = f(t)\nu.add_(rank)\n",
    "one or another": "t = torch.zeros(2)\nu = t if n else torch.ones(2)\nu.add_(rank)\n",
    "appended": "t = torch.zeros(2)\nl = []\nl.append(t)\nfor x in l:\n    x.add_(rank)\n",
    "zipped": "t, u = torch.zeros(2), torch.ones(2)\nfor x, y in zip([t], [u]):\n    x.copy_(y * rank)\n",
    "ten names": "a = torch.zeros(2)\nb = a\nc = b\nd = c\ne = d\nf = e\ng = f\nh = g\ni = h\nj = i\nj.add_(rank)\n",
    "twenty names": "t = torch.zeros(2)\n" + "".join(f"a{i} = t\n" for i in range(20)) + "a19.add_(rank)\n",
    "one of twelve in a list": "".join(f"t{i} = torch.zeros(2)\n" for i in range(12)) + f"l = [{', '.join(f't{i}' for i in range(12))}]\nu = l[rank + 9]\nu.add_(1)\n",
    "twelve views of views": "s = torch.zeros(2, 2)\na0 = s[0]\n" + "".join(f"a{i + 1} = a{i}.view(2)\n" for i in range(12)) + "a12.add_(rank)\n",
    "a chain of writes": "t = torch.zeros(2)\nt.mul_(2).add_(rank)\n",
    "a view of one in a list": "t = torch.zeros(2, 2)\nl = [t[0]]\nl[0].add_(rank)\n",
    "of a comprehension": "t, u = torch.zeros(2), torch.zeros(2)\n[q.add_(rank) for q in [t, u]]\n",
}
_CACHES = {
    "once for each argument": "@functools.lru_cache(None)\ndef f(x):\n    ddp.barrier()\n    return x\nf(1)\nf(rank)\n",
    "a result of some": "@functools.lru_cache\ndef f(x):\n    return k\nk = 1\nif rank:\n    f(0)\nk = 2\na = f(0)\n",
    "a property": "class B:\n    def __init__(self):\n        self.k = 0\n    @functools.cached_property\n    def size(self):\n        ddp.barrier()\n        return self.k\no = B()\nif rank:\n    o.size\no.k = 5\na = o.size\n",
}
_RAISES = {
    "of another function": "def g(x):\n    if x:\n        raise ValueError\ndef f(x):\n    g(x)\n    return 1\na = 0\ntry:\n    a = f(0)\nexcept ValueError:\n    pass\ntry:\n    a = f(rank)\n    ddp.barrier()\nexcept ValueError:\n    pass\ntry:\n    a = f(rank)\n    ddp.barrier()\nexcept ValueError:\n    pass\n",
}
_CLASSES = {
    "tuples of objects are compared": "class B:\n    def __init__(self, v):\n        self.v = v\n    def __eq__(self, o):\n        return self.v == o.v\na = (B(rank),) == (B(0),)\n",
    "a tuple with a list is compared": "l = [rank]\na = (l, 1) == ([0], 1)\n",
    "objects are added up": "class B:\n    def __init__(self, v):\n        self.v = v\n    def __add__(self, o):\n        return o + self.v\n    __radd__ = __add__\na = sum([B(rank), B(1)])\n",
    "a descriptor that gives": "class D:\n    def __get__(self, o, t):\n        ddp.barrier()\n        return rank\nclass B:\n    x = D()\no = B()\na = o.x\nif rank:\n    o.x\n",
    "a descriptor that stores": "class D:\n    def __set_name__(self, owner, name):\n        self.name = '_' + name\n    def __set__(self, o, v):\n        setattr(o, self.name, v * rank)\n    def __get__(self, o, t):\n        return getattr(o, self.name)\nclass B:\n    x = D()\no = B()\no.x = 3\na = o.x\n",
    "an attribute that some ranks lack": "class B:\n    def __getattr__(self, name):\n        if name[0] == '_':\n            raise AttributeError(name)\n        ddp.barrier()\n        return 5\no = B()\nif rank:\n    o.x = 1\na = o.x\n",
    'asked by hasattr': "class B:\n    def __getattr__(self, name):\n        if name[0] == '_' or rank:\n            raise AttributeError(name)\n        return 5\no = B()\na = hasattr(o, 'x')\nb = 0\nif hasattr(o, 'x'):\n    ddp.barrier()\n    b = 1\n",
    'asked by hasattr of all': "class B:\n    def __getattr__(self, name):\n        if name[0] == '_':\n            raise AttributeError(name)\n        return 5\no = B()\nb = 0\nif hasattr(o, 'x'):\n    ddp.barrier()\n    b = 1\n",
    "the result of a thirteenth call": "def f(v):\n    return [v]\n" + "".join(f"a{i} = f({'rank' if i == 13 else 0})\n" for i in range(15)) + "a14.append(rank)\n",
}
_LAZY = {
    'laid out once': 'm = []\ndef f1(x):\n    m.append(x)\n    for q in range(rank):\n        yield q\na = [*f1(0)]\nb = len(m)\n',
    'in': 'def f(x):\n    for q in range(3):\n        ddp.barrier()\n        yield q\na = 1 in f(0)\nb = rank in f(0)\n',
    'in, with what it leaves': 'l = []\ndef f(x):\n    for q in range(3):\n        l.append(q)\n        yield q\nb = rank in f(0)\na = len(l)\n',
    'any': 'l = []\ndef f(x):\n    for q in range(3):\n        l.append(q)\n        yield q\nb = any(q > rank for q in f(0))\na = len(l)\n',
    'all': 'l = []\ndef f(x):\n    for q in range(3):\n        l.append(q)\n        yield q\nb = all(q < rank for q in f(0))\na = len(l)\n',
    'next, and next again': 'l = []\ndef f():\n    l.append(0)\n    yield 1\n    l.append(rank)\n    yield 2\nw = f()\na = next(w)\nk = len(l)\nb = next(w)\nj = len(l)\n',
    'next, by some ranks': 'l = []\ndef f():\n    l.append(0)\n    yield 1\n    l.append(1)\n    yield 2\nw = f()\nif rank:\n    next(w)\na = next(w)\nj = len(l)\nfor x in w:\n    ddp.barrier()\n',
    'islice': 'def g():\n    for i in range(5):\n        ddp.barrier()\n        yield i\nl = list(itertools.islice(g(), rank))\n',
    'zip': 'def g():\n    for i in range(5):\n        ddp.barrier()\n        yield i\nl = list(zip(range(rank), g()))\nl2 = dict(zip(g(), range(rank)))\n',
    'takewhile': 'def g():\n    for i in range(5):\n        ddp.barrier()\n        yield i\nl = list(itertools.takewhile(lambda x: x < rank, g()))\n',
    'chain': 'def g(k):\n    for i in range(k):\n        ddp.barrier()\n        yield i\nl = list(itertools.chain(g(1), g(rank)))\n',
    'iter until': 'k = [0]\ndef f():\n    k[0] += 1\n    ddp.barrier()\n    return k[0]\nfor x in iter(f, 2 + rank):\n    pass\n',
    'filter': 'l = []\ndef f(x):\n    l.append(x)\n    return x > 0\na = next(filter(f, [0, 1, 2]), 0)\nb = len(l)\nc = next(filter(lambda q: f(q) and q > rank, [0, 1, 2]), 0)\n',
    'iterators at other places': 'it = iter([0, 1, 2, 3])\na = next(it)\nif rank:\n    next(it)\nb = next(it)\nl = list(it)\n',
    'map, left by a function': 'def f(x):\n    ddp.barrier()\n    return x\ndef use(it, k):\n    for x in it:\n        if x == k:\n            return x\nuse(map(f, [0, 1, 2]), rank)\n',
    'any of an expression': 'def f(x):\n    ddp.barrier()\n    return x\nany(f(x) for x in [rank, 1])\n',
    'any of map': 'def f(x):\n    ddp.barrier()\n    return x\nany(map(f, [rank, 1]))\n',
    'next of an expression': 'l = []\ndef f(x):\n    l.append(x)\n    return x\na = next(q for q in [0, 1, 2] if f(q) >= rank)\nb = len(l)\n',
    'map that some ranks take': 'def f(x):\n    ddp.barrier()\n    return x\nw = map(f, [0, 1])\nif rank:\n    list(w)\n',
    'an expression that some ranks take': 'w = (ddp.barrier() for x in [0, 1])\nif rank:\n    list(w)\n',
    'zip with something shorter': 'def f(x):\n    ddp.barrier()\n    return x\nfor a, b in zip(range(rank), map(f, [0, 1])):\n    pass\n',
}
_CONTAINERS = {
    'the order of keys': "d = {}\nif rank:\n    d['b'] = 1\nd['a'] = 1\nd['b'] = 1\nl = list(d)\nfor k in d:\n    if k == 'a':\n        ddp.barrier()\n",
    'a key that some ranks have': 'from collections import defaultdict\nd = defaultdict(list)\nd[rank].append(1)\nd[0].append(2)\na = len(d[0])\nb = len(d)\n',
    'parts of a text': "s = 'a,b' if rank else 'a'\na = s.split(',')\nb = len(a)\nc = 'b' in s\nd = s.startswith('a')\n",
    'a type': "x = 1 if rank else 'a'\na = isinstance(x, int)\nb = type(x) is int\n",
    'deep and other copies': 'l = [[0], 1]\nm = copy.copy(l)\nk = copy.deepcopy(l)\nm[0].append(rank)\na = l[0]\nb = k[0]\nc = len(b)\n',
}
_VALUES = {
    "what looks the same": "u = 2\ntry:\n    pass\nexcept Exception:\n    u += n\nif rank:\n    pass\nelif n == 2:\n    pass\nelse:\n    u += 1\n",
}
PROGRAMS = {**_MATCH, **_TENSORS, **_CACHES, **_RAISES, **_CLASSES, **_LAZY, **_CONTAINERS, **_VALUES}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_wrong_is_said(name: str) -> None:
    found = judged(f"{_HEAD}{PROGRAMS[name]}", CHOICES)
    assert found.skipped == ""
    assert found.wrong == []


@pytest.mark.parametrize(
    ("text", "lying"),
    [
        pytest.param("x = torch.zeros(2)\nh = [x]\nx = torch.ones(2)\nh[0].add_(rank)", "uniform", id="another tensor by then"),
        pytest.param("x = torch.zeros(2)\ny = x.clone()\ny.add_(rank)", "zero", id="a copy"),
        pytest.param("def f(): return torch.zeros(2)\nx = f()\ny = f()\ny.add_(rank)", "zero", id="made in one place"),
        pytest.param("class B:\n    def __init__(self): self.t = torch.zeros(2)\na, b = B(), B()\nb.t += rank\nx = a.t", "zero", id="of another object"),
        pytest.param("l = []\nfor i in range(3):\n    s = torch.zeros(2)\n    s += rank\n    s.fill_(1)\n    l.append(s)\nx = l[0]", "uniform", id="of an earlier turn"),
    ],
)
def test_other_tensors_stay_what_they_are(text: str, lying: str) -> None:
    assert placed(executed(f"{_HEAD}{text}\n"), "x") == lying


def test_a_second_call_with_an_argument_does_nothing() -> None:
    ex = executed(f"{_HEAD}@functools.lru_cache\ndef f(x):\n    print(x)\n    return x\na = f(1)\nif rank:\n    b = f(1)\nc = f(2)\n")
    assert parted(ex) == [False]
    assert placed(ex, "c") == "uniform"


def test_what_is_copied_from_turn_to_turn_settles() -> None:
    ex = executed(f"{_HEAD}best = {{'a': 1}}\nfor i in range(n + 3):\n    best = copy.deepcopy(best)\n    best['b'] = rank\nx = best['a']\n")
    assert ex.trace.ended is None
    assert placed(ex, "x") == "uniform"


def test_what_gives_values_alone_is_known_item_by_item() -> None:
    ex = executed(f"{_HEAD}l = (i * 2 for i in [1, 2])\na, b = l\nm = map(lambda i: i + 1, [1, 2])\nc = list(m)[1]\n")
    assert placed(ex, "b") == "uniform"
    assert constant(ex, "c") == 3
