"""The loop over epochs is left on a value of one rank.

## What it finds
`break`, `return` and `continue` in the epoch loop under a test on metrics, patience, time, an early-stopping object or a file
(`if os.path.exists("STOP")`), and `while` loops with such a test.

## Why it matters
A rank that stops alone leaves the others waiting in their next collective until the timeout.

## Example
```python
if bad_epochs >= patience:
    break
```
becomes
```python
if ddp.from_main(bad_epochs >= patience):
    break
```

A handler that goes on to the next turn after the training has failed does so in one process only: under torchrun (`if ddp.world_size() > 1: raise`) the
exception ends the program.

## When it is not fixed
When the loop is left in an exception handler of something else than the training, and when it stands in a training loop and asks for values of a batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport
from dpmigrate.facts.control import uniform
from dpmigrate.facts.exits import exits
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import asks_files
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import alike, raise_on_ranks, together


@rule("DPM610", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def stop_on_local_value(script: Script) -> Iterator[Hit]:
    seen: set[ast.AST] = set()
    for loop in script.repeating_loops:
        if isinstance(loop, ast.While) and not uniform(script.names, loop.test):
            seen.add(loop.test)
            yield alike(script, loop.test, [together(script, loop.test)], "the ranks may leave this loop at different turns")
        for e in exits(script.names, script.roles, loop):
            if e.test is None:
                yield _caught(script, e.node)
                continue
            tests = [
                a.test
                for a in script.names.ancestors(e.node)
                if isinstance(a, ast.If) and script.names.is_inside(a, loop) and (not uniform(script.names, a.test) or asks_files(script.roles, a.test))
            ]
            new = [t for t in tests if t not in seen]
            seen.update(tests)
            if new:
                yield alike(script, e.node, [together(script, t) for t in new], "one rank may leave this loop alone, and the others wait for ever")


def _caught(script: Script, node: ast.stmt) -> Hit:
    """What leaves the loop in a handler: after a training that has failed on one rank all of them end, as in DPM322.

    What else raises may do so on all ranks alike (a file that is not there), and a program that can go on with that would end. So would one
    that an interrupt from the keyboard lets save what it has.
    """
    message = "the loop is left in an exception handler, on one rank"
    handler = next(a for a in script.names.ancestors(node) if isinstance(a, ast.ExceptHandler))
    guard = script.names.parent[handler]
    asked = handler.type is not None and any("KeyboardInterrupt" in script.names.dotted(n) for n in walk(handler.type) if isinstance(n, ast.expr))
    if isinstance(guard, ast.Try) and not asked and any(script.roles.reaches_backward(s) for s in guard.body):
        return Hit(node, message, (raise_on_ranks(script, handler), AddImport(script.import_line)))
    return Hit(node, message, severity=Severity.BLOCKER, advice="let the exception end the program")
