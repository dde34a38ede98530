"""Options and fixtures that all tests share."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import forkserver

#: the examples of a property are the same in every run, whatever the machine has to do besides
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the goldens anew; the tests that wrote one fail, review with git diff")
    parser.addoption("--all-runs", action="store_true", help="run every runnable fixture in tests/e2e and tests/oracle, not only the chosen ones")
    fresh = "start a new interpreter for every process of a proof, no fork of a server"
    parser.addoption("--fresh-processes", action="store_true", help=fresh)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of one case of a module follow each other, in whatever order they come.

    One process then has what they share (tests/pipeline.py).
    """
    groups: dict[object, list[pytest.Item]] = {}
    for item in items:
        call = getattr(item, "callspec", None)
        name = getattr(call.params.get("case"), "name", None) if call is not None else None
        key = (item.path, name) if name is not None else item
        groups.setdefault(key, []).append(item)
    items[:] = [item for group in groups.values() for item in group]


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def _forked_python(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    if request.config.getoption("--fresh-processes") or not forkserver.possible:
        yield None
        return
    # the path of a socket has to be short
    with tempfile.TemporaryDirectory(prefix="dpm-") as name:  # noqa: SIM117
        with forkserver.running(Path(name)) as python:
            yield python


@pytest.fixture
def forked_python(_forked_python: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """``sys.executable`` runs programs as forks of a process that has imported torch.

    Not for tests of how processes are started.
    """
    if _forked_python is not None:
        monkeypatch.setattr(sys, "executable", str(_forked_python))


@pytest.fixture(scope="session")
def _forked_tool(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    if request.config.getoption("--fresh-processes") or not forkserver.possible:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="dpm-") as name:  # noqa: SIM117
        with forkserver.running(Path(name), forkserver.of_tool(), forkserver.of_commands(), (None,)) as python:
            yield python


@pytest.fixture
def forked_tool(_forked_tool: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """``sys.executable -m dpmigrate`` runs as a fork of a process that has imported the tool.

    Not for tests of how the tool is started, or of limits that its process is given.
    """
    if _forked_tool is not None:
        monkeypatch.setattr(sys, "executable", str(_forked_tool))
