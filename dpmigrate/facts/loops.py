"""The loops that take batches from a DataLoader: ``for``, also over several loaders at once or over an object of the program that holds one, and loops
that take them with ``next()``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.cut_lengths import by_length
from dpmigrate.facts.cuts import cut_beside, cuts
from dpmigrate.facts.definitions import gone_through, through
from dpmigrate.facts.looked import looked_at, measured
from dpmigrate.facts.names import FunctionNode, Loop, Names, position
from dpmigrate.facts.names import last as last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.picked import Pick, picks
from dpmigrate.facts.reaching import may_reach, reaching
from dpmigrate.facts.round_loaders import held
from dpmigrate.facts.values import NONE, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: built-in and itertools functions that go through several iterables in step
IN_STEP = frozenset({"?.zip", "itertools.zip_longest"})
#: those that give an iterator themselves
_ITERATORS = IN_STEP | {"?.enumerate", "itertools.cycle"}
_END_TO_END = frozenset({"itertools.chain", "itertools.chain.from_iterable"})
#: functions that choose among the items of an iterable, or turn them round, with the place of the iterable in their arguments
_CHOOSING = {"?.filter": 1, "itertools.filterfalse": 1, "itertools.takewhile": 1, "itertools.dropwhile": 1, "?.reversed": 0}


@dataclass(frozen=True, eq=False, slots=True)
class BatchLoop:
    """A loop and one loader that it takes batches from; a loop with several loaders is several of these.

    ``source`` is the expression that gives the loader, inside ``enumerate`` and the like; ``drawn`` the ``next()`` call, where there is one.
    """

    node: Loop
    source: ast.expr
    loaders: Vals
    trains: bool
    evaluates: bool
    branches: bool = False  # backward stands under a test that may be false: one loop for both
    drawn: ast.Call | None = None
    several: bool = False  # the loop takes batches from other loaders as well
    made: bool = False  # the loop goes over something that is made of the loader, and that need not give its batches one by one as they are
    inside: ast.Attribute | None = None  # the loop goes over an object of the program that takes its batches from this expression, in its class
    apart: tuple[ast.Assign, ...] = ()  # that class makes the loaders of evaluations too: these statements give a variable the object of the training
    picked: tuple[Pick, ...] = ()  # there is no loader: the program picks the samples of each batch at random by itself

    @property
    def over(self) -> ast.expr:
        """The whole expression that gives the batches, with ``enumerate`` and the like: of the ``for``, or the ``next()`` call."""
        return self.node.iter if self.drawn is None and not isinstance(self.node, ast.While) else self.drawn or self.source


def batch_loops(roles: Roles) -> tuple[BatchLoop, ...]:
    """Every loop that takes batches, with each of its loaders, in the order of the file."""
    out: list[BatchLoop] = []
    for node in roles.names.nodes:
        if isinstance(node, ast.For | ast.AsyncFor) and not _hands_on(roles, node):
            out += _over(roles, node)
    out += _drawing(roles, {b.node for b in out if b.trains})
    out += _picking(roles, {b.node for b in out if b.trains})
    return (*out, *_measuring(roles, out))


def _picking(roles: Roles, known: set[Loop]) -> list[BatchLoop]:
    """The innermost loops round a ``backward()`` that picks its samples at random, where it stands in no loop over a loader."""
    loops = {a for b in roles.backwards if not first_loops(roles, b, lambda loop: loop in known) for a in first_loops(roles, b, lambda loop: True)}
    found: dict[Loop, tuple[Pick, ...]] = {}
    for loop in sorted(loops, key=position):
        around = list(rounds(roles, loop))
        these = picks(roles, loop, {loop, *around})
        if these:
            training = (f for f in roles.all_entered(loop) if roles.reaches_backward(f) and not roles.inside_module(f))
            odd = by_length(roles, loop, [*loop.body, *sorted(training, key=position)], ())
            found |= {} if odd is not None or cut_beside(roles, loop) else {loop: these}
        else:
            cut = next(((a, c) for a in dict.fromkeys((loop, *around)) if (c := cuts(roles, a, (loop, *around)))), None)
            found |= {} if cut is None else dict([cut])
    return [BatchLoop(loop, these[0].rows, NONE, True, False, roles.branches(loop), picked=these) for loop, these in found.items()]


def _over(roles: Roles, node: ast.For | ast.AsyncFor) -> list[BatchLoop]:
    body = ast.Module(node.body, [])
    trains = any(roles.reaches_backward(s) for s in node.body) and not _without_gradients(roles, node)
    parts = in_step(roles, node.iter)
    sources = [(s, loaders) for s in parts if (loaders := roles.loaders_of(s))]
    made = parts != [node.iter]
    if trains and len(parts) == 1 and (found := held(roles, parts[0], node)) is not None:
        return [BatchLoop(node, source(roles, parts[0]), found.loaders, True, False, roles.branches(node), inside=found.inside, apart=found.apart)]
    if not sources and trains and (given := _passed_on(roles, node)) is not None:
        sources, made = [(given, roles.loaders_of(given))], False
    if not sources and not trains:
        sources, made = [(s, loaders) for s in chosen(roles, node.iter) if (loaders := roles.loaders_of(s))], True
    if not sources:
        return []
    calls = not trains and (roles.calls_model(body) or any(roles.calls_model(f) for f in roles.all_entered(body)))
    branches = trains and roles.branches(node)
    return [BatchLoop(node, source(roles, s), loaders, trains, calls, branches, None, len(sources) > 1, made) for s, loaders in sources]


def _passed_on(roles: Roles, node: ast.For | ast.AsyncFor) -> ast.expr | None:
    """What a call of the program is given whose batches a loop takes as they come, as the execution on paper shows: ``for batch in self.bar(loader)``."""
    inner = source(roles, node.iter)
    if not isinstance(inner, ast.Call) or roles.asked is None or not any(True for _ in roles.values.targets(inner)):
        return None
    given = [e for e in (*inner.args, *(k.value for k in inner.keywords)) if roles.loaders_of(e)]
    if len(given) != 1:
        return None
    found = roles.asked.passed_on(node)
    return given[0] if found and found <= {position(v.node) for v in roles.loaders_of(given[0])} else None


def _without_gradients(roles: Roles, node: ast.AST) -> bool:
    """Whether the node runs under ``no_grad`` alone, so that no backward() that it may come to is reached: ``step(batch, train=False)``."""
    return roles.quiet_always(node) and not any(True for word in ("enable_grad", "set_grad_enabled") for _ in roles.names.attributes(word))


def in_step(roles: Roles, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> list[ast.expr]:
    """The iterables that a loop goes through, batch by batch: the arguments of ``zip``, ``chain`` and ``map``, what a generator expression goes through."""
    inner = source(roles, node)
    if isinstance(inner, ast.Name):
        bound = list(roles.names.bindings(roles.names.scope_of[inner], inner.id))
        if len(bound) == 1 and bound[0].how == "assign" and not bound[0].path and isinstance(bound[0].value, ast.Call | ast.GeneratorExp):
            inner = bound[0].value
    parts = _parts(roles, inner)
    if parts is None or inner in seen:
        return [node]
    return [p for part in parts for p in in_step(roles, part, seen | {inner})]


def _parts(roles: Roles, node: ast.expr) -> list[ast.expr] | None:
    """What an expression goes through, item by item; None where it is no such expression, or goes through something twice."""
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return [node.generators[0].iter] if len(node.generators) == 1 and not node.generators[0].ifs else None
    if not isinstance(node, ast.Call):
        return None
    dotted = roles.names.dotted(node.func)
    if dotted == "?.map":
        return node.args[1:]
    if dotted in IN_STEP:
        return [a for a in node.args if not isinstance(a, ast.Starred)]
    if dotted not in _END_TO_END or not node.args:
        return None
    listed = node.args[0].value if isinstance(node.args[0], ast.Starred) else node.args[0] if dotted.endswith("from_iterable") else None
    parts = node.args if listed is None else listed.elts if isinstance(listed, ast.Tuple | ast.List) else []
    once = len({ast.dump(p) for p in parts}) == len(parts) > 0 and not any(isinstance(p, ast.Starred) for p in parts)
    return parts if once else None


def chosen(roles: Roles, node: ast.expr) -> list[ast.expr]:
    """What an expression takes some items of, or whatever an object of the program makes of what it is given: ``list(loader)[:3]``, ``First(loader, 3)``."""
    inner = source(roles, node)
    if isinstance(inner, ast.Name):
        inner = next((g for g in roles.given(inner) if isinstance(g, ast.Call | ast.Subscript | ast.GeneratorExp | ast.ListComp)), inner)
    if isinstance(inner, ast.Subscript):
        return in_step(roles, inner.value)
    if isinstance(inner, ast.GeneratorExp | ast.ListComp):
        return in_step(roles, inner.generators[0].iter)
    if not isinstance(inner, ast.Call):
        return []
    at = _CHOOSING.get(roles.names.dotted(inner.func))
    if at is not None:
        return in_step(roles, inner.args[at]) if at < len(inner.args) else []
    made = any(v.kind == "object" and v.node is inner for v in roles.values.eval(inner))
    return [*inner.args, *(k.value for k in inner.keywords)] if made or roles.names.dotted(inner.func) in _END_TO_END else []


def source(roles: Roles, node: ast.expr) -> ast.expr:
    """The expression that gives the loader inside ``enumerate``, ``tqdm``, ``iter``, the file's own generators, and names bound to them."""
    names = roles.names
    while True:
        if (inner := through(names, node)) is not None:
            node = inner
        elif isinstance(node, ast.Call) and (given := roles.values.returned.handed_on(node)) is not None:
            node = given
        elif isinstance(node, ast.Name | ast.IfExp):
            values = _bound_to(names, node) if isinstance(node, ast.Name) else [node]
            sides = [s for v in values for s in ([v.body, v.orelse] if isinstance(v, ast.IfExp) else [v])]  # bar = tqdm(loader) if verbose else loader
            own = node.id if isinstance(node, ast.Name) else ""
            sides = [s for s in sides if len(sides) == 1 or not (own and _shows_itself(names, s, own))]
            if len(sides) > 1 and not any(n.id == own for s in sides for n in walk(s) if isinstance(n, ast.Name)):
                found = [source(roles, s) for s in sides]
                one = len({ast.dump(f) for f in found}) == 1 and isinstance(found[0], ast.Name | ast.Attribute | ast.Subscript)
                return found[0] if one else node
            if len(sides) != 1 or not _hands_over(roles, sides[0]):
                return node
            node = sides[0]
        else:
            return node


