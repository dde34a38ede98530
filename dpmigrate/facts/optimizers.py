"""Which calls build an optimizer, and whose parameters it gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.library import GROWS, INNER_MODULES, PARAMETERS
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import either, walk
from dpmigrate.facts.passes import NO_PASS, goes_into_loss, lent
from dpmigrate.facts.values import NONE, Val, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles


@dataclass(frozen=True, eq=False, slots=True)
class Optimizer:
    """A call that builds an optimizer from models' parameters."""

    call: ast.Call
    qual: str
    models: Vals
    receivers: tuple[ast.expr, ...]  # the expressions before ``.parameters()``, or of the models that are given


#: what torch schedules learning rates with
SCHEDULERS = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.SWALR")


def optimizers(roles: Roles) -> tuple[Optimizer, ...]:
    """torch's own, and whatever takes parameters or a model and is stepped and cleared."""
    called = _called(roles)
    out = []
    for call in roles.calls:
        qual = roles.names.dotted(call.func)
        other = ".lr_scheduler" in qual or ".swa_utils." in qual
        known = qual.startswith("torch.optim.") and not other and qual.rsplit(".", 1)[-1][:1].isupper()
        if not known and not _stepped(roles, call) and not _derived(roles, call):
            continue
        given = [*call.args, *(k.value for k in call.keywords if not known or k.arg in (None, "params"))]
        for later in roles.names.calls("add_param_group"):
            if isinstance(later.func, ast.Attribute) and any(v.node is call for v in roles.values.eval(later.func.value)):
                given += [*later.args, *(k.value for k in later.keywords)]
        receivers = tuple(_receivers(roles, given))
        if not receivers:
            receivers = tuple(_models_given(roles, call if not known else None, given, called))
        models = _holders(roles, call, NONE.union(*(_made(roles, r) for r in receivers)))
        if known or models:
            out.append(Optimizer(call, qual, models, receivers))
    return tuple(out)


def _holders(roles: Roles, optimizer: ast.Call, models: Vals) -> Vals:
    """The modules of the program that are called in the place of what is trained, where they alone call it: ``trainer(x)`` of ``trainer = Trainer(model)``.

    A wrapper of such a module holds all that the optimizer steps.
    """
    calls = [c for c in roles.calls if models & _objects(roles, c.func)] if models else []
    if models and not calls:
        return _held(roles, optimizer, models)
    if not calls or not all(roles.inside_module(c) for c in calls):
        return models
    owners = {roles.names.cls(c) for c in calls}
    outside = [(c, v) for c in roles.calls if not roles.inside_module(c) for v in _objects(roles, c.func) if v.kind == "object" and v.cls is not None]
    called = [(c, v) for c, v in outside if v.cls is not None and owners & set(roles.values.defs.bases(v.cls))]
    into_loss = frozenset(v for c, v in called if goes_into_loss(roles, c, anywhere=True))
    if into_loss and not any(isinstance(c.func, ast.Name) for c in calls):
        return into_loss  # a module that is handed to another one's method is not held by it
    asked = roles.asked
    return frozenset(v for _, v in called if asked is not None and asked.holds(position(v.node), position(optimizer))) or models


def _held(roles: Roles, optimizer: ast.Call, models: Vals) -> Vals:
    """The modules that are called into a loss and hold what is trained, of which other methods alone are called, and by modules: ``self.solver.solve(x)``, also
    in functions that have it from them.
    """
    asked, attributes = roles.asked, [(c, c.func) for c in roles.calls if isinstance(c.func, ast.Attribute) and c.func.attr not in NO_PASS]
    used = [(c, f.value) for c, f in attributes if models & _objects(roles, f.value)]
    if asked is None or not used or not all(roles.inside_module(c) or lent(roles, m) for c, m in used):
        return models
    outside = [c for c in roles.calls if not roles.inside_module(c) and goes_into_loss(roles, c, anywhere=True)]
    called = {v for c in outside for v in _objects(roles, c.func) if v.kind == "object" and v.cls is not None and v not in models}
    return frozenset(v for v in called if asked.holds(position(v.node), position(optimizer))) or models


def _objects(roles: Roles, node: ast.expr) -> Vals:
    return NONE.union(*(roles.values.inner(v) for v in roles.values.eval(node)))


def closures(roles: Roles) -> Iterator[tuple[ast.Call, Optimizer]]:
    """The calls ``optimizer.step(closure)``, which take the loss, and with it the model, out of the loop's sight."""
    for c in roles.calls:
        given = [*c.args[:1], *(k.value for k in c.keywords if k.arg == "closure")]
        if isinstance(c.func, ast.Attribute) and c.func.attr == "step" and any(not isinstance(g, ast.Constant) for g in given):
            holders = roles.values.eval(c.func.value)
            yield from ((c, o) for o in roles.optimizers if any(v.node is o.call for v in holders))


