"""What a statement leaves in a variable or an attribute: a new value, an element of a table, something added in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.names import Names
from dpmigrate.facts.nodes import either
from dpmigrate.facts.objects import leaves
from dpmigrate.facts.roles import element

#: methods in place that choose elements, with the place of what chooses them
_BY_INDEX = {"index_copy_": 1, "index_add_": 1, "index_fill_": 1, "scatter_": 1, "scatter_add_": 1, "index_put_": 0, "masked_scatter_": 0, "masked_fill_": 0}
#: methods in place that leave nothing of what was there
_ANEW = frozenset({"copy_", "zero_", "fill_", "resize_", "resize_as_", "set_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_"})
#: methods in place by which something comes to what was there
_ADDS = frozenset(
    {"add_", "sub_", "mul_", "div_", "lerp_", "addcmul_", "addcdiv_", "addmm_", "addmv_", "addr_", "baddbmm_", "subtract_", "multiply_", "divide_"}
)
_PUTS = frozenset({"append", "appendleft", "extend", "insert"})
_CONTAINERS = frozenset({"?.dict", "?.set", "collections.Counter", "collections.defaultdict", "collections.OrderedDict"})
_INDEX_WORDS = frozenset({"index", "indices", "mask"})
#: functions of numpy that change their first argument by an index
_NUMPY = frozenset({"numpy.put", "numpy.add.at", "numpy.put_along_axis", "numpy.putmask"})


@dataclass(frozen=True, eq=False, slots=True)
class Stored:
    """What one statement gives one ``holder`` (``queue`` of ``queue[:, i] = x``), with what chooses its elements; without an ``index`` it is the whole.

    ``grows``: what was there goes into what comes, as by ``+=`` and ``mul_``. ``put``: a list or a queue gets one more, also one that is an entry.
    """

    node: ast.stmt
    holder: ast.Name | ast.Attribute
    index: tuple[ast.expr, ...]
    values: tuple[ast.expr, ...]
    grows: bool = False
    put: bool = False


def stored(names: Names, stmt: ast.AST) -> Iterator[Stored]:
    """Everything that the statement itself gives to variables and attributes."""
    if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) and stmt.value is not None:
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        if isinstance(stmt, ast.AugAssign) and isinstance(stmt.op, ast.BitOr) and isinstance(stmt.value, ast.Dict | ast.DictComp | ast.Set | ast.SetComp):
            yield from _joined(stmt, stmt.target, [stmt.value])
            return
        for target in (t for one in targets for t, _ in leaves(one, ())):
            yield from _given(stmt, target, (), (stmt.value,), isinstance(stmt, ast.AugAssign))
    elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
        call = stmt.value
        if names.dotted(call.func) in _NUMPY and len(call.args) > 1:
            yield from _given(stmt, call.args[0], (call.args[1],), tuple(call.args[2:]), names.dotted(call.func) == "numpy.add.at")
        elif isinstance(call.func, ast.Attribute) and call.func.attr in _PUTS:
            for owner in either(call.func.value):
                if isinstance(owner, ast.Name | ast.Attribute):
                    yield Stored(stmt, owner, (ast.Slice(),), tuple(call.args), put=True)
                elif (entry := _entry(owner)) is not None:
                    yield from _given(stmt, entry[0], entry[1], tuple(call.args), put=True)
        elif isinstance(call.func, ast.Attribute) and call.func.attr in ("update", "add") and _is_container(names, call.func.value):
            yield from _joined(stmt, call.func.value, call.args)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "clear" and not call.args and isinstance(call.func.value, ast.Name | ast.Attribute):
            yield Stored(stmt, call.func.value, (), ())
        else:
            yield from _in_place(stmt, call)


def _entry(node: ast.expr) -> tuple[ast.expr, tuple[ast.expr, ...]] | None:
    """The table and what chooses the entry: of ``lists[k]``, ``lists.setdefault(k, [])``."""
    if isinstance(node, ast.Subscript):
        return node.value, (node.slice,)
    chooses = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault" and bool(node.args)
    return (node.func.value, (node.args[0],)) if chooses else None  # type: ignore[attr-defined]


def _joined(stmt: ast.stmt, holder: ast.expr, given: list[ast.expr]) -> Iterator[Stored]:
    """``table.update({i: v for …})``, ``table.update(zip(keys, values))``, ``seen.update(keys)``, ``table |= {…}``."""
    for one in given:
        keys, values = [one], [one]
        inner = one.args[0] if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "dict" and one.args else one
        if isinstance(inner, ast.DictComp):
            keys, values = [inner.key], [inner.value]
        elif isinstance(inner, ast.Dict):
            keys, values = [k for k in inner.keys if k is not None], inner.values
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "zip":
            keys, values = inner.args[:1], inner.args[1:]
        yield from _given(stmt, holder, tuple(keys), tuple(values))


def _is_container(names: Names, node: ast.expr) -> bool:
    """Whether the variable or attribute is given a dict, a set or a counter anywhere: other objects have methods of the same names."""
    if isinstance(node, ast.Name):
        given = [element(b.value, b.path) if isinstance(b.value, ast.expr) else b.value for b in names.bindings(names.scope_of[node], node.id)]
    else:
        stores = (a for a in names.attributes(node.attr) if isinstance(a.ctx, ast.Store)) if isinstance(node, ast.Attribute) else ()
        given = [getattr(names.statement(a), "value", None) for a in stores]
    made = (names.dotted(v.func) for v in given if isinstance(v, ast.Call))
    return any(isinstance(v, ast.Dict | ast.DictComp | ast.Set | ast.SetComp) for v in given) or any(m in _CONTAINERS for m in made)


def _in_place(stmt: ast.stmt, call: ast.Call) -> Iterator[Stored]:
    """``self.mean.mul_(0.9).add_(x, alpha=0.1)``."""
    node: ast.expr = call
    values: list[ast.expr] = []
    index: list[ast.expr] = []
    first = ""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in _ADDS or method in _ANEW or method in _BY_INDEX:
            first = method
            place = _BY_INDEX.get(method)
            chosen = [a for i, a in enumerate(node.args) if i == place] + [k.value for k in node.keywords if place is not None and k.arg in _INDEX_WORDS]
            index += chosen
            values += [e for e in (*node.args, *(k.value for k in node.keywords)) if e not in chosen]
        node = node.func.value
    if first:
        yield from _given(stmt, node, tuple(index), tuple(values), first in _ADDS)


def _given(
    stmt: ast.stmt, target: ast.AST, index: tuple[ast.expr, ...], values: tuple[ast.expr, ...], grows: bool = False, put: bool = False
) -> Iterator[Stored]:
    """``queue`` for ``queue``, ``queue[:, i]`` and ``queue.data``."""
    while isinstance(target, ast.Subscript | ast.Starred) or _is_data(target):
        if isinstance(target, ast.Subscript) and not _everything(target.slice):
            index = (target.slice, *index)
        target = target.value  # type: ignore[attr-defined]
    if isinstance(target, ast.Name | ast.Attribute):
        yield Stored(stmt, target, index, values, grows, put)


def _is_data(node: ast.AST) -> bool:
    """``x.data``, not an attribute of that name of ``self``."""
    return isinstance(node, ast.Attribute) and node.attr == "data" and not (isinstance(node.value, ast.Name) and node.value.id == "self")


def _everything(index: ast.expr) -> bool:
    """``x[:] = …``, ``x[...] = …``: the whole is given anew."""
    return (isinstance(index, ast.Slice) and index.lower is None and index.upper is None) or (isinstance(index, ast.Constant) and index.value is ...)
