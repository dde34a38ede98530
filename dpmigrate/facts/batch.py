"""How many samples a batch has: the one owner of what asks a batch for its size, of names for it, and of what a loader says it is.

What a loader is *built* with, the setting, is ``sizes``'s.
"""

from __future__ import annotations

import ast

from dpmigrate.facts.asked_sizes import axis_asked, counted
from dpmigrate.facts.names import Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.numbers import Numbers
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.samples import of_a_turn, unmoved
from dpmigrate.facts.values import NONE, Vals

#: what makes another batch of the samples that a sampler gives, by keyword and by position
_OWN_BATCHES = frozenset({"collate_fn", "batch_sampler", None})
_PLAIN_ARGUMENTS = 4


def measured(names: Names, node: ast.AST) -> ast.expr | None:
    """What is ``counted``, or asked for its length: ``len(x)``; a dictionary of fields has as many as there are fields."""
    if isinstance(node, ast.Call) and names.dotted(node.func) == "?.len":
        return node.args[0] if len(node.args) == 1 and not _by_fields(names, node.args[0]) else None
    return counted(node)


def _by_fields(names: Names, node: ast.expr) -> bool:
    """Whether a variable is read by names of fields: ``batch["x"]``, ``batch.items()``."""
    if not isinstance(node, ast.Name):
        return False
    for use in names.uses(names.scope_of[node], node.id):
        above = names.parent[use]
        if isinstance(above, ast.Attribute) and above.attr in ("items", "keys") and isinstance(names.parent[above], ast.Call):
            return True
        if isinstance(above, ast.Subscript) and above.value is use and isinstance(above.slice, ast.Constant) and isinstance(above.slice.value, str):
            return True
    return False


def size(roles: Roles, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the expression is the number of samples: ``x.size(0)``, ``len(x)``, a name for one of these, or such a number times a plain one.

    ``seen`` are the values of names that are being looked at: for ``n = n * 2`` the other assignments decide.
    """
    if isinstance(node, ast.Name):
        values = [b.value for b in roles.names.bindings(roles.names.scope_of[node], node.id) if b.how == "assign"]
        others = [v for v in values if v not in seen]
        return bool(others) and all(isinstance(v, ast.expr) and size(roles, v, seen | {v}) for v in others)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):  # a batch size times 2
        sides = (node.left, node.right)
        sizes = [size(roles, n, seen) for n in sides]
        return any(sizes) and all(s or Numbers(roles).plain(n) for s, n in zip(sizes, sides, strict=True))
    asked = measured(roles.names, node)
    return asked is not None and (counted(node) is not None or of_a_turn(roles, asked))


def of_loader(roles: Roles, node: ast.AST) -> Vals:
    """The loaders whose ``loader.batch_size`` the expression is, also by a name that is given it once."""
    if isinstance(node, ast.Name):
        bound = list(roles.names.bindings(roles.names.scope_of[node], node.id))
        value = bound[0].value if len(bound) == 1 and bound[0].how == "assign" else None
        return of_loader(roles, value) if isinstance(value, ast.Attribute) else NONE
    return roles.loaders_of(node.value) if isinstance(node, ast.Attribute) and node.attr == "batch_size" else NONE


def size_as_loaded(roles: Roles, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether the expression is the size of a batch as a loader gives it, before anything leaves samples out."""
    if isinstance(node, ast.Name):
        given = [g for g in roles.given(node) if g not in seen]
        return bool(given) and all(size_as_loaded(roles, g, seen | {g}) for g in given)
    names = [n for n in walk(node) if isinstance(n, ast.Name) and roles.names.meant(n) is not None]
    return size(roles, node) and bool(names) and all(_as_loaded(roles, n, frozenset()) for n in names)


def stacked_size(roles: Roles, node: ast.expr) -> bool:
    """Whether the expression is the size of an axis behind that of the samples, of a batch that a loader has stacked: ``x.size(1)``.

    Samples of different sizes cannot be stacked, and those of all ranks are stacked in the original. Where the order is not shuffled, what the last batch is
    filled up with may be of another size.
    """
    asked, axis = axis_asked(node)
    tensor = unmoved(asked)
    behind = isinstance(axis, ast.Constant) and isinstance(axis.value, int) and axis.value > 0
    return behind and isinstance(tensor, ast.Name) and _as_loaded(roles, tensor, frozenset(), stacked=True)


def _stacks(roles: Roles, loader: ast.Call) -> bool:
    """Whether a loader stacks samples as torch does, in batches, whose order is shuffled."""
    given = {k.arg: k.value for k in loader.keywords}
    size = given.get("batch_size", loader.args[1] if len(loader.args) > 1 else None)
    batched = size is not None and not (isinstance(size, ast.Constant) and size.value is None)
    return batched and shuffles(roles, loader) and roles.names.dotted(loader.func) == "torch.utils.data.DataLoader"


def shuffles(roles: Roles, loader: ast.Call) -> bool:
    """Whether a loader is written to draw a random order: ``shuffle=True``, or a ``DistributedSampler`` that does."""
    given = {k.arg: k.value for k in loader.keywords}
    order = given.get("shuffle", loader.args[2] if len(loader.args) > 2 else None)
    sampler = given.get("sampler")
    if isinstance(sampler, ast.Call) and roles.names.dotted(sampler.func).rpartition(".")[2] == "DistributedSampler":
        order = next((k.value for k in sampler.keywords if k.arg == "shuffle"), ast.Constant(True))
    return isinstance(order, ast.Constant) and order.value is True


def _as_loaded(roles: Roles, name: ast.Name, seen: frozenset[str], stacked: bool = False) -> bool:
    """Whether the variable is a part of a batch as a DataLoader gives it, moved at most; a collate function may leave samples out."""
    last = reaching(roles.names, name)
    bound = [last] if last is not None else list(roles.names.bindings(roles.names.scope_of[name], name.id))
    others = frozenset() if last is not None else seen | {name.id}
    for b in bound:
        if b.how == "for" and b.value is not None:
            loaders = roles.loaders_of(b.value)
        elif b.how == "assign" and isinstance(b.value, ast.Call) and roles.names.dotted(b.value.func) == "?.next" and b.value.args:
            loaders = roles.loaders_of(b.value.args[0])
        else:
            part = unmoved(b.value) if b.how == "assign" else None
            if not isinstance(part, ast.Name) or (part.id not in others and not _as_loaded(roles, part, others, stacked)):
                return False
            continue
        calls = [v.node for v in loaders if isinstance(v.node, ast.Call) and roles.makes_loader(v.node)]
        if not calls or len(calls) < len(loaders) or any({k.arg for k in c.keywords} & _OWN_BATCHES or len(c.args) > _PLAIN_ARGUMENTS for c in calls):
            return False
        if stacked and not all(_stacks(roles, c) for c in calls):
            return False
    return bool(bound)
