"""Where the program itself tests for a wrapper, or takes it off: below ``if isinstance(net, DataParallel): net = net.module`` the bare model is meant."""

from __future__ import annotations

import ast

from dpmigrate.facts.names import FunctionNode, Names, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import Vals


def asks_class_of_wrapper(names: Names, node: ast.AST) -> tuple[ast.expr, bool] | None:
    """The model whose class is compared with those of the wrappers, and whether it must be one of them.

    ``isinstance(net, nn.DataParallel)``, ``type(net) not in (DataParallel, DistributedDataParallel)``. None for anything else.
    """
    match node:
        case ast.Call(func=asked, args=[model, what], keywords=[]) if names.dotted(asked) == "?.isinstance":
            positive = True
        case ast.Compare(left=ast.Call(func=asked, args=[model], keywords=[]), ops=[op], comparators=[what]) if names.dotted(asked) == "?.type":
            positive = not isinstance(op, ast.IsNot | ast.NotEq | ast.NotIn)
        case _:
            return None
    classes = what.elts if isinstance(what, ast.Tuple | ast.List | ast.Set) else [what]
    return (model, positive) if classes and all(names.dotted(c).endswith("DataParallel") for c in classes) else None


def tests_for_wrapper(names: Names, node: ast.AST) -> tuple[ast.expr, bool] | None:
    """The same, also for ``hasattr(net, "module")``."""
    match node:
        case ast.Call(func=asked, args=[model, ast.Constant(value="module")], keywords=[]) if names.dotted(asked) == "?.hasattr":
            return model, True
    return asks_class_of_wrapper(names, node)


class Unwraps:
    """The tests for wrappers in a program, and the statements below which a variable holds none."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._branches: dict[ast.AST, tuple[str, bool]] = {}  # if -> what is asked about, whether the body is the side with the wrapper
        self._below: dict[str, list[ast.stmt]] = {}
        for node in names.nodes:
            if isinstance(node, ast.If | ast.IfExp):
                self._branch(node)
            elif isinstance(node, ast.Assign) and _takes_off(node):
                self._below.setdefault(ast.unparse(node.targets[0]), []).append(self._with_test(node))
        self._asked = {text for text, _ in self._branches.values()} | set(self._below)
        self._last = {text.rpartition(".")[2] for text in self._asked}

    def narrowed(self, node: ast.expr, held: Vals) -> Vals:
        """What the variable holds where it is read, of all that it is given: no wrapper where that was taken off."""
        return frozenset(v for v in held if v.kind != "wrapped") if self._bare(node) else held

    def _bare(self, node: ast.expr) -> bool:
        if last(node) not in self._last or node not in self.names.parent:
            return False
        text = ast.unparse(node)
        return text in self._asked and (self._other_side(node, text) or any(self._stands_below(node, text, s) for s in self._below.get(text, ())))

    def _branch(self, node: ast.If | ast.IfExp) -> None:
        test, positive = node.test, True
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, positive = test.operand, False
        found = tests_for_wrapper(self.names, test)
        if found is None:
            return
        model, positive = found[0], found[1] is positive
        self._branches[node] = ast.unparse(model), positive
        if positive and isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue):
            self._below.setdefault(ast.unparse(model), []).append(node)

    def _with_test(self, stmt: ast.Assign) -> ast.stmt:
        """The statement, or the test for the wrapper under which it stands."""
        above = self.names.parent[stmt]
        wanted = ast.unparse(stmt.targets[0]), True
        return above if isinstance(above, ast.If) and not above.orelse and self._branches.get(above) == wanted else stmt

    def _other_side(self, node: ast.AST, text: str) -> bool:
        """Whether it stands where a test has found no wrapper."""
        for a in self.names.ancestors(node):
            if isinstance(a, FunctionNode | ast.Lambda):
                return False
            if isinstance(a, ast.If | ast.IfExp) and a in self._branches and self._branches[a][0] == text:
                side = a.orelse if self._branches[a][1] else a.body
                nodes = side if isinstance(side, list) else [side]
                if any(self.names.is_inside(node, s) for s in nodes):
                    return not self._stored(text, nodes)
        return False

    def _stands_below(self, node: ast.AST, text: str, stmt: ast.stmt) -> bool:
        if self.names.function(node) is not self.names.function(stmt):
            return False
        block = self.names.block(stmt)
        between = []
        for s in block[block.index(stmt) + 1 :]:
            between.append(s)
            if self.names.is_inside(node, s):
                return not self._stored(text, between)
        return False

    @staticmethod
    def _stored(text: str, nodes: list[ast.stmt] | list[ast.expr]) -> bool:
        found = (n for s in nodes for n in walk(s) if isinstance(n, ast.Name | ast.Attribute) and not isinstance(n.ctx, ast.Load))
        return any(ast.unparse(n) == text for n in found)


def _takes_off(node: ast.Assign) -> bool:
    """``net = net.module``"""
    return (
        len(node.targets) == 1
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "module"
        and ast.unparse(node.value.value) == ast.unparse(node.targets[0])
    )
