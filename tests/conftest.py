"""Options and fixtures that all tests share."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forkserver


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the goldens anew; the tests that wrote one fail, review with git diff")
    parser.addoption("--all-runs", action="store_true", help="run every runnable fixture in tests/e2e, not only the chosen ones")
    parser.addoption("--fresh-processes", action="store_true", help="start a new interpreter for every process of a proof, no fork of a server")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def _forked_python(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    if request.config.getoption("--fresh-processes") or not forkserver.possible:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="dpm-") as folder, forkserver.running(Path(folder)) as python:  # the path of a socket has to be short
        yield python


@pytest.fixture
def forked_python(_forked_python: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """``sys.executable`` runs programs as forks of a process that has imported torch. Not for tests of how processes are started."""
    if _forked_python is not None:
        monkeypatch.setattr(sys, "executable", str(_forked_python))
