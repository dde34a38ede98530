"""Where the samples of a batch meet each other: in order, in proportion, in products and pairs, and where each stays by itself."""

from __future__ import annotations

import pytest

from tests.rules.program import found, refused

_STEP = "optimizer.zero_grad()\nz = model(x)\nloss = F.cross_entropy(z, y)\n{}\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = loss + z.softmax(1).mean()", id="softmax of each sample"),
        pytest.param("loss = loss + F.log_softmax(z, dim=-1).mean()", id="log_softmax, keyword"),
        pytest.param("loss = loss + z.topk(1)[0].mean()", id="topk of each sample"),
        pytest.param("loss = loss + z.sort(descending=True)[0].mean()", id="sorted within each sample"),
        pytest.param("best = z.topk(1, 0)", id="only looked at"),
        pytest.param("loss = loss + F.normalize(weights, dim=0).sum()", id="a parameter"),
        pytest.param("loss = loss + sorted(helper(z))[0]", id="Python's sorted"),
        pytest.param("loss = loss + z.median(dim=False)[0].mean()", id="no axis"),
        pytest.param("loss = loss + -(z.view(-1, 2).topk(1)[0]).mean()", id="made of two axes"),
        pytest.param("loss = loss + (z.view(-1, 1) * y.view(-1, 1)).mean()", id="row by row"),
        pytest.param("loss = loss + (z[:, None] - z.unsqueeze(1)).mean()", id="axes of their own in the same place"),
        pytest.param("loss = loss + (z[:, 0] - z[:, 1]).mean()", id="columns"),
        pytest.param("loss = loss + torch.addmm(z, z, torch.ones(2, 2)).mean()", id="addmm with a table"),
        pytest.param("loss = loss + (z.unsqueeze(1).expand(z.size(0), 3, 2) - 1).mean()", id="each sample along its own row"),
        pytest.param("loss = loss + (weights.view(1, -1).repeat(len(z), 1) - 1).mean()", id="a parameter for each sample"),
        pytest.param("loss = loss + z.repeat(2, 1).mean()", id="twice"),
        pytest.param("n, d = z.shape\nloss = loss + z.repeat(1, d).mean()", id="as many times as there are features"),
        pytest.param("i, j = torch.combinations(torch.arange(z.size(1))).t()\nloss = loss + (z[:, i] - z[:, j]).mean()", id="pairs of features"),
        pytest.param("a, b = (z, y)[:2]\nloss = loss + a.mean()", id="outputs that are unpacked"),
        pytest.param("loss = loss + z[:, :2].mean() + z[:1].mean()", id="features, and one sample"),
        pytest.param("print(z[:8])", id="shown"),
        pytest.param("y = y.to('cpu')\nloss = loss + torch.mm(y, torch.ones(2, 2)).mean()", id="a name that is given what it was"),
        pytest.param("loss = loss + F.linear(z, torch.ones(3, 2)).mean()", id="linear with a table"),
        pytest.param("loss = loss + (z ** 2).mean(1, keepdim=True).topk(1)[0].mean()", id="one number each, in an axis of its own"),
    ],
)
def test_order_and_proportions_within_a_sample(line: str) -> None:
    defs = "weights = torch.ones(3, requires_grad=True)\ndef helper(z):\n    return z"
    assert found("DPM303", defs=defs, step=_STEP.format(line)) == []


