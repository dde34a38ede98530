"""Where the ranks of the migrated program go together, where they may part, and what rank 0 does alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from weakref import WeakKeyDictionary

from dpmigrate.facts.control import uniform
from dpmigrate.facts.endings import is_exit
from dpmigrate.facts.library import EXIST_METHODS, EXISTS
from dpmigrate.facts.names import FunctionNode, Loop, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.outside import changes_files, reports, waits_for_somebody
from dpmigrate.facts.roles import Roles

_FILE_QUESTIONS = EXISTS | {"os.path.getsize", "os.path.getmtime", "os.listdir", "os.scandir", "glob.glob"}
#: exceptions that all ranks meet together
_OF_ALL = frozenset({"StopIteration", "ImportError", "ModuleNotFoundError"})
_FILE_TESTS = EXIST_METHODS | {"isfile", "isdir", "glob", "iterdir", "is_downloaded"}

#: the tests that decide whether a rank trains
_DECIDED: WeakKeyDictionary[Roles, frozenset[ast.expr]] = WeakKeyDictionary()


def leading_to(roles: Roles, node: ast.AST) -> Iterator[ast.AST]:
    """The node and every call that may lead to it, through the functions of the program."""
    todo, seen = [node], set()
    while todo:
        n = todo.pop()
        yield n
        function = roles.names.function(n)
        if function not in seen:
            seen.add(function)
            todo += _running(roles, function)


def run_by_all(roles: Roles, node: ast.AST) -> bool:
    """Whether all ranks run the node: its function is called from the module's own code, not by a worker process or a library."""
    todo, seen = [roles.names.function(node)], set()
    while todo:
        function = todo.pop()
        if not isinstance(function, FunctionNode) or roles.reaches_backward(function):
            return True  # also a main() that app.run(main) calls: it trains
        if function not in seen:
            seen.add(function)
            todo += [roles.names.function(c) for c in _running(roles, function)]
    return False


def _running(roles: Roles, function: ast.AST | None) -> list[ast.expr]:
    """What runs a function: the calls that name it, the reads of a property, and of ``__init__`` the calls that look its class up."""
    return [] if function is None else [*roles.values.ways.get(function, []), *roles.values.makers.get(function, [])]


def run_apart(roles: Roles, node: ast.AST) -> bool:
    """Whether a library or a worker process may run the node by itself: in ``__getitem__``, in a function that is handed on (``collate_fn=f``)."""
    functions = {f for place in leading_to(roles, node) if isinstance(f := roles.names.function(place), FunctionNode)}
    return any(_run_by_library(roles, f) for f in functions if not roles.reaches_backward(f))


def _run_by_library(roles: Roles, function: FunctionNode) -> bool:
    if isinstance(roles.names.parent[function], ast.ClassDef):
        if roles.values.defs.is_property(function):
            return False
        own = function.name in ("__init__", "__call__") or not function.name.startswith("__")
        reads: Sequence[ast.expr] = roles.names.attributes(function.name)
        return not own or any(not _is_called(roles, r) for r in reads if isinstance(r.ctx, ast.Load))  # type: ignore[attr-defined]
    return not all(_only_called(roles, r) for r in roles.names.uses(roles.names.scope_of[function], function.name))


def _only_called(roles: Roles, read: ast.expr, depth: int = 6) -> bool:
    """Whether the program itself calls what an expression gives, and does nothing else with it: at once, behind a variable, a function that gives it
    back, or a table in which it looks it up, as in ``LOADERS[name](path)``.
    """
    names, parent = roles.names, roles.names.parent[read]
    if isinstance(parent, ast.Call) and parent.func is read:
        return True
    if depth == 0:
        return False
    if isinstance(parent, ast.Return):
        function = names.function(parent)
        calls = roles.values.callers.get(function, []) if isinstance(function, FunctionNode) else []
        uses = names.uses(names.scope_of[function], function.name) if isinstance(function, ast.FunctionDef) else []
        return bool(calls) and all(_is_called(roles, u) for u in uses) and all(_only_called(roles, c, depth - 1) for c in calls)
    if isinstance(parent, ast.Assign) and parent.value is read:
        return all(_only_called(roles, r, depth - 1) for r in _reads_of(roles, parent)) if _one_name(parent) else False
    table = names.parent[parent] if isinstance(parent, ast.Dict) and read in parent.values else None
    if isinstance(table, ast.Assign) and table.value is parent and _one_name(table):
        return all(_only_looked_up(roles, r, depth - 1) for r in _reads_of(roles, table))
    return False


