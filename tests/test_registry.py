"""Every rule is registered, named, documented and filtered as the others are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpmigrate import docs
from dpmigrate.facts.script import Script
from dpmigrate.literals import BY_NAME, SIGNS, TRAINING
from dpmigrate.model import Fix, Severity
from dpmigrate.rules import Rule, all_rules, notes, wanted
from dpmigrate.rules._base import Hit
from dpmigrate.rules._base import rule as register
from dpmigrate.settings import Settings
from tests.pipeline import FIXTURES, cases, recorded, script
from tests.rules.program import COUNTING, program

RULES = all_rules()
each = pytest.mark.parametrize("rule", RULES, ids=[r.name for r in RULES])
SECTIONS = ["## What it finds", "## Why it matters", "## Example", "## When it is not fixed"]


def test_codes_are_unique_and_well_formed() -> None:
    codes = [r.code for r in RULES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"DPM\d{3}", c) for c in codes)


@each
def test_the_file_is_named_as_the_function(rule: Rule) -> None:
    assert rule.run.__module__ == f"dpmigrate.rules.{rule.name.replace('-', '_')}"


@each
def test_the_page_has_its_sections(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    assert re.findall(r"^## .*$", rule.page, re.M) == SECTIONS


@each
def test_the_examples_are_python(rule: Rule) -> None:
    blocks = re.findall(r"```python\n(.*?)```", rule.page, re.S)
    assert blocks
    for block in blocks:
        ast.parse(block)


@each
def test_the_filter_lets_the_rules_files_through(rule: Rule) -> None:
    assert set(rule.literals) <= {*TRAINING, *BY_NAME, *SIGNS}


def test_a_rule_speaks_only_of_texts_with_its_literals() -> None:
    by_code = {r.code: r for r in RULES}
    for case in cases():
        for code in {f.code for f in recorded(case)}:
            assert any(literal in case.before.encode() for literal in by_code[code].literals), (case.name, code)


def test_every_rule_has_its_tests_and_every_test_file_a_rule() -> None:
    files = {p.stem.removeprefix("test_") for p in (Path(__file__).parent / "rules").glob("test_*.py")}
    assert files == {r.name.replace("-", "_") for r in RULES}


def test_a_code_is_given_once() -> None:
    def another(script: Script) -> Iterator[Hit]:
        yield from ()

    with pytest.raises(ValueError, match=r"DPM101 is taken by data-parallel-wrap"):
        register("DPM101", severity=Severity.NOTE)(another)
    assert {r.code: r.name for r in all_rules()}["DPM101"] == "data-parallel-wrap"


@pytest.mark.parametrize("rule", [r for r in RULES if r.severity is Severity.BLOCKER], ids=lambda r: r.name)
def test_a_rule_that_refuses_promises_no_fix(rule: Rule) -> None:
    assert rule.fix is Fix.NONE


def test_core_rules_cannot_be_left_out() -> None:
    """Half a migration is a wrong program."""
    s = script(program(end="torch.load('a')"), Settings(ignore=("DPM",)))
    assert {r.code for r in RULES if wanted(r, s)} == {r.code for r in RULES if r.core or r.refusal}
    s = script(program(), Settings(select=("DPM4",)))
    assert {r.code for r in RULES if wanted(r, s)} == {r.code for r in RULES if r.core or r.refusal or r.code.startswith("DPM4")}


def test_the_notes_say_what_changes_in_meaning() -> None:
    text = program(end=COUNTING + "for x, y in val_loader:\n    print(model(x))\n")
    said = " ".join(notes(script(text)))
    assert "stays the global batch" in said and "1 loop is split" in said and "1 loop runs in full" in said and "autocast" not in said
    said = " ".join(notes(script(text, Settings(amp=True, batch="per-rank"))))
    assert "the global batch grows" in said and "autocast (float16) with a GradScaler" in said
    assert "(bfloat16)." in " ".join(notes(script(text, Settings(amp=True, amp_dtype="bfloat16"))))
    assert not any("Evaluation" in line for line in notes(script(program())))
    assert "in their order" not in said
    shuffled = program(end=COUNTING.replace("batch_size=16", "batch_size=16, shuffle=True"))
    assert any("a loader that shuffles goes through its samples in their order" in line for line in notes(script(shuffled)))


def test_the_notes_name_what_makes_the_batches_and_is_not_read() -> None:
    lines = notes(script(program(imports="from data.sets import make_loader", loader="loader = make_loader(train_set)")))
    assert any("The code of data.sets.make_loader" in line for line in lines)
    assert not any("is not read" in line for line in notes(script(program())))
    lines = notes(script(program(imports="from torch_geometric.loader import DataLoader as Graphs", loader="loader = Graphs(train_set, 8)")))
    assert not any("is not read" in line for line in lines)


_MAYBE = "several = torch.cuda.device_count() > 1\nmodel = Net()\nif several:\n    model = nn.DataParallel(model)"

_ATTACKED = """
hits = 0
for x, y in DataLoader(val_set, LOADER):
    x.requires_grad_()
    F.cross_entropy(model(x), y).backward()
    STEP
    hits += (model(x + x.grad.sign()).argmax(1) == y).sum().item()
