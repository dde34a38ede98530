"""Where training makes the samples of a batch depend on each other: products of samples, statistics, orders, places, losses known for it.

``pairs`` finds the expressions; what is asked here is whether a loss is made of them.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.library import CUTS
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.neighbours import neighbours
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.pairs import Product, along_batch, decomposed, numbered, of_one_sample, of_samples, placed, products
from dpmigrate.facts.passes import entered, methods_of_model
from dpmigrate.facts.reductions import over_batch, statistic
from dpmigrate.facts.stateless import stateless

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

_NAMES = ("ntxent", "nt_xent", "supcon", "simclr", "infonce", "info_nce", "contrastive", "npair", "batchhard", "tripletsemihard", "clip_loss", "cliploss")


@dataclass(frozen=True, eq=False, slots=True)
class Coupling:
    """A place where the samples of a batch meet.

    ``kind``: compared (with each other), classes (that number the samples), statistic (of the batch), ordered (put in order or in proportion),
    decomposed (seen as one matrix), given (a model is given what is taken over the batch), beside (compared with their neighbours),
    placed (taken by their place), named (a loss known for it).

    ``certain``: it is another loss on each rank; else it may be, by what the first axis is, or by what the places mean.
    """

    node: ast.expr
    kind: str
    certain: bool = True


def couplings(script: Script) -> Iterator[Coupling]:
    """Every such place that training comes to."""
    trained = [p.node for p in products(script.roles) if script.roles.region(p.node) in ("train", "both") and _of_the_batch(script, p)]
    yield from (Coupling(node, "compared") for node in trained)
    for call in numbered(script.roles):
        if not trained and script.roles.region(call) in ("train", "both"):
            yield Coupling(call, "classes")
    methods = {f for p in script.roles.detours for f in entered(script.roles, p)} | set(_losses_of_models(script))
    for call in script.roles.calls:
        if statistic(script.names, call) and _reaches_loss(script, call, methods):
            yield Coupling(call, "statistic")
        elif along_batch(script.roles, call) and _reaches_loss(script, call, methods):
            yield Coupling(call, "ordered")
        elif decomposed(script.roles, call) and _reaches_loss(script, call, methods):
            yield Coupling(call, "decomposed", certain=False)
    for p in script.roles.training_passes:
        given = [*p.call.args, *(k.value for k in p.call.keywords)]
        yield from (Coupling(e, "given") for e in given if over_batch(script.roles, e))
    beside = [m for m in neighbours(script.roles) if _reaches_loss(script, m.node, methods)]
    yield from (Coupling(m.node, "beside", m.certain) for m in beside)
    for part in placed(script.roles):
        if _reaches_loss(script, part, methods) and not any(script.names.is_inside(part, m.node) for m in beside):
            yield Coupling(part, "placed", certain=False)
    for call in script.roles.calls:
        if script.roles.region(call) in ("train", "both") and any(w in name.lower() for name in _called(script, call) for w in _NAMES):
            if not _part_of_model(script, call) and not _seen(script, call):
                yield Coupling(call, "named")


def _losses_of_models(script: Script) -> Iterator[FunctionNode]:
    """The methods that training calls of models and that use nothing of them: losses of their outputs, and no passes."""
    for call, func in ((c, c.func) for c in script.roles.calls if isinstance(c.func, ast.Attribute)):
        models = script.roles.model_vals(func.value)
        if models and stateless(script.roles, models, func.attr) and script.roles.region(call) in ("train", "both"):
            yield from methods_of_model(script.roles, call)


def _of_the_batch(script: Script, product: Product) -> bool:
    """Whether the product is one of samples with samples.

    A model compares the parts of a sample too: there it has to be seen that both sides are rows of the batch.
    """
    if not of_samples(script.roles, product):
        return False
    if not _inside_models(script, product.node, frozenset()) or _in_loss(script, product.node):
        return True
    return product.flat and not of_one_sample(script.roles, product)


def _inside_models(script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether the node stands in a model, or in a function that only models call."""
    function = script.names.function(node)
    if script.roles.inside_module(node) or function in seen:
        return True
    calls = script.values.callers.get(function, [])
    return bool(calls) and all(_inside_models(script, c, seen | {function}) for c in calls)


