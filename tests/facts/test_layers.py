"""Which layers of the models are seen."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts import layers
from tests.pipeline import script
from tests.rules.program import program


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        pytest.param("", "", id="none"),
        pytest.param("a = nn.GroupNorm(2, 4)", "", id="another norm"),
        pytest.param("from torchvision import models\na = models.vgg16()", "", id="a ready-made model without"),
        pytest.param("from torchvision import models\na = models.resnet18", "", id="a model that is not made"),
        pytest.param("note = 'nn.BatchNorm2d'  # nn.BatchNorm2d", "", id="in a string and a comment"),
        pytest.param("a = nn.BatchNorm2d(3)", "nn.BatchNorm2d", id="BatchNorm"),
        pytest.param("from torch.nn import BatchNorm1d as Norm\na = Norm(3)", "Norm", id="alias"),
        pytest.param("import torchvision\na = torchvision.models.resnet18()", "torchvision.models.resnet18", id="a ready-made model"),
        pytest.param("from torchvision.models import vgg16_bn\na = vgg16_bn()", "vgg16_bn", id="a model by its ending"),
        pytest.param("import timm\na = timm.create_model('x')", "timm.create_model", id="another library's"),
        pytest.param("a = torch.hub.load('x/y', 'net')", "torch.hub.load", id="a hub's"),
    ],
)
def test_batch_norm(lines: str, seen: str) -> None:
    node = layers.batch_norm(script(program(defs=lines)).names)
    assert (ast.unparse(node) if node is not None else "") == seen


_TOP = """
import math, torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
"""
_TRAINING = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data):
    F.mse_loss(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("lines", "evidence"),
    [
        pytest.param("", "", id="torch's own layers"),
        pytest.param("class N(nn.Module):\n    def __init__(self):\n        self.a = nn.Conv2d(1, 2, 3)\n        self.n = int(math.sqrt(4))", "", id="a class of such layers"),
        pytest.param("print('BatchNorm')  # BatchNorm", "", id="a word"),
        pytest.param("model = nn.Sequential(*[nn.Linear(3, 3) for k in range(3)])", "", id="several layers"),
        pytest.param("def make():\n    return nn.Linear(3, 2)\nmodel = nn.Sequential(make())", "", id="layers of a function"),
        pytest.param("a = nn.BatchNorm1d(3)", "nn.BatchNorm1d", id="BatchNorm"),
        pytest.param("a = torch.nn.LazyBatchNorm1d()", "torch.nn.LazyBatchNorm1d", id="a lazy BatchNorm"),
        pytest.param("from torch.nn import InstanceNorm3d\na = InstanceNorm3d(3)", "InstanceNorm3d", id="InstanceNorm"),
        pytest.param("model.register_buffer('a', b)", "model.register_buffer", id="a buffer"),
        pytest.param("from torchvision import models\na = models.resnet18", "models.resnet18", id="a ready-made model"),
        pytest.param("from parts import Block\nclass N(nn.Module):\n    def __init__(self):\n        self.a = Block(3)", "Block(3)", id="layers of another file"),
        pytest.param("from parts import *\nclass N(nn.Module):\n    def __init__(self):\n        self.a = Block(3)", "Block(3)", id="layers of a star import"),
        pytest.param("from parts import load\nmodel = load()", "load()", id="a model from elsewhere"),
        pytest.param("from .parts import head\nmodel = nn.Sequential(nn.Linear(3, 3), head())", "head()", id="a part from elsewhere"),
        pytest.param("import parts\ndef head():\n    return parts.head()\nmodel = nn.Sequential(nn.Linear(3, 3), head())", "parts.head()", id="a part from elsewhere through a function"),
    ],
)  # fmt: skip
def test_what_may_hold_buffers(lines: str, evidence: str) -> None:
    found = script(_TOP + lines + _TRAINING).buffers
    assert (ast.unparse(found) if found is not None else "") == evidence


def test_the_model_itself_is_evidence() -> None:
    found = layers.buffers(script(program(net="from nets import Net", model="model = nn.DataParallel(Net())")).roles)
    assert found is not None and ast.unparse(found) == "Net()"
