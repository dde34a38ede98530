"""DPM303: samples of a batch that are compared with each other."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, hits, refused

_STEP = "optimizer.zero_grad()\nz = model(x)\nloss = F.cross_entropy(z, y)\n{}\nloss.backward()\noptimizer.step()"
_LOSS = """
class {}(nn.Module):
    def forward(self, z, y):
        return F.cross_entropy({}, y)
"""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("w = z @ torch.ones(2, 3)", id="a product with something fixed"),
        pytest.param("w = torch.mm(z, torch.ones(2, 3))", id="mm with something fixed"),
        pytest.param("w = F.cosine_similarity(z, z)", id="row by row"),
        pytest.param("w = F.cosine_similarity(z[:, None], z)", id="one new axis only"),
        pytest.param("w = torch.einsum('nd,nd->n', z, z)", id="einsum row by row"),
        pytest.param("w = torch.einsum(equation, z, z)", id="einsum that cannot be read"),
        pytest.param("w = z.float()", id="a method without a second operand"),
        pytest.param("w = 'z @ z.T'  # z @ z.T", id="in a string and a comment"),
        pytest.param("w = helper(z)[0] @ helper(z)", id="results of functions"),
        pytest.param("w = z.std(dim=0)", id="a statistic that is only looked at"),
        pytest.param("loss = loss + z.std(dim=1).mean()", id="a statistic of each sample"),
        pytest.param("loss = loss + z.var(-1).mean()", id="a variance of each sample"),
        pytest.param("loss = loss + torch.matmul(z[:, None], z[:, None].transpose(2, 1)).mean()", id="a product for each sample by itself"),
        pytest.param("import numpy as np\nloss = loss + np.std([1, 2])", id="another library's"),
        pytest.param("maps = z.unsqueeze(1)\nloss = loss + (maps / (maps.mean(2, True) + 1e-7)).mean()", id="each sample by a mean of its own that keeps its axis"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM303", defs="equation = 'nd,md->nm'\ndef helper(z):\n    return z", step=_STEP.format(line)) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("z @ z.T", id="operator and .T"),
        pytest.param("z.T @ z", id="transposed on the left"),
        pytest.param("z @ z.mT", id=".mT"),
        pytest.param("torch.mm(z, z.t())", id="mm"),
        pytest.param("torch.matmul(z, z.detach().transpose(0, 1).contiguous())", id="matmul, through contiguous"),
        pytest.param("z.mm(z.t())", id="method"),
        pytest.param("z.matmul(z.t().clone())", id="method, clone"),
        pytest.param("torch.cdist(z, z)", id="cdist"),
        pytest.param("torch.pdist(z)", id="pdist"),
        pytest.param("F.cosine_similarity(z.unsqueeze(0), z.unsqueeze(1), dim=-1)", id="cosine, unsqueeze"),
        pytest.param("F.cosine_similarity(z[None], z[:, None])", id="cosine, None"),
        pytest.param("torch.einsum('id,jd->ij', z, z)", id="einsum"),
    ],
)
def test_products_are_refused(line: str) -> None:
    assert refused("DPM303", step=_STEP.format(f"loss = loss + ({line}).mean()")) == [line]


@pytest.mark.parametrize(
    ("batches", "first"),
    [("for x, y in DataLoader(train_set, batch_size=16):", ""), ("for i in range(4):", "x, y = next(iter(DataLoader(train_set, batch_size=16)))\n")],
)
def test_a_loader_without_a_name(batches: str, first: str) -> None:
    parts = {"loader": "", "batches": batches, "step": first + _STEP.format("loss = loss + (z @ z.t()).mean()")}
    assert refused("DPM303", **parts) == ["z @ z.t()"]


def test_outside_training_it_is_no_loss() -> None:
    assert found("DPM303", end="print(torch.cdist(torch.ones(2, 2), torch.ones(2, 2)))") == []


def test_in_a_function_that_training_calls() -> None:
    defs = "def similar(z):\n    return (z @ z.t()).mean()"
    assert refused("DPM303", defs=defs, step=_STEP.format("loss = loss + similar(z)")) == ["z @ z.t()"]


def test_attention_inside_the_model_is_no_comparison_of_samples() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def forward(self, x):\n        return self.fc((x @ x.transpose(-2, -1)) @ x)"
    assert found("DPM303", net=net) == []


def test_a_function_that_only_models_call_is_part_of_them() -> None:
    defs = "def near(x):\n    return far(x) @ x\ndef far(x):\n    return x @ x.transpose(-2, -1)"
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n    def forward(self, x):\n        return self.fc(near(x))"
    assert found("DPM303", net=net, defs=defs) == []
    assert refused("DPM303", net=net, defs=defs, step=_STEP.format("loss = loss + far(z).mean()")) == ["x @ x.transpose(-2, -1)"]


_MODEL = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.weight = nn.Parameter(torch.randn(2, 2))
        self.register_buffer("table", torch.eye(2))
        self.head = nn.Linear(2, 2)
    def forward(self, x):
        z = self.fc(x)
        {}
        return z + s.mean()
"""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("s = z @ self.weight.t()", id="a parameter"),
        pytest.param("s = F.normalize(z).mm(F.normalize(self.weight).t())", id="a parameter, normalised"),
        pytest.param("w = F.normalize(self.head.weight)\n        s = torch.mm(z, w.t())", id="the weight of a layer, by a name"),
        pytest.param("s = z @ self.table.T", id="a buffer"),
        pytest.param("s = torch.einsum('nc,kc->nk', z, self.weight)", id="einsum with a parameter"),
        pytest.param("s = torch.cdist(z, self.weight)", id="distances to a parameter"),
        pytest.param("t = z.new_zeros((z.size(1), 2))\n        s = torch.einsum('nc,kc->nk', [z, t])", id="a table of the batch's type"),
        pytest.param(
            "n, c = z.size()\n        t = z.new_tensor(list(range(c)))\n        s = torch.einsum('nc,kc->nk', [z, t[:, None]])", id="a table of another size"
        ),
        pytest.param("s = torch.cdist(z[:, :, None], z[:, :, None])", id="distances, of how many dimensions nobody knows"),
        pytest.param("s = sum(z[i] @ z[i].t() for i in range(len(z)))", id="for each sample"),
        pytest.param("s = 0\n        for i in range(len(z)):\n            one = z[i]\n            s = s + one @ one.t()", id="for each sample, by a name"),
        pytest.param("s = z[:, None] @ z.unsqueeze(2)", id="nothing transposed"),
        pytest.param("s = z[:, None].permute(0, 2, 1) @ z[:, None]", id="three dimensions"),
        pytest.param("s = F.cosine_similarity(z.unsqueeze(1), z[:, :, None])", id="cosine within a sample"),
    ],
)
def test_products_of_a_model_within_its_samples(line: str) -> None:
    assert found("DPM303", net=_MODEL.format(line), step=_STEP.format("")) == []


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("s = z @ z.t()", "z @ z.t()", id="t"),
        pytest.param("s = z @ z.T.contiguous()", "z @ z.T.contiguous()", id="T"),
        pytest.param("s = torch.mm(z, z.transpose(1, 0))", "torch.mm(z, z.transpose(1, 0))", id="transpose"),
        pytest.param("s = torch.mm(z, torch.transpose(z, 0, 1))", "torch.mm(z, torch.transpose(z, 0, 1))", id="torch.transpose"),
        pytest.param("s = torch.mm(z, z.permute(1, 0))", "torch.mm(z, z.permute(1, 0))", id="permute"),
        pytest.param("t = z.t()\n        s = self.weight.mean() * z @ t", "self.weight.mean() * z @ t", id="by a name, scaled by a parameter"),
        pytest.param("s = torch.einsum('i d, j d -> i j', z, x[:, :2])", "torch.einsum('i d, j d -> i j', z, x[:, :2])", id="einsum"),
        pytest.param("s = F.cosine_similarity(z.unsqueeze(0), z[:, None], dim=-1)", "F.cosine_similarity(z.unsqueeze(0), z[:, None], dim=-1)", id="cosine"),
        pytest.param("s = F.cosine_similarity(z[None, :], z[:, None], dim=-1)", "F.cosine_similarity(z[None, :], z[:, None], dim=-1)", id="cosine, None"),
        pytest.param("for layer in [self.head]:\n            z = layer(z)\n        s = z @ z.t()", "z @ z.t()", id="after a loop over layers"),
    ],
)
def test_products_of_a_model_with_other_samples(line: str, pointed: str) -> None:
    assert refused("DPM303", net=_MODEL.format(line), step=_STEP.format("")) == [pointed]


