"""The tool and the runtime meet in contract.py: same names, same parameters."""

from __future__ import annotations

import inspect

import dpmigrate_runtime
import pytest

from dpmigrate import contract


def test_same_names() -> None:
    assert set(contract.NAMES) == set(dpmigrate_runtime.__all__)


@pytest.mark.parametrize("name", sorted(contract.NAMES))
def test_parameters_can_be_passed(name: str) -> None:
    kinds: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(getattr(dpmigrate_runtime, name)).parameters.values()
    assert tuple(kinds.get(p.kind, "") + p.name for p in parameters) == contract.NAMES[name]


def test_collectives_are_known_names() -> None:
    assert contract.COLLECTIVE <= set(contract.NAMES)
