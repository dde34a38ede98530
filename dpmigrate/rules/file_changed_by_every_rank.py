"""Files are copied, moved, removed or exported by every rank.

## What it finds
Statements such as `shutil.copyfile(…)`, `shutil.rmtree(…)`, `os.remove(…)`, `plt.savefig(…)`, `df.to_csv(…)`, `save_image(…)`, `np.save(…)`,
`model.save_pretrained(…)`, and exports: `torch.onnx.export(…)`, `torch.jit.script(model).save(…)`, `safetensors`, a profiler's `export_chrome_trace`.

## Why it matters
The second rank finds the file gone, half copied, or overwrites it.

## Example
```python
shutil.copyfile("last.pt", "best.pt")
```
becomes
```python
if ddp.is_main():
    shutil.copyfile("last.pt", "best.pt")
```

## When it is not fixed
Calls whose result is used.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport
from dpmigrate.facts.outside import changes_files
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import by_main


@rule("DPM507", severity=Severity.ERROR, fix=Fix.SAFE)
def file_changed_by_every_rank(script: Script) -> Iterator[Hit]:
    for call in script.roles.calls:
        if script.is_statement(call) is not None and changes_files(script.roles, call) and not script.made_once(call):
            yield Hit(call, f"every rank would do this: {script.text(call.func)}(…)", (by_main(script, call), AddImport(script.import_line)))