def _bound_to(names: Names, node: ast.Name) -> list[ast.expr]:
    """What a name is bound to: on several ways several expressions; none where one of them is not seen."""
    bound = [b for b in names.bindings(names.scope_of[node], node.id) if b.how != "aug"]
    last_one = reaching(names, node) if len(bound) > 1 else None
    bound = [b for b in bound if may_reach(names, b, node)]
    values: list[ast.expr] = []
    for b in [last_one] if last_one is not None else bound:
        value = b.value if b.how in ("assign", "with") else None
        for part in b.path if value is not None else ():  # total, bar = 0.0, tqdm(loader)
            value = value.elts[part] if isinstance(value, ast.Tuple) and isinstance(part, int) and part < len(value.elts) else None
        if not isinstance(value, ast.expr):
            return []
        values.append(value)
    return values


def _shows_itself(names: Names, value: ast.expr, own: str) -> bool:
    """Whether a variable is given what it holds already, with a bar round it (``batches = tqdm(batches)``), or None, which no loop goes over."""
    inner = value
    while (handed := through(names, inner)) is not None:
        inner = handed
    itself = inner is not value and isinstance(inner, ast.Name) and inner.id == own
    return itself or (isinstance(value, ast.Constant) and value.value is None)


def _hands_over(roles: Roles, value: ast.AST | None) -> bool:
    if not isinstance(value, ast.Call) or gone_through(value) is None:
        return False
    return through(roles.names, value) is not None or roles.values.returned.handed_on(value) is not None


