"""Totals of a training loop that are read after it: how each is put together again over the ranks, and those of which that is not known.

Plain counters, meters and lists come from ``counters``; here are the entries of a dict, averages that move from batch to batch, ratios, and all that
grows in a way that is not understood. What is not understood is told, never passed over.
"""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpmigrate.execution.placements import EQUAL, MEAN, SUM, UNIFORM
from dpmigrate.facts.additions import Holds, counted, holds, of_no_sample
from dpmigrate.facts.carried import Carried, Start
from dpmigrate.facts.counters import Counter, Counting, collected
from dpmigrate.facts.filled import Fills
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.losses import Norm, differentiated
from dpmigrate.facts.names import FunctionNode, Names, of_self, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.numbers import Numbers
from dpmigrate.facts.objects import Val
from dpmigrate.facts.places import additions, begins, read_elsewhere
from dpmigrate.facts.recorded import number_of_batch, recorded
from dpmigrate.facts.sampled import made_global
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.scaled import parts_added, share

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: what an execution says of a number, in the words of its form
_BY_PLACEMENT = {MEAN: Holds.MEAN, SUM: Holds.SUM}
_PURE = frozenset({"?.len", "?.float", "?.int", "?.max", "?.min", "?.round", "math.sqrt", "math.exp"})
#: how a number is taken out of what a batch gives
_TAKEN = frozenset({"item", "size", "shape", "sum", "numpy", "detach", "data"})
_VIEWS = frozenset({"item", "float", "double", "cpu"})


class Unclear(enum.Enum):
    """Why a total of rank 0's share stays one."""

    COUNTER = "counter"  # what it adds up is not known
    METER = "meter"  # a meter of the file that goes on, or adds up something unknown
    FOREIGN_METER = "foreign meter"  # a meter of another file, or in a container
    GROWS = "grows"  # an attribute, a global, a table
    LIST = "list"


@dataclass(frozen=True, eq=False, slots=True)
class Doubt:
    """Totals that cannot be put together again: ``of`` are those of ``names`` that are the reason; ``shares`` as in ``Totals``."""

    why: Unclear
    where: ast.AST
    names: tuple[str, ...]
    of: tuple[str, ...] = ()
    shares: tuple[ast.expr, ...] = ()


@dataclass(eq=False, slots=True)
class Totals:
    """The totals of one loop: those to be summed, those to be averaged, the statements to be run again after that, and the rest.

    ``shares``, by the names of totals: the rank's part of a sum over the batch, as of a loss, where it is added times the size of the rank's batch, so that
    what is added up would be as many times too small as there are ranks.
    """

    by_kind: dict[Holds, list[str]] = field(default_factory=dict)
    shares: dict[str, list[ast.expr]] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)
    told: list[Doubt] = field(default_factory=list)

    @property
    def sums(self) -> list[str]:
        return self.by_kind.get(Holds.SUM, [])

    @property
    def means(self) -> list[str]:
        return self.by_kind.get(Holds.MEAN, [])

    def keep(self, kind: Holds, name: str) -> None:
        self.by_kind.setdefault(kind, []).append(name)


def totals(script: Script, loop: BatchLoop) -> Totals:
    """The totals of a training loop that are read after it."""
    count = script.counting(loop)
    losses = _losses(script, loop)
    found = Totals()
    unknown = _counters(script, loop, count, losses, found)
    _meters(script, loop, count, losses, found)
    _lists(script, loop, count, losses, found)
    known = {c.name for c in count.counters} | {name for names in found.by_kind.values() for name in names} | set(unknown) | _of_all_ranks(script)
    known |= {*count.rows, *(name for doubt in found.told for name in doubt.names)}
    grown = ((place, name, script.names.parent.get(place)) for place, name in other_totals(script, count.carried, known))
    found.told += [Doubt(Unclear.GROWS, place, (name,), (), parts_added(script, loop, stmt, losses)) for place, name, stmt in grown]
    meters = {m.meter.name for m in count.meters}
    foreign = list(foreign_meters(count.carried, meters))
    foreign += recorded(count.carried, known | meters | {name for _, name in foreign})
    found.told += [Doubt(Unclear.FOREIGN_METER, place, (name,), (), parts_added(script, loop, place, losses)) for place, name in foreign]
    found.told += [Doubt(Unclear.LIST, place, (name,)) for place, name in other_lists(script, count.carried, known | set(count.rows))]
    return found


