"""Modules that no wrapper holds, and that keep running statistics of the training batches: a frozen backbone left in training mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.settings import Settings

_SCRIPT = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

backbone = nn.Sequential(nn.Linear(8, 16), {layer}, nn.ReLU())
for p in backbone.parameters():
    p.requires_grad = False
head = nn.Linear(16, 2)
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
train_loader = DataLoader(data, batch_size=16)
test_loader = DataLoader(data, batch_size=16)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
for epoch in range(2):
    backbone.{mode}()
    head.train()
    for a, b in train_loader:
        {features}
        optimizer.zero_grad()
        criterion(head(z), b).backward()
        optimizer.step()
    backbone.eval()
    head.eval()
    right = 0
    with torch.no_grad():
        for a, b in test_loader:
            {told}
    print(right)
"""
_PLAIN = "z = backbone(a)"
_TOLD = "right += (head(backbone(a)).argmax(1) == b).sum().item()"


def _run(folder: Path, layer: str = "nn.BatchNorm1d(16)", mode: str = "train", features: str = _PLAIN, told: str = _TOLD, sync_bn: bool = False) -> tuple[str, str]:
    path = folder / "train.py"
    path.write_text(_SCRIPT.format(layer=layer, mode=mode, features=features, told=told))
    (outcome,) = engine.apply([path], Settings(sync_bn=sync_bn), engine.Writing())
    return path.read_text(), "\n".join(n for n in outcome.notes if "BatchNorm" in n)


@pytest.mark.parametrize("features", [_PLAIN, "with torch.no_grad():\n            z = backbone(a)"])
@pytest.mark.parametrize("sync_bn", [False, True])
def test_one_set_of_statistics_before_an_evaluation(tmp_path: Path, features: str, sync_bn: bool) -> None:
    text, note = _run(tmp_path, features=features, sync_bn=sync_bn)
    assert "ddp.sync_buffers(head, backbone)" in text
    assert "nn.BatchNorm1d(16)" in note
    assert "(line 5)" in note
    assert "--sync-bn does not reach it" in note


def test_under_another_name_in_the_loop(tmp_path: Path) -> None:
    told = "net = backbone.eval()\n            right += (head(net(a)).argmax(1) == b).sum().item()"
    text, _ = _run(tmp_path, told=told)
    assert "ddp.sync_buffers(head, backbone)" in text


@pytest.mark.parametrize("parts", [{"mode": "eval"}, {"layer": "nn.LayerNorm(16)"}, {"layer": "nn.Dropout(0.1)"}])
def test_nothing_is_kept(tmp_path: Path, parts: dict[str, str]) -> None:
    text, note = _run(tmp_path, **parts)  # type: ignore[arg-type]
    assert "ddp.shard(test_loader)" in text
    assert "backbone)\n" not in text.replace("z = backbone(a)\n", "")
    assert not note
