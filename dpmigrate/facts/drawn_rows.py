"""Draws of the indices of samples, and what has a row for each sample that is drawn.

A draw is one of indices along one axis. The rows of a batch are the samples where it is made of the indices, one after the other; of everything else it
is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpmigrate.contract import MODULE
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: the place of an argument that is given by its name alone
_NOWHERE = 99
#: draws of indices, with where the number of samples stands in their arguments; the last one where that is None
_SIZED = {
    "torch.randint": ("size", None), "numpy.random.randint": ("size", 2), "numpy.random.choice": ("size", 1), "numpy.random.random_integers": ("size", 2),
    "random.sample": ("k", 1), "random.choices": ("k", _NOWHERE),
}  # fmt: skip
#: draws of whole orders, of which a batch is the first indices
_ORDERS = frozenset({"torch.randperm", "numpy.random.permutation"})
#: methods of generators that the program makes
_OF_GENERATORS = {"integers": ("size", 2), "randint": ("size", 2), "choice": ("size", 1), "sample": ("k", 1), "choices": ("k", _NOWHERE)}
#: methods that give a tensor or an array with the same rows
SAME_ROWS = frozenset(
    {
        "to", "cuda", "cpu", "pin_memory", "long", "int", "float", "half", "bfloat16", "double", "type", "astype", "contiguous", "clone", "copy", "detach",
        "numpy",
    }
)  # fmt: skip
#: functions that make a tensor or an array of rows, or of a list of them
OF_ROWS = frozenset(
    {
        "torch.stack", "torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.LongTensor", "torch.FloatTensor", "torch.Tensor",
        "numpy.array", "numpy.asarray", "numpy.stack", "numpy.ascontiguousarray",
    }
)  # fmt: skip
_AXES = frozenset({"dim", "axis"})


def taken(roles: Roles, node: ast.expr) -> tuple[ast.expr, bool]:
    """What a rank takes its rows of, and whether it does."""
    if isinstance(node, ast.Call) and roles.names.dotted(node.func) == f"{MODULE}.local_rows" and len(node.args) == 1:
        return node.args[0], True
    return node, False


# ---------------------------------------------------------------------- draws of indices
def is_draw(roles: Roles, node: ast.AST) -> bool:
    """Whether an expression is a draw of some indices along one axis."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and node.slice.lower is None and node.slice.step is None and node.slice.upper is not None and (
            isinstance(node.value, ast.Call) and _is_order(roles, node.value)
        )  # fmt: skip
    if not isinstance(node, ast.Call):
        return False
    sized = _SIZED.get(roles.names.dotted(node.func)) or _of_generator(roles, node)
    if sized is None:
        return False
    name, at = sized
    given = next((k.value for k in node.keywords if k.arg == name), None)
    if given is None and len(node.args) > (1 if at is None else at):
        given = node.args[-1 if at is None else at]
    if given is None or any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return False
    if isinstance(given, ast.Tuple | ast.List):
        return len(given.elts) == 1 and not isinstance(given.elts[0], ast.Starred)
    return roles.names.dotted(node.func) != "torch.randint"


def own_generator(roles: Roles, rows: ast.expr) -> bool:
    """Whether indices are drawn from a generator that the program has made, and not from a stream of the process."""
    return isinstance(rows, ast.Call) and roles.names.dotted(rows.func) not in _SIZED and _of_generator(roles, rows) is not None


def _of_generator(roles: Roles, call: ast.Call) -> tuple[str, int | None] | None:
    from dpmigrate.facts.randomness import STREAMS

    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _OF_GENERATORS:
        return None
    made = roles.values.eval(call.func.value)
    return _OF_GENERATORS[call.func.attr] if made and all(v.qual in STREAMS for v in made) else None


def _is_order(roles: Roles, call: ast.Call) -> bool:
    return roles.names.dotted(call.func) in _ORDERS and len(call.args) == 1


# ---------------------------------------------------------------------- functions that make batches
def gives_batches(roles: Roles, call: ast.Call) -> bool:
    """Whether a call gives batches of a function of the program, whose rows are the samples that it picks, and trains nothing itself."""
    functions = [f for f, _ in roles.values.targets(call)]
    return bool(functions) and all(_makes(roles, f) for f in functions)