def _hands_on(roles: Roles, node: ast.For | ast.AsyncFor) -> bool:
    """Whether the loop stands in a generator and only hands its batches on: the loop over the generator is the one that counts."""
    function = roles.names.function(node)
    return isinstance(function, FunctionNode) and any(
        isinstance(n, ast.Yield | ast.YieldFrom) and roles.names.function(n) is function for s in node.body for n in walk(s)
    )


# ------------------------------------------------------------------ next(iterator)
@dataclass(frozen=True, eq=False, slots=True)
class Draw:
    """A call that takes one batch: ``next(it)``, ``it.next()``, ``it.__next__()``."""

    call: ast.Call
    source: ast.expr
    loaders: Vals


def draws(roles: Roles) -> Iterator[Draw]:
    """The calls that take a batch from a loader of the program."""
    for call in roles.calls:
        iterator: ast.expr | None = None
        if roles.names.dotted(call.func) == "?.next" and call.args:
            iterator = call.args[0]
        elif isinstance(call.func, ast.Attribute) and call.func.attr in ("next", "__next__") and not call.args:
            iterator = call.func.value
        for part in in_step(roles, iterator) if iterator is not None else ():
            loaders = roles.loaders_of(part)
            if loaders:
                yield Draw(call, _origin(roles, part), loaders)


