"""Whole scripts, all rules on: what is found, what comes out, and what must hold for every result."""

from __future__ import annotations

import ast
import random
import re

import pytest

from dpmigrate import migration, rules
from dpmigrate.model import Problem, Severity
from dpmigrate.rewrite.apply import apply
from dpmigrate.rewrite.compose import compose
from dpmigrate.rewrite.verify import verify
from tests.pipeline import Case, blocked, cases, findings, migrate, planned, recorded, said, script

ALL = cases()
MIGRATED = [c for c in ALL if c.facts["expect"] == "migrate"]
each = pytest.mark.parametrize("case", ALL, ids=[c.name for c in ALL])
each_migrated = pytest.mark.parametrize("case", MIGRATED, ids=[c.name for c in MIGRATED])


def listed(text: str, case: Case) -> str:
    """findings.txt: a line each, and the reason where the program is exempt."""
    result = said(text, case.settings)
    lines = [f"exempt: {result.exempt}"] if result.exempt else []
    lines += [f"{f.span.line}:{f.span.col + 1} {f.code} {f.severity.value}{' fixed' if f.edits else ''}: {f.message}" for f in result.findings]
    return "".join(line + "\n" for line in lines)


def golden(case: Case, name: str, got: str | None, update: bool) -> None:
    """Compare with the file; with --update write it, and fail so that nobody takes the writing for a pass."""
    path = case.path / name
    want = path.read_bytes().decode() if path.exists() else None
    if got == want:
        return
    if update:
        if got is None:
            path.unlink()
        else:
            path.write_bytes(got.encode())
        pytest.fail(f"{path} was updated: review it with git diff")
    assert got == want


@each
def test_findings_are_as_recorded(case: Case, update: bool) -> None:
    golden(case, "findings.txt", listed(case.before, case), update)
    found = findings(case.before, case.settings)
    assert [(r.code, r.severity, r.fixed) for r in recorded(case)] == [(f.code, f.severity, bool(f.edits)) for f in found]


@each
def test_result_is_as_recorded(case: Case, update: bool) -> None:
    golden(case, "after.py", migrate(case.before, case.settings), update)


@each
def test_the_case_ends_as_expected(case: Case) -> None:
    """A fixture that is to be refused has a blocker, one with nothing to do says why, the others have a result."""
    result = said(case.before, case.settings)
    expected = case.facts["expect"]
    assert bool(blocked(result.findings)) == (expected == "refuse")
    assert bool(result.exempt) == (expected == "noop")
    assert (migrate(case.before, case.settings) is not None) == (expected == "migrate")


@each_migrated
def test_a_second_run_finds_nothing(case: Case) -> None:
    after = migrate(case.before, case.settings)
    assert after is not None
    after_said = said(after, case.settings)
    assert after_said.exempt.startswith("already uses the dpmigrate runtime (line ")
    assert after_said.findings == ()


@each_migrated
def test_self_checks_pass(case: Case) -> None:
    after = migrate(case.before, case.settings)
    assert after is not None
    assert verify(case.before, after, planned(case.before, case.settings)) == ()


@each_migrated
def test_the_checks_of_the_result_find_nothing(case: Case) -> None:
    """As the engine goes: what a check finds wrong is not written."""
    whole = script(case.before, case.settings)
    texts = migration.rewritten(whole, rules.check(whole))
    assert not isinstance(texts, Problem), texts.message
    assert list(texts.values()) == [migrate(case.before, case.settings)]


@each_migrated
def test_the_order_of_findings_does_not_matter(case: Case) -> None:
    found = list(findings(case.before, case.settings))
    plan, want = planned(case.before, case.settings), migrate(case.before, case.settings)
    for seed in range(3):
        random.Random(seed).shuffle(found)
        again = compose(found)
        assert again == plan or apply(case.before, again) == want


@each_migrated
def test_windows_newlines_are_kept(case: Case) -> None:
    unix = case.before.replace("\r\n", "\n")
    want = migrate(unix, case.settings)
    assert want is not None
    assert migrate(unix.replace("\n", "\r\n"), case.settings) == want.replace("\n", "\r\n")


@each_migrated
def test_tabs_are_kept(case: Case) -> None:
    """Indented with tabs the program is migrated to the same tree, without a space of indentation in inserted lines."""
    tabbed = re.sub(r"^(?: {4})+", lambda m: "\t" * (len(m[0]) // 4), case.before, flags=re.M)
    try:
        ast.parse(tabbed)
    except TabError:
        pytest.skip("continuation lines of this script mix tabs and spaces")
    got, want = migrate(tabbed, case.settings), migrate(case.before, case.settings)
    assert got is not None and want is not None
    if not re.search(r'"""|\'\'\'', case.before):
        assert ast.dump(ast.parse(got)) == ast.dump(ast.parse(want))
    added = set(got.splitlines()) - set(tabbed.splitlines())
    assert not [line for line in added if line.startswith("    ") and "ddp." in line and "(" not in line.split("ddp.")[0]]


def test_every_rule_fires_in_a_fixture() -> None:
    from dpmigrate.rules import all_rules

    seen = {f.code for c in ALL for f in recorded(c)}
    assert {r.code for r in all_rules()} - seen == set()


def test_every_severity_occurs() -> None:
    assert {f.severity for c in ALL for f in recorded(c)} == set(Severity)
