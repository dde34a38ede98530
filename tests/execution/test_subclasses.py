"""``issubclass`` of what a loop takes out of a module: what it lets through is known by its class."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.execution.values import Const, Foreign, Ref
from tests.execution.paper import executed, executed_files, held

_CLASSES = """
import torch
class Base:
    pass
class One(Base):
    pass
class Two(One):
    pass
def helper():
    return 1
"""


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("issubclass(One, Base)", True),
        ("issubclass(Two, Base)", True),
        ("issubclass(Base, Base)", True),
        ("issubclass(Base, One)", False),
        ("issubclass(torch.nn.Linear, Base)", False),
        ("issubclass(One, (int, Two))", None),
        ("issubclass(One, torch.nn.Module)", None),
    ],
)
def test_what_is_known(asked: str, answer: bool | None) -> None:
    found = held(executed(f"{_CLASSES}out = {asked}\n"), "out")
    assert [a.value for a in found if isinstance(a, Const)] == ([] if answer is None else [answer])


_NAMED = """
import inspect
import kinds
from kinds import Base
chosen = None
for key, one in {over}:
    if {test}:
        chosen = one
"""


@pytest.mark.parametrize("over", ["vars(kinds).items()", "kinds.__dict__.items()", "inspect.getmembers(kinds)", "inspect.getmembers(kinds, inspect.isclass)"])
@pytest.mark.parametrize("test", ["issubclass(one, Base)", "key.lower() == input() and issubclass(one, Base)"])
def test_what_a_module_holds(over: str, test: str, tmp_path: Path) -> None:
    """Neither the function nor the module torch, which are no classes."""
    ex = executed_files({"kinds.py": _CLASSES, "train.py": _NAMED.format(over=over, test=test)}, tmp_path)
    found = [ex.heap.objects[a.object] for a in held(ex, "chosen") if isinstance(a, Ref)]
    assert {o.name for o in found} >= {"One", "Two"}
    assert {o.kind for o in found} == {"class"} and not any(isinstance(a, Foreign) for a in held(ex, "chosen"))
