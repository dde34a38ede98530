"""The length of a training loader's sampler, or its batch size, stands for the whole data set or the global batch.

## What it finds
`len(loader.sampler)`, `len(loader) * loader.batch_size`, `steps * loader.batch_size` where the training loop counts its steps, and a number of
samples divided by `loader.batch_size`, where the loader is a training loader.

## Why it matters
The sampler of a rank has 1/W of the samples, and its batches are 1/W of the global batch. A loss that has been summed over all ranks would be divided by
a share and come out W times too large; a schedule of `len(data) // loader.batch_size` steps would be W times too long. `len(loader)` itself stays what it was.

## Example
```python
train_loss = train_loss / len(train_loader.sampler)
steps = epochs * len(train_set) // train_loader.batch_size
```
becomes
```python
train_loss = train_loss / len(train_loader.dataset)
steps = epochs * len(train_set) // (train_loader.batch_size * ddp.world_size())
```
Of a sampler of the script's own, `len(train_loader.sampler.whole)` is the length of the one for all ranks.

## When it is not fixed
Where the same expression may mean a training loader with a sampler of its own or another loader. Shapes and counts of one batch
(`x.view(loader.batch_size, -1)`, `correct / loader.batch_size`) are a rank's, and right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Replace, Wrap
from dpmigrate.facts.batch import of_loader
from dpmigrate.facts.loaders import critical_star
from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.script import Script
from dpmigrate.facts.values import Vals
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM219", severity=Severity.ERROR, fix=Fix.SAFE)
def length_of_a_share(script: Script) -> Iterator[Hit]:
    new = AddImport(script.import_line)
    for node in script.names.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "sampler" and _is_length(script, script.names.parent[node]):
            yield from _sampler(script, node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _all_samples(script, node):
            yield Hit(node, "these are the samples of one rank", (Wrap(script.span(node), f"{{}} * {script.ddp}.world_size()"), new))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv) and _counts_data(script, node.left):
            sizes = [n for n in walk(node.right) if _batch_size(script, n)]
            for size in sizes[:1]:
                edit = Wrap(script.span(size), f"{{}} * {script.ddp}.world_size()")
                yield Hit(size, "the samples of all ranks are divided by one rank's batch size", (edit, new))


def _is_length(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and script.names.dotted(node.func) == "?.len"


def _trained(script: Script, loaders: Vals) -> set[ast.Call]:
    """The calls that make the loaders, where one of them may be a training loader."""
    calls = {v.node for v in loaders if isinstance(v.node, ast.Call)}
    return calls if calls & {*script.train_loader_calls} else set()


def _loaders(script: Script, node: ast.AST) -> set[ast.Call]:
    """The calls that make what the expression may be, where it may be a training loader."""
    return _trained(script, script.roles.loaders_of(node))


def _sampler(script: Script, node: ast.Attribute) -> Iterator[Hit]:
    calls = _loaders(script, node.value)
    edits: tuple[Edit, ...] = ()
    if not calls:
        return
    if all(_plain(script, c) for c in calls):
        edits = (Replace(script.span(node), f"{script.text(node.value)}.dataset"),)
    elif all(c in script.train_loader_calls and script.reads_statically(c) and script.argument(c, "sampler", 3) is not None for c in calls):
        edits = (Wrap(script.span(node), "{}.whole"),)
    yield Hit(node, "the sampler of a rank has a share of the samples", edits, advice="" if edits else "take the length from the data set")


def _plain(script: Script, call: ast.Call) -> bool:
    """Whether the loader goes through its whole data set: its sampler then has the data set's length."""
    own = [a for name, index in (("sampler", 3), ("batch_sampler", 4)) if (a := script.argument(call, name, index)) is not None]
    return script.roles.makes_loader(call) and not critical_star(script, call) and all(isinstance(a, ast.Constant) for a in own)


def _batch_size(script: Script, node: ast.AST) -> bool:
    return bool(_trained(script, of_loader(script.roles, node)))


def _all_samples(script: Script, node: ast.BinOp) -> bool:
    """``len(loader) * loader.batch_size``, ``(i + 1) * loader.batch_size``, either way round."""
    pairs = ((node.left, node.right), (node.right, node.left))
    return any(_counts_batches(script, a) and _batch_size(script, b) for a, b in pairs)


def _counts_batches(script: Script, node: ast.expr, depth: int = 3) -> bool:
    """Whether it is the number of a loader's batches, or of those that the training loop has come to."""
    if isinstance(node, ast.Call):
        return _is_length(script, node) and bool(node.args) and bool(_loaders(script, node.args[0]))
    if isinstance(node, ast.BinOp):  # i + 1, epoch * len(loader) + i
        sides = (node.left, node.right)
        counts = isinstance(node.op, ast.Add | ast.Mult) and any(_counts_batches(script, s, depth) for s in sides)
        return counts and not any(_batch_size(script, s) for s in sides)
    bound = script.names.bindings(script.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ()
    return any(_of_a_turn(script, b) or (depth > 0 and _is_handed(script, b, depth - 1)) for b in bound)


def _is_handed(script: Script, b: Binding, depth: int) -> bool:
    """Whether each call of its function gives a parameter such a number: ``self._progress(batch_idx)``."""
    given = script.roles.handed(b)
    return bool(given) and all(e is not None and _counts_batches(script, e, depth) for e in given)


def _of_a_turn(script: Script, b: Binding) -> bool:
    """``i`` of ``for i, x in enumerate(loader)``, and what each turn adds one to."""
    loop = next((o.node for o in script.roles.train_loops if script.names.is_inside(b.target, o.node)), None)
    if b.how == "aug" and loop is not None:
        statement = script.names.statement(b.target)
        return isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add) and ast.unparse(statement.value) == "1"
    return b.how == "for" and isinstance(loop, ast.For) and script.names.is_inside(b.target, loop.target) and b.path == ("*", 0) and _enumerated(loop.iter)


def _enumerated(node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and node.args:
        if last(node.func) == "enumerate":
            return True
        node = node.args[0]
    return False


def _counts_data(script: Script, node: ast.AST) -> bool:
    """Whether the number is one of samples of the data set: ``len(train_set)``, ``len(loader.dataset)``, a variable that is given it."""
    for n in walk(node):
        if isinstance(n, ast.Call) and _is_length(script, n) and n.args and not _loaders(script, n.args[0]):
            return True
        if isinstance(n, ast.Name):
            bound = list(script.names.bindings(script.names.scope_of[n], n.id))
            if len(bound) == 1 and bound[0].how == "assign" and isinstance(bound[0].value, ast.Call) and _is_length(script, bound[0].value):
                return True
    return False
