"""The command that says what the engine says."""

from __future__ import annotations

import pytest

from tests.library.say import known, said


@pytest.mark.parametrize(
    ("expression", "end"),
    [
        ("torch.sum(input=x)", "partial(sum), 0 axes: holds"),
        ("x.sort(0)[0]", "per rank, 2 axes: holds"),
        ("torch.randn_like(x)", "drawn, so not compared"),
        ("torch.sum(q)", "does not run: NameError: name 'q' is not defined"),
    ],
)
def test_what_is_said(expression: str, end: str) -> None:
    assert said(expression).startswith(f"{expression}: ") and said(expression).endswith(end)


def test_what_does_not_hold_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.library.say.claimed", lambda _, axes: claimed_of_another(axes))
    assert ": BROKEN at 2 ranks: " in said("x.sort(0)[0]")


def claimed_of_another(axes: bool) -> object:
    from tests.library.sharded import claimed

    return claimed("x.sort(1)[0]", axes=axes)


def test_whether_a_name_has_a_row() -> None:
    assert [known(n) for n in ("torch.renorm", "sum", "torch.no_such")] == ["torch.renorm: has a row", "sum: has a row", "torch.no_such: has no row"]
