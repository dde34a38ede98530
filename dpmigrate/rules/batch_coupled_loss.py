"""The loss compares the samples of a batch with each other.

## What it finds
Similarity matrices of a batch with itself (`z @ z.T`, `torch.mm(a, b.t())`) and losses known for it (NT-Xent, SupCon, triplet mining).

## Why it matters
With the batch divided, each rank compares only its own samples: fewer negatives, another objective (83 % gradient error measured).

## Example
```python
logits = z1 @ z2.t()
loss = F.cross_entropy(logits, torch.arange(len(z1)))
```
has to gather the rows of all ranks, with gradient, before the product.

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_NAMES = ("ntxent", "nt_xent", "supcon", "simclr", "infonce", "info_nce", "contrastive", "npair", "batchhard", "tripletsemihard", "clip_loss", "cliploss")


@rule("DPM303", severity=Severity.BLOCKER)
def batch_coupled_loss(script: Script) -> Iterator[Hit]:
    advice = "gather the features of all ranks with gradient before they are compared, or train with one process"
    for node in script.names.nodes:
        if script.roles.inside_module(node) or script.roles.region(node) not in ("train", "both") if _product(script, node) else True:
            continue
        yield Hit(node, "the samples of a batch are compared with each other: with the batch divided this is another loss", advice=advice)
    for call in script.roles.calls:
        name = ast.unparse(call.func).rsplit(".", 1)[-1].lower().replace("loss", "loss")
        if any(w in name.replace("-", "") for w in _NAMES) and script.roles.region(call) == "train":
            yield Hit(call, f"{script.text(call.func)} compares the samples of a batch with each other", advice=advice)


def _product(script: Script, node: ast.AST) -> bool:
    """A matrix product with a transposed matrix, in training code."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _transposed(node.right)
    if isinstance(node, ast.Call) and script.names.dotted(node.func) in ("torch.mm", "torch.matmul") and len(node.args) == 2:
        return _transposed(node.args[1])
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("mm", "matmul") and bool(node.args) and _transposed(node.args[0])


def _transposed(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("t", "transpose")
