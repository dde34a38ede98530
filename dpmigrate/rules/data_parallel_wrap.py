"""A model is wrapped in nn.DataParallel.

## What it finds
Every call of `torch.nn.DataParallel`, whatever it is imported as: re-bound to the same name, to another name, on an attribute,
inside another call, under `if cuda` or `if device_count() > 1`.

## Why it matters
DataParallel drives all GPUs from one process: the model is copied at every forward, outputs are gathered on GPU 0 (which carries more
memory and work), and Python threads share one interpreter. Left in a program that runs one process a GPU, every process would use
every GPU. A wrap under a test must become unconditional: under DDP an unwrapped model trains alone on every rank, without an error.
`device_ids` and `output_device` have no meaning any more: one process has one device. DDP needs the model on its device, so a move that follows the wrap,
or that DataParallel makes, is written at the wrap too.

## Example
```python
model = nn.DataParallel(model, device_ids=[0, 1]).cuda()
```
becomes
```python
model = ddp.wrap(model.cuda())
```

## When it is not fixed
When the wrap stands under a condition and is not bound to a variable, or its arguments are hidden behind `*` or `**`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Delete, DropArg, Edit, Replace, SetArg, Wrap
from dpmigrate.facts.definitions import SAME
from dpmigrate.facts.names import FunctionNode, of_self
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import wrap_argument
from dpmigrate.facts.script import Script
from dpmigrate.facts.unwraps import asks_class_of_wrapper
from dpmigrate.facts.wraps import Wrap as Wrapping
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import moved_after, wrap_code, wrap_edit, wrap_move, wrap_options


@rule("DPM101", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def data_parallel_wrap(script: Script) -> Iterator[Hit]:
    if any(True for _ in script.wraps.problems):
        return
    new = AddImport(script.import_line)
    for w in script.wraps.wraps:
        if w.how == "call":
            assert isinstance(w.node, ast.Call)
            if _opaque(w.node):
                yield Hit(
                    w.node, "the arguments of this DataParallel call cannot be read", severity=Severity.BLOCKER,
                    advice="write it as nn.DataParallel(model)",
                )  # fmt: skip
                continue
            yield Hit(w.node, "DataParallel becomes DistributedDataParallel, one process a GPU", (*_in_place(script, w), new))
    for call in sorted(script.wraps.removed, key=lambda c: c.lineno):
        yield Hit(
            call, "this DataParallel wrap goes; the whole model is wrapped on every device instead", (*_taken_out(script, call), *_after(script, call), new)
        )
        for inner in _of_the_wrapper(script, call):
            yield Hit(inner, "the model has no wrapper here any more", (Replace(script.span(inner), script.text(inner.value)),))
    for node in script.names.nodes:
        asked = asks_class_of_wrapper(script.names, node)
        if asked is not None and (own := _own_module(script, asked[0])) is not None:
            yield Hit(
                node, f"a test for DataParallel is false under DDP, and a class of this program has an attribute module, too ({script.where(own)})",
                severity=Severity.BLOCKER, advice="give that attribute another name, or take the test out",
            )  # fmt: skip
        elif asked is not None:
            code = f'{"" if asked[1] else "not "}hasattr({script.text(asked[0])}, "module")'
            yield Hit(node, "a test for DataParallel is false under DDP", (Replace(script.span(node), code),))


def _own_module(script: Script, asked: ast.expr) -> ast.Attribute | None:
    """Where a class of the program gives its objects an attribute ``module``, by which a wrapper is known, and what is asked may be one of them."""
    stored = {script.names.cls(n): n for n in script.names.attributes("module") if isinstance(n.ctx, ast.Store) and of_self(n)}
    held = script.values.eval(asked)
    known = {v for outer in held for v in (outer, *script.values.inner(outer))}
    if not held or any(v.kind == "call" for v in known):
        return next(iter(stored.values()), None)
    return next((stored[c] for v in known if v.cls is not None for c in script.values.defs.bases(v.cls) if c in stored), None)


def _in_place(script: Script, w: Wrapping) -> Iterator[Edit]:
    call = w.node
    assert isinstance(call, ast.Call)
    arg = wrap_argument(call)
    moved = moved_after(script, call)
    if moved is not None and arg is not None:
        yield Replace(script.span(call), script.text(arg))
        yield Wrap(script.span(moved), wrap_code(script, "{}", w))
        return
    yield Replace(script.span(call.func), f"{script.ddp}.wrap")
    move = wrap_move(script, w)
    if not call.args and arg is not None:
        yield DropArg(script.span(call), "module")
        yield SetArg(script.span(call), "model", script.text(arg) + move)
    elif arg is not None and move:
        yield Wrap(script.span(arg), f"{{}}{move}")
    for i, name in enumerate(("device_ids", "output_device", "dim"), 1):
        if script.argument(call, name, i) is not None:
            yield DropArg(script.span(call), name, i if len(call.args) > i else None)
    for name in wrap_options(script, w):
        yield SetArg(script.span(call), name, "True")


def _opaque(call: ast.Call) -> bool:
    """Whether ``*`` or ``**`` hides arguments, or the module is made inside ``module=…``."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return True
    return not call.args and not isinstance(wrap_argument(call), ast.Name | ast.Attribute)


