"""What the ``collate_fn`` of a loader does with the samples: whether it may leave some of them out of the batch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dpmigrate.facts.definitions import is_static, parameters
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles

_ADDS = frozenset({"append", "extend", "add"})


def functions(roles: Roles, loader: ast.Call) -> Iterator[FunctionNode | ast.Lambda]:
    """The functions of the program that put the batches of a loader together."""
    given = next((k.value for k in loader.keywords if k.arg == "collate_fn"), loader.args[6] if len(loader.args) > 6 else None)
    for v in roles.values.eval(given) if roles.makes_loader(loader) and given is not None else ():
        function = roles.values.defs.method(v.cls, "__call__") if v.kind == "object" and v.cls is not None else v.node
        if isinstance(function, FunctionNode | ast.Lambda):
            yield function


def gives_none(roles: Roles, function: FunctionNode | ast.Lambda) -> ast.AST | None:
    """Where the function gives None in the place of a batch, as one that is empty or broken."""
    given = [function.body] if isinstance(function, ast.Lambda) else [r.value or r for r in roles.names.returns(function)]
    while given:
        node = given.pop()
        parts = node.elts if isinstance(node, ast.Tuple | ast.List) else node.values if isinstance(node, ast.Dict) else [node]
        if isinstance(node, ast.Return) or (parts and all(isinstance(p, ast.Constant) and p.value is None for p in parts)):
            return node
        given += [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
    return None


def left_out(roles: Roles, function: FunctionNode | ast.Lambda) -> ast.AST | None:
    """Where the function leaves samples out of a batch by what they are, so that it is shorter than the loader's batch size; None where it is not seen to.

    By ``filter``, by the condition of a comprehension, or in a loop over the samples that goes on to the next one, or adds nothing, under a test of the
    sample. A part that is added under a test beside others that always are is none of it: a sample may lack a mask.
    """
    if isinstance(function, ast.Lambda):
        names = [a.arg for a in function.args.args][:1]
    else:
        method = roles.values.defs.method_class(function) is not None and not is_static(function)
        names = parameters(function)[1:2] if method else parameters(function)[:1]
    batch = _made_of(names, function)
    for n in walk(function):
        if isinstance(n, ast.Call) and roles.names.dotted(n.func) == "?.filter" and len(n.args) == 2 and _reads(n.args[1], batch):
            return n
        if isinstance(n, ast.comprehension) and n.ifs and _reads(n.iter, batch) and any(_reads(test, _names(n.target)) for test in n.ifs):
            return n.ifs[0]
        if isinstance(n, ast.For) and _reads(n.iter, batch) and (test := _passed_over(roles, n)) is not None:
            return test
    return None


def _passed_over(roles: Roles, loop: ast.For) -> ast.AST | None:
    """The test of a sample under which a turn of the loop adds nothing."""
    own = _made_of(_names(loop.target), loop)
    within = [n for s in loop.body for n in walk(s) if next((a for a in roles.names.ancestors(n) if isinstance(a, Loop)), None) is loop]
    adds = [n for n in within if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _ADDS]
    tests = [n for n in within if isinstance(n, ast.If) and _reads(n.test, own)]
    if not adds:
        return None
    first = min((n.lineno, n.col_offset) for n in adds)
    for test in tests:
        goes_on = any(isinstance(n, ast.Continue) and roles.names.is_inside(n, test) for n in within)
        if goes_on and (test.lineno, test.col_offset) < first:
            return test.test
        if not test.orelse and all(roles.names.is_inside(n, test) for n in adds):
            return test.test
    return None


def _made_of(names: Iterable[str], node: ast.AST) -> set[str]:
    """The names, and those that the node gives something made of them."""
    found = set(names)
    for n in walk(node):
        if isinstance(n, ast.Assign) and _reads(n.value, found):
            found |= {name for t in n.targets for name in _names(t)}
    return found


def _names(target: ast.AST) -> set[str]:
    return {n.id for n in walk(target) if isinstance(n, ast.Name)}


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in walk(node))
