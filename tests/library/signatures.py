"""The names of the parameters of torch's and numpy's functions, as the installed libraries say them.

``python -m tests.library.signatures`` writes them to ``dpmigrate/data/signatures.txt``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dpmigrate.library import registry
from dpmigrate.library.signatures import FILE

#: where torch's functions and classes stand, by the names that programs use
_MODULES = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.utils", "torch.nn.utils.rnn", "torch.nn.init", "torch.linalg",
    "torch.special", "torch.fft", "torch.utils.data", "torch.utils.checkpoint", "torch.optim", "torch.optim.lr_scheduler",
    "torch.autograd", "numpy", "numpy.linalg", "numpy.random",
)  # fmt: skip
#: how torch calls the operators of these modules
_PREFIXES = {"torch.linalg": "linalg_", "torch.special": "special_", "torch.fft": "fft_"}
_PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def lines() -> list[str]:
    """A line for each name that a table knows: the name, and for each of its overloads the parameters that have a place."""
    found = {name: told for name, told in _all() if any(told)}
    return [f"{name} {' | '.join(' '.join(names) for names in told)}" for name, told in sorted(found.items())]


def _all() -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    for module in _MODULES:
        held = importlib.import_module(module)
        for word in dir(held):
            name = f"{module}.{word}"
            known = registry.canonical(name)
            if not word.startswith("_") and (known in registry.FUNCTIONS or registry.by_pattern(known) is not None):
                prefix = _PREFIXES.get(module, "")
                yield name, _of(getattr(held, word), word.removeprefix(prefix), prefix)
    for kind, cls in (("torch.Tensor", torch.Tensor), ("numpy.ndarray", importlib.import_module("numpy").ndarray)):
        for word in dir(cls):
            if f".{word}" in registry.METHODS:
                yield f"{kind}.{word}", _of(getattr(cls, word), word, method=True)


def _of(function: Callable[..., Any], word: str, prefix: str = "", *, method: bool = False) -> list[tuple[str, ...]]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return _of_schemas(f"{prefix}{word}", method=method)
    names = [p.name for p in parameters if p.kind in _PLACES]
    return [tuple(names[1:] if method else names)]


def _of_schemas(word: str, *, method: bool) -> list[tuple[str, ...]]:
    """The parameters of an operator of torch, which has no signature of Python's; the first one is ``input`` there."""
    found: dict[tuple[str, ...], None] = {}
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{word}"):
        arguments = [a for a in schema.arguments if not a.kwarg_only]
        names = ["input" if a.name == "self" else a.name for a in arguments]
        if not any(a.is_out for a in schema.arguments):
            found[tuple(names[1:] if method else names)] = None
    # what is the beginning of another one says nothing
    return [one for one in found if not any(other[: len(one)] == one and other != one for other in found)]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
