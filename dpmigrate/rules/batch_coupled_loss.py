"""The loss compares the samples of a batch with each other.

## What it finds
Similarity matrices of a batch with itself (`z @ z.T`, `torch.mm(a, b.t())`), losses known for it (NT-Xent, SupCon, triplet mining), and statistics of the batch
that go into the loss (`z.std(dim=0)`, `torch.cov(z.T)`).

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

from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.passes import entered, methods_of_model
from dpmigrate.facts.reductions import axes
from dpmigrate.facts.script import Script
from dpmigrate.facts.stateless import stateless
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_NAMES = ("ntxent", "nt_xent", "supcon", "simclr", "infonce", "info_nce", "contrastive", "npair", "batchhard", "tripletsemihard", "clip_loss", "cliploss")


@rule("DPM303", severity=Severity.BLOCKER)
def batch_coupled_loss(script: Script) -> Iterator[Hit]:
    advice = "gather the features of all ranks with gradient before they are compared, or train with one process"
    for node in script.names.nodes:
        if not _product(script, node) or script.roles.region(node) not in ("train", "both"):
            continue
        if _inside_models(script, node, frozenset()) and not _in_loss(script, node):
            continue  # attention inside a model compares the parts of a sample
        yield Hit(node, "the samples of a batch are compared with each other: with the batch divided this is another loss", advice=advice)
    methods = {f for p in script.roles.detours for f in entered(script.roles, p)} | set(_losses_of_models(script))
    for call in script.roles.calls:
        if _statistic(script, call) and _reaches_loss(script, call, methods):
            yield Hit(call, f"{script.text(call)} is a statistic of the batch: of a part of the batch it is another one", advice=advice)
    for call in script.roles.calls:
        if script.roles.region(call) in ("train", "both") and any(w in name.lower() for name in _called(script, call) for w in _NAMES):
            yield Hit(call, f"{script.text(call.func)} compares the samples of a batch with each other", advice=advice)


def _losses_of_models(script: Script) -> Iterator[FunctionNode]:
    """The methods that training calls of models and that use nothing of them: losses of their outputs, and no passes."""
    for call, func in ((c, c.func) for c in script.roles.calls if isinstance(c.func, ast.Attribute)):
        models = script.roles.model_vals(func.value)
        if models and stateless(script.roles, models, func.attr) and script.roles.region(call) in ("train", "both"):
            yield from methods_of_model(script.roles, call)


def _inside_models(script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether the node stands in a model, or in a function that only models call."""
    function = script.names.function(node)
    if script.roles.inside_module(node) or function in seen:
        return True
    calls = script.values.callers.get(function, [])
    return bool(calls) and all(_inside_models(script, c, seen | {function}) for c in calls)


def _statistic(script: Script, call: ast.Call) -> bool:
    """``x.std(dim=0)``, ``torch.var(x)``, ``torch.cov(x.T)``: over the samples of a batch, and no sum of what each gives."""
    dotted = script.names.dotted(call.func)
    if dotted in ("torch.cov", "torch.corrcoef"):
        return True
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("std", "var")) or (dotted and not dotted.startswith("torch.")):
        return False
    found = axes(script.names, call)
    return not found or 0 in found


def _reaches_loss(script: Script, call: ast.Call, methods: set[FunctionNode]) -> bool:
    """Whether the value may be differentiated: in training, in a name that goes into the loss, in what a function or a method of the model returns."""
    function = script.names.function(call)
    if script.roles.inside_module(call) and not _in_loss(script, call):
        return function in methods
    if script.roles.region(call) not in ("train", "both"):
        return False
    stmt = script.names.statement(call)
    if isinstance(stmt, ast.Return) or any(script.names.is_inside(call, b) for b in script.roles.backwards):
        return True
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AugAssign) else []
    return script.roles.into_loss(*targets) or (bool(targets) and isinstance(function, FunctionNode) and _in_loss(script, call))


def _called(script: Script, call: ast.Call) -> Iterator[str]:
    """The names of what is called: as written, and of the class that made it."""
    yield ast.unparse(call.func).rsplit(".", 1)[-1]
    for v in script.values.eval(call.func):
        yield v.cls.name if v.cls is not None else v.qual.rsplit(".", 1)[-1]


def _in_loss(script: Script, node: ast.AST) -> bool:
    """Whether the node stands in a module that training calls beside the model: a loss of this program."""
    cls = script.names.cls(node)
    for call in script.roles.calls:
        if script.roles.inside_module(call) or script.roles.model_vals(call.func) or script.roles.region(call) not in ("train", "both"):
            continue
        if any(v.kind == "object" and v.cls is not None and cls in script.values.defs.bases(v.cls) for v in script.values.eval(call.func)):
            return True
    return False


def _product(script: Script, node: ast.AST) -> bool:
    """A product or distance of every sample with every sample, in training code."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _transposed(node.right) or _transposed(node.left)
    if not isinstance(node, ast.Call):
        return False
    dotted = script.names.dotted(node.func)
    if dotted in ("torch.mm", "torch.matmul"):
        return any(_transposed(a) for a in node.args)
    if dotted in ("torch.cdist", "torch.nn.functional.pdist", "torch.pdist"):
        return True
    if dotted.endswith(".cosine_similarity"):
        return sum(_has_new_axis(a) for a in node.args) == 2
    if dotted == "torch.einsum" and node.args and isinstance(node.args[0], ast.Constant):
        return _outer(str(node.args[0].value))
    return isinstance(node.func, ast.Attribute) and node.func.attr in ("mm", "matmul") and any(_transposed(a) for a in node.args)


def _transposed(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT")
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr == "transpose" and any(isinstance(n, ast.Constant) and isinstance(n.value, int) and n.value >= 2 for n in node.args):
        return False  # of three dimensions or more: a product for each sample by itself
    return node.func.attr in ("t", "transpose") or (node.func.attr in ("contiguous", "detach", "float", "clone") and _transposed(node.func.value))


def _has_new_axis(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "unsqueeze" for n in ast.walk(node)) or any(
        isinstance(n, ast.Constant) and n.value is None for n in ast.walk(node)
    )


def _outer(equation: str) -> bool:
    """``id,jd->ij``: two operands that keep a letter each."""
    left, _, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    return len(parts) == 2 and len(right) == 2 and right[0] in parts[0] and right[1] in parts[1] and right[0] not in parts[1] and right[1] not in parts[0]
