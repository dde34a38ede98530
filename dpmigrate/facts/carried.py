"""What a loop over batches carries: what a variable is when the loop begins, what the loop leaves in it, and who reads that.

The reads that may see what the loop has left are found by one walk over the statements that may run after it: those below, those round it, and, where it
stands in another loop, those of the next turn. A read is left out only where something else has been stored before it for certain. What other functions read
of the same variable always counts, and so does every read of a variable that the function shares. What is not understood is taken for read.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from dpmigrate.facts.library import FLOATS, INTEGERS, MOVES
from dpmigrate.facts.names import FunctionNode, Loop, Names, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.scopes import Binding, Scope

if TYPE_CHECKING:
    from dpmigrate.facts.loops import BatchLoop
    from dpmigrate.facts.roles import Roles


class Start(enum.Enum):
    """What a variable is when a loop begins, as far as a loop may add to it."""

    ZERO = "zero"  # a number
    LIST = "list"  # empty
    LISTS = "lists"  # a dict of empty lists
    NOTHING = "nothing"
    EMPTY = "empty"  # an array without rows
    ZEROS = "zeros"  # an array
    NUMBERS = "numbers"  # a list or dict of zeros


_ADDABLE = frozenset({Start.ZERO, Start.LIST, Start.ZEROS})
_MADE_OF = frozenset({"torch.tensor", "torch.as_tensor", "numpy.array", "numpy.asarray"})
#: a number given to these is a size
_MADE_OF_LISTS = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.IntTensor"})
_ZEROS = frozenset({"torch.zeros", "numpy.zeros"})
_SIZED = _ZEROS | {"torch.empty", "numpy.empty"}
_TRY = ast.Try | ast.TryStar
_MOVES = MOVES | FLOATS | INTEGERS | {"astype", "type"}


class Carried:
    """The variables of one loop over batches, in the loop's own scope."""

    def __init__(self, roles: Roles, loop: BatchLoop) -> None:
        self.roles = roles
        self.names: Names = roles.names
        self.loop = loop
        self.function = self.names.function(loop.node)
        self.scope: Scope = self.names.scope_of[loop.node]

    # ------------------------------------------------------------------ who reads it
    def is_same(self, node: ast.Name) -> bool:
        """Whether the name means a variable of the loop's scope there, not a comprehension's or another function's own."""
        return self.names.variable(self.names.scope_of[node], node.id) == self.names.variable(self.scope, node.id)

    def read_after(self, name: str) -> bool:
        """Whether anybody may read what the loop has left in the variable."""
        return bool(self.reads_after(name))

    def reads_after(self, name: str) -> list[ast.Name | ast.Attribute]:
        """The reads that may see what the loop has left in the variable."""
        outside = [n for n in self.names.uses(self.scope, name) if not self._in_body(n)]
        return outside if self._is_shared(name) else [n for n in outside if n in self._later or self._is_elsewhere(n)]

    def deleted_after(self, name: str) -> bool:
        """Whether the loop's own function deletes the variable behind the loop: ``del x``."""
        deleted = (n for n in walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del) and n.id == name)
        return any(self.is_same(n) and position(n) > position(self.loop.node) and not self._in_body(n) for n in deleted)

    def read_inside(self, name: str, own: Collection[ast.AST]) -> bool:
        """Whether the loop, or a function that it enters, reads the variable in another place than its ``own`` names."""
        reads = [n for n in self.names.uses(self.scope, name) if n not in own]
        return any(self.names.is_inside(n, self.loop.node) or self.names.function(n) in self.entered for n in reads)

    @cached_property
    def entered(self) -> set[FunctionNode]:
        """The functions that the loop enters."""
        return self.roles.all_entered(ast.Module(self.loop.node.body, []))

    def stores(self) -> list[ast.Name]:
        """Where the loop, its target included, gives a variable of its scope another value."""
        return [n for n in walk(self.loop.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and self.is_same(n)]

    @cached_property
    def going_on(self) -> tuple[str, ...]:
        """The variables that a batch may read, or add to, as the batch before has left them."""
        stored = {n.id for n in self.stores()}
        early = _early_reads(self.names, self.loop.node.body, _targets(self.loop.node))
        return tuple(dict.fromkeys(n.id for n in early if n.id in stored and self.is_same(n)))

    def _in_body(self, node: ast.AST) -> bool:
        return any(self.names.is_inside(node, s) for s in self.loop.node.body)

    def _is_shared(self, name: str) -> bool:
        """Whether the variable lives on when the loop's function has ended."""
        found = self.names.variable(self.scope, name)
        return found is None or found[0].node is not self.function

    def _is_elsewhere(self, node: ast.AST) -> bool:
        """Whether the node stands in another function, a lambda or a generator with a name, which may run at any time."""
        names = self.names
        late = (
            a for a in names.ancestors(node) if isinstance(a, ast.Lambda) or (isinstance(a, ast.GeneratorExp) and not isinstance(names.parent[a], ast.Call))
        )
        return names.function(node) is not self.function or any(True for _ in late)

    @cached_property
    def _later(self) -> set[ast.Name]:
        """The reads of the loop's own function before which nothing else is stored for certain once the loop has ended."""
        return set(_early_reads(self.names, self.loop.node.orelse, set())) | later(self.names, self.loop.node)

    # ------------------------------------------------------------------ what it is when the loop begins
    def last_value(self, name: str) -> ast.expr | None:
        """The last value before the loop in the loop's own function, which it need not have whenever the loop begins; None if it cannot be read."""
        given = (b for b in self._stores_before(name) if b.how == "assign")
        last = max(given, key=lambda b: position(b.target), default=None)
        return _value(last) if last is not None else None

    def beginning(self, name: str) -> ast.expr | None:
        """The expression whose value the variable has whenever the loop begins; None where there is no one such expression."""
        function = self.names.function
        elsewhere = (function(b.target) for b in self.names.bindings(self.scope, name))
        if any(isinstance(f, FunctionNode) and f is not self.function for f in elsewhere):
            return None  # a function with a global statement
        stores = {b.target: b for b in self._stores_before(name)}
        last = self.certain_last(stores)
        if last is None or isinstance(self.names.parent[last], ast.NamedExpr):
            return None
        return _value(stores[last])

    def certain_last(self, places: Iterable[ast.AST]) -> ast.AST | None:
        """The last of the places before the loop, if it has run anew each time the loop begins."""
        names = self.names
        before = (p for p in places if names.function(p) is self.function and position(p) < position(self.loop.node))
        last = max(before, key=position, default=None)
        if last is None:
            return None
        stmt = names.statement(last)
        repeated = (a for a in names.ancestors(self.loop.node) if isinstance(a, Loop) and names.function(a) is self.function)
        if any(not names.is_inside(stmt, a) for a in repeated) or not _certainly_before(names, stmt, self.loop.node):
            return None
        return last

    def start(self, name: str) -> Start | None:
        """What the variable is whenever the loop begins; None where that is not known, or nothing that a loop adds to."""
        value = self.beginning(name)
        return start(self.names, value) if value is not None else None

    def from_zero(self, name: str) -> bool:
        """Whether the variable is 0 (a list: empty) whenever the loop begins, so that its end is the sum over the batches and nothing else."""
        value = self.beginning(name)
        if value is None or start(self.names, value) not in _ADDABLE:
            return False
        return isinstance(value, ast.Constant) or not self.known_elsewhere(name)

    def entry_from_zero(self, entry: ast.Subscript) -> bool:
        """The same of an entry of a dict: ``stats["loss"]``."""
        if not isinstance(entry.value, ast.Name):
            return False
        value = self.beginning(entry.value.id)
        if value is None or self.known_elsewhere(entry.value.id):
            return False
        if isinstance(value, ast.Dict) and isinstance(entry.slice, ast.Constant) and None not in value.keys:
            given = {k.value: v for k, v in zip(value.keys, value.values, strict=True) if isinstance(k, ast.Constant)}
            return is_zero(given.get(entry.slice.value))
        return start(self.names, value) is Start.NUMBERS

    def known_elsewhere(self, name: str) -> bool:
        """Whether the variable's object is more than the loop's: it has another name, is used before the loop, or by a function that the loop enters."""
        value = self.beginning(name)
        if value is None or self._is_shared(name):
            return True
        stmt = self.names.statement(value)
        if isinstance(stmt, ast.Assign) and len(stmt.targets) > 1 and start(self.names, value) is not Start.NOTHING:
            return True
        reads = [n for n in self.names.uses(self.scope, name) if not self.names.is_inside(n, self.loop.node)]
        between = (n for n in reads if self.names.function(n) is self.function and position(stmt) < position(n) < position(self.loop.node))
        return any(not self.names.is_inside(n, stmt) for n in between) or any(self.names.function(n) in self.entered for n in reads)

    def _stores_before(self, name: str) -> Iterator[Binding]:
        """What gives the variable a value before the loop, in the loop's own function."""
        for b in self.names.bindings(self.scope, name):
            if self.names.function(b.target) is self.function and b.how != "param" and position(b.target) < position(self.loop.node):
                yield b


def _value(binding: Binding) -> ast.expr | None:
    """What the binding gives the variable, as an expression; None where it is a part of something."""
    value = binding.value
    for part in binding.path:
        elements = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        readable = isinstance(part, int) and part < len(elements) and not any(isinstance(e, ast.Starred) for e in elements)
        value = elements[int(part)] if readable else None
    return value if isinstance(value, ast.expr) and binding.how == "assign" else None


# ------------------------------------------------------------------ what an expression is, as a beginning
def is_zero(node: ast.expr | None) -> bool:
    """Whether the expression is a literal 0."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value == 0


def is_number(names: Names, node: ast.expr | None) -> bool:
    """Whether the expression is a number, or a tensor or array that is made of numbers, so that ``+=`` adds to it."""
    node = unmoved(names, node)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return isinstance(node, ast.Call) and names.dotted(node.func) in _MADE_OF | _ZEROS


def unmoved(names: Names, node: ast.expr | None) -> ast.expr | None:
    """The tensor or array before it goes to a device or type: ``torch.zeros(3)`` of ``torch.zeros(3).to(device)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES and not names.dotted(node.func):
        node = node.func.value
    return node


def start(names: Names, node: ast.expr | None) -> Start | None:
    """What the expression is as the beginning of something that a loop adds to."""
    node = unmoved(names, node)
    if isinstance(node, ast.Constant):
        return Start.NOTHING if node.value is None else Start.ZERO if is_zero(node) else None
    if isinstance(node, ast.List):
        return Start.LIST if not node.elts else Start.NUMBERS if all(map(is_zero, node.elts)) else None
    if isinstance(node, ast.Dict) and node.values and None not in node.keys:
        return Start.LISTS if all(map(_is_empty_list, node.values)) else Start.NUMBERS if all(map(is_zero, node.values)) else None
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return Start.NUMBERS if is_zero(node.elt) else None
    if isinstance(node, ast.DictComp):
        return Start.LISTS if _is_empty_list(node.value) else Start.NUMBERS if is_zero(node.value) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return Start.NUMBERS if isinstance(node.left, ast.List) and start(names, node.left) is Start.NUMBERS else None
    return _start_of_call(names, node) if isinstance(node, ast.Call) else None


def _start_of_call(names: Names, call: ast.Call) -> Start | None:
    dotted = names.dotted(call.func)
    named = (k.value for k in call.keywords if k.arg in ("data", "object", "size", "shape"))
    first = call.args[0] if call.args else next(named, None)
    if dotted == "?.list":
        return Start.LIST if first is None else start(names, first) if isinstance(first, ast.GeneratorExp | ast.ListComp) else None
    if dotted == "collections.defaultdict" and isinstance(first, ast.Name):
        return {"list": Start.LISTS, "int": Start.NUMBERS, "float": Start.NUMBERS}.get(first.id)
    if dotted == "collections.defaultdict" and isinstance(first, ast.Lambda):
        return Start.LISTS if _is_empty_list(first.body) else Start.NUMBERS if is_zero(first.body) else None
    if dotted == "collections.Counter":
        return Start.NUMBERS if first is None else None
    if dotted in _MADE_OF | _MADE_OF_LISTS:
        if first is None or _is_empty_list(first):
            return Start.EMPTY
        if isinstance(first, ast.List):
            return Start.ZEROS if _all_zero(first) else None
        return Start.ZERO if dotted in _MADE_OF and is_zero(first) else None
    if dotted in _SIZED and first is not None:
        size = first.elts[0] if isinstance(first, ast.Tuple | ast.List) and first.elts else first
        return Start.EMPTY if is_zero(size) else Start.ZEROS if dotted in _ZEROS else None
    return None


def _all_zero(node: ast.expr) -> bool:
    return all(map(_all_zero, node.elts)) if isinstance(node, ast.List) else is_zero(node)


def _is_empty_list(node: ast.expr) -> bool:
    return isinstance(node, ast.List) and not node.elts


# ------------------------------------------------------------------ reads after a statement
def later(names: Names, stmt: ast.stmt) -> set[ast.Name]:
    """The reads of the statement's own function that come after it without anything else being stored for certain between the two."""
    found: set[ast.Name] = set()
    given: set[str] = set()  # what has been stored since the statement ended
    first = stmt
    while True:
        above = names.parent[stmt]
        found.update(_early_reads(names, _below(names, stmt), given))
        outer = above if isinstance(above, ast.stmt | ast.Module) else names.parent[above]  # a handler's, a case's statement
        if isinstance(outer, Loop):
            found.update(_of_next_turn(names, outer, given, first))
            given = set()  # a break may have left out the rest
        elif isinstance(outer, _TRY):
            found.update(_in_other_parts(names, outer, above, given))
            given = set() if above is outer else given  # an exception may have
        elif _swallows(names, outer):
            given = set()
        if isinstance(outer, FunctionNode | ast.ClassDef | ast.Module):
            return found
        assert isinstance(outer, ast.stmt)
        stmt = outer


def _of_next_turn(names: Names, outer: Loop, given: set[str], first: ast.stmt) -> Iterator[ast.Name]:
    """What the next turn of a loop round a statement may read, and what follows when the turns are over."""
    skipped = any(isinstance(n, ast.Continue) and position(n) > position(first) for n in walk(outer))
    turn = (set() if skipped else set(given)) | _targets(outer)
    if isinstance(outer, ast.While):
        yield from _reads_of(names, [outer.test], turn)
    yield from _early_reads(names, outer.body, turn)
    yield from _early_reads(names, outer.orelse, set())


# ------------------------------------------------------------------ reads before stores
def _early_reads(names: Names, block: Iterable[ast.stmt], given: set[str]) -> Iterator[ast.Name]:
    """The names that the statements may read before they store them; ``given`` grows by what is stored for certain."""
    for s in block:
        yield from _reads_of(names, _heads(s), given)
        if isinstance(s, ast.If):
            yield from _branches(names, [s.body, s.orelse], given)
        elif isinstance(s, Loop):
            for part in (s.body, s.orelse):
                yield from _early_reads(names, part, given | _targets(s))
        elif isinstance(s, ast.With | ast.AsyncWith):
            yield from _early_reads(names, s.body, set(given) if _swallows(names, s) else given)
        elif isinstance(s, _TRY):
            entry = set(given)
            yield from _branches(names, [[*s.body, *s.orelse], *(h.body for h in s.handlers)], given)
            yield from _early_reads(names, s.finalbody, entry)
            given |= entry
        elif isinstance(s, ast.Match):
            yield from _branches(names, [c.body for c in s.cases] + [[]], given)


def _branches(names: Names, blocks: list[list[ast.stmt]], given: set[str]) -> Iterator[ast.Name]:
    """One of the blocks runs: what all of them store that come to their end is stored for certain."""
    ends: list[set[str]] = []
    for block in blocks:
        inner = set(given)
        yield from _early_reads(names, block, inner)
        if not (block and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)):
            ends.append(inner)
    given |= set.intersection(*ends) if ends else set()


