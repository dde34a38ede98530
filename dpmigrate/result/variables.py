"""The variables of one file, and where each gets a value: what ``flow`` needs to know before it follows the statements.

A *frame* is code that runs by itself: the module, a function, a lambda. Class bodies and
comprehensions run where they stand, so they belong to the frame round them; their names are
variables of their own scope all the same. Every place that binds or deletes a variable is a
*definition* with a number, in the order of the source: those of a loop are one range of numbers.

Scoping is that of the language reference, 4.2 (naming and binding) and 6.2.4 (comprehensions).
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
LoopNode = ast.For | ast.AsyncFor | ast.While
#: names that every module has beside those of ``builtins``
_OF_MODULES = frozenset(
    {
        "__name__",
        "__file__",
        "__doc__",
        "__package__",
        "__spec__",
        "__loader__",
        "__builtins__",
        "__path__",
        "__cached__",
        "__annotations__",
        "__dict__",
    }
)
_OF_CLASSES = frozenset(
    {
        "__class__",
        "__module__",
        "__qualname__",
        "__firstlineno__",
        "__type_params__",
        "__classdict__",
    }
)


@dataclass(eq=False)
class Scope:
    """A block with names of its own. ``kind``: module · function · class · comprehension."""

    node: ast.AST
    parent: Scope | None
    kind: str
    path: str  # the functions and classes that lead here, by their names
    bound: set[str] = field(default_factory=set)
    outer: dict[str, str] = field(default_factory=dict)  # name -> ``global`` or ``nonlocal``

    @property
    def module(self) -> Scope:
        """The scope of the file."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def owner(self, name: str) -> Scope | None:
        """The scope whose variable the name means here; None for what the file binds nowhere."""
        if self.outer.get(name) == "global":
            return self.module
        if name in self.bound and name not in self.outer:
            return self
        scope = self.parent
        while scope is not None:
            if scope.kind != "class" and scope.outer.get(name) == "global":
                return scope.module
            if scope.kind != "class" and name in scope.bound and name not in scope.outer:
                return scope
            scope = scope.parent
        return None


Key = tuple[Scope, str]


@dataclass(frozen=True, eq=False, slots=True)
class Definition:
    """A place that binds a variable (or deletes it: ``unbinds``); ``by`` is the statement or expression that does."""

    key: Key
    node: ast.AST
    by: ast.AST
    unbinds: bool


@dataclass(eq=False)
class Variable:
    """A variable as a frame sees it: the bits of all its definitions there, and of those after which it has no value.

    ``judged``: whether a read without a value is an error of this frame; ``given``: other code may give it a value; ``taken``: other code may delete it.
    """

    every: int = 0
    without: int = 0
    judged: bool = True
    given: bool = False
    taken: bool = False


@dataclass(eq=False)
class Frame:
    """Code that runs by itself, with the definitions in it; bit 0 of a state says that the place is reached at all."""

    node: ast.AST
    scope: Scope
    definitions: list[Definition | None] = field(default_factory=lambda: [None])
    variables: dict[Key, Variable] = field(default_factory=dict)
    at: dict[tuple[ast.AST, bool], int] = field(
        default_factory=dict
    )  # (binding node, unbinds) -> its bit
    ranges: dict[ast.AST, int] = field(
        default_factory=dict
    )  # loop -> the bits of the definitions in it
    called: set[str] = field(
        default_factory=set
    )  # functions of the module that are called by their names
    reads: set[str] = field(default_factory=set)  # variables of the module that are read here
    inner: list[Frame] = field(default_factory=list)
    generates: bool = False

    @cached_property
    def entry(self) -> int:
        """The state at the start: parameters have values, all else has none."""
        given = (
            i
            for i, d in enumerate(self.definitions)
            if d is not None
            and (isinstance(d.node, ast.arg) or (d.unbinds and d.node is self.node))
        )
        return 1 | sum(1 << i for i in given)

    @property
    def everything(self) -> int:
        """All bits."""
        return (1 << len(self.definitions)) - 1


