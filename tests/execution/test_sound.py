"""Programs in which ranks part, or hold one tensor under several names, run as both ranks: nothing
that is said of them on paper is otherwise when they run.
"""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, parted, placed
from tests.execution.random_ranks import CHOICES
from tests.execution.two_ranks import judged

_HEAD = "import copy\nimport functools\nimport os\nimport dpmigrate_runtime as ddp\nimport torch\nrank = ddp.rank()\nn = int(os.environ['N'])\n"

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
    "a descriptor that gives": "class D:\n    def __get__(self, o, t):\n        ddp.barrier()\n        return rank\nclass B:\n    x = D()\no = B()\na = o.x\nif rank:\n    o.x\n",
    "a descriptor that stores": "class D:\n    def __set_name__(self, owner, name):\n        self.name = '_' + name\n    def __set__(self, o, v):\n        setattr(o, self.name, v * rank)\n    def __get__(self, o, t):\n        return getattr(o, self.name)\nclass B:\n    x = D()\no = B()\no.x = 3\na = o.x\n",
    "an attribute that some ranks lack": "class B:\n    def __getattr__(self, name):\n        if name[0] == '_':\n            raise AttributeError(name)\n        ddp.barrier()\n        return 5\no = B()\nif rank:\n    o.x = 1\na = o.x\n",
    "the result of a thirteenth call": "def f(v):\n    return [v]\n" + "".join(f"a{i} = f({'rank' if i == 13 else 0})\n" for i in range(15)) + "a14.append(rank)\n",
}
_VALUES = {
    "what looks the same": "u = 2\ntry:\n    pass\nexcept Exception:\n    u += n\nif rank:\n    pass\nelif n == 2:\n    pass\nelse:\n    u += 1\n",
}
PROGRAMS = {**_MATCH, **_TENSORS, **_CACHES, **_RAISES, **_CLASSES, **_VALUES}


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
