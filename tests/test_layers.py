"""What may import what: the table of docs/design.md, held against the imports."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: what runs in the user's process and not in the tool's
CHILDREN = set((ROOT / "dpmigrate" / "verify" / "inject").rglob("*.py"))
TOOL = sorted(set((ROOT / "dpmigrate").rglob("*.py")) - CHILDREN)
RUNTIME = sorted((ROOT / "runtime").rglob("*.py"))


@cache
def imported(path: Path) -> set[str]:
    """Every module that the file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {node.module or ""} | {f"{node.module}.{a.name}" for a in node.names}
    return found


def of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", TOOL, ids=of)
def test_the_tool_knows_neither_torch_nor_the_runtime(path: Path) -> None:
    assert not {m for m in imported(path) if m.split(".")[0] in ("torch", "dpmigrate_runtime", "numpy")}


@pytest.mark.parametrize("path", TOOL, ids=of)
def test_foreign_packages_stay_in_their_rooms(path: Path) -> None:
    roots = {m.split(".")[0] for m in imported(path)}
    room = path.relative_to(ROOT / "dpmigrate").parts[0]
    assert "libcst" not in roots or room == "rewrite"
    assert "click" not in roots or room in ("cli.py", "options.py")
    assert "rich" not in roots or path.name in ("terminal.py", "progress.py")
    assert "pathspec" not in roots or room == "walk.py"


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent.name == "facts"], ids=of)
def test_facts_know_no_rule_and_no_rewriting(path: Path) -> None:
    assert not {m for m in imported(path) if m.startswith(("dpmigrate.rules", "dpmigrate.rewrite", "dpmigrate.edit", "dpmigrate.engine"))}


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent.name == "rules" and not p.name.startswith("_")], ids=of)
def test_rules_know_facts_and_edits_only(path: Path) -> None:
    own = {m for m in imported(path) if m.split(".")[0] == "dpmigrate"}
    allowed = (
        "dpmigrate.model",
        "dpmigrate.edit",
        "dpmigrate.facts",
        "dpmigrate.contract",
        "dpmigrate.literals",
        "dpmigrate.rules._base",
        "dpmigrate.rules._edits",
    )
    assert not {m for m in own if not m.startswith(allowed)}


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent.name == "result"], ids=of)
def test_checks_of_the_result_know_no_rule_and_no_edit(path: Path) -> None:
    own = {m for m in imported(path) if m.split(".")[0] == "dpmigrate"}
    assert not {m for m in own if not m.startswith(("dpmigrate.result", "dpmigrate.facts", "dpmigrate.lines", "dpmigrate.model", "dpmigrate.contract", "dpmigrate.program"))}


@pytest.mark.parametrize("module", ["scopes", "collected", "variables", "evaluation", "runs", "flow"])
def test_the_data_flow_knows_no_fact(module: str) -> None:
    own = {m for m in imported(ROOT / "dpmigrate" / "result" / f"{module}.py") if m.split(".")[0] == "dpmigrate"}
    assert not {m for m in own if not m.startswith("dpmigrate.result")}


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent.name == "execution"], ids=of)
def test_the_execution_knows_python_and_no_library(path: Path) -> None:
    own = {m for m in imported(path) if m.split(".")[0] == "dpmigrate"}
    assert not {m for m in own if not m.startswith(("dpmigrate.execution", "dpmigrate.program"))}
    assert "torch" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent.name == "library"], ids=of)
def test_the_tables_know_the_execution_alone(path: Path) -> None:
    own = {m for m in imported(path) if m.split(".")[0] == "dpmigrate"}
    assert not {m for m in own if not m.startswith(("dpmigrate.execution", "dpmigrate.library"))}


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent == ROOT / "dpmigrate" / "judge"], ids=of)
def test_the_judge_knows_the_execution_and_no_fact(path: Path) -> None:
    own = {m for m in imported(path) if m.split(".")[0] == "dpmigrate"}
    rooms = ("execution", "library", "judge", "program", "model", "contract", "spelt_paths")
    assert not {m for m in own if m.split(".")[1] not in rooms}


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent.name == "execution"], ids=of)
def test_parts_of_the_execution_import_each_other_in_one_direction(path: Path) -> None:
    """Imports for types alone apart, no module of the room comes back to itself."""
    seen: set[str] = set()
    todo = _needed(path)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo |= _needed(ROOT / "dpmigrate" / "execution" / f"{name}.py")
    assert path.stem not in seen


def _needed(path: Path) -> set[str]:
    """The modules of the room that a module imports when it is imported."""
    top = ast.parse(path.read_text(encoding="utf-8")).body
    prefix = "dpmigrate.execution"
    found = {n for s in top if isinstance(s, ast.ImportFrom) and s.module for n in _modules(s, prefix)}
    return {n for n in found if (path.parent / f"{n}.py").exists()}


def _modules(node: ast.ImportFrom, prefix: str) -> set[str]:
    if node.module == prefix:
        return {a.name for a in node.names}
    return {(node.module or "").removeprefix(f"{prefix}.")} if (node.module or "").startswith(f"{prefix}.") else set()


#: the rooms of one file: what of ours each may import
ROOMS = {
    "model": ("edit",),
    "edit": ("model",),
    "settings": (),
    "contract": (),
    "literals": (),
    "source": ("model",),
    "lines": (),
    "program": ("lines", "model", "source"),
    "alive": ("facts.names", "program"),
    "linking": ("absent", "alive", "facts.computed", "facts.scopes", "facts.suppressions", "model", "program", "reading", "searched", "source", "started"),
    "searched": ("facts.names",),
    "absent": ("reading",),
    "programs": ("reading",),
    "originals": ("contract", "program"),
    "migration": ("alive", "contract", "edit", "facts.buffers", "facts.script", "facts.wraps", "judge", "model", "originals", "program", "result", "rewrite", "source"),
    "plans": ("interrupts", "model", "started", "transaction", "writing"),
    "importers": ("linking", "model", "plans", "programs", "reading", "source", "started", "walk"),
    "starts": ("model", "reading", "started"),
    "started": ("reading",),
    "annotate": ("edit", "model", "program"),
    "transaction": ("interrupts", "model", "reading", "writing"),
    "writing": ("model", "reading"),
    "reading": (),
    "interrupts": (),
    "terminal": ("model", "report"),
    "walk": ("model", "reading"),
}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_one_file(room: str) -> None:
    own = {m.removeprefix("dpmigrate.") for m in imported(ROOT / "dpmigrate" / f"{room}.py") if m.startswith("dpmigrate.")}
    assert not {m for m in own if not any(m == name or m.startswith(f"{name}.") for name in ROOMS[room])}
    assert f"`{room}.py`" in (ROOT / "docs" / "design.md").read_text()


@pytest.mark.parametrize("path", RUNTIME, ids=of)
def test_the_runtime_needs_torch_and_nothing_else(path: Path) -> None:
    roots = {m.split(".")[0] for m in imported(path)}
    assert roots <= {"torch"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", sorted(CHILDREN), ids=of)
def test_what_runs_beside_the_user_knows_nothing_of_the_tool(path: Path) -> None:
    assert not {m for m in imported(path) if m.split(".")[0] == "dpmigrate"}


@pytest.mark.parametrize("path", [p for p in TOOL if p.parent.name == "verify"], ids=of)
def test_the_proof_knows_no_analysis(path: Path) -> None:
    allowed = ("dpmigrate.verify", "dpmigrate.report", "dpmigrate.started")
    assert not {m for m in imported(path) if m.startswith("dpmigrate") and not m.startswith(allowed)}