def _only_looked_up(roles: Roles, table: ast.expr, depth: int) -> bool:
    """Whether nothing is done with a dict but to ask for its keys, and to call what it holds."""
    names, parent = roles.names, roles.names.parent[table]
    if isinstance(parent, ast.Subscript) and parent.value is table:
        return isinstance(parent.ctx, ast.Load) and _only_called(roles, parent, depth)
    if isinstance(parent, ast.Attribute):
        call = names.parent[parent]
        asked = isinstance(call, ast.Call) and call.func is parent and (parent.attr == "keys" or (parent.attr == "get" and _only_called(roles, call, depth)))
        return asked
    if isinstance(parent, ast.Compare):
        return table in parent.comparators and all(isinstance(op, ast.In | ast.NotIn) for op in parent.ops)
    return isinstance(parent, ast.Call) and names.dotted(parent.func) in ("?.list", "?.sorted", "?.len", "?.tuple")


def _one_name(stmt: ast.Assign) -> bool:
    return len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name)


def _reads_of(roles: Roles, stmt: ast.Assign) -> list[ast.expr]:
    """Where the variable is read that a statement binds."""
    target = stmt.targets[0]
    assert isinstance(target, ast.Name)
    uses = roles.names.uses(roles.names.scope_of[target], target.id)
    return [u for u in uses if isinstance(u.ctx, ast.Load)]


def _is_called(roles: Roles, read: ast.expr) -> bool:
    parent = roles.names.parent[read]
    return isinstance(parent, ast.Call) and parent.func is read


def for_samples(roles: Roles, node: ast.AST) -> bool:
    """Whether a data set runs the node, in worker processes that know no GPU."""
    classes = (roles.names.cls(place) for place in leading_to(roles, node))
    return any(last(b).endswith("Dataset") for c in classes if c is not None for k in roles.values.defs.bases(c) for b in k.bases)


# ------------------------------------------------------------------ tests that may part them
def local_tests(roles: Roles, node: ast.AST) -> Iterator[ast.expr]:
    """The tests round a node, through the functions that lead to it, that may fall out differently on different ranks."""
    for place in leading_to(roles, node):
        for a in takewhile(lambda a: not isinstance(a, FunctionNode), roles.names.ancestors(place)):
            if isinstance(a, ast.If | ast.IfExp) and not roles.names.is_inside(place, a.test) and not uniform(roles.names, a.test):
                yield a.test


def ends_before(roles: Roles, place: ast.AST) -> Iterator[ast.expr]:
    """The tests of a ``return``, or of what ends the program, that would end a function before it comes to the place."""
    for node in leading_to(roles, place):
        function = roles.names.function(node)
        for r in walk(function):
            if _ends(roles, r) and roles.names.function(r) is function and position(r) < position(node):
                around = [a for a in roles.names.ancestors(r) if isinstance(a, ast.If) and not roles.names.is_inside(node, a)]
                inside = [a.test for a in around if roles.names.function(a) is function]
                raises = isinstance(r, ast.Raise) and not is_exit(roles.names, r)  # every rank that has a reason says so
                yield from (t for t in inside if looks_for_own(roles, t) or not (raises or uniform(roles.names, t)))


def _ends(roles: Roles, node: ast.AST) -> bool:
    return isinstance(node, ast.Return | ast.Raise) or is_exit(roles.names, node)


