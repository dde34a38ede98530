"""Every rank reports to the experiment tracker.

## What it finds
Calls of wandb, mlflow, comet_ml, neptune and clearml.

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

## When it is not fixed
Values read back from the tracker (`wandb.config.lr`): they exist on rank 0 only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, MainOnly
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_MODULES = ("wandb.", "mlflow.", "comet_ml.", "neptune.", "clearml.", "swanlab.", "tensorboard_logger.")


@rule("DPM504", severity=Severity.WARNING, fix=Fix.SAFE)
def experiment_tracker(script: Script) -> Iterator[Hit]:
    new = AddImport(script.import_line)
    for call in script.roles.calls:
        if not script.names.dotted(call.func).startswith(_MODULES):
            continue
        stmt = script.is_statement(call)
        if any(isinstance(a, ast.Call) and script.names.dotted(a.func).startswith(_MODULES) for a in script.names.ancestors(call) if isinstance(a, ast.expr)):
            continue
        edit: Edit = (
            Enclose(script.span(stmt), script.span(stmt), f"if {script.ddp}.is_main():") if stmt else MainOnly(script.span(call), f"{script.ddp}.main_only")
        )
        yield Hit(call, "every rank would report a run of its own", (edit, new))
    for node in script.names.nodes:
        if (
            isinstance(node, ast.Attribute)
            and script.names.dotted(node) in ("wandb.config", "wandb.run")
            and isinstance(script.names.parent[node], ast.Attribute)
        ):
            parent = script.names.parent[node]
            if isinstance(parent.ctx, ast.Load) and not isinstance(script.names.parent[parent], ast.Call):  # type: ignore[attr-defined]
                yield Hit(
                    node, f"{script.text(parent)} exists on rank 0 only", severity=Severity.BLOCKER, advice="read the value from the script's own settings"
                )
