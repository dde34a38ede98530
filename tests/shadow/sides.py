"""What the facts say of a program and what its execution on paper says, as places in its text.

Both sides are about the original. Placements ask what the migrated program would do: they are read from an
execution in which each rank has its part of every loader that the facts train on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Ref, Unknown, Value, const, data
from dpmigrate.facts import control
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.names import FunctionNode, Loop, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.optimizers import SCHEDULERS
from dpmigrate.facts.precision import is_scaler
from dpmigrate.facts.randomness import drawing
from dpmigrate.facts.script import Script
from dpmigrate.facts.steps import stepping
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.trial import Trial, before
from dpmigrate.judge.watching import Watching
from dpmigrate.library.batches import SHARED

#: ways that are gone from an event to the start of the program
WAYS = 200
#: the line and the column of a node
Place = tuple[int, int]


def place(node: ast.AST) -> Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


class Divided(Judged):
    """An execution in which each rank has its part of the batches that a program trains on."""

    def __init__(self, script: Script) -> None:
        super().__init__(script.program, Watching())
        self.shared = {place(c) for c in script.train_loader_calls}

    def event(self, kind: str, node: ast.AST, frame: Frame, **values: Value) -> Event:
        if kind == "loader":
            for made in self.objects(values["object"]):
                if made.node is not None and place(made.node) in self.shared:
                    self.heap.write((made.number, "dealt"), const(SHARED))
        return super().event(kind, node, frame, **values)


@dataclass(frozen=True, eq=False)
class Traced:
    """The views of an execution that the questions need."""

    script: Script

    @cached_property
    def execution(self) -> Execution:
        return before(self.script.program)

    @cached_property
    def trial(self) -> Trial:
        return Trial(self.execution)

    @cached_property
    def divided(self) -> Execution:
        return Divided(self.script).run()

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        trees = [p.tree for p in self.script.program.parts]
        return {c: n for t in trees for n in walk(t) for c in ast.iter_child_nodes(n)}

    @cached_property
    def ran(self) -> set[Place]:
        return {place(s) for s in self.execution.trace.ran}

    def chains(self, event: Event) -> Iterator[list[ast.AST]]:
        """The node of an event and of each call that leads to it, the innermost first: on each of so many ways."""
        calls, others = self.execution.trace.calls, self.execution.trace.others
        todo: list[tuple[int, list[ast.AST], frozenset[int]]] = [(event.context, [event.node], frozenset())]
        for _ in range(WAYS):
            if not todo:
                return
            context, nodes, seen = todo.pop()
            if context not in calls or context in seen:
                yield nodes
                continue
            for call in (calls[context], *others.get(context, ())):
                todo.append((call.context, [*nodes, *([call.node] if call.node is not None else [])], seen | {context}))

    def loops(self, event: Event) -> Iterator[list[ast.AST]]:
        """The loops round an event, innermost first, on each way that leads to it."""
        yield from ([a for node in nodes for a in self._round(node)] for nodes in self.chains(event))

    def _round(self, node: ast.AST) -> Iterator[ast.AST]:
        """The loops round a node in its function."""
        inner, above = node, self.parents.get(node)
        while above is not None and not isinstance(above, FunctionNode | ast.Lambda):
            if isinstance(above, Loop) and not (isinstance(above, ast.For | ast.AsyncFor) and inner is above.iter):
                yield above
            inner, above = above, self.parents.get(above)

    @cached_property
    def taking(self) -> set[Place]:
        """The loops that take batches of a loader: over it, or with ``next``."""
        found = {place(e.node) for e in self.execution.trace.of("loop") if any(isinstance(a, Ref) for a in e.values["over"])}
        for event in self.execution.trace.of("batch"):
            if isinstance(event.node, ast.Call) and last(event.node.func) in ("next", "__next__"):
                found |= {place(loops[0]) for loops in self.loops(event) if loops}
        return found

    def nearest(self, event: Event) -> set[Place]:
        """The innermost loops over batches round an event."""
        found = (next((place(a) for a in loops if place(a) in self.taking), None) for loops in self.loops(event))
        return {p for p in found if p is not None}

    def inside(self, event: Event, places: Container[Place]) -> bool:
        """Whether an event happens in one of some loops."""
        return any(place(a) in places for loops in self.loops(event) for a in loops)

    @cached_property
    def stepped(self) -> list[Event]:
        """The backward passes whose gradients an optimizer steps by, or may: of a model whose code is not seen."""
        losses = {place(n) for n, _ in self.trial.losses()}
        found = self.execution.trace.of("backward")
        return [e for e in found if place(e.node) in losses or any(isinstance(a, Unknown) for a in e.values["loss"])]


#: a question: what the facts say, what the trace says
Question = Callable[[Script, Traced], tuple[Iterable[Place], Iterable[Place]]]


def _calls(script: Script, *names: str) -> Iterator[Place]:
    return (place(c) for c in script.calls(*names))


def _made(traced: Traced, numbers: Iterable[int]) -> set[Place]:
    found = (traced.execution.heap.objects[n] for n in numbers)
    return {place(o.node) for o in found if o.node is not None}


def models(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """The calls that make what is trained: the outermost of the modules whose parameters are stepped, each by itself or in another one."""
    objects = traced.execution.heap.objects
    trained = {n for n in traced.trial.trained if objects[n].kind in ("module", "instance", "parameter") and traced.trial.has_parameters(objects[n])}
    known = {place(v.node) for v in script.roles.models}
    mine = {n for n, o in objects.items() if o.node is not None and place(o.node) in known}
    held = {p for n in mine for p in traced.trial.owned(n)} | mine
    idle = (n for n in mine if objects[n].kind in ("module", "instance") and not traced.trial.owned(n) & traced.trial.trained)
    return _made(traced, idle), _made(traced, trained - held)


def optimizers(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """The calls that make optimizers."""
    facts = {place(o.call) for o in script.roles.optimizers}
    made = {a.object for e in traced.execution.trace.of("step") for a in e.values["optimizer"] if isinstance(a, Ref)}
    return facts, _made(traced, made)


def loaders(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """The calls that make the loaders of training batches."""
    return (place(c) for c in script.train_loader_calls), _made(traced, (o.number for o in traced.trial.loaders()))


def scalers(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """The calls that make scalers of gradients."""
    facts = (place(c) for c in script.roles.calls if is_scaler(script.roles, c))
    return facts, _made(traced, (n for n, o in traced.execution.heap.objects.items() if o.kind == "scaler"))


def schedules(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Where a learning rate is scheduled."""
    facts = (c for c, f in script.methods("step") if any(v.qual.startswith(SCHEDULERS) for v in script.values.eval(f.value)))
    return (place(c) for c in facts), (place(e.node) for e in traced.execution.trace.of("schedule"))


