"""Numbers that a batch loop adds up, and everything else that is put together again once the ranks have gone through their batches.

A loop over batches may be split over the ranks, and its counters summed, only if the batches leave no other trace: no output,
no early end, no value of the last batch read later. Whatever cannot be proved leaves the loop whole.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from dpmigrate.facts import places
from dpmigrate.facts.carried import Carried, is_number
from dpmigrate.facts.executed import Executed
from dpmigrate.facts.filled import Filled, filled, is_rows, own_nodes
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.meters import Meter, meters
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.reasons import Reason, Why
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.traces import trace


@dataclass(frozen=True, eq=False, slots=True)
class Counter:
    """A name that starts as a number before the loop and only grows in it."""

    name: str
    adds: tuple[ast.expr, ...]
    read_inside: bool
    read_after: bool


@dataclass(frozen=True, eq=False, slots=True)
class Metered:
    """A meter with its sums as counters, named ``losses.sum``."""

    meter: Meter
    sums: tuple[Counter, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Counting:
    """The counters and meters of a loop, what it fills, and why it cannot be split by what it does (None if it can)."""

    counters: tuple[Counter, ...]
    meters: tuple[Metered, ...]
    filled: tuple[Filled, ...]
    carried: Carried
    obstacle: Reason | None

    @property
    def rows(self) -> list[str]:
        """The lists and arrays that hold rows, one a sample, and that are read after the loop."""
        own = [f.name for f in self.filled if f.obstacle is None and f.read_after and is_rows(self.carried, f)]
        return [*own, *(places.rows(self.carried) if self.carried.loop.trains else ())]


def counting(roles: Roles, loop: BatchLoop, executed: Executed) -> Counting:
    """What the loop adds up, and whether it does nothing else."""
    carried = Carried(roles, loop)
    counters = tuple(_counters(carried))
    metered = tuple(_metered(carried, m) for m in meters(carried))
    fills = tuple(filled(carried, executed))
    return Counting(counters, metered, fills, carried, _obstacle(carried, counters, metered, fills))


def _metered(carried: Carried, meter: Meter) -> Metered:
    own = {u.func.value for u in meter.updates if isinstance(u.func, ast.Attribute)}
    inside, after = carried.read_inside(meter.name, own), carried.read_after(meter.name)
    return Metered(meter, tuple(Counter(f"{meter.name}.{attribute}", adds, inside, after) for attribute, adds in meter.adds))


def _counters(carried: Carried) -> list[Counter]:
    out = []
    stored: dict[str, dict[ast.stmt, None]] = {}
    for n in carried.stores():
        stored.setdefault(n.id, {})[carried.names.statement(n)] = None
    for name, statements in stored.items():
        adds = [a for s in statements if (a := _addition(s, name)) is not None]
        if len(adds) == len(statements) and is_number(carried.names, carried.last_value(name)):
            own = {n for _, nodes in adds for n in nodes}
            out.append(Counter(name, tuple(a for a, _ in adds), carried.read_inside(name, own), carried.read_after(name)))
    return out


def _addition(stmt: ast.stmt, name: str) -> tuple[ast.expr, tuple[ast.Name, ...]] | None:
    """What the statement adds to the counter, and its names for the counter: ``c += x``, ``c = c + x``, ``c = x + c``."""
    if isinstance(stmt, ast.AugAssign):
        return (stmt.value, ()) if isinstance(stmt.op, ast.Add) else None
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
        v = stmt.value
        if isinstance(v, ast.BinOp) and isinstance(v.op, ast.Add):
            for old, added in ((v.left, v.right), (v.right, v.left)):
                if isinstance(old, ast.Name) and old.id == name:
                    return added, (old,)
    return None


def collected(carried: Carried) -> list[Counter]:
    """The lists that the loop appends to and that are read after it; what is added by ``extend``, or to a list of the batch's own, is not known."""
    found: dict[str, list[ast.expr]] = {}
    given: set[str] = set()
    made_anew = {n.id for n in carried.stores()}
    for n in walk(carried.loop.node):
        if not isinstance(n, ast.Call) or not isinstance(n.func, ast.Attribute) or carried.names.dotted(n.func):
            continue  # np.append(kept, x) is a function of a module
        if n.func.attr in ("append", "extend") and isinstance(n.func.value, ast.Name):
            name = n.func.value.id
            given |= {name} if _is_given(carried, n.func.value) else set()
            known = n.func.attr == "append" and len(n.args) == 1 and name not in made_anew and (name not in given or _is_list(carried, n.func.value))
            found.setdefault(name, []).append(n.args[0] if known else ast.List([], ast.Load()))
    return [Counter(name, tuple(adds), False, True) for name, adds in found.items() if carried.read_after(name) or name in given]


def _is_given(carried: Carried, name: ast.Name) -> bool:
    """Whether the variable is nothing but a parameter: the caller sees what is added."""
    bound = list(carried.names.bindings(carried.names.scope_of[name], name.id))
    return bool(bound) and all(b.how == "param" for b in bound)


def _is_list(carried: Carried, name: ast.Name) -> bool:
    """Whether every caller gives a plain list, made where it can be seen."""
    made = [e for key, _ in carried.roles.roots(name) for e in carried.roles.written(key)]
    return bool(made) and all(isinstance(e, ast.List | ast.ListComp) or (isinstance(e, ast.Call) and carried.names.dotted(e.func) == "?.list") for e in made)


# ------------------------------------------------------------------ is the loop nothing but counting?
def _obstacle(carried: Carried, counters: tuple[Counter, ...], metered: tuple[Metered, ...], fills: tuple[Filled, ...]) -> Reason | None:
    node = carried.loop.node
    known = {c.name for c in counters} | {f.name for f in fills}
    if not isinstance(node, ast.For) or carried.loop.several:
        return Reason(Why.SEVERAL_LOADERS, node)
    if not known and not metered:
        return Reason(Why.NOTHING_ADDED, node)
    for c in (*counters, *(c for m in metered for c in m.sums)):
        if c.read_inside:
            return Reason(Why.READ_INSIDE, node, c.name)
    blocked = next((f for f in fills if f.obstacle is not None), None)
    if blocked is not None and blocked.obstacle is not None:
        return Reason(blocked.obstacle, node, blocked.name)
    own = {id(u) for m in metered for u in m.meter.updates} | own_nodes(fills)
    return trace(carried.roles, carried.loop, own) or _of_last_batch(carried, known)


def _of_last_batch(carried: Carried, known: Collection[str]) -> Reason | None:
    """A variable that outlives its batch: it is read after the loop, or by the next batch."""
    node = carried.loop.node
    for name in sorted({n.id for n in carried.stores()} - set(known)):
        if carried.read_after(name):
            return Reason(Why.LAST_BATCH, node, name)
        if carried.deleted_after(name):
            return Reason(Why.DELETED, node, name)
    going_on = next((name for name in carried.going_on if name not in known), None)
    return Reason(Why.GOES_ON, node, going_on) if going_on is not None else None