def test_a_loss_with_parameters_of_its_own() -> None:
    defs = "class Pairs(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = nn.Parameter(torch.ones(()))\n"
    defs += "    def forward(self, z, y):\n        return (self.scale * z @ z.t()).mean()"
    parts = {"defs": defs, "before": "criterion = Pairs()", "step": _STEP.format("loss = loss + criterion(z, y)")}
    assert refused("DPM303", **parts) == ["self.scale * z @ z.t()"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("F.cross_entropy(z, torch.arange(2))", id="a fixed number"),
        pytest.param("F.cross_entropy(z, torch.arange(ways))", id="a setting"),
        pytest.param("F.cross_entropy(z, torch.arange(z.size(1)))", id="another size"),
        pytest.param("F.cross_entropy(z, y)", id="labels of the data"),
        pytest.param("F.cross_entropy(z)", id="nothing given"),
        pytest.param("F.cross_entropy(z, helper(y))", id="labels of a function"),
        pytest.param("F.cross_entropy(z, torch.arange())", id="an empty range"),
        pytest.param("F.mse_loss(z, torch.arange(len(z)))", id="no classes"),
        pytest.param("F.cross_entropy(z, y[0])", id="an element"),
    ],
)
def test_labels_that_number_no_samples(line: str) -> None:
    assert found("DPM303", before="ways = 2", defs="def helper(y):\n    return y", step=_STEP.format(f"loss = loss + {line}")) == []