def looks_for_own(roles: Roles, test: ast.expr) -> bool:
    """Whether the test asks for a directory that its own function makes: the first rank makes it, and the others find it."""
    asked = {ast.unparse(a) for n in walk(test) if isinstance(n, ast.Call) and asks_files(roles, n) for a in _paths(n)}
    calls = (n for n in walk(roles.names.function(test)) if asked and isinstance(n, ast.Call) and last(n.func) in ("makedirs", "mkdir"))
    return any(ast.unparse(a) in asked for n in calls for a in _paths(n))


def stops_at_file(roles: Roles) -> Iterator[ast.expr]:
    """The tests that end the program where a file is there: rank 0, which goes on, may just have made it when another rank asks."""
    for node in roles.names.nodes:
        if isinstance(node, ast.If) and any(isinstance(s, ast.Raise) or is_exit(roles.names, s) for s in node.body):
            found = node.test
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            found = node.test.operand  # assert not os.path.exists(folder)
        else:
            continue
        if _finds_file(roles, found) and run_by_all(roles, node) and not any(isinstance(a, Loop) for a in roles.names.ancestors(node)):
            yield node.test


def _finds_file(roles: Roles, test: ast.expr) -> bool:
    """Whether the test is for a file that is there, and not for one that is missing."""
    missing = [n for n in walk(test) if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)]
    asked = (n for n in walk(test) if isinstance(n, ast.Call) and asks_files(roles, n) and not any(asks_files(roles, a) for a in n.args))
    return any(not any(roles.names.is_inside(call, n) for n in missing) for call in asked)


def _paths(call: ast.Call) -> list[ast.expr]:
    """The path that a function of ``os`` is given, or whose method it is."""
    return [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]


def reached_together(roles: Roles, node: ast.AST) -> bool:
    """Whether all ranks come to the node when one does, as far as can be seen: then they may do something together there."""
    if any(True for _ in parting(roles, node)):
        return False
    for place in leading_to(roles, node):
        inner = place
        for a in takewhile(lambda a: not isinstance(a, FunctionNode), roles.names.ancestors(place)):
            # what is written or told to a tracker is made by rank 0 alone; a finally is reached by the rank that failed
            if isinstance(a, ast.BoolOp | ast.ExceptHandler | ast.Call | ast.withitem) or (isinstance(a, ast.Try) and inner in a.finalbody):
                return False
            inner = a
    return True


def asks_files(roles: Roles, test: ast.AST) -> bool:
    """Whether the test looks at files, which another rank may be writing: ``os.path.exists(p)``, ``p.is_file()``."""
    return any(True for _ in files_asked(roles, test))


def for_main_alone(roles: Roles, node: ast.AST) -> bool:
    """Whether a node stands in a test that decides nothing but what only rank 0 will do: whenever another rank asks, nothing comes of its answer."""
    inner = node
    if not (isinstance(node, ast.Call) and last(node.func) in _FILE_TESTS | {"lexists", "islink"}):
        return False  # to ask for its size fails where it is gone
    for a in roles.names.ancestors(node):
        if isinstance(a, ast.If):
            return inner is a.test and all(_main_alone(roles, s) for s in (*a.body, *a.orelse))
        if isinstance(a, ast.stmt):
            return False
        inner = a
    return False


def _main_alone(roles: Roles, stmt: ast.stmt) -> bool:
    saved = isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call) and roles.names.dotted(stmt.value.func) == "torch.save"
    return saved or left_to_main(roles, stmt)


def files_asked(roles: Roles, test: ast.AST) -> Iterator[ast.expr | None]:
    """The paths that a test looks at; None for one that is given by a keyword, or is the working directory."""
    for call in (n for n in walk(test) if isinstance(n, ast.Call)):
        if roles.names.dotted(call.func) in _FILE_QUESTIONS:
            yield call.args[0] if call.args else None
        elif isinstance(call.func, ast.Attribute) and call.func.attr in _FILE_TESTS:
            yield call.func.value


