"""What an execution of the program on paper says where the text does not: over which loaders a loop trains and whether it trains at all, what is loaded
after it was saved.

A test on the phase may ask for anything: the mode of the model, an attribute, what another function decided. The execution follows them all: it
knows the loops that are under way at each ``backward()``. Nodes are known by their places, since the facts may be about another copy of the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import EQUAL, Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import NOTHING, Atom, Bound, Const, Data, Items, Method, Ref, Setting, const, data, origins, placement_of
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.phases import Phases
from dpmigrate.facts.roles import Roles
from dpmigrate.judge import (
    MOVED_BATCH,
    OF_LAYER,
    PASSED_IN,
    UNPACKED,
    Lies,
    all_lies,
    all_moved,
    asked_before_writing,
    asked_early,
    before,
    settled_lies,
    some_moved,
    span,
    steering,
    tensor_on_cpu,
    unfinished,
    written_anew,
    written_by_all,
)
from dpmigrate.library.module_tree import owned
from dpmigrate.library.natures import CLOCK, OF_PROCESS
from dpmigrate.library.pure import ANY
from dpmigrate.library.sites import GROWN
from dpmigrate.program import Program

#: the line and the column of a node
Place = tuple[int, int]


class Executed:
    """The original's execution, for facts that ask it about single nodes; it runs when the first one asks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._ran: set[Place] | None = None
        self._steering: frozenset[tuple[int, ...]] | None = None
        #: how expressions lie, by the places of those that are the whole batch's: each is an execution
        self._lying: dict[frozenset[tuple[int, ...]], dict[tuple[int, ...], frozenset[Lies]]] = {}

    def passed_on(self, loop: ast.AST) -> set[Place] | None:
        """Where the loaders are made whose batches a loop takes one by one as they come; None where that is not known."""
        result = before(self._program)
        events = [e for e in result.trace.of("loop") if _place(e.node) == _place(loop)]
        if result.trace.ended is not None or not all(e.values["as they come"] == const(True) for e in events):
            return None
        objects = result.heap.objects
        return {_place(node) for n in _loaders(events) if (node := objects[n].node) is not None} or None

    def alone(self, loops: Iterable[ast.For | ast.AsyncFor]) -> bool:
        """Whether loops take batches from loaders that nothing else takes any from, also not by the ``__iter__`` of an object."""
        result = before(self._program)
        inside = [span(node.iter) for node in loops]
        theirs, others = set[int](), set[int]()
        for e in result.trace.of("pass"):
            ways = (e.node, *(c.node for c in result.trace.leading(e.context)))
            begun = any(n is not None and any(_covers(one, span(n)) for one in inside) for n in ways)
            (theirs if begun else others).update(a.object for a in e.values["loader"] if isinstance(a, Ref))
        return result.trace.ended is None and bool(theirs) and not theirs & others

    @cached_property
    def normalising(self) -> frozenset[tuple[Place, Place]]:
        """Where modules are made that are in training mode when they are given batches, and then keep running statistics of them, trained or not; and where
        they are called so.
        """
        result = before(self._program)
        called = ((o, e) for e in result.trace.of(OF_LAYER) for o in result.objects(e.values["module"]))
        return frozenset((_place(o.node), _place(e.node)) for o, e in called if o.node is not None)

    def holds(self, made: Place, optimizer: Place) -> bool:
        """Whether the modules that are made at a place hold all that the optimizers made at another one get."""
        result = before(self._program)
        events = [e for e in result.trace.of("optimizer") if _place(e.node) == optimizer]
        given = {n for e in events for d in data(e.values["parameters"]) for n in d.reached}
        whole = [n for n, o in result.heap.objects.items() if o.node is not None and _place(o.node) == made]
        held = {p for n in whole for p in owned(result, n)}
        return result.trace.ended is None and bool(given) and given <= held

    def runs(self, stmt: ast.AST) -> bool:
        """Whether a statement may run: the execution came to it, or was not finished."""
        result = before(self._program)
        if self._ran is None:
            self._ran = {_place(s) for s in result.trace.ran}
        return result.trace.ended is not None or _place(stmt) in self._ran

    def from_nothing(self, joined: ast.AST) -> bool:
        """Whether what a call puts something behind has no rows when a loop begins, however it was made."""
        result = before(self._program)
        events = [e for e in result.trace.of(GROWN) if _place(e.node) == _place(joined)]
        return result.trace.ended is None and bool(events) and all(e.values["empty"] == const(True) for e in events)

    def on_cpu(self, call: ast.Call, argument: str, *, always: bool) -> bool:
        """Whether a wrapper is given, by an argument's place or name, a tensor that may have been made on the CPU and not moved since, and nothing else that
        is known; ``always``: nor None.
        """
        result = before(self._program)
        events = [e for e in self._passed_in(call) if UNPACKED not in e.values]
        given = [e.values.get(argument, NOTHING) for e in events]
        return result.trace.ended is None and bool(given) and all(tensor_on_cpu(result, v, always=always) for v in given)

    def _passed_in(self, call: ast.Call) -> list[Event]:
        """What the wrapper is given that a call is seen to be one of, each time."""
        return [e for e in before(self._program).trace.of(PASSED_IN) if _place(e.node) == _place(call)]

    def calls_wrapper(self, call: ast.Call) -> bool:
        """Whether the call is seen to be one of a wrapper."""
        return bool(self._passed_in(call))

    def moves_some(self, call: ast.Call) -> bool:
        """Whether the program itself moves something that a wrapper is given there to a device; of what ``*`` and ``**`` give, that it moves batches."""
        result = before(self._program)
        events = self._passed_in(call)
        unpacked = any(UNPACKED in e.values for e in events) and any(True for _ in result.trace.of(MOVED_BATCH))
        return unpacked or any(some_moved(result, e) for e in events)

    def moved(self, call: ast.Call, argument: str) -> bool:
        """Whether the program has moved what a wrapper is given to a device, or that is no tensor, as often as the call is come to."""
        result = before(self._program)
        events = self._passed_in(call)
        return result.trace.ended is None and bool(events) and all(all_moved(result, e.values.get(argument, NOTHING)) for e in events)

    def lying(self, whole: Iterable[ast.AST]) -> Callable[[ast.AST], frozenset[Lies]]:
        """How expressions lie across ranks of which each has a part of every batch, given that some are those of the ``whole`` batch; of what is not
        known, or was not come to, nothing.
        """
        places = frozenset(span(n) for n in whole)
        if places not in self._lying:
            self._lying[places] = {} if self._too_large else all_lies(self._program, places)
        found = self._lying[places]
        return lambda node: found.get(span(node), frozenset())

    def settled(self, numbers: Iterable[ast.AST], mended: Callable[[frozenset[Lies]], bool]) -> Callable[[ast.AST], frozenset[Lies]]:
        """The same, where as many of the ``numbers`` are those of the whole batch as are ``mended`` then."""
        found = {} if self._too_large else settled_lies(self._program, frozenset(span(n) for n in numbers), mended)
        return lambda node: found.get(span(node), frozenset())

    def the_same(self, node: ast.AST, whole: Iterable[ast.AST]) -> bool:
        """Whether an expression is seen to be the same on all ranks, given that some are those of the ``whole`` batch."""
        lies = self.lying(whole)(node)
        return bool(lies) and all(one.placement.kind in EQUAL for one in lies)

    def steering(self, call: ast.AST) -> bool:
        """Whether a call makes a number of a batch by which training goes after its step, or beside its loss."""
        if self._steering is None:
            self._steering = frozenset() if self._too_large else steering(self._program)
        return span(call) in self._steering

    def of_no_parameter(self, node: ast.Attribute) -> bool:
        """Whether what is given or taken its gradient by ``x.requires_grad_(…)`` or ``x.requires_grad = …`` is never a parameter or a module, as often as
        that is come to: an input, a buffer.
        """
        result = before(self._program)
        stored = (e.values["owner"] for e in result.trace.of("attribute") if e.values["name"] == const("requires_grad") and _within_place(e.node, node))
        called = (e.values["target"] for e in result.trace.of("requires grad") if _within_place(e.node, node))
        given = [*stored, *called]
        plain = all(isinstance(a, Data) and not a.reached for v in given for a in v)
        return result.trace.ended is None and bool(given) and plain

    @property
    def _too_large(self) -> bool:
        """Whether the execution was given up for what it has cost: another one that notes more would be as well."""
        return before(self._program).exhausted

    @property
    def unknown(self) -> set[str]:
        """The library functions that the program calls and that no table knows."""
        return {name for name, known in before(self._program).trace.foreign.items() if not known}

    def alike(self, test: ast.expr) -> bool:
        """Whether the test of an ``if`` falls out alike on all ranks, asked before the first batch is taken: on one process nothing else tells which
        numbers of batches ranks would have for themselves. Files are taken to be the same everywhere.
        """
        result = before(self._program)
        asked = [s for s in result.trace.ran if isinstance(s, ast.If) and _place(s.test) == _place(test)]
        if result.trace.ended is not None or not asked:
            return False
        first = min((e.number for e in result.trace.of("pass", "batch")), default=None)
        events = [e for e in result.trace.of("branch") if e.node in asked]
        late = any(first is not None and e.number > first for e in events)
        return not late and all(e.parted is None and placement_of(e.values["test"]).kind in EQUAL for e in events)

    @cached_property
    def configured(self) -> dict[Place, frozenset[Place]]:
        """Where an attribute of a configuration, or of another object of a library, is given what is made of a clock or of a number of the system, with
        the calls that give those: as far as is known anything that is read of the object may be made of it.
        """
        result = before(self._program)
        found: dict[Place, frozenset[Place]] = {}
        for e in result.trace.of("attribute"):
            kept = any((made := result.object(_whole(a))) is not None and made.kind == ANY for a in e.values["owner"])
            apart = [d for d in data(e.values["new"]) if d.placement.kind not in EQUAL] if kept else []
            asked = frozenset(_place(o.node) for d in apart for o in origins(d.origin) if o.word in (CLOCK, OF_PROCESS))
            if asked:
                found[_place(e.node)] = found.get(_place(e.node), frozenset()) | asked
        return found

    @cached_property
    def timed_paths(self) -> frozenset[tuple[int, ...]]:
        """The calls that give a time, or a number of the system, of which the path of a file or directory is made that the program makes, moves or removes."""
        paths = [d for e in before(self._program).trace.of("files") for d in data(e.values["paths"]) if d.placement.kind is Kind.PER_RANK]
        return frozenset(span(o.node) for d in paths for o in origins(d.origin) if o.word in (CLOCK, OF_PROCESS))

    def holds_tensors(self, cls: ast.ClassDef, attribute: str) -> bool:
        """Whether an attribute of every object of a class, made once or not, holds tensors that are not trained: no parameter, no module, nothing unknown."""
        result = before(self._program)
        made = [n for n, o in result.heap.objects.items() if o.kind == "instance" and _place(cls) in _lineage(result, o)]
        held = [result.heap.read((n, attribute)) for n in made]
        if result.trace.ended is not None or not held:
            return False
        return all(v and all(isinstance(a, Data) and a.gradient == "none" and not a.reached for a in v) for v in held)

    def computes_nothing(self, call: ast.Call) -> bool:
        """Whether a method of a module gives what has no gradient, plain numbers or texts, and runs no layer that records one: a count that it keeps, a rate.
        Then it is no pass, whatever it reads.
        """
        result = before(self._program)
        events = [e for e in result.trace.of("method of a module") if _place(e.node) == _place(call)]
        if result.trace.ended is not None or not events or not all(_is_plain(a) for e in events for a in e.values["gives"]):
            return False
        methods = [result.heap.objects[a.function].extra.node for e in events for a in e.values["of"] if isinstance(a, Bound)]
        passes = [e for e in result.trace.of("forward") if e.values["grad"] != const(False)]
        return not any(_within(n, m) for e in passes for n in (e.node, *(c.node for c in result.trace.leading(e.context))) for m in methods)


