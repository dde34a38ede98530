"""Programs that train a detector of torchvision."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Status
from dpmigrate.settings import Settings

DETECTOR = """\
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from pictures import Pictures

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build():
    model = torchvision.models.detection.{made}
    {head}
    return model


def main():
    loader = DataLoader(Pictures("train"), batch_size=8, shuffle=True, collate_fn=lambda batch: tuple(zip(*batch)))
    model = build().to(device)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for epoch in range(3):
        model.eval()
        with torch.no_grad():
            for images, targets in DataLoader(Pictures("val"), batch_size=1, collate_fn=lambda batch: tuple(zip(*batch))):
                print(len(model([image.to(device) for image in images])[0]["boxes"]))
        model.train()
        for images, targets in loader:
            images = [image.to(device) for image in images]
            targets = [{{k: v.to(device) for k, v in t.items()}} for t in targets]
            found = model(images, targets)
            loss = {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(model.state_dict(), "model.pth")
    model.eval()
    print(model([torch.rand(3, 64, 64).to(device)]))


if __name__ == "__main__":
    main()
"""
PICTURES = """\
import torch
from torch.utils.data import Dataset


class Pictures(Dataset):
    def __init__(self, part):
        self.names = [f"{part}{i}" for i in range(64)]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        return torch.rand(3, 64, 64), {"boxes": torch.tensor([[0.0, 0.0, 9.0, 9.0]]), "labels": torch.ones(1, dtype=torch.int64)}
"""
HEAD = "model.roi_heads.box_predictor = FastRCNNPredictor(model.roi_heads.box_predictor.cls_score.in_features, 2)"
TOLD = "are means over the boxes of a rank's pictures"


@pytest.mark.parametrize(
    ("made", "head", "loss", "status", "told"),
    [
        ("fasterrcnn_resnet50_fpn(weights=None)", HEAD, "sum(v for v in found.values())", Status.CHANGED, True),
        ("FasterRCNN(backbone, 2)", "pass", "sum(found.values())", Status.CHANGED, True),
        ("maskrcnn_resnet50_fpn()", "pass", "found['loss_classifier'] + found['loss_mask']", Status.CHANGED, True),
        ("ssd300_vgg16()", "pass", "sum(found.values())", Status.CHANGED, True),
        ("retinanet_resnet50_fpn()", "pass", "found['classification'] + found['bbox_regression']", Status.CHANGED, False),
        # no such losses: what it gives outside of training
        ("fasterrcnn_resnet50_fpn().eval()", "model.train = print", "sum(v['scores'].sum() for v in found)", Status.REFUSED, False),
    ],
)
def test_a_detector(tmp_path: Path, made: str, head: str, loss: str, status: Status, told: bool) -> None:
    (tmp_path / "pictures.py").write_text(PICTURES)
    path = tmp_path / "train.py"
    made = made.replace("backbone", "torchvision.models.detection.backbone_utils.resnet_fpn_backbone('resnet18', weights=None)")
    path.write_text(DETECTOR.format(made=made, head=head, loss=loss))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    assert outcome.status is status, outcome
    assert any(TOLD in n for n in outcome.notes) is told
    assert not any(f.code == "DPM305" for file in outcome.files for f in file.findings) or status is Status.REFUSED
