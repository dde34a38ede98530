"""What models are given that lies on the CPU, where DataParallel's ``forward`` copied it to the GPUs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.copies import counts
from dpmigrate.facts.library import FLOATS, INTEGERS, LAYOUTS
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.passes import Pass
    from dpmigrate.facts.script import Script

#: what hands a tensor on where it is
_STAYS = FLOATS | INTEGERS | LAYOUTS | {"detach"}


@dataclass(frozen=True, eq=False, slots=True)
class Given:
    """An argument of a pass. ``unmoved`` is what of the batch it is, as its loader gave it: "part" or "batch", or a "tensor" that the program has made on
    the CPU; "" for anything else.
    """

    of: Pass
    name: str  # its place, or its name
    node: ast.expr
    unmoved: str


def given(script: Script) -> Iterator[Given]:
    """What the passes through models that may be wrapped are given, argument by argument.

    A program that also runs without DataParallel, on one GPU, and moves something itself, leaves the rest where it has to be: lengths on the CPU.
    """
    for p in script.roles.forwards:
        if script.roles.wrapped(p.model) is False or _moves_itself(script, p.call):
            continue
        named = ((k.arg or "", k.value) for k in p.call.keywords)
        for name, node in (*((str(i), a) for i, a in enumerate(p.call.args)), *named):
            kinds = _left(script, node, frozenset())
            made = kinds not in ({"part"}, {"batch"}) and script.executed.on_cpu(p.call, name, always=not _returned(script, node))
            yield Given(p, name, node, "tensor" if made else next(iter(kinds)) if kinds in ({"part"}, {"batch"}) else "")


def _moves_itself(script: Script, call: ast.Call) -> bool:
    """Whether the program also runs on one GPU, where it moves something itself that it gives the model there."""
    return script.from_data_parallel and all(_if_several(script, c) for c in _made(script)) and script.executed.moves_some(call)


def _made(script: Script) -> Iterator[ast.AST]:
    """The DataParallel calls."""
    yield from script.wraps.removed
    yield from (w.node for w in script.wraps.wraps if w.how == "call")


def _if_several(script: Script, call: ast.AST) -> bool:
    """Whether a call is made only where there are several GPUs."""
    tests = (a.test for a in script.names.ancestors(call) if isinstance(a, ast.If | ast.IfExp) and not script.names.is_inside(call, a.test))
    return any(isinstance(n, ast.expr) and counts(script.roles, n) for test in tests for n in walk(test))


def calls_wrapper(script: Script) -> bool:
    """Whether training is seen to call what is in DataParallel as a whole, and not a model of which a part is."""
    return any(script.executed.calls_wrapper(p.call) for p in script.roles.training_passes)


def moved_by_wrapper(script: Script) -> bool:
    """Whether training may give a wrapped model what only the wrapper has moved: neither the program does, as far as that is seen, nor will its migration."""
    training = {p.call for p in script.roles.training_passes if not _moves_itself(script, p.call)}
    if any(isinstance(a, ast.Starred) for c in training for a in c.args) or any(k.arg is None for c in training for k in c.keywords):
        return True
    others = (g for g in given(script) if g.of.call in training and g.unmoved not in ("part", "tensor"))
    return any(not script.executed.moved(g.of.call, g.name) for g in others)


def _left(script: Script, node: ast.expr, seen: frozenset[str]) -> set[str]:
    """What an expression is: a ``part`` of the ``batch`` or all of it, where the loader left it; ``?`` for anything else."""
    while isinstance(node, ast.Call):
        if script.names.dotted(node.func) in ("torch.autograd.Variable", "torch.autograd.variable.Variable") and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _STAYS:
            node = node.func.value
        else:
            return {"?"}
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return {"part"} if _left(script, node.value, seen) == {"batch"} else {"?"}
    if not isinstance(node, ast.Name) or node.id in seen:
        return {"?"} if not isinstance(node, ast.Name) else set()
    found: set[str] = set()
    for b in script.names.bindings(script.names.scope_of[node], node.id):
        if b.how == "for":
            found |= _given(script, b.target)
        elif b.how == "assign" and isinstance(b.value, ast.expr):
            whole = _left(script, b.value, seen | {node.id})
            found |= whole if not b.path else {"part"} if whole == {"batch"} else {"?"}  # x, y = batch
        else:
            found.add("?")
    return found


def _returned(script: Script, node: ast.expr) -> bool:
    """Whether it is what a function of the program makes: None only where that ends without a return, which no caller counts on."""
    if isinstance(node, ast.Name):
        bound = list(script.names.bindings(script.names.scope_of[node], node.id))
        return bool(bound) and all(b.how == "assign" and not b.path and isinstance(b.value, ast.Call) and _returned(script, b.value) for b in bound)
    functions = [f for f, _ in script.values.targets(node)] if isinstance(node, ast.Call) else []
    returns = [n.value for f in functions for n in walk(f) if isinstance(n, ast.Return)]
    return bool(returns) and all(isinstance(v, ast.Call | ast.BinOp | ast.Subscript) for v in returns)


def _given(script: Script, target: ast.AST) -> set[str]:
    """What a name of a loop's target gets: the batch or a part of it, where the loop goes over a loader itself."""
    for b in script.roles.batch_loops:
        if not isinstance(b.node, ast.For) or not script.names.is_inside(target, b.node.target) or b.several:
            continue
        counted = "?.enumerate" in {script.names.dotted(c.func) for c in walk(b.node.iter) if isinstance(c, ast.Call)}
        batch: ast.AST = b.node.target
        if counted and isinstance(batch, ast.Tuple) and len(batch.elts) == 2:
            batch = batch.elts[1]
        return {"batch"} if target is batch else {"part"} if script.names.is_inside(target, batch) else {"?"}
    return {"?"}
