"""DPM134: the number of GPUs as the number of a model's copies."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import after, found, hits

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x, y=None, table=None):
        out = self.fc(x)
        if y is None:
            return out
        return {loss}
"""
_MEAN = _NET.format(loss="F.cross_entropy(out, y)")
_STEP = "x, y = x.cuda(), y.cuda()\noptimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"
_MODEL = "model = nn.DataParallel(Net())"


def _parts(line: str, setup: str = "n_gpu = torch.cuda.device_count()", net: str = _MEAN, model: str = _MODEL, **more: str) -> dict[str, str]:
    return {"step": _STEP.format(line), "setup": setup, "net": net, "model": model, **more}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_parts("loss = model(x, y).sum() / n_gpu", model="model = Net()"), id="no DataParallel"),
        pytest.param(_parts("loss = model(x, y)\nloss = loss.mean()"), id="a mean is one copy's"),
        pytest.param(_parts("loss = model(x, y).sum() / n_gpu", net=_NET.format(loss="F.cross_entropy(out, y, reduction='sum')")), id="a sum over the samples"),
        pytest.param(_parts("loss = F.cross_entropy(model(x), y) / n_gpu"), id="of what is put together"),
        pytest.param(_parts("loss = model(x, y).sum() / 4"), id="another number"),
        pytest.param(_parts("loss = model(x, y).mean()", loader="loader = DataLoader(train_set, batch_size=4 * n_gpu)"), id="the global batch size"),
        pytest.param(_parts("loss = model(x, y).mean()", before="for i in range(n_gpu):\n    print(torch.cuda.get_device_name(i))"), id="the names of the GPUs"),
        pytest.param(_parts("loss = model(x, y).mean()", before="rate = 0.1 * n_gpu"), id="a learning rate"),
    ],
)  # fmt: skip
def test_nothing_fixed(parts: dict[str, str]) -> None:
    assert [f for f in hits("DPM134", **parts) if f.edits] == []


@pytest.mark.parametrize(
    ("setup", "count"),
    [
        pytest.param("", "torch.cuda.device_count()", id="called in place"),
        pytest.param("from torch import cuda", "cuda.device_count()", id="from-import"),
        pytest.param("from torch.cuda import device_count as number", "number()", id="alias"),
        pytest.param("copies = max(1, torch.cuda.device_count())", "copies", id="at least one"),
        pytest.param("args.n_gpu = torch.cuda.device_count()", "args.n_gpu", id="an attribute"),
        pytest.param("", "args.ngpu", id="an option by its name"),
        pytest.param("", "float(len(args.gpu_ids))", id="a list of GPUs"),
    ],
)
def test_an_average_over_the_copies(setup: str, count: str) -> None:
    parts = _parts(f"loss = model(x, y)\nloss = loss.sum() / {count}", setup)
    assert found("DPM134", **parts) == [f"loss.sum() / {count}"]
    assert "loss = loss.sum()" in after(**parts)


def test_keyword_and_functional_sum() -> None:
    assert "loss = torch.sum(loss)" in after(**_parts("loss = model(x, y=y)\nloss = torch.sum(loss) / n_gpu"))


def test_beside_the_call_of_the_model() -> None:
    assert "loss = model(x, y).sum() / 1" in after(**_parts("loss = model(x, y).sum() / n_gpu"))


def test_divided_in_place() -> None:
    parts = _parts("loss = model(x, y).sum()\nif n_gpu > 1:\n    loss /= n_gpu")
    assert found("DPM134", **parts) == ["loss /= n_gpu"]
    assert not any("/=" in line for line in after(**parts))


@pytest.mark.parametrize("net", ["from nets import Net", _NET.format(loss="criterion(out, y), out")], ids=["another file's", "unknown"])
def test_a_model_whose_loss_is_not_known(net: str) -> None:
    parts = _parts("loss = model(x, y)[0]\nloss = loss.sum() / n_gpu", net=net)
    lines = after(**parts)
    assert "loss = loss.sum()" in lines
    assert not any("sum_loss" in line for line in lines)


def test_an_attribute_of_self() -> None:
    defs = """
    class T:
        def __init__(self):
            self.model = nn.DataParallel(Net())
            self.n_gpu = torch.cuda.device_count()
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        def train(self, loader):
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.model(x, y)
                loss = loss.sum() / self.n_gpu
                loss.backward()
                self.optimizer.step()
    """
    parts = {"defs": defs, "net": _MEAN, "model": "", "optimizer": "t = T()", "batches": "t.train(loader)", "step": ""}
    assert found("DPM134", **parts) == ["loss.sum() / self.n_gpu"]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("loss = model(x, y, table.repeat(n_gpu, 1)).mean()", "loss = model(x, y, table.repeat(1, 1).to(ddp.device())).mean()", id="in the call"),
        pytest.param("t = table.unsqueeze(0).expand(n_gpu, -1)\nloss = model(x, y, t).mean()", "t = table.unsqueeze(0).expand(1, -1)", id="by a variable"),
        pytest.param("t = torch.tensor([len(x)] * n_gpu)\nloss = model(x, y, table=t).mean()", "t = torch.tensor([len(x)] * 1)", id="a list"),
        pytest.param(
            "t = torch.stack([table for _ in range(n_gpu)])\nloss = model(x, y, t).mean()", "t = torch.stack([table for _ in range(1)])", id="a comprehension"
        ),
        pytest.param("t = torch.zeros((n_gpu, 2))\nloss = model(x, y, t).mean()", "t = torch.zeros((1, 2))", id="a new tensor"),
        pytest.param("t = torch.zeros(size=(max(1, n_gpu), 2))\nloss = model(x, y, t).mean()", "t = torch.zeros(size=(1, 2))", id="at least one, by keyword"),
    ],
)
def test_an_input_for_each_copy(line: str, new: str) -> None:
    assert new in after(**_parts(line, before="table = torch.ones(2)"))


def test_made_before_training() -> None:
    parts = _parts("loss = model(x, y, graph).mean()", before="graph = torch.ones(2).unsqueeze(0).repeat(n_gpu, 1)")
    assert "graph = torch.ones(2).unsqueeze(0).repeat(1, 1)" in after(**parts)


def test_a_part_of_the_batch() -> None:
    assert "part = x.size(0)" in after(**_parts("part = x.size(0) // n_gpu\nloss = model(x[:part], y[:part]).mean()"))


def test_a_gradient_for_each_copy() -> None:
    parts = _parts("loss = model(x, y)") | {"step": "optimizer.zero_grad()\nloss = model(x, y)\nloss.backward(torch.ones(n_gpu))\noptimizer.step()"}
    assert "loss.backward()" in after(**parts)
    parts["step"] = parts["step"].replace("backward(", "backward(gradient=")
    assert "loss.backward()" in after(**parts)


def test_a_sum_that_nothing_divides_is_told() -> None:
    (told,) = hits("DPM134", **_parts("loss = model(x, y).sum()"))
    assert told.severity is Severity.WARNING
    assert "N times larger" in told.message


def test_a_shape_that_does_not_reach_the_model_is_told() -> None:
    (told,) = hits("DPM134", **_parts("loss = model(x, y).mean()", before="log = torch.zeros(n_gpu)"))
    assert told.severity is Severity.WARNING
    assert not told.edits
