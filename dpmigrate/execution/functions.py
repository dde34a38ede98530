"""Functions, classes and calls."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.attributes import ClassParts, FunctionParts
from dpmigrate.execution.expressions import ExpressionParts
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.heap import ELEMENTS, Delta, Object
from dpmigrate.execution.machine import DEPTH, Frame
from dpmigrate.execution.scopes import Function
from dpmigrate.execution.trace import Call, Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Bound,
    Const,
    Data,
    Differs,
    Foreign,
    Method,
    Ref,
    Setting,
    Super,
    Unbound,
    Unknown,
    Value,
    items,
    join,
    unknown,
    value,
)

#: contexts of one function that are kept apart
CONTEXTS = 40
#: summaries of one function in one context with the same arguments
SUMMARIES = 4
#: executions of one function, after which a summary of all stands for the rest
EXECUTIONS = 120
_FLAGS = {
    "builtins.property": "property",
    "functools.cached_property": "property",
    "abc.abstractproperty": "property",
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "contextlib.contextmanager": "contextmanager",
    "contextlib.asynccontextmanager": "contextmanager",
    "dataclasses.dataclass": "dataclass",
}


@dataclass(slots=True)
class Summary:
    """What a call did: what it read, what it wrote, and its result."""

    reads: Delta
    writes: Delta
    result: Value


@dataclass(slots=True)
class Suspended:
    """A generator that has not run yet."""

    function: Object
    receiver: Atom | None
    arguments: Arguments


class CallParts(ExpressionParts):
    """Definitions and calls."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._summaries: dict[object, list[Summary]] = {}
        self._contexts: dict[ast.AST, set[object]] = {}
        self._executions: dict[int, int] = {}
        self._last: dict[int, Summary] = {}
        self._stack: list[ast.AST] = []
        self._assumed: dict[int, Value] = {}
        self._recursive: set[int] = set()

    # ------------------------------------------------------------ definitions

    def function(self, node: Function, frame: Frame) -> Value:
        name = getattr(node, "name", "<lambda>")
        made = self.heap.new("function", name, node, frame.context, key=frame.number)
        made.many = False
        cls = frame.number if frame.in_class else frame.cls
        made.extra = FunctionParts(
            node, tuple(self.scopes(frame)), frame.module, self.names_of(node), cls, frame.receiver
        )
        args = node.args
        positional = [*args.posonlyargs, *args.args]
        defaults = zip(reversed(positional), reversed(args.defaults), strict=False)
        for parameter, default in defaults:
            self.heap.write((made.number, f"={parameter.arg}"), self.evaluate(default, frame))
        for parameter, default_or_none in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            if default_or_none is not None:
                held = self.evaluate(default_or_none, frame)
                self.heap.write((made.number, f"={parameter.arg}"), held)
        return value(Ref(made.number))

    def decorated(self, made: Value, decorators: list[ast.expr], name: str, frame: Frame) -> Value:
        """A function or class behind its decorators."""
        for decorator in reversed(decorators):
            made = self._decorated(made, decorator, name, frame) or made
        return made

    def _decorated(self, made: Value, decorator: ast.expr, name: str, frame: Frame) -> Value:
        callee = self.evaluate(decorator, frame)
        found: list[Value] = []
        for atom in callee:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            word = self._flag(atom) or self._flag_of(called, frame)
            if word is not None:
                for o in self.objects(made):
                    o.marks.add(word)
                found.append(made)
            elif isinstance(atom, Method) and atom.name == "setter":
                setters = self.objects(made)
                for o in setters:
                    self.heap.write((frame.number, f"{name}.setter"), value(Ref(o.number)))
                found.append(value(atom.receiver))
            else:
                result = self.call(value(atom), Arguments([made]), decorator, frame)
                found.append(result if self._callable(result) else made)
        return join(*found)

    @staticmethod
    def _flag(atom: Atom) -> str | None:
        return _FLAGS.get(atom.name) if isinstance(atom, Foreign) else None

    def _flag_of(self, called: ast.expr, frame: Frame) -> str | None:
        """The flag of ``@dataclass(frozen=True)``."""
        if isinstance(called, ast.Name | ast.Attribute):
            return next((w for a in self.evaluate(called, frame) if (w := self._flag(a))), None)
        return None

    def _callable(self, v: Value) -> bool:
        return any(
            isinstance(a, Bound) or ((o := self.object(a)) is not None and o.kind != "opaque")
            for a in v
        )

    def define_class(self, node: ast.ClassDef, frame: Frame) -> Value:
        """A class object; its body is executed."""
        made = self.heap.new("class", node.name, node, frame.context, key=frame.number)
        made.many = False
        orders: list[list[int]] = []
        foreign: list[str] = []
        kinds: set[str] = set()
        unclear = False
        for base in node.bases:
            for atom in self.evaluate(base, frame):
                cls = self.object(atom)
                if cls is not None and cls.kind == "class":
                    parts: ClassParts = cls.extra
                    orders.append(parts.order)
                    foreign += parts.foreign
                    kinds |= parts.kinds
                    unclear = unclear or parts.unknown
                elif isinstance(atom, Foreign):
                    foreign.append(atom.name)
                    kinds |= self.library.kinds(atom.name)
                else:
                    unclear = True
        for keyword in node.keywords:
            self.evaluate(keyword.value, frame)
        order = [made.number, *_merged(orders)]
        made.extra = ClassParts(node, order, tuple(foreign), frozenset(kinds), unclear)
        inner = Frame(
            made.number, self.names_of(node), tuple(self.scopes(frame)), frame.module,
            frame.context, level=frame.level, slot=frame.slot, cls=made.number, in_class=True,
        )  # fmt: skip
        self.block(node.body, inner)
        made.extra.fields = [
            s.target.id
            for s in node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        return self.decorated(value(Ref(made.number)), node.decorator_list, node.name, frame)

    # ------------------------------------------------------------ calls

    def call(self, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        found: list[Value] = []
        targets = [a for a in callee if not isinstance(a, Unbound | Differs)]
        if len(targets) > 1:  # a call of plain data raises: that path ends here
            able = any(not isinstance(a, Const | Setting) for a in targets)
            targets = [a for a in targets if not (able and isinstance(a, Const | Setting))]
        for atom in targets:
            if len(targets) == 1:
                found.append(self._call_atom(atom, arguments, node, frame))
                break

            def arm(atom: Atom = atom) -> bool:
                found.append(self._call_atom(atom, arguments, node, frame))
                return bool(found[-1])

            found_before = len(found)
            self.heap.mark()
            alive = arm()
            delta = self.heap.rollback()
            self.heap.apply([delta, {}] if alive else [{}])
            assert len(found) > found_before
        return join(*found)

    def _call_atom(self, atom: Atom, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        match atom:
            case Ref():
                return self._call_object(self.heap.objects[atom.object], arguments, node, frame)
            case Bound():
                function = self.heap.objects[atom.function]
                return self.invoke(function, atom.receiver, arguments, node, frame)
            case Foreign():
                given = self.library.call(self, atom.name, arguments, node, frame)
                self.trace.foreign.setdefault(atom.name, given is not None)
                if given is not None:
                    return given
                return self.unknown_call(atom.name, arguments, node, frame)
            case Method():
                return self._call_method(atom, arguments, node, frame)
            case Unknown():
                self._callbacks(arguments, node, frame)
                self._havoc(arguments, unknown(atom.word, atom.node))
                return value(atom)
            case Const(type="NoneType"):
                return self.miss("None is called", node, frame)
            case Data() | Setting() | Const():
                given = self.library.called(self, atom, arguments, node, frame)
                if given is not None:
                    return given
                return self.opaque_result([value(atom), *arguments.all()], "call", node, frame)
        return self.unknown_call(type(atom).__name__, arguments, node, frame)

    def _call_object(
        self, made: Object, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value:
        if made.kind == "function":
            return self.invoke(made, None, arguments, node, frame)
        if made.kind == "class":
            return self.instantiate(made, arguments, node, frame)
        if made.kind == "partial":
            return self._call_partial(made, arguments, node, frame)
        cls = self.class_of(made)
        if cls is None or cls.extra.kinds:
            given = self.library.called(self, Ref(made.number), arguments, node, frame)
            if given is not None:
                return given
        method = self.method_of(made, "__call__")
        if method is not None:
            return self.call(value(method), arguments, node, frame)
        return self.unknown_call(made.name, arguments, node, frame, receiver=made)

    def _call_partial(
        self, made: Object, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value:
        first: Arguments = made.extra
        keywords = {**first.keywords, **arguments.keywords}
        both = Arguments(
            [*first.positional, *arguments.positional], keywords,
            join(first.star, arguments.star), join(first.stars, arguments.stars),
        )  # fmt: skip
        return self.call(self.heap.read((made.number, "function")) or NOTHING, both, node, frame)

    def _call_method(
        self, atom: Method, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value:
        made = self.object(atom.receiver)
        if made is not None:
            own = self.container_method(made, atom.name, arguments, node, frame)
            if own is not None:
                return own
            if made.kind == "instance" and atom.name == "__class__":
                return self.instantiate(self.heap.objects[made.extra], arguments, node, frame)
        given = self.library.method(self, atom.receiver, atom.name, arguments, node, frame)
        word = f".{atom.name}"
        self.trace.foreign.setdefault(word, given is not None)
        if given is not None:
            return given
        if isinstance(atom.receiver, Super):
            return NONE if atom.name == "__init__" else SETTING
        if isinstance(atom.receiver, Const | Setting) or made is None:
            operands = [value(atom.receiver), *arguments.all()]
            return self.opaque_result(operands, word, node, frame)
        return self.unknown_call(word, arguments, node, frame, receiver=made)

    def unknown_call(
        self, name: str, arguments: Arguments, node: ast.AST, frame: Frame,
        receiver: Object | None = None,
    ) -> Value:  # fmt: skip
        """A call of code that nobody knows: it may call what it is given and change what it reaches."""
        self._callbacks(arguments, node, frame)
        operands = arguments.all()
        if receiver is not None:
            operands.append(value(Ref(receiver.number)))
        drawn = any(self._draws(v) for v in operands)
        if drawn or any(self.depends(v).kind not in placements.EQUAL for v in operands):
            result = self.miss(f"no table has {name}", node, frame)
            self._havoc(arguments, result)
            if receiver is not None and receiver.kind not in ("class", "function", "pymodule"):
                self.heap.widen((receiver.number, ELEMENTS), result)
            return result
        self.trace.miss(f"no table has {name}", node, frame.context)
        made = self.heap.new("opaque", name, node, frame.context)
        return value(Ref(made.number))

    def _draws(self, v: Value) -> bool:
        """Whether unknown code that is given it may draw batches: a loader, or an iterator over one."""
        found = self.objects(v)
        found += [o for made in found if made.kind in ("iterator", "bar", "list", "dict")
                  for o in self.objects(self.contents(made))]  # fmt: skip
        return any(self.is_a(Ref(o.number), "loader") for o in found)

    def _callbacks(self, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
        """Functions that unknown code is given may be called, with what nobody knows."""
        for v in arguments.all():
            for atom in v:
                made = self.object(atom)
                if isinstance(atom, Bound) or (made is not None and made.kind == "function"):
                    given = Arguments(star=unknown("given by code that is not known", node))
                    self.heap.mark()
                    self.call(value(atom), given, node, frame)
                    self.heap.apply([self.heap.rollback(), {}])

    def _havoc(self, arguments: Arguments, result: Value) -> None:
        """Containers that unknown code is given may hold anything afterwards."""
        for v in arguments.all():
            for made in self.objects(v):
                if made.kind in ("list", "dict", "set"):
                    if made.kind != "dict":
                        self.collapse(made)
                    self.heap.widen((made.number, ELEMENTS), result)

    # ------------------------------------------------------------ instances

    def instantiate(self, cls: Object, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        """A call of a class of the program."""
        parts: ClassParts = cls.extra
        if "enum" in parts.kinds:
            return SETTING
        made = self.heap.new(
            "instance", cls.name, node, frame.context, extra=cls.number, key=cls.number
        )
        self.event("made", node, frame, object=value(Ref(made.number)))
        init = self.method_of(made, "__init__")
        if init is not None:
            function = self.heap.objects[init.function]
            if not self.invoke(function, Ref(made.number), arguments, node, frame):
                return NOTHING
        elif fields := [
            f for n in reversed(parts.order) for f in self.heap.objects[n].extra.fields
        ]:
            for i, name in enumerate(dict.fromkeys(fields)):
                given = arguments.get(i, name)
                if given is not None:
                    self.heap.write((made.number, name), given)
            post = self.method_of(made, "__post_init__")
            if post is not None:
                self.call(value(post), Arguments(), node, frame)
        if parts.kinds and init is None:
            self.library.constructed(self, made, parts.kinds, arguments, node, frame)
        return value(Ref(made.number))

    # ------------------------------------------------------------ running a function

    def context(self, function: Object, receiver: Atom | None, node: ast.AST, frame: Frame) -> int:
        """The number of the call chain that ends here; beyond a bound, one for all of a function."""
        key: object = ("call", frame.context, id(node), function.number, receiver)
        assert function.node is not None
        seen = self._contexts.setdefault(function.node, set())
        if key not in seen and len(seen) >= CONTEXTS:
            key = ("call", function.number, receiver if len(seen) < 2 * CONTEXTS else None)
        seen.add(key)
        number = self.heap.number(key)
        self.trace.calls.setdefault(number, Call(frame.context, node, function.name))
        return number

    def invoke(
        self, function: Object, receiver: Atom | None, arguments: Arguments, node: ast.AST,
        frame: Frame,
    ) -> Value:  # fmt: skip
        """Call a function of the program."""
        parts: FunctionParts = function.extra
        if "staticmethod" in function.marks:
            receiver = None
        if parts.names.generator:
            made = self.heap.new(
                "generator", function.name, node, frame.context, key=function.number
            )
            made.extra = Suspended(function, receiver, arguments)
            return value(Ref(made.number))
        depth = sum(1 for n in self._stack if n is parts.node)
        if depth >= 2 or len(self._stack) > DEPTH:
            self._recursive.add(function.number)
            return self._assumed.get(function.number, NOTHING)
        context = self.context(function, receiver, node, frame)
        given = arguments if receiver is None else arguments.after(value(receiver))
        key = (function.number, context, given.key(), self.parted is None)
        summary = self._known(key)
        if summary is None:
            summary = self._summarised(function, receiver, given, node, context)
            held = self._summaries.setdefault(key, [])
            if len(held) < SUMMARIES:
                held.append(summary)
        return summary.result

    def _known(self, key: object) -> Summary | None:
        """A summary that holds here, carried out."""
        for summary in self._summaries.get(key, ()):
            if self.heap.unchanged(summary.reads):
                self.heap.note(summary.reads)
                for at, new in summary.writes.items():
                    self.heap.write(at, new)
                return summary
        return None

    def _summarised(
        self, function: Object, receiver: Atom | None, given: Arguments, node: ast.AST, context: int
    ) -> Summary:
        count = self._executions[function.number] = self._executions.get(function.number, 0) + 1
        last = self._last.get(function.number)
        if count > EXECUTIONS and last is not None:
            for at, new in last.writes.items():
                if new is not None:
                    self.heap.widen(at, new)
            return last
        for _ in range(4):
            summary = self._executed(function, receiver, given, node, context)
            if function.number not in self._recursive or self._stack.count(function.extra.node):
                break
            self._recursive.discard(function.number)
            assumed = self._assumed.get(function.number, NOTHING)
            if join(assumed, summary.result) == assumed:
                break
            self._assumed[function.number] = join(assumed, summary.result)
        if last is not None:
            result = join(last.result, summary.result)
            self._last[function.number] = Summary({}, {**last.writes, **summary.writes}, result)
        else:
            self._last[function.number] = summary
        return summary

    def _executed(
        self, function: Object, receiver: Atom | None, given: Arguments, node: ast.AST, context: int
    ) -> Summary:
        parts: FunctionParts = function.extra
        heap = self.heap
        heap.reading()
        inner = self.frame_of(function, receiver, context)
        results: list[Value] = []
        heap.mark()
        inner.level = heap.level
        self._begin(inner, parts)
        try:
            self.bind_arguments(function, given, inner)
            if isinstance(parts.node, ast.Lambda):
                results.append(self.evaluate(parts.node.body, inner))
                alive = bool(results[-1])
            else:
                alive = self.block(parts.node.body, inner)
                if alive:
                    results.append(NONE)
        finally:
            parted = self._end()
            delta = heap.rollback()
        result = join(*results, *[v for v, _ in inner.returns])
        if parted is not None and len({*results, *(v for v, _ in inner.returns)}) > 1:
            result = arithmetic.differing(result, parted.origin)
        outcomes = [*([delta] if alive else []), *(d for _, d in inner.returns)]
        keep = parts.names.closures
        outcomes = [
            {at: v for at, v in d.items() if keep or at[0] != inner.number} for d in outcomes
        ]
        heap.apply(outcomes, self.merging(parted))
        writes = {at: heap.read(at) for d in outcomes for at in d}
        reads = heap.read_since(inner.number)
        return Summary(reads, writes, result)

    def frame_of(self, function: Object, receiver: Atom | None, context: int) -> Frame:
        """The scope of a call."""
        parts: FunctionParts = function.extra
        number = self.heap.number(("frame", context, function.number))
        return Frame(
            number, parts.names, parts.outer, parts.module, context, function=function,
            cls=parts.cls, receiver=receiver if receiver is not None else parts.receiver,
        )  # fmt: skip

    def _begin(self, inner: Frame, parts: FunctionParts) -> None:
        self._stack.append(parts.node)
        self.trace.reached.add(parts.node)
        inner.slot = len(self.control)
        self.control.append(None)
        if parts.names.closures:
            for name in list(self.heap.fields.get(inner.number, ())):
                self.heap.write((inner.number, name), None)

    def _end(self) -> Parting | None:
        self._stack.pop()
        return self.control.pop()

    def merging(self, parted: Parting | None) -> Callable[[Value], Value] | None:
        """What becomes of values on which outcomes differ, where ranks may have different outcomes."""
        if parted is None:
            return None
        return lambda v: arithmetic.differing(v, parted.origin)

    def bind_arguments(self, function: Object, given: Arguments, inner: Frame) -> None:
        """Give the parameters their values."""
        parts: FunctionParts = function.extra
        args = parts.node.args
        keywords = dict(given.keywords)
        loose = join(given.star, given.stars)
        positional = [*args.posonlyargs, *args.args]
        for i, parameter in enumerate(positional):
            name = parameter.arg
            if i < len(given.positional):
                new = given.positional[i]
            elif name in keywords:
                new = keywords.pop(name)
            else:
                default = self.heap.read((function.number, f"={name}"))
                new = join(default or NOTHING, loose) or SETTING
            self.heap.write((inner.number, name), new)
        for parameter in args.kwonlyargs:
            name = parameter.arg
            default = self.heap.read((function.number, f"={name}"))
            new = keywords.pop(name, NOTHING) or join(default or NOTHING, given.stars) or SETTING
            self.heap.write((inner.number, name), new)
        if args.vararg is not None:
            rest = given.positional[len(positional) :]
            held = items(rest)
            if given.star:
                held = self.listed([given.star, *rest], args.vararg, inner, exact=False)
            self.heap.write((inner.number, args.vararg.arg), held)
        if args.kwarg is not None:
            made = self.heap.new("dict", "keywords", args.kwarg, inner.context)
            for name, new in keywords.items():
                self.heap.write((made.number, Const("str", name)), new)
            if given.stars:
                self.heap.widen((made.number, ELEMENTS), given.stars)
            self.heap.write((inner.number, args.kwarg.arg), value(Ref(made.number)))

    # ------------------------------------------------------------ generators

    def yields(self, given: Value, node: ast.AST, frame: Frame) -> bool:
        if frame.consumer is not None:
            return frame.consumer(given)
        frame.yields.append(given)
        return True

    def generate(
        self, made: Object, consumer: Callable[[Value], bool], node: ast.AST, frame: Frame
    ) -> None:
        """Run a generator; each value that it yields goes to the consumer, which may stop it."""
        suspended: Suspended = made.extra
        function = suspended.function
        parts: FunctionParts = function.extra
        if parts.node in self._stack and self._stack.count(parts.node) >= 2:
            return
        context = self.context(function, suspended.receiver, node, frame)
        given = suspended.arguments
        if suspended.receiver is not None:
            given = given.after(value(suspended.receiver))
        inner = self.frame_of(function, suspended.receiver, context)
        inner.consumer = consumer
        self.heap.mark()
        inner.level = self.heap.level
        self._begin(inner, parts)
        try:
            self.bind_arguments(function, given, inner)
            alive = (
                self.block(parts.node.body, inner)
                if not isinstance(parts.node, ast.Lambda)
                else True
            )
        finally:
            parted = self._end()
            delta = self.heap.rollback()
        outcomes = [*([delta] if alive else []), *(d for _, d in inner.returns)]
        self.heap.apply(outcomes or [delta], self.merging(parted))

    def yielded(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        found: list[Value] = []

        def take(v: Value) -> bool:
            found.append(v)
            return True

        self.generate(made, take, node, frame)
        return join(*found)


def _merged(orders: list[list[int]]) -> list[int]:
    """C3 linearization of the bases (https://docs.python.org/3/howto/mro.html); best effort where it fails."""
    todo = [list(o) for o in orders]
    found: list[int] = []
    while any(todo):
        todo = [o for o in todo if o]
        heads = [o[0] for o in todo if not any(o[0] in other[1:] for other in todo)]
        head = heads[0] if heads else todo[0][0]
        found.append(head)
        todo = [[n for n in o if n != head] for o in todo]
    return found
