"""Every parameter that is trained gets its gradient through a wrapper.

Gradients are averaged over the ranks by DistributedDataParallel, in the backward of what its
forward gave
(https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Const, Value, const, data
from dpmigrate.judge.notes import COMPLETED, FRESH, SYNCHRONISED
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.program import Program

NAME = "trained parameters are wrapped"


def faults(trial: Trial) -> Iterator[Fault]:
    """Losses that come to trained parameters past a wrapper; programs in which no training is
    seen.
    """
    objects = trial.result.heap.objects
    before = {name for _, name, _ in _missed(trial.original)} if trial.original is not None else ()
    for node, name, owner in _missed(trial.result):
        if name not in before:
            words, sure = f"there is no attribute {name} here", True
            if name in (*dir(object), "__dict__"):
                words = f"{name} is the wrapper's own here"
            elif any(o.kind == "wrapper" for o in trial.objects(owner)):
                words = f"{name} is asked of a model's wrapper here, which lacks it: a wrapped model comes to code that means the bare one"
            elif node in _asked_for(trial.result.program):
                sure = False
                words = f"it is not known whether an object without a wrapper has {name}: its attributes have computed names, and hasattr is true of each"
            yield trial.fault(node, NAME, words, established=sure)
    for event in trial.steps:
        if _before_training(trial, event):
            continue
        stepped = any(d.reached for d in data(event.values["parameters"]))
        if stepped and not event.values["gradients"]:  # else: a tensor that the step itself makes
            words = f"no gradient is seen that this step uses{trial.why_no_loss}"
            yield trial.fault(event.node, NAME, words, established=False)
    for event in trial.result.trace.of("judge thawed"):
        if const(True)[0] in event.values["at_wrap"]:
            words = "what is frozen at the wrap gets gradients again: DDP would not average them"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("judge moved"):
        words = "the model is moved after its wrap: DDP keeps what it made where the model was"
        yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("judge away"):
        words = (
            "the model is moved to the CPU after its wrap and trained again: DDP has its hooks on the "
            "gradients of the tensors before (pytorch#104336)"
        )
        yield trial.fault(event.node, NAME, words)
    seen = False
    late = _without_forward(trial)
    for node, loss in trial.losses():
        seen = True
        wrappers = [n for n in loss.reached if objects[n].name in SYNCHRONISED]
        inside: set[int] = set()
        averaged = {p for n in wrappers if objects[n].name in COMPLETED and n not in late for p in trial.owned(n)}
        for wrapper in wrappers:
            inside |= trial.owned(wrapper)
        for number in sorted(n for n in loss.reached if objects[n].kind == "bare"):
            made = objects[number]
            parts = trial.owned(made.extra) & trial.trained
            if any(trial.has_parameters(objects[n]) for n in parts - averaged):
                # beside a call of the wrapper DDP averages it as well, if both are in each backward
                words = f"{made.name} is called past its wrapper"
                yield trial.fault(
                    made.node, NAME, f"{words}, and the loss is made of what it gives",
                    established=not parts <= inside,
                )  # fmt: skip
                break
        bare = sorted(n for n in loss.reached & trial.trained if n not in inside)
        for number in bare:
            if objects[number].kind != "wrapper":
                made = objects[number]
                yield trial.fault(
                    node, NAME,
                    f"the gradient of {made.name} (made in {trial.line(made.node)}) goes past "
                    "every wrapper",
                )  # fmt: skip
                break
    if not seen:
        words = f"no loss is seen that comes to what an optimizer steps{trial.why_no_loss}"
        yield trial.fault(None, NAME, words, established=False)


def _without_forward(trial: Trial) -> set[int]:
    """The wrappers through which a backward may go with no forward since another one. After a forward the backward averages what it comes to,
    also of parts that are called past the wrapper (``ddp.wrap``).
    """
    events = trial.result.trace.of("judge backward")
    return {int(n) for e in events for n, passed in e.values.items() if passed != FRESH}


def _before_training(trial: Trial, step: Event) -> bool:
    """Whether a step comes before every batch and every backward, of an optimizer that steps again after
    those: nothing has a gradient yet, and none is changed.
    """
    if step.values["gradients"]:
        return False
    first = next(trial.result.trace.of("pass", "batch", "backward", "gradient"), None)
    again = any(e.values["gradients"] and e.values["optimizer"] == step.values["optimizer"] for e in trial.steps)
    return again and first is not None and step.number < first.number


def not_understood(trial: Trial, why: str) -> Fault:
    """A program that the engine does not execute to its end."""
    return trial.fault(None, NAME, f"the program is not understood: {why}", established=False)


def _missed(execution: Execution) -> Iterator[tuple[ast.AST, str, Value]]:
    """Where something is read that the object does not have, its name, and of what: each, of a ``getattr(x, name)``
    that several turns come to. A name that is not known may be that of an attribute which is there.
    """
    for event in execution.trace.of("no attribute"):
        owner = event.values["owner"]
        yield from ((event.node, str(name.value), owner) for name in event.values["name"] if isinstance(name, Const))


@lru_cache(maxsize=2)
def _asked_for(program: Program) -> frozenset[ast.AST]:
    """Reads of an attribute of a variable right behind the question whether it has it (``if hasattr(x,
    "module"): y = x.module``). An object that lacks it does not come there: that the question has no answer
    says that its attributes have computed names (``add_module(name, …)``), of which this may be one.
    """
    found: set[ast.AST] = set()
    for part in program.parts:
        for node in ast.walk(part.tree):
            if isinstance(node, ast.If | ast.IfExp):
                for asked in _asked(node.test):
                    found |= set(_until_bound(node.body if isinstance(node, ast.If) else [node.body], *asked))
    return frozenset(found)


def _asked(test: ast.expr) -> Iterator[tuple[str, str]]:
    """The variables and names of which a test says that they are there if it is true."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _asked(part)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "hasattr":
        match test.args:
            case [ast.Name(id=variable), ast.Constant(value=str(name))]:
                yield variable, name


def _until_bound(body: Sequence[ast.AST], variable: str, name: str) -> Iterator[ast.AST]:
    """The reads of an attribute of a variable before the variable is bound again; of a statement with a
    body of its own only where nothing in it binds it, and of functions none, which run at another time.
    """
    for part in body:
        inner = list(ast.walk(part))
        binds = any(isinstance(n, ast.Name) and n.id == variable and not isinstance(n.ctx, ast.Load) for n in inner)
        later = any(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda) for n in inner)
        read = list(ast.walk(part.value)) if isinstance(part, ast.Assign) else [] if binds else inner
        for n in [] if later else read:
            match n:
                case ast.Attribute(value=ast.Name(id=own), attr=attr, ctx=ast.Load()) if (own, attr) == (variable, name):
                    yield n
        if binds:
            return
