"""Libraries that compute from what they are given: none of them needs to be there to be executed on paper."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import Data
from dpmigrate.library.pure import FAMILIES
from dpmigrate.library.tables import Tables
from tests.execution.paper import executed, held, lines, parted, placed

BEFORE = """\
import time, random
import numpy as np
import pandas as pd
import cv2, h5py, yaml, psutil
import matplotlib.pyplot as plt
from PIL import Image, ImageDraw
from prettytable import PrettyTable
from sklearn.cluster import KMeans
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split, KFold
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
k = time.time()
df = pd.read_csv("a.csv")
loader = DataLoader(TensorDataset(torch.ones(4, 3), torch.ones(4)), 2)
"""


def found(text: str, name: str = "x") -> str:
    return placed(executed(BEFORE + text), name)


@pytest.mark.parametrize(
    "text",
    [
        "x = df.iloc[3, 0]",
        "x = df['a'].values.mean()",
        "x = len(df)",
        "x = df.apply(lambda r: r + 1)",
        "x = torch.tensor(df['a'].values)",
        "x = torch.ones(3) * df.values",
        "fig, x = plt.subplots()",
        "df.iloc[int(k)]\nx = df.iloc[0]",
        "t = PrettyTable()\nt.add_row([1])\nx = t.get_string()",
        "x = f1_score([1, 2], [2, 1])",
        "x = yaml.safe_load(open('a'))['lr']",
        "with h5py.File('a') as f:\n    x = f['y'][...]",
        "x = cv2.imread('a') > 3",
    ],
)
def test_what_is_made_of_equals_is_equal(text: str) -> None:
    assert found(text) in ("uniform", "zero")


@pytest.mark.parametrize(
    "text",
    [
        "x = df.iloc[int(k), 0]",
        "x = df.rolling(k).mean().iloc[0]",
        "df['a'] = [k]\nx = torch.tensor(df['b'].values)",
        "df['a'] = [k]\nx = torch.ones(3) * df.values",
        "df['a'] = [k]\nx = df > 3",
        "df['a'] = [k]\nx = torch.ones(3) > df",
        "x = df.apply(lambda r: r + k)",
        "t = PrettyTable()\nt.add_row([k])\nx = t.get_string()",
        "t = PrettyTable()\nif k > 3:\n    t.add_row([1])\nx = t.get_string()",
        "e = KMeans()\ne.fit([k])\nx = e.predict([1])",
        "img = Image.open('a')\nd = ImageDraw.Draw(img)\nd.text((0, 0), str(k))\nx = img.size",
        "img = np.zeros((3, 3))\ncv2.circle(img, (int(k), 0), 1, 1)\nx = img",
        "x = yaml.safe_load(open(f'{k}'))['lr']",
        "x = psutil.virtual_memory().percent",
        "x = 0\nif df.iloc[int(k), 0]:\n    x = 1",
    ],
)
def test_what_is_made_of_what_differs_differs(text: str) -> None:
    assert found(text) == "per rank"


def test_what_is_made_of_samples_is_no_sample() -> None:
    """No page says of a whole library that it treats each sample by itself."""
    loop = "for a, b in loader:\n    x = cv2.mean(a.numpy())\n    y = f1_score(a, b)\n"
    for name in ("x", "y"):
        assert found(loop, name) == "per rank"
    ex = executed(BEFORE + "for a, b in loader:\n    x = pd.DataFrame(a.numpy())")
    assert not any(d.gradient != "none" for d in held(ex, "x") if isinstance(d, Data))


def test_what_is_not_known_stays_so() -> None:
    assert found("import other\nx = df.loc[other.f(k)]") == "unknown"
    assert found("x = pd.DataFrame(loader)") == "unknown"


@pytest.mark.parametrize(
    ("on_rank_0", "same"),
    [("print(df['a'])", True), ("print(len(df), df.get('a'))", True), ("df.insert(0, 'b', 3)", False), ("print(df.pop('a'))", False)],
)
def test_what_rank_0_alone_asks_of_an_object_changes_nothing(on_rank_0: str, same: bool) -> None:
    text = f"if ddp.is_main():\n    {on_rank_0}\nx = df['c'].mean()"
    assert found(text) == ("uniform" if same else "per rank")


def test_none_may_come_back() -> None:
    ex = executed(BEFORE + "if cv2.imread('a') is None:\n    print('none')")
    assert lines(ex, "print") == [BEFORE.count("\n") + 2]
    assert parted(ex) == [False]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("df.to_csv('b.csv')", "write"),
        ("plt.plot([1])", "write"),
        ("fig, ax = plt.subplots()\nax.plot([1])", "write"),
        ("cv2.imwrite('a', df.values)", "write"),
        ("h5py.File('a', 'w')", "open"),
        ("KMeans().fit(df)", "draw"),
        ("train_test_split(df)", "draw"),
    ],
)
def test_what_a_library_does_beside_its_result(text: str, kind: str) -> None:
    here = BEFORE.count("\n") + 1
    assert max(lines(executed(BEFORE + text), kind)) >= here


@pytest.mark.parametrize(
    "text", ["KMeans(random_state=0).fit(df)", "train_test_split(df, random_state=1)"]
)
def test_with_a_seed_nothing_is_drawn(text: str) -> None:
    assert lines(executed(BEFORE + text), "draw") == []


def test_draws_differ_where_ranks_have_streams_of_their_own() -> None:
    text = "x = KMeans().fit_predict(df)"
    assert found(text) == "uniform"
    assert found("ddp.seed_ranks()\n" + text) == "per rank"
    assert found("ddp.seed_ranks()\nx = KMeans(random_state=0).fit_predict(df)") == "uniform"


def test_a_family_tells_its_source_and_brings_no_names_by_a_star() -> None:
    assert all(f.source.startswith("https://") for f in FAMILIES.values())
    assert Tables().exported("cv2", "print") is None
    assert found("from cv2 import *\nx = print") == "uniform"


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        ("KFold(3)", False),
        ("KFold(3, shuffle=True)", True),
        ("KFold(3, shuffle=True, random_state=1)", False),
    ],
)
def test_folds_are_drawn_where_they_are_shuffled(made: str, draws: bool) -> None:
    text = f"ddp.seed_ranks()\nfor a, x in {made}.split(df):\n    pass"
    assert bool(lines(executed(BEFORE + text), "draw")) == draws
    assert found(text) == ("per rank" if draws else "uniform")


def test_a_split_of_what_differs_differs() -> None:
    assert found("x, y = train_test_split(torch.ones(3) * k, random_state=0)") == "per rank"
    assert found("for x, y in KFold(3).split([k]):\n    pass") == "per rank"
    assert found("ddp.seed_ranks()\nx, y = train_test_split([1, 2])") == "per rank"
    assert found("x, y = train_test_split([1, 2], shuffle=False)") == "uniform"


@pytest.mark.parametrize(("text", "told"), [("plt.subplots(1, int(k))", False), ("plt.figure(figsize=(int(k), 2))", False), ("plt.plot([int(k)])", True)])
def test_the_place_of_a_plot_tells_nothing(text: str, told: bool) -> None:
    here = BEFORE.count("\n") + 1
    assert (max(lines(executed(BEFORE + text), "write"), default=0) >= here) is told