def _whole(atom: Atom) -> Atom:
    """The object of which an atom is a part: ``config`` of ``config.writer``."""
    while isinstance(atom, Method):
        atom = atom.receiver
    return atom


def _is_plain(atom: Atom) -> bool:
    """A number, a text, nothing, or several of these."""
    if isinstance(atom, Items):
        return all(_is_plain(a) for item in atom.items for a in item)
    return isinstance(atom, Const | Setting) or (isinstance(atom, Data) and atom.kind in ("number", "text") and atom.gradient == "none" and not atom.reached)


def _within_place(outer: ast.AST, node: ast.Attribute) -> bool:
    """Whether an attribute stands in a call or a statement that may be of another copy of the tree."""
    return any(isinstance(n, ast.Attribute) and n.attr == node.attr and span(n) == span(node) for n in walk(outer))


def _covers(outer: tuple[int, ...], inner: tuple[int, ...]) -> bool:
    """Whether an expression stands in another one, by where they begin and end."""
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _within(node: ast.AST | None, function: FunctionNode) -> bool:
    """Whether a node stands in a function."""
    line = getattr(node, "lineno", None)
    return line is not None and function.lineno <= line <= (function.end_lineno or function.lineno)


def _lineage(result: Execution, made: Object) -> set[Place]:
    """Where the class of an instance and its bases in the program are defined."""
    cls = result.class_of(made)
    classes = (result.heap.objects[n].extra for n in (cls.extra.order if cls is not None else ()))
    return {_place(c.node) for c in classes if c.node is not None}


