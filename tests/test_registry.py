"""Every rule is registered, named, documented and filtered as the others are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dpmigrate import docs
from dpmigrate.literals import TRAINING
from dpmigrate.model import Severity
from dpmigrate.rules import Rule, all_rules
from tests.pipeline import FIXTURES, cases, findings

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
    assert set(rule.literals) <= set(TRAINING)


def test_a_blocker_changes_nothing() -> None:
    assert not [f for c in cases() for f in findings(c.before, c.settings) if f.severity is Severity.BLOCKER and f.edits]


def test_the_reference_is_up_to_date() -> None:
    assert (Path(FIXTURES.parent) / "docs" / "rules.md").read_text(encoding="utf-8") == docs.markdown()


def test_a_page_is_found_by_code_and_name_in_any_case() -> None:
    assert docs.page("dpm301") == docs.page("sum-loss") == docs.page("SUM-LOSS")
    assert docs.page("DPM000") is None
