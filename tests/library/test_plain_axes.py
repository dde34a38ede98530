"""The number of axes of tensors that all ranks share: data sets are made of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dpmigrate.execution.arithmetic import CROSSED
from dpmigrate.execution.values import Data, origins, placement_of
from tests.execution.paper import executed, module_of

_HEAD = """
import numpy as np
from torch.utils.data import DataLoader, TensorDataset
f = torch.ones(4, 8)
w = torch.ones(8, 3)
v = torch.ones(8)
n = np.ones((4, 8))
rng = np.random.RandomState(0)
"""
MADE = [
    "f @ w", "f @ v", "v @ w", "v @ v", "torch.mm(f, w)", "torch.mv(f, v)", "torch.bmm(f[None], w[None])",
    "f[0]", "f[:, 0]", "f[1:]", "f[None]", "f[(...,) + (None,) * 2]", "f[2 * (None,) + (0,)]", "f[0, 1:]", "n[:, 0]", "n[2:]",
    "f.sum(1)", "f.sum(1, keepdim=True)", "f.sum()", "f.mean((0, 1))", "f.max(1)[0]", "n.sum(1)", "n.mean(axis=0)",
    "f.reshape(2, 16)", "f.view(-1)", "f.reshape((2, 2, 8))", "f[0].view(-1, 1)", "f.flatten()", "n.ravel()", "n.flatten('F')", "f.unsqueeze(1)", "f[:1].squeeze(0)",
    "np.expand_dims(n, 1)", "n[:, np.newaxis]", "f[:, torch.newaxis, 0]", "torch.stack([v, v])", "torch.cat([f, f])", "np.hstack([n, n])", "np.vstack([n[0], n[0]])",
    "np.column_stack([n[0], n[0]])", "n.dot(n[0])", "np.dot(n[0], n[0])", "n[np.arange(2)]", "np.eye(3)[np.random.randint(0, 3, 5)]", "f[torch.arange(2), 0]",
    "rng.randn(4, 2)", "rng.rand(4)", "rng.permutation(4)", "rng.choice(4, 2)", "rng.normal(size=(4, 2))", "np.random.choice(4, (2, 2))", "np.linspace(0, 1, 8).reshape(4, 2)",
    "np.array([n[0] for _ in range(3)])", "np.array([n[0].sum(), 1.0])", "torch.tensor([[1., 2.], [3., 4.]])", "torch.from_numpy(n)", "torch.FloatTensor(n)",
    "torch.tensor([1., 2.])", "torch.tensor([[1], [2]])", "torch.tensor(3)", "np.array([[1, 2], [3, 4]])", "torch.linspace(0, 1, 5)",
    "np.where(n[0] > 2)[0]", "n[np.where(n[:, 0] != 3)[0]]", "n[np.nonzero(n[:, 0])[0]]", "np.where(n > 2)[1]", "f[torch.where(f[:, 0] > 0)[0]]", "n[np.where(n > 0)]",
    "f[f[:, 0].nonzero(as_tuple=True)[0]]", "n[np.nonzero(n)]",
]  # fmt: skip


def _axes(expression: str, imported: str = "") -> int | None:
    ex = executed(f"{_HEAD}{imported}found = {expression}\n")
    held = ex.heap.read((module_of(ex).number, "found")) or ()
    (found,) = [a for a in held if isinstance(a, Data)]
    return found.axes


@pytest.mark.parametrize("expression", MADE)
def test_axes(expression: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"import torch\n{_HEAD}found = {expression}\n", scope)
    assert _axes(expression) == scope["found"].ndim


_TABLES = """
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, MinMaxScaler, StandardScaler
"""


@pytest.mark.parametrize(
    ("expression", "axes"),
    [
        ("StandardScaler().fit_transform(n)", 2),
        ("MinMaxScaler().fit(n).transform(n)", 2),
        ("torch.tensor(PCA(2).fit_transform(n))", 2),
        ("LabelEncoder().fit_transform(['a', 'b'])", 1),
        ("train_test_split(StandardScaler().fit_transform(n), n[:, 0])[0]", 2),
        ("train_test_split(n, n[:, 0], random_state=3)[2]", 1),
    ],
)
def test_axes_of_tables(expression: str, axes: int) -> None:
    """As scikit-learn documents them: "array of shape (n_samples, n_features_new)"."""
    assert _axes(expression, _TABLES) == axes


def test_a_transformer_that_is_given_what_differs_tells_no_axes() -> None:
    ex = executed(f"{_HEAD}{_TABLES}import time\nfound = StandardScaler().fit(n).transform(n * time.time())\nother = unseen.Scaler().fit(n).transform(n)\n")
    for name in ("found", "other"):
        held = ex.heap.read((module_of(ex).number, name)) or ()
        assert not any(isinstance(a, Data) and a.axes is not None for a in held)


@pytest.mark.parametrize("expression", ["f[i]", "f[[0, 1]]", "f[f > 0]", "f.view(dims)", "f.squeeze()", "f.flatten(1)", "n.dot(np.ones((2, 8, 3)))", "np.random.choice(4, dims)", "np.array(unseen.rows)", "torch.inner(f, f)", "torch.tensor(data)", "f.sum(dims)", "torch.FloatTensor(data)", "torch.Tensor((data - 1) / 2)"])
def test_not_known(expression: str) -> None:
    ex = executed(f"{_HEAD}import unseen\ni, data, dims = unseen.i, unseen.data, unseen.dims\nfound = {expression}\n")
    held = ex.heap.read((module_of(ex).number, "found")) or ()
    assert not any(isinstance(a, Data) and a.axes is not None for a in held)


@pytest.mark.parametrize("made", ["torch.cat([v, v])", "torch.stack([v, v])", "torch.mean(v, 1)", "torch.norm(v, dim=1)", "torch.gather(v, 0, v)", "torch.permute(v, (1, 0))", "torch.relu(v)"])
def test_a_function_of_torch_makes_a_tensor_of_what_is_not_known(made: str) -> None:
    """A number has no axes, and what a mask chooses is not as many on all ranks."""
    ex = executed(f"{_HEAD}from unseen import load\nv = load()\nfound = {made}\nmore = found * 2\n")
    for name in ("found", "more"):
        (found,) = [a for a in ex.heap.read((module_of(ex).number, name)) or () if isinstance(a, Data)]
        assert (found.kind, found.axes) == ("tensor", None)


@pytest.mark.parametrize("line", ["img = img * 2 - 1", "img = (img - 0.13) / 0.31", "img = img.float() / 255.0", "img = torch.cat([img, 1 - img])", "img, label = Subset(base, [0, 1])[i]\n        img = 1 - img"])
def test_parts_of_samples_that_are_not_seen_are_no_numbers(line: str) -> None:
    text = f"""