def training_loops(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """The innermost loops over batches that train."""
    return (place(b.node) for b in script.roles.train_loops), {p for e in traced.stepped for p in traced.nearest(e)}


def epoch_loops(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """The loops round those that train which take no batches themselves."""
    found = set()
    for loops in (loops for e in traced.stepped for loops in traced.loops(e)):
        at = next((i for i, a in enumerate(loops) if place(a) in traced.taking), None)
        found |= {place(a) for a in loops[at + 1 :] if place(a) not in traced.taking} if at is not None else set()
    return (place(a) for a in script.repeating_loops), found


def evaluating_loops(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """The loops over batches in which a trained model is called, and nothing is differentiated."""
    training = {place(a) for e in traced.execution.trace.of("backward") for loops in traced.loops(e) for a in loops}
    found: set[Place] = set()
    for event in traced.execution.trace.of("forward"):
        called = {o.number for o in traced.trial.objects(event.values["module"])}
        if any(traced.trial.owned(n) & traced.trial.trained for n in called):
            found |= traced.nearest(event)
    return (place(b.node) for b in script.roles.eval_loops), found - training


def backwards(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Where something is differentiated by ``backward()``."""
    return (place(b) for b in script.roles.backwards), (place(e.node) for e in traced.execution.trace.of("backward"))


def steps(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Where optimizers step."""
    found = (e.node for e in traced.execution.trace.of("step"))
    return (place(c) for c in stepping(script.roles)), (place(n) for n in found)


def cleared(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Where gradients are cleared."""
    facts = (place(c) for c, _ in script.methods("zero_grad"))
    return facts, (place(e.node) for e in traced.execution.trace.of("zero grad"))


def saves(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Where checkpoints are saved by torch."""
    found = (e.node for e in traced.execution.trace.of("save") if "loadable" in e.values)
    return _calls(script, "torch.save"), (place(n) for n in found)


def loads(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Where checkpoints are loaded by torch."""
    return _calls(script, "torch.load"), (place(e.node) for e in traced.execution.trace.of("load"))


def draws(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Calls that draw random numbers while batches are trained on, but for layers."""
    roles = script.roles
    mine = (c for c in roles.calls if roles.region(c) in ("train", "both") and not any(roles.values.targets(c)))
    training = {place(b.node) for b in roles.train_loops}
    layers = {place(e.node) for e in traced.execution.trace.of("forward")}
    found = (e for e in traced.execution.trace.of("draw") if traced.inside(e, training))
    return (place(c) for c in mine if drawing(roles, c)), (p for e in found if (p := place(e.node)) not in layers)


#: how the trace's placements are called by the facts
_NORMS = {"partial(mean)": Norm.MEAN, "partial(sum)": Norm.SUM, "uniform": Norm.CONST, "zero": Norm.CONST, "ratio": Norm.WEIGHTED}


def norms(script: Script, traced: Traced) -> Iterator[tuple[Place, Norm, str, bool]]:
    """Each backward whose gradients are stepped by: the norm of its loss, where the trace says how that lies, and whether they agree."""
    found: dict[Place, list[Data]] = {}
    for node, d in Trial(traced.divided).losses():
        found.setdefault(place(node), []).append(d)
    for call in script.roles.backwards:
        lying = [d.placement for d in found.get(place(call), ())]
        if lying and call not in script.alone:
            norm = script.losses.of_backward(call).norm
            said = ", ".join(dict.fromkeys(str(p) for p in lying))
            kinds = {_NORMS.get(str(p)) for p in lying if p.kind is not Kind.UNKNOWN}
            yield place(call), norm, said, not kinds or kinds == {norm}


def tests(script: Script, traced: Traced) -> tuple[Iterable[Place], Iterable[Place]]:
    """Tests by which ranks are sure to part, by the batches that they train on; the facts are asked of these alone."""
    shared = {place(c) for c in script.train_loader_calls}
    loaders = {n for n, o in traced.divided.heap.objects.items() if o.node is not None and place(o.node) in shared}
    tested = ((e, d) for e in traced.divided.trace.of("branch") for d in data(e.values["test"]))
    parted = {place(e.node) for e, d in tested if d.placement.kind is Kind.PER_RANK and d.sources & loaders}
    facts = [n for n in script.names.nodes if isinstance(n, ast.If | ast.While) and place(n) in parted and not control.uniform(script.names, n.test)]
    return (place(n) for n in facts), parted


QUESTIONS: Mapping[str, Question] = {
    f.__name__.replace("_", " "): f
    for f in (
        models, optimizers, loaders, scalers, schedules, training_loops, epoch_loops, evaluating_loops,
        backwards, steps, cleared, saves, loads, draws, tests,
    )
}  # fmt: skip
