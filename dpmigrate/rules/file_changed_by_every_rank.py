"""Files are copied, moved, removed or exported by every rank.

## What it finds
Statements such as `shutil.copyfile(…)`, `shutil.rmtree(…)`, `os.remove(…)`, `plt.savefig(…)`, `df.to_csv(…)`, `save_image(…)`, `np.save(…)`.

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

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_DOTTED = frozenset(
    [
        "shutil.copyfile",
        "shutil.copy",
        "shutil.copy2",
        "shutil.copytree",
        "shutil.move",
        "shutil.rmtree",
        "shutil.make_archive",
        "os.remove",
        "os.unlink",
        "os.rename",
        "os.replace",
        "os.rmdir",
        "os.symlink",
        "os.system",
        "os.removedirs",
        "numpy.save",
        "numpy.savez",
        "numpy.savez_compressed",
        "numpy.savetxt",
        "torchvision.utils.save_image",
        "cv2.imwrite",
        "imageio.imwrite",
        "imageio.imsave",
        "imageio.mimsave",
        "matplotlib.pyplot.savefig",
        "matplotlib.pyplot.show",
        "matplotlib.pyplot.imsave",
        "scipy.io.savemat",
        "skimage.io.imsave",
        "joblib.dump",
    ]
)
_METHODS = frozenset(
    [
        "savefig",
        "to_csv",
        "to_json",
        "to_excel",
        "to_pickle",
        "to_parquet",
        "write_text",
        "write_bytes",
        "save_pretrained",
        "unlink",
        "rmdir",
        "save_image",
        "imwrite",
        "symlink_to",
    ]
)


@rule("DPM507", severity=Severity.ERROR, fix=Fix.SAFE)
def file_changed_by_every_rank(script: Script) -> Iterator[Hit]:
    for call in script.roles.calls:
        stmt = script.is_statement(call)
        dotted = script.names.dotted(call.func)
        method = isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
        if stmt is None or not (dotted in _DOTTED or method):
            continue
        edit = Enclose(script.span(stmt), script.span(stmt), f"if {script.ddp}.is_main():")
        yield Hit(call, f"every rank would do this: {script.text(call.func)}(…)", (edit, AddImport(script.import_line)))
