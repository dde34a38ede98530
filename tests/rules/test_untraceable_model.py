"""DPM904: models that cannot be followed."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, hits, refused, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="one variable"),
        pytest.param({"optimizer": "params = list(model.parameters())\noptimizer = torch.optim.SGD(params, lr=0.1)"}, id="parameters with a name"),
        pytest.param({"optimizer": "optimizer = torch.optim.SGD([{'params': model.fc.parameters()}], lr=0.1)"}, id="groups of a part"),
        pytest.param(
            {"optimizer": "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\noptimizer.add_param_group({'params': []})"}, id="a group of nothing by hand"
        ),
        pytest.param({"setup": "t = torch.zeros(1, requires_grad=True)\nu = nn.Parameter(t)"}, id="a parameter that no optimizer has"),
        pytest.param(
            {"setup": "t = torch.zeros(1, requires_grad=False)", "optimizer": "optimizer = torch.optim.SGD(list(model.parameters()) + [t], lr=0.1)"},
            id="a tensor that is not trained",
        ),
        pytest.param({"end": "print('optimizer = build(cfg)')  # optimizer = build(cfg)"}, id="in a string and a comment"),
        pytest.param(
            {"batches": "for i in range(3):", "step": "loss = torch.ones(1)\nloss.backward()", "optimizer": ""}, id="no training loop: a rule of its own"
        ),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM904", **parts) == []


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"imports": "from lib import build", "optimizer": "optimizer = build(len(train_set))"}, "loss.backward()", id="an optimizer of another file"),
        pytest.param({"imports": "from lib import params", "optimizer": "optimizer = torch.optim.SGD(params(), lr=0.1)"}, "torch.optim.SGD(params(), lr=0.1)", id="parameters of another file"),
        pytest.param({"step": "optimizer.zero_grad()\nloss = torch.ones(1)\nloss.backward()\noptimizer.step()"}, "torch.optim.SGD(model.parameters(), lr=0.1)", id="never called"),
        pytest.param(
            {"optimizer": "t = nn.Parameter(torch.ones(1))\noptimizer = torch.optim.SGD([t, *model.parameters()], lr=0.1)"}, "torch.optim.SGD([t, *model.parameters()], lr=0.1)", id="a loose parameter",
        ),
        pytest.param(
            {"optimizer": "t = [torch.zeros(1, requires_grad=True)]\noptimizer = torch.optim.SGD(params=list(model.parameters()) + t, lr=0.1)"},
            "torch.optim.SGD(params=list(model.parameters()) + t, lr=0.1)", id="a loose tensor in a list",
        ),
        pytest.param({"before": "optimizer.add_param_group({'params': nn.Parameter(torch.ones(1))})"}, "optimizer.add_param_group({'params': nn.Parameter(torch.ones(1))})", id="a group added"),
        pytest.param({"before": "if os.environ:\n    print(nn.DataParallel(model))"}, "nn.DataParallel(model)", id="a wrap without a name"),
        pytest.param({"before": "from lib import other", "optimizer": "from lib import other\noptimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)"}, "other", id="a second model from elsewhere"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(parts: dict[str, str], pointed: str, module_level: bool) -> None:
    assert refused("DPM904", module_level=module_level, **parts) == [pointed]


def test_a_model_of_several_functions() -> None:
    """A variable that is given its model in two functions is wrapped in both; one that is made of the other should have a name of its own."""
    defs = """
    class T:
        def small(self):
            self.net = Net()

        def large(self):
            self.net = Net()

        def turn(self, loader):
            opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
            for x, y in loader:
                opt.zero_grad()
                loss = F.cross_entropy(self.net(x), y)
                loss.backward()
                opt.step()
    """
    parts = {"defs": defs, "model": "", "optimizer": "", "before": "t = T()", "batches": "if True:", "step": "t.turn(loader)"}
    assert hits("DPM904", **parts) == []
    assert whole(**parts).count("self.net = ddp.wrap(Net())") == 2
    parts["defs"] = defs.replace("large(self):\n            self.net = Net()", "large(self):\n            self.net = pruned(self.net)")
    assert [f.message for f in hits("DPM904", **parts)] == ["self.net is given another model, made of itself, which should have a name of its own"]


def test_two_optimizers_of_which_one_is_not_followed() -> None:
    optimizer = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nother = torch.optim.SGD(build(), lr=0.1)"
    assert refused("DPM904", imports="from lib import build", optimizer=optimizer, step=STEP + "other.step()") == ["torch.optim.SGD(build(), lr=0.1)"]


def test_a_name_that_is_used_again_is_named() -> None:
    """The model that is loaded at the end is another one."""
    (hit,) = hits("DPM904", end="model = torch.load('best.pt')")
    assert "which should have a name of its own" in hit.message


def test_a_part_that_a_module_with_its_own_optimizer_calls() -> None:
    """Not the module is trained, but what it holds, and its calls of that are inside a model's own code."""
    defs = """
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            net = Net()
            self.add_module("net", net)
            self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def process(self, x, y):
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.net(x), y)
            loss.backward()
            self.optimizer.step()
    """
    (one,) = hits("DPM904", defs=defs, model="both = Both()", optimizer="", step="both.process(x, y)")
    assert one.message.startswith("self.net, which this optimizer trains, is called by a module that holds it (line ")
    assert "no nn.Module" in one.advice
