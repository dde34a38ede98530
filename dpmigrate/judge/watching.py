"""The tables of the libraries, with what only the judge wants to know of a pass over a loader."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.generators import RESUMED
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.objects import UNSEEN, Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Atom,
    Const,
    Data,
    Origin,
    Ref,
    Setting,
    Unbound,
    Value,
    const,
    data,
    unknown,
    value,
)
from dpmigrate.judge import left_on_cpu
from dpmigrate.judge.batch_norms import layers
from dpmigrate.judge.given import foreign, given
from dpmigrate.judge.notes import (
    AUTOCAST,
    BEFORE,
    CALLED,
    DOWN,
    DOWNLOADED,
    EPOCH,
    FRESH,
    GROUP,
    INSIDE,
    LAST_EPOCH,
    OF_LAYER,
    OUTSIDE,
    OWN_RANKS,
    REPORTED,
    REPORTS,
    RUNTIME,
    SET,
    STATISTICS,
    TELLING,
    THROUGH,
    TOLD,
    TRACKERS,
    UP,
    USED,
    is_loader,
    samplers,
    told_of,
    wrappers,
)
from dpmigrate.judge.redrawn import redrawn
from dpmigrate.library.batches import BLOCKS, WHOLE, divided
from dpmigrate.library.collating import assembled
from dpmigrate.library.files import FIRST
from dpmigrate.library.forward_pass import each_data, reaching
from dpmigrate.library.module_tree import MODULES, owned
from dpmigrate.library.natures import DRAW_FOR_SAMPLES, OWN_STATISTICS
from dpmigrate.library.registry import canonical
from dpmigrate.library.sites import GRAD, Site
from dpmigrate.library.streams import OWN
from dpmigrate.library.tables import Tables
from dpmigrate.program import Program

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged


#: what runs a part of a model again in the backward pass
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")


class Watching(Tables):
    """Notes what the judge wants to know: the epochs of samplers, the process group, the random
    streams.
    """

    #: whether each rank has its part of the batches of every loader, and not only of those that are divided
    all_divided = False

    def call(
        self, m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        if name.startswith(RUNTIME):
            self._of_runtime(m, name.removeprefix(RUNTIME), arguments, node, frame)
        elif canonical(name) in OWN_RANKS:
            m.event("judge own ranks", node, frame)
        elif canonical(name) in _CHECKPOINTS and not arguments.stars:
            if arguments.keywords.get("use_reentrant") != const(False):
                m.event("judge reentrant", node, frame)
        elif m.parted is None and _reports(name):
            m.event(REPORTED, node, frame)
        elif m.parted is None and _downloads(name, arguments) and m.heap.read(FIRST) != const(True):
            m.event(DOWNLOADED, node, frame)
        foreign(m, name, arguments, node, frame)
        return super().call(m, name, arguments, node, frame)

    def _of_runtime(
        self, m: Machine, word: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> None:
        group = m.heap.read(GROUP) or BEFORE
        working = const(bool(assembled(m)))
        m.event("judge runtime", node, frame, name=const(word), group=group, working=working)
        given(m, word, arguments, node, frame)
        if word == "setup":
            m.heap.write(GROUP, UP)
        elif word == "cleanup":
            m.heap.write(GROUP, DOWN)
        elif word == "sync_buffers":
            told = {o.number for v in arguments.all() for o in cast("Execution", m).objects(v)}
            for number in wrappers(m):
                if told & {number, *owned(m, number)}:
                    m.heap.write((number, STATISTICS), const(False))
            for number in {n for top in told for n in owned(m, top)}:
                if m.heap.read((number, OF_LAYER)):
                    m.heap.write((number, OF_LAYER), const(False))
        elif word == "clean_keys":
            m.event("judge cleaned", node, frame, given=arguments.joined())
        elif word == "next_epoch":
            for atom in arguments.get(0, "loader") or NOTHING:
                for at in samplers(m, atom):
                    m.heap.write(at, SET)
                    m.heap.write((at[0], EPOCH), NONE)

    def method(
        self,
        m: Machine,
        receiver: Atom,
        name: str,
        arguments: Arguments,
        node: ast.AST,
        frame: Frame,
    ) -> Value | None:
        made = m.object(receiver)
        if name == "set_epoch" and made is not None:
            m.heap.write((made.number, TOLD), SET)
            m.heap.write((made.number, EPOCH), arguments.get(0, "epoch") or NONE)
        unseen = made.kind in UNSEEN if made is not None else isinstance(receiver, Setting)
        if name.rpartition(".")[2] in TELLING and unseen:
            Site(cast("Execution", m), name, arguments, node, frame).tell("print")
        if name == "backward" and made is not None and made.kind in UNSEEN:
            why = unknown(f"what {made.name} gives", made.node)
            m.event("judge backward of unseen", node, frame, why=why)
        if name == "forward" and made is not None and made.kind in THROUGH:
            return self.called(m, receiver, arguments, node, frame)  # DDP averages in forward
        return super().method(m, receiver, name, arguments, node, frame)

    def called(
        self, m: Machine, receiver: Atom, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        made = m.object(receiver)
        kinds = m.kinds(made) if made is not None else frozenset()
        through = bool(kinds & THROUGH)
        if made is None or not (through or kinds & MODULES) or m.heap.read(INSIDE) == const(True):
            return super().called(m, receiver, arguments, node, frame)
        own = NOTHING if through else _evaluated(m, made, arguments, node, frame)
        if through:
            left_on_cpu.passed(m, value(Ref(made.number)), arguments, node, frame)
        else:
            given = Site(cast("Execution", m), "", arguments, node, frame).flat(arguments.joined())
            m.event("judge bare", node, frame, module=value(Ref(made.number)), given=given)
            _kept_of_part(m, made, given, node, frame)
        mode = m.heap.read((made.number, "mode training")) or const(True)
        if const(True)[0] in mode and m.heap.read(GRAD) != const(False):
            m.event(CALLED, node, frame, module=value(Ref(made.number)))
        m.heap.write(INSIDE, const(True))
        result = super().called(m, receiver, arguments, node, frame)
        m.heap.write(INSIDE, const(False))
        if const(True)[0] in own and result:
            result = each_data(m, result, lambda d: _by_own_statistics(d, node))
        return result if through or result is None else bare(m, result, made, node, frame)

    def entered(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> Value | None:
        if (made := _autocast(m, atom)) is not None:
            m.heap.write((made.number, OUTSIDE), m.heap.read(AUTOCAST) or const(False))
            m.heap.write(AUTOCAST, const(True))
        return super().entered(m, atom, node, frame)

    def left(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> None:
        if (made := _autocast(m, atom)) is not None:
            m.heap.write(AUTOCAST, m.heap.read((made.number, OUTSIDE)) or const(False))
        super().left(m, atom, node, frame)

    def _about(
        self, m: Machine, atom: Atom, name: str, node: ast.AST, frame: Frame
    ) -> Value | None:
        made = m.object(atom)
        if name == "begun" and made is not None and is_loader(m, made) and not _goes_on(m, made, node):
            told = join(*[m.heap.read(at) or FRESH for at in samplers(m, atom)])
            apart = const(redrawn(cast("Execution", m), made))
            own = {told_of(made.number): told}  # a function may go through several loaders
            places = samplers(m, atom)
            again = const(any(_as_before(m, n) for n, _ in places))
            stream = m.heap.read(OWN["torch"]) or const(False)
            m.event(
                "judge pass", node, frame, loader=value(Ref(made.number)), told=told, apart=apart, again=again,
                stream=stream, **own,
            )  # fmt: skip
            # what goes through the whole data set has a sampler of its own
            undivided = m.heap.read((made.number, "dealt")) in (const(WHOLE), const(BLOCKS))
            for at in () if undivided or node in peeks(cast("Execution", m).program) else places:
                m.heap.write(at, USED)
                m.heap.write((at[0], LAST_EPOCH), m.heap.read((at[0], EPOCH)) or NONE)
        judged = cast("Judged", m)
        judged.drew = False
        found = super()._about(m, atom, name, node, frame)
        if name == "__iter__" and found and made is not None and is_loader(m, made):
            if not self.all_divided and not divided(m, made) and not _order_of_its_own(m, made):
                # every rank goes through all of it
                if judged.drew:  # an execution that is known already does not say so again
                    judged.drawn_for.add(made.number)
                return alike(m, found, node, drawn=made.number in judged.drawn_for)
        return found


def _reports(name: str) -> bool:
    """Whether a function reports to an experiment tracker."""
    top, _, rest = name.partition(".")
    return top in TRACKERS and rest in REPORTS


def _downloads(name: str, arguments: Arguments) -> bool:
    """Whether a data set of a library is downloaded for certain."""
    of_library = name.partition(".")[0] in ("torchvision", "torchaudio", "torchtext") and ".datasets." in name
    return of_library and arguments.keywords.get("download") == const(True)


def _autocast(m: Machine, atom: Atom) -> Object | None:
    """The object behind ``with autocast():``."""
    made = m.object(atom)
    return made if made is not None and made.name == "autocast" else None


def _goes_on(m: Machine, made: Object, node: ast.AST) -> bool:
    """Whether it is no new pass that begins, but that of the first turn of a loop over a generator of
    the program, whose body is executed once more for a later turn. That is so of the first one in it
    over each loader at each place.
    """
    noted = m.heap.read(RESUMED) or const(False)
    if const(True)[0] not in noted or not all(isinstance(a, Const) for a in noted):
        return False
    this = const((made.number, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))
    m.heap.write(RESUMED, join(noted, this))
    return this[0] not in noted


def _as_before(m: Machine, sampler: int) -> bool:
    """Whether a sampler is told the epoch of its last pass, if there was one: one number, which is known."""
    told, last = m.heap.read((sampler, EPOCH)), m.heap.read((sampler, LAST_EPOCH))
    last = tuple(a for a in last or () if not isinstance(a, Unbound))
    return told is not None and told == last and len(told) == 1 and isinstance(told[0], Const) and told != NONE


def _evaluated(
    m: Machine, made: Object, arguments: Arguments, node: ast.AST, frame: Frame
) -> Value:
    """A model is called past its wrapper and does not train: whether its running statistics are
    each rank's own.
    """
    if m.heap.read((made.number, "mode training")) != const(False):
        return NOTHING
    parts = {made.number, *owned(m, made.number)}
    own = [m.heap.read((n, STATISTICS)) or NOTHING for n in wrappers(m) if parts & owned(m, n)]
    if f"{RUNTIME}setup" in m.trace.foreign:  # of the program before nothing is made alike
        own += [kept for n in sorted(parts) if (kept := m.heap.read((n, OF_LAYER)))]
    if own:
        given = Site(cast("Execution", m), "", arguments, node, frame).flat(arguments.joined())
        m.event("judge statistics", node, frame, given=given, own=join(*own))
    return join(*own)


def _kept_of_part(m: Machine, made: Object, given: Value, node: ast.AST, frame: Frame) -> None:
    """A module that no wrapper holds is called while it trains (a frozen backbone, a teacher, a
    loss): DDP copies its running statistics to nobody, and they become those of the rank's part.
    """
    if const(True)[0] not in (m.heap.read((made.number, "mode training")) or const(True)):
        return
    batches = [d for d in data(given) if d.sources]
    if not batches:
        return
    held = {n for number in wrappers(m) for n in owned(m, number)}
    parts = owned(m, made.number)
    if parts & held or not any(known for _, known in layers(cast("Execution", m), {made.number})):
        return
    own = any(d.placement.kind not in placements.EQUAL for d in batches)
    for number in parts if own else ():
        m.heap.write((number, OF_LAYER), const(True))
    m.event(OF_LAYER, node, frame, module=value(Ref(made.number)), own=const(own))


def _by_own_statistics(d: Data, node: ast.AST) -> Data:
    """What a model gives whose running statistics are each rank's own, of what all ranks have."""
    if d.placement.kind not in placements.EQUAL:
        return d
    return d._replace(placement=placements.PER_RANK, origin=Origin(node, OWN_STATISTICS))


