"""Which layers the program's models hold, as far as the program shows it: those that normalise over the batch, and whatever may have buffers.

Seen are the file's own classes and torch's layers, and of some libraries' models what they are made of; what anything else makes is not known.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.buffers import updates
from dpmigrate.facts.modules import Modules
from dpmigrate.facts.names import Names, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.reductions import axes, statistic
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_batch

if TYPE_CHECKING:
    pass

#: libraries of ready-made models, which may hold any layer, and of what puts layers into models
_LIBRARIES = ("torchvision.models.", "timm.", "transformers.", "torch.hub.load", "torch.ao.", "torch.quantization.")
#: models of torchvision without BatchNorm
_WITHOUT_NORM = ("alexnet", "vgg", "squeezenet", "vit_", "swin", "convnext", "maxvit")
_WITH_BUFFERS = ("BatchNorm", "InstanceNorm", "register_buffer", "spectral_norm")
#: what these make holds no layers that a file cannot show
_WITHOUT_LAYERS = ("torch.", "math.", "numpy.", "collections.", "functools.")


def batch_norm(names: Names) -> ast.AST | None:
    """Where the program names a layer that normalises over the batch, or a library's model that has one."""
    for node in names.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and (names.dotted(node).startswith("torch.nn.BatchNorm") or _ready_made(names, node)):
            return node
    return None


def by_hand(modules: Modules) -> Iterator[ast.Call]:
    """Statistics over the batch that a model computes in training by itself: ``x / x.std(0)``, and the mean of a normalisation of its own.

    A mean may as well go over time: it counts where it is taken in training alone, or goes into a buffer.
    """
    roles, kept = modules.roles, [u.node for u in updates(modules)]
    for call in roles.calls:
        if roles.inside_module(call) and modules.in_step(call) and not modules.evaluating(call) and of_batch(roles, call):
            spread = statistic(roles.names, call)
            if spread or (_mean_of_samples(modules, call) and (modules.training_alone(call) or any(_goes_into(roles, call, s) for s in kept))):
                yield call


def _mean_of_samples(modules: Modules, call: ast.Call) -> bool:
    """``x.mean(0)``, ``torch.mean(x, dim=(0, 2, 3))`` in a model."""
    roles, cls = modules.roles, modules.names.cls(call)
    if not any(cls in roles.values.defs.bases(c) for c in modules.of_models):
        return False
    dotted = roles.names.dotted(call.func)
    return last(call.func) == "mean" and (not dotted or dotted == "torch.mean") and 0 in axes(roles.names, call)


def _goes_into(roles: Roles, call: ast.Call, stmt: ast.stmt) -> bool:
    """Whether the statement is given the call's value, by itself or through a variable."""
    kept = roles.names.statement(call)
    targets = {n.id for t in kept.targets for n in walk(t) if isinstance(n, ast.Name)} if isinstance(kept, ast.Assign) else set()
    same = roles.names.function(call) is roles.names.function(stmt)
    return roles.names.is_inside(call, stmt) or (same and any(isinstance(n, ast.Name) and n.id in targets for n in walk(stmt)))


def buffers(roles: Roles) -> ast.AST | None:
    """What shows that a model may hold buffers (BatchNorm's running statistics); None where all its layers are seen and have none."""
    for node in _made_elsewhere(roles):
        return node
    for n in roles.names.nodes:
        if isinstance(n, ast.Attribute | ast.Name):
            word = n.attr if isinstance(n, ast.Attribute) else n.id
            if any(w in word for w in _WITH_BUFFERS) or roles.names.dotted(n).startswith(_LIBRARIES):
                return n
    makers: list[ast.AST] = [n for n in roles.names.nodes if isinstance(n, ast.ClassDef) and roles.values.defs.is_module_class(n)]
    makers += [v.node for v in roles.models if isinstance(v.node, ast.Call)]
    makers += [f for m in makers for f in roles.all_entered(m)]
    return next((n for m in makers for n in walk(m) if isinstance(n, ast.Call) and _may_make_layers(roles, n)), None)


def _made_elsewhere(roles: Roles) -> Iterator[ast.AST]:
    """The calls that build trained models and are neither of the program nor of torch."""
    made = {m for v in roles.models for m in (v, *roles.values.inner(v))}
    yield from (v.node for v in sorted(made, key=lambda v: v.qual) if v.kind == "call" and not v.qual.startswith("torch.nn."))


def _may_make_layers(roles: Roles, call: ast.Call) -> bool:
    """Whether the called function is neither torch's nor of the program's nor built in."""
    dotted = roles.names.dotted(call.func)
    builtin = dotted.startswith("?.") and hasattr(builtins, dotted[2:].partition(".")[0])
    return bool(dotted) and not builtin and not dotted.startswith(_WITHOUT_LAYERS)


def _ready_made(names: Names, node: ast.AST) -> bool:
    """A call of a library's model that normalises over the batch: all of torchvision's but the few named here."""
    parent = names.parent[node]
    if not (isinstance(parent, ast.Call) and parent.func is node):
        return False
    dotted = names.dotted(node)
    if dotted.startswith("torchvision.models."):
        return not dotted.rsplit(".", 1)[-1].lower().startswith(_WITHOUT_NORM) or dotted.endswith("_bn")
    return dotted in ("timm.create_model", "torch.hub.load")