def _heads(stmt: ast.stmt) -> list[ast.AST]:
    """What a statement evaluates itself, before or without the statements inside it."""
    if isinstance(stmt, ast.If | ast.While):
        return [stmt.test]
    if isinstance(stmt, ast.For | ast.AsyncFor):
        return [stmt.iter]
    if isinstance(stmt, ast.With | ast.AsyncWith):
        return [*stmt.items]
    if isinstance(stmt, ast.Match):
        return [stmt.subject, *(c.guard for c in stmt.cases if c.guard is not None)]
    if isinstance(stmt, FunctionNode):
        return [*stmt.decorator_list, stmt.args]  # its body runs when it is called
    return [] if isinstance(stmt, _TRY) else [stmt]


def _reads_of(names: Names, parts: list[ast.AST], given: set[str]) -> Iterator[ast.Name]:
    """The names read in the parts of one statement; ``given`` grows by those that it stores for certain."""
    certain: set[str] = set()
    for part in parts:
        for n in walk(part):
            if not isinstance(n, ast.Name):
                continue
            grown = isinstance(names.parent[n], ast.AugAssign)
            if n.id not in given and (isinstance(n.ctx, ast.Load) or grown):
                yield n
            # not for certain: a ``:=``, a variable of a comprehension or of a class
            elif isinstance(n.ctx, ast.Store) and not grown and not isinstance(names.parent[n], ast.NamedExpr) and names.scope_of[n] is names.scope_of[part]:
                certain.add(n.id)
    given |= certain


