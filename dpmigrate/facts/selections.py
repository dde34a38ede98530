"""What is chosen of a batch by what is in it: ``x[y > 0]``, also by a mask of any name, that a loader, a function or a comprehension gives.

How many are chosen is another number on every rank. A mask is known by how it is made; what a loader gives can choose rows of the batch only as one.
"""

from __future__ import annotations

import ast
import re
from itertools import takewhile

from dpmigrate.facts.library import COMPARING, LAYOUTS, MOVES
from dpmigrate.facts.local import by_batch, loaded
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles, element
from dpmigrate.facts.rows import Rows

_NAMED = re.compile(r"mask|valid", re.IGNORECASE)
_SELECTS = frozenset({"pack_padded_sequence", "masked_select", "nonzero"})
#: methods and functions that choose by places, which are found where something holds
_BY_PLACE = frozenset({"index_select", "take"})
_PLACES = frozenset({"where", "nonzero", "flatnonzero", "argwhere"})
#: methods and functions that ask each element something
_ASKS = (
    COMPARING
    | {"bool", "not_equal", "greater", "greater_equal", "less", "less_equal", "isin", "isclose", "isnan", "isfinite", "isinf"}
    | {"logical_and", "logical_or", "logical_xor", "logical_not"}
)
#: methods that leave a mask one
_KEEPS = MOVES | LAYOUTS | {"detach", "clone", "any", "all", "numpy", "type", "repeat"}
_BOOLEAN = frozenset({"bool", "torch.bool", "torch.BoolTensor", "numpy.bool_"})
_DEPTH = 3  # of variables and functions that are followed


def selected(roles: Roles, call: ast.Call) -> bool:
    """Whether a loss is given a choice of what is in the batch, of which every rank has another number: ``x[mask]``, packed sequences."""
    return any(chosen(roles, a) for a in [*call.args[:2], *(k.value for k in call.keywords if k.arg in ("input", "target"))])


def chosen(roles: Roles, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether the expression chooses of what is in the batch: ``x[mask]``, ``x.masked_select(mask)``, packed sequences, ``[e for e in x if e > 0]``."""
    return roles.remembered((chosen, node, depth), lambda: _chooses(roles, node, depth))


def _chooses(roles: Roles, node: ast.expr, depth: int) -> bool:
    for n in walk(node):
        if isinstance(n, ast.Subscript) and (mask(roles, n.slice, depth) or (_of_loader(roles, n.slice, depth) and Rows(roles).samples(n.value))):
            return True
        if isinstance(n, ast.Call) and (last(n.func) in _SELECTS or (last(n.func) in _BY_PLACE and any(mask(roles, a, depth) for a in n.args))):
            return True
        if _by_test(roles, n) or (
            isinstance(n, ast.Name) and (_filled_by_test(roles, n) or any(chosen(roles, v, depth - 1) for v in _assigned(roles, n, depth)))
        ):
            return True
    return False


def listed(roles: Roles, node: ast.expr) -> bool:
    """Whether the value is a list of Python, which has no elements of its own to count."""
    given = _assigned(roles, node, 1)
    return any(isinstance(v, ast.List | ast.ListComp) for v in given)


def mask(roles: Roles, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether the value says of each element whether it is meant, or gives the places of those that are; an index is none."""
    return roles.remembered((mask, node, depth), lambda: _means(roles, node, depth))


def _means(roles: Roles, node: ast.expr, depth: int) -> bool:
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert) and mask(roles, node.operand, depth)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor) and (mask(roles, node.left, depth) or mask(roles, node.right, depth))
    if isinstance(node, ast.Subscript):  # torch.where(y > 0)[0], kept["labels"]
        return mask(roles, node.value, depth) if not _named(node) else any(mask(roles, v, depth) for v in _entries(roles, node))
    if isinstance(node, ast.Call):
        return _made(roles, node, depth)
    if isinstance(node, ast.Name):
        given = [*_assigned(roles, node, depth), *_handed(roles, node, depth)]
        return any(mask(roles, v, depth - 1) for v in given) or (not given and bool(_NAMED.search(node.id)))  # of the data: its name says what it is
    return _by_test(roles, node)


