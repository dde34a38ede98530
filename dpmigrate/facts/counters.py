"""Numbers that a batch loop adds up: which names, what they hold, whether the loop does nothing else.

A loop over batches may be split over the ranks, and its counters summed, only if the batches leave no other trace: no output,
no early end, no value of the last batch read later. Whatever cannot be proved leaves the loop whole.
"""

from __future__ import annotations

import ast
import builtins
import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from dpmigrate.facts.filled import Filled, certainly_before, filled, own_nodes
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.meters import Meter, meters
from dpmigrate.facts.names import FunctionNode, Loop, Names, position
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.values import Val


class Holds(enum.Enum):
    """What one addition to a counter is, over a batch."""

    SUM = "sum"  # grows with the samples: counts, sums of losses
    MEAN = "mean"  # an average over the batch
    STEP = "step"  # a constant per batch
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False, slots=True)
class Counter:
    """A name that starts as a number before the loop and only grows in it."""

    name: str
    adds: tuple[ast.expr, ...]
    read_inside: bool
    read_after: bool


@dataclass(frozen=True, eq=False, slots=True)
class Counting:
    """The counters and meters of a loop, what it fills, and why it cannot be split (``''`` if it can)."""

    counters: tuple[Counter, ...]
    meters: tuple[Metered, ...]
    filled: tuple[Filled, ...]
    obstacle: str
    where: ast.AST


@dataclass(frozen=True, eq=False, slots=True)
class Metered:
    """A meter with its sums as counters, named ``losses.sum``."""

    meter: Meter
    sums: tuple[Counter, ...]


_NUMBERS = frozenset({"torch.zeros", "torch.tensor", "numpy.zeros"})
_PURE_BUILTINS = frozenset({"len", "int", "float", "range", "zip", "sum", "max", "min", "abs", "isinstance", "tuple", "list", "bool", "round", "enumerate"})
_PURE_MODULES = ("torch.", "math.", "numpy.", "torch.nn.functional.", "sklearn.metrics.")
_IMPURE = frozenset({"torch.save", "numpy.save", "numpy.savetxt", "torch.manual_seed", "torch.autograd.backward"})
_IMPURE_METHODS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "update",
        "add",
        "write",
        "writelines",
        "log",
        "info",
        "debug",
        "warning",
        "error",
        "display",
        "set_postfix",
        "set_description",
        "add_scalar",
        "add_image",
        "print",
        "step",
        "backward",
        "reset",
        "close",
        "flush",
        "setdefault",
        "pop",
        "remove",
        "clear",
        "save",
        "put",
        "send",
        "set_postfix_str",
        "compute",
    ]
)
#: what makes a loop go over more or fewer batches than the loader has
_OTHER_BATCHES = frozenset({"islice", "cycle"})
#: what is measured on one rank means that rank
_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.process_time", "timeit.default_timer"})
#: methods that are called for what they do, and do the same in every batch
_SETTINGS = frozenset({"eval", "train", "zero_grad", "to", "cuda", "cpu", "float", "double", "half", "requires_grad_"})


def counting(roles: Roles, loop: BatchLoop) -> Counting:
    """The counters of the loop and whether it is nothing but counting."""
    names = roles.names
    counters = tuple(_counters(names, loop))
    metered = tuple(_metered(names, loop, m) for m in meters(roles, loop))
    fills = tuple(filled(roles, loop))
    obstacle, where = _obstacle(roles, loop, counters, metered, fills)
    return Counting(counters, metered, fills, obstacle, where)


def _metered(names: Names, loop: BatchLoop, meter: Meter) -> Metered:
    reads = _reads(names, loop, meter.name, list(meter.updates))
    return Metered(meter, tuple(Counter(f"{meter.name}.{attribute}", adds, *reads) for attribute, adds in meter.adds))


def _counters(names: Names, loop: BatchLoop) -> list[Counter]:
    out = []
    stored: dict[str, list[ast.stmt]] = {}
    for n in ast.walk(loop.node):
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            stored.setdefault(n.target.id, []).append(n)
        elif isinstance(n, ast.Assign):
            for t in n.targets:
                for leaf in ast.walk(t):
                    if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store):
                        stored.setdefault(leaf.id, []).append(n)
    for name, statements in stored.items():
        adds = [_addition(s, name) for s in statements]
        if all(a is not None for a in adds) and _starts_as_number(names, loop, name):
            inside, after = _reads(names, loop, name, statements)
            out.append(Counter(name, tuple(a for a in adds if a is not None), inside, after))
    return out