def training_side(program: Program, roles: Roles, loop: BatchLoop) -> Phases | None:
    """The training side of a loop that has an evaluating one: the loaders over which a ``backward()`` may come. None where that is all of them, where
    the loop may go over more than is known, and where it is not seen to go over one of its loaders.
    """
    result = before(program)
    passes = [e for e in result.trace.of("loop") if _place(e.node) == _place(loop.node)]
    if result.trace.ended is not None or not passes or not all(e.values["over"] for e in passes):
        return None
    found = list(_backwards(result, loop.node))
    trained, gone_through = (_loaders(events) for events in (found, passes))
    made = {n: _place(node) for n in trained | gone_through if (node := result.heap.objects[n].node) is not None}
    loaders = frozenset(v for v in loop.loaders if _place(v.node) in {made[n] for n in trained if n in made})
    # the execution leaves out branches that it takes for dead: of their loaders it knows nothing
    unseen = any(_place(v.node) not in made.values() for v in loop.loaders)
    if not loaders or unseen or not trained & gone_through < gone_through:
        return None
    ways = {_place(c.node) for e in found for c in result.trace.leading(e.context) if c.node is not None}
    calls = [c for c in roles.values.callers.get(roles.names.function(loop.node), []) if _place(c) in ways]
    source = _with_key(result, roles, trained, loop.source)
    # loaders that one call makes are told apart by their key alone
    return Phases(loaders, {c: {} for c in calls}, source) if loaders < loop.loaders or source is not loop.source else None


