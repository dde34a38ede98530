"""What a name means that only a star import can have brought."""

from __future__ import annotations

import pytest

from dpmigrate.facts.stars import meaning


@pytest.mark.parametrize(
    ("name", "modules", "read"),
    [
        pytest.param("Linear", [], set(), id="no star import"),
        pytest.param("nn", [], {"Linear"}, id="no star import, for all that is read of it"),
        pytest.param("print", ["model"], {"nn"}, id="a built-in"),
        pytest.param("Backbone", ["torch.nn"], set(), id="a name that the module does not have"),
        pytest.param("SGD", ["torch.nn"], set(), id="another module's name"),
        pytest.param("helper", ["model"], {"run"}, id="nothing that tells"),
        pytest.param("helper", ["model"], set(), id="nothing is read of it"),
    ],
)
def test_unknown(name: str, modules: list[str], read: set[str]) -> None:
    assert meaning(name, modules, read) == ""


@pytest.mark.parametrize(
    ("name", "modules", "read", "expected"),
    [
        pytest.param("Linear", ["torch.nn"], set(), "torch.nn.Linear", id="a layer"),
        pytest.param("DataLoader", ["model", "torch.utils.data"], set(), "torch.utils.data.DataLoader", id="of the second module"),
        pytest.param("Adam", ["torch.optim"], {"step"}, "torch.optim.Adam", id="an optimizer"),
        pytest.param("t", ["model"], {"no_grad", "cat"}, "torch", id="torch by another name"),
        pytest.param("layers", ["model"], {"Module"}, "torch.nn", id="torch.nn by another name"),
        pytest.param("F", ["model"], {"cross_entropy"}, "torch.nn.functional", id="its functions"),
        pytest.param("opt", ["model"], {"lr_scheduler"}, "torch.optim", id="the optimizers"),
    ],
)
def test_known(name: str, modules: list[str], read: set[str], expected: str) -> None:
    assert meaning(name, modules, read) == expected
