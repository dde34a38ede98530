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
A program that has autocast or a GradScaler already keeps its own. Evaluation stays in float32.

Refused are a forward pass in another function than its `backward()`, gradients taken by `autograd.grad` (a gradient penalty), and, since float16 gradients
carry a scale, whatever would use them with it: clipping outside the block of the step (in the middle of an accumulation), gradients read by hand, a step
after the loop over the batches, an optimizer whose steps are not seen. One scaler serves all optimizers; it is updated once in each turn of the loop that
steps. It stands beside the optimizer, as an attribute of the trainer, or at module level of the file that holds the step; where backward passes and steps
stand in several files it is refused.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dpmigrate.edit import AddImport, After, Before, Edit, Enclose, Hoist, Replace, SetItem
from dpmigrate.facts import precision, steps
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.facts.spelling import module_word
from dpmigrate.facts.turns import Turn
from dpmigrate.facts.turns import turns as turns_of
from dpmigrate.model import Fix, Severity, is_main_guard
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import scaled_backward, scaler_name, torch_at


@rule("DPM321", severity=Severity.NOTE, fix=Fix.SAFE, core=True)
def mixed_precision(script: Script) -> Iterator[Hit]:
    if not script.settings.amp or not script.roles.train_loops:
        return
    if script.own_amp is not None:
        what = "apex" if precision.is_apex(script.roles, script.own_amp) else script.text(script.own_amp.func).rsplit(".", 1)[-1]
        yield Hit(script.own_amp, f"the program has {what} already: left as it is")
        return
    scaling = script.settings.amp_dtype == "float16"
    stepping = [s for s in steps.steps(script.roles) if script.roles.region(s.call) != "eval"]
    turns = turns_of(script.roles, stepping)
    problems = [*_unplaced(script), *(_unscaled(script, stepping, turns) if scaling else ())]
    if problems:
        yield from problems
        return
    header = f"with torch.autocast({script.ddp}.device().type, dtype=torch.{script.settings.amp_dtype}):"
    taken: set[str] = set()
    for backward in script.roles.backwards:
        forward = steps.forward_of(script.roles, backward)
        assert forward is not None
        edits: list[Edit] = [AddImport(script.import_line), *torch_at(script, backward)]
        if forward.statements is not None:
            first, last = forward.statements
            edits.append(Enclose(script.span(first), script.span(last), header))
        if forward.inline is not None:
            taken.add(name := script.fresh("loss", taken))
            edits.append(Hoist(script.span(forward.inline), name, header=header))
        if scaling:
            edits.append(scaled_backward(script, backward))
        yield Hit(backward, f"forward and loss run in {script.settings.amp_dtype}", tuple(edits))
    if scaling:
        yield from _scaler(script, stepping, turns)


_BESIDE = "write the step as: loss = …; loss.backward(); clip; optimizer.step() in one block, or migrate without --amp"
_BFLOAT = "migrate with --amp-dtype bfloat16, which needs no scale, or without --amp"


def _unplaced(script: Script) -> Iterator[Hit]:
    """Where autocast cannot go."""
    for backward in script.roles.backwards:
        if steps.forward_of(script.roles, backward) is None:
            why = "autocast cannot be placed: the forward pass is not a statement beside this backward()"
            yield Hit(backward, why, severity=Severity.BLOCKER, advice=_BESIDE)
    for call in script.calls("torch.autograd.grad"):
        if script.roles.region(call) in ("train", "both"):
            why = "a gradient that autograd.grad takes is not scaled and may vanish in half precision"
            yield Hit(call, why, severity=Severity.BLOCKER, advice="migrate without --amp")


