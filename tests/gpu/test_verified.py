"""Migrated programs are proved against their originals on a GPU: one rank over NCCL, and two ranks that share the GPU over gloo.

What the CPU cannot show: tensors that stand on two devices, collectives that get a tensor of the CPU under NCCL, scalers that scale.
Without a GPU everything here is skipped; tests/e2e proves the same programs on the CPU. A case that cannot hold on a GPU says why
(``gpu = "…"`` in its case.toml); one whose original needs more GPUs, or fails on a GPU, is skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.e2e.test_runs import RUNNABLE, proof, said, scripts_of
from tests.pipeline import Case, Several

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU on this machine"),
    pytest.mark.usefixtures("forked_python"),
]


@pytest.mark.parametrize("ranks", [pytest.param(1, id="one rank, NCCL"), pytest.param(2, id="two ranks, gloo")])
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in RUNNABLE if "gpu" not in c.facts])
def test_migrated_program_trains_like_the_original(case: Case | Several, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = proof(case, scripts_of(case)[0], ranks, tmp_path, cpu=False)
    if found.failure.startswith("the original does not run here"):
        pytest.skip(found.failure)
    assert found.holds, said(found)
