"""Loops over the samples of a batch: what they make is that of the whole batch, or not claimed."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest
import torch

from dpmigrate.execution.values import Data, placement_of
from tests.execution.paper import executed, module_of

_DATA = """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(16, 3), torch.randn(16)), batch_size=8)
table = torch.arange(1., 9.)
names = [2., 3., 5., 7., 11., 13., 17., 19.]
weight = torch.ones(3)
"""
_LOOP = "for x, y in loader:\n"


@pytest.mark.parametrize("given", ["{'x': x, 'y': y}", "[x, y]", "(x, {'y': y})"])
def test_what_a_function_puts_together_lies_as_it_has_put_it(given: str) -> None:
    """Behind the places of sequences, in a dictionary and a list as well: it is no sample any more."""
    text = f"""
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
def join(samples):
    x, y = pad_sequence([s[0] for s in samples]), torch.stack([s[1] for s in samples])
    return {given}
for batch in DataLoader([(torch.ones(3, 5), torch.ones(3))] * 8, 4, collate_fn=join):
    x, y = {"batch" if given.startswith("[") else "batch['x'], batch['y']" if given.startswith("{") else "batch[0], batch[1]['y']"}
"""
    ex = executed(text)
    for name, wanted, axes in (("x", "rows(axis 1, padded)", 3), ("y", "rows(axis 0)", 2)):
        (held,) = ex.bound(ex.heap.read((module_of(ex).number, name)) or ())
        assert isinstance(held, Data)
        assert (str(held.placement), held.axes) == (wanted, axes)


def test_what_a_function_puts_together_may_hold_itself() -> None:
    text = """
import torch
from torch.utils.data import DataLoader
def join(samples):
    parts = [torch.stack([s for s in samples])]
    parts.append(parts)
    return {"parts": parts}
for batch in DataLoader([torch.ones(3)] * 8, 4, collate_fn=join):
    found = batch["parts"][0]
"""
    ex = executed(text)
    assert ex.trace.ended is None
    assert ex.heap.read((module_of(ex).number, "found"))


#: what a function puts together of samples, and how it lies
_TOGETHER = {
    "torch.cat([s[0] for s in samples])": "rows(axis 0, ragged)",
    "torch.cat([s[0] for s in samples], dim=1)": "rows(axis 1, ragged)",
    "torch.cat([s[1] for s in samples], dim=-1)": "rows(axis 0, ragged)",
    "torch.cat(list(zip(*samples))[0])": "rows(axis 0, ragged)",
    "torch.from_numpy(numpy.concatenate([s[0].numpy() for s in samples]))": "rows(axis 0, ragged)",
    "torch.cat([s[0].unsqueeze(0) for s in samples])": "rows(axis 0)",
    "torch.cat([s[0][None] for s in samples], dim=0)": "rows(axis 0)",
    "torch.vstack([s[1] for s in samples])": "rows(axis 0)",
    "torch.hstack([s[1] for s in samples])": "rows(axis 0, ragged)",
    "torch.stack([s[0] for s in samples])": "rows(axis 0)",
    "torch.stack([s[0] for s in samples]).sum()": "per rank",
    "len(samples)": "size(1)",
}


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize(("made", "wanted"), _TOGETHER.items(), ids=_TOGETHER)
def test_what_is_put_end_to_end_has_of_each_sample_as_many_rows_as_it_has(made: str, wanted: str, drawn: bool) -> None:
    """A mean over it is none over as many rows on every rank."""
    text = f"""
import numpy
import torch
from torch.utils.data import DataLoader
class Pieces:
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.ones(3 + i % 2, 5), torch.ones(3) * i
def join(samples):
    return {{"made": {made}}}
for batch in DataLoader({"Pieces()" if drawn else "[(torch.ones(3, 5), torch.ones(3))] * 8"}, 4, collate_fn=join):
    found = batch["made"]
