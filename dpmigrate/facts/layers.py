"""Which layers the program's models hold, as far as this file shows it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import Names

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

_WITHOUT = ("alexnet", "vgg", "squeezenet", "vit_", "swin", "convnext", "maxvit")


def batch_norm(names: Names) -> ast.AST | None:
    """Where this file names a layer that normalises over the batch, or a library's model that has one."""
    for node in names.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and (names.dotted(node).startswith("torch.nn.BatchNorm") or _ready_made(names, node)):
            return node
    return None


def unseen(script: Script) -> bool:
    """Whether a trained model is built by something that is neither of this file nor of torch."""
    made = [v for o in script.roles.optimizers for m in o.models for v in (m, *script.values.inner(m))]
    return any(v.kind == "call" and bool(v.qual) and not v.qual.startswith("torch.") for v in made)


def _ready_made(names: Names, node: ast.AST) -> bool:
    """A call of a library's model that normalises over the batch: all of torchvision's but the few named here."""
    parent = names.parent[node]
    if not (isinstance(parent, ast.Call) and parent.func is node):
        return False
    dotted = names.dotted(node)
    if dotted.startswith("torchvision.models."):
        return not dotted.rsplit(".", 1)[-1].lower().startswith(_WITHOUT) or dotted.endswith("_bn")
    return dotted == "timm.create_model"
