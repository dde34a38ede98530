"""How each loop that does not train runs in the migrated program: split over the ranks, in full on every rank, or left alone; and why.

Rules, the report and the places where ranks meet all read this one answer. A loop is split only if it is nothing but counting and collecting; what is
collected is dealt out in blocks, so that the ranks' parts, put end to end, are in order. Before an evaluation that all ranks reach, the buffers of its models
become rank 0's: each rank's BatchNorm has seen its own batches, and rank 0's are also those that are saved.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.counters import Counting
from dpmigrate.facts.definitions import SAME
from dpmigrate.facts.filled import Fills
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import reached_together
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.reasons import Reason, Why
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.values import Vals

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


class Way(enum.Enum):
    """How a loop runs on several ranks."""

    SPLIT = "split"  # the batches are dealt out in turn
    BLOCKS = "blocks"  # each rank takes neighbouring batches
    WHOLE = "whole"  # every rank takes all batches
    ALONE = "alone"  # nothing changes: it calls no model, and goes over no loader that training divides


@dataclass(frozen=True, eq=False, slots=True)
class Evaluation:
    """One loop over batches that does not train, as it will run.

    After a split loop ``sums`` are summed over the ranks, ``rows`` gathered, and the statements ``again`` run once more. ``why`` is there for whole loops.
    ``undivided``: training divides the loader, and this loop takes the whole of it. ``synchronised`` are the models whose buffers become rank 0's before it.
    """

    loop: BatchLoop
    way: Way
    why: Reason | None
    undivided: bool = False
    sums: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    synchronised: tuple[str, ...] = ()

    @property
    def split(self) -> bool:
        return self.way in (Way.SPLIT, Way.BLOCKS)

    @property
    def meets(self) -> bool:
        """Whether the ranks wait for each other at the loop."""
        return self.split or bool(self.synchronised)


def evaluations(script: Script) -> tuple[Evaluation, ...]:
    """Every loop over batches that does not train, in the order of the file."""
    return tuple(_evaluation(script, loop) for loop in script.roles.batch_loops if not loop.trains)


def _evaluation(script: Script, loop: BatchLoop) -> Evaluation:
    of_training = bool(loop.loaders & script.train_loaders)
    if not loop.evaluates and not of_training:
        return Evaluation(loop, Way.ALONE, None)
    count = script.counting(loop)
    may_have_buffers = bool(script.buffers)
    why = _why_whole(script.roles, count, may_have_buffers)
    models = (*evaluated_models(script.roles, loop), *_beside(script, loop)) if may_have_buffers else ()
    if why is not None:
        return Evaluation(loop, Way.WHOLE, why, of_training, synchronised=models if reached_together(script.roles, loop.node) else ())
    tables = [f.name for f in count.filled if f.how is Fills.TABLE]
    return Evaluation(
        loop,
        Way.BLOCKS if any(f.in_order for f in count.filled) else Way.SPLIT,
        None,
        sums=(*(c.name for c in (*count.counters, *(c for m in count.meters for c in m.sums))), *tables),
        again=tuple(d for m in count.meters for d in m.meter.derived),
        rows=tuple(f.name for f in count.filled if f.how is not Fills.TABLE and f.read_after),
        synchronised=models,
    )


def _why_whole(roles: Roles, count: Counting, may_have_buffers: bool) -> Reason | None:
    """Why the loop is not split: what it is, what it does, counters that bring something along, batches that are kept for another loop."""
    loop = count.carried.loop
    if not loop.evaluates:
        return Reason(Why.NO_MODEL, loop.node)
    if count.obstacle is not None:
        return count.obstacle
    if (may_have_buffers or _shares_step(roles, loop)) and _calls_elsewhere(roles, loop):
        return Reason(Why.MODEL_ELSEWHERE, loop.node)
    if may_have_buffers and (model := _in_training_mode(roles, loop)):
        return Reason(Why.TRAINING_MODE, loop.node, model)
    for c in count.counters:
        if not count.carried.from_zero(c.name):
            return Reason(Why.NOT_ZERO, loop.node, c.name)
    for m in count.meters:
        if not m.meter.from_zero:
            return Reason(Why.NOT_RESET, loop.node, m.meter.name)
    return _kept_batches(roles, loop)


def _kept_batches(roles: Roles, loop: BatchLoop) -> Reason | None:
    """Batches under a name that another loop goes over too: ``batches = list(loader)``."""
    if roles.names.is_inside(loop.source, loop.node):
        return None
    kept = _variables(roles, loop.over)
    for other in roles.batch_loops:
        if other is not loop and kept.keys() & _variables(roles, other.over).keys():
            return Reason(Why.KEPT_BATCHES, other.node, " and ".join(sorted(set(kept.values()))))
    return None


def _variables(roles: Roles, node: ast.AST) -> dict[object, str]:
    """The variables in an expression and their names, each by the binding that it reads where that is known."""
    names = [n for n in walk(node) if isinstance(n, ast.Name)]
    return {reaching(roles.names, n) or n.id: n.id for n in names}


# ------------------------------------------------------------------ buffers
def evaluated_models(roles: Roles, loop: BatchLoop) -> list[str]:
    """The wrapped models that the loop itself calls, by what they are called before it."""
    called = (p.model for p in roles.forwards if roles.names.is_inside(p.call, loop.node) and _parallel(roles, p.model))
    return list({ast.unparse(_before(roles, model, loop)): None for model in called})


def _beside(script: Script, loop: BatchLoop) -> list[str]:
    """The modules that the loop itself calls and that no wrapper holds, but that have kept statistics of each rank's batches before: a frozen backbone that is
    left in training mode, a teacher, a loss with BatchNorm.
    """
    roles, found = script.roles, []
    own = [c for c in roles.calls if roles.names.is_inside(c, loop.node)]
    places = {(c.lineno, c.col_offset) for c in own}
    kept = {made for made, called in script.executed.normalising if called not in places}
    for call in (c for c in own if kept and isinstance(c.func, ast.Name | ast.Attribute)):
        made = {(v.node.lineno, v.node.col_offset) for v in script.values.eval(call.func) if isinstance(v.node, ast.Call)}
        if made & kept and not roles.model_vals(call.func):
            found.append(ast.unparse(_before(roles, call.func, loop)))
    return list(dict.fromkeys(found))


def _parallel(roles: Roles, model: ast.expr) -> bool:
    """Whether the expression may mean a wrapper, or, as ``self`` in a method of a model that trains itself, the model that one was made of."""
    return roles.wrapped(model) is not False or (isinstance(model, ast.Name) and roles.values.defs.within_own_loop(model) is not None)


def _before(roles: Roles, func: ast.expr, loop: BatchLoop) -> ast.expr:
    """What a variable of the loop is made of: ``model``, of ``net = model.eval()``."""
    while isinstance(func, ast.Name):
        bound = reaching(roles.names, func)
        value = bound.value if bound is not None and not bound.path and roles.names.is_inside(bound.target, loop.node) else None
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in SAME:
            value = value.func.value
        if not isinstance(value, ast.Name | ast.Attribute):
            break
        func = value
    return func


def _in_training_mode(roles: Roles, loop: BatchLoop) -> str:
    """A trained model that the loop calls and that nothing in the program puts out of training mode; '' if none is seen."""
    switched: Vals = frozenset()
    for node in roles.names.nodes:
        if not isinstance(node, ast.Attribute) or node.attr not in ("eval", "train", "training"):
            continue
        call = roles.names.parent[node]
        asked = isinstance(call, ast.Call) and call.func is node
        if isinstance(node.ctx, ast.Store) if node.attr == "training" else asked and (node.attr == "eval" or bool(call.args or call.keywords)):  # type: ignore[attr-defined]
            models = roles.model_vals(node.value)
            if not models and (roles.inside_module(node) or not roles.values.eval(node.value)):
                return ""  # a model that is not known
            switched |= frozenset(x for v in models for x in roles.values.inner(v))
    for p in roles.forwards:
        called = frozenset(x for v in roles.model_vals(p.model) for x in roles.values.inner(v))
        if roles.names.is_inside(p.call, loop.node) and called and not called & switched:
            return ast.unparse(p.model)
    return ""


def _shares_step(roles: Roles, loop: BatchLoop) -> bool:
    """Whether the loop enters a function that training calls, too: its forward passes go through the wrapper, which all ranks have to call equally often."""
    entered = roles.all_entered(ast.Module(loop.node.body, []))
    inside = (p for p in roles.forwards if roles.names.function(p.call) in entered and not roles.inside_module(p.call))
    return any(roles.region(p.call) in ("train", "both") for p in inside)


def _calls_elsewhere(roles: Roles, loop: BatchLoop) -> bool:
    """Whether a model is called by a function that the loop enters, and not by the loop itself, so that it has no name there."""
    entered = roles.all_entered(ast.Module(loop.node.body, []))
    inside = [p for p in roles.forwards if roles.names.is_inside(p.call, loop.node) and _parallel(roles, p.model)]
    called = frozenset().union(*(roles.model_vals(p.model) for p in inside))
    deeper = (roles.model_vals(p.model) for p in roles.forwards if roles.names.function(p.call) in entered)
    return not inside or any(not vals <= called for vals in deeper)
