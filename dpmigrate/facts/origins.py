"""What a value is made of: the expressions behind its variables, parameters and attributes, each once; and whether a batch is among them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dpmigrate.facts.definitions import SAME
from dpmigrate.facts.library import CLOCKS, MUTATORS
from dpmigrate.facts.names import last, of_self
from dpmigrate.facts.nodes import children, walk
from dpmigrate.facts.randomness import drawing
from dpmigrate.facts.reaching import may_reach
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Binding

#: what gives the weights of a model
_OF_WEIGHTS = frozenset({"parameters", "named_parameters", "state_dict"})
#: what a batch has and what is made of it alone, not of its numbers
_FORM = frozenset(
    {"len", "size", "shape", "numel", "dim", "ndim", "device", "dtype", "is_cuda", "isinstance", "hasattr"}
    | {"ndimension", "nelement", "stride", "element_size", "get_device", "is_contiguous", "is_floating_point", "requires_grad"}
    | {f"new_{n}" for n in ("zeros", "ones", "full", "empty")}
    | {f"{n}_like" for n in ("zeros", "ones", "full", "empty")}
)


def origins(
    roles: Roles, node: ast.AST, seen: set[object] | None = None, *, form: bool = True, returned: bool = False
) -> Iterator[tuple[ast.AST, Binding | None]]:
    """The nodes of an expression and of all that its variables are given, each with the binding of a loop's target that it reads, if it does.

    Of an object of the program it is what the attribute is given that is read. What an evaluation gives is left out, and the number of batches of a
    loader: they are the same on every rank. So are shapes, lengths and devices, without ``form``. With ``returned`` a call of a function of the program is
    what that hands back, whatever else it is given.
    """
    seen = set() if seen is None else seen
    todo: list[ast.AST] = [node]
    while todo:
        n = todo.pop()
        if n in seen or (isinstance(n, ast.Call) and (_evaluates(roles, n) or _counts_batches(roles, n))) or (not form and _is_form(n)):
            continue
        seen.add(n)
        yield n, None
        held = _held(roles, n) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) else None
        if returned and isinstance(n, ast.Call):
            held = handed_back(roles, n)
        todo += children(n) if held is None else held
        if not isinstance(n, ast.Name) or not isinstance(n.ctx, ast.Load):
            continue
        variable = roles.names.variable(roles.names.scope_of[n], n.id)
        if variable is None:
            continue
        if variable not in seen:
            seen.add(variable)
            todo += _put_in(roles, n)
        for b in roles.names.bindings(*variable):
            if b in seen or not may_reach(roles.names, b, n) or _in_evaluation(roles, b.target, n):
                continue
            seen.add(b)
            if b.how == "for" and b.value is not None and not _counted(b):
                yield n, b
                todo.append(b.value)
            elif b.how in ("assign", "aug") and b.value is not None:
                todo.append(b.value.value if isinstance(b.value, ast.AugAssign) else b.value)
            todo += [e for e in roles.handed(b) if e is not None]


def _counts_batches(roles: Roles, call: ast.Call) -> bool:
    """``len(loader)``: the same on every rank, whatever is in the batches."""
    return roles.names.dotted(call.func) == "?.len" and len(call.args) == 1 and bool(roles.loaders_of(call.args[0]))


def _held(roles: Roles, node: ast.Attribute) -> list[ast.AST] | None:
    """What the program gives the attribute of one of its objects; None for what is none of them, or is not seen to be given it."""
    if not of_self(node) and not any(v.kind == "object" for v in roles.values.eval(node.value)):
        return None
    stores = [s for s in roles.names.attributes(node.attr) if isinstance(s.ctx, ast.Store) and of_self(s)]
    return [v for s in stores if (v := getattr(roles.names.statement(s), "value", None)) is not None] or None


def handed_back(roles: Roles, call: ast.Call) -> list[ast.AST] | None:
    """What the functions of the program that the call enters return; None where that cannot be seen, and for what belongs to a model."""
    out: list[ast.AST] = []
    for function, _ in roles.values.targets(call):
        returns = [r.value for r in roles.names.returns(function) if r.value is not None]
        if not returns or roles.inside_module(function) or any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(function)):
            return None
        out += returns
    return out or None


def _put_in(roles: Roles, node: ast.Name) -> Iterator[ast.AST]:
    """What is put into the list or dict that the variable holds."""
    for use in roles.names.uses(roles.names.scope_of[node], node.id):
        above = roles.names.parent[use]
        call = roles.names.parent[above]
        if isinstance(above, ast.Attribute) and above.attr in MUTATORS and isinstance(call, ast.Call):
            yield from call.args
        elif isinstance(above, ast.Subscript) and above.value is use and isinstance(above.ctx, ast.Store):
            yield from (v for v in [getattr(roles.names.statement(above), "value", None)] if v is not None)


def of_data(roles: Roles, node: ast.AST, without: Iterable[ast.AST] = (), *, form: bool = True) -> bool:
    """Whether a batch, or what a model makes of it, may go into the value: it is then another one on every rank, and no rank has the whole.

    ``without`` are expressions that will be alike on all ranks; shapes, lengths and devices count with ``form`` alone.
    """
    picked = _picked(roles)
    for n, b in origins(roles, node, set(without), form=form):
        if n in picked or (b is not None and b.value is not None and roles.loaders_of(b.value)):
            return True
        if isinstance(n, ast.Call):
            drawn = roles.names.dotted(n.func) == "?.next"
            if drawn or roles.model_vals(n.func) or any(roles.calls_model(f) for f, _ in roles.values.targets(n)):
                return True
    return False


def of_weights(roles: Roles, node: ast.AST) -> bool:
    """Whether the value is made of the weights of models, which all ranks have alike, and of no batch and no draw: by what functions hand back."""
    asked = False
    for n, b in origins(roles, node, returned=True):
        if b is not None and b.value is not None and roles.loaders_of(b.value):
            return False
        if isinstance(n, ast.Call) and handed_back(roles, n) is None:
            method = n.func.attr if isinstance(n.func, ast.Attribute) and roles.model_vals(n.func.value) else ""
            asked = asked or method in _OF_WEIGHTS
            unseen = any(f.name != "__init__" or not roles.inside_module(f) for f, _ in roles.values.targets(n))
            drawn = roles.names.dotted(n.func) == "?.next" or drawing(roles, n)
            if unseen or drawn or roles.model_vals(n.func) or (method and method not in _OF_WEIGHTS | SAME):
                return False
        if isinstance(n, ast.Attribute) and (n.attr == "grad" or _filled(roles, n)):
            return False
    return asked


def _filled(roles: Roles, node: ast.Attribute) -> bool:
    """Whether something is put into what the attribute holds."""
    above = [roles.names.parent[a] for a in roles.names.attributes(node.attr)]
    return any((isinstance(a, ast.Attribute) and a.attr in MUTATORS) or (isinstance(a, ast.Subscript) and isinstance(a.ctx, ast.Store)) for a in above)


def _is_form(node: ast.AST) -> bool:
    """``len(x)``, ``x.size(0)``, ``x.device``, ``torch.zeros_like(x)``, ``x is None``: the same of all ranks' batches, whose shares are equal."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.Is | ast.IsNot)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "type":
        return not node.args and not node.keywords  # with a type it is a conversion
    return (isinstance(node, ast.Call) and last(node.func) in _FORM) or (isinstance(node, ast.Attribute) and node.attr in _FORM)


