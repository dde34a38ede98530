"""A rank may leave the training loop, or skip a batch, alone.

## What it finds
`break`, `continue`, `return` and `sys.exit` in a training loop under a test that may differ between ranks (a NaN loss, a time limit), as far as
it is not made of settings and counters; `backward()` and `optimizer.step()` under such a test, or in a loop
with a number of turns that is drawn; a `try` round the training step, or round the whole
training, that catches an exception and goes on: also one that the program raises itself (`if loss.item() > 1e8: raise ValueError`).

## Why it matters
Every `backward()` waits for all ranks. A rank that skips one waits for ever in the next collective, or meets another one's bucket: with
equal sizes there is not even an error.

## Example
```python
if torch.isnan(loss):
    continue
```
becomes
```python
if ddp.any_rank(torch.isnan(loss)):
    continue
```
and a handler that goes on after an exception does so in one process only: under torchrun (`if ddp.world_size() > 1: raise`) the exception ends the program,
since no rank can repeat or leave out alone what all have begun. Where the handler stands round the whole training, that is the last that it does, so that it
still says and saves what it did. An exception of the program's own, which it raises itself to leave its training, is decided like a `break`.

A draw (`if random.random() < 0.5:`) is rank 0's, `ddp.from_main(…)`: that any of several ranks draws a yes is likelier than that one does. A loss that is a
mean over the batch is averaged, `if ddp.mean_all(loss.item()) > 9:`, which is the loss of the whole batch, and compared with what is made of such losses.

A flag that such a test sets is that of all ranks where the test stands: `if ddp.mean_all(loss.item()) < 0.1: done = True`.

A test on the size of a batch as a loader gives it (`if x.size(0) != batch_size: continue`), or on the number of batches (`i == self.len_epoch`), falls out
alike on all ranks, which have equal shares.

## When it is not fixed
A test on other values of a batch (`if output.max() > 9: break`, or the lowest loss so far): what the whole batch would have decided is not what any of its
parts decides. It is refused, and so is a `collate_fn` that may give None in the place of a batch. In the loop over epochs, where all ranks meet,
DPM610 repairs it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dpmigrate.edit import AddImport
from dpmigrate.facts import steps
from dpmigrate.facts.collated import functions, gives_none
from dpmigrate.facts.control import uniform
from dpmigrate.facts.decisions import drawn
from dpmigrate.facts.endings import is_exit
from dpmigrate.facts.exits import exits
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import local_tests, run_apart
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import alike, raise_on_ranks, together


@rule("DPM322", severity=Severity.ERROR, fix=Fix.SAFE)
def rank_leaves_loop(script: Script) -> Iterator[Hit]:
    done: set[ast.AST] = set()
    made = dict.fromkeys(f for call in script.train_loader_calls for f in functions(script.roles, call))
    for node in dict.fromkeys(gives_none(script.roles, f) for f in made):
        if node is not None:
            words = "one rank may have no batch here, and leave its turn out alone: the others wait for ever"
            yield Hit(node, words, severity=Severity.BLOCKER, advice="leave such samples out in the data set, before they are drawn")
    for b in script.roles.train_loops:
        if isinstance(b.node, ast.While) and not uniform(script.names, b.node.test):
            yield from _decided(script, b.node.test, [b.node.test], "the ranks may leave this loop at different turns", done)
        for e in exits(script.names, script.roles, b.node):
            if not script.executed.runs(e.node):
                continue  # if x is None: of a batch of tensors
            word = type(e.node).__name__.lower() if not isinstance(e.node, ast.Expr) else "exit"
            if e.test is None:
                handler = next(a for a in script.names.ancestors(e.node) if isinstance(a, ast.ExceptHandler))
                yield from _raised(script, handler, f"{word} in an exception handler: one rank may do this alone, and the others wait for ever", done)
                continue
            message = f"{word} under {script.text(e.test)}: one rank may do this alone, and the others wait for ever"
            tests = [
                a.test for a in script.names.ancestors(e.node) if isinstance(a, ast.If | ast.While) and a is not b.node and script.names.is_inside(a, b.node)
            ]
            if all(script.shares.alike(t) for t in tests):
                continue
            inner = next(a for a in script.names.ancestors(e.node) if isinstance(a, Loop))
            around = [a.test for a in script.names.ancestors(e.node) if isinstance(a, ast.If) and script.names.is_inside(a, b.node)]
            tests = [t for t in around if not script.shares.alike(t)] if inner is b.node else []
            yield from _decided(script, e.node, tests, message, done)
    for node in [*script.roles.backwards, *(s.call for s in steps.steps(script.roles))]:
        tests = list(_skipping(script, node)) if script.roles.region(node) in ("train", "both") else []
        if tests:
            what = "wait for ever" if node in script.roles.backwards else "take another step"
            yield from _decided(script, node, tests, f"under {script.text(tests[0])} one rank may leave this out alone, and the others {what}", done)
    for guard in script.names.nodes:
        if isinstance(guard, ast.Try) and any(script.roles.reaches_backward(s) for s in guard.body) and script.starts(guard):
            repeated = _repeated(script, guard)
            for handler in guard.handlers:
                thrown = _thrown(script, handler)
                if thrown and _goes_on(script, handler):
                    for raised in thrown:
                        tests = [t for t in local_tests(script.roles, raised) if not script.shares.alike(t)]
                        if tests:
                            message = f"raise under {script.text(tests[0])}: one rank may do this alone, and the others wait for ever"
                            yield from _decided(script, raised, list(dict.fromkeys(tests)), message, done)
                elif _goes_on(script, handler):
                    message = "leaves out what the others wait for" if repeated else "ends its training, and the others wait for ever"
                    yield from _raised(script, handler, f"a rank that meets this exception {message}", done, at_end=not repeated and not script.meets(handler))


def _thrown(script: Script, handler: ast.ExceptHandler) -> list[ast.Raise]:
    """Where the program itself raises what a handler takes, to leave its training: exceptions of its own, raised where all ranks come by."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type is not None else []
    classes = [script.values.defs.named(k) for k in kinds]
    found = [n for n in script.names.nodes if isinstance(n, ast.Raise) and n.exc is not None and _class(script, n.exc) in classes]
    return found if classes and None not in classes and not any(run_apart(script.roles, n) for n in found) else []


