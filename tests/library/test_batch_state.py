"""Layers of libraries that keep something of the batches which they see: told, as BatchNorm is, or refused where weights are changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import proving
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

_PROGRAM = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.ao.nn import qat
from torch.ao.quantization import DeQuantStub, FakeQuantize, MinMaxObserver, QuantStub, get_default_qat_qconfig, prepare_qat
from torch.ao.quantization.quantize_fx import prepare_qat_fx
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.inner = {inner}
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        return self.last({called})


data = TensorDataset({data}, torch.randint(3, (96,)))
loader = DataLoader(data, batch_size=24, shuffle=True)
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=24):
            right += (model(x).argmax(1) == y).sum().item()
    print(right / len(data))
"""


def _migrated(folder: Path, inner: str = "nn.ReLU()", called: str = "self.inner(self.first(x))", data: str = "torch.randn(96, 8)", model: str = "Net()") -> Outcome:
    script = folder / "train.py"
    script.write_text(_PROGRAM.format(inner=inner, called=called, data=data, model=model))
    outcome, files = proving.migration(script, Settings())
    if files is not None and _told(outcome):
        assert "ddp.sync_buffers(model)" in files[script].decode()
    return outcome


def _told(outcome: Outcome) -> bool:
    return any("keeps of the batches" in note for note in outcome.notes)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param("prepare_qat(Net())", id="a copy"),
        pytest.param("Net()\nmodel.qconfig = get_default_qat_qconfig('fbgemm')\nprepare_qat(model, inplace=True)", id="in place"),
        pytest.param("Net()\nprepare_qat(model, None, True)", id="by its place"),
        pytest.param("torch.quantization.prepare_qat(Net())", id="an older name"),
        pytest.param("prepare_qat_fx(Net(), None, (data[0][0],))", id="fx"),
    ],
)
def test_observers_that_are_put_into_a_model(tmp_path: Path, model: str) -> None:
    outcome = _migrated(tmp_path, model=model)
    assert outcome.status is Status.CHANGED and _told(outcome)
    assert not any("is not seen" in note for note in outcome.notes)


@pytest.mark.parametrize(
    "inner",
    ["FakeQuantize()", "MinMaxObserver()", "nn.Sequential(nn.ReLU(), FakeQuantize())", "qat.Linear(16, 16, qconfig=None)"],
)
def test_layers_that_observe(tmp_path: Path, inner: str) -> None:
    outcome = _migrated(tmp_path, inner)
    assert outcome.status is Status.CHANGED and _told(outcome)


@pytest.mark.parametrize(
    ("options", "told"), [("16, track_running_stats=True", True), ("16, 1e-5, 0.1, False, True", True), ("16", False), ("16, track_running_stats=False", False)]
)
def test_running_statistics_of_single_samples(tmp_path: Path, options: str, told: bool) -> None:
    outcome = _migrated(tmp_path, f"nn.InstanceNorm1d({options})", "self.inner(self.first(x).unsqueeze(2).expand(-1, -1, 4)).mean(2)")
    assert outcome.status is Status.CHANGED and _told(outcome) is told


@pytest.mark.parametrize("inner", ["nn.Sequential(QuantStub(), nn.ReLU(), DeQuantStub())", "torch.nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16))", "nn.LayerNorm(16)"])
def test_layers_that_keep_nothing_of_a_batch(tmp_path: Path, inner: str) -> None:
    """The power iteration of a spectral norm goes by the weight alone."""
    outcome = _migrated(tmp_path, inner)
    assert outcome.status is Status.CHANGED and not _told(outcome)


@pytest.mark.parametrize(
    ("inner", "called"),
    [
        ("nn.Embedding(50, 16, max_norm=1.0)", "self.inner(x)"),
        ("nn.Embedding(50, 16, None, 1.0)", "self.inner(x)"),
        ("nn.EmbeddingBag(50, 16, 1.0)", "self.inner(x[:, None])"),
        ("nn.Embedding(50, 16)", "F.embedding(x, self.inner.weight, max_norm=1.0)"),
    ],
)
def test_rows_of_a_weight_that_are_scaled_in_place(tmp_path: Path, inner: str, called: str) -> None:
    outcome = _migrated(tmp_path, inner, called, "torch.randint(50, (96,))")
    assert outcome.status is Status.REFUSED and "max_norm scales the rows of a weight" in outcome.reason


@pytest.mark.parametrize("inner", ["nn.Embedding(50, 16)", "nn.Embedding(50, 16, max_norm=None)", "nn.Embedding(50, 16, 0, None, 2.0)"])
def test_rows_that_are_looked_up(tmp_path: Path, inner: str) -> None:
    assert _migrated(tmp_path, inner, "self.inner(x)", "torch.randint(50, (96,))").status is Status.CHANGED


def test_rows_that_all_ranks_look_up(tmp_path: Path) -> None:
    inner = "nn.Embedding(16, 16, max_norm=1.0)"
    assert _migrated(tmp_path, inner, "self.first(x) + self.inner(torch.arange(16)).mean(0)").status is Status.CHANGED
