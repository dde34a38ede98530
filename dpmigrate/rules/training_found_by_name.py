"""What trains is found by name, or put in a function's place, when the program runs.

## What it finds
Programs whose training is not in their text: a trainer or step that `importlib.import_module(name)`, `hydra.utils.instantiate(cfg)`, `eval`, `exec` or a
registry gives and that nothing else shows; decorators of the program's own that call the training function several times, with other arguments, or not at
all; a `forward` that is set on the wrapper.

## Why it matters
Nothing that is not seen can be divided over ranks: each rank would train alone, over all of the data, and the program would look as if it trained nothing.

## Example
```python
trainer = hydra.utils.instantiate(cfg.trainer)
trainer.fit(model, loader, optimizer)
```
can be followed when it is written as
```python
from trainers.base import Trainer

trainer = Trainer(cfg.trainer)
trainer.fit(model, loader, optimizer)
```

## When it is not fixed
Always: it is a refusal. Decorators that call the function once and hand its arguments on (timers, loggers) are followed, and so are look-ups whose every
candidate is in the program (DPM144).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.replaced import forwards_given, replacing, unseen_training
from dpmigrate.facts.script import Script
from dpmigrate.literals import BY_NAME, TRAINING
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM911", severity=Severity.BLOCKER, literals=(*TRAINING, *BY_NAME))
def training_found_by_name(script: Script) -> Iterator[Hit]:
    if not script.roles.backwards:
        for call, corner in unseen_training(script.roles):
            yield Hit(
                call, f"what trains is found by {corner} when the program runs, and not seen",
                advice="import it by its name, as in: from trainers.base import Trainer",
            )  # fmt: skip
    for node in forwards_given(script.roles, parallel=script.from_data_parallel):
        yield Hit(
            node, "the wrapper is given another forward, so that gradients would not be averaged",
            advice="give it to the model before it is wrapped, or write the class with this forward",
        )  # fmt: skip
    for decorator, why in replacing(script.roles):
        yield Hit(decorator, script.told(why), advice="leave the decorator out, and write what it does where the function is called")