def _origin(roles: Roles, iterator: ast.expr) -> ast.expr:
    """What the iterator is made of: the first ``iter(loader)`` that its variable is given."""
    for key in roles.values.keys(iterator):
        for value in roles.written(key):
            if _hands_over(roles, value):
                return source(roles, value)
    return source(roles, iterator)


def _drawing(roles: Roles, known: set[Loop]) -> list[BatchLoop]:
    """The loops whose batches are taken with ``next()``: those that a ``backward()`` stands in more closely than in a loop over a loader."""
    found = [d for d in draws(roles) if not looked_at(roles, d.call)]
    nearest = {d: first_loops(roles, d.call, roles.reaches_backward) for d in found}
    candidates = {loop for loops in nearest.values() for loop in loops}
    training = {loop for b in roles.backwards for loop in first_loops(roles, b, lambda a: a in candidates or a in known)}
    out: list[BatchLoop] = []
    for d, loops in nearest.items():
        for loop in sorted(loops & training, key=lambda a: a.lineno):
            if not any(b.node is loop and b.loaders == d.loaders for b in out):
                several = loop in known or len({o.loaders for o, others in nearest.items() if loop in others}) > 1
                out.append(BatchLoop(loop, d.source, d.loaders, True, False, roles.branches(loop), d.call, several))
    return out


def _measuring(roles: Roles, known: Sequence[BatchLoop]) -> list[BatchLoop]:
    """The loops that take batches with ``next()`` for an evaluation, from loaders that training does not use; they stay whole on every rank."""
    evaluating = [b.node for b in known if not b.trains]
    trained = NONE.union(*(b.loaders for b in known if b.trains))
    out: dict[Loop, BatchLoop] = {}
    for d in draws(roles):
        if not d.loaders & trained:
            for node in first_loops(roles, d.call, lambda loop: True):
                if measured(roles, d.call, node) and not any(roles.names.is_inside(node, other) for other in evaluating):
                    out.setdefault(node, BatchLoop(node, d.source, d.loaders, False, True, False, d.call, True))
    return list(out.values())


def first_loops(roles: Roles, node: ast.AST, wanted: Callable[[Loop], bool], seen: frozenset[ast.AST] = frozenset()) -> set[Loop]:
    """The nearest loop of the wanted kind that repeats the node, on every way that leads to it through the calls of its function."""
    inner = node
    for a in roles.names.ancestors(node):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, Loop) and wanted(a) and not (isinstance(a, ast.For | ast.AsyncFor) and inner is a.iter):
            return {a}
        inner = a
    function = roles.names.function(node)
    if not isinstance(function, FunctionNode) or function in seen:
        return set()
    return set().union(*(first_loops(roles, c, wanted, seen | {function}) for c in roles.values.ways.get(function, [])))


