"""What a branch that ranks take differently leaves: equal on paper is not one value."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.execution.heap import Heap
from dpmigrate.execution.store import Narrowed
from dpmigrate.execution.values import Setting, placement_of, value
from tests.execution.paper import executed, module_of

_HEAD = """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(16, 3), torch.randn(16)), batch_size=8)
"""


def placed(body: str, defs: str = "") -> str:
    """How ``found`` lies that is made of a batch."""
    ex = executed(f"{_HEAD}{defs}\nfor x, y in loader:\n{indent(body, '    ')}\n")
    held = ex.heap.read((module_of(ex).number, "found"))
    assert held
    return str(placement_of(ex.bound(held)))


_MEANS = "m = x.mean()\nif {test}:\n    found = m\nelse:\n    found = m + y.mean()"
_RETURNS = "def f(x, y):\n    m = x.mean()\n    if {test}:\n        return m\n    return m + y.mean()\n"


@pytest.mark.parametrize("test", ["m > 1.0", "m.item() > 1.0", "y.max() > 0"])
def test_a_mean_that_each_rank_has_chosen_is_no_mean(test: str) -> None:
    assert placed(_MEANS.format(test=test)) == "per rank"
    assert placed("found = f(x, y)", _RETURNS.format(test=test)) == "per rank"


@pytest.mark.parametrize("test", ["len(loader) > 1", "loader.batch_size > 2"])
def test_what_all_ranks_choose_alike_is_what_it_is(test: str) -> None:
    assert placed(_MEANS.format(test=test)) == "partial(mean)"
    assert placed("found = f(x, y)", _RETURNS.format(test=test)) == "partial(mean)"


def test_what_no_branch_writes_stays() -> None:
    assert placed("found = x.mean()\nif found > 1:\n    other = 3") == "partial(mean)"
    assert placed("if x.max() > 1:\n    found = 3\nelse:\n    found = 3") == "uniform"
    assert placed("if x.max() > 1:\n    found = (1, 2)\nelse:\n    found = (1, 2)") == "uniform"


_ONE_OR_TWO = "option = open('a').read()\nb = (x, y) if option else x\n"
_OWN = "def isinstance(a, c):\n    return open('a').read()\n"


@pytest.mark.parametrize(
    ("body", "lies"),
    [
        pytest.param("if isinstance(b, (tuple, list)):\n    b = b[0]\nfound = b", "rows(axis 0)", id="a tuple or a list"),
        pytest.param("found = b[0] if isinstance(b, tuple) else b", "rows(axis 0)", id="in an expression"),
        pytest.param("if not isinstance(b, torch.Tensor):\n    b = b[0]\nfound = b", "rows(axis 0)", id="no tensor"),
        pytest.param("if isinstance(b, list) or isinstance(b, tuple):\n    b = b[0]\nfound = b", "per rank", id="one of two tests: not followed"),
        pytest.param("if option:\n    b = b[0]\nfound = b", "per rank", id="another test"),
        pytest.param("if isinstance(b, torch.Tensor):\n    b = b[0]\nelse:\n    b = y\nfound = b", "per rank", id="a tensor"),
    ],
)
def test_a_branch_knows_what_was_asked_for(body: str, lies: str) -> None:
    """What cannot be there is not indexed: a sample of a tensor of samples is one of the rank's own."""
    assert placed(_ONE_OR_TWO + body) == lies


def test_a_function_of_the_program_may_ask_anything() -> None:
    body = _ONE_OR_TWO + "if isinstance(b, tuple):\n    b = b[0]\nfound = b"
    assert placed(body, _OWN) == "per rank"


@pytest.mark.parametrize(
    ("text", "found"),
    [("x * a", "rows(axis 0)"), ("a + x.mean(1, keepdim=True)", "rows(axis 0)"), ("-1 * a", "rows(axis 0)")],
)
def test_none_has_no_sum_and_no_product(text: str, found: str) -> None:
    """A function that ends without a result on a way of its own: that way has an end."""
    layer = "import sys\ndef layer(x):\n    if len(sys.argv) == 1:\n        return x * 2\n    elif len(sys.argv) == 2:\n        return x.exp()\n"
    assert placed(f"a = layer(x)\nfound = {text}", layer) == found


_OPTIONS = """import argparse
args = argparse.Namespace(many=len(open('a').read()) > 3, other=len(open('b').read()) > 3)
"""