"""
    ex = executed(text)
    held = ex.bound(ex.heap.read((module_of(ex).number, "found")) or ())
    assert held
    assert str(placement_of(held)) == wanted


@pytest.mark.parametrize(("dim", "wanted"), [(-1, "rows(axis 0, padded)"), (-2, "rows(axis 0, padded)"), (-3, "unknown")])
def test_sequences_that_are_padded_have_two_axes_at_least(dim: int, wanted: str) -> None:
    """How many more a sample has is not seen: it comes from a file."""
    text = f"""
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
class Pieces:
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.load(f"{{i}}.pt")
def join(samples):
    return pad_sequence(samples, batch_first=True)
for batch in DataLoader(Pieces(), 4, collate_fn=join):
    found = (batch != 0).unsqueeze({dim})
"""
    ex = executed(text)
    assert str(placement_of(ex.bound(ex.heap.read((module_of(ex).number, "found")) or ()))) == wanted


def claimed(body: str) -> str:
    """How ``found`` lies that is made of a batch."""
    ex = executed(_DATA + _LOOP + indent(dedent(body).strip("\n"), "    "))
    held = ex.heap.read((module_of(ex).number, "found"))
    assert held
    return str(placement_of(ex.bound(held)))


def run(body: str, x: torch.Tensor, y: torch.Tensor) -> Any:
    """``found`` of a batch, or of a part of it."""
    scope: dict[str, Any] = {"torch": torch, "x": x, "y": y, "weight": torch.ones(3)}
    scope |= {"table": torch.arange(1.0, 9.0), "names": [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0]}
    exec(dedent(body), scope)
    return scope["found"]


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.arange(24.0, dtype=torch.float64).reshape(8, 3)
    return (x * 0.4 + 0.2).sin(), (x[:, 0] * 1.7).cos()


def holds(body: str, claim: str) -> bool:
    """Whether a claim is true of a batch that two ranks share."""
    x, y = _batch()
    whole = torch.as_tensor(run(body, x, y), dtype=torch.float64)
    parts = [torch.as_tensor(run(body, x[r::2], y[r::2]), dtype=torch.float64) for r in (0, 1)]
    match claim:
        case "partial(mean)":
            made = (parts[0] + parts[1]) / 2 if parts[0].shape == whole.shape else parts[0]
        case "partial(sum)":
            made = parts[0] + parts[1] if parts[0].shape == whole.shape else parts[0]
        case "uniform":
            return all(p.shape == whole.shape and torch.allclose(p, whole) for p in parts)
        case str() if claim.startswith("size"):
            made = parts[0] + parts[1]
        case str() if claim == "rows(axis 0)":
            made = torch.stack(parts, dim=1).flatten(0, 1)
        case str() if claim.startswith("rows(axis 1"):
            made = torch.stack(parts, dim=2).flatten(1, 2)
        case _:
            return True
    return made.shape == whole.shape and torch.allclose(made, whole)


_SUM, _MEAN, _ROWS, _SIZE = "partial(sum)", "partial(mean)", "rows(axis 0)", "size(0)"

_SEQUENCES = "all = []\nfor a in x:\n    out = []\n    for v in a.tolist():\n        if v > 0:\n            out.append(v)\n    all.append(out)\n"

UNDERSTOOD = {
    "added up": (_SUM, "found = 0.\nfor i in range(len(x)):\n    found += (x[i] - y[i]).abs().sum()"),
    "added up again": (_SUM, "found = 0\nfor i in range(x.size(0)):\n    found = found + x[i, 1] * y[i]"),
    "of the rows": (_SUM, "found = 0\nfor a in x:\n    found += a.std()"),
    "of pairs": (_SUM, "found = 0\nfor a, b in zip(x, y):\n    found += (a * b).norm()"),
    "counted": (_SUM, "found = 0\nfor i, a in enumerate(x):\n    found += (a.mean() - y[i]) ** 2"),
    "counted pairs": (_SUM, "found = 0\nfor i, (a, b) in enumerate(zip(x, y)):\n    found += a.max() * b * x[i].min()"),
    "divided behind": (_MEAN, "found = 0\nfor i in range(len(x)):\n    found += x[i].norm()\nfound = found / len(x)"),
    "divided within": (_MEAN, "found = 0\nfor i in range(len(x)):\n    found += x[i].norm() / x.shape[0]"),
    "halves of means": (_MEAN, "found = 0\nfor i in range(len(x)):\n    found += (x[i].norm() + y[i]) / x.shape[0] * 0.5"),
    "counted by itself": (_MEAN, "found = n = 0\nfor i in range(len(x)):\n    found += x[i].norm()\n    n += 1\nfound = found / n"),
    "how many": (_SIZE, "found = 0\nfor a in x:\n    found += 2"),
    "some": (_SUM, "found = 0\nfor a in x:\n    if a.sum() > 0:\n        found += 1"),
    "others left out": (_SUM, "found = 0\nfor a in x:\n    if a.sum() < 0:\n        continue\n    found += a.norm()"),
    "one of two": (_SUM, "found = 0\nfor a, b in zip(x, y):\n    w = 2. if b > 0 else 1.\n    found += w * a.norm()"),
    "by halves": (_SUM, "found = 0\nfor a, b in zip(x, y):\n    if b > 0:\n        w = 2.\n    else:\n        w = 1.\n    found += w * a.norm()"),
    "stacked": (_ROWS, "found = []\nfor i in range(len(x)):\n    found.append(x[i].norm() * 2)\nfound = torch.stack(found)"),
    "a mean of the stacked": (_MEAN, "all = []\nfor i in range(len(x)):\n    all.append(x[i].norm() * 2)\nfound = torch.stack(all).mean()"),
    "vectors stacked": (_ROWS, "all = []\nfor a in x:\n    all.append(a - a.mean())\nfound = torch.stack(all)"),
    "stacked behind": ("rows(axis 1)", "all = []\nfor a in x:\n    all.append(a - a.mean())\nfound = torch.stack(all, dim=1)"),
    "a comprehension": (_MEAN, "found = torch.stack([(a * b).sum() for a, b in zip(x, y)]).mean()"),
    "a sum of a list": (_MEAN, "all = [a.norm() for a in x]\nfound = sum(all) / len(all)"),
    "a sum of a generator": (_SUM, "found = sum(a.norm() for a in x)"),
    "a tensor of numbers": (_MEAN, "found = torch.tensor([a.norm().item() for a in x]).mean()"),
    "a list gone through": (_SUM, "all = [a.norm() for a in x]\nfound = 0\nfor n in all:\n    found += n ** 2"),
    "lists beside each other": (_SUM, "all = [a.norm() for a in x]\nfound = 0\nfor n, b in zip(all, y):\n    found += n * b"),
    "unbound": (_SUM, "found = 0\nfor a in torch.unbind(x, 0):\n    found += a.norm()"),
    "some of them": ("ratio", "all = []\nfor a in x:\n    if a[0] > 0:\n        all.append(a.norm())\nfound = torch.stack(all).mean()"),
    "chosen in a comprehension": ("ratio", "all = [a.norm() for a in x if a[0] > 0]\nfound = sum(all) / len(all)"),
    "end to end": (_ROWS[:-1] + ", ragged)", "all = []\nfor a in x:\n    all.append(a[a > 0])\nfound = torch.cat(all)"),
    "in a function": (_MEAN, "def one(a, b):\n    return (a * b).sum().abs()\nall = []\nfor a, b in zip(x, y):\n    all.append(one(a, b))\nfound = torch.stack(all).mean()"),
    "in a class": (_MEAN, "class Loss:\n    def __init__(self):\n        self.all = []\n    def __call__(self, x):\n        for a in x:\n            self.all.append(a.norm())\n        return torch.stack(self.all).mean()\nfound = Loss()(x)"),
    "with a list of the turn": (_SUM, "found = 0\nfor a in x:\n    parts = []\n    for k in range(3):\n        parts.append(a[k] * k)\n    found += torch.stack(parts).norm()"),
    "two lists": (_MEAN, "one, two = [], []\nfor a, b in zip(x, y):\n    one.append(a.norm())\n    two.append(b.abs())\nfound = torch.stack(one).mean() + torch.stack(two).mean()"),
    "the same weights": (_SUM, "found = 0\nfor a in x:\n    found += (a * weight).norm()"),
    "the same place of each": (_SUM, "found = 0\nfor i in range(len(x)):\n    for k in range(3):\n        found += x[i, k].abs()"),
    "lists of each in a function": (_SUM, "def one(a):\n    out = []\n    for v in a.tolist():\n        out.append(v * 2)\n    return out\nall = [one(a) for a in x]\nfound = 0.\nfor s in all:\n    found += max(s)"),
    "a length of each": (_SUM, "found = 0\nfor a in x:\n    n = (a > 0).sum()\n    found += len(a[: int(n)])"),
    "parts left out": (_SUM, "found = torch.zeros((), dtype=torch.float64)\nfor a in x:\n    for v in a:\n        if v < 0:\n            continue\n        found = found + v.abs()"),
    "nothing, made of all": (_SUM, "found = torch.zeros((), dtype=torch.float64)\nfor a in x:\n    if a[0] < 0:\n        every = x.sum()\n        found = found + every * torch.zeros_like(every)\n        continue\n    found = found + a.norm()"),
    "a tensor that grows": (_ROWS[:-1] + ", ragged)", "found = torch.tensor([])\nfor a in x:\n    found = torch.cat((found, a[a > 0]))"),
    "a tensor that grows by rows": (_ROWS, "found = torch.empty(0, 3)\nfor a in x:\n    found = torch.cat([found, a.unsqueeze(0)], dim=0)"),
    "a mean of what has grown": (_MEAN, "all = torch.empty(0, 3)\nfor i in range(len(x)):\n    all = torch.cat((all, x[i][None], (x[i] * y[i])[None]))\nfound = all.norm(dim=1).mean()"),
    "a sum of what has grown": (_SUM, "all = torch.tensor([])\nfor a, b in zip(x, y):\n    all = torch.cat(tensors=(all, a[a > 0] * b))\nfound = all.sum()"),
    "grown in a function": (_SUM, "def flat(x):\n    all = torch.zeros(0)\n    for a in x:\n        all = torch.cat((all, a[: int((a > 0).sum())]))\n    return all\nfound = flat(x).abs().sum()"),
    "grown in two loops": (_SUM, "all = torch.zeros(0)\nfor a in x:\n    for k in range(2):\n        all = torch.cat((all, a[k:] * (k + 1)))\nfound = all.abs().sum()"),
    "grown in the turn": (_SUM, "found = 0\nfor a in x:\n    own = torch.zeros(0)\n    for k in range(3):\n        own = torch.cat((own, a[k:] * k))\n    found += own.norm()"),
    "grown by the same": (_SUM, "all = torch.zeros(0, 3)\nfor a in x:\n    all = torch.cat((all, weight[None]))\nfound = (all * x).sum()"),
    "a progress said": (_SUM, "found = 0\nfor i, a in enumerate(x):\n    if i == 0:\n        print(i)\n    found += a.norm()"),
    "lists of each": (_SUM, _SEQUENCES + "found = 0\nfor s, b in zip(all, y):\n    found += len(s) * b"),
    "lists compared": (_MEAN, _SEQUENCES + "found = sum(s == t for s, t in zip(all, [[v for v in b.tolist() if v < 0.5] for b in x])) / len(all)"),
}  # fmt: skip


@pytest.mark.parametrize(("claim", "body"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_what_is_made_of_each_sample(claim: str, body: str) -> None:
    assert claimed(body) == claim
    assert holds(body, claim)


OTHER = {
    "a root of the sum": "found = 0\nfor a in x:\n    found += a.norm()\nfound = found ** 0.5",
    "the last": "for a in x:\n    found = a.norm()",
    "the last part of a mean": "for a in x:\n    found = a.norm() / len(x)",
    "squares of parts of a mean": "found = 0\nfor a in x:\n    found += (a.norm() / len(x)) ** 2",
    "the one before": "found, last = 0, None\nfor a in x:\n    if last is not None:\n        found += (a - last).norm()\n    last = a",
    "the one before, from zero": "found, last = 0, 0\nfor a in x:\n    found = found + (a - last).norm()\n    last = a",
    "the one before by its place": "found = 0\nfor i in range(len(x)):\n    found += (x[i] - x[i - 1]).norm()",
    "its place kept": "found, last = 0, 0\nfor i in range(len(x)):\n    found += (x[i] - x[last]).norm()\n    last = i",
    "pairs": "found = 0\nfor i in range(len(x)):\n    for j in range(len(x)):\n        found += (x[i] - x[j]).norm()",
    "pairs of rows": "found = 0\nfor a in x:\n    for b in x:\n        found += (a * b).sum().abs()",
    "all others": "found = 0\nfor a in x:\n    found += (x - a).norm()",
    "the mean of all": "found = 0\nfor a in x:\n    found += (a - x.mean(0)).norm()",
    "weights by place": "found = 0\nfor i in range(len(x)):\n    found += table[i] * x[i].norm()",
    "weights beside": "found = 0\nfor w, a in zip(table, x):\n    found += w * a.norm()",
    "numbers beside": "found = 0\nfor w, a in zip(names, x):\n    found += w * a.norm()",
    "numbers by place": "found = 0\nfor i in range(len(x)):\n    found += names[i] * x[i].norm()",
    "the place as weight": "found = 0\nfor i, a in enumerate(x):\n    found += (i + 1) * a.norm()",
    "the first by place": "found = 0\nfor i, a in enumerate(x):\n    if i == 0:\n        found += a.norm()",
    "weights by a test of the place": "found = 0\nfor i, a in enumerate(x):\n    w = 2. if i % 2 else 1.\n    found += w * a.norm()",
    "weights by a branch on the place": "found = 0\nfor i, a in enumerate(x):\n    w = 1.\n    if i > 2:\n        w = 3.\n    found += w * a.norm()",
    "left out by place": "found = 0\nfor i, a in enumerate(x):\n    if i % 2:\n        continue\n    found += a.norm()",
    "until a place": "found = 0\nfor i, a in enumerate(x):\n    if i == 2:\n        break\n    found += a.norm()",
    "until a sample": "found = 0\nfor a in x:\n    if a[0] > 0.9:\n        break\n    found += a.norm()",
    "the first that fits": "def first(x):\n    for a in x:\n        if a.sum() > 0:\n            return a.norm()\n    return x[0, 0]\nfound = first(x)",
    "the greatest": "found = torch.tensor(-9.)\nfor a in x:\n    found = torch.maximum(found, a.norm())",
    "begun again": "found = torch.zeros(())\nfor a in x:\n    if a[0] > 0:\n        found = torch.zeros(())\n    found = found + a.norm()",
    "begun again, parts left out": "found = torch.zeros(())\nfor a in x:\n    if a[0] > 0:\n        found = torch.zeros(())\n    for v in a:\n        if v < 0:\n            continue\n        found = found + v.abs()",
    "all, by a sample": "found = torch.zeros(())\nfor a in x:\n    if a[0] < 0:\n        found = found + x.sum()\n        continue\n    found = found + a.norm()",
    "a decay": "found = 0.\nfor a in x:\n    found = 0.9 * found + a.norm()",
    "one behind the other": "found = weight\nfor a in x:\n    found = (found * a).tanh()\nfound = found.sum()",
    "one of the list": "all = [a.norm() for a in x]\nfound = all[0]",
    "some of the list": "all = [a.norm() for a in x]\nfound = sum(all[1:])",
    "two of the list": "all = [a.norm() for a in x]\nfound = all[0] * all[1]",
    "sorted": "all = sorted([a.norm().item() for a in x])\nfound = torch.tensor(all)",
    "a list that began with more": "all = [weight.norm()]\nfor a in x:\n    all.append(a.norm())\nfound = torch.stack(all).mean()",
    "places of others": "found = 0\nfor i in range(len(x)):\n    found += x[len(x) - 1 - i].norm() * y[i]",
    "another start": "found = 0\nfor i, a in enumerate(x, 1):\n    found += a.norm() * x[i % len(x)].norm()",
    "from the second on": "found = 0\nfor i in range(1, len(x)):\n    found += x[i].norm()",
    "every second": "found = 0\nfor i in range(0, len(x), 2):\n    found += x[i].norm()",
    "half of them": "found = 0\nfor i in range(len(x) // 2):\n    found += x[i].norm()",
    "a running mean": "found, n = 0., 0\nfor a in x:\n    n += 1\n    found = found + (a.norm() - found) / n",
    "what was added so far": "s = found = 0\nfor a in x:\n    s = s + a.norm()\n    found += s",
    "how many so far": "n = found = 0\nfor a in x:\n    n += 1\n    found += n * a.norm()",
    "a shuffled order": "found = 0\nfor i, j in enumerate(torch.arange(len(x)).flip(0)):\n    found += (x[i] * x[j]).sum().abs()",
    "a list by place": "all = [a.norm() for a in x]\nfound = 0\nfor i in range(len(x)):\n    found += all[i - 1] * y[i]",
    "a place put into a list": "at = []\nfor i, a in enumerate(x):\n    at.append(i)\nfound = 0\nfor i, a in zip(at, x):\n    found += i * a.norm()",
    "a place in a dictionary": "at = {}\nfor i, a in enumerate(x):\n    at['i'] = i\n    at['a'] = a.norm()\nfound = at['a'] * at['i']",
    "the order of selections": "first = x[x[:, 0] > 0]\nfound = 0\nfor i in range(len(first)):\n    found += (first[i] - x[i]).norm()",
    "samples of two views": "z = torch.cat([x, x * 2])\nfound = 0\nfor i in range(len(x)):\n    found += (z[i] - x[i]).norm() + (z[2 * i] - x[i]).norm()",
    "an attribute of the turn before": "class S:\n    a = None\ns = S()\nfound = 0\nfor a in x:\n    if s.a is not None:\n        found += (s.a * a).sum().abs()\n    s.a = a",
    "a list of the turn before": "seen = []\nfound = 0\nfor a in x:\n    for b in seen:\n        found += (a * b).sum().abs()\n    seen.append(a)",
    "a list of the turn before that grows": "all, last = [], None\nfor a in x:\n    out = [a[0].item()]\n    all.append(out)\n    if last is not None:\n        last.append(a[1].item())\n    last = out\nfound = 0.\nfor s in all:\n    found += sum(s)",
    "a list that takes the place of another": "all, last = [], [0.]\nfor a in x:\n    out = [a[0].item()]\n    all.append(last)\n    last = out\nfound = 0.\nfor s in all:\n    found += sum(s)",
    "lists as long as the longest": "most = max(int(a.abs().sum() * 9) for a in x)\nall = []\nfor a in x:\n    out = [a[0].item()]\n    while len(out) < most:\n        out.append(1.)\n    all.append(out)\nfound = 0.\nfor s in all:\n    found += sum(s)",
    "grown to the front": "found = torch.empty(0, 3)\nfor a in x:\n    found = torch.cat((a[None], found))",
    "grown behind more": "all = weight[None] * 2\nfor a in x:\n    all = torch.cat((all, a[None]))\nfound = all.mean()",
    "grown by some": "all = torch.empty(0, 3)\nfor a in x:\n    if a[0] > 0:\n        all = torch.cat((all, a[None]))\nfound = all.mean()",
    "grown by every second": "all = torch.empty(0, 3)\nfor i, a in enumerate(x):\n    if i % 2:\n        all = torch.cat((all, a[None]))\nfound = all.sum()",
    "grown so far": "found, all = 0, torch.empty(0, 3)\nfor a in x:\n    all = torch.cat((all, a[None]))\n    found += (all * a).sum().abs()",
    "the first that has grown": "found, all = 0, torch.empty(0, 3)\nfor a in x:\n    all = torch.cat((all, a[None]))\n    found += (all[0] * a).sum().abs()",
    "how much has grown so far": "found, all = 0, torch.empty(0, 3)\nfor a in x:\n    all = torch.cat((all, a[None]))\n    found += len(all) * a.norm()",
    "put behind nothing": "all = torch.empty(0, 3)\nfor a in x:\n    two = torch.cat((all, a[None]))\nfound = two.sum()",
    "nothing put in its place": "all = torch.empty(0, 3)\nfor a in x:\n    all = torch.empty(0, 3)\n    all = torch.cat((all, a[None]))\nfound = all.sum()",
    "grown, and begun again": "all = torch.empty(0, 3)\nfor a in x:\n    if a[0] > 0:\n        all = torch.empty(0, 3)\n    all = torch.cat((all, a[None]))\nfound = all.sum()",
    "grown by all": "all = torch.empty(0, 3)\nfor a in x:\n    all = torch.cat((all, x))\nfound = all.sum()",
    "grown by its place": "all = torch.tensor([])\nfor i in range(len(x)):\n    all = torch.cat((all, torch.tensor([float(i + 1)])))\nfound = (all * y).sum()",
    "grown sideways": "all = torch.empty(3, 0)\nfor a in x:\n    all = torch.cat((all, a[:, None]), dim=1)\nfound = (all[:, 0] * all[:, 1]).sum()",
    "grown until a place": "all = torch.empty(0, 3)\nfor i, a in enumerate(x):\n    if i == 2:\n        break\n    all = torch.cat((all, a[None]))\nfound = all.sum()",
    "the last of a list": "seen = [x[0]]\nfound = 0\nfor a in x:\n    found += (seen[-1] * a).sum().abs()\n    seen.append(a)",
}  # fmt: skip


#: those that come to the same where ranks have every second sample, or by their algebra
_BY_CHANCE = ("half of them", "a running mean")


@pytest.mark.parametrize("body", OTHER.values(), ids=OTHER)
def test_what_is_not_that_of_the_whole_batch(body: str) -> None:
    assert claimed(body) in ("per rank", "unknown", "ratio")


@pytest.mark.parametrize("body", [b for n, b in OTHER.items() if n not in _BY_CHANCE])
def test_two_ranks_would_get_it_wrong(body: str) -> None:
    assert not any(holds(body, c) for c in ("partial(sum)", "partial(mean)", "uniform"))


@pytest.mark.parametrize(("filled", "wanted"), [("if len(loader) > 1:", "unknown"), ("if True:", "rows(axis 0)")])
def test_a_list_that_may_not_be_filled_may_leave_what_was_before(filled: str, wanted: str) -> None:
    made = f"all = []\n{filled}\n    for a in x:\n        all.append(a)\nfound = torch.empty(0, 3)\n"
    assert claimed(made + "for a in all:\n    found = torch.cat((found, a[None]))") == wanted


_FIELDS = """
import torchvision
from torch.utils.data import DataLoader
pictures = torchvision.datasets.CIFAR10("pictures", transform=torchvision.transforms.ToTensor())
for batch in DataLoader(pictures, batch_size=4):
    x, y = (t.to("cpu") for t in batch)
    both = [t.to("cpu") for t in batch]
    z = both[0]
"""


def test_the_fields_of_a_batch_of_unknown_form_are_no_samples() -> None:
    ex = executed(_FIELDS)
    for name in "xyz":
        held = ex.bound(ex.heap.read((module_of(ex).number, name)) or ())
        assert str(placement_of(held)) == "rows(axis 0)"