def of_rank_0(script: Script) -> frozenset[str]:
    """The totals of which the user is told that they stay those of rank 0's share."""
    return frozenset(name for loop in script.roles.train_loops for doubt in totals(script, loop).told for name in doubt.names)


def _of_all_ranks(script: Script) -> set[str]:
    """The counts that each rank makes those of all ranks while the loop runs."""
    return {script.text(one.target) for one in made_global(script)}


def _losses(script: Script, loop: BatchLoop) -> dict[str, bool]:
    """The names of the losses, each with whether it is a sum; without those that are a sum here and a mean there."""
    found: dict[str, set[bool]] = {}
    for b in script.loop_backwards(loop):
        summed, inside = script.sums(b), _sums_inside(script, b)
        for name in script.losses.names_of(b) - _counts_inside(b):
            found.setdefault(name, set()).add(summed or name in inside)
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}


def _sums_inside(script: Script, backward: ast.Call) -> set[str]:
    """The sums over the batch that a loss is made of which is none: ``(total / count).backward()``. Of a loss with
    terms that are written as sums of all ranks nothing is said.
    """
    loss = differentiated(backward)
    if isinstance(loss, ast.Name) or script.losses.sums_in(backward):
        return set()
    read = (n for n in walk(loss) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return {n.id for n in read if script.losses.norm(n).norm is Norm.SUM and not script.whole(n) and not script.of_all_samples(n)}


def _counts_inside(backward: ast.Call) -> set[str]:
    """The names by which a loss is divided, and which are no part of it."""
    loss = differentiated(backward)
    divisors = [n.right for n in walk(loss) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div | ast.FloorDiv)]
    below = [n for d in divisors for n in walk(d) if isinstance(n, ast.Name)]
    return {n.id for n in below} - {n.id for n in walk(loss) if isinstance(n, ast.Name) and n not in below}


def _counters(script: Script, loop: BatchLoop, count: Counting, losses: Mapping[str, bool], found: Totals) -> list[str]:
    """Keep the counters, moving averages and entries of which all is known; the names of the others."""
    ratios = derived(count.carried, count.counters)
    wanted = {name for r in ratios for name in r.of}
    whole = _of_all_ranks(script)
    tables = [c for c in _tables(script, loop, count) if _held(script, loop, c, losses) in (Holds.SUM, Holds.MEAN)]
    of_tables = {c.name for c in tables}
    parts = [c for c in entries(script, count.carried) if c.name.partition("[")[0] not in of_tables]
    for c in (*count.counters, *moving(script.losses.numbers, count.carried), *tables, *parts, *attributes(count.carried)):
        if (c.read_after or c.name in wanted) and c.name not in whole:
            kind = _kept(script, loop, c, losses, found)
            known_start = kind is not Holds.SUM or c not in count.counters or count.carried.from_zero(c.name)
            found.keep(kind if known_start else Holds.UNKNOWN, c.name)
    unknown = found.by_kind.pop(Holds.UNKNOWN, [])
    if unknown:  # a ratio of a reduced and an unreduced number would be wrong by a factor
        left = _tied(script, loop, unknown, [*found.sums, *found.means, *(name for r in ratios for name in (r.name, *r.of))])
        told = [name for names in (found.sums, found.means) for name in names if name in left]
        found.told.append(Doubt(Unclear.COUNTER, loop.node, (*unknown, *told), tuple(unknown), _taken_out(found, unknown)))
        found.by_kind = {kind: kept for kind, names in found.by_kind.items() if (kept := [n for n in names if n not in left])}
        ratios = [r for r in ratios if not r.of & {*left, *unknown}]
    found.again += [r.code for r in ratios if r.of & {*found.sums, *found.means}]
    return unknown


