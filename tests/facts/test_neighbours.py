"""Samples that meet their neighbours in the batch, as DPM303 says it."""

from __future__ import annotations

import pytest

from tests.rules.program import found, hits, refused

_STEP = "optimizer.zero_grad()\nz = model(x)\nloss = F.cross_entropy(z, y)\n{}\nloss.backward()\noptimizer.step()"
_DEFS = """
def smooth(f):
    return (f[1:] - f[:-1]).abs().mean()
def gap(a, b):
    return (a - b).abs().mean()
def unknown(f=None):
    return (f[1:] - f[:-1]).abs().mean()
def sized(f, k, d=2):
    return f.view(-1, k, d).mean()
"""


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("loss = loss + (z[:, 1:] - z[:, :-1]).mean()", id="along another axis"),
        pytest.param("loss = F.cross_entropy(z[:, :-1], y)", id="the shift of a language model"),
        pytest.param("loss = loss + (z[:, 1:] - z[:, :-1]).diff(dim=1).mean() + z.diff().mean()", id="differences along another axis"),
        pytest.param("print((z[1:] - z[:-1]).abs().mean())", id="shown alone"),
        pytest.param("loss = loss + (z[1:] + 1).mean() + (z[1:] - z[1:]).mean()", id="the same rows"),
        pytest.param("loss = loss + (z[1:] - y[:-1, None]).abs().mean()", id="rows of two tensors"),
        pytest.param("w = model.fc.weight\nloss = loss + (w[1:] - w[:-1]).abs().mean()", id="rows of a weight"),
        pytest.param("s = z.permute(1, 0)\nloss = loss + (s[1:] - s[:-1]).abs().mean()", id="axes in another order"),
        pytest.param("loss = loss + (z.T[1:] - z.T[:-1]).abs().mean()", id="turned"),
        pytest.param("k = torch.topk(z, 2)\nloss = loss + (k[1:] - k[:-1]).mean()", id="of a function that may change rows"),
        pytest.param("k = len(z)\nloss = loss + (k[1:] - k[:-1]).mean()", id="of a function of Python"),
        pytest.param("k = (lambda: z)()\nloss = loss + (k[1:] - k[:-1]).mean()", id="of a function without a name"),
        pytest.param("k = [z, z]\nloss = loss + (k[1:] - k[:-1]).mean()", id="a list"),
        pytest.param("k = [z, z]\nloss = loss + (k[0] - k[1]).mean()", id="elements of a list"),
        pytest.param("k = torch.relu()\nloss = loss + (k[1:] - k[:-1]).mean()", id="of nothing"),
        pytest.param("loss = loss + unknown()", id="of a parameter without a value"),
        pytest.param("for o in z:\n    loss = loss + (o[1:] - o[:-1]).abs().mean()", id="within each sample"),
        pytest.param("for i in range(len(z)):\n    o = z[i]\n    loss = loss + (o[1:] - o[:-1]).abs().mean()", id="within each sample, by its number"),
        pytest.param("for t in range(3):\n    loss = loss + (z[t + 1] - z[t]).mean()", id="a number of turns that is no batch's"),
        pytest.param("t = 1\nloss = loss + (z[t + 1] - z[t]).mean()", id="an index that no loop gives"),
        pytest.param("for t in list([0]):\n    loss = loss + (z[t + 1] - z[t]).mean()", id="a loop over a list"),
        pytest.param("n = len(z) // 2\nloss = F.cross_entropy(z[:n], y[:n]) + F.cross_entropy(z[n:], y[n:])", id="losses of parts, added"),
        pytest.param("a, b = z.chunk(2, dim=1)\nloss = loss + F.mse_loss(a, b)", id="cut along another axis"),
        pytest.param("a, b = torch.split(z, 1, 1)\nloss = loss + F.mse_loss(a, b)", id="cut along another axis, by position"),
        pytest.param("for cx, cy in zip(x.chunk(2), y.chunk(2)):\n    loss = loss + F.cross_entropy(model(cx), cy)", id="small batches"),
        pytest.param("f = model(torch.cat([x, x + 1]))\na, b = f.chunk(2)\nloss = loss + F.mse_loss(a, b)", id="halves that the step puts together"),
        pytest.param("f = torch.cat([x, x + 1], dim=0)\nf = model(f)\na, b = torch.split(f, len(x))\nloss = loss + F.mse_loss(a, b)", id="in a variable"),
        pytest.param("x = torch.cat([x, x])\na, b = model(x).chunk(2)\nloss = loss + F.mse_loss(a, b)", id="under the batch's own name"),
        pytest.param("f = model(x.view(-1, 1, 8))\nd = (f[1:] - f[:-1]).mean()\nloss = loss + d", id="rows taken apart"),
        pytest.param("f = model(x.flatten(0, 1))\nloss = loss + (f[1:] - f[:-1]).mean()", id="axes put together"),
        pytest.param("f = x.flatten()\nloss = loss + (f[1:] - f[:-1]).mean()", id="made flat"),
        pytest.param("f = x.sum(0)\nloss = loss + (f[1:] - f[:-1]).mean() + (x.sum()[1:] - x.sum()[:-1])", id="sums over the batch"),
        pytest.param("w = x.view(-1, 2, 4)\nloss = loss + w.mean()", id="a view of unknown width"),
        pytest.param("p = z.view(-1, 2, 1)\nloss = loss + (p[:, 0] - p[:, 1]).abs().mean()", id="two heads in each row"),
        pytest.param("t = z.view(len(z) * 2, -1)\nloss = loss + t.mean() + z.view(-1, 2).mean() + z.view(-1).mean()", id="more rows, or as many"),
        pytest.param("p = z.view(-1, 1, 2)\nloss = loss + p.mean() + z.view(-1, len(z), 2).mean()", id="one in each row"),
        pytest.param("p = z.unflatten(0, (-1, 1))\nloss = loss + p.mean() + z.unflatten(1, (-1, 1)).mean()", id="unflattened, one by one"),
        pytest.param("loss = loss + torch.ones(4, 2).view(-1, 2, 2).mean()", id="a view of another tensor"),
        pytest.param("loss = loss + sized(z, 1) + sized(z, 2, d=1)", id="sizes of parameters"),
    ],
)  # fmt: skip
def test_nothing_to_say(lines: str) -> None:
    assert found("DPM303", defs=_DEFS, step=_STEP.format(lines)) == []


