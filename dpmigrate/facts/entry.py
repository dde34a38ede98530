"""Where the program starts and ends: the place for the process group's set-up and clean-up."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dpmigrate.facts.names import FunctionNode, Names, last
from dpmigrate.facts.nodes import walk
from dpmigrate.model import is_main_guard

#: calls at module level that neither print, draw random numbers, open files nor build anything
_IDLE_PREFIXES = ("argparse.", "os.path.", "os.environ.", "logging.getLogger", "warnings.", "matplotlib.", "sys.path.", "torch.device", "pathlib.")
_IDLE = frozenset(
    {"torch.cuda.is_available", "torch.cuda.device_count", "os.getenv", "?.int", "?.float", "?.str", "?.len", "?.dict", "?.list", "?.sorted"}
    | {"?.callable", "?.tuple", "?.set", "?.range", "torch.set_default_dtype", "torch.set_num_threads", "collections.namedtuple", "?.getattr", "?.hasattr"}
)
_IDLE_METHODS = frozenset(
    {
        "add_argument",
        "parse_args",
        "set_defaults",
        "add_mutually_exclusive_group",
        "parse_known_args",
        "startswith",
        "islower",
        "insert",
        "append",
        "format",
        "split",
        "join",
        "resolve",
        "absolute",
    }
)


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """``start``: the statement that set-up goes before, or the guard whose body it opens; ``end``: the statement that clean-up follows."""

    start: ast.stmt
    inside: bool  # set-up is the first statement in the body of ``start``
    end: ast.stmt


def find_entry(names: Names) -> Entry | None:
    """The entry of a script, or None where the module runs nothing by itself."""
    body = names.tree.body
    guards = [s for s in body if is_main_guard(s)]
    # what stands in one before the imports, as PEP 366 advises for a module of a package, is no entry, nor is one that reads options for what is below it
    guard = next((s for s in reversed(guards) if _works(names, s)), None)
    work = [s for s in body if s is not guard and _works(names, s)]
    if guard is None and guards and not work:
        guard = guards[0]
    if guard is not None:
        assert isinstance(guard, ast.If)
        first = work[0] if work and body.index(work[0]) < body.index(guard) else guard
        if isinstance(first, ast.If) and ast.dump(first.test) == ast.dump(guard.test):
            return Entry(first, True, guard.body[-1])
        return Entry(_first_running(names, body), False, guard.body[-1])
    if not work:
        return None
    end = [s for s in body if not isinstance(s, FunctionNode | ast.ClassDef) or _runs_at_once(s)][-1]
    return Entry(_first_running(names, body), False, end)


def _first_running(names: Names, body: list[ast.stmt]) -> ast.stmt:
    """The first statement that is neither import, docstring, definition nor set-up of imports."""
    for s in body:
        if isinstance(s, ast.Import | ast.ImportFrom) and _works(names, s):
            return s
        if isinstance(s, ast.Import | ast.ImportFrom | FunctionNode | ast.ClassDef) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
            continue
        if isinstance(s, ast.Try) and all(isinstance(x, ast.Import | ast.ImportFrom) for x in s.body):
            continue
        if not _later_import(names, body, s):
            return s
    return body[-1]


def _later_import(names: Names, body: list[ast.stmt], stmt: ast.stmt) -> bool:
    """A small statement in the middle of the imports (``matplotlib.use('Agg')``) does not end them; one that builds something does."""
    rest = body[body.index(stmt) + 1 :]
    near = rest[:3]
    told = isinstance(stmt, ast.Expr) and not any(
        isinstance(n, ast.Name) for c in walk(stmt) if isinstance(c, ast.Call) for a in c.args for n in walk(a)
    )
    return (told or (isinstance(stmt, ast.Assign) and not _works(names, stmt))) and any(isinstance(s, ast.Import | ast.ImportFrom) for s in near)


def _works(names: Names, stmt: ast.stmt, seen: frozenset[ast.Module] = frozenset()) -> bool:
    """Whether a module-level statement does anything that set-up must come before; an import does what the module does."""
    if isinstance(stmt, FunctionNode | ast.ClassDef):
        return _runs_at_once(stmt)
    if isinstance(stmt, ast.Import | ast.ImportFrom):
        return any(_works(names, s, seen | {module}) for module in names.run_by(stmt) if module not in seen for s in module.body)
    if isinstance(stmt, ast.Try) and all(isinstance(x, ast.Import | ast.ImportFrom) for x in stmt.body):
        return any(_works(names, s, seen) for s in stmt.body)
    return any(isinstance(n, ast.Call) and not _idle(names, n) for n in walk(stmt))


def _runs_at_once(stmt: FunctionNode | ast.ClassDef) -> bool:
    """``@experiment.automain``: the decorator itself runs the function, where the file is started."""
    return any(last(d) == "automain" for d in stmt.decorator_list)


def _idle(names: Names, call: ast.Call) -> bool:
    dotted = names.dotted(call.func)
    if dotted in _IDLE or dotted.startswith(_IDLE_PREFIXES):
        return True
    if dotted == "logging.basicConfig":  # to the terminal; set-up silences the other ranks before or after
        return not any(k.arg in ("filename", "handlers", None) for k in call.keywords)
    return isinstance(call.func, ast.Attribute) and call.func.attr in _IDLE_METHODS
