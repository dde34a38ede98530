"""A distributed mode of the program's own that an option switches on: the program as it runs without that option.

Programs that grew out of one well-known pattern have two ways to several GPUs: DataParallel by default, and processes of their own behind
``--distributed`` or ``--local_rank``. The default way can be migrated if every use of the other one stands under tests that the options'
defaults decide. What is behind such a test is left out of the tree that the facts see.
"""

from __future__ import annotations

import ast
import copy
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpmigrate.facts.dormant import dormant
from dpmigrate.facts.launch import PROCESSES, uses_own_mode
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.scopes import Links

#: variables and options that tell of processes
_ABOUT = re.compile(r"dist|ddp|world_?size|rank|multi_?process", re.IGNORECASE)
_UNKNOWN = object()
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class DefaultPath:
    """The program without its own distributed mode, a tree for each file; ``switches`` are the first statements of the blocks that would start it."""

    trees: tuple[ast.Module, ...]
    switches: tuple[ast.stmt, ...]


def default_path(names: Names, links: Links | None = None) -> DefaultPath | None:
    """What runs where nothing switches the own mode on; None where that cannot be told, or where nothing would switch it."""
    known = _Defaults(names)
    switches = _switches(names, known)
    if not switches:
        return None
    decided = {_place(n): v for n in names.nodes if isinstance(n, ast.If | ast.IfExp) and isinstance(v := known.value(n.test), bool)}
    trees = tuple(_Pruned(decided).visit(copy.deepcopy(tree)) for tree in names.trees)
    _take_out_unused(Names(trees[-1], trees[:-1], links))
    return DefaultPath(trees, tuple(switches))


def _switches(names: Names, known: _Defaults) -> list[ast.stmt]:
    """Where the own mode begins: the blocks in which a process group is set up or processes are started. None of them may run by default."""
    found: dict[ast.stmt, None] = {}
    for call in (n for n in names.nodes if isinstance(n, ast.Call)):
        if names.dotted(call.func) not in PROCESSES | {"torch.distributed.init_process_group"}:
            continue
        inner: ast.AST = call
        block: list[ast.stmt] | None = None
        for a in names.ancestors(call):
            if isinstance(a, ast.If):
                value = known.value(a.test)
                dead = a.body if value is False else a.orelse if value is True else []
                block = dead if inner in dead else block
            inner = a
        if block is not None:
            found[block[0]] = None
    return list(found)


class _Defaults:
    """The values that tests about processes have where every option keeps its default."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._busy: set[str] = set()
        self._options: dict[str, object] = {}
        for call in names.calls("add_argument"):
            texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            given = {k.arg: k.value for k in call.keywords}
            name = max(texts, key=len, default="").lstrip("-").replace("-", "_")
            self._options[name] = self._default(given)

    @staticmethod
    def _default(given: dict[str | None, ast.expr]) -> object:
        action = given.get("action")
        if isinstance(action, ast.Constant) and action.value in ("store_true", "store_false") and "default" not in given:
            return action.value == "store_false"
        default = given.get("default", ast.Constant(None))
        try:
            return ast.literal_eval(default)
        except ValueError:
            return _UNKNOWN

    def value(self, node: ast.expr) -> object:
        """The value of the expression, or that it is not known."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.value(node.operand)
            return _UNKNOWN if inner is _UNKNOWN else not inner
        if isinstance(node, ast.BoolOp):
            return self._both(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = self.value(node.left), self.value(node.comparators[0])
            try:
                return _UNKNOWN if _UNKNOWN in (left, right) else bool(_COMPARE[type(node.ops[0])](left, right))
            except TypeError:
                return _UNKNOWN
        if isinstance(node, ast.Name | ast.Attribute):
            return self._variable(node)
        try:
            return ast.literal_eval(node)
        except ValueError:
            return _UNKNOWN

    def _both(self, node: ast.BoolOp) -> object:
        ends = isinstance(node.op, ast.Or)
        values = [self.value(v) for v in node.values]
        if any(v is not _UNKNOWN and bool(v) is ends for v in values):
            return ends
        return _UNKNOWN if _UNKNOWN in values else values[-1]

    def _variable(self, node: ast.Name | ast.Attribute) -> object:
        name = node.id if isinstance(node, ast.Name) else node.attr
        if not _ABOUT.search(name) or name in self._busy:
            return _UNKNOWN
        self._busy.add(name)
        try:
            stored = [self._stored(n) for n in self.names.nodes if _stores(n, name) and not self._left_out(n)]
        finally:
            self._busy.discard(name)
        if not stored:
            return self._options.get(name, _UNKNOWN) if isinstance(node, ast.Attribute) else _UNKNOWN
        return stored[0] if all(v is not _UNKNOWN and v == stored[0] for v in stored) else _UNKNOWN

    def _stored(self, target: ast.AST) -> object:
        above = self.names.parent[target]
        return self.value(above.value) if isinstance(above, ast.Assign) else _UNKNOWN

    def _left_out(self, node: ast.AST) -> bool:
        """Whether the statement stands in a branch that the defaults do not take."""
        inner = node
        for a in self.names.ancestors(node):
            if isinstance(a, ast.If) and inner is not a.test:
                value = self.value(a.test)
                if (value is False and inner in a.body) or (value is True and inner in a.orelse):
                    return True
            inner = a
        return False


def _stores(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store) and (node.id if isinstance(node, ast.Name) else node.attr) == name


class _Pruned(ast.NodeTransformer):
    """Leaves out the branches that are not taken."""

    def __init__(self, decided: dict[tuple[str, int, int], bool]) -> None:
        self.decided = decided

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        taken = self.decided.get(_place(node))
        self.generic_visit(node)
        if taken is None:
            node.body = node.body or [_nothing(node)]
            return node
        return (node.body if taken else node.orelse) or [_nothing(node)]

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        taken = self.decided.get(_place(node))
        self.generic_visit(node)
        return node if taken is None else node.body if taken else node.orelse


def _place(node: ast.If | ast.IfExp) -> tuple[str, int, int]:
    """Where the test stands, which no other of its kind begins at."""
    return type(node).__name__, node.test.lineno, node.test.col_offset


def _nothing(node: ast.stmt) -> ast.Pass:
    return ast.copy_location(ast.Pass(), node)


def _take_out_unused(names: Names) -> None:
    """Leave out the functions that nothing uses any more and that belong to the own mode."""
    for node in dormant(names):
        if isinstance(node, FunctionNode) and any(uses_own_mode(names, n) for n in walk(node)):
            home: list[ast.stmt] = names.block(node)
            home[home.index(node)] = _nothing(node)
