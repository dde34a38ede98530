"""No call that waits for every rank may stand where only rank 0 comes by: that is a hang."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dpmigrate import contract

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def guarded_collectives(tree: ast.Module) -> tuple[str, ...]:
    """One sentence for each collective under a rank-0 guard, or in a function of this file that is called under one."""
    guards = _Guards(_aliases(tree), _imported(tree))
    guards.block(tree.body, None)
    return tuple(guards.sentences())


def _aliases(tree: ast.Module) -> frozenset[str]:
    names = {contract.ALIAS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.asname or alias.name for alias in node.names if alias.name == contract.MODULE)
    return frozenset(names)


def _imported(tree: ast.Module) -> frozenset[str]:
    """Names of modules: a call on one of them is no method of this file."""
    imports = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return frozenset((alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names)


@dataclass
class _Guards:
    """Walks the file; ``guard`` is the line of the innermost guard above, or None."""

    aliases: frozenset[str]
    imported: frozenset[str]
    collectives: list[tuple[ast.Call, str, int | None, str | None]] = field(default_factory=list)  # call, name, guard, function
    calls: list[tuple[str, int | None, str | None]] = field(default_factory=list)  # called, guard, inside which function
    function: str | None = None

    def block(self, body: Sequence[ast.stmt], guard: int | None) -> None:
        for statement in body:
            self.node(statement, guard)
            if isinstance(statement, ast.If) and self._asks_rank(statement.test) and isinstance(statement.body[-1], _LEAVES):
                guard = guard or statement.lineno  # what follows `if not is_main(): return`

    def node(self, node: ast.AST, guard: int | None) -> None:
        if isinstance(node, _Function):
            outer, self.function = self.function, node.name
            self._fields(node, guard)
            self.function = outer
            return
        if isinstance(node, ast.Call):
            self._call(node, guard)
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            self.node(node.test, guard)
            self._fields(node, self._inner(node, node.test, guard), skip="test")
        elif isinstance(node, ast.BoolOp):
            self.node(node.values[0], guard)
            for value in node.values[1:]:
                self.node(value, self._inner(node, node.values[0], guard))
        else:
            self._fields(node, guard)

    def _fields(self, node: ast.AST, guard: int | None, skip: str = "") -> None:
        for name, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                self.block(value, guard)
            elif name != skip:
                for child in children:
                    if isinstance(child, ast.AST):
                        self.node(child, guard)

    def _inner(self, node: ast.expr | ast.stmt, test: ast.expr, guard: int | None) -> int | None:
        return guard or (node.lineno if self._asks_rank(test) else None)

    def _asks_rank(self, test: ast.AST) -> bool:
        """Whether the answer may differ between ranks; that of a collective is the same on all."""
        name = self._runtime_name(test) if isinstance(test, ast.Call) else None
        if name in contract.COLLECTIVE:
            return False
        return name in ("is_main", "rank") or any(map(self._asks_rank, ast.iter_child_nodes(test)))

    def _runtime_name(self, call: ast.Call) -> str | None:
        function = call.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in self.aliases:
            return function.attr
        return None

    def _call(self, call: ast.Call, guard: int | None) -> None:
        name = self._runtime_name(call)
        if name in contract.COLLECTIVE:
            self.collectives.append((call, str(name), guard, self.function))
        elif isinstance(call.func, ast.Name):
            self.calls.append((call.func.id, guard, self.function))
        elif isinstance(call.func, ast.Attribute) and not self._is_foreign(call.func.value):
            self.calls.append((call.func.attr, guard, self.function))

    def _is_foreign(self, value: ast.expr) -> bool:
        while isinstance(value, ast.Attribute):
            value = value.value
        return isinstance(value, ast.Name) and value.id in self.imported

    def sentences(self) -> Iterator[str]:
        reached = self._called_under_guard()
        for call, name, guard, function in self.collectives:
            line = guard or reached.get(function or "")
            if line is not None:
                yield f"line {call.lineno}: {name}() waits for every rank but stands under the rank-0 guard of line {line}"

    def _called_under_guard(self) -> dict[str, int]:
        """Functions that a guard leads to, with its line."""
        reached: dict[str, int] = {}
        again = True
        while again:
            again = False
            for name, guard, function in self.calls:
                line = guard or reached.get(function or "")
                if line is not None and name not in reached:
                    reached[name] = line
                    again = True
        return reached
