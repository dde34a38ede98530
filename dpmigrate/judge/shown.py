"""Windows and debuggers on rank 0, where the other ranks wait for it.

Rank 0 alone shows a window, and goes on when somebody closes it. The others go on at once, and wait
for rank 0 where the ranks meet next, no longer than the timeout of the process group. At
``cleanup()`` they wait for it without a limit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.values import NONE, NOTHING, Foreign, Ref, Value, const, value
from dpmigrate.library.waiting import WAITING

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged

#: a field of the process: what rank 0 has shown since the ranks met
SHOWN = (PROCESS, "judge shown")
#: the event of a meeting at which the other ranks may wait for somebody
HELD_UP = "judge held up"


def noted(m: Judged, callee: Value, node: ast.AST, frame: Frame) -> None:
    """Note of a call what rank 0 shows with it."""
    waits = any(isinstance(a, Foreign) and a.name in WAITING for a in callee)
    if waits and m.parted is not None and m.parted.origin.word.startswith("rank 0"):
        mark = m.heap.new("window", "window", node, frame.context, key=("window", node))
        m.heap.widen(SHOWN, value(Ref(mark.number)))


def met(m: Judged, kind: str, values: Mapping[str, Value], node: ast.AST, frame: Frame) -> None:
    """An event at which the ranks meet ends what rank 0 has shown."""
    if kind not in ("backward", "wrap", "collective") or values.get("name") == const("cleanup"):
        return
    held = m.heap.read(SHOWN) or NOTHING
    if m.objects(held):
        m.event(HELD_UP, node, frame, by=held)
        m.heap.write(SHOWN, NONE)


def nodes(m: Execution) -> Iterator[ast.AST]:
    """The calls of rank 0 for which the others wait where they meet next."""
    for event in m.trace.of(HELD_UP):
        yield from (o.node for o in m.objects(event.values["by"]) if o.node is not None)
