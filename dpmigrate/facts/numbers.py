"""Which expressions are plain numbers: factors that neither the size of the batch nor what is in it changes."""

from __future__ import annotations

import ast

from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_a_turn, of_batch, of_loader
from dpmigrate.facts.scopes import Binding

_DRAWN = ("numpy.random.", "random.")
_COMPUTED = ("torch.cuda.device_count", "torch.accelerator.device_count", "math.", "?.int", "?.float", "?.min", "?.max", "?.abs", "?.round", "?.pow")
#: what reads settings from a file
_READ = frozenset({"json.load", "json.loads", "yaml.load", "yaml.safe_load", "yaml.full_load", "toml.load", "toml.loads", "tomllib.load", "tomllib.loads"})
_NUMPY = frozenset(
    {"int", "int32", "int64", "float32", "float64", "clip", "sqrt", "exp", "log", "cos", "sin", "minimum", "maximum", "power", "round", "floor", "ceil"}
)


class Numbers:
    """Questions about expressions of one program."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.names = roles.names
        self._busy: set[int] = set()

    def setting(self, node: ast.expr) -> bool:
        """``args.alpha``, ``self.cfg.weight``: a number that no batch changes. What a model gives (``out.loss``) is none."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(node, ast.Attribute) or not isinstance(root, ast.Name) or self.in_batch(root):
            return False
        bound = self.names.bindings(self.names.scope_of[root], root.id)
        return not any(isinstance(b.value, ast.Call) and self.roles.model_vals(b.value.func) for b in bound) and not of_batch(self.roles, node)

    def in_batch(self, node: ast.Name) -> bool:
        """Whether the name is part of what a loader gives."""
        return of_loader(self.roles, node)

    def plain(self, node: ast.expr) -> bool:
        """Whether it is a number made of constants, settings, draws of numpy and Python, counters of loops, and sizes other than the batch's."""
        if id(node) in self._busy:
            return True  # n = n + 1: the other assignments decide
        self._busy.add(id(node))
        try:
            return self._plain(node)
        finally:
            self._busy.discard(id(node))

    def _plain(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.UnaryOp):
            return self.plain(node.operand)
        if isinstance(node, ast.BinOp):
            return self.plain(node.left) and self.plain(node.right)
        if isinstance(node, ast.IfExp):
            return self.plain(node.body) and self.plain(node.orelse)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            return isinstance(node.ctx, ast.Load) and self._item(node)
        return self.setting(node)

    def _call(self, node: ast.Call) -> bool:
        dotted = self.names.dotted(node.func)
        if dotted.startswith(_DRAWN):
            return True
        if dotted.startswith(_COMPUTED) or (dotted.startswith("numpy.") and dotted[6:] in _NUMPY):
            return all(self.plain(a) for a in [*node.args, *(k.value for k in node.keywords)])
        if dotted == "?.len" and len(node.args) == 1:
            return not of_a_turn(self.roles, node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not dotted and node.args:
            return _other_axis(node.args[0])
        return self._given_back(node, None)

    def _item(self, node: ast.Subscript) -> bool:
        """``size[2]``, ``x.shape[1]``; an element of what numpy has drawn."""
        if isinstance(node.value, ast.Call) and self.names.dotted(node.value.func).startswith(_DRAWN):
            return True
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self._settings(node.value)
        return self._size(node.value) and _other_axis(node.slice)

    def _settings(self, node: ast.expr) -> bool:
        """Whether it is a dictionary of settings: read from a file of settings, or written down; part of one; handed on."""
        if id(node) in self._busy:
            return False
        self._busy.add(id(node))
        try:
            return self._of_settings(node)
        finally:
            self._busy.discard(id(node))

    def _of_settings(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Dict):
            return None not in node.keys and all(isinstance(v, ast.Constant) or self.plain(v) or self._settings(v) for v in node.values)
        if isinstance(node, ast.Call):
            if self.names.dotted(node.func) in _READ:
                return True
            functions = [f for f, _ in self.roles.values.targets(node)]
            returns = [r.value for f in functions for r in self.names.returns(f)]
            return bool(returns) and all(r is not None and self._settings(r) for r in returns)
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) and self._settings(node.value)
        if not isinstance(node, ast.Name) or self._stored_in(node):
            return False
        bound = self._bindings(node)
        return bool(bound) and all(self._bound_to_settings(b) for b in bound)

    def _bound_to_settings(self, b: Binding) -> bool:
        if b.how == "param":
            given = self._passed(b)
            return bool(given) and all(self._settings(g) for g in given)
        return b.how == "assign" and not b.path and isinstance(b.value, ast.expr) and self._settings(b.value)

    def _stored_in(self, node: ast.Name) -> bool:
        """Whether the program puts something into the dictionary of this name that is no plain number."""
        uses = self.names.uses(self.names.scope_of[node], node.id)
        for use in uses:
            above = self.names.parent.get(use)
            if isinstance(above, ast.Subscript) and above.value is use and isinstance(above.ctx, ast.Store):
                value = getattr(self.names.parent.get(above), "value", None)
                if not isinstance(value, ast.expr) or not (isinstance(value, ast.Constant) or self.plain(value)):
                    return True
            if isinstance(above, ast.Attribute) and above.attr in ("update", "setdefault"):
                return True
        return False

    def _size(self, node: ast.expr) -> bool:
        """Whether it is the size of a tensor: itself, or a parameter that is given one."""
        if isinstance(node, ast.Name):
            given = [p for b in self._bindings(node) for p in self._passed(b)]
            return bool(given) and all(self._size(p) for p in given)
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args
        return isinstance(node, ast.Attribute) and node.attr == "shape"

    def _name(self, node: ast.Name) -> bool:
        bound = self._bindings(node)
        return bool(bound) and all(self._binding(b) for b in bound)

    def _binding(self, b: Binding) -> bool:
        if b.how == "param":
            given = self._passed(b)
            return bool(given) and all(self.plain(p) for p in given)
        if b.how == "aug":
            assert isinstance(b.value, ast.AugAssign)
            return self.plain(b.value.value)
        if b.how == "for":
            return isinstance(b.value, ast.Call) and self._counts(b.value, b.path)
        if b.how != "assign" or not isinstance(b.value, ast.expr):
            return False
        if not b.path:
            return self.plain(b.value)
        if len(b.path) > 1 or not isinstance(b.path[0], int):
            return False
        if isinstance(b.value, ast.Tuple):
            return self.plain(b.value.elts[b.path[0]])
        return isinstance(b.value, ast.Call) and self._given_back(b.value, b.path[0])

    def _counts(self, source: ast.Call, path: tuple[int | str, ...]) -> bool:
        dotted = self.names.dotted(source.func)
        return dotted == "?.range" or (dotted == "?.enumerate" and path == ("*", 0))

    def _given_back(self, call: ast.Call, item: int | None) -> bool:
        """Whether functions of the program give back numbers, as a whole or as element ``item`` of a tuple."""
        functions = [v.node for v in self.roles.values.eval(call.func)]
        returns: list[ast.expr] = []
        for f in functions:
            if not isinstance(f, FunctionNode):
                return False
            own = [n.value for n in walk(f) if isinstance(n, ast.Return) and n.value is not None and self.names.function(n) is f]
            for value in own:
                if item is not None and not (isinstance(value, ast.Tuple) and item < len(value.elts)):
                    return False
                returns.append(value if item is None else value.elts[item])  # type: ignore[attr-defined]
        return bool(returns) and all(self.plain(r) for r in returns)

    def _bindings(self, node: ast.Name) -> list[Binding]:
        return list(self.names.bindings(self.names.scope_of[node], node.id))

    def _passed(self, b: Binding) -> list[ast.expr]:
        """What the calls of the program give to a parameter; empty where one does not say."""
        given = self.roles.handed(b)
        return [p for p in given if p is not None] if None not in given else []


def _other_axis(node: ast.expr) -> bool:
    """An index that does not mean the first dimension, the batch's."""
    index = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value != 0
