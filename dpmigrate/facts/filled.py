"""What a batch loop fills: lists and arrays that grow at their end, tables whose elements are counters.

Each rank's part of a list, put end to end in the order of the batches, is the list of one process; each rank's table, added up, the table. That holds
only for a variable that begins empty (or full of zeros), that the loop does nothing else to, and that nobody else holds meanwhile.
"""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from dpmigrate.facts.carried import Carried, Start, is_zero
from dpmigrate.facts.definitions import parameters
from dpmigrate.facts.executed import Executed
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.reasons import Why
from dpmigrate.facts.samples import of_batch


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
    obstacle: Why | None  # why its parts cannot be put together; None if they can
    in_order: bool  # the order of the batches is kept in it
    joins: tuple[ast.AST, ...]  # where something is put behind it
    appended: bool  # what a batch gives is one element, or may be
    read_after: bool


_CAT = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "numpy.concatenate"})
_STACKS = frozenset({"torch.vstack", "numpy.vstack", "torch.hstack", "numpy.hstack"})


def filled(carried: Carried, executed: Executed) -> list[Filled]:
    """The variables that the loop fills and that are empty, or zero, when it begins."""
    out = []
    for name in dict.fromkeys(n.id for s in carried.loop.node.body for n in walk(s) if isinstance(n, ast.Name)):
        start = carried.start(name)
        found = _Uses(carried, name, start or Start.EMPTY).filled() if start is not None or carried.beginning(name) is not None else None
        if found is not None and (start is not None or (found.joins and all(map(executed.from_nothing, found.joins)))):
            out.append(found)
    return out


