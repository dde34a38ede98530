"""A path is made from the time or a random name.

## What it finds
`datetime.now()`, `time.strftime()`, `uuid` and `tempfile.mkdtemp()` that go into the name of a directory or file. `@hydra.main`, which makes such a directory
itself, is told.

## Why it matters
Every rank makes a name of its own: W run directories, and rank 0's checkpoint where no other rank looks for it.

## Example
```python
run = os.path.join("runs", datetime.now().strftime("%H%M%S"))
```
becomes
```python
run = os.path.join("runs", ddp.from_main(datetime.now()).strftime("%H%M%S"))
```

## When it is not fixed
Names whose use as a path cannot be seen in this program, and files that only rank 0 writes (`plt.savefig(…)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.names import FunctionNode, Loop, last
from dpmigrate.facts.ranks import ends_before, left_to_main, local_tests, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_CLOCKS = (
    "datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.now", "time.strftime", "time.ctime", "time.asctime", "time.time",
    "uuid.uuid4", "uuid.uuid1", "tempfile.mkdtemp", "tempfile.mkstemp", "os.getpid",
)  # fmt: skip
_PATHS = frozenset(
    [
        "join",
        "makedirs",
        "mkdir",
        "open",
        "save",
        "SummaryWriter",
        "Path",
        "FileHandler",
        "basicConfig",
        "exists",
        "isdir",
        "load",
        "configure",
    ]
)


@rule("DPM506", severity=Severity.ERROR, fix=Fix.SAFE)
def path_differs_per_rank(script: Script) -> Iterator[Hit]:
    for function in (n for n in script.names.nodes if isinstance(n, FunctionNode) and script.roles.reaches_backward(n)):
        for d in function.decorator_list:
            if script.names.dotted(d.func if isinstance(d, ast.Call) else d) == "hydra.main":
                yield Hit(
                    d, "hydra names the folder of a run by the time: ranks that start in different seconds get different ones", severity=Severity.WARNING,
                    advice="give it a name on the command line: hydra.run.dir=outputs/NAME",
                )  # fmt: skip
    for call in script.calls(*_CLOCKS):
        if (
            any(isinstance(a, Loop) for a in script.names.ancestors(call))
            or not run_by_all(script.roles, call)
            or left_to_main(script.roles, call)
            or script.made_once(call)
        ):
            continue
        if not _goes_into_path(script, call, 3):
            continue
        message = "each rank would make a path of its own"
        if any(True for _ in local_tests(script.roles, call)) or any(True for _ in ends_before(script.roles, call)):
            yield Hit(call, message, severity=Severity.WARNING, advice="make the path before the test, where all ranks come: ddp.from_main(...)")
        else:
            yield Hit(call, message, (Wrap(script.span(call), f"{script.ddp}.from_main({{}})"), AddImport(script.import_line)))


def _goes_into_path(script: Script, node: ast.AST, depth: int) -> bool:
    """Whether the value of the expression is part of a path argument, directly or through names and the functions that return it."""
    inner = node
    for a in script.names.ancestors(node):
        if isinstance(a, ast.Call) and last(a.func) in _PATHS and not script.names.is_inside(node, a.func) and not _of_text(script, a):
            return True
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Sub):
            return False  # a duration
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div) and inner is a.right:
            return True  # root / name; nothing else is divided by a time
        if isinstance(a, ast.Assign) and depth:
            return any(_name_in_path(script, t, depth) for t in a.targets)
        if isinstance(a, ast.Return) and depth:
            function = script.names.function(a)
            return isinstance(function, FunctionNode) and any(_goes_into_path(script, c, depth - 1) for c in script.values.callers.get(function, []))
        inner = a
    return False


def _of_text(script: Script, call: ast.Call) -> bool:
    """``" ".join(words)``"""
    return last(call.func) == "join" and not script.names.dotted(call.func).endswith("path.join")


def _name_in_path(script: Script, target: ast.expr, depth: int) -> bool:
    text = ast.unparse(target)
    for n in script.names.nodes:
        if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load) and ast.unparse(n) == text and n is not target:
            if _goes_into_path(script, n, depth - 1):
                return True
    return False
