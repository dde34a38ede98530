"""Where a program moves a model to its device only after the wrap, which needs it there: DDP looks at the parameters once. Where it moves it away and back."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dpmigrate.facts.after_training import follows_training
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.spelling import spelled
from dpmigrate.facts.values import Val, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.wraps import Wrap

#: where only the program's own words say whether there is a GPU
_ASKS = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})


def unknown_move(roles: Roles, wrap: Wrap) -> str | None:
    """How the program moves a model only after its wrap, where nothing shows that this is to the GPU if there is one: "to DEVICE" or "where TEST"."""
    call = _after(roles, wrap)
    if call is None or _as_method(roles, call, wrap):
        return None
    place = _place(call)
    if place is not None:
        return None if _to_gpu(call) or _names_gpu(roles, place) else f"to {ast.unparse(place)}"
    # a test of more than whether there is a GPU says where the model is, and the samples with it
    return next((f"where {ast.unparse(t)}" for t in _tests(roles, call, wrap) if not _asks_for_gpu(roles, t)), None)


def _to_gpu(call: ast.Call) -> bool:
    """``model.cuda()``, ``model.cuda(0)``: whichever number it names, it is a GPU."""
    place = _place(call)
    return isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and (place is None or isinstance(place, ast.Constant))


def _asks_for_gpu(roles: Roles, test: ast.expr, depth: int = 4) -> bool:
    """``torch.cuda.is_available()``, ``torch.cuda.device_count() > 1``, and a variable that is given nothing else"""
    if isinstance(test, ast.Name | ast.Attribute):
        given = roles.given(test)
        return depth > 0 and bool(given) and all(_asks_for_gpu(roles, g, depth - 1) for g in given)
    if isinstance(test, ast.Compare):
        return isinstance(test.left, ast.Call) and roles.names.dotted(test.left.func) == "torch.cuda.device_count"
    return isinstance(test, ast.Call) and roles.names.dotted(test.func) in _ASKS


def _names_gpu(roles: Roles, node: ast.AST, depth: int = 4) -> bool:
    """Whether the expression, what its variables are given, or a function that it calls speaks of GPUs: ``"cuda:0"``, ``torch.cuda.is_available()``."""
    for n in walk(node):
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith(("cuda", "gpu")):
            return True
        if isinstance(n, ast.Call) and roles.names.dotted(n.func) in _ASKS:
            return True
        if depth and isinstance(n, ast.Call) and any(_names_gpu(roles, function, depth - 1) for function, _ in roles.values.targets(n)):
            return True
        if depth and isinstance(n, ast.Name | ast.Attribute) and any(_names_gpu(roles, g, depth - 1) for g in roles.given(n)):
            return True
    return False


def moved_later(roles: Roles, wrap: Wrap) -> str | None:
    """The move as a method call (``.to(device)``) that does at the wrap what the program does later; '' where it has no words for it, None for no move.

    A move under a test keeps the test: ``if args.cuda: model.cuda()`` is ``.to("cuda" if args.cuda else "cpu")``. A model that the program leaves to
    DataParallel, which moves it to its GPU, while it moves batches itself, has to be moved as well.
    """
    moves = _receivers(roles)
    if _before(roles, wrap, moves):
        return None  # it is where the program wants it
    call = _after(roles, wrap)
    if call is not None:
        return _as_method(roles, call, wrap)
    left = wrap.how == "call" and moves and not any(wrap.made in v for v in moves.values())
    return "" if left else None


def saved_on_cpu(roles: Roles) -> Iterator[tuple[ast.Call, ast.Call, ast.expr]]:
    """``net.cpu().state_dict()`` of a model that goes back to its device before anything else is done with it, and is trained again.

    The call that takes the state, the one that moves the model, and the model.
    """
    for call in roles.calls:
        away = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "state_dict" else None
        if isinstance(away, ast.Call) and isinstance(away.func, ast.Attribute) and _to_cpu(away):
            model = away.func.value
            trained = roles.model_vals(model) and _in_training(roles, call)
            if trained and isinstance(model, ast.Name | ast.Attribute) and _goes_back(roles, call, model):
                yield call, away, model


def _in_training(roles: Roles, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether one of the loops round the node trains, also round the one that goes through the models: ``for name in self.model_names:``"""
    loops = [loop for loop, _ in roles.epoch_loop(node) if loop not in seen]
    return any(roles.reaches_backward(loop) or _in_training(roles, loop, seen | {*loops}) for loop in loops)


def _to_cpu(call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    place = _place(call)
    return (call.func.attr == "cpu" and place is None) or (call.func.attr == "to" and isinstance(place, ast.Constant) and place.value == "cpu")


def _goes_back(roles: Roles, call: ast.Call, model: ast.expr) -> bool:
    """Whether the next statement of the block in which the model is named moves it to a device, as the only thing done with it there."""
    name = ast.unparse(model).removesuffix(".module")
    stmt = roles.names.statement(call)
    block = roles.names.block(stmt)
    for later in (stmt, *block[block.index(stmt) + 1 :]):
        named = [n for n in walk(later) if isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) == name and not roles.names.is_inside(n, call)]
        if named:
            moves = [(n, r) for n in walk(later) if isinstance(n, ast.Call) and (r := moved(roles, n)) is not None]
            back = [c for c, receiver in moves if ast.unparse(receiver).removesuffix(".module") == name]
            return len(back) == 1 and not _to_cpu(back[0]) and all(roles.names.is_inside(n, back[0]) for n in named if isinstance(n.ctx, ast.Load))
    return False


