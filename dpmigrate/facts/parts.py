"""What containers hold: the elements of displays and dicts, and what is stored in them later."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dpmigrate.facts.objects import NONE, Path, Val, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.values import Values


class Parts:
    """Takes objects apart, by the expressions that make them."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._picking: set[tuple[Val, int | str, bool]] = set()

    def pick(self, vals: Vals, path: Path, subscript: bool = False) -> Vals:
        """The part of the objects that ``path`` names: elements of displays and dicts, whatever was stored under a key."""
        if not path:
            return vals
        out = NONE
        for v in vals:
            if v.kind == "display":
                part = (v, path[0], subscript)
                if part in self._picking:  # d = d.copy()
                    self._values.cut_short()
                    continue
                self._picking.add(part)
                out |= self._element(*part)
                self._picking.discard(part)
            elif v.kind == "call" and v.qual in ("?.dict", "dict") and isinstance(v.node, ast.Call):
                out |= NONE.union(*(self._values.eval(k.value) for k in v.node.keywords if path[0] in ("*", k.arg)))
            elif v.kind == "call" and isinstance(path[0], int) and v.part is None and not v.qual.startswith(("torch.", "?.")):
                out |= {replace(v, part=path[0])}  # train_loader, val_loader = get_loaders()
            out |= self._values.items.get((v.node, path[0]), NONE) if path[0] != "*" else NONE
        return self.pick(out, path[1:], subscript)

    def given(self, call: ast.Call, qual: str) -> Vals:
        """What a library's function gives: an object of its own, or a method that ``getattr`` finds by names that are known: ``getattr(hook, event)(self)``."""
        if qual == "?.getattr" and len(call.args) > 1:
            classes = [v.cls for v in self._values.eval(call.args[0]) if v.kind == "object" and v.cls is not None]
            names = [v.node.value for v in self._values.eval(call.args[1]) if isinstance(v.node, ast.Constant) and isinstance(v.node.value, str)]
            methods = [self._values.defs.method(c, name) for c in classes for name in names]
            if found := frozenset(Val("func", m) for m in methods if m is not None):
                return found
        return frozenset({Val("call", call, qual)})

    def _element(self, v: Val, item: int | str, subscript: bool) -> Vals:
        node, extra = v.node, frozenset(self._values.items.get((v.node, "*"), ()))
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            if isinstance(item, int) and -len(node.elts) <= item < len(node.elts):
                return self._values.eval(node.elts[item])
            return extra.union(*(self._values.eval(e) for e in node.elts))
        if isinstance(node, ast.Dict):
            if not subscript:  # iterating a dict gives its keys
                return NONE
            pairs = zip(node.keys, node.values, strict=True)
            stored = frozenset().union(*(s for (n, k), s in self._values.items.items() if n is node and (item in ("*", k) or k == "*")))
            return stored.union(*(self._values.eval(x) for k, x in pairs if item == "*" or (isinstance(k, ast.Constant) and k.value == item)))
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return extra | self._values.eval(node.elt)
        if isinstance(node, ast.DictComp):
            return self._entries(node, item) if subscript else NONE
        if isinstance(node, ast.Call) and v.qual == "returned":
            return self._values.part_returned(node, item)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whole = self.pick(self._values.eval(node.func.value), ("*",), subscript=True)
            if v.qual == "values":
                return whole
            if v.qual == "items":
                return frozenset({Val("display", node, "pair")})
            if v.qual == "pair":
                return whole if item == 1 else NONE
            if v.qual == "copy":
                return self.pick(self._values.eval(node.func.value), (item,), subscript)
        return NONE

    def _entries(self, node: ast.DictComp, item: int | str) -> Vals:
        """What a dict comprehension holds under a key: each key has an object of its own, though one call makes them all."""
        vals, keys = self._values.eval(node.value), self._values.defs.keys(node)
        if item in keys:
            keys = (item,)
        made = frozenset(v for v in vals if keys and v.kind in ("call", "object") and self._values.names.is_inside(v.node, node))
        return (vals - made) | {replace(v, part=k) for v in made for k in keys}
