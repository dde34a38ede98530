"""Every rank reports to the experiment tracker.

## What it finds
Calls of wandb, mlflow, comet_ml, neptune and clearml; the observers of sacred.

## Why it matters
W runs appear for one training, each with the numbers of one rank.

## Example
```python
wandb.init(project="demo")
wandb.log({"loss": loss})
```
becomes
```python
if ddp.is_main():
    wandb.init(project="demo")
    wandb.log({"loss": loss})
```

Settings that are read back from it (`config = wandb.config`, `lr = wandb.config.lr`, `run.config` of `run = wandb.init(…)`) exist on rank 0 only, and become
`ddp.main_settings(wandb.config)`: the same on all ranks. The number that sacred's observers give a run (`_run._id`) becomes `ddp.from_main(_run._id)`.

## When it is not fixed
Settings that are changed after they are read (`wandb.config.lr = 0.1` behind `config = wandb.config`): the other ranks have a copy. Settings that are read in
a loop, where the ranks would wait for each other in every turn, and what else a run knows (`wandb.run.dir`).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose, Wrap
from dpmigrate.facts.names import last, position
from dpmigrate.facts.outside import reports
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import by_main


@rule("DPM504", severity=Severity.WARNING, fix=Fix.SAFE)
def experiment_tracker(script: Script) -> Iterator[Hit]:
    new = AddImport(script.import_line)
    for call in script.roles.calls:
        if _tracks(script, call) and not any(_tracks(script, a) for a in script.names.ancestors(call) if isinstance(a, ast.expr)):
            yield Hit(call, "every rank would report a run of its own", (by_main(script, call), new))
    for number in _numbers_of_runs(script):
        if _once(script, number):
            yield Hit(number, f"{script.text(number)} exists on rank 0 only", (Wrap(script.span(number), f"{script.ddp}.from_main({{}})"), new))
        else:
            yield Hit(number, f"{script.text(number)} exists on rank 0 only", severity=Severity.BLOCKER, advice="read it once, before the training")
    changed = _changed(script)
    for node in script.names.nodes:
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        settings = script.names.dotted(node) == "wandb.config" or _of_a_run(script, node)
        if not settings and script.names.dotted(node) != "wandb.run":
            continue
        stmt = script.names.statement(node)
        if isinstance(stmt, ast.Assign) and any(script.names.is_inside(node, t) for t in stmt.targets):
            header = f"if {script.ddp}.is_main():"
            yield Hit(node, "what is noted for the run is known on rank 0 only", (Enclose(script.span(stmt), script.span(stmt), header), new))
        elif _is_read(script, node) and settings and (late := _changed_later(script, node, changed)) is not None:
            words = f"{script.text(node)} is changed on rank 0 alone after it is read here, and the program reads what is changed ({script.where(late)})"
            yield Hit(node, words, severity=Severity.BLOCKER, advice="change the settings before they are read, or change the script's own")
        elif _is_read(script, node) and settings and _once(script, node):
            yield Hit(node, f"{script.text(node)} exists on rank 0 only", (Wrap(script.span(node), f"{script.ddp}.main_settings({{}})"), new))
        elif _is_read(script, node):
            yield Hit(node, f"{script.text(node)} exists on rank 0 only", severity=Severity.BLOCKER, advice="read the value from the script's own settings")


def _changed(script: Script) -> list[tuple[ast.stmt, frozenset[str] | None]]:
    """The statements that change the settings of a run, each with the names of the settings; None where these are not seen."""
    found: list[tuple[ast.stmt, frozenset[str] | None]] = []
    for node in script.names.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or not (script.names.dotted(node) == "wandb.config" or _of_a_run(script, node)):
            continue
        stmt, above = script.names.statement(node), script.names.parent[node]
        call = script.names.parent.get(above)
        if isinstance(stmt, ast.Assign | ast.AugAssign) and isinstance(above, ast.Attribute | ast.Subscript) and isinstance(above.ctx, ast.Store):
            key = above.attr if isinstance(above, ast.Attribute) else getattr(above.slice, "value", None)
            found.append((stmt, frozenset([key]) if isinstance(key, str) else None))
        elif isinstance(above, ast.Attribute) and above.attr in ("update", "setdefaults") and isinstance(call, ast.Call):
            given = [k.value for d in call.args if isinstance(d, ast.Dict) for k in d.keys if isinstance(k, ast.Constant)]
            written = all(isinstance(d, ast.Dict) and all(isinstance(k, ast.Constant) for k in d.keys) for d in call.args[:1])
            named = [k.arg for k in call.keywords if k.arg != "allow_val_change"]
            found.append((stmt, frozenset(map(str, (*given, *named))) if written and None not in named else None))
        elif isinstance(above, ast.Call) and script.names.dotted(above.func) == "?.setattr" and above.args[:1] == [node]:
            found.append((stmt, None))
    return found


def _changed_later(script: Script, node: ast.expr, changed: list[tuple[ast.stmt, frozenset[str] | None]]) -> ast.stmt | None:
    """What may change settings after they are read: the other ranks have a copy of what they were. Of single settings that are noted, and that nothing in the
    program reads, nobody asks.
    """
    whole = not isinstance(script.names.parent[node], ast.Attribute | ast.Subscript)
    for stmt, keys in changed if whole else ():
        before = script.names.function(stmt) is script.names.function(node) and position(stmt) < position(node)
        if not before and (keys is None or any(_reads(script, k, stmt) for k in keys)):
            return stmt
    return None


def _reads(script: Script, key: str, but: ast.stmt) -> bool:
    """Whether the program reads a setting of a name, by an attribute or an item."""
    for n in script.names.nodes:
        match n:
            case ast.Attribute(attr=name):
                found = name == key
            case ast.Subscript(slice=ast.Constant(value=name)):
                found = name == key
            case ast.Call(func=func, args=args) if last(func) in ("get", "getattr"):
                found = any(isinstance(a, ast.Constant) and a.value == key for a in args)
            case _:
                found = False
        if found and isinstance(getattr(n, "ctx", ast.Load()), ast.Load) and not script.names.is_inside(n, but):
            return True
    return False


def _of_a_run(script: Script, node: ast.Name | ast.Attribute) -> bool:
    """``run.config`` of ``run = wandb.init(…)``, also ``with wandb.init(…) as run:``."""
    if not isinstance(node, ast.Attribute) or node.attr != "config" or not isinstance(node.value, ast.Name | ast.Attribute):
        return False
    given: list[ast.AST] = [*script.roles.given(node.value)]
    if isinstance(node.value, ast.Name):
        bound = script.names.bindings(script.names.scope_of[node.value], node.value.id)
        given += [b.value for b in bound if b.how == "with" and b.value is not None]
    return any(isinstance(g, ast.Call) and script.names.dotted(g.func) == "wandb.init" for g in given)


def _numbers_of_runs(script: Script) -> Iterator[ast.expr]:
    """``_run._id``, ``ex.current_run._id`` of sacred: the number of the run, which an observer gives it."""
    if not any(d.partition(".")[0] == "sacred" for d in script.names.imports.values()):
        return
    yield from (n for n in script.names.attributes("_id") if isinstance(n.ctx, ast.Load) and last(n.value) in ("_run", "current_run"))


def _tracks(script: Script, node: ast.AST) -> bool:
    """Whether the node is a call of a tracker, or gives one to an experiment: ``ex.observers.append(MongoObserver())``."""
    if not isinstance(node, ast.Call):
        return False
    given = isinstance(node.func, ast.Attribute) and node.func.attr == "append" and last(node.func.value) == "observers"
    return reports(script.roles, node) or (given and any(_tracks(script, a) for a in node.args))


def _is_read(script: Script, node: ast.expr) -> bool:
    """Whether a value is taken from the run: not a call of its methods, an argument of the tracker's own, or a question whether it is there."""
    inside = list(itertools.takewhile(lambda a: not isinstance(a, ast.stmt), script.names.ancestors(node)))
    if not inside and isinstance(script.names.statement(node), ast.If | ast.While):
        return False
    return not any(_tracks(script, a) or _asks_none(a) for a in inside) and not _of_a_question(script, node)