@pytest.mark.parametrize(
    ("ends", "asks", "lies"),
    [
        pytest.param("args.many", "args.many", "partial(mean)", id="false behind what ends the program"),
        pytest.param("not args.many", "args.many", "rows(axis 0)", id="true behind it"),
        pytest.param("args.many", "not args.many", "rows(axis 0)", id="the opposite is asked"),
        pytest.param("not args.many", "args.many is None", "partial(mean)", id="what is true is not None"),
        pytest.param("args.many", "args.many is None", "unknown", id="what is false may be None"),
        pytest.param("args.other", "args.many", "unknown", id="another option"),
    ],
)
def test_a_setting_is_what_a_test_has_shown_of_it(ends: str, asks: str, lies: str) -> None:
    ended = f"{_OPTIONS}if {ends}:\n    raise SystemExit\n"
    assert placed(f"found = x if {asks} else x.mean()", ended) == lies


def test_what_only_one_arm_shows_is_not_known_behind_both() -> None:
    copied = f"{_OPTIONS}if args.other:\n    one = args.many\n    if one:\n        raise SystemExit\nelse:\n    one = args.many\n"
    assert placed("found = x if one else x.mean()", copied) == "unknown"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("if x.max() > 1 and args.many:\n    pass", id="beside a rank's own test"),
        pytest.param("if x.max() > 1:\n    if args.many:\n        pass", id="within it"),
        pytest.param("if x.max() > 1:\n    assert args.many", id="asserted within it"),
        pytest.param("for i in range(int(x.max())):\n    if not args.many:\n        break", id="in turns of its own, with break"),
        pytest.param("for i in range(int(x.max())):\n    if not args.many:\n        continue\n    pass", id="with continue"),
        pytest.param("while x.max() > i and args.many:\n    i += 1", id="in a test of such turns"),
    ],
)
def test_what_ranks_ask_for_by_themselves_stays_the_same_on_all(body: str) -> None:
    assert placed(f"i = 0\n{body}\nfound = args.many", _OPTIONS) == "uniform"


@pytest.mark.parametrize(
    "arm",
    [
        pytest.param("one = args.other", id="written"),
        pytest.param("one = args.other\nif one:\n    pass", id="written and asked for"),
        pytest.param("one = args.other\nif one:\n    raise SystemExit", id="written and shown"),
        pytest.param("if one:\n    one = args.other\n    if one:\n        pass", id="shown, written and asked for"),
        pytest.param("one = args.other\nif i:\n    if one:\n        raise SystemExit", id="asked for further within"),
        pytest.param("one = args.other\nfor _ in range(2):\n    if one:\n        pass", id="asked for in turns"),
    ],
)
def test_what_some_ranks_have_written_is_their_own_though_they_ask_for_it(arm: str) -> None:
    assert placed(f"i, one = args.more, args.many\nif x.max() > 1:\n{indent(arm, '    ')}\nfound = one", _OPTIONS.replace("other=", "more=3, other=")) == "per rank"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("for _ in range(int(x.max())):\n    one = args.other\n    if one:\n        break", id="left by break"),
        pytest.param("for _ in range(int(x.max())):\n    one = args.other\n    if one:\n        break\n    break", id="left by break either way"),
        pytest.param("for _ in range(int(x.max())):\n    one = args.other\n    if one:\n        continue", id="by continue"),
        pytest.param("for _ in range(int(x.max())):\n    one = args.other\n    assert one", id="asserted"),
        pytest.param("if x.max() > 1:\n    choose()\none = args.many", id="left by return"),
        pytest.param("try:\n    if x.max() > 1:\n        one = args.other\n        if one:\n            raise ValueError\nexcept ValueError:\n    pass", id="by raise"),
    ],
)
def test_what_is_written_and_then_shown_on_a_way_out_is_another_value(body: str) -> None:
    choose = "def choose():\n    args.many = args.other\n    if args.many:\n        return\n    print('no')\n"
    assert placed(f"one = args.many\n{body}\nfound = one", _OPTIONS + choose) == "per rank"


@pytest.mark.parametrize("deep", [1, 2])
def test_a_way_out_has_written_what_its_branches_have_shown(deep: int) -> None:
    """Seen from before the write it is another value, from behind the write the same."""
    heap, at = Heap(), (1, "one")
    heap.write(at, value(Setting("a")))
    heap.mark()
    level = heap.level - 1
    heap.write(at, value(Setting("b")))
    for _ in range(deep):
        heap.mark()
        heap.narrow(at, value(Setting("b", truth=True)))
    assert type(heap.since(level)[at]) is tuple
    assert type(heap.since(level + 1)[at]) is Narrowed
    for _ in range(deep):
        heap.adopt()
    assert type(heap.rollback()[at]) is tuple


def test_a_tensor_that_is_held_stays_what_it_is_where_some_ranks_make_more_of_its_kind() -> None:
    make = "def make():\n    global t\n    t = torch.ones(3)\n"
    assert placed("make()\nfound = t\nfor _ in range(int(x.max())):\n    make()", make) == "uniform"
