"""Mixed precision is asked for with --amp.

## What it finds
With `--amp`: the forward pass and loss of every training step, optimizer steps, gradient clipping, and checkpoints that hold an optimizer's state.

## Why it matters
autocast round forward and loss halves memory and uses tensor cores; float16 needs a GradScaler, whose scale must be taken out of the gradients before
they are clipped (a norm of 3.7e4 was seen instead of 0.56) and whose state belongs to the checkpoint.

## Example
```python
output = model(x)
loss = criterion(output, y)
loss.backward()
optimizer.step()
```
becomes
```python
with torch.autocast(ddp.device().type, dtype=torch.float16):
    output = model(x)
    loss = criterion(output, y)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## When it is not fixed
A program that has autocast already keeps its own. A loss that is not assigned to a name before `backward()`, clipping outside the block of the step, gradients
that are used by hand before the step, and steps spread over functions are refused.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dpmigrate.edit import AddImport, After, Before, Edit, Enclose, Replace, SetItem
from dpmigrate.facts import steps
from dpmigrate.facts.script import Script
from dpmigrate.facts.wraps import is_main_guard
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._shared import scaled_backward, scaler_name


@rule("DPM321", severity=Severity.NOTE, fix=Fix.SAFE, core=True)
def mixed_precision(script: Script) -> Iterator[Hit]:
    if not script.settings.amp or not script.roles.train_loops:
        return
    own = next((c for c in script.roles.calls if script.names.dotted(c.func).endswith(".autocast")), None)
    if own is not None:
        yield Hit(own, "the program has autocast already: left as it is")
        return
    stepping = [s for s in steps.steps(script.roles) if script.roles.region(s.call) in ("train", "both")]
    problem = next(_problems(script, stepping), None)
    if problem is not None:
        yield problem
        return
    scaling = script.settings.amp_dtype == "float16"
    for backward in script.roles.backwards:
        forward = steps.forward_of(script.roles, backward)
        assert forward is not None
        header = f"with torch.autocast({script.ddp}.device().type, dtype=torch.{script.settings.amp_dtype}):"
        edits: list[Edit] = [Enclose(script.span(forward.first), script.span(forward.last), header), AddImport(script.import_line), *_torch(script)]
        if scaling:
            edits.append(scaled_backward(script, backward))
        yield Hit(backward, f"forward and loss run in {script.settings.amp_dtype}", tuple(edits))
    if scaling:
        yield from _scaler(script, stepping)


def _problems(script: Script, stepping: list[steps.Step]) -> Iterator[Hit]:
    advice = "write the step as: loss = …; loss.backward(); clip; optimizer.step() in one block, or migrate without --amp"
    for backward in script.roles.backwards:
        if steps.forward_of(script.roles, backward) is None:
            yield Hit(
                backward, "autocast cannot be placed: the forward pass is not a statement beside this backward()", severity=Severity.BLOCKER, advice=advice
            )
    if not stepping or len({script.names.function(s.call) for s in stepping}) > 1:
        yield Hit(
            script.roles.backwards[0], "the scaler cannot be placed: optimizer steps are not found in one function", severity=Severity.BLOCKER, advice=advice
        )
    if stepping and _update_after(script, stepping) is None:
        yield Hit(
            stepping[-1].call,
            "the scaler cannot be updated once in every step: all optimizers step under different tests",
            severity=Severity.BLOCKER,
            advice=advice,
        )
    for call in script.calls("torch.autograd.grad"):
        if script.roles.region(call) in ("train", "both"):
            yield Hit(
                call,
                "gradients taken by autograd.grad are not scaled and may vanish in half precision",
                severity=Severity.BLOCKER,
                advice="migrate without --amp",
            )
    beside = {id(n) for s in stepping for c in s.clips for n in ast.walk(c)}
    for node in script.names.nodes:
        if (
            isinstance(node, ast.Expr | ast.Assign)
            and steps.clips(script.roles, node)
            and id(node) not in beside
            and script.roles.region(node) in ("train", "both")
        ):
            yield Hit(
                node,
                "gradients are clipped outside the block of the optimizer's step: the scale cannot be taken out once",
                severity=Severity.BLOCKER,
                advice=advice,
            )

    if script.settings.amp_dtype == "float16":
        for node in script.names.nodes:
            if _reads_gradients(script, node) and script.roles.region(node) in ("train", "both"):
                why = "gradients are used here while they still carry the scale"
                yield Hit(node, why, severity=Severity.BLOCKER, advice="migrate with --amp-dtype bfloat16, which needs no scale, or without --amp")


def _reads_gradients(script: Script, node: ast.AST) -> bool:
    """``p.grad.data.clamp_(…)``, or a function of another file that clips."""
    if isinstance(node, ast.Attribute):
        return node.attr == "grad" and isinstance(node.ctx, ast.Load) and not script.names.dotted(node)
    if not isinstance(node, ast.Call) or any(True for _ in script.values.targets(node)):
        return False
    dotted = script.names.dotted(node.func)
    return bool(dotted) and dotted not in steps.CLIPPING and "clip" in dotted.rsplit(".", 1)[-1] and not dotted.startswith(("torch.", "numpy."))


def _torch(script: Script) -> list[Edit]:
    known = any(dotted == "torch" and name == "torch" for (s, name), dotted in script.names.imports.items() if s == id(script.names.module))
    return [] if known else [AddImport("import torch")]


def _scaler(script: Script, stepping: list[steps.Step]) -> Iterator[Hit]:
    scaler = scaler_name(script)
    last = stepping[-1]
    for s in stepping:
        optimizer = script.text(s.receiver)
        edits: list[Edit] = [Replace(script.span(s.call), f"{scaler}.step({optimizer})")]
        if s.clips:
            edits.append(Before(script.span(s.clips[0]), f"{scaler}.unscale_({optimizer})"))
        if s is last:
            place = _update_after(script, stepping)
            assert place is not None
            edits.append(After(script.span(place), f"{scaler}.update()"))
        yield Hit(s.call, "the step goes through the scaler", tuple(edits))
    state = list(_state(script, scaler))
    yield _made(script, last, scaler, state)
    yield from state


def _update_after(script: Script, stepping: list[steps.Step]) -> ast.stmt | None:
    """The statement that ``scaler.update()`` follows: once in every turn in which an optimizer steps."""
    last = stepping[-1].stmt
    blocks = [script.names.block(s.stmt) for s in stepping]
    if all(b is blocks[0] for b in blocks):
        return last
    for a in [last, *script.names.ancestors(last)]:  # some step under a test: after the test, beside a step that always runs
        if isinstance(a, ast.stmt) and not isinstance(a, ast.FunctionDef | ast.ClassDef) and any(b is script.names.block(a) for b in blocks) and a is not last:
            return a
    own = script.names.block(last)
    inside = all(any(x in own for x in [s.stmt, *script.names.ancestors(s.stmt)]) for s in stepping)
    return last if inside else None


def _made(script: Script, step: steps.Step, scaler: str, state: list[Hit]) -> Hit:
    """The scaler is made beside the optimizer where everything that uses it sees it, otherwise at module level before the first function that does."""
    code = f"{scaler} = torch.amp.GradScaler({script.ddp}.device().type)"
    writes = [w for key in script.values.keys(step.receiver) for w in script.roles.writes(key)]
    users = [step.call, *(hit.node for hit in state)]
    inside = [[script.names.function(u), *script.names.ancestors(u)] for u in users]
    home = script.names.function(writes[-1]) if writes else None
    if home is not None and (scaler.startswith("self.") or home is script.names.tree or all(home in scopes for scopes in inside)):
        place = writes[-1]
        for a in itertools.takewhile(lambda a: isinstance(a, ast.If | ast.Try) and not is_main_guard(a), script.names.ancestors(place)):
            assert isinstance(a, ast.stmt)
            place = a
        return Hit(step.call, "a GradScaler is made beside the optimizer", (After(script.span(place), code),))
    tops = [next(a for a in [u, *script.names.ancestors(u)] if script.names.parent.get(a) is script.names.tree) for u in users]
    first = min(tops, key=lambda t: script.span(t).line)
    return Hit(step.call, "a GradScaler is made for the training step", (Before(script.span(first), code),))


def _state(script: Script, scaler: str) -> Iterator[Hit]:
    """The scaler's state goes where the optimizer's goes."""
    made = {o.call for o in script.roles.optimizers}
    owner = script.names.cls(steps.steps(script.roles)[-1].call)
    for call, func in script.methods("state_dict", "load_state_dict"):
        if not any(v.node in made for v in script.values.eval(func.value)):
            continue
        if scaler.startswith("self.") and script.names.cls(call) is not owner:
            continue  # another self
        parent = script.names.parent[call]
        if func.attr == "state_dict" and isinstance(parent, ast.Dict):
            yield Hit(call, "the scaler's state is saved with the optimizer's", (SetItem(script.span(parent), "scaler", f"{scaler}.state_dict()"),))
        elif func.attr == "load_state_dict" and isinstance(parent, ast.Expr) and call.args and _is_item(call.args[0]):
            assert isinstance(call.args[0], ast.Subscript)
            held = script.text(call.args[0].value)
            code = f'if "scaler" in {held}:\n    {scaler}.load_state_dict({held}["scaler"])'
            yield Hit(call, "the scaler's state is loaded with the optimizer's", (After(script.span(parent), code),))


def _is_item(node: ast.expr) -> bool:
    """``checkpoint["optimizer"]``: an item of something that may be written twice."""
    if not isinstance(node, ast.Subscript):
        return False
    return not any(isinstance(n, ast.Call) for n in ast.walk(node.value))
