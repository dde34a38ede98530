"""Conditions on the items of a set, of which each rank has another order: as many meet them on every rank."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from tests.judge.trained import result

_NAMES = """\
import os, sys
names = {line.strip() for line in open(sys.argv[1])}
some = [os.getpid() % 9]
def own(name):
    return len(name) in some
"""


def _said(check: str) -> list[str]:
    """The check decides what training does."""
    return [f.words for f in judge.faults(result(top=_NAMES, step=f"{check}\n    x = 2 * x")) if "no mean over its samples" in f.words]


@pytest.mark.parametrize(
    "check",
    [
        "if sorted(n for n in names if not os.path.isfile(n)):",
        "if [n for n in names if n.startswith('a')]:",
        "if len([n for n in names if n > 'a' and len(n) > 3]) > 2:",
        "if {n for n in names if not os.path.isfile(n)}:",
        "if any(not os.path.isfile(n) for n in names):",
        "if not all(os.path.isfile(n) for n in names):",
        "if sum(1 for n in names if n > 'a') > 3:",
    ],
)
def test_as_many_on_every_rank(check: str) -> None:
    assert _said(check) == []


@pytest.mark.parametrize(
    "check",
    [
        "if [n for n in names if n.startswith('a')][0] == 'ab':",
        "if next(n for n in names if n.startswith('a')) == 'ab':",
        "if [n for n in names if len(n) in some]:",
        "if [n for n in names if own(n)]:",
        "if [n for n in list(names)[:3] if n.startswith('a')]:",
        "if any(n.startswith('a') for n in list(names)[:3]):",
        "if [n for n in names if [m for m in some if m == len(n)]]:",
    ],
)
def test_not_as_many_on_every_rank(check: str) -> None:
    assert _said(check) != []
