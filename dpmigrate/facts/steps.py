"""The training step in detail: where the forward pass begins, where the loss is ready, which optimizers step, what is clipped."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dpmigrate.facts.names import position
from dpmigrate.facts.optimizers import Optimizer
from dpmigrate.facts.roles import Roles

CLIPPING = frozenset(
    {f"torch.nn.utils.{p}{n}" for n in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value") for p in ("", "clip_grad.")}
)


@dataclass(frozen=True, eq=False, slots=True)
class Forward:
    """The sibling statements, first to last, that compute the loss of one backward."""

    backward: ast.Call
    first: ast.stmt
    last: ast.stmt


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """``optimizer.step()`` as a statement; ``clips`` are the clipping statements before it in its block."""

    call: ast.Call
    stmt: ast.stmt
    receiver: ast.expr
    optimizers: tuple[Optimizer, ...]
    clips: tuple[ast.stmt, ...]


def forward_of(roles: Roles, backward: ast.Call) -> Forward | None:
    """The statements between the first forward pass and the finished loss; None if they are siblings neither of the backward nor of an ``if`` round it."""
    names = roles.names
    stmt = names.statement(backward)
    if _calls_model(roles, stmt):
        return None
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
        if not isinstance(above, ast.If) or start:
            return None
        stmt = above  # if phase == "train": loss.backward()
    wanted = {n.id for n in ast.walk(backward.func) if isinstance(n, ast.Name)}
    last = reaching[-1]
    for s in block[start:index]:
        if position(s) > position(last) and any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in wanted for n in ast.walk(s)):
            last = s
    return Forward(backward, reaching[0], last)


def _calls_model(roles: Roles, stmt: ast.stmt) -> bool:
    inside = {id(n) for n in ast.walk(stmt)}
    passes = [p.call for p in (*roles.forwards, *roles.detours)]
    if any(id(c) in inside for c in passes):
        return True
    functions = roles.all_entered(stmt)
    return any(roles.names.function(c) in functions for c in passes)


def steps(roles: Roles) -> list[Step]:
    """Every optimizer step that is a statement of its own, in order."""
    made = {o.call: o for o in roles.optimizers}
    out = []
    for call in roles.calls:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "step" and not call.args:
            stepped = tuple(made[v.node] for v in roles.values.eval(func.value) if v.node in made)
            stmt = roles.names.parent[call]
            if stepped and isinstance(stmt, ast.Expr):
                out.append(Step(call, stmt, func.value, stepped, tuple(_clips(roles, stmt))))
    return sorted(out, key=lambda s: position(s.call))


def _clips(roles: Roles, stmt: ast.stmt) -> list[ast.stmt]:
    block = roles.names.block(stmt)
    return [s for s in block[: block.index(stmt)] if clips(roles, s)]


def clips(roles: Roles, stmt: ast.AST) -> bool:
    """Whether the statement clips gradients."""
    return any(isinstance(n, ast.Call) and roles.names.dotted(n.func) in CLIPPING for n in ast.walk(stmt))
