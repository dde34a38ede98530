"""Small programs executed on paper, and what a run in Python says of the same names."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import reprlib
import sys
from collections import deque
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from textwrap import dedent
from types import FunctionType, GeneratorType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from dpmigrate import linking
from dpmigrate.execution.engine import Execution, execute
from dpmigrate.execution.objects import ELEMENTS, Object
from dpmigrate.execution.values import (
    Bound,
    Const,
    Data,
    Foreign,
    Items,
    Method,
    Ref,
    Setting,
    Unbound,
    Unknown,
    Value,
    only,
    placement_of,
)
from dpmigrate.library.tables import Tables
from dpmigrate.program import Program
from dpmigrate.source import Source, parse


def executed(text: str) -> Execution:
    """A script by itself, executed on paper."""
    source = parse(f"import torch\n{dedent(text)}".encode(), "train.py")
    assert isinstance(source, Source)
    return execute(Program.of(source), Tables())


def executed_files(files: Mapping[str, str], top: Path, script: str = "train.py") -> Execution:
    """A program of several files, executed on paper."""
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    source = parse((top / script).read_bytes(), script)
    assert isinstance(source, Source)
    return execute(linking.link(top / script, source), Tables())


def module_of(ex: Execution) -> Object:
    """The script's module."""
    return next(o for o in ex.heap.objects.values() if o.kind == "pymodule" and o.name == "__main__")


def held(ex: Execution, name: str) -> Value:
    """What a name of the script's module may be at the end."""
    found = ex.heap.read((module_of(ex).number, name))
    return found if found is not None else ()


def constant(ex: Execution, name: str) -> Any:
    """The constant that a name is at the end."""
    return only(held(ex, name))


def placed(ex: Execution, name: str) -> str:
    """How a name's value lies across the ranks at the end."""
    return str(placement_of(held(ex, name)))


def lines(ex: Execution, kind: str) -> list[int]:
    """The lines of the events of a kind, without the line that ``executed`` puts first."""
    return [getattr(e.node, "lineno", 0) - 1 for e in ex.trace.of(kind)]


def parted(ex: Execution, kind: str = "print") -> list[bool]:
    """Of each place of an event whether only some ranks may come to it, in any turn of a loop."""
    found: dict[tuple[ast.AST, int], bool] = {}
    for event in ex.trace.of(kind):
        context = event.context
        while (call := ex.trace.calls.get(context)) is not None and call.name.startswith("turn "):
            context = call.context
        key = (event.node, context)
        found[key] = found.get(key, False) or event.parted is not None
    return list(found.values())


# ---------------------------------------------------------------- against a run in Python


def run(text: str, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The names of the module after a run in Python; ``settings`` go into the environment."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    before = dict(os.environ)
    os.environ.update(settings or {})
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(dedent(text), "train.py", "exec"), scope)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return {k: v for k, v in scope.items() if not k.startswith("__")}


def uncovered(ex: Execution, scope: Mapping[str, Any]) -> list[str]:
    """The names whose value in a run is none of those that the execution on paper gives them."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return [
            f"{name}: {reprlib.repr(value)} is none of {shown(ex, held(ex, name))}"
            for name, value in scope.items()
            if not covers(ex, held(ex, name), value, {})
        ]
    finally:
        sys.setrecursionlimit(before)


def shown(ex: Execution, v: Value) -> str:
    """A value for people."""
    return ", ".join(_shown(ex, a) for a in v) or "nothing"


def _shown(ex: Execution, atom: Any) -> str:
    if isinstance(atom, Ref):
        made = ex.heap.objects[atom.object]
        if made.kind in ("list", "set", "dict"):
            inner = [f"{k}={[str(a)[:60] for a in v]}" for k, v in ex.heap.names(made.number)]
            return f"{made.kind}({', '.join(inner)})"
        return f"{made.kind} {made.name}"
    return str(atom)[:120]


def covers(ex: Execution, v: Value, concrete: Any, seen: dict[tuple[int, int], bool]) -> bool:
    """Whether a value of the run is one of those that the abstract value stands for."""
    return any(_covers(ex, a, concrete, seen) for a in v)


_PLAIN = (str, bytes, int, float, bool, type(None), range)


def _covers(ex: Execution, atom: Any, concrete: Any, seen: dict[tuple[int, int], bool]) -> bool:
    match atom:
        case Unknown() | Foreign() | Method():
            return True
        case Unbound():
            return False
        case Const():
            return type(concrete).__name__ == atom.type and concrete == atom.value
        case Setting():
            return isinstance(concrete, _PLAIN) or not callable(concrete)
        case Data():
            return isinstance(concrete, _PLAIN)
        case Items():
            if not isinstance(concrete, tuple) or len(concrete) != len(atom.items):
                return False
            return all(covers(ex, i, c, seen) for i, c in zip(atom.items, concrete, strict=True))
        case Bound():
            return isinstance(concrete, MethodType)
        case Ref():
            key = (atom.object, id(concrete))
            if key not in seen:
                seen[key] = True
                seen[key] = _covers_object(ex, ex.heap.objects[atom.object], concrete, seen)
            return seen[key]
    return False


def _covers_object(ex: Execution, made: Object, concrete: Any, seen: dict[tuple[int, int], bool]) -> bool:
    def field(name: Any) -> Value:
        return ex.heap.read((made.number, name)) or ()

    match made.kind:
        case "list" | "set":
            if not isinstance(concrete, list | set | frozenset | tuple | deque):
                return False
            count = ex.length(made)
            if count is not None and count != len(concrete):
                return False
            if count is not None and isinstance(concrete, list | tuple | deque):
                return all(covers(ex, field(i), c, seen) for i, c in enumerate(concrete))
            return all(covers(ex, ex.contents(made), c, seen) for c in concrete)
        case "dict":
            if not isinstance(concrete, dict):
                return False
            certain = [k for k, v in ex.heap.names(made.number) if isinstance(k, Const) and not any(isinstance(a, Unbound) for a in v)]
            if not all(k.value in concrete for k in certain):
                return False
            for k, value in concrete.items():
                rest = (*field(Const(type(k).__name__, k)), *field(ELEMENTS))
                if not covers(ex, rest, value, seen):
                    return False
            return True
        case "instance":
            if type(concrete).__name__ != made.name:
                return False
            return all(
                covers(ex, field(name) or field(ELEMENTS) or _in_class(ex, made, name), value, seen)
                for name, value in _fields(concrete).items()
            )
        case "function":
            return isinstance(concrete, FunctionType)
        case "class":
            return isinstance(concrete, type) and concrete.__name__ == made.name
        case "pymodule":
            return isinstance(concrete, ModuleType)
        case "generator":
            return isinstance(concrete, GeneratorType)
        case "namespace":
            return isinstance(concrete, SimpleNamespace | tuple) or hasattr(concrete, "__dict__")
    return True


def _in_class(ex: Execution, made: Object, name: str) -> Value:
    cls = ex.class_of(made)
    return (ex.in_class(cls, name) if cls is not None else None) or ()


def _fields(concrete: Any) -> Mapping[str, Any]:
    if isinstance(concrete, Enum):
        return {"value": concrete.value, "name": concrete.name}
    held = getattr(concrete, "__dict__", None)
    return held if isinstance(held, dict) else {}
