"""Statements: the plain ones, and the table of all kinds."""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from collections.abc import Callable

from dpmigrate.execution import divergence, folding, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.context_managers import ContextParts
from dpmigrate.execution.in_place import holds_elements
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.values import (
    NONE,
    UNBOUND,
    Differs,
    Method,
    Ref,
    Setting,
    Value,
    const,
)


class StatementParts(ContextParts):
    """One method for each kind of statement; each says whether control comes out at its end."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: reads of the targets of augmented assignments
        self._loads: dict[ast.Name, ast.Name] = {}

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        outside = self.heap.at
        try:
            for statement in body:
                self.step()
                self.trace.ran.add(statement)
                self.heap.at = statement
                run = _EXECUTE.get(type(statement))
                if run is not None and not run(self, statement, frame):
                    return False
            return True
        finally:
            self.heap.at = outside

    def _expression(self, node: ast.Expr, frame: Frame) -> bool:
        return bool(self.evaluate(node.value, frame))

    def _assignment(self, node: ast.Assign, frame: Frame) -> bool:
        adds = (self.each_sample or self.regime == "own") and self._adds(node)
        if self.each_sample:
            self._grows(node)
        if any(isinstance(t, ast.Tuple | ast.List) for t in node.targets):
            self.at_once.add(node.value)
        new = self.evaluate(node.value, frame)
        if not new:
            return False
        if self.each_sample and not adds:
            new = samples.so_far(new, node)
        for target in node.targets:
            self.assign(target, new, node, frame)
        return True

    def _adds(self, node: ast.Assign) -> bool:
        """Whether a variable is given a sum of itself and more: ``total = total + a - b``."""
        whole = node.value
        if isinstance(whole, ast.BinOp) and whole not in self.adding and len(node.targets) == 1:
            found: list[tuple[ast.BinOp, ast.expr]] = []
            target = ast.unparse(node.targets[0])
            part: ast.expr = whole
            while isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
                if isinstance(part.op, ast.Add) and ast.unparse(part.right) == target:
                    found.append((part, part.right))
                    self.adding.update(found)
                    break
                found.append((part, part.left))
                part = part.left
                if ast.unparse(part) == target:
                    self.adding.update(found)
                    break
        return whole in self.adding

    def _grows(self, node: ast.Assign) -> None:
        """Note where a variable is given itself with more behind it: ``flat = cat((flat, new))``."""
        call = node.value
        if not isinstance(call, ast.Call) or call in self.growing or len(node.targets) != 1:
            return
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg), None)
        first = given.elts[0] if isinstance(given, ast.Tuple | ast.List) and given.elts else None
        if first is not None and ast.unparse(first) == ast.unparse(node.targets[0]):
            self.growing[call] = first

    def _annotated(self, node: ast.AnnAssign, frame: Frame) -> bool:
        if node.value is None:
            return True
        new = self.evaluate(node.value, frame)
        if not new:
            return False
        self.assign(node.target, new, node, frame)
        return True

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> bool:
        target = node.target
        load: ast.expr = target
        if isinstance(target, ast.Name):
            load = self._loads.setdefault(
                target, ast.copy_location(ast.Name(target.id, ast.Load()), target)
            )
        left = self.evaluate(load, frame)
        right = self.evaluate(node.value, frame)
        if not left or not right:
            return False
        lists = [o for o in self.objects(left) if o.kind in ("list", "set", "dict")]
        if lists and isinstance(node.op, ast.Add | ast.BitOr):
            methods = [Method(Ref(o.number), "extend" if o.kind == "list" else "update") for o in lists]
            apart = (a for a in left if isinstance(a, Differs))
            self.call((*methods, *apart), Arguments([right]), node, frame)
            return True
        if isinstance(node.op, ast.Add | ast.Sub) and self.regime == "own":
            right = self._added_in_turn(target, left, right, node, frame)
            if isinstance(target, ast.Subscript) and self._added_to_table(target, right, node, frame):
                return True
        word = f"__i{folding.word_of(node.op)}__"
        own = self.own_operator(left, word, [right], node, frame)
        if self.each_sample and not isinstance(node.op, ast.Add | ast.Sub):
            left, right = (samples.so_far(v, node) for v in (left, right))
        carries = not self.of_this_turn(target, frame)
        if own is None:
            own = self.operate(node.op, left, right, node, frame, carries=carries)
        new = own
        self.event("augmented", node, frame, left=left, right=right, new=new)
        if holds_elements(left):
            self.write_in_place(target, new, node, frame, left)
        else:
            self.assign(target, new, node, frame)
        return True

    def _added_to_table(
        self, target: ast.Subscript, right: Value, node: ast.AugAssign, frame: Frame
    ) -> bool:
        """``table[k] += v`` at a place that one turn chooses: wherever it is, the turn's number is
        added up in the table. Whether that is what is done here.
        """
        table, key = self.evaluate(target.value, frame), self.evaluate(target.slice, frame)
        if not divergence.sums_of_turns(table) or not divergence.of_one_turn(key):
            return False
        carries = not self.of_this_turn(target.value, frame)
        new = self.operate(node.op, table, right, node, frame, carries=carries)
        self.event("augmented", node, frame, left=table, right=right, new=new)
        self.write_in_place(target.value, new, node, frame)
        return True

    def _nothing(self, node: ast.stmt, frame: Frame) -> bool:
        return True

    def _delete(self, node: ast.Delete, frame: Frame) -> bool:
        for target in node.targets:
            self._forget(target, frame)
        return True

    def _forget(self, target: ast.expr, frame: Frame) -> None:
        """``del target``."""
        match target:
            case ast.Name():
                at = self.place(target.id, frame)
                if self.heap.read(at) is not None:
                    self.heap.write(at, None)
            case ast.Tuple() | ast.List():
                for part in target.elts:
                    self._forget(part, frame)
            case ast.Attribute():
                for made in self.objects(self.evaluate(target.value, frame)):
                    held = self.heap.read((made.number, target.attr))
                    if held is not None:
                        gone = not made.many and not made.kept
                        self.heap.write(
                            (made.number, target.attr), None if gone else (*held, UNBOUND)
                        )
            case ast.Subscript():
                owner = self.evaluate(target.value, frame)
                key = self.evaluate(target.slice, frame)
                for made in self.objects(owner):
                    if made.kind in ("list", "dict"):
                        self.remove(made, key, target)

    def _return(self, node: ast.Return, frame: Frame) -> bool:
        given = self.evaluate(node.value, frame) if node.value is not None else NONE
        if given:
            frame.returns.append((given, self.heap.since(frame.level - 1)))
        return False

    def _raise(self, node: ast.Raise, frame: Frame) -> bool:
        if node.exc is not None:
            self.evaluate(node.exc, frame)
        self.event("raise", node, frame)
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = raised.id if isinstance(raised, ast.Name) else ""
        self.raises(name if hasattr(builtins, name) else "")
        return False

    def _assert(self, node: ast.Assert, frame: Frame) -> bool:
        test = self.condition(self.evaluate(node.test, frame), node.test, frame)
        self.may_raise(self.parting(test, node.test), "AssertionError")
        self.refine(node.test, True, frame)
        for part in node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]:
            self._asserted(part, frame)
        return self.truth(test) is not False

    def _asserted(self, test: ast.expr, frame: Frame) -> None:
        """``assert args.views == 2``: behind it the option has that value."""
        match test:
            case ast.Compare(left=ast.Name() | ast.Attribute() as asked, ops=[ast.Eq()], comparators=[ast.Constant(value=bool() | int() | str() as only)]):
                held, at = self.evaluate(asked, frame), self.location(asked, frame)
                if at is not None and len(held) == 1 and isinstance(held[0], Setting):
                    self.heap.narrow(at, const(only))

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> bool:
        made = self.function(node, frame)
        if node.decorator_list:
            made = self.decorated(made, node.decorator_list, node.name, frame)
        self.bind(node.name, made, frame)
        return True

    def _class(self, node: ast.ClassDef, frame: Frame) -> bool:
        self.bind(node.name, self.define_class(node, frame), frame)
        return True

    def _import(self, node: ast.Import, frame: Frame) -> bool:
        self.import_modules(node, frame)
        return True

    def _import_from(self, node: ast.ImportFrom, frame: Frame) -> bool:
        self.import_names(node, frame)
        return True

    @abstractmethod
    def import_modules(self, node: ast.Import, frame: Frame) -> None:
        """``import a.b as c``."""

    @abstractmethod
    def import_names(self, node: ast.ImportFrom, frame: Frame) -> None:
        """``from a.b import c``."""


_EXECUTE: dict[type[ast.AST], Callable[..., bool]] = {
    ast.Expr: StatementParts._expression,
    ast.Assign: StatementParts._assignment,
    ast.AnnAssign: StatementParts._annotated,
    ast.AugAssign: StatementParts._augmented,
    ast.Delete: StatementParts._delete,
    ast.Return: StatementParts._return,
    ast.Raise: StatementParts._raise,
    ast.Assert: StatementParts._assert,
    ast.FunctionDef: StatementParts._define,
    ast.AsyncFunctionDef: StatementParts._define,
    ast.ClassDef: StatementParts._class,
    ast.If: lambda machine, node, frame: machine._if(node, frame),  # the judge adds to it
    ast.Match: StatementParts._match,
    ast.For: StatementParts._for,
    ast.AsyncFor: StatementParts._for,
    ast.While: StatementParts._while,
    ast.Break: StatementParts._break,
    ast.Continue: StatementParts._continue,
    ast.Try: StatementParts._try,
    ast.TryStar: StatementParts._try,
    ast.With: StatementParts._with,
    ast.AsyncWith: StatementParts._with,
    ast.Import: StatementParts._import,
    ast.ImportFrom: StatementParts._import_from,
}
