"""What changes the course of a training beside its gradients: learning rates, weights, optimizers, gradients set by hand, and what later steps go by.

Where one rank does it, or by another number, its weights are no longer those of the others, and nothing puts them together again.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dpmigrate.facts.control import uniform
from dpmigrate.facts.decisions import drawn, in_training
from dpmigrate.facts.kept import switched
from dpmigrate.facts.library import INNER_MODULES, PARAMETERS
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.origins import of_clock, of_data, of_weights, origins
from dpmigrate.facts.randomness import drawing
from dpmigrate.facts.ranks import local_tests
from dpmigrate.facts.sampled import made_global
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.steps import clips, in_optimizer
from dpmigrate.facts.stored import Stored

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: what an optimizer is told of its groups
_SETTINGS = frozenset({"lr", "momentum", "weight_decay", "betas", "eps", "initial_lr"})
_HOLDING = INNER_MODULES | PARAMETERS
#: attributes by which weights are written
_TENSORS = frozenset({"data", "weight", "bias"})
#: methods in place that leave the values of a weight
_NO_VALUES = frozenset({"requires_grad_", "zero_", "share_memory_", "retain_grad", "pin_memory_"})
_ANEW = frozenset({"reset_parameters", "apply"})
_SCHEDULERS = "torch.optim.lr_scheduler."
_DEPTH = 4


class Kind(enum.Enum):
    """What is changed."""

    RATE = "the learning rate or another setting of the optimizer"
    GRADIENT = "gradients"
    WEIGHT = "weights"
    STATE = "the state of a model, an optimizer or a schedule"
    OPTIMIZER = "which optimizer trains, and what"
    FROZEN = "which parameters get gradients"
    WAY = "a variable that later training steps read"
    PASS = "passes through the model"


#: what is drawn for weights comes from one stream (DPM129), what is drawn for a step's samples from the rank's own
_DRAWN = (Kind.RATE, Kind.OPTIMIZER, Kind.PASS)
#: draws of several things, and in place
_SEVERAL = frozenset({"sample", "choices", "shuffle", "permutation", "dirichlet", "multinomial", "multivariate_normal", "bytes"})
#: how many arguments a draw of NumPy has before its size, where these are not two: those of distributions with fewer parameters
_SIZED = {
    **dict.fromkeys(("rand", "randn", "random", "random_sample", "ranf", "sample", "standard_normal", "standard_exponential", "standard_cauchy"), 0),
    **dict.fromkeys(("choice", "exponential", "poisson", "geometric", "chisquare", "rayleigh", "weibull", "pareto", "power", "zipf", "logseries"), 1),
    **dict.fromkeys(("standard_t", "standard_gamma"), 1),
}


@dataclass(frozen=True, eq=False, slots=True)
class Steered:
    """A place that changes the course; ``values`` are what it is given that is no setting."""

    node: ast.AST
    kind: Kind
    values: tuple[ast.expr, ...] = ()


def steered(script: Script) -> list[Steered]:
    """Every such place; those of weights, states and optimizers as far as they stand in the loops that train."""
    found = [*_rates(script), *_gradients(script), *_frozen(script), *_passes(script)]
    loops = [*script.repeating_loops, *(b.node for b in script.roles.train_loops)]
    entered = {f for a in loops for f in script.roles.all_entered(a)}
    for node in script.names.nodes:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and not script.roles.inside_module(node) and not in_optimizer(script.roles, node):
            if script.names.function(node) in entered or any(script.names.is_inside(node, a) for a in loops):
                found += _by_statement(script, node)
    known = {script.names.statement(c.node) for c in found}
    found += [Steered(s.node, Kind.WAY, _numbers(script, s, number)) for s, number in switched(script) if s.node not in known]
    return found


def _numbers(script: Script, s: Stored, number: bool) -> tuple[ast.expr, ...]:
    """The values that are numbers, of the batch or of the clock; what differs by a test is a matter of the test."""
    return tuple(v for v in s.values if not isinstance(v, ast.IfExp) and (number or of_clock(script.roles, v)))


class Course:
    """By what ranks would part, and what the migrated program therefore decides for all of them together."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._steered = steered(script)

    @cached_property
    def tests(self) -> tuple[ast.expr, ...]:
        """The tests round what changes the course, as far as they may fall out differently."""
        return tuple({test: None for s in self._steered for test in _parting(self._script, s)})

    @cached_property
    def numbers(self) -> tuple[tuple[Steered, list[ast.expr]], ...]:
        """The places that are given numbers which differ, with these."""
        found = ((s, [v for v in s.values if differs(self._script, v) or (s.kind in _DRAWN and drawn(self._script.roles, v))]) for s in self._steered)
        return tuple((s, values) for s, values in found if values)


