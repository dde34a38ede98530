"""Targets that may hold the label that counts for nothing in a loss that is not told one
(https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html, ``ignore_index``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from dpmigrate.execution.syntax import children

NO_LABEL = -100
#: how the functions of transformers are called that make the labels of a task, and fill them up with
#: it (https://huggingface.co/docs/transformers/main_classes/data_collator)
_COLLATORS = ("DataCollatorFor", "DataCollatorWithFlattening")


@lru_cache(maxsize=4)
def leaves_labels_out(trees: tuple[ast.Module, ...]) -> bool:
    """Whether a program speaks of the label that counts for nothing in a loss that is not told one,
    -100: it may be in any target then, also in such as were written into files before. What a
    loss of the program is told by default is no target.
    """
    return any(_speaks_of_no_label(n) for tree in trees for n in _outside_of_losses(tree))


def _outside_of_losses(tree: ast.Module) -> Iterator[ast.AST]:
    todo: list[ast.AST] = [tree]
    while todo:
        n = todo.pop()
        yield n
        if isinstance(n, ast.arguments):
            defaults = [*zip(reversed([*n.posonlyargs, *n.args]), reversed(n.defaults), strict=False),
                        *zip(n.kwonlyargs, n.kw_defaults, strict=True)]  # fmt: skip
            todo += [d for arg, d in defaults if d is not None and arg.arg != "ignore_index"]
        else:
            todo += children(n)


def _speaks_of_no_label(n: ast.AST) -> bool:
    match n:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)):
            return number == -NO_LABEL
        case ast.Attribute(attr="ignore_index", value=owner):
            return not (isinstance(owner, ast.Name) and owner.id == "self")
        case ast.Attribute(attr=word) | ast.Name(id=word) | ast.alias(name=word):
            return word.startswith(_COLLATORS)
    return False
