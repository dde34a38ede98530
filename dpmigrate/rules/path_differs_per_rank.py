"""A path is made from the time, a random name, or what stands in a directory already.

## What it finds
`datetime.now()`, `time.strftime()`, `uuid` and `tempfile.mkdtemp()` that go into the name of a directory or file. `@hydra.main`, which makes such a directory
itself, is told. The search for the next free name: a listing (`os.listdir`, `glob`, `Path.iterdir`) that is counted, or whose numbers are read, for a path,
and loops that ask for one name after the other (`while os.path.exists(path): i += 1`). A time, or a random identifier, that is stored in a configuration
(`config.run.id = secrets.token_hex(4)`): what else is read of that may be made of it.

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

and
```python
while ddp.from_main(os.path.exists(f"runs/{i}")):
    i += 1
```
so that all ranks take the name that rank 0 finds.

A checkpoint in a temporary directory is saved and read in rank 0's:
```python
with ddp.main_folder(TemporaryDirectory()) as folder:
    path = os.path.join(folder, "best.pt")
```
At the end of the block all ranks wait before it is removed.

## When it is not fixed
Names whose use as a path cannot be seen in this program, and files that only rank 0 writes (`plt.savefig(…)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.fresh import clocks, configured, file_tests, free_names, listings, own_folders
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.ranks import asks_files, caught, ends_before, leading_to, left_to_main, local_tests, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM506", severity=Severity.ERROR, fix=Fix.SAFE)
def path_differs_per_rank(script: Script) -> Iterator[Hit]:
    for function in (n for n in script.names.nodes if isinstance(n, FunctionNode) and script.roles.reaches_backward(n)):
        for d in function.decorator_list:
            if script.names.dotted(d.func if isinstance(d, ast.Call) else d) == "hydra.main":
                yield Hit(
                    d, "hydra names the folder of a run by the time: ranks that start in different seconds get different ones", severity=Severity.WARNING,
                    advice="give it a name on the command line: hydra.run.dir=outputs/NAME",
                )  # fmt: skip
    timed = list(clocks(script))
    for call in timed:
        if run_by_all(script.roles, call) and not left_to_main(script.roles, call) and not script.made_once(call):
            yield _told(script, call, "each rank would make a path of its own", "{}")
    for made in configured(script):
        known = any(script.names.is_inside(c, made) for c in timed)  # or another rule has it
        if not known and run_by_all(script.roles, made) and not left_to_main(script.roles, made) and not script.made_once(made):
            yield _told(script, made, "each rank would have a configuration of its own", "{}")
    for call in own_folders(script):
        message = "each rank would make a directory of its own, and look there for what rank 0 has saved in another one"
        if run_by_all(script.roles, call) and not script.parted(call):
            yield Hit(call, message, (Wrap(script.span(call), f"{script.ddp}.main_folder({{}})"), AddImport(script.import_line)))
    for call, lists in listings(script):
        if call in script.shown_questions:
            continue  # another rule asks rank 0 for it
        if run_by_all(script.roles, call) and not left_to_main(script.roles, call) and not script.made_once(call):
            above = script.names.parent[call]
            lazy = "iter({})" if isinstance(above, ast.Call) and script.names.dotted(above.func) == "?.next" else "{}"
            yield _told(script, call, _FREE, "{}" if lists else "list({})", lazy)
    for test in free_names(script):
        if run_by_all(script.roles, test) and not script.made_once(test):
            yield _told(script, test, _FREE, "{}")


_FREE = "each rank would look for a free name by itself, and take another one: some have made theirs already"


def _told(script: Script, node: ast.expr, message: str, inner: str, outer: str = "{}") -> Hit:
    """What rank 0 sees, on every rank, together with the tests by which all come there."""
    tests = dict.fromkeys(file_tests(script, node))
    if script.parted(node):
        if not _by_files_alone(script, node):
            return Hit(node, message, severity=Severity.WARNING, advice="make the path before the test, where all ranks come: ddp.from_main(...)")
        tests |= dict.fromkeys((*local_tests(script.roles, node), *ends_before(script.roles, node)))
    places = [(node, outer.format(f"{script.ddp}.from_main({inner})")), *((t, f"{script.ddp}.from_main({{}})") for t in tests)]
    return Hit(node, message, (*(Wrap(script.span(n), template) for n, template in places), AddImport(script.import_line)))


def _by_files_alone(script: Script, node: ast.expr) -> bool:
    """Whether the ranks could part before a node only by what they find in directories, each where all ranks come."""
    ways = list(leading_to(script.roles, node))
    tests = list(local_tests(script.roles, node))
    asked = (asks_files(script.roles, t) or any(script.names.is_inside(w, t) for w in ways) for t in tests)
    # a test that would end the function is asked of rank 0 as well: `if folder.exists(): raise`
    ends = list(ends_before(script.roles, node))
    by_files = all(asked) and all(asks_files(script.roles, t) for t in ends)
    return by_files and not any(script.parted(t) for t in (*tests, *ends)) and not caught(script.roles, node)
