"""An execution that notes what the judge wants to know of draws, steps, moves and numbers told."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.branches import Chain
from dpmigrate.execution.divergence import differing
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame, Library
from dpmigrate.execution.objects import Location, Object
from dpmigrate.execution.trace import Event, Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    UNBOUND,
    Atom,
    Bound,
    Const,
    Data,
    Method,
    Origin,
    Ref,
    Setting,
    Unknown,
    Value,
    const,
    known,
)
from dpmigrate.judge import comparing, file_order, left_on_cpu, made_first, moved_in_part, overtaken, shared_files, shown, workers
from dpmigrate.judge.given import multiplied
from dpmigrate.judge.handling import Handling
from dpmigrate.judge.lying import Lying
from dpmigrate.judge.notes import (
    AUTOCAST,
    BEGUN,
    DROPPING,
    FRESH,
    INSIDE,
    NEW_SCALER,
    OWN_IN_TRAINING,
    PASSED,
    READ,
    SYNCHRONISED,
    TOLD,
    TOLD_OF,
    WRITTEN,
    one_of,
)
from dpmigrate.judge.path_forms import Forms
from dpmigrate.judge.wrapping import Wrapping
from dpmigrate.library.collating import filled_up
from dpmigrate.library.files import FIRST, MADE_BEFORE
from dpmigrate.library.module_tree import is_module
from dpmigrate.library.natures import MAIN_ALONE
from dpmigrate.library.runtime import OF_MAIN
from dpmigrate.library.sites import GRAD
from dpmigrate.library.streams import GENERATOR, OWN, SHARED
from dpmigrate.library.torch_optim import MADE_WITH
from dpmigrate.program import Program


class Judged(Wrapping, Handling, Lying):
    """What invariants want to know beside an event is noted when it happens."""

    def __init__(self, program: Program, library: Library) -> None:
        super().__init__(program, library)
        #: the same program, executed as if all ranks drew the same numbers
        self.with_equal_draws: Judged | None = None
        #: tests of what the ranks have found in their turns, where these are over
        self.late: dict[ast.AST, None] = {}
        #: where rank 0 writes a file that others may still be reading
        self.rewritten: dict[ast.AST, None] = {}
        #: the functions and methods of the program
        self.own_names = frozenset(n.name for n in program.every(ast.FunctionDef))
        #: whether each rank has drawn numbers of its own since samples were asked for
        self.drew = False
        #: the loaders for whose samples each rank draws numbers of its own
        self.drawn_for: set[int] = set()
        #: how many events there were at the last backward pass: what comes after them trains nothing
        self.trained = 0
        #: the files that rank 0 has written in its own branches since the ranks met
        self.written_apart: frozenset[str] = frozenset()
        #: the calls by which all ranks ask for a file, out of turn
        self.questions: dict[ast.AST, None] = {}
        #: all files that were noted under a field of the process, on any way
        self.noted_files: dict[Location, frozenset[str]] = {}
        #: the questions about files, by their places
        self.asked_at: dict[str, ast.AST] = {}
        #: what files give back that rank 0 writes in its turn
        self.made_first = made_first.Notes()
        #: whether rank 0 may still be removing the folder that a call makes
        self.making_early = False
        #: the forms of paths
        self.forms = Forms(self)
        #: what all ranks ask for, with the questions; those of which rank 0 writes the file before the ranks meet
        self.asked_by_all: dict[file_order.Deed, dict[ast.AST, None]] = {}
        #: the forms of the paths that questions were asked of, by calls
        self.forms_asked: dict[ast.AST, set[str]] = {}
        self.overtaken_questions: dict[ast.AST, None] = {}
        #: what has been noted of files since a loop began
        self.done_with_files: set[file_order.Deed] = set()
        # what a call finds is the same then before and after the first module is called, and before and
        # after the first block without gradients
        self.heap.write(INSIDE, const(False))
        self.heap.write(GRAD, const(True))

    def call(self, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        """A call; of several samplers one is told the epoch: it is that of the loader which it was
        taken from.
        """
        backward = any(isinstance(a, Method) and a.name == "backward" for a in callee)
        unseen = tuple(a for a in callee if isinstance(a, Unknown))
        if backward and unseen:
            self.event("judge backward of unseen", node, frame, why=unseen)
        shared_files.noted(self, callee, arguments, node, frame)
        file_order.noted(self, callee, arguments, node, frame)
        shown.noted(self, callee, node, frame)
        made_first.noted(self, callee, arguments, node)
        before, self.sole = self.sole, len({self._kind(a) for a in callee if a != UNBOUND}) == 1
        result = super().call(callee, arguments, node, frame)
        self.sole = before
        if any(isinstance(a, Bound) and self._is_module(a.receiver) for a in callee):
            self.event("method of a module", node, frame, of=callee, gives=result)
        for function in dict.fromkeys(f for a in callee if (f := self._definition(a)) is not None):
            result = made_first.handed_out(self, result, function, node)
        result = left_on_cpu.moved(self, callee, arguments, result, node, frame)
        result = self._of_main(result, tuple(a.receiver for a in callee if isinstance(a, Method)), node)
        told = [a.receiver for a in callee if isinstance(a, Method) and a.name == "set_epoch"]
        known = [a for a in callee if not isinstance(a, Unknown)]
        if len(told) == len(known) and len(callee) > 1:
            found = {o.number for o in self.objects(told)}
            for number in found:
                self.heap.write((number, TOLD), one_of(found))
        return result

    def operate(
        self, op: ast.operator, left: Value, right: Value, node: ast.AST, frame: Frame, *,
        carries: bool = False,
    ) -> Value:  # fmt: skip
        """An operator; what the number of ranks multiplies is a number."""
        if isinstance(op, ast.Mult):
            multiplied(self, left, right, node, frame)
            for listed, count in ((left, right), (right, left)):
                if any(o.kind == "list" for o in self.objects(listed)):
                    filled_up(self, count)
        result = super().operate(op, left, right, node, frame, carries=carries)
        return left_on_cpu.carried(self, result, (*left, *right))

    def _compared(self, node: ast.Compare, left: Value, rights: list[Value], frame: Frame) -> Value:
        """A comparison; how many samples a rank has had is held against what is meant for all."""
        comparing.noted(self, node, left, rights, frame)
        return super()._compared(node, left, rights, frame)

    def attribute(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """An attribute; a layer of torch has no ``module`` as a wrapper has."""
        made = self.objects(owner)
        if name == "module" and len(made) == len(owner) > 0 and all(o.kind in ("module", "container") for o in made):
            if all(self.heap.read((o.number, name)) is None for o in made):
                self.event("no attribute", node, frame, owner=owner, name=const(name))
        return self._of_main(super().attribute(owner, name, node, frame), owner, node)

    def _of_main(self, made: Value, owner: Value, node: ast.AST) -> Value:
        """What an object gives that rank 0 alone has: a path or a number is none on the others."""
        plain = made and all(isinstance(a, Const | Setting | Data) for a in made)
        if not plain or not any(self.heap.read((o.number, OF_MAIN)) for o in self.objects(owner)):
            return made
        return differing(made, Parting(Origin(node, MAIN_ALONE), True))

    def event(self, kind: str, node: ast.AST, frame: Frame, **values: Value) -> Event:
        shown.met(self, kind, values, node, frame)
        values |= self._noted(kind, values)
        if kind == "seed":
            values["alike in workers"] = const(workers.alike(self, node, frame))
        self._before(kind, values)
        happened = super().event(kind, node, frame, **values)
        self._read_or_written(kind, node, values)
        saved = kind == "save by rank 0" or (kind == "save" and "loadable" in values)
        if saved and self.heap.read(FIRST) != const(True):  # in turn the others come when it is there
            self.heap.widen(WRITTEN, values["path"])
        self._after(kind, node, frame, values)
        return happened

    def _noted(self, kind: str, values: Mapping[str, Value]) -> dict[str, Value]:
        """What invariants want to know of an event beside its values."""
        match kind:
            case "forward":  # all other layers draw nothing
                draws = any(made.name.startswith(DROPPING) for made in self.objects(values["module"]))
                return {"alike": const(draws and self._draws_alike(values))}
            case "draw":
                over, alike = self._over(), const(self._draws_alike(values))
                of_sample = self._in_sample() or self._for_samples(values.get("made", NOTHING), over)
                stream = str(known(values.get("stream", const("torch"))))
                own = values.get("same", NOTHING) if stream == GENERATOR else self.heap.read(OWN[stream]) or const(False)
                return {"alike": alike, "over": over, "of a sample": const(of_sample), "own": own}
            case "backward":
                return {
                    "alike": const(self.heap.read(OWN["torch"]) == SHARED), "over": self._over(),
                    "autocast": self.heap.read(AUTOCAST) or const(False),
                    "unscaled": const(self._unscaled_before(values["loss"])),
                    "overtaken": overtaken.overtaken(self, values["loss"]),
                }  # fmt: skip
            case "step":
                autocast = self.heap.read(AUTOCAST) or const(False)
                return {"settings": self._settings(values["optimizer"]), "autocast": autocast}
            case "scaler step":
                return {"anew": const(self._by_a_new_scaler(values["optimizer"], values["scaler"]))}
            case "collective":
                nested = values["name"] == const("main_first")
                return {"in turn": const(self.heap.read(FIRST) == const(True) and not nested)}
            case "loop":
                over = tuple(Ref(n) for n in sorted(self.gone_through(values["iterable"])))
                return {"over": over, "as they come": const(self._as_they_come(values["iterable"]))}
            case "judge statistics":
                return {"over": self._over()}
            case (
                shared_files.WRITES | shared_files.ASKS | shared_files.REWRITES | shared_files.APART | shared_files.OF_A_SAMPLE
                | file_order.EARLY | file_order.HASTY
            ):  # fmt: skip
                return {"of a sample": const(self._in_sample())}
            case "open" | "files" | "typed":
                in_turn = const(self.heap.read(FIRST) == const(True))
                return {"in turn": in_turn, "late": const(self.making_early)}
            case "load":
                written = self.heap.read(WRITTEN) or NONE
                return {"written": written, "of a sample": const(self._in_sample())}
            case "clip":
                return {"scaled": const(self._scaled(values["parameters"]))}
            case "attribute":
                return {"of a sample": const(self._in_sample())}
            case "rank 0 decides":
                return {"within": self.loops_under_way()}
            case "state" | "load state":
                return {"sole": const(self.sole)}
            case _ if kind in TOLD_OF:
                numbers = tuple(dict.fromkeys(d for v in values.values() for d in self._numbers(v, set())))
                perhaps = tuple(d for v in values.values() for d in self._left_over(v))
                return {
                    "over": self._over(), "numbers": numbers, "perhaps": perhaps, "within": self.loops_under_way(),
                    "in turn": self.heap.read(FIRST) or const(False),
                }  # fmt: skip
        return {}

    def _before(self, kind: str, values: Mapping[str, Value]) -> None:
        """What an event changes of what is noted, whether it happened before or not."""
        match kind:
            case "backward":
                shared_files.met(self)  # gradients are averaged: rank 0 has come here as well
                file_order.met(self)
                self.heap.write(BEGUN, const(True))
                self.heap.write(READ, NONE)
                self.trained = len(self.trace.events)
                for stream, at in OWN_IN_TRAINING.items():
                    self.heap.widen(at, self.heap.read(OWN[stream]) or const(False))
            case "made":  # perhaps again, at the same place
                for made in self.objects(values["object"]):
                    if made.kind == "scaler":
                        self.heap.write((made.number, NEW_SCALER), const(True))
            case "streams joined":  # what is drawn now is for the next training
                self.heap.write(BEGUN, const(False))
            case "collective":  # rank 0 has come here as well
                shared_files.met(self)
                if values["name"] == const("main_first"):
                    file_order.waited_for(self)
                else:
                    file_order.met(self)
                self.heap.write(WRITTEN, NONE)
                self.heap.write(READ, NONE)
            case "drawn apart":
                self.drew = True

    def _after(self, kind: str, node: ast.AST, frame: Frame, values: Mapping[str, Value]) -> None:
        """What becomes of models when an event has happened."""
        match kind:
            case "forward" if values["grad"] != const(False):
                for made in self.objects(values["module"]):
                    if made.name in SYNCHRONISED:
                        self.heap.write((made.number, PASSED), FRESH)
                        self._updated(made, values["training"])
            case "through":
                for made in self.objects(values["module"]):
                    overtaken.passed(self, made.number, values["given"])
            case "backward":
                self._differentiated(values["loss"], node, frame)
            case "wrap":
                self._wrapped(values["object"], values["module"])
                moved_in_part.noted(self, values["module"], node, frame)
            case "move":
                self._moved(values["module"], values["place"], node, frame)
            case "requires grad":
                self._wanted(values["target"], values["flag"], node, frame)
            case "attribute" if values["name"] == const("requires_grad"):
                self._wanted(values["owner"], values["new"], node, frame)

    def _read_or_written(self, kind: str, node: ast.AST, values: Mapping[str, Value]) -> None:
        """What all ranks read, and what rank 0 writes while the others may still be reading it."""
        if kind not in ("load", "open", "save by rank 0", "main path"):
            return
        mode = str(known(values.get("mode") or const("r")))
        if self.parted is None and (kind == "load" or (kind == "open" and mode[:1] == "r" and "+" not in mode)):
            before = self.heap.read(READ) or NONE
            named = tuple(a for a in values["path"] if isinstance(a, Const) and a.type == "str")
            if named:
                self.heap.write(READ, join(tuple(a for a in before if (a,) != NONE), named))
        elif kind in ("save by rank 0", "main path"):
            read = self.heap.read(READ) or NONE
            if NONE[0] not in read and set(read) & set(values["path"]):
                self.rewritten.setdefault(node, None)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, **how: Any) -> bool:
        """A loop; of one that trains, the ranks have met in it."""
        before, at = self.trained, self.heap.read(file_order.DONE) or NOTHING
        outer, self.done_with_files = self.done_with_files, set()
        ends = super()._loop(node, frame, **how)
        if self.trained != before:
            file_order.trained(self, at, self.done_with_files)
        self.done_with_files |= outer
        return ends

    def _if(self, node: ast.If, frame: Frame, chain: Chain | None = None) -> bool:
        """A test; in turn rank 0 makes and saves what the others load: all have the same then."""
        in_turn = self.heap.read(FIRST) == const(True)
        alive = super()._if(node, frame, None if in_turn else chain)
        if in_turn:
            made_first.tested(self, node, frame)
        return alive

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently; what they find in their turns is for these alone."""
        found = super().parting(condition, node)
        if found is not None and found.origin.word == MADE_BEFORE:
            if self.heap.read(FIRST) != const(True):
                self.late.setdefault(node, None)
        return found

    def _settings(self, optimizer: Value) -> Value:
        """What an optimizer was made with, and its groups are set to, but for their parameters."""
        made = (self._field(o, MADE_WITH) for o in self.objects(optimizer))
        groups = [g for o in self.objects(optimizer) for g in self.objects(self._field(o, "groups"))]
        each = [g for held in groups for g in self.objects(self.contents(held))]
        named = (
            held for g in each for name, held in self.heap.names(g.number)
            if isinstance(name, Const) and name.value != "params"
        )  # fmt: skip
        return join(*made, *named)

    def _field(self, made: Object, name: str) -> Value:
        return self.heap.read((made.number, name)) or NOTHING

    def _definition(self, atom: Atom) -> ast.AST | None:
        """The function of the program that is called."""
        number = atom.function if isinstance(atom, Bound) else getattr(atom, "object", None)
        made = self.heap.objects.get(number) if number is not None else None
        return made.extra.node if made is not None and made.kind == "function" else None

    def _is_module(self, atom: Atom) -> bool:
        made = self.object(atom)
        return made is not None and is_module(self, made)

    def _kind(self, atom: Atom) -> str:
        """What is called, or whose method it is."""
        made = self.object(atom.receiver if isinstance(atom, Method) else atom)
        return made.kind if made is not None else type(atom).__name__
