"""The order of a set is another one in every process.

## What it finds
Where the order of a set becomes that of something else while data are prepared: `list(set(…))`, `enumerate(…)`, `zip(…)`, loops and comprehensions over a set,
`sorted(…, key=…)`, which leaves what is alike in the set's order. Also through variables, attributes, parameters, dicts and functions, and in the
constructors of data sets.

## Why it matters
Python hashes strings differently in every process. A vocabulary or class list made from an unsorted set gives the same word different numbers on
different ranks: the gradients that are averaged belong to different words, and nothing reports it.

## Example
```python
classes = list(set(labels))
```
becomes
```python
classes = ddp.from_main(list(set(labels)))
```

## When it is not fixed
In models, in training and evaluation, and where worker processes or a library call the function: there the ranks do not go in step. Refused where
rank 0 goes first (`download=True`), since the others would wait for it and it for them, and where perhaps not all ranks come.
`sorted(set(…))` is right as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.outside import downloads
from dpmigrate.facts.ranks import left_to_main, run_apart, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.facts.sets import ordered
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM208", severity=Severity.ERROR, fix=Fix.SAFE)
def set_order_per_rank(script: Script) -> Iterator[Hit]:
    done: set[ast.expr] = set()
    for place, source, made in ordered(script.roles):
        if source in done or not _in_step(script, place) or left_to_main(script.roles, place) or script.made_once(place):
            continue
        done.add(source)
        if any(_goes_first(script, way) for way in script.leading_to(place)):
            yield Hit(
                place, "the order of a set differs between processes, and rank 0 is here before the others", severity=Severity.BLOCKER,
                advice="sort the set: sorted(…) has the same order everywhere",
            )  # fmt: skip
            continue
        if script.parted(place):
            yield Hit(
                place, "the order of a set differs between processes, and perhaps not all of them come here", severity=Severity.BLOCKER,
                advice="sort the set: sorted(…) has the same order everywhere",
            )  # fmt: skip
            continue
        template = f"{script.ddp}.from_main({{}})" if made else f"{script.ddp}.from_main(list({{}}))"
        yield Hit(place, "the order of a set differs between processes", (Wrap(script.span(source), template), AddImport(script.import_line)))


def _in_step(script: Script, place: ast.expr) -> bool:
    """Whether all ranks come to the place together: outside of models and loops over batches, and not in a worker process."""
    if script.roles.region(place) != "outside" or script.roles.inside_module(place):
        return False
    return run_by_all(script.roles, place) and not run_apart(script.roles, place)


def _goes_first(script: Script, node: ast.AST) -> bool:
    """Whether rank 0 runs the statement before the others, since it fetches files."""
    stmt = script.names.statement(node)
    return isinstance(stmt, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return) and downloads(script.names, stmt)
