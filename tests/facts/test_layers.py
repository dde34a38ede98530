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
    ],
)
def test_batch_norm(lines: str, seen: str) -> None:
    node = layers.batch_norm(script(program(defs=lines)).names)
    assert (ast.unparse(node) if node is not None else "") == seen


@pytest.mark.parametrize(
    ("net", "answer"),
    [
        pytest.param("Net = lambda: nn.Linear(8, 2)", False, id="torch's"),
        pytest.param("class Net(nn.Module):\n    pass", False, id="of this file"),
        pytest.param("from nets import Net", True, id="of another file"),
    ],
)
def test_unseen(net: str, answer: bool) -> None:
    assert layers.unseen(script(program(net=net, model="model = nn.DataParallel(Net())"))) is answer