def parted(roles: Roles, node: ast.AST) -> bool:
    """Whether some ranks may come to the node and others not: by a test, by an early return, or since an exception met some of them alone."""
    return any(True for _ in parting(roles, node)) or caught(roles, node)


def parting(roles: Roles, node: ast.AST) -> Iterator[ast.expr]:
    """The tests by which ranks may part before a node, but for those that decide whether a rank trains: all decide these together."""
    if roles not in _DECIDED:
        _DECIDED[roles] = frozenset(t for b in roles.train_loops for tests in (local_tests(roles, b.node), ends_before(roles, b.node)) for t in tests)
    yield from (t for tests in (local_tests(roles, node), ends_before(roles, node)) for t in tests if t not in _DECIDED[roles])


def caught(roles: Roles, node: ast.AST) -> bool:
    """Whether an exception that one rank may meet alone leads to the node."""
    return any(_meets_some(a) for n in leading_to(roles, node) for a in takewhile(lambda a: not isinstance(a, FunctionNode), roles.names.ancestors(n)))


def _meets_some(node: ast.AST) -> bool:
    """Whether the node handles exceptions that one rank may meet alone: a loader's end or a missing package meets all."""
    return isinstance(node, ast.ExceptHandler) and not (node.type is not None and last(node.type) in _OF_ALL)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Statements of one block, from ``first`` to ``last``, that hold a place together with all that decides in their function whether it is come to."""

    first: ast.stmt
    last: ast.stmt


def stretch(roles: Roles, stmt: ast.stmt, parts: Callable[[ast.expr], bool]) -> Stretch | None:
    """What ranks must go through one after the other, or wait before, so that no test is asked while another rank is at work there.

    ``parts`` says which tests may then fall out differently. The outermost of them round the statement, a ``try`` whose handler it stands in, a loop whose
    turns such a test cuts short, and the early returns before it are inside. None where an early return stands in another block.
    """
    names, found = roles.names, stmt
    inner: ast.AST = stmt
    for a in takewhile(lambda a: not isinstance(a, FunctionNode), names.ancestors(stmt)):
        handled = isinstance(a, ast.Try) and isinstance(inner, ast.ExceptHandler) and _meets_some(inner)
        cut = isinstance(a, Loop) and _left_out(roles, a, inner, parts)
        if isinstance(a, ast.stmt) and (handled or cut or (isinstance(a, ast.If) and parts(a.test))):
            found = a
        inner = a
    block, function = names.block(found), names.function(stmt)
    before = block[: block.index(found)]
    first: ast.stmt = found
    for r in (n for n in walk(function) if isinstance(n, ast.Return) and names.function(n) is function and position(n) < position(found)):
        if any(isinstance(a, ast.If) and parts(a.test) and not names.is_inside(found, a) for a in takewhile(lambda a: a is not function, names.ancestors(r))):
            holding = [s for s in before if names.is_inside(r, s)]
            if not holding or block is not function.body:
                return None
            first = min(first, *holding, key=position)
    return Stretch(first, found if first is found else block[-1])


def _left_out(roles: Roles, loop: ast.AST, inner: ast.AST, parts: Callable[[ast.expr], bool]) -> bool:
    """Whether a turn may go by a statement of the loop, or end the loop before it, by tests that may fall out differently: ``if there: continue``."""
    names = roles.names
    for leave in (n for n in walk(loop) if isinstance(n, ast.Continue | ast.Break) and position(n) < position(inner)):
        around = list(takewhile(lambda a: a is not loop, names.ancestors(leave)))
        if not any(isinstance(a, Loop) for a in around) and any(isinstance(a, ast.If) and parts(a.test) for a in around):
            return True
    return False


# ------------------------------------------------------------------ what only rank 0 does
def left_to_main(roles: Roles, node: ast.AST) -> bool:
    """Whether the node stands in a statement that only rank 0 will run."""
    stmt = roles.names.statement(node)
    if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call)):
        return False
    call = stmt.value
    return changes_files(roles, call) or waits_for_somebody(roles.names, call) or reports(roles, call)
