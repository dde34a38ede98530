"""DPM128: averages of weights by torch.optim.swa_utils."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found

_IMPORTS = "from torch.optim.swa_utils import AveragedModel, SWALR, update_bn\nfrom torch.optim import swa_utils\nimport torch.optim.swa_utils as swa"
_DP = "model = nn.DataParallel(Net())"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "s = SWALR(optimizer, swa_lr=0.05)", "epoch_end": "s.step()"}, id="a schedule"),
        pytest.param({"model": "model = Net()\naverage = AveragedModel(model)"}, id="made before the wrap"),
        pytest.param({"before": "average = AveragedModel(teacher)"}, id="of another model"),
        pytest.param({"before": "average = AveragedModel()"}, id="of nothing"),
        pytest.param({"before": "average = make()", "epoch_end": "average.update_parameters(model)"}, id="an average of another kind"),
        pytest.param({"before": "average = AveragedModel(model.module)", "end": "update_bn(DataLoader(val_set), average)", "model": _DP}, id="a loader that is not divided"),
        pytest.param({"end": "update_bn()"}, id="without arguments"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM128", imports=_IMPORTS, **parts) == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("average = AveragedModel(model)", "average = AveragedModel(model.module)", id="from-import"),
        pytest.param("average = swa_utils.AveragedModel(model)", "average = swa_utils.AveragedModel(model.module)", id="from its package"),
        pytest.param("average = swa.AveragedModel(model=model)", "average = swa.AveragedModel(model=model.module)", id="alias, keyword"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_a_copy_of_the_wrapper(line: str, new: str, module_level: bool) -> None:
    assert new in after(imports=_IMPORTS, model=_DP, before=line, module_level=module_level)


def test_the_average_grows_by_the_model() -> None:
    lines = after(imports=_IMPORTS, before="average = AveragedModel(model)", epoch_end="average.update_parameters(model)")
    assert "average.update_parameters(model.module)" in lines


def test_on_self() -> None:
    defs = """
    class T:
        def __init__(self, loader):
            self.model = nn.DataParallel(Net())
            self.average = AveragedModel(self.model)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            self.loader = loader
        def train(self):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
                self.average.update_parameters(self.model)
            update_bn(self.loader, self.average)
    """
    parts = {"imports": _IMPORTS, "defs": defs, "model": "t = T(loader)", "optimizer": "", "batches": "t.train()", "step": ""}
    lines = after(**parts)
    assert "self.average = AveragedModel(self.model.module)" in lines
    assert "self.average.update_parameters(self.model.module)" in lines
    assert "update_bn(ddp.whole(self.loader), self.average)" in lines


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("update_bn(loader, average)", "update_bn(ddp.whole(loader), average)", id="positional"),
        pytest.param("update_bn(model=average, loader=loader)", "update_bn(model=average, loader=ddp.whole(loader))", id="keyword"),
        pytest.param("swa.update_bn(loader, model)", "swa.update_bn(ddp.whole(loader), model.module)", id="of the model itself"),
    ],
)
def test_the_statistics_are_those_of_all_batches(line: str, new: str) -> None:
    assert new in after(imports=_IMPORTS, model=f"{_DP}\naverage = AveragedModel(model)", end=line)


def test_a_model_that_may_be_wrapped() -> None:
    """A function that gets both: the runtime finds out."""
    defs = "def averaged(net):\n    return AveragedModel(net)"
    lines = after(imports=_IMPORTS, defs=defs, model="net = Net()\nfirst = averaged(net)\nmodel = nn.DataParallel(net)\nsecond = averaged(model)")
    assert "return AveragedModel(ddp.unwrap(net))" in lines