def _class(script: Script, raised: ast.expr) -> ast.ClassDef | None:
    return script.values.defs.named(raised.func if isinstance(raised, ast.Call) else raised)


def _decided(script: Script, node: ast.AST, tests: list[ast.expr], message: str, done: set[ast.AST]) -> Iterator[Hit]:
    """The tests made together, where that is what the whole batch would have decided; each once."""
    shared = {t: together(script, t) for t in tests}
    if not tests or None in shared.values():
        yield alike(script, node, list(shared.values()), message)
        return
    new = [edits for t, edits in shared.items() if t not in done]
    done.update(tests)
    if any(new):
        yield alike(script, node, new, message)


def _raised(script: Script, handler: ast.ExceptHandler, message: str, done: set[ast.AST], at_end: bool = False) -> Iterator[Hit]:
    """The exception ends a program of several ranks, where ``at_end`` after the handler has told and kept what it wants."""
    if handler not in done:
        done.add(handler)
        yield Hit(handler, message, (raise_on_ranks(script, handler, at_end=at_end), AddImport(script.import_line)))


def _skipping(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """What in the loop may keep one rank from the node, or let it come there more often: tests, and numbers of turns that are drawn.

    What both branches of a test do is left out by nobody.
    """
    loops = {b.node for b in script.roles.train_loops}
    inner = node
    for a in itertools.takewhile(lambda a: a not in loops and not isinstance(a, FunctionNode), script.names.ancestors(node)):
        tests: list[ast.expr] = []
        if isinstance(a, ast.If | ast.IfExp | ast.While) and not _both(script, node, a):
            tests = [a.test]
        elif isinstance(a, ast.BoolOp):
            tests = a.values[: next(i for i, v in enumerate(a.values) if script.names.is_inside(inner, v))]
        elif isinstance(a, ast.For) and script.names.dotted(getattr(a.iter, "func", a.iter)) == "?.range" and drawn(script.roles, a.iter):
            yield a.iter
        yield from (t for t in tests if not script.shares.alike(t) and script.roles.about_numbers(t) and not _of_gradients(script, t))
        inner = a


def _both(script: Script, node: ast.AST, choice: ast.If | ast.IfExp | ast.While) -> bool:
    """Whether both branches go backward, or take the same step."""
    wanted = None if node in script.roles.backwards else ast.unparse(node)
    for side in (choice.body, choice.orelse):
        calls = [n for s in (side if isinstance(side, list) else [side]) for n in walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        if not any(ast.unparse(c) == wanted if wanted else c.func.attr in ("scale", "backward") for c in calls):  # type: ignore[attr-defined]
            return False
    return True


def _of_gradients(script: Script, test: ast.expr) -> bool:
    """A test on the norm that clipping gives: after ``backward()`` gradients are the same on every rank."""
    names = [n for n in walk(test) if isinstance(n, ast.Name) and not script.names.dotted(n)]
    return bool(names) and all(
        b.how == "assign" and not b.path and b.value is not None and steps.clips(script.roles, b.value)
        for n in names
        for b in script.names.bindings(script.names.scope_of[n], n.id)
    )


def _repeated(script: Script, node: ast.AST) -> bool:
    """Whether the node stands in a loop over epochs or batches: after the exception training goes on."""
    loops = {*script.repeating_loops, *(b.node for b in script.roles.train_loops)}
    return any(a in loops for n in script.leading_to(node) for a in script.names.ancestors(n))


def _goes_on(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether the handler neither raises nor ends the program; an interrupt from the keyboard comes to all ranks."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type is not None else []
    if kinds and all(
        script.names.dotted(k) in ("?.KeyboardInterrupt", "?.StopIteration", "?.SystemExit", "?.ImportError", "?.ModuleNotFoundError") for k in kinds
    ):
        return False
    last = handler.body[-1]
    leaves = isinstance(last, ast.Break | ast.Continue | ast.Return) and any(b.node in script.names.ancestors(last) for b in script.roles.train_loops)
    return not isinstance(last, ast.Raise) and not is_exit(script.names, last) and not leaves
