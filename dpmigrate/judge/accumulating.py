"""An execution that notes which numbers a loop over batches adds up from turn to turn."""

from __future__ import annotations

import ast
from functools import lru_cache

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import EXISTS, Location
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Const, Data, Method, Ref, Value
from dpmigrate.program import Program

#: the kind of what marks a loop in data that it has added up, or kept in a list
TOTAL = "total"
#: the kind of what marks the place that adds to such data: a statement, or a call of a list's method
HOLDER = "holder of a total"
_COLLECTS = frozenset({"append", "extend", "add", "insert", "appendleft"})
_HOLDS = ("list", "set", "deque")
#: functions that put rows end to end: ``rows = torch.cat((rows, x))``
_PUT_TOGETHER = frozenset({"cat", "concat", "concatenate", "append", "hstack", "vstack", "column_stack", "row_stack"})


class Accumulating(Execution):
    """Totals are marked with the loop that takes the batches they are made of."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        #: the turns under way, each with its loop and how many marks of the heap it began with
        self.running: list[tuple[ast.AST, int]] = []
        #: the loops in whose turns batches are taken
        self._taking: set[ast.AST] = set()
        self._marks: dict[ast.AST, int] = {}

    def _one_turn(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, *rest: object) -> bool | None:
        self.running.append((node, self.heap.level + 1))
        try:
            return super()._one_turn(node, frame, *rest)  # type: ignore[arg-type]
        finally:
            self.running.pop()

    def event(self, kind: str, node: ast.AST, frame: Frame, **values: Value) -> Event:
        """An event; a batch is one of all turns under way."""
        if kind == "batch":
            self._taking.update(loop for loop, _ in self.running)
        return super().event(kind, node, frame, **values)

    def operate(
        self, op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame, *,
        carries: bool = False,
    ) -> Value:  # fmt: skip
        """An operator; what a variable had before is added to."""
        made = super().operate(op, left, right, node, frame, carries=carries)
        target = node.target if isinstance(node, ast.AugAssign) else _sums(self.program).get(node)
        if target is None or not isinstance(op, ast.Add | ast.Sub):
            return made
        return self._marked(made, self._places_of_target(target, frame), target, frame)

    def call(self, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        """A call; what a list is given stays there over the turns, and so do rows that are put behind others."""
        collects = [a.receiver for a in callee if isinstance(a, Method) and a.name in _COLLECTS]
        lists = [o for o in self.objects(tuple(collects)) if o.kind in _HOLDS]
        if lists:
            places: list[Location] = [(o.number, EXISTS) for o in lists]
            receiver = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
            arguments = arguments.mapped(lambda v: self._marked(v, places, receiver, frame))
        made = super().call(callee, arguments, node, frame)
        target = _sums(self.program).get(node)
        return self._marked(made, self._places_of_target(target, frame), target, frame) if target is not None else made

    def loops_under_way(self) -> Value:
        """The marks of the loops in whose turns this is."""
        return tuple(Ref(self._mark_of(loop)) for loop in dict(self.running))

    def _marked(self, v: Value, places: list[Location], holder: ast.AST, frame: Frame) -> Value:
        """Data with the marks of the innermost loop over batches and of what holds them there, unless
        its turn has begun what is in these places.
        """
        if not places or not any(isinstance(a, Data) and a.sources for a in v):
            return v
        for loop, level in reversed(self.running):
            if loop in self._taking:
                if any(self.heap.written_since(level, at) for at in places):
                    return v
                marks = {self._mark_of(loop)}
                own = self.heap.new(HOLDER, HOLDER, holder, frame.context).number
                return tuple(
                    a._replace(marks=a.marks | (marks if self._is_held(a) else {*marks, own})) if isinstance(a, Data) and a.sources else a
                    for a in v
                )
        return v

    def _is_held(self, d: Data) -> bool:
        """Whether something has held the data before, as the total of which an entry of a history is made."""
        return any(self.heap.objects[n].kind == HOLDER for n in d.marks)

    def _mark_of(self, loop: ast.AST) -> int:
        if loop not in self._marks:
            self._marks[loop] = self.heap.new(TOTAL, TOTAL, loop, 0, key=TOTAL).number
        return self._marks[loop]

    def _places_of_target(self, target: ast.expr, frame: Frame) -> list[Location]:
        """Where the variable of a sum is; of an entry also what holds it."""
        if not isinstance(target, ast.Subscript):
            at = self.location(target, frame)
            return [at] if at is not None else []
        outer = self.location(target.value, frame)
        held = self.objects(self.heap.read(outer) or ()) if outer is not None else []
        key = target.slice.value if isinstance(target.slice, ast.Constant) else None
        entries = [(o.number, name) for o in held for name, _ in self.heap.names(o.number) if isinstance(name, Const) and name.value == key]
        if not held and outer is not None:
            return [outer]  # an array
        return [*((o.number, EXISTS) for o in held), *entries]


@lru_cache(maxsize=4)
def _sums(program: Program) -> dict[ast.AST, ast.expr]:
    """The last operators of sums that are given to a variable of which they are made, each with that:
    ``total = total + loss``, ``mean = 0.9 * mean + 0.1 * loss``; and calls that put rows behind those of
    a variable.
    """
    found: dict[ast.AST, ast.expr] = {}
    for node in program.every(ast.Assign):
        if len(node.targets) == 1 and (isinstance(node.value, ast.BinOp) or _puts_together(node.value)):
            target = ast.unparse(node.targets[0])
            if any(isinstance(n, ast.expr) and ast.unparse(n) == target for n in ast.walk(node.value)):
                found[node.value] = node.targets[0]
    return found


def _puts_together(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _PUT_TOGETHER
