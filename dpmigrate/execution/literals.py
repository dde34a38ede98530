"""Literals: constants and containers that are written out."""

from __future__ import annotations

import ast

from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.texts import TextParts
from dpmigrate.execution.values import (
    NONE,
    Ref,
    Value,
    const,
    items,
    value,
)


class LiteralParts(TextParts):
    """One method for each kind of literal."""

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return const(node.value)

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return self._list_of(node, frame, "tuple")
        return items([self.evaluate(e, frame) for e in node.elts])

    def _list(self, node: ast.List, frame: Frame) -> Value:
        return self._list_of(node, frame, "list")

    def _set(self, node: ast.Set, frame: Frame) -> Value:
        return self._list_of(node, frame, "set")

    def _list_of(self, node: ast.List | ast.Set | ast.Tuple, frame: Frame, kind: str) -> Value:
        found: list[Value] = []
        spread: list[Value] = []
        known = True
        for e in node.elts:
            if not isinstance(e, ast.Starred):
                found.append(self.evaluate(e, frame))
                continue
            self.at_once.add(e.value)
            held = self.evaluate(e.value, frame)
            inner = self.known_elements(held)
            if inner is None:
                known = False
                inner = [self.taken(held, e, frame)]
            found += inner
            spread.append(held)
        if kind == "tuple" and known:
            return items(found)
        if not known:
            made = "list" if kind == "tuple" else kind
            return self.listed(found, node, frame, exact=False, kind=made, by=spread)
        exact = len(found) <= LISTED
        if kind == "set":
            found = list(dict.fromkeys(found))
            exact = exact and (len(found) < 2 or all(self.constants(v) for v in found))
        return self.listed(found, node, frame, exact=exact, kind=kind)

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        pairs = zip(node.keys, node.values, strict=True)
        # before there is a new one: they may read the one that was made here before
        given = [(self.evaluate(k, frame) if k is not None else None, self.evaluate(v, frame)) for k, v in pairs]
        made = self.heap.new("dict", "dict", node, frame.context)
        target = value(Ref(made.number))
        for key, held in given:
            if key is None:
                self.merge(made, held, node, frame)
            else:
                self.set_item(target, key, held, node, frame)
        return target

    def _slice_literal(self, node: ast.Slice, frame: Frame) -> Value:
        made = self.heap.new("slice", "slice", node, frame.context)
        for name in ("lower", "upper", "step"):
            bound = getattr(node, name)
            held = self.evaluate(bound, frame) if bound is not None else NONE
            self.heap.write((made.number, name), held)
        return value(Ref(made.number))
