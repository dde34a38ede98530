"""Files are copied, moved, removed or exported by every rank.

## What it finds
Statements such as `shutil.copyfile(…)`, `shutil.rmtree(…)`, `os.remove(…)`, `plt.savefig(…)`, `df.to_csv(…)`, `save_image(…)`, `np.save(…)`,
`model.save_pretrained(…)`, and exports: `torch.onnx.export(…)`, `torch.jit.script(model).save(…)`, `safetensors`, a profiler's `export_chrome_trace`.
What else saves something under a name that all ranks have, whatever object it is: `image.resize(size).save(path)`, `mesh.export("a.obj")`. An execution of
the program on paper says so.
A loop over the files of a folder that writes them anew goes to rank 0 as a whole.
Files that are sent to a hub or a store (`api.upload_file(…)`, `model.push_to_hub(…)`), also where the result is used.

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

A test that removes or moves a folder and makes one anew is rank 0's as a whole. What takes something out of a list for its argument is
`ddp.main_only(os.remove, found.pop(0))`, so that the list gets shorter on all ranks.
Where folders are removed before the training, all ranks wait for that (`ddp.barrier()`): they may make one anew next.

## When it is not fixed
Calls whose result is used, but for those that send files: `ddp.main_only(api.upload_file, …)`. What a data set keeps of the sample that it is asked for,
under a name of that sample's own (`np.save(f"cache/{i}.npy", x)` in `__getitem__`), is each rank's: the report says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, After, Edit, Enclose
from dpmigrate.facts.names import last
from dpmigrate.facts.outside import changes_files, sends_files
from dpmigrate.facts.ranks import reached_together
from dpmigrate.facts.sample_files import keeps_one_sample
from dpmigrate.facts.script import Script
from dpmigrate.facts.written import saves
from dpmigrate.model import Fix, Severity, is_main_guard
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import by_main


@rule("DPM507", severity=Severity.ERROR, fix=Fix.SAFE)
def file_changed_by_every_rank(script: Script) -> Iterator[Hit]:
    for loop in script.folder_loops:
        alone = Enclose(script.span(loop), script.span(loop), f"if {script.ddp}.is_main():")
        yield Hit(loop, "every rank would read the files of this folder while others write them anew", (alone, AddImport(script.import_line)))
    for whole in script.preparations:
        alone = Enclose(script.span(whole), script.span(whole), f"if {script.ddp}.is_main():")
        edits = (alone, After(script.span(whole), f"{script.ddp}.barrier()"), AddImport(script.import_line))
        yield Hit(whole, "every rank would remove this folder and make it anew", edits)
    for call in script.roles.calls:
        if script.prepares(call) or keeps_one_sample(script, call):
            continue
        changes = script.is_statement(call) is not None and (changes_files(script.roles, call) or saves(script, call))
        if any(script.names.is_inside(call, loop) for loop in script.folder_loops):
            continue
        if (changes or sends_files(script.roles, call)) and not script.made_once(call):
            found: list[Edit] = [by_main(script, call), AddImport(script.import_line)]
            holding = _whole(script, call)
            trains = script.roles.region(call) != "outside" or any(script.names.is_inside(b.node, holding) for b in script.roles.train_loops)
            if last(call.func) in _REMOVES and not trains and reached_together(script.roles, holding):
                found.append(After(script.span(holding), f"{script.ddp}.barrier()"))
            yield Hit(call, f"every rank would do this: {script.text(call.func)}(…)", tuple(found))


#: what removes folders, which others may be making at that time
_REMOVES = ("rmtree", "rmdir", "removedirs")


def _whole(script: Script, call: ast.Call) -> ast.stmt:
    """The statement with the tests and loops round it, within ``if __name__ == "__main__":``."""
    whole = script.names.statement(call)
    while isinstance(above := script.names.parent[whole], ast.If | ast.For | ast.While) and not is_main_guard(above):
        whole = above
    return whole
