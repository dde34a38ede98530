"""Gradients of inputs: what a training step takes of the samples themselves, by ``backward()`` and ``x.grad`` or by ``torch.autograd.grad(loss, x)``.

No rank adds another's to them. A sum gives each sample the gradient that one process gives it, a mean over a rank's part one that is W times too large.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.library import FLOATS, MOVES
from dpmigrate.facts.losses import Loss
from dpmigrate.facts.names import FunctionNode, Loop, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.perturbations import perturbations
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.steps import stepping

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


@dataclass(frozen=True, eq=False, slots=True)
class InputGradient:
    """The gradient of samples of a batch.

    ``alone``: no optimizer steps by what the same pass leaves to the parameters. ``levelled``: only its direction or its sign counts, whatever its size.
    """

    call: ast.Call
    loss: Loss
    tensor: ast.Name
    alone: bool
    levelled: bool


#: what divides a gradient to a length of one
_SIZE = re.compile(r"norm|abs|std|max|sqrt")
#: what is done to a gradient beside using it
_CLEARS = frozenset({"zero_", "detach_", "requires_grad_", "requires_grad"})
#: what leaves the size of a gradient as it is
_SAME = MOVES | FLOATS | {"data", "detach", "clone", "contiguous", "view", "reshape", "flatten", "squeeze"}


def input_gradients(script: Script) -> list[InputGradient]:
    """The gradients that training steps take of their samples, but for those that optimizers of their own step by."""
    own = {b for p in perturbations(script) for b in p.backwards}
    found = [g for b in script.roles.backwards if b not in own and script.roles.region(b) in ("train", "both") for g in _kept(script, b)]
    taken = [g for c in script.calls("torch.autograd.grad") if script.roles.region(c) in ("train", "both") for g in _taken(script, c)]
    return found + taken


def _kept(script: Script, backward: ast.Call) -> Iterator[InputGradient]:
    """``x.grad`` that is read after the pass, before another."""
    names = script.names
    home = names.function(backward)
    others = [position(b) for b in script.roles.backwards if names.function(b) is home and position(b) > position(backward)]
    reads: dict[object, list[ast.Attribute]] = {}
    for n in names.attributes("grad"):
        here = names.function(n) is home and position(backward) < position(n) < min(others, default=(1 << 60, 0))
        if here and isinstance(n.ctx, ast.Load) and isinstance(n.value, ast.Name) and not _cleared(script, n) and _marked(script, n.value):
            reads.setdefault(names.meant(n.value), []).append(n)
    for uses in reads.values():
        tensor = uses[0].value
        assert isinstance(tensor, ast.Name)
        levelled = any(_levelled(script, n) for n in uses)
        yield InputGradient(backward, script.losses.of_backward(backward), tensor, _alone(script, backward), levelled)


def _taken(script: Script, call: ast.Call) -> Iterator[InputGradient]:
    """``torch.autograd.grad(loss, x)``, of a loss that is one number."""
    loss, tensor = script.argument(call, "outputs", 0), script.argument(call, "inputs", 1)
    if isinstance(tensor, ast.List | ast.Tuple) and len(tensor.elts) == 1:
        tensor = tensor.elts[0]
    if loss is None or not isinstance(tensor, ast.Name) or script.argument(call, "grad_outputs", 2) is not None or not _marked(script, tensor):
        return
    yield InputGradient(call, script.losses.norm(loss), tensor, True, _levelled(script, call))


def _cleared(script: Script, grad: ast.Attribute) -> bool:
    """``x.grad.zero_()``, ``x.grad is None``."""
    above: ast.AST = grad
    while isinstance(script.names.parent[above], ast.Attribute):
        above = script.names.parent[above]
    return isinstance(script.names.parent[above], ast.Compare) or (isinstance(above, ast.Attribute) and above.attr in _CLEARS)


def _marked(script: Script, tensor: ast.Name) -> bool:
    """Whether the function that names it asks for gradients of the tensor, made of the batch or anew: ``x.requires_grad_()``."""
    names = script.names
    meant, home = names.meant(tensor), names.function(tensor)
    marks = (a for word in ("requires_grad", "requires_grad_", "retain_grad") for a in names.attributes(word) if names.function(a) is home)
    bound = list(names.bindings(names.scope_of[tensor], tensor.id))
    asked = any(_asks(n) for b in bound if b.how == "assign" and b.value is not None for n in walk(b.value))
    if not asked and not any(names.meant(a.value) == meant for a in marks):
        return False
    anew = all(b.how in ("assign", "aug") and names.function(b.target) is home and script.roles.region(b.target) in ("train", "both") for b in bound)
    return anew or of_batch(script.roles, tensor)


def _asks(node: ast.AST) -> bool:
    """``requires_grad_()`` of a value, ``requires_grad=True`` in a call."""
    if isinstance(node, ast.keyword):
        return node.arg == "requires_grad" and not (isinstance(node.value, ast.Constant) and not node.value.value)
    return isinstance(node, ast.Attribute) and node.attr == "requires_grad_"


# ---------------------------------------------------------------------- whose gradients are stepped by
def _alone(script: Script, backward: ast.Call) -> bool:
    """Whether the gradients that the pass leaves to the parameters are cleared before any optimizer steps by them."""
    wanted = {o.call for o in script.roles.optimizers if o.models}
    return bool(wanted) and _left(script, backward, wanted, frozenset())


def _left(script: Script, node: ast.AST, wanted: set[ast.Call], seen: frozenset[ast.AST], again: bool = False) -> bool:
    """Whether all that is ``wanted`` is cleared after the node, before a step: from the innermost loop outwards, then from every caller on.

    ``again``: it is where a loop comes back to the node; so it is at the end of a program that does no more.
    """
    names = script.names
    home = names.function(node)
    here = list(_uses(script, home, frozenset()))
    for level in (*(a for a in names.ancestors(node) if isinstance(a, Loop) and names.function(a) is home), home):
        inside = [u for u in here if names.is_inside(u[0], level)]
        left = _through(script, node, [u for u in inside if position(u[0]) > position(node)], wanted)
        if left is None or not left:
            return left is not None
        wanted = left
        if level is not home:
            left = _through(script, node, [u for u in inside if position(u[0]) <= position(node)], wanted)
            if left is None:
                return False
            again = again or not left
        here = [u for u in here if u not in inside]
    callers = script.values.callers.get(home, []) if isinstance(home, FunctionNode) and home not in seen else []
    return all(_left(script, c, wanted, seen | {home}, again) for c in callers) if callers else again


def _through(script: Script, node: ast.AST, uses: list[tuple[ast.AST, ast.Attribute]], wanted: set[ast.Call]) -> set[ast.Call] | None:
    """What is still to be cleared after these; None where an optimizer steps before all is."""
    for place, use in uses:
        if use.attr == "step":
            return None
        if _always(script, place, node) and (place is use or _always(script, use)):
            wanted = wanted - _clears(script, use.value)
        if not wanted:
            break
    return wanted


def _uses(script: Script, home: ast.AST, seen: frozenset[ast.AST]) -> Iterator[tuple[ast.AST, ast.Attribute]]:
    """What clears and steps in a function, in the order in which it is written: ``optimizer.step``, with the place there, also in functions that it calls."""
    stepped = set(stepping(script.roles))
    for call in sorted((c for c in script.roles.calls if script.names.function(c) is home), key=position):
        if isinstance(call.func, ast.Attribute) and (call.func.attr == "zero_grad" or call in stepped):
            yield call.func, call.func
        else:
            inner = (f for f, _ in script.values.targets(call) if f not in seen)
            yield from ((call, use) for f in inner for _, use in _uses(script, f, seen | {home, f}))


def _clears(script: Script, receiver: ast.expr) -> set[ast.Call]:
    """The optimizers whose parameters are without gradients after ``receiver.zero_grad()``."""
    vals = script.values.eval(receiver)
    models = {m for v in script.roles.model_vals(receiver) for m in (v, *script.values.inner(v))}
    return {o.call for o in script.roles.optimizers if any(v.node is o.call for v in vals) or (o.models and models.issuperset(o.models))}


def _always(script: Script, place: ast.AST, node: ast.AST | None = None) -> bool:
    """Whether no test decides about the place that does not decide about the node."""
    tests = (a for a in script.names.ancestors(place) if isinstance(a, ast.If | ast.Try | ast.IfExp))
    return all(node is not None and script.names.is_inside(node, a) for a in tests)


# ---------------------------------------------------------------------- what counts of a gradient
def _levelled(script: Script, node: ast.expr, depth: int = 4) -> bool:
    """Whether the gradient is taken by its sign, or divided by its own size: ``g.sign()``, ``g / g.norm()``, ``normalize(g)``, also by a name."""
    above = script.names.parent[node]
    while (
        (isinstance(above, ast.Attribute) and above.attr in _SAME)
        or (isinstance(above, ast.Call) and above.func is node)
        or (isinstance(above, ast.Subscript) and above.value is node)
        or (isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult))
    ):
        node, above = above, script.names.parent[above]
    if isinstance(above, ast.Attribute):
        call = script.names.parent[above]
        divides = above.attr in ("div", "div_") and isinstance(call, ast.Call) and bool(call.args) and _size(script, call.args[0])
        return above.attr in ("sign", "sign_", "sgn", "sgn_") or divides
    if isinstance(above, ast.BinOp):
        return isinstance(above.op, ast.Div) and above.left is node and _size(script, above.right)
    if isinstance(above, ast.Call):
        return last(above.func) in ("sign", "sgn", "normalize") or (depth > 0 and _inside(script, above, node, depth - 1))
    kept = [t.elts[0] if isinstance(t, ast.Tuple) else t for t in above.targets] if isinstance(above, ast.Assign) and depth else []
    return any(_divided(script, t) or any(_levelled(script, n, depth - 1) for n in _uses_of(script, t)) for t in kept if isinstance(t, ast.Name))


def _divided(script: Script, target: ast.Name) -> bool:
    """``g /= g.norm()``."""
    stmts = (script.names.statement(b.target) for b in script.names.bindings(script.names.scope_of[target], target.id) if b.how == "aug")
    return any(isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Div) and _size(script, s.value) for s in stmts)


def _uses_of(script: Script, target: ast.Name) -> list[ast.Name | ast.Attribute]:
    return script.names.uses(script.names.scope_of[target], target.id)


def _inside(script: Script, call: ast.Call, node: ast.expr, depth: int) -> bool:
    """The same of the parameter of a function that is given the gradient."""
    given = (a for f, _ in script.values.targets(call) for a in f.args.args if script.roles.passed(call, f, a.arg) is node)
    return any(_levelled(script, n, depth) for a in given for n in script.names.uses(script.names.scope_of[a], a.arg))


def _size(script: Script, node: ast.expr) -> bool:
    """Whether the divisor is a size of what is divided: ``g.norm()``, ``g.abs().max()``, also by a name."""
    named = [b.value for n in walk(node) if isinstance(n, ast.Name) for b in script.names.bindings(script.names.scope_of[n], n.id) if b.how == "assign"]
    return any(_SIZE.search(ast.unparse(e)) for e in (node, *named) if e is not None)
