"""How ranks decide a test together, so that it falls out as in one process: by which part of it, and by whose value.

A draw is rank 0's, and so is the time where it is a number: each rank draws for itself, and that any of W ranks draws a yes of probability p has the
probability 1 - (1 - p)^W. A number that is a mean over the batch is averaged over the ranks, whose shares are equal: that is the number of the whole batch.
A flag, a clock that is compared and a number that is not finite are any rank's: one is enough. So is a gradient that a loss has. A flag that numbers
have set is rank 0's, as these are: a patience that runs out, where each rank has evaluated on data that it has drawn, runs out on one of W ranks sooner
than in one process. What else is taken from a batch nobody can decide for the whole of it.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.control import uniform
from dpmigrate.facts.library import NUMBERS
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.origins import of_clock, of_data, origins
from dpmigrate.facts.randomness import drawing
from dpmigrate.facts.ranks import asks_files, reached_together
from dpmigrate.facts.roles import Roles, element
from dpmigrate.facts.sampled import made_global
from dpmigrate.facts.scopes import Binding

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: what takes a number out of a tensor and leaves it what it is
_TAKES = frozenset({"item", "detach", "cpu", "clone", "double", "float"})
#: functions of numbers; what they are given decides what they give
_OF_NUMBERS = NUMBERS | {"?.bool", "math.exp", "math.log", "math.sqrt", "math.fabs", "numpy.abs"}


#: comparisons of numbers; of flags and of what is None, there are others
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class By(enum.Enum):
    """Whose value decides."""

    ANY = "any rank's yes"
    ALL = "the yes of all ranks"
    MAIN = "rank 0's value"
    MEAN = "the mean over the ranks"


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A part of a test, with whose value of it decides."""

    node: ast.expr
    by: By


def decided(script: Script, test: ast.expr, *, number: bool = False) -> list[Part] | None:
    """The parts of a test by which the ranks decide it alike; None where what a rank has of the batch does not say what the whole batch would.

    ``number``: it is no test, and its value is to be the same on all ranks.
    """
    if in_training(script, test):
        found = _parts(script, test, frozenset((test, *script.course.tests)), number)
    elif number or asks_files(script.roles, test) or _by_numbers(script.roles, test):
        found = [Part(test, By.MAIN)]  # any rank's number would say yes more often than one process's
    else:
        found = [Part(test, By.MAIN if drawn(script.roles, test) else By.ANY)]
    return None if found is None else [p for part in found for p in _wheredrawn(script, part)]


def in_training(script: Script, node: ast.AST) -> bool:
    """Whether the node runs in training steps, or in a function that serves them too; ``no_grad`` leaves it one of a step."""
    return script.modules.in_step(node) or script.roles.region(node) in ("train", "both")


def _parts(script: Script, test: ast.expr, known: frozenset[ast.expr], number: bool) -> list[Part] | None:
    """The parts of ``test``, where the ranks decide the tests that are ``known`` together: what these decide is then alike."""
    if asks_files(script.roles, test):
        return [Part(test, By.MAIN)]
    if uniform(script.names, test, known):
        return []
    data = of_data(script.roles, test, (s.size for s in made_global(script)))
    if isinstance(test, ast.BoolOp):
        return _joined(test, [_parts(script, v, known, False) for v in test.values], data)
    if not data:
        setting = [] if drawn(script.roles, test) else _flag_setters(script, test, known)
        if not setting:
            return [Part(test, By.MAIN if number or _by_main(script, test) else By.ANY)]
        # the flag is that of all ranks where they set it together; they take the turns of these loops together, too (DPM322, DPM610)
        loops = (*script.repeating_loops, *(b.node for b in script.roles.train_loops))
        # what the setters have left in an earlier turn may decide them again: those of all ranks, if they decide alike
        known |= {*setting, *(a.test for a in loops if isinstance(a, ast.While))}
        decided_there = [_parts(script, t, known, False) for t in setting]
        return None if None in decided_there else [p for parts in decided_there for p in parts or ()]
    asked = _asks_finite(test) or _asks_gradient(test)
    if asked is not None:
        return [Part(test, asked)]
    if _mean(script, test, known, set()):
        return [Part(test, By.MEAN)]
    inner: list[ast.expr] = []
    if isinstance(test, ast.UnaryOp):
        inner = [test.operand]
    elif isinstance(test, ast.Compare):
        inner = [test.left, *test.comparators]
    elif isinstance(test, ast.BinOp):
        inner = [test.left, test.right]
    elif isinstance(test, ast.Call) and script.names.dotted(test.func) in _OF_NUMBERS and not test.keywords:
        inner = test.args
    found = [_parts(script, n, known, not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))) for n in inner]
    flat = [p for f in found if f is not None for p in f]
    return flat if inner and None not in found else None


