"""Methods of Python's own containers: which there are."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.dict_methods import DICT_METHODS
from dpmigrate.execution.item_assignment import ItemStoreParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Object
from dpmigrate.execution.sequence_methods import LIST_METHODS, SET_METHODS
from dpmigrate.execution.values import Value

_METHODS: dict[str, dict[str, Callable[..., Value | None]]] = {
    "list": LIST_METHODS, "set": SET_METHODS, "dict": DICT_METHODS,
}  # fmt: skip


class ContainerMethodParts(ItemStoreParts):
    """The methods of Python's own containers."""

    def container_method(
        self, made: Object, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """A method of a list, a dictionary or a set; None where it is none."""
        own: dict[str, Callable[..., Value | None]] = _METHODS.get(made.kind, {})
        method = own.get(name)
        return method(self, made, arguments, node, frame) if method is not None else None
