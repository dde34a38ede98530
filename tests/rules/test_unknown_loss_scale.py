"""DPM305: losses of which nothing is known."""

from __future__ import annotations

import pytest

from tests.rules.program import found, hits

_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = F.cross_entropy(model(x), y)", id="a mean"),
        pytest.param("loss = nn.MSELoss(reduction='sum')(model(x), y)", id="a sum"),
        pytest.param("loss = (model(x) - 1).pow(2).mean()", id="by hand"),
        pytest.param("loss = F.cross_entropy(model(x), y, ignore_index=0)", id="a mean over something else has a rule of its own"),
        pytest.param("loss = (-y[:, None] * model(x)).mean(0).sum()", id="a mean over the samples, and a sum over the classes"),
        pytest.param("loss = (-model(x).mean(0)).sum()", id="a mean over the samples, turned"),
        pytest.param("loss = -torch.mean(model(x), dim=0).sum()", id="a mean over the samples, a function"),
        pytest.param("loss = torch.sum(torch.mean(input=model(x), dim=0))", id="a mean over the samples, all by keyword"),
        pytest.param("loss = torch.tensor(0.0)\nloss += F.cross_entropy(model(x), y)", id="added to a number"),
        pytest.param("loss = torch.zeros(1, device='cpu')\nloss = loss + F.cross_entropy(model(x), y)", id="added to zeros"),
        pytest.param("loss = F.cross_entropy(model(x), y)  # loss = lib.loss(x)", id="in a comment"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM305", step=_STEP.format(line)) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("loss = lib.loss(model(x), y)", "what lib.loss(model(x), y) is normalised by is not known", id="another file"),
        pytest.param("loss = odd(model(x), y)", "what odd(model(x), y) is normalised by is not known", id="from-import"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction='sum') if epoch else F.mse_loss(model(x), y)", "part of the loss is a mean and part a sum", id="mixed"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction=kind)", "the reduction is not a literal", id="a setting"),
        pytest.param(
            "loss = lib.loss(model(x), y,\n    first=model(x).pow(2).mean(), second=model(x).abs().mean())",
            "what lib.loss(model(x), y, first=model(x).pow(2).mean(), … is normalised by",
            id="a long one",
        ),
        pytest.param("loss = torch.tensor(lib.loss(model(x)))", "is normalised by is not known", id="a number of something"),
        pytest.param("loss = model(x).t().mean(0).sum()", "made of a sum over the batch", id="a mean over the classes, a sum over the samples"),
        pytest.param("rnn = nn.LSTM(8, 8)\nloss = model(x).mean(0).sum()", "made of a sum over the batch", id="the first axis may be time"),
        pytest.param("loss = (model(x).mean(0) ** 2).sum()", "made of a sum over the batch", id="squares of means"),
        pytest.param("m = model(x).mean(0)\nloss = (m * m.log()).sum()", "made of a sum over the batch", id="the entropy of a mean"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_warned(line: str, why: str, module_level: bool) -> None:
    (one,) = hits("DPM305", imports="import lib\nfrom lib import odd", defs="kind = str('mean')", step=_STEP.format(line), module_level=module_level)
    assert why in one.message and not one.edits and one.severity.value == "warning"


def test_in_a_method_and_a_parameter() -> None:
    defs = "class T:\n    def back(self, value):\n        value.backward()"
    assert found("DPM305", imports="import lib", defs=defs, step="optimizer.zero_grad()\nT().back(lib.loss(model(x)))\noptimizer.step()") == [
        "value.backward()"
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = F.cross_entropy(z - z.mean(1, keepdim=True), y)", id="of each sample"),
        pytest.param("loss = F.mse_loss(z / weights.norm(), z)", id="of a parameter"),
        pytest.param("loss = F.ctc_loss(z, y, torch.full((len(y),), 2), y)", id="lengths"),
    ],
)
def test_criteria_that_are_given_nothing_of_the_batch(line: str) -> None:
    assert found("DPM305", before="weights = torch.ones(2)", step=_STEP.format("z = model(x)\n" + line)) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = F.binary_cross_entropy_with_logits(z - z.mean(), torch.ones_like(z))", id="relative to the mean"),
        pytest.param("centre = z.mean(0)\nloss = nn.MSELoss()(z, centre.expand_as(z))", id="an object, by a name"),
        pytest.param("p = (y == 1).float()\nloss = F.binary_cross_entropy_with_logits(z[:, 0], p, pos_weight=(1 - p).sum() / p.sum())", id="a weight, keyword"),
        pytest.param("loss = nn.CrossEntropyLoss(weight=1 / torch.bincount(y, minlength=2))(z, y)", id="a weight of an object"),
        pytest.param("loss = F.mse_loss(z / z.max(), z)", id="scaled"),
    ],
)
def test_criteria_that_are_given_something_of_the_whole_batch(line: str) -> None:
    (one,) = hits("DPM305", step=_STEP.format("z = model(x)\n" + line))
    assert "taken over the batch" in one.message and not one.edits


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        pytest.param(
            "loss = F.cross_entropy(z, y)\nloss = loss * z.abs().mean().item()", "z.abs().mean().item() is a number of the rank's part", id="a number"
        ),
        pytest.param("loss = F.cross_entropy(z, y)\nif loss > 1:\n    loss = loss * 0.1", "each rank chooses its loss", id="a choice"),
        pytest.param("a = F.cross_entropy(z, y)\nloss = a if a > 1 else a * 0.1", "each rank chooses its loss", id="a choice in one expression"),
        pytest.param("loss = 0\nfor o, t in zip(z, y):\n    loss = loss + F.cross_entropy(o, t)", "added up over zip(z, y)", id="samples, perhaps"),
    ],
)
def test_numbers_and_choices_of_a_part_of_the_batch(lines: str, why: str) -> None:
    (one,) = hits("DPM305", step=_STEP.format("z = model(x)\n" + lines))
    assert why in one.message


