"""A model spreads its own forward over several GPUs.

## What it finds
`nn.parallel.data_parallel(module, inputs, …)` inside a method of a model.

## Why it matters
The call copies a part of the model to every GPU of this process, in every forward pass. Under DDP each process has one GPU, and the other
ranks' GPUs would be taken as well.

## Example
```python
output = nn.parallel.data_parallel(self.main, input, range(self.ngpu))
```
becomes
```python
output = self.main(input)
```
and the whole model is wrapped where it is built.

## When it is not fixed
Outside a model the call goes round the wrapper that DDP needs, and it is refused (DPM903).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import Replace
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import DATA_PARALLEL_FUNCTION, driven_directly


@rule("DPM143", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def functional_data_parallel(script: Script) -> Iterator[Hit]:
    for call in script.calls(*DATA_PARALLEL_FUNCTION):
        code = driven_directly(script, call)
        if code is not None:
            yield Hit(call, "the model copies itself to every GPU in each forward pass", (Replace(script.span(call), code),))