def _flag_setters(script: Script, test: ast.expr, known: frozenset[ast.expr]) -> list[ast.expr]:
    """The tests of a batch's numbers under which a flag is set that ``test`` reads: ``if loss.item() < target: done = True``."""
    names, found = script.names, dict[ast.expr, None]()
    for n, _ in origins(script.roles, test, returned=True):
        if not names.is_inside(n, test) and in_training(script, n):
            around = (a.test for a in names.ancestors(n) if isinstance(a, ast.If | ast.While))
            found.update((t, None) for t in around if t not in known and of_data(script.roles, t) and not uniform(names, t, known))
    return list(found)


def _by_main(script: Script, test: ast.expr) -> bool:
    """Whether rank 0 decides what is made of no batch: a draw, and numbers of an evaluation, but not the clock."""
    return (_by_numbers(script.roles, test) and not of_clock(script.roles, test)) or drawn(script.roles, test)


def _by_numbers(roles: Roles, test: ast.expr) -> bool:
    """Whether something is compared, or numbers that are have set the flag, also under a test: ``if self.counter >= patience: self.stop = True``."""
    if any(isinstance(n, ast.Compare) for n in walk(test)):
        return True
    for n, _ in origins(roles, test, returned=True):
        if roles.names.is_inside(n, test):
            continue
        tests = [a.test for a in roles.names.ancestors(n) if isinstance(a, ast.If | ast.While)]
        if any(isinstance(c, ast.Compare) and isinstance(c.ops[0], _ORDERS) for e in (n, *tests) for c in walk(e)):
            return True
    return False


def _joined(test: ast.BoolOp, found: list[list[Part] | None], data: bool) -> list[Part] | None:
    """``a or b`` in one piece where both are decided alike, else each for itself, which all ranks come to since they agree on what stands before it."""
    parts = [p for f in found if f is not None for p in f]
    if None in found:
        return None
    kinds = {p.by for p in parts}
    in_one = kinds == {By.MAIN} or (kinds == {By.ANY} and (isinstance(test.op, ast.Or) or not data or len(parts) == 1))
    return [Part(test, *kinds)] if in_one and all(p.node in test.values for p in parts) else parts