class Variables:
    """The scopes and frames of one file.

    ``scopes`` maps every node that opens a scope to it, ``undefined`` names what the file reads and binds nowhere, each with a place.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.scopes: dict[ast.AST, Scope] = {}
        self.frames: list[Frame] = []
        self.star = False
        self.undefined: dict[str, ast.AST] = {}
        self.own: dict[
            ast.Name, tuple[Scope, Frame]
        ] = {}  # a name that is read (or deleted) -> where it stands
        self._names: dict[str, int] = {}
        self.late_annotations = any(
            isinstance(s, ast.ImportFrom)
            and s.module == "__future__"
            and any(a.name == "annotations" for a in s.names)
            for s in tree.body
        )
        _Collector(self).file(tree)
        self.module = self.frames[0]
        self._settle()

    def path(self, scope: Scope | None, name: str) -> str:
        """A name for a new scope that tells it from others of the same name."""
        path = f"{scope.path}.{name}" if scope is not None and scope.path else name
        self._names[path] = self._names.get(path, 0) + 1
        return path if self._names[path] == 1 else f"{path}#{self._names[path]}"

    def _settle(self) -> None:
        """What is known once all bindings are: whose variable each name means."""
        for frame in self.frames:
            self._start(frame)
        foreign = {
            (d.key, d.unbinds)
            for frame in self.frames
            for d in frame.definitions
            if d is not None and self._foreign(frame, d)
        }
        for frame in self.frames:
            for key, variable in frame.variables.items():
                variable.given = (key, False) in foreign or (self.star and key[0].kind == "module")
                variable.taken = (key, True) in foreign
        for node, (scope, frame) in self.own.items():
            owner = scope.owner(node.id)
            if (
                owner is None
                and not hasattr(builtins, node.id)
                and node.id not in _OF_MODULES | _OF_CLASSES
            ):
                self.undefined.setdefault(node.id, node)
            elif owner is not None and owner.kind == "module":
                frame.reads.add(node.id)

    def _start(self, frame: Frame) -> None:
        """The definition that each variable begins with: no value, but for parameters."""
        for bit, d in enumerate(frame.definitions):
            if d is not None and d.key[1] in d.key[0].outer:
                frame.definitions[bit] = replace(
                    d, key=(d.key[0].owner(d.key[1]) or d.key[0], d.key[1])
                )
        scopes = {d.key for d in frame.definitions if d is not None}
        given = {d.key for d in frame.definitions if d is not None and isinstance(d.node, ast.arg)}
        for key in scopes:
            frame.variables[key] = Variable(judged=self._judged(frame, key))
            if key not in given:
                frame.definitions.append(Definition(key, frame.node, frame.node, True))
        for bit, d in enumerate(frame.definitions):
            if d is not None:
                frame.variables[d.key].every |= 1 << bit
                frame.variables[d.key].without |= (1 << bit) * d.unbinds

    def _judged(self, frame: Frame, key: Key) -> bool:
        """Not where the name is looked up further outside: in a module among the builtins, in a class body in all that is round it."""
        scope, name = key
        if scope.kind == "module":
            return (
                frame.scope.kind == "module"
                and not hasattr(builtins, name)
                and name not in _OF_MODULES
            )
        if scope.kind == "class":
            around = scope.parent.owner(name) if scope.parent is not None else None
            return (
                around is None
                and not hasattr(builtins, name)
                and name not in _OF_MODULES | _OF_CLASSES
            )
        return scope.kind == "comprehension" or scope is frame.scope

    @staticmethod
    def _foreign(frame: Frame, d: Definition) -> bool:
        """Whether the frame binds or deletes a variable of another one."""
        return (
            d.node is not frame.node
            and d.key[0].kind in ("module", "function")
            and d.key[0] is not frame.scope
        )


class _Collector:
    """One walk over the file: scopes, frames, definitions."""

    def __init__(self, variables: Variables) -> None:
        self.all = variables
        self.frame: Frame
        self.scope: Scope

    def file(self, tree: ast.Module) -> None:
        self._run(tree, Scope(tree, None, "module", ""), tree.body)

    def _run(
        self,
        node: ast.AST,
        scope: Scope,
        body: Iterable[ast.AST],
        parameters: ast.arguments | None = None,
    ) -> None:
        """A new frame."""
        around = (self.frame, self.scope) if scope.parent is not None else None
        self.frame, self.scope = Frame(node, scope), scope
        self.all.scopes[node] = scope
        self.all.frames.append(self.frame)
        if around is not None:
            around[0].inner.append(self.frame)
        if parameters is not None:
            for arg in all_parameters(parameters):
                self._bind(arg.arg, arg, node)
        scope.bound.update(p.name for p in getattr(node, "type_params", ()))
        for statement in body:
            self._visit(statement)
        if around is not None:
            self.frame, self.scope = around

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
        scope = scope or self.scope
        if scope.outer.get(name) != "nonlocal":
            scope.bound.add(name)
        self.frame.at[node, unbinds] = len(self.frame.definitions)
        self.frame.definitions.append(Definition((scope, name), node, by, unbinds))

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
        method = getattr(self, f"_{type(node).__name__}", None)
        start = len(self.frame.definitions)
        if method is not None:
            method(node)
        else:
            for child in ast.iter_child_nodes(node):
                self._visit(child)
        if isinstance(node, LoopNode):
            self.frame.ranges[node] = (1 << len(self.frame.definitions)) - (1 << start)

    def _Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.all.own[node] = self.scope, self.frame
        else:
            self._bind(node.id, node, node)

    def _Global(self, node: ast.Global) -> None:
        self.scope.outer |= dict.fromkeys(node.names, "global")
        self.scope.module.bound.update(node.names)

    def _Nonlocal(self, node: ast.Nonlocal) -> None:
        self.scope.outer |= dict.fromkeys(node.names, "nonlocal")

    def _Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            self.frame.called.add(node.func.id)
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _Yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        self.frame.generates = True
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    _YieldFrom = _Yield

    # -- statements
    def _Assign(self, node: ast.Assign) -> None:
        self._visit(node.value)
        for target in node.targets:
            self._targets(target, node)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if not self.all.late_annotations:
            self._visit(node.annotation)
        if node.value is not None:
            self._visit(node.value)
            self._targets(node.target, node)
        elif isinstance(node.target, ast.Name):
            self.scope.bound.add(node.target.id)
            self.frame.definitions.append(
                Definition((self.scope, node.target.id), node, node, False)
            )  # of no state: it makes the name a local one
        else:
            self._visit(node.target)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.all.own[node.target] = self.scope, self.frame
        self._visit(node.value)
        self._targets(node.target, node)

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._deleted(target)

    def _deleted(self, target: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.all.own[target] = self.scope, self.frame
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
                self.all.star = True
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
        for expression in evaluated_first(node, late=self.all.late_annotations):
            self._visit(expression)
        self._bind(node.name, node, node)
        self._run(
            node,
            Scope(node, self.scope, "function", self.all.path(self.scope, node.name)),
            node.body,
            node.args,
        )

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef) -> None:
        for expression in evaluated_first(node, late=self.all.late_annotations):
            self._visit(expression)
        inner = Scope(node, self.scope, "class", self.all.path(self.scope, node.name))
        inner.bound.update(p.name for p in getattr(node, "type_params", ()))
        around, self.scope = self.scope, inner
        self.all.scopes[node] = inner
        for child in node.body:
            self._visit(child)
        self.scope = around
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
            Scope(node, self.scope, "function", self.all.path(self.scope, "<lambda>")),
            [node.body],
            node.args,
        )

    def _NamedExpr(self, node: ast.NamedExpr) -> None:
        self._visit(node.value)
        scope = self.scope
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        self._bind(node.target.id, node.target, node, scope=scope)

    def _ListComp(self, node: Comprehension) -> None:
        first, *others = node.generators
        self._visit(first.iter)
        inner = Scope(node, self.scope, "comprehension", self.scope.path)
        around, self.scope = self.scope, inner
        self.all.scopes[node] = inner
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
        self.scope = around

    _SetComp = _DictComp = _GeneratorExp = _ListComp


def elements(node: Comprehension) -> tuple[ast.expr, ...]:
    """What a comprehension evaluates for each element."""
    return (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)


def all_parameters(a: ast.arguments) -> Iterator[ast.arg]:
    """Every parameter of a function."""
    yield from (*a.posonlyargs, *a.args, *a.kwonlyargs)
    yield from (x for x in (a.vararg, a.kwarg) if x is not None)


def evaluated_first(node: FunctionNode | ast.ClassDef, *, late: bool) -> Iterator[ast.expr]:
    """What a ``def`` or ``class`` statement evaluates where it stands; ``late``: annotations are never evaluated.

    Those of a generic function or class may name its type parameters: they are left out.
    """
    yield from node.decorator_list
    if isinstance(node, ast.ClassDef):
        if not getattr(node, "type_params", ()):
            yield from (*node.bases, *(k.value for k in node.keywords))
        return
    yield from (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None))
    if not late and not getattr(node, "type_params", ()):
        yield from (
            x
            for x in (*(a.annotation for a in all_parameters(node.args)), node.returns)
            if x is not None
        )