def _unscaled(script: Script, stepping: list[steps.Step], turns: list[Turn]) -> Iterator[Hit]:
    """Where gradients would be used while they carry the scale."""
    hidden = [c for c in steps.unplaced(script.roles) if script.roles.region(c) != "eval"]
    for call in hidden:
        yield Hit(call, "the scaler cannot be placed: this optimizer step is not a statement", severity=Severity.BLOCKER, advice=_BESIDE)
    stepped = {o for s in stepping for o in s.optimizers}
    for o in script.roles.optimizers:
        if o not in stepped and not hidden:
            why = "the scaler cannot be placed: where this optimizer steps is not seen"
            yield Hit(o.call, why, severity=Severity.BLOCKER, advice=_BFLOAT)
    functions = {script.names.function(s.call) for s in stepping}
    if len({script.names.module_of(n) for n in (*(s.call for s in stepping), *script.roles.backwards)}) > 1 and not scaler_name(script).startswith("self."):
        why = "the scaler cannot be placed: backward passes and optimizer steps stand in several files"
        yield Hit(stepping[-1].call, why, severity=Severity.BLOCKER, advice=_BFLOAT)
    for turn in turns:
        last = turn.steps[-1].call
        if turn.after is None:
            why = "the scaler cannot be updated once in every step: whether an optimizer has stepped depends on tests"
            yield Hit(last, why, severity=Severity.BLOCKER, advice=_BESIDE)
        elif len(turns) > 1 and not turn.fed:
            why = "this step is not in the loop of its backward(): it may find no gradients, at which a scaler fails"
            advice = "step in the loop, also at its last batch (or i + 1 == len(loader)), or migrate with --amp-dtype bfloat16"
            yield Hit(last, why, severity=Severity.BLOCKER, advice=advice)
        elif len(functions) > 1 and not _clears(script, script.names.function(last)):
            why = "the scaler cannot be placed: optimizers step in several functions, and this one does not clear its gradients"
            yield Hit(last, why, severity=Severity.BLOCKER, advice=_BESIDE)
    beside = {id(n) for s in stepping for c in s.clips for n in walk(c)}
    for node in script.names.nodes:
        if script.roles.region(node) not in ("train", "both"):
            continue
        if isinstance(node, ast.Expr | ast.Assign) and steps.clips(script.roles, node) and id(node) not in beside:
            why = "gradients are clipped outside the block of the optimizer's step: the scale cannot be taken out once"
            yield Hit(node, why, severity=Severity.BLOCKER, advice="clip right before optimizer.step(), under the same test, or migrate without --amp")
        elif _reads_gradients(script, node):
            yield Hit(node, "gradients are used here while they still carry the scale", severity=Severity.BLOCKER, advice=_BFLOAT)


def _clears(script: Script, function: ast.AST) -> bool:
    """Whether the function clears the gradients that it steps on: then no gradient of an older scale is left in them."""
    return any(script.names.function(c) is function for c in script.names.calls("zero_grad"))


def _reads_gradients(script: Script, node: ast.AST) -> bool:
    """``p.grad.data.clamp_(…)``, or a function outside of the program that clips; not what clears gradients or asks whether there are any."""
    if isinstance(node, ast.Attribute):
        if node.attr != "grad" or not isinstance(node.ctx, ast.Load) or script.names.dotted(node):
            return False
        above = script.names.parent[node]
        return not (isinstance(above, ast.Compare) or (isinstance(above, ast.Attribute) and above.attr in ("zero_", "detach_")))
    if not isinstance(node, ast.Call) or any(True for _ in script.values.targets(node)):
        return False
    dotted = script.names.dotted(node.func)
    return bool(dotted) and dotted not in steps.CLIPPING and "clip" in dotted.rsplit(".", 1)[-1] and not dotted.startswith(("torch.", "numpy."))


def _scaler(script: Script, stepping: list[steps.Step], turns: list[Turn]) -> Iterator[Hit]:
    scaler = scaler_name(script)
    updates: dict[steps.Step, list[Edit]] = {}
    for turn in turns:
        assert turn.after is not None
        code = f"{scaler}.update()"
        updates[turn.steps[-1]] = [After(script.span(turn.after), code), *(Before(script.span(s), code) for s in turn.leaving)]
    for s in stepping:
        optimizer = script.text(s.receiver)
        edits: list[Edit] = [Replace(script.span(s.call), f"{scaler}.step({optimizer})"), *updates.get(s, ())]
        if s.clips:
            edits.append(Before(script.span(s.clips[0]), f"{scaler}.unscale_({optimizer})"))
        yield Hit(s.call, "the step goes through the scaler", tuple(edits))
    state = list(_state(script, scaler))
    yield _made(script, stepping, scaler, [*(s.call for s in stepping), *script.roles.backwards, *(hit.node for hit in state if hit.edits)])
    yield from state