@pytest.mark.parametrize(
    ("lines", "pointed"),
    [
        pytest.param("loss = loss + (z[1:] - z[:-1]).pow(2).mean()", "z[1:] - z[:-1]", id="shifted"),
        pytest.param("d = z[1:, :] - z[:-1, :]\nloss = loss + d.abs().mean()", "z[1:, :] - z[:-1, :]", id="shifted, with the other axis"),
        pytest.param("loss = loss + F.mse_loss(z[1:], z[:-1])", "F.mse_loss(z[1:], z[:-1])", id="in a function of torch"),
        pytest.param("apart = nn.MSELoss()\nloss = loss + apart(-z[1:], 2 * z[:-1].float())", "apart(-z[1:], 2 * z[:-1].float())", id="in a loss of torch"),
        pytest.param("loss = loss + smooth(z)", "f[1:] - f[:-1]", id="in a function"),
        pytest.param("loss = loss + gap(z[1:], b=z[:-1])", "a - b", id="given to a function"),
        pytest.param("a, b = z.chunk(2)\nloss = loss + F.mse_loss(input=a, target=b)", "F.mse_loss(input=a, target=b)", id="chunks"),
        pytest.param("a, b = torch.chunk(input=z, chunks=2)\nloss = loss + (a - b).abs().mean()", "a - b", id="chunks, by keyword"),
        pytest.param("a, b = torch.chunk(z, 2, dim=0)\nloss = loss + (a * b).sum(1).mean()", "a * b", id="chunks along an axis"),
        pytest.param("a, b = torch.split(z, len(z) // 2)\nloss = loss + (a - b).abs().mean()", "a - b", id="split"),
        pytest.param("h = F.normalize(z, dim=1).chunk(2)\nloss = loss + (h[0] - h[1]).abs().mean()", "h[0] - h[1]", id="chunks in one variable"),
        pytest.param("d = z.chunk(2)[0] - z.chunk(2)[1]\nloss = loss + d.mean()", "z.chunk(2)[0] - z.chunk(2)[1]", id="chunks without one"),
        pytest.param("n = len(z) // 2\nloss = loss + (z[:n] - z[n:]).abs().mean()", "z[:n] - z[n:]", id="halves"),
        pytest.param("f = model(x.view(-1, 8))\nloss = loss + (f[3:] - f[:-3]).mean()", "f[3:] - f[:-3]", id="rows as wide as they were"),
        pytest.param("f = x.flatten(1).view(len(x), -1).sum(1)\nloss = loss + (f[3:] - f[:-3]).mean()", "f[3:] - f[:-3]", id="numbers of samples"),
        pytest.param("f = (z @ model.fc.weight)[:, :1]\nloss = loss + (f[3:] - f[:-3]).mean()", "f[3:] - f[:-3]", id="a product"),
        pytest.param("z = z.float()\nloss = loss + (z.data[3:] - z.data[:-3]).mean()", "z.data[3:] - z.data[:-3]", id="itself, moved"),
        pytest.param("e = F.cross_entropy(z, y, reduction='none')\nloss = loss + (e[3:] - e[:-3]).mean()", "e[3:] - e[:-3]", id="losses of samples"),
        pytest.param("for i in range(0, len(z) - 1, 2):\n    loss = loss + F.mse_loss(z[i], z[i + 1])", "F.mse_loss(z[i], z[i + 1])", id="by number"),
        pytest.param("for a, b in zip(z[3:], z[:-3]):\n    loss = loss + F.mse_loss(a, b)", "F.mse_loss(a, b)", id="two by two"),
        pytest.param("loss = loss + z.diff(dim=0).abs().mean()", "z.diff(dim=0)", id="differences"),
        pytest.param("loss = loss + torch.diff(z, 1, 0).abs().mean()", "torch.diff(z, 1, 0)", id="differences, by position"),
        pytest.param("p = z.unflatten(0, (-1, 2))\nloss = loss + p.mean()", "z.unflatten(0, (-1, 2))", id="unflattened"),
        pytest.param("p = z.view(-1, 2, 2)\nloss = loss + (p[:, 0] - p[:, 1]).abs().mean()", "z.view(-1, 2, 2)", id="pairs"),
        pytest.param("p = torch.reshape(z, (-1, 2, 2))\nloss = loss + p.mean()", "torch.reshape(z, (-1, 2, 2))", id="reshaped"),
        pytest.param("p = z.view(-1, 2, z.size(1))\nloss = loss + p.mean()", "z.view(-1, 2, z.size(1))", id="pairs of rows"),
        pytest.param("p = z.view(len(z) // 2, 2, -1)\nloss = loss + p.mean()", "z.view(len(z) // 2, 2, -1)", id="half as many rows"),
        pytest.param("b = z.size(0) // 2\np = z.view([b, 2, -1])\nloss = loss + p.mean()", "z.view([b, 2, -1])", id="half as many, by name"),
        pytest.param("e = F.cross_entropy(z, y, reduction='none').view(-1, 2)\nloss = loss + e.mean()",
                     "F.cross_entropy(z, y, reduction='none').view(-1, 2)", id="losses of pairs"),
        pytest.param("loss = loss + sized(z, k=2)", "f.view(-1, k, d)", id="sizes of parameters"),
    ],
)  # fmt: skip
def test_neighbours_are_refused(lines: str, pointed: str) -> None:
    assert refused("DPM303", defs=_DEFS, step=_STEP.format(lines)) == [pointed]