from torchvision import datasets, transforms
from torch.utils.data import DataLoader, Dataset, Subset
base = datasets.MNIST("data", transform=transforms.ToTensor())
class Scaled(Dataset):
    def __len__(self):
        return len(base)
    def __getitem__(self, i):
        img, label = base[i]
        {line}
        return img, label
for x, y in DataLoader(Scaled(), 4):
    pass
found = torch.nn.Conv2d(1, 8, 3)(x)
"""
    ex = executed(text)
    (found,) = [a for a in ex.heap.read((module_of(ex).number, "found")) or () if isinstance(a, Data)]
    assert (str(found.placement), found.axes) == ("rows(axis 0)", 4)


_LOSS = """
x = torch.randn(16, 3)
loader = DataLoader(TensorDataset(x, {target}), batch_size=8)
model = torch.nn.Linear(3, 1)
for a, b in loader:
    found = {loss}
"""


@pytest.mark.parametrize(
    ("target", "loss", "lies"),
    [
        ("x @ torch.ones(3)", "torch.nn.functional.mse_loss(model(a), b)", "per rank"),
        ("x @ torch.ones(3)", "((model(a) - b) ** 2).mean()", "per rank"),
        ("x @ torch.ones(3)", "torch.nn.functional.mse_loss(model(a).squeeze(1), b)", "partial(mean)"),
        ("x @ torch.ones(3, 1)", "torch.nn.functional.mse_loss(model(a), b)", "partial(mean)"),
        ("torch.from_numpy(rng.randn(16))", "torch.nn.functional.l1_loss(model(a), b)", "per rank"),
        ("torch.tensor(np.sin(rng.rand(16, 2))[:, 0])", "torch.nn.MSELoss()(model(a), b)", "per rank"),
        ("torch.tensor(np.sin(rng.rand(16, 2))[:, :1])", "torch.nn.MSELoss()(model(a), b)", "partial(mean)"),
    ],
)
def test_a_column_beside_a_vector_meets_all_samples(target: str, loss: str, lies: str) -> None:
    ex = executed(_HEAD + _LOSS.format(target=target, loss=loss))
    held = ex.heap.read((module_of(ex).number, "found")) or ()
    assert str(placement_of(ex.bound(held))) == lies
    pred, truth = torch.randn(4, 1), torch.randn(4)
    assert ((pred - truth) ** 2).shape == (4, 4)


_UNSEEN = "import unseen\nfor a, b in DataLoader(unseen.data(), batch_size=8):\n    found = {}\n"


@pytest.mark.parametrize(
    ("expression", "lies"),
    [
        ("torch.nn.functional.softmax(a)", "unknown"),
        ("torch.nn.Softmax()(a)", "unknown"),
        ("torch.nn.functional.softmax(a, dim=1)", "rows(axis 0)"),
        ("a.mean(1).topk(2)[0]", "unknown"),
        ("a.topk(2, dim=1)[0]", "rows(axis 0)"),
    ],
)
def test_an_axis_that_depends_on_their_number(expression: str, lies: str) -> None:
    ex = executed(_HEAD + _UNSEEN.format(expression))
    held = ex.heap.read((module_of(ex).number, "found")) or ()
    assert str(placement_of(ex.bound(held))) == lies


_SIZES = "for a, b in DataLoader(TensorDataset(f, f), batch_size=2):\n    found = {}\n"


@pytest.mark.parametrize(
    ("expression", "lies"),
    [
        ("(a > 1).float().sum() * (100.0 / a.size(0))", "partial(mean)"),
        ("(a > 1).float().sum().mul_(1 / len(a))", "partial(mean)"),
        ("len(a) * (1 / len(a))", "uniform"),
        ("1 / len(a)", "per rank"),
        ("a.max() * (1 / len(a))", "per rank"),
    ],
)
def test_a_number_divided_by_that_of_the_samples(expression: str, lies: str) -> None:
    ex = executed(_HEAD + _SIZES.format(expression))
    held = ex.heap.read((module_of(ex).number, "found")) or ()
    assert str(placement_of(ex.bound(held))) == lies


_UNKNOWN = """
import pandas as pd
table = pd.read_csv("table.csv")
a, b = torch.tensor({rows}).float(), torch.tensor(table["y"].values).float()
model = torch.nn.Linear(3, 1)
for x, y in DataLoader(TensorDataset(a, b), batch_size=8):
    found = {loss}
