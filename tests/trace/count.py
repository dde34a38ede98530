"""Counts what kept records and the trace say of each other.

    RECORD_LINES=1 KEEP_RECORDS=records.jsonl pytest tests/trace/test_runs.py --all-runs
    python -m tests.trace.count records.jsonl

Beside the holes it counts the other direction: events of the trace at lines that ran, of a kind that
runs record, where nothing of it was recorded. These show what the engine takes for possible and did
not happen: a call under an ``if``, in a part of a line that was not come to, on another rank.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.trace import beside
from tests.trace.test_runs import ALL


def main(records: Path) -> None:
    """Print the numbers of a file of records."""
    runs, events, missing, noted, unseen = (Counter[str]() for _ in range(5))
    by_name = {c.name: c for c in ALL}
    for text in records.read_text(encoding="utf-8").splitlines():
        name, side, script, record = json.loads(text)
        runs[side] += 1
        with tempfile.TemporaryDirectory() as folder:
            beside.written(by_name[name], side, Path(folder))
            path = Path(folder) / script
            known = beside.noted(beside.traced(path), path)
            happened = beside.happened(record)
            found = beside.holes(happened, known)
            for line in beside.told(found, path):
                print(f"{name}, {side}: {line}")
        events.update(e.kind for e in happened)
        missing.update(e.kind for e in found)
        ran = {(file, line) for kind, file, line in record["places"] if kind == "line"}
        for kind, spoken in beside.SPOKEN.items():
            if len(spoken) > 1:
                continue  # the trace's kinds stand for several of the run's
            there = {(e.file, e.line) for e in happened if e.kind == kind}
            at = known.get(spoken[0], set()) & ran
            noted[kind] += len(at)
            unseen[kind] += len(at - there)
    print("runs", dict(runs))
    for kind in events:
        print(f"{kind}: {events[kind]} recorded, {missing[kind]} holes; {noted[kind]} lines noted that ran, {unseen[kind]} without a record")
    print(f"{events.total()} recorded, {missing.total()} holes; {noted.total()} noted that ran, {unseen.total()} without a record")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