def test_two_models_on_two_parts() -> None:
    lines = "a = model(x[4:])\nb = model(x[:-4])\nloss = loss + F.cosine_similarity(a, b).mean()"
    assert refused("DPM303", step=_STEP.format(lines)) == ["F.cosine_similarity(a, b)"]
    assert refused("DPM303", step=_STEP.format("loss = loss + model(x[4:], x[:-4]).mean()")) == ["model(x[4:], x[:-4])"]


def test_a_loss_module_of_the_program() -> None:
    defs = "class Smooth(nn.Module):\n    def forward(self, f):\n        return (f[1:] - f[:-1]).abs().mean()"
    assert refused("DPM303", defs=defs, before="smooth = Smooth()", step=_STEP.format("loss = loss + smooth(z)")) == ["f[1:] - f[:-1]"]


def test_parts_of_what_a_model_gives() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def forward(self, x):\n        return self.fc(x), x"
    step = _STEP.replace("z = model(x)", "z, w = model(x)\nout = model(x)")
    assert refused("DPM303", net=net, step=step.format("loss = loss + (w[1:] - w[:-1]).mean()")) == ["w[1:] - w[:-1]"]
    assert refused("DPM303", net=net, step=step.format("loss = loss + (out[0][1:] - out[0][:-1]).mean()")) == ["out[0][1:] - out[0][:-1]"]
    assert refused("DPM303", net=net, step=step.format("d = model(x)[0][1:] - model(x)[0][:-1]\nloss = loss + d.mean()")) == [
        "model(x)[0][1:] - model(x)[0][:-1]"
    ]
    assert found("DPM303", net=net, step=step.format("p = w.view(-1, 3, 2)\nloss = loss + p.mean()")) == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("a = z[1:]\nfor _ in range(2):\n    b = a\n    a = b\nloss = loss + (a - b).mean()", id="parts of each other"),
        pytest.param("a = z\nfor _ in range(2):\n    b = a\n    a = b\nloss = loss + (a * b).mean() + b.view(-1, 2, 3).mean()", id="rows of each other"),
        pytest.param("b = x\nfor _ in range(2):\n    a = b\n    b = a\nloss = loss + b.view(-1, 2, 3).mean()", id="samples of each other"),
        pytest.param("x = x.float()\nloss = loss + x.view(-1, 2, 3).mean()", id="a batch of unknown width"),
        pytest.param("k = 2\nk = (lambda k: z.view(-1, k, 2))(2)\nloss = loss + k.mean()", id="a size that a lambda is given"),
        pytest.param("with open('k') as k:\n    loss = loss + z.view(-1, k, 2).mean()", id="a size from elsewhere"),
    ],
)
def test_what_cannot_be_followed(lines: str) -> None:
    assert refused("DPM303", step=_STEP.format(lines)) == []


