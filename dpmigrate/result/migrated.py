"""A program before and after its migration, as the checks of the result see it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dpmigrate.contract import MODULE
from dpmigrate.facts.script import Script
from dpmigrate.facts.values import NONE, Vals
from dpmigrate.lines import Lines
from dpmigrate.model import Span
from dpmigrate.program import Part
from dpmigrate.result.flow import Flow
from dpmigrate.result.scopes import Definition


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a result: a place of the *old* text (``train.py:12``), and a sentence
    about it. ``loud``: it would not be wrong where no gradients are recorded. ``unless``: the
    line and column of a collective, which is none if an execution of the result shows that all
    ranks come there alike.
    """

    place: str
    words: str
    loud: bool = False
    unless: tuple[int, int] | None = None


class Migrated:
    """``before`` and ``after`` are the facts of the old and the new program, whose files
    correspond; ``texts`` the new text of each that changes.
    """

    def __init__(self, before: Script, after: Script, texts: Mapping[Part, str]) -> None:
        self.before = before
        self.after = after
        self.texts = texts
        self._lines: dict[int, Lines] = {}
        self._flows: dict[int, Flow] = {}

    # ------------------------------------------------------------------ files and places
    def changed(self) -> Iterator[tuple[int, str, str]]:
        """Each file that changes: its index, its old and its new text."""
        for i, part in enumerate(self.before.program.parts):
            if part in self.texts:
                yield i, part.source.text, self.texts[part]

    def lines(self, index: int) -> Lines:
        """The new lines of a file beside the old ones."""
        if index not in self._lines:
            part = self.before.program.parts[index]
            self._lines[index] = Lines(part.source.text, self.texts.get(part, part.source.text))
        return self._lines[index]

    def index(self, node: ast.AST) -> int:
        """The file of the new program in which the node stands."""
        return self.after.program.parts.index(self.after.program.part(Span.of(node)))

    def old(self, index: int, line: int) -> str:
        """A line of an old file, for people."""
        return f"{self.before.program.parts[index].source.name}:{line}"

    def place(self, node: ast.AST) -> str:
        """The line of the old text at which a node of the new program stands, or would stand."""
        index = self.index(node)
        return self.old(
            index,
            self.lines(index).place(Span.of(node).line - self.after.program.parts[index].first),
        )

    def fault(self, node: ast.AST, words: str) -> Fault:
        """What is wrong with a node of the new program."""
        return Fault(self.place(node), words)

    def is_new(self, node: ast.AST) -> bool:
        """Whether the line on which the node begins has changed or was inserted."""
        index = self.index(node)
        return not self.lines(index).stays(
            Span.of(node).line - self.after.program.parts[index].first
        )

    # ------------------------------------------------------------------ calls of the runtime
    @cached_property
    def runtime_calls(self) -> tuple[tuple[str, ast.Call], ...]:
        """The calls of the runtime in code that may run, each with the name of the function."""
        names = self.after.names
        found = ((names.dotted(c.func), c) for c in self.after.roles.calls)
        return tuple(
            (dotted.removeprefix(f"{MODULE}."), c)
            for dotted, c in found
            if dotted.startswith(f"{MODULE}.")
        )

    # ------------------------------------------------------------------ what a name may hold
    def reaching(self, name: ast.Name) -> list[Definition]:
        """The definitions that may hold where a name of the new program is read; empty where they
        are not seen.
        """
        index = self.index(name)
        if index not in self._flows:
            self._flows[index] = Flow(self.after.names.trees[index])
        return self._flows[index].reaching(name)

    def possible(self, name: ast.Name) -> list[ast.expr | None]:
        """The expressions that a name may hold, also those that calls give for a parameter.

        None stands among them for what cannot be named.
        """
        names, found = self.after.names, list[ast.expr | None]()
        for d in self.reaching(name):
            bound = names.bindings(names.scope_of[name], name.id)
            parameter = next((b for b in bound if b.target is d.node and b.how == "param"), None)
            found += self.after.roles.handed(parameter) if parameter is not None else [_value(d)]
        return found or [None]

    def inner(self, vals: Vals) -> Vals:
        """The objects, models in the place of what the facts take for their wrappers."""
        return frozenset(x for v in vals for x in self.after.values.inner(v))

    def objects(self, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> Vals:
        """What an expression of the new program may be, by the definitions that reach it.

        Through parameters up to the calls; where one of the definitions cannot be named, whatever
        the order.
        """
        if not isinstance(node, ast.Name) or node in seen:
            return self.after.values.eval(node)
        possible = self.possible(node)
        known = [e for e in possible if e is not None]
        if len(known) < len(possible):
            return self.after.values.eval(node)
        return NONE.union(*(self.objects(e, seen | {node}) for e in known))


def _value(d: Definition) -> ast.expr | None:
    """The whole of what a definition gives its variable."""
    if isinstance(d.by, ast.Assign) and d.node in d.by.targets:
        return d.by.value
    if isinstance(d.by, ast.AnnAssign | ast.NamedExpr) and d.node is d.by.target:
        return d.by.value
    return (
        d.by.context_expr
        if isinstance(d.by, ast.withitem) and d.node is d.by.optional_vars
        else None
    )
