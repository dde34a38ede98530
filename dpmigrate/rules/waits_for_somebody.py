"""The program waits for somebody, or shows something: a question, a debugger, a window.

## What it finds
`input(…)`, `breakpoint()`, `pdb.set_trace()`, `code.interact()`, `IPython.embed()`, `plt.show()`, `cv2.imshow(…)`, `cv2.waitKey(…)`.

## Why it matters
Every rank would ask, at one keyboard; what the other ranks print is not shown, so they would stand still in front of a question that nobody sees. A window
opens once for each GPU.

## Example
```python
name = input("name of this run: ")
plt.show()
```
becomes
```python
name = ddp.from_main(ddp.main_only(input, "name of this run: "))
if ddp.is_main():
    plt.show()
```
Rank 0 asks and tells the others; a debugger and a window stop rank 0 alone, and the others wait for it where they meet it next, at most the timeout of
`ddp.setup()` (10 minutes). The report names such calls after which the ranks meet. To debug at length, start the program as `python train.py`.

A question behind a look at the disk (`if os.path.exists(folder):`) is asked if any rank sees the file, so that nobody waits for an answer alone.

## When it is not fixed
A question behind a value of the training (`loss > 9 and input("stop? ")`) is refused (DPM511).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, MainOnly, Wrap
from dpmigrate.facts.control import uniform
from dpmigrate.facts.meetings import answers
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.outside import waits_for_somebody as waits
from dpmigrate.facts.ranks import asks_files
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import by_main, together


@rule("DPM513", severity=Severity.WARNING, fix=Fix.SAFE)
def waits_for_somebody(script: Script) -> Iterator[Hit]:
    bring = AddImport(script.import_line)
    for call in script.roles.calls:
        if waits(script.names, call) and script.is_statement(call) is not None:
            yield Hit(call, f"every rank would stop at {script.text(call.func)}(…), or show it", (by_main(script, call), bring))
    for call in answers(script):
        edits = (MainOnly(script.span(call), f"{script.ddp}.main_only"), Wrap(script.span(call), f"{script.ddp}.from_main({{}})"))
        yield Hit(call, f"every rank would ask: {script.text(call.func)}(…)", (*edits, bring))
        for test in _file_tests(script, call):
            yield Hit(test, "all ranks must go the same way here: they wait for an answer further on", (*(together(script, test) or ()), bring))


def _file_tests(script: Script, call: ast.Call) -> Iterator[ast.expr]:
    """The tests on the way to the question that look at files, which rank 0 may be making meanwhile; what may differ anyway is DPM511's."""
    for node in script.leading_to(call):
        inner = node
        for a in script.names.ancestors(node):
            if isinstance(a, FunctionNode):
                break
            if isinstance(a, ast.BoolOp):
                yield from (v for v in a.values[: a.values.index(inner)] if _looks(script, v))  # type: ignore[arg-type]
            elif isinstance(a, ast.If) and inner is not a.test and _looks(script, a.test):
                yield a.test
            inner = a


def _looks(script: Script, test: ast.expr) -> bool:
    return asks_files(script.roles, test) and uniform(script.names, test)
