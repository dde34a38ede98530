"""What a training loop hands to functions of the program that keep it: ``tracker.log_loss(loss.item())``, ``record(history, loss.item())``.

What a meter does is known by its shape (``meters``), whatever its method is called. Here is everything else that stores a number of the batch where
somebody reads it after the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from dpmigrate.facts.carried import Carried
from dpmigrate.facts.definitions import parameters
from dpmigrate.facts.library import GROWS
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk

#: what is asked of a tensor to give it to somebody
OF_A_BATCH = frozenset({"item", "data", "detach"})
#: methods that begin or end something, and tell nothing of it
_AROUND = frozenset({"reset", "clear", "close", "flush", "start", "end", "zero", *GROWS})


def number_of_batch(carried: Carried, node: ast.AST) -> bool:
    """Whether a number is taken out of a tensor of the batch, also in a variable: ``loss.item()``."""
    named = (v for n in walk(node) if isinstance(n, ast.Name) for v in carried.roles.given(n))
    return any(isinstance(m, ast.Attribute) and m.attr in OF_A_BATCH for e in (node, *named) for m in walk(e))


def recorded(carried: Carried, known: Collection[str]) -> Iterator[tuple[ast.Call, str]]:
    """The calls of a turn by which the program's own functions keep a number of the batch, with the name of what keeps it; ``known`` are told elsewhere."""
    found: set[str] = set(known)
    for call in (n for s in carried.loop.node.body for n in walk(s) if isinstance(n, ast.Call)):
        for function in sorted({f for f, _ in carried.roles.values.targets(call)}, key=lambda f: f.lineno):
            if carried.roles.inside_module(function):
                continue  # what a module keeps of its batches is asked elsewhere
            for name in _kept_by(carried, call, function):
                if name not in found:
                    found.add(name)
                    yield call, name


def _kept_by(carried: Carried, call: ast.Call, function: FunctionNode) -> Iterator[str]:
    """What the function puts the batch's numbers into, and who reads it after the loop: a parameter, the object of a method, a global."""
    given = {p: carried.roles.passed(call, function, p) for p in parameters(function)}
    numbers = {p for p, e in given.items() if e is not None and number_of_batch(carried, e)}
    me = function.args.args[0].arg if isinstance(call.func, ast.Attribute) and carried.roles.values.defs.method_class(function) and function.args.args else ""
    for holder in _holders(function, numbers) if numbers else ():
        root = holder
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in numbers:
            continue  # the batch itself is changed
        owner = call.func.value if root.id == me and isinstance(call.func, ast.Attribute) else given.get(root.id)
        if isinstance(owner, ast.Name) and owner.id in ("self", me) and isinstance(holder, ast.Attribute):  # a method of the same object
            reads = [a for a in carried.names.attributes(holder.attr) if isinstance(a.ctx, ast.Load)]
            if any(not carried.names.is_inside(a, carried.loop.node) and carried.names.function(a) is not function for a in reads):
                yield ast.unparse(holder)
        elif owner is not None:
            if _asked_after(carried, owner, call):
                yield ast.unparse(owner)
        elif root.id not in given and not _is_local(carried, root, function):
            uses = carried.names.uses(carried.names.scope_of[root], root.id)
            if any(carried.names.function(n) is not function and isinstance(n.ctx, ast.Load) for n in uses):
                yield root.id


def _is_local(carried: Carried, name: ast.Name, function: FunctionNode) -> bool:
    variable = carried.names.variable(carried.names.scope_of[name], name.id)
    return variable is None or variable[0].node is function


def _holders(function: FunctionNode, numbers: set[str]) -> Iterator[ast.expr]:
    """The variables and attributes that the function puts its numbers into, also by variables of its own."""
    made = set(numbers)
    for n in walk(function):
        if isinstance(n, ast.Assign | ast.AugAssign) and _read(n.value) & made:
            for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
                if isinstance(target, ast.Name) and isinstance(n, ast.Assign):
                    made.add(target.id)
                elif not isinstance(target, ast.Name):
                    yield _whole(target)
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in GROWS and any(_read(a) & made for a in n.args):
            yield _whole(n.func.value)


def _whole(node: ast.expr) -> ast.expr:
    """``self.rows`` of ``self.rows[k]`` and ``self.rows.setdefault(k, [])``."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    return node


def _read(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _asked_after(carried: Carried, owner: ast.expr, call: ast.Call) -> bool:
    """Whether anybody asks the object for something after the loop, more than to begin anew or to add to it."""
    names, base = carried.names, _whole(owner)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    reads: list[ast.AST] = []
    if isinstance(base, ast.Name):
        reads += carried.reads_after(base.id)
    elif isinstance(base, ast.Attribute):
        reads += (a for a in names.attributes(base.attr) if isinstance(a.ctx, ast.Load) and not names.is_inside(a, carried.loop.node))
    above = [names.parent[_outer(names, n, owner)] for n in reads]
    return any(not (isinstance(p, ast.Attribute) and p.attr in {*_AROUND, method}) for p in above)


def _outer(names: Names, node: ast.AST, owner: ast.expr) -> ast.AST:
    """The entry, where the owner is one: ``meters["loss"]`` of ``meters``."""
    return above if isinstance(owner, ast.Subscript) and isinstance(above := names.parent[node], ast.Subscript) else node