def _asks_finite(test: ast.expr) -> By | None:
    """Who decides whether a number is finite: it is not, if it is not on one rank; None where the test asks something else.

    ``torch.isnan(loss)``, ``not math.isfinite(loss.item())``, ``loss != loss``, ``torch.isfinite(loss).all()``.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return By.ANY if _asks_finite(test.operand) is By.ALL else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq):
        return By.ANY if ast.dump(test.left) == ast.dump(test.comparators[0]) else None
    methods = set()
    while isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in ("any", "all", "item") and not test.args:
        methods.add(test.func.attr)
        test = test.func.value
    if isinstance(test, ast.Call) and last(test.func) in ("isnan", "isinf") and "all" not in methods:
        return By.ANY
    return By.ALL if isinstance(test, ast.Call) and last(test.func) == "isfinite" and "any" not in methods else None


def _asks_gradient(test: ast.expr) -> By | None:
    """Who decides whether a value of the batch has a gradient, ``loss.requires_grad``: that of the whole batch has one if any rank's part of it has.

    A rank whose part alone has none ends the program with torch's own words, where it goes backward.
    """
    return By.ANY if isinstance(test, ast.Attribute) and test.attr == "requires_grad" else None


# ------------------------------------------------------------------ draws
def drawn(roles: Roles, node: ast.AST) -> bool:
    """Whether a draw may go into the value, through variables and functions of the program, and nothing of a batch."""
    return not of_data(roles, node) and any(isinstance(n, ast.Call) and drawing(roles, n) for n, _ in origins(roles, node))


def _wheredrawn(script: Script, part: Part) -> list[Part]:
    """The draw where a variable is given it, if that is read elsewhere too: ``if coin < p:`` may then say one thing here and another one there."""
    names, found = script.names, []
    if part.by is not By.MAIN:
        return [part]
    for n in (n for n in walk(part.node) if isinstance(n, ast.Name) and drawn(script.roles, n) and not too_large(script, n)):
        bound = list(names.bindings(names.scope_of[n], n.id))
        value = bound[0].value if len(bound) == 1 and bound[0].how == "assign" and not bound[0].path else None
        elsewhere = any(not names.is_inside(r, part.node) for r in names.uses(names.scope_of[n], n.id) if isinstance(r.ctx, ast.Load))
        if not isinstance(value, ast.expr) or not elsewhere or names.function(value) is not names.function(n) or not drawn(script.roles, value):
            return [part]
        if not reached_together(script.roles, names.statement(value)):
            return [part]
        found.append(Part(value, By.MAIN))
    return found if found and not any(drawing(script.roles, c) for c in walk(part.node) if isinstance(c, ast.Call)) else [part]


def too_large(script: Script, node: ast.expr) -> bool:
    """Whether the expression may be a loader, a data set, a model or an optimizer, which rank 0 must not send to the others."""
    for v in script.values.eval(node):
        bases = [script.names.dotted(b) for k in script.values.defs.bases(v.cls) for b in k.bases] if v.cls is not None else []
        if v.kind == "wrapped" or v in script.roles.models or any(q.startswith(("torch.nn.", "torch.utils.data.", "torch.optim.")) for q in (v.qual, *bases)):
            return True
    return False


# ------------------------------------------------------------------ means over the batch
def _mean(script: Script, node: ast.expr, known: frozenset[ast.expr], seen: set[ast.AST]) -> bool:
    """Whether the mean of the value over ranks with equal shares is the value of the whole batch: of losses that are means, what is linear in them.

    Tests that are ``known`` are decided alike on all ranks, so what they decide may go into the value.
    """

    def of(part: ast.expr) -> bool:
        return _mean(script, part, known, seen)

    if node in seen or uniform(script.names, node, known):
        return True
    seen.add(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TAKES and not node.args:
        return of(node.func.value)
    if isinstance(node, ast.Call) and script.names.dotted(node.func) == "?.float" and len(node.args) == 1:
        return of(node.args[0])
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return of(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return of(node.operand)
    if isinstance(node, ast.IfExp):  # ema = x if ema is None else 0.9 * ema + 0.1 * x
        asks_none = isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.Is | ast.IsNot)
        alike = of(node.test.left) if asks_none and isinstance(node.test, ast.Compare) else uniform(script.names, node.test, known)
        return alike and of(node.body) and of(node.orelse)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return of(node.left) and of(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        plain = uniform(script.names, node.right, known) or (isinstance(node.op, ast.Mult) and uniform(script.names, node.left, known))
        return plain and of(node.left) and of(node.right)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        bound = list(script.names.bindings(script.names.scope_of[node], node.id))
        return bool(bound) and all(_given_mean(script, node, b, known, seen) for b in bound)
    return isinstance(node, ast.Call) and script.losses.norm(node).norm is Norm.MEAN


def _given_mean(script: Script, read: ast.Name, b: Binding, known: frozenset[ast.expr], seen: set[ast.AST]) -> bool:
    """Whether every rank gives the variable that is read a mean at the same turns."""
    if b.how == "aug" and isinstance(b.value, ast.AugAssign):
        scaled = isinstance(b.value.op, ast.Mult | ast.Div) and uniform(script.names, b.value.value, known)
        given = scaled or (isinstance(b.value.op, ast.Add | ast.Sub) and _mean(script, b.value.value, known, seen))
    elif b.how == "assign" and isinstance(b.value, ast.expr):
        value = element(b.value, b.path)
        given = _mean(script, value, known, seen) if not b.path or value is not b.value else script.losses.norm(read).norm is Norm.MEAN
    else:
        return False
    around = [a for a in script.names.ancestors(b.target) if isinstance(a, ast.If | ast.While | ast.ExceptHandler)]
    return given and all(not isinstance(a, ast.ExceptHandler) and (a.test in known or uniform(script.names, a.test, known)) for a in around)
