"""DPM104: GPUs are chosen by the launch command."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits

_NAME = "CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(f"print(os.environ['{_NAME}'])", id="read"),
        pytest.param("os.environ['OMP_NUM_THREADS'] = '1'", id="another variable"),
        pytest.param(f"print(\"os.environ['{_NAME}'] = '0'\")  # os.environ['{_NAME}'] = '0'", id="in a string and a comment"),
        pytest.param(f"d = {{}}\nd['{_NAME}'] = '0'", id="another dict"),
        pytest.param(f"import lib\nlib.environ['{_NAME}'] = '0'", id="another library's"),
        pytest.param("key = str(1)\nos.environ[key] = '0'", id="a name that is not written out"),
        pytest.param("os.environ.setdefault('A', '0')\nos.putenv(key, '1')", id="another default"),
        pytest.param(f"x = os.environ.setdefault('{_NAME}', '0')", id="part of a larger expression"),
        pytest.param(f"x = os.environ['{_NAME}'] = '0'", id="two targets"),
        pytest.param("os.environ.setdefault()", id="nothing set"),
        pytest.param("os.environ.update(A='1')\nos.environ.update({'A': '1', **extra})\nos.environ.update(extra, **extra)", id="other variables"),
    ],
)
def test_nothing_to_say(setup: str) -> None:
    assert found("DPM104", defs="key, extra = 'a', {}", setup=setup) == []


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        pytest.param("", f"os.environ['{_NAME}'] = '0,1'", id="item"),
        pytest.param("from os import environ as env", f"env['{_NAME}'] = str(1)", id="from-import with alias"),
        pytest.param("", f"os.environ.setdefault('{_NAME}', '0')", id="setdefault"),
        pytest.param("", f"os.putenv('{_NAME}', '0')", id="putenv"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_taken_out(imports: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "setup": line, "module_level": module_level}
    assert found("DPM104", **parts) == [line]
    assert after(**parts) == []


def test_in_a_method_and_under_a_test() -> None:
    defs = f"class T:\n    def choose(self, n):\n        if n:\n            os.environ['{_NAME}'] = n"
    assert found("DPM104", defs=defs) == [f"os.environ['{_NAME}'] = n"]
    assert after(defs=defs) == ["pass"]


def test_the_user_hears_of_it() -> None:
    [hit] = hits("DPM104", setup=f"os.environ['{_NAME}'] = '0,1'")
    assert hit.advice.startswith(f"os.environ['{_NAME}'] = '0,1' is gone: set CUDA_VISIBLE_DEVICES in the shell")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(f"os.environ.update({{'{_NAME}': '0', 'A': '1'}})", "os.environ.update({'A': '1'})", id="a dict"),
        pytest.param(f"os.environ.update({_NAME}='0', A='1')", "os.environ.update(A='1')", id="keywords"),
    ],
)
def test_taken_out_of_an_update(line: str, expected: str) -> None:
    assert after(setup=line) == [expected]


_MANY = "batch_size = 8 * {count}"
_COUNT = "torch.cuda.device_count()"


@pytest.mark.parametrize(
    ("setup", "new"),
    [
        pytest.param(f"os.environ['{_NAME}'] = '0'\n{_MANY.format(count=_COUNT)}", "batch_size = 8 * 1", id="one"),
        pytest.param(f"os.environ['{_NAME}'] = '0,3'\n{_MANY.format(count=_COUNT)}", "batch_size = 8 * 2", id="two"),
        pytest.param(f"os.environ.update({_NAME}='1')\nn = {_COUNT}\n{_MANY.format(count='n')}", "n = 1", id="through a variable"),
        pytest.param(f"os.environ.update({{'{_NAME}': '1'}})\nlr = 0.1\nlr *= max(1, {_COUNT})", "lr *= max(1, 1)", id="a learning rate"),
    ],
)
def test_what_is_multiplied_by_the_gpus_that_were_chosen(setup: str, new: str) -> None:
    assert new in after(setup=setup)


@pytest.mark.parametrize(
    "choice",
    [
        pytest.param(f"os.environ['{_NAME}'] = sys.argv[1]", id="an option"),
        pytest.param(f"if len(sys.argv) > 1:\n    os.environ['{_NAME}'] = '0,1'\nelse:\n    os.environ['{_NAME}'] = '0'", id="one of two"),
        pytest.param(f"os.environ.setdefault('{_NAME}', '0')", id="unless it is set"),
        pytest.param(f"if len(sys.argv) > 1:\n    os.environ['{_NAME}'] = '0'", id="under a test"),
        pytest.param(f"os.environ['{_NAME}'] = '-1'", id="none of them"),
        pytest.param(f"os.environ['{_NAME}'] = '0'\nos.environ['{_NAME}'] = '0,1'", id="two choices"),
    ],
)
def test_how_many_were_chosen_may_not_be_known(choice: str) -> None:
    told = [h for h in hits("DPM104", imports="import sys", setup=f"{choice}\n{_MANY.format(count=_COUNT)}") if not h.edits]
    assert ["counted the GPUs that the program had chosen" in h.message for h in told] == [True]


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(_MANY.format(count=_COUNT), id="no choice"),
        pytest.param(f"os.environ['{_NAME}'] = '0'\nprint({_COUNT} > 1)", id="asked for"),
        pytest.param(f"os.environ['{_NAME}'] = '0'\nnames = ['a'] * {_COUNT}", id="a list"),
    ],
)
def test_a_count_of_gpus_that_stays(setup: str) -> None:
    assert not [h for h in hits("DPM104", setup=setup) if "counted the GPUs" in h.message]


@pytest.mark.parametrize(
    ("read", "told"),
    [
        pytest.param("os.environ['CUDA_VISIBLE_DEVICES'].split(',')", True, id="it has to be there"),
        pytest.param("os.environ.get('CUDA_VISIBLE_DEVICES', '0')", False, id="it may be missing"),
        pytest.param("os.environ['HOME']", False, id="another one"),
    ],
)
def test_the_user_hears_that_it_is_read(read: str, told: bool) -> None:
    (hit,) = hits("DPM104", imports="import os", setup=f"os.environ['{_NAME}'] = '0,1'\nprint({read})")
    assert hit.advice.endswith("; the program reads it later, and stops where it is not set") is told
