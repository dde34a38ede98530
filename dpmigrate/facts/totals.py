"""Totals of a training loop beside its plain counters: entries of a dict, averages that move from batch to batch, ratios, meters of other files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpmigrate.facts.counters import Counter, read_after
from dpmigrate.facts.filled import beginning
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import Names
from dpmigrate.facts.numbers import Numbers
from dpmigrate.facts.roles import Roles

_PURE = frozenset({"?.len", "?.float", "?.int", "?.max", "?.min", "?.round", "math.sqrt", "math.exp"})
#: how a number is taken out of what a batch gives
_TAKEN = frozenset({"item", "size", "shape", "sum", "numpy", "detach", "data"})
_VIEWS = frozenset({"item", "float", "double", "cpu"})


@dataclass(frozen=True, eq=False, slots=True)
class Derived:
    """A name that is read after the loop, the statement that computes it, and the counters that it is made of."""

    name: str
    code: str
    of: frozenset[str]


def derived(names: Names, loop: BatchLoop, counters: Sequence[Counter]) -> list[Derived]:
    """``accuracy = correct / total`` in the loop, read after it: to be computed again once the counters are reduced."""
    known = {c.name for c in counters}
    stored = [n.id for s in loop.node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    out = []
    for stmt in loop.node.body:
        if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], ast.Name):
            continue
        name = stmt.targets[0].id
        read = {n.id for n in ast.walk(stmt.value) if isinstance(n, ast.Name)}
        used = read & known
        alone = stored.count(name) == 1 and name not in known and not (read - known) & set(stored)
        if used and alone and _pure(names, stmt.value) and read_after(names, loop, name):
            out.append(Derived(name, ast.unparse(stmt), frozenset(used)))
    return out


def _pure(names: Names, node: ast.expr) -> bool:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return all(names.dotted(c.func) in _PURE or (isinstance(c.func, ast.Attribute) and c.func.attr in _VIEWS and not c.args) for c in calls)


def moving(numbers: Numbers, loop: BatchLoop) -> Iterator[Counter]:
    """Moving averages that are read after the loop, with what a batch gives to them: ``ema = 0.9 * ema + 0.1 * loss.item()``.

    They are linear in what is added, so the mean over the ranks is what one process would have.
    """
    for stmt in (s for b in loop.node.body for s in ast.walk(b)):
        if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], ast.Name):
            continue
        name, value = stmt.targets[0].id, stmt.value
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and read_after(numbers.names, loop, name):
            parts = [_factored(numbers, p) for p in (value.left, value.right)]
            added = [p for p in parts if p is not None and not (isinstance(p, ast.Name) and p.id == name)]
            if len(added) == 1 and None not in parts:
                yield Counter(name, (added[0],), True, True)


def entries(names: Names, loop: BatchLoop, text: Callable[[ast.AST], str]) -> list[Counter]:
    """Entries of a dict that are added up and whose dict is read after the loop: ``stats["loss"] += loss.item()``.

    They are named as ``text`` gives them. Where an entry is not seen to be 0 when the loop begins, nothing is said of what is added.
    """
    found: dict[str, tuple[ast.Subscript, list[ast.expr]]] = {}
    for stmt in (s for b in loop.node.body for s in ast.walk(b)):
        if isinstance(stmt, ast.AugAssign) and isinstance(stmt.op, ast.Add) and isinstance(target := stmt.target, ast.Subscript):
            if isinstance(target.value, ast.Name) and isinstance(target.slice, ast.Constant) and read_after(names, loop, target.value.id):
                found.setdefault(text(target), (target, []))[1].append(stmt.value)
    return [Counter(name, tuple(adds) if _begins_with_zero(names, loop, target) else (), True, True) for name, (target, adds) in found.items()]


def _begins_with_zero(names: Names, loop: BatchLoop, entry: ast.Subscript) -> bool:
    start = beginning(names, loop, entry.value.id)  # type: ignore[attr-defined]
    if not isinstance(start, ast.Dict):
        return False
    given = {k.value: v for k, v in zip(start.keys, start.values, strict=True) if isinstance(k, ast.Constant)}
    value = given.get(entry.slice.value)  # type: ignore[attr-defined]
    return isinstance(value, ast.Constant) and value.value == 0


def untold(names: Names, loop: BatchLoop, known: set[str]) -> Iterator[tuple[ast.AugAssign, str]]:
    """Other variables and attributes that grow by a number of each batch and are read elsewhere: ``self.total += loss.item()``, a global total."""
    found: set[str] = set()
    stored = {n.id for s in loop.node.body for a in ast.walk(s) if isinstance(a, ast.Assign) for t in a.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    for stmt in (s for b in loop.node.body for s in ast.walk(b)):
        if not isinstance(stmt, ast.AugAssign) or not isinstance(stmt.op, ast.Add) or not isinstance(target := stmt.target, ast.Name | ast.Attribute):
            continue
        name = ast.unparse(target)
        counted = isinstance(stmt.value, ast.Name) or any(isinstance(n, ast.Attribute) and n.attr in _TAKEN for n in ast.walk(stmt.value))
        if not counted or name in known | stored | found:
            continue
        if isinstance(target, ast.Attribute):
            reads = [n for n in names.attributes(target.attr) if isinstance(n.ctx, ast.Load)]
        else:
            reads = [n for n in names.reads(target.id) if names.owner(names.scope_of[n], n.id) is names.owner(names.scope_of[stmt], target.id)]  # type: ignore[misc]
        if any(not names.is_inside(n, loop.node) for n in reads):
            found.add(name)
            yield stmt, name


def strange_meters(roles: Roles, loop: BatchLoop) -> Iterator[tuple[ast.Call, str]]:
    """Calls that give numbers of a batch to an object of another file, or in a container, that is read after the loop: ``losses.update(loss.item(), n)``."""
    for call in (n for s in loop.node.body for n in ast.walk(s) if isinstance(n, ast.Call)):
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in ("update", "add"):
            continue
        held = isinstance(func.value, ast.Subscript)  # meters["loss"], whatever it is
        base = func.value.value if isinstance(func.value, ast.Subscript) else func.value
        if not isinstance(base, ast.Name):
            continue
        made = roles.values.eval(func.value)
        foreign = held or (bool(made) and all(v.kind == "call" and v.qual and not v.qual.startswith(("torch.", "?.", "tqdm")) for v in made))
        numbers = any(isinstance(n, ast.Attribute) and n.attr == "item" for a in call.args for n in ast.walk(a))
        if foreign and numbers and read_after(roles.names, loop, base.id):
            yield call, ast.unparse(func.value)


def _factored(numbers: Numbers, node: ast.expr) -> ast.expr | None:
    """What is multiplied by a plain number."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    if numbers.plain(node.left):
        return node.right
    return node.left if numbers.plain(node.right) else None
