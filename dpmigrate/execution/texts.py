"""Texts that are made of values: f-strings, ``%``, ``str.format``, and what objects of the program
make of themselves.
"""

from __future__ import annotations

import ast
import re
import string

from dpmigrate.execution import arithmetic, derivation, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.container_methods import ContainerMethodParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    SETTING,
    Const,
    Data,
    Setting,
    Value,
    const,
    data,
    known,
    only,
    placement_of,
    value,
)

#: numbers of a rank's samples, those that a reduction has to put together first
_NUMBERS = (
    placements.SUM, placements.RATIO, placements.MEAN, placements.MAX, placements.MIN,
    placements.TERM,
)  # fmt: skip
#: the methods that make a text of an object, in the order in which Python asks for them, by the
#: conversion of a field
_SHOWN = {
    "": ("__format__", "__str__", "__repr__"),
    "s": ("__str__", "__repr__"),
    "r": ("__repr__",),
    "a": ("__repr__",),
}
#: the format that says nothing
_PLAIN = const("")
#: an attribute or an item in a field of ``str.format``: ``{loss.avg}``, ``{0[name]}``
_STEP = re.compile(r"\.([^.\[]+)|\[([^\]]+)\]")


class TextParts(ContainerMethodParts):
    """What becomes a text."""

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts: list[Value] = []
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            parts.append(self.evaluate(inner, frame))
            if isinstance(part, ast.FormattedValue):
                parts[-1] = self._formatted(part, parts[-1], frame)
        return self.text(parts, node, frame)

    def _formatted(self, part: ast.FormattedValue, v: Value, frame: Frame) -> Value:
        """``{x!r:>8}``: a constant where both are, else as divided as the value."""
        spec = self.evaluate(part.format_spec, frame) if part.format_spec is not None else _PLAIN
        conversion = chr(part.conversion) if part.conversion != -1 else ""
        if not conversion and spec == _PLAIN:
            return v
        v = self.shown(v, part, frame, conversion, spec)
        try:
            held = only(v)
            if conversion:
                held = ascii(held) if conversion == "a" else repr(held)
                held = only(v) if conversion == "s" else held
            return const(format(held, only(spec)))
        except (LookupError, ValueError, TypeError):
            return v if data(v) or self.depends(v).kind not in placements.EQUAL else SETTING

    def shown(
        self, v: Value, node: ast.AST, frame: Frame, conversion: str = "", spec: Value = _PLAIN
    ) -> Value:
        """What is written of a value: of objects of the program the text that they give."""
        found: list[Value] = []
        for atom in v:
            made = self.object(atom)
            names = _SHOWN[conversion] if made is not None else ()
            each = ((n, self.method_of(made, n)) for n in names if made is not None)
            name, method = next(((n, m) for n, m in each if m is not None), ("", None))
            if method is None:
                found.append(value(atom))
                continue
            arguments = Arguments([spec] if name == "__format__" else [])
            found.append(self.call(value(method), arguments, node, frame))
        return join(*found)

    def filled_in(
        self, template: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """``template.format(…)``, of the fields that it names; None where these are not known."""
        parts, number = [], 0
        try:
            fields = list(string.Formatter().parse(template))
        except ValueError:  # Python raises it too
            return None
        for _, name, spec, conversion in fields:
            if name is None:
                continue
            first = re.match(r"[^.\[]*", name)
            assert first is not None
            word = first.group()
            if not word:
                word, number = str(number), number + 1
            position = int(word) if word.isdigit() else -1
            v = arguments.get(position, "" if word.isdigit() else word)
            if v is None or "{" in (spec or ""):
                return None
            for attribute, item in _STEP.findall(name[first.end() :]):
                if attribute:
                    v = self.attribute(v, attribute, node, frame)
                else:
                    key = const(int(item) if item.isdigit() else item)
                    v = self.item(v, key, node, frame)
            parts.append(self.shown(v, node, frame, conversion or "", const(spec or "")))
        return self.text([const(template), *parts], node, frame)

    def text(self, parts: list[Value], node: ast.AST, frame: Frame) -> Value:
        """A text made of values: constant, a setting, or as divided as what is in it."""
        parts = [self.shown(v, node, frame) for v in parts]
        soft, words = False, ""
        try:
            for v in parts:
                words += str(only(v))
            return const(words)
        except LookupError:
            soft = True
        lying = [(v, self.depends(v)) for v in parts]
        moving = [(v, p) for v, p in lying if p.kind not in placements.EQUAL]
        if soft and not moving:
            guesses = [known(v) for v in parts]
            placed = [v for v in parts if any(isinstance(a, Data) and a.turn for a in v)]
            if placed:  # it depends on the place of a sample
                return derivation.derived("text", placements.UNIFORM, placed, node, kind="text")
            if all(g is not None for g in guesses):
                guess = Const("str", "".join(str(g) for g in guesses))
                return value(Setting("", guess))
            return SETTING
        made = [held for v, _ in moving for held in self.held_in(v)]
        if len(moving) == 1:
            return derivation.derived("text", moving[0][1], made, node, kind="text")
        numbers = [p for _, p in moving]
        if all(p in _NUMBERS or p.kind is Kind.SIZE for p in numbers):
            # nothing is computed with a text: it lies as what is the least whole of it
            least = next((p for p in _NUMBERS if p in numbers), numbers[0])
            return derivation.derived("text", least, made, node, kind="text")
        if any(placement_of(v) != p for v, p in moving):  # objects, by what they hold
            together = placements.elementwise(p for _, p in moving)
            return derivation.derived("text", together, made, node, kind="text")
        return arithmetic.elementwise("text", [v for v, _ in moving], node, kind="text")
