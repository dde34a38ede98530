"""The tool with every iteration over a set in another order: what it says must not change.

Hashes of strings differ between processes, those of nodes are addresses. Two processes rarely differ in a set of two elements; here each ``for``, each
comprehension and each call that goes through a set takes it in an order drawn anew.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import random
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

#: functions that go through what they are given, one element after the other
_THROUGH = frozenset({"iter", "list", "tuple", "enumerate", "min", "max", "zip", "map", "filter", "sorted", "sum", "any", "all", "reversed"})
_THROUGH_TOO = frozenset({"join", "extend", "chain", "from_iterable", "fromkeys", "combinations", "permutations", "product", "deque", "Counter", "appendleft"})
_NAME = "in_another_order_"


class _Rewritten(ast.NodeTransformer):
    """``for x in in_another_order_(things)``"""

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _asked(node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = _asked(node.iter)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _asked(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _THROUGH | _THROUGH_TOO:
            node.args = [a if isinstance(a, ast.Starred) else _asked(a) for a in node.args]
        return node


def _asked(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name(_NAME, ast.Load()), [node], []), node)


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:  # never a cached one
        path = self.get_filename(fullname)
        tree = ast.fix_missing_locations(_Rewritten().visit(ast.parse(self.get_data(path))))
        return compile(tree, path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "dpmigrate":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install(seed: int) -> None:
    """Shuffle from here on; nothing of the tool may have been imported before."""
    assert not any(name.partition(".")[0] == "dpmigrate" for name in sys.modules)
    chance = random.Random(seed)

    def another_order(things: Any) -> Any:
        if not isinstance(things, set | frozenset):
            return things
        shuffled = list(things)
        chance.shuffle(shuffled)
        return shuffled

    import builtins

    setattr(builtins, _NAME, another_order)
    sys.meta_path.insert(0, _Finder())