def _addition(stmt: ast.stmt, name: str) -> ast.expr | None:
    """What the statement adds to the counter: ``c += x``, ``c = c + x``, ``c = x + c``."""
    if isinstance(stmt, ast.AugAssign):
        return stmt.value if isinstance(stmt.op, ast.Add) else None
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
        v = stmt.value
        if isinstance(v, ast.BinOp) and isinstance(v.op, ast.Add):
            if isinstance(v.left, ast.Name) and v.left.id == name:
                return v.right
            if isinstance(v.right, ast.Name) and v.right.id == name:
                return v.left
    return None


def _starts_as_number(names: Names, loop: BatchLoop, name: str) -> bool:
    """Whether the last value before the loop, in its own function, is a number or a tensor of zeros."""
    function = names.function(loop.node)
    start: ast.expr | None = None
    for n in ast.walk(function):
        if isinstance(n, ast.Assign | ast.AnnAssign) and n.value is not None and n.lineno < loop.node.lineno and names.function(n) is function:
            for t in n.targets if isinstance(n, ast.Assign) else [n.target]:
                pairs = zip(t.elts, n.value.elts, strict=False) if isinstance(t, ast.Tuple) and isinstance(n.value, ast.Tuple) else [(t, n.value)]
                for target, value in pairs:
                    if isinstance(target, ast.Name) and target.id == name:
                        start = value
    if isinstance(start, ast.Constant):
        return isinstance(start.value, int | float) and not isinstance(start.value, bool)
    return isinstance(start, ast.Call) and names.dotted(start.func) in _NUMBERS


def _reads(names: Names, loop: BatchLoop, name: str, own: Sequence[ast.AST]) -> tuple[bool, bool]:
    function = names.function(loop.node)
    mine = {id(n) for s in own for n in ast.walk(s)}
    inside = after = False
    end = loop.node.end_lineno or loop.node.lineno
    for n in ast.walk(function):
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and id(n) not in mine:
            if names.is_inside(n, loop.node):
                inside = True
            elif n.lineno > end or names.function(n) is not function or _in_the_next_turn(names, loop, n):
                after = True
    return inside, after


def _in_the_next_turn(names: Names, loop: BatchLoop, read: ast.Name) -> bool:
    """Whether a read above the loop sees what the loop left the last time: both stand in one loop, which stores nothing before the read."""
    outer = next((a for a in names.ancestors(loop.node) if isinstance(a, Loop | FunctionNode)), None)
    if not isinstance(outer, Loop) or not names.is_inside(read, outer):
        return False
    if names.owner(names.scope_of[read], read.id) is not names.owner(names.scope_of[loop.node], read.id):
        return False  # a comprehension's own
    stores = [n for n in ast.walk(outer) if isinstance(n, ast.Name) and n.id == read.id and isinstance(n.ctx, ast.Store)]
    return not any(position(s) < position(read) for s in stores)


def read_after(names: Names, loop: BatchLoop, name: str) -> bool:
    """Whether the variable is read once the loop has ended, also by another function."""
    return _reads(names, loop, name, [])[1]


