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


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("d = z.view(n, 1, 2) - torch.ones(1, n, 2)", id="views with a table"),
        pytest.param("d = z.view(n, 1, 2) - x.view(n, 1, 8)[:, :, :2]", id="a new axis of both at one place"),
        pytest.param("s = z.sum(1)\nd = s[:, None] - z", id="a number of each with its own row"),
        pytest.param("d = z - y.t()", id="another one turned"),
        pytest.param("w = model.fc.weight\nd = w - w.t()", id="a weight with itself turned"),
        pytest.param("d = torch.outer(model.fc.bias, model.fc.bias)", id="an outer product of weights"),
        pytest.param("d = torch.svd(model.fc.weight)[1]", id="singular values of a weight"),
        pytest.param("d = z.norm(2) + torch.norm(z, p=1)", id="other norms"),
    ],
)
def test_rows_that_do_not_meet(line: str) -> None:
    assert found("DPM303", step=_STEP.format(f"n = z.size(0)\n{line}\nloss = loss + d.mean()")) == []


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("d = z.view(n, 1, 2) - z.view(1, n, 2)", "z.view(n, 1, 2) - z.view(1, n, 2)", id="views by size"),
        pytest.param("d = z.view(-1, 1, 2) - z.view(1, -1, 2)", "z.view(-1, 1, 2) - z.view(1, -1, 2)", id="views, size left open"),
        pytest.param("d = z.reshape((n, 1, -1)) * z.reshape((1, n, -1))", "z.reshape((n, 1, -1)) * z.reshape((1, n, -1))", id="reshape, a tuple"),
        pytest.param("d = torch.reshape(z, (n, 1, -1)) - z.unsqueeze(0)", "torch.reshape(z, (n, 1, -1)) - z.unsqueeze(0)", id="a function and unsqueeze"),
        pytest.param("a, b = z[:, None], z[None]\nd = a - b", "a - b", id="new axes by name"),
        pytest.param("s = z.sum(1)\nd = s[:, None] - s", "s[:, None] - s", id="one number each, one new axis"),
        pytest.param("s = z.sum(1)\nd = s - s.unsqueeze(1)", "s - s.unsqueeze(1)", id="one number each, the other way"),
        pytest.param("s = z.sum(1, keepdim=True)\nd = s - s.t()", "s - s.t()", id="a column with itself turned"),
        pytest.param("s = z.sum(1, keepdim=True)\nd = s.T * s", "s.T * s", id="a column with itself turned, an attribute"),
        pytest.param("d = torch.outer(z.sum(1), z.sum(1))", "torch.outer(z.sum(1), z.sum(1))", id="outer"),
        pytest.param("d = torch.outer(z.sum(1), vec2=z.sum(1))", "torch.outer(z.sum(1), vec2=z.sum(1))", id="outer, keyword"),
        pytest.param("d = z.sum(1).outer(z.sum(1))", "z.sum(1).outer(z.sum(1))", id="outer, a method"),
    ],
)
def test_rows_that_meet_by_element(line: str, pointed: str) -> None:
    assert refused("DPM303", step=_STEP.format(f"n = z.size(0)\n{line}\nloss = loss + d.mean()")) == [pointed]


@pytest.mark.parametrize(
    "node", ["torch.svd(z)", "torch.linalg.svdvals(z)", "z.svd()", "torch.norm(z, 'nuc')", "z.norm(p='nuc')", "torch.linalg.matrix_norm(z, ord='nuc')"]
)
def test_a_matrix_seen_as_a_whole_is_told(node: str) -> None:
    step = _STEP.format(f"loss = loss + ({node}).mean()")
    assert found("DPM303", step=step) == [node]
    assert refused("DPM303", step=step) == []


def test_rows_that_meet_in_a_function() -> None:
    defs = "def gap(a, b):\n    return (a - b) ** 2\ndef near(a, b):\n    return (a - b).abs()"
    line = "d = gap(z.view(n, 1, 2), z.view(1, n, 2)) + near(z, z.detach()).sum()"
    assert refused("DPM303", defs=defs, step=_STEP.format(f"n = z.size(0)\n{line}\nloss = loss + d.mean()")) == ["a - b"]


def test_a_new_axis_that_comes_and_goes() -> None:
    """By name only where all values have it: the variable is another thing before."""
    line = "s = z.sum(1)\nt = s * 2\nd = t - s\nt = t[:, None]"
    assert found("DPM303", step=_STEP.format(f"{line}\nloss = loss + d.mean()")) == []


def test_a_long_chain_of_one_name_is_gone_through_once() -> None:
    """Twenty values, each made of the variable itself: by every way through them there would be more than all numbers."""
    chain = "\n".join(f"s = F.relu(s * {k} + s.abs())" for k in range(20))
    step = _STEP.format(
        f"s = z.sum(1)\n{chain}\nd = s[:, None] - s\nn = len(z)\n" + "n = n * n\n" * 20 + "d = d + z.repeat(n, 1).sum()\nloss = loss + d.mean()"
    )
    assert "s[:, None] - s" in refused("DPM303", step=step)
