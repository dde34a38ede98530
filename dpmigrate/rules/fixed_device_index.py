"""A fixed GPU number.

## What it finds
`"cuda:0"`, `f"cuda:{n}"`, `.cuda(0)`, `.to(0)`, `torch.device("cuda", 0)`, `torch.cuda.set_device(…)`, `torch.accelerator.set_device_index(…)`, and
`torch.cuda.synchronize(0)`, `torch.cuda.max_memory_allocated(args.gpu)` and the like, which would wait for that GPU and open a context on it.

## Why it matters
Every rank would put its model on the same GPU: out of memory, or "Duplicate GPU detected". `ddp.setup()` makes the rank's own GPU the current device,
so plain `"cuda"` and `.cuda()` mean it and stay as they are.

## Example
```python
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
```
becomes
```python
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
```

## When it is not fixed
A number that comes from the command line into a variable of another name than gpu, gpu_id, device_id or local_rank. `torch.cuda.set_device(x.device)` of a
tensor follows the data, which are on the rank's own GPU: it is right and stays. Other libraries (`pynvml`, `faiss`) that are given the number that chose
the GPU are named in the report.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from dpmigrate.contract import MODULE
from dpmigrate.edit import Delete, DropArg, Edit, Replace
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_NUMBER_NAMES = frozenset({"gpu", "gpu_id", "gpu_idx", "gpu_index", "device_id", "device_idx", "cuda_id", "local_rank", "gpus", "gpu_ids", "device_ids"})
#: functions of torch.cuda that say something of the hardware, which is much the same for all GPUs of a machine
_OF_HARDWARE = tuple(f"torch.cuda.{n}" for n in ("get_device_name", "get_device_capability", "get_device_properties"))
#: functions of torch.cuda that wait for a GPU, or say what is on it; of the current one, if they are given none
_OF_STATE = tuple(f"torch.cuda.{n}" for n in (
    "synchronize", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached", "max_memory_cached",
    "memory_stats", "memory_summary", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_accumulated_memory_stats", "mem_get_info", "utilization", "current_stream", "default_stream",
))  # fmt: skip
_INDEXED = re.compile(r"cuda:\d+")


@rule("DPM103", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def fixed_device_index(script: Script) -> Iterator[Hit]:
    for node, edit in _edits(script):
        yield Hit(node, f"{script.text(node)}: every rank would use this GPU", (edit,))


def choices(script: Script) -> Iterator[ast.expr]:
    """What chose the GPU in each run and does so no more: ``args.gpu`` of ``f"cuda:{args.gpu}"``, ``args["gpu"]``; no device that was made of it."""
    for node, _ in _edits(script):
        called = {f for c in walk(node) if isinstance(c, ast.Call) for f in walk(c.func)}
        for n in walk(node):
            if isinstance(n, ast.Name | ast.Attribute) and n not in called and not isinstance(script.names.parent[n], ast.Attribute):
                vals = script.values.eval(n)
                if not vals or any(v.kind != "const" and v.qual != "torch.device" for v in vals):
                    yield _item(script, n)


def _item(script: Script, node: ast.Name | ast.Attribute) -> ast.expr:
    """The item that is taken of it, where one is."""
    above = script.names.parent[node]
    return above if isinstance(above, ast.Subscript) and above.value is node and isinstance(above.slice, ast.Constant) else node


def given_away(script: Script) -> Iterator[ast.Call]:
    """Calls of other libraries than torch that are given such a choice all the same: ``pynvml.nvmlDeviceGetHandleByIndex(args.gpu)``."""
    chosen = {script.text(n) for n in choices(script)}
    for call in script.roles.calls if chosen else ():
        head, dot, _ = script.names.dotted(call.func).partition(".")
        foreign = bool(dot) and head not in ("?", "torch", "os", "argparse", MODULE)
        given = [a for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name | ast.Attribute)]
        if foreign and any(_is_choice(script, a, chosen) for a in given):
            yield call


def _is_choice(script: Script, node: ast.expr, chosen: Collection[str], depth: int = 4) -> bool:
    """Whether it is the choice itself, under its own name, or another one, or as a number; not what was computed on the device."""
    if script.text(node) in chosen:
        return True
    if isinstance(node, ast.Call) and script.names.dotted(node.func) in ("?.int", "?.str") and node.args:
        return _is_choice(script, node.args[0], chosen, depth)
    given = script.roles.given(node) if depth and isinstance(node, ast.Name | ast.Attribute) else ()
    return any(_is_choice(script, v, chosen, depth - 1) for v in given)


def _edits(script: Script) -> Iterator[tuple[ast.AST, Edit]]:
    done: set[int] = set()
    for node in script.names.nodes:
        if isinstance(node, ast.expr) and _names_index(node) and not any(id(a) in done for a in script.names.ancestors(node)) and not _in_map(script, node):
            done.add(id(node))
            yield node, Replace(script.span(node), '"cuda"')
    for call in script.calls("torch.cuda.set_device", "torch.accelerator.set_device_index", "torch.accelerator.set_device_idx"):
        stmt, device = script.is_statement(call), script.argument(call, "device", 0)
        if stmt is not None and not (device is not None and _of_tensor(script, device)):
            yield call, Delete(script.span(stmt))
    for call in script.calls("torch.device"):
        device = script.argument(call, "device", 0)
        if script.argument(call, "index", 1) is not None:
            yield call, DropArg(script.span(call), "index", 1 if len(call.args) > 1 else None)
        elif device is not None and _is_number(script, device):
            yield call, Replace(script.span(device), '"cuda"')
    for call in script.calls("torch.cuda.device"):
        device = script.argument(call, "device", 0)
        if device is not None and _is_number(script, device):
            yield call, Replace(script.span(device), f"{script.ddp}.local_rank()")
    for call in script.calls(*_OF_STATE, *_OF_HARDWARE):
        device, hardware = script.argument(call, "device", 0), script.names.dotted(call.func) in _OF_HARDWARE
        if device is not None and _is_number(script, device) and not (hardware and _is_int(device)):
            yield call, Replace(script.span(device), f"{script.ddp}.local_rank()")
    for call, _ in script.methods("cuda"):
        device = script.argument(call, "device", 0)
        if device is not None and _is_number(script, device):
            yield call, DropArg(script.span(call), "device", 0 if call.args else None, ("non_blocking",) if len(call.args) > 1 else ())
    numbers: dict[ast.AST, str] = {}
    for call, _ in script.methods("to"):
        device = script.argument(call, "device", 0)
        if device is not None and not isinstance(device, ast.Constant | ast.Attribute):
            numbers |= {v.node: "local_rank" for v in script.values.eval(device) if v.kind == "const" and _is_int(v.node)}
        elif device is not None and (_is_int(device) or _is_number(script, device)):
            numbers[device] = "device"
    for n, name in numbers.items():
        yield n, Replace(script.span(n), f"{script.ddp}.{name}()")


def _of_tensor(script: Script, node: ast.expr) -> bool:
    """Whether the expression is where a tensor or a model is: ``x.device``, ``x.get_device()``, ``next(model.parameters()).device``, or a name for these."""
    if isinstance(node, ast.Name):
        given = script.roles.given(node)
        return bool(given) and all(not isinstance(e, ast.Name) and _of_tensor(script, e) for e in given)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "get_device"
    if not isinstance(node, ast.Attribute) or node.attr not in ("device", "index"):
        return False
    if node.attr == "index":
        return _of_tensor(script, node.value)
    if isinstance(node.value, ast.Call):
        return True
    return _is_tensor(script, node.value.value if isinstance(node.value, ast.Subscript) else node.value)


def _is_tensor(script: Script, node: ast.expr) -> bool:
    """What a method of a model or of an autograd function is given, a parameter of the model, or something of the batch."""
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Attribute) and node.attr in ("weight", "bias", "data")
    function, cls = script.names.function(node), script.names.cls(node)
    bound = list(script.names.bindings(script.names.scope_of[node], node.id))
    if cls is not None and isinstance(function, FunctionNode) and function.name in ("forward", "backward") and any(b.how == "param" for b in bound):
        return node.id not in ("self", "ctx")
    made = [n for b in bound if b.value is not None for n in walk(b.value)]
    return any(script.roles.loaders_of(n) for n in made) or any(b.value is not None and of_batch(script.roles, b.value) for b in bound)


def _in_map(script: Script, node: ast.expr) -> bool:
    """A name in the dict of ``map_location``, which is replaced as a whole (DPM405)."""
    parent = script.names.parent[node]
    return isinstance(parent, ast.Dict) and isinstance(above := script.names.parent[parent], ast.keyword) and above.arg == "map_location"


def _names_index(node: ast.expr) -> bool:
    """A string that names one GPU, written out or put together."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(_INDEXED.fullmatch(node.value))
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else None
        return isinstance(first, ast.Constant) and first.value == "cuda:" and len(node.values) == 2
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod) and isinstance(node.left, ast.Constant):
        return isinstance(node.left.value, str) and node.left.value in ("cuda:", "cuda:%d", "cuda:%s")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format" and isinstance(node.func.value, ast.Constant):
        return node.func.value.value in ("cuda:{}", "cuda:{0}", "cuda:{:d}")
    return False


def _is_int(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def _is_number(script: Script, node: ast.expr) -> bool:
    """A GPU number: a literal, a name bound to one, a setting called gpu."""
    if _is_int(node) or (isinstance(node, ast.Attribute) and node.attr in _NUMBER_NAMES):
        return True
    if isinstance(node, ast.Subscript):
        return _is_number(script, node.value)
    if isinstance(node, ast.Name):
        vals = script.values.eval(node)
        return any(v.kind == "const" and _is_int(v.node) for v in vals) or node.id in _NUMBER_NAMES
    return False