def take_out_untrained(program: Program, names: Names) -> list[ast.stmt]:
    """Leave out of the trees what would train and no call ever comes to: ``if optimizer is not None`` in a function that is called without one,
    methods ``backward`` of the program's own that nothing enters, since every ``loss.backward()`` has their name, and methods that put a model into
    DataParallel and that nothing asks for: they would be taken for another way in which the model is made.

    Where each part begins that was left out; if there is one, the names are out of date. Where nothing else trains all of it stays.
    """
    backwards = [c for c in names.attributes("backward") if isinstance(names.function(c), FunctionNode)]
    asked = {b: tests for b in backwards if (tests := [a for a in names.ancestors(b, below=names.function(b)) if isinstance(a, ast.If)])}
    functions = {b: f for b in backwards if isinstance(f := names.function(b), FunctionNode) and f.name == "backward"}
    wrapping = [f for f in _wrapping_methods(names) if not any(names.is_inside(b, f) for b in backwards)]
    if not (asked or functions or wrapping) or before(program).trace.ended is not None:
        return []
    ran = {_place(s) for s in before(program).trace.ran}
    dead = {b: side for b, tests in asked.items() if (side := next((s for t in tests for s in (t.body, t.orelse) if _dead(t, s, ran, names, b)), None))}
    dead |= {b: f.body for b, f in functions.items() if not _runs(f, ran)}
    if len(dead) == len(names.attributes("backward")):
        return []
    taken_out = [*dead.values(), *(f.body for f in wrapping if not _runs(f, ran))]
    first = [side[0] for side in taken_out]
    for side in taken_out:
        side[:] = [ast.copy_location(ast.Pass(), side[0])]
    return first