@lru_cache(maxsize=2)
def peeks(program: Program) -> frozenset[ast.AST]:
    """Where one batch is taken of a loader, ``next(iter(loader))``: the pass after it has the same
    order, and is told the same epoch.
    """
    found: set[ast.AST] = set()
    for node in program.every(ast.Call):
        inner = node.args[0] if node.args else None
        names = [c.func.id for c in (node, inner) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)]
        if names == ["next", "iter"] and inner is not None:
            found |= {node, inner, *ast.iter_child_nodes(inner)}
    return frozenset(found)


def _order_of_its_own(m: Machine, made: Object) -> bool:
    """Whether each rank may go through a loader in another order: it draws it from its own
    stream.
    """
    if m.heap.read((made.number, "dealt")) or m.heap.read((made.number, "generator")):
        return False
    drawn = m.heap.read((made.number, "shuffle")) or const(False)
    return drawn not in (const(False), NONE) and const(True)[0] in (m.heap.read(OWN["torch"]) or NONE)


def bare(m: Machine, v: Value, made: Object, node: ast.AST, frame: Frame) -> Value:
    """What a module gives that is called by itself and not by a wrapper: noted in its data."""
    mark = m.heap.new("bare", made.name, node, frame.context, key=made.number, extra=made.number)
    return each_data(m, v, lambda d: d if d.gradient == "none" else reaching(d, mark.number))


def alike(m: Machine, v: Value, node: ast.AST, *, drawn: bool) -> Value:
    """The same batch on every rank, but for what each has drawn for itself."""
    lying = placements.PER_RANK if drawn else placements.UNIFORM
    origin = Origin(node, DRAW_FOR_SAMPLES) if drawn else None
    return each_data(m, v, lambda d: d._replace(placement=lying, origin=origin))
