"""What a turn of a loop leaves behind beside what it adds up: output, an early end, changed objects, the number of the batch.

Whatever cannot be proved to leave nothing is a reason not to split the loop.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator
from itertools import takewhile

from dpmigrate.facts.library import FLOATS, GROWS, MOVES, SETTINGS
from dpmigrate.facts.loops import BatchLoop, last
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.outside import changes_files
from dpmigrate.facts.reasons import Reason, Why
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.values import Val

_PURE_BUILTINS = frozenset({"len", "int", "float", "range", "zip", "sum", "max", "min", "abs", "isinstance", "tuple", "list", "bool", "round", "enumerate"})
_PURE_MODULES = ("torch.", "math.", "numpy.", "torch.nn.functional.", "sklearn.metrics.")
_IMPURE = frozenset({"torch.save", "torch.manual_seed", "torch.autograd.backward"})
_IMPURE_METHODS = (
    GROWS
    | {"pop", "remove", "clear", "reset", "compute", "step", "backward", "write", "writelines", "print", "log", "info", "debug", "warning", "error"}
    | {"display", "close", "flush", "save", "send", "set_postfix", "set_postfix_str", "set_description", "add_scalar", "add_image"}
)
#: what makes a loop go over more or fewer batches than the loader has, or puts something beside each that is not dealt out with it
_OTHER_BATCHES = frozenset({"islice", "cycle", "zip", "zip_longest", "sorted"})
#: methods that are called for what they do, and do the same in every batch
_SETTINGS = SETTINGS | MOVES | FLOATS


def trace(roles: Roles, loop: BatchLoop, own: Collection[int]) -> Reason | None:
    """The first thing that a turn leaves behind, apart from what the nodes with the ``own`` ids do; None if there is nothing."""
    assert isinstance(loop.node, ast.For)
    makers = {ast.unparse(c.func).rpartition(".")[2]: c for c in _round_loader(roles.names, loop)}
    for name in sorted(_OTHER_BATCHES & makers.keys()):
        return Reason(Why.OTHER_BATCHES, makers[name], name)
    chosen = next((c for c in makers.values() if any(_chooses(f) for f, _ in roles.values.targets(c))), None)
    if chosen is not None:
        return Reason(Why.OTHER_BATCHES, chosen, ast.unparse(chosen.func))
    if loop.made:
        return Reason(Why.MADE, loop.node, ast.unparse(loop.over))
    index = _index(loop.node.target) if "enumerate" in makers else ""
    found = (_of_node(roles, n, index, own) for s in loop.node.body for n in walk(s))
    return next((r for r in found if r is not None), None)


def _of_node(roles: Roles, n: ast.AST, index: str, own: Collection[int]) -> Reason | None:
    if isinstance(n, ast.Break | ast.Return | ast.Yield | ast.YieldFrom | ast.Raise | ast.Global | ast.Delete):
        return Reason(Why.LEAVES, n, type(n).__name__.lower())
    if isinstance(n, ast.While | ast.AsyncFor | ast.AsyncWith | ast.Try | ast.TryStar | ast.Match | FunctionNode | ast.ClassDef):
        return Reason(Why.HOLDS, n, type(n).__name__.lower())
    if isinstance(n, ast.Name) and n.id == index and isinstance(n.ctx, ast.Load):
        return Reason(Why.BATCH_NUMBER, n, index)
    if isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Store) and id(n) not in own:
        return Reason(Why.CHANGED, n, ast.unparse(n))
    return _effect(roles, n) if isinstance(n, ast.Call) and id(n) not in own else None


def _round_loader(names: Names, loop: BatchLoop) -> Iterator[ast.Call]:
    """The calls through which the batches go: ``tqdm(enumerate(loader))``."""
    named = takewhile(lambda a: not isinstance(a, ast.stmt), names.ancestors(loop.source))
    yield from (n for n in (*walk(loop.over), *named) if isinstance(n, ast.Call))


def _chooses(generator: FunctionNode) -> bool:
    """Whether a generator of the file that hands batches on may leave some out, or give them in another number or order than it gets them."""
    nodes = [n for s in generator.body for n in walk(s)]
    loops = [n for n in nodes if isinstance(n, ast.For | ast.YieldFrom)]
    yields = [n for n in nodes if isinstance(n, ast.Yield | ast.YieldFrom)]
    deciding = ast.If | ast.IfExp | ast.While | ast.Break | ast.Continue | ast.Return | ast.Try | ast.TryStar | ast.Match | ast.comprehension
    counted = any(isinstance(n, ast.Call) and last(n.func) in _OTHER_BATCHES | {"enumerate"} for n in nodes)
    return bool(yields) and (len(loops) != 1 or len(yields) != 1 or counted or any(isinstance(n, deciding) for n in nodes))


def _index(target: ast.expr) -> str:
    """The name that an enumeration gives the number of the batch, by itself or as part of a pair."""
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    return first.id if isinstance(first, ast.Name) else ""


def _effect(roles: Roles, call: ast.Call) -> Reason | None:
    """Why the call may leave a trace; None if it cannot."""
    names, func = roles.names, call.func
    text = ast.unparse(func)
    dotted = names.dotted(func)
    if roles.model_vals(func):
        return None
    if dotted in _IMPURE or text == "print" or changes_files(roles, call):
        return Reason(Why.EFFECT, call, text)
    if dotted.startswith(_PURE_MODULES) or (dotted.startswith("?.") and dotted[2:] in _PURE_BUILTINS):
        return None
    functions = [f for f, _ in roles.values.targets(call)]
    if functions:
        return Reason(Why.MAY_HAVE_EFFECT, call, text) if any(_leaves_trace(roles, f, set()) for f in functions) else None
    if isinstance(func, ast.Attribute):
        outside = any(v.kind == "ext" for v in roles.values.eval(func.value))
        return Reason(Why.MAY_HAVE_EFFECT, call, text) if outside or _may_change(roles, call, func) else None
    layer = any(v.kind == "call" and v.qual.startswith("torch.nn.") for v in roles.values.eval(func))
    return None if layer else Reason(Why.UNKNOWN_CALL, call, text)


def _leaves_trace(roles: Roles, function: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether the function, or one that it calls, prints, writes, or changes anything but what it has made itself."""
    if function in seen:
        return False
    seen.add(function)
    own = {name for name, bound in roles.names.opened[function].bindings.items() if all(b.how in ("assign", "aug") for b in bound)}
    for n in walk(function):
        if isinstance(n, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Store) and not _is_one_of(n.value, own):
            return True
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id not in own:
            return True  # table += counts of a batch, where the caller sees it
        if isinstance(n, ast.Call):
            if roles.names.dotted(n.func) in _IMPURE or changes_files(roles, n) or (isinstance(n.func, ast.Name) and n.func.id in ("print", "open")):
                return True
            if isinstance(n.func, ast.Attribute) and _may_change(roles, n, n.func) and not _is_one_of(n.func.value, own):
                return True
            if not roles.model_vals(n.func) and any(_foreign(v) for v in roles.values.eval(n.func)):
                return True
            if any(_leaves_trace(roles, f, seen) for f, _ in roles.values.targets(n)):
                return True
    return False


def _is_one_of(node: ast.expr, own: set[str]) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id in own


def _may_change(roles: Roles, call: ast.Call, func: ast.Attribute) -> bool:
    """Whether a method call may change its object, or tell the world: nobody takes its value, its name says so, or its object is of a foreign kind.

    ``x.log()`` and ``x.add(y)`` of tensors give a value.
    """
    if roles.names.dotted(func).startswith(_PURE_MODULES):
        return False
    if isinstance(roles.names.parent[call], ast.Expr):
        return func.attr not in _SETTINGS
    return func.attr in _IMPURE_METHODS - {"log", "add"} or any(_foreign(v) for v in roles.values.eval(func.value))


def _foreign(v: Val) -> bool:
    """Whether the object is made by code of another file or library that may keep what it is given, as a metric does."""
    return v.kind == "call" and bool(v.qual) and not v.qual.startswith(_PURE_MODULES) and not hasattr(builtins, v.qual.removeprefix("?."))
