"""One walk over a file: its scopes and frames, and where names are bound, deleted and read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from dpmigrate.result.scopes import (
    IDLE,
    Comprehension,
    Definition,
    Frame,
    FunctionNode,
    Scope,
    all_parameters,
    elements,
    evaluated_first,
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Collected:
    """One walk over the file: scopes, frames, definitions."""

    def __init__(self, tree: ast.Module) -> None:
        #: every node that opens a scope
        self.scopes: dict[ast.AST, Scope] = {}
        #: the module's first
        self.frames: list[Frame] = []
        #: where each name stands that is read, or deleted
        self.own: dict[ast.Name, tuple[Scope, Frame]] = {}
        #: whether the file has a star import
        self.star = False
        #: whether annotations are never evaluated
        self.late_annotations = any(map(_asks_for_late_annotations, tree.body))
        self._names: dict[str, int] = {}
        self._methods: dict[type[ast.AST], Callable[[Any], None]] = {}
        self._frame: Frame
        self._scope: Scope
        self._run(tree, Scope(tree, None, "module", ""), tree.body)

    def _path(self, scope: Scope, name: str) -> str:
        """A name for a new scope that tells it from others of the same name."""
        path = f"{scope.path}.{name}" if scope.path else name
        self._names[path] = self._names.get(path, 0) + 1
        return path if self._names[path] == 1 else f"{path}#{self._names[path]}"

    def _run(
        self,
        node: ast.AST,
        scope: Scope,
        body: Iterable[ast.AST],
        parameters: ast.arguments | None = None,
    ) -> None:
        """A new frame."""
        around = (self._frame, self._scope) if scope.parent is not None else None
        self._frame, self._scope = Frame(node, scope), scope
        self.scopes[node] = scope
        self.frames.append(self._frame)
        if around is not None:
            around[0].inner.append(self._frame)
        if parameters is not None:
            for arg in all_parameters(parameters):
                self._bind(arg.arg, arg, node)
        scope.bound.update(p.name for p in getattr(node, "type_params", ()))
        for statement in body:
            self._visit(statement)
        if around is not None:
            self._frame, self._scope = around

    # ------------------------------------------------------------------ bindings
    def _bind(
        self,
        name: str,
        node: ast.AST,
        by: ast.AST,
        *,
        unbinds: bool = False,
        scope: Scope | None = None,
    ) -> None:
        scope = scope or self._scope
        if scope.outer.get(name) != "nonlocal":
            scope.bound.add(name)
        self._frame.at[node, unbinds] = len(self._frame.definitions)
        self._frame.definitions.append(Definition((scope, name), node, by, unbinds))

    def _targets(self, target: ast.AST, by: ast.AST) -> None:
        """The names that an assignment binds; what else stands in its target is read."""
        if isinstance(target, ast.Name):
            self._bind(target.id, target, by)
        elif isinstance(target, ast.Tuple | ast.List):
            for t in target.elts:
                self._targets(t, by)
        elif isinstance(target, ast.Starred):
            self._targets(target.value, by)
        else:
            self._visit(target)

    # ------------------------------------------------------------------ the walk
    def _visit(self, node: ast.AST) -> None:
        kind = type(node)
        if kind not in self._methods:
            self._methods[kind] = getattr(self, f"_{kind.__name__}", self._children)
        start = len(self._frame.definitions)
        self._methods[kind](node)
        if kind in _LOOPS:
            self._frame.ranges[node] = (1 << len(self._frame.definitions)) - (1 << start)

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, IDLE):
                self._visit(child)

    def _Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.own[node] = self._scope, self._frame
        else:
            self._bind(node.id, node, node)

    def _Global(self, node: ast.Global) -> None:
        self._scope.outer |= dict.fromkeys(node.names, "global")
        self._scope.module.bound.update(node.names)

    def _Nonlocal(self, node: ast.Nonlocal) -> None:
        self._scope.outer |= dict.fromkeys(node.names, "nonlocal")

    def _Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            self._frame.called.add(node.func.id)
        self._children(node)

    def _Yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        self._frame.generates = True
        self._children(node)

    _YieldFrom = _Yield

    # -- statements
    def _Assign(self, node: ast.Assign) -> None:
        self._visit(node.value)
        for target in node.targets:
            self._targets(target, node)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if not self.late_annotations:
            self._visit(node.annotation)
        if node.value is not None:
            self._visit(node.value)
            self._targets(node.target, node)
        elif isinstance(node.target, ast.Name):
            self._scope.bound.add(node.target.id)
            self._frame.definitions.append(
                Definition((self._scope, node.target.id), node, node, False)
            )  # of no state: it makes the name a local one
        else:
            self._visit(node.target)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.own[node.target] = self._scope, self._frame
        self._visit(node.value)
        self._targets(node.target, node)

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._deleted(target)

    def _deleted(self, target: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.own[target] = self._scope, self._frame
            self._bind(target.id, target, target, unbinds=True)
        elif isinstance(target, ast.Tuple | ast.List):
            for t in target.elts:
                self._deleted(t)
        else:
            self._visit(target)

    def _For(self, node: ast.For | ast.AsyncFor) -> None:
        self._visit(node.iter)
        self._targets(node.target, node)
        for child in (*node.body, *node.orelse):
            self._visit(child)

    _AsyncFor = _For

    def _With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self._visit(item.context_expr)
            if item.optional_vars is not None:
                self._targets(item.optional_vars, item)
        for child in node.body:
            self._visit(child)

    _AsyncWith = _With

    def _Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.star = True
            else:
                self._bind(alias.asname or alias.name.partition(".")[0], alias, node)

    _ImportFrom = _Import

    def _ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self._visit(node.type)
        if node.name:
            self._bind(node.name, node, node)
        for child in node.body:
            self._visit(child)
        if node.name:
            self._bind(node.name, node, node, unbinds=True)

    def _MatchAs(self, node: ast.MatchAs) -> None:
        if node.pattern is not None:
            self._visit(node.pattern)
        if node.name:
            self._bind(node.name, node, node)

    def _MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name, node, node)

    def _MatchMapping(self, node: ast.MatchMapping) -> None:
        for child in (*node.keys, *node.patterns):
            self._visit(child)
        if node.rest:
            self._bind(node.rest, node, node)

    def _FunctionDef(self, node: FunctionNode) -> None:
        for expression in evaluated_first(node, late=self.late_annotations):
            self._visit(expression)
        self._bind(node.name, node, node)
        self._run(
            node,
            Scope(node, self._scope, "function", self._path(self._scope, node.name)),
            node.body,
            node.args,
        )

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef) -> None:
        for expression in evaluated_first(node, late=self.late_annotations):
            self._visit(expression)
        inner = Scope(node, self._scope, "class", self._path(self._scope, node.name))
        inner.bound.update(p.name for p in getattr(node, "type_params", ()))
        around, self._scope = self._scope, inner
        self.scopes[node] = inner
        for child in node.body:
            self._visit(child)
        self._scope = around
        self._bind(node.name, node, node)

    def _TypeAlias(
        self, node: ast.AST
    ) -> None:  # ``type X = ...``, from Python 3.12 on: evaluated when it is asked for
        name = node.name  # type: ignore[attr-defined]
        self._bind(name.id, name, node)

    # -- expressions
    def _Lambda(self, node: ast.Lambda) -> None:
        for child in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self._visit(child)
        self._run(
            node,
            Scope(node, self._scope, "function", self._path(self._scope, "<lambda>")),
            [node.body],
            node.args,
        )

    def _NamedExpr(self, node: ast.NamedExpr) -> None:
        self._visit(node.value)
        scope = self._scope
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        self._bind(node.target.id, node.target, node, scope=scope)

    def _ListComp(self, node: Comprehension) -> None:
        first, *others = node.generators
        self._visit(first.iter)
        inner = Scope(node, self._scope, "comprehension", self._scope.path)
        around, self._scope = self._scope, inner
        self.scopes[node] = inner
        self._targets(first.target, first)
        for test in first.ifs:
            self._visit(test)
        for generator in others:
            self._visit(generator.iter)
            self._targets(generator.target, generator)
            for test in generator.ifs:
                self._visit(test)
        for element in elements(node):
            self._visit(element)
        self._scope = around

    _SetComp = _DictComp = _GeneratorExp = _ListComp


def _asks_for_late_annotations(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.ImportFrom)
        and statement.module == "__future__"
        and any(a.name == "annotations" for a in statement.names)
    )