@pytest.mark.parametrize(
    ("before", "lines", "pointed"),
    [
        pytest.param("", "{}", "F.cross_entropy(z, torch.arange(len(z)))", id="len"),
        pytest.param("", "{}", "F.cross_entropy(z, target=torch.arange(0, z.size(0), device=z.device))", id="keyword, size"),
        pytest.param("", "n, c = z.shape\nt = torch.arange(n).to(z.device)\n{}", "F.cross_entropy(z, t)", id="unpacked, by a name"),
        pytest.param("", "n, c = z.size()\n{}", "F.cross_entropy(z, torch.arange(n))", id="size, unpacked"),
        pytest.param("", "{}", "F.cross_entropy(z, torch.arange(z.size()[0]))", id="size, an element"),
        pytest.param("batch_size = 8", "{}", "F.cross_entropy(z, torch.arange(end=batch_size))", id="a setting named so"),
        pytest.param("criterion = nn.CrossEntropyLoss()", "{}", "criterion(z, torch.arange(len(z)).long())", id="an object"),
    ],
)
def test_labels_that_number_the_samples(before: str, lines: str, pointed: str) -> None:
    assert refused("DPM303", before=before, step=_STEP.format(lines.format(f"loss = loss + {pointed}"))) == [pointed]


def test_the_product_is_named_rather_than_its_labels() -> None:
    line = "loss = loss + F.cross_entropy(z @ z.t(), torch.arange(len(z)))"
    assert refused("DPM303", step=_STEP.format(line)) == ["z @ z.t()"]


def test_a_loss_module_of_this_file_is_no_model() -> None:
    parts = {"defs": _LOSS.format("Pairs", "z @ z.T"), "before": "criterion = Pairs()", "step": _STEP.format("loss = loss + criterion(z, y)")}
    assert refused("DPM303", **parts) == ["z @ z.T"]


def test_a_loss_module_that_training_does_not_call() -> None:
    assert found("DPM303", defs=_LOSS.format("Pairs", "z @ z.T"), before="criterion = Pairs()", end="criterion(torch.ones(2, 2), torch.ones(2))") == []


@pytest.mark.parametrize(
    ("parts", "call"),
    [
        pytest.param({"imports": "from lib import NTXentLoss", "before": "c = NTXentLoss()"}, "c(z, y)", id="class of a library"),
        pytest.param({"imports": "import lib", "before": "c = lib.SupConLoss(temperature=0.1)"}, "c(z, y)", id="attribute of a library"),
        pytest.param({"imports": "from lib import info_nce as c"}, "c(z, y)", id="function under another name"),
        pytest.param({"imports": "import lib"}, "lib.clip_loss(z, y)", id="function of a library"),
    ],
)
def test_known_names_are_refused(parts: dict[str, str], call: str) -> None:
    assert refused("DPM303", step=_STEP.format(f"loss = loss + {call}"), **parts) == [call]