"""


@pytest.mark.parametrize(
    ("rows", "loss", "said"),
    [
        ("table.values[:, :3]", "torch.nn.functional.mse_loss(model(x), y)", True),
        ("n", "torch.nn.MSELoss()(model(x), y)", True),
        ("n", "torch.nn.functional.mse_loss(model(x)[:, 0], x[:, 0])", False),
        ("n[None, None]", "torch.nn.functional.mse_loss(model(x), y)", False),
        ("n", "torch.nn.functional.cross_entropy(model(x), y)", False),
    ],
)
def test_axes_that_are_taken_for_equal(rows: str, loss: str, said: bool) -> None:
    ex = executed(_HEAD + _UNKNOWN.format(rows=rows, loss=loss))
    assert bool(list(ex.trace.of("axes taken for equal"))) is said


def test_the_reason_is_what_is_not_known_first() -> None:
    """A view by a size that is not known: why that one is not."""
    ex = executed(_HEAD + "import lib\nfor (a,) in DataLoader(TensorDataset(f), 2):\n    found = a.view(lib.count(a), 2).unfold(1, 2, 2)\n")
    (found,) = (a for a in ex.heap.read((module_of(ex).number, "found")) or () if isinstance(a, Data))
    assert found.origin is not None and "count" in found.origin.word


def test_the_reason_is_that_samples_meet() -> None:
    ex = executed(_HEAD + _LOSS.format(target="x @ torch.ones(3)", loss="((model(a) - b) ** 2).mean()"))
    (found,) = (a for a in ex.heap.read((module_of(ex).number, "found")) or () if isinstance(a, Data))
    words = [o.word for o in origins(found.origin)]
    assert CROSSED in words


_COLLATED = """
from torch.utils.data import Dataset

class Clips(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        return {sample}, torch.tensor(i % 2)

def pad(batch):
    clips, labels = zip(*batch)
    out = torch.zeros(len(clips), max(len(c) for c in clips), 3)
    return out, torch.stack(labels)

for x, y in DataLoader(Clips(), batch_size=4, collate_fn=pad):
    found = x
"""


@pytest.mark.parametrize(
    ("sample", "padded"),
    [("torch.load(f'clips/{i}.pt')", True), ("np.load(f'clips/{i}.npy')", True), ("[1.0] * i", True), ("torch.load('clips.pt')[0]", False), ("torch.randn(5, 3)", False)],
)
def test_samples_of_other_lengths_are_filled_up(sample: str, padded: bool) -> None:
    """To the longest of a rank's part of the batch."""
    ex = executed(_HEAD + _COLLATED.format(sample=sample))
    found = [a for a in ex.heap.read((module_of(ex).number, "found")) or () if isinstance(a, Data)]
    assert [a.placement.padded for a in found] == [padded]


@pytest.mark.parametrize(
    ("sample", "axes"),
    [
        ("torch.from_numpy(parts[i].reshape(8, -1).max(axis=1, keepdims=True))", 3),
        ("torch.from_numpy(parts[i].reshape(8, -1).min(axis=1))", 2),
        ("parts[i].reshape(8, -1).max(1)[0]", None),  # of a tensor the highest values, of an array the first of them
        ("largest(parts[i].reshape(8, -1))", None),
    ],
)
def test_the_largest_of_what_may_be_an_array_or_a_tensor(sample: str, axes: int | None) -> None:
    """A tensor gives the places of the largest numbers as well, an array does not: so it may have two rows."""
    text = f"""
from torch.utils.data import Dataset

parts = np.load("parts.npz")["parts"]

def largest(part):
    values, places = part.max(1)
    return values

class Parts(Dataset):
    def __len__(self):
        return len(parts)

    def __getitem__(self, i):
        return {sample}

for x in DataLoader(Parts(), batch_size=4):
    found = x
"""
    ex = executed(_HEAD + text)
    (found,) = [a for a in ex.heap.read((module_of(ex).number, "found")) or () if isinstance(a, Data)]
    assert (str(found.placement), found.axes) == ("rows(axis 0)", axes)