def _taken_out(script: Script, call: ast.Call) -> Iterator[Edit]:
    stmt = script.names.statement(call)
    arg = wrap_argument(call)
    assert arg is not None
    if isinstance(stmt, ast.Assign) and stmt.value is call and (ast.unparse(stmt.targets[0]) == ast.unparse(arg) or _holds_already(script, stmt, arg)):
        yield Delete(script.span(stmt))
    else:
        yield Replace(script.span(call), script.text(arg))


def _of_the_wrapper(script: Script, call: ast.Call) -> Iterator[ast.Attribute]:
    """``model.module`` behind a call that goes, in a function which gives the bare model to whoever wraps it."""
    stmt = script.names.statement(call)
    target = stmt.targets[0] if isinstance(stmt, ast.Assign) else None
    keys = set(script.roles.values.keys(target)) if isinstance(target, ast.Name | ast.Attribute) else set()
    block = script.names.block(stmt)
    for node in (n for s in block[block.index(stmt) + 1 :] for n in walk(s)):
        if isinstance(node, ast.Attribute) and node.attr == "module" and isinstance(node.value, ast.Name | ast.Attribute):
            if keys & set(script.roles.values.keys(node.value)) and script.roles.wrapped(node.value) is False:
                yield node


def _holds_already(script: Script, stmt: ast.Assign, model: ast.expr) -> bool:
    """Whether the variable was given the model just before: ``self.net = net.to(device)``, and then ``if …: self.net = DataParallel(net)``."""
    wanted, text = ast.unparse(stmt.targets[0]), ast.unparse(model)
    at: ast.AST = stmt
    while isinstance(at, ast.stmt) and not isinstance(at, FunctionNode | ast.ClassDef):
        block = script.names.block(at)
        for earlier in reversed(block[: block.index(at)]):
            stored = {ast.unparse(n) for n in walk(earlier) if isinstance(n, ast.Name | ast.Attribute) and not isinstance(n.ctx, ast.Load)}
            if stored & {wanted, text}:
                return isinstance(earlier, ast.Assign) and stored == {wanted} and ast.unparse(_itself(earlier.value)) == text
        at = script.names.parent[at]
    return False


def _itself(node: ast.expr) -> ast.expr:
    """The model of ``model.to(device)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME:
        node = node.func.value
    return node


def _after(script: Script, call: ast.Call) -> Iterator[Edit]:
    """The wrap that follows the test, once for all branches."""
    for w in script.wraps.wraps:
        if w.how == "after" and script.names.is_inside(call, w.stmt):
            yield wrap_edit(script, w)
