"""Which part each thing of a program plays, and what shows it: what ``check --explain-roles`` prints."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.evaluation import Evaluation
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script

_LOSS = {
    Norm.MEAN: "a mean over the batch",
    Norm.SUM: "a sum over the batch",
    Norm.CONST: "it does not depend on the size of the batch",
    Norm.WEIGHTED: "a mean over weights or valid targets",
    Norm.UNKNOWN: "not known",
}


@dataclass(frozen=True, order=True, slots=True)
class Role:
    """One thing, its part, and the evidence."""

    line: int
    part: str
    what: str
    evidence: str


def explained(script: Script) -> list[Role]:
    """The roles of a program in the order of its lines; an empty list where nothing is trained."""
    return sorted({*_models(script), *_loops(script), *_data(script), *_losses(script)})


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _head(script: Script, node: ast.AST) -> str:
    """The node as written, in one line."""
    text = " ".join(script.text(node).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _places(script: Script, nodes: list[ast.AST]) -> str:
    return " and ".join(dict.fromkeys(script.where(n) for n in sorted(nodes, key=_line)))


def _models(script: Script) -> Iterator[Role]:
    for o in script.roles.optimizers:
        given = ", ".join(dict.fromkeys(script.text(r) for r in o.receivers)) or "what cannot be followed"
        yield Role(_line(o.call), "optimizer", _head(script, o.call), f"it gets the parameters of {given}")
        for v in o.models:
            yield Role(_line(v.node), "model", _head(script, v.node), f"the optimizer of {script.where(o.call)} trains its parameters")
    for w in script.wraps.wraps:
        already = any(script.values.is_wrap(c) for c in walk(w.stmt) if isinstance(c, ast.Call))
        yield Role(
            _line(w.stmt),
            "wrap",
            _head(script, w.stmt),
            "DataParallel, which becomes ddp.wrap" if already else "the model is wrapped here, as the migration will have it",
        )


def _loops(script: Script) -> Iterator[Role]:
    roles = script.roles
    for loop in roles.train_feeds:
        ends: list[ast.AST] = [*script.loop_backwards(loop)]
        takes = "takes batches of" if loop.drawn is not None else "goes over"
        why = f"{takes} {script.text(loop.source)} and reaches backward() in {_places(script, ends)}"
        both = "; it evaluates as well, as its calls decide" if loop.branches else ""
        yield Role(_line(loop.node), "training loop", _first_line(script, loop.node), why + both)
    for e in script.evaluations:
        if e.loop.evaluates:
            why = f"goes over {script.text(e.loop.source)}, calls the model and never reaches backward(); {_runs(script, e)}"
            yield Role(_line(e.loop.node), "evaluation loop", _first_line(script, e.loop.node), why)
    inner: list[ast.AST] = [b.node for b in roles.train_loops]
    for outer in script.repeating_loops:
        yield Role(_line(outer), "epoch loop", _first_line(script, outer), f"it repeats the training loop of {_places(script, inner)}")


def _runs(script: Script, found: Evaluation) -> str:
    """How the evaluation will run, and from which buffers."""
    how = "its batches are dealt out to the ranks" if found.why is None else f"every rank takes all batches: {found.why} ({script.where(found.why.where)})"
    shown = f", from rank 0's buffers ({script.where(script.buffers)})" if found.synchronised and script.buffers is not None else ""
    return how + shown


def _first_line(script: Script, node: ast.AST) -> str:
    return script.text(node).splitlines()[0].rstrip(":")


def _data(script: Script) -> Iterator[Role]:
    for call in script.train_loader_calls:
        loops: list[ast.AST] = [b.node for b in script.roles.train_feeds if any(v.node is call for v in b.loaders)]
        yield Role(
            _line(call),
            "training loader",
            _head(script, call),
            f"the training loop of {_places(script, loops)} goes over it" if loops else "training goes over it",
        )


def _losses(script: Script) -> Iterator[Role]:
    for call in script.roles.backwards:
        loss = script.losses.of_backward(call)
        yield Role(_line(call), "loss", _head(script, call), f"{_LOSS[loss.norm]}{': ' + loss.why if loss.why else ''}")
