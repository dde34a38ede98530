"""The note that BatchNorm takes its statistics from a rank's part of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Status
from dpmigrate.settings import Settings

_SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
{imported}


class Net(nn.Module):
    def __init__(self, norm=None):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.norm = nn.BatchNorm1d(2) if norm == "batch" else nn.LayerNorm(2)

    def forward(self, x):
        return self.norm(self.fc(x))


class Own(nn.BatchNorm2d):
    pass


def main():
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 2))
    loader = DataLoader(data, batch_size=16, shuffle=True{loader})
    gpus = [0]
    model = {model}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""
_TWO_D = "nn.Sequential(nn.Unflatten(1, (1, 2, 2)), {}, nn.Flatten())"
_ONE_SAMPLE, _LAST = "a batch needs two samples or more for each rank", "drop_last=True"


def note(folder: Path, model: str, *, imported: str = "", loader: str = "", **settings: object) -> str:
    path = folder / "train.py"
    path.write_text(_SCRIPT.format(model=model, imported=imported, loader=loader))
    given = Settings(unproven=True, **settings)  # type: ignore[arg-type]
    (outcome,) = engine.apply([path], given, engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    return "".join(n for n in outcome.notes if n.startswith("BatchNorm"))


@pytest.mark.parametrize(
    "model",
    [
        "nn.Linear(4, 2)",
        "Net()",  # which has a BatchNorm in another branch
        "Net('layer')",
        "nn.DataParallel(Net('batch'))",
        "nn.DataParallel(Net('batch'), device_ids=[0, 1])",
        "nn.DataParallel(Net('batch'), [0, 1])",
        "nn.Sequential(models.vgg16(), nn.Linear(1000, 2))",
    ],
)
def test_nothing_to_say(tmp_path: Path, model: str) -> None:
    imported = "from torchvision import models\nunused = nn.BatchNorm1d(4)"
    assert note(tmp_path, model, imported=imported) == ""


@pytest.mark.parametrize(
    ("model", "which", "of_one"),
    [
        ("Net('batch')", "BatchNorm takes", True),
        ("nn.BatchNorm1d(4)", "BatchNorm takes", True),
        ("nn.DataParallel(Net('batch'), device_ids=[0])", "BatchNorm takes", True),
        ("nn.DataParallel(Net('batch'), device_ids=gpus)", "BatchNorm takes", True),
        ("Net('batch')\n    if torch.cuda.device_count() > 1:\n        model = nn.DataParallel(model)", "BatchNorm takes", True),
        (_TWO_D.format("nn.BatchNorm2d(1)"), "BatchNorm takes", False),
        (_TWO_D.format("Own(1)"), "BatchNorm takes", False),
        ("nn.Sequential(models.resnet18(), nn.Linear(1000, 2))", "BatchNorm takes", False),
        ("nn.Sequential(models.vgg16_bn(), nn.Linear(1000, 2))", "BatchNorm takes", False),
        ("nn.Sequential(models.segmentation.fcn_resnet50(), nn.Linear(1000, 2))", "BatchNorm takes", False),
        ("nn.Sequential(models.segmentation.deeplabv3_resnet50(), nn.Linear(1000, 2))", "BatchNorm takes", True),
        ("nn.Sequential(torch.hub.load('pytorch/vision:v0.10.0', 'deeplabv3_resnet50', pretrained=True), nn.Linear(1000, 2))", "BatchNorm takes", True),
        ("torch.hub.load('pytorch/vision:v0.10.0', 'resnet18', pretrained=True)", "BatchNorm takes", False),
        ("nn.Sequential(*list(models.resnet18().children())[:-1], nn.Flatten(), nn.Linear(512, 2))", "BatchNorm takes", False),
        ("Big(4, 2)", "BatchNorm, if the model has any, takes", True),
    ],
)
def test_it_is_said(tmp_path: Path, model: str, which: str, of_one: bool) -> None:
    imported = "from torchvision import models\nfrom nets import Big"
    said = note(tmp_path, model, imported=imported)
    assert said.startswith(which)
    assert (_ONE_SAMPLE in said) is of_one
    assert (_LAST in said) is of_one
    dropping = note(tmp_path, model, imported=imported, loader=", drop_last=True")
    assert (_ONE_SAMPLE in dropping) is of_one
    assert _LAST not in dropping


_PARALLEL = "nn.DataParallel(Net('batch'))"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '0'", True),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = str(3)", True),
        ("os.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')", True),
        ("os.environ.update({'CUDA_VISIBLE_DEVICES': '2', 'OMP_NUM_THREADS': '1'}, HOME='/')", True),
        ("os.putenv('CUDA_VISIBLE_DEVICES', ' 1')", True),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'", False),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = os.environ['GPUS']", False),
        ("os.environ['CUDA_LAUNCH_BLOCKING'] = '1'", False),
        ("os.environ.update({'OMP_NUM_THREADS': '1'})", False),
    ],
)
def test_data_parallel_of_the_gpus_that_the_program_leaves_itself(tmp_path: Path, chosen: str, said: bool) -> None:
    assert bool(note(tmp_path, _PARALLEL, imported=f"import os\n{chosen}")) is said


def test_what_was_asked_for(tmp_path: Path) -> None:
    assert note(tmp_path, "Net('batch')", sync_bn=True) == ""
    assert note(tmp_path, "Net('batch')", batch="per-rank") == ""


def test_a_model_that_is_trained_through_its_methods(tmp_path: Path) -> None:
    imported = "class Named(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 2)\n        self.norm = nn.BatchNorm1d(2)"
    imported += "\n    def encode(self, x):\n        return self.norm(self.fc(x))"
    path = tmp_path / "train.py"
    path.write_text(_SCRIPT.format(model="Named()", imported=imported, loader="").replace("model(x)", "model.encode(x)"))
    (outcome,) = engine.apply([path], Settings(unproven=True), engine.Writing(write=False))
    assert outcome.status is Status.CHANGED, outcome
    assert any(n.startswith("BatchNorm takes") for n in outcome.notes)


@pytest.mark.parametrize(
    ("size", "words"),
    [("2", "Batches of 2, as here, are enough for one rank alone."), ("6", "Batches of 6, as here, are enough for 3 ranks."), ("16", ""), ("int(input())", "")],
)
def test_for_how_many_ranks_small_batches_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, words: str) -> None:
    monkeypatch.setattr("tests.judge.test_normalised._SCRIPT", _SCRIPT.replace("batch_size=16", f"batch_size={size}"))
    said = note(tmp_path, "Net('batch')")
    assert _ONE_SAMPLE in said and said.endswith(words or "shorter last batch.")
