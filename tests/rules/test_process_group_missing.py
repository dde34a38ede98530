"""DPM701: the process group is set up first."""

from __future__ import annotations

import pytest

from tests.rules.program import found, migrated, of, program, whole


def _after_setup(text: str) -> str:
    lines = [one.strip() for one in migrated(text).splitlines()]
    return lines[lines.index("ddp.setup()") + 1]


def test_nothing_where_nothing_starts() -> None:
    assert of("DPM701", "import torch\ndef f(loss):\n    loss.backward()\n") == []


def test_nothing_in_the_result() -> None:
    assert of("DPM701", whole()) == []


def test_first_in_the_guard() -> None:
    assert found("DPM701") == ['if __name__ == "__main__":']
    assert _after_setup(program()) == "main()"


@pytest.mark.parametrize(
    ("top", "first"),
    [
        pytest.param("", "train_set = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))", id="data"),
        pytest.param("SEED = 'ddp.setup()'  # ddp.setup()", "SEED = 'ddp.setup()'  # ddp.setup()", id="a setting; in a string and a comment"),
        pytest.param("torch.manual_seed(3)", "torch.manual_seed(3)", id="a seed"),
    ],
)
def test_at_module_level(top: str, first: str) -> None:
    assert _after_setup(program(top=top, module_level=True)) == first


def test_work_at_module_level_before_the_guard() -> None:
    text = program(top="torch.manual_seed(3)")
    assert _after_setup(text) == "torch.manual_seed(3)"
    assert migrated(text).endswith("    main()\n    ddp.cleanup()\n")


def test_the_import_is_added_once() -> None:
    assert whole().count("import dpmigrate_runtime as ddp") == 1


def test_a_program_that_uses_the_short_name() -> None:
    text = whole(setup="ddp = 3")
    assert "import dpmigrate_runtime\n" in text and "dpmigrate_runtime.setup()" in text
