"""What some ranks alone store, remove, raise or write, and what is the same on all of them."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, parted, placed
from tests.execution.two_ranks import judged

_HEAD = "import os\nimport contextlib\nimport torch\nimport dpmigrate_runtime as ddp\nrank = ddp.rank()\nn = int(os.environ['N'])\n"

#: what decides by rank, beside the same by what all ranks have
MEMBERS = {
    "stored": "d = {}\nif BY:\n    d['k'] = 1\n",
    "stored under an option": "d = {}\nif BY:\n    d[n] = 1\nk = n\n",
    "stored again under an option": "d = {n: 0}\nif BY:\n    d[n + 1] = 1\n",
    "stored under what decides": "d = {0: 1}\nd[BY] = 1\n",
    "removed": "d = {'k': 1}\nif BY:\n    del d['k']\n",
    "removed by what decides": "d = {0: 0, 1: 0}\ndel d[BY]\n",
    "popped by what decides": "d = {0: 0}\nd.pop(BY, None)\n",
    "updated": "d = {}\ne = {}\nif BY:\n    e['k'] = 1\nd.update(e)\n",
    "merged": "e = {}\nif BY:\n    e['k'] = 1\nd = {**e, 'x': 1}\n",
    "copied": "e = {}\nif BY:\n    e['k'] = 1\nd = dict(e)\n",
    "of a comprehension": "d = {v * BY: v for v in (1, 2)}\n",
    "of keys": "e = {}\nif BY:\n    e['k'] = 1\nd = list(e)\n",
    "of values": "e = {}\nif BY:\n    e['k'] = 1\nd = e.values()\n",
    "a list extended": "d = []\nd.extend([0] * BY)\n",
    "a list of lists added": "e = []\nif BY:\n    e.append(1)\nd = e + [n]\n",
    "a list of unknown length": "d = [0] * n\nif BY:\n    d.append(1)\n",
    "a list repeated": "d = [1] * BY\n",
    "a slice": "d = [0, 1, 2][BY:]\n",
    "a list of stars": "e = []\nif BY:\n    e.append(1)\nd = [*e]\n",
    "a list that is unpacked": "e = [1, 2]\nif BY:\n    e.append(3)\n_, *d = e\n",
    "a list that is mapped": "e = []\nif BY:\n    e.append(1)\nd = list(map(str, e))\n",
    "a list that is filtered": "d = list(filter(lambda v: v > BY, [1, 1]))\n",
    "a set": "d = {0}\nd.add(BY)\n",
    "a set of a list": "d = set([0, BY])\n",
    "a set that loses one": "d = {0, 1}\nd.discard(2 * BY)\n",
    "a list of a generator": "def g():\n    for i in range(BY):\n        yield i\nd = list(g())\n",
    "the items behind a comprehension": "d = [v for v in range(20) if v > BY]\n",
}  # fmt: skip


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize(
    "use", ["if len(d) > 1:\n    ddp.barrier()\n", "if d:\n    ddp.barrier()\n", "for v in d:\n    ddp.barrier()\n", "if not d:\n    ddp.barrier()\n"]
)
def test_how_many_items_ranks_have(name: str, use: str) -> None:
    by_rank, by_all = (_HEAD + MEMBERS[name].replace("BY", by) + use for by in ("rank", "n"))
    assert parted(executed(by_rank), "collective") == [True]
    assert parted(executed(by_all), "collective") == [False]
    choices = tuple({"N": str(i)} for i in range(3))
    assert judged(by_rank, choices).wrong == judged(by_all, choices).wrong == []


#: expressions of a dictionary with a key that some ranks have
ASKED = {
    "'k' in d": True, "'x' in d": False, "n in d": True, "d.get('k') is None": True, "d.get('x') is None": False,
    "d.get('k', 2) == 2": True, "d.pop('k', 0) == 1": True, "d.setdefault('k', 0) == 1": True, "d == {}": True,
    "sum(d.values()) > 2": True, "'y' in d": False,
}  # fmt: skip


@pytest.mark.parametrize("test", ASKED)
def test_who_has_a_key(test: str) -> None:
    text = f"{_HEAD}d = {{'x': 1}}\nif BY:\n    d['k'] = 1\nif {test}:\n    ddp.barrier()\n"
    for by, expected in (("rank", ASKED[test]), ("n", False)):
        assert any(parted(executed(text.replace("BY", by)), "collective")) == expected


#: what differs of a list, and is the same by ``n``
OTHERS = {
    "stored at an index": "l = [0, 0]\nl[BY] = 1\n",
    "inserted": "l = [0, 0]\nl.insert(BY, 1)\n",
    "popped": "l = [0, 1, 2]\nl.pop(BY)\n",
    "removed": "l = [0, 1]\nl.remove(BY)\n",
    "deleted": "l = [0, 1, 2]\ndel l[BY]\n",
    "sorted by a key": "l = sorted([1, 2], key=lambda v: v * BY)\n",
    "sorted in place by a key": "l = [1, 2]\nl.sort(key=lambda v: -v * BY)\n",
    "sorted backwards": "l = sorted([1, 2], reverse=bool(BY))\n",
    "the greatest by a key": "l = [max([1, 2], key=lambda v: v * BY)]\n",
    "the least by default": "l = [min([], default=BY)]\n",
    "of one of two": "l = [0, 1] if BY else [1, 0]\nl = l[:2]\n",
    "stored into one of two": "a, l = [0], [0]\nb = a if BY else l\nb[0] = 1\n",
    "the next of a generator": "def g():\n    if BY:\n        yield 1\nl = [next(g(), 0)]\n",
    "the next behind others": "i = iter([0, 1, 2] * 5)\nif BY:\n    next(i)\nl = [next(i)]\n",
    "a dictionary's item": "l = {0: 0, 1: 0}\nl[BY] = 1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_which_items_ranks_have(name: str) -> None:
    for by, expected in (("rank", "per rank"), ("n", "uniform")):
        ex = executed(_HEAD + OTHERS[name].replace("BY", by) + "x = l[0]\n")
        assert placed(ex, "x").replace("zero", "uniform") == expected


#: bodies of a ``try``, and what its handler is for
RAISED = {
    "{0: 1}[BY]": "KeyError", "d['k']": "KeyError", "[1][BY]": "IndexError", "(1, 2)[BY + 1]": "LookupError",
    "1 // BY": "ZeroDivisionError", "5 % BY": "ArithmeticError", "o.v": "AttributeError", "next(iter([1] * BY))": "StopIteration",
    "l.pop()": "IndexError", "int('a' if BY else '1')": "ValueError", "l.remove(0)": "Exception", "x, y = l": "ValueError",
    "assert BY": "AssertionError", "later": "NameError",
}  # fmt: skip
_RAISED = "class O: pass\no, d, l = O(), {}, [0]\nif BY:\n    d['k'] = o.v = later = 1\n    l.append(BY)\n    l.remove(0) if 0 else l.clear()\n"


@pytest.mark.parametrize("body", RAISED)
def test_exceptions_of_some_ranks(body: str) -> None:
    text = f"{_HEAD}{_RAISED}try:\n    {body}\n    ddp.barrier()\nexcept {RAISED[body]}:\n    ddp.barrier()\nddp.barrier()\n"
    assert parted(executed(text.replace("BY", "rank")), "collective") == [True, True, False]
    assert parted(executed(text.replace("BY", "n")), "collective") == [False, False, False]
    other = text.replace(f"except {RAISED[body]}", "except MemoryError").replace("BY", "rank")
    assert parted(executed(other), "collective")[:1] == [False]


def test_an_exception_for_all_in_a_branch_of_some() -> None:
    text = f"{_HEAD}try:\n    if BY:\n        {{}}['k']\n    ddp.barrier()\nexcept KeyError:\n    ddp.barrier()\n"
    assert parted(executed(text.replace("BY", "rank")), "collective") == [True, True]
    assert parted(executed(text.replace("BY", "n")), "collective") == [False, False]


_MANAGERS = {
    "suppress": "with contextlib.suppress(ValueError):\n",
    "suppress all": "with contextlib.suppress(Exception):\n",
    "a class": "class S:\n    def __enter__(self): pass\n    def __exit__(self, *a): return True\nwith S():\n",
    "a generator": "@contextlib.contextmanager\ndef quiet():\n    try:\n        yield\n    except ValueError:\n        pass\nwith quiet():\n",
}  # fmt: skip


@pytest.mark.parametrize("name", _MANAGERS)
def test_what_ends_exceptions(name: str) -> None:
    text = f"{_HEAD}{_MANAGERS[name]}    if BY:\n        raise ValueError\n    ddp.barrier()\nddp.barrier()\n"
    assert parted(executed(text.replace("BY", "rank")), "collective") == [True, False]
    assert parted(executed(text.replace("BY", "n")), "collective") == [False, False]
    whole = f"{_HEAD}x = 0\n{_MANAGERS[name]}    x = 1\n    raise ValueError\nddp.barrier()\n"
    assert parted(executed(whole), "collective") == [False]
    assert placed(executed(whole), "x") == "uniform"


@pytest.mark.parametrize("test", ["hasattr(o, 'v')", "getattr(o, 'v', 0)", "isinstance(p, O)", "len(q)", "o.w"])
def test_objects_of_some_ranks(test: str) -> None:
    text = f"{_HEAD}class O: pass\nclass P: pass\no, u = O(), O()\no.w = 0\nif BY:\n    o.v = 1\np = O() if BY else P()\nq = [0] if BY else []\nm = o if BY else u\nm.w = 1\nif {test}:\n    ddp.barrier()\n"
    assert parted(executed(text.replace("BY", "rank")), "collective") == [True]
    assert parted(executed(text.replace("BY", "n")), "collective") == [False]


#: writes through another name of the tensor ``t``
WRITES = {
    "a name": "u = t\nu.add_(BY)", "an added number": "u = t\nu += BY", "an element": "u = t\nu[0] = BY",
    "a view": "u = t.view(2)\nu.fill_(BY)", "a part": "t[:1].fill_(BY)", "a part of a name": "u = t[:1]\nu += BY",
    "its data": "t.data.add_(BY)", "a copy of a name": "u = w = t\nw.add_(BY)", "a pair": "u, w = t, 0\nu.add_(BY)",
    "an attribute": "o.t = t\no.t += BY", "a name of an attribute": "o.t = t\nh = o.t\nh[0] += BY",
    "an item": "d = {'t': t}\nd['t'] = t\nd['t'].add_(BY)", "in a function": "def f(v): v.add_(BY)\nu = t\nf(u)",
    "the other way": "u = t\nw = u\nw.add_(BY)", "before it is bound anew": "u = t\nu.add_(BY)\nu = torch.zeros(2)",
}  # fmt: skip
_APART = {
    "a clone": "u = t.clone()\nu.add_(BY)", "a new tensor": "u = t\nu = torch.zeros(2)\nu.add_(BY)", "a sum": "u = t + 0\nu += BY",
    "a copy's element": "u = t.clone()\nu[0] = BY",
}  # fmt: skip


@pytest.mark.parametrize("text", [*WRITES.values(), *_APART.values()], ids=[*WRITES, *_APART])
def test_other_names_of_a_tensor(text: str) -> None:
    head = f"{_HEAD}class O: pass\no = O()\nt = torch.zeros(2)\n"
    assert placed(executed(head + text.replace("BY", "rank") + "\n"), "t") == ("zero" if text in _APART.values() else "per rank")
    assert placed(executed(head + text.replace("BY", "n") + "\n"), "t") in ("zero", "uniform")


def test_an_element_of_zeros_that_is_none() -> None:
    ex = executed(f"{_HEAD}t, u = torch.zeros(2), torch.zeros(2)\nt[0] = 1\nu[0] = 0\n")
    assert (placed(ex, "t"), placed(ex, "u")) == ("uniform", "zero")


def test_what_looks_the_same_is_another_value() -> None:
    text = f"{_HEAD}x = int(os.environ['A'])\nif BY:\n    x = int(os.environ['B']) if n else int(os.environ['C'])\n"
    assert placed(executed(text.replace("BY", "rank")), "x") == "per rank"
    assert placed(executed(text.replace("BY", "n")), "x") == "uniform"


#: functions that ranks leave in different places, with what they give
GIVEN = {
    "one variable": ("def f(v):\n    k = n + v\n    if rank:\n        return k\n    print(k)\n    return k\n", False),
    "a parameter": ("def f(v):\n    if rank:\n        return v\n    return v\n", False),
    "a variable that is bound again": ("def f(v):\n    k = n\n    if rank:\n        return k\n    k = n + 1\n    return k\n", True),
    "a parameter that is added to": ("def f(v):\n    v += rank\n    if rank:\n        return v\n    return v\n", True),
    "two variables": ("def f(v):\n    k = n\n    j = n + 1\n    if rank:\n        return k\n    return j\n", True),
    "nothing at the end": ("def f(v):\n    k = n\n    if rank:\n        return k\n", True),
    "what a loop binds": ("def f(v):\n    for k in (n, n + 1):\n        if rank:\n            return k\n    return k\n", True),
    "what a pattern binds too": ("def f(v):\n    k = n\n    if rank:\n        return k\n    match n + 1:\n        case k:\n            pass\n    return k\n", True),
    "a tensor that some ranks change": ("def f(v):\n    k = torch.zeros(1) + n\n    if rank:\n        return k\n    k.add_(1)\n    return k\n", True),
    "what differs itself": ("def f(v):\n    k = n + rank\n    if v:\n        return k\n    return k\n", True),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_what_a_function_gives_that_ranks_leave_in_different_places(name: str) -> None:
    defined, differs = GIVEN[name]
    text = f"{_HEAD}{defined}if f(n) > 2:\n    ddp.barrier()\n"
    assert parted(executed(text), "collective") == [differs]
    assert not judged(text, tuple({"N": str(i)} for i in range(4))).wrong
