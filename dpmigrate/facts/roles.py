"""Who plays which part: models, optimizers, loaders, batch loops that train or evaluate, epoch loops.

Roles are decided by use, never by name: a model is what gives its parameters to an optimizer, a training loop is a loop
over a DataLoader that reaches ``backward()``, an evaluation loop is one that calls a model and does not.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Protocol

from dpmigrate.facts import passes, sources
from dpmigrate.facts.definitions import SAME, arguments, default, through
from dpmigrate.facts.loops import IN_STEP, BatchLoop, batch_loops, in_step, source
from dpmigrate.facts.names import FunctionNode, Loop, Names, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.optimizers import Optimizer, optimizers
from dpmigrate.facts.regions import Regions
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.values import NONE, Key, Vals, Values

DATA_LOADER = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
NO_GRAD = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"})


#: libraries whose functions make no loader, or one that is known by its own name
_LIBRARIES = (
    *("torch.", "torchvision.", "torchtext.", "numpy.", "pandas.", "sklearn.", "yaml.", "importlib.", "itertools.", "jinja2.", "unittest."),
    *("tqdm.", "rich.", "progressbar.", "alive_progress."),
)
_LOADER = re.compile(r"loader|(data|train|val|valid|test|dev)_?iter(ator)?$", re.IGNORECASE)
_PHASE_WORDS = frozenset({"training", "train", "is_train", "phase", "mode", "optimizer", "optim", "is_training", "split", "eval"})


class Asked(Protocol):
    """What an execution of the program on paper says where the text does not."""

    def passed_on(self, loop: ast.AST) -> set[tuple[int, int]] | None:
        """Where the loaders are made whose batches a loop takes one by one as they come; None where that is not known."""

    def alone(self, loops: Sequence[ast.For | ast.AsyncFor]) -> bool:
        """Whether loops take batches from loaders that nothing else takes any from."""

    def holds(self, made: tuple[int, int], optimizer: tuple[int, int]) -> bool:
        """Whether the modules that are made at a place hold all that the optimizers made at another one get."""

    def runs(self, stmt: ast.AST) -> bool:
        """Whether a statement may run: the execution came to it, or was not finished."""

    def holds_tensors(self, cls: ast.ClassDef, attribute: str) -> bool:
        """Whether an attribute of every object of a class holds tensors that are not trained."""

    def computes_nothing(self, call: ast.Call) -> bool:
        """Whether a method of a module gives plain numbers or texts and runs no layer that records a gradient."""


class Roles:
    """The parts that the objects of one module play."""

    def __init__(self, names: Names, values: Values, asked: Asked | None = None) -> None:
        self.names = names
        self.values = values
        self.asked = asked
        self.calls = [n for n in names.nodes if isinstance(n, ast.Call)]
        self._reach: dict[ast.AST, bool] = {}
        self._entered: dict[ast.AST, tuple[FunctionNode, ...]] = {}
        self._answers: dict[tuple[object, ...], bool] = {}

    # ------------------------------------------------------------------ models and optimizers
    @cached_property
    def optimizers(self) -> tuple[Optimizer, ...]:
        return optimizers(self)

    @cached_property
    def models(self) -> Vals:
        return NONE.union(*(o.models for o in self.optimizers))

    def model_vals(self, node: ast.AST) -> Vals:
        """The values of the expression that are models or their wrappers."""
        return frozenset(v for v in self.values.eval(node) if self.values.inner(v) & self.models)

    def wrapped(self, node: ast.AST) -> bool | None:
        """Whether the expression means the wrapper (True), the bare model (False) or either, as far as can be told (None)."""
        kinds = {v.kind == "wrapped" for v in self.model_vals(node)}
        return kinds.pop() if len(kinds) == 1 else None

    def surely_wrapped(self, node: ast.AST) -> bool:
        """Whether ``.module`` is right for whatever the expression may mean: not where it may also be a copy of the model, an optimizer, anything."""
        vals = self.present(node)
        return bool(vals) and all(v.kind == "wrapped" for v in vals) and not self._of_parts(node)

    def _of_parts(self, node: ast.AST, depth: int = 3) -> bool:
        """Whether it may be a part of the model as well, in a function that calls itself for each of them or in what such a function has collected:
        ``def layers(module): for child in module.children(): found += layers(child)``.
        """
        if isinstance(node, ast.Call):
            return any(self._goes_down(f) for f, _ in self.values.targets(node))
        if not isinstance(node, ast.Name | ast.Attribute) or not depth:
            return isinstance(node, ast.Subscript) and self._of_parts(node.value, depth)
        bound = list(self.names.bindings(self.names.scope_of[node], node.id)) if isinstance(node, ast.Name) else []
        if any(b.how == "param" and isinstance(f := self.names.function(b.target), FunctionNode) and self._goes_down(f) for b in bound):
            return True
        given = [b.value for b in bound if b.how == "for" and b.value is not None]
        return any(self._of_parts(e, depth - 1) for e in (*given, *self.given(node)))

    def _goes_down(self, function: FunctionNode) -> bool:
        """Whether a function calls itself, with an argument of which is not known what it is."""
        if function not in self._down:
            calls = (c for c in walk(function) if isinstance(c, ast.Call) and any(f is function for f, _ in self.values.targets(c)))
            self._down[function] = any(not self.values.eval(a) for c in calls for a in (*c.args, *(k.value for k in c.keywords)))
        return self._down[function]

    @cached_property
    def _down(self) -> dict[FunctionNode, bool]:
        return {}

    def present(self, node: ast.AST) -> Vals:
        """The values of the expression but None, which has no attributes."""
        return frozenset(v for v in self.values.eval(node) if not (isinstance(v.node, ast.Constant) and v.kind == "const" and v.node.value is None))

    @cached_property
    def forwards(self) -> tuple[passes.Pass, ...]:
        """Calls of a model or of its ``forward``, outside the classes of models themselves."""
        return tuple(passes.direct(self))

    @cached_property
    def forward_calls(self) -> tuple[ast.Call, ...]:
        """The calls of ``forwards``."""
        return tuple(p.call for p in self.forwards)

    @cached_property
    def _indirect(self) -> tuple[passes.Pass, ...]:
        return tuple(passes.indirect(self))

    @cached_property
    def detours(self) -> tuple[passes.Pass, ...]:
        """Passes in training that go round the wrapper."""
        return tuple(p for p in self._indirect if self.region(p.call) in ("train", "both"))

    @cached_property
    def training_passes(self) -> tuple[passes.Pass, ...]:
        """Every pass in training, whatever way it goes."""
        round_it = {p.call for p in self.detours}
        straight = (p for p in (*self.forwards, *passes.handed(self)) if p.call not in round_it and self.region(p.call) in ("train", "both"))
        return (*straight, *self.detours)

    def inside_module(self, node: ast.AST) -> bool:
        """Whether the node stands in a class of modules, and not in one that only holds models and trains them, nor in a method in which a model trains
        itself, or evaluates.
        """
        cls, defs = self.names.cls(node), self.values.defs
        return cls is not None and defs.is_module_class(cls) and not defs.holds_models(cls) and defs.within_own_loop(node) is None

    # ------------------------------------------------------------------ backward
    @cached_property
    def backwards(self) -> tuple[ast.Call, ...]:
        out = []
        for c in self.calls:
            if isinstance(c.func, ast.Attribute) and c.func.attr == "backward" and not isinstance(c.func.value, ast.Call | ast.Name):
                if self.names.dotted(c.func) == "":
                    out.append(c)
            elif isinstance(c.func, ast.Attribute) and c.func.attr == "backward":
                out.append(c)
        return tuple(c for c in out if not self._custom_function(c))

    def _custom_function(self, node: ast.AST) -> bool:
        cls = self.names.cls(node)
        return cls is not None and any(self.names.dotted(b).endswith("autograd.Function") for b in cls.bases)

    def entered(self, node: ast.AST) -> tuple[FunctionNode, ...]:
        """The functions of this module that the calls inside ``node`` may enter directly."""
        known = self._entered.get(node)
        if known is None:
            called = (f for n in walk(node) if isinstance(n, ast.Call) for f, _ in self.values.targets(n))
            asked = (f for n in walk(node) if n in self.values.asks for f in self.values.asks[n])
            known = self._entered[node] = (*called, *asked)
        return known

    def reaches_backward(self, node: ast.AST) -> bool:
        """Whether running the node may run a ``backward()``."""
        if node in self._reach:
            return self._reach[node]
        self._reach[node] = False
        found = any(self.names.is_inside(b, node) for b in self.backwards) or any(self.reaches_backward(f) for f in self.entered(node))
        self._reach[node] = found
        return found

    @cached_property
    def _loss_sources(self) -> frozenset[sources.Mark]:
        return sources.loss_sources(self)

    @cached_property
    def _loss_sources_anywhere(self) -> frozenset[sources.Mark]:
        return sources.loss_sources(self, regions=False)

    def may_reach_loss(self, *nodes: ast.AST) -> bool:
        """``into_loss``, also of evaluations: what can be asked before it is known which loops evaluate."""
        return bool(sources.marks(self, *nodes) & self._loss_sources_anywhere)

    def into_loss(self, *nodes: ast.AST) -> bool:
        """Whether a variable in the expressions may go into what is differentiated."""
        return bool(sources.marks(self, *nodes) & self._loss_sources)

    # ------------------------------------------------------------------ loaders and loops
    @cached_property
    def loader_calls(self) -> tuple[ast.Call, ...]:
        """The calls that make a DataLoader, here or in a function of another file."""
        return tuple(c for c in self.calls if self.makes_loader(c) or self._makes_own_loader(c) or self._makes_by_partial(c) or self._fetches_loader(c))

    def makes_loader(self, call: ast.Call) -> bool:
        """Whether the call is that of ``DataLoader`` itself, whose arguments can be read."""
        return self._is_loader_class(call.func)

    def _is_loader_class(self, node: ast.expr) -> bool:
        return self.names.dotted(node) in DATA_LOADER or any(v.kind == "ext" and v.qual in DATA_LOADER for v in self.values.eval(node))

    def _makes_own_loader(self, call: ast.Call) -> bool:
        """Whether the call makes an object of a class of this program that derives from ``DataLoader``; ``ddp.distribute`` divides it when it is finished."""
        made = [v.cls for v in self.values.eval(call) if v.kind == "object" and v.node is call and v.cls is not None]
        return any(self.names.dotted(b) in DATA_LOADER for c in made for k in self.values.defs.bases(c) for b in k.bases)

    def _makes_by_partial(self, call: ast.Call) -> bool:
        """Whether the call makes a DataLoader of which some arguments were given before: ``load = partial(DataLoader, num_workers=4)``, ``load(data)``."""
        given = [v.node for v in self.values.eval(call.func) if v.kind == "call" and v.qual == "functools.partial"]
        return any(isinstance(p, ast.Call) and p.args and self._is_loader_class(p.args[0]) for p in given)

    def _fetches_loader(self, call: ast.Call) -> bool:
        """``train_loader = utils.get_loader(args)``: what code of another file gives, where a name says what it is.

        Such a loader is divided when it is finished, by ``ddp.distribute``, which raises where it is none.
        """
        made = [v for v in self.values.eval(call) if v.node is call]
        if not any(v.kind == "call" and not v.qual.startswith(_LIBRARIES) and not hasattr(builtins, v.qual.removeprefix("?.")) for v in made):
            return False
        stmt = self.names.statement(call)
        bound = (
            isinstance(stmt, ast.Assign)
            and stmt.value is call
            and any(isinstance(n, ast.Name | ast.Attribute) and _LOADER.search(last(n)) for t in stmt.targets for n in walk(t))
        )
        return bound or bool(_LOADER.search(last(call.func)))

    def loaders_of(self, node: ast.AST) -> Vals:
        """The loaders that the expression means, or hands batches on from: ``loader``, ``enumerate(loader)``, ``map(f, loader)``."""
        found = frozenset(v for v in self.values.eval(node) if isinstance(v.node, ast.Call) and v.node in self.loader_calls)
        inner = source(self, node) if not found and isinstance(node, ast.Call | ast.GeneratorExp | ast.ListComp) else None
        if inner is None or (isinstance(inner, ast.Call) and self.names.dotted(inner.func) in IN_STEP):
            return found
        parts = in_step(self, inner)
        return NONE.union(*(self.loaders_of(p) for p in parts)) if parts != [inner] else found

    @cached_property
    def batch_loops(self) -> tuple[BatchLoop, ...]:
        return batch_loops(self)

    def calls_model(self, node: ast.AST) -> bool:
        """Whether a model is called inside the node itself."""
        inside = set(map(id, walk(node)))
        return any(id(p.call) in inside for p in (*self.forwards, *self._indirect))

    def all_entered(self, node: ast.AST) -> set[FunctionNode]:
        seen: set[FunctionNode] = set()
        todo = list(self.entered(node))
        while todo:
            f = todo.pop()
            if f not in seen:
                seen.add(f)
                todo += self.entered(f)
        return seen

    def branches(self, loop: Loop) -> bool:
        """Whether the backward in this loop stands under a test on the phase: the loop evaluates too, unless another one that is stepped by does not."""
        inside = [b for b in self.backwards if self.names.is_inside(b, loop)]
        return any(any(self.phase_tests(b, loop)) for b in inside) and not any(self._steps_always(b, loop) for b in inside)

    def _steps_always(self, backward: ast.AST, loop: ast.AST) -> bool:
        """Whether an optimizer steps beside a backward, and both under no test on the phase."""
        if any(self.phase_tests(backward, loop)):
            return False
        made = {o.call for o in self.optimizers}
        block = self.names.block(self.names.statement(backward))
        calls = (s.value for s in block if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
        given = (e for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "step" for e in (c.func.value, *c.args))
        return any(v.node in made for e in given for v in self.values.eval(e))

    def phase_tests(self, backward: ast.AST, loop: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
        """The tests that decide whether the loop trains at all, each with whether it must be true for the backward to run."""
        inner = backward
        for a in self.names.ancestors(backward, below=loop):
            if isinstance(a, ast.If) and not self.about_numbers(a.test) and not self._on_both_sides(a):
                yield a.test, any(self.names.is_inside(inner, s) for s in a.body)
            inner = a

    def _on_both_sides(self, node: ast.If) -> bool:
        """``if amp: scaler.scale(loss).backward()``, ``else: loss.backward()``."""
        return all(any(self.names.is_inside(b, s) for b in self.backwards for s in side) for side in (node.body, node.orelse))

    def about_numbers(self, test: ast.expr) -> bool:
        """``if (i + 1) % k == 0``, ``if amp:`` — tests that do not choose between training and evaluation."""
        names = [n for n in walk(test) if isinstance(n, ast.Name)]
        words = {n.id for n in names} | {n.attr for n in walk(test) if isinstance(n, ast.Attribute)}
        return not words & _PHASE_WORDS and not self._by_phase(names)

    def _by_phase(self, names: list[ast.Name]) -> bool:
        """Whether one of the names is a parameter that the calls of its function give differently, goes over literals, or comes of such a name."""
        todo = [b for n in names for b in self.names.bindings(self.names.scope_of[n], n.id)]
        seen = {b.target for b in todo}
        while todo:
            b = todo.pop()
            if b.how == "for" and isinstance(b.value, ast.Tuple | ast.List):
                return True
            if b.how == "assign" and b.value is not None:
                read = (n for n in walk(b.value) if isinstance(n, ast.Name))
                more = [c for n in read for c in self.names.bindings(self.names.scope_of[n], n.id) if c.target not in seen]
                seen |= {c.target for c in more}
                todo += more
            if len({ast.unparse(p) if p is not None else "" for p in self.handed(b)}) > 1:
                return True
        return False

    @cached_property
    def train_feeds(self) -> tuple[BatchLoop, ...]:
        """The innermost loops that train, with each of their loaders; loops that use ``next()`` are found by their own ``backward()``."""
        loops = [b for b in self.batch_loops if b.trains]
        return tuple(b for b in loops if b.drawn is not None or not any(o.node is not b.node and self.names.is_inside(o.node, b.node) for o in loops))

    @cached_property
    def train_loops(self) -> tuple[BatchLoop, ...]:
        """The innermost loops that train, each once."""
        return tuple({b.node: b for b in reversed(self.train_feeds)}.values())[::-1]

    @cached_property
    def eval_loops(self) -> tuple[BatchLoop, ...]:
        return tuple(b for b in self.batch_loops if b.evaluates)

    def epoch_loop(self, node: ast.AST, calls: Collection[ast.Call] | None = None, seen: frozenset[ast.AST] = frozenset()) -> list[tuple[Loop, ast.AST]]:
        """The loops that repeat ``node``, nearest in each calling path, with the node in each loop's own function that leads there.

        ``calls`` restricts the calls of the node's own function that count.
        """
        for a in self.names.ancestors(node):
            if isinstance(a, FunctionNode):
                break
            if isinstance(a, Loop) and not self._within_epoch(a):
                return [(a, node)]
        function = self.names.function(node)
        if not isinstance(function, FunctionNode) or function in seen:
            return []
        callers = [c for c in self.values.callers.get(function, []) if calls is None or c in calls]
        return [x for c in callers for x in self.epoch_loop(c, None, seen | {function})]

    def _within_epoch(self, loop: Loop) -> bool:
        """``for phase in ('train', 'val')``, also numbered, and ``for loader in loaders`` repeat nothing: they go through parts of one epoch."""
        if not isinstance(loop, ast.For):
            return False
        over = loop.iter
        while (inner := through(self.names, over)) is not None:
            over = inner
        phases = isinstance(over, ast.Tuple | ast.List) and all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in over.elts)
        return phases or isinstance(loop.iter, ast.Tuple | ast.List) or any(self.loaders_of(n) for n in walk(loop.target) if isinstance(n, ast.Name))

    # ------------------------------------------------------------------ regions
    @cached_property
    def _regions(self) -> Regions:
        return Regions(self)

    @cached_property
    def _batches(self) -> Regions:
        return Regions(self, quiet=False)

    def region(self, node: ast.AST) -> str:
        """Where the node runs: ``train``, ``eval``, ``both`` or ``outside`` of any loop over a loader."""
        return self._regions.of(node)

    def batches_at(self, node: ast.AST) -> str:
        """Whose batches a node sees, with or without gradients: those of ``train`` or ``eval``, of ``both``, or ``outside`` of any loop over a loader."""
        return self._batches.of(node)

    def quiet(self, node: ast.AST) -> bool:
        """Whether the node stands under ``no_grad``."""
        for a in self.names.ancestors(node):
            if isinstance(a, ast.With) and any(self._names_no_grad(i.context_expr) for i in a.items):
                return True
            if isinstance(a, FunctionNode):
                return any(self._names_no_grad(d) for d in a.decorator_list)
        return False

    def quiet_always(self, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
        """Whether the node, or every call that leads to it, stands under ``no_grad``."""
        function = self.names.function(node)
        calls = [] if function in seen else self.values.callers.get(function, [])
        return self.quiet(node) or (bool(calls) and all(self.quiet_always(c, seen | {function}) for c in calls))

    def _names_no_grad(self, node: ast.expr) -> bool:
        return self.names.dotted(node.func if isinstance(node, ast.Call) else node) in NO_GRAD

    def remembered(self, question: tuple[object, ...], answer: Callable[[], bool]) -> bool:
        """The answer to a question about nodes, found once: values that are made of each other are reached on more ways than can be gone."""
        if question not in self._answers:
            self._answers[question] = answer()
        return self._answers[question]

    # ------------------------------------------------------------------ where a variable comes from
    def roots(self, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> set[tuple[Key, ast.AST]]:
        """The variables that feed the expression, through parameters up to the callers: (key, a node that means it there)."""
        if isinstance(node, ast.Name):
            scope = self.names.scope_of[node]
            owner = self.names.owner(scope, node.id)
            bound = owner.bindings.get(node.id, []) if owner is not None else []
            given = any(b.how == "param" for b in bound) and all(b.how == "param" or self._itself(b, node.id) for b in bound)
            if owner is not None and given and isinstance(owner.node, FunctionNode) and owner.node not in seen:
                calls = self.values.callers.get(owner.node, [])
                args = [a for c in calls for a in self._passed(c, owner.node, node.id)]
                if calls and len(args) == len(calls):
                    return {r for a in args for r in self.roots(a, seen | {owner.node})}
            return {(k, node) for k in self.values.keys(node)}
        if isinstance(node, ast.Attribute):
            if node.attr == "module" and self.model_vals(node.value):
                return self.roots(node.value, seen)
            return {root for k in self.values.keys(node) for root in self._roots_of_attribute(k, node, seen)}
        return set()

    def _roots_of_attribute(self, key: Key, node: ast.Attribute, seen: frozenset[ast.AST]) -> set[tuple[Key, ast.AST]]:
        """The attribute itself; of a data class and the like, which no statement gives a value, what its objects are made of."""
        given = [] if self.writes(key) else [e for e in self.values.fields.get(key, ()) if e not in seen]
        return {root for e in given for root in self.roots(e, seen | {e})} if given else {(key, node)}

    def _itself(self, b: Binding, name: str) -> bool:
        """``model = model.to(device)``, ``model = set_training(model)``"""
        value = self.same(b.value) if b.how == "assign" and not b.path else None
        value = self.handed_back(value) or value
        return value is not b.value and isinstance(value, ast.Name) and value.id == name

    def handed_back(self, call: ast.AST | None) -> ast.expr | None:
        """The argument that a function of the program gives back to its call as it is, perhaps changed in place; None where it gives anything else."""
        targets = list(self.values.targets(call)) if isinstance(call, ast.Call) else []
        found: list[ast.expr | None] = []
        for function, skip in targets:
            assert isinstance(call, ast.Call)
            given = dict(arguments(call, function, skip))
            returned = [n.value for n in walk(function) if isinstance(n, ast.Return) and self.names.function(n) is function]
            names = {n.id if isinstance(n, ast.Name) else None for n in returned}
            name = names.pop() if len(names) == 1 else None
            own = self.names.opened[function].bindings.get(name or "", [])
            ends = isinstance(function.body[-1], ast.Return) and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(function))
            plain = ends and bool(own) and all(b.how == "param" for b in own) and not isinstance(function, ast.AsyncFunctionDef)
            found.append(given.get(name or "") if plain and not function.decorator_list else None)
        return found[0] if len(found) == 1 else None

    def same(self, node: ast.AST | None, methods: Collection[str] = SAME) -> ast.AST | None:
        """``model`` of ``model.to(device).train()``: the expression whose value such methods hand back; not those of the program, which may give anything."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods and not any(self.values.targets(node)):
            node = node.func.value
        return node

    def _passed(self, call: ast.Call, function: FunctionNode, parameter: str) -> list[ast.expr]:
        for f, skip in self.values.targets(call):
            if f is function:
                return [e for name, e in arguments(call, f, skip) if name == parameter]
        return []

    def passed(self, call: ast.Call, function: FunctionNode, parameter: str) -> ast.expr | None:
        """The expression that the call gives for the parameter, if it gives one."""
        found = self._passed(call, function, parameter)
        return found[0] if found else None

    def handed(self, b: Binding) -> list[ast.expr | None]:
        """What each call of its function gives for a parameter, None where one does not say; empty for what is no parameter."""
        function = self.names.scope_of[b.target].node if b.how == "param" else None
        if isinstance(function, ast.Lambda) and isinstance(b.target, ast.arg):
            return [dict(arguments(c, function, 0)).get(b.target.arg) for c in self.values.callers.get(function, [])]
        if not isinstance(function, FunctionNode) or not isinstance(b.target, ast.arg):
            return []
        return [self.passed(c, function, b.target.arg) for c in self.values.callers.get(function, [])]

    def bound_to(self, b: Binding) -> list[ast.expr | None]:
        """What the binding gives its variable; for a parameter what each call gives, or its default. None stands for what is not seen."""
        if b.how == "assign" and not b.path and isinstance(b.value, ast.expr):
            return [b.value]
        function = self.names.scope_of[b.target].node if b.how == "param" else None
        otherwise = default(function.args, b.target) if isinstance(function, FunctionNode) and isinstance(b.target, ast.arg) else None
        return [e or otherwise for e in self.handed(b)] or [otherwise]

    def writes(self, key: Key) -> list[ast.stmt]:
        """The statements that assign the variable, in order."""
        return sorted(self._writes.get(key, ()), key=position)

    @cached_property
    def _writes(self) -> dict[Key, list[ast.stmt]]:
        found: dict[Key, dict[ast.stmt, None]] = {}
        for n in self.names.nodes:
            if isinstance(n, ast.Assign | ast.AnnAssign):
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                leaves = [t for x in targets for t in (x.elts if isinstance(x, ast.Tuple | ast.List) else [x])]
                for key in (k for t in leaves for k in self.values.keys(t)):
                    found.setdefault(key, {})[n] = None
        return {key: list(stmts) for key, stmts in found.items()}

    def leaf(self, stmt: ast.stmt, key: Key) -> ast.expr:
        """The target by which an assignment gives the variable its value."""
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]  # type: ignore[attr-defined]
        leaves = [t for x in targets for t in (x.elts if isinstance(x, ast.Tuple | ast.List) else [x])]
        return next(t for t in leaves if key in list(self.values.keys(t)))

    def given(self, node: ast.Name | ast.Attribute) -> list[ast.expr]:
        """What the variable, attribute or parameter is given anywhere in the program; of an unpacked value the element, where it can be seen."""
        if isinstance(node, ast.Attribute):
            return [v for key in self.values.keys(node) for v in self.written(key)]
        out: list[ast.expr] = []
        for b in self.names.bindings(self.names.scope_of[node], node.id):
            out += [p for p in self.handed(b) if p is not None]
            if b.how == "assign" and isinstance(b.value, ast.expr):
                out.append(element(b.value, b.path))
        return out

    def written(self, key: Key) -> Iterator[ast.expr]:
        """The expressions that the variable is given, also as one of several: ``a, b = f(), g()``."""
        for stmt in self.writes(key):
            if not isinstance(stmt, ast.Assign):
                continue
            for target in stmt.targets:
                pairs = [(target, stmt.value)]
                if isinstance(target, ast.Tuple | ast.List) and isinstance(stmt.value, ast.Tuple | ast.List) and len(target.elts) == len(stmt.value.elts):
                    pairs = list(zip(target.elts, stmt.value.elts, strict=True))
                yield from (value for t, value in pairs if key in self.values.keys(t))


def element(value: ast.expr, path: tuple[int | str, ...]) -> ast.expr:
    """The part of a tuple or list that the path names; the whole where it cannot be seen."""
    for index in path:
        if not (isinstance(value, ast.Tuple | ast.List) and isinstance(index, int) and index < len(value.elts)):
            return value
        value = value.elts[index]
    return value
