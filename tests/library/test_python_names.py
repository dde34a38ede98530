"""The standard library: what differs between processes, what is stored, what is given back."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import Const, const
from tests.execution.paper import constant, executed, held, lines, placed

BEFORE = """\
import argparse, bisect, contextlib, dataclasses, functools, heapq, itertools, json, math, operator, os
import tempfile, time, timeit, socket, collections
from datetime import datetime
from pathlib import Path
k = time.time()
p = argparse.ArgumentParser()
p.add_argument("--lr", default=0.1)
args = p.parse_args()
args.folder = f"runs/{datetime.now()}"
folder = Path(args.folder)
@dataclasses.dataclass(frozen=True)
class C:
    a: int = 3
    b: float = dataclasses.field(default=0.5)
"""


def found(text: str, name: str = "x") -> str:
    return placed(executed(BEFORE + text), name)


@pytest.mark.parametrize(
    "text",
    [
        "x = vars(args)['folder']",
        "x = (folder / 'a').exists()",
        "x = folder.parent.name",
        "x = folder.stem.split('_')[0]",
        "x = folder.some_method()",
        "x = os.path.exists(args.folder)",
        "x = json.load(open(folder / 'a'))",
        "x = open(folder / 'a').read()",
        "x = json.loads(str(k))",
        "x = 'a {}'.format(k).split()[0]",
        "h = []\nheapq.heappush(h, k)\nx = h[0]",
        "h = [1]\nheapq.heappush(h, k)\nx = heapq.heappop(h)",
        "h = [1]\nx = heapq.heappushpop(h, k)",
        "h = [1]\nbisect.insort(h, k)\nx = h[-1]",
        "x = tempfile.mkdtemp()",
        "with tempfile.TemporaryDirectory() as t:\n    x = t",
        "x = tempfile.NamedTemporaryFile().name",
        "x = timeit.timeit(lambda: 1)",
        "x = socket.socket().getsockname()[1]",
        "x = {1: 2}.get(int(k))",
        "x = [1, 2].pop(int(k))",
        "x = operator.mul(2, k)",
        "x = math.fsum([k, 1])",
        "x = [a for a, b in itertools.groupby([1, 2], key=lambda v: v > k)][0]",
        "x = list(itertools.takewhile(lambda v: v > k, [1, 2]))[0]",
        "x = C(a=k).a",
        "x = dataclasses.asdict(C(a=k))['a']",
        "x = dataclasses.replace(C(), a=k).a",
        "x = 'a'.zfill_of(k)",
    ],
)
def test_what_differs_is_said_to(text: str) -> None:
    assert found(text) == "per rank"


@pytest.mark.parametrize(
    "text",
    [
        "x = Path('a').parent.name",
        "x = json.load(open('a'))['b']",
        "x = open('a').read()",
        "h = [2]\nheapq.heapify(h)\nx = heapq.heapreplace(h, 1)",
        "x = [b for a, b in itertools.pairwise([1, 2])][0]",
        "x = list(itertools.starmap(pow, [(2, 3)]))[0]",
        "x = [(list(g), key) for key, g in itertools.groupby([1, 2])][0]",
        "x = list(itertools.compress([1, 2], [True, False]))",
        "x = dataclasses.fields(C)",
        "x = operator.itemgetter(1)",
        "with contextlib.closing(open('a')) as f:\n    x = f.read()",
        "x = vars(object())",
    ],
)
def test_what_is_equal_is_said_to_be(text: str) -> None:
    assert found(text) == "uniform"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = dataclasses.replace(C(), a=9).a", 9),
        ("x = dataclasses.asdict(C())['b']", 0.5),
        ("x = operator.add(1, 2)", 3),
        ("x = operator.getitem([4, 5], 1)", 5),
        ("x = functools.reduce(operator.mul, [3])", None),
    ],
)
def test_constants_stay_what_they_are(text: str, wanted: object) -> None:
    ex = executed(BEFORE + text)
    if wanted is None:
        assert placed(ex, "x") == "uniform"
    else:
        assert constant(ex, "x") == wanted


def test_the_place_of_what_differs_is_not_known_to_be_equal() -> None:
    for text in ("x = [1, 2].count(k)", "x = [1, 2].index(int(k))"):
        assert found(text) == "unknown"


def test_options_are_the_items_of_their_dictionary() -> None:
    (atom,) = held(executed(BEFORE + "x = vars(args)['lr']"), "x")
    assert atom.default == Const("float", 0.1)  # type: ignore[union-attr]


def test_a_parser_that_finds_an_error_ends_the_process() -> None:
    ex = executed(BEFORE + "if args.lr is None:\n    x = 1\n    p.error('no')\n    print('never')")
    assert lines(ex, "exit") != []
    assert lines(ex, "print") == []


def test_a_folder_of_the_clock_is_made() -> None:
    ex = executed(BEFORE + "folder.mkdir()\nfolder.parent.mkdir(exist_ok=True)")
    assert len(lines(ex, "files")) == 2
    assert not ex.trace.missed


def test_a_dataclass_by_a_call_is_one() -> None:
    ex = executed(BEFORE + "class D:\n    a: int = 1\nD = dataclasses.dataclass(D)\nx = D(a=4).a")
    assert held(ex, "x") == const(4)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("xs = [[1, 2], [3, 4]]\nx = xs[int(k)][0]", "per rank"),
        ("xs = [(1, 2), (3, 4)]\nx, y = xs[int(k)]", "per rank"),
        ("xs = [[1, 2], [3, 4]]\nx = [y for y in xs[int(k)]][0]", "per rank"),
        ("x = list(map(str.lower, ['A', 'B']))[0]", "uniform"),
        ("x = str.upper(str(k))", "per rank"),
        ("x = dict.fromkeys(['a'], k)['a']", "per rank"),
        ("x = dict.fromkeys(['a'], 1)['a']", "uniform"),
        ("x = dict.fromkeys(json.load(open('a')), 1)", "uniform"),
        ("x = [y for y in open(str(k)).readlines()][0]", "per rank"),
        ("x = str.maketrans('a', 'b')", "uniform"),
        ("x = folder.some.place[0]", "per rank"),
    ],
)
def test_what_is_taken_of_one_of_several_differs(text: str, wanted: str) -> None:
    assert found(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = 'gpu' in args", "uniform"),
        ("x = str(k) in args", "per rank"),
        ("d = {'a': k}\nx = json.loads('3') in d", "uniform"),
        ("d = {'a': 1}\nx = str(k) in d", "per rank"),
        ("def f(lr, folder):\n    return lr\nx = f(**vars(args))", "uniform"),
        ("def f(lr, folder):\n    return folder\nx = f(**vars(args))", "per rank"),
        ("x = vars(args).get('lr')", "uniform"),
        ("x = vars(args).get('other', 2)", "uniform"),
        ("x = vars(args).get(json.load(open('a')))", "per rank"),
        ("x = vars(args)[json.load(open('a'))]", "per rank"),
        ("x = vars(args)['other']", "uniform"),
        ("vars(args)[json.load(open('a'))] = k\nx = vars(args)['other']", "per rank"),
        ("vars(args).update({'lr': k})\nx = args.lr", "per rank"),
        ("vars(args).update(json.load(open('a')))\nx = args.lr", "uniform"),
        ("vars(args).update(json.load(open(str(k))))\nx = args.lr", "per rank"),
        ("x = [v for n, v in vars(args).items()][0]", "uniform"),
        ("x = list(vars(args).keys())[0]", "uniform"),
        ("x = list(vars(args).values())[1]", "per rank"),
        ("x = vars(args).copy()['lr']", "uniform"),
    ],
)
def test_each_option_lies_by_itself(text: str, wanted: str) -> None:
    assert found(text) == wanted


def test_what_is_stored_in_the_dictionary_of_options_is_an_option() -> None:
    for way in ("vars(args)", "args.__dict__"):
        ex = executed(BEFORE + f"{way}['new'] = {{'a': 5}}\nx = args.new['a']\ny = 'new' in args")
        assert constant(ex, "x") == 5
        assert constant(ex, "y") is True
