"""The runtime on the path, and a group of one for tests in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.runtime.launching import LAUNCHER, RUNTIME

sys.path.insert(0, str(RUNTIME))


@pytest.fixture(autouse=True)
def nothing_stays_hooked() -> Iterator[None]:
    """What a test leaves hooked into torch would change the tests after it, in some orders only."""
    yield
    from dpmigrate_runtime._state import STATE

    assert not STATE.hooks, "this test has left nets in torch"
    assert not STATE.active, "this test has left setup() without cleanup()"


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No launcher variable is set."""
    for name in LAUNCHER:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def group(plain: pytest.MonkeyPatch) -> Iterator[None]:
    """A group of one process, made by ``setup``."""
    import dpmigrate_runtime as ddp

    ddp.setup()
    yield
    ddp.cleanup()
