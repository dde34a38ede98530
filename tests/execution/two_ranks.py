"""One program run as rank 0 and as rank 1, beside what the execution on paper says of both.

No process group is needed: a collective of the stub notes its line and goes on.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any
from unittest import mock

import torch

from dpmigrate.execution import placements
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import ELEMENTS, KEYS, LENGTH, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    Const,
    Data,
    Items,
    Ref,
    Unbound,
    Unknown,
    Value,
    placement_of,
)
from tests.execution.paper import executed, held

#: lines that a run may take
STEPS = 3_000
_MISSING = object()


@dataclass(slots=True)
class Run:
    """What one rank has done."""

    meetings: list[int] = field(default_factory=list)
    prints: list[int] = field(default_factory=list)
    scope: dict[str, Any] = field(default_factory=dict)
    #: why it did not come to its end
    stopped: str = ""


class _TooLong(BaseException):
    pass


def ran(text: str, rank: int, settings: dict[str, str] | None = None) -> Run:
    """A program run as one rank of two."""
    out = Run()
    steps = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != "<ranks>":
            return None
        steps += 1
        if steps > STEPS:
            raise _TooLong
        return trace

    def noted(lines: list[int]) -> Any:
        def note(*given: Any, **named: Any) -> Any:
            lines.append(sys._getframe(1).f_lineno)
            return given[0] if given else None

        return note

    meet = noted(out.meetings)
    runtime = SimpleNamespace(
        rank=lambda: rank, barrier=meet, sum_all=meet, world_size=lambda: 2, is_main=lambda: rank == 0
    )
    scope: dict[str, Any] = {"__name__": "__main__", "print": noted(out.prints)}
    environment = {"RANK": str(rank), "LOCAL_RANK": str(rank), **(settings or {})}
    before, hook = sys.gettrace(), sys.unraisablehook

    def late(number: int, frame: FrameType | None) -> None:
        raise _TooLong  # the count of lines ends where Python swallows what it raises

    handler = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 2.0, 0.5)
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.dict(sys.modules, {"dpmigrate_runtime": runtime}),
        mock.patch.object(torch.distributed, "get_rank", lambda: rank),
        mock.patch.object(torch.distributed, "barrier", meet),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        try:
            code = compile(text, "<ranks>", "exec")
            sys.unraisablehook = lambda _: None  # a generator is closed while the run is ended
            sys.settrace(trace)
            exec(code, scope)
        except (_TooLong, RecursionError):
            out.stopped = "too long"
        except (Exception, SystemExit) as e:
            out.stopped = f"raises {e!r}"
        finally:
            sys.settrace(before)
            sys.unraisablehook = hook
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
    del scope["print"]
    out.scope = {k: v for k, v in scope.items() if not k.startswith("__")}
    return out


@dataclass(slots=True)
class Verdict:
    """What the execution on paper has said of a program, against what its ranks do."""

    #: what is said and is not so
    wrong: list[str] = field(default_factory=list)
    #: variables that are equal, and how many of them are called so
    equal: int = 0
    told: int = 0
    #: places of meetings that ranks come to equally often, and how many are called so
    together: int = 0
    settled: int = 0
    #: why nothing is said
    skipped: str = ""


def judged(text: str, choices: tuple[dict[str, str], ...] = ({},)) -> Verdict:
    """Whether all that is said of a program holds, whatever settings it is run with."""
    out = Verdict()
    runs = [(ran(text, 0, c), ran(text, 1, c)) for c in choices]
    runs = [(a, b) for a, b in runs if not a.stopped and not b.stopped]
    if not runs:
        out.skipped = "does not come to its end"
        return out
    ex = executed(text)
    if ex.trace.ended:
        out.skipped = ex.trace.ended
        return out
    for name in dict.fromkeys(n for pair in runs for run in pair for n in run.scope):
        pairs = [(a.scope.get(name, _MISSING), b.scope.get(name, _MISSING)) for a, b in runs]
        if isinstance(pairs[0][0], type | FunctionType) or hasattr(pairs[0][0], "__path__"):
            continue
        _compare(ex, name, pairs, out)
    _places(ex, runs, out)
    return out


def _compare(ex: Execution, name: str, pairs: list[tuple[Any, Any]], out: Verdict) -> None:
    v = held(ex, name)
    plain = all(isinstance(x, int | str | float | type(None)) for pair in pairs for x in pair)
    if plain and all(a == b for a, b in pairs):
        out.equal += 1
        out.told += placement_of(v).kind in placements.EQUAL
    for a, b in pairs:
        if a is _MISSING or b is _MISSING:
            continue  # nothing is said of that
        found = contradicted(ex, v, a, b, set())
        if found:
            out.wrong.append(f"{name}: {found}")
            return


def _places(ex: Execution, runs: list[tuple[Run, Run]], out: Verdict) -> None:
    """Places that ranks come to together, and do not."""
    for kind in ("collective", "print"):
        apart: set[int] = set()
        places: set[int] = set()
        for e in ex.trace.of(kind):
            line = getattr(e.node, "lineno", 0) - 1
            places.add(line)
            if e.parted is not None:
                apart.add(line)
        word = "meetings" if kind == "collective" else "prints"
        for one, other in runs:
            first, second = getattr(one, word), getattr(other, word)
            counts, others = Counter(first), Counter(second)
            for line in sorted(counts.keys() | others.keys()):
                if line not in places:
                    out.wrong.append(f"line {line}: a {kind} that is not in the trace")
                elif counts[line] != others[line] and line not in apart:
                    out.wrong.append(f"line {line}: {counts[line]} and {others[line]} times a {kind}")
            if kind == "collective" and first != second and not apart:
                out.wrong.append(f"the order of meetings: {first[:9]} and {second[:9]}")
        if kind == "collective":
            for line in places:
                if all(a.meetings.count(line) == b.meetings.count(line) for a, b in runs):
                    out.together += 1
                    out.settled += line not in apart
    out.wrong[:] = list(dict.fromkeys(out.wrong))


# ---------------------------------------------------------------- values


def _equal(v: Value) -> bool:
    return placement_of(v).kind in placements.EQUAL and not any(isinstance(a, Unknown) for a in v)


def contradicted(ex: Execution, v: Value, a: Any, b: Any, seen: set[tuple[int, int, int]]) -> str:
    """What the value on paper says of what two ranks have and is not so."""
    v = ex.bound(v)
    if not v or not _equal(v) or isinstance(a, Iterator) or isinstance(b, Iterator):
        return ""  # what an iterator gives next is said where it is taken
    if len(v) == 1:
        (atom,) = v
        if isinstance(atom, Const):
            wrong = [x for x in (a, b) if type(x).__name__ != atom.type or x != atom.value]
            return f"{wrong[0]!r} is not {atom.value!r}" if wrong else ""
        if isinstance(atom, Data) and atom.placement.kind is Kind.ZERO and not _same(a, 0 * a):
            return f"{a!r} is not 0"
        if isinstance(atom, Items):
            if type(a) is not tuple or type(b) is not tuple or not len(a) == len(b) == len(atom.items):
                return f"{a!r} and {b!r} are not {len(atom.items)} items"
            parts = zip(atom.items, a, b, strict=True)
            return next((w for i, x, y in parts if (w := contradicted(ex, i, x, y, seen))), "")
        if isinstance(atom, Ref):
            key = (atom.object, id(a), id(b))
            if key in seen:
                return ""
            seen.add(key)
            return _object(ex, ex.heap.objects[atom.object], a, b, seen)
    if _form(a) != _form(b):
        return f"{a!r} and {b!r} are not of one type"
    if not isinstance(a, torch.Tensor) and (isinstance(a, list | dict | set | tuple | deque) or hasattr(a, "__dict__")):
        return ""  # one of several
    return "" if _same(a, b) else f"{a!r} and {b!r} differ"


def _form(x: Any) -> str:
    """The name of a type; each run has classes of its own, and numbers are compared by value."""
    return "number" if isinstance(x, int | float) else type(x).__name__


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return torch.equal(torch.as_tensor(a), torch.as_tensor(b).expand(torch.as_tensor(a).shape))
    return bool(a == b)


def _object(
    ex: Execution, made: Object, a: Any, b: Any, seen: set[tuple[int, int, int]]
) -> str:
    def read(name: Any) -> Value:
        return ex.heap.read((made.number, name)) or ()

    if _form(a) != _form(b):
        return f"{a!r} and {b!r} are not of one type"
    if made.kind in ("list", "set") and isinstance(a, list | set | tuple | frozenset):
        if not _equal(read(LENGTH)):
            return ""
        if len(a) != len(b):
            return f"{a!r} and {b!r} are not equally long"
        if isinstance(a, set | frozenset):
            whole = ex.contents(made)
            return f"{a!r} and {b!r} differ" if a != b and _equal(whole) else ""
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            found = contradicted(ex, join(read(i), read(ELEMENTS)), x, y, seen)
            if found:
                return f"[{i}]: {found}"
    elif made.kind == "dict" and isinstance(a, dict):
        return _dictionary(ex, made, a, b, seen)
    elif made.kind == "instance":
        if not hasattr(a, "__dict__") or not hasattr(b, "__dict__"):
            return f"{a!r} and {b!r} are no objects"
        for name in {**vars(a), **vars(b)}:
            v = read(name)
            x, y = vars(a).get(name, _MISSING), vars(b).get(name, _MISSING)
            found = _part(ex, v, x, y, seen, True)
            if found:
                return f".{name}: {found}"
    return ""


def _dictionary(
    ex: Execution, made: Object, a: Any, b: Any, seen: set[tuple[int, int, int]]
) -> str:
    keys = ex.heap.read((made.number, KEYS)) or ()
    rest = ex.heap.read((made.number, ELEMENTS)) or ()
    open_keys = bool(keys) and not (_equal(keys) and not _apart(keys))
    for k in {**a, **b}:
        own = ex.heap.read((made.number, Const(type(k).__name__, k))) or ()
        x, y = a.get(k, _MISSING), b.get(k, _MISSING)
        found = _part(ex, join(own, rest), x, y, seen, not open_keys and not _apart(own))
        if found:
            return f"[{k!r}]: {found}"
    return ""


def _apart(v: Value) -> bool:
    return any(isinstance(a, Unbound) and getattr(a, "why", None) is not None for a in v)


def _part(
    ex: Execution, v: Value, x: Any, y: Any, seen: set[tuple[int, int, int]], both: bool
) -> str:
    if x is _MISSING or y is _MISSING:
        return "one rank alone has it" if both and not _apart(v) else ""
    return contradicted(ex, v, x, y, seen)
