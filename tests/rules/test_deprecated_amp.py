"""DPM316: names of torch.cuda.amp."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, migrated

_STEP = "with {}:\n    loss = F.cross_entropy(model(x), y)\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": _STEP.format("torch.autocast('cuda')")}, id="the new name"),
        pytest.param({"step": _STEP.format("torch.amp.autocast('cuda')")}, id="torch.amp"),
        pytest.param({"before": "s = torch.amp.GradScaler('cuda')"}, id="the new scaler"),
        pytest.param({"imports": "from apex.amp import autocast", "step": _STEP.format("autocast()")}, id="another library's"),
        pytest.param({"end": "print('torch.cuda.amp.autocast()')  # torch.cuda.amp.autocast()"}, id="in a string and a comment"),
        pytest.param({"end": "print(torch.cuda.amp.autocast)"}, id="without a call"),
        pytest.param({"before": "s = torch.cuda.amp.GradScaler(*[1.0])"}, id="arguments that cannot be read"),
        pytest.param({"before": "auto = torch.cuda.amp.autocast", "step": _STEP.format("auto()")}, id="bound to another name"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM316", **parts) == []


@pytest.mark.parametrize(
    ("imports", "call", "new"),
    [
        pytest.param("", "torch.cuda.amp.autocast()", 'torch.autocast("cuda")', id="full name"),
        pytest.param("from torch.cuda.amp import autocast", "autocast(True)", 'torch.autocast("cuda", enabled=True)', id="positional"),
        pytest.param("from torch.cuda.amp import autocast as ac", "ac(enabled=True)", 'torch.autocast("cuda", enabled=True)', id="keyword, alias"),
        pytest.param("from torch.cuda import amp", "amp.autocast(True, torch.bfloat16)", 'torch.autocast("cuda", enabled=True, dtype=torch.bfloat16)', id="dtype"),
        pytest.param("import torch.cuda.amp as amp", "amp.autocast(**{})", 'torch.autocast("cuda", **{})', id="double star"),
        pytest.param(
            "from torch.cuda.amp.autocast_mode import autocast", "autocast(dtype=torch.float16)", 'torch.autocast("cuda", dtype=torch.float16)', id="inner module",
        ),
    ],
)  # fmt: skip
def test_autocast(imports: str, call: str, new: str) -> None:
    parts = {"imports": imports, "step": _STEP.format(call)}
    assert found("DPM316", **parts) == [call]
    assert f"with {new}:" in after(**parts)


@pytest.mark.parametrize(
    ("call", "new"),
    [
        pytest.param("GradScaler()", 'torch.amp.GradScaler("cuda")', id="plain"),
        pytest.param("GradScaler(1024.0)", 'torch.amp.GradScaler("cuda", init_scale=1024.0)', id="positional"),
        pytest.param("GradScaler(8.0, 2.0, enabled=False)", 'torch.amp.GradScaler("cuda", init_scale=8.0, growth_factor=2.0, enabled=False)', id="mixed"),
    ],
)
def test_scaler(call: str, new: str) -> None:
    parts = {"imports": "from torch.cuda.amp import GradScaler", "before": f"s = {call}"}
    assert found("DPM316", **parts) == [call]
    assert f"s = {new}" in after(module_level=True, **parts)


def test_torch_is_imported_where_it_has_another_name() -> None:
    text = """
import torch as th
from torch import nn, optim
from torch.cuda.amp import GradScaler
from torch.utils.data import DataLoader

model = nn.Linear(8, 2)
loader = DataLoader(list(range(8)), batch_size=2)
optimizer = optim.SGD(model.parameters(), lr=0.1)
s = GradScaler()
for epoch in range(2):
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""
    new = migrated(text.lstrip()).splitlines()
    assert "import torch" in new and 's = torch.amp.GradScaler("cuda")' in new