@pytest.mark.parametrize(
    ("kind", "line", "why"),
    [
        pytest.param(
            "nn.BCEWithLogitsLoss()", "c.pos_weight = (y == 0).sum() / y.sum()", "BCEWithLogitsLoss is given what is taken over the batch", id="counts"
        ),
        pytest.param("nn.CrossEntropyLoss()", "c.weight = 1 / (1 + torch.bincount(y))", "CrossEntropyLoss is given what is taken over the batch", id="classes"),
        pytest.param("nn.CrossEntropyLoss()", "w = 1 / torch.bincount(y)\nc.weight: torch.Tensor = w", "is given what is taken over the batch", id="by a name"),
        pytest.param("nn.MSELoss()", "c.reduction = 'sum'", "the reduction of MSELoss is set after it is built", id="the reduction"),
        pytest.param("nn.MSELoss()", "c.size_average = False", "the reduction of MSELoss is set after it is built", id="the old reduction"),
    ],
)
def test_attributes_of_a_criterion(kind: str, line: str, why: str) -> None:
    (one,) = hits("DPM305", before=f"c = {kind}", step=_STEP.format(f"{line}\nloss = c(model(x), y)"))
    assert why in one.message
    defs = f"class T:\n    def __init__(self):\n        self.c = {kind}"
    lines = "\n".join("t." + part if part.startswith("c.") else part for part in line.split("\n"))
    (one,) = hits("DPM305", defs=defs, before="t = T()", step=_STEP.format(f"{lines}\nloss = t.c(model(x), y)"))
    assert why in one.message


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("c.weight = torch.ones(2)\nc.pos_weight = torch.ones(2)", id="weights of all elements"),
        pytest.param("model.fc.weight = nn.Parameter(model.fc.weight * 1)", id="of something else"),
        pytest.param("print(c.pos_weight)", id="only read"),
        pytest.param("c.weight.x = y.sum()", id="deeper"),
    ],
)
def test_other_attributes(line: str) -> None:
    assert found("DPM305", before=f"c = nn.BCEWithLogitsLoss()\n{line}", step=_STEP.format("loss = c(model(x), y)")) == []
