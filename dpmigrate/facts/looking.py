"""Which functions only look at a model while it trains: called in a training loop, they take nothing of its batches, and call the model without gradients
on samples of their own (``self.fixed``, a batch of another loader). These have the size that they were made with, which no rank divides.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from dpmigrate.facts.definitions import parameters
from dpmigrate.facts.library import GROWS
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import children, walk
from dpmigrate.facts.roles import Roles

_DEPTH = 8  # of variables that are made of one another


class Looking:
    """The functions of one program that only look; ``of_batch`` says whether variables in an expression hold a batch."""

    def __init__(self, roles: Roles, of_batch: Callable[[ast.AST], bool]) -> None:
        self.roles = roles
        self.names = roles.names
        self._of_batch = of_batch
        self._known: dict[ast.AST, bool] = {}

    def only(self, node: ast.AST) -> bool:
        """Whether the function in which the node stands does no more than look."""
        function = self.names.function(node)
        if function not in self._known:
            self._known[function] = isinstance(function, FunctionNode) and self._looks(function)
        return self._known[function]

    def _looks(self, function: FunctionNode) -> bool:
        roles = self.roles
        passes = [c for c in roles.forward_calls if self.names.function(c) is function]
        if not passes or not all(map(roles.quiet, passes)) or roles.reaches_backward(function):
            return False
        own = self.names.opened[function]
        given = [e for p in parameters(function) for b in own.bindings.get(p, ()) for e in roles.handed(b) if e is not None]
        reads = (n for n in walk(function) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load) and self._of_others(n, function))
        return not any(self._of_training(n) for n in (*given, *reads))

    def _of_others(self, node: ast.Name | ast.Attribute, function: FunctionNode) -> bool:
        """Whether a variable is read that is not the function's own, and not only something put into what it holds."""
        if isinstance(node, ast.Name):
            return not any(self.names.is_inside(b.target, function) for b in self.names.bindings(self.names.scope_of[node], node.id))
        above = self.names.parent[node]
        grown = isinstance(above, ast.Attribute) and above.attr in GROWS and isinstance(self.names.parent[above], ast.Call)
        return not grown and any(key[0] == "a" for key in self.roles.values.keys(node))

    def _of_training(self, node: ast.AST) -> bool:
        """Whether the expression may be made of what a training loop has in hand, or of a loader whose batches are divided."""
        divided = {v for loop in self.roles.train_feeds for v in loop.loaders}
        seen: set[ast.AST] = set()
        todo: list[tuple[ast.AST, int]] = [(node, _DEPTH)]
        while todo:
            n, depth = todo.pop()
            if n in seen:
                continue
            seen.add(n)
            if isinstance(n, ast.Name | ast.Attribute) and not self.roles.model_vals(n):
                loaders = self.roles.loaders_of(n)
                if not depth or divided & loaders or self._of_batch(n):
                    return True
                if loaders:
                    continue
                todo += [(e, depth - 1) for e in self._behind(n)]
            todo += [(e, depth) for e in children(n)]
        return False

    def _behind(self, node: ast.Name | ast.Attribute) -> Iterator[ast.AST]:
        """What the variable is given, and what is put into what it holds."""
        yield from self.roles.given(node)
        for b in self.names.bindings(self.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ():
            if b.how in ("for", "with", "aug") and b.value is not None:
                yield b.value
        for use in self._uses(node):
            above = self.names.parent[use]
            if isinstance(above, ast.Subscript) and above.value is use and isinstance(above.ctx, ast.Store):
                stmt = self.names.statement(above)
                yield from [stmt.value] if isinstance(stmt, ast.Assign) else []
            call = self.names.parent[above]
            if isinstance(above, ast.Attribute) and above.attr in GROWS and isinstance(call, ast.Call) and call.func is above:
                yield from (*call.args, *(k.value for k in call.keywords))

    def _uses(self, node: ast.Name | ast.Attribute) -> Iterator[ast.Name | ast.Attribute]:
        if isinstance(node, ast.Name):
            yield from self.names.uses(self.names.scope_of[node], node.id)
        else:
            keys = set(self.roles.values.keys(node))
            yield from (n for n in self.names.attributes(node.attr) if keys & set(self.roles.values.keys(n)))
