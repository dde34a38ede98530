"""All tables in one: the rows of functions, methods and attributes by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, cast

from dpmigrate.library import (
    array_names,
    batches,
    buffers,
    builtins,
    collections,
    command_line,
    configs,
    constructors,
    databases,
    detection,
    devices,
    distributed,
    environment,
    experiments,
    families,
    files,
    gradients,
    hooks,
    hub,
    iterators,
    kernels,
    lengths,
    library_losses,
    losses,
    mapping,
    metrics,
    models_with_loss,
    module_lists,
    modules,
    networks,
    numpy,
    processes,
    progress,
    pure,
    python_names,
    quantized,
    rearranging,
    reflection,
    runtime,
    runtime_reductions,
    sequence_models,
    stdlib,
    streams,
    texts,
    torch_amp,
    torch_data,
    torch_distributions,
    torch_factories,
    torch_linalg,
    torch_math,
    torch_more,
    torch_nn,
    torch_optim,
    torch_process,
    torch_products,
    torch_shapes,
    torch_sparse,
    torch_tensor,
    torch_tools,
    trackers,
    transformers,
    unseen_models,
    unseen_optimizers,
    vision,
    wrappers,
    writers,
)
from dpmigrate.library.public_names import public
from dpmigrate.library.sites import Row, table

if TYPE_CHECKING:
    pass

#: the tables; where two have a row of one name the later one counts, and the earlier ``pattern``
TABLES: tuple[ModuleType, ...] = (
    torch_tools, builtins, reflection, iterators, constructors, lengths, mapping, collections,
    command_line, stdlib, environment, processes,
    writers, databases, texts, numpy, torch_math, torch_linalg, torch_products, torch_more,
    torch_distributions,
    torch_factories, torch_shapes, torch_sparse, torch_tensor, gradients, modules, buffers, hooks,
    unseen_models, unseen_optimizers, wrappers, losses, module_lists, torch_nn,
    torch_optim, torch_amp, torch_data, batches, torch_process, devices, distributed, runtime,
    runtime_reductions, streams, files, progress, trackers, transformers, vision, metrics,
    families, pure, python_names, array_names, rearranging, configs, networks, library_losses,
    models_with_loss, kernels, sequence_models,
    detection, experiments, hub, quantized,
)  # fmt: skip
_OF_KIND = re.compile(r"<([\w|]+)>\.(\w+|\*)")


def _named(rows: Iterable[Row]) -> Iterator[tuple[str | tuple[str, str], Row]]:
    """Each name of each row; ``<a|b>.c`` stands for (a, c) and (b, c)."""
    for name, row in table(rows).items():
        found = _OF_KIND.fullmatch(name)
        if found is None:
            yield name, row
            continue
        for kind in found[1].split("|"):
            yield (kind.replace("_", " ") if kind in _SPACED else kind, found[2]), row


#: kinds that are written with a space elsewhere
_SPACED = (
    "own_folder", "class_parser", "loss_of_a_library", "pooling_of_graphs", "aggregation_of_graphs", "noise_schedule",
    "list_of_texts", "tuple_class", "autograd_function", "library_model", "same_stream", "own_streams",
    "main_first", "main_folder", "hook_handle", "autograd_context")
#: functions by their dotted names, and methods of data (with a leading dot)
FUNCTIONS: dict[str, Row] = {}
METHODS: dict[str, Row] = {}
#: methods and attributes of objects and data: (kind, name)
OF_KIND: dict[tuple[str, str], Row] = {}
ATTRIBUTES: dict[tuple[str, str], Row] = {}
#: what classes are: dotted name -> kinds
KINDS: dict[str, frozenset[str]] = {}
for _m in TABLES:
    for _name, _row in _named((*getattr(_m, "CHANGING", ()), *_m.ROWS)):
        if isinstance(_name, tuple):
            OF_KIND[_name] = _row
        elif _name.startswith("."):
            METHODS[_name] = _row
        else:
            FUNCTIONS[_name] = _row
    for _name, _row in _named(getattr(_m, "ATTRIBUTES", ())):
        if isinstance(_name, tuple):
            ATTRIBUTES[_name] = _row
    KINDS.update(getattr(_m, "KINDS", {}))

@cache
def canonical(name: str) -> str:
    """The name that the tables use."""
    return public(name, has_row)


def has_row(name: str) -> bool:
    """Whether a table knows a function or class of this name."""
    return name in FUNCTIONS or by_pattern(name) is not None or bool(kinds_of(name))


@cache
def by_pattern(name: str) -> Row | None:
    """The row of a family of names."""
    for module in TABLES:
        pattern = getattr(module, "pattern", None)
        if pattern is not None:
            row = cast("Row | None", pattern(name))
            if row is not None:
                return row
    return None


@cache
def kinds_of(name: str) -> frozenset[str]:
    """What the instances of a class are, by its canonical name."""
    found = KINDS.get(name)
    if found is not None:
        return found
    for module in TABLES:
        classes = getattr(module, "classes", None)
        kind = classes(name) if classes is not None else None
        if kind is not None:
            return frozenset((kind,))
    return frozenset()
