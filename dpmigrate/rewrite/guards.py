"""No call that waits for every rank may stand where only rank 0 comes by: that is a hang."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dpmigrate import contract

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def guarded_collectives(tree: ast.Module) -> tuple[str, ...]:
    """One sentence for each collective of a file under a rank-0 guard, or in a function of the file that is called under one."""
    return collectives_under_guards([(tree, {})], "line {}".format)


def collectives_under_guards(files: Iterable[tuple[ast.Module, Mapping[str, str]]], where: Callable[[int], str]) -> tuple[str, ...]:
    """The same over all files of a program, which are one where functions call each other; ``where`` says what place a line is.

    With each file come those of its imported names that are the program's own, each with its name in the file that it is imported from.
    """
    collectives, calls = [], []
    for tree, own in files:
        guards = _Guards(_aliases(tree), _imported(tree) - own.keys(), own)
        guards.block(tree.body, None)
        collectives += guards.collectives
        calls += guards.calls
    return tuple(_sentences(collectives, calls, where))


def _aliases(tree: ast.Module) -> frozenset[str]:
    names = {contract.ALIAS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.asname or alias.name for alias in node.names if alias.name == contract.MODULE)
    return frozenset(names)


def _imported(tree: ast.Module) -> frozenset[str]:
    """Names of modules: a call on one of them is no method of the file."""
    imports = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return frozenset((alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names)


_Collective = tuple[ast.Call, str, int | None, str | None]  # call, name, guard, inside which function
_Called = tuple[str, int | None, str | None]  # called, guard, inside which function


@dataclass
class _Guards:
    """Walks the file; ``guard`` is the line of the innermost guard above, or None."""

    aliases: frozenset[str]
    imported: frozenset[str]
    own: Mapping[str, str]
    collectives: list[_Collective] = field(default_factory=list)
    calls: list[_Called] = field(default_factory=list)
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
            self.calls.append((self.own.get(call.func.id, call.func.id), guard, self.function))
        elif isinstance(call.func, ast.Attribute) and not self._is_foreign(call.func.value):
            self.calls.append((call.func.attr, guard, self.function))

    def _is_foreign(self, value: ast.expr) -> bool:
        while isinstance(value, ast.Attribute):
            value = value.value
        return isinstance(value, ast.Name) and value.id in self.imported


def _sentences(collectives: Sequence[_Collective], calls: Sequence[_Called], where: Callable[[int], str]) -> Iterator[str]:
    reached = _called_under_guard(calls)
    for call, name, guard, function in collectives:
        line = guard or reached.get(function or "")
        if line is not None:
            yield f"{where(call.lineno)}: {name}() waits for every rank but stands under the rank-0 guard of {where(line)}"


def _called_under_guard(calls: Sequence[_Called]) -> dict[str, int]:
    """Functions that a guard leads to, with its line."""
    reached: dict[str, int] = {}
    again = True
    while again:
        again = False
        for name, guard, function in calls:
            line = guard or reached.get(function or "")
            if line is not None and name not in reached:
                reached[name] = line
                again = True
    return reached
