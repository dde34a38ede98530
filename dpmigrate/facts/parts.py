"""What containers hold: the elements of displays and dicts, and what is stored in them later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dpmigrate.facts.definitions import SAME, arguments
from dpmigrate.facts.library import GROWS, PUTS_ALL, PUTS_ONE
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.objects import NONE, Path, Val, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.values import Values

_DICTS = frozenset({"?.dict", "dict", "collections.OrderedDict"})


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
            if v.kind == "display" or v.qual in _DICTS:
                again = isinstance(v.node, ast.Subscript) and any(p[0] == v for p in self._picking)
                part = (v, "*" if again else path[0], subscript)  # rows = rows[1:]: any of them
                if part in self._picking:  # d = d.copy()
                    self._values.cut_short()
                    continue
                self._picking.add(part)
                out |= self._element(*part)
                self._picking.discard(part)
            elif v.cls is not None and v.kind == "object" and self._values.defs.is_tuple(v.cls):
                out |= self._field(v.cls, path[0])
            elif v.kind == "call" and isinstance(path[0], int) and v.part is None and not v.qual.startswith(("torch.", "?.")):
                out |= {replace(v, part=path[0])}  # train_loader, val_loader = get_loaders()
            out |= self._held(v).get(path[0], NONE) if path[0] != "*" else self._stored(v) if v.kind == "call" else NONE
        return self.pick(out, path[1:], subscript)

    def _field(self, cls: ast.ClassDef, item: int | str) -> Vals:
        """An element of a tuple whose elements have names: ``train, val = bundle``."""
        fields = self._values.defs.fields(cls)
        named = fields[item : item + 1] if isinstance(item, int) and item >= 0 else fields
        return NONE.union(*(self._values.vars.get(self._values.field_key(cls, name), ()) for name in named))

    def made(self, call: ast.Call, qual: str) -> Vals:
        """What a library's function gives: an object of its own, or a method that ``getattr`` finds by names that are known: ``getattr(hook, event)(self)``."""
        if qual == "?.getattr" and len(call.args) > 1:
            classes = [v.cls for v in self._values.eval(call.args[0]) if v.kind == "object" and v.cls is not None]
            names = [v.node.value for v in self._values.eval(call.args[1]) if isinstance(v.node, ast.Constant) and isinstance(v.node.value, str)]
            methods = [self._values.defs.method(c, name) for c in classes for name in names]
            if found := frozenset(Val("func", m) for m in methods if m is not None):
                return found
        return frozenset({Val("call", call, qual)})

    def containers(self, node: ast.expr) -> Vals:
        """The lists and dicts that the expression may mean."""
        return frozenset(v for v in self._values.eval(node) if v.kind == "display" or v.qual in _DICTS)

    def bound(self, value: ast.AST, path: Path) -> Vals:
        """What a name gets of a value; ``enumerate`` and ``zip`` give pairs: ``for i, net in enumerate(nets)``, ``for a, b in zip(xs, ys)``, and ``repeat``
        the same again and again: ``for one in repeat(loader)``.
        """
        if isinstance(value, ast.Call) and path[:1] == ("*",) and value.args and self._values.names.dotted(value.func) == "itertools.repeat":
            return self.pick(self._values.eval(value.args[0]), path[1:])
        if isinstance(value, ast.Call) and len(path) > 1 and path[0] == "*" and isinstance(path[1], int):
            word, first = last(value.func), path[1]
            given = value.args[first - 1 : first] if word == "enumerate" else value.args[first : first + 1] if word == "zip" else []
            if word in ("enumerate", "zip"):
                return NONE.union(*(self.pick(self._values.eval(e), ("*", *path[2:])) for e in given if not isinstance(e, ast.Starred)))
        if path and path[0] == "*" and isinstance(value, ast.Call) and (members := self._values.lookups.members(value, path[1:])):
            return members
        return self.pick(self._values.eval(value), path)

    def taken(self, call: ast.Call, containers: Vals) -> Vals:
        """What ``d.get("model")``, ``d.pop("model", None)`` and ``models.pop()`` give."""
        asked = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else "*"
        fallback = NONE.union(*(self._values.eval(e) for e in call.args[1:]))
        return fallback | self.pick(containers, (asked if isinstance(asked, int | str) else "*",), subscript=True)

    # ------------------------------------------------------------------ what is put into containers
    def fill(self, call: ast.Call) -> None:
        """What a call puts into a container: ``models.append(net)``, ``models.update(net=net)``, ``models.setdefault("net", net)``."""
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in GROWS:
            return
        for container in self.containers(func.value):
            if func.attr in PUTS_ONE and call.args:
                key = call.args[0].value if func.attr == "setdefault" and isinstance(call.args[0], ast.Constant) else "*"
                self._values.store(container.node, key, self._values.eval(call.args[-1]))
            elif func.attr in PUTS_ALL:
                for e in call.args:
                    self._pour(container.node, self._values.eval(e), subscript=func.attr == "update")
                self._keywords(container.node, call, frozenset())

    def given(self, call: ast.Call, function: FunctionNode, skip: int) -> Iterator[tuple[str, Vals]]:
        """What a call gives parameters, also by ``*args`` and ``**settings``; what the function's own ``*args`` and ``**kwargs`` get is stored in them."""
        yield from ((name, self._values.eval(value)) for name, value in arguments(call, function, skip))
        a = function.args
        plain = [*a.posonlyargs, *a.args][skip:]
        yield from self._by_star(call, plain)
        if a.vararg is not None:
            for i, e in enumerate(call.args[len(plain) :]):
                if isinstance(e, ast.Starred):
                    self._pour(a.vararg, self._values.eval(e.value), subscript=False)
                else:
                    self._values.store(a.vararg, i, self._values.eval(e))
        named = frozenset(p.arg for p in (*plain, *a.kwonlyargs))
        if a.kwarg is not None:
            self._keywords(a.kwarg, call, named)
        given = {p.arg for p in plain[: len(call.args)]} | {k.arg for k in call.keywords}
        for k in call.keywords:
            if k.arg is None:
                held = self._values.eval(k.value)
                yield from ((name, self.pick(held, (name,), subscript=True)) for name in sorted(named - given))

    def _by_star(self, call: ast.Call, plain: list[ast.arg]) -> Iterator[tuple[str, Vals]]:
        """What parameters get by ``*args``, and behind it, where nothing has a place of its own."""
        star = next((i for i, e in enumerate(call.args) if isinstance(e, ast.Starred)), len(call.args))
        alone = star == len(call.args) - 1
        for e in call.args[star:]:
            held = self._values.eval(e.value if isinstance(e, ast.Starred) else e)
            for i, parameter in enumerate(plain[star:]):
                if not isinstance(e, ast.Starred):
                    yield parameter.arg, held
                elif not (alone and all(_ends_before(v.node, i) for v in held)):
                    yield parameter.arg, self.pick(held, (i if alone else "*",), subscript=True)

    def _keywords(self, container: ast.AST, call: ast.Call, named: frozenset[str]) -> None:
        for k in call.keywords:
            if k.arg is None:
                self._pour(container, self._values.eval(k.value), subscript=True)
            elif k.arg not in named:
                self._values.store(container, k.arg, self._values.eval(k.value))

    def _pour(self, container: ast.AST, vals: Vals, subscript: bool) -> None:
        """Everything that other containers hold, under its keys where they are known."""
        for v in vals:
            keys = set(self._held(v))
            if isinstance(v.node, ast.Dict):
                keys |= {k.value if isinstance(k, ast.Constant) else "*" for k in v.node.keys}
            for key in keys if subscript and keys else {"*"}:
                self._values.store(container, key, self.pick(frozenset({v}), (key,), subscript))  # type: ignore[arg-type]

    # ------------------------------------------------------------------ what they hold
    def _element(self, v: Val, item: int | str, subscript: bool) -> Vals:
        node, extra = v.node, frozenset(self._held(v).get("*", ()))
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            if any(isinstance(e, ast.Starred) for e in node.elts):
                return extra | self._among_stars(node.elts, item)
            if isinstance(item, int) and -len(node.elts) <= item < len(node.elts):
                return self._values.eval(node.elts[item])
            return extra.union(*(self._values.eval(e) for e in node.elts))
        if isinstance(node, ast.Subscript):  # a part of a list
            return self.pick(self._values.eval(node.value), (_behind(node.slice, item),), subscript)
        if isinstance(node, ast.Dict):
            if not subscript:  # iterating a dict gives its keys
                return NONE
            pairs = zip(node.keys, node.values, strict=True)
            named = (x for k, x in pairs if item == "*" or (isinstance(k, ast.Constant) and k.value == item))
            return self._stored_under(v, item).union(*(self._values.eval(x) for x in named))
        if isinstance(node, ast.arg):  # *args, **kwargs
            if item != "*" or not (subscript or v.qual == "args"):
                return extra
            return self._stored(v)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            own = self._turn(node, item)
            return extra | self._values.eval(own or node.elt)
        if isinstance(node, ast.DictComp):
            return self._entries(node, item) | self._stored_under(v, item) if subscript else NONE
        if isinstance(node, ast.Call) and v.qual in _DICTS:
            return self._of_dict(node, item)
        if isinstance(node, ast.Call) and v.qual == "returned":
            return self._values.returned.part(node, item)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whole = self.pick(self._values.eval(node.func.value), ("*",), subscript=True)
            if v.qual == "values":
                return whole
            if v.qual == "items":
                return frozenset({Val("display", node, "pair")})
            if v.qual == "pair":
                return whole if item == 1 else NONE
            return self.pick(self._values.eval(node.func.value), (item,), subscript)  # a copy
        return NONE

    def _turn(self, node: ast.ListComp | ast.GeneratorExp, item: int | str) -> ast.expr | None:
        """What one turn gives that hands on what it goes through: the second of ``[net.to(device) for net in (a, b)]`` is ``b``."""
        inner: ast.AST = node.elt
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in SAME and not any(self._values.targets(inner)):
            inner = inner.func.value
        over = node.generators[0]
        plain = len(node.generators) == 1 and not over.ifs and isinstance(over.iter, ast.Tuple | ast.List)
        if not plain or not isinstance(inner, ast.Name) or not isinstance(over.target, ast.Name) or inner.id != over.target.id:
            return None
        given = over.iter.elts if isinstance(over.iter, ast.Tuple | ast.List) else []
        known = isinstance(item, int) and -len(given) <= item < len(given) and not any(isinstance(e, ast.Starred) for e in given)
        return given[item] if known and isinstance(item, int) else None

    def _among_stars(self, elts: list[ast.expr], item: int | str) -> Vals:
        """An element of ``[first, *others]``: where it stands before the first star, or behind that alone, it is known which."""
        first = next(i for i, e in enumerate(elts) if isinstance(e, ast.Starred))
        if isinstance(item, int) and 0 <= item < first:
            return self._values.eval(elts[item])
        last = first == len(elts) - 1 and isinstance(item, int) and item >= 0
        parts = ((e, item - first if last and isinstance(item, int) else "*") for e in (elts[first:] if isinstance(item, int) and item >= 0 else elts))
        return NONE.union(*(self.pick(self._values.eval(e), (at,)) if isinstance(e, ast.Starred) else self._values.eval(e) for e, at in parts))

    def _of_dict(self, call: ast.Call, item: int | str) -> Vals:
        """``dict(net=net)``, ``dict(nets)``, ``dict(**nets)``, ``OrderedDict([("net", net)])``, ``dict(zip(names, nets))``."""
        vals = NONE.union(*(self._values.eval(k.value) for k in call.keywords if k.arg is not None and item in ("*", k.arg)))
        vals = vals.union(*(self.pick(self._values.eval(k.value), (item,), subscript=True) for k in call.keywords if k.arg is None))
        for e in call.args[:1]:
            made = self._values.eval(e)
            dicts = frozenset(v for v in made if v.qual in _DICTS or v.qual == "kwargs" or isinstance(v.node, ast.Dict | ast.DictComp))
            vals |= self.pick(dicts, (item,), subscript=True)
            if not dicts:
                vals |= self.bound(e, ("*", 1))
        return vals

    def _stored_under(self, v: Val, item: int | str) -> Vals:
        """What was stored in a dict under a key."""
        return NONE.union(*(s for k, s in self._held(v).items() if item in ("*", k) or k == "*"))

    def _stored(self, v: Val) -> Vals:
        """Whatever was stored in the container later."""
        return NONE.union(*self._held(v).values())

    def _held(self, v: Val) -> dict[object, set[Val]]:
        """What was stored in the container, by its keys; ``*`` is any."""
        return self._values.items.get(v.node, {})

    def _entries(self, node: ast.DictComp, item: int | str) -> Vals:
        """What a dict comprehension holds under a key: each key has an object of its own, though one call makes them all."""
        vals, keys = self._values.eval(node.value), self._values.defs.keys(node)
        if keys and item != "*":
            if item not in keys:
                return NONE  # what is stored under it later is found beside it
            keys = (item,)
        made = frozenset(v for v in vals if keys and v.kind in ("call", "object") and self._values.names.is_inside(v.node, node))
        return (vals - made) | {replace(v, part=k) for v in made for k in keys}


def _ends_before(node: ast.AST, index: int) -> bool:
    """Whether a list that is written out has no element at the index."""
    return isinstance(node, ast.Tuple | ast.List) and index >= len(node.elts) and not any(isinstance(e, ast.Starred) for e in node.elts)


def _behind(part: ast.expr, item: int | str) -> int | str:
    """Where in a list an element of a part of it stands, ``xs[1:][0]``; ``*`` where that is not known."""
    lower = part.lower if isinstance(part, ast.Slice) and part.step is None else part
    first = 0 if lower is None else lower.value if isinstance(lower, ast.Constant) else None
    return item + first if isinstance(item, int) and item >= 0 and isinstance(first, int) else "*"
