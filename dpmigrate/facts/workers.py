"""What the worker processes of training loaders draw from: what they run first, how that seeds them, which generators a data set keeps for its samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpmigrate.facts.library import SEEDED_STREAMS
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.objects import Val
    from dpmigrate.facts.script import Script

#: calls by these names set a stream, whatever they belong to: numpy.random.seed, torch.manual_seed, imgaug.seed, a helper of another file
_SEEDING = frozenset(
    {"seed", "manual_seed", "manual_seed_all", "set_seed", "seed_all", "seed_everything", "set_random_seed", "default_rng", "RandomState", "Random"}
)
#: where a seed comes from that each rank's workers have for themselves: torch's stream of the worker, the system
_OWN = ("torch.initial_seed", "torch.seed", "torch.rand", "torch.empty", "numpy.random.", "random.", "os.getpid", "os.urandom", "secrets.", "uuid.")
_GENERATORS = SEEDED_STREAMS | {"torch.Generator"}
_START = "worker_init_fn"


@dataclass(frozen=True, eq=False, slots=True)
class WorkerStart:
    """A ``worker_init_fn``: the expression that gives it, the function where it is of the program, its parameter for the worker's number,
    and what a ``functools.partial`` has given to its others.
    """

    given: ast.expr
    function: FunctionNode | ast.Lambda | None = None
    number: str = ""
    filled: Mapping[str, ast.expr] = field(default_factory=dict)


def worker_starts(script: Script) -> list[WorkerStart]:
    """What workers of training loaders run first, wherever it is put: in the call of the loader, in a dict of its arguments."""
    given: list[ast.expr] = []
    others = {c for c in script.roles.calls if script.roles.makes_loader(c)} - set(script.train_loader_calls)
    for node in script.names.nodes:
        if isinstance(node, ast.Call) and node not in others:
            found = script.argument(node, _START, 10 if script.roles.makes_loader(node) else None)
            given += [found] if found is not None else []
        elif isinstance(node, ast.Dict):
            given += [v for k, v in zip(node.keys, node.values, strict=True) if _is_start(k)]
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript) and _is_start(t.slice) for t in node.targets):
            given.append(node.value)
    return list({s.function or s.given: s for expr in given for s in _starts(script, expr, expr)}.values())


def _is_start(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == _START


def _starts(script: Script, given: ast.expr, node: ast.expr, by: ast.Call | None = None) -> Iterator[WorkerStart]:
    """The functions that the expression may be; ``by`` is the ``functools.partial`` that has given some of their parameters."""
    vals = script.values.eval(node)
    for v in vals:
        function = script.values.defs.method(v.cls, "__call__") if v.kind == "object" and v.cls is not None else v.node
        if v.kind == "call" and v.qual == "functools.partial" and isinstance(v.node, ast.Call) and v.node.args:
            yield from _starts(script, given, v.node.args[0], v.node)
        elif v.kind in ("func", "object") and isinstance(function, FunctionNode | ast.Lambda):
            method = int(isinstance(function, FunctionNode) and isinstance(script.names.parent[function], ast.ClassDef))
            names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)[method:]]
            filled = {k.arg: k.value for k in by.keywords if k.arg} | dict(zip(names, by.args[1:], strict=False)) if by is not None else {}
            free = [n for n in names if n not in filled]
            yield WorkerStart(given, function, free[0] if free else "", filled)
        elif v.kind != "const":
            yield WorkerStart(given)
    if not vals:
        yield WorkerStart(given)


@dataclass(frozen=True, eq=False, slots=True)
class AlikeSeed:
    """A part of a worker's seed that is the same on every rank: the worker's ``number``, or another value."""

    node: ast.expr
    number: bool


def alike_seeds(script: Script, start: WorkerStart) -> Iterator[AlikeSeed]:
    """What a worker's seeds are made of, where nothing in them is the rank's own."""
    if start.function is None:
        return
    parts = [p for seed in _given(script, start.function, frozenset()) for p in _made_of(start.function, seed, frozenset())]
    names = [n for p in parts for n in walk(p)]
    if any(_own(script, start, n) for n in names):
        return
    numbers = [
        n
        for n in names
        if (isinstance(n, ast.Name) and n.id == start.number) or (isinstance(n, ast.Attribute) and n.attr == "id" and "info" in ast.unparse(n.value))
    ]
    if numbers:
        yield from (AlikeSeed(n, number=True) for n in dict.fromkeys(numbers))
    else:
        yield from (AlikeSeed(p, number=False) for p in dict.fromkeys(parts) if not any(_variables(start.function, p, frozenset())))


def kept_streams(script: Script) -> Iterator[ast.Call]:
    """What draws for a sample from a generator that is made elsewhere, and kept."""
    data = {v.cls for c in script.train_loader_calls for v in script.values.eval(script.argument(c, "dataset", 0)) if v.kind == "object" and v.cls is not None}
    methods = [m for m in (script.values.defs.method(c, "__getitem__") for c in data) if m is not None]
    running = {f for m in methods for f in (m, *script.roles.all_entered(m))}
    for call in (c for c in script.roles.calls if script.names.function(c) in running):
        drawn = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        vals = [v for e in (*drawn, *(k.value for k in call.keywords if k.arg == "generator")) for v in script.values.eval(e)]
        if any(v.kind == "call" and _seeded(v) and script.names.function(v.node) not in running for v in vals):
            yield call


def _seeded(made: Val) -> bool:
    """Whether a generator has one seed in every process: torch's has without being given one, and those of NumPy and Python ask the system."""
    given = isinstance(made.node, ast.Call) and (made.node.args or made.node.keywords)
    return made.qual == "torch.Generator" or (made.qual in _GENERATORS and bool(given))


def _given(script: Script, function: ast.AST, seen: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """The seeds that the function sets, and what it hands to others of the file that set one."""
    for call in (n for n in walk(function) if isinstance(n, ast.Call)):
        called = last(call.func)
        inner = [f for f, _ in script.values.targets(call) if f not in seen]
        if any(True for f in inner for _ in _given(script, f, seen | {f})):
            yield from (*call.args, *(k.value for k in call.keywords))
        elif called in _SEEDING:
            yield from (*call.args[:1], *(k.value for k in call.keywords if k.arg in ("seed", "a", "x")))


def _variables(function: ast.AST, node: ast.expr, seen: frozenset[str]) -> Iterator[tuple[str, ast.expr]]:
    """The variables of the function in an expression, with what they are given."""
    used = {n.id for n in walk(node) if isinstance(n, ast.Name)} - seen
    for stmt in walk(function):
        if isinstance(stmt, ast.Assign):
            yield from ((t.id, stmt.value) for t in stmt.targets if isinstance(t, ast.Name) and t.id in used)


def _made_of(function: ast.AST, node: ast.expr, seen: frozenset[str]) -> Iterator[ast.expr]:
    """The seed, and what the variables of the function in it are given."""
    yield node
    for name, value in _variables(function, node, seen):
        yield from _made_of(function, value, seen | {name})


def _own(script: Script, start: WorkerStart, node: ast.AST) -> bool:
    """Whether this is another number on each rank: drawn in the worker, or the author's own count of ranks, unless it is seen to be one number for all."""
    if isinstance(node, ast.Call) and script.names.dotted(node.func).startswith(_OWN):
        return True
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if isinstance(node, ast.Attribute) and name == "seed" and "info" in ast.unparse(node.value):
        return True
    if "rank" not in name.lower().split("_"):
        return False
    held = script.values.eval(start.filled.get(name, node) if isinstance(node, ast.Name) else node)
    return not held or any(v.kind != "const" for v in held)
