"""Every check of checks.py, checks_batches.py, checks_completed.py, checks_data.py, checks_drift.py, checks_orders.py, checks_outside.py, checks_shares.py and checks_sums.py, in one process and in a torchrun job of two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runtime import checks_batches, checks_completed, checks_data, checks_drift, checks_orders, checks_outside, checks_shares, checks_sums  # noqa: F401
from tests.runtime.checks import CHECKS
from tests.runtime.launching import HERE, ranks, torchrun


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("name", sorted(CHECKS))
def test_one_process(name: str) -> None:
    CHECKS[name]()


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    end = torchrun(2, str(HERE / "worker.py"), str(folder), limit=300)
    (folder / "log").write_text("\n".join([str(end.codes), *end.out, *end.err]))
    (folder / "code").write_text(str(end.codes[0]))
    return folder


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_two_ranks(name: str, job: Path) -> None:
    for rank in (0, 1):
        path = job / f"{rank}.json"
        assert path.exists(), (job / "log").read_text()
        error = json.loads(path.read_text()).get(name, "not reached")
        assert not error, f"rank {rank}: {error}"


def test_three_ranks(tmp_path: Path) -> None:
    """Where a mean over two ranks might hide what is wrong: which ranks leave parameters out."""
    end = ranks(3, str(HERE / "worker.py"), str(tmp_path), "completed", limit=300)
    assert end.codes == [0, 0, 0], end.err
    for rank in range(3):
        report = json.loads((tmp_path / f"{rank}.json").read_text())
        assert len(report) > 10
        assert not any(report.values()), report


def test_job_ends_well(job: Path) -> None:
    assert (job / "code").read_text() == "0", (job / "log").read_text()
    assert [(job / f"{rank}.again").read_text() for rank in (0, 1)] == ["2", "2"]
