"""A result that is judged: its execution, and views of its trace that several invariants need."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from dpmigrate.execution import budget
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Defaults
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import NOTHING, Data, Origin, Ref, Unknown, Value, const, data
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.notes import is_loader
from dpmigrate.judge.watching import Watching
from dpmigrate.library.batches import WHOLE
from dpmigrate.library.layer_table import LAYERS
from dpmigrate.library.layers import foreign_name, has_parameters
from dpmigrate.library.module_tree import owned
from dpmigrate.model import Span
from dpmigrate.program import Program


@dataclass(frozen=True)
class Fault:
    """What is wrong: the place (``train.py:12``), the invariant, and a sentence.

    Not ``established``: the invariant is not known to be broken, the engine does not know the
    program well enough to show that it holds.
    """

    place: str
    invariant: str
    words: str
    established: bool = True
    #: where in the result's trees
    node: ast.AST | None = field(default=None, compare=False, repr=False)
    #: it would not be wrong where no gradients are recorded
    of_gradients: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class Trial:
    """A migrated program, executed; and the original, where there is one."""

    result: Execution
    original: Execution | None = None
    #: whether batch sizes are those of all ranks together, of which each takes its part
    divided: bool = True
    #: the variables, entries and objects of which the user is told that they hold totals of rank 0's share
    told: frozenset[str] = frozenset()

    def fault(
        self, node: ast.AST | None, invariant: str, words: str, *, established: bool = True
    ) -> Fault:
        """A fault at a node of the result."""
        line = getattr(node, "lineno", None)
        program = self.result.program
        place = program.place(line) if line is not None else program.entry.name
        return Fault(place, invariant, words, established, node)

    def on_main(self, event: Event) -> bool:
        """Whether an event happens on rank 0 alone."""
        return event.parted is not None and event.parted.origin.word.startswith("rank 0")

    def since(self, d: Data) -> str:
        """How data lie, and since which operation: ``partial(sum): loss.sum(), line 12``."""
        where = f": {_operation(d.origin)}, {self.line(d.origin.node)}" if d.origin is not None else ""
        return f"{d.placement}{where}"

    def line(self, node: ast.AST | None) -> str:
        """The place of a node for a sentence: ``line 12``, ``utils.py, line 12``."""
        if node is None or not hasattr(node, "lineno"):
            return "a place that is not known"
        return self.result.program.where(Span(node.lineno, 0, node.lineno, 0))

    @cached_property
    def backwards(self) -> list[Event]:
        """The backward passes."""
        return list(self.result.trace.of("backward"))

    @cached_property
    def steps(self) -> list[Event]:
        """The steps of optimizers."""
        return list(self.result.trace.of("step"))

    @cached_property
    def trained(self) -> set[int]:
        """The modules and parameters that optimizers step, with all that they hold."""
        found: set[int] = set()
        for event in self.steps:
            for d in data(event.values["parameters"]):
                for number in d.reached:
                    found |= self.owned(number)
        return found

    def owned(self, number: int) -> set[int]:
        """A module, and the modules and parameters in it."""
        known = self._owned
        if number not in known:
            known[number] = owned(self.result, number)
        return known[number]

    @cached_property
    def _owned(self) -> dict[int, set[int]]:
        return {}

    def has_parameters(self, made: Object) -> bool:
        """Whether an object is a parameter, or a layer with parameters of its own."""
        if made.kind == "instance" and foreign_name(self.result, made) in LAYERS:
            return has_parameters(self.result, made)  # class Linear(nn.Linear)
        return made.kind == "parameter" or (made.kind == "module" and has_parameters(self.result, made))

    @cached_property
    def drawn_alike(self) -> Trial:
        """The result as if all ranks drew the same numbers: what differs between them then differs since their samples do.

        A value that each rank has drawn is another one on each of them, whatever else it is made of. It is executed once more only where that hides
        something.
        """
        assert isinstance(self.result, Judged)
        if self.result.with_equal_draws is None:
            again = Judged(self.result.program, Watching())
            again.by_default, again.drawn_alike = self.result.by_default, True
            again.run()
            self.result.with_equal_draws = again
        return replace(self, result=self.result.with_equal_draws)

    def losses(self) -> Iterator[tuple[ast.AST, Data]]:
        """What is differentiated and comes to a step, with the place of its backward."""
        found = {
            a.object: None for e in self.steps for a in e.values["gradients"] if isinstance(a, Ref)
        }
        for number in found:
            node = self.result.heap.objects[number].node
            assert node is not None
            for d in data(self.held(number, "loss")):
                yield node, d

    def unknown_losses(self) -> Iterator[tuple[ast.AST, str]]:
        """Where something that is not known may be differentiated, beside what is, and why."""
        for event in self.result.trace.of("judge backward of unseen"):
            for atom in event.values["why"]:
                assert isinstance(atom, Unknown)
                yield event.node, f"{atom.word}, {self.line(atom.node)}"

    @cached_property
    def why_no_loss(self) -> str:
        """Why it is not known of what is differentiated where it comes from; '' if that is known."""
        for event in self.backwards:
            for atom in event.values["loss"]:
                if isinstance(atom, Unknown):
                    return f": {atom.word}, {self.line(atom.node)}"
                if isinstance(atom, Data) and atom.placement.kind is Kind.UNKNOWN:
                    return f": {self.since(atom)}"
        if self.backwards:
            return ""
        for (word, node), _ in self.result.trace.missed.items():
            first = f"{word}, {self.line(node)}"
            return f": nothing is seen to be differentiated; the first thing that is not known: {first}"
        idle = next(self._that_would_train(), None)
        if idle is not None:
            return f": nothing calls {idle.name}, {self.line(idle)}, which would train"
        return ": nothing is seen to be differentiated"

    def _that_would_train(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions with a ``backward()`` to which no call comes."""
        for function in (n for p in self.result.program.parts for n in ast.walk(p.tree)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function not in self.result.trace.reached:
                called = (n.func for n in ast.walk(function) if isinstance(n, ast.Call))
                if any(isinstance(f, ast.Attribute) and f.attr == "backward" for f in called):
                    yield function

    def original_loaders(self) -> list[Object]:
        """The loaders of the original's training batches, in the order in which they were made."""
        if self.original is None:
            return []
        return list(Trial(self.original).loaders())

    @cached_property
    def sources(self) -> set[int]:
        """What training is made of: what losses come from, and wrapped models are given.

        A loss may rest on other passes as well, as on weights of an evaluation, and what is given
        on a number that is made of all batches, as their mean.
        """
        made = {s for _, d in self.losses() for s in d.sources}
        given = {
            s
            for e in self.result.trace.of("forward")
            if e.values["grad"] != const(False)
            for d in data(e.values.get("given", NOTHING))
            for s in d.sources - (self._whole if d.placement.kind is Kind.ROWS else frozenset())
        }
        return made & given or made

    @cached_property
    def _whole(self) -> frozenset[int]:
        """The loaders that give every rank all batches."""
        objects = self.result.heap.objects.values()
        return frozenset(o.number for o in objects if self.held(o.number, "dealt") == const(WHOLE))

    def loaders(self) -> Iterator[Object]:
        """The loaders whose batches are trained on."""
        objects = self.result.heap.objects
        return (
            o for n in sorted(self.sources) if (o := objects.get(n)) and is_loader(self.result, o)
        )

    def held(self, number: int, name: str) -> Value:
        """A field of an object when the program has ended."""
        return self.result.bound(self.result.heap.read((number, name)) or NOTHING)

    def objects(self, v: Value) -> list[Object]:
        """The objects that a value may be."""
        return self.result.objects(v)


def executed(program: Program, *, by_default: Defaults = "") -> Judged:
    """A program, executed with what the judge wants to know; ``by_default``: which of its options have
    their defaults alone.

    The last ones are kept, since equal texts come again: the facts of a result ask for what the judge
    executes, a program is planned again with what was shown of its first result, and a script that
    shares files with others once more.
    """
    key = (by_default, fingerprint(program))
    found = _KEPT.pop(key, None)
    planned, original = budget.under_way(), all(p.former is None for p in program.parts)
    if found is None:
        found = Judged(program, Watching())
        found.by_default = by_default
        if planned is not None and planned.too_large is not None and not original and not by_default:
            found.trace.ended = planned.too_large  # a result is no smaller
            return found
        found.run()
    if planned is not None and found.exhausted and original and not by_default:
        planned.too_large = found.trace.ended
    if found.exhausted and found.allowed < budget.STEPS:
        return found  # the next planning may have more left for it
    _KEPT[key] = found  # the last one that was asked for
    while len(_KEPT) > _FEW:
        del _KEPT[next(iter(_KEPT))]
    return found


def fingerprint(program: Program) -> Hashable:
    """What an execution of a program depends on."""
    texts = tuple((p.source.name, p.source.data, p.former) for p in program.parts)
    return texts, frozenset(program.links.items()), program.computed, budget.STEPS


def before(program: Program) -> Judged:
    """A program before its migration, executed."""
    return executed(program)


#: executions that are kept: those of an original and of the results that are planned of it one after
#: the other, each also with the defaults of their options
_FEW = 12
_KEPT: dict[Hashable, Judged] = {}


#: an operation is shown as the program writes it where that is no longer
_SHORT = 60


def _operation(origin: Origin) -> str:
    """An operation as it stands in the program, if its word is no more than a name or a sign; else its words."""
    if " " in origin.word or not isinstance(origin.node, ast.expr):
        return origin.word
    text = ast.unparse(origin.node)
    return text if len(text) <= _SHORT and "\n" not in text else origin.word
