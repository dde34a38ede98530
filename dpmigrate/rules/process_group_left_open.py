"""The process group is not cleaned up.

## What it finds
The end of the program, and `sys.exit()` on the way that ends it normally.

## Why it matters
A program that ends right after its last backward aborts now and then at interpreter exit (6 of 20 with gloo), and the launcher reports a failure
although all work is done. `ddp.cleanup()` stands on the normal path only: in a `finally` it would make a failing rank wait for the others until the
timeout.

## Example
```python
main()
```
becomes
```python
main()
ddp.cleanup()
```

`sys.exit(main())` becomes `status = main()`, `ddp.cleanup()`, `sys.exit(status)`.

## When it is not fixed
An exit with an error (`sys.exit(1)`) is left alone: a failing rank must not wait for the others. The launcher ends the others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import After, Before, Hoist
from dpmigrate.facts.endings import exit_value
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM708", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def process_group_left_open(script: Script) -> Iterator[Hit]:
    entry = script.entry
    if entry is None:
        return
    code = f"{script.ddp}.cleanup()"
    value = exit_value(script.names, entry.end)
    if value is None:
        yield Hit(entry.end, "the process group is left open at the end", (After(script.span(entry.end), code),))
    elif any(isinstance(n, ast.Call) for n in walk(value)):
        edit = Hoist(script.span(value), script.fresh("status"), then=code)
        yield Hit(entry.end, "the program ends inside this statement, with the process group open", (edit,))
    else:
        yield Hit(entry.end, "the process group is left open", (Before(script.span(entry.end), code),))
    for node in script.names.nodes:
        inside = isinstance(script.names.function(node), FunctionNode) if isinstance(node, ast.stmt) else False
        if node is not entry.end and _ends_well(script, node) and (inside or position(node) > position(entry.start)):
            yield Hit(node, "the program may end here with the process group open", (Before(script.span(node), code),))


def _ends_well(script: Script, node: ast.AST) -> bool:
    """An exit without an error: no argument, 0 or None, and not in an exception handler."""
    value = exit_value(script.names, node)
    if not isinstance(value, ast.Constant) or value.value not in (0, None):
        return False
    return not any(isinstance(a, ast.ExceptHandler | ast.Try) for a in script.names.ancestors(node))
