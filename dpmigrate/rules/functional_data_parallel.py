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

import ast
from collections.abc import Iterator

from dpmigrate.edit import Replace
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: the functional form, by the names under which torch has it
FUNCTIONAL = ("torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel")


@rule("DPM143", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def functional_data_parallel(script: Script) -> Iterator[Hit]:
    for call in script.calls(*FUNCTIONAL):
        code = direct(script, call)
        if code is not None:
            yield Hit(call, "the model copies itself to every GPU in each forward pass", (Replace(script.span(call), code),))


def direct(script: Script, call: ast.Call) -> str | None:
    """The plain call of the module that is driven, where the call stands in a model's method; None elsewhere."""
    module, inputs = script.argument(call, "module", 0), script.argument(call, "inputs", 1)
    if module is None or inputs is None or not script.roles.inside_module(call) or not isinstance(module, ast.Name | ast.Attribute | ast.Subscript):
        return None
    given = [script.text(e) for e in inputs.elts] if isinstance(inputs, ast.Tuple) else [script.text(inputs)]
    named = script.argument(call, "module_kwargs", 5)
    if named is not None and not (isinstance(named, ast.Constant) and named.value is None):
        given.append(f"**{script.text(named)}")
    return f"{script.text(module)}({', '.join(given)})"
