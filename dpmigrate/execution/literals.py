"""Literals: constants, texts and containers that are written out."""

from __future__ import annotations

import ast

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.container_methods import ContainerMethodParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    SETTING,
    Const,
    Ref,
    Setting,
    Value,
    const,
    data,
    items,
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


class LiteralParts(ContainerMethodParts):
    """One method for each kind of literal."""

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return const(node.value)

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts: list[Value] = []
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            parts.append(self.evaluate(inner, frame))
            if isinstance(part, ast.FormattedValue):
                parts[-1] = self._formatted(part, parts[-1], frame)
        return self.text(parts, node)

    def _formatted(self, part: ast.FormattedValue, v: Value, frame: Frame) -> Value:
        """``{x!r:>8}``: a constant where both are, else as divided as the value."""
        spec = self.evaluate(part.format_spec, frame) if part.format_spec is not None else const("")
        if part.conversion == -1 and spec == const(""):
            return v
        try:
            held = only(v)
            if part.conversion != -1:
                held = ascii(held) if part.conversion == 97 else repr(held)
                held = only(v) if part.conversion == 115 else held
            return const(format(held, only(spec)))
        except (LookupError, ValueError, TypeError):
            return v if data(v) or self.depends(v).kind not in placements.EQUAL else SETTING

    def text(self, parts: list[Value], node: ast.AST) -> Value:
        """A text made of values: constant, a setting, or as divided as what is in it."""
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
            if all(g is not None for g in guesses):
                guess = Const("str", "".join(str(g) for g in guesses))
                return value(Setting("", guess))
            return SETTING
        made = [v for v, _ in moving]
        if len(moving) == 1:
            return arithmetic.derived("text", moving[0][1], made, node, kind="text")
        numbers = [p for _, p in moving]
        if all(p in _NUMBERS or p.kind is Kind.SIZE for p in numbers):
            # nothing is computed with a text: it lies as what is the least whole of it
            least = next((p for p in _NUMBERS if p in numbers), numbers[0])
            return arithmetic.derived("text", least, made, node, kind="text")
        if any(placement_of(v) != p for v, p in moving):  # objects, by what they hold
            together = placements.elementwise(p for _, p in moving)
            return arithmetic.derived("text", together, made, node, kind="text")
        return arithmetic.elementwise("text", made, node, kind="text")

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        if any(isinstance(e, ast.Starred) for e in node.elts):
            parts = self._starred(node.elts, frame)
            if parts is not None:
                return items(parts)
            return self._list_of(node, frame, "list")
        return items([self.evaluate(e, frame) for e in node.elts])

    def _starred(self, elements: list[ast.expr], frame: Frame) -> list[Value] | None:
        """The elements with ``*x`` laid out, where all of them are known."""
        found: list[Value] = []
        for e in elements:
            if not isinstance(e, ast.Starred):
                found.append(self.evaluate(e, frame))
                continue
            inner = self.known_elements(self.evaluate(e.value, frame))
            if inner is None:
                return None
            found += inner
        return found

    def _list(self, node: ast.List, frame: Frame) -> Value:
        return self._list_of(node, frame, "list")

    def _set(self, node: ast.Set, frame: Frame) -> Value:
        return self._list_of(node, frame, "set")

    def _list_of(self, node: ast.List | ast.Set | ast.Tuple, frame: Frame, kind: str) -> Value:
        if any(isinstance(e, ast.Starred) for e in node.elts):
            parts = self._starred(node.elts, frame)
            if parts is not None:
                return self.listed(parts, node, frame, kind=kind)
            loose = [
                self.taken(self.evaluate(e.value, frame), e, frame)
                if isinstance(e, ast.Starred)
                else self.evaluate(e, frame)
                for e in node.elts
            ]
            return self.listed(loose, node, frame, exact=False, kind=kind)
        found = [self.evaluate(e, frame) for e in node.elts]
        exact = len(found) <= LISTED
        if kind == "set":
            found = list(dict.fromkeys(found))
            exact = exact and (len(found) < 2 or all(self.constants(v) for v in found))
        return self.listed(found, node, frame, exact=exact, kind=kind)

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        made = self.heap.new("dict", "dict", node, frame.context)
        target = value(Ref(made.number))
        for key, item in zip(node.keys, node.values, strict=True):
            held = self.evaluate(item, frame)
            if key is None:
                self.merge(made, held, node, frame)
            else:
                self.set_item(target, self.evaluate(key, frame), held, node, frame)
        return target

    def _slice_literal(self, node: ast.Slice, frame: Frame) -> Value:
        made = self.heap.new("slice", "slice", node, frame.context)
        for name in ("lower", "upper", "step"):
            bound = getattr(node, name)
            held = self.evaluate(bound, frame) if bound is not None else NONE
            self.heap.write((made.number, name), held)
        return value(Ref(made.number))
