"""What comments ask to be left alone."""

from __future__ import annotations

import pytest

from dpmigrate.facts.suppressions import suppressions


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x = 1\n", id="no comment"),
        pytest.param("x = 1  # dpmigrate is good\n", id="another comment"),
        pytest.param("x = '# dpmigrate: ignore[DPM401]'\n", id="in a string"),
        pytest.param("# dpmigrate: ignore[DPM401]\nx = 1\n", id="on the line before"),
        pytest.param("def f():\n    pass\n    # dpmigrate: ignore\nx = 1\n", id="between blocks"),
        pytest.param("x = 1  # dpmigrate: ignore[DPM402]\n", id="another code"),
        pytest.param("y = 2\nx = 1\nz = 3  # dpmigrate: ignore\n", id="on another line"),
        pytest.param("# dpmigrate: ignored[DPM401]\n", id="another word"),
    ],
)
def test_nothing_is_left_alone(text: str) -> None:
    found = suppressions(text)
    assert not any(found.covers(line, "DPM401") for line in (1, 2)) and not found.whole_file


@pytest.mark.parametrize(
    "comment",
    [
        "# dpmigrate: ignore[DPM401]",
        "# dpmigrate: ignore",
        "#dpmigrate:ignore[dpm401]",
        "# dpmigrate: ignore[DPM205, DPM4]",
        "# noqa  # dpmigrate: ignore[DPM401]",
    ],
)
def test_one_line(comment: str) -> None:
    found = suppressions(f"x = 1  {comment}\ny = 2\n")
    assert found.covers(1, "DPM401") and not found.covers(2, "DPM401")


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_statement_of_several_lines_is_one(line: int) -> None:
    lines = ["save(", "    x,", ")"]
    lines[line - 1] += "  # dpmigrate: ignore[DPM401]"
    found = suppressions("\n".join(lines) + "\ny = 2\n")
    assert [found.covers(n, "DPM401") for n in (1, 2, 3, 4)] == [True] * 3 + [False]


def test_the_head_of_a_block_is_not_its_body() -> None:
    found = suppressions("for x in y:  # dpmigrate: ignore[DPM205]\n    z = 1\n")
    assert found.covers(1, "DPM205") and not found.covers(2, "DPM205")


def test_a_whole_file() -> None:
    assert suppressions("x = 1\n# dpmigrate: ignore-file\n").whole_file
    assert not suppressions("x = 1  # dpmigrate: ignore-file\n").whole_file
    assert not suppressions("x = 1  # dpmigrate: ignore-file\n").covers(1, "DPM401")


def test_codes_as_they_are_written() -> None:
    assert suppressions("x = 1  # dpmigrate: ignore[DPM401,XY]\ny = 2  # dpmigrate: ignore\n").written == ((1, "DPM401"), (1, "XY"))


def test_a_last_line_without_an_end() -> None:
    assert suppressions("x = 1  # dpmigrate: ignore").covers(1, "DPM401")
