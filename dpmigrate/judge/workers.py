"""The workers of all ranks have seeds of their own: a worker's number alone is the same on each rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.values import NOTHING, Const, Ref, Setting, Value, const, value
from dpmigrate.judge.cached import last_name
from dpmigrate.program import Program

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged
    from dpmigrate.judge.trial import Fault, Trial

NAME = "the workers of all ranks have seeds of their own"
_EARLY = "the workers of all ranks get the same seeds here: ddp.seed_ranks() has to come first"
#: the streams that a worker begins with seeds of its own for
_STREAMS = (*const("torch"), *const("numpy"), *const("random"))
_PLAIN = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop, ast.expr_context)


def alike(m: Judged, node: ast.AST, frame: Frame) -> bool:
    """Whether a seed is made of what its function is given, of constants and of settings by operators
    alone: for a worker, whose number the function is given, that is the same seed on every rank.

    What a call gives, or a variable of the function, may be the rank's own.
    """
    function = m.under_way()[-1] if m.under_way() else None
    seed = _seed(node)
    if not isinstance(function, ast.FunctionDef | ast.Lambda) or seed is None:
        return False
    free = [*function.args.posonlyargs, *function.args.args]
    given = {a.arg for a in free[:1]}
    own = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    with_it = {} if free[:1] == free else _by_partial(m, function)
    leaves = [n for n in _leaves(seed, _bound_once(function)) if not _plain(with_it.get(getattr(n, "id", "")))]
    return all(_same(m, leaf, given - own, own, frame) for leaf in leaves)


def _by_partial(m: Judged, function: ast.AST) -> dict[str, Value]:
    """What ``functools.partial`` gives a function beside the worker's number, by the parameter."""
    found: dict[str, Value] = {}
    for made in m.heap.objects.values():
        if made.kind == "partial":
            held = m.objects(m.heap.read((made.number, "function")) or NOTHING)
            if any(getattr(o.extra, "node", None) is function for o in held):
                for name, v in made.extra.keywords.items():
                    found[name] = join(found.get(name, NOTHING), v)
    return found


def _plain(v: Value | None) -> bool:
    """Whether a value is known to be the same on all ranks."""
    return bool(v) and all(isinstance(a, Const | Setting) for a in v or NOTHING)


def _bound_once(function: ast.FunctionDef | ast.Lambda) -> dict[str, ast.expr]:
    """What the variables of a function are given that it binds once: ``seed = rank + base``."""
    nodes = list(ast.walk(function))
    names = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    assigned = [n for n in nodes if isinstance(n, ast.Assign) and len(n.targets) == 1]
    made = {t.id: n.value for n in assigned for t in n.targets if isinstance(t, ast.Name)}
    return {name: v for name, v in made.items() if names.count(name) == 1}


def _seed(node: ast.AST) -> ast.expr | None:
    """What a call is given for a seed; None where the system gives one."""
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    named = [k.value for k in node.keywords if k.arg in ("seed", "a")]
    return next(iter((*node.args, *named)), None)


def _leaves(seed: ast.expr, bound: dict[str, ast.expr]) -> Iterator[ast.AST]:
    """What operators put together, whole: ``args.seed`` and ``number`` of ``args.seed + number``, and
    of variables that hold that.
    """
    todo: list[ast.AST] = [seed]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and node.id in bound:
            todo.append(bound.pop(node.id))
        elif isinstance(node, _PLAIN):
            todo += ast.iter_child_nodes(node)
        else:
            yield node


def _same(m: Judged, leaf: ast.AST, given: set[str], own: set[str], frame: Frame) -> bool:
    """Whether a part of a seed is the worker's number, or known to be the same on all ranks."""
    names = {n.id for n in ast.walk(leaf) if isinstance(n, ast.Name)}
    if isinstance(leaf, ast.Name) and leaf.id in given:
        return True
    if not isinstance(leaf, ast.Name | ast.Attribute) or names & own:
        return False
    if any(isinstance(n, ast.Call) for n in ast.walk(leaf)):
        return False
    m.heap.mark()
    held = m.evaluate(leaf, frame)
    m.heap.rollback()
    return _plain(held)


def faults(trial: Trial) -> Iterator[Fault]:
    """Seeds of the workers of training loaders by their number alone, of streams that samples draw from;
    and iterators over such loaders that are made while all ranks have one stream: it seeds the workers.
    """
    drawn = {
        a for e in trial.result.trace.of("draw") if const(True)[0] in e.values["of a sample"]
        for a in e.values.get("stream", ())
    }  # fmt: skip
    loaders = [trial.result.heap.objects[n].node for n in sorted(trial.sources)]
    functions = [f for c in loaders if isinstance(c, ast.Call) for f in _begun(c, trial.result.program)]
    begun = {n for f in functions for n in ast.walk(f)}
    for event in trial.result.trace.of("seed"):
        if event.node in begun and event.values["alike in workers"] == const(True) and drawn & {*event.values["streams"]}:
            words = "the workers of all ranks get the same seeds here: ddp.worker_number(…) numbers them"
            yield trial.fault(event.node, NAME, words)
    if drawn & set(_STREAMS):
        yield from (trial.fault(node, NAME, _EARLY) for node in _early(trial))


def _early(trial: Trial) -> Iterator[ast.AST]:
    """Where an iterator over a training loader is made before the ranks have streams of their own, and no
    loop goes through the loader else, or its workers stay: they are seeded once.
    """
    passes = list(trial.result.trace.of("judge pass"))
    # enumerate(loader) is a call, too
    program = trial.result.program
    loops: list[ast.For | ast.AsyncFor | ast.comprehension] = [*program.every(ast.For), *program.every(ast.AsyncFor), *program.every(ast.comprehension)]
    looped = {n for loop in loops for n in ast.walk(loop.iter)}
    for number in sorted(trial.sources):
        own = [e for e in passes if e.values["loader"] == value(Ref(number))]
        alone = all(isinstance(e.node, ast.Call) and e.node not in looped for e in own)
        if (alone or _keeps_workers(trial, number)) and _has_workers(trial, number):
            yield from dict.fromkeys(e.node for e in own if e.values["stream"] == const(False))


def _has_workers(trial: Trial, number: int) -> bool:
    """Whether a loader may have workers, which are seeded from the process's stream."""
    count, generator = (trial.result.heap.read((number, name)) for name in ("num_workers", "generator"))
    return bool(count) and count != const(0) and not generator


def _keeps_workers(trial: Trial, number: int) -> bool:
    """Whether the workers of a loader may go on from one pass to the next, with the streams that they have."""
    held = trial.result.heap.read((number, "persistent_workers"))
    return bool(held) and held != const(False)


def _begun(loader: ast.Call, program: Program) -> Iterator[ast.AST]:
    """The functions that the workers of a loader begin with."""
    calls = [c for c in ast.walk(loader) if isinstance(c, ast.Call)]  # ddp.distribute(DataLoader(…))
    given = [k.value for c in calls for k in c.keywords if k.arg == "worker_init_fn"]
    given = [g.args[0] if isinstance(g, ast.Call) and last_name(g.func) == "partial" and g.args else g for g in given]
    yield from (g for g in given if isinstance(g, ast.Lambda))
    names = {last_name(g) for g in given if isinstance(g, ast.Name | ast.Attribute)}
    nodes = program.every(ast.FunctionDef)
    yield from (n for n in nodes if n.name in names and not _is_method(n))


def _is_method(function: ast.FunctionDef) -> bool:
    """Whether the first parameter is the object, and not the worker's number."""
    return bool(function.args.args) and function.args.args[0].arg in ("self", "cls")
