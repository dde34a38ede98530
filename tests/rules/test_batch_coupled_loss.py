"""DPM303: samples of a batch that are compared with each other."""

from __future__ import annotations

import pytest

from tests.rules.program import found, refused

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
    defs = "def near(x):\n    return far(x) @ x\ndef far(x):\n    return x @ x.t()"
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n    def forward(self, x):\n        return self.fc(near(x))"
    assert found("DPM303", net=net, defs=defs) == []
    assert refused("DPM303", net=net, defs=defs, step=_STEP.format("loss = loss + far(z).mean()")) == ["x @ x.t()"]


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
        pytest.param({"defs": _LOSS.format("ContrastiveLoss", "z"), "before": "c = ContrastiveLoss()"}, "c(z, y)", id="class of this file"),
    ],
)
def test_known_names_are_refused(parts: dict[str, str], call: str) -> None:
    assert refused("DPM303", step=_STEP.format(f"loss = loss + {call}"), **parts) == [call]


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("loss = loss + F.relu(1 - z.std(dim=0)).mean()", "z.std(dim=0)", id="method, keyword"),
        pytest.param("s = torch.var(z, 0)\nloss = loss + s.sum()", "torch.var(z, 0)", id="function, position, by a name"),
        pytest.param("loss += z.std()", "z.std()", id="over everything"),
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
