"""Outcomes for programs: one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dpmigrate import __version__
from dpmigrate.model import Finding, Outcome, left
from dpmigrate.report.text import column, split


def document(outcomes: Sequence[Outcome]) -> str:
    """All outcomes, one a program: by its script, with the files that change and what is found in each of them.

    Lines and columns from 1, columns in characters, ``end_column`` exclusive. ``fixed``: apply changes it; ``left``: it is left to the user.
    """
    from dpmigrate.rules import all_rules

    names = {r.code: r.name for r in all_rules()}
    files = [_file(o, names) for o in outcomes]
    summary: dict[str, int] = {}
    for o in outcomes:
        summary[o.status.value] = summary.get(o.status.value, 0) + 1
    return json.dumps({"version": __version__, "files": files, "summary": summary}, ensure_ascii=True, indent=1) + "\n"


def _file(o: Outcome, names: dict[str, str]) -> dict[str, Any]:
    problem = None if o.problem is None else {"message": o.problem.message, "line": o.problem.line, "column": o.problem.col}
    return {
        "path": o.path,
        "status": o.status.value,
        "reason": o.reason,
        "problem": problem,
        "notes": list(o.notes),
        "module": o.module or None,
        "unread": [{"path": path, "message": problem.message} for path, problem in o.unread],
        "starts": [{"path": s.path, "line": s.line, "command": s.command} for s in o.starts],
        "findings": [_finding(f, names, file.path, split(file.before)) for file in o.files for f in file.findings],
        "changed": list(o.changed),
    }


def _finding(f: Finding, names: dict[str, str], path: str, lines: list[str]) -> dict[str, Any]:
    first = lines[f.span.line - 1] if f.span.line <= len(lines) else ""
    last = lines[f.span.end_line - 1] if f.span.end_line <= len(lines) else ""
    return {
        "path": path,
        "code": f.code,
        "name": names.get(f.code, ""),
        "severity": f.severity.value,
        "line": f.span.line,
        "column": column(first, f.span.col),
        "end_line": f.span.end_line,
        "end_column": column(last, f.span.end_col),
        "message": f.message,
        "fix": f.fix.value,
        "fixed": bool(f.edits),
        "left": bool(left((f,))),
        "advice": f.advice,
    }
