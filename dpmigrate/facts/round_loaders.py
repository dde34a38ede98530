"""Objects of the program that hold a DataLoader and hand its batches on one by one: a class that moves each batch to the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.apart import COUNTS, given, taking
from dpmigrate.facts.definitions import through
from dpmigrate.facts.held import latest
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.values import NONE, Val, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Try, ast.While, ast.YieldFrom)


@dataclass(frozen=True, eq=False, slots=True)
class Held:
    """``inside`` is the expression in ``__iter__`` that gives the loader to each pass, ``loaders`` what it may be for these objects.

    Where the call that makes the loader makes that of other objects too, ``apart`` are the statements that give the variable the object of the training.
    """

    inside: ast.Attribute
    loaders: Vals
    apart: tuple[ast.Assign, ...] = ()


def held(roles: Roles, node: ast.expr, loop: ast.For | ast.AsyncFor) -> Held | None:
    """The loaders in the objects that a training loop goes over: ``for batch in moved``, with ``moved = Moved(loader, device)``.

    None where one of the objects gives something else than the batches of its loader, each once and in their order, and where anything but training takes
    batches from it, since a loader in it that is divided would give an evaluation a rank's share. Objects that one place makes are told apart by an execution.
    """
    while (inner := through(roles.names, node)) is not None:
        node = inner
    vals = roles.present(node)
    objects = frozenset(v for v in vals if v.kind == "object" and v.cls is not None)
    if not objects or vals - objects - roles.loaders_of(node) or len({v.cls for v in objects}) != 1:
        return None
    cls = next(v.cls for v in objects if v.cls is not None)
    inside = _inside(roles, cls)
    held_by = {v: _given(roles, v, cls, inside) for v in _made(roles, cls)} if inside is not None else {}
    found = NONE.union(*(held_by.get(v, NONE) for v in objects))
    others = NONE.union(*(loaders for v, loaders in held_by.items() if v not in objects))  # perhaps those of an evaluation
    if inside is None or not all(held_by.get(v) for v in objects):
        return None
    if not found & others and all(_trains_only(roles, n, loop) for n in _uses(roles, objects)):
        return Held(inside, found)
    alike = frozenset(v for v, loaders in held_by.items() if loaders & found)
    apart = _apart(roles, node, loop, alike) if not inside.attr.startswith("__") else ()  # a name that only the class can write
    return Held(inside, found, apart) if apart else None


def _apart(roles: Roles, node: ast.expr, loop: ast.For | ast.AsyncFor, objects: Vals) -> tuple[ast.Assign, ...]:
    """The statements that give a variable the object which a training loop goes over, where the same place makes the objects of evaluations, and training
    alone takes batches from that one: its loader can be divided there. No statements where that is seen neither by the text nor by an execution.
    """
    statements = given(roles, node) if not roles.branches(loop) else ()
    places = taking(roles, statements, objects, _uses(roles, objects)) if statements else []
    loops = [over for n in places if (over := _gone_over(roles, n)) is not None]
    training = [over for over in loops if any(roles.reaches_backward(s) for s in over.body)]
    if not all(_gone_over(roles, n) is not None or _handed_on(roles, n) for n in places):
        return ()
    alone = len(training) == len(loops) or (roles.asked is not None and roles.asked.alone(training))
    return statements if alone else ()


def _inside(roles: Roles, cls: ast.ClassDef) -> ast.Attribute | None:
    """``self.loader`` of ``for batch in self.loader: yield move(batch)``, of ``map(move, self.loader)`` and of ``iter(self.loader)`` in ``__iter__``."""
    defs, names = roles.values.defs, roles.names
    if any(names.dotted(b) != "?.object" and defs.named(b) is None for c in defs.bases(cls) for b in c.bases):
        return None
    method = defs.method(cls, "__iter__")
    if method is None or method.decorator_list or not method.args.args:
        return None
    body = [s for s in method.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    source = _yielded(roles, method, body) if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(method)) else _returned(roles, body)
    while source is not None and (inner := through(names, source) or _assigned(names, source)) is not None:
        source = inner
    own = isinstance(source, ast.Attribute) and isinstance(source.value, ast.Name) and source.value.id == method.args.args[0].arg
    return source if own and isinstance(source, ast.Attribute) else None


def _assigned(names: Names, node: ast.expr) -> ast.expr | None:
    """What a variable was given before that nothing else reads: ``batches = iter(self.loader)``."""
    if not isinstance(node, ast.Name):
        return None
    scope = names.scope_of[node]
    alone = len(names.uses(scope, node.id)) == 1
    given = latest(names, node, [*names.bindings(scope, node.id)]) if alone else None
    return given.value if given is not None and isinstance(given.value, ast.expr) and not given.path else None


def _yielded(roles: Roles, method: FunctionNode, body: list[ast.stmt]) -> ast.expr | None:
    """What the one loop of a generator goes through, where every turn comes to its one ``yield``, but for an end after a number of batches."""
    loop = body[-1] if body else None
    if isinstance(loop, ast.Expr) and isinstance(loop.value, ast.YieldFrom) and len(body) == 1:
        return loop.value.value
    if not isinstance(loop, ast.For) or loop.orelse:
        return None
    first = loop.body[0]
    ends = isinstance(first, ast.If) and _counts_batches(roles, method, loop, first)
    nodes = [n for s in body for n in walk(s) if not (ends and n in (first, *first.body))]  # type: ignore[attr-defined]
    yields = [n for n in nodes if isinstance(n, ast.Yield | ast.YieldFrom)]
    straight = [s for s in loop.body if isinstance(s, ast.Expr) and s.value in yields]
    once = len(yields) == len(straight) == 1 and not any(isinstance(n, _LEAVING) for n in nodes)
    return loop.iter if once else None


def _counts_batches(roles: Roles, method: FunctionNode, loop: ast.For, test: ast.If) -> bool:
    """``if i * self.opt.batch_size >= self.opt.max_size: break``: all ranks leave after the same number of batches, since their shares have as many.

    Beside the number of the turn the test reads what is set when the object is made, and nothing of the batch.
    """
    target = loop.target
    numbered = isinstance(loop.iter, ast.Call) and roles.names.dotted(loop.iter.func) == "?.enumerate" and isinstance(target, ast.Tuple)
    number = target.elts[0].id if numbered and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name) else None
    me = method.args.args[0].arg
    names = [n for n in walk(test.test) if isinstance(n, ast.Name)]
    held = [roles.names.parent[n] for n in names if n.id == me]
    stored = [s for a in held if isinstance(a, ast.Attribute) for s in roles.names.attributes(a.attr) if isinstance(s.ctx, ast.Store) and _same(roles, a, s)]
    functions = [roles.names.function(s) for s in stored]
    at_first = bool(stored) and all(isinstance(f, FunctionNode) and f.name == "__init__" for f in functions)
    plain = isinstance(test.test, ast.Compare) and not any(isinstance(n, ast.Call) for n in walk(test.test))
    alone = [*map(type, test.body)] == [ast.Break] and not test.orelse
    return number is not None and plain and alone and all(n.id in (number, me) for n in names) and all(isinstance(a, ast.Attribute) for a in held) and (
        at_first or not held
    )


def _same(roles: Roles, read: ast.Attribute, stored: ast.Attribute) -> bool:
    """Whether an attribute that is stored may be the one that is read: not where it is seen to be that of another object."""
    keys = roles.values.keys
    return not roles.values.eval(stored.value) or bool(frozenset(keys(read)) & frozenset(keys(stored)))


def _returned(roles: Roles, body: list[ast.stmt]) -> ast.expr | None:
    """What an iterator that ``__iter__`` makes in one line goes through."""
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    if isinstance(value, ast.Call) and roles.names.dotted(value.func) == "?.map" and len(value.args) == 2:
        return value.args[1]
    if isinstance(value, ast.GeneratorExp) and len(value.generators) == 1 and not value.generators[0].ifs:
        return value.generators[0].iter
    if isinstance(value, ast.Call) and roles.names.dotted(value.func) == "?.iter" and len(value.args) == 1:
        return value.args[0]
    return None


def _made(roles: Roles, cls: ast.ClassDef) -> set[Val]:
    """Every object of the class that the program makes."""
    return {v for c in roles.calls for v in roles.values.eval(c) if v.kind == "object" and v.cls is cls}


def _given(roles: Roles, made: Val, cls: ast.ClassDef, inside: ast.expr) -> Vals:
    """The loaders that an object is given for the attribute that it goes through; none where the attribute may be anything else."""
    init = roles.values.defs.method(cls, "__init__")
    writes = [w for key in roles.values.keys(inside) for w in roles.writes(key)]
    if init is None or len(writes) != 1 or not isinstance(made.node, ast.Call):
        return NONE
    write = writes[0]
    if not isinstance(write, ast.Assign) or len(write.targets) != 1 or write not in init.body:
        return NONE
    if isinstance(write.value, ast.Call) and write.value in roles.loader_calls:  # one for each object of the class
        return roles.loaders_of(write.value)
    parameter = roles.values.defs.handed_back(init, write.value)
    given = roles.passed(made.node, init, parameter) if parameter is not None else None
    return roles.loaders_of(given) if given is not None and not through(roles.names, given) else NONE


def _uses(roles: Roles, objects: Vals) -> Iterator[ast.expr]:
    """Where the program reads one of the objects, also as ``self``, but for ``__iter__``, which is entered by those who go over it."""
    classes = [c for v in objects if v.cls is not None for c in roles.values.defs.bases(v.cls)]
    own = frozenset(Val("object", c, cls=c) for c in classes)
    passes = {roles.values.defs.method(c, "__iter__") for c in classes}
    for n in roles.names.nodes:
        if isinstance(n, ast.Name | ast.Attribute | ast.Subscript | ast.Call) and isinstance(getattr(n, "ctx", ast.Load()), ast.Load):
            found = roles.values.eval(n)
            if found & objects or (found & own and roles.names.function(n) not in passes):
                yield n


def _trains_only(roles: Roles, node: ast.expr, loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a place that reads the object is one of training, only hands it on, or asks for its length or an attribute."""
    over = _gone_over(roles, node)
    return _handed_on(roles, node) if over is None else over is loop or any(roles.reaches_backward(s) for s in over.body)


def _gone_over(roles: Roles, node: ast.expr) -> ast.For | ast.AsyncFor | None:
    """The loop that goes over what a place reads."""
    around = (a for a in roles.names.ancestors(node) if isinstance(a, ast.For | ast.AsyncFor))
    return next((a for a in around if roles.names.is_inside(node, a.iter)), None)


def _handed_on(roles: Roles, node: ast.expr) -> bool:
    """Whether a place that reads the object only hands it on, or asks for its length or an attribute."""
    names = roles.names
    above = names.parent[node]
    if isinstance(above, ast.keyword):
        above = names.parent[above]
    if isinstance(above, ast.Call) and above.func is not node:
        own = any(isinstance(f, FunctionNode) for f, _ in roles.values.targets(above))
        return own or names.dotted(above.func) in COUNTS or through(names, above) is node
    return isinstance(above, ast.Attribute | ast.Assign | ast.AnnAssign | ast.Return | ast.Expr | ast.Dict | ast.Tuple | ast.FormattedValue)