def test_what_a_loss_of_this_file_does_counts_and_not_its_name() -> None:
    step = _STEP.format("loss = loss + c(z, y)")
    assert found("DPM303", defs=_LOSS.format("ContrastiveLoss", "z"), before="c = ContrastiveLoss()", step=step) == []
    assert refused("DPM303", defs=_LOSS.format("ContrastiveLoss", "z @ z.T"), before="c = ContrastiveLoss()", step=step) == ["z @ z.T"]


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("loss = loss + F.relu(1 - z.std(dim=0)).mean()", "z.std(dim=0)", id="method, keyword"),
        pytest.param("s = torch.var(z, 0)\nloss = loss + s.sum()", "torch.var(z, 0)", id="function, position, by a name"),
        pytest.param("loss += z.std()", "z.std()", id="over everything"),
        pytest.param("s, m = torch.std_mean(z, 0)\nloss = loss + s.sum()", "torch.std_mean(z, 0)", id="with its mean"),
        pytest.param("loss += z.std(None)", "z.std(None)", id="over everything, said so"),
        pytest.param("loss += z[None].var(dim=(0, 2)).mean()", "z[None].var(dim=(0, 2))", id="the first of several axes"),
        pytest.param("loss = loss + torch.cov(z).sum()", "torch.cov(z)", id="cov"),
        pytest.param("loss = loss + spread(z)", "z.std(0)", id="a function"),
        pytest.param("loss = loss + model.spread(z)", "z.std(0)", id="a method of the model"),
        pytest.param("loss = loss + Spread()(z)", "z.var(0)", id="a loss of this file"),
    ],
)
def test_statistics_of_the_batch(line: str, pointed: str) -> None:
    defs = "def spread(z):\n    return z.std(0).mean()\nclass Spread(nn.Module):\n    def forward(self, z):\n        v = z.var(0)\n        return v.mean()"
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n    def forward(self, x):\n        return self.fc(x)\n"
    method = "    def spread(self, z):\n        return z.std(0).mean()\n"
    wanted = net + method if "model.spread" in line else net
    assert refused("DPM303", net=wanted, defs=defs if "model.spread" not in line else "", step=_STEP.format(line)) == [pointed]


def test_a_layer_that_normalises_by_the_batch_is_no_loss() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n    def forward(self, x):\n        return self.fc(x / x.std(0))\n"
    assert found("DPM303", net=net, step=_STEP.format("")) == []


def test_a_matrix_that_the_model_is_handed_is_no_batch() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n"
    net += "    def forward(self, x, links):\n        return self.fc(x) @ links.t()"
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x, {}), y)\nloss.backward()\noptimizer.step()"
    assert found("DPM303", net=net, before="links = torch.eye(2)", step=step.format("links")) == []
    assert refused("DPM303", net=net, step=step.format("links=x[:, :2]")) == ["self.fc(x) @ links.t()"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        pytest.param("loss = F.cross_entropy(z[:8], y[:8])", ["z[:8]", "y[:8]"], id="the first"),
        pytest.param("loss = F.cross_entropy(z[::2], y[::2])", ["z[::2]", "y[::2]"], id="the even ones"),
    ],
)
def test_samples_by_their_place_are_told(line: str, parts: list[str]) -> None:
    found_here = hits("DPM303", step=_STEP.format(line))
    assert [h.severity.value for h in found_here] == ["warning"] * len(parts)
    assert found("DPM303", step=_STEP.format(line)) == parts


def test_neighbours_that_meet_are_no_single_parts() -> None:
    step = _STEP.format("loss = (z[::2] - z[1::2]).mean()")
    assert refused("DPM303", step=step) == found("DPM303", step=step) == ["z[::2] - z[1::2]"]


_TABLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(x + positions(x))


def positions(patches):
    {}
    y, z = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    omega = 1.0 / (10000 ** (torch.arange(w) / w))
    return (y.flatten()[:, None] * omega[None, :]).sin()[:1]
"""


@pytest.mark.parametrize(
    ("sizes", "refusals"),
    [
        pytest.param("_, h, w = patches.shape", 0, id="a shape"),
        pytest.param("n, h, w, device, dtype = *patches.shape, patches.device, patches.dtype", 0, id="a shape and more"),
        pytest.param("[n, h, w, k] = [*patches.size(), 3]", 0, id="a size"),
        pytest.param("h, w = patches.shape[1], patches.shape[2]", 0, id="single sizes"),
        pytest.param("n, h, w = list(patches.size())", 0, id="a list of sizes"),
        pytest.param("h, w = tuple(patches.shape)[1], list(patches.size())[2]", 0, id="sizes of a tuple"),
        pytest.param("w, h, _ = list(patches.size())", 1, id="the number of samples of a list"),
        pytest.param("h = w = list(patches.size())[0]", 1, id="the number of samples by its place"),
        pytest.param("n, h, w = list(patches)", 1, id="a list of samples"),
        pytest.param("w, h, _ = *patches.shape, 3", 1, id="the number of samples"),
        pytest.param("n, h, w = *patches.shape, patches", 1, id="samples beside it"),
        pytest.param("n, h, w = patches, patches, patches", 1, id="samples"),
    ],
)
def test_a_table_of_positions_is_no_batch(sizes: str, refusals: int) -> None:
    """A table that is made of sizes, as sine and cosine positions are, compares no samples."""
    assert bool(refused("DPM303", net=_TABLE.format(sizes))) == bool(refusals)


_ERRORS = """
import numpy as np
def errors(z, y):
    each = (z[:, 0] - y).abs(){}
    return {}
