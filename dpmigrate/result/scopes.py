"""The nouns of the data flow: scopes, definitions, variables, frames.

A *frame* is code that runs by itself: the module, a function, a lambda. Class bodies and
comprehensions run where they stand, so they belong to the frame round them; their names are
variables of their own scope all the same. Every place that binds or deletes a variable is a
*definition* with a number, in the order of the source: those of a loop are one range of numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
LoopNode = ast.For | ast.AsyncFor | ast.While
#: nodes that neither read nor bind anything
IDLE = (ast.expr_context, ast.Constant, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


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
    """A place that binds a variable (or deletes it: ``unbinds``); ``by`` is the statement or
    expression that does.
    """

    key: Key
    node: ast.AST
    by: ast.AST
    unbinds: bool


@dataclass(eq=False)
class Variable:
    """A variable as a frame sees it: the bits of all its definitions there, and of those after
    which it has no value.

    ``judged``: whether a read without a value is an error of this frame; ``given``: other code may
    give it a value; ``taken``: other code may delete it.
    """

    every: int = 0
    without: int = 0
    judged: bool = True
    given: bool = False
    taken: bool = False


@dataclass(eq=False)
class Frame:
    """Code that runs by itself, with the definitions in it; bit 0 of a state says that the place is
    reached at all.
    """

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


def elements(node: Comprehension) -> tuple[ast.expr, ...]:
    """What a comprehension evaluates for each element."""
    return (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)


def all_parameters(a: ast.arguments) -> Iterator[ast.arg]:
    """Every parameter of a function."""
    yield from (*a.posonlyargs, *a.args, *a.kwonlyargs)
    yield from (x for x in (a.vararg, a.kwarg) if x is not None)


def evaluated_first(node: FunctionNode | ast.ClassDef, *, late: bool) -> Iterator[ast.expr]:
    """What a ``def`` or ``class`` statement evaluates where it stands; ``late``: annotations are
    never evaluated.

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
