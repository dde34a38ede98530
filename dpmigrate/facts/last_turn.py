"""What the last turn of a training loop leaves behind and is read after it: of a rank's part of the last batch.

What goes on from turn to turn is a total, of which ``totals`` knows; here is what every turn makes anew.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from dpmigrate.facts.carried import Carried
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.totals import totals

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: what a tensor says of itself that is no sample
_FORM = frozenset({"shape", "size", "dim", "ndim", "device", "dtype", "type"})


def left(script: Script, loop: BatchLoop) -> dict[str, ast.AST]:
    """The variables with what every turn makes anew of its batch that are read after a loop, each with its first such read.

    Losses are not among them: where one is told, the numbers of the batch are told as such.
    """
    if loop.branches:  # the last turn may be one of an evaluation
        return {}
    count = script.counting(loop)
    carried, found = count.carried, totals(script, loop)
    known = {c.name for c in count.counters} | {f.name for f in count.filled} | {m.meter.name for m in count.meters}
    known |= {n for names in found.by_kind.values() for n in names} | {n for doubt in found.told for n in doubt.names}
    known |= {name for b in script.loop_backwards(loop) for name in script.losses.names_of(b)} | set(carried.going_on)
    out: dict[str, ast.AST] = {}
    for name in dict.fromkeys(n.id for n in carried.stores()):
        if name not in known and not _of_totals(carried, name, known):
            reads = [n for n in _reads(carried, name) if _of_samples(carried, n) and of_batch(script.roles, n) and not script.executed.the_same(n, ())]
            out |= {name: min(reads, key=position)} if reads else {}
    return out


def _of_totals(carried: Carried, name: str, totals: Collection[str]) -> bool:
    """Whether a variable is made of totals as the turn leaves them: ``accuracy = hits / seen``, which is computed again of those of all ranks, or told with
    them. What is made before they have the turn's own part is that of the turns before.
    """
    inside = [b for b in carried.names.bindings(carried.scope, name) if b.value is not None and carried.names.is_inside(b.target, carried.loop.node)]
    made_of = {n.id for b in inside if b.value is not None for n in walk(b.value) if isinstance(n, ast.Name) and n.id in totals}
    changed = [position(n) for n in carried.stores() if n.id in made_of]
    return bool(made_of) and max(changed, default=(0, 0)) < max(position(b.target) for b in inside)


def _reads(carried: Carried, name: str) -> Iterator[ast.Name]:
    """The reads below the loop, in its function, between which and the loop nothing else is stored: a loop below may have no turn, but has one mostly."""
    names, loop = carried.names, carried.loop.node
    end = (loop.end_lineno or loop.lineno, loop.end_col_offset or 0)
    others = [p for b in names.bindings(carried.scope, name) if (p := position(b.target)) > end]
    for n in carried.reads_after(name):
        here = isinstance(n, ast.Name) and names.function(n) is carried.function and position(n) > end
        if here and not any(p < position(n) for p in others):
            assert isinstance(n, ast.Name)
            yield n


def _of_samples(carried: Carried, node: ast.Name) -> bool:
    """Whether a read is of the samples, and not of their form, their number, or whether there are any."""
    above = carried.names.parent[node]
    if isinstance(above, ast.Attribute):
        return above.attr not in _FORM
    if isinstance(above, ast.Compare):
        return not any(isinstance(op, ast.Is | ast.IsNot) for op in above.ops)
    outer = takewhile(lambda a: not isinstance(a, ast.stmt), carried.names.ancestors(node))
    return not isinstance(node.ctx, ast.Del) and not any(isinstance(a, ast.Call) and carried.names.dotted(a.func) == "?.len" for a in outer)
