"""DPM129: weights or gradients that are changed at random while training runs."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused

_FOR = "for p in model.parameters():\n    {}"
_PRUNE = "import torch.nn.utils.prune as prune"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": _FOR.format("nn.init.normal_(p)")}, id="before training"),
        pytest.param({"step": STEP + _FOR.format("p.data.clamp_(-1, 1)")}, id="not at random"),
        pytest.param(
            {"module_level": True, "model": "for fold in range(2):\n    model = Net()\n    model.fc.reset_parameters()\n    model = nn.DataParallel(model)"},
            id="before its wrap",
        ),
        pytest.param({"step": STEP + _FOR.format("print(torch.rand(1), p.shape)")}, id="nothing is written"),
        pytest.param({"step": STEP + "for p in [x]:\n    p.add_(torch.rand(1))"}, id="another loop"),
        pytest.param({"step": "x = x + torch.randn_like(x)\nx.add_(torch.rand(1))\n" + STEP}, id="noise on the batch"),
        pytest.param({"step": "x.normal_()\n" + STEP}, id="noise on the batch, in place"),
        pytest.param({"epoch_start": "other = Net()\nother.fc.reset_parameters()"}, id="another model"),
        pytest.param({"epoch_start": "model.train()\nprint(model.fc)"}, id="other calls"),
        pytest.param({"imports": _PRUNE, "epoch_start": "prune.l1_unstructured(model.fc, 'weight', 0.1)"}, id="pruned by size"),
        pytest.param({"epoch_start": "'a string'"}, id="no call"),
        pytest.param(
            {"step": STEP + "for g in optimizer.param_groups:\n    g['lr'] = 0.1 + torch.rand(1).item() * 0"}, id="rates, which have a rule of their own"
        ),
        pytest.param(
            {"step": STEP + "for g in others:\n    for p in g:\n        p.add_(torch.rand(1))", "before": "others = [[torch.ones(1)]]"}, id="other groups"
        ),
        pytest.param({"step": STEP + "[p.add_(torch.rand(1)) for p in [x]]"}, id="other tensors in a comprehension"),
        pytest.param({"step": STEP + "x.data = torch.rand(16, 8)\nmodel.temperature = torch.rand(1)"}, id="no weight is set"),
        pytest.param({"step": STEP.replace("optimizer.step()", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\noptimizer.step()")}, id="clipped"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM129", **parts) == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(_FOR.format("p.data.add_(torch.randn_like(p))"), id="noise on weights"),
        pytest.param(_FOR.format("p.grad += torch.randn_like(p.grad)"), id="noise on gradients"),
        pytest.param(_FOR.format("noise = torch.randn_like(p)\n    p.data = p.data + noise"), id="noise through a name"),
        pytest.param("for name, p in model.named_parameters():\n    nn.init.normal_(p)", id="initialised anew"),
        pytest.param("for m in model.modules():\n    if isinstance(m, nn.Linear):\n        m.reset_parameters()", id="layers reset"),
    ],
)
def test_a_loop_draws_from_one_stream(lines: str) -> None:
    new = after(step=STEP + lines)
    assert new[0] == "with ddp.same_stream():"
    assert found("DPM129", step=STEP + lines) == [lines.splitlines()[0]]
    assert found("DPM129", defs=f"def disturb(model):\n    {lines}".replace("\n", "\n    ").replace("    for", "for", 1), epoch_end="disturb(model)") == [
        lines.splitlines()[0]
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("model.fc.reset_parameters()", id="a layer"),
        pytest.param("nn.init.normal_(model.fc.weight)", id="an initialiser"),
        pytest.param("model.apply(init)", id="apply"),
        pytest.param("prune.random_unstructured(model.fc, 'weight', 0.1)", id="pruned at random"),
        pytest.param("model.renew()", id="a method of the model"),
    ],
)
def test_a_statement_draws_from_one_stream(line: str) -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n"
    net += "    def forward(self, x):\n        return self.fc(x)\n\n    def renew(self):\n        self.fc.reset_parameters()\n"
    parts = {"imports": _PRUNE, "net": net, "defs": "def init(m):\n    nn.init.normal_(m.weight)", "epoch_end": line}
    assert found("DPM129", **parts) == [line]
    assert "with ddp.same_stream():" in after(**parts)


_LANGEVIN = """
class Langevin(torch.optim.{base}):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {args})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"])
                p.add_({noise})
