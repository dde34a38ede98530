"""The scope of a call and what its parameters are given."""

from __future__ import annotations

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.calls import CallParts
from dpmigrate.execution.classes import FunctionParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, Object
from dpmigrate.execution.values import NOTHING, SETTING, Atom, Const, Ref, Value, items, value


class FrameParts(CallParts):
    """Scopes of calls."""

    def frame_of(self, function: Object, receiver: Atom | None, context: int) -> Frame:
        """The scope of a call."""
        parts: FunctionParts = function.extra
        number = self.heap.number(("frame", context, function.number))
        return Frame(
            number, parts.names, parts.outer, parts.module, context, function=function,
            cls=parts.cls, receiver=receiver if receiver is not None else parts.receiver,
        )  # fmt: skip

    def give(self, inner: Frame, name: str, new: Value) -> None:
        """Give a parameter its value."""
        (self.heap.widen if inner.weak else self.heap.write)((inner.number, name), new)

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
            self.give(inner, name, new)
        for parameter in args.kwonlyargs:
            name = parameter.arg
            default = self.heap.read((function.number, f"={name}"))
            new = keywords.pop(name, NOTHING) or join(default or NOTHING, given.stars) or SETTING
            self.give(inner, name, new)
        if args.vararg is not None:
            rest = given.positional[len(positional) :]
            held = items(rest)
            if given.star:
                held = self.listed([given.star, *rest], args.vararg, inner, exact=False)
            self.give(inner, args.vararg.arg, held)
        if args.kwarg is not None:
            made = self.heap.new("dict", "keywords", args.kwarg, inner.context)
            for name, new in keywords.items():
                self.heap.put((made.number, Const("str", name)), new)
            if given.stars:
                self.heap.widen((made.number, ELEMENTS), given.stars)
            self.give(inner, args.kwarg.arg, value(Ref(made.number)))
