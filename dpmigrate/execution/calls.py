"""Calls: of functions, classes, methods and of code that nobody knows."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable

from dpmigrate.execution import divergence, identity, placements
from dpmigrate.execution.arguments import Arguments, fits
from dpmigrate.execution.classes import ClassParts
from dpmigrate.execution.instances import InstanceParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, ENDS, OF_A_LIBRARY, PLAIN, Object, not_known
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
    Items,
    Method,
    Ref,
    Setting,
    Super,
    Unbound,
    Unknown,
    Value,
    data,
    unknown,
    value,
)

#: functions of Python that ask what they are given for its kind or its name, and never call it
_ASKS = frozenset(
    f"builtins.{name}" for name in ("callable", "isinstance", "issubclass", "id", "hash", "type", "hasattr")
)


def _lacking(kind: str, name: str) -> str:
    """What is told of a method that Python's own containers do not have; '' where they have it, or
    it is one of something else.
    """
    lacks = kind in PLAIN and name.isidentifier() and not any(hasattr(t, name) for t in PLAIN[kind])
    return f"a {kind} has no {name}(), {ENDS}" if lacks else ""


class CallParts(InstanceParts):
    """What a call does, by what is called."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: modules of libraries that the program imports
        self.imported: set[str] = set()

    def call(self, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        found: list[Value] = []
        arms: list[Callable[[], bool]] = []
        parted = self.parting(tuple(a for a in callee if isinstance(a, Differs)), node)
        targets: list[Atom] = [a for a in callee if not isinstance(a, Unbound | Differs)]
        if len(targets) > 1:  # a call of plain data raises: that path ends here
            targets = [a for a in targets if self._may_be_called(a)] or targets
            targets = [a for a in targets if self._takes(a, arguments)] or targets
        for atom in targets:
            if len(targets) == 1:
                found.append(self._call_atom(atom, arguments, node, frame))
                break

            def arm(atom: Atom = atom) -> bool:
                found.append(self._call_atom(atom, arguments, node, frame))
                return bool(found[-1])

            arms.append(arm)
        if arms:
            self.branch(arms, parted, [self._whose(atom) for atom in targets])
        out = join(*found)
        return divergence.differing(out, parted) if parted is not None and out else out

    def _whose(self, atom: Atom) -> int:
        """The object that exists where an atom is what is called: itself, or that of the method."""
        while isinstance(atom, Bound | Method):
            atom = atom.receiver
        return atom.object if isinstance(atom, Ref) else 0

    def _may_be_called(self, atom: Atom) -> bool:
        """Whether an atom may be called: plain data, containers and modules cannot, and what a
        constant does not have.
        """
        if isinstance(atom, Method) and isinstance(atom.receiver, Const):
            return hasattr(atom.receiver.value, atom.name)
        if isinstance(atom, Method) and isinstance(atom.receiver, Data):
            return "." not in atom.name  # an attribute that data do not have
        if isinstance(atom, Foreign):
            return atom.name not in self.imported and not self.library.module(atom.name)
        made = self.object(atom)
        if made is not None:
            return made.kind not in ("pymodule", "list", "dict", "set")
        return not isinstance(atom, Const | Setting)

    def _takes(self, atom: Atom, arguments: Arguments) -> bool:
        """Whether what is called has parameters for the arguments, as far as they are seen."""
        made = self.object(atom)
        if made is not None and not self.library.takes(self, made, arguments):
            return False
        if made is not None and (handed := self.library.handed_to(self, made)):
            return any(self._takes(a, arguments) for a in handed if not isinstance(a, Unbound | Differs))
        if made is not None and made.kind == "class":
            atom = self._constructor(made) or atom
        if made is not None and made.kind == "instance":
            atom = self.library.runs(self, made) or self.method_of(made, "__call__") or atom
        function = self.heap.objects[atom.function] if isinstance(atom, Bound) else made
        if function is None or function.kind != "function" or "staticmethod" in function.marks:
            return True
        node = function.extra.node
        if getattr(node, "decorator_list", ()):
            return True
        return fits(arguments, node.args, before=int(isinstance(atom, Bound)))

    def _constructor(self, cls: Object) -> Bound | None:
        """``__init__`` of a class that hands it all that the class is called with: none whose
        metaclass or ``__new__`` may do otherwise, or whose bases are not known.
        """
        parts: ClassParts = cls.extra
        if parts.unknown or parts.members or self.in_class(cls, "__new__"):
            return None
        held = (self.heap.objects[n] for n in parts.order)
        if any(c.extra.node.keywords or self.heap.read((c.number, "*")) for c in held):
            return None
        if not all(f.startswith("builtins.") or self.library.kinds(f) for f in parts.foreign):
            return None
        found = self.objects(self.in_class(cls, "__init__") or NOTHING)
        if len(found) != 1 or found[0].kind != "function":
            return None
        generated = any("dataclass" in self.heap.objects[n].marks for n in parts.order)
        return None if generated else Bound(found[0].number, Ref(cls.number))

    def _call_atom(self, atom: Atom, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        match atom:
            case Ref():
                return self._call_object(self.heap.objects[atom.object], arguments, node, frame)
            case Bound():
                function = self.heap.objects[atom.function]
                return self.invoke(function, atom.receiver, arguments, node, frame)
            case Foreign():
                if atom.name not in _ASKS:
                    self._hand(arguments, node)
                given = self.library.call(self, atom.name, arguments, node, frame)
                self.trace.foreign.setdefault(atom.name, given is not None)
                if given is not None:
                    plain = atom.name.startswith("builtins.")
                    first = arguments.get(0) or NOTHING
                    if plain:
                        return _of_any(given, arguments)
                    given = _computed(given, atom.name, first)
                    return self._put_out(given, arguments, node, frame)
                if self.library.module(atom.name):
                    self.raises()
                    return NOTHING
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
        self._hand(arguments, node)
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
            given = _computed(given, word, value(atom.receiver))
            return self._put_out(given, arguments, node, frame)
        if isinstance(atom.receiver, Super):
            return self._of_object_itself(atom.receiver, atom.name, arguments, node, frame)
        if isinstance(atom.receiver, Const | Setting) or made is None:
            operands = [value(atom.receiver), *arguments.all()]
            why = _lacking("tuple", atom.name) if isinstance(atom.receiver, Items) else ""
            return self.opaque_result(operands, word, node, frame, why)
        return self.unknown_call(word, arguments, node, frame, receiver=made)

    def _of_object_itself(
        self, atom: Super, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value:
        """A method that every object has: ``super().__setattr__(name, x)``."""
        if name != "__setattr__":
            return NONE if name == "__init__" else SETTING
        key, new = arguments.get(0) or SETTING, arguments.get(1) or SETTING
        self.set_plainly(value(atom.receiver), key, new, node, frame)
        return NONE

    def _put_out(
        self, given: Value, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value:
        """``add(x, y, out=z)`` of a library: the result stands in a tensor that is there already."""
        held = arguments.keywords.get("out")
        if not held or not data(held) or not isinstance(node, ast.Call):
            return given
        for keyword in node.keywords:
            if keyword.arg == "out":
                self.write_in_place(keyword.value, given, node, frame, held)
        return identity.the_same(given, identity.is_held(held))

    def _hand(self, arguments: Arguments, node: ast.AST) -> None:
        """Functions that code of a library is given: it may call them, now or later."""
        for v in arguments.all():
            for atom in v:
                made = self.object(atom)
                if isinstance(atom, Bound) or (made is not None and made.kind == "function"):
                    self.handed.setdefault(atom, node)

    def unknown_call(
        self, name: str, arguments: Arguments, node: ast.AST, frame: Frame,
        receiver: Object | None = None,
    ) -> Value:  # fmt: skip
        """A call of code that nobody knows: it may call what it is given and change what it
        reaches.
        """
        self._callbacks(arguments, node, frame)
        operands = arguments.all()
        if receiver is not None:
            operands.append(value(Ref(receiver.number)))
        drawn = any(self.library.draws(self, v) for v in operands)
        if drawn or any(self.depends(v).kind not in placements.EQUAL for v in operands):
            result = self.miss(self._not_known(name, receiver), node, frame)
            self._havoc(arguments, result)
            if receiver is not None and receiver.kind not in ("class", "function", "pymodule"):
                self.heap.widen((receiver.number, ELEMENTS), result)
            return result
        self.trace.miss(not_known(name), node, frame.context)
        made = self.heap.new("opaque", name, node, frame.context)
        if all(isinstance(a, Const | Setting | Foreign) for v in operands for a in v):
            made.marks.add(OF_A_LIBRARY)
        self.library.unseen_made(self, made, arguments, node, frame)
        return value(Ref(made.number))

    def _not_known(self, name: str, receiver: Object | None) -> str:
        """What is not known of a call: what an object of the program is asked for by a name that its
        own files bind, it lacks here, as under a setting that sets no model at all.
        """
        cls = self.class_of(receiver) if receiver is not None else None
        word = name.removeprefix(".")
        if receiver is not None and receiver.name == receiver.kind and (lacking := _lacking(receiver.kind, word)):
            return lacking
        if receiver is None or cls is None or receiver.kind != "instance" or word not in self.bindable:
            return not_known(name)
        bases = (self.library.kinds(f) for f in cls.extra.foreign)
        own = not cls.extra.unknown and all(kinds == {"module"} for kinds in bases)
        return f"{receiver.name} has no attribute {word} here" if own else not_known(name)

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

    # ------------------------------------------------------------ defined by later parts

    @abstractmethod
    def write_in_place(
        self, target: ast.expr, new: Value, node: ast.AST, frame: Frame, held: Value | None = None
    ) -> None:
        """Give a variable the value that its tensor has after a write."""


def _computed(result: Value, name: str, given: Value) -> Value:
    """What code of a library gives: another tensor than it is given, or the same one."""
    if identity.gives(name):
        return result
    if identity.views(name):
        return identity.the_same(result, identity.is_held(given))
    return identity.another(result) if data(given) else result


def _of_any(result: Value, arguments: Arguments) -> Value:
    """What a function of Python gives where it differs which of several things it is given."""
    if len(result) == 1 and isinstance(result[0], Const):
        return result
    if not result or any(isinstance(a, Ref | Foreign | Bound) for a in result):
        return result
    for v in arguments.all():
        result = divergence.whichever(result, v)
    return result
