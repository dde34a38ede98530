"""Models of libraries of which only parts are used: what else they hold gets no gradient."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import faults, unused
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TRAINED = """\
import timm
import torch
from efficientnet_pytorch import EfficientNet
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision import models
import dpmigrate_runtime as ddp


class Net(nn.Module):
    def __init__(self):
        super().__init__()
{begin}
        self.fc = nn.Linear(512, 5)

    def forward(self, x):
{body}
        return self.fc(x.flatten(1))


ddp.setup()
data = TensorDataset(torch.rand(64, 3, 32, 32), torch.randint(5, (64,)))
loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data))
net = ddp.wrap(Net())
opt = torch.optim.Adam(net.parameters())
ddp.seed_ranks()
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for a, b in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(a), b)
        loss.backward()
        opt.step()
{end}
ddp.cleanup()
"""
_NET = "self.net = models.resnet18()"
_PARTS = "x = self.net.layer1(self.net.conv1(x))"
_LEFT = "only parts of"


def _told(begin: str, body: str, end: str = "") -> list[str]:
    """What a trial says."""
    text = _TRAINED.format(begin=indent(begin, " " * 8), body=indent(body, " " * 8), end=end)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return [f.words if f.invariant == unused.NAME else f"other: {f.words}" for f in faults(Program.of(source))]


@pytest.mark.parametrize(
    ("begin", "body"),
    [
        pytest.param(_NET, _PARTS, id="in forward"),
        pytest.param(f"{_NET}\nself.a = nn.Sequential(self.net.conv1, self.net.bn1)\nself.b = self.net.layer1", "x = self.b(self.a(x))", id="by other names"),
        pytest.param(f"{_NET}\nself.a = nn.Sequential(*list(self.net.children())[:-1])", "x = self.a(x)", id="children of what is kept"),
        pytest.param(f"{_NET}\nself.all = list(self.net.children())\nself.a = nn.Sequential(*self.all[:3])", "x = self.all[4](self.a(x))", id="children one by one"),
        pytest.param(_NET, "for name, layer in self.net.named_children():\n    if name == 'fc':\n        break\n    x = layer(x)", id="a loop over children"),
        pytest.param(f"{_NET}\nself.net.layer1.requires_grad_(False)\nself.net.conv1.requires_grad_(False)", _PARTS, id="what is used is frozen"),
        pytest.param("self.net = models.vgg16().features", "x = self.net[0](x)", id="by place"),
        pytest.param("self.net = timm.create_model('resnet50')", "x = self.net.forward_features(x)", id="another method"),
        pytest.param("self.net = EfficientNet.from_name('efficientnet-b0')", "x = self.net.extract_features(x)", id="a method of its own"),
    ],
)
def test_parts_are_used_and_not_the_whole(begin: str, body: str) -> None:
    (words,) = _told(begin, body)
    assert words.startswith(_LEFT)


@pytest.mark.parametrize(
    ("begin", "body", "end"),
    [
        pytest.param(_NET, "x = self.net(x)", "", id="the whole"),
        pytest.param(f"{_NET}\nself.net.fc = nn.Identity()", "x = self.net(x)", "", id="the whole with another end"),
        pytest.param(_NET, "x = self.net(x) * self.net.layer1(x)", "", id="the whole and a part"),
        pytest.param("net = models.resnet18()\nself.a = nn.Sequential(net.conv1, net.bn1)", "x = self.a(x)", "", id="the whole is not kept"),
        pytest.param("net = models.resnet18()\nself.a = nn.Sequential(*list(net.children())[:-1])", "x = self.a(x)", "", id="children of what is not kept"),
        pytest.param(f"{_NET}\nself.net.requires_grad_(False)", _PARTS, "", id="frozen"),
        pytest.param(f"{_NET}\nfor p in self.net.parameters():\n    p.requires_grad = False", _PARTS, "", id="frozen one by one"),
        pytest.param(f"{_NET}\nself.net.requires_grad_(False)\nself.a = nn.Sequential(*self.net.children())", "x = self.a(x)", "", id="children of what is frozen"),
        pytest.param(f"{_NET}\nself.net.requires_grad_(False)\nself.net.layer1.requires_grad_(True)", _PARTS, "", id="what is used is thawed"),
        pytest.param(_NET, "x = self.net(x)", "for layer in net.module.net.children():\n    print(layer)", id="children that are looked at"),
        pytest.param("self.net = models.vgg16().features", "x = self.net(x)", "", id="a part that is kept alone"),
    ],
)
def test_all_is_used_or_frozen(begin: str, body: str, end: str) -> None:
    assert _told(begin, body, end) == []


def test_parts_without_gradients() -> None:
    (words,) = _told(_NET, f"with torch.no_grad():\n    {_PARTS}")
    assert words.startswith("no loss reaches resnet18.")


@pytest.mark.parametrize(
    ("made", "left_out"),
    [
        pytest.param("net = models.resnet18()\nnet.classifier = nn.Linear(512, 5)", True, id="a name that the network has not"),
        pytest.param("net = models.resnet18()\nnet.fc = nn.Linear(512, 5)", False, id="its last layer"),
        pytest.param("net = models.resnet18()\nnet.conv1 = nn.Conv2d(3, 64, 7)", False, id="its first layer"),
        pytest.param("net = models.vgg11()\nnet.fc = nn.Linear(512, 5)", True, id="another network's last layer"),
        pytest.param("net = timm.create_model('a')\nnet.classifier = nn.Linear(512, 5)", False, id="a network whose parts are not known"),
        pytest.param("net = models.resnet18()\nnet.classifier = nn.Linear(512, 5).requires_grad_(False)", False, id="frozen"),
    ],
)
def test_a_layer_that_is_given_to_a_network(made: str, left_out: bool) -> None:
    text = _TRAINED.format(begin="        pass", body="        pass", end="").replace("net = ddp.wrap(Net())", f"{made}\nnet = ddp.wrap(net)")
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    found = [f.words for f in faults(Program.of(source)) if f.invariant == unused.NAME]
    assert any("that its own code would use" in words for words in found) is left_out, found