def collected(names: Names, loop: BatchLoop) -> list[Counter]:
    """The lists that the loop appends to and that are read after it; what is added by ``extend`` is not known."""
    found: dict[str, list[ast.expr]] = {}
    for n in ast.walk(loop.node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("append", "extend") and isinstance(n.func.value, ast.Name):
            known = n.func.attr == "append" and len(n.args) == 1
            found.setdefault(n.func.value.id, []).append(n.args[0] if known else ast.List([], ast.Load()))
    return [Counter(name, tuple(adds), *reads) for name, adds in found.items() if (reads := _reads(names, loop, name, []))[1]]


# ------------------------------------------------------------------ is the loop nothing but counting?
def _obstacle(roles: Roles, loop: BatchLoop, counters: tuple[Counter, ...], metered: tuple[Metered, ...], fills: tuple[Filled, ...]) -> tuple[str, ast.AST]:
    names = roles.names
    known = {c.name for c in counters} | {f.name for f in fills}
    own = {id(u) for m in metered for u in m.meter.updates} | own_nodes(fills)
    if not isinstance(loop.node, ast.For) or loop.several:
        return "its batches come from several loaders or from next()", loop.node
    if not known and not metered:
        return "nothing is added up or collected in variables of its own", loop.node
    for c in (*counters, *(c for m in metered for c in m.sums)):
        if c.read_inside:
            return f"{c.name} is read while the loop runs", loop.node
    for f in fills:
        if f.obstacle:
            return f.obstacle, loop.node
    makers = {ast.unparse(c.func).rpartition(".")[2]: c for c in _round_loader(names, loop)}
    for name in sorted(_OTHER_BATCHES & makers.keys()):
        return f"{name}() gives other batches than the loader", makers[name]
    index = _index(loop.node.target) if "enumerate" in makers else ""
    stored: set[str] = set()
    for n in (x for s in loop.node.body for x in ast.walk(s)):
        if isinstance(n, ast.Break | ast.Return | ast.Yield | ast.YieldFrom | ast.Raise | ast.Global | ast.Delete):
            return f"the loop has a {type(n).__name__.lower()}", n
        if isinstance(n, ast.While | ast.AsyncFor | ast.AsyncWith | ast.Try | ast.Match | FunctionNode | ast.ClassDef):
            return f"the loop holds a {type(n).__name__.lower()} statement", n
        if isinstance(n, ast.Name) and n.id == index and isinstance(n.ctx, ast.Load):
            return f"the number of the batch ({index}) is used", n
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            stored.add(n.id)
        if isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Store) and id(n) not in own:
            return f"{ast.unparse(n)} is changed in the loop", n
        if isinstance(n, ast.Call) and id(n) not in own:
            why = _impure(roles, n)
            if why:
                return why, n
    stored |= {t.id for t in ast.walk(loop.node.target) if isinstance(t, ast.Name)}
    for name in sorted(stored - known):
        if _reads(names, loop, name, [])[1] and not _set_again(names, loop, name):
            return f"{name} of the last batch is read after the loop", loop.node
    carried = _carried(names, loop, known)
    return f"{carried} goes on from one batch to the next" if carried else "", loop.node


def _carried(names: Names, loop: BatchLoop, known: set[str]) -> str:
    """A variable that a batch may read as the batch before has left it; '' if there is none."""
    scope = names.scope_of[loop.node]
    stored = {n.id for s in loop.node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and names.scope_of[n] is scope}
    given = {n.id for n in ast.walk(loop.node.target) if isinstance(n, ast.Name)} if isinstance(loop.node, ast.For) else set()
    early = (n for n in _early_reads(names, loop.node.body, given) if names.owner(names.scope_of[n], n.id) is names.owner(scope, n.id))
    return next((n.id for n in early if n.id in stored - known), "")


def _early_reads(names: Names, block: list[ast.stmt], given: set[str]) -> Iterator[ast.Name]:
    """The names that the statements may read before they store them; ``given`` grows by what is stored for certain."""
    for s in block:
        heads: list[ast.AST] = [s.test] if isinstance(s, ast.If) else [s.iter] if isinstance(s, ast.For) else [*s.items] if isinstance(s, ast.With) else [s]
        found = [n for h in heads for n in ast.walk(h) if isinstance(n, ast.Name)]
        yield from (n for n in found if n.id not in given and (isinstance(n.ctx, ast.Load) or isinstance(names.parent[n], ast.AugAssign)))
        given |= {n.id for n in found if isinstance(n.ctx, ast.Store) and names.scope_of[n] is names.scope_of[s]}
        if isinstance(s, ast.If):
            one, other = set(given), set(given)
            yield from _early_reads(names, s.body, one)
            yield from _early_reads(names, s.orelse, other)
            given |= one & other
        elif isinstance(s, ast.For):
            inner = given | {n.id for n in ast.walk(s.target) if isinstance(n, ast.Name)}
            yield from _early_reads(names, [*s.body, *s.orelse], inner)
        elif isinstance(s, ast.With):
            yield from _early_reads(names, s.body, given)


