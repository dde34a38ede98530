"""Script: everything a rule may know of one program. Queries only; it holds no opinion and no edit."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dpmigrate.contract import ALIAS, BARE, MODULE
from dpmigrate.facts import builds, counters, division, evaluation, launch, layers, losses, precision, ranks
from dpmigrate.facts.buffers import Update
from dpmigrate.facts.control import uniform
from dpmigrate.facts.decisions import drawn
from dpmigrate.facts.dormant import take_out
from dpmigrate.facts.entry import Entry, find_entry
from dpmigrate.facts.executed import Executed, early_questions, files_in_turn, files_of_all, racing, take_out_untrained, training_side, unfinished_loads
from dpmigrate.facts.folders import folder_loops, preparations
from dpmigrate.facts.inputs import InputGradient, input_gradients
from dpmigrate.facts.layers import batch_norm
from dpmigrate.facts.loops import BatchLoop, last, rounds
from dpmigrate.facts.modes import default_path
from dpmigrate.facts.modules import Modules
from dpmigrate.facts.moving import Moving
from dpmigrate.facts.names import FunctionNode, Loop, Names, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.origins import origins
from dpmigrate.facts.parameters import Change, changes
from dpmigrate.facts.perturbations import perturbations
from dpmigrate.facts.phases import Phases, phases
from dpmigrate.facts.readback import outside_of_loops
from dpmigrate.facts.replaced import unseen_training
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.sampled import Sampled, sampled
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.seeds import Seeds
from dpmigrate.facts.shares import Shares
from dpmigrate.facts.sizes import Sizes
from dpmigrate.facts.spelling import spelled_by_caller
from dpmigrate.facts.steering import Course
from dpmigrate.facts.suppressions import Suppressions, suppressions, together
from dpmigrate.facts.told import PLACE, Told
from dpmigrate.facts.totals import of_rank_0
from dpmigrate.facts.unseen import Unseen, unseen
from dpmigrate.facts.unused import Unused, partly_used
from dpmigrate.facts.values import NONE, Vals, Values
from dpmigrate.facts.wraps import Wrap, Wrapping, WrapPlan
from dpmigrate.model import Span, is_main_guard
from dpmigrate.program import Program
from dpmigrate.settings import Settings

_NO_TORCH = "torch is not imported in this program"
_NO_BACKWARD = "no backward() in this program: nothing is trained here"


class Script:
    """One program with its facts.

    ``roles`` and ``values`` describe the program as it will be: wrapped where ``wraps`` says.
    """

    def __init__(self, program: Program, settings: Settings, names: Names | None = None) -> None:
        self.program = program
        self.settings = settings
        self._look(names or Names(program.parts[-1].tree, program.imported, program.links))
        #: what would start a distributed mode of the program's own; the facts are about the program without it
        self.switches: tuple[ast.stmt, ...] = self._without_own_mode() if self.half_migrated else ()
        #: where parts begin that would train, or wrap a model, and that no path comes to: they stay as they are
        self.untrained: tuple[ast.stmt, ...] = ()
        #: why wraps need ``find_unused``, as the result without it has shown
        self.shown_unused: dict[Wrap, str] = {}
        #: calls of losses that are means over valid targets or weights, as the result has shown
        self.shown_over_weights: list[ast.Call] = []
        #: tests by a draw of each rank's own, by which a step makes one thing or another of its batch, as the result has shown
        self.shown_draws: list[ast.expr] = []
        #: statements before which the ranks must wait for each other, and questions about files of which all must have rank 0's answer, as the result has shown
        self.shown_waits: list[ast.stmt] = []
        self.shown_questions: list[ast.expr] = []
        #: places of variables that hold what rank 0 has made and the others have loaded, with their texts, and calls that give it with '', as the
        #: result has shown
        self.shown_made: list[tuple[ast.expr, str]] = []
        #: what gives buffers something of a rank's own part of the batches, as the result has shown
        self.shown_buffers: list[Update] = []
        #: whether a result was not right, so that it is looked for numbers by which training goes (``moving``); False: with them it was not right
        self.shown_steering: bool | None = None
        #: what a loss takes of a rank's part of the batch and not of each sample, as the result has shown, each with the call of the runtime round it
        self.shown_bent: dict[ast.expr, str] = {}
        #: sizes beside samples that have been put together are tried as those of the global batch
        self.whole_sizes = False
        #: which of them were put round their expressions together, so that it is not tried again
        self.tried_bent: set[frozenset[ast.expr]] = set()
        #: whether evaluations that compute losses have to go without gradients, as the result has shown
        self.quieted = False
        self.wraps: WrapPlan = self._wrapping.plan()
        self.losses = losses.Losses(self.roles)
        self._phases: dict[BatchLoop, Phases | None] = {}
        self._unused: dict[Wrap, list[Unused]] = {}
        self._counting: dict[BatchLoop, counters.Counting] = {}

    @classmethod
    def running(cls, program: Program, settings: Settings) -> Script:
        """The facts of what runs: without the functions and classes that nothing uses, and the branches that train and that nothing comes to."""

        def seen() -> Names:
            return Names(program.parts[-1].tree, program.imported, program.links)

        names = seen()
        if take_out(names):
            names = seen()
        left_out = take_out_untrained(program, names)
        script = cls(program, settings, seen() if left_out else names)
        script.untrained = tuple(left_out)
        return script

    def _without_own_mode(self) -> tuple[ast.stmt, ...]:
        """Look at the default path alone, if there is one that has DataParallel and nothing of the own mode in it; what would switch that on."""
        whole = self.names
        default = default_path(whole, self.program.links)
        if default is not None:
            self._look(Names(default.trees[-1], default.trees[:-1], self.program.links))
            if not self.distributed and self._wraps_data_parallel:
                return default.switches
            self._look(whole)
        return ()

    def _look(self, names: Names) -> None:
        for fact in ("distributed", "own_start", "half_migrated"):
            self.__dict__.pop(fact, None)
        self.names = names
        self.executed = Executed(self.program)
        self._wrapping = Wrapping(names, self.executed)
        self.values: Values = self._wrapping.values
        self.roles: Roles = self._wrapping.roles

    # ------------------------------------------------------------------ is there anything to migrate?
    @cached_property
    def exempt(self) -> str:
        """Why there is nothing to migrate; '' if there is."""
        if self.suppressions.whole_file:
            return "it says '# dpmigrate: ignore-file'"
        if self.distributed and not self.half_migrated:
            migrated = MODULE in self.names.imports.values()  # what is left of a distributed mode of its own is switched off
            return f"{self.distributed}; {self.own_start}" if self.own_start and not migrated else self.distributed
        if not any(d == "torch" or d.startswith("torch.") for d in self.names.imports.values()) and not self.names.stars:
            return _NO_TORCH
        if self.roles.backwards or any(True for _ in unseen_training(self.roles)):
            return ""
        if not self.unseen:
            return _NO_BACKWARD
        return "" if self.entry is not None else "it starts nothing: what it trains is looked at with the script that imports it"

    @property
    def idle(self) -> bool:
        """Whether nothing in the files that could be read trains."""
        return self.exempt in (_NO_TORCH, _NO_BACKWARD)

    @cached_property
    def unseen(self) -> list[Unseen]:
        """The signs that a program without ``backward()`` trains, beside what is found by name and given what only training needs."""
        return [] if self.roles.backwards or any(True for _ in unseen_training(self.roles)) else unseen(self.roles, self.program.absent)

    @cached_property
    def suppressions(self) -> Suppressions:
        """What the comments of the files ask to be left alone; of whole files, the script."""
        return together((suppressions(p.source.text), p.first) for p in self.program.parts)

    def silences(self, group: str) -> bool:
        """Whether the settings or a comment ask to leave out rules of a group, ``DPM5``."""
        s = self.settings
        commented = (c for codes in self.suppressions.lines.values() for c in codes)
        left_out = (*s.ignore, *(c for _, codes in s.per_file for c in codes), *commented)
        selected = not s.select or any(c.startswith(group) or group.startswith(c) for c in s.select)
        return not selected or any(c.startswith(group) or group.startswith(c) for c in left_out)

    @cached_property
    def distributed(self) -> str:
        """What shows that the program runs on several processes already; '' if nothing does."""
        return self.told(launch.distributed(self.roles))

    @cached_property
    def own_start(self) -> str:
        """How a program with a distributed mode of its own has to be started, where that is not plainly by torchrun."""
        return self.told(launch.own_start(self.roles))

    @cached_property
    def half_migrated(self) -> bool:
        """Whether the program has a path of its own for several processes beside a DataParallel path."""
        return bool(self.distributed) and self._wraps_data_parallel

    @property
    def _wraps_data_parallel(self) -> bool:
        return any(self.values.is_wrap(c) for c in self.roles.calls)

    def whole(self, node: ast.expr) -> bool:
        """Whether a result has shown that each rank makes this loss, or this term of one, of the samples of all."""
        return self.shown_bent.get(node) == BARE

    @property
    def normalises(self) -> bool:
        """Whether a model of the program, or one of a library that it names, may normalise over the batch."""
        return batch_norm(self.names) is not None

    @cached_property
    def counted_parts(self) -> tuple[ast.expr, ...]:
        """The sums and counts of losses that are those of all ranks where they are made, since tests ask for the counts as well."""
        return tuple({p: None for call in self.roles.backwards for w in self.losses.weighted_in(call) for p in w.parts})

    @property
    def made_whole(self) -> list[ast.expr]:
        """What the result has of all ranks in losses, and in what else is made of it."""
        return [*self.shown_bent, *self.counted_parts, *self._over_weights]

    @cached_property
    def _over_weights(self) -> list[ast.expr]:
        """The means over weights of training losses, each of which is that of all ranks in the result (DPM302)."""
        parts = (part for call in self.roles.backwards for part in self.losses.weighted_in(call))
        return list(dict.fromkeys(part.value for part in parts if not part.built and (part.labels or part.targets is not None)))

    def of_all_samples(self, loss: ast.expr) -> bool:
        """Whether an execution says that all ranks have the same loss once what it takes of a rank's part is that of the global batch."""
        whole = [operand for operand, template in self.shown_bent.items() if template.startswith(("batch_", "mean_count", "sum_term"))]
        return bool(whole) and self.executed.the_same(loss, whole)

    def sums(self, backward: ast.Call) -> bool:
        """Whether the loss of a ``backward()`` is a sum over the rank's part of the batch."""
        summed = self.losses.of_backward(backward).norm is losses.Norm.SUM or backward in self.shown_bent
        loss = losses.differentiated(backward)
        return summed and not self.whole(loss) and not self.of_all_samples(loss)

    def parted(self, node: ast.AST) -> bool:
        """Whether some ranks may come to the node and others not, where the execution does not show that the tests on the way fall out alike."""
        if not ranks.parted(self.roles, node) or ranks.caught(self.roles, node):
            return ranks.parted(self.roles, node)
        return not all(map(self.alike, ranks.parting(self.roles, node)))

    def alike(self, test: ast.expr) -> bool:
        """Whether a test falls out alike on all ranks: as can be proved, or as an execution shows of one that draws nothing, asks for no files and is made
        of nothing that code which is not seen gives.
        """
        if uniform(self.names, test):
            return True
        of_files = any(ranks.asks_files(self.roles, n) for n in (test, *self.roles.all_entered(test)))
        if of_files or drawn(self.roles, test) or not self.executed.alike(test):
            return False
        unknown = self.executed.unknown
        return not any(isinstance(n, ast.Call) and self.names.dotted(n.func) in unknown for n, _ in origins(self.roles, test))

    # ------------------------------------------------------------------ text
    def span(self, node: ast.AST) -> Span:
        return Span.of(node)

    def text(self, node: ast.AST) -> str:
        """The source of the node as written; of a model in its own training the variable that has its wrapper."""
        if node in self.wraps.own:
            return self.wraps.own[node].name  # type: ignore[index]
        return self.program.text(Span.of(node)) if getattr(node, "end_lineno", None) and not self.names.is_made_up(node) else ast.unparse(node)

    def shared(self, node: ast.AST) -> bool:
        """Whether the node stands in a file that a script imports which is not rewritten, or in a function that its own
        file calls where it is started as a script.
        """
        part = self.program.part(Span.of(node))
        if os.path.abspath(part.source.name) in self.settings.shared:
            return True
        guards = [s for s in part.source.tree.body if is_main_guard(s) and s not in part.tree.body]
        function = self.names.function(node)
        if not guards or not isinstance(function, FunctionNode):
            return False
        inside = set(walk(function))
        return any(isinstance(n, ast.Call) and last(n.func) == function.name and n not in inside for n in walk(part.source.tree))

    def where(self, node: ast.AST) -> str:
        """The place for people, seen from the script: ``line 12``, or ``utils.py, line 12``."""
        return self.program.where(Span.of(node))

    def told(self, told: Told | None) -> str:
        """The words with their place; '' for None."""
        if told is None or told.node is None:
            return told.words if told is not None else ""
        return told.words.replace(PLACE, self.where(told.node))

    @cached_property
    def ddp(self) -> str:
        """The name under which rewritten code calls the runtime: ``ddp``, or the full name where the script uses that word."""
        used = {a.asname or a.name for n in self.names.nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
        used |= self._words
        return MODULE if ALIAS in used else ALIAS

    @cached_property
    def _words(self) -> set[str]:
        """The variables and parameters of all files."""
        nodes = [n for p in self.program.parts for n in walk(p.tree)]
        return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.arg for n in nodes if isinstance(n, ast.arg)}

    @property
    def import_line(self) -> str:
        return f"import {MODULE} as {ALIAS}" if self.ddp == ALIAS else f"import {MODULE}"

    def fresh(self, name: str, taken: Collection[str] = ()) -> str:
        """A name that the script does not use and that is not taken."""
        used = self._words | {n.name for n in self.names.nodes if isinstance(n, FunctionNode | ast.ClassDef)}
        candidates = [name, *(f"{name}_{i}" for i in range(2, 50))]
        return next(c for c in candidates if c not in used and c not in taken)

    # ------------------------------------------------------------------ calls
    def calls(self, *dotted: str) -> Iterator[ast.Call]:
        """The calls of these names, however they were imported or bound."""
        wanted = frozenset(dotted)
        for c in self.roles.calls:
            if self.names.dotted(c.func) in wanted or any(v.kind == "ext" and v.qual in wanted for v in self.values.eval(c.func)):
                yield c

    def methods(self, *names: str) -> Iterator[tuple[ast.Call, ast.Attribute]]:
        """The calls ``x.name(...)`` that are not functions of a module."""
        for c in self.roles.calls:
            if isinstance(c.func, ast.Attribute) and c.func.attr in names and not self.names.dotted(c.func):
                yield c, c.func

    @staticmethod
    def argument(call: ast.Call, name: str, index: int | None = None) -> ast.expr | None:
        """The argument given by keyword, or at the position."""
        for k in call.keywords:
            if k.arg == name:
                return k.value
        if index is not None and len(call.args) > index and not any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
            return call.args[index]
        return None

    def is_statement(self, call: ast.Call) -> ast.stmt | None:
        """The statement, where the call is the whole of it."""
        stmt = self.names.parent[call]
        return stmt if isinstance(stmt, ast.Expr) else None

    # ------------------------------------------------------------------ the program's shape
    @cached_property
    def entry(self) -> Entry | None:
        return find_entry(self.names)

    @cached_property
    def from_data_parallel(self) -> bool:
        """Whether the source wraps a model in DataParallel."""
        return bool(self.wraps.removed) or any(w.how == "call" for w in self.wraps.wraps)

    def unused(self, wrap: Wrap) -> list[Unused]:
        """The parts of the wrapped model that get no gradient in some training step."""
        if wrap not in self._unused:
            self._unused[wrap] = partly_used(self.roles, self.wrapped_by(wrap))
        return self._unused[wrap]

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What the program does to the parameters of models after they are wrapped."""
        return tuple(changes(self))

    def wraps_at(self, index: int, written: Sequence[str]) -> tuple[Wrap, ...]:
        """The wrap that is the ``index``-th of those that are ``written`` in the result, each as the text that it wraps, in the order of the source; all, where
        it is not known which it is. Several may be written beside one statement, in an order of their own.
        """
        own = [n for n, text in enumerate(written) if text == written[index]]
        named = [w for w in self.wraps.wraps if w.how in ("after", "before", "part", "own") and w.target == written[index]]
        wraps = sorted(named if len(named) == len(own) else self.wraps.wraps, key=lambda w: position(w.node if w.how == "part" else w.stmt))
        if len(named) == len(own):
            return (wraps[own.index(index)],)
        return (wraps[index],) if len(wraps) == len(written) else tuple(wraps)

    def wrapped_by(self, wrap: Wrap) -> Vals:
        """The models that the wrap is made of."""
        return self.values.inner(wrap.made)

    @cached_property
    def modules(self) -> Modules:
        """The module classes that training runs."""
        return Modules(self.roles)

    @cached_property
    def own_amp(self) -> ast.Call | None:
        """The call that shows that the source has mixed precision by itself: autocast, a GradScaler, apex."""
        signs = (precision.is_autocast, precision.is_scaler, precision.is_apex)
        return next((c for c in self.roles.calls if any(sign(self.roles, c) for sign in signs)), None)

    def counting(self, loop: BatchLoop) -> counters.Counting:
        """What the loop adds up and collects."""
        if loop not in self._counting:
            self._counting[loop] = counters.counting(self.roles, loop, self.executed)
        return self._counting[loop]

    def own_totals(self) -> frozenset[str]:
        """The totals of the training loops of which the user is told that they stay those of rank 0's share."""
        return of_rank_0(self)

    def loop_backwards(self, loop: BatchLoop) -> list[ast.Call]:
        """The ``backward()`` calls that a turn of the loop may run."""
        functions = self.roles.all_entered(ast.Module(loop.node.body, []))
        return [b for b in self.roles.backwards if self.names.is_inside(b, loop.node) or self.names.function(b) in functions]

    # ------------------------------------------------------------------ training loaders
    @cached_property
    def train_loaders(self) -> Vals:
        """The loaders that training goes through."""
        sides = [(b, self.phases(b)) for b in self.roles.train_feeds]
        return NONE.union(*(b.loaders if side is None else side.loaders for b, side in sides))

    @cached_property
    def train_loader_calls(self) -> tuple[ast.Call, ...]:
        """The DataLoader calls whose loaders a training loop goes through, in order."""
        calls = {v.node for v in self.train_loaders if isinstance(v.node, ast.Call)}
        return tuple(sorted(calls, key=position))

    @cached_property
    def sampled(self) -> tuple[Sampled, ...]:
        """The additions to counts of samples by which training goes."""
        return sampled(self)

    @cached_property
    def sizes(self) -> Sizes:
        """What means the batch size that the training loaders are built with, and where it counts samples."""
        return Sizes(self)

    @cached_property
    def shares(self) -> Shares:
        """Which tests fall out alike since ranks have equal shares."""
        return Shares(self)

    @cached_property
    def seeds(self) -> Seeds:
        """From which seed each training loader draws its order."""
        return Seeds(self)

    @cached_property
    def input_gradients(self) -> list[InputGradient]:
        """The gradients that training steps take of their samples."""
        return input_gradients(self)

    @cached_property
    def alone(self) -> frozenset[ast.Call]:
        """The backward passes whose gradients a rank takes of its own samples, and nobody averages."""
        return frozenset([*(b for p in perturbations(self) for b in p.backwards), *(g.call for g in self.input_gradients if g.alone)])

    def reads_statically(self, call: ast.Call) -> bool:
        """Whether the arguments that decide the batches can be read and set where the loader is built."""
        return division.reads_statically(self, call)

    def distributed_at(self, call: ast.Call) -> list[ast.expr]:
        """Where ``ddp.distribute`` goes for a loader that cannot be read."""
        return division.distributed_at(self, call)

    def distributed_after(self, call: ast.Call) -> list[tuple[str, ast.stmt]]:
        """For a loader that is one of several made at once: the expressions of those that training uses, each with the statement before."""
        return division.distributed_after(self, call)

    def phases(self, loop: BatchLoop) -> Phases | None:
        """The training side of a training loop; None where it cannot be told from its evaluating side."""
        if loop not in self._phases:
            known = phases(self.roles, loop)
            # a test of words that are none of a phase may choose as well: if state.on
            asked = known is None or (len(loop.loaders) > 1 and not loop.branches)
            self._phases[loop] = (training_side(self.program, self.roles, loop) if asked else None) or known
        return self._phases[loop]

    @cached_property
    def unfinished_loads(self) -> frozenset[tuple[int, int]]:
        """Where ``torch.load`` may read a file that the program has saved before."""
        return frozenset(unfinished_loads(self.program))

    @cached_property
    def early_questions(self) -> frozenset[tuple[int, int]]:
        """Where the program asks for a file that it has written just before."""
        return frozenset(early_questions(self.program))

    @cached_property
    def racing_questions(self) -> frozenset[tuple[int, int]]:
        """Where the program asks for a file that it writes next."""
        return frozenset(racing(self.program))

    @cached_property
    def files_of_all(self) -> frozenset[tuple[int, int]]:
        """Where the program writes a file under a name that all ranks would have."""
        return frozenset(files_of_all(self.program))

    @cached_property
    def files_in_turn(self) -> frozenset[tuple[int, int]]:
        """Where the program writes a file anew that it has read in the same turn of a loop over a folder."""
        return frozenset(files_in_turn(self.program))

    @cached_property
    def folder_loops(self) -> tuple[ast.For, ...]:
        """The loops over the files of a folder that write them anew, and that rank 0 can run alone."""
        return tuple(folder_loops(self))

    @cached_property
    def preparations(self) -> tuple[ast.If, ...]:
        """The tests that remove a folder and make one anew, which rank 0 carries out alone."""
        return tuple(preparations(self))

    def outside_of_loops(self, stmt: ast.stmt) -> ast.stmt:
        """The statement before which the ranks wait for what one of them does with files in another one: a loop round it, as far as that may be."""
        return outside_of_loops(self, stmt)

    def prepares(self, node: ast.AST) -> bool:
        """Whether a node stands in one of them."""
        return any(self.names.is_inside(node, p) for p in self.preparations)

    def evaluates_too(self, loop: BatchLoop) -> bool:
        """Whether a training loop goes over loaders as well that are not trained on."""
        side = self.phases(loop)
        return side is not None and bool(loop.loaders - side.loaders)

    def epoch_places(self, loop: BatchLoop) -> list[EpochPlace]:
        """The loops that repeat a training loop, with the loader's expression there: for each way that leads from one to the other, a place."""
        side = self.phases(loop)
        if side is None:
            return []
        out: dict[tuple[Loop, str | None, ast.stmt | None], EpochPlace] = {}
        passes: dict[tuple[Loop, str | None, ast.stmt | None], dict[ast.AST, None]] = {}
        for repeat, node in self.roles.epoch_loop(loop.node, side.calls):
            gone_through = any(self.names.is_inside(b.target, repeat) for b in self._bound_by_for(side.source))  # for loader in loaders
            # while train(model, loader): the head trains, and the body comes between two epochs
            stmt = next((s for s in repeat.body if self.names.is_inside(node, s)), repeat.body[0])
            parts = (n for n in walk(loop.source) if isinstance(n, ast.Name | ast.Attribute))  # loaders[phase]
            writes = [w for n in parts for k, _ in self.roles.roots(n) for w in self.roles.writes(k)]
            made = any(self.names.is_inside(w, repeat) for w in writes)
            # if epoch < 10: loader = …: what stands before the statement has no loader yet
            lost = gone_through or any(self.names.is_inside(w, stmt) for w in writes)
            loader = None if lost else spelled_by_caller(self.roles, side.source, repeat, side.calls, node, self.names.function(loop.node))
            if loader is not None and self._bound_in(loader, repeat):  # for phase, loader in loaders.items()
                loader = None
            kept: list[ast.AST] = [*writes]
            if loader is not None:  # trainer = Trainer(model, loader): trainer.loader is read behind it
                targets = [b.target for b in self._bindings_of(loader, repeat)]
                bound = [t for t in targets if any(self.names.is_inside(t, s) for s in repeat.body)]
                made = made or bool(bound)
                loader = None if any(self.names.is_inside(t, stmt) for t in bound) else loader
                kept += targets
            around = [a for a in self.names.ancestors(repeat, below=self.names.function(repeat)) if isinstance(a, ast.For | ast.AsyncFor | ast.While)]
            again = [a for a in around if not any(self.names.is_inside(w, a) for w in kept)]
            perhaps = loader is not None and not made and self._perhaps_unbound(loader, repeat)
            if perhaps:  # if args.train: loader = …
                stmt = self.names.statement(node)
                made_for_it = self.names.statement(loop.source)  # bar = tqdm(enumerate(loader))
                if node is loop.node and self.names.is_inside(made_for_it, repeat):
                    stmt = made_for_it
            key = (repeat, loader, stmt if perhaps else None)
            out.setdefault(key, EpochPlace(repeat, stmt, loader, made or perhaps, tuple(again)))
            passes.setdefault(key, {})[node] = None
        return [replace(place, passes=tuple(passes[key])) for key, place in out.items()]

    def _perhaps_unbound(self, text: str, repeat: Loop) -> bool:
        """Whether a variable of an expression is given its values under a test alone, which a loop does not stand behind."""
        for word in {n.id for n in walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}:
            targets = [b.target for b in self.names.bindings(self.names.scope_of[repeat], word)]
            above = [[a for a in self.names.ancestors(t) if isinstance(a, ast.If) and not is_main_guard(a)] for t in targets]
            tests = [{a for a in some if not self.names.is_inside(repeat, a)} for some in above]
            if targets and all(any(not self._in_both(a, targets) for a in some) for some in tests):
                return True
        return False

    def _in_both(self, test: ast.If, targets: list[ast.AST]) -> bool:
        """Whether both branches of a test give a variable a value."""
        return all(any(self.names.is_inside(t, s) for t in targets for s in branch) for branch in (test.body, test.orelse))

    def _bound_in(self, text: str, repeat: Loop) -> bool:
        """Whether a variable of an expression gets its values from a loop in the body of another one."""
        found = (b for b in self._bindings_of(text, repeat) if b.how == "for")
        return any(self.names.is_inside(b.target, s) for b in found for s in repeat.body)

    def _bindings_of(self, text: str, repeat: Loop) -> Iterator[Binding]:
        """The bindings of the variables of an expression that is read in a loop."""
        words = {n.id for n in walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
        return (b for w in words for b in self.names.bindings(self.names.scope_of[repeat], w))

    def _bound_by_for(self, expr: ast.expr) -> Iterator[Binding]:
        for n in walk(expr):
            if isinstance(n, ast.Name):
                yield from (b for b in self.names.bindings(self.names.scope_of[n], n.id) if b.how == "for")

    # ------------------------------------------------------------------ what rank 0 makes before the others come
    @cached_property
    def builds(self) -> tuple[builds.Build, ...]:
        """What the program makes where it is missing."""
        return builds.builds(self)

    def made_once(self, node: ast.AST) -> bool:
        """Whether rank 0 alone comes to the node, since the files that it makes there are not missing when the others come."""
        return builds.only_in(self, node, tuple(b for b in self.builds if b.by_main))

    # ------------------------------------------------------------------ where ranks meet
    @cached_property
    def course(self) -> Course:
        """What decides about the course of the training, for all ranks together."""
        return Course(self)

    @cached_property
    def moving(self) -> Moving:
        """The numbers of the batch that move what outlives a step, as they are those of the global batch."""
        return Moving(self)

    @cached_property
    def evaluations(self) -> tuple[evaluation.Evaluation, ...]:
        """How every loop over batches that does not train runs in the migrated program."""
        return evaluation.evaluations(self)

    @cached_property
    def buffers(self) -> ast.AST | None:
        """What shows that a model may hold buffers; None where none does."""
        return layers.buffers(self.roles)

    @cached_property
    def meetings(self) -> tuple[ast.AST, ...]:
        """The loops of the migrated program at which every rank waits for the others: those that train, and evaluations that are split or synchronised."""
        evaluated = (e.loop.node for e in self.evaluations if e.meets)
        return tuple(dict.fromkeys((*(b.node for b in self.roles.train_loops), *evaluated)))

    def meets(self, node: ast.AST) -> bool:
        """Whether running the node leads to such a loop."""
        functions = self.roles.all_entered(node)
        return any(self.names.is_inside(m, node) or self.names.function(m) in functions for m in self.meetings)

    def leading_to(self, node: ast.AST) -> Iterator[ast.AST]:
        """The node and every call that may lead to it, through the functions of the program."""
        return ranks.leading_to(self.roles, node)

    def starts(self, node: ast.AST) -> bool:
        """Whether a way is seen from the start of the program to the node: through calls, a decorator or a function that is handed on."""
        by_name = {self.names.module_of(c) for c in self.calls("fire.Fire") if not c.args and not c.keywords}  # any function of the module
        for n in self.leading_to(node):
            function = self.names.function(n)
            if not isinstance(function, FunctionNode) or function.decorator_list or self.names.scope_of[function] in by_name:
                return True
            if any(not isinstance(p := self.names.parent[r], ast.Call) or p.func is not r for r in self.names.reads(function.name)):
                return True
        return False

    @cached_property
    def repeating_loops(self) -> tuple[Loop, ...]:
        """Every loop round a training loop, through the functions that lead to it, innermost first; loops over loaders are left out."""
        over_loaders = {b.node for b in self.roles.batch_loops}
        return tuple(dict.fromkeys(a for b in self.roles.train_loops for a in rounds(self.roles, b.node) if a not in over_loaders))


@dataclass(frozen=True, eq=False, slots=True)
class EpochPlace:
    """A loop that repeats training; ``inner`` is its statement that leads to the batches; ``made_inside``: the loader is built in it, or perhaps not at
    all, and is not there before that statement; ``again``: loops round it that come to the same loader in each turn; ``passes``: what leads to the
    batches in a turn, more than one where several models are trained on them.
    """

    loop: Loop
    inner: ast.stmt
    loader: str | None
    made_inside: bool
    again: tuple[Loop, ...]
    passes: tuple[ast.AST, ...] = ()
