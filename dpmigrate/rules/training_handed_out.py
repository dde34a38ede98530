"""The program starts its training elsewhere: in processes or threads of its own, or by a tuner.

## What it finds
`mp.spawn`, `mp.Process`; pools, executors, threads and `joblib` that are given a function which trains; tuners that run it again and again
(`study.optimize(objective)`, `wandb.agent(…, function=train)`, `hyperopt.fmin`, Ray).

## Why it matters
torchrun starts one process for each GPU. A program that starts processes itself would start N in each of N. Threads that train at the same time mix up
each other's collectives. A tuner draws the settings of a run in every process for itself: the ranks would train *one* model with different learning rates,
without an error.

## Example
```python
mp.spawn(main_worker, nprocs=torch.cuda.device_count(), args=(args,))
```
can be migrated after it is written as
```python
main_worker(0, args)
```
and a search is kept outside: the tuner runs the whole command for each trial (`torchrun … train.py --lr 0.01`), with the settings as arguments.

## When it is not fixed
Always: what the processes were to share, and which settings all ranks should take, only the author knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.launch import starters
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_REASONS = {
    "process": ("the script starts processes of its own; torchrun does that for DDP", "call the worker function once and let torchrun start the processes"),
    "pool": ("a pool runs the training, perhaps several times at once: the processes of torchrun train one model together", "call the training function once"),
    "thread": ("a thread trains: threads that train at the same time mix up each other's collectives", "call the training function in the main thread"),
    "tuner": (
        "the tuner draws the settings of each run in every process for itself: the ranks would train one model with different settings",
        "take the settings from the command line, and let the tuner run the whole command (torchrun …) for each trial",
    ),
}


@rule("DPM703", severity=Severity.BLOCKER)
def training_handed_out(script: Script) -> Iterator[Hit]:
    for starter in starters(script.roles):
        message, advice = _REASONS[starter.by]
        yield Hit(starter.node, message, advice=advice)
