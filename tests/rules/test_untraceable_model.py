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


@pytest.mark.parametrize(
    ("end", "bare"),
    [
        ("model = torch.load('best.pt')\nmodel.state_dict()", True),
        ("model = torch.load('best.pt')['model']\nmodel.state_dict()", True),
        ("model = Net()\nmodel = model.to('cpu')\nmodel.state_dict()", True),
        ("model = model.to('cpu')\nmodel.state_dict()", False),
        ("if os.environ:\n    model.load_state_dict({})\n    model = model.to('cpu')\nmodel.state_dict()", False),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_a_name_that_is_used_again_after_training(end: str, bare: bool, module_level: bool) -> None:
    """What is given to the variable then is another model, which nothing wraps; what is moved is the same."""
    parts: dict[str, str | bool] = {"end": end, "module_level": module_level}
    assert hits("DPM904", **parts) == []
    text = whole(**parts)
    assert text.count("ddp.wrap(") == 1
    assert ("model.state_dict()" in text, "model.module.state_dict()" in text) == (bare, not bare)


def test_another_model_in_a_later_turn_has_the_name_of_the_first() -> None:
    assert refused("DPM904", epoch_end="model = torch.load('best.pt')")


@pytest.mark.parametrize(
    ("scale", "owner", "loose"),
    [
        ("nn.Parameter(torch.ones(1))", "model", False),
        ("torch.ones(1, requires_grad=True)", "model", True),
        ("nn.Parameter(torch.ones(1))", "other", True),
    ],
)
def test_a_parameter_that_is_an_attribute(scale: str, owner: str, loose: bool) -> None:
    """Of the model that is trained, or of another one, or no parameter at all."""
    defs = f"""
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = {scale}
            self.fc = nn.Linear(4, 2)

        def forward(self, x):
            return self.fc(x) * self.scale
    """
    parts = {"defs": defs, "model": "model = Scaled()\nother = Scaled()", "optimizer": f"optimizer = torch.optim.SGD([{owner}.scale, *model.fc.parameters()], lr=0.1)"}
    assert any("belongs to no model" in f.message for f in hits("DPM904", **parts)) is loose


_HOLDER = """
class Trainer(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return F.cross_entropy(self.model(x + torch.randn_like(x)), y)
"""
_HOLDS = {"defs": _HOLDER, "before": "trainer = Trainer(model)", "step": STEP.replace("F.cross_entropy(model(x), y)", "trainer(x, y)")}


def test_a_module_that_is_called_in_the_place_of_what_it_holds() -> None:
    new = whole(**_HOLDS, end="torch.save(model.state_dict(), 'model.pt')")
    assert "    trainer = ddp.wrap(Trainer(model))" in new and "    model = Net()\n" in new
    assert "ddp.save(model.state_dict(), 'model.pt')" in new


def test_such_a_module_in_a_program_with_other_functions() -> None:
    """What its loss is made of is asked before it is known which loops evaluate."""
    defs = _HOLDER + "def show(model, val_loader):\n    for x, y in val_loader:\n        out = x.mean()\n    return out"
    assert "    trainer = ddp.wrap(Trainer(model))" in whole(**{**_HOLDS, "defs": defs}, end="show(model, DataLoader(val_set))")
    assert "    trainer = ddp.wrap(Trainer(model))" in whole(**{**_HOLDS, "defs": defs})


def test_what_it_holds_is_called_by_itself_as_well() -> None:
    """Then it is the one that is trained: a wrapper of the other would not be gone through everywhere."""
    assert refused("DPM904", **_HOLDS, epoch_end="print(model(x).shape)") == ["torch.optim.SGD(model.parameters(), lr=0.1)"]


def test_a_part_that_a_module_with_its_own_optimizer_calls() -> None:
    """Not the module is trained, but what it holds, and its calls of that are inside a model's own code."""
    forward = "\n    def forward(self, x):\n        return self.net(x)\n"
    (one,) = hits("DPM904", defs=_BOTH + forward, model="both = Both()", optimizer="", step="both.process(x, y)")
    assert one.message.startswith("self.net, which an optimizer trains, is called by a module that holds it: where to wrap is not known")
    assert "no nn.Module" in one.advice


_BOTH = """\
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


def test_a_module_that_only_holds_models_and_trains_them() -> None:
    """It has no ``forward``: nothing calls it as a model."""
    text = whole(defs=_BOTH, model="both = Both()", optimizer="", step="both.process(x, y)")
    assert '        self.add_module("net", ddp.wrap(net))' in text.splitlines()


_OWN_LOOP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(x)

    def fit(self, loader, optimizer):
        {}
        for x, y in loader:
            loss = F.cross_entropy({}(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(("start", "called"), [("model = self.train().to('cpu')", "model"), ("self.train()", "self"), ("model = self", "model.forward")])
@pytest.mark.parametrize("call", ["model.fit(loader, optimizer)", "model.fit(optimizer=optimizer, loader=loader)"])
def test_a_model_that_trains_itself(start: str, called: str, call: str) -> None:
    """Its method makes a wrapper and calls that; it is called in each epoch, and gets the same one."""
    new = whole(net=_OWN_LOOP.format(start, called), batches="if True:", step=call)
    name = "model" if called == "self" else "wrapped"
    assert f"        {start}\n        {name} = ddp.wrap(self, again=True)\n" in new
    assert f"loss = F.cross_entropy({name}(x), y)" in new


def test_a_model_that_trains_itself_once() -> None:
    new = whole(net=_OWN_LOOP.format("self.train()", "self"), epochs="if True:", batches="if True:", step="model.fit(loader, optimizer)")
    assert "        model = ddp.wrap(self)\n" in new


def test_a_model_that_trains_itself_and_is_trained() -> None:
    loop = _OWN_LOOP.format("self.train()", "self")
    (one,) = (f for f in hits("DPM904", net=loop, before="model.fit(loader, optimizer)") if "twice" in f.message)
    assert one.message.startswith("model is trained here, and trains itself as well (line ")


_ATTACK = """
from torch import optim
def attack(model, x, y, turns=2):
    delta = 0.001 * torch.randn({shape})
    delta = delta.detach().requires_grad_()
    inner = {made}
    for _ in range(turns):
        inner.zero_grad()
        loss = F.cross_entropy(model(x + delta), y{sums})
        loss.backward()
        inner.step()
    return (x + delta).detach()
"""
_SGD = "optim.SGD([delta], lr=0.1)"
_SUM = ", reduction='sum'"
_ATTACKED = "x = attack(model, x, y)\n" + STEP


@pytest.mark.parametrize("made", [_SGD, "optim.Adam(lr=0.1, params=(delta,))"])
@pytest.mark.parametrize("shape", ["x.shape", "*x.shape", "x.size(0), 8"])
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_a_perturbation_of_the_batch(made: str, shape: str, module_level: bool) -> None:
    """It belongs to no model: each rank has those of its own samples, and their gradient is left as it is."""
    text = whole(defs=_ATTACK.format(made=made, shape=shape, sums=_SUM), step=_ATTACKED, module_level=module_level)
    assert "sum_loss" not in text and "loss.backward()\n        inner.step()" in text


def test_a_perturbation_of_a_mean() -> None:
    """A mean over a part of the batch gives each sample a gradient W times as large."""
    (one,) = hits("DPM904", defs=_ATTACK.format(made=_SGD, shape="x.shape", sums=""), step=_ATTACKED)
    assert one.message == "delta is made for each batch, and its loss is no sum: a part of the batch gives it another gradient"


@pytest.mark.parametrize(
    "defs",
    [
        pytest.param(_ATTACK.format(made=_SGD, shape="16, 8", sums=_SUM), id="not made of the batch"),
        pytest.param(_ATTACK.format(made="optim.SGD([delta.T], lr=0.1)", shape="x.shape", sums=_SUM), id="a part of it"),
        pytest.param(_ATTACK.format(made="optim.SGD(delta, lr=0.1)", shape="x.shape", sums=_SUM), id="no list"),
        pytest.param(
            "delta = torch.zeros(16, 8, requires_grad=True)\n"
            + "\n".join(line for line in _ATTACK.format(made=_SGD, shape="x.shape", sums=_SUM).splitlines() if not line.startswith("    delta =")),
            id="made once",
        ),
    ],
)
def test_what_is_no_perturbation(defs: str) -> None:
    step = _ATTACKED.replace("x = attack(model, x, y)", "attack(model, x, y)")
    assert refused("DPM904", defs=defs, step=step)


def test_an_optimizer_that_nothing_follows() -> None:
    defs = _ATTACK.format(made=_SGD, shape="x.shape", sums=_SUM).replace("        loss.backward()\n", "")
    assert refused("DPM904", defs=defs, step=_ATTACKED.replace("x = attack", "z = attack")) == ["optim.SGD([delta], lr=0.1)"]


_SPARE = "judge = nn.Linear(2, 1)\nfor_judge = torch.optim.SGD(judge.parameters(), lr=0.1)"


@pytest.mark.parametrize(
    ("used", "refuses"),
    [
        pytest.param("", False, id="nothing"),
        pytest.param("torch.optim.lr_scheduler.StepLR(for_judge, 2)", False, id="a schedule"),
        pytest.param("for_judge.zero_grad()", False, id="cleared"),
        pytest.param("for_judge.step()", True, id="a step"),
        pytest.param("for o in (optimizer, for_judge):\n    o.step()", True, id="a step of several"),
        pytest.param("torch.amp.GradScaler('cpu').step(for_judge)", True, id="a scaler's step"),
        pytest.param("elsewhere.step_all([for_judge])", True, id="code that is not read"),
        pytest.param("elsewhere.kept().step()", True, id="a step of what is not known"),
    ],
)
def test_an_optimizer_that_nothing_steps(used: str, *, refuses: bool) -> None:
    """It was built for a part of the program that never runs: its model needs no wrap."""
    parts = {"imports": "import elsewhere", "before": _SPARE, "epoch_end": used}
    assert any("is not seen to be called" in f.message for f in hits("DPM904", **parts)) is refuses


def test_parts_of_a_model_in_a_loop_over_them() -> None:
    """What the loop's variable means are layers of the model, unless the loop goes over something else."""
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])\n"
    net += "        self.last = nn.Linear(8, 2)\n"
    net += "    def forward(self, x):\n        for layer in self.layers:\n            x = layer(x)\n        return self.last(x)\n"
    made = "model = Net()\nparams = list(model.last.parameters())\nfor layer in model.layers:\n    params += list(layer.parameters())"
    assert found("DPM904", net=net, model=made, optimizer="optimizer = torch.optim.SGD(params, lr=0.1)") == []
    other = f"{made}\nimport elsewhere\nfor layer in elsewhere.more():\n    params += list(layer.parameters())"
    assert found("DPM904", net=net, model=other, optimizer="optimizer = torch.optim.SGD(params, lr=0.1)") != []
