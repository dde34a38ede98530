"""Definitions of functions and classes, and decorators."""

from __future__ import annotations

import ast

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.classes import STORED, ClassParts, FunctionParts
from dpmigrate.execution.expressions import ExpressionParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import UNSEEN, Object
from dpmigrate.execution.scopes import Function
from dpmigrate.execution.values import Atom, Bound, Const, Foreign, Method, Ref, Value, const, value

#: the mark of a function that keeps its results, and the field that holds them
CACHE = "#cache"

_FLAGS = {
    "builtins.property": "property",
    "functools.cached_property": STORED,
    "functools.lru_cache": CACHE,
    "functools.cache": CACHE,
    "abc.abstractproperty": "property",
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "contextlib.contextmanager": "contextmanager",
    "contextlib.asynccontextmanager": "contextmanager",
    "dataclasses.dataclass": "dataclass",
}


#: base classes whose instances are those of any class of the program
_PLAIN = ("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol")
#: base classes whose attributes are members (https://docs.python.org/3/library/enum.html)
ENUMERATIONS = ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag")


class DefinitionParts(ExpressionParts):
    """``def``, ``lambda`` and ``class``."""

    _closures: dict[int, list[Object]]

    def function(self, node: Function, frame: Frame) -> Value:
        name = getattr(node, "name", "<lambda>")
        made = self.heap.new("function", name, node, frame.context, key=frame.number)
        made.many = False
        self._closures.setdefault(frame.number, []).append(made)
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
                    if word == CACHE:
                        kept = self.heap.new("dict", "results", decorator, frame.context, key=o.number)
                        self.heap.write((o.number, CACHE), value(Ref(kept.number)))
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
            isinstance(a, Bound) or ((o := self.object(a)) is not None and o.kind not in UNSEEN)
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
        foreign = [name for name in foreign if name not in _PLAIN]
        order = [made.number, *_merged([*orders, [o[0] for o in orders if o]])]
        made.extra = ClassParts(node, order, tuple(foreign), frozenset(kinds), unclear)
        inner = Frame(
            made.number, self.names_of(node), tuple(self.scopes(frame)), frame.module,
            frame.context, level=frame.level, slot=frame.slot, cls=made.number, in_class=True,
        )  # fmt: skip
        self.block(node.body, inner)
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                made.extra.fields.append(statement.target.id)
                self._default(made, statement.target.id, statement.value, inner)
        if any(name in ENUMERATIONS for name in foreign):
            self._enumerated(made, node, inner)
        self._descriptors(made, frame)
        return self.decorated(value(Ref(made.number)), node.decorator_list, node.name, frame)

    def _descriptors(self, cls: Object, frame: Frame) -> None:
        """Objects of the program in a class that say what its attributes are."""
        for name, held in list(self.heap.names(cls.number)):
            for made in self.instances_of(held):
                if any(self.method_of(made, n) is not None for n in ("__get__", "__set__")):
                    self.descriptors = True
                told = self.method_of(made, "__set_name__")
                if told is not None and isinstance(name, str):
                    given = Arguments([value(Ref(cls.number)), const(name)])
                    self.call(value(told), given, cls.node or ast.Pass(), frame)

    def _default(self, cls: Object, name: str, default: ast.expr | None, frame: Frame) -> None:
        """``x: list = field(default_factory=list)`` in a data class."""
        if not isinstance(default, ast.Call):
            return
        callee = self.evaluate(default.func, frame)
        if not any(isinstance(a, Foreign) and a.name == "dataclasses.field" for a in callee):
            return
        self.heap.write((cls.number, name), None)
        for keyword in default.keywords:
            if keyword.arg == "default":
                self.heap.write((cls.number, name), self.evaluate(keyword.value, frame))
            elif keyword.arg == "default_factory":
                held = self.evaluate(keyword.value, frame)
                self.heap.write((cls.number, f"{name}.factory"), held)

    def _enumerated(self, cls: Object, node: ast.ClassDef, frame: Frame) -> None:
        """The members of an enumeration are objects, one for each name."""
        parts: ClassParts = cls.extra
        for name, held in list(self.heap.names(cls.number)):
            plain = not any(
                isinstance(a, Ref) and self.heap.objects[a.object].kind in ("function", "class")
                for a in held
            )
            if isinstance(name, str) and plain and not name.startswith("_"):
                made = self.heap.new(
                    "instance", cls.name, node, frame.context, extra=cls.number, key=name
                )
                made.many = False
                self.heap.write((made.number, "value"), held)
                self.heap.write((made.number, "name"), value(Const("str", name)))
                self.heap.write((cls.number, name), value(Ref(made.number)))
                parts.members.append(made.number)


def _merged(orders: list[list[int]]) -> list[int]:
    """C3 linearization of the bases (https://docs.python.org/3/howto/mro.html); best effort where
    it fails.
    """
    todo = [list(o) for o in orders]
    found: list[int] = []
    while any(todo):
        todo = [o for o in todo if o]
        heads = [o[0] for o in todo if not any(o[0] in other[1:] for other in todo)]
        head = heads[0] if heads else todo[0][0]
        found.append(head)
        todo = [[n for n in o if n != head] for o in todo]
    return found