def _reaches_loss(script: Script, call: ast.expr, methods: set[FunctionNode]) -> bool:
    """Whether the value may be differentiated: in training, in a name that goes into the loss, in what a function or a method of the model returns."""
    function = script.names.function(call)
    if script.roles.inside_module(call) and not _in_loss(script, call):
        return function in methods
    if script.roles.region(call) not in ("train", "both"):
        return False
    stmt = script.names.statement(call)
    if isinstance(stmt, ast.Return):
        return not _without_gradient(script, call) or _weighs(script, function, frozenset())
    if any(script.names.is_inside(call, b) for b in script.roles.backwards):
        return True
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AugAssign) else []
    return script.roles.into_loss(*targets) or (bool(targets) and isinstance(function, FunctionNode) and _in_loss(script, call))


def _without_gradient(script: Script, node: ast.expr) -> bool:
    """Whether a number comes out that cannot be differentiated: numpy's, or of a value that is cut off."""
    nodes = [*walk(node), *itertools.takewhile(lambda a: not isinstance(a, ast.stmt), script.names.ancestors(node))]
    nodes += [m for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) for g in script.roles.given(n) for m in walk(g)]
    of_numpy = isinstance(node, ast.Call) and script.names.dotted(node.func).startswith("numpy.")
    return of_numpy or any(isinstance(n, ast.Attribute) and n.attr in CUTS for n in nodes)


def _weighs(script: Script, function: FunctionNode | ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether a call puts the number that the function returns into the loss of its batch; entries of a table are totals, which have rules of their own."""
    for call in script.values.callers.get(function, []):
        stmt = script.names.statement(call)
        targets = stmt.targets if isinstance(stmt, ast.Assign) else []
        names = [n for t in targets for n in walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        within = any(script.names.is_inside(call, b) for b in script.roles.backwards) or script.roles.into_loss(*names)
        outer = script.names.function(call)
        if within or (isinstance(stmt, ast.Return) and outer not in seen and _weighs(script, outer, seen | {function})):
            return True
    return False


def _part_of_model(script: Script, call: ast.Call) -> bool:
    """Whether a model of the program calls a part of itself, whose code is seen: an encoder of ``SimCLRBranch``."""
    seen = any(v.cls is not None for v in script.values.eval(call.func))
    return seen and script.roles.inside_module(call) and not _in_loss(script, call)


def _seen(script: Script, call: ast.Call) -> bool:
    """Whether the code of all that a call may enter is the program's own: what that does counts, and not what it is called."""
    called = script.values.eval(call.func)
    forwards = [v.cls is not None and script.values.defs.method(v.cls, "forward") is not None for v in called if v.kind == "object"]
    return bool(called) and all(forwards) and all(v.kind == "object" for v in called)


def _called(script: Script, call: ast.Call) -> Iterator[str]:
    """The names of what is called: as written, and of the class that made it."""
    yield ast.unparse(call.func).rsplit(".", 1)[-1]
    for v in script.values.eval(call.func):
        yield v.cls.name if v.cls is not None else v.qual.rsplit(".", 1)[-1]


def _in_loss(script: Script, node: ast.AST) -> bool:
    """Whether the node stands in a module that training calls beside the model: a loss of this program."""
    cls = script.names.cls(node)
    for call in script.roles.calls:
        if script.roles.inside_module(call) or script.roles.model_vals(call.func) or script.roles.region(call) not in ("train", "both"):
            continue
        if any(v.kind == "object" and v.cls is not None and cls in script.values.defs.bases(v.cls) for v in script.values.eval(call.func)):
            return True
    return False