def _makes(roles: Roles, function: FunctionNode) -> bool:
    if roles.reaches_backward(function) or roles.inside_module(function) or any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(function)):
        return False
    given = [r.value for r in roles.names.returns(function)]
    return bool(given) and all(g is not None and _Rows(roles).are(g) for g in given)


class _Rows:
    """Whether the rows of what a function makes are the samples that it has picked."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names = roles.names
        self.open: set[str] = set()

    def are(self, node: ast.expr) -> bool:
        """Whether an expression has a row for each sample along its first axis, and so has each part of a tuple."""
        match node:
            case ast.Tuple(elts=parts):
                return bool(parts) and all(self.are(p) for p in parts)
            case ast.Dict(values=parts):
                return bool(parts) and all(k is not None for k in node.keys) and all(self.are(p) for p in parts)
            case ast.IfExp(body=body, orelse=other):
                return self.are(body) and self.are(other)
            case ast.Name():
                return self._variable(node, self.are)
            case ast.ListComp(generators=[one]):
                return not one.ifs and not one.is_async and self.index(one.iter)
            case ast.Subscript(value=base, slice=ast.Tuple(elts=[first, *others])):
                # x[:, :-1], data[ix, :], images[ix, rows, columns]
                plain = all(isinstance(o, ast.Slice | ast.Constant) or self.index(o) for o in others)
                whole = isinstance(first, ast.Slice) and first.lower is None and first.upper is None and first.step is None
                return plain and (self.are(base) if whole else self.index(first))
            case ast.Subscript(slice=index):
                return not isinstance(index, ast.Slice) and self.index(index)
            case ast.Call(func=ast.Attribute(value=base, attr=method)) if method in SAME_ROWS and not self._foreign(node):
                return self.are(base)
            case ast.Call(args=[first, *_]) if self.names.dotted(node.func) in OF_ROWS:
                stacked = self.names.dotted(node.func).endswith(".stack") and len(node.args) > 1
                return not stacked and not any(k.arg in _AXES for k in node.keywords) and self.are(first)
            case ast.Call():
                return gives_batches(self.roles, node)
        return False

    def index(self, node: ast.expr) -> bool:
        """Whether an expression is the drawn indices themselves."""
        if is_draw(self.roles, node):
            return True
        match node:
            case ast.Name():
                return self._variable(node, self.index)
            case ast.Call(func=ast.Attribute(value=base, attr="tolist")):
                return self.index(base)
            case ast.Call(func=ast.Attribute(value=base, attr=method)) if method in SAME_ROWS and not self._foreign(node):
                return self.index(base)
            case ast.Call(args=[first]) if self.names.dotted(node.func) in OF_ROWS:
                return self.index(first)
            case ast.ListComp(elt=elt, generators=[ast.comprehension(iter=ast.Call(args=[_]) as counted, ifs=[])]):
                # [random.randint(0, n) for _ in range(batch_size)]
                drawn = isinstance(elt, ast.Call) and self.names.dotted(elt.func) in ("random.randint", "random.randrange", "numpy.random.randint")
                return drawn and self.names.dotted(counted.func) == "?.range"
        return False

    def _foreign(self, call: ast.Call) -> bool:
        """Whether a method is a function of a library or of the program: ``torch.clone(x)``."""
        assert isinstance(call.func, ast.Attribute)
        return bool(self.names.dotted(call.func)) or any(True for _ in self.roles.values.targets(call))

    def _variable(self, node: ast.Name, of: Callable[[ast.expr], bool]) -> bool:
        """Whether all that a variable is given, in its own function, is such an expression."""
        bound = list(self.names.bindings(self.names.scope_of[node], node.id))
        function = self.names.function(node)
        if node.id in self.open:
            return len(bound) > 1  # x = x.to(device): what it was before is looked at by itself
        if not bound or any(b.how != "assign" or self.names.function(b.target) is not function for b in bound):
            return False
        self.open.add(node.id)
        try:
            return all(isinstance(value := element(b.value, b.path), ast.expr) and of(value) for b in bound)
        finally:
            self.open.discard(node.id)


def element(value: ast.AST | None, path: tuple[int | str, ...]) -> ast.AST | None:
    """The element of a tuple that a variable is given; the value itself where a call gives a tuple."""
    for at in path:
        if isinstance(value, ast.Tuple | ast.List) and isinstance(at, int) and at < len(value.elts):
            value = value.elts[at]
        elif not isinstance(value, ast.Call):
            return None
    return value
