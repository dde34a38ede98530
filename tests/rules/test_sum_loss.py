"""DPM301: gradients of a sum are summed."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found

_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = F.cross_entropy(model(x), y)", id="a mean"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction='mean')", id="a mean by name"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction='sum') / x.size(0)", id="divided by the batch"),
        pytest.param("loss = F.cross_entropy(model(x), y) + model.fc.weight.pow(2).mean()", id="a regulariser"),
        pytest.param("loss = F.cross_entropy(model(x), y) + 0.1 * model.fc.weight.pow(2).sum()", id="a sum of weights"),
        pytest.param("loss = F.cross_entropy(model(x), y) + torch.sum(torch.abs(model.fc.bias))", id="a sum of weights by torch"),
        pytest.param(
            "l1 = 0\nfor n, p in model.named_parameters():\n    if 'fc' in n:\n        l1 = l1 + p.abs().sum()\nloss = F.cross_entropy(model(x), y) + l1",
            id="sums of weights, one by one",
        ),
        pytest.param("l2 = 0\nfor p in model.parameters():\n    l2 += torch.sum(p ** 2)\nloss = F.cross_entropy(model(x), y) + 0.1 * l2", id="added up"),
        pytest.param("loss = F.mse_loss(model(x), y)  # reduction='sum'", id="in a comment"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction='sum') if epoch else F.mse_loss(model(x), y)", id="a mean or a sum"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM301", step=_STEP.format(line)) == []


@pytest.mark.parametrize(
    ("before", "line"),
    [
        pytest.param("", "loss = F.mse_loss(model(x), y, reduction='sum')", id="function"),
        pytest.param("c = nn.MSELoss(reduction='sum')", "loss = c(model(x), y)", id="module"),
        pytest.param("c = nn.MSELoss(size_average=False)", "loss = c(model(x), y)", id="the old argument"),
        pytest.param("from torch.nn.functional import mse_loss as m", "loss = m(model(x), y, reduction='sum')", id="from-import with alias"),
        pytest.param("", "loss = (model(x) - y[:, None]).pow(2).sum()", id="by hand"),
        pytest.param("", "loss = torch.sum(model(x))", id="torch.sum"),
        pytest.param("", "loss = torch.sum(model(x) * model.fc.weight.norm())", id="samples and weights"),
        pytest.param("", "for p in model.parameters():\n    loss = (model(x) * p.mean()).sum()", id="samples and weights one by one"),
        pytest.param("def f(a, b):\n    return ((a - b[:, None]) ** 2).sum()", "loss = f(model(x), y)", id="a function"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(before: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"before": before, "step": _STEP.format(line), "module_level": module_level}
    assert found("DPM301", **parts) == ["loss.backward()"]
    assert "ddp.sum_loss(loss).backward()" in after(**parts)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("loss = z.sum() + c(z, y)", "loss = ddp.sum_term(z.sum()) + c(z, y)", id="beside a mean"),
        pytest.param("loss = c(z, y) - 2 * (z.sum() + z.pow(2).sum())", "loss = c(z, y) - ddp.sum_term(2 * (z.sum() + z.pow(2).sum()))", id="taken away"),
        pytest.param("loss = c(z, y)\nloss += z.sum()", "loss += ddp.sum_term(z.sum())", id="added afterwards"),
        pytest.param("loss = z.sum()\nloss += c(z, y)", "loss = ddp.sum_term(z.sum())", id="before a mean is added"),
        pytest.param("loss = 0.5 * (c(z, y) + z.sum())", "loss = 0.5 * (c(z, y) + ddp.sum_term(z.sum()))", id="inside a factor"),
        pytest.param("loss = sum([c(z, y), z.sum()])", "loss = sum([c(z, y), ddp.sum_term(z.sum())])", id="by Python's sum"),
        pytest.param("n = model.fc.weight.norm()\nloss = z.sum() + sum(p.norm() for p in model.parameters())", "loss = ddp.sum_term(z.sum()) + sum(", id="a regulariser"),
    ],
)
def test_a_term_beside_others(line: str, expected: str) -> None:
    parts = {"before": "c = nn.CrossEntropyLoss()", "step": _STEP.format(f"z = model(x)\n{line}")}
    assert any(expected in changed for changed in after(**parts))
    assert "loss.backward()" not in found("DPM301", **parts)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss, n = z.sum(), 1\nloss += c(z, y)", id="an element of what is assigned"),
        pytest.param("loss = z.sum() + what(z)", id="beside what is not known"),
        pytest.param("loss = torch.sqrt(z.sum() + c(z, y))", id="inside a function"),
    ],
)
def test_a_term_that_cannot_be_scaled(line: str) -> None:
    assert found("DPM301", before="c = nn.CrossEntropyLoss()", step=_STEP.format(f"z = model(x)\n{line}")) == []


def test_what_a_function_may_give() -> None:
    defs = "def f(z, y, plain):\n    if plain:\n        return z.sum(), z\n    loss = F.cross_entropy(z, y)\n    return loss, z"
    assert "return ddp.sum_term(z.sum()), z" in after(defs=defs, step=_STEP.format("loss, z = f(model(x), y, epoch)"))
    both = defs.replace("loss, z", "(*some(loss), z)")
    assert found("DPM301", defs=both, step=_STEP.format("loss, z = f(model(x), y, epoch)")) == []


def test_a_factor_that_is_a_parameter_with_a_default() -> None:
    defs = "def f(z, y, beta=0.1):\n    return F.cross_entropy(z, y) + beta * z.sum()"
    assert "return F.cross_entropy(z, y) + ddp.sum_term(beta * z.sum())" in after(defs=defs, step=_STEP.format("loss = f(model(x), y)"))


def test_the_expression_before_backward() -> None:
    step = "optimizer.zero_grad()\nmodel(x).sum().backward()\noptimizer.step()"
    assert after(step=step) == ["ddp.sum_loss(model(x).sum()).backward()"]


def test_inside_a_scaler_of_its_own() -> None:
    step = "optimizer.zero_grad()\nloss = model(x).sum()\ns.scale(loss).backward()\ns.step(optimizer)\ns.update()"
    assert "s.scale(ddp.sum_loss(loss)).backward()" in after(before="s = torch.amp.GradScaler('cuda')", step=step)


def test_in_a_method() -> None:
    defs = "class T:\n    def back(self, out):\n        out.sum().backward()"
    step = "optimizer.zero_grad()\nT().back(model(x))\noptimizer.step()"
    assert "ddp.sum_loss(out.sum()).backward()" in after(defs=defs, step=step)


def test_a_sum_over_weights_is_no_sum_over_the_batch() -> None:
    """A penalty is the same on every rank."""
    step = STEP.replace("F.cross_entropy(model(x), y)", "F.cross_entropy(model(x), y) + 0.1 * (torch.eye(8) - model.fc.weight.t() @ model.fc.weight).abs().sum()")
    assert found("DPM301", step=step) == []
    assert found("DPM301", step=step.replace("model.fc.weight.t() @ model.fc.weight", "x.t() @ x")) != []
