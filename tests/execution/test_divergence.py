"""Conditions that differ between ranks: what is joined under them, and which events only some ranks come to."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, parted, placed

_HEAD = "import time\nimport torch.distributed as dist\nrank = dist.get_rank()\nset_by_all = 3\n"


@pytest.mark.parametrize("test", ["set_by_all == 3", "True", "dist.get_world_size() > 1", "dist.is_available()"])
def test_no_parting_under_what_all_ranks_agree_on(test: str) -> None:
    ex = executed(f"{_HEAD}x = 1\nif {test}:\n    x = 2\n    print(x)\nprint(x)\n")
    assert parted(ex) == [False, False]
    assert placed(ex, "x") == "uniform"


@pytest.mark.parametrize("test", ["rank == 0", "rank", "not rank", "rank == 0 and set_by_all", "time.time() > 5", "dist.get_rank() == 0"])
def test_a_branch_by_rank(test: str) -> None:
    ex = executed(f"{_HEAD}x = y = 1\nif {test}:\n    x = 2\n    print(x)\nprint(x)\n")
    assert parted(ex) == [True, False]
    assert placed(ex, "x") == "per rank"
    assert placed(ex, "y") == "uniform"


@pytest.mark.parametrize(("pattern", "apart"), [("[a, b]", False), ("(_, *_)", False), ("{'k': v}", False), ("0", True), ("[0, _]", True), ("a if a > 0", True)])
def test_the_form_of_data_is_the_same_on_all_ranks(pattern: str, apart: bool) -> None:
    ex = executed(f"{_HEAD}x = 1\nmatch rank:\n    case {pattern}:\n        print(x)\n    case _:\n        pass\n")
    assert parted(ex) == [apart]


#: body of a function f, with marks a, b, … as calls of print on lines of their own -> which are parted
WAYS: dict[str, tuple[str, list[bool]]] = {
    "return": ("print(1)\nif rank:\n    return 1\nprint(2)\n", [False, True]),
    "return in a nested if": ("if rank:\n    if dist.is_available():\n        return 1\n    print(1)\nprint(2)\n", [True, True]),
    "return in a loop": ("for i in range(9):\n    print(1)\n    if rank == i:\n        return 1\nprint(2)\n", [True, True]),
    "continue": ("for i in range(9):\n    if rank == i:\n        continue\n    print(1)\nprint(2)\n", [True, False]),
    "continue in a literal loop": ("for i in (1, 2):\n    print(0)\n    if rank == i:\n        continue\n    print(1)\nprint(2)\n", [False, True, False]),
    "break": ("for i in range(9):\n    print(0)\n    if rank == i:\n        break\n    print(1)\nprint(2)\n", [True, True, False]),
    "break in a literal loop": ("for i in (1, 2):\n    if rank == i:\n        break\n    print(1)\nprint(2)\n", [True, False]),
    "break of an inner loop": ("for j in range(9):\n    print(0)\n    for i in range(9):\n        if rank == i:\n            break\n        print(1)\n    print(2)\n", [False, True, False]),
    "while by rank": ("n = rank\nwhile n > 0:\n    n -= 1\n    print(1)\nprint(2)\n", [True, False]),
    "while True": ("while True:\n    print(1)\n    if time.time() > 5:\n        break\nprint(2)\n", [True, False]),
    "range by rank": ("for i in range(rank):\n    print(1)\nprint(2)\n", [True, False]),
    "a list as long as the rank says": ("l = [0]\nif rank:\n    l.append(1)\nfor v in l:\n    print(1)\nprint(2)\n", [True, False]),
    "a comprehension with a condition": ("l = [i for i in range(9) if i > rank]\nfor v in l:\n    print(1)\nprint(2)\n", [True, False]),
    "an element with an effect": ("l = [print(1) for i in range(9) if i > rank]\nprint(2)\n", [True, False]),
    "and": ("rank and print(1)\nprint(2)\n", [True, False]),
    "or": ("rank == 0 or print(1)\nprint(2)\n", [True, False]),
    "conditional expression": ("x = print(1) if rank else None\nprint(2)\n", [True, False]),
    "match": ("match rank:\n    case 0:\n        print(1)\n    case _:\n        print(2)\nprint(3)\n", [True, True, False]),
    "guard": ("match set_by_all:\n    case 3 if rank:\n        print(1)\nprint(3)\n", [True, False]),
    "raise that is caught": ("try:\n    if rank:\n        raise ValueError\n    print(1)\nexcept ValueError:\n    print(2)\nprint(3)\n", [True, True, False]),
    "a part of a try after a raise in a callee": ("def g():\n    if rank:\n        raise ValueError\ntry:\n    print(0)\n    g()\n    print(1)\nexcept ValueError:\n    pass\nprint(3)\n", [False, True, False]),
    "a raise that an outer try catches": ("try:\n    try:\n        if rank:\n            raise ValueError\n    finally:\n        print(1)\n    print(2)\nexcept ValueError:\n    pass\nprint(3)\n", [True, True, False]),
    "a raise outside of any try": ("if rank:\n    raise ValueError\nprint(3)\n", [False]),
    "the else of a for": ("for i in range(9):\n    if rank == i:\n        break\nelse:\n    print(1)\nprint(2)\n", [True, False]),
    "the else of a while": ("n = 3\nwhile n:\n    n -= 1\n    if rank == n:\n        break\nelse:\n    print(1)\nprint(2)\n", [True, False]),
    "the else of a loop without break": ("for i in range(rank):\n    pass\nelse:\n    print(1)\nprint(2)\n", [False, False]),
    "the else of a try": ("try:\n    if rank:\n        raise ValueError\nexcept ValueError:\n    pass\nelse:\n    print(1)\nprint(2)\n", [True, False]),
    "a list that is empty on some": ("l = []\nif rank:\n    l.append(1)\nif l:\n    print(1)\nprint(2)\n", [True, False]),
    "a list that all have": ("l = []\nl.append(rank)\nif l:\n    print(1)\nprint(2)\n", [False, False]),
    "the rank of the environment": ("import os\nif int(os.environ['LOCAL_RANK']) == 0:\n    print(1)\nif os.environ['HOME'] == '/':\n    print(2)\n", [True, False]),
    "raise in a callee": ("def g():\n    if rank:\n        raise ValueError\ntry:\n    g()\nexcept ValueError:\n    print(2)\nprint(3)\n", [True, False]),
    "return in a handler": ("try:\n    if rank:\n        raise ValueError\nexcept ValueError:\n    return 1\nprint(3)\n", [True]),
    "return through finally": ("try:\n    if rank:\n        return 1\nfinally:\n    print(1)\nprint(2)\n", [True, True]),
    "return through with": ("with open('x') as f:\n    if rank:\n        return 1\nprint(2)\n", [True]),
    "a function called by some": ("def g():\n    print(1)\nif rank:\n    g()\nprint(2)\n", [True, False]),
    "a function called by some and by all": ("def g():\n    print(1)\ng()\nif rank:\n    g()\nprint(2)\n", [False, True, False]),
    "a return in a callee": ("def g():\n    if rank:\n        return 1\n    print(1)\ng()\nprint(2)\n", [True, False]),
    "one of two functions": ("def g():\n    print(1)\ndef h():\n    print(2)\nk = g if rank else h\nk()\nprint(3)\n", [True, True, False]),
    "an element of a dictionary": ("def g():\n    print(1)\ndef h():\n    print(2)\nk = {0: g, 1: h}[rank]\nk()\nprint(3)\n", [True, True, False]),
    "a generator": ("def gen():\n    yield 1\n    if rank:\n        yield 2\nfor v in gen():\n    print(1)\nprint(2)\n", [True, False]),
    "a break out of a generator": ("def gen():\n    yield 1\n    yield 2\nfor v in gen():\n    if rank:\n        break\nprint(2)\n", [False]),
    "a closure": ("flag = rank == 0\ndef g():\n    if flag:\n        print(1)\ng()\nprint(2)\n", [True, False]),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_where_ranks_part_and_how_far(name: str) -> None:
    body, expected = WAYS[name]
    text = "".join(f"    {line}\n" for line in body.splitlines())
    ex = executed(f"{_HEAD}def f():\n{text}f()\nprint('after')\n")
    assert parted(ex) == [*expected, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    return 1 if set_by_all else 2\nx = f()\n", "uniform"),
        ("def f():\n    if rank:\n        return 1\n    return 2\nx = f()\n", "per rank"),
        ("def f():\n    if rank:\n        return 1\n    return 1\nx = f()\n", "uniform"),
        ("x = 0\nfor i in range(9):\n    if rank == i:\n        break\n    x += 1\n", "per rank"),
        ("x = 0\nfor i in range(9):\n    if rank == i:\n        continue\n    x += 1\n", "per rank"),
        ("x = 0\nwhile time.time() < 5:\n    x += 1\n", "per rank"),
        ("x = [1, 2][rank]\n", "per rank"),
        ("x = 1 if rank else 2\n", "per rank"),
        ("x = rank and 5\n", "per rank"),
        ("l = [1, 2]\nif rank:\n    l.append(3)\nx = len(l)\n", "per rank"),
        ("d = {}\nif rank:\n    d['a'] = 1\nelse:\n    d['a'] = 2\nx = d['a']\n", "per rank"),
        ("class C: pass\nc = C()\nc.x = 1\nif rank:\n    c.x = 2\nx = c.x\n", "per rank"),
        ("def f():\n    global x\n    x = 2\nx = 1\nif rank:\n    f()\n", "per rank"),
        ("x = 1\ntry:\n    if rank:\n        raise ValueError\n    x = 2\nexcept ValueError:\n    x = 3\n", "per rank"),
        ("x = 1\ntry:\n    x = 2\nexcept ValueError:\n    x = 3\n", "uniform"),
        ("fs = [lambda: 1, lambda: 2]\nx = fs[rank]()\n", "per rank"),
        ("x = f'{rank}'\n", "per rank"),
        ("x = rank == 0\n", "per rank"),
        ("x = sum([rank, 1])\n", "per rank"),
        ("from elsewhere import seen\nx = 1 if seen(rank) else 2\n", "unknown"),
        ("from elsewhere import seen\nx = 1\nif seen(rank):\n    x = 2\n", "unknown"),
    ],
)  # fmt: skip
def test_what_is_joined_where_ranks_part(text: str, expected: str) -> None:
    assert placed(executed(f"{_HEAD}{text}"), "x") == expected


def test_what_an_import_under_a_condition_does_is_done_by_some(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from tests.execution.paper import executed_files

    files = {"train.py": f"import torch\n{_HEAD}if rank:\n    import side\nprint(2)\n", "side.py": "print(1)\n"}
    assert parted(executed_files(files, tmp_path)) == [True, False]


def test_a_comprehension_within_another_one_has_variables_of_its_own() -> None:
    ex = executed(f"{_HEAD}import numpy as np\nwords = {{1: 'a'}}\nrows = np.array([[rank, 1], [1, rank]])\ntold = [[words[i] for i in row] for row in rows]\n")
    assert not list(ex.trace.of("unbound", "maybe unbound"))
