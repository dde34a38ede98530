"""Options and fixtures that all tests share."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the goldens anew; the tests that wrote one fail, review with git diff")
    parser.addoption("--all-runs", action="store_true", help="run every runnable fixture in tests/e2e, not only the chosen ones")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))