def _runs(function: FunctionNode, ran: Collection[Place]) -> bool:
    """Whether a statement of a function may run."""
    return any(_place(n) in ran for s in function.body for n in walk(s))


def _wrapping_methods(names: Names) -> list[FunctionNode]:
    """The methods in which a model is put into DataParallel, and whose names nothing reads."""
    found = dict.fromkeys(f for c in names.calls("DataParallel") if isinstance(f := names.function(c), FunctionNode))
    return [f for f in found if isinstance(names.scope_of[f].node, ast.ClassDef) and not names.attributes(f.name)]


def _dead(test: ast.If, side: list[ast.stmt], ran: Collection[Place], names: Names, backward: ast.AST) -> bool:
    """Whether a backward stands on a side of a test that is asked, and that side never runs."""
    return _place(test) in ran and any(names.is_inside(backward, s) for s in side) and _place(side[0]) not in ran


def unfinished_loads(program: Program) -> set[Place]:
    """Where ``torch.load`` may read a file that the program has saved before: rank 0, which alone saves, may still be writing it."""
    result = before(program)
    return {_place(e.node) for e in result.trace.of("load") if unfinished(e) is not None}


def early_questions(program: Program) -> set[Place]:
    """Where the program asks for a file, or reads one, that it has written just before: rank 0, which alone writes, may still be at it."""
    return {_place(node) for node in asked_early(before(program))}


def racing(program: Program) -> set[Place]:
    """Where the program asks for a file that it writes next: rank 0, which alone writes, may have done so when another rank asks."""
    return {_place(node) for node in asked_before_writing(before(program))}


def files_of_all(program: Program) -> set[Place]:
    """Where the program writes a file under a name that all ranks would have, whatever object it is that writes."""
    return {_place(node) for node in written_by_all(before(program))}


def files_in_turn(program: Program) -> set[Place]:
    """Where the program writes a file anew that it has read in the same turn of a loop over a folder."""
    return {_place(node) for node in written_anew(before(program))}


def _loaders(events: Iterable[Event]) -> set[int]:
    """The loaders that are gone through where something happens."""
    return {a.object for e in events for a in e.values["over"] if isinstance(a, Ref)}


def _backwards(result: Execution, loop: ast.stmt) -> Iterator[Event]:
    """The backward passes of a loop, also those of functions that it calls."""
    inside = {_place(n) for n in walk(loop) if isinstance(n, ast.Call)}
    for event in result.trace.of("backward"):
        ways = (event.node, *(c.node for c in result.trace.leading(event.context)))
        if any(n is not None and _place(n) in inside for n in ways):
            yield event


def _with_key(result: Execution, roles: Roles, made: set[int], source: ast.expr) -> ast.expr:
    """``loaders[phase]`` with the key under which the dictionary has the loader that is trained on."""
    if not isinstance(source, ast.Subscript) or isinstance(source.slice, ast.Constant):
        return source
    keys = {
        name.value
        for number, o in result.heap.objects.items() if o.kind == "dict"
        for name, held in result.heap.names(number) if isinstance(name, Const) and any(isinstance(a, Ref) and a.object in made for a in held)
    }  # fmt: skip
    return roles.names.placed(ast.Subscript(source.value, ast.Constant(keys.pop()), ast.Load()), source) if len(keys) == 1 else source


def _place(node: ast.AST) -> Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
