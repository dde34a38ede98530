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

## When it is not fixed
`sys.exit(main())` never returns: the report asks for two lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import After, Before
from dpmigrate.facts.control import is_exit
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM708", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def process_group_left_open(script: Script) -> Iterator[Hit]:
    entry = script.entry
    if entry is None:
        return
    code = f"{script.ddp}.cleanup()"
    if is_exit(script.names, entry.end):
        assert isinstance(entry.end, ast.Expr)
        if any(isinstance(n, ast.Call) and n is not entry.end.value for n in ast.walk(entry.end)):
            yield Hit(
                entry.end, "the program ends inside this statement, before the process group is cleaned up", severity=Severity.BLOCKER,
                advice="call main() in a statement of its own, and exit after it",
            )  # fmt: skip
            return
        yield Hit(entry.end, "the process group is left open", (Before(script.span(entry.end), code),))
    else:
        yield Hit(entry.end, "the process group is left open at the end", (After(script.span(entry.end), code),))
    for node in script.names.nodes:
        inside = isinstance(script.names.function(node), FunctionNode) if isinstance(node, ast.stmt) else False
        if node is not entry.end and is_exit(script.names, node) and _normal(script, node) and (inside or position(node) > position(entry.start)):
            yield Hit(node, "the program may end here with the process group open", (Before(script.span(node), code),))


def _normal(script: Script, node: ast.AST) -> bool:
    """An exit without an error: no argument, 0 or None, and not in an exception handler."""
    assert isinstance(node, ast.Expr)
    call = node.value
    assert isinstance(call, ast.Call)
    if call.args and not (isinstance(call.args[0], ast.Constant) and call.args[0].value in (0, None)):
        return False
    return not any(isinstance(a, ast.ExceptHandler | ast.Try) for a in script.names.ancestors(node))
