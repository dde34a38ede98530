"""Which names a function, class or comprehension binds itself, as Python's compiler decides it.

https://docs.python.org/3/reference/executionmodel.html#resolution-of-names
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from dpmigrate.execution.syntax import below, children

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CLOSURES = (*_FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS)


@dataclass(frozen=True)
class Names:
    """The names of a scope. ``closures``: something inside may keep them. ``unbound``: parameters
    that a function binds to nothing else, so that they stay what they are given.
    """

    bound: frozenset[str] = frozenset()
    globals: frozenset[str] = frozenset()
    nonlocals: frozenset[str] = frozenset()
    closures: bool = False
    generator: bool = False
    unbound: frozenset[str] = frozenset()


def names_of(node: ast.AST) -> Names:
    """The names that a function, class, lambda or comprehension binds."""
    if isinstance(node, _COMPREHENSIONS):
        bound = {n for g in node.generators for n in _targets(g.target)}
        inner = any(
            isinstance(n, _CLOSURES) for c in children(node) for n in below(c)
        )
        return Names(frozenset(bound), closures=inner)
    found = _Walk()
    if isinstance(node, _FUNCTIONS):
        found.bound |= {a.arg for a in parameters(node.args)}
    body = getattr(node, "body", [])
    for child in body if isinstance(body, list) else [body]:
        found.walk(child)
    declared = found.globals | found.nonlocals
    return Names(
        frozenset(found.bound - declared),
        frozenset(found.globals),
        frozenset(found.nonlocals),
        found.closures,
        found.generator,
        _never_bound(node) if isinstance(node, _FUNCTIONS) else frozenset(),
    )


def _never_bound(function: Function) -> frozenset[str]:
    """The parameters that no statement binds; ``x += y`` may write into what ``x`` is."""
    added: set[ast.AST] = set()
    stores: list[ast.Name] = []
    for n in below(function):
        if isinstance(n, ast.AugAssign):
            added.add(n.target)
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            stores.append(n)
    bound = {n.id for n in stores if n not in added}
    return frozenset(a.arg for a in parameters(function.args)) - bound


class _Every(Container[str]):
    """All names."""

    def __contains__(self, name: object) -> bool:
        return True


#: what binds names that are computed
_BY_NAME = frozenset({"exec", "globals", "locals", "vars", "builtins", "__builtins__"})
#: what only reads the names that ``globals()`` gives
_READS = frozenset({"get", "keys", "values", "items", "copy"})


def _read(node: ast.AST) -> ast.AST | None:
    """The function whose names are only read: ``globals()[name](…)``, ``globals().get(name)``, ``name in globals()``."""
    match node:
        case ast.Subscript(value=ast.Call(func=function), ctx=ast.Load()):
            return function
        case ast.Attribute(value=ast.Call(func=function), attr=attr, ctx=ast.Load()) if attr in _READS:
            return function
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Call(func=function)]):
            return function
    return None


def bindable(trees: Iterable[ast.AST]) -> Container[str]:
    """The names that any statement in the trees binds, in whatever scope; all of them where a
    program may bind names that it computes.
    """
    found: set[str] = set()
    nodes = [n for tree in trees for n in below(tree)]
    read = {id(r) for n in nodes if (r := _read(n)) is not None}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in _BY_NAME and id(node) not in read:
                return _Every()
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.alias(name=name):
                found.add(name.partition(".")[0])
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                found.update(names)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.add(name)
    return found


#: what sets attributes of objects under names that are computed
_SETTERS = frozenset({"setattr", "__setattr__", "__dict__"})


def sets_by_name(node: ast.AST) -> bool:
    """Whether a node may set an attribute under a name that is computed."""
    match node:
        case ast.Name(id=name) if name in _SETTERS:
            return True
        case ast.Attribute(attr=name, ctx=context):
            return name in _SETTERS or (name == "__class__" and not isinstance(context, ast.Load))
    # parser.parse_args(namespace=options)
    return isinstance(node, ast.keyword) and node.arg == "namespace"


def parameters(args: ast.arguments) -> Iterator[ast.arg]:
    """All parameters, in order."""
    yield from (*args.posonlyargs, *args.args)
    if args.vararg:
        yield args.vararg
    yield from args.kwonlyargs
    if args.kwarg:
        yield args.kwarg


class _Walk:
    """The nodes of one scope, without those of the scopes in it."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.closures = self.generator = False

    def walk(self, top: ast.AST) -> None:
        stack = [top]
        while stack:
            node = stack.pop()
            self._note(node)
            if isinstance(node, _COMPREHENSIONS):
                # a walrus in a comprehension binds in the scope round it
                for inner in below(node):
                    if isinstance(inner, ast.NamedExpr):
                        self.bound |= set(_targets(inner.target))
                stack.append(node.generators[0].iter)
            elif isinstance(node, ast.ClassDef):
                stack += [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
            elif isinstance(node, _FUNCTIONS):
                args = node.args
                stack += [*args.defaults, *(d for d in args.kw_defaults if d is not None)]
                stack += getattr(node, "decorator_list", [])
            else:
                stack += children(node)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                self.bound.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.bound.add(node.name)
                self.closures = True
            case ast.Import() | ast.ImportFrom():
                self.bound |= {a.asname or a.name.split(".")[0] for a in node.names}
            case ast.ExceptHandler(name=str(name)):
                self.bound.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self.bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                self.bound.add(name)
            case ast.Global():
                self.globals |= set(node.names)
            case ast.Nonlocal():
                self.nonlocals |= set(node.names)
            case ast.Yield() | ast.YieldFrom():
                self.generator = True
        if isinstance(node, _CLOSURES):
            self.closures = True


def _targets(target: ast.AST) -> Iterator[str]:
    return (
        n.id for n in below(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
