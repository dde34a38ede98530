"""Rank 0 alone writes and asks, and what it writes are the names of the bare model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.objects import UNSEEN, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import (
    NONE,
    Atom,
    Const,
    Data,
    Method,
    Ref,
    Setting,
    Value,
    atom_placement,
    const,
    data,
    origins,
)
from dpmigrate.judge.file_order import early, hasty
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.shared_files import asked_early, read_apart, written_anew, written_by_all
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.module_tree import MODULES, owned
from dpmigrate.library.natures import CLOCK

NAME = "rank 0 writes the state of the bare model"
ALONE = "rank 0 alone makes files and folders, and asks"


def faults(trial: Trial) -> Iterator[Fault]:
    """Checkpoints that every rank writes, and states with the names of a wrapper."""
    before = trial.original is not None and any(_within(Trial(trial.original)))
    for event in trial.result.trace.of("save", "save by rank 0"):
        alone = event.kind == "save by rank 0" or trial.on_main(event) or _of_its_own(trial, event.values["path"])
        if not alone and (_checkpoint(trial, event.values["what"], set()) or _is_one_path(event)):
            yield trial.fault(event.node, NAME, "every rank writes this file")
        if any(o.kind == "wrapper" for o in trial.objects(event.values["what"])):
            yield trial.fault(event.node, NAME, "the wrapper is saved here, and not the model in it")
        for number in states(trial, event.values["what"], set()):
            whose = trial.objects(trial.held(number, "of"))
            if any(o.kind == "wrapper" for o in whose):
                yield trial.fault(event.node, NAME, "the names in this state begin with 'module.'")
            elif not before and any(_holds_wrapper(trial, o) for o in whose):
                words = "there is 'module.' within the names in this state: a wrapper is a part of it"
                yield trial.fault(event.node, NAME, words)
    yield from _old_names(trial)
    yield from _done_by_all(trial)
    yield from _after_turns(trial)
    yield from _asked_before_turns(trial)
    for node in written_by_all(trial.result):
        yield trial.fault(node, ALONE, "every rank writes this file")
    for node in read_apart(trial.result):
        yield trial.fault(node, ALONE, "each rank reads a file of another name here: the time is in it")
    told = set(early(trial.result))  # by the order of what is done with the file
    for node in asked_early(trial.result):
        if node in told:
            continue
        words = "rank 0 may still be writing the file that this asks for: barrier() is missing"
        yield trial.fault(node, NAME, words)
    for node in written_anew(trial.result):
        yield trial.fault(node, NAME, "other ranks may still be reading the file of this folder that rank 0 writes here")
    yield from _in_no_order(trial)
    for event in trial.result.trace.of("load"):
        if any(o.kind == "state" for o in trial.objects(event.values["path"])):
            yield trial.fault(event.node, NAME, "a state is loaded here, and no file that holds one")
        if not trial.on_main(event):
            for d in data(event.values["path"]):
                if d.placement.kind is Kind.PER_RANK and event.values["of a sample"] == const(False):
                    yield trial.fault(event.node, ALONE, f"each rank reads a file of another name here: {trial.since(d)}")
            found = unfinished(event)
            if found is not None and event.node not in told:
                words = "rank 0 may still be writing the file that this reads: barrier() is missing"
                yield trial.fault(event.node, NAME, words, established=found)
    taken = trial.original is not None and any(_named_by_wrapper(Trial(trial.original), "state"))
    # the result saves the names of the bare model: a wrapper cannot load them
    for kind in ("load state",) if taken else ("state", "load state"):
        for node in _named_by_wrapper(trial, kind):
            words = "these are the names of the wrapper, which begin with 'module.'"
            yield trial.fault(node, NAME, words)


def overtaken(trial: Trial) -> tuple[ast.AST, ...]:
    """The questions of all ranks about files that rank 0 writes or removes before the ranks meet."""
    assert isinstance(trial.result, Judged)
    return tuple(trial.result.overtaken_questions)


def _in_no_order(trial: Trial) -> Iterator[Fault]:
    """Files that rank 0 writes or removes while others read or ask for them."""
    assert isinstance(trial.result, Judged)
    for node in early(trial.result):
        words = "rank 0 may still be writing or removing what this reads or asks for: barrier() is missing"
        yield trial.fault(node, NAME, words)
    for node in hasty(trial.result):
        words = "another rank may still be reading what rank 0 writes or removes here: barrier() is missing"
        yield trial.fault(node, NAME, words)
    for node in overtaken(trial):
        words = "rank 0 writes or removes what this asks for before another rank may have asked: from_main() is missing"
        yield trial.fault(node, NAME, words)


def _old_names(trial: Trial) -> Iterator[Fault]:
    """States from files that are loaded as they are, where those of the original have the names of a
    wrapper.
    """
    if trial.original is None:
        return
    if not names_of_wrapper(Trial(trial.original)):
        return
    for event in trial.result.trace.of("load state"):
        models = [o for o in trial.objects(event.values["target"]) if trial.result.kinds(o) & MODULES]
        given = event.values["given"]
        if models and given and all(_from_file(trial, a) for a in given):
            words = "files of the program before have names that begin with 'module.': clean_keys() is missing"
            yield trial.fault(event.node, NAME, words)


def names_of_wrapper(trial: Trial) -> bool:
    """Whether a program saves, or loads, states with the names of a wrapper."""
    return any(any(_named_by_wrapper(trial, kind)) for kind in ("state", "load state"))


def _from_file(trial: Trial, atom: Atom) -> bool:
    """Whether a state is none that the program itself has made, as far as is seen."""
    made = trial.result.object(atom)
    return isinstance(atom, Setting | Method) or (made is not None and made.kind in UNSEEN)


def _done_by_all(trial: Trial) -> Iterator[Fault]:
    """Files and folders that every rank makes, and questions that every rank asks."""
    for event in trial.result.trace.of("made"):
        made = trial.objects(event.values["object"])
        runs = any(o.kind == "run" or o.name == "SummaryWriter" for o in made)
        if runs and event.parted is None and not _makes_model(trial, event.node):
            words = "every rank begins a run of the tracker, or writes curves of its own"
            yield trial.fault(event.node, ALONE, words)
    for event in trial.result.trace.of("open", "files", "typed"):
        if event.parted is None and event.kind == "files" and _by_a_clock(event.values["paths"]):  # in turn as well
            yield trial.fault(event.node, ALONE, "each rank makes files of another name here, by its clock")
        if event.parted is not None or event.values["in turn"] == const(True):
            continue
        if event.kind == "typed":
            yield trial.fault(event.node, ALONE, "every rank waits for a line that somebody types")
        elif event.kind == "open" and _written(event.values["mode"]) and _one(event.values["path"]):
            yield trial.fault(event.node, ALONE, "every rank writes this file")
        elif event.values.get("changed") == const(True) and _one(event.values["paths"]):
            yield trial.fault(event.node, ALONE, "every rank changes these files")
        elif event.values["late"] == const(True):
            words = "rank 0 may still be removing a folder where this makes one: barrier() is missing"
            yield trial.fault(event.node, ALONE, words)
        elif event.values.get("anew") == const(True) and _one(event.values["paths"]):
            words = "every rank makes this folder, and fails where another one has made it"
            yield trial.fault(event.node, ALONE, words)


def waits(trial: Trial) -> tuple[ast.AST, ...]:
    """The calls before which the ranks must wait for each other: one of them changes what others read, or make."""
    assert isinstance(trial.result, Judged)
    loads = (e.node for e in trial.result.trace.of("load") if not trial.on_main(e) and unfinished(e))
    return (
        *early(trial.result), *hasty(trial.result), *_made_early(trial), *asked_early(trial.result), *written_anew(trial.result),
        *trial.result.rewritten, *loads,
    )  # fmt: skip


def _made_early(trial: Trial) -> Iterator[ast.AST]:
    """The calls by which every rank makes a folder while rank 0 may still be removing one."""
    for event in trial.result.trace.of("files"):
        if event.parted is None and event.values["in turn"] != const(True) and event.values["late"] == const(True):
            yield event.node


def _after_turns(trial: Trial) -> Iterator[Fault]:
    """Tests of what each rank has found in its turn: rank 0 has made it there, and the others have
    found what it made, perhaps no more than a folder that is still to be filled.
    """
    assert isinstance(trial.result, Judged)
    for node in trial.result.late:
        words = "the ranks part here: rank 0 has made what the others then found in their turn"
        yield trial.fault(node, ALONE, words)
    for node in trial.result.rewritten:
        yield trial.fault(node, NAME, "other ranks may still be reading the file that rank 0 writes here")


def _asked_before_turns(trial: Trial) -> Iterator[Fault]:
    """Tests by which all ranks ask for a file before they take turns: rank 0 may have made it when the
    others ask, and waits for them in vain.
    """
    assert isinstance(trial.result, Judged)
    tests = trial.result.program.every(ast.If)
    asking = [t for t in tests if any(n in trial.result.questions for n in _by_all(t.test))]
    turns = {e.node for e in trial.result.trace.of("collective") if e.values["name"] == const("main_first")}
    for test in asking:
        if any(n in turns for side in (test.body, test.orelse) for s in side for n in ast.walk(s)):
            words = "rank 0 may have made what the others ask for here: main_first() belongs round the test"
            yield trial.fault(test, ALONE, words)


def _by_all(test: ast.expr) -> Iterator[ast.AST]:
    """The parts of a test that each rank evaluates: what rank 0 is asked for is the same on all."""
    todo: list[ast.AST] = [test]
    while todo:
        node = todo.pop()
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".from_main")):
            yield node
            todo += ast.iter_child_nodes(node)


def _written(mode: Value) -> bool:
    """Whether a file is opened for writing, by its mode."""
    return bool(mode) and all(isinstance(a, Const) and set(str(a.value)) & set("wax+") for a in mode)


def _one(path: Value) -> bool:
    """Whether a path is the same on every rank, as far as it is known."""
    return all(isinstance(a, Const | Setting) or atom_placement(a).kind is Kind.UNIFORM for a in path)


def _is_one_path(event: Event) -> bool:
    """Whether torch.save writes, out of turn, at a path that is the same on every rank. A setting may be an open file as well (``io.BytesIO()``): it is
    taken for a path where a function saves that was handed on (``Thread(target=torch.save)``), which the rules see less of. Of other functions
    that write it is asked by ``written_by_all``.
    """
    path = event.values["path"]
    if "loadable" not in event.values or event.values.get("in turn") == const(True):
        return False
    by_name = isinstance(event.node, ast.Call) and ast.unparse(event.node.func).rpartition(".")[2] == "save"
    kinds = Const if by_name else Const | Setting | Data
    return bool(path) and path != NONE and all(isinstance(a, kinds) for a in path) and _one(path)


def _makes_model(trial: Trial, node: ast.AST | None) -> bool:
    """Whether the call may make a model: of what ``globals()[name](…)`` may find then nothing else is meant."""
    made = (o for o in trial.result.heap.objects.values() if o.node is node)
    return any(trial.result.kinds(o) & MODULES for o in made)


def _by_a_clock(path: Value) -> bool:
    """Whether a path is another one on each rank since the time is in it."""
    apart = [d for d in data(path) if d.placement.kind is Kind.PER_RANK]
    return any(o.word == CLOCK for d in apart for o in origins(d.origin))


def _of_its_own(trial: Trial, target: Value) -> bool:
    """Whether what is written to is an open file, and another one on each rank: that of
    ``ddp.main_path``. Its opening has been judged by itself.
    """
    files = [made for made in trial.objects(target) if made.kind == "file"]
    return len(files) == len(target) > 0 and not any(_one(trial.held(f.number, "path")) for f in files)


def unfinished(load: Event) -> bool | None:
    """Whether rank 0 may still be writing the file that is loaded, if it alone writes it: True where
    that is known, False where it is not, and None where nothing speaks for it.
    """
    found = _the_same_file(load.values["path"], load.values["written"])
    # a data set reads its samples, of which it is not known that they are what is saved
    return found if found or load.values["of a sample"] == const(False) else None


def _the_same_file(read: Value, written: Value) -> bool | None:
    """Whether two paths are one for certain; None where they are two, or none is written."""
    names = [{a for a in v if isinstance(a, Const)} for v in (read, written)]
    if names[0] & names[1] - set(NONE):
        return True
    open_ = all(any(not isinstance(a, Const) for a in v) for v in (read, written))
    return False if open_ else None


def _named_by_wrapper(trial: Trial, kind: str) -> Iterator[ast.AST]:
    """Where a state is taken from a wrapper, or loaded into one."""
    for event in trial.result.trace.of(kind):
        given = event.values["of" if event.kind == "state" else "target"]
        sole = event.values["sole"] == const(True)  # else it may be the bare model as well
        if sole and any(o.kind == "wrapper" for o in trial.objects(given)):
            yield event.node


def _within(trial: Trial) -> Iterator[bool]:
    """Of each state that is saved, whether it is of a module that holds a wrapper."""
    for event in trial.result.trace.of("save"):
        for number in states(trial, event.values["what"], set()):
            yield any(_holds_wrapper(trial, o) for o in trial.objects(trial.held(number, "of")))


def _holds_wrapper(trial: Trial, made: Object) -> bool:
    """Whether a wrapper is a part of a module, by any of its attributes."""
    objects = trial.result.heap.objects
    return any(objects[n].kind == "wrapper" for n in owned(trial.result, made.number) - {made.number})


def _checkpoint(trial: Trial, v: Value, seen: set[int]) -> bool:
    """Whether it holds what training goes on from."""
    objects = trial.result.heap.objects
    for atom in v:
        if not isinstance(atom, Ref) or atom.object in seen:
            continue
        seen.add(atom.object)
        made = objects[atom.object]
        if made.kind in ("state", "optimizer") or trial.result.kinds(made) & MODULES:
            return True
        if made.kind in ("dict", "list") and _checkpoint(trial, trial.result.contents(made), seen):
            return True
    return False


def states(trial: Trial, v: Value, seen: set[int]) -> Iterator[int]:
    """The state dictionaries in what is saved."""
    for atom in v:
        if not isinstance(atom, Ref) or atom.object in seen:
            continue
        seen.add(atom.object)
        made = trial.result.heap.objects[atom.object]
        if made.kind == "state":
            yield made.number
        elif made.kind in ("dict", "list"):
            yield from states(trial, trial.result.contents(made), seen)
