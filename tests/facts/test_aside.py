"""Functions that train and that the program does not use: they stay as they are, and keep nothing from being migrated."""

from __future__ import annotations

import pytest

from dpmigrate.rules import notes
from dpmigrate.settings import Settings
from tests.pipeline import findings, script
from tests.rules.program import after, program

_DEFS = """
def old_way(model, batches):
    optimizer = torch.optim.Adam(model.parameters())
    for x in batches:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
"""
_USED = [
    pytest.param(_DEFS, "print(old_way)", id="read"),
    pytest.param(_DEFS, "globals()['old_way'](model, [])", id="in a text"),
    pytest.param("def hook(f):\n    return f\n" + _DEFS.replace("def old_way", "@hook\ndef old_way"), "", id="decorated"),
    pytest.param(_DEFS, "old_way(model, loader)", id="called"),
    pytest.param(_DEFS, "globals()[f'{os.environ[\"HOW\"]}_way']", id="by a name that is made"),
    pytest.param(_DEFS, "getattr(os, os.environ['HOW'])", id="of a module, by a name that is made"),
    pytest.param(_DEFS, "os.__dict__[f'{model}']", id="in the names of a module"),
]


def _aside(defs: str, before: str = "") -> list[str]:
    return [f.name for f in script(program(defs=defs, before=before), Settings()).aside]


def test_a_way_to_train_that_nothing_uses_stays() -> None:
    assert after(defs=_DEFS) == []
    text = program(defs=_DEFS)
    told = notes(script(text, Settings()))
    assert [n for n in told if "trains as well" in n] == ["old_way (line 13) trains as well, and nothing in this program uses it: it stays as it is."]


@pytest.mark.parametrize(("defs", "before"), _USED)
def test_what_may_be_used_is_none(defs: str, before: str) -> None:
    assert _aside(defs, before) == []


@pytest.mark.parametrize("before", ["getattr(model, f'{model}')", "getattr(os, 'sep')", "model.eval()"])
def test_other_names_that_are_looked_up(before: str) -> None:
    assert _aside(_DEFS, before) == ["old_way"]


def test_a_method_of_that_name_is_no_use() -> None:
    assert _aside(_DEFS.replace("old_way", "train"), "model.train()") == ["train"]


def test_a_method_is_not_looked_at() -> None:
    defs = "class Old:\n" + "".join(f"    {line}\n" for line in _DEFS.strip().splitlines())
    assert _aside(defs.replace("(model, batches)", "(self, model, batches)")) == []


def test_the_only_way_to_train_is_no_such_function() -> None:
    text = f"import torch\n{_DEFS}"
    assert script(text, Settings()).aside == []
    assert {f.code for f in findings(text)} >= {"DPM909"}