def _targets(loop: Loop) -> set[str]:
    """The variables of a ``for``."""
    return {n.id for n in walk(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, ast.For | ast.AsyncFor) else set()


def _below(names: Names, stmt: ast.stmt) -> list[ast.stmt]:
    block = names.block(stmt)
    return block[block.index(stmt) + 1 :]


def _in_other_parts(names: Names, guard: ast.Try | ast.TryStar, inside: ast.AST, given: set[str]) -> Iterator[ast.Name]:
    """What the other parts of a ``try`` may read when one part has run, or has been left by an exception at any place."""
    if inside is guard:
        yield from _early_reads(names, guard.orelse, set(given))
        for handler in guard.handlers:
            yield from _early_reads(names, handler.body, set())
    yield from _early_reads(names, guard.finalbody, set())


def _swallows(names: Names, node: ast.AST) -> bool:
    """``with contextlib.suppress(…):``, whose statements need not all have run."""
    items = [i.context_expr for i in node.items] if isinstance(node, ast.With | ast.AsyncWith) else []
    return any(isinstance(e, ast.Call) and names.dotted(e.func) == "contextlib.suppress" for e in items)


def _certainly_before(names: Names, stmt: ast.stmt, node: ast.AST) -> bool:
    """Whether the statement has run whenever the node is evaluated: it stands before it, in its block or in one round it."""
    return any(names.is_inside(node, s) for s in _below(names, stmt))