def test_a_batch_under_one_name() -> None:
    step = "optimizer.zero_grad()\nz = model(batch[0])\nloss = F.cross_entropy(z, batch[1])\nd = z[1:] - z[:-1]\nloss = loss + d.mean()\nloss.backward()\noptimizer.step()"
    assert refused("DPM303", batches="for batch in loader:", step=step) == ["z[1:] - z[:-1]"]


@pytest.mark.parametrize(
    ("net", "model", "severities"),
    [
        pytest.param("", "model = nn.Sequential(nn.ReLU(), nn.Linear(in_features=8, out_features=2))", ["blocker"], id="the last of a sequence"),
        pytest.param("", "model = nn.Sequential(nn.Linear(8, 4), nn.ReLU())", ["warning"], id="another layer at the end"),
        pytest.param("", "model = nn.Sequential()", ["warning"], id="an empty sequence"),
        pytest.param("", "import torchvision\nmodel = torchvision.models.vgg11()", ["warning"], id="of a library"),
        pytest.param("    def forward(self, x):\n        return x", "model = Net()", ["warning"], id="a model that returns what it is given"),
        pytest.param("    def forward(self, x):\n        x = self.b(x)\n        x = self.a(x)\n        return x", "model = Net()", ["blocker"], id="in a variable"),
        pytest.param("    def forward(self, x):\n        return self.part(x)\n\nclass Again(Net):\n    pass", "model = Net()", ["warning"], id="unseen"),
        pytest.param("    def forward(self, x):\n        self.other = Net()\n        return self.other(x)", "model = Net()", ["warning"], id="itself"),
        pytest.param("    def forward(self, x):\n        if self.training:\n            return self.a(x)\n        return self.b(x)", "model = Net()", ["warning"], id="two widths"),
    ],
)  # fmt: skip
def test_pairs_of_rows_of_unknown_width_are_told(net: str, model: str, severities: list[str]) -> None:
    """A view of pairs may as well be one of two parts in each row."""
    head = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(8, 2)\n        self.b = nn.Linear(8, 4)\n\n"
    step = _STEP.format("p = z.view(-1, 2, 2)\nloss = loss + p.mean()")
    assert [h.severity.value for h in hits("DPM303", net=head + net if net else "", model=model, step=step)] == severities


@pytest.mark.parametrize(
    ("parts", "severity"),
    [
        ({"defs": "cell = nn.LSTM(8, 2)"}, "warning"),
        ({"defs": "cell = nn.LSTM(8, 2, batch_first=False)"}, "warning"),
        ({"defs": "cell = nn.LSTM(8, 2, batch_first=True)"}, "blocker"),
        ({"defs": "def joined(rows):\n    return torch.nn.utils.rnn.pad_sequence(rows)"}, "warning"),
        ({"loader": "loader = DataLoader(train_set, batch_size=16, shuffle=True, collate_fn=lambda rows: rows)"}, "warning"),
    ],
)
def test_where_the_first_axis_may_be_another_one_it_is_told(parts: dict[str, str], severity: str) -> None:
    assert [h.severity.value for h in hits("DPM303", step=_STEP.format("loss = loss + (z[1:] - z[:-1]).mean()"), **parts)] == [severity]
