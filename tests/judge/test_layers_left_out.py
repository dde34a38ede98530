"""Which layers of a container a model uses: a layer that forward never comes to gets no gradient."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import faults, unused
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TRAINED = """\
import argparse
import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int)
parser.add_argument("--stop", type=int)
parser.add_argument("--used", type=int)
parser.add_argument("--names", nargs="*")
options = parser.parse_args()
used_layers = options.used


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for i in range(n)])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x):
        return self.first(x)

    def both(self, x):
        return self.second(self.first(x))


class Net(nn.Module):
    def __init__(self, depth=2, used=2):
        super().__init__()
        self.used = used
{made}
        self.head = nn.Linear(8, 2)

    def forward(self, x):
{body}
        return self.head(x)


ddp.setup()
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=0))
net = Net({given})
model = ddp.wrap(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
ddp.cleanup()
"""
_CLONES = "self.layers = clones(nn.Linear(8, 8), depth)"
_DICT = "self.layers = nn.ModuleDict({'a': nn.Linear(8, 8), 'b': nn.Linear(8, 8)})"
_APPENDED = "self.layers = nn.ModuleList()\nfor i in range({}):\n    self.layers.append(nn.Linear(8, 8))"
_OPTIONS = "self.depth, self.stop = options.depth, options.stop\n"
_BY_KIND = "layers = []\nfor kind in (8, 0, 8, 0, 8, 0, 8, 0):\n    layers += [nn.Linear(8, 8), nn.ReLU()] if kind else [nn.ReLU()]\nself.layers = nn.Sequential(*layers)"
_MANY = _OPTIONS + "self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(options.depth)])"
_BETWEEN = "\nself.norms = nn.ModuleList()\nfor i in range(self.depth - 1):\n    self.norms.append(nn.LayerNorm(8))"
_GROWN = _OPTIONS + "self.layers = nn.ModuleList()\nfor _ in range(self.depth):\n    self.layers.append(nn.Linear(8, 8))"
_LISTED = _OPTIONS + "layers = []\nfor _ in range(self.depth):\n    layers.append(nn.Linear(8, 8))\nself.layers = nn.ModuleList(layers)"
_CLONED = _OPTIONS + "self.layers = clones(nn.Linear(8, 8), self.depth)"
_TWICE = _OPTIONS + "self.layers = nn.ModuleList()\nfor _ in range(self.depth):\n    self.layers.append(nn.Linear(8, 8))\n    self.layers.append(nn.Linear(8, 8))"
_NAMED = "self.layers = nn.ModuleDict({name: nn.Linear(8, 8) for name in options.names})"
_ENDS = (
    _OPTIONS + "self.layers = nn.ModuleList()\nself.layers.append(nn.Linear(8, 8))\nself.norms = nn.ModuleList()\nself.norms.append(nn.LayerNorm(8))\n"
    "for _ in range(self.depth - 2):\n    self.layers.append(nn.Linear(8, 8))\n    self.norms.append(nn.LayerNorm(8))\nself.layers.append(nn.Linear(8, 8))"
)
_EACH = "for layer in self.layers:\n    x = layer(x)"
_ZIP = "for part, layer in zip({}, self.layers):\n    x = layer(x + part)"
_PAIR = "self.layers = clones(nn.Linear(8, 8), depth)\nself.norms = clones(nn.LayerNorm(8), {})"
_BOTH = "for layer, norm in zip(self.layers, self.norms):\n    x = norm(layer(x))"


def told(made: str, body: str, given: str = "") -> set[str]:
    """The invariants that fail for a model."""
    text = _TRAINED.format(made=indent(made, " " * 8), body=indent(body, " " * 8), given=given)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return {f.invariant for f in faults(Program.of(source))}


@pytest.mark.parametrize(
    ("made", "body"),
    [
        pytest.param(_CLONES, _ZIP.format("[x]"), id="a zip with a shorter list"),
        pytest.param(_PAIR.format(1), _BOTH, id="a zip of two lists of layers"),
        pytest.param(_PAIR.format("depth"), "for i, (part, layer, norm) in enumerate(zip([x], self.layers, self.norms)):\n    x = norm(layer(x))", id="a zip in enumerate"),
        pytest.param(_CLONES, "x = self.layers[0](x)", id="an index"),
        pytest.param(_CLONES, "x = self.layers[-1](x)", id="the last"),
        pytest.param(_CLONES, "for layer in self.layers[:1]:\n    x = layer(x)", id="a slice"),
        pytest.param(_CLONES, "parts = [x]\nfor i in range(len(parts)):\n    x = self.layers[i](parts[i])", id="as many as a list"),
        pytest.param(_CLONES, "parts = [x]\nfor i, part in enumerate(parts):\n    x = self.layers[i](part)", id="numbered as a list"),
        pytest.param(_CLONES, "x = sum([layer(x) for part, layer in zip([x], self.layers)])", id="in a comprehension"),
        pytest.param(_CLONES, "for i, layer in enumerate(self.layers):\n    if i == len(self.layers) - 1:\n        break\n    x = layer(x)", id="left before the last"),
        pytest.param(_CLONES, "for i in range(len(self.layers) - 1):\n    x = self.layers[i](x)", id="all but the last"),
        pytest.param(_APPENDED.format("depth"), "for i in range(len(self.layers) - 1):\n    x = self.layers[i](x)", id="all but the last of what is appended"),
        pytest.param(_APPENDED.format("depth"), _ZIP.format("[x]"), id="a zip with what is appended"),
        pytest.param("self.layers = nn.ModuleList([nn.Linear(8, 8)])\nself.layers.extend([nn.Linear(8, 8)])", _ZIP.format("[x]"), id="a zip with what is extended"),
        pytest.param(_DICT, "x = self.layers['a'](x)", id="a key never asked for"),
        pytest.param(_NAMED, "x = self.layers[options.names[0]](x)", id="one of the names of an option"),
        pytest.param(_NAMED, "for name in options.names[1:]:\n    x = self.layers[name](x)", id="all but one of the names of an option"),
        pytest.param(_NAMED, "for name in options.names:\n    if name != 'a':\n        x = self.layers[name](x)", id="a name of an option left out"),
        pytest.param(_DICT, "for name in ('a',):\n    x = self.layers[name](x)", id="a loop over keys"),
        pytest.param(_DICT, "for name, layer in self.layers.items():\n    if name != 'b':\n        x = layer(x)", id="a key left out"),
        pytest.param(_DICT, "for name in self.layers:\n    if name == 'b':\n        x = self.layers[name](x)", id="a key looked for"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 12)", "for i in range(10):\n    x = self.layers[i](x)", id="ten of twelve"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 20)", "for i in range(18):\n    x = self.layers[i](x)", id="eighteen of twenty"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 20)", "for i in range(len(self.layers) - 1):\n    x = self.layers[i](x)", id="all of many but the last"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 20)", "x = self.layers[0](x)", id="the first of many"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 9)", "for i, layer in enumerate(self.layers):\n    if i == 7:\n        break\n    x = layer(x)", id="left before the last of nine"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 9)", "for layer in self.layers:\n    x = layer(x)\n    if used_layers == 3:\n        break", id="left by an option"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    if i == self.stop:\n        break\n    x = layer(x)", id="any number, left early"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    if i == self.stop:\n        return self.head(x)\n    x = layer(x)", id="any number, returned early"),
        pytest.param(_MANY, "for i in range(self.stop):\n    x = self.layers[i](x)", id="as many as another option says"),
        pytest.param(_MANY, "x = self.layers[self.stop](x)", id="one of any number"),
        pytest.param(_MANY, "for i in range(self.depth - 1):\n    x = self.layers[i](x)", id="any number but one"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 14)", "x = self.layers[-1](x)", id="the last of many"),
        pytest.param(_BY_KIND, "x = self.layers[:4](x)", id="the first of a sequence by kinds"),
        pytest.param(_BY_KIND, "x = self.layers[:4](x)\nx = self.layers[4:-1](x)", id="a sequence by kinds in parts"),
        pytest.param(_GROWN.replace("nn.ModuleList()", "nn.ModuleList([nn.Linear(8, 8)])"), "for i in range(self.depth):\n    x = self.layers[i](x)", id="one before those that are appended"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 3)", "if not self.training:\n    for layer in self.layers:\n        x = layer(x)", id="used where nothing is trained"),
        pytest.param(_ENDS, "for i, layer in enumerate(self.layers[:-1]):\n    x = self.norms[i](layer(x))", id="ends, without the last"),
        pytest.param(_ENDS, "x = self.layers[0](x)\nx = self.layers[-1](x)\nfor norm in self.norms:\n    x = norm(x)", id="ends, without the middle"),
        pytest.param(_ENDS, "for i in range(1, self.depth):\n    x = self.layers[i](x)\nfor norm in self.norms:\n    x = norm(x)", id="ends, without the first"),
        pytest.param(_LISTED.replace("self.layers =", "layers.insert(0, nn.Linear(8, 8))\nself.layers ="), "for i in range(self.depth):\n    x = self.layers[i](x)", id="one more in a list"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    if i < self.stop:\n        x = layer(x)", id="any number, up to another"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    if i == self.stop:\n        continue\n    x = layer(x)", id="any number, but one"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 20)", "for layer in self.layers[:19]:\n    x = layer(x)", id="the first nineteen of twenty"),
        pytest.param(_OPTIONS + _CLONES, "for i, layer in enumerate(self.layers):\n    if i == self.stop:\n        break\n    x = layer(x)", id="of two, left by an option"),
        pytest.param(_OPTIONS + _CLONES, "for i, layer in enumerate(self.layers):\n    if i >= self.stop:\n        continue\n    x = layer(x)", id="of two, passed over by an option"),
        pytest.param("self.layers = nn.Parameter(torch.ones(8))", "with torch.no_grad():\n    x = x + self.layers", id="a parameter where nothing is recorded"),
        pytest.param("self.layers = nn.Parameter(torch.ones(8))", "with torch.no_grad():\n    x = torch.mul(x, -self.layers)", id="a parameter given to a function where nothing is recorded"),
        pytest.param(_TWICE, "for i in range(self.depth):\n    x = self.layers[i](x)", id="two in a turn, one taken"),
        pytest.param(_MANY, "for number, layer in zip(range(self.stop), self.layers):\n    x = layer(x)", id="a zip with fewer numbers"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 10)", _ZIP.format("[x] * 9"), id="a zip with nine of ten"),
        pytest.param(_CLONES, _ZIP.format("x.unbind(0)"), id="a zip with a list of unknown length"),
        pytest.param(_MANY, _ZIP.format("[x] * self.stop"), id="a zip with a list of an option's length"),
        pytest.param(_MANY, "other = 0 * x\nfor i, layer in enumerate(self.layers):\n    if i < self.stop:\n        x = layer(x)\n    else:\n        other = other + layer(x)", id="an arm of which nothing is used"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 10)", "kept = []\nfor i in range(10):\n    if i < 4:\n        kept.append(self.layers[i](x))\n    else:\n        x = self.layers[i](x)", id="an arm that keeps what nobody reads"),
        pytest.param("self.layers = clones(Block(), depth)", _EACH, id="a copy of which a part is unused"),
        pytest.param("self.layers = copy.deepcopy(clones(Block(), depth))", "x = self.layers[0].both(x)\nx = self.layers[1](x)", id="one copy of which a part is unused"),
        pytest.param("self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))", "for layer in self.layers[:2]:\n    x = layer(x)", id="a part of a sequence"),
        pytest.param("self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))", "for i, layer in enumerate(self.layers):\n    if i < 2:\n        x = layer(x)", id="a sequence up to a place"),
        pytest.param(_CLONES, "if self.used == 1:\n    x = self.layers[1](x)\nx = self.layers[0](x)", id="by a constant"),
        pytest.param(_CLONES, "x = self.layers[0](x)\nif self.used == 2:\n    return self.head(x)\nx = self.layers[1](x)", id="left under a constant"),
    ],
)  # fmt: skip
def test_a_layer_that_is_left_out_is_told(made: str, body: str) -> None:
    assert unused.NAME in told(made, body)


@pytest.mark.parametrize(
    ("made", "body"),
    [
        pytest.param(_CLONES, _EACH, id="each"),
        pytest.param(_CLONES, _ZIP.format("[x, x]"), id="a zip with a list as long"),
        pytest.param(_CLONES, _ZIP.format("[x, x, x]"), id="a zip with a longer list"),
        pytest.param(_MANY, "other = 0 * x\nfor i, layer in enumerate(self.layers):\n    if i < self.stop:\n        x = layer(x)\n    else:\n        other = other + layer(x)\nx = x + other", id="both arms of a test, of which both are used"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    if i == self.stop:\n        return self.head(layer(x))\n    else:\n        x = layer(x)\nx = self.layers[0](x)\nfor layer in self.layers:\n    x = layer(x)", id="an arm that returns, and all after it"),
        pytest.param(_PAIR.format("depth"), _BOTH, id="a zip of two lists of layers"),
        pytest.param(_PAIR.format("depth"), "parts = []\nfor layer in self.layers:\n    x = layer(x)\n    parts.append(x)\nfor part, norm in zip(parts, self.norms):\n    x = x + norm(part)", id="a zip with what layers give"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 14)\nself.norms = clones(nn.LayerNorm(8), 14)", "parts = []\nfor layer in self.layers:\n    x = layer(x)\n    parts.append(x)\nfor part, norm in zip(parts, self.norms):\n    x = x + norm(part)", id="many layers"),
        pytest.param(_CLONES, "for i in range(len(self.layers)):\n    x = self.layers[i](x)", id="by number"),
        pytest.param(_CLONES, "for layer in reversed(self.layers):\n    x = layer(x)", id="backwards"),
        pytest.param(_CLONES, "x = self.layers[0](x)\nfor layer in self.layers[1:]:\n    x = layer(x)", id="the first and the others"),
        pytest.param(_CLONES, "for i, layer in enumerate(self.layers):\n    x = layer(x) if i < len(self.layers) - 1 else layer(x).relu()", id="the last in another way"),
        pytest.param(_APPENDED.format("depth"), _EACH, id="appended"),
        pytest.param(_APPENDED.format(20), _EACH, id="many appended"),
        pytest.param("self.layers = nn.ModuleList()\nfor i in range(depth):\n    self.layers.append(nn.Linear(8, 8))\n    if i < depth - 1:\n        self.layers.append(nn.ReLU())", _EACH, id="appended by turns"),
        pytest.param("self.layers = nn.ModuleList([nn.Linear(8, 8)])\nself.layers.extend([nn.Linear(8, 8)])", _EACH, id="extended"),
        pytest.param("self.layers = nn.ModuleList([nn.Linear(8, 8)])\nself.layers.insert(0, nn.Linear(8, 8))", _EACH, id="inserted"),
        pytest.param("self.layers = nn.ModuleList([nn.Linear(8, 8)])\nself.layers += [nn.Linear(8, 8)]", _EACH, id="added"),
        pytest.param(_DICT, "for name in self.layers:\n    x = self.layers[name](x)", id="by name"),
        pytest.param(_DICT, "for layer in self.layers.values():\n    x = layer(x)", id="the values"),
        pytest.param(_DICT, "for name, layer in self.layers.items():\n    x = layer(x)", id="the items"),
        pytest.param(_DICT, "for name in self.layers.keys():\n    x = self.layers[name](x)", id="the keys"),
        pytest.param("self.layers = nn.ModuleDict()\nfor name in ('a', 'b'):\n    self.layers[name] = nn.Linear(8, 8)", "for name in ('a', 'b'):\n    x = self.layers[name](x)", id="stored by name"),
        pytest.param("self.layers = nn.ModuleDict()\nself.layers.update({'a': nn.Linear(8, 8), 'b': nn.Linear(8, 8)})", "for name, layer in self.layers.items():\n    x = layer(x)", id="updated"),
        pytest.param(_MANY, _EACH, id="any number, each"),
        pytest.param(_MANY, "for i in range(self.depth):\n    x = self.layers[i](x)", id="any number by the same number"),
        pytest.param(_MANY, "for i in range(options.depth):\n    x = self.layers[i](x)", id="any number by the same option"),
        pytest.param(_MANY, "for i in range(len(self.layers)):\n    x = self.layers[i](x)", id="any number by the length"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    x = x + self.layers[-i - 1](x)", id="any number from the end"),
        pytest.param(_MANY + "\nself.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(self.depth))", "for i, layer in enumerate(self.layers):\n    x = self.norms[i](layer(x))", id="any number, numbered by another list"),
        pytest.param(_MANY, "x = sum([self.layers[i](x) for i in range(self.depth)])", id="any number in a comprehension"),
        pytest.param(_MANY, "x = sum(layer(x) for layer in self.layers)", id="any number in a generator"),
        pytest.param(_MANY, "parts = []\nfor layer in self.layers:\n    parts.append(layer(x))\nx = parts[-1]", id="any number, kept"),
        pytest.param(_GROWN, "for i in range(self.depth):\n    x = self.layers[i](x)", id="any number appended"),
        pytest.param(_MANY + _BETWEEN, "for i in range(self.depth):\n    x = self.layers[i](x)\n    if i < self.depth - 1:\n        x = self.norms[i](x)", id="any number, one fewer between them"),
        pytest.param(_MANY + _BETWEEN, "for i, layer in enumerate(self.layers):\n    x = layer(x)\n    if i != len(self.layers) - 1:\n        x = self.norms[i](x)", id="any number, one fewer between those of a list"),
        pytest.param(_MANY + _BETWEEN, "for i in range(self.depth - 1):\n    x = self.norms[i](self.layers[i](x))\nx = self.layers[-1](x)\nx = sum(layer(x) for layer in self.layers)", id="any number but one, then all"),
        pytest.param("layers = []\nfor i in range(10):\n    layers.append(nn.Linear(8, 8))\nself.layers = nn.ModuleList(layers)", "x = sum(self.layers[i](x) for i in range(10))", id="ten in a generator"),
        pytest.param(_ENDS, "for i, layer in enumerate(self.layers[:-1]):\n    x = self.norms[i](layer(x))\nx = self.layers[-1](x)", id="ends, a slice and the last"),
        pytest.param(_ENDS, "for i in range(self.depth - 1):\n    x = self.norms[i](self.layers[i](x))\nx = self.layers[-1](x)", id="ends, all but the last and the last"),
        pytest.param(_ENDS, "for layer, norm in zip(self.layers, self.norms):\n    x = norm(layer(x))\nx = self.layers[-1](x)", id="ends, a zip and the last"),
        pytest.param(_ENDS, "for i, layer in enumerate(self.layers):\n    x = layer(x)\n    if i < len(self.layers) - 1:\n        x = self.norms[i](x)", id="ends, norms between"),
        pytest.param(_ENDS, "x = self.layers[0](x)\nfor i in range(1, self.depth):\n    x = self.layers[i](x)\nfor norm in self.norms:\n    x = norm(x)", id="ends, the first and the others"),
        pytest.param(_ENDS, "for i in range(len(self.layers) - 1, -1, -1):\n    x = self.layers[i](x)\nfor norm in self.norms:\n    x = norm(x)", id="ends, from the last to the first"),
        pytest.param(_ENDS, "x = self.layers[0](x)\nfor layer in self.layers[1:-1]:\n    x = layer(x)\nx = self.layers[-1](x)\nfor i in range(len(self.norms)):\n    x = self.norms[i](x)", id="ends, the middle"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    if i == 0:\n        x = layer(x)\n    else:\n        x = x + layer(x)", id="any number, the first in another way"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    x = layer(x)\n    if i == self.stop:\n        x = x.relu()", id="any number, more of one"),
        pytest.param(_MANY, "for i, layer in enumerate(self.layers):\n    if i == 0:\n        x = layer(x)\n        continue\n    x = x + layer(x)", id="any number, the first by itself"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 20)", "for layer in self.layers[:20]:\n    x = layer(x)", id="the first twenty of twenty"),
        pytest.param(_LISTED, "for i in range(self.depth):\n    x = self.layers[i](x)", id="any number in a list"),
        pytest.param(_CLONED, "for i in range(self.depth):\n    x = self.layers[i](x)", id="any number of clones"),
        pytest.param(_NAMED, "for name in self.layers:\n    x = self.layers[name](x)", id="names by option"),
        pytest.param(_NAMED, "for name in options.names:\n    x = self.layers[name](x)", id="the same names"),
        pytest.param(_NAMED, "for name, layer in self.layers.items():\n    x = layer(x)", id="names with layers"),
        pytest.param(_NAMED, "for i, name in enumerate(options.names):\n    x = self.layers[name](x)", id="the same names with numbers"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 20)", "for i in range(20):\n    x = self.layers[i](x)", id="twenty by number"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 9)", "for layer in self.layers:\n    x = layer(x)\n    for part in x:\n        if part.isnan():\n            break", id="an inner loop is left"),
        pytest.param("self.layers = clones(nn.Linear(8, 8), 12)", "for i in range(12):\n    x = self.layers[i](x)", id="twelve by number"),
        pytest.param("self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))", _EACH, id="a sequence"),
    ],
)  # fmt: skip
def test_layers_that_are_all_used(made: str, body: str) -> None:
    assert unused.NAME not in told(made, body)


_DERIVED = "class Derived(nn.{0}):\n    def forward(self, x):\n        return {1}\nself.own = Derived(8, 8)"
_OWN = "nn.functional.linear(x, self.weight / self.weight.norm(), self.bias)"


@pytest.mark.parametrize("forward", ["super().forward(x)", _OWN])
@pytest.mark.parametrize(
    ("body", "left_out"),
    [
        pytest.param("x = self.own(x)", False, id="used"),
        pytest.param("with torch.no_grad():\n    x = x + self.own(x)", True, id="without a gradient"),
        pytest.param("x = x * 2", True, id="not used"),
    ],
)
def test_a_layer_of_a_class_that_derives_from_one_of_torch(forward: str, body: str, left_out: bool) -> None:
    assert (unused.NAME in told(_DERIVED.format("Linear", forward), body)) is left_out
