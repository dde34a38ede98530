"""An execution that notes what the judge wants to know of draws, steps, moves and numbers told."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.branches import Chain
from dpmigrate.execution.machine import Frame, Library
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event, Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    UNBOUND,
    Atom,
    Bound,
    Const,
    Data,
    Foreign,
    Method,
    Ref,
    Unknown,
    Value,
    const,
    data,
    join,
    known,
    value,
)
from dpmigrate.judge import overtaken
from dpmigrate.judge.batch_norms import layers
from dpmigrate.judge.cached import cached, hands_out, last_name, undivided
from dpmigrate.judge.choosing import Choosing
from dpmigrate.judge.given import multiplied
from dpmigrate.judge.notes import (
    AT_WRAP,
    AUTOCAST,
    AWAY,
    BEGUN,
    BY_SCALER,
    DOWN,
    DROPPING,
    FRESH,
    FROZEN,
    GIVEN_SAMPLES,
    GROUP,
    INSIDE,
    LATE,
    MOVED,
    NEW_SCALER,
    ONE_BY_ONE,
    OWN_IN_TRAINING,
    PASSED,
    READ,
    SHARE,
    STATISTICS,
    SYNCHRONISED,
    TOLD,
    TOLD_OF,
    UP,
    USED,
    WRITTEN,
    is_loader,
    one_of,
    wrappers,
)
from dpmigrate.library.batches import divided
from dpmigrate.library.files import FIRST, MADE_BEFORE
from dpmigrate.library.modules import owned
from dpmigrate.library.sites import GRAD
from dpmigrate.library.streams import GENERATOR, OWN, SEEDED, SHARED
from dpmigrate.library.torch_amp import DONE
from dpmigrate.library.torch_optim import MADE_WITH
from dpmigrate.program import Program


class Judged(Choosing):
    """An execution in which draws say whether all ranks draw the same numbers in training.

    That is put together where they draw: events that happen on several ways join their values.
    """

    #: functions that libraries call for each sample, while they are called
    of_samples: frozenset[ast.AST] = frozenset()
    #: whether all that is called may be is of one kind: a wrapper, and not the bare model as well
    sole = True

    def __init__(self, program: Program, library: Library) -> None:
        super().__init__(program, library)
        #: tests of what the ranks have found in their turns, where these are over
        self.late: dict[ast.AST, None] = {}
        #: where rank 0 writes a file that others may still be reading
        self.rewritten: dict[ast.AST, None] = {}
        #: whether each rank has drawn numbers of its own since samples were asked for
        self.drew = False
        #: the loaders for whose samples each rank draws numbers of its own
        self.drawn_for: set[int] = set()
        #: the data that texts were made of, by the node of the text
        self.in_texts: dict[ast.AST, dict[Data, None]] = {}
        #: how many events there were at the last backward pass: what comes after them trains nothing
        self.trained = 0
        #: whether rank 0 may still be removing a folder
        self.removing = False
        # what a call finds before and after the first module is called is the same then
        self.heap.write(INSIDE, const(False))

    def call(self, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        """A call; of several samplers one is told the epoch: it is that of the loader which it was
        taken from.
        """
        backward = any(isinstance(a, Method) and a.name == "backward" for a in callee)
        unseen = tuple(a for a in callee if isinstance(a, Unknown))
        if backward and unseen:
            self.event("judge backward of unseen", node, frame, why=unseen)
        before, self.sole = self.sole, len({self._kind(a) for a in callee if a != UNBOUND}) == 1
        result = super().call(callee, arguments, node, frame)
        self.sole = before
        for function in dict.fromkeys(f for a in callee if (f := self._definition(a)) is not None):
            result = undivided(self, result, function) if hands_out(function) else result
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
        return super().operate(op, left, right, node, frame, carries=carries)

    def attribute(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """An attribute; a layer of torch has no ``module`` as a wrapper has."""
        made = self.objects(owner)
        if name == "module" and len(made) == len(owner) > 0 and all(o.kind in ("module", "container") for o in made):
            if all(self.heap.read((o.number, name)) is None for o in made):
                self.event("no attribute", node, frame, owner=owner, name=const(name))
        return super().attribute(owner, name, node, frame)

    def event(self, kind: str, node: ast.AST, frame: Frame, **values: Value) -> Event:
        values |= self._noted(kind, values)
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
                over = tuple(Ref(n) for n in sorted(self._gone_through(values["iterable"])))
                return {"over": over, "as they come": const(self._as_they_come(values["iterable"]))}
            case "judge statistics":
                return {"over": self._over()}
            case "open" | "files" | "typed":
                in_turn = const(self.heap.read(FIRST) == const(True))
                return {"in turn": in_turn, "late": const(self.removing)}
            case "load":
                written = self.heap.read(WRITTEN) or NONE
                return {"written": written, "of a sample": const(self._in_sample())}
            case "clip":
                return {"scaled": const(self._scaled(values["parameters"]))}
            case "rank 0 decides":
                return {"within": self.loops_under_way()}
            case "state" | "load state":
                return {"sole": const(self.sole)}
            case _ if kind in TOLD_OF:
                numbers = tuple(self._numbers(join(*values.values()), set()))
                perhaps = tuple(d for v in values.values() for d in self._left_over(v))
                return {
                    "over": self._over(), "numbers": numbers, "perhaps": perhaps, "within": self.loops_under_way(),
                }  # fmt: skip
        return {}

    def _before(self, kind: str, values: Mapping[str, Value]) -> None:
        """What an event changes of what is noted, whether it happened before or not."""
        match kind:
            case "backward":
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
                self.heap.write(WRITTEN, NONE)
                self.heap.write(READ, NONE)
                self.removing = False
            case "drawn apart":
                self.drew = True
            case "open" | "files" | "typed":
                by_main = self.parted is not None and self.parted.origin.word.startswith("rank 0")
                self.removing = self.removing or (by_main and values.get("removed") == const(True))

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

    def _draws_alike(self, values: Mapping[str, Value]) -> bool:
        """Whether a draw, or a layer that drops, gives the same numbers on all ranks in training."""
        if not self.heap.holds(BEGUN, const(True)[0]):
            return False
        trains = self.heap.read(GRAD) != const(False)  # an evaluation may draw the same
        if "training" in values and not (trains and const(True)[0] in values["training"]):
            return False
        stream = str(known(values.get("stream", const("torch"))))
        if stream == GENERATOR:
            return trains and values.get("same") == const(True)
        own = self.heap.read(OWN[stream]) or const(False)
        return const(False)[0] in own or (trains and SEEDED[0] in own)

    def _for_samples(self, made: Value, over: Value) -> bool:
        """Whether numbers are drawn for the samples of a batch: as many as these, or several while the
        rank goes through its own batches. A single number may be for all samples together.
        """
        drawn = data(made)
        if any(d.placement.kind is Kind.ROWS for d in drawn):
            return True
        own = any(o.name == SHARE or divided(self, o) for o in self.objects(over))
        return own and any(d.kind != "number" and d.axes != 0 for d in drawn)

    def text(self, parts: list[Value], node: ast.AST, frame: Frame) -> Value:
        made = super().text(parts, node, frame)
        if data(made):
            held = self.in_texts.setdefault(node, {})
            held |= {d: None for v in parts for d in data(self.shown(v, node, frame), deep=True)}
        return made

    def _if(self, node: ast.If, frame: Frame, chain: Chain | None = None) -> bool:
        """A test; in turn rank 0 makes and saves what the others load: all have the same then."""
        in_turn = self.heap.read(FIRST) == const(True)
        alive = super()._if(node, frame, None if in_turn else chain)
        for target in cached(node) if in_turn else ():
            at = self.location(target, frame)
            held = self.heap.read(at) if at is not None else None
            if at is not None and held:
                self.heap.write(at, undivided(self, held, node))
        return alive

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently; what they find in their turns is for these alone."""
        found = super().parting(condition, node)
        if found is not None and found.origin.word == MADE_BEFORE:
            if self.heap.read(FIRST) != const(True):
                self.late.setdefault(node, None)
        return found

    def _in_sample(self) -> bool:
        """Whether a data set is being asked for a sample, or one is transformed."""
        names = {getattr(f, "name", "") for f in self.under_way()}
        return "__getitem__" in names or bool(self.of_samples & set(self.under_way()))

    def _scaled(self, parameters: Value) -> bool:
        """Whether the gradients of parameters carry the scale of a GradScaler, which has not taken
        it off.
        """
        reached = {n for d in data(parameters) for n in d.reached}
        parts = {p for n in reached for p in owned(self, n)}
        passed = {o.number for p in parts for o in self.objects(self.heap.read((p, "grad")) or ())}
        losses = [d for n in passed for d in data(self.heap.read((n, "loss")) or ())]
        by = [{n for n in d.reached if self.heap.objects[n].kind == "scaler"} for d in losses]
        done = [
            held
            for n in set().union(*by)
            for name, held in list(self.heap.names(n))
            if str(name).startswith(DONE) and self._steps(str(name).removeprefix(DONE), parts)
        ]
        return bool(by) and all(by) and all(const("unscaled")[0] not in v for v in done)

    def _by_a_new_scaler(self, optimizer: Value, scaler: Value) -> bool:
        """Whether another scaler has stepped an optimizer before this one was made."""
        anew = False
        for made in self.objects(scaler):
            new = self.heap.read((made.number, NEW_SCALER)) == const(True)
            for stepped in self.objects(optimizer):
                held = self.heap.read((stepped.number, BY_SCALER)) or NOTHING  # a loop may have no turns
                anew = anew or (new and const(True)[0] in held)
                self.heap.write((stepped.number, BY_SCALER), const(True))
            self.heap.write((made.number, NEW_SCALER), const(False))
        return anew

    def _unscaled_before(self, loss: Value) -> bool:
        """Whether gradients that carry a scale come to such of which it was taken off."""
        scalers = {n for d in data(loss) for n in d.reached if self.heap.objects[n].kind == "scaler"}
        parts = {p for d in data(loss) for n in d.reached for p in owned(self, n)}
        return any(
            const("unscaled")[0] in held and self._steps(str(name).removeprefix(DONE), parts)
            for n in scalers for name, held in list(self.heap.names(n))
            if str(name).startswith(DONE)
        )  # fmt: skip

    def _steps(self, optimizer: str, parts: set[int]) -> bool:
        """Whether an optimizer, by its number, may step some of the parameters; one that is not
        followed may.
        """
        if not optimizer.isdigit():
            return True
        given = self.heap.read((int(optimizer), "parameters")) or NOTHING
        return any(owned(self, n) & parts for d in data(given) for n in d.reached)

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

    def _over(self) -> Value:
        """The loaders and shares that are gone through."""
        return tuple(Ref(n) for n in sorted({n for v in self.passes for n in self._gone_through(v)}))

    def _gone_through(self, iterable: Value) -> set[int]:
        """The loaders and shares behind an iterable: ``tqdm(enumerate(loader))``."""
        found: set[int] = set()
        for made in self.objects(iterable):
            if is_loader(self, made) or made.name == SHARE:
                found.add(made.number)
            for name in list(self.heap.fields.get(made.number, ())):
                if isinstance(name, str) and name.startswith("source"):
                    found |= self._gone_through(self.heap.read((made.number, name)) or NOTHING)
        return found

    def _as_they_come(self, iterable: Value) -> bool:
        """Whether an iterable is sure to give the batches of loaders one by one: ``tqdm(enumerate(loader))``."""
        if not iterable:
            return False
        for atom in iterable:
            made = self.object(atom)
            if made is None or is_loader(self, made):
                if made is None:
                    return False
                continue
            fields = (n for n in list(self.heap.fields.get(made.number, ())) if isinstance(n, str) and n.startswith("source"))
            inner = [held for n in fields if (held := self.heap.read((made.number, n)))]
            if not (made.kind == "bar" or made.name in ONE_BY_ONE) or not inner or not all(map(self._as_they_come, inner)):
                return False
        return True

    def _numbers(self, v: Value, seen: set[int]) -> Iterator[Data]:
        """The data in a value, with those in lists, dictionaries and texts."""
        for d in data(v, deep=True):
            yield from self._in_text(d)
        for made in self.objects(v):
            if made.kind in ("list", "dict") and made.number not in seen:
                seen.add(made.number)
                yield from self._numbers(self.contents(made), seen)

    def _left_over(self, v: Value) -> Iterator[Data]:
        """The data of a list in whose place another one may be that the ranks have put together: the
        first may be the empty one of a loop without turns.
        """
        kept = [list(self._numbers((Ref(o.number),), set())) for o in self.objects(v) if o.kind in ("list", "dict")]
        if any(held and all(d.placement.kind in placements.EQUAL for d in held) for held in kept):
            yield from (d for held in kept for d in held)

    def _in_text(self, d: Data, depth: int = 4) -> Iterator[Data]:
        """The data that a text is made of; what is no text, or more than so many in each other, itself."""
        held = self.in_texts.get(d.origin.node) if d.kind == "text" and d.origin is not None else None
        if not held or not depth:
            yield d
            return
        for part in held:
            yield from self._in_text(part, depth - 1)

    def _wrapped(self, wrapper: Value, model: Value) -> None:
        """Keeps which layers are frozen when DDP looks for parameters that get gradients: none
        where it is shown all of them (``thaws``).
        """
        if any(self.heap.read((w.number, "thaws")) == const(True) for w in self.objects(wrapper)):
            return
        for made in self.objects(model):
            for number in owned(self, made.number):
                frozen = self.heap.read((number, FROZEN))
                self.heap.write((number, AT_WRAP), frozen or const(False))

    def _moved(self, model: Value, place: Value, node: ast.AST, frame: Frame) -> None:
        """A model is moved; a wrapper whose model was not moved before is told."""
        if place and all(_is_type(a) for a in place):
            return
        if place == const("cpu"):
            parts = {n for made in self.objects(model) for n in owned(self, made.number)}
            if any(self._held(n, MOVED) for n in parts):
                mark = self.heap.new("mark", "move", node, frame.context, key="away")
                for number in wrappers(self):
                    if parts & {number, *owned(self, number)}:
                        self.heap.widen((number, AWAY), value(Ref(mark.number)))
            return
        for made in self.objects(model):
            parts = owned(self, made.number)
            inner = self.objects(self.heap.read((made.number, "module")) or NOTHING)
            # of what is not seen it is known alone that it was what a move gave
            moved = any(self._held(n, MOVED) for n in (*parts, *(o.number for o in inner)))
            before = not inner or moved or any(o.kind == "opaque" and o.name in (".to", ".cuda") for o in inner)
            if self.sole and made.name in SYNCHRONISED and not before:
                super().event("judge moved", node, frame, wrapper=model)
            for number in parts:
                self.heap.write((number, MOVED), const(True))

    def _wanted(self, target: Value, flag: Value, node: ast.AST, frame: Frame) -> None:
        """Layers are frozen, or get gradients again: noted, and whether they are wrapped then."""
        tops = {o.number for o in self.objects(target)} | {n for d in data(target) for n in d.reached}
        for number in sorted({n for top in tops for n in owned(self, top)}):
            at_wrap = self.heap.read((number, AT_WRAP))
            if at_wrap and flag == const(True):
                super().event("judge thawed", node, frame, at_wrap=at_wrap)
            self.heap.write((number, FROZEN), const(flag == const(False)))

    def _updated(self, wrapper: Object, training: Value) -> None:
        """A forward of a wrapper: what BatchNorm keeps is rank 0's, and then each rank's own where
        it trains.
        """
        own = training == const(True) and self.heap.read((wrapper.number, "sync_bn")) is None
        known = {k for _, k in layers(self, {wrapper.number})} if own else set()
        # of a model whose code is not seen it may be so
        kept = const(True in known) if known != {False} else join(const(True), const(False))
        self.heap.write((wrapper.number, STATISTICS), kept)

    def _differentiated(self, loss: Value, node: ast.AST, frame: Frame) -> None:
        """Notes of each wrapper, by its number, that a backward goes through whether another one
        did before.
        """
        through = {n for d in data(loss) for n in d.reached}
        through_wrappers = sorted(n for n in through if self.heap.objects[n].name in SYNCHRONISED)
        passed = {str(n): self.heap.read((n, PASSED)) or FRESH for n in through_wrappers}
        super().event("judge backward", node, frame, **passed)
        for number in through_wrappers:
            for mark in self.objects(self.heap.read((number, AWAY)) or NOTHING):
                assert mark.node is not None
                super().event("judge away", mark.node, frame, wrapper=value(Ref(number)))
            self.heap.write((number, PASSED), USED)
            overtaken.differentiated(self, number)
            seen = [n for n in sorted(owned(self, number)) if self._held(n, AT_WRAP) == {False}]
            late = [n for n in seen if self._held(n, FROZEN) == {True}]
            # where all are frozen DDP waits for none
            for part in late if len(late) < len(seen) else ():
                self.heap.widen((part, LATE), const(True))

    def _held(self, number: int, field: str) -> set[object]:
        """The constants in a field of an object."""
        return {a.value for a in self.heap.read((number, field)) or () if isinstance(a, Const)}

    def _definition(self, atom: Atom) -> ast.AST | None:
        """The function of the program that is called."""
        number = atom.function if isinstance(atom, Bound) else getattr(atom, "object", None)
        made = self.heap.objects.get(number) if number is not None else None
        return made.extra.node if made is not None and made.kind == "function" else None

    def _kind(self, atom: Atom) -> str:
        """What is called, or whose method it is."""
        made = self.object(atom.receiver if isinstance(atom, Method) else atom)
        return made.kind if made is not None else type(atom).__name__

    def call_back(self) -> None:
        """Workers, transforms, hooks and handlers are called while the program trains: the group is
        up then, and the ranks draw as they do in training.
        """
        before = {at: self.heap.read(at) for at in (GROUP, *OWN.values())}
        if before[GROUP] == DOWN:
            self.heap.write(GROUP, UP)
        for stream, at in OWN_IN_TRAINING.items():
            if own := self.heap.read(at):
                self.heap.write(OWN[stream], own)
        self.of_samples = frozenset(self._transforms())
        super().call_back()
        for at, held in before.items():
            if held:
                self.heap.write(at, held)

    def _transforms(self) -> Iterator[ast.AST]:
        """The functions and the ``__call__`` of objects that libraries have for the samples."""
        for atom, node in (*self.handed.items(), *self._special()):
            number = atom.function if isinstance(atom, Bound) else getattr(atom, "object", None)
            made = self.heap.objects[number] if number is not None else None
            named = {k.arg for k in getattr(node, "keywords", ())} | {last_name(getattr(node, "func", None))}
            if made is not None and (made.name == "__call__" or named & set(GIVEN_SAMPLES)):
                yield made.extra.node


def _is_type(atom: Atom) -> bool:
    """Whether it is a type of numbers and no device: ``model.to(torch.bfloat16)``."""
    return isinstance(atom, Foreign) and atom.name.startswith("torch.") and "." not in atom.name[6:]