def _of_a_question(script: Script, node: ast.expr) -> bool:
    """Whether the run is asked for in a test, or taken where it is there: ``wandb.run if wandb.run else wandb.init()``, ``wandb.run or wandb.init()``. Other
    ranks have none, and go the other way.
    """
    inner, above = node, script.names.parent[node]
    while isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
        inner, above = above, script.names.parent[above]
    if isinstance(above, ast.BoolOp) and isinstance(above.op, ast.Or):
        return inner is node and above.values.index(inner) < len(above.values) - 1 and _tracks(script, above.values[-1])
    if not isinstance(above, ast.IfExp):
        return False
    there = _there(script, above.test, script.names.dotted(node))
    return inner is above.test or (inner is node and there is not None and inner is (above.body if there else above.orelse))


def _there(script: Script, test: ast.expr, run: str) -> bool | None:
    """Whether a run is there where a test says yes, False where it says no; None where it asks for something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = _there(script, test.operand, run)
        return None if found is None else not found
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and _asks_none(test):
        found = _there(script, test.left, run)
        return None if found is None else isinstance(test.ops[0], ast.IsNot | ast.NotEq) is found
    return True if script.names.dotted(test) == run else None


def _once(script: Script, node: ast.expr) -> bool:
    """Whether every rank comes here, and not in each turn of a loop: all wait there for rank 0's settings."""
    apart = ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp | ast.IfExp | ast.BoolOp | ast.While | ast.For
    here = [a for n in script.leading_to(node) for a in script.names.ancestors(n)]
    return not any(isinstance(a, apart) for a in here) and script.roles.region(node) == "outside"


def _asks_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and any(isinstance(c, ast.Constant) and c.value is None for c in node.comparators)