def _receivers(roles: Roles) -> dict[ast.Call, Vals]:
    """The moves to a device, each with what it may move: not ``None``, which an abstract method gives and which has no such method."""
    found = ((c, receiver) for c in roles.calls if (receiver := moved(roles, c)) is not None)
    return {c: frozenset(v for v in roles.values.eval(receiver) if not _none(v)) for c, receiver in found}


def _none(v: Val) -> bool:
    return isinstance(v.node, ast.Constant) and v.node.value is None


def moved(roles: Roles, node: ast.AST) -> ast.expr | None:
    """What a call moves to a device, and does not only give another type or layout."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in ("to", "cuda"):
        return None
    return None if _changes_type(roles, node) else node.func.value


def _before(roles: Roles, wrap: Wrap, moves: Mapping[ast.Call, Vals]) -> bool:
    """Whether the model itself is moved, and not only its wrapper."""
    return any(v & roles.values.inner(wrap.made) for v in moves.values())


def _after(roles: Roles, wrap: Wrap) -> ast.Call | None:
    """The first move of the wrapper outside of the training, where the model itself is not moved."""
    moves = _receivers(roles)
    # a move that is chained to the wrap goes into it where it stands, and says where the training is: later ones are for something else
    if _before(roles, wrap, moves) or any(isinstance(c.func, ast.Attribute) and roles.names.is_inside(wrap.node, c.func.value) for c in moves):
        return None
    # a function that trains whichever model it is given moves each of them
    wrappers = {c: held for c, held in moves.items() if wrap.made in held and all(v.kind == "wrapped" for v in held)}
    wrappers = {c: held for c, held in wrappers.items() if not follows_training(roles, roles.names.statement(c))}
    return next((c for c in wrappers if roles.region(c) == "outside"), None)


def _changes_type(roles: Roles, call: ast.Call) -> bool:
    """``model.to(torch.float16)``, ``model.to(memory_format=…)``"""
    place = _place(call)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return False
    return place is None or roles.names.dotted(place).startswith("torch.")


def _place(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)


def _as_method(roles: Roles, call: ast.Call, wrap: Wrap) -> str:
    place, tests = _place(call), _tests(roles, call, wrap)
    if _to_gpu(call) and not tests:
        return ".cuda()"
    known = [_at_wrap(roles, t, wrap) for t in tests]
    if place is None and (spelt := [k for k in known if k is not None]) and len(spelt) == len(known):
        return f'.to("cuda" if {ast.unparse(spelt[0] if len(spelt) == 1 else ast.BoolOp(ast.And(), spelt))} else "cpu")'
    if place is not None and not tests and isinstance(place, ast.Name | ast.Attribute) and _stands_before(roles, place, wrap):
        return f".to({ast.unparse(place)})"
    return ""


def _tests(roles: Roles, call: ast.Call, wrap: Wrap) -> list[ast.expr]:
    """The tests under which the move stands and the wrap does not, the outermost first."""
    out: list[ast.expr] = []
    inner: ast.AST = call
    for a in roles.names.ancestors(call):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, ast.If) and not roles.names.is_inside(wrap.stmt, a):
            out.append(a.test if inner in a.body else ast.UnaryOp(ast.Not(), a.test))
        inner = a
    return out[::-1]


def _at_wrap(roles: Roles, test: ast.expr, wrap: Wrap) -> ast.expr | None:
    """What says at the wrap what the test says later: the value of a variable (``use_cuda``) where it gets that only after the wrap."""
    if _stands_before(roles, test, wrap):
        return test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _at_wrap(roles, test.operand, wrap)
        return inner and ast.UnaryOp(ast.Not(), inner)
    given = roles.given(test) if isinstance(test, ast.Name) else []
    return given[0] if len(given) == 1 and _stands_before(roles, given[0], wrap) else None


def _stands_before(roles: Roles, node: ast.expr, wrap: Wrap) -> bool:
    """Whether the expression means the same at the wrap: settings, and variables that are given nothing after it."""
    if isinstance(node, ast.BoolOp):
        return all(_stands_before(roles, v, wrap) for v in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _stands_before(roles, node.operand, wrap)
    if isinstance(node, ast.Call):
        return roles.names.dotted(node.func) in _ASKS and spelled(roles.names, node.func, wrap.stmt) == ast.unparse(node.func)
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    stmts = [w for key, _ in roles.roots(node) for w in roles.writes(key)]
    here = roles.names.function(wrap.stmt)
    if isinstance(node, ast.Name) and not stmts:
        bound = list(roles.names.bindings(roles.names.scope_of[node], node.id))
        return bool(bound) and all(b.how == "param" and roles.names.function(b.target) is here for b in bound)
    return all(position(s) < position(wrap.stmt) for s in stmts) and roles.names.function(node) is here
