"""What a ``collate_fn`` makes of the samples: where each is by itself, and where they meet."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import Data, Items
from tests.execution.paper import executed, module_of

_PROGRAM = """
import numpy as np
from collections import Counter, deque
from itertools import accumulate
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate
import dpmigrate_runtime as ddp

class Clips(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        x = {made}
        return {sample}

def put(samples):
{body}

data = Clips()
loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data), collate_fn=put)
for batch in loader:
    found = batch
"""
_STACKED = "    x = torch.stack([s[0] for s in samples])\n"


def _given(body: str, sample: str = "x, i % 2, np.ones(3)", made: str = "torch.ones(3) * i") -> list[str]:
    ex = executed(_PROGRAM.format(body=body, sample=sample, made=made))
    out = []
    for a in ex.heap.read((module_of(ex).number, "found")) or ():
        parts = [b for v in a.items for b in v] if isinstance(a, Items) else [a]
        out += [str(b.placement) for b in parts if isinstance(b, Data)]
    return out


@pytest.mark.parametrize(
    "value",
    [
        "x - x.mean(0)", "x / x.std()", "x.softmax(0)", "(x - x.min()) / (x.max() - x.min())", "x + torch.roll(x, 1, 0)",
        "x + x.flip(0)", "x @ x.T", "x.mean(0)", "x[1:] - x[:-1]", "torch.stack([s[0] - x.mean(0) for s in samples])",
        "default_collate(samples)[0] - default_collate(samples)[0].mean(0)",
        "torch.from_numpy(np.stack([s[2] for s in samples]) / np.stack([s[2] for s in samples]).std())",
    ],
)  # fmt: skip
def test_samples_meet(value: str) -> None:
    assert _given(f"{_STACKED}    return {value}") == ["per rank"]


@pytest.mark.parametrize("value", ["x - x.mean(0)", "x / x.std()", "x.softmax(0)", "x.mean(0)"])
def test_tensors_of_files_meet(value: str) -> None:
    """What a file holds is what the function that puts it together says."""
    assert _given(f"{_STACKED}    return {value}", made="torch.load(f'clips/{i}.pt')") == ["per rank"]


@pytest.mark.parametrize(
    "value",
    [
        "x", "2 * x", "x - x.mean(1, keepdim=True)", "x + torch.randn_like(x)", "default_collate(samples)[0]",
        "torch.tensor([s[1] for s in samples])", "x[torch.tensor([s[1] for s in samples]).argsort()]",
        "torch.stack([s[0] for s in sorted(samples, key=lambda s: len(s[0]))])",
        "torch.tensor(np.array([np.pad(s[2], (0, 1)) for s in samples]))", "default_collate(list(filter(None, samples)))[0]",
    ],
)  # fmt: skip
def test_samples_by_themselves(value: str) -> None:
    assert _given(f"{_STACKED}    return {value}") == ["rows(axis 0)"]


_OF_FILE = "torch.ones(3) * i\n        y = [int(c) for c in open(f'labels/{i}').read()]"


@pytest.mark.parametrize("made", [_OF_FILE, "torch.ones(3) * i\n        y = torch.load(f'{i}')", "torch.ones(3) * i\n        y = [[1, 2], [3]][i % 2]"])
@pytest.mark.parametrize(
    ("value", "lying"),
    [
        # some of each sample, one sample after the other
        ("torch.tensor([t for s in samples for t in s['y']])", "rows(axis 0, ragged)"),
        ("torch.tensor([t + 1 for s in samples for t in s['y']])", "rows(axis 0, ragged)"),
        ("torch.tensor([len(s['y']) for s in samples])", "rows(axis 0)"),
        ("torch.stack([s['x'] * k for k in range(2) for s in samples])", "rows(axis 0)"),
        # of which something else of the batch decides
        ("torch.tensor([t for s in samples for t in samples[0]['y']])", "per rank"),
        ("torch.tensor([t for s in samples for r in samples for t in r['y']])", "per rank"),
        ("torch.tensor([t - len(samples[0]['y']) for s in samples for t in s['y']])", "per rank"),
        ("torch.stack([r['x'] * k for s in samples for k in range(2) for r in samples])", "per rank"),
        ("torch.stack([r['x'] for s in samples for r in samples])", "per rank"),
    ],
)
def test_lists_of_samples_end_to_end(value: str, lying: str, made: str) -> None:
    assert _given(f"    return {value}", "{'x': x, 'y': y}", made) == [lying]


_PUT = {
    "extended": "        out.extend({more})\n",
    "added": "        out += {more}\n",
    "put together anew": "        out = out + {more}\n",
}


@pytest.mark.parametrize("made", [_OF_FILE, "torch.ones(3) * i\n        y = [[1, 2], [3]][i % 2]"])
@pytest.mark.parametrize(
    ("how", "more", "ragged"),
    [
        ("extended", "s['y']", True),
        ("added", "s['y']", True),
        ("extended", "[t + 1 for t in s['y']]", True),
        ("extended", "s['x'].tolist()", True),
        ("extended", "samples[0]['y']", False),
        ("added", "samples[0]['y']", False),
        ("put together anew", "s['y']", False),
    ],
)
def test_lists_that_grow_by_some_of_each_sample(how: str, more: str, ragged: bool, made: str) -> None:
    body = f"    out = []\n    for s in samples:\n{_PUT[how].format(more=more)}    return torch.tensor(out)"
    (lying,) = _given(body, "{'x': x, 'y': y}", made)
    assert (lying == "rows(axis 0, ragged)") is ragged
    assert lying != "rows(axis 0)"


@pytest.mark.parametrize("value", ["torch.tensor(samples[0]['y'] + samples[1]['y'])", "torch.tensor(list(samples[0]['y']))"])
def test_lists_of_single_samples_are_no_rows(value: str) -> None:
    assert _given(f"    return {value}", "{'x': x, 'y': y}", _OF_FILE) in (["per rank"], ["rows(axis 0, padded)"])


def test_fields_of_samples_are_kept_apart() -> None:
    body = "    x = torch.stack([s['x'] for s in samples])\n    return x - x.mean(0), torch.tensor([s['y'] for s in samples])"
    assert _given(body, "{'x': x, 'y': i}") == ["per rank", "rows(axis 0)"]


def test_samples_filled_up_in_a_loop() -> None:
    body = (
        "    xs = [s[0] for s in samples]\n    out = torch.zeros(len(xs), max(len(x) for x in xs))\n"
        "    for i, x in enumerate(xs):\n        out[i, :len(x)] = x\n    return out"
    )
    assert _given(body) == ["rows(axis 0, padded)"]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ("batch.shape[0], *batch.shape[1:]", "rows(axis 0, padded)"),
        ("(batch.shape[0],) + batch.shape[1:]", "unknown"),
        ("(batch.shape[0],) + batch.shape[2:]", "rows(axis 0)"),
        ("(len(batch),) + (1,) * (batch.dim() - 1)", "rows(axis 0)"),
    ],
)
def test_sizes_go_on_as_the_longest_sample_of_a_rank_does(sizes: str, expected: str) -> None:
    body = "    return torch.nn.utils.rnn.pad_sequence([s[0] for s in samples], batch_first=True)"
    program = _PROGRAM.format(body=body, sample="x, i % 2, np.ones(3)", made="torch.load(f'clips/{i}.pt')")
    ex = executed(f"{program}    out = torch.ones({sizes})\n")
    made = ex.heap.read((module_of(ex).number, "out")) or ()
    assert [str(a.placement) for a in made if isinstance(a, Data)] == [expected]


@pytest.mark.parametrize("value", ["torch.eye(3)", "torch.arange(8)", "torch.zeros(4, 4)"])
def test_constants_are_no_rows(value: str) -> None:
    rows, constant = _given(f"{_STACKED}    return x, {value}")
    assert rows == "rows(axis 0)"
    assert constant in ("uniform", "zero")


def test_numbers_that_are_drawn_differ() -> None:
    """Workers of each rank draw others."""
    assert _given(f"{_STACKED}    return x, np.random.rand()") == ["rows(axis 0)", "per rank"]


_LISTED = "torch.ones(3) * i\n        y = [k % 2 for k in range(i % 4 + 1)]"
_TOGETHER = [
    "least = min(len(s['y']) for s in samples)\n    return torch.tensor([float(len(s['y']) - least) for s in samples])",
    "most = max([s['x'].max() for s in samples])\n    return torch.stack([s['x'] / most for s in samples])",
    "return torch.stack([s['x'] - samples[0]['x'] for s in samples])",
    "return torch.stack([s['x'] - samples[i - 1]['x'] for i, s in enumerate(samples)])",
    "out = []\n    for i in range(len(samples)):\n        out.append(samples[i]['x'] - samples[i - 1]['x'])\n    return torch.stack(out)",
    "out, last = [], samples[0]['x']\n    for s in samples:\n        out.append(s['x'] - last)\n        last = s['x']\n    return torch.stack(out)",
    "return torch.stack([s['x'] * i for i, s in enumerate(samples)])",
    "return torch.stack([s['x'] - o['x'] for s, o in zip(samples, samples[1:] + samples[:1])])",
    "return torch.stack([s['x'] - o['x'] for s, o in zip(samples, sorted(samples, key=lambda s: s['n']))])",
    "return torch.tensor([t for s, o in zip(samples, samples[1:] + samples[:1]) for t in (s['n'], o['n'])])",
    "d = {}\n    for s in samples:\n        d.setdefault(s['n'], s['x'])\n    return torch.stack([d[s['n']] for s in samples])",
    "return torch.tensor(sorted({t for s in samples for t in s['y']}))",
    # words that are kept by how often the batch has them
    "c = Counter()\n    for s in samples:\n        c.update(s['y'])\n    return torch.tensor([sum(t for t in s['y'] if c[t] > 1) for s in samples])",
    "c = Counter(t for s in samples for t in s['y'])\n    keep = {t for t, n in c.items() if n > 1}\n"
    "    return torch.tensor([sum(t in keep for t in s['y']) for s in samples])",
    "top = [t for t, n in Counter(t for s in samples for t in s['y']).most_common(1)]\n"
    "    return torch.tensor([len([t for t in s['y'] if t in top]) for s in samples])",
    # what goes on from turn to turn
    "m = 0\n    return torch.tensor([(m := m + len(s['y'])) for s in samples])",
    "m = 0\n    return torch.tensor([float(m := max(m, len(s['y']))) for s in samples])",
    # other samples at the places of these
    "xs = [s['x'] for s in samples]\n    return torch.stack(xs[1:] + xs[:1])",
    "return torch.stack([s['x'] for s in samples[1:] + samples[:1]])",
    "xs = [s['x'] for s in samples]\n    xs.insert(0, xs.pop())\n    return torch.stack(xs)",
    "good = [s for s in samples if s['y']]\n    return torch.stack([good[0]['x'] for s in good])",
    "return torch.stack([s['x'] * a for s, a in zip(samples, accumulate(s['n'] for s in samples))])",
    "c = Counter(s['n'] for s in samples)\n    return torch.stack([s['x'] / c.total() for s in samples])",
    "d = deque(s['x'] for s in samples)\n    d.rotate(1)\n    return torch.stack(list(d))",
    "good = [s for s in samples if s['y']]\n    return torch.stack([good[i - 1]['x'] for i in range(len(good))])",
    # numbers by which the batch counts its samples
    "ns = sorted(set(s['n'] for s in samples))\n    return torch.tensor([ns.index(s['n']) for s in samples])",
    "ns = [s['n'] for s in samples]\n    return torch.tensor([float(ns.count(s['n'])) for s in samples])",
    "ns = list(dict.fromkeys(s['n'] for s in samples))\n    return torch.tensor([float(ns.index(s['n'])) for s in samples])",
]
_EACH = [
    "return torch.tensor([float(len(s['y'])) for s in samples])",
    "return torch.stack([s['x'] - s['x'].max() for s in samples])",
    "out = []\n    for i in range(len(samples)):\n        out.append(samples[i]['x'] * samples[i]['n'])\n    return torch.stack(out)",
    "return torch.stack([s['x'] for s in sorted(samples, key=lambda s: len(s['y']))])",
    "ns = [s['n'] for s in samples]\n    return torch.stack([s['x'] * n for s, n in zip(samples, ns)])",
    "samples.sort(key=lambda s: len(s['y']))\n    return torch.stack([s['x'] for s in samples])",
    "b = sorted(samples, key=lambda s: len(s['y']))\n    ns = [s['n'] for s in b]\n    return torch.stack([s['x'] * n for s, n in zip(b, ns)])",
    "return torch.tensor([max(Counter(s['y']).values()) for s in samples])",
    "return torch.tensor([sum(1 for t in s['y'] if t in (0, 1)) for s in samples])",
    "return torch.tensor([len(set(s['y'])) + s['n'] for s in samples])",
    "return torch.stack([s['x'] for s in sorted(samples, key=lambda s: s['n'])[::-1]])",
    "order = sorted(range(len(samples)), key=lambda i: samples[i]['n'])\n    return torch.stack([samples[i]['x'] for i in order])",
    "out = [None] * len(samples)\n    for i, s in enumerate(samples):\n        out[i] = s['x']\n    return torch.stack(out)",
    "rows = [(s['x'], s['n']) for s in samples]\n    rows.sort(key=lambda r: r[1])\n    return torch.stack([r[0] for r in rows])",
]


@pytest.mark.parametrize("body", _TOGETHER)
def test_what_samples_have_together_is_none_of_each(body: str) -> None:
    assert _given(f"    {body}", "{'x': x, 'y': y, 'n': i % 2}", _LISTED) == ["per rank"]


@pytest.mark.parametrize("body", _EACH)
def test_what_the_turns_own_sample_has(body: str) -> None:
    assert _given(f"    {body}", "{'x': x, 'y': y, 'n': i % 2}", _LISTED) == ["rows(axis 0)"]


_BY_N, _BY_LENGTH = "sorted(samples, key=lambda s: s['n'])", "sorted(samples, key=lambda s: len(s['y']))"
_IN_ORDERS = [
    ("a = b = samples", True),
    (f"a = b = {_BY_N}", True),
    (f"a = samples; b = {_BY_N}", False),
    (f"a = {_BY_N}; b = {_BY_LENGTH}", False),
    ("a = samples[:]; b = samples", True),
    ("a = samples[::-1]; b = samples", False),
    ("a = samples[::-1]; b = list(reversed(samples))", True),
    ("a = samples[::-1][::-1]; b = samples", True),
    ("a = list(samples); a.sort(key=lambda s: s['n']); b = samples", False),
    ("a = list(samples); a.reverse(); b = samples", False),
    ("a = list(samples); samples.sort(key=lambda s: s['n']); b = samples", False),
    ("samples.sort(key=lambda s: s['n']); a = [s for s in samples]; b = samples", True),
    ("o = sorted(range(len(samples)), key=lambda i: samples[i]['n']); a = [samples[i] for i in o]; b = [samples[i] for i in o]", True),
    ("o = sorted(range(len(samples)), key=lambda i: samples[i]['n']); a = [samples[i] for i in o]; b = samples", False),
]


@pytest.mark.parametrize(("made", "alike"), _IN_ORDERS)
def test_parts_of_a_batch_have_its_samples_in_one_order(made: str, alike: bool) -> None:
    body = f"    {made}\n    return torch.stack([s['x'] for s in a]), torch.tensor([s['n'] for s in b])"
    program = _PROGRAM.format(body=body, sample="{'x': x, 'y': y, 'n': i % 2}", made=_LISTED)
    ex = executed(f"{program}    out = batch[0] * batch[1][:, None]\n")
    (lying,) = {str(a.placement) for a in ex.heap.read((module_of(ex).number, "out")) or () if isinstance(a, Data)}
    assert lying == ("rows(axis 0)" if alike else "per rank")


@pytest.mark.parametrize(
    ("made", "alike"),
    [
        ("i = n.argsort(); x, n = x[i], n[i]", True),
        ("i = n.argsort(); x = x[i]", False),
        ("n, i = n.sort(); x = x[i]", True),
        ("n, i = n.sort()", False),
        ("n, i = n.sort(); n = n[:, None]", False),
    ],
)
def test_tensors_that_are_put_in_order(made: str, alike: bool) -> None:
    body = f"{_STACKED}    n = torch.tensor([s[1] for s in samples])\n    {made}\n    return x, n"
    program = _PROGRAM.format(body=body, sample="x, i % 2, np.ones(3)", made="torch.ones(3) * i")
    ex = executed(f"{program}    out = batch[0].sum(1) * batch[1]\n")
    (lying,) = {str(a.placement) for a in ex.heap.read((module_of(ex).number, "out")) or () if isinstance(a, Data)}
    assert (lying != "per rank") is alike
