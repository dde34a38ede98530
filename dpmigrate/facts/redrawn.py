"""What makes the samples of an epoch anew, between the epochs, and draws random numbers for it: a loader, its data set, the lists that these are made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.control import uniform
from dpmigrate.facts.library import MUTATORS
from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.randomness import draws, postponed
from dpmigrate.facts.values import Vals

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: whose calls draw nothing unless ``draws`` knows them
_QUIET = ("torch.", "torchvision.", "torchaudio.", "torchtext.", "numpy.", "datasets.")


@dataclass(frozen=True, eq=False, slots=True)
class Redrawn:
    """What has to draw the same on every rank: a statement, or an expression that is to be taken out of a statement that also trains.

    ``why`` says why that cannot be written; '' where it can.
    """

    node: ast.stmt | ast.expr
    why: str = ""


def repeated(script: Script, node: ast.AST) -> bool:
    """Whether the node runs in the loop over epochs."""
    names = script.names
    return any(names.is_inside(node, a) or names.function(node) in script.roles.all_entered(a) for a in script.repeating_loops)


def between(script: Script, node: ast.AST) -> bool:
    """Whether the node runs in the loop over epochs, outside the batches."""
    roles, names = script.roles, script.names
    return repeated(script, node) and not any(names.is_inside(node, b.node) or names.function(node) in roles.all_entered(b.node) for b in roles.batch_loops)


def redrawn(script: Script) -> Iterator[Redrawn]:
    """What draws for the loaders that are built between the epochs, each once; a loader that is built in a loop's head stands there."""
    told: set[ast.AST] = set()
    made = {v.node for b in script.roles.batch_loops for v in b.loaders if isinstance(v.node, ast.Call)}
    for call in sorted(made, key=position):
        for maker in (m for m in _makers(script, call, frozenset()) if repeated(script, m)):
            for found in _drawn_for(script, maker):
                if found.node not in told:
                    told.add(found.node)
                    yield found


def _makers(script: Script, call: ast.expr, seen: frozenset[ast.AST]) -> list[ast.expr]:
    """The expressions by which the loader is made in the function that trains, or in the loop that leads to it: the call, or one of its function."""
    function = script.names.function(call)
    inside = any(script.names.is_inside(call, a) for a in script.repeating_loops)
    if inside or not isinstance(function, FunctionNode) or function in seen or script.meets(function):
        return [call]
    return [m for c in script.values.ways.get(function, []) for m in _makers(script, c, seen | {function})]


def _drawn_for(script: Script, maker: ast.expr) -> Iterator[Redrawn]:
    """What draws for the value of the expression: its own statement, and those between the epochs that make what it is made of."""
    stmt = script.names.statement(maker)
    if _drawing(script, maker):
        if not script.meets(stmt):
            yield placed(script, stmt)
        elif can_be_taken_out(script, maker, stmt):
            yield Redrawn(maker)
        else:
            yield Redrawn(maker, "it stands in the middle of a statement that trains")
    for giving in feeding(script, maker, {stmt}):
        if _drawing(script, giving):
            yield placed(script, giving)


def _drawing(script: Script, node: ast.AST) -> bool:
    """Whether the node may draw: by itself, through what it goes through that is drawn late, in a data set or loader of code that is not seen."""
    if draws(script.roles, node):
        return True
    for n in walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            bound = (b.value for b in script.names.bindings(script.names.scope_of[n], n.id) if b.how == "assign")
            if any(v is not None and postponed(script.roles, v) and draws(script.roles, v) for v in bound):
                return True
        if isinstance(n, ast.Call) and _unseen_data(script, n):
            return True
    return False


def _unseen_data(script: Script, call: ast.Call) -> bool:
    """A loader of code outside of the program, or a data set of such code that is given to one of torch's."""
    if call not in script.roles.loader_calls:
        return False
    if not script.roles.makes_loader(call):
        return not any(True for _ in script.values.targets(call))
    data = script.argument(call, "dataset", 0)
    made = [v for v in script.values.eval(data) if v.kind == "call"]
    return any(not v.qual.startswith((*_QUIET, "?.")) and repeated(script, v.node) for v in made if isinstance(v.node, ast.Call))


def can_be_taken_out(script: Script, node: ast.expr, stmt: ast.stmt) -> bool:
    """Whether the expression is evaluated once, when the statement begins."""
    parted = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.IfExp | ast.BoolOp
    if any(isinstance(a, parted) for a in script.names.ancestors(node, below=stmt)):
        return False
    return isinstance(stmt, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return) or (
        isinstance(stmt, ast.For) and script.names.is_inside(node, stmt.iter)
    )


def placed(script: Script, stmt: ast.stmt) -> Redrawn:
    """The statement, or the loop or the test of a rank's own round it, so that all ranks come to it and as often."""
    place = stmt
    inner: ast.AST = stmt
    for a in script.names.ancestors(stmt, below=script.names.function(stmt)):
        if a in script.repeating_loops or (isinstance(a, Loop) and script.meets(a)):
            break
        if isinstance(a, Loop) or isinstance(inner, ast.ExceptHandler) or (isinstance(a, ast.If) and not uniform(script.names, a.test)):
            if script.meets(a):
                return Redrawn(place, "one rank may come here alone")
            place = script.names.statement(a)
        inner = a
    return Redrawn(place)


