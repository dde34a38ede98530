"""Functions of the runtime are given what they take: else they fail, or do nothing. So do some of torch,
where a program fails by itself.
"""

from __future__ import annotations

import ast
import inspect
import os
import shutil
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, cast

from dpmigrate.contract import NAMES
from dpmigrate.execution import folding, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Const,
    Data,
    Foreign,
    Items,
    Method,
    Value,
    const,
)
from dpmigrate.library.torch_data import FAILING

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution
    from dpmigrate.judge.trial import Fault, Trial

NAME = "functions of the runtime are given what they take"
FAILS = "the program does not fail by itself"

#: parameters without a default that are given by their names
_NEEDED = {"accumulate": "sync"}
#: functions that are given a loader, numbers, a loss
_LOADERS = ("distribute", "shard", "whole", "next_epoch")
_NUMBERS = ("sum_all", "mean_all")
_LOSSES = ("weighted_mean", "sum_loss")


def given(m: Machine, word: str, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
    """Notes a call that certainly fails, or gives back what it was given, with the reason."""
    for why in (*_wrong(m, word, arguments), *_asked(word, node)):
        m.event("judge given", node, frame, why=const(why))
        break


#: modules of Python whose functions migrations write arguments into
_MODULES = {"os": os, "shutil": shutil}


def foreign(m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
    """Notes a call of a function of Python with a parameter that it does not have."""
    for keyword in arguments.keywords:
        taken = _parameters(name)
        if taken and keyword not in taken:
            m.event("judge given", node, frame, why=const(f"{name}() takes no {keyword}="))


@cache
def _parameters(name: str) -> frozenset[str]:
    """The names of the parameters of a function of Python; none where it takes any, or they are not known."""
    module, _, word = name.partition(".")
    function = getattr(_MODULES.get(module), word, None)
    try:
        found = inspect.signature(function).parameters if callable(function) else {}
    except ValueError:  # built in without a signature
        return frozenset()
    return frozenset() if any(p.kind is p.VAR_KEYWORD for p in found.values()) else frozenset(found)


def faults(trial: Trial) -> Iterator[Fault]:
    """Calls of the runtime with what they do not take."""
    for event in trial.result.trace.of("judge given"):
        (why,) = event.values["why"][:1]
        assert isinstance(why, Const)
        yield trial.fault(event.node, NAME, str(why.value))
    for event in trial.result.trace.of(FAILING):
        (why,) = event.values["why"][:1]
        assert isinstance(why, Const)
        yield trial.fault(event.node, FAILS, str(why.value), established=False)


def _wrong(m: Machine, word: str, arguments: Arguments) -> Iterator[str]:
    takes = NAMES.get(word, ())
    keyword = _NEEDED.get(word)
    if keyword is not None and keyword not in arguments.keywords and not arguments.stars:
        yield f"{word}() is called without {keyword}="
    if "**kwargs" not in takes:
        for name in arguments.keywords:
            if takes and name not in takes:
                yield f"{word}() takes no {name}="
    values = [v for v in arguments.positional if v]
    first = values[0] if values else NOTHING
    if first and all(_unfit(m, word, a) for a in first):
        yield f"{word}() is given {_named(m, first[0])}"
    if word in _NUMBERS and any(all(_no_number(a) for a in v) for v in values):
        yield f"{word}() is given what is no number"


def _asked(word: str, node: ast.AST) -> Iterator[str]:
    """A batch size that is a comparison."""
    if word == "local_batch" and isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Compare):
        yield "local_batch() is given a yes or no"


def multiplied(m: Machine, left: Value, right: Value, node: ast.AST, frame: Frame) -> None:
    """Notes that the number of ranks multiplies what is no number, or the number 0."""
    other = right if left == folding.WORLD else left
    zero = isinstance(node, ast.BinOp) and any(isinstance(n, ast.Constant) and not n.value for n in (node.left, node.right))
    if folding.WORLD in (left, right) and other and (zero or all(_no_factor(m, a) for a in other)):
        m.event("judge given", node, frame, why=const("the number of ranks multiplies what is no number of samples"))


def _no_factor(m: Machine, atom: Atom) -> bool:
    if isinstance(atom, Data):
        return atom.kind == "text" or (atom.kind in ("tensor", "batch") and atom.placement.kind is Kind.ROWS)
    made = m.object(atom)
    held = made is not None and made.kind in ("dict", "list", "loader", "namespace")
    return held or isinstance(atom, Items) or (isinstance(atom, Const) and not isinstance(atom.value, int | float))


def _unfit(m: Machine, word: str, atom: Atom) -> bool:
    """Whether a function certainly cannot use an atom."""
    made = m.object(atom)
    if word == "local_batch":
        tensor = isinstance(atom, Data) and atom.kind in ("tensor", "batch", "array")
        held = made is not None and made.kind in ("dict", "list", "instance", "namespace", "loader")
        return tensor or held or isinstance(atom, Items)
    if word in _LOADERS:
        own = made is not None and made.kind == "instance" and not m.kinds(made) - {"instance"}
        return isinstance(atom, Const) or (own and not _iterable(m, atom))
    if word == "from_main":  # a module cannot be sent, and what a function then gives is a rank's own
        return isinstance(atom, Foreign)
    if word == "main_path":
        own = made is not None and made.kind == "instance" and not m.kinds(made) - {"instance"}
        return isinstance(atom, Foreign | Method) or (own and not _iterable(m, atom, "__fspath__", "__call__"))
    if word == "any_rank":
        loss = isinstance(atom, Data) and atom.placement == placements.MEAN and atom.gradient != "none"
        return loss or (made is not None and made.kind == "instance")
    if word == "unwrap":
        return made is not None and made.kind in ("list", "iterator", "loader", "generator")
    if word == "clean_keys":
        return isinstance(atom, Const)
    return word in _LOSSES and isinstance(atom, Data) and atom.placement.kind is Kind.ROWS


def _iterable(m: Machine, atom: Atom, *more: str) -> bool:
    """Whether an object of the program may serve as what is wanted by one of its methods."""
    made = m.object(atom)
    methods = more or ("__iter__", "__getitem__", "__getattr__")
    machine = cast("Execution", m)
    return made is not None and any(machine.method_of(made, name) is not None for name in methods)


def _no_number(atom: Atom) -> bool:
    return isinstance(atom, Const) and (atom.value is None or isinstance(atom.value, str))


def _named(m: Machine, atom: Atom) -> str:
    made = m.object(atom)
    if isinstance(atom, Foreign):
        return atom.name
    if made is not None:
        return f"{made.name} ({made.kind})" if made.kind != made.name else f"a {made.kind}"
    if isinstance(atom, Data):
        return "a tensor of samples" if atom.placement.kind is Kind.ROWS else "a tensor"
    return repr(atom.value) if isinstance(atom, Const) else "a tuple"
