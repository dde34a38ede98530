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


def test_refused_where_ranks_may_decide_differently() -> None:
    step = STEP + "if loss.item() > 1:\n    model.fc.reset_parameters()"
    assert refused("DPM129", step=step) == ["model.fc.reset_parameters()"]
