"""Classes of the program that derive from torch's layers, losses and containers."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import Data
from tests.execution.paper import executed, held, lines, placed

_HEAD = "from torch import nn\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader, TensorDataset\n"
_LOOP = "for x, t in DataLoader(TensorDataset(torch.ones(8, 3, 8, 8), torch.ones(8).long()), batch_size=4):\n    out = model(x)\n"
LAYERS = {
    "its forward calls the base's": "class Own(nn.Conv2d):\n    def __init__(self, i, o):\n        super().__init__(i, o, 3)\n    def forward(self, x):\n        return super().forward(x) * 2\nmodel = Own(3, 4)\n",
    "an old call of super": "class Own(nn.Conv2d):\n    def __init__(self, i, o):\n        super(Own, self).__init__(i, o, 3)\n    def forward(self, x):\n        return super(Own, self).forward(x)\nmodel = Own(3, 4)\n",
    "without a forward": "class Own(nn.Conv2d):\n    def __init__(self, i, o):\n        super().__init__(i, o, 3)\nmodel = Own(3, 4)\n",
    "without anything": "class Own(nn.Conv2d):\n    pass\nmodel = Own(3, 4, 3)\n",
    "of a module of implementation": "from torch.nn.modules.conv import Conv2d\nclass Own(Conv2d):\n    pass\nmodel = Own(3, 4, 3)\n",
    "weights by hand": "class Own(nn.Conv2d):\n    def forward(self, x):\n        w = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)\n        return F.conv2d(x, w, self.bias, self.stride, self.padding)\nmodel = Own(3, 4, 3)\n",
    "a container": "class Own(nn.Sequential):\n    def __init__(self, i, o):\n        super().__init__(nn.Conv2d(i, o, 3), nn.BatchNorm2d(o), nn.ReLU())\nmodel = Own(3, 4)\n",
    "a container with fields": "class Own(nn.Sequential):\n    def __init__(self, i, o):\n        layers = [nn.Conv2d(i, o, 3)]\n        super().__init__(*layers)\n        self.width = o\nmodel = Own(3, 4)\n",
    "a container with layers by name": "class Own(nn.Sequential):\n    def __init__(self, i, o):\n        super().__init__()\n        self.add_module('conv', nn.Conv2d(i, o, 3))\n        self.act = nn.ReLU()\nmodel = Own(3, 4)\n",
    "a container with a forward": "class Own(nn.Sequential):\n    def forward(self, x):\n        return x + super().forward(x)\nmodel = Own(nn.Conv2d(3, 3, 3, padding=1))\n",
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_classes_of_layers(name: str) -> None:
    ex = executed(f"{_HEAD}{LAYERS[name]}{_LOOP}    loss = out.mean()\n    loss.backward()\n")
    assert placed(ex, "loss") == "partial(mean)"
    (out,) = (a for a in held(ex, "out") if isinstance(a, Data))
    assert (str(out.placement), out.axes, out.gradient) == ("rows(axis 0)", 4, "whole")
    assert len(out.reached) > 0


LOSSES = {
    "nn.CrossEntropyLoss": ("super().__init__()", "partial(mean)"),
    "nn.CrossEntropyLoss ": ("super().__init__(reduction='sum')", "partial(sum)"),
    "nn.CrossEntropyLoss  ": ("super().__init__(torch.ones(10))", "ratio"),
    "nn.CrossEntropyLoss   ": ("super().__init__(**options)", "unknown"),
    "nn.CrossEntropyLoss    ": ("super().__init__(reduction='mean', **options)", "partial(mean)"),
}


@pytest.mark.parametrize("forward", ["", "    def forward(self, x, t):\n        return super().forward(x, t) * 2\n"])
@pytest.mark.parametrize("base", LOSSES)
def test_classes_of_losses(base: str, forward: str) -> None:
    init, placement = LOSSES[base]
    cls = f"import json\noptions = json.loads(input())\nclass Own({base.strip()}):\n    def __init__(self):\n        {init}\n{forward}"
    text = f"{_HEAD}{cls}model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))\ncriterion = Own()\n{_LOOP}    loss = criterion(out, t)\n"
    assert placed(executed(text), "loss") == placement


def test_a_forward_that_does_not_call_its_base() -> None:
    cls = "class Own(nn.MSELoss):\n    def forward(self, x, y):\n        return (x - y).pow(2).sum()\n"
    text = f"{_HEAD}{cls}model = nn.Conv2d(3, 3, 1)\ncriterion = Own()\n{_LOOP}    loss = criterion(out, x)\n"
    ex = executed(text)
    assert placed(ex, "loss") == "partial(sum)"
    assert len(lines(ex, "forward")) == 2


@pytest.mark.parametrize("call", ["nn.MSELoss(**options)(out, x)", "F.mse_loss(out, x, **options)"])
def test_a_loss_with_options_that_nobody_knows(call: str) -> None:
    text = f"{_HEAD}import json\noptions = json.loads(input())\nmodel = nn.Conv2d(3, 3, 1)\n{_LOOP}    loss = {call}\n"
    assert placed(executed(text), "loss") == "unknown"


@pytest.mark.parametrize(
    ("layer", "shape", "placement"),
    [
        ("nn.LSTM(4, 3, batch_first=flag)", "5, 4", "unknown"),
        ("nn.GRU(4, 3, 1, True, True)", "5, 4", "rows(axis 0)"),
        ("nn.GRU(4, 3)", "5, 4", "per rank"),
        ("nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, batch_first=True), 2)", "5, 4", "rows(axis 0)"),
        ("nn.TransformerEncoder(layer, 2)", "5, 4", "unknown"),
        ("nn.Conv2d(3, 4, 3)", "8, 8", "unknown"),
        ("nn.MaxPool2d(2)", "8, 8", "rows(axis 0)"),
        ("nn.Softmax(dim=0)", "5", "per rank"),
    ],
)
def test_layers_of_which_it_matters_where_the_samples_are(layer: str, shape: str, placement: str) -> None:
    head = "import json\nflag = json.loads(input())\nfrom elsewhere import layer\n"
    loop = f"for x, in DataLoader(TensorDataset(torch.ones(8, {shape})), batch_size=4):\n    out = model(x)\n"
    more = "    out = out[0]\n" if "LSTM" in layer or "GRU" in layer else ""
    ex = executed(f"{_HEAD}{head}model = {layer}\n{loop}{more}")
    assert placed(ex, "out") == placement


@pytest.mark.parametrize(
    ("layer", "state", "placement"),
    [
        ("nn.GRU(4, 3, batch_first=True)", "torch.zeros(1, 8, 3)", "unknown"),
        ("nn.GRU(4, 3, batch_first=True)", "torch.randn(1, Config.size, 3).to(x.device)", "unknown"),
        ("nn.LSTM(4, 3, batch_first=True)", "(x.new_zeros((1, 8, 3)), x.new_zeros((1, 8, 3)))", "unknown"),
        ("nn.GRU(4, 3, batch_first=True)", "torch.zeros(1, 1, 3)", "rows(axis 0)"),
        ("nn.GRU(4, 3, batch_first=True)", "torch.zeros(1, 4, 3)", "rows(axis 0)"),  # the loader's own
        ("nn.GRU(4, 3, batch_first=True)", "torch.zeros(1, len(x), 3)", "rows(axis 0)"),
        ("nn.GRUCell(4, 3)", "torch.zeros(8, 3)", "unknown"),
        ("nn.GRUCell(4, 3)", "torch.zeros(4, 3)", "rows(axis 0)"),
        ("nn.GRUCell(4, 3)", "torch.zeros(x.size(0), 3)", "rows(axis 0)"),
    ],
)
def test_states_of_as_many_samples_as_the_program_has_written(layer: str, state: str, placement: str) -> None:
    """The batch of a rank has fewer: torch refuses them."""
    shape, more = ("4", "") if "Cell" in layer else ("5, 4", "    out = out[0]\n")
    loop = f"for x, in DataLoader(TensorDataset(torch.ones(8, {shape})), batch_size=4):\n    out = model(x, {state})\n"
    ex = executed(f"{_HEAD}class Config:\n    size = 8\nmodel = {layer}\n{loop}{more}")
    assert placed(ex, "out") == placement


@pytest.mark.parametrize(
    ("made", "placement"),
    [
        ("out.flatten(-2)", "rows(axis 0)"),
        ("out.flatten(-2, -1)", "rows(axis 0)"),
        ("out.flatten(-3, -2)", "unknown"),
        ("out.flatten(-1)", "rows(axis 0)"),
        ("out.squeeze().flatten(-2)", "unknown"),
        ("F.pad(out, (0, n))", "rows(axis 0)"),
        ("F.pad(out, (0, n, 0, n))", "unknown"),  # it may fill up a batch of vectors
    ],
)
def test_the_last_axes_of_what_an_unseen_layer_gives_are_those_of_a_grid(made: str, placement: str) -> None:
    """As a layer on a grid goes over them: the samples stand before them."""
    head = "import json, torchvision\nn = json.loads(input())\nnet = torchvision.models.resnet18()\nmodel = nn.Sequential(*list(net.children())[:-2])\n"
    ex = executed(f"{_HEAD}{head}{_LOOP}    y = {made}\n")
    assert [a.axes for a in held(ex, "out") if isinstance(a, Data)] == [None]
    assert placed(ex, "y") == placement


@pytest.mark.parametrize("name", ["values_of_it", "grade"])
def test_what_a_tensor_does_not_have_is_not_known(name: str) -> None:
    ex = executed(f"{_HEAD}model = nn.Conv2d(3, 3, 1)\n{_LOOP}    y = out.{name}\n    z = model.weight.{name}\n")
    assert (placed(ex, "y"), placed(ex, "z")) == ("unknown", "uniform")


@pytest.mark.parametrize(
    ("part", "axes"), [("f[:-1]", 4), ("f[-1:]", 2), ("f[:2]", 4), ("f[::2]", 2), ("f[n:]", None)]
)
def test_a_part_of_a_container(part: str, axes: int | None) -> None:
    head = "import json\nn = json.loads(input())\nf = nn.Sequential(nn.Conv2d(3, 3, 3), nn.ReLU(), nn.Flatten())\n"
    ex = executed(f"{_HEAD}{head}model = {part}\n{_LOOP}")
    found = [a.axes for a in held(ex, "out") if isinstance(a, Data)]
    assert placed(ex, "out") == "rows(axis 0)"
    assert found == [axes]  # of some layers that are not known: of which number is not known either


@pytest.mark.parametrize(
    ("axes", "wanted"), [(5, "rows(axis 0)"), (4, "rows(axis 0)"), (3, "unknown")]
)
def test_a_layer_that_an_option_chooses_takes_inputs_of_its_own_axes(axes: int, wanted: str) -> None:
    """Of a batch of images Conv2d alone can be called, of one of films Conv3d: with an axis less the
    samples would be taken for channels, of which there are others as soon as the batch is divided.
    """
    sizes = {5: "-1, 3, 2, 4, 8", 4: "-1, 3, 8, 8", 3: "-1, 3, 64"}[axes]
    text = f"""
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
for (a,) in DataLoader(TensorDataset(torch.ones(4, 3, 8, 8)), 2):
    pass
layer = nn.Conv2d(3, 4, 1) if len(sys.argv) > 1 else nn.Conv3d(3, 4, 1)
x = layer(a.view({sizes}))
"""
    assert placed(executed(text), "x") == wanted


@pytest.mark.parametrize("key", ["key", "'a'"])
def test_a_dictionary_of_layers_by_names_from_a_file(key: str) -> None:
    head = "import json\nimport torch\nfrom torch import nn\nwords = json.load(open('words.json'))\nfor key in words:\n    pass\n"
    ex = executed(f"{head}layers = nn.ModuleDict({{w: nn.Embedding(len(v), 4) for w, v in words.items()}})\nlayer = layers[{key}]\n")
    assert [(o.kind, o.name.rpartition(".")[2]) for o in ex.objects(held(ex, "layer"))] == [("module", "Embedding")]
