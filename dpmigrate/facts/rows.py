"""Whether the rows of a tensor, along its first axis, are the samples of a batch as a loader gives them, each in its place.

What a step puts together by itself (``torch.cat([a, b])``), takes apart (the crops of a picture), turns or chooses has other rows.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable

from dpmigrate.facts.definitions import default
from dpmigrate.facts.library import FLOATS, INTEGERS, MOVES
from dpmigrate.facts.names import FunctionNode, Names, last
from dpmigrate.facts.pairs import sample_count
from dpmigrate.facts.reductions import REDUCTIONS, axes, literals
from dpmigrate.facts.roles import Roles, element
from dpmigrate.facts.samples import of_loader
from dpmigrate.facts.scopes import Binding

#: methods and functions that leave every row in its place
_ROW_BY_ROW = (
    MOVES
    | FLOATS
    | INTEGERS
    | {"detach", "clone", "type", "contiguous", "requires_grad_", "Variable", "squeeze", "unsqueeze", "numpy", "argmax", "softmax", "log_softmax"}
    | {"abs", "neg", "exp", "log", "sqrt", "pow", "square", "clamp", "sigmoid", "tanh", "relu", "logsigmoid", "softplus", "gelu", "dropout", "normalize"}
)
VIEWS = frozenset({"view", "reshape"})
#: attributes that are another thing than a tensor of the same rows
_TURNED = frozenset({"T", "mT", "mH", "H", "shape", "device", "dtype", "grad", "is_cuda"})


class Rows:
    """Questions about the tensors of one program."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names = roles.names
        self._known: dict[Hashable, bool] = {}  # by variable; False while it is being looked at

    def samples(self, node: ast.AST) -> bool:
        """Whether the first axis are the samples, as a loader gives them."""
        if not isinstance(node, ast.Name):
            return any(self.samples(e) for e in self.of(node))
        variable = self.names.variable(self.names.scope_of[node], node.id) or node
        if variable not in self._known:
            self._known[variable] = False
            self._known[variable] = self._named(node)
        return self._known[variable]

    def _named(self, node: ast.Name) -> bool:
        loaded = of_loader(self.roles, node)
        bound = [b for b in self.names.bindings(self.names.scope_of[node], node.id) if not loaded or b.how != "for"]
        given = [[v for v in self.values(b) if not self.moved(v, node)] for b in bound]
        return (loaded or any(given)) and all(any(self.samples(v) for v in values) for values in given if values)  # one call of several is enough

    def moved(self, value: ast.expr, node: ast.Name) -> bool:
        """``x = x.to(device)``: what leaves every row of the variable in its place."""
        inner: list[ast.expr] = [value]
        while inner and not isinstance(inner[0], ast.Name):
            inner = self.of(inner[0])
        return bool(inner) and isinstance(inner[0], ast.Name) and inner[0].id == node.id and inner[0] is not value

    def values(self, b: Binding) -> list[ast.expr]:
        """What the binding gives the variable; an empty tuple, which has no rows, for what is not known."""
        if b.how == "assign" and isinstance(b.value, ast.expr):
            return [element(b.value, b.path)]
        handed = self.roles.handed(b)
        return [e if e is not None else ast.Tuple([], ast.Load()) for e in handed] or [ast.Tuple([], ast.Load())]

    def of(self, node: ast.AST) -> list[ast.expr]:
        """The expressions of which the node has the same rows, one by one; none for everything else."""
        if isinstance(node, ast.UnaryOp):
            return [node.operand]
        if isinstance(node, ast.BinOp):
            return [node.left] if isinstance(node.op, ast.MatMult) else [node.left, node.right]
        if isinstance(node, ast.Attribute):
            return [node.value] if node.attr not in _TURNED else []
        if isinstance(node, ast.Subscript):
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            whole = isinstance(first, ast.Slice) and first.lower is None and first.upper is None and first.step is None
            named = isinstance(first, ast.Constant) and not isinstance(node.slice, ast.Tuple)  # an element of the batch, or of what a model gives
            return [node.value] if whole or (named and self._several(node.value)) else []
        return self._of_call(node) if isinstance(node, ast.Call) else []

    def _several(self, node: ast.expr) -> bool:
        """Whether the value is several tensors: the batch, or what a model gives."""
        if isinstance(node, ast.Name):
            return of_loader(self.roles, node) or any(isinstance(v, ast.Call) and self._model(v) for v in self.roles.given(node))
        return isinstance(node, ast.Call) and self._model(node)

    def _model(self, call: ast.Call) -> bool:
        return bool(self.roles.model_vals(call.func)) or any(self.roles.calls_model(f) for f, _ in self.roles.values.targets(call))

    def _of_call(self, call: ast.Call) -> list[ast.expr]:
        if self._model(call):
            return [*call.args, *(k.value for k in call.keywords)]
        made = [call, *(v.node for v in self.roles.values.eval(call.func) if isinstance(v.node, ast.Call))]
        if any(k.arg == "reduction" and isinstance(k.value, ast.Constant) and k.value.value == "none" for c in made for k in c.keywords):
            return [*call.args, *(k.value for k in call.keywords)]  # a loss of each sample
        dotted, word = self.names.dotted(call.func), last(call.func)
        if dotted and not dotted.startswith("torch."):
            return []
        tensor, rest = receiver(self.names, call)
        if tensor is None:
            return []
        if word in VIEWS:
            sizes = sizes_in(rest)
            kept = bool(sizes) and (
                sample_count(self.roles, sizes[0], tensor) or (len(sizes) == 2 and ast.unparse(sizes[0]) == "-1" and self.number(sizes[1]) != 1)
            )
            return [tensor] if kept else []
        if word == "flatten":
            return [tensor] if rest and literals(self.names, rest[0]) == [1] else []
        if word in REDUCTIONS:
            gone = axes(self.names, call)
            return [tensor] if gone and 0 not in gone and None not in gone else []
        return [tensor] if word in _ROW_BY_ROW else []

    def number(self, node: ast.expr) -> int | None:
        """The number that the expression is, also as a parameter that all calls give it, or none."""
        found = set(literals(self.names, node))
        if isinstance(node, ast.Name) and found == {None}:
            bound = list(self.names.bindings(self.names.scope_of[node], node.id))
            given = [self._handed(b) for b in bound]
            found = {n for g in given for n in g}
        return found.pop() if len(found) == 1 else None

    def _handed(self, b: Binding) -> list[int | None]:
        function = self.names.scope_of[b.target].node
        if not isinstance(function, FunctionNode) or not isinstance(b.target, ast.arg):
            return [None]
        usual = default(function.args, b.target)
        given = [e if e is not None else usual for e in self.roles.handed(b)]
        return [n for e in given for n in (literals(self.names, e) if e is not None else [None])] or [None]


def receiver(names: Names, call: ast.Call) -> tuple[ast.expr | None, list[ast.expr]]:
    """The tensor that a method or function of torch is about, and its other positional arguments."""
    if names.dotted(call.func) or not isinstance(call.func, ast.Attribute):
        named = next((k.value for k in call.keywords if k.arg in ("input", "tensor")), None)
        return (call.args[0], call.args[1:]) if call.args else (named, [])
    return call.func.value, call.args


def sizes_in(given: list[ast.expr]) -> list[ast.expr]:
    """The sizes that a view is given, one by one or as a tuple."""
    return given[0].elts if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List) else given
