"""The training step in detail: where the forward pass begins, where the loss is ready, which optimizers step, what is clipped."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.names import position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.optimizers import Optimizer
from dpmigrate.facts.roles import Roles

CLIPPING = frozenset(
    {f"torch.nn.utils.{p}{n}" for n in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value") for p in ("", "clip_grad.")}
)


@dataclass(frozen=True, eq=False, slots=True)
class Forward:
    """What computes the loss of one backward: the sibling statements from first to last, and what stands in the backward itself and is no name of a loss."""

    backward: ast.Call
    statements: tuple[ast.stmt, ast.stmt] | None
    inline: ast.expr | None


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """``optimizer.step()`` as a statement; ``clips`` are the clipping statements before it in its block."""

    call: ast.Call
    stmt: ast.stmt
    receiver: ast.expr
    optimizers: tuple[Optimizer, ...]
    clips: tuple[ast.stmt, ...]


def forward_of(roles: Roles, backward: ast.Call) -> Forward | None:
    """Where the loss is computed; None if that is neither in the backward nor in statements beside it or beside an ``if`` round it."""
    assert isinstance(backward.func, ast.Attribute)
    names = roles.names
    stmt = names.statement(backward)
    inline = backward.func.value if _computes(roles, backward.func.value) else None
    whole = inline is not None and _calls_model(roles, inline)
    while True:
        block = names.block(stmt)
        index = block.index(stmt)
        start = 0
        for i in range(index - 1, -1, -1):
            if any(names.is_inside(b, block[i]) for b in roles.backwards):
                start = i + 1
                break
        reaching = [s for s in block[start:index] if _calls_model(roles, s)]
        if reaching:
            break
        above = names.parent[stmt]
        if whole:
            return Forward(backward, None, inline)
        if not isinstance(above, ast.If) or start:
            return None
        stmt = above  # if phase == "train": loss.backward()
    wanted = {n.id for n in walk(backward.func) if isinstance(n, ast.Name)}
    last = reaching[-1]
    for s in block[start:index]:
        if position(s) > position(last) and any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in wanted for n in walk(s)):
            last = s
    return Forward(backward, (reaching[0], last), inline)


def _computes(roles: Roles, loss: ast.expr) -> bool:
    """Whether the expression computes with what the model gives, more than adding and averaging finished losses: ``criterion(output, y)``."""
    return any(isinstance(n, ast.Call) and not _gathers(roles, n) for n in walk(loss))


def _gathers(roles: Roles, call: ast.Call) -> bool:
    """``loss.mean()``, ``sum(losses)``, ``torch.stack(losses)``, ``losses.values()``."""
    if isinstance(call.func, ast.Attribute) and not roles.names.dotted(call.func):
        return call.func.attr in ("mean", "sum", "values") and not isinstance(call.func.value, ast.BinOp)
    return roles.names.dotted(call.func) in ("?.sum", "torch.stack", "torch.sum", "torch.mean")


def _calls_model(roles: Roles, node: ast.stmt | ast.expr) -> bool:
    inside = {id(n) for n in walk(node)}
    passes = [p.call for p in (*roles.forwards, *roles.detours)]
    if any(id(c) in inside for c in passes):
        return True
    functions = roles.all_entered(node)
    return any(roles.names.function(c) in functions for c in passes)


def steps(roles: Roles) -> list[Step]:
    """Every optimizer step that is a statement of its own, in order."""
    out = []
    for call, stepped in _stepping(roles):
        stmt, func = roles.names.parent[call], call.func
        if not call.args and isinstance(stmt, ast.Expr) and isinstance(func, ast.Attribute):
            out.append(Step(call, stmt, func.value, stepped, tuple(clips_before(roles, stmt))))
    return sorted(out, key=lambda s: position(s.call))


def unplaced(roles: Roles) -> list[ast.Call]:
    """The optimizer steps that are no statements of their own: ``[o.step() for o in optimizers]``, ``loss = optimizer.step(closure)``."""
    return [call for call, _ in _stepping(roles) if call.args or not isinstance(roles.names.parent[call], ast.Expr)]


def stepping(roles: Roles) -> list[ast.Call]:
    """The calls that step an optimizer, also ``scaler.step(optimizer)``."""
    made = {o.call for o in roles.optimizers}
    found = (c for c in roles.calls if isinstance(c.func, ast.Attribute) and c.func.attr == "step")
    return [c for c in found if any(v.node in made for e in (c.func.value, *c.args) for v in roles.values.eval(e))]  # type: ignore[attr-defined]


def in_optimizer(roles: Roles, node: ast.AST) -> bool:
    """Whether the node stands in a method of an optimizer of the program."""
    cls = roles.names.cls(node)
    return cls is not None and any(v.cls is cls for o in roles.optimizers for v in roles.values.eval(o.call))


def _stepping(roles: Roles) -> Iterator[tuple[ast.Call, tuple[Optimizer, ...]]]:
    made = {o.call: o for o in roles.optimizers}
    for call in roles.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
            stepped = tuple(made[v.node] for v in roles.values.eval(call.func.value) if v.node in made)
            if stepped:
                yield call, stepped


def clips_before(roles: Roles, stmt: ast.stmt) -> list[ast.stmt]:
    """The clipping statements before a step in its block, back to the backward pass that gave the gradients."""
    block, out = roles.names.block(stmt), []
    for s in reversed(block[: block.index(stmt)]):
        if roles.reaches_backward(s):
            break
        if clips(roles, s):
            out.append(s)
    return out[::-1]


def clips(roles: Roles, stmt: ast.AST) -> bool:
    """Whether the statement clips gradients."""
    return any(isinstance(n, ast.Call) and roles.names.dotted(n.func) in CLIPPING for n in walk(stmt))
