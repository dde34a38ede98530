"""DPM704: what torchrun tells each process is not set by the script."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("port = os.environ.get('MASTER_PORT')", id="read"),
        pytest.param("os.environ['OMP_NUM_THREADS'] = '1'", id="another variable"),
        pytest.param("print('os.environ[\"RANK\"] = 0')  # os.environ['RANK'] = '0'", id="in a string and a comment"),
        pytest.param("d = {}\nd['MASTER_PORT'] = '0'", id="another dict"),
        pytest.param("os.environ.update({'A': '1'}, B='2')", id="other variables at once"),
    ],
)
def test_nothing_to_say(setup: str) -> None:
    assert found("DPM704", setup=setup) == []


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        pytest.param("", "os.environ['MASTER_ADDR'] = 'localhost'", id="address"),
        pytest.param("", "os.environ['MASTER_PORT'] = str(12355)", id="port"),
        pytest.param("from os import environ as env", "env['RANK'] = '0'", id="from-import with alias"),
        pytest.param("", "os.environ.setdefault('WORLD_SIZE', '1')", id="setdefault"),
        pytest.param("", "os.putenv('LOCAL_RANK', '0')", id="putenv"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_taken_out(imports: str, line: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "setup": line, "module_level": module_level}
    assert found("DPM704", **parts) == [line]
    assert after(**parts) == []


def test_taken_out_of_an_update() -> None:
    line = "os.environ.update({'MASTER_ADDR': 'a', 'MASTER_PORT': '1', 'B': '2'})"
    assert len(found("DPM704", setup=line)) == 2
    assert after(setup=line) == ["os.environ.update({'B': '2'})"]
    assert after(setup="os.environ.update(RANK='0')") == ["os.environ.update()"]