print(hits / 33)
"""


@pytest.mark.parametrize(
    ("loader", "step", "said"),
    [
        ("batch_size=16", "pass", True),
        ("batch_size=16, drop_last=True", "pass", False),
        ("batch_size=16", "optimizer.step()", False),
    ],
)
def test_a_loop_that_goes_backward_to_measure_may_repeat_samples(loader: str, step: str, said: bool) -> None:
    lines = notes(script(program(end=_ATTACKED.replace("LOADER", loader).replace("STEP", step))))
    assert any("goes backward and steps no optimizer" in line for line in lines) is said


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        pytest.param({}, False, id="no DataParallel"),
        pytest.param({"model": "model = nn.DataParallel(Net())"}, True, id="keys of the wrapper"),
        pytest.param({"model": "model = Net()\nif torch.cuda.is_available():\n    model = nn.DataParallel(model)"}, True, id="of a wrap under a test"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "torch.save(model.module.state_dict(), 'm.pt')"}, False, id="keys of the model"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "torch.save(optimizer.state_dict(), 'm.pt')"}, False, id="of an optimizer"),
        pytest.param({"model": _MAYBE, "end": "if several:\n    torch.save(model.module.state_dict(), 'm.pt')\nelse:\n    torch.save(model.state_dict(), 'm.pt')"}, False, id="taken off in a branch"),
        pytest.param({"model": _MAYBE, "end": "torch.save((model.module if several else model).state_dict(), 'm.pt')"}, False, id="taken off before"),
        pytest.param({"model": _MAYBE, "end": "torch.save(model.module.state_dict() if several else model.state_dict(), 'm.pt')"}, False, id="taken off in an expression"),
        pytest.param({"model": _MAYBE, "end": "torch.save(model.module.state_dict(), 'a.pt')\ntorch.save(model.state_dict(), 'b.pt')"}, True, id="one of two files"),
    ],
)
def test_the_notes_say_what_can_load_a_checkpoint(parts: dict[str, Any], said: bool) -> None:
    text = program(**{"end": "torch.save(model.state_dict(), 'm.pt')", **parts})
    assert any(line.startswith("Checkpoints: the keys have no module.") for line in notes(script(text))) is said


def test_a_blocker_changes_nothing() -> None:
    assert not [c.name for c in cases() for f in recorded(c) if f.severity is Severity.BLOCKER and f.fixed]


def test_the_reference_is_up_to_date() -> None:
    assert (Path(FIXTURES.parent) / "docs" / "rules.md").read_text(encoding="utf-8") == docs.markdown()


def test_a_page_is_found_by_code_and_name_in_any_case() -> None:
    assert docs.page("dpm301") == docs.page("sum-loss") == docs.page("SUM-LOSS")
    assert docs.page("DPM000") is None
