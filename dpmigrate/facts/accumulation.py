"""Gradient accumulation: loops in which backward runs more often than the optimizers step, and when the ranks have to average.

Between two steps each rank may add gradients up for itself. What is asked for is a condition that is known before the forward pass and true whenever gradients
are used before the next backward; where it is true too often nothing is wrong, where it is not true once the ranks drift apart. So it is made only of what is
seen: the tests that every use of the gradients in a turn stands under, and the last batch, where gradients are used after the loop as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.beforehand import early, plain, stores
from dpmigrate.facts.control import uniform
from dpmigrate.facts.definitions import gone_through
from dpmigrate.facts.loops import in_step, source
from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.optimizers import SCHEDULERS
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.spelling import spelled_by_caller

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

_STEP = re.compile(r"(^|_)step($|_)|unscale_$|clip_grad")


@dataclass(frozen=True, eq=False, slots=True)
class Window:
    """A loop that accumulates: forward to backward are the sibling statements ``first`` to ``last``, ``sync`` says in which turns the ranks average.

    ``problem`` says why no such condition is known; the other fields mean nothing then.
    """

    loop: Loop
    backward: ast.Call
    first: ast.stmt
    last: ast.stmt
    models: tuple[str, ...] = ()
    sync: str = ""
    problem: str = ""


class _Unknown(Exception):
    """Why a window cannot be told."""


def uses(roles: Roles) -> Iterator[ast.AST]:
    """Where gradients are used: optimizer steps, clipping, ``.grad``. What steps and is not seen to be a scheduler counts as an optimizer."""
    passing = {p.call for p in roles.training_passes}
    for n in roles.names.nodes:
        if isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.ctx, ast.Load) and not roles.names.dotted(n):
            yield n
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute | ast.Name) and n not in passing and not any(True for _ in roles.values.targets(n)):
            name = n.func.attr if isinstance(n.func, ast.Attribute) else n.func.id
            if _STEP.search(name) and not _schedules(roles, n.func):
                yield n


def _schedules(roles: Roles, func: ast.expr) -> bool:
    vals = roles.values.eval(func.value) if isinstance(func, ast.Attribute) else frozenset()
    return bool(vals) and all(v.qual.startswith(SCHEDULERS) for v in vals)


def clipped_in_every_turn(script: Script) -> Iterator[ast.AST]:
    """Clipping that runs at every batch of a loop whose optimizers step less often."""
    for loop, used in _turns(script.roles).items():
        yield from _early_clips(script.roles, loop, used)


def _early_clips(roles: Roles, loop: Loop, used: Uses) -> list[ast.AST]:
    found = [place for place, use in used if _clips(use) and not _counted(roles, loop, _tests(roles, loop, place))]
    return found if _seldom(roles, loop, used) else []


def _clips(use: ast.AST) -> bool:
    return isinstance(use, ast.Call) and "clip_grad" in ast.unparse(use.func)


def _seldom(roles: Roles, loop: Loop, used: Uses) -> bool:
    """Whether optimizers step in the loop, and only where turns have been counted."""
    made = {o.call for o in roles.optimizers}
    steps = [
        place
        for place, use in used
        if isinstance(use, ast.Call)
        and isinstance(use.func, ast.Attribute)
        and any(v.node in made for e in (use.func.value, *use.args) for v in roles.values.eval(e))
    ]
    return bool(steps) and all(_counted(roles, loop, _tests(roles, loop, s)) for s in steps)


def windows(script: Script) -> Iterator[Window]:
    """The loops that accumulate gradients, but for those in which every batch is clipped, which need every average."""
    roles = script.roles
    turns = _turns(roles)
    for loop, used in turns.items():
        backwards = sorted((b for b in roles.backwards if _nearest(roles, b) is loop), key=position)
        if roles.region(backwards[0]) == "eval" or _early_clips(roles, loop, used) or not (_repeats(roles, loop, used) or _seldom(roles, loop, used)):
            continue
        try:
            yield _window(script, loop, turns, backwards)
        except _Unknown as why:
            stmt = roles.names.statement(backwards[0])
            yield Window(loop, backwards[0], stmt, stmt, problem=str(why))


# ---------------------------------------------------------------------- loops and what is used in them
def _nearest(roles: Roles, node: ast.AST) -> Loop | None:
    for a in roles.names.ancestors(node):
        if isinstance(a, FunctionNode):
            return None
        if isinstance(a, Loop):
            return a
    return None


#: the places of a loop at which gradients are used, each with the use itself, which may stand in a function that is called there
Uses = list[tuple[ast.AST, ast.AST]]


def _turns(roles: Roles) -> dict[Loop, Uses]:
    """The nearest loop of every backward, with the uses of gradients in its turns."""
    out: dict[Loop, Uses] = {loop: [] for b in roles.backwards if (loop := _nearest(roles, b)) is not None}
    for use in uses(roles):
        for home, place in _homes(roles, use, out):
            if home is not None:
                out[home].append((place, use))
    return out


def _homes(roles: Roles, node: ast.AST, turns: Container[Loop], seen: frozenset[ast.AST] = frozenset()) -> Iterator[tuple[Loop | None, ast.AST]]:
    """The training loops in which the node runs, each with the place there that leads to it; None for a way outside of them."""
    for a in roles.names.ancestors(node):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, Loop) and a in turns:
            yield a, node
            return
    function = roles.names.function(node)
    callers = roles.values.callers.get(function, []) if isinstance(function, FunctionNode) and function not in seen else []
    if not callers:
        yield None, node
    for c in callers:
        yield from _homes(roles, c, turns, seen | {function})


def _tests(roles: Roles, loop: Loop, node: ast.AST) -> list[ast.expr]:
    """The tests inside the loop that must be true for the node to run, conjunctions taken apart."""
    out: list[ast.expr] = []
    inner = node
    for a in roles.names.ancestors(node, below=loop):
        if isinstance(a, ast.If) and inner in a.body:
            out += a.test.values if isinstance(a.test, ast.BoolOp) and isinstance(a.test.op, ast.And) else [a.test]
        inner = a
    return out


def _counted(roles: Roles, loop: Loop, tests: list[ast.expr]) -> bool:
    """Whether one of the tests, or what its variables are given, counts turns: ``(i + 1) % k == 0``, or a counter of the loop against a number."""
    todo, seen = list(tests), set(tests)
    while todo:
        test = todo.pop()
        if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(test)):
            return True
        for n in walk(test):
            given = stores(roles, loop, n) if isinstance(n, ast.Name | ast.Attribute) else []
            if any(isinstance(s, ast.AugAssign) for s in given):
                return True
            values = {s.value for s in given if isinstance(s, ast.Assign) and isinstance(n, ast.Name)} - seen  # data = data.to(device)
            todo += values
            seen |= values
    return False


def _repeats(roles: Roles, loop: Loop, used: Uses) -> bool:
    """``for k in range(n)`` whose turns only add gradients up."""
    return not used and isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and roles.names.dotted(loop.iter.func) == "?.range"


# ---------------------------------------------------------------------- one window
def _window(script: Script, loop: Loop, turns: dict[Loop, Uses], backwards: list[ast.Call]) -> Window:
    roles = script.roles
    places = [place for place, _ in turns[loop]]
    block = _block(roles, loop, [*backwards, *places])
    last = _index(roles, block, backwards[-1])
    passing = [i for i in range(last + 1) if _passes(script, block[i])]
    if not passing:
        raise _Unknown("the forward pass does not stand beside backward()")
    first = min(passing[0], _index(roles, block, backwards[0]))
    if not any(_always(roles, block, b, backwards) for b in backwards if _index(roles, block, b) == last):
        raise _Unknown("backward() stands under a test")
    if any(_index(roles, block, place) <= last for place in places):
        raise _Unknown("gradients are used before backward() in the next turn")
    models = _models(script, loop, block[first : last + 1])
    sync = _sync(script, loop, block[first], turns) if places else _last_repeat(script, loop)
    return Window(loop, backwards[0], block[first], block[last], models, sync)


def _block(roles: Roles, loop: Loop, nodes: list[ast.AST]) -> list[ast.stmt]:
    """The innermost block of the loop that holds all of the nodes."""
    block = loop.body
    while True:
        holder = next((s for s in block if all(n is not s and roles.names.is_inside(n, s) for n in nodes)), None)
        inner = [b for b in (getattr(holder, "body", None),) if isinstance(holder, ast.If | ast.With | ast.Try) and isinstance(b, list)]
        if not inner or not all(any(roles.names.is_inside(n, s) for s in inner[0]) for n in nodes):
            return block
        block = inner[0]


def _index(roles: Roles, block: list[ast.stmt], node: ast.AST) -> int:
    return next((i for i, s in enumerate(block) if roles.names.is_inside(node, s)), -1)


def _always(roles: Roles, block: list[ast.stmt], backward: ast.AST, backwards: list[ast.Call]) -> bool:
    """Whether the backward, or the one of the other branch, runs in every turn that comes to its statement."""
    top = block[_index(roles, block, backward)]
    around = roles.names.ancestors(backward, below=roles.names.parent[top])
    return not any(isinstance(a, Loop | ast.Try | ast.Match) or (isinstance(a, ast.If) and not _both(roles, a, backwards)) for a in around)


def _both(roles: Roles, test: ast.If, backwards: list[ast.Call]) -> bool:
    return all(any(roles.names.is_inside(b, s) for b in backwards for s in side) for side in (test.body, test.orelse))


def _passes(script: Script, stmt: ast.stmt) -> bool:
    entered = script.roles.all_entered(stmt)
    return any(script.names.is_inside(p.call, stmt) or script.names.function(p.call) in entered for p in script.roles.training_passes)


def _models(script: Script, loop: Loop, statements: list[ast.stmt]) -> tuple[str, ...]:
    """The wrapped models that the statements run, as they are written there."""
    out: dict[str, tuple[int, int]] = {}
    for p in script.roles.training_passes:
        function = script.names.function(p.call)
        inside = any(script.names.is_inside(p.call, s) for s in statements)
        if not inside and not any(function in script.roles.all_entered(s) for s in statements):
            continue
        text = script.text(p.model) if inside else spelled_by_caller(script.roles, p.model, loop)
        named = [n for n in walk(ast.parse(text or "0")) if isinstance(n, ast.Name)]
        if text is None or script.roles.wrapped(p.model) is not True or any(stores(script.roles, loop, n) for n in named):
            raise _Unknown("the model of the forward pass has no name there")
        out.setdefault(text, position(p.model) if inside else position(loop))
    return tuple(sorted(out, key=lambda text: out[text]))


# ---------------------------------------------------------------------- the condition
def _last_repeat(script: Script, loop: Loop) -> str:
    """``i + 1 == n`` for ``for i in range(n)``."""
    assert isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
    if _left(script.roles, loop) or not isinstance(loop.target, ast.Name) or len(loop.iter.args) != 1 or not plain(script, loop, loop.iter.args[0]):
        raise _Unknown("the last turn of the inner loop is not known beforehand")
    if not uniform(script.names, loop.iter.args[0]):
        raise _Unknown("the number of turns may differ between ranks")
    number = loop.iter.args[0]
    text = script.text(number)
    return f"{loop.target.id} + 1 == {text if isinstance(number, ast.Name | ast.Attribute | ast.Constant | ast.Subscript) else f'({text})'}"


def _left(roles: Roles, loop: Loop) -> bool:
    """Whether a turn may end before its backward, or the loop before its last turn."""
    nodes = [n for s in loop.body for n in walk(s)]
    return any(isinstance(n, ast.Break | ast.Continue) or (isinstance(n, ast.Try) and any(roles.names.is_inside(b, n) for b in roles.backwards)) for n in nodes)


def _sync(script: Script, loop: Loop, first: ast.stmt, turns: dict[Loop, Uses]) -> str:
    roles = script.roles
    tests = [_tests(roles, loop, place) for place, _ in turns[loop]]
    shared: list[ast.expr] = []
    for test in tests[0]:
        alike = [[t for t in others if ast.unparse(t) == ast.unparse(test)] for others in tests]
        if all(alike) and _counted(roles, loop, [test]) and uniform(script.names, test):
            known = early(script, loop, test, position(first), max(position(t) for same in alike for t in same))
            shared += [known] if known is not None else []
    if not shared:
        raise _Unknown("it is not known before the forward pass whether the gradients of the turn will be used")
    given = " and ".join(_text(script, t) for t in shared)
    if not any(_may_follow(roles, use, loop) for use in uses(roles)):
        return given
    ends = _ends(script, loop)
    last = shared[0].values if isinstance(shared[0], ast.BoolOp) and isinstance(shared[0].op, ast.Or) and len(shared) == 1 else shared
    return given if any(ast.unparse(t) in ends for t in last) and len(shared) == 1 else f"{given} or {ends[0]}"


def _may_follow(roles: Roles, node: ast.AST, loop: Loop, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the node may use gradients that the loop has left: on some way to it there is no other loop in which a backward comes before it."""
    inner = node
    for a in roles.names.ancestors(node):
        if isinstance(a, FunctionNode):
            break
        if a is loop:
            return False
        if isinstance(a, Loop) and not roles.names.is_inside(loop, a) and roles.names.function(loop) not in roles.all_entered(a):
            if any(roles.reaches_backward(s) for s in a.body[: _index(roles, a.body, inner)]):
                return False
        inner = a
    function = roles.names.function(node)
    callers = roles.values.callers.get(function, []) if isinstance(function, FunctionNode) and function not in seen else []
    return not callers or any(_may_follow(roles, c, loop, seen | {function}) for c in callers)


