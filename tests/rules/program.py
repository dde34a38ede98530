"""Whole small training programs round a few lines: the rules speak only of programs that train.

``program(setup=…)`` puts the lines of a test into their place, ``found`` and ``after`` say what comes of them and of nothing else.
"""

from __future__ import annotations

import difflib
from collections import Counter
from functools import cache
from textwrap import dedent, indent

from dpmigrate.model import Finding, Severity
from dpmigrate.rewrite.apply import apply
from dpmigrate.rewrite.compose import compose
from dpmigrate.rewrite.verify import verify
from dpmigrate.settings import Settings
from tests.pipeline import blocked, findings, said

_IMPORTS = """\
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
"""
_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(x)
"""
_DATA = """\
train_set = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
val_set = TensorDataset(torch.randn(33, 8), torch.randint(0, 2, (33,)))
"""
STEP = """\
optimizer.zero_grad()
loss = F.cross_entropy(model(x), y)
loss.backward()
optimizer.step()
"""
#: an evaluation that is split over the ranks
COUNTING = """\
val_loader = DataLoader(val_set, batch_size=16)
correct = 0
with torch.no_grad():
    for a, b in val_loader:
        correct += (model(a).argmax(1) == b).sum().item()
print(correct)
"""


def program(
    *,
    imports: str = "",
    defs: str = "",
    top: str = "",
    net: str = _NET,
    data: str = _DATA,
    setup: str = "",
    loader: str = "loader = DataLoader(train_set, batch_size=16, shuffle=True)",
    model: str = "model = Net()",
    optimizer: str = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    before: str = "",
    epochs: str = "for epoch in range(3):",
    epoch_start: str = "",
    batches: str = "for x, y in loader:",
    step: str = STEP,
    epoch_end: str = "",
    end: str = "",
    module_level: bool = False,
) -> str:
    """A complete program. Every part can be replaced; ``setup`` stands before the loader, ``before`` before the epochs, ``end`` after them."""
    loop = [epochs, _in(epoch_start), _in(batches), _in(step, 8), _in(epoch_end)]
    body = "\n".join(filter(str.strip, [_flat(part) for part in (data, setup, loader, model, optimizer, before)] + loop + [_flat(end)]))
    start = body if module_level else f'def main():\n{indent(body, "    ")}\n\n\nif __name__ == "__main__":\n    main()'
    return "\n".join(filter(str.strip, [_IMPORTS.rstrip(), _flat(imports), _flat(net), _flat(defs), _flat(top), start])) + "\n"


def _flat(text: str) -> str:
    return dedent(text).strip("\n")


def _in(text: str, depth: int = 4) -> str:
    return indent(_flat(text), " " * depth)


def of(code: str, text: str, settings: Settings | None = None) -> list[Finding]:
    """The findings of one rule in a text."""
    return [f for f in findings(text, settings) if f.code == code]


def hits(code: str, settings: Settings | None = None, /, **parts: str | bool) -> list[Finding]:
    """The findings of one rule in the program of these parts."""
    return of(code, program(**parts), settings)  # type: ignore[arg-type]


def found(code: str, settings: Settings | None = None, /, **parts: str | bool) -> list[str]:
    """What one rule points at, as written; statements by their first line."""
    text = program(**parts)  # type: ignore[arg-type]
    return [pointed(text, f) for f in of(code, text, settings)]


def pointed(text: str, finding: Finding) -> str:
    """The source of a finding's span, its first line."""
    s = finding.span
    lines = text.splitlines()
    end = s.end_col if s.line == s.end_line else None
    return lines[s.line - 1].encode()[s.col : end].decode()


def refused(code: str, settings: Settings | None = None, /, **parts: str | bool) -> list[str]:
    """The blockers of one rule, as they point; they carry no edit."""
    text = program(**parts)  # type: ignore[arg-type]
    mine = [f for f in of(code, text, settings) if f.severity is Severity.BLOCKER]
    assert not any(f.edits for f in mine)
    return [pointed(text, f) for f in mine]


def migrated(text: str, settings: Settings | None = None) -> str:
    """The new text, after the self-checks that ``apply`` makes."""
    return _migrated(text, settings or Settings())


@cache
def _migrated(text: str, settings: Settings) -> str:
    all_found = findings(text, settings)
    stopped = blocked(all_found)
    assert not stopped, [f"{f.code} {f.message}" for f in stopped]
    plan = compose(all_found)
    new = apply(text, plan)
    assert verify(text, new, plan) == ()
    assert said(new, settings).exempt.startswith("already uses the dpmigrate runtime")
    return new


def _added(old: str, new: str) -> list[str]:
    return [line[1:].strip() for line in difflib.ndiff(_trim(old), _trim(new)) if line.startswith("+")]


@cache
def _usual(module_level: bool, settings: Settings | None) -> tuple[str, ...]:
    """The lines that are new after the migration of the plain program."""
    plain = program(module_level=module_level)
    return tuple(_added(plain, migrated(plain, settings)))


def _trim(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def after(settings: Settings | None = None, /, **parts: str | bool) -> list[str]:
    """The lines that are new after the migration and not so in the migration of the plain program, stripped, in order."""
    text = program(**parts)  # type: ignore[arg-type]
    usual = Counter(_usual(bool(parts.get("module_level", False)), settings))
    out = []
    for line in _added(text, migrated(text, settings)):
        if usual[line]:
            usual[line] -= 1
        else:
            out.append(line)
    return out


def whole(settings: Settings | None = None, /, **parts: str | bool) -> str:
    """The migrated program."""
    return migrated(program(**parts), settings)  # type: ignore[arg-type]