def _tables(script: Script, loop: BatchLoop, count: Counting) -> list[Counter]:
    """Tables of zeros to whose elements the loop adds, and that are read after it: ``hits[label] += 1`` for each sample. Where the batch itself chooses the
    elements (``hits[labels] += 1``) one that it names twice grows once. Entries by literals are counters of their own, but of an array.
    """
    found = []
    for f in (f for f in count.filled if f.how is Fills.TABLE and f.obstacle is None and f.read_after):
        targets = [t for t, _ in _grown(loop) if isinstance(t, ast.Subscript) and isinstance(b := _base(t), ast.Name) and b.id == f.name]
        literal = all(isinstance(t.slice, ast.Constant) for t in targets)
        if targets and not (literal and count.carried.start(f.name) is Start.NUMBERS) and not any(_by_batch(script, loop, t) for t in targets):
            found.append(Counter(f.name, f.adds, False, True))
    return found


def _by_batch(script: Script, loop: BatchLoop, target: ast.Subscript) -> bool:
    """Whether what a batch holds chooses the elements, and no sample of it in a loop over these."""
    around = itertools.takewhile(lambda a: a is not loop.node, script.names.ancestors(target))
    of_sample = any(isinstance(a, ast.For) and of_batch(script.roles, a.iter) for a in around)
    return not of_sample and of_batch(script.roles, target.slice)


def _tied(script: Script, loop: BatchLoop, unknown: Collection[str], others: Collection[str]) -> set[str]:
    """Those of the others that stay rank 0's with the unknown ones: what is computed with one of them, or handed on together with it, in some steps.

    What another function may read is taken for it: attributes, entries, variables of closures.
    """
    names = script.names
    function = names.function(loop.node)
    plain = {n for n in others if n.isidentifier() and all(names.function(u) is function for u in names.uses(names.scope_of[loop.node], n))}
    every = {_plain(n): n for n in (*unknown, *others)}
    groups = [_read(part, every) for part in _together(script, function)]
    tied = {*unknown, *(set(others) - plain)}
    while more := {name for group in groups if group & tied for name in group} - tied:
        tied |= more
    return tied - set(unknown)


def _plain(name: str) -> str:
    """The text of an expression as ``ast`` writes it: ``stats['loss']`` of ``stats["loss"]``."""
    return ast.unparse(ast.parse(name, mode="eval"))


def _read(node: ast.AST, wanted: Mapping[str, str]) -> set[str]:
    """The totals that the node reads; ``wanted`` are their names, by these as ``ast`` writes them."""
    found = (n for n in walk(node) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Load))
    return {wanted[text] for n in found if (text := ast.unparse(n)) in wanted}


