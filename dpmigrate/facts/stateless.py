"""Methods of models that use nothing of the model that is trained or kept: a loss of the outputs, which may be called on the module behind a wrapper.

What is not seen to be so counts as use: it goes through the wrapper's forward.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpmigrate.facts import criteria
from dpmigrate.facts.definitions import is_static, parameters
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles
    from dpmigrate.facts.values import Vals

#: what the losses of torch are given that holds no tensor
_PLAIN = frozenset({"reduction", "ignore_index", "label_smoothing", "beta", "delta", "margin", "blank", "zero_infinity", "log_target"})

_REGISTER = ("register_buffer", "register_parameter", "add_module", "register_module", "setattr")


def stateless(roles: Roles, models: Vals, name: str) -> bool:
    """Whether the method of every one of the models uses no parameter, buffer or module of it."""
    classes = [v.cls for m in models for v in roles.values.inner(m)]
    return bool(classes) and all(cls is not None and _is_free(roles, cls, name, frozenset()) for cls in classes)


def _is_free(roles: Roles, cls: ast.ClassDef, name: str, seen: frozenset[str]) -> bool:
    method = roles.values.defs.method(cls, name)
    if method is None:
        return _is_loss(roles, cls, name)
    if name in seen:
        return True
    given = parameters(method)
    own = None if is_static(method) or not given else given[0]
    inside = list(walk(method))
    if any(isinstance(n, ast.Call) and _may_run_model(roles, method, n, own) for n in inside):
        return False
    used = [n for n in inside if isinstance(n, ast.Name) and n.id in (own, "super", "__class__")]
    return all(n.id == own and _is_plain_use(roles, cls, n, seen | {name}) for n in used)


def _is_loss(roles: Roles, cls: ast.ClassDef, attribute: str) -> bool:
    """``self.criterion = nn.MSELoss()``: a loss without weights, which is called as one."""
    given = [*_of_class(roles, cls, attribute), *_of_objects(roles, attribute)]
    return bool(given) and not _registered(roles, attribute) and all(isinstance(e, ast.Call) and _holds_nothing(roles, e) for e in given)


def _may_run_model(roles: Roles, method: FunctionNode, call: ast.Call, own: str | None) -> bool:
    """A call of a model, or of something that the method is given."""
    root = call.func
    while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
        root = root.func if isinstance(root, ast.Call) else root.value
    handed = isinstance(call.func, ast.Name) and call.func.id in parameters(method)
    return handed or (not (isinstance(root, ast.Name) and root.id == own) and bool(roles.model_vals(call.func)))


def _is_plain_use(roles: Roles, cls: ast.ClassDef, node: ast.Name, seen: frozenset[str]) -> bool:
    """``self.other(…)``, a method like this one; ``self.margin``, a number; ``self.kernel``, a tensor; ``self.criterion(…)``, a loss without weights."""
    above = roles.names.parent[node]
    if not isinstance(above, ast.Attribute) or not isinstance(above.ctx, ast.Load):
        return False
    if roles.values.defs.method(cls, above.attr) is not None:
        call = roles.names.parent[above]
        return isinstance(call, ast.Call) and call.func is above and _is_free(roles, cls, above.attr, seen)
    if _is_fixed_buffer(roles, cls, above.attr):
        return True
    given = [*_of_class(roles, cls, above.attr), *_of_objects(roles, above.attr)]
    if not given or _registered(roles, above.attr):
        return False
    return all(e is not None and _holds_nothing(roles, e) for e in given) or _holds_tensors(roles, cls, above.attr)


def _holds_tensors(roles: Roles, cls: ast.ClassDef, attribute: str) -> bool:
    """``self.kernel = torch.ones(3, 3)``: no parameter, no buffer. DDP leaves it alone, and where the method uses nothing else it has nothing to reduce.

    The execution knows what the attribute holds in the end; given in ``__init__`` alone, it has held that from the start.
    """
    stored = (a for a in roles.names.attributes(attribute) if not isinstance(a.ctx, ast.Load))
    functions = (roles.names.function(a) for a in stored)
    at_first = all(isinstance(f, FunctionNode) and f.name == "__init__" for f in functions)
    return at_first and roles.asked is not None and roles.asked.holds_tensors(cls, attribute)


def _is_fixed_buffer(roles: Roles, cls: ast.ClassDef, attribute: str) -> bool:
    """``self.register_buffer("kernel", …)`` in ``__init__``, and nothing writes it: every rank has it as it was made, and DDP gives it no other value."""
    calls = [c for c in roles.names.calls("register_buffer") if any(isinstance(n, ast.Constant) and n.value == attribute for n in c.args[:1])]
    functions = (roles.names.function(c) for c in calls)
    if not calls or not all(isinstance(f, FunctionNode) and f.name == "__init__" for f in functions) or _registered(roles, attribute, _REGISTER[1:]):
        return False
    read = all(_only_read(roles, a) for a in roles.names.attributes(attribute))
    return read and roles.asked is not None and roles.asked.holds_tensors(cls, attribute)


def _only_read(roles: Roles, node: ast.Attribute) -> bool:
    """Whether an attribute goes into an operation of torch or Python, and nothing that is done to it or to a part of it is done in place."""
    part: ast.AST = node
    while True:
        above = roles.names.parent[part]
        if not isinstance(getattr(part, "ctx", ast.Load()), ast.Load):
            return False
        if isinstance(above, ast.Attribute):
            if above.attr.endswith("_"):
                return False
        elif isinstance(above, ast.Call) and above.func is not part:
            name = roles.names.dotted(above.func)
            return name.startswith(("torch.", "?.")) and not name.endswith("_") and all(k.value is not part for k in above.keywords)
        elif not isinstance(above, ast.Call) and not (isinstance(above, ast.Subscript) and above.value is part):
            return isinstance(above, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript)
        part = above


def _of_class(roles: Roles, cls: ast.ClassDef, attribute: str) -> list[ast.expr | None]:
    """What the bodies of the class and its bases give the attribute."""
    stored = (s for c in roles.values.defs.bases(cls) for s in c.body if isinstance(s, ast.Assign | ast.AnnAssign))
    pairs = ((t, s.value) for s in stored for t in (s.targets if isinstance(s, ast.Assign) else [s.target]))
    return [value for target, value in pairs if isinstance(target, ast.Name) and target.id == attribute]


def _of_objects(roles: Roles, attribute: str) -> list[ast.expr | None]:
    """What attributes of this name are given, whatever object has them; None for what is not a plain assignment."""
    stored = [a for a in roles.names.attributes(attribute) if not isinstance(a.ctx, ast.Load)]
    above = [roles.names.parent[a] for a in stored]
    return [s.value if isinstance(s, ast.Assign) else None for s in above]


def _registered(roles: Roles, attribute: str, by: Sequence[str] = _REGISTER) -> bool:
    """``self.register_buffer("weight", …)``"""
    calls = (c for word in by for c in roles.names.calls(word))
    return any(isinstance(n, ast.Constant) and n.value == attribute for c in calls for n in walk(c))


def _holds_nothing(roles: Roles, value: ast.expr) -> bool:
    """A number, a text, a choice of these; a loss of torch that is given no tensor."""
    if isinstance(value, ast.UnaryOp):
        return _holds_nothing(roles, value.operand)
    if isinstance(value, ast.BinOp):
        return _holds_nothing(roles, value.left) and _holds_nothing(roles, value.right)
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.Constant)
    module, _, name = roles.names.dotted(value.func).rpartition(".")
    return module == "torch.nn" and name in criteria.MODULES and not value.args and all(k.arg in _PLAIN for k in value.keywords)