# ------------------------------------------------------------------ what the loop does to it
class _Uses:
    """Every use of one name in one loop: those that fill it, and the rest."""

    def __init__(self, carried: Carried, name: str, start: Start) -> None:
        self.carried = carried
        self.names = carried.names
        self.loop = carried.loop
        self.name = name
        self.start = start
        self.found: dict[Fills, list[ast.expr]] = {}
        self.appended = False
        self.of_samples: set[ast.expr] = set()  # appended for each sample, whatever it is
        self.joins: list[ast.AST] = []
        self.own: set[int] = set()
        self.guarded = False

    def filled(self) -> Filled | None:
        for s in self.loop.node.body:
            for n in walk(s):
                if isinstance(n, ast.If):
                    self._guard(n)
        for s in self.loop.node.body:
            for n in walk(s):
                if isinstance(n, ast.stmt):
                    self._statement(n)
        rest = [n for s in self.loop.node.body for n in walk(s) if self._is_it(n) and id(n) not in self.own]
        if len(self.found) != 1 or any(isinstance(n.ctx, ast.Store) for n in rest if isinstance(n, ast.Name)):
            return None
        how, adds = next(iter(self.found.items()))
        numbers = self.start is Start.NUMBERS
        obstacle = None
        if rest:
            obstacle = Why.READ_INSIDE
        elif self.carried.known_elsewhere(self.name):
            obstacle = Why.KNOWN_ELSEWHERE
        elif numbers and not all(map(self._plain_number, adds)):
            obstacle = Why.NO_NUMBERS
        value = self.carried.beginning(self.name)
        in_order = how is not Fills.TABLE or (isinstance(value, ast.Call) and self.names.dotted(value.func).startswith("collections."))
        appended = self.appended or any(isinstance(a, ast.List | ast.Tuple) or _is_item(a) for a in adds if a not in self.of_samples)
        return Filled(self.name, how, tuple(adds), frozenset(self.own), obstacle, in_order, tuple(self.joins), appended, self.carried.read_after(self.name))

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
                self.joins.append(stmt.value)

    def _call(self, call: ast.Call) -> None:
        func = call.func
        if self.names.dotted(func) == "numpy.add.at":
            if self.start is Start.ZEROS and len(call.args) == 3 and self._is_it(call.args[0]):
                self._keep(Fills.TABLE, call.args[2], call, call.args[0])
        elif isinstance(func, ast.Attribute) and func.attr in ("append", "extend") and len(call.args) == 1 and not call.keywords:
            base = self._rows(func.value)
            if base is not None:
                if func.attr == "append" and each_sample(self.carried, call):
                    self.of_samples.add(call.args[0])
                else:
                    self.appended |= func.attr == "append"
                self._keep(Fills.ROWS, call.args[0], call, base)
        elif self.start is Start.LIST and self.loop.trains:
            self._handed(call)

    def _handed(self, call: ast.Call) -> None:
        """A call by which a function of the program puts rows behind those of the list, and does nothing else with it: ``decode(preds, out, words)``."""
        given = [n for n in walk(call) if self._is_it(n)]
        functions = {f for f, _ in self.carried.roles.values.targets(call)}
        if len(given) != 1 or len(functions) != 1:
            return
        function = functions.pop()
        named = [p for p in parameters(function) if self.carried.roles.passed(call, function, p) is given[0]]
        added = _extended(function, named[0]) if named else []
        if added:
            self._keep(Fills.ROWS, added[0], given[0])
            self.found[Fills.ROWS] += added[1:]

    def _rows(self, node: ast.expr) -> ast.Name | None:
        """The variable, where the expression is the list: itself, or one of a dict."""
        if self.start is Start.LISTS:
            node = node.value if isinstance(node, ast.Subscript) else ast.Constant(None)
        elif self.start is not Start.LIST:
            return None
        return node if isinstance(node, ast.Name) and node.id == self.name else None

    def _augmented(self, stmt: ast.AugAssign) -> None:
        base: ast.expr = stmt.target
        while isinstance(base, ast.Subscript):
            base = base.value
        if not isinstance(base, ast.Name) or not self._is_it(base):
            return
        if isinstance(stmt.target, ast.Subscript) and self.start in (Start.ZEROS, Start.NUMBERS):
            self._keep(Fills.TABLE, stmt.value, stmt.target, base)
        elif self._rows(stmt.target) is base:
            self._keep(Fills.ROWS, stmt.value, stmt.target, base)

    # ------------------------------------------------------------------ name = cat((name, part))
    def _joined(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """The variable and the part that is put behind it."""
        if self.start not in (Start.LIST, Start.NOTHING, Start.EMPTY):
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and self._is_it(node.left) and self.start is Start.LIST:
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
        return len(axis) <= 1 and all(map(is_zero, axis)) and all(k.arg in ("dim", "axis") for k in keywords)

    def _guard(self, node: ast.If) -> None:
        """``if preds is None: preds = part; labels = y``, ``else: preds = torch.cat((preds, part)); …``."""
        test, body = node.test, node.body
        firsts = [s for s in body if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)]
        if len(firsts) != len(body) or self.start not in (Start.NOTHING, Start.LIST):
            return
        mine = [s for s in firsts if self._is_it(s.targets[0])]
        tested = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
        if isinstance(tested, ast.Call) and self.names.dotted(tested.func) == "?.len" and len(tested.args) == 1:
            asks = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and is_zero(test.comparators[0])
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

    def _plain_number(self, node: ast.expr) -> bool:
        """A number of Python: elements of lists and dicts are added up as they are."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Call):
            return self.names.dotted(node.func) in ("?.int", "?.float", "?.len") or _is_item(node)
        return isinstance(node, ast.BinOp) and self._plain_number(node.left) and self._plain_number(node.right)


def _extended(function: FunctionNode, name: str) -> list[ast.expr]:
    """What a function puts behind a list that it is given; nothing where it does anything else with it."""
    added: list[ast.expr] = []
    own: set[ast.AST] = set()
    for n in walk(function):
        match n:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as held, attr="extend"), args=[rows], keywords=[])) if held.id == name:
                added, own = [*added, rows], own | {held}
            case ast.AugAssign(target=ast.Name() as held, op=ast.Add(), value=rows) if held.id == name:
                added, own = [*added, rows], own | {held}
    rest = any(isinstance(n, ast.Name) and n.id == name and n not in own for n in walk(function))
    later = isinstance(function, ast.AsyncFunctionDef) or any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(function))
    return [] if rest or later else added


def each_sample(carried: Carried, call: ast.Call) -> list[ast.expr]:
    """What a loop over numbers of the samples that stands round a call, in the turn, goes through: both of ``for p, t in zip(pred.tolist(), y.tolist()):``.
    Nothing where there is no such loop.
    """
    around = itertools.takewhile(lambda a: a is not carried.loop.node, carried.names.ancestors(call))
    for inner in (a for a in around if isinstance(a, ast.For)):
        zipped = isinstance(inner.iter, ast.Call) and carried.names.dotted(inner.iter.func) == "?.zip"
        parts = inner.iter.args if zipped and isinstance(inner.iter, ast.Call) else [inner.iter]
        numbers = (isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute) and p.func.attr in ("tolist", "numpy") for p in parts)
        if all(numbers) and of_batch(carried.roles, inner.iter):
            return parts
    return []


def own_nodes(found: Iterable[Filled]) -> frozenset[int]:
    """The nodes that do nothing but fill."""
    return frozenset().union(*(f.own for f in found))


def is_rows(carried: Carried, f: Filled) -> bool:
    """Whether what is read after the loop are rows, one a sample: parts that were put behind one another, or are wherever the list is read."""
    if f.how is Fills.TABLE or not f.appended:
        return f.how is not Fills.TABLE
    reads = carried.reads_after(f.name)
    return bool(reads) and all(_put_together(carried.names, n) for n in reads)


def _put_together(names: Names, node: ast.expr) -> bool:
    call = names.parent[node]
    return isinstance(call, ast.Call) and bool(call.args) and call.args[0] is node and names.dotted(call.func) in _CAT | _STACKS


def _is_item(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"