def _together(script: Script, function: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function of which each makes something of all that it reads: statements; of one that only shows values, each computation in it."""
    for node in walk(function):
        if not isinstance(node, ast.stmt) or script.names.function(node) is not function:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not any(True for _ in script.values.targets(node.value)):
            yield from (n for n in walk(node) if isinstance(n, ast.BinOp | ast.Compare))
            yield from (n for n in walk(node) if isinstance(n, ast.Call) and any(True for _ in script.values.targets(n)))
        elif isinstance(node, ast.If | ast.While):
            yield node.test
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield node.iter
        elif not isinstance(node, FunctionNode | ast.ClassDef | ast.With | ast.AsyncWith | ast.Try | ast.Match):
            yield node


def _meters(script: Script, loop: BatchLoop, count: Counting, losses: Mapping[str, bool], found: Totals) -> None:
    for m in count.meters:
        kinds = [(c, _kept(script, loop, c, losses, found)) for c in m.sums if c.read_after]
        parts = [e for c in m.sums for e in found.shares.get(c.name, ())]
        others = {n for c in m.sums if c.name not in found.shares for a in c.adds for n in walk(a)}
        if any(k is Holds.UNKNOWN or (k is Holds.SUM and not m.meter.from_zero) for _, k in kinds) or others.intersection(parts):
            found.told.append(Doubt(Unclear.METER, loop.node, (m.meter.name,), (), _taken_out(found, [c.name for c in m.sums])))
            continue
        for c, k in kinds:
            if k is not Holds.STEP:
                found.keep(k, c.name)
                found.again += [d for d in m.meter.derived if d not in found.again]


def _lists(script: Script, loop: BatchLoop, count: Counting, losses: Mapping[str, bool], found: Totals) -> None:
    """Lists with an element for each batch; those of rows are gathered."""
    for c in (*collected(count.carried), *lists_in_places(count.carried)):
        if c.name in count.rows:
            continue
        kind = _kept(script, loop, c, losses, found)
        if kind is Holds.MEAN or (kind is Holds.SUM and (not c.name.isidentifier() or count.carried.from_zero(c.name))):
            found.keep(kind, c.name)
        elif kind is not Holds.STEP and not _alike(script, c):
            found.told.append(Doubt(Unclear.LIST, loop.node, (c.name,), (), _taken_out(found, [c.name])))


def _held(script: Script, loop: BatchLoop, c: Counter, losses: Mapping[str, bool]) -> Holds:
    """What the additions are by their form, or else by how an execution says that they lie: an accuracy that a function works out."""
    kind = holds(script.roles, loop, c, losses)
    if kind is not Holds.UNKNOWN:
        return kind
    lies = script.executed.lying(script.made_whole)
    found = [lies(added) for added in c.adds]
    placed = {one.placement if one.single else None for of in found for one in of}
    if script.made_whole and all(found) and placed == {UNIFORM}:
        return Holds.STEP  # of a loss that all ranks make of the samples of all
    if script.settings.batch != "per-rank" and _alike(script, c) and all(counted(script.roles, loop, added) is Holds.STEP for added in c.adds):
        return Holds.STEP  # the batch size of the settings, in each of as many steps as there were
    return next((kind for p, kind in _BY_PLACEMENT.items() if all(found) and placed == {p}), Holds.UNKNOWN)


def _kept(script: Script, loop: BatchLoop, c: Counter, losses: Mapping[str, bool], found: Totals) -> Holds:
    """What the additions are, where the ranks' parts of a sum that are added times the size of a batch are made those of the whole; in a loop that
    evaluates as well, on all samples, not all of them are parts.
    """
    shares = [share(script, loop, added, losses) for added in c.adds]
    parts = [s for s in shares if s is not None]
    if not parts:
        return _held(script, loop, c, losses)
    found.shares[c.name] = parts
    return Holds.UNKNOWN if loop.branches or len(parts) < len(shares) else Holds.SUM


def _taken_out(found: Totals, names: Collection[str]) -> tuple[ast.expr, ...]:
    """The parts that are added to totals which stay as they are."""
    return tuple(part for name in names for part in found.shares.pop(name, ()))


def _alike(script: Script, c: Counter) -> bool:
    """Whether an execution says of all that a list gets that it is the same on all ranks: learning rates, the steps so far."""
    lies = script.executed.lying(())
    found = [lies(added) for added in c.adds]
    return bool(found) and all(of and all(one.single and one.placement.kind in EQUAL for one in of) for of in found)


# ------------------------------------------------------------------ totals beside plain counters
@dataclass(frozen=True, eq=False, slots=True)
class Derived:
    """A name that is read after the loop, the statement that computes it, and the counters that it is made of."""

    name: str
    code: str
    of: frozenset[str]


def derived(carried: Carried, counters: Sequence[Counter]) -> list[Derived]:
    """``accuracy = correct / total`` in the loop, read after it: to be computed again once the counters are reduced. One that is computed before a
    counter's last change is that of the turn before, which no counter tells any more.
    """
    known = {c.name for c in counters}
    last = {n.id: position(n) for n in sorted(carried.stores(), key=position)}
    stored = [n.id for n in carried.stores()]
    out = []
    for stmt in carried.loop.node.body:
        if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], ast.Name):
            continue
        name = stmt.targets[0].id
        read = {n.id for n in walk(stmt.value) if isinstance(n, ast.Name)}
        used = read & known
        alone = stored.count(name) == 1 and name not in known and not (read - known) & set(stored)
        whole = all(last.get(counter, (0, 0)) < position(stmt) for counter in used)
        if used and alone and whole and _pure(carried.names, stmt.value) and carried.read_after(name):
            out.append(Derived(name, ast.unparse(stmt), frozenset(used)))
    return out


def _pure(names: Names, node: ast.expr) -> bool:
    calls = [n for n in walk(node) if isinstance(n, ast.Call)]
    return all(names.dotted(c.func) in _PURE or (isinstance(c.func, ast.Attribute) and c.func.attr in _VIEWS and not c.args) for c in calls)


def moving(numbers: Numbers, carried: Carried) -> Iterator[Counter]:
    """Moving averages that are read after the loop, with what a batch gives to them: ``ema = 0.9 * ema + 0.1 * loss.item()``.

    They are linear in what is added, so the mean over the ranks is what one process would have.
    """
    for stmt in _turn(carried.loop):
        if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], ast.Name):
            continue
        name, value = stmt.targets[0].id, _after_the_first(stmt)
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and carried.read_after(name):
            parts = [_factored(numbers, p) for p in (value.left, value.right)]
            added = [p for p in parts if p is not None and not (isinstance(p, ast.Name) and p.id == name)]
            if len(added) == 1 and None not in parts:
                yield Counter(name, (added[0],), True, True)


def _after_the_first(stmt: ast.Assign) -> ast.expr:
    """What a turn gives a variable, also one that is None at first: ``loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()``."""
    value = stmt.value
    if not isinstance(value, ast.IfExp) or not isinstance(value.test, ast.Compare) or len(value.test.ops) != 1:
        return value
    name, parts = ast.unparse(stmt.targets[0]), (value.body, value.orelse)
    if ast.unparse(value.test) not in (f"{name} is None", f"{name} is not None"):
        return value
    first, others = parts if isinstance(value.test.ops[0], ast.Is) else parts[::-1]
    return others if any(ast.unparse(first) == ast.unparse(n) for n in walk(others) if isinstance(n, ast.expr)) else value


def _factored(numbers: Numbers, node: ast.expr) -> ast.expr | None:
    """What is multiplied by a plain number."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    if numbers.plain(node.left):
        return node.right
    return node.left if numbers.plain(node.right) else None


def entries(script: Script, carried: Carried) -> list[Counter]:
    """Entries of a dict that are added up and whose dict is read after the loop: ``stats["loss"] += loss.item()``.

    They are named as they are written. Where an entry is not seen to be 0 when the loop begins, nothing is said of what is added.
    """
    found: dict[str, tuple[ast.Subscript, list[ast.expr]]] = {}
    for target, added in _grown(carried.loop):
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and isinstance(target.slice, ast.Constant):
            if carried.read_after(target.value.id):
                found.setdefault(script.text(target), (target, []))[1].append(added)
    from_zero = {name for name, (target, _) in found.items() if carried.entry_from_zero(target) or begins(carried, target) is Start.ZERO}
    return [Counter(name, tuple(adds) if name in from_zero else (), True, True) for name, (_, adds) in found.items()]


def attributes(carried: Carried) -> list[Counter]:
    """Attributes that are 0 whenever the loop begins, that it adds to and that are read elsewhere: ``self.total += loss.item()``."""
    found = {ast.unparse(t): t for t, _ in _grown(carried.loop) if isinstance(t, ast.Attribute)}
    adds = {name: additions(carried, t) for name, t in found.items() if begins(carried, t) in (Start.ZERO, Start.ZEROS) and read_elsewhere(carried, t)}
    return [Counter(name, tuple(added), True, True) for name, added in adds.items() if added]


# ------------------------------------------------------------------ what is not understood
def other_totals(script: Script, carried: Carried, known: set[str]) -> Iterator[tuple[ast.expr, str]]:
    """Other variables, attributes and tables that grow by a number of each batch and are read elsewhere: ``self.total += loss.item()``, ``hits[k] += 1``."""
    found: set[str] = set(known)
    for target, added in _grown(carried.loop):
        base = _base(target)
        by_entry = isinstance(target, ast.Subscript | ast.Attribute)
        name = script.text(target)
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            name = script.text(base)  # a table
        if {name, script.text(base)} & found or _made_anew(carried, base):
            continue
        if not (_taken(added) or _chosen(carried, target) or (by_entry and _made_of(carried, added))):
            continue
        if read_elsewhere(carried, base):
            found.add(name)
            yield target, name
    for target, value in _given(carried.loop):  # best = max(best, loss.item())
        if isinstance(target, ast.Name) and target.id in carried.going_on and _taken(value) and target.id not in found and carried.read_after(target.id):
            if of_no_sample(script.roles, carried.loop, value):
                continue
            found.add(target.id)
            yield target, target.id


def lists_in_places(carried: Carried) -> list[Counter]:
    """Lists in attributes and entries that are empty whenever the loop begins and that it appends to, and does nothing else with."""
    found: dict[str, tuple[ast.expr, list[ast.expr]]] = {}
    for n in (n for n in _turn(carried.loop) if isinstance(n, ast.Attribute | ast.Subscript)):
        method = carried.names.parent[n]
        call = carried.names.parent.get(method)
        added = call.args[0] if isinstance(method, ast.Attribute) and method.attr == "append" and isinstance(call, ast.Call) and len(call.args) == 1 else None
        found.setdefault(ast.unparse(n), (n, []))[1].append(added or ast.List([], ast.Load()))
    lists = {name: (place, adds) for name, (place, adds) in found.items() if not any(isinstance(a, ast.List) for a in adds)}
    begun = (name for name, (place, _) in lists.items() if begins(carried, place) is Start.LIST and read_elsewhere(carried, place))
    return [Counter(name, tuple(lists[name][1]), False, True) for name in begun]


def other_lists(script: Script, carried: Carried, known: Collection[str]) -> Iterator[tuple[ast.Call, str]]:
    """Lists of an object or a container that are given a number of each batch and are read elsewhere: ``self.losses.append(loss.item())``."""
    found: set[str] = set()
    for call in (n for n in _turn(carried.loop) if isinstance(n, ast.Call)):
        func = call.func
        holder = _with_default(func.value) if isinstance(func, ast.Attribute) and func.attr in ("append", "extend") else None
        if not isinstance(func, ast.Attribute) or holder is None:
            continue
        base, name = _base(holder), script.text(holder)
        if (
            name not in found
            and not {name, script.text(base)} & {*known}
            and any(map(_taken, call.args))
            and not _made_anew(carried, base)
            and read_elsewhere(carried, base)
        ):
            found.add(name)
            yield call, name


def _with_default(node: ast.expr) -> ast.expr | None:
    """The list of an object or a container: ``self.losses``, ``history["loss"]``; the container of ``history.setdefault("loss", [])``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        return node.func.value
    return node if isinstance(node, ast.Attribute | ast.Subscript) else None


def foreign_meters(carried: Carried, known: Collection[str]) -> Iterator[tuple[ast.Call, str]]:
    """Calls that give numbers of a batch to an object that is read after the loop, of a class that is not seen or not ``known`` for a meter, or in a container.

    ``losses.update(loss.item(), n)``, ``self.metrics.update("loss", loss.item())``.
    """
    for call in (n for n in _turn(carried.loop) if isinstance(n, ast.Call)):
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in ("update", "add"):
            continue
        held = isinstance(func.value, ast.Subscript)  # meters["loss"], whatever it is
        base = func.value.value if isinstance(func.value, ast.Subscript) else func.value
        if not isinstance(base, ast.Name) and not (isinstance(base, ast.Attribute) and of_self(base)):
            continue
        made = carried.roles.values.eval(func.value)
        unseen = bool(made) and all(v.kind == "call" and v.qual and not v.qual.startswith(("torch.", "?.", "tqdm")) for v in made)
        unclear = held or unseen or (ast.unparse(func.value) not in known and any(_keeps(carried, v, func.attr) for v in made))
        numbers = any(number_of_batch(carried, a) for a in call.args)
        if unclear and numbers and (carried.read_after(base.id) if isinstance(base, ast.Name) else _asked_elsewhere(carried, base)):
            yield call, ast.unparse(func.value)


def _keeps(carried: Carried, made: Val, name: str) -> bool:
    """Whether a method of a class of this program changes what its object holds: ``self.total += x``, ``self.rows[key] = x``, ``self.rows.append(x)``."""
    method = carried.roles.values.defs.method(made.cls, name) if made.kind == "object" and made.cls is not None else None
    changed = (n for n in walk(method) if isinstance(n, ast.Attribute | ast.Subscript)) if method is not None else ()
    return any(not isinstance(n.ctx, ast.Load) or (isinstance(n, ast.Attribute) and n.attr in ("append", "extend", "update", "add")) for n in changed)


def _asked_elsewhere(carried: Carried, attribute: ast.Attribute) -> bool:
    """Whether anybody outside of the loop asks the object for something, more than to begin anew."""
    names = carried.names
    reads = (a for a in names.attributes(attribute.attr) if isinstance(a.ctx, ast.Load) and not names.is_inside(a, carried.loop.node))
    above = ((a, names.parent[a]) for a in reads)
    return any(not (isinstance(p, ast.Attribute) and p.value is a and p.attr in ("reset", "update", "add")) for a, p in above)


def _turn(loop: BatchLoop) -> Iterator[ast.AST]:
    """Every node of a turn."""
    return (s for b in loop.node.body for s in walk(b))


def _grown(loop: BatchLoop) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What ``+=`` adds to, with what is added; of entries and attributes also ``a[k] = a[k] + x``."""
    for s in _turn(loop):
        if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add):
            yield s.target, s.value
        elif isinstance(s, ast.Assign) and isinstance(s.value, ast.BinOp) and isinstance(s.value.op, ast.Add):
            sides = (s.value.left, s.value.right)
            for target in (t for t in s.targets if isinstance(t, ast.Subscript | ast.Attribute)):
                yield from ((target, added) for old, added in (sides, sides[::-1]) if ast.unparse(old) == ast.unparse(target))