def _made(script: Script, stepping: list[steps.Step], scaler: str, users: list[ast.AST]) -> Hit:
    """The scaler is made beside the optimizer where everything that uses it sees it, otherwise at module level before the first function that does."""
    code = f"{scaler} = torch.amp.GradScaler({script.ddp}.device().type)"
    last = stepping[-1]
    writes = [w for key in script.values.keys(last.receiver) for w in script.roles.writes(key)]
    own = [u for u in users if script.names.module_of(u) is script.names.module_of(last.call)]  # other files reach it through the module of these
    inside = [[script.names.function(u), *script.names.ancestors(u)] for u in users]
    home = script.names.function(writes[-1]) if writes else None
    if home is not None and (scaler.startswith("self.") or all(home in scopes for scopes in inside)):
        place = writes[-1]
        for a in itertools.takewhile(lambda a: isinstance(a, ast.If | ast.Try) and not is_main_guard(a), script.names.ancestors(place)):
            assert isinstance(a, ast.stmt)
            place = a
        return Hit(last.call, "a GradScaler is made beside the optimizer", (After(script.span(place), code), *torch_at(script, place)))
    tops = [next(a for a in [u, *script.names.ancestors(u)] if isinstance(script.names.parent[a], ast.Module)) for u in own]
    first = min(tops, key=lambda t: script.span(t).line)
    return Hit(last.call, "a GradScaler is made for the training step", (Before(script.span(first), code),))


def _state(script: Script, scaler: str) -> Iterator[Hit]:
    """The scaler's state goes where the optimizer's goes."""
    made = {o.call for o in script.roles.optimizers}
    step = steps.steps(script.roles)[-1].call
    for call, func in script.methods("state_dict", "load_state_dict"):
        if not any(v.node in made for v in script.values.eval(func.value)):
            continue
        if scaler.startswith("self.") and script.names.cls(call) is not script.names.cls(step):
            continue  # another self
        name = _from_file(script, call, scaler, step)
        parent = script.names.parent[call]
        if name is None:
            advice = f"save and load {scaler}.state_dict() with the optimizer's, from the file of the training step"
            yield Hit(call, "the scaler's state is not seen here, and does not go where the optimizer's goes", severity=Severity.WARNING, advice=advice)
        elif func.attr == "state_dict" and isinstance(parent, ast.Dict):
            yield Hit(call, "the scaler's state is saved with the optimizer's", (SetItem(script.span(parent), "scaler", f"{name}.state_dict()"),))
        elif func.attr == "load_state_dict" and isinstance(parent, ast.Expr) and call.args and _is_item(call.args[0]):
            assert isinstance(call.args[0], ast.Subscript)
            held = script.text(call.args[0].value)
            code = f'if "scaler" in {held}:\n    {name}.load_state_dict({held}["scaler"])'
            yield Hit(call, "the scaler's state is loaded with the optimizer's", (After(script.span(parent), code),))


def _from_file(script: Script, node: ast.AST, scaler: str, step: ast.AST) -> str | None:
    """What the file of a node calls the scaler of the file of the training step; None where it has no name for that file."""
    home = script.names.module_of(step)
    if scaler.startswith("self.") or script.names.module_of(node) is home:
        return scaler
    word = module_word(script.names, home, script.names.scope_of[node])
    return f"{word}.{scaler}" if word is not None else None


def _is_item(node: ast.expr) -> bool:
    """``checkpoint["optimizer"]``: an item of something that may be written twice."""
    if not isinstance(node, ast.Subscript):
        return False
    return not any(isinstance(n, ast.Call) for n in walk(node.value))