def of_clock(roles: Roles, node: ast.AST) -> bool:
    """Whether the time goes into the value, also by a function of the program that returns it."""
    for n, _ in origins(roles, node, form=False):
        if isinstance(n, ast.Call):
            returned = (r.value for f, _ in roles.values.targets(n) for r in roles.names.returns(f) if r.value is not None)
            asked = (c for e in (n, *returned) for c in walk(e) if isinstance(c, ast.Call))
            if any(roles.names.dotted(c.func) in CLOCKS for c in asked):
                return True
    return False


def _evaluates(roles: Roles, call: ast.Call) -> bool:
    """Whether the call goes through a loader and trains nothing, or calls a model on what is no batch of a training that makes these by itself."""
    functions = roles.all_entered(call)
    if not functions or roles.reaches_backward(call):
        return False
    if any(roles.names.function(b.node) in functions for b in roles.batch_loops if not b.trains):
        return True
    picked = _picked(roles)
    measures = bool(picked) and any(roles.calls_model(f) and not roles.inside_module(f) for f in functions)
    return measures and not _holds(roles, [*call.args, *(k.value for k in call.keywords), *functions], picked)


def _picked(roles: Roles) -> set[ast.AST]:
    """The training batches that the program picks or cuts by itself."""
    return {p.rows for b in roles.train_loops for p in b.picked}


def _holds(roles: Roles, nodes: list[ast.AST], picked: set[ast.AST]) -> bool:
    """Whether a batch that is picked may go into one of the nodes, through variables, attributes and what callers give."""
    seen: set[object] = set()
    todo = list(nodes)
    while todo:
        n = todo.pop()
        if n in picked:
            return True
        todo += children(n)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load):
            for key in roles.values.keys(n):
                todo += [] if key in seen else roles.written(key)
                seen.add(key)
        variable = roles.names.variable(roles.names.scope_of[n], n.id) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) else None
        if variable is None or variable in seen:
            continue
        seen.add(variable)
        for b in roles.names.bindings(*variable):
            todo += [b.value] if b.how in ("assign", "aug", "for") and b.value is not None else []
            todo += [e for e in roles.handed(b) if e is not None]
    return False


def _in_evaluation(roles: Roles, target: ast.AST, read: ast.AST) -> bool:
    """Whether a variable is given its value in a loop that evaluates, and read behind that: ``total += loss.item()``, then ``total / n``."""
    around = {a for a in roles.names.ancestors(target) if isinstance(a, ast.For)}
    return any(b.node in around and not b.trains and not roles.names.is_inside(read, b.node) for b in roles.batch_loops)


def _counted(b: Binding) -> bool:
    """Whether a loop's target is the number that ``enumerate`` gives."""
    return isinstance(b.value, ast.Call) and last(b.value.func) == "enumerate" and b.path[:2] == ("*", 0)