def _given(loop: BatchLoop) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is given another value, with that value."""
    for s in _turn(loop):
        if isinstance(s, ast.Assign | ast.AugAssign):
            yield from ((t, s.value) for t in (s.targets if isinstance(s, ast.Assign) else [s.target]))


def _base(node: ast.expr) -> ast.expr:
    """The variable or attribute that holds the entry: ``stats`` of ``stats["loss"][0]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _taken(added: ast.expr) -> bool:
    """Whether what is added is, as it looks, a number of the batch."""
    return isinstance(added, ast.Name) or any(isinstance(n, ast.Attribute) and n.attr in _TAKEN for n in walk(added))


def _made_of(carried: Carried, added: ast.expr) -> bool:
    """Whether what is added is made of the batch, also as a table that the turn fills from it: ``cost[0] = loss.item()``, ``avg[k] += cost / n``."""
    read = {n.id for n in walk(added) if isinstance(n, ast.Name)}
    filled = (v for t, v in _given(carried.loop) if isinstance(t, ast.Subscript) and isinstance(b := _base(t), ast.Name) and b.id in read)
    return of_batch(carried.roles, added) or any(_taken(v) or of_batch(carried.roles, v) for v in filled)


def _chosen(carried: Carried, target: ast.expr) -> bool:
    """Whether the batch decides which entry grows."""
    stored = {n.id for n in carried.stores()}
    return isinstance(target, ast.Subscript) and any(isinstance(n, ast.Name) and n.id in stored for n in walk(target.slice))


def _made_anew(carried: Carried, base: ast.expr) -> bool:
    """Whether the variable, or the object of the attribute, is made in the turn itself."""
    assigned = (t for s in _turn(carried.loop) if isinstance(s, ast.Assign) for t in s.targets)
    stored = {n.id for t in assigned for n in walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    return isinstance(base, ast.Name) and base.id in stored