def both(z, y):
    return errors(z, y)
def again(z, y):
    return again(z, y)
"""


@pytest.mark.parametrize(
    ("cut", "number"),
    [(".detach().cpu().numpy()", "np.median(each)"), (".detach()", "each.median()"), ("", "each.median().item()"), ("", "np.median(a=each.tolist())")],
)
@pytest.mark.parametrize(
    ("use", "refusals"),
    [
        pytest.param("print(errors(z, y))", 0, id="shown"),
        pytest.param("table[0] = errors(z=z, y=y)", 0, id="kept in a table"),
        pytest.param("shown = both(z, y)\nprint(shown)", 0, id="through a function"),
        pytest.param("weight = errors(z, y)\nloss = loss * weight", 1, id="a weight of the loss"),
        pytest.param("weight = both(z, y)\nloss = loss * weight", 1, id="a weight, through a function"),
        pytest.param("(loss * errors(z, y)).backward()", 1, id="in the backward"),
    ],
)
def test_a_median_that_is_shown(cut: str, number: str, use: str, refusals: int) -> None:
    """Without a gradient it is a metric, as long as it weighs no loss."""
    step = _STEP.format(use).replace("loss.backward()\n", "") if "backward" in use else _STEP.format(use)
    found = refused("DPM303", defs=_ERRORS.format(cut, number), before="table = [0]", step=step)
    assert len(found) == (refusals if "np.median(a" not in number else 0)


def test_a_median_with_a_gradient() -> None:
    assert refused("DPM303", defs=_ERRORS.format("", "each.median()"), step=_STEP.format("shown = errors(z, y)")) == ["each.median()"]


def test_a_median_in_the_backward() -> None:
    step = _STEP.format("(loss + z.median()).backward()").replace("loss.backward()\n", "")
    assert refused("DPM303", step=step) == ["z.median()"]


_AREAS = """
def areas(a, b):
    of_a = ((a[:, 1] - a[:, 0]) * 2).unsqueeze(1)
    of_b = ((b[:, 1] - b[:, 0]) * 2).unsqueeze(0)
    return (of_a + of_b).sum()
"""
_OVERLAP = """
def overlap(a, b):
    m, n = a.size(0), b.size(0)
    return torch.max(a.unsqueeze(1).expand(m, n, 2), b.unsqueeze(0).expand(m, n, 2)).sum()
def matched(boxes, priors):
    return overlap(boxes.float(), priors)
"""


@pytest.mark.parametrize(
    ("line", "refusals"),
    [
        pytest.param("for k in range(len(z)):\n    boxes = z[k, None]\n    loss = loss + matched(boxes, z)", 0, id="of each sample, by its number"),
        pytest.param("for one in z:\n    loss = loss + matched(one[None], z)", 0, id="of each sample"),
        pytest.param("loss = loss + matched(z, z)", 2, id="of the batch"),
        pytest.param("for k in range(len(z)):\n    loss = loss + z[k].unsqueeze(0).expand(z.size(0), -1).mean()", 1, id="one with all, right here"),
        pytest.param("k = 3\nloss = loss + matched(z[k:], z)", 2, id="of a part of the batch"),
    ],
)
def test_what_one_sample_is_compared_with(line: str, refusals: int) -> None:
    """Boxes of one picture meet all priors, which is nothing between samples."""
    assert len(refused("DPM303", defs=_OVERLAP, step=_STEP.format(line))) == refusals


@pytest.mark.parametrize(
    ("line", "refusals"),
    [
        pytest.param("for k in range(len(z)):\n    boxes = z[k, None]\n    loss = loss + areas(boxes, z)", 0, id="of each sample"),
        pytest.param("loss = loss + areas(z, z)", 1, id="of the batch"),
    ],
)
def test_numbers_of_one_sample_that_meet_others(line: str, refusals: int) -> None:
    assert len(refused("DPM303", defs=_AREAS, step=_STEP.format(line))) == refusals


@pytest.mark.parametrize("scaled", ["(x - x.min()) / x.max()", "x / x.amax()", "x - x.mean()"])
def test_what_the_model_is_given_is_of_the_rank_s_part(scaled: str) -> None:
    assert refused("DPM303", step=f"x = {scaled}\n{STEP}")
    assert refused("DPM303", step=f"x = x / x.amax(1, keepdim=True)\n{STEP}") == []
