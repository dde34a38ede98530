"""Which buffers and parameters of the modules of training are given something of the batch: queues, running statistics, counters, values of a first batch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dpmigrate.facts.modules import Modules
from dpmigrate.facts.names import FunctionNode, of_self, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.operations import written_by_operations
from dpmigrate.facts.samples import of_batch
from dpmigrate.facts.stored import Stored, stored

_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


@dataclass(frozen=True, eq=False, slots=True)
class Update:
    """A statement that writes samples, or their number, into a buffer or a parameter of ``cls``, if the module is of a class of the program.

    ``beside``: the module is none of a model's; ``idle``: training reads the value nowhere; ``outside``: no forward pass comes to the statement;
    ``own``: all statements that do so, where an execution has shown them.
    """

    node: ast.stmt
    cls: ast.ClassDef | None
    name: str
    beside: bool
    idle: bool = False
    outside: bool = False
    own: frozenset[ast.stmt] = frozenset()


def updates(modules: Modules, shown: Iterable[Update] = ()) -> list[Update]:
    """The first such statement for each buffer; ``shown`` are those of which an execution of the result says so, by whichever name the buffer is written."""
    found: dict[tuple[ast.ClassDef | None, str], Update] = {}
    stores = list(_stores(modules))
    for cls, s in stores:
        name = _attribute(s.holder)
        if (cls, name) not in found and name in modules.registered(cls, "register_buffer") and any(of_batch(modules.roles, v) for v in s.values):
            own = {o.node for c, o in stores if c is cls and _attribute(o.holder) == name}
            beside = cls not in modules.of_models
            found[cls, name] = Update(s.node, cls, name, beside, _idle(modules, cls, name, beside, own))
    for stmt, given in written_by_operations(modules.roles):
        owner = modules.names.cls(given)
        if owner in modules.classes and isinstance(given, ast.Attribute) and (name := _attribute(given)) in modules.registered(owner, "register_buffer"):
            found.setdefault((owner, name), Update(stmt, owner, name, owner not in modules.of_models))
    for u in shown:
        if not any(name == u.name and _related(modules, cls, u.cls) for cls, name in found) and not (u.beside and u.cls not in modules.classes):
            found[u.cls, u.name] = _placed(modules, u)
    return sorted({u.node: u for u in found.values()}.values(), key=lambda u: position(u.node))


def _related(modules: Modules, cls: ast.ClassDef | None, other: ast.ClassDef | None) -> bool:
    """Whether a buffer of one class may be one of the other."""
    bases = modules.roles.values.defs.bases
    return cls is other or (cls is not None and other is not None and (cls in bases(other) or other in bases(cls)))


def _placed(modules: Modules, u: Update) -> Update:
    """A statement that was shown, with what the program's text says of it."""
    outside = modules.names.function(u.node) not in modules.entered
    own = {u.node, *u.own}
    idle = u.cls is not None and _idle(modules, u.cls, u.name, u.beside, own | {*_naming(modules, u.name, own)})
    return replace(u, idle=idle, outside=outside)


def _naming(modules: Modules, name: str, own: set[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that give a buffer another name by which it is only written: ``mean = self.mean; mean.mul_(0.9).add_(x)``."""
    names = modules.names
    for read in names.attributes(name):
        stmt = names.statement(read)
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(target := stmt.targets[0], ast.Name):
            function = names.function(stmt)
            loads = [n for n in walk(function) if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)]
            if loads and all(names.statement(n) in own for n in loads):
                yield stmt


def parameters_set(modules: Modules) -> list[Update]:
    """The first statement of a training step for each parameter that gives it something of the batch, past the optimizer."""
    found: dict[tuple[ast.ClassDef, str], Update] = {}
    for cls, s in _stores(modules):
        name = _parameter(modules, cls, s)
        if name and modules.in_step(s.node) and any(of_batch(modules.roles, v) for v in s.values):
            found.setdefault((cls, name), Update(s.node, cls, name, cls not in modules.of_models))
    return sorted({u.node: u for u in found.values()}.values(), key=lambda u: position(u.node))


def _stores(modules: Modules) -> Iterator[tuple[ast.ClassDef, Stored]]:
    """What methods write, in order; what only builds the object is left out."""
    for cls in modules.classes:
        family = modules.roles.values.defs.bases(cls)
        for stmt in sorted((n for c in family for n in walk(c) if isinstance(n, ast.stmt)), key=position):
            function = modules.names.function(stmt)
            if isinstance(function, FunctionNode) and ("init" not in function.name or function in modules.entered):
                yield from ((cls, s) for s in stored(modules.names, stmt))


def _attribute(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else ""


def _parameter(modules: Modules, cls: ast.ClassDef, s: Stored) -> str:
    """The parameter that is written: one of the module, or the ``weight`` or ``bias`` of a part of it; '' if it is none."""
    name = _attribute(s.holder)
    if name:
        known = name in modules.registered(cls, "register_parameter") or any(_is_parameter(modules, v) for v in modules.roles.given(s.holder))
        return name if known else ""
    node: ast.expr = s.holder
    while isinstance(node, ast.Attribute):
        node = node.value
    inner = isinstance(node, ast.Name) and node.id == "self" and isinstance(s.holder, ast.Attribute) and s.holder.attr in ("weight", "bias")
    return ast.unparse(s.holder).removeprefix("self.") if inner else ""


def _is_parameter(modules: Modules, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and modules.names.dotted(value.func) in _PARAMETERS


def _idle(modules: Modules, cls: ast.ClassDef, name: str, beside: bool, own: set[ast.stmt]) -> bool:
    """Whether the buffer is read while the module does not train alone, as the running statistics of a normalisation are; beside a model, also by nobody.

    ``own`` are the statements that write it.
    """
    family = modules.roles.values.defs.bases(cls)
    reads = [n for n in modules.names.attributes(name) if isinstance(n.ctx, ast.Load) and of_self(n) and any(modules.names.is_inside(n, c) for c in family)]
    reads = [n for n in reads if modules.names.statement(n) not in own]
    return (beside or bool(reads)) and all(modules.evaluating(n) for n in reads)