def _parting(script: Script, place: Steered) -> Iterator[ast.expr]:
    """The tests round a place by which ranks would part."""
    within = [n.test for n in walk(script.names.statement(place.node)) if isinstance(n, ast.IfExp)]
    for test in (*local_tests(script.roles, place.node), *within):
        if place.kind is Kind.RATE:
            parts = script.roles.about_numbers(test) if test not in within else not uniform(script.names, test)
        elif place.kind is Kind.WAY:  # what is drawn for the samples of a rank is its own
            parts = not _is_option(script, test) and differs(script, test, form=False)
        elif place.kind is Kind.PASS:  # the ranks come to each pass as often
            parts = drawn(script.roles, test)
        else:
            parts = differs(script, test) or drawn(script.roles, test)
        if parts:
            yield test


def _is_option(script: Script, test: ast.expr) -> bool:
    """``if mask:``, ``if not mask:`` of a parameter, which says whether it is given, or what is wanted."""
    node = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(node, ast.Name) and any(b.how == "param" for b in script.names.bindings(script.names.scope_of[node], node.id))


def differs(script: Script, value: ast.expr, *, form: bool = True) -> bool:
    """Whether the value is made of a rank's part of the batch, or of its clock."""
    if uniform(script.names, value) or (isinstance(value, ast.Name) and script.executed.the_same(value, ())):
        return False
    of_batch = in_training(script, value) and of_data(script.roles, value, (s.size for s in made_global(script)), form=form)
    return (of_batch and not of_weights(script.roles, value)) or of_clock(script.roles, value)


def _rates(script: Script) -> Iterator[Steered]:
    """Scheduler steps and ``group["lr"] = …``, wherever they stand."""
    for call, func in script.methods("step"):
        if any(v.qual.startswith(_SCHEDULERS) for v in script.values.eval(func.value)):
            yield Steered(call, Kind.RATE)
    for node in script.names.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant) and node.slice.value in _SETTINGS:
            stmt = script.names.statement(node)
            value = stmt.value if isinstance(stmt, ast.Assign | ast.AugAssign) else None
            yield Steered(node, Kind.RATE, (value,) if value is not None and not isinstance(value, ast.IfExp) else ())


def _frozen(script: Script) -> Iterator[Steered]:
    """Where parts of a wrapped model are frozen and thawed."""
    for change in script.changes:
        if change.thaws:
            stmt = script.names.statement(change.node)
            given = [stmt.value] if isinstance(stmt, ast.Assign) else []
            if isinstance(change.node, ast.Call):
                given = [*change.node.args, *(k.value for k in change.node.keywords)]
            yield Steered(change.node, Kind.FROZEN, tuple(v for v in given if not isinstance(v, ast.IfExp)))


def _passes(script: Script) -> Iterator[Steered]:
    """Where a training step calls a model, with single numbers that it draws and gives to it, and where it says what its loss is."""
    for call in script.roles.calls:
        if script.roles.model_vals(call.func) and not script.roles.inside_module(call) and in_training(script, call):
            given = [*call.args, *(k.value for k in call.keywords)]
            yield Steered(call, Kind.PASS, tuple(v for v in given if _single_draw(script, v)))
    for attribute in script.names.attributes("backward"):
        loss = attribute.value
        if isinstance(loss, ast.Name) and not script.roles.inside_module(loss) and in_training(script, loss):
            bound = script.names.bindings(script.names.scope_of[loss], loss.id)
            yield from (Steered(b.target, Kind.PASS) for b in bound if b.how in ("assign", "aug"))