def rounds(roles: Roles, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> Iterator[Loop]:
    """Every loop that repeats the node, innermost first, on every way that leads to it; a function that nothing calls is repeated where it is made."""
    for a in roles.names.ancestors(node):
        if isinstance(a, Loop):
            yield a
        elif isinstance(a, FunctionNode) and (calls := roles.values.ways.get(a)):
            for call in calls if a not in seen else ():
                yield from rounds(roles, call, seen | {a})
            return


@dataclass(frozen=True, eq=False, slots=True)
class Restart:
    """A statement that begins another pass over a loader, and the expression of the loader there."""

    stmt: ast.stmt
    loader: ast.expr


def restarts(roles: Roles, loop: BatchLoop) -> list[Restart]:
    """Where passes over the loader begin, but for the first, where no loop counts them: ``iter(loader)`` in a loop or after training, a generator's."""
    out: dict[ast.stmt, Restart] = {}
    for call in roles.calls:
        begun = next((e for e in _begun(roles, call) if roles.loaders_of(e) & loop.loaders), None)
        if begun is not None and (_repeats(roles, call) or _used_before(roles, loop, call)):
            stmt = roles.names.statement(call)
            out.setdefault(stmt, Restart(stmt, _iterated(roles.names, begun)))
    for node in roles.names.nodes:
        if isinstance(node, ast.For) and _hands_on(roles, node) and roles.loaders_of(node.iter) & loop.loaders and _repeats(roles, node):
            out.setdefault(node, Restart(node, _iterated(roles.names, node.iter)))
        if isinstance(node, ast.YieldFrom) and roles.loaders_of(node.value) & loop.loaders and _repeats(roles, node):
            stmt = roles.names.statement(node)
            out.setdefault(stmt, Restart(stmt, _iterated(roles.names, node.value)))
    return list(out.values())


def _begun(roles: Roles, call: ast.Call) -> list[ast.expr]:
    """What a call begins passes over, as it is written there: of ``iter(loader)``, ``iter(zip(a, b))``, and of ``zip(a, b)`` that a variable holds."""
    names = roles.names
    if names.dotted(call.func) == "?.iter" and call.args:
        over = call.args[0]
    elif names.dotted(call.func) in _ITERATORS and isinstance(names.parent[call], ast.Assign | ast.AnnAssign | ast.NamedExpr):
        over = call
    else:
        return []
    return [over, *(e for e in in_step(roles, over) if e is not over and names.is_inside(e, over))]


def endless(roles: Roles, loop: BatchLoop) -> bool:
    """Whether the loop goes over a generator of the program that begins its loader again and again: the passes are counted in there."""
    generators = {roles.names.function(n) for n in roles.names.nodes if isinstance(n, ast.Yield | ast.YieldFrom)}
    places = [(r.stmt, f) for r in restarts(roles, loop) if (f := roles.names.function(r.stmt)) in generators]
    return any(isinstance(a, Loop) for stmt, function in places for a in roles.names.ancestors(stmt, below=function))


def _repeats(roles: Roles, node: ast.AST) -> bool:
    return bool(first_loops(roles, node, lambda loop: True))


def _used_before(roles: Roles, loop: BatchLoop, call: ast.Call) -> bool:
    """Whether another training loop has gone through the loader when the call begins a pass, and left it in the order of its last epoch."""
    others = (b for b in roles.train_feeds if b.node is not loop.node and b.loaders & loop.loaders)
    return any(roles.values.order.when(call, roles.names.statement(b.node)) == "after" for b in others)


def _iterated(names: Names, node: ast.expr) -> ast.expr:
    """The loader inside ``enumerate`` and the like, as it is written in this place."""
    while (inner := through(names, node)) is not None:
        node = inner
    return node