def _text(script: Script, node: ast.expr) -> str:
    return script.text(node) if node in script.names.parent else ast.unparse(node)


def _ends(script: Script, loop: Loop) -> list[str]:
    """The ways to write that this is the last batch; the first is the one that is added."""
    roles = script.roles
    if not isinstance(loop, ast.For) or _left(roles, loop):
        raise _Unknown("gradients are used after the loop, whose last batch is not known beforehand")
    call, target = loop.iter, loop.target
    if not (
        isinstance(call, ast.Call) and roles.names.dotted(call.func) == "?.enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name)
    ):
        raise _Unknown("gradients are used after the loop, whose batches are not counted by enumerate()")
    start = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "start"), ast.Constant(0))
    loader = source(roles, call.args[0])
    text = script.text(loader)
    wholly = len(in_step(roles, call.args[0])) == 1 and _complete(roles, call.args[0], loader) and isinstance(loader, ast.Name | ast.Attribute)
    if not wholly or not roles.loaders_of(loader) or not isinstance(start, ast.Constant) or start.value not in (0, 1) or not plain(script, loop, loader):
        raise _Unknown("gradients are used after the loop, whose length is not known beforehand")
    i = target.elts[0].id
    return [f"{i} == len({text})"] if start.value else [f"{i} + 1 == len({text})", f"{i} == len({text}) - 1", f"{i} + 1 >= len({text})"]


def _complete(roles: Roles, node: ast.expr, loader: ast.expr) -> bool:
    """Whether the loop goes through the loader itself or a progress bar over it, and not through a part."""
    if node is loader:
        return True
    through = gone_through(node) if isinstance(node, ast.Call) and roles.names.dotted(node.func).endswith("tqdm") else None
    return through is not None and _complete(roles, through, loader)