@pytest.mark.parametrize(
    ("lines", "pointed"),
    [
        pytest.param("loss = loss + z.softmax(0).mean()", "z.softmax(0)", id="softmax over the batch"),
        pytest.param("loss = loss + F.normalize(z, 2, 0).mean()", "F.normalize(z, 2, 0)", id="normalised over the batch, position"),
        pytest.param("loss = loss + torch.logcumsumexp(z, dim=0).mean()", "torch.logcumsumexp(z, dim=0)", id="summed up in the order of the batch"),
        pytest.param("each = F.cross_entropy(z, y, reduction='none')\nloss = each.topk(2)[0].mean()", "each.topk(2)", id="hard examples"),
        pytest.param(
            "each = F.cross_entropy(z, y, reduction='none')\nloss = (0.5 * each).topk(2)[0].mean()", "(0.5 * each).topk(2)", id="hard examples, scaled"
        ),
        pytest.param(
            "each = F.cross_entropy(z, y, reduction='none')\nloss = (each * 2).topk(2)[0].mean()",
            "(each * 2).topk(2)",
            id="hard examples, scaled, the other way",
        ),
        pytest.param(
            "each = F.mse_loss(z, z).view(-1)\nworst, _ = torch.sort(each, descending=True)\nloss = loss + worst[:2].mean()",
            "torch.sort(each, descending=True)",
            id="flat",
        ),
        pytest.param(
            "import numpy as np\neach = c(z, y)\nchosen = np.argsort(-each.data.cpu())\nloss = each[chosen[:2]].mean()",
            "np.argsort(-each.data.cpu())",
            id="numpy, an object",
        ),
        pytest.param(
            "each = F.cross_entropy(z, y, reduction='none')\nloss = each.topk(2, dim=-1)[0].mean()",
            "each.topk(2, dim=-1)",
            id="the last axis, which is the only one",
        ),
        pytest.param("first = 0\nloss = loss + z.softmax(first).mean()", "z.softmax(first)", id="an axis by a name"),
        pytest.param("loss = loss * z.median()", "z.median()", id="over everything"),
        pytest.param("loss = loss + (z[:, None] - z[None]).mean()", "z[:, None] - z[None]", id="differences, None"),
        pytest.param(
            "loss = loss + (z.unsqueeze(0) * torch.unsqueeze(z, dim=1).abs()).mean()",
            "z.unsqueeze(0) * torch.unsqueeze(z, dim=1).abs()",
            id="products, unsqueeze",
        ),
        pytest.param("loss = loss + (z[:, 0].view(-1, 1) - z[:, 0].view(1, -1)).mean()", "z[:, 0].view(-1, 1) - z[:, 0].view(1, -1)", id="differences, view"),
        pytest.param("a = z.repeat(len(z), 1)\nloss = loss + (a - 1).mean()", "z.repeat(len(z), 1)", id="repeated by their number"),
        pytest.param(
            "n = z.size(0)\na = z.unsqueeze(1).repeat((1, 2 * n, 1))\nloss = loss + a.mean()",
            "z.unsqueeze(1).repeat((1, 2 * n, 1))",
            id="a name, a tuple, a multiple",
        ),
        pytest.param(
            "loss = loss + z.repeat_interleave(repeats=z.shape[0], dim=0).mean()",
            "z.repeat_interleave(repeats=z.shape[0], dim=0)",
            id="repeat_interleave, keyword",
        ),
        pytest.param("loss = loss + torch.tile(z, (z.shape[0], 1)).mean()", "torch.tile(z, (z.shape[0], 1))", id="tile, a function"),
        pytest.param("n = z.shape[0]\nloss = loss + z.unsqueeze(1).expand(n, n, 2).mean()", "z.unsqueeze(1).expand(n, n, 2)", id="expanded in two axes"),
        pytest.param("loss = loss + z[None].expand(z.size(0), -1, -1).mean()", "z[None].expand(z.size(0), -1, -1)", id="expanded before the samples"),
        pytest.param(
            "i, j = torch.combinations(torch.arange(len(z))).t()\nloss = loss + (z[i] - z[j]).mean()",
            "torch.combinations(torch.arange(len(z)))",
            id="pairs of numbers",
        ),
        pytest.param(
            "import itertools\nfor i, j in itertools.combinations(range(z.size(0)), 2):\n    loss = loss + (z[i] - z[j]).mean()",
            "itertools.combinations(range(z.size(0)), 2)",
            id="pairs in Python",
        ),
        pytest.param("loss = loss + F.linear(z, z.detach()).mean()", "F.linear(z, z.detach())", id="linear"),
        pytest.param("loss = loss + F.linear(input=z, weight=z).mean()", "F.linear(input=z, weight=z)", id="linear, keywords"),
        pytest.param("loss = loss + torch.inner(z, other=z).mean()", "torch.inner(z, other=z)", id="inner"),
        pytest.param("loss = loss + z.inner(z).mean()", "z.inner(z)", id="inner, method"),
        pytest.param("loss = loss + (z ** 2).mean(1).topk(2)[0].mean()", "(z ** 2).mean(1).topk(2)", id="the worst of what each row comes to"),
        pytest.param("each = (z ** 2).sum(dim=-1)\nloss = loss + torch.sort(each)[0][:2].mean()", "torch.sort(each)", id="sums of rows, a name"),
        pytest.param("d = torch.zeros(len(z), len(z))\nd.addmm_(z, z.t(), beta=1, alpha=-2)", "d.addmm_(z, z.t(), beta=1, alpha=-2)", id="addmm_"),
        pytest.param("d = torch.addmm(1, torch.zeros(()), -2, z, z.t())", "torch.addmm(1, torch.zeros(()), -2, z, z.t())", id="addmm, with numbers"),
    ],
)
def test_order_and_proportions_of_the_batch(lines: str, pointed: str) -> None:
    assert refused("DPM303", before="c = nn.CrossEntropyLoss(reduction='none')", step=_STEP.format(lines)) == [pointed]
