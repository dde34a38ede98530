"""What a training that picks its samples at random by itself draws besides: numbers of which it is not known whether all ranks have to draw the same.

A flip of one sample is each rank's own, a domain that the whole batch comes from is one for all ranks, and a generator of the program, which all ranks
have alike, must be drawn from equally often by all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.control import uniform
from dpmigrate.facts.drawn_rows import is_draw
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.randomness import draws_itself, own_stream

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def drawn_beside(script: Script, loop: BatchLoop) -> Iterator[ast.Call]:
    """The draws of a training loop that are none of its samples, with those of the functions that it trains in or takes its batches from.

    Noise for each element (``torch.randn_like(x)``) is each rank's own, whatever the shape, and what models draw is looked at elsewhere.
    """
    roles = script.roles
    rows = [p.rows for p in loop.picked]
    making = {f for p in loop.picked if p.called for f in roles.all_entered(p.rows)}
    training = {f for f in roles.all_entered(loop.node) if roles.reaches_backward(f)}
    picked = {p.stmt for p in loop.picked}
    for body in (loop.node, *sorted((f for f in making | training if not roles.inside_module(f)), key=lambda f: f.lineno)):
        for call in (n for n in walk(body) if isinstance(n, ast.Call) and script.names.function(n) is _own(script, body)):
            within = any(call is r or script.names.is_inside(call, r) for r in rows)
            if draws_itself(roles, call):
                if not within and not (body in making and _indices(script, call)) and _apart(script, call, loop):
                    yield call
            elif not within and not roles.reaches_backward(call):
                trained = script.names.statement(call) not in picked and not roles.quiet(call)
                for drawn in _deep(script, call):
                    shared = own_stream(roles, drawn) and not (_by_all(script, call, loop) and _by_all(script, drawn, loop))
                    if shared or (trained and not _indices(script, drawn) and _apart(script, drawn, loop)):
                        yield drawn


def _apart(script: Script, call: ast.Call, loop: BatchLoop) -> bool:
    """Whether it is not known that all ranks draw the same, nor that each draws its own."""
    if own_stream(script.roles, call):
        return not _by_all(script, call, loop)
    return not script.roles.quiet(call) and script.names.dotted(call.func) not in ("torch.randn_like", "torch.rand_like")


def _own(script: Script, body: ast.AST) -> ast.AST:
    return body if isinstance(body, FunctionNode) else script.names.function(body)


def _deep(script: Script, call: ast.Call) -> Iterator[ast.Call]:
    """The draws of the functions of the program that a call enters, but for models."""
    functions = (f for f in script.roles.all_entered(call) if not script.roles.inside_module(f))
    yield from (n for f in functions for n in walk(f) if isinstance(n, ast.Call) and draws_itself(script.roles, n))


def _indices(script: Script, call: ast.Call) -> bool:
    """Whether it draws the indices of samples, or an order of which a batch is the beginning."""
    above = script.names.parent[call]
    return is_draw(script.roles, call) or (isinstance(above, ast.Subscript) and is_draw(script.roles, above))


def _by_all(script: Script, call: ast.Call, loop: BatchLoop) -> bool:
    """Whether all ranks come to a call of the training loop equally often."""
    for a in script.names.ancestors(call, below=script.names.function(call)):
        if script.names.is_inside(loop.node, a):
            break
        tests: list[ast.expr] = []
        if isinstance(a, ast.If | ast.While | ast.IfExp):
            tests = [a.test]
        elif isinstance(a, ast.For):
            tests = [a.iter]
        elif isinstance(a, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            tests = [t for g in a.generators for t in (g.iter, *g.ifs)]
        if not all(uniform(script.names, t) for t in tests):
            return False
    return True
