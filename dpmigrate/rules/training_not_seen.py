"""The program seems to train by code that is not read, or without `backward()`.

## What it finds
Programs without `backward()` that cannot be said to train nothing:

| the program | example |
|---|---|
| gives code that is not read an optimizer together with data | `TrainEpoch(model, loss=loss, optimizer=optimizer).run(loader)` |
| calls code that is not read to train, by its name, and gives it a model, data, an optimizer or epochs | `fit(model, loader)`, `Trainer(model=model).train()` |
| hands its training to a file of its own that is not there | a git submodule that is not checked out |
| takes gradients of parameters otherwise, and changes tensors by them | `torch.autograd.grad(loss, model.parameters())`, `torch.func.grad` |
| steps an optimizer over data, and nothing in it goes backward | `compute_gradients(model, x)`, `optimizer.step()` |
| makes an optimizer or a loader that shuffles, and executes text that is not known | `exec(open(args.step).read())` |
| runs another script | `runpy.run_path(args.script)` |

A model that is summarised, measured, averaged or loaded trains nothing, also where code that is not read does that, and neither does an optimizer of which
only the schedule is drawn.

## Why it matters
The file would otherwise be reported as one that trains nothing. Started by torchrun as it is, every rank trains the same model on all of the data, unless
the library takes part in the process group by itself.

## Example
```python
trainer = TrainEpoch(model, loss=loss, optimizer=optimizer)
trainer.run(train_loader)
```
can be migrated after it is written as
```python
for x, y in train_loader:
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()
```

## When it is not fixed
Always: it is a refusal. Where nothing is trained after all, `# dpmigrate: ignore[DPM146]` on the line says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.facts.unseen import Unseen
from dpmigrate.literals import SIGNS
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_LIBRARY = "start it as the documentation of {library} says, or, if {library} is your own, check again where its files are found beside the script"
#: for each sign what is said and what can be done
_SAID = {
    "library": ("{what}{given}: whether and how it trains is not seen", _LIBRARY),
    "absent": ("{what}{given}, and {why}: whether and how it trains is not seen", "{remedy}"),
    "name": ("what is found by {what}{given}: whether and how it trains is not seen", "import it by its name, as in: from trainers.base import Trainer"),
    "gradients": ("gradients are taken by {what}: DistributedDataParallel averages those of backward() alone", "call backward() on the loss"),
    "steps": ("{what}() is called, and nothing here goes backward: where the gradients come from is not seen", "call backward() on the loss here"),
    "executed": ("text is executed that is not known: whether it trains is not seen", "import what it does from a module"),
    "script": ("{what} runs {script}, which is not read: whether it trains is not seen", "check and migrate the script that it runs"),
}


@rule("DPM146", severity=Severity.BLOCKER, literals=SIGNS)
def training_not_seen(script: Script) -> Iterator[Hit]:
    for sign in script.unseen if script.entry is not None else ():
        message, advice = _SAID[sign.by]
        given = {
            "what": sign.what,
            "library": sign.what.partition(".")[0],
            "given": f" is given {' and '.join(sign.given)}" if sign.given else " is called",
            "script": " ".join(sign.given),
            "why": sign.absent.why if sign.absent is not None else "",
            "remedy": _remedy(sign),
        }
        yield Hit(sign.node, message.format(**given), advice=advice.format(**given))


def _remedy(sign: Unseen) -> str:
    if sign.absent is None:
        return ""
    if "submodule" in sign.absent.why:
        return "git submodule update --init --recursive, then check again"
    return f"check again where {sign.absent.path} can be read"
