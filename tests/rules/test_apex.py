"""DPM142: apex."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from dpmigrate.settings import Settings
from tests.rules.program import STEP, after, found, hits, migrated, program, whole

_INIT = "model, optimizer = amp.initialize(model, optimizer, opt_level='O1')"
_SCALED = STEP.replace("loss.backward()", "with amp.scale_loss(loss, optimizer) as scaled:\n    scaled.backward()")
_PARTS = {"imports": "from apex import amp", "before": _INIT, "step": _SCALED}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="no apex"),
        pytest.param({"imports": "from apex.optimizers import FusedAdam"}, id="another part of apex"),
        pytest.param({"imports": "from mine import amp", "before": _INIT}, id="another amp"),
        pytest.param({"end": "print('apex.amp.initialize()')"}, id="in a text"),
        pytest.param(
            {"imports": "import apex", "before": "model = apex.parallel.convert_syncbn_model(model, None)"}, id="batch statistics of a group"
        ),
        pytest.param({"imports": "import apex", "before": "model = apex.parallel.convert_syncbn_model(model, process_group=None)"}, id="a group by keyword"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM142", **parts) == []


@pytest.mark.parametrize("imports", ["from apex import amp", "import apex.amp as amp", "from apex import amp as amp"])
def test_mixed_precision_is_kept(imports: str) -> None:
    (one,) = hits("DPM142", **{**_PARTS, "imports": imports})
    assert one.severity is Severity.WARNING and not one.edits and "--amp" in one.advice


def test_with_amp_it_is_kept_too() -> None:
    (one,) = hits("DPM321", Settings(amp=True), **_PARTS)
    assert "apex already" in one.message
    assert "autocast" not in whole(Settings(amp=True), **_PARTS)


def test_the_wrap_follows_it() -> None:
    lines = [one.strip() for one in whole(**_PARTS).splitlines()]
    assert lines.index(_INIT) < lines.index("model = ddp.wrap(model)")


def test_a_scaled_loss_is_normalised_like_the_loss() -> None:
    assert found("DPM305", **_PARTS) == []
    assert "ddp.sum_loss(scaled).backward()" in after(**{**_PARTS, "step": _SCALED.replace("x), y)", "x), y, reduction='sum')")})


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("import apex", "apex.parallel.convert_syncbn_model(model)", id="full name"),
        pytest.param("from apex.parallel import convert_syncbn_model as sync", "sync(model)", id="alias"),
    ],
)
def test_batch_statistics(imports: str, call: str) -> None:
    parts = {"imports": imports, "before": f"model = {call}"}
    assert found("DPM142", **parts) == [call]
    assert any("torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)" in line for line in after(**parts))


def test_torch_is_imported_where_it_has_another_name() -> None:
    text = program(
        imports="import apex", before="model = apex.parallel.convert_syncbn_model(model)", optimizer="optimizer = optim.SGD(model.parameters(), lr=0.1)"
    )
    text = (
        text.replace("import torch\n", "import torch as th\nfrom torch import optim\n")
        .replace("torch.randn", "th.randn")
        .replace("torch.randint", "th.randint")
    )
    assert "import torch" in migrated(text).splitlines()
