"""DPM708: the process group is left behind in order."""

from __future__ import annotations

import pytest

from tests.rules.program import found, migrated, of, program, whole


def _before(line: str, **parts: str | bool) -> list[str]:
    """What stands before each such line."""
    lines = [one.strip() for one in whole(**parts).splitlines()]
    return [lines[i - 1] for i, one in enumerate(lines) if one == line]


def test_at_the_end_of_the_guard_and_of_the_module() -> None:
    assert whole().endswith("    main()\n    ddp.cleanup()\n")
    assert whole(module_level=True, end="print('done')").endswith("\nprint('done')\nddp.cleanup()\n")


def test_nothing_where_nothing_starts() -> None:
    assert of("DPM708", "import torch\ndef f(loss):\n    loss.backward()\n") == []


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        pytest.param("import sys", "sys.exit()", id="sys.exit"),
        pytest.param("import sys", "sys.exit(0)", id="sys.exit(0)"),
        pytest.param("from sys import exit as leave", "leave(None)", id="from-import with alias"),
        pytest.param("", "quit()", id="quit"),
    ],
)
def test_exits_on_the_way(imports: str, line: str) -> None:
    """In a function above the guard as well as at module level."""
    setup = f"if os.environ.get('A'):\n    {line}"
    assert line in found("DPM708", imports=imports, setup=setup)
    assert _before(line, imports=imports, setup=setup) == ["ddp.cleanup()"]
    assert _before(line, imports=imports, setup=setup, module_level=True) == ["ddp.cleanup()"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("sys.exit(1)", id="an error"),
        pytest.param("sys.exit('no data')", id="a message"),
        pytest.param("x = sys.exit", id="not called"),
        pytest.param("print('sys.exit()')  # sys.exit()", id="in a string and a comment"),
    ],
)
def test_other_ends_stay(line: str) -> None:
    assert found("DPM708", imports="import sys", setup=f"if os.environ.get('A'):\n    {line}") == ["main()"]


def test_an_exit_in_a_handler() -> None:
    assert found("DPM708", imports="import sys", setup="try:\n    pass\nexcept ValueError:\n    sys.exit()") == ["main()"]


def test_an_exit_in_a_method() -> None:
    assert "sys.exit()" in found("DPM708", imports="import sys", defs="class T:\n    def stop(self):\n        sys.exit()")


def test_an_exit_that_ends_the_program() -> None:
    text = program(imports="import sys") + "    sys.exit(0)\n"
    assert migrated(text).endswith("    main()\n    ddp.cleanup()\n    sys.exit(0)\n")


def test_an_exit_above_the_start() -> None:
    """While the imports last there is no group yet."""
    text = program(module_level=True, imports="import sys\nif sys.version_info < (3, 8):\n    sys.exit()\nimport math", defs="print(3)")
    assert "sys.exit()" in migrated(text)


@pytest.mark.parametrize(
    ("end", "result"),
    [
        pytest.param("sys.exit(main())", "sys.exit(status)", id="sys.exit"),
        pytest.param("raise SystemExit(main())", "raise SystemExit(status)", id="raise SystemExit"),
        pytest.param("exit(main())", "exit(status)", id="exit"),
    ],
)
def test_an_exit_that_is_the_program(end: str, result: str) -> None:
    text = program(imports="import sys").replace("    main()\n", f"    {end}\n")
    assert migrated(text).endswith(f"    ddp.setup()\n    status = main()\n    ddp.cleanup()\n    {result}\n")


def test_the_new_name_is_free() -> None:
    text = program(imports="import sys\nstatus = 3").replace("    main()\n", "    sys.exit(main())\n")
    assert migrated(text).endswith("    status_2 = main()\n    ddp.cleanup()\n    sys.exit(status_2)\n")


@pytest.mark.parametrize("end", [pytest.param("raise SystemExit", id="without a call"), pytest.param("raise SystemExit()", id="without an argument")])
def test_a_plain_system_exit_at_the_end(end: str) -> None:
    assert migrated(program() + f"    {end}\n").endswith(f"    main()\n    ddp.cleanup()\n    {end}\n")
