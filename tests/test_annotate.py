"""What is left to the user, written into the program as comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.annotate import annotated
from dpmigrate.edit import Comment
from dpmigrate.model import Finding, Outcome, Severity, Span, Status
from dpmigrate.program import Program
from dpmigrate.settings import Settings
from dpmigrate.source import Source, parse

TRAINING = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from elsewhere import criterion, data

net = nn.Linear(4, 2)
opt = torch.optim.{optimizer}(net.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=8, shuffle=True):
        def closure():
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            return loss
        {step}
"""
LEFT = TRAINING.format(optimizer="SGD", step="closure(); opt.step()")
REFUSED = TRAINING.format(optimizer="LBFGS", step="opt.step(closure)")


def comments(text: str, line: int, *, code: str = "DPM305", message: str = "what it is", advice: str = "") -> list[tuple[int, tuple[str, ...]]]:
    source = parse(text.encode(), "a.py")
    assert isinstance(source, Source)
    finding = Finding(code, Span(line, 0, line, 1), message, Severity.WARNING, advice=advice)
    edits = [edit for one in annotated(Program.of(source), [finding]) for edit in one.edits]
    return [(edit.stmt.line, edit.lines) for edit in edits if isinstance(edit, Comment)]


def applied(path: Path, text: str, **how: object) -> Outcome:
    path.write_text(text)
    [outcome] = engine.apply([path], Settings(unproven=True), engine.Writing(annotate=True, **how))  # type: ignore[arg-type]
    return outcome


@pytest.mark.parametrize(
    ("text", "line", "above"),
    [
        pytest.param("a = 1\nb = 2\n", 2, 2, id="a statement"),
        pytest.param("if a:\n    b = f(\n        1,\n    )\n", 3, 2, id="inside a statement of several lines"),
        pytest.param("if a: b = 1\n", 1, 1, id="a block on the line of its head"),
        pytest.param("a = 1; b = 2\n", 1, 1, id="a shared line"),
        pytest.param("x = 1\nif a:\n    b\nelif c:\n    d\n", 4, 2, id="nothing stands above an elif but the whole if"),
        pytest.param("@d\ndef f():\n    pass\n", 1, 2, id="a decorator"),
    ],
)
def test_the_comment_stands_above_the_statement_that_begins_the_line(text: str, line: int, above: int) -> None:
    assert comments(text, line) == [(above, ("# TODO(DPM305): what it is",))]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("# TODO(DPM305): what it is\na = 1\n", id="directly above"),
        pytest.param("if b:\n    # TODO(DPM305): what it is\n    # TODO(DPM302): another\n    a = 1\n", id="with another one between"),
    ],
)
def test_what_is_written_already_is_not_written_again(text: str) -> None:
    assert comments(text, len(text.splitlines())) == []


def test_another_comment_is_no_reason_to_be_silent() -> None:
    assert len(comments("# TODO(DPM305): what it was\na = 1\n", 2)) == 1


def test_long_words_are_wrapped_and_advice_follows() -> None:
    [(_, lines)] = comments("a = 1\n", 1, message="words " * 20, advice="do this")
    assert len(lines) == 2
    assert lines[0].startswith("# TODO(DPM305): words")
    assert lines[1].startswith("#   words")
    assert lines[1].endswith("; do this")


def test_a_migrated_program_tells_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    outcome = applied(path, LEFT)
    assert outcome.status is Status.CHANGED
    lines = path.read_text().splitlines()
    [place] = [n for n, line in enumerate(lines) if "TODO(DPM305)" in line]
    assert lines[place].startswith("            # ")
    assert next(line for line in lines[place:] if not line.lstrip().startswith("#")).strip() == "loss.backward()"
    assert applied(path, path.read_text()).status is Status.UNCHANGED


def test_a_refused_program_tells_what_stands_in_the_way_and_is_otherwise_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    outcome = applied(path, REFUSED)
    assert outcome.status is Status.REFUSED
    written = path.read_text()
    assert written == outcome.after
    assert "# TODO(DPM907): " in written
    assert [line for line in written.splitlines() if not line.lstrip().startswith("#")] == REFUSED.splitlines()
    again = applied(path, written)
    assert (again.status, again.after) == (Status.REFUSED, None)
    assert path.read_text() == written


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"write": False}, id="only shown"),
        pytest.param({"output": Path("other.py")}, id="another file would pass for a migrated program"),
    ],
)
def test_a_refused_program_is_not_written(tmp_path: Path, how: dict[str, object]) -> None:
    path = tmp_path / "a.py"
    if "output" in how:
        how = {"output": tmp_path / "other.py"}
    outcome = applied(path, REFUSED, **how)
    assert outcome.status is Status.REFUSED
    assert path.read_text() == REFUSED
    assert not (tmp_path / "other.py").exists()


def test_a_file_that_cannot_hold_the_comment_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmigrate.annotate._comment", lambda finding: ("# ⚠",))
    outcome = applied(tmp_path / "a.py", "# coding: ascii\n" + REFUSED)
    assert outcome.status is Status.FAILED
    assert outcome.problem is not None
    assert (tmp_path / "a.py").read_text() == "# coding: ascii\n" + REFUSED