def _round_loader(names: Names, loop: BatchLoop) -> Iterator[ast.Call]:
    """The calls through which the batches go: ``tqdm(enumerate(loader))``."""
    named = takewhile(lambda a: not isinstance(a, ast.stmt), names.ancestors(loop.source))
    yield from (n for n in (*ast.walk(loop.over), *named) if isinstance(n, ast.Call))


def _index(target: ast.expr) -> str:
    """The name that an enumeration gives the number of the batch, by itself or as part of a pair."""
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    return first.id if isinstance(first, ast.Name) else ""


def _set_again(names: Names, loop: BatchLoop, name: str) -> bool:
    """Whether every later read in the function sees a later value: a statement before it, in its block or in one round it, stores it."""
    end = loop.node.end_lineno or 0
    later = [n for n in ast.walk(names.function(loop.node)) if isinstance(n, ast.Name) and n.id == name and n.lineno > end]
    stores = [names.statement(n) for n in later if isinstance(n.ctx, ast.Store) and not isinstance(names.parent[n], ast.AugAssign)]
    return bool(stores) and all(any(_comes_first(names, s, n) for s in stores) for n in later if isinstance(n.ctx, ast.Load))


def _comes_first(names: Names, stmt: ast.stmt, node: ast.AST) -> bool:
    """Whether the statement has certainly run when the node is evaluated."""
    if isinstance(stmt, ast.For):
        return any(names.is_inside(node, s) for s in stmt.body)
    return certainly_before(names, stmt, node)


def _impure(roles: Roles, call: ast.Call) -> str:
    """Why the call may leave a trace; '' if it cannot."""
    names, func = roles.names, call.func
    text = ast.unparse(func)
    if roles.model_vals(func):
        return ""
    dotted = names.dotted(func)
    if dotted in _IMPURE or text == "print":
        return f"{text}() has an effect in every batch"
    if dotted.startswith(_PURE_MODULES) or (dotted.startswith("?.") and dotted[2:] in _PURE_BUILTINS):
        return ""
    functions = [f for f, _ in roles.values.targets(call)]
    if functions:
        return f"{text}() may have an effect in every batch" if any(_leaves_trace(roles, f, set()) for f in functions) else ""
    vals = roles.values.eval(func)
    if isinstance(func, ast.Attribute):
        receiver = roles.values.eval(func.value)
        if _may_change(roles, call, func) or any(v.kind == "ext" for v in receiver):
            return f"{text}() may have an effect in every batch"
        return ""
    if any(v.kind == "call" and v.qual.startswith("torch.nn.") for v in vals):
        return ""
    return f"what {text}() does is not known"


