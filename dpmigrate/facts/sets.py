"""Which expressions are sets, and where the order of one becomes the order of something else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.definitions import TRANSPARENT
from dpmigrate.facts.held import latest
from dpmigrate.facts.names import last
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.values import Val, Vals

_MAKES = ("?.set", "?.frozenset")
_GIVES = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_LISTS = ("?.list", "?.tuple")
#: calls that go through their argument in its order and hand that order on
_GO_THROUGH = ("?.enumerate", "?.zip", "?.iter", "?.map", "?.dict.fromkeys", "collections.OrderedDict.fromkeys", "itertools.chain", "collections.deque")
#: methods of lists and texts that take their argument in its order
_TAKE = frozenset({"extend", "extendleft", "join"})
_VIEWS = frozenset({"keys", "items"})  # of dicts: the difference of two is a set
#: what gives the same whatever the order, a sum where it is one of integers; ``sorted``, ``max`` and ``min`` by a key leave those that are alike in theirs
_ORDERLESS = ("?.len", "?.set", "?.frozenset", "?.sum", "?.any", "?.all")
_ORDERLESS_WITHOUT_KEY = ("?.sorted", "?.max", "?.min")
#: functions that give numbers which are rounded
_ROUNDED = frozenset({"float", "log", "log2", "log10", "log1p", "exp", "sqrt", "mean", "item"})
_DEPTH = 8  # variables, attributes and functions between a set and its use


def ordered(roles: Roles) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Where the order of a set becomes that of something else: the place, the expression that is to have one order, whether that is a list or tuple already."""
    for node in roles.names.nodes:
        if isinstance(node, ast.expr | ast.For | ast.AugAssign):
            yield from ((place, source, made) for place, source, made in _places(roles, node) if not _orderless(roles, place))


def _places(roles: Roles, node: ast.expr | ast.For | ast.AugAssign) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    if isinstance(node, ast.Call):
        called = roles.names.dotted(node.func)
        if called in _LISTS and node.args and is_set(roles, node.args[0]):
            yield node, node, True
        elif called in _GO_THROUGH or (called in _ORDERLESS_WITHOUT_KEY and not _forgets(roles, node)) or (not called and last(node.func) in _TAKE):
            yield from ((node, a, False) for a in node.args if is_set(roles, a))
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.op, ast.Add) and is_set(roles, node.value):
            yield node.value, node.value, False  # words += set(more)
    elif isinstance(node, ast.For) and is_set(roles, node.iter):
        yield node.iter, node.iter, False
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and is_set(roles, node.generators[0].iter):
        yield node, node.generators[0].iter, False
    elif isinstance(node, ast.List | ast.Tuple):
        yield from ((node, e.value, False) for e in node.elts if isinstance(e, ast.Starred) and is_set(roles, e.value))


def _orderless(roles: Roles, place: ast.expr) -> bool:
    if any(isinstance(a, ast.SetComp) or (isinstance(a, ast.Call) and _forgets(roles, a)) for a in roles.names.ancestors(place)):
        return True
    stmt = roles.names.statement(place)
    if isinstance(stmt, ast.For) and stmt.iter is place:
        return _shows(roles, stmt)
    if not isinstance(stmt, ast.Assign) or stmt.value is not place or len(stmt.targets) != 1:
        return False
    return _sorted_next(roles, stmt) or _only_shown(roles, stmt.targets[0])


def _only_shown(roles: Roles, target: ast.expr) -> bool:
    """Whether a variable is printed and nothing else: rank 0 alone shows its order."""
    variable = roles.names.meant(target) if isinstance(target, ast.Name) else None
    if variable is None or not isinstance(target, ast.Name):
        return False
    reads = [r for r in roles.names.reads(target.id) if roles.names.meant(r) in (variable, None)]
    return bool(reads) and all(_is_shown(roles, r) for r in reads)


def _is_shown(roles: Roles, read: ast.AST) -> bool:
    above = roles.names.parent[read]
    if isinstance(above, ast.For) and above.iter is read:
        return _shows(roles, above)
    return _prints(roles, roles.names.statement(read))


def _shows(roles: Roles, loop: ast.For) -> bool:
    """``for name in names: print(name)``"""
    return not loop.orelse and isinstance(loop.target, ast.Name) and all(_prints(roles, s) for s in loop.body) and not _later(roles, loop)


def _later(roles: Roles, loop: ast.For) -> bool:
    """Whether something beside the loop reads its variable, which is the last that the loop has come to."""
    assert isinstance(loop.target, ast.Name)
    variable = roles.names.meant(loop.target)
    reads = (r for r in roles.names.reads(loop.target.id) if roles.names.meant(r) in (variable, None))
    return any(not roles.names.is_inside(r, loop) for r in reads)


