"""The comparison finds a hole: it is held against a trace that lacks something."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.execution.engine import Execution
from dpmigrate.library.effects import none
from dpmigrate.library.registry import FUNCTIONS
from dpmigrate.library.sites import Row
from tests.trace import beside
from tests.trace.beside import Happened

PARTS = """\
import torch


def saved(model):
    torch.save(
        model.state_dict(),
        "last.pt",
    )
"""
PROGRAM = """\
import os
import torch
from torch.utils.data import DataLoader, TensorDataset
from parts import saved

model = torch.nn.Linear(3, 1)
loader = DataLoader(TensorDataset(torch.ones(4, 3)), 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
print("done")
saved(model)
if os.fork() == 0:
    print("a process of its own")
    os._exit(0)
os.wait()
"""
WHOLE = [
    Happened("backward", "train.py", 12),
    Happened("batch", "train.py", 9),
    Happened("forward", "train.py", 11),
    Happened("loader", "train.py", 7),
    Happened("optimizer", "train.py", 8),
    Happened("pass", "train.py", 9),
    Happened("print", "train.py", 14),
    Happened("save", "parts.py", 5),
    Happened("step", "train.py", 13),
    Happened("write", "parts.py", 5),
    Happened("zero grad", "train.py", 10),
]


@pytest.fixture(scope="module")
def run(_forked_python: Path | None, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Happened], Path]:
    folder = tmp_path_factory.mktemp("beside") / "program"
    folder.mkdir()
    script = folder / "train.py"
    script.write_text(PROGRAM)
    (folder / "parts.py").write_text(PARTS)
    with pytest.MonkeyPatch.context() as patch:
        if _forked_python is not None:
            patch.setattr("sys.executable", str(_forked_python))
        ran = beside.recorded(script, folder, 0)
    assert ran.code == 0 and ran.records, ran.stderr
    return beside.happened(ran.records[0]), script


def test_what_happens_is_recorded_at_the_lines_of_the_program(run: tuple[list[Happened], Path]) -> None:
    assert run[0] == WHOLE


def test_nothing_is_missing_in_the_trace(run: tuple[list[Happened], Path]) -> None:
    events, script = run
    assert beside.holes(events, beside.noted(beside.traced(script), script)) == []


@pytest.mark.parametrize("gone", sorted({e.kind for e in WHOLE}))
def test_an_event_that_is_taken_out_of_the_trace_is_a_hole(gone: str, run: tuple[list[Happened], Path]) -> None:
    events, script = run
    execution = _without(beside.traced(script), beside.SPOKEN[gone])
    found = beside.holes(events, beside.noted(execution, script))
    assert [e for e in found if e.kind == gone] == [e for e in events if e.kind == gone] != []


def _without(execution: Execution, kinds: tuple[str, ...]) -> Execution:
    trace = execution.trace
    trace.events = {k: e for k, e in trace.events.items() if e.kind not in kinds}
    return execution


def test_a_hole_is_told_with_its_line(run: tuple[list[Happened], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    events, script = run
    monkeypatch.setitem(FUNCTIONS, "torch.save", Row("torch.save", none))
    monkeypatch.setitem(FUNCTIONS, "builtins.print", Row("builtins.print", none))
    found = beside.holes(events, beside.noted(beside.traced(script), script))
    assert list(beside.told(found, script)) == [
        'print at train.py:14: print("done")',
        "save at parts.py:5: torch.save(",
        "write at parts.py:5: torch.save(",
    ]


def test_events_lie_on_the_head_of_a_statement_and_on_all_lines_of_a_call(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("for x in (\n    [1, 2]\n):\n    print(\n        x,\n    )\n")
    known = beside.noted(beside.traced(script), script)
    assert known["loop"] == {("train.py", n) for n in (1, 2, 3)}
    assert known["print"] == {("train.py", n) for n in (4, 5, 6)}