def _called(roles: Roles) -> Vals:
    """The objects that are called outside the classes of models: what a model is, among other things."""
    found = (v for c in roles.calls if not roles.inside_module(c) for w in roles.values.eval(c.func) for v in roles.values.inner(w))
    return frozenset(v for v in found if v.kind in ("call", "object"))


def _stepped(roles: Roles, call: ast.Call) -> bool:
    """Whether the result is stepped and its gradients cleared: an optimizer of a foreign library or of another file."""
    made = {
        name: any(isinstance(c.func, ast.Attribute) and any(v.node is call for v in roles.values.eval(c.func.value)) for c in roles.names.calls(name))
        for name in ("step", "zero_grad")
    }
    # scaler.step(optimizer)
    made["step"] |= any(any(v.node is call for v in roles.values.eval(c.args[0])) for c in roles.names.calls("step") if c.args)
    given = [a for a in call.args if not any(v.qual.startswith("torch.optim.") for v in roles.values.eval(a))]  # a scheduler gets an optimizer
    takes = any(isinstance(n, ast.Attribute) and n.attr in PARAMETERS for a in given for n in walk(a))
    groups = [a for a in given if any(v.kind == "display" for v in roles.values.eval(a))]
    return made["step"] and (made["zero_grad"] or takes or any(True for _ in _receivers(roles, groups)))


def _derived(roles: Roles, call: ast.Call) -> bool:
    """Whether the call makes an object of a class of the program that derives from one of torch's optimizers."""
    classes = [v.cls for v in roles.values.eval(call) if v.kind == "object" and v.node is call and v.cls is not None]
    bases = [roles.names.dotted(b) for c in classes for k in roles.values.defs.bases(c) for b in k.bases]
    return any(b.startswith("torch.optim.") and ".lr_scheduler" not in b and ".swa_utils." not in b for b in bases)


def _receivers(roles: Roles, todo: list[ast.expr]) -> Iterator[ast.expr]:
    """What stands before ``.parameters()`` in the expressions, or before a method of a model that gives parameters: ``model.head_parameters()``."""
    for n in _reached(roles, todo, functions=True):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and (n.func.attr in PARAMETERS or _gives_parameters(roles, n)):
            yield n.func.value


def _reached(roles: Roles, todo: list[ast.expr], *, functions: bool) -> Iterator[ast.AST]:
    """The nodes of the expressions, through names, lists that are filled, and functions of this module."""
    seen: set[int] = set()
    written: set[str] = set()  # attributes, which are followed by what they are called
    stack: list[ast.AST] = list(todo)
    while stack:
        for n in walk(stack.pop()):
            if id(n) in seen:
                continue
            seen.add(id(n))
            yield n
            if isinstance(n, ast.Call) and functions:
                stack += [f for f, _ in roles.values.targets(n) if not roles.values.defs.method_class(f) and _gives(f)]
            elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                stack += _filled(roles, n)
            elif isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and (text := ast.unparse(n)) not in written:
                written.add(text)
                stack += _filled(roles, n)


def _gives(function: FunctionNode) -> bool:
    """Whether the function gives its caller something: one that only prints is no factory, wherever a name is looked up."""
    return any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom) and n.value is not None for n in walk(function))


def _gives_parameters(roles: Roles, call: ast.Call) -> bool:
    """Whether the call enters a method of a model of the program that returns or yields what ``.parameters()`` gives, also by another of its methods."""
    methods = [f for f, _ in roles.values.targets(call) if roles.inside_module(f)]
    return any(_hands_parameters_out(roles, f, frozenset()) for f in methods)


def _hands_parameters_out(roles: Roles, function: FunctionNode, seen: frozenset[ast.AST]) -> bool:
    own = [n for n in walk(function) if n is not function and roles.names.function(n) is function]
    if function in seen or not any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom) and n.value is not None for n in own):
        return False
    if any(isinstance(n, ast.Attribute) and n.attr in PARAMETERS for n in own):
        return True
    entered = (f for n in own if isinstance(n, ast.Call) for f, _ in roles.values.targets(n) if roles.inside_module(f) and f.name != "forward")
    return any(_hands_parameters_out(roles, f, seen | {function}) for f in entered)