def _single_draw(script: Script, value: ast.expr) -> bool:
    """Whether a value is made of a draw of Python's or NumPy's that gives one thing: ``random.choice(tasks)``, ``np.random.uniform(0, 1)``."""
    if not drawn(script.roles, value):
        return False
    draws = [n for n, _ in origins(script.roles, value) if isinstance(n, ast.Call) and drawing(script.roles, n)]
    return all(_of_one(script, n) for n in draws)


def _of_one(script: Script, draw: ast.Call) -> bool:
    """Whether a draw gives one thing: those of NumPy have a size as third argument, or where ``_SIZED`` says. One in a loop over samples gives one for each."""
    dotted = script.names.dotted(draw.func)
    head, _, word = dotted.rpartition(".")
    if word in _SEVERAL or any(k.arg in ("size", "k") for k in draw.keywords) or _by_sample(script, draw):
        return False
    return head == "random" or (head == "numpy.random" and len(draw.args) <= _SIZED.get(word, 2))


def _by_sample(script: Script, draw: ast.Call) -> bool:
    """Whether a draw is made anew for each sample of the batch: ``for u in users.tolist(): negatives.append(random.randrange(n))``."""
    outer = {*script.repeating_loops, *(b.node for b in script.roles.train_loops)}
    for a in script.names.ancestors(draw):
        if a in outer or isinstance(a, FunctionNode):
            break
        over: list[ast.expr] = []
        if isinstance(a, ast.For):
            over = [a.iter]
        elif isinstance(a, ast.While):
            over = [a.test]
        elif isinstance(a, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            over = [g.iter for g in a.generators]
        if any(of_data(script.roles, e) or any(script.sizes.means(n) for n in walk(e) if isinstance(n, ast.Name | ast.Attribute)) for e in over):
            return True
    return False


def _gradients(script: Script) -> Iterator[Steered]:
    """Where gradients are clipped, set or changed in place."""
    for n in script.names.nodes:
        by_hand = isinstance(n, ast.Attribute) and n.attr == "grad" and (isinstance(n.ctx, ast.Store) or _in_place(script, n))
        if by_hand or (isinstance(n, ast.Expr) and clips(script.roles, n)):
            yield Steered(n, Kind.GRADIENT)


def _in_place(script: Script, grad: ast.Attribute) -> bool:
    above = script.names.parent[grad]
    above = script.names.parent[above] if isinstance(above, ast.Attribute) and above.attr == "data" else above
    return isinstance(above, ast.Attribute) and above.attr.endswith("_") and isinstance(script.names.parent[above], ast.Call)


def _by_statement(script: Script, stmt: ast.Assign | ast.AugAssign | ast.Expr) -> Iterator[Steered]:
    value = stmt.value
    if isinstance(stmt, ast.Expr):
        if isinstance(value, ast.Call):
            yield from _by_call(script, stmt, value)
        return
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
    if any(_is_weight(script, t) for t in targets):
        yield Steered(stmt, Kind.WEIGHT, (value,))
    elif any(v.node is o.call for v in script.values.eval(value) for o in script.roles.optimizers):
        rates = [k.value for n in walk(value) if isinstance(n, ast.Call) for k in n.keywords if k.arg in _SETTINGS]
        yield Steered(stmt, Kind.OPTIMIZER, tuple(rates))


def _by_call(script: Script, stmt: ast.Expr, call: ast.Call) -> Iterator[Steered]:
    func = call.func
    if script.names.dotted(func).startswith(("torch.nn.init.", "torch.nn.utils.prune.")):
        if any(_is_weight(script, a) or part_of_model(script, a) for a in call.args[:1]):
            yield Steered(stmt, Kind.WEIGHT)
    elif isinstance(func, ast.Attribute) and func.attr in ("load_state_dict", "add_param_group"):
        if _has_state(script, func.value):
            yield Steered(stmt, Kind.STATE)
    elif isinstance(func, ast.Attribute) and func.attr in _ANEW:
        if part_of_model(script, func.value):
            yield Steered(stmt, Kind.WEIGHT)
    elif isinstance(func, ast.Attribute) and func.attr.endswith("_") and func.attr not in _NO_VALUES:
        given = [*call.args, *(k.value for k in call.keywords)]
        node: ast.expr = func.value
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # p.mul_(0.9).add_(x)
            given += node.args
            node = node.func.value
        if _is_weight(script, node):
            yield Steered(stmt, Kind.WEIGHT, tuple(given))


def _has_state(script: Script, node: ast.expr) -> bool:
    """Whether the expression is a model or a part of one, an optimizer or a schedule."""
    made = {o.call for o in script.roles.optimizers}
    return part_of_model(script, node) or any(v.node in made or v.qual.startswith(_SCHEDULERS) for v in script.values.eval(node))


# ------------------------------------------------------------------ weights
def _is_weight(script: Script, node: ast.expr) -> bool:
    """``model.fc.weight``, ``model.fc.bias.data[0]``, ``p`` and ``p.data`` of ``for p in model.parameters()``; not their gradients."""
    words = {n.attr for n in walk(node) if isinstance(n, ast.Attribute)}
    if "grad" in words:
        return False
    return (bool(words & _TENSORS) and part_of_model(script, node)) or _goes_through(script, node, _DEPTH)


def _goes_through(script: Script, node: ast.expr, depth: int) -> bool:
    """Whether the expression belongs to what a loop over weights gives."""
    setting = False
    while isinstance(node, ast.Attribute | ast.Subscript):
        setting = setting or is_setting(node)
        node = node.value
    if not isinstance(node, ast.Name) or setting or not depth:
        return False
    return any(_of_weights(script, b, node, depth) for b in script.names.bindings(script.names.scope_of[node], node.id))


def _of_weights(script: Script, b: Binding, read: ast.Name, depth: int) -> bool:
    if b.how != "for" or not isinstance(b.value, ast.expr) or not script.names.is_inside(read, script.names.statement(b.target)):
        return False
    within = (n for n in walk(b.value) if isinstance(n, ast.Name))  # for group in optimizer.param_groups: for p in group["params"]
    return any(holds_weights(script, n) for n in asked(script, b.value)) or any(_goes_through(script, n, depth - 1) for n in within)


def holds_weights(script: Script, node: ast.Attribute) -> bool:
    """``model.parameters``, ``optimizer.param_groups``."""
    if node.attr == "param_groups":
        return any(v.node is o.call for v in script.values.eval(node.value) for o in script.roles.optimizers)
    return node.attr in _HOLDING and bool(script.roles.model_vals(node.value))


def asked(script: Script, node: ast.expr, depth: int = _DEPTH) -> Iterator[ast.Attribute]:
    """The attributes that the expression is made of, also through variables: ``params = list(model.parameters())``; of ``parts["loader"]`` those of that
    part alone, where it is seen what the container holds.
    """
    todo: list[ast.AST] = [node]
    while todo:
        n = todo.pop(0)
        held = [v.node for v in script.values.eval(n)] if isinstance(n, ast.Subscript) and depth else []
        if held and all(isinstance(h, ast.expr) for h in held):
            for part in held:
                assert isinstance(part, ast.expr)
                yield from asked(script, part, depth - 1)
            continue
        if isinstance(n, ast.Attribute):
            yield n
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and depth:
            for given in script.roles.given(n):
                yield from asked(script, given, depth - 1)
        todo += ast.iter_child_nodes(n)


def is_setting(node: ast.expr) -> bool:
    """``group["lr"]``, not ``group["params"]``."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) and node.slice.value != "params"


def part_of_model(script: Script, node: ast.expr) -> bool:
    """``model``, ``model.module.fc``, ``model.layers[0].weight``."""
    while not script.roles.model_vals(node):
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return False
        node = node.value
    return True
