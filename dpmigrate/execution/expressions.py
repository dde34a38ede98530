"""Expressions: names, access and calls; the table of all kinds."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable

from dpmigrate.execution import own_attributes
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.comprehensions import ComprehensionParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, KEYS, LENGTH, ORDER
from dpmigrate.execution.scopes import Function
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Foreign,
    Ref,
    Super,
    Value,
    value,
)


class ExpressionParts(ComprehensionParts):
    """One method for each kind of expression."""

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        self.step()
        found = _EVALUATE[type(node)](self, node, frame)
        return self.bound(found)  # what is read is there; fields of libraries may be missing

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        return self.name(node, frame)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        found = self.attribute(owner, node.attr, node, frame)
        return own_attributes.known(self, owner, node, frame) or found

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        return self.item(owner, self.evaluate(node.slice, frame), node, frame)

    def _star(self, node: ast.Starred, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Value:
        found = self.evaluate(node.value, frame)
        self.assign(node.target, found, node, frame)
        return found

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and frame.cls is not None:
            given = [self.evaluate(a, frame) for a in node.args]
            cls, receiver = frame.cls, frame.receiver
            if len(given) == 2:
                classes = [o.number for o in self.objects(given[0]) if o.kind == "class"]
                cls = classes[0] if classes else cls
                receiver = next((a for a in given[1] if isinstance(a, Ref)), receiver)
            if receiver is not None:
                return value(Super(cls, receiver))
        callee = self.evaluate(node.func, frame)
        if not callee:
            return NOTHING
        self.taken_at_once(node, callee)
        arguments = self.arguments(node, frame)
        for atom in callee if len(callee) == 1 else ():
            name = atom.name if isinstance(atom, Foreign) else ""
            taken = self.takes(name, arguments, node, frame)
            if taken is not None:
                return taken
        return self.call(callee, arguments, node, frame)

    def arguments(self, node: ast.Call, frame: Frame) -> Arguments:
        """What a call gives."""
        given = Arguments()
        for arg in node.args:
            if not isinstance(arg, ast.Starred):
                v = self.evaluate(arg, frame)
                if given.star:
                    given.star = join(given.star, v)
                else:
                    given.positional.append(v)
                continue
            self.at_once.add(arg.value)
            v = self.evaluate(arg.value, frame)
            known = self.known_elements(v)
            first = self.library.opening(self, v, arg, frame)
            if known is not None and not given.star:
                given.positional += known
            elif first and not given.star:
                given.positional += first
                given.star = SETTING
            else:
                given.star = join(given.star, self.taken(v, arg, frame)) or SETTING
                given.opened = v if len(node.args) == 1 else NOTHING
        for keyword in node.keywords:
            v = self.evaluate(keyword.value, frame)
            if keyword.arg is not None:
                given.keywords[keyword.arg] = v
            else:
                self._spread(v, given)
        return given

    def _spread(self, v: Value, given: Arguments) -> None:
        """``**v``."""
        for atom in v:
            made = self.object(atom)
            if made is None or made.kind not in ("dict", "instance", "namespace"):
                given.stars = join(given.stars, value(atom))
                continue
            for k, held in self.heap.names(made.number):
                if made.kind == "namespace" and isinstance(k, str) and k != ELEMENTS:
                    given.keywords[k] = self.bound(held)
                elif isinstance(k, Const) and isinstance(k.value, str):
                    given.keywords[k.value] = self.bound(held)
                elif k not in (LENGTH, KEYS, ORDER):
                    given.stars = join(given.stars, self.bound(held))

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return self.function(node, frame)

    def _await(self, node: ast.Await, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _yield(self, node: ast.Yield, frame: Frame) -> Value:
        given = self.evaluate(node.value, frame) if node.value is not None else NONE
        return SETTING if self.yields(given, node, frame) else NOTHING

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Value:
        source = self.evaluate(node.value, frame)
        return self.yields_from(source, node, frame) if source else NOTHING

    # ------------------------------------------------------------ defined by later parts

    @abstractmethod
    def function(self, node: Function, frame: Frame) -> Value:
        """A function object."""

    @abstractmethod
    def generator_expression(self, node: ast.GeneratorExp, frame: Frame) -> Value:
        """``(f(x) for x in xs)``."""

    @abstractmethod
    def taken_at_once(self, node: ast.Call, callee: Value) -> None:
        """Note which arguments of a call are gone through by it, to their end."""

    @abstractmethod
    def takes(self, name: str, arguments: Arguments, node: ast.AST, frame: Frame) -> Value | None:
        """``any``, ``all`` and ``next`` of a generator that begins here; None for all others."""

    @abstractmethod
    def yields_from(self, source: Value, node: ast.YieldFrom, frame: Frame) -> Value:
        """A generator gives what another iterable gives; NOTHING: it goes no further."""

    @abstractmethod
    def yields(self, given: Value, node: ast.AST, frame: Frame) -> bool:
        """A generator gives a value; whether it goes on."""


_EVALUATE: dict[type[ast.AST], Callable[..., Value]] = {
    ast.Constant: ExpressionParts._constant,
    ast.JoinedStr: ExpressionParts._text,
    ast.Tuple: ExpressionParts._tuple,
    ast.List: ExpressionParts._list,
    ast.Set: ExpressionParts._set,
    ast.Dict: ExpressionParts._dict,
    ast.Slice: ExpressionParts._slice_literal,
    ast.Name: ExpressionParts._name,
    ast.Attribute: ExpressionParts._attribute,
    ast.Subscript: ExpressionParts._subscript,
    ast.Starred: ExpressionParts._star,
    ast.NamedExpr: ExpressionParts._walrus,
    ast.IfExp: ExpressionParts._either,
    ast.BoolOp: ExpressionParts._both,
    ast.UnaryOp: ExpressionParts._unary,
    ast.Compare: ExpressionParts._compare,
    ast.BinOp: ExpressionParts._binary,
    ast.ListComp: ExpressionParts._comprehension,
    ast.SetComp: ExpressionParts._comprehension,
    ast.GeneratorExp: lambda machine, node, frame: machine.generator_expression(node, frame),
    ast.DictComp: ExpressionParts._comprehension,
    ast.Call: ExpressionParts._call,
    ast.Lambda: ExpressionParts._lambda,
    ast.Await: ExpressionParts._await,
    ast.Yield: ExpressionParts._yield,
    ast.YieldFrom: ExpressionParts._yield_from,
}
