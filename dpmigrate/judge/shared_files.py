"""Files that all ranks know by one name: who writes them, and who asks for them before they are written.

A call writes where its name says so and it is given a path, whatever it is a method of: no table
knows all classes that save something. It asks for a file where it is a question of the operating
system, or reads. Of paths that are settings it is not known which they are: those are the same that
are written alike in one scope.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.objects import OF_A_LIBRARY, Location
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Bound,
    Const,
    Data,
    Foreign,
    Method,
    Setting,
    Unknown,
    Value,
    const,
)
from dpmigrate.judge.file_calls import RUNTIME, FileCall, by_clock
from dpmigrate.judge.idle_questions import without_effect
from dpmigrate.library.files import FIRST

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged

#: the event of a file that is written while a data set is asked for a sample, under a name that is not one for all
OF_A_SAMPLE = "judge file of a sample"
#: the events of a file that is written, and of a question about one that rank 0 may be writing
WRITES, ASKS = "judge file written", "judge file asked for"
#: the event of a file that rank 0 writes while the others may be reading it
REWRITES = "judge file written anew"
#: the event of a file that every rank reads under another name
APART = "judge file of another name"
#: the event of a question about a file that rank 0 writes before the ranks meet again
OVERTAKES = "judge file written after a question"
#: a field of the process: the files that rank 0 alone has written since the ranks met
RECENT = (PROCESS, "judge files written")
#: files of a folder that all ranks have read since they met
READING = (PROCESS, "judge files of a folder")
#: files that all ranks have asked for since they met, each with the place of the question
ASKED = (PROCESS, "judge questions about files")


def noted(m: Judged, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
    """Note of a call, before it is made, what files it writes or asks for."""
    names = {called(m, atom, node) for atom in callee}
    name = names.pop() if len(names) == 1 else ""
    if not name or not isinstance(node, ast.Call):
        return
    call = FileCall(m, name, arguments, node, frame)
    written = list(call.written())
    if not written and m.parted is None and any(map(by_clock, (v for _, v in call.read()))):
        m.event(APART, node, frame)
    asked = frozenset[str]() if written or node in without_effect(m.program) else call.keys_asked()
    if not (written or asked) or m.heap.read(FIRST) == const(True):  # in turn the others come when it is there
        return
    alone = m.parted is not None and m.parted.origin.word.startswith("rank 0")
    if written and (call.by_runtime or alone or f"{RUNTIME}setup" not in m.trace.foreign):
        keys = frozenset(k for e, v in written for k in (*call.keys(e, v), *call.folders(e, v)))
        if alone:  # what a branch leaves that rank 0 alone takes is another value on each rank
            m.written_apart |= keys
        else:
            _remember(m, RECENT, keys)
        if any(_held(m, READING) & set(call.entries(e)) for e, _ in written):
            m.event(REWRITES, node, frame)
        own = {k for e, v in written for k in call.keys(e, v)}
        for place in sorted(a.partition(" ")[0] for a in _held(m, ASKED) if a.partition(" ")[2] in own):
            m.event(OVERTAKES, m.asked_at[place], frame)
    if call.saves and written and call.at_one_path:
        m.event(WRITES, node, frame)
    if written and not alone and not call.by_runtime:
        m.event(OF_A_SAMPLE, node, frame)
    if asked and m.parted is None:
        m.questions.setdefault(node, None)
        if asked & (_held(m, RECENT) | m.written_apart):
            m.event(ASKS, node, frame)
        place = f"{node.lineno}:{node.col_offset}"
        m.asked_at[place] = node
        _remember(m, ASKED, frozenset(f"{place} {k}" for k in asked))
        _remember(m, READING, frozenset(k for e, _ in call.read() for k in call.entries(e)))


def read_apart(m: Execution) -> Iterator[ast.AST]:
    """The calls by which every rank reads a file whose name has a time in it."""
    return _of_all(m, APART)


def written_by_all(m: Execution) -> Iterator[ast.AST]:
    """The calls by which every rank writes a file of one name."""
    return _of_all(m, WRITES)


def asked_early(m: Execution) -> Iterator[ast.AST]:
    """The calls by which every rank asks for a file that rank 0 may still be writing."""
    return _of_all(m, ASKS)


def written_anew(m: Execution) -> Iterator[ast.AST]:
    """The calls by which rank 0 writes a file of a folder that the others may be reading."""
    events = m.trace.of(REWRITES)
    return (e.node for e in events if e.values["of a sample"] == const(False))


def asked_before_writing(m: Execution) -> Iterator[ast.AST]:
    """The calls by which every rank asks for a file that rank 0 writes then: another one may ask later."""
    return (e.node for e in m.trace.of(OVERTAKES))


def of_samples(m: Execution) -> Iterator[ast.AST]:
    """The calls by which each rank writes files of the samples that it is asked for."""
    return (e.node for e in m.trace.of(OF_A_SAMPLE) if e.values["of a sample"] == const(True))


def _of_all(m: Execution, kind: str) -> Iterator[ast.AST]:
    events = m.trace.of(kind)
    return (e.node for e in events if e.parted is None and e.values["of a sample"] == const(False))


def met(m: Judged) -> None:
    """All ranks have come to a place: rank 0 has written what it was writing."""
    m.written_apart = frozenset()
    for at in (RECENT, READING, ASKED):
        if m.heap.read(at):
            m.heap.write(at, const(frozenset[str]()))


def _held(m: Judged, at: Location) -> frozenset[str]:
    """The files that are noted, on each way that leads here."""
    held = m.heap.read(at) or NOTHING
    if any(isinstance(a, Setting) for a in held):  # more ways than are told apart: all files that were noted on any
        return m.noted_files.get(at, frozenset())
    return frozenset(k for a in held if isinstance(a, Const) and isinstance(a.value, frozenset) for k in a.value)


def _remember(m: Judged, at: Location, keys: frozenset[str]) -> None:
    if keys:
        m.noted_files[at] = m.noted_files.get(at, frozenset()) | keys
        m.heap.write(at, const(_held(m, at) | keys))


def called(m: Judged, atom: Atom, node: ast.AST) -> str:
    """What is called, by its name; a method begins with a dot. '' for what the program may have
    itself: that is executed, or stands behind a wrapper.
    """
    if isinstance(atom, Foreign):
        return atom.name
    func = getattr(node, "func", None)
    made = m.object(atom.receiver if isinstance(atom, Method) else atom)
    unseen = isinstance(atom, Method | Unknown | Data | Setting) if made is None else made.kind in ("any", "opaque")
    if not unseen or isinstance(atom, Bound) or not isinstance(func, ast.Attribute):
        return ""
    own = func.attr in m.own_names and not (made is not None and OF_A_LIBRARY in made.marks)
    return "" if own else f".{func.attr}"
