"""What a batch loop fills: lists and arrays that grow at their end, tables whose elements are counters.

Each rank's part of a list, put end to end in the order of the batches, is the list of one process; each rank's table, added up, the table. That holds
only for a variable that begins empty (or full of zeros), that the loop does nothing else to, and that nobody else holds meanwhile.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass

from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import Loop, Names, position
from dpmigrate.facts.roles import Roles


class Fills(enum.Enum):
    """How the variable grows."""

    ROWS = "rows"  # a list that is appended to, or a dict of such lists
    JOINED = "joined"  # a tensor or array that is bound again with a part put behind it
    TABLE = "table"  # elements that are added to


@dataclass(frozen=True, eq=False, slots=True)
class Filled:
    """A variable that the loop fills: ``adds`` is what it is given, ``own`` the nodes that only do this."""

    name: str
    how: Fills
    adds: tuple[ast.expr, ...]
    own: frozenset[int]
    obstacle: str  # why its parts cannot be put together; '' if they can
    in_order: bool  # the order of the batches is kept in it
    appended: bool  # what a batch gives is one element, or may be
    read_after: bool


_EMPTY_TENSORS = frozenset({"torch.tensor", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.IntTensor", "numpy.array", "numpy.asarray"})
_SIZED = frozenset({"torch.zeros", "torch.empty", "numpy.zeros", "numpy.empty"})
_ZEROS = frozenset({"torch.zeros", "numpy.zeros"})
_MOVES = frozenset({"to", "cuda", "cpu", "long", "int", "float", "double", "astype", "type"})
_CAT = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "numpy.concatenate"})
_STACKS = frozenset({"torch.vstack", "numpy.vstack", "torch.hstack", "numpy.hstack"})


class _Start(enum.Enum):
    LIST = "list"
    LISTS = "lists"  # a dict of lists
    NOTHING = "nothing"
    EMPTY = "empty"  # an array without rows
    ZEROS = "zeros"  # an array
    NUMBERS = "numbers"  # a list or dict of numbers


def beginning(names: Names, loop: BatchLoop, name: str) -> ast.expr | None:
    """The expression whose value the local variable has whenever the loop begins; None where there is no one such expression."""
    function = names.function(loop.node)
    stores = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and names.function(n) is function]
    last = max((n for n in stores if position(n) < position(loop.node)), key=position, default=None)
    if last is None:
        return None
    stmt = names.statement(last)
    if any(isinstance(a, Loop) and names.function(a) is function and not names.is_inside(stmt, a) for a in names.ancestors(loop.node)):
        return None
    if not certainly_before(names, stmt, loop.node):
        return None
    if isinstance(stmt, ast.AnnAssign):
        return stmt.value
    return _given(stmt, last) if isinstance(stmt, ast.Assign) else None


def _given(stmt: ast.Assign, target: ast.Name) -> ast.expr:
    """What the assignment gives the name."""
    for t in stmt.targets:
        if isinstance(t, ast.Tuple) and isinstance(stmt.value, ast.Tuple) and target in t.elts:
            return stmt.value.elts[t.elts.index(target)]
    return stmt.value


def filled(roles: Roles, loop: BatchLoop) -> list[Filled]:
    """The variables that the loop fills and that are empty, or zero, when it begins."""
    names = roles.names
    out = []
    for name in dict.fromkeys(n.id for s in loop.node.body for n in ast.walk(s) if isinstance(n, ast.Name)):
        value = beginning(names, loop, name)
        start = _start(names, value) if value is not None else None
        if start is not None:
            found = _Uses(names, loop, name, start).filled(roles, value)
            if found is not None:
                out.append(found)
    return out


# ------------------------------------------------------------------ how it begins
def _start(names: Names, node: ast.expr | None) -> _Start | None:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES and not names.dotted(node.func):
        node = node.func.value
    if isinstance(node, ast.Constant):
        return _Start.NOTHING if node.value is None else None
    if isinstance(node, ast.List):
        return _Start.LIST if not node.elts else _Start.NUMBERS if all(map(_is_zero, node.elts)) else None
    if isinstance(node, ast.Dict) and node.values and None not in node.keys:
        return _Start.LISTS if all(map(_is_empty_list, node.values)) else _Start.NUMBERS if all(map(_is_zero, node.values)) else None
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _Start.NUMBERS if _is_zero(node.elt) else None
    if isinstance(node, ast.DictComp):
        return _Start.LISTS if _is_empty_list(node.value) else _Start.NUMBERS if _is_zero(node.value) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _Start.NUMBERS if _start(names, node.left) is _Start.NUMBERS and isinstance(node.left, ast.List) else None
    return _start_of_call(names, node) if isinstance(node, ast.Call) else None


def _start_of_call(names: Names, call: ast.Call) -> _Start | None:
    dotted = names.dotted(call.func)
    first = call.args[0] if call.args else None
    if dotted == "?.list":
        return _Start.LIST if first is None else _start(names, first) if isinstance(first, ast.GeneratorExp | ast.ListComp) else None
    if dotted == "collections.defaultdict" and isinstance(first, ast.Name):
        return {"list": _Start.LISTS, "int": _Start.NUMBERS, "float": _Start.NUMBERS}.get(first.id)
    if dotted == "collections.Counter":
        return _Start.NUMBERS if first is None else None
    if dotted in _EMPTY_TENSORS and (first is None or _is_empty_list(first)):
        return _Start.EMPTY
    if dotted in _SIZED and first is not None:
        size = first.elts[0] if isinstance(first, ast.Tuple | ast.List) and first.elts else first
        return _Start.EMPTY if _is_zero(size) else _Start.ZEROS if dotted in _ZEROS else None
    return None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value == 0


def _is_item(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def _is_empty_list(node: ast.expr) -> bool:
    return isinstance(node, ast.List) and not node.elts


# ------------------------------------------------------------------ what the loop does to it
class _Uses:
    """Every use of one name in one loop: those that fill it, and the rest."""

    def __init__(self, names: Names, loop: BatchLoop, name: str, start: _Start) -> None:
        self.names = names
        self.loop = loop
        self.name = name
        self.start = start
        self.found: dict[Fills, list[ast.expr]] = {}
        self.appended = False
        self.own: set[int] = set()
        self.guarded = False

    def filled(self, roles: Roles, value: ast.expr | None) -> Filled | None:
        for s in self.loop.node.body:
            for n in ast.walk(s):
                if isinstance(n, ast.If):
                    self._guard(n)
        for s in self.loop.node.body:
            for n in ast.walk(s):
                if isinstance(n, ast.stmt):
                    self._statement(n)
        rest = [n for s in self.loop.node.body for n in ast.walk(s) if self._is_it(n) and id(n) not in self.own]
        if len(self.found) != 1 or any(isinstance(n.ctx, ast.Store) for n in rest if isinstance(n, ast.Name)):
            return None
        how, adds = next(iter(self.found.items()))
        numbers = self.start is _Start.NUMBERS
        obstacle = ""
        if rest:
            obstacle = f"{self.name} is read while the loop runs"
        elif self._held_elsewhere(roles, value):
            obstacle = f"{self.name} may be known by another name or to a function when the loop runs"
        elif numbers and not all(map(self._plain_number, adds)):
            obstacle = f"{self.name} may hold something other than numbers"
        in_order = how is not Fills.TABLE or (isinstance(value, ast.Call) and self.names.dotted(value.func).startswith("collections."))
        appended = self.appended or any(isinstance(a, ast.List | ast.Tuple) or _is_item(a) for a in adds)
        return Filled(self.name, how, tuple(adds), frozenset(self.own), obstacle, in_order, appended, self._read_after())

    def _read_after(self) -> bool:
        names = self.names
        owner = names.owner(names.scope_of[self.loop.node], self.name)
        return any(not names.is_inside(n, self.loop.node) and names.owner(names.scope_of[n], self.name) is owner for n in names.reads(self.name))

    def _is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.name

    def _keep(self, how: Fills, added: ast.expr, *own: ast.AST) -> None:
        self.found.setdefault(how, []).append(added)
        self.own.update(map(id, own))

    def _statement(self, stmt: ast.stmt) -> None:
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
            self._call(stmt.value)
        elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.op, ast.Add):
            self._augmented(stmt)
        elif isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and self._is_it(stmt.targets[0]) and id(stmt.targets[0]) not in self.own:
            joined = self._joined(stmt.value)
            if joined is not None:
                previous, added = joined
                self._keep(Fills.JOINED, added, stmt.targets[0], previous)

    def _call(self, call: ast.Call) -> None:
        func = call.func
        if self.names.dotted(func) == "numpy.add.at":
            if self.start is _Start.ZEROS and len(call.args) == 3 and self._is_it(call.args[0]):
                self._keep(Fills.TABLE, call.args[2], call, call.args[0])
        elif isinstance(func, ast.Attribute) and func.attr in ("append", "extend") and len(call.args) == 1 and not call.keywords:
            base = self._rows(func.value)
            if base is not None:
                self.appended |= func.attr == "append"
                self._keep(Fills.ROWS, call.args[0], call, base)

    def _rows(self, node: ast.expr) -> ast.Name | None:
        """The variable, where the expression is the list: itself, or one of a dict."""
        if self.start is _Start.LISTS:
            node = node.value if isinstance(node, ast.Subscript) else ast.Constant(None)
        elif self.start is not _Start.LIST:
            return None
        return node if isinstance(node, ast.Name) and node.id == self.name else None

    def _augmented(self, stmt: ast.AugAssign) -> None:
        base: ast.expr = stmt.target
        while isinstance(base, ast.Subscript):
            base = base.value
        if not isinstance(base, ast.Name) or not self._is_it(base):
            return
        if isinstance(stmt.target, ast.Subscript) and self.start in (_Start.ZEROS, _Start.NUMBERS):
            self._keep(Fills.TABLE, stmt.value, stmt.target, base)
        elif self._rows(stmt.target) is base:
            self._keep(Fills.ROWS, stmt.value, stmt.target, base)

    # ------------------------------------------------------------------ name = cat((name, part))
    def _joined(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """The variable and the part that is put behind it."""
        if self.start not in (_Start.LIST, _Start.NOTHING, _Start.EMPTY):
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and self._is_it(node.left) and self.start is _Start.LIST:
            return node.left, node.right
        if not isinstance(node, ast.Call) or not node.args:
            return None
        dotted, first = self.names.dotted(node.func), node.args[0]
        axis = [k.value for k in node.keywords if k.arg in ("dim", "axis")]
        if dotted == "numpy.append" and len(node.args) in (2, 3) and self._is_it(first):
            axis += node.args[2:]
            return (first, node.args[1]) if self._along_rows(axis, node.keywords) and (axis or not self.guarded) else None
        if isinstance(first, ast.Tuple | ast.List) and len(first.elts) == 2 and self._is_it(first.elts[0]):
            axis += node.args[1:]
            if (dotted in _CAT or (dotted in _STACKS and not self.guarded)) and self._along_rows(axis, node.keywords):
                return first.elts[0], first.elts[1]
        return None

    @staticmethod
    def _along_rows(axis: list[ast.expr], keywords: list[ast.keyword]) -> bool:
        return len(axis) <= 1 and all(map(_is_zero, axis)) and all(k.arg in ("dim", "axis") for k in keywords)

    def _guard(self, node: ast.If) -> None:
        """``if preds is None: preds = part; labels = y``, ``else: preds = torch.cat((preds, part)); …``."""
        test, body = node.test, node.body
        firsts = [s for s in body if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)]
        if len(firsts) != len(body) or self.start not in (_Start.NOTHING, _Start.LIST):
            return
        mine = [s for s in firsts if self._is_it(s.targets[0])]
        tested = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
        if isinstance(tested, ast.Call) and self.names.dotted(tested.func) == "?.len" and len(tested.args) == 1:
            asks = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and _is_zero(test.comparators[0])
            tested = tested.args[0]
        else:
            asks = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and ast.unparse(test.comparators[0]) == "None"
        group = {s.targets[0].id for s in firsts if isinstance(s.targets[0], ast.Name)}
        if not asks or len(mine) != 1 or not isinstance(tested, ast.Name) or tested.id not in group:
            return
        others = {s.targets[0].id for s in node.orelse if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)}
        if others != group or len(node.orelse) != len(body):
            return  # a variable that only one side gives would not begin anew with each rank's first batch
        self.guarded = True
        self._keep(Fills.JOINED, mine[0].value, mine[0].targets[0])
        if self._is_it(tested):
            self.own.add(id(tested))

    # ------------------------------------------------------------------ who else may see it
    def _held_elsewhere(self, roles: Roles, value: ast.expr | None) -> bool:
        """Whether the variable is more than the loop's own: bound together with another, read before the loop, or used by a function that the loop calls."""
        names, loop = self.names, self.loop
        function = names.function(loop.node)
        scope = names.scope_of[loop.node]
        owner = names.owner(scope, self.name)
        if value is None or owner is None or owner.node is not function:
            return True  # declared global
        stmt = names.statement(value)
        if isinstance(stmt, ast.Assign) and len(stmt.targets) > 1 and self.start is not _Start.NOTHING:
            return True
        entered = roles.all_entered(ast.Module(loop.node.body, []))
        for n in names.nodes:
            if not self._is_it(n) or names.owner(names.scope_of[n], self.name) is not owner or names.is_inside(n, loop.node):
                continue
            if names.function(n) in entered:
                return True
            if names.function(n) is function and position(stmt) < position(n) < position(loop.node) and not names.is_inside(n, stmt):
                return True
        return False

    def _plain_number(self, node: ast.expr) -> bool:
        """A number of Python: elements of lists and dicts are added up as they are."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Call):
            return self.names.dotted(node.func) in ("?.int", "?.float", "?.len") or _is_item(node)
        return isinstance(node, ast.BinOp) and self._plain_number(node.left) and self._plain_number(node.right)


def own_nodes(found: list[Filled] | tuple[Filled, ...]) -> frozenset[int]:
    """The nodes that do nothing but fill."""
    return frozenset().union(*(f.own for f in found))


def is_rows(names: Names, loop: BatchLoop, f: Filled) -> bool:
    """Whether what is read after the loop are rows, one a sample: parts that were put behind one another, or are wherever the list is read."""
    if f.how is Fills.TABLE or not f.appended:
        return f.how is not Fills.TABLE
    end = loop.node.end_lineno or 0
    reads = [n for n in ast.walk(names.function(loop.node)) if isinstance(n, ast.Name) and n.id == f.name and n.lineno > end and isinstance(n.ctx, ast.Load)]
    joins = [n for n in reads if _put_together(names, n)]
    return bool(joins) and all(n in joins or any(_bound_again(names, j, n) for j in joins) for n in reads)


def _put_together(names: Names, node: ast.Name) -> bool:
    call = names.parent[node]
    return isinstance(call, ast.Call) and bool(call.args) and call.args[0] is node and names.dotted(call.func) in _CAT | _STACKS


def _bound_again(names: Names, join: ast.Name, node: ast.Name) -> bool:
    """Whether the variable means its parts put together where it is read: ``preds = torch.cat(preds)`` stands before, in the same block or one round it."""
    stmt = names.statement(join)
    bound = isinstance(stmt, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in stmt.targets)
    return bound and certainly_before(names, stmt, node)


def certainly_before(names: Names, stmt: ast.stmt, node: ast.AST) -> bool:
    """Whether the statement has run whenever the node is evaluated: it stands before it, in its block or in one round it."""
    block = names.block(stmt)
    return any(names.is_inside(node, s) for s in block[block.index(stmt) + 1 :])
