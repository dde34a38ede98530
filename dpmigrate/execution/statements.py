"""Statements and the flow of control."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.functions import CallParts
from dpmigrate.execution.heap import Delta, Location
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.names import LENGTH
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    UNBOUND,
    Const,
    Data,
    Foreign,
    Items,
    Method,
    Origin,
    Ref,
    Setting,
    Unknown,
    Value,
    join,
    unknown,
    value,
)

#: turns of a loop, after which what still changes is not understood
TURNS = 4
#: literal sequences up to this length are gone through one by one
UNROLLED = 6


class StatementParts(CallParts):
    """One method for each kind of statement; each says whether control comes out at its end."""

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        for statement in body:
            self.step()
            run = _EXECUTE.get(type(statement))
            if run is not None and not run(self, statement, frame):
                return False
        return True

    # ------------------------------------------------------------ plain statements

    def _expression(self, node: ast.Expr, frame: Frame) -> bool:
        return bool(self.evaluate(node.value, frame))

    def _assignment(self, node: ast.Assign, frame: Frame) -> bool:
        new = self.evaluate(node.value, frame)
        if not new:
            return False
        for target in node.targets:
            self.assign(target, new, node, frame)
        return True

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
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        left = self.evaluate(load, frame)
        right = self.evaluate(node.value, frame)
        if not left or not right:
            return False
        lists = [o for o in self.objects(left) if o.kind in ("list", "set", "dict")]
        if lists and isinstance(node.op, ast.Add | ast.BitOr):
            for made in lists:
                self.container_method(
                    made, "extend" if made.kind == "list" else "update", Arguments([right]), node, frame
                )  # fmt: skip
            return True
        new = self.operate(node.op, left, right, node, frame)
        self.event("augmented", node, frame, left=left, right=right, new=new)
        self.assign(target, new, node, frame)
        return True

    def _nothing(self, node: ast.stmt, frame: Frame) -> bool:
        return True

    def _delete(self, node: ast.Delete, frame: Frame) -> bool:
        for target in node.targets:
            if isinstance(target, ast.Name):
                at = self.place(target.id, frame)
                if self.heap.read(at) is not None:
                    self.heap.write(at, None)
        return True

    def _return(self, node: ast.Return, frame: Frame) -> bool:
        given = self.evaluate(node.value, frame) if node.value is not None else NONE
        if given:
            frame.returns.append((given, self.heap.since(frame.level - 1)))
        return False

    def _raise(self, node: ast.Raise, frame: Frame) -> bool:
        if node.exc is not None:
            self.evaluate(node.exc, frame)
        self.event("raise", node, frame)
        return False

    def _assert(self, node: ast.Assert, frame: Frame) -> bool:
        test = self.evaluate(node.test, frame)
        self.refine(node.test, True, frame)
        return self.truth(test) is not False

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> bool:
        made = self.function(node, frame)
        if node.decorator_list:
            made = self.decorated(made, node.decorator_list, node.name, frame)
        self.bind(node.name, made, frame)
        return True

    def _class(self, node: ast.ClassDef, frame: Frame) -> bool:
        self.bind(node.name, self.define_class(node, frame), frame)
        return True

    # ------------------------------------------------------------ branches

    def truth(self, v: Value) -> bool | None:
        answers = {self._truth(a) for a in v}
        return answers.pop() if len(answers) == 1 else None

    def _truth(self, atom: object) -> bool | None:
        match atom:
            case Const():
                return bool(atom.value)
            case Foreign():
                return True
            case Items():
                return bool(atom.items)
            case Ref():
                made = self.heap.objects[atom.object]
                if made.kind in ("list", "set"):
                    count = self.length(made)
                    return bool(count) if count is not None else None
                if made.kind == "dict":
                    known = self.known_elements(value(atom))
                    return bool(known) if known is not None else None
                return True if made.kind not in ("opaque", "iterator") else None
        return None

    def branch(self, arms: list[Callable[[], bool]], parted: object) -> bool:
        reason = parted if isinstance(parted, Parting) else None
        self.control.append(reason)
        outcomes: list[Delta] = []
        try:
            for arm in arms:
                self.heap.mark()
                alive = False
                try:
                    alive = arm()
                finally:
                    delta = self.heap.rollback()
                if alive:
                    outcomes.append(delta)
        finally:
            self.control.pop()
        self.heap.apply(outcomes, self.merging(reason))
        return bool(outcomes)

    def _if(self, node: ast.If, frame: Frame) -> bool:
        test = self.evaluate(node.test, frame)
        if not test:
            return False
        truth = self.truth(test)
        if truth is not None:
            self.refine(node.test, truth, frame)
            return self.block(node.body if truth else node.orelse, frame)
        parted = self.parting(test, node.test)
        self.event("branch", node, frame, test=test)

        def arm(body: list[ast.stmt], yes: bool) -> Callable[[], bool]:
            def run() -> bool:
                self.refine(node.test, yes, frame)
                return self.block(body, frame)

            return run

        return self.parted_arms([arm(node.body, True), arm(node.orelse, False)], parted, frame)

    def parted_arms(
        self, arms: list[Callable[[], bool]], parted: Parting | None, frame: Frame
    ) -> bool:
        """Alternatives; where ranks may choose differently and one of them leaves, ranks have parted."""
        before = (len(frame.returns), len(frame.breaks), len(frame.continues))
        alive = self.branch(arms, parted)
        if parted is not None:
            if len(frame.returns) > before[0]:
                self._mark(frame.slot, parted)
            if frame.loops and len(frame.breaks) > before[1]:
                self._mark(frame.loops[-1][2], parted)
            if frame.loops and len(frame.continues) > before[2]:
                self._mark(frame.loops[-1][2] + 1, parted)
        return alive

    def _mark(self, slot: int, parted: Parting) -> None:
        if slot < len(self.control) and self.control[slot] is None:
            self.control[slot] = parted

    def refine(self, test: ast.expr, yes: bool, frame: Frame) -> None:
        match test:
            case ast.UnaryOp(op=ast.Not()):
                self.refine(test.operand, not yes, frame)
            case ast.BoolOp():
                if isinstance(test.op, ast.And) == yes:
                    for part in test.values:
                        self.refine(part, yes, frame)
            case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)]):
                self._keep(test.left, frame, lambda a: _none(a) is not (not yes))
            case ast.Compare(
                ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(value=None)]
            ):
                self._keep(test.left, frame, lambda a: _none(a) is not yes)
            case ast.Name() | ast.Attribute():
                self._keep(test, frame, lambda a: not isinstance(a, Const) or bool(a.value) == yes)

    def _keep(self, node: ast.expr, frame: Frame, keep: Callable[[object], bool]) -> None:
        at = self.location(node, frame)
        found = self.heap.read(at) if at is not None else None
        if at is None or not found or len(found) < 2:
            return
        kept = tuple(a for a in found if keep(a))
        if kept and kept != found:
            self.heap.write(at, kept)

    def location(self, node: ast.expr, frame: Frame) -> Location | None:
        """Where a name or an attribute of one object is stored."""
        if isinstance(node, ast.Name):
            return self.place(node.id, frame)
        if isinstance(node, ast.Attribute):
            outer = self.location(node.value, frame)
            found = self.heap.read(outer) if outer is not None else None
            if found and len(found) == 1 and isinstance(found[0], Ref):
                return (found[0].object, node.attr)
        return None

    def _match(self, node: ast.Match, frame: Frame) -> bool:
        subject = self.evaluate(node.subject, frame)
        parted = self.parting(subject, node.subject)

        def arm(case: ast.match_case) -> Callable[[], bool]:
            def run() -> bool:
                for inner in ast.walk(case.pattern):
                    for name in (getattr(inner, "name", None), getattr(inner, "rest", None)):
                        if isinstance(name, str):
                            self.bind(name, subject, frame)
                if case.guard is not None:
                    self.evaluate(case.guard, frame)
                return self.block(case.body, frame)

            return run

        arms = [arm(c) for c in node.cases]
        last = node.cases[-1]
        whole = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        if not (whole and last.guard is None):
            arms.append(lambda: True)
        return self.parted_arms(arms, parted, frame)

    # ------------------------------------------------------------ loops

    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
        iterable = self.evaluate(node.iter, frame)
        if not iterable:
            return False
        known = self.known_elements(iterable, UNROLLED)
        generator = self._generator(iterable)
        parted = self._trips(iterable, node)
        self.event("loop", node, frame, iterable=iterable)
        self.library.begun(self, iterable, node.iter, frame)
        if known is not None:
            return self._loop(node, frame, known=known)
        if generator is not None:
            return self._loop_over(node, generator, frame)

        def take() -> bool:
            element = self.elements(iterable, node.iter, frame)
            self.assign(node.target, element or SETTING, node, frame)
            return True

        return self._loop(node, frame, take=take, parted=parted)

    def _generator(self, iterable: Value) -> object | None:
        """The generator of the program that a loop goes through."""
        if len(iterable) == 1:
            made = self.object(iterable[0])
            if made is not None and made.kind == "generator":
                return made
        return None

    def _trips(self, iterable: Value, node: ast.For | ast.AsyncFor) -> Parting | None:
        """Why the ranks may go through different numbers of turns."""
        for atom in iterable:
            made = self.object(atom)
            if made is not None:
                count = self.heap.read((made.number, LENGTH))
                parted = self.parting(count, node) if count else None
            elif isinstance(atom, Data) and atom.placement.kind is Kind.ROWS:
                ragged = atom.placement.ragged
                parted = Parting(atom.origin or Origin(node, "rows"), True) if ragged else None
            else:
                parted = self.parting((atom,), node)
            if parted is not None:
                return parted
        return None

    def _while(self, node: ast.While, frame: Frame) -> bool:
        return self._loop(node, frame)

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, *,
        known: list[Value] | None = None, take: Callable[[], bool] | None = None,
        parted: Parting | None = None,
    ) -> bool:  # fmt: skip
        """Turns of a loop until nothing changes; literal sequences item by item."""
        outer = (frame.breaks, frame.continues)
        frame.breaks = []
        slot = len(self.control)
        self.control += [parted, None]
        self.heap.mark()
        level = self.heap.level
        frame.loops.append((level, level, slot))
        alive, endless = True, False
        try:
            turns = known if known is not None else [NOTHING] * (TURNS + 1)
            for turn, element in enumerate(turns):
                if known is None:
                    frame.breaks = []
                frame.continues = []
                if isinstance(node, ast.While):
                    test = self.evaluate(node.test, frame)
                    truth = self.truth(test)
                    if truth is False or not test:
                        alive = bool(test)
                        break
                    endless = truth is True
                    doubt = self.parting(test, node.test)
                    if doubt is not None:
                        self._mark(slot, doubt)
                    self.event("branch", node, frame, test=test)
                changed = self._turn(node, frame, turn, element, known, take)
                if changed is None:
                    alive = known is None  # no turn ends; without any the loop is passed by
                    break
                if known is None and not changed:
                    break
        finally:
            frame.loops.pop()
            reason = self.control[slot]
            del self.control[slot:]
            breaks, (frame.breaks, frame.continues) = frame.breaks, outer
            delta = self.heap.rollback()
        outcomes: list[Delta] = []
        if alive and not endless:
            outcomes += self._otherwise(node, delta, frame)
        outcomes += breaks
        self.heap.apply(outcomes, self.merging(reason))
        return bool(outcomes)

    def _otherwise(
        self, node: ast.For | ast.AsyncFor | ast.While, delta: Delta, frame: Frame
    ) -> list[Delta]:
        """What the loop leaves where it ends by itself, after its ``else``."""
        if not node.orelse:
            return [delta]
        self.heap.mark()
        self.heap.apply([delta])
        alive = self.block(node.orelse, frame)
        after = self.heap.rollback()
        return [after] if alive else []

    def _turn(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, turn: int, element: Value,
        known: list[Value] | None, take: Callable[[], bool] | None,
    ) -> bool | None:  # fmt: skip
        """One turn; whether it changed anything, None where none comes to its end."""
        level, _, slot = frame.loops[-1]
        outside = frame.context
        if known is not None:
            frame.context = self.turn_context(node, turn, frame)
        try:
            return self._turn_in(node, frame, turn, element, known, take, level, slot)
        finally:
            frame.context = outside

    def _turn_in(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, turn: int, element: Value,
        known: list[Value] | None, take: Callable[[], bool] | None, level: int, slot: int,
    ) -> bool | None:  # fmt: skip
        self.heap.mark()
        frame.loops[-1] = (level, self.heap.level, slot)
        if isinstance(node, ast.While):
            self.refine(node.test, True, frame)
        elif known is not None:
            self.assign(node.target, element, node, frame)
        elif take is not None:
            take()
        ends = self.block(node.body, frame)
        delta = self.heap.rollback()
        reason = self.control[slot + 1]
        self.control[slot + 1] = None
        outcomes = [*([delta] if ends else []), *frame.continues]
        if not outcomes:
            return None
        if known is not None:
            return self.heap.apply(outcomes, self.merging(reason))
        if reason is not None:
            self.heap.mark()
            self.heap.apply(outcomes, self.merging(reason))
            outcomes = [self.heap.rollback()]
        parted = self.control[slot]
        widen = _counted if turn < TURNS - 1 else lambda v: _widened(v, node)
        return self.heap.apply([{}, *outcomes], self.merging(parted), widen)

    def _loop_over(self, node: ast.For | ast.AsyncFor, generator: object, frame: Frame) -> bool:
        """A loop over a generator of the program: its body runs where the generator yields."""
        outer = (frame.breaks, frame.continues)
        frame.breaks, frame.continues = [], []
        slot = len(self.control)
        self.control += [None, None]
        self.heap.mark()
        level = self.heap.level
        frame.loops.append((level, level, slot))

        def consume(given: Value) -> bool:
            self.heap.mark()
            frame.loops[-1] = (level, self.heap.level, slot)
            frame.continues = []
            self.assign(node.target, given or SETTING, node, frame)
            ends = self.block(node.body, frame)
            delta = self.heap.rollback()
            outcomes = [*([delta] if ends else []), *frame.continues]
            self.heap.apply(outcomes, self.merging(self.control[slot + 1]))
            return bool(outcomes)

        try:
            self.generate(generator, consume, node, frame)  # type: ignore[arg-type]
        finally:
            frame.loops.pop()
            reason = self.control[slot]
            del self.control[slot:]
            breaks, (frame.breaks, frame.continues) = frame.breaks, outer
            delta = self.heap.rollback()
        outcomes = [*self._otherwise(node, delta, frame), *breaks]
        self.heap.apply(outcomes, self.merging(reason))
        return bool(outcomes)

    def _break(self, node: ast.Break, frame: Frame) -> bool:
        if frame.loops:
            frame.breaks.append(self.heap.since(frame.loops[-1][0] - 1))
        return False

    def _continue(self, node: ast.Continue, frame: Frame) -> bool:
        if frame.loops:
            frame.continues.append(self.heap.since(frame.loops[-1][1] - 1))
        return False

    # ------------------------------------------------------------ exceptions and contexts

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> bool:
        self.heap.watch()
        self.heap.mark()
        alive = self.block(node.body, frame)
        if alive and node.orelse:
            alive = self.block(node.orelse, frame)
        delta = self.heap.rollback()
        written = self.heap.watched()
        outcomes = [delta] if alive else []
        for handler in node.handlers:
            after = self._handler(handler, written, frame)
            if after is not None:
                outcomes.append(after)
        if outcomes:
            self.heap.apply(outcomes)
        if node.finalbody:
            ends = self.block(node.finalbody, frame)
            return bool(outcomes) and ends
        return bool(outcomes)

    def _handler(
        self, handler: ast.ExceptHandler, written: dict[Location, Value], frame: Frame
    ) -> Delta | None:
        """What a handler leaves; it may start after any write of the ``try``. None: it does not end."""
        self.heap.mark()
        for at, seen in written.items():
            held = self.heap.read(at)
            self.heap.write(at, join(held if held is not None else value(UNBOUND), seen))
        kind = self.evaluate(handler.type, frame) if handler.type is not None else NOTHING
        if handler.name:
            self.bind(handler.name, SETTING, frame)
        self.event("handler", handler, frame, caught=kind)
        ends = self.block(handler.body, frame)
        delta = self.heap.rollback()
        return delta if ends else None

    def _with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
        return self._context(node, 0, frame)

    def _context(self, node: ast.With | ast.AsyncWith, index: int, frame: Frame) -> bool:
        """The items of a ``with`` from one on, and its body."""
        if index == len(node.items):
            return self.block(node.body, frame)
        item = node.items[index]
        manager = self.evaluate(item.context_expr, frame)
        if not manager:
            return False
        generator = self._generator(manager)
        if generator is not None:
            return self._inside(node, index, generator, frame)
        before = self._modes()
        exits = (len(frame.returns), len(frame.breaks), len(frame.continues))
        found = [self._enter(a, item.context_expr, frame) for a in manager]
        if item.optional_vars is not None:
            self.assign(item.optional_vars, join(*found) or SETTING, node, frame)
        alive = self._context(node, index + 1, frame)
        for atom in manager:
            method = self._method(atom, "__exit__")
            if method is not None:
                given = Arguments([NONE, NONE, NONE])
                self.call(method, given, item.context_expr, frame)
            else:
                self.library.left(self, atom, item.context_expr, frame)
        self._restore(before, exits, frame)
        return alive

    def _method(self, atom: object, name: str) -> Value | None:
        made = self.object(atom) if isinstance(atom, Ref) else None
        method = self.method_of(made, name) if made is not None else None
        return value(method) if method is not None else None

    def _enter(self, atom: object, node: ast.AST, frame: Frame) -> Value:
        method = self._method(atom, "__enter__")
        if method is not None:
            return self.call(method, Arguments(), node, frame)
        given = self.library.entered(self, atom, node, frame)  # type: ignore[arg-type]
        return given if given is not None else (atom,)  # type: ignore[return-value]

    def _inside(
        self, node: ast.With | ast.AsyncWith, index: int, generator: object, frame: Frame
    ) -> bool:
        """A context manager written as a generator: the body runs where it yields."""
        ends: list[bool] = []

        def consume(given: Value) -> bool:
            target = node.items[index].optional_vars
            if target is not None:
                self.assign(target, given or SETTING, node, frame)
            ends.append(self._context(node, index + 1, frame))
            return True

        self.generate(generator, consume, node.items[index].context_expr, frame)  # type: ignore[arg-type]
        return any(ends) or not ends

    def _modes(self) -> dict[Location, Value | None]:
        """The modes of the process that ``with`` may change."""
        names = self.heap.fields.get(PROCESS, {})
        return {(PROCESS, n): self.heap.read((PROCESS, n)) for n in names if isinstance(n, str)}

    def _restore(
        self, before: dict[Location, Value | None], exits: tuple[int, int, int], frame: Frame
    ) -> None:
        """What leaves a ``with`` by return, break or continue leaves its modes as well."""
        deltas = [d for _, d in frame.returns[exits[0] :]]
        deltas += [*frame.breaks[exits[1] :], *frame.continues[exits[2] :]]
        for delta in deltas:
            for at in list(delta):
                if at[0] == PROCESS and isinstance(at[1], str) and at[1].startswith("mode "):
                    delta[at] = before.get(at)

    # ------------------------------------------------------------ imports: defined by modules

    def _import(self, node: ast.Import, frame: Frame) -> bool:
        self.import_modules(node, frame)
        return True

    def _import_from(self, node: ast.ImportFrom, frame: Frame) -> bool:
        self.import_names(node, frame)
        return True

    def import_modules(self, node: ast.Import, frame: Frame) -> None:
        """``import a.b as c``."""
        raise NotImplementedError

    def import_names(self, node: ast.ImportFrom, frame: Frame) -> None:
        """``from a.b import c``."""
        raise NotImplementedError


def _none(atom: object) -> bool | None:
    """Whether an atom is None; None itself where that is not known."""
    if isinstance(atom, Const):
        return atom.value is None
    if isinstance(atom, Setting | Unknown | Method) or atom == UNBOUND:
        return None
    return False


def _counted(v: Value) -> Value:
    """Numbers that change from turn to turn are not kept one by one."""
    numbers = [a for a in v if isinstance(a, Const) and a.type in ("int", "float")]
    if len(numbers) < 2:
        return v
    return (*(a for a in v if a not in numbers), *([] if _has_setting(v) else SETTING))


def _has_setting(v: Value) -> bool:
    return any(isinstance(a, Setting) for a in v)


def _widened(v: Value, node: ast.AST) -> Value:
    """What does not settle is not understood; objects stay what they may be."""
    kept = tuple(a for a in _counted(v) if not isinstance(a, Data | Items | Unknown))
    if len(kept) == len(v):
        return kept
    return (*kept, *unknown("changes from turn to turn", node))


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
    ast.If: StatementParts._if,
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