def _leaves_trace(roles: Roles, function: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether the function, or one that it calls, prints, writes, or changes anything but what it has made itself."""
    if function in seen:
        return False
    seen.add(function)
    own = {name for name, bound in roles.names.opened[function].bindings.items() if all(b.how in ("assign", "aug") for b in bound)}
    for n in ast.walk(function):
        if isinstance(n, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Store) and not _is_one_of(n.value, own):
            return True
        if isinstance(n, ast.Call):
            if roles.names.dotted(n.func) in _IMPURE or (isinstance(n.func, ast.Name) and n.func.id in ("print", "open")):
                return True
            if isinstance(n.func, ast.Attribute) and _may_change(roles, n, n.func) and not _is_one_of(n.func.value, own):
                return True
            if any(_leaves_trace(roles, f, seen) for f, _ in roles.values.targets(n)):
                return True
    return False


def _is_one_of(node: ast.expr, own: set[str]) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id in own


def _may_change(roles: Roles, call: ast.Call, func: ast.Attribute) -> bool:
    """Whether a method call may change its object, or tell the world: nobody takes its value, its name says so, or its object is of a foreign kind.

    ``x.log()`` and ``x.add(y)`` of tensors give a value.
    """
    if roles.names.dotted(func).startswith(_PURE_MODULES):
        return False
    if isinstance(roles.names.parent[call], ast.Expr):
        return func.attr not in _SETTINGS
    return func.attr in _IMPURE_METHODS - {"log", "add"} or any(_foreign(v) for v in roles.values.eval(func.value))


def _foreign(v: Val) -> bool:
    """Whether the object is made by code of another file or library that may keep what it is given, as a metric does."""
    return v.kind == "call" and bool(v.qual) and not v.qual.startswith(_PURE_MODULES) and not hasattr(builtins, v.qual.removeprefix("?."))


# ------------------------------------------------------------------ what an addition is
def holds(roles: Roles, loop: BatchLoop, counter: Counter, losses: Mapping[str, bool]) -> Holds:
    """What the additions to the counter are: all of one kind, or unknown. ``losses`` are the names of losses, each with whether it is a sum."""
    kinds = {_addition_kind(roles, loop, a, losses, 4) for a in counter.adds}
    return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN


def _addition_kind(roles: Roles, loop: BatchLoop, node: ast.expr, losses: Mapping[str, bool], depth: int) -> Holds:
    if isinstance(node, ast.Constant):
        return Holds.STEP
    if isinstance(node, ast.Name):
        if node.id in losses:
            return Holds.SUM if losses[node.id] else Holds.MEAN
        return _through_name(roles, loop, node, losses, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        kinds = {_addition_kind(roles, loop, n, losses, depth) for n in (node.left, node.right)}
        if Holds.SUM in kinds and len(kinds) == 2:
            return Holds.SUM  # a batch mean times the batch's size, a count times a weight
        return Holds.MEAN if kinds == {Holds.MEAN, Holds.STEP} else Holds.UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        kinds = {_addition_kind(roles, loop, n, losses, depth) for n in (node.left, node.right)}
        return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _addition_kind(roles, loop, node.left, losses, depth) if isinstance(node.right, ast.Constant) else Holds.UNKNOWN
    if isinstance(node, ast.Subscript):
        base = ast.unparse(node.value)
        if base.endswith((".shape", ".size()")):
            return Holds.SUM if ast.unparse(node.slice) == "0" else Holds.UNKNOWN
        return _addition_kind(roles, loop, node.value, losses, depth) if base.endswith(".data") else Holds.UNKNOWN
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return _addition_kind(roles, loop, node.value, losses, depth)
    if isinstance(node, ast.Call):
        return _call_kind(roles, loop, node, losses, depth)
    return Holds.UNKNOWN


def _call_kind(roles: Roles, loop: BatchLoop, node: ast.Call, losses: Mapping[str, bool], depth: int) -> Holds:
    func = node.func
    dotted = roles.names.dotted(func)
    if isinstance(func, ast.Attribute):
        if func.attr in ("sum", "count_nonzero") or (func.attr == "size" and len(node.args) == 1 and ast.unparse(node.args[0]) == "0"):
            return Holds.SUM
        if func.attr == "mean":
            return Holds.MEAN
        if func.attr in ("item", "detach", "cpu", "clone", "float", "double", "numpy", "long", "int"):
            return _addition_kind(roles, loop, func.value, losses, depth)
    if dotted in ("torch.sum", "?.len", "numpy.sum", "?.sum"):
        return Holds.SUM
    if dotted == "torch.mean":
        return Holds.MEAN
    if dotted in _CLOCKS:
        return Holds.STEP
    if dotted in ("?.float", "?.int") and node.args:
        return _addition_kind(roles, loop, node.args[0], losses, depth)
    return _through_function(roles, loop, node, losses, depth)


def _through_function(roles: Roles, loop: BatchLoop, node: ast.Call, losses: Mapping[str, bool], depth: int) -> Holds:
    """What a function of this file gives back: ``losses.append(train_step(batch))``."""
    functions = [f for f, _ in roles.values.targets(node)] if depth else []
    given = [r.value for f in functions for r in ast.walk(f) if isinstance(r, ast.Return) and roles.names.function(r) is f]
    kinds = {_addition_kind(roles, loop, v, losses, depth - 1) if v is not None else Holds.UNKNOWN for v in given}
    return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN


def _through_name(roles: Roles, loop: BatchLoop, node: ast.Name, losses: Mapping[str, bool], depth: int) -> Holds:
    if depth == 0:
        return Holds.UNKNOWN
    values = [n.value for n in ast.walk(loop.node) if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in n.targets)]
    kinds = {_addition_kind(roles, loop, v, losses, depth - 1) for v in values}
    return kinds.pop() if len(kinds) == 1 else Holds.UNKNOWN
