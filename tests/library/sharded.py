"""Runs expressions whole and sharded, and holds against the results what the engine says of them."""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from dpmigrate.execution import placements
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.scopes import Names
from dpmigrate.execution.values import Data, Items, Ref, Value, data, placement_of, value
from dpmigrate.library.tables import Tables
from dpmigrate.linking import link
from dpmigrate.source import Source, parse

#: samples of the whole batch: a multiple of 2 and of 3
SAMPLES = 12
_PRELUDE = b"""
import copy
import math
import operator
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""
#: numbers differ by more than rounding
_TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
Numbers = dict[str, Any]


def given() -> Numbers:
    """The whole batch: x and y (rows by 4 features), t (labels), w (the same on all ranks)."""
    generator = torch.Generator().manual_seed(5)
    x, y = (torch.randn(SAMPLES, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    t = torch.randint(0, 2, (SAMPLES,), generator=generator)
    w = torch.randn(4, 4, generator=generator, dtype=torch.float64).requires_grad_()
    return {"x": x, "y": y, "t": t, "w": w}


def dealt(world: int, strided: bool) -> list[torch.Tensor]:
    """Which samples each rank has: every W-th, as DistributedSampler deals, or a block."""
    order = torch.arange(SAMPLES)
    if strided:
        return [order[r::world] for r in range(world)]
    return list(order.chunk(world))


def run(expression: str, numbers: Numbers) -> Any:
    """What an expression gives, with the same random stream each time."""
    torch.manual_seed(0)
    np.random.seed(0)
    names = {"torch": torch, "np": np, "F": F, "nn": nn, "copy": copy, "math": __import__("math"),
             "operator": __import__("operator")}  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some examples show what torch warns of
            return eval(expression, {**names, **numbers})
    finally:
        torch.set_default_dtype(before)


@cache
def _program() -> Any:
    source = parse(_PRELUDE, "program.py")
    assert isinstance(source, Source)
    return link(Path("program.py"), source)


@dataclass
class Claim:
    """What the engine says of an expression."""

    value: Value
    drawn: bool
    execution: Execution
    parts: list[tuple[str, Placement, Data | None]] = field(default_factory=list)


def claimed(expression: str, *, axes: bool, turn: bool = False) -> Claim:
    """The engine's value of an expression; with or without knowing how many axes x and y have. ``turn``:
    the samples are those of a batch that a rank has whole, in a turn of its own.
    """
    execution = Execution(_program(), Tables()).run()
    module = next(o for o in execution.heap.objects.values() if o.kind == "pymodule")
    rows = Data("tensor", placements.rows(), axes=2 if axes else None, turn=turn)
    weight = execution.heap.new("parameter", "w", None, 0)
    w = Data("tensor", placements.UNIFORM, "whole", reached=frozenset([weight.number]), axes=2)
    t = Data("tensor", placements.rows(), axes=1, turn=turn)
    for name, held in (("x", rows), ("y", rows), ("t", t), ("w", w)):
        execution.heap.write((module.number, name), value(held))
    frame = Frame(module.number, Names(), (), module.number, 0, slot=len(execution.control))
    execution.control.append(None)
    node = ast.parse(expression, mode="eval").body
    found = execution.evaluate(node, frame)
    drawn = any(execution.trace.of("draw"))
    return Claim(found, drawn, execution)


def pairs(claim: Claim, real: list[Any]) -> Iterator[tuple[Value, list[Any]]]:
    """Each part of a claimed value beside the parts of the real ones: tuples and lists are gone into."""

    def inside(v: Value, results: list[Any]) -> Iterator[tuple[Value, list[Any]]]:
        if len(v) == 1 and isinstance(results[0], list | tuple) and len(results[0]):
            (atom,) = v
            if isinstance(atom, Items):
                for i, inner in enumerate(atom.items):
                    yield from inside(inner, [r[i] for r in results])
                return
            if isinstance(atom, Ref):
                made = claim.execution.heap.objects[atom.object]
                exact = claim.execution.known_elements(v)
                shared = claim.execution.heap.read((made.number, ELEMENTS))
                for i in range(min(len(r) for r in results)):
                    known = exact is not None and i < len(exact)
                    item = exact[i] if exact is not None and known else shared or ()
                    if item:
                        yield from inside(item, [r[i] for r in results])
                return
        yield v, results

    yield from inside(claim.value, real)


class Broken(AssertionError):
    """A claim that does not hold."""


def numeric(result: Any) -> np.ndarray[Any, Any] | None:
    """A result as an array, None for what is no numbers."""
    if isinstance(result, torch.Tensor):
        result = result.detach().resolve_conj().numpy()
    try:
        array = np.asarray(result)
    except (TypeError, ValueError):
        return None
    return array.astype(np.float64) if array.dtype.kind in "fiub" else None


def hold(p: Placement, whole: Any, parts: list[Any], dealing: list[torch.Tensor]) -> bool:
    """Hold a placement against the results; whether it says something.

    Raises:
        Broken: the results of the ranks do not make up the whole one as it says.
    """
    total, ours = numeric(whole), [numeric(p) for p in parts]
    if total is None or any(o is None for o in ours):
        return False
    shares = [o for o in ours if o is not None]
    match p.kind:
        case Kind.ZERO:
            _equal(total, np.zeros_like(total), "is not 0")
        case Kind.UNIFORM:
            for share in shares:
                _equal(total, share, "differs between ranks")
        case Kind.PARTIAL:
            _equal(total, _REDUCED[p.how](np.stack(_shaped(shares))), f"is no part of a {p.how}")
        case Kind.SIZE:
            for share, own in zip(shares, dealing, strict=True):
                _equal(total / SAMPLES, share / len(own), "is no number of samples")
                if p.times:
                    _equal(
                        share,
                        np.full_like(share, p.times * len(own)),
                        "is another number of samples",
                    )
        case Kind.ROWS:
            _hold_rows(p, total, shares, dealing)
        case _:
            return False
    return True


_REDUCED: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "sum": lambda a: a.sum(0),
    "mean": lambda a: a.mean(0),
    "max": lambda a: a.max(0),
    "min": lambda a: a.min(0),
}


def _shaped(shares: list[Any]) -> list[Any]:
    if len({s.shape for s in shares}) > 1:
        raise Broken(f"the shapes differ: {[s.shape for s in shares]}")
    return shares


def _equal(a: Any, b: Any, word: str) -> None:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or not np.allclose(a, b, equal_nan=True, **_TOLERANCE):
        raise Broken(f"{word}: {a.ravel()[:6]} of shape {a.shape}, {b.ravel()[:6]} of {b.shape}")


def _hold_rows(p: Placement, total: Any, shares: list[Any], dealing: list[torch.Tensor]) -> None:
    if any(p.axis >= s.ndim for s in [total, *shares]):
        raise Broken(f"no axis {p.axis} in a result of shape {total.shape}")
    total, *shares = (np.moveaxis(s, p.axis, 0) for s in [total, *shares])
    if p.padded:  # each to its own longest; the examples leave zeros there
        shares = [np.pad(s, [(0, 0), *((0, n - m) for n, m in zip(total.shape[1:], s.shape[1:], strict=True))]) for s in shares]
    if p.ragged or not p.segments:
        _same_rows(total, shares)
        return
    whole = np.zeros_like(total)
    for share, own in zip(shares, dealing, strict=True):
        times, rest = divmod(len(share), len(own) * p.segments)
        if rest or (p.times and times != p.times):
            raise Broken(
                f"{len(share)} rows are no {p.segments} times {p.times} rows of {len(own)} samples"
            )
        if len(total) != p.segments * SAMPLES * times:
            raise Broken(f"{len(total)} rows of {SAMPLES} samples")
        part = share.reshape(p.segments, len(own), times, *share.shape[1:])
        view = whole.reshape(p.segments, SAMPLES, times, *share.shape[1:])
        view[:, own.numpy()] = part
    _equal(total, whole, "rows that are put together are not the whole's")


def _same_rows(total: Any, shares: list[Any]) -> None:
    """The rows of all ranks are those of the whole, in any order."""
    flat = [s.reshape(len(s), int(np.prod(s.shape[1:]))) for s in [total, *shares]]
    theirs, ours = flat[0], np.concatenate(flat[1:])
    if ours.shape != theirs.shape:
        raise Broken(f"{len(ours)} rows of all ranks, {len(theirs)} of the whole")
    _equal(_ordered(theirs), _ordered(ours), "chosen rows are not those of the whole")


def _ordered(rows: Any) -> Any:
    rows = np.round(rows, 6)
    return rows[np.lexsort(rows.T[::-1])] if rows.size else rows


def gradients(expression: str, numbers: Numbers, pick: Callable[[Any], Any]) -> Any:
    """The gradient of w of an expression's result."""
    numbers = {**numbers, "w": numbers["w"].detach().clone().requires_grad_()}
    result = pick(run(expression, numbers))
    (result.sum() if result.dim() else result).backward()
    return numbers["w"].grad


def placed(v: Value) -> tuple[Placement, Data | None]:
    """The placement of a claimed value, and its data where it is one atom."""
    found = data(v)
    return placement_of(v), found[0] if len(found) == len(v) == 1 else None