"""


@pytest.mark.parametrize("base", ["Optimizer", "SGD"])
@pytest.mark.parametrize("made", ["Langevin(model.parameters())", "Langevin(lr=0.1, params=model.parameters())"])
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_an_optimizer_that_draws(base: str, made: str, module_level: bool) -> None:
    args = {"Optimizer": "dict(lr=lr)", "SGD": "lr"}[base]
    parts = {"defs": _LANGEVIN.format(base=base, args=args, noise="torch.randn_like(p)"), "optimizer": f"optimizer = {made}"}
    assert found("DPM129", module_level=module_level, **parts) == ["optimizer.step()"]
    assert "with ddp.same_stream():" in after(module_level=module_level, **parts)
    quiet = {**parts, "defs": _LANGEVIN.format(base=base, args=args, noise="p")}
    assert found("DPM129", module_level=module_level, **quiet) == []


def test_an_optimizer_that_draws_behind_a_scaler() -> None:
    parts = {
        "defs": _LANGEVIN.format(base="Optimizer", args="dict(lr=lr)", noise="torch.randn_like(p)"),
        "optimizer": "optimizer = Langevin(model.parameters())",
    }
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nscaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()"
    assert found("DPM129", before="scaler = torch.amp.GradScaler('cuda')", step=step, **parts) == ["scaler.step(optimizer)"]
    of_torch = {"before": "scaler = torch.amp.GradScaler('cuda')", "step": step}
    assert found("DPM129", **of_torch) == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("for g in optimizer.param_groups:\n    for p in g['params']:\n        p.grad.add_(torch.randn_like(p.grad))", id="groups"),
        pytest.param("for g in optimizer.param_groups:\n    [p.grad.add_(torch.randn_like(p.grad)) for p in g['params']]", id="a comprehension in it"),
        pytest.param("for p in params:\n    p.grad.add_(torch.randn_like(p.grad))", id="a list of parameters"),
        pytest.param("[p.grad.add_(torch.randn_like(p.grad)) for p in model.parameters()]", id="a comprehension"),
        pytest.param("model.fc.weight.data = model.fc.weight.data + torch.randn(2, 8)", id="assigned"),
        pytest.param("model.fc.weight.data += torch.randn(2, 8)", id="added"),
        pytest.param("random.choice([optimizer, torch.optim.SGD(model.fc.parameters(), lr=0.1)]).step()", id="an optimizer that is drawn"),
        pytest.param("nn.utils.clip_grad_norm_(model.parameters(), random.uniform(1.0, 2.0))", id="clipped at random"),
    ],
)
def test_other_ways_to_the_weights(lines: str) -> None:
    parts = {"imports": "import random", "before": "params = list(model.parameters())", "step": STEP + lines}
    assert found("DPM129", **parts) == [lines.splitlines()[0]]
    assert "with ddp.same_stream():" in after(**parts)


@pytest.mark.parametrize("call", ["disturb(optimizer.param_groups)", "disturb(groups=optimizer.param_groups)"])
def test_groups_that_a_function_gets(call: str) -> None:
    defs = "def disturb(groups):\n    for g in groups:\n        for p in g['params']:\n            p.grad.add_(torch.randn_like(p.grad))"
    assert found("DPM129", defs=defs, step=STEP.replace("optimizer.step()", f"{call}\noptimizer.step()")) == ["for g in groups:"]


def test_decided_alike() -> None:
    step = STEP + "if {}:\n    model.fc.reset_parameters()"
    new = after(imports="import random", step=step.format("random.random() < 0.1"))
    assert new[:2] == ["if ddp.from_main(random.random() < 0.1):", "with ddp.same_stream():"]
    assert "if ddp.mean_all(loss.item()) > 1:" in after(step=step.format("loss.item() > 1"))


@pytest.mark.parametrize("before", ["if y.max() > 1:", "try:\n    print(1)\nexcept ValueError:"], ids=["a batch", "an exception"])
def test_refused_where_ranks_may_decide_differently(before: str) -> None:
    assert refused("DPM129", step=f"{STEP}{before}\n    model.fc.reset_parameters()") == ["model.fc.reset_parameters()"]