def _made(roles: Roles, call: ast.Call, depth: int) -> bool:
    """What a call gives: of torch by what it is called, of the program by what it returns."""
    word, functions = last(call.func), [f for f, _ in roles.values.targets(call)]
    if functions:
        returned = [r.value for f in functions for r in roles.names.returns(f) if r.value is not None] if depth else []
        return any(mask(roles, v, depth - 1) for v in returned)
    if word in _PLACES:
        return word != "where" or len(call.args) <= 1 or all(isinstance(a, ast.Constant) and isinstance(a.value, bool) for a in call.args[1:])
    if word in _ASKS:
        return isinstance(call.func, ast.Attribute)
    if word not in _KEEPS or not isinstance(call.func, ast.Attribute):
        return False
    cast = any(roles.names.dotted(a).removeprefix("?.") in _BOOLEAN for a in (*call.args, *(k.value for k in call.keywords)))
    return cast or mask(roles, call.func.value, depth)


def _named(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)


def _entries(roles: Roles, node: ast.Subscript) -> list[ast.expr]:
    """What a dict that is written down holds under the name."""
    held = roles.given(node.value) if isinstance(node.value, ast.Name) else []
    pairs = [(k, v) for d in held if isinstance(d, ast.Dict) for k, v in zip(d.keys, d.values, strict=True)]
    return [v for k, v in pairs if isinstance(k, ast.Constant) and isinstance(node.slice, ast.Constant) and k.value == node.slice.value]


def _by_test(roles: Roles, node: ast.AST) -> bool:
    """``[e for e, k in zip(errors, keep) if k]``: the batch decides how many there are."""
    generators = node.generators if isinstance(node, ast.ListComp | ast.GeneratorExp) else []
    return any(by_batch(roles, test) for g in generators for test in g.ifs)


def _filled_by_test(roles: Roles, node: ast.Name) -> bool:
    """``if keep.any(): losses.append(…)``: the batch decides how many the list holds."""
    for use in roles.names.uses(roles.names.scope_of[node], node.id):
        above = roles.names.parent[use]
        if isinstance(above, ast.Attribute) and above.attr == "append":
            around = takewhile(lambda a: not isinstance(a, FunctionNode), roles.names.ancestors(above))
            if any(isinstance(a, ast.If) and by_batch(roles, a.test) for a in around):
                return True
    return False


def _of_loader(roles: Roles, node: ast.expr, depth: int) -> bool:
    """Whether a loader gives the value, by itself or through parameters."""
    if isinstance(node, ast.Name):
        return loaded(roles, node) or any(_of_loader(roles, e, depth - 1) for e in _handed(roles, node, depth))
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.value, ast.Name) and loaded(roles, node.value)


def _handed(roles: Roles, node: ast.Name, depth: int) -> list[ast.expr]:
    """What calls of the program give for a parameter."""
    bound = roles.names.bindings(roles.names.scope_of[node], node.id) if depth else ()
    return [e for b in bound for e in roles.handed(b) if e is not None]


def _assigned(roles: Roles, node: ast.expr, depth: int) -> list[ast.expr]:
    """What a variable is given as a whole, or as an element of what a call gives."""
    if not isinstance(node, ast.Name) or not depth:
        return []
    given = []
    for b in roles.names.bindings(roles.names.scope_of[node], node.id):
        if b.how == "assign" and isinstance(b.value, ast.expr):
            functions = [f for f, _ in roles.values.targets(b.value)] if b.path and isinstance(b.value, ast.Call) else []
            returned = [r.value for f in functions for r in roles.names.returns(f) if r.value is not None]
            given += [element(v, b.path) for v in returned or [b.value]]
    return given