def _prints(roles: Roles, stmt: ast.AST) -> bool:
    """A statement that prints to the screen what it makes of texts and lengths alone."""
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    if not isinstance(call, ast.Call) or roles.names.dotted(call.func) != "?.print" or any(k.arg not in ("sep", "end", "flush") for k in call.keywords):
        return False
    inner = [n for a in call.args for n in ast.walk(a)]
    return not any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) or (isinstance(n, ast.Call) and not _of_texts(roles, n)) for n in inner)


def _of_texts(roles: Roles, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        return isinstance(call.func.value, ast.Constant) and call.func.attr in ("format", "join")
    return roles.names.dotted(call.func) in ("?.len", "?.str", "?.repr", "?.sorted")


def _sorted_next(roles: Roles, stmt: ast.Assign) -> bool:
    """``words = list(set(text))``, then ``words.sort()``"""
    block = roles.names.block(stmt)
    after = block[block.index(stmt) + 1 :][:1]
    call = after[0].value if after and isinstance(after[0], ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "sort":
        return False
    return not any(k.arg == "key" for k in call.keywords) and ast.unparse(call.func.value) == ast.unparse(stmt.targets[0])


def _forgets(roles: Roles, call: ast.Call) -> bool:
    called = roles.names.dotted(call.func)
    if called == "?.sum" and call.args and _rounded(call.args[0]):
        return False
    return called in _ORDERLESS or (called in _ORDERLESS_WITHOUT_KEY and not any(k.arg == "key" for k in call.keywords))


def _rounded(node: ast.expr) -> bool:
    """Whether what is added up is rounded, as far as its text says: the last digit of such a sum depends on the order, and so may what is sorted by it."""
    each = node.elt if isinstance(node, ast.GeneratorExp | ast.ListComp) else None
    for n in ast.walk(each) if each is not None else ():
        if isinstance(n, ast.Div) or (isinstance(n, ast.Constant) and isinstance(n.value, float)):
            return True
        if isinstance(n, ast.Call) and last(n.func) in _ROUNDED:
            return True
    return False


def is_set(roles: Roles, node: ast.AST | None, depth: int = _DEPTH) -> bool:
    """Whether the expression is a set for certain, as far as the program tells."""
    if depth == 0 or node is None:
        return False
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub):
        return is_set(roles, node.left, depth - 1) or any(_is_view(side) for side in (node.left, node.right))
    if isinstance(node, ast.Call):
        return _called(roles, node, depth - 1)
    if isinstance(node, ast.Name):
        return _variable(roles, node, depth - 1)
    if isinstance(node, ast.Attribute):
        stored = [w.value for k in roles.values.keys(node) for w in roles.writes(k) if isinstance(w, ast.Assign | ast.AnnAssign)]
        return bool(stored) and all(is_set(roles, v, depth - 1) for v in stored)
    if isinstance(node, ast.Subscript):
        return _holds_sets(roles, roles.values.eval(node))
    return False


def _is_view(node: ast.expr) -> bool:
    """``counts.keys()``, in which the keys stand in order; what is left of it after ``- seen`` is a set."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS and not node.args


def _called(roles: Roles, node: ast.Call, depth: int) -> bool:
    if roles.names.dotted(node.func) in _MAKES:
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr in _GIVES:
        return is_set(roles, node.func.value, depth)
    returned = [r.value for function, _ in roles.values.targets(node) if function.name != "__init__" for r in roles.names.returns(function)]
    return bool(returned) and all(is_set(roles, v, depth) for v in returned)


def _variable(roles: Roles, node: ast.Name, depth: int) -> bool:
    bound = [b for b in roles.names.bindings(roles.names.scope_of[node], node.id) if b.how != "aug"]
    given = latest(roles.names, node, bound)
    return bool(bound) and all(_bound(roles, b, depth) for b in ([given] if given is not None else bound))


def _bound(roles: Roles, b: Binding, depth: int) -> bool:
    if b.how == "param":
        given = [g for g in roles.handed(b) if g is not None]
        return bool(given) and all(is_set(roles, g, depth) for g in given)
    if b.how == "assign" and not b.path:
        return is_set(roles, b.value, depth)
    return b.how in ("for", "assign") and b.value is not None and _holds_sets(roles, roles.values.pick(roles.values.eval(b.value), b.path))


def _holds_sets(roles: Roles, vals: Vals) -> bool:
    """Whether all objects are sets, none of which goes into a list where it is made."""
    return bool(vals) and all(_made_here(roles, v) for v in vals)


def _made_here(roles: Roles, v: Val) -> bool:
    if v.kind == "display":
        made = isinstance(v.node, ast.Set | ast.SetComp)
    else:
        made = v.kind == "call" and v.qual in _MAKES
    around = roles.names.parent.get(v.node) if made else None
    return made and not (isinstance(around, ast.Call) and roles.names.word(around.func) in TRANSPARENT)
