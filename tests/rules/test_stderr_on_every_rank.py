"""DPM501: lines that go past what silences the other ranks."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": STEP + "print(loss.item(), end='\\r')"}, id="print"),
        pytest.param({"imports": "import sys", "step": STEP + "sys.stdout.write('x')"}, id="stdout, which set-up replaces"),
        pytest.param({"imports": "import sys", "setup": "print('x', file=sys.stderr)"}, id="before the training"),
        pytest.param({"imports": "import sys", "defs": "def say():\n    sys.stderr.write('x')"}, id="in a function that no loop calls"),
        pytest.param(
            {"imports": "import sys", "epoch_end": "try:\n    os.stat('a')\nexcept OSError as e:\n    print(e, file=sys.stderr)"}, id="an error message"
        ),
        pytest.param({"imports": "from lib import sys", "step": STEP + "sys.stderr.write('x')"}, id="another library's"),
        pytest.param({"defs": "f = open('a')", "step": STEP + "print(3, file=f)"}, id="a file"),
        pytest.param({"imports": "import sys", "step": STEP + "n = sys.stderr.write('x')"}, id="part of a larger statement"),
        pytest.param({"imports": "import sys", "step": STEP + "sys.stderr.flush()"}, id="nothing written"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM501", **parts) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("import sys", "sys.stderr.write('x')", id="write"),
        pytest.param("import sys", "print(3, file=sys.stderr)", id="print"),
        pytest.param("from sys import stderr as err", "err.writelines(['x'])", id="from-import with alias"),
        pytest.param("from sys import stdout", "stdout.write('x')", id="a stdout that was taken before"),
        pytest.param("from sys import stdout", "print('x', file=stdout)", id="the same by print"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_guarded(imports: str, call: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "epoch_end": call, "module_level": module_level}
    assert found("DPM501", **parts) == [call]
    assert after(**parts) == ["if ddp.is_main():"]


def test_in_a_helper_that_the_loop_calls() -> None:
    defs = "import sys\nclass Bar:\n    def show(self, i):\n        sys.stderr.write(f'{i}')\n\nbar = Bar()"
    assert found("DPM501", defs=defs, step=STEP + "bar.show(3)") == ["sys.stderr.write(f'{i}')"]