def feeding(script: Script, node: ast.AST, seen: set[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements between the epochs that give the variables of the node what they hold, or change it."""
    for n in walk(node):
        if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load):
            for stmt in _giving(script, n):
                if stmt not in seen and between(script, stmt) and not script.meets(stmt):
                    seen.add(stmt)
                    yield stmt
                    yield from feeding(script, stmt, seen)


def _giving(script: Script, node: ast.Name | ast.Attribute) -> Iterator[ast.stmt]:
    names = script.names
    uses: list[ast.Name | ast.Attribute]
    if isinstance(node, ast.Name):
        scope = names.scope_of[node]
        for b in names.bindings(scope, node.id):
            if b.how in ("assign", "aug", "for") and names.function(b.target) is names.function(node):
                yield names.statement(b.target)
        uses = [u for u in names.uses(scope, node.id) if names.function(u) is names.function(node)]
    else:
        keys = list(script.values.keys(node))
        yield from (s for key in keys for s in script.roles.writes(key))
        uses = [u for u in names.attributes(node.attr) if isinstance(u.ctx, ast.Load) and set(script.values.keys(u)) & set(keys)]
    yield from (names.statement(u) for u in uses if _changed(names.parent, u))


def _changed(parent: dict[ast.AST, ast.AST], node: ast.AST) -> bool:
    """``rows.append(…)``, ``rows[i] = …``, ``random.shuffle(rows)``: what fills a list or puts it in another order."""
    above = parent[node]
    if isinstance(above, ast.Attribute):
        return above.attr in MUTATORS and isinstance(parent[above], ast.Call)
    if isinstance(above, ast.Subscript):
        return above.value is node and isinstance(above.ctx, ast.Store)
    return isinstance(above, ast.Call) and above.func is not node and isinstance(parent[above], ast.Expr)


# ---------------------------------------------------------------------- the data sets of training loaders
#: methods of a data set that draw nothing
_KEEPS = frozenset({"set_epoch", "train", "eval", "close", "cpu", "cuda", "to"})


def data_redrawn(script: Script) -> Iterator[tuple[ast.stmt, str]]:
    """The statements between the epochs that draw the data of a training loader anew, each once.

    With each stands the method of the data set that may do so, as written; '' where the program puts something into the data set by itself.
    """
    data = frozenset(v for c in script.train_loader_calls if (d := script.argument(c, "dataset", 0)) is not None for v in script.values.eval(d))
    told: set[ast.stmt] = set()
    for node in script.names.nodes:
        found: list[tuple[ast.stmt, str]] = []
        if isinstance(node, ast.Call) and (called := _redraws(script, node, data)) and between(script, node):
            found = [(script.names.statement(node), called)]
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and _changes(script, node, data) and between(script, node):
            found = [(stmt, "") for stmt in _drawn_with(script, node)]
        for stmt, method in found:
            if stmt not in told and isinstance(stmt, ast.Expr | ast.Assign | ast.AugAssign):
                told.add(stmt)
                yield stmt, method


def _redraws(script: Script, call: ast.Call, data: Vals) -> str:
    """The method of the training data that the call runs, as written, if it may draw."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr in _KEEPS or func.attr.startswith("__") or not _of_data(script, func.value, data):
        return ""
    targets = [f for f, _ in script.values.targets(call)]
    return script.text(func) if not targets or any(draws(script.roles, f) for f in targets) else ""


def _changes(script: Script, stmt: ast.Assign | ast.AugAssign | ast.Expr, data: Vals) -> bool:
    """Whether the statement puts something into the training data: ``data.pairs = …``, ``random.shuffle(data.rows)``."""
    if isinstance(stmt, ast.Expr):
        given = stmt.value.args if isinstance(stmt.value, ast.Call) else []
        return any(isinstance(a, ast.Attribute) and _of_data(script, a.value, data) for a in given) and draws(script.roles, stmt)
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
    return any(_of_data(script, n.value, data) for t in targets for n in walk(t) if isinstance(n, ast.Attribute) and n.attr not in ("transform", "dataset"))


def _drawn_with(script: Script, stmt: ast.stmt) -> Iterator[ast.stmt]:
    """The statement, if it draws, and those between the epochs that draw what it uses."""
    if draws(script.roles, stmt):
        yield stmt
    for n in (n for n in walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
        for b in script.names.bindings(script.names.scope_of[n], n.id):
            if b.how == "assign" and b.value is not None and draws(script.roles, b.value) and between(script, b.value):
                yield script.names.statement(b.value)
        for use in script.names.uses(script.names.scope_of[n], n.id):
            above = script.names.parent[use]  # np.random.shuffle(order)
            given = isinstance(above, ast.Call) and above.func is not use and _changed(script.names.parent, use)
            if given and draws(script.roles, above) and between(script, above):
                yield script.names.statement(use)


def _of_data(script: Script, node: ast.expr, data: Vals) -> bool:
    """``train_set``, ``train_loader.dataset``: what a training loop's samples come from."""
    if isinstance(node, ast.Attribute) and node.attr == "dataset":
        return any(isinstance(v.node, ast.Call) and v.node in script.train_loader_calls for v in script.roles.loaders_of(node.value))
    return bool(script.values.eval(node) & data)