def _filled(roles: Roles, node: ast.Name | ast.Attribute) -> Iterator[ast.AST]:
    """What a variable is given: assigned, added, appended, taken from in a loop, or handed over by the calls of its function."""
    names = roles.names
    if isinstance(node, ast.Name):
        for b in names.bindings(names.scope_of[node], node.id):
            if b.how in ("assign", "aug", "for") and b.value is not None:
                yield b.value
            yield from (e for e in roles.handed(b) if e is not None)
        others: list[ast.Name] | list[ast.Attribute] = [r for r in names.reads(node.id) if names.scope_of[r] is names.scope_of[node]]
    else:
        text = ast.unparse(node)
        others = [a for a in names.attributes(node.attr) if ast.unparse(a) == text]
        stored = [names.statement(a) for a in others if isinstance(a.ctx, ast.Store)]
        yield from (s.value for s in stored if isinstance(s, ast.Assign | ast.AugAssign | ast.AnnAssign) and s.value is not None)
    for other in others:
        above = names.parent[other]
        owner: ast.expr = other
        while isinstance(above, ast.IfExp | ast.BoolOp) and other in either(above):  # (decayed if p.dim() > 1 else others).append(p)
            owner, above = above, names.parent[above]
        if isinstance(above, ast.Attribute) and above.value is owner and above.attr in GROWS and isinstance(call := names.parent[above], ast.Call):
            yield from call.args


def _models_given(roles: Roles, maker: ast.Call | None, given: list[ast.expr], called: Vals) -> Iterator[ast.expr]:
    """The models that a function or a method of another file is given: ``set_optimizer(args, model)``, ``model.param_groups(lr)``."""
    calls = [n for n in _reached(roles, given, functions=False) if isinstance(n, ast.Call)] + ([maker] if maker is not None else [])
    for call in calls:
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        for e in (*owner, *call.args, *(k.value for k in call.keywords)):
            if isinstance(e, ast.Name | ast.Attribute) and any(v in called for w in roles.values.eval(e) for v in roles.values.inner(w)):
                yield e


def _made(roles: Roles, receiver: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> Vals:
    """The models of a receiver; of the ``self`` of a method those whose method is called: ``optimizer = net.configure_optimizer()``."""
    vals = module_of(roles, receiver)
    function = roles.names.function(receiver)
    if function in seen or not any(v.node is v.cls for v in vals):
        return vals
    found: Vals = NONE
    for call in roles.values.callers.get(function, []):
        new = frozenset(v for v in roles.values.eval(call) if v.kind == "object" and v.node is call)
        if not new and isinstance(call.func, ast.Attribute):
            new = frozenset(v for v in _made(roles, call.func.value, seen | {function}) if v.node is not v.cls)
        if not new:
            return vals
        found |= new
    return found or vals


#: lists that are made of each other
_DEPTH = 4


def module_of(roles: Roles, receiver: ast.expr, depth: int = _DEPTH) -> Vals:
    """The model that the receiver is, or is a part of: ``net`` for ``net.backbone``."""
    node: ast.expr = receiver
    while isinstance(node, ast.Attribute) and any(_is_module(roles, v) for v in roles.values.eval(node.value)):
        node = node.value
    while True:
        vals = NONE.union(*(roles.values.inner(v) for v in roles.values.eval(node)))
        vals = frozenset(v for v in vals if v.kind in ("call", "object") and not _trainer(roles, v))
        if vals or not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return vals
        if isinstance(node, ast.Name):
            whole = _whole_of(roles, node)
            return module_of(roles, whole, depth - 1) if whole is not None and depth else vals
        node = node.value


def _whole_of(roles: Roles, node: ast.Name) -> ast.expr | None:
    """The module of whose parts a name holds some, or goes through some: ``for name, part in net.named_children():``, ``last = list(net.children())[2:]``."""
    bound = [b for b in roles.names.bindings(roles.names.scope_of[node], node.id) if b.how in ("for", "assign")]
    found = [_parted(roles, b.value, _DEPTH) if b.value is not None else None for b in bound]
    return found[0] if found and None not in found and len({ast.unparse(f) for f in found if f is not None}) == 1 else None


#: functions that give what they are given, or parts of it
_LISTING = frozenset({"list", "tuple", "iter", "reversed", "enumerate"})


def _parted(roles: Roles, node: ast.AST, depth: int) -> ast.expr | None:
    """The module of which an expression gives the parts: ``list(net.body.children())[1:]``, also through a variable."""
    if isinstance(node, ast.Subscript):
        return _parted(roles, node.value, depth)
    if isinstance(node, ast.Name) and depth:
        bound = [b for b in roles.names.bindings(roles.names.scope_of[node], node.id) if b.how == "assign" and not b.path]
        return _parted(roles, bound[0].value, depth - 1) if len(bound) == 1 and bound[0].value is not None else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in INNER_MODULES:
        return node.func.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LISTING and len(node.args) == 1:
        return _parted(roles, node.args[0], depth)
    return None


def _is_module(roles: Roles, v: Val) -> bool:
    if v.kind == "object":
        return v.cls is not None and roles.values.defs.is_module_class(v.cls)
    return v.kind == "wrapped" or (v.kind == "call" and v.qual.startswith(("torch.nn.", "torchvision.models.")))


def _trainer(roles: Roles, v: Val) -> bool:
    return v.kind == "object" and v.cls is not None and not roles.values.defs.is_module_class(v.cls)
