"""A file that rank 0 has just written is read by all ranks.

## What it finds
`torch.load` that runs after training: the best checkpoint for the final test. `torch.load` before it of what the program has saved by then, as in a
function that saves in one call and loads in the next: an execution of the program on paper says which comes first. Other files that the program itself
has written: `np.load`, `imread`, `open`,
`read_csv` of a path of the same form as one that it has saved, plotted or opened for writing before, or after a command of the
shell in the same function. Questions about such a file: `os.path.getsize(path)`, `os.path.exists(path)`, `path.stat()`, `os.listdir(folder)`, where an
execution of the program on paper finds it written since the last backward pass. Where checkpoints are loaded after training, also the listings by which the
program looks for one: `max(glob.glob("*.pt"))`.

What an execution of the result on paper shows beside that: rank 0 writes, moves or removes a file or a folder that another rank may still be reading, or reads
next, wherever that stands in the program; and answers about files that are kept in a variable while rank 0 writes (`new = not os.path.exists(path)`,
`found = sorted(os.listdir(folder))`). Files are known by the forms of their paths. A test that decides only what rank 0 does needs nothing.

## Why it matters
The other ranks may read before rank 0 has written: the file of an earlier epoch, or none.

## Example
```python
model.load_state_dict(torch.load("best.pt"))
```
becomes
```python
ddp.barrier()
model.module.load_state_dict(torch.load("best.pt", map_location=ddp.device()))
```

An answer that is kept is rank 0's: `new = not ddp.from_main(os.path.exists(path))`.

## When it is not fixed
Where the path is put together in another way than where it is written. Inside a loop over batches the ranks cannot wait: a function that writes a file and
reads it again there is refused. A function that all ranks call, and that reads a file and then writes it anew, as a record of the best result, is told: a rank
may read while rank 0 writes. Where another function writes it before anything is trained, as a method of a class for records, the ranks wait after
they have read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, After, Before, Wrap
from dpmigrate.facts.meetings import waits_for_files
from dpmigrate.facts.names import last, position
from dpmigrate.facts.ranks import asks_files, stretch
from dpmigrate.facts.readback import overwritten, read_in_a_step, rewritten
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: what gives files one by one, which cannot be sent as it is
_LAZY = ("glob", "rglob", "iglob", "iterdir", "walk")


#: questions that fail where there is no such folder yet
_FAILING = ("listdir", "walk", "iterdir")


@rule("DPM402", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def load_races_with_save(script: Script) -> Iterator[Hit]:
    done: set[ast.stmt] = set()
    for call, reading in waits_for_files(script):
        if call in script.shown_questions and last(call.func) not in _FAILING:
            continue  # rank 0's answer is what all of them wait for
        whole = stretch(script.roles, reading, lambda test: asks_files(script.roles, test))  # the others may not ask for the file before it is there
        stmt = whole.first if whole is not None else reading
        if stmt not in done:
            done.add(stmt)
            edits = (Before(script.span(stmt), f"{script.ddp}.barrier()"), AddImport(script.import_line))
            yield Hit(call, "other ranks may read this file before rank 0 has written it", edits)
    for stmt in script.shown_waits:
        if stmt not in done:
            done.add(stmt)
            edits = (Before(script.span(stmt), f"{script.ddp}.barrier()"), AddImport(script.import_line))
            yield Hit(stmt, "rank 0 may write or remove a file here that other ranks read, or other ranks read one that rank 0 is writing", edits)
    for question in script.shown_questions:
        lazy = isinstance(question, ast.Call) and last(question.func) in _LAZY and not script.names.dotted(question.func).startswith("glob.glob")
        asked = Wrap(script.span(question), f"{script.ddp}.from_main({'list({})' if lazy else '{}'})")
        yield Hit(question, "rank 0 may have written or removed this file before another rank asks for it", (asked, AddImport(script.import_line)))
    for call in read_in_a_step(script):
        said = "rank 0 alone writes this file, and all ranks read it in a loop over batches: the others may come first"
        yield Hit(call, said, severity=Severity.BLOCKER, advice="write and read it on one rank, or read it after the loop")
    for call, stmt in rewritten(script):
        if stmt not in done:
            done.add(stmt)
            wait = After(script.span(stmt), f"{script.ddp}.barrier()")
            said = "rank 0 may write this file anew while another rank still reads it"
            yield Hit(call, said, (wait, AddImport(script.import_line)))
    for call in overwritten(script):
        if any(script.names.function(s) is script.names.function(call) and position(s) > position(call) for s in script.shown_waits):
            continue  # all ranks wait between what reads the file and what writes it
        said = "rank 0 may write this file anew while another rank still reads it"
        yield Hit(
            call, said, severity=Severity.WARNING,
            advice="let rank 0 alone call the function that reads and writes it, and give the others its answer: "
            f"{script.ddp}.from_main(f(…) if {script.ddp}.is_main() else None)",
        )  # fmt: skip
