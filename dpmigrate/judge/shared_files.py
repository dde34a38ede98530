"""Files that all ranks know by one name: who writes them, and who asks for them before they are written.

A call writes where its name says so and it is given a path, whatever it is a method of: no table
knows all classes that save something. It asks for a file where it is a question of the operating
system, or reads. Of paths that are settings it is not known which they are: those are the same that
are written alike in one scope.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.objects import Location
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Bound,
    Const,
    Data,
    Foreign,
    Method,
    Ref,
    Setting,
    Unknown,
    Value,
    atom_placement,
    const,
    known,
)
from dpmigrate.judge.spelt_paths import SUFFIX, bare, folder, last, listed_folders, loops_of, makes_path, named, named_after
from dpmigrate.library.files import FIRST
from dpmigrate.library.pure import family_of

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged

#: the events of a file that is written, and of a question about one that rank 0 may be writing
WRITES, ASKS = "judge file written", "judge file asked for"
#: the event of a file that rank 0 writes while the others may be reading it
REWRITES = "judge file written anew"
#: a field of the process: the files that rank 0 alone has written since the ranks met
RECENT = (PROCESS, "judge files written")
#: files of a folder that all ranks have read since they met
READING = (PROCESS, "judge files of a folder")
_RUNTIME = "dpmigrate_runtime."
#: the names of what writes a file
SAVES = re.compile(
    r"save|tofile$|im(save|write)$|m(im)?(save|write)$|volwrite$|export|dump$|write_\w|"
    r"to_(csv|excel|feather|file|filename|disk|hdf|html|image|json|latex|markdown|netcdf|parquet|pickle|stata|zarr)$"
)
#: functions of libraries that compute write a file by this name, methods and streams what they are given
_FUNCTIONS = ("write",)
#: what is written where a path is the receiver
_OF_PATHS = ("write_text", "write_bytes", "touch")
_MOVES = frozenset({f"shutil.{n}" for n in ("copy", "copy2", "copyfile", "copytree", "move")} | {"os.rename", "os.replace", "os.renames"})
_OPENS = frozenset({
    "builtins.open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open", "h5py.File",
})  # fmt: skip
_LISTS = frozenset({"os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob"})
_LISTING = frozenset({"listdir", "scandir", "walk", "glob", "iglob", "rglob", "iterdir"})
_QUESTIONS = frozenset({f"os.path.{n}" for n in ("exists", "isfile", "lexists", "getsize", "getmtime", "getctime")} | {"os.stat"})
_METHODS_OF_PATHS = frozenset({"exists", "is_file", "stat", "read_text", "read_bytes"})
_LISTING_METHODS = frozenset({"iterdir", "glob", "rglob"})
_READS = re.compile(r"(read_\w+|imread|mimread|load(txt|mat)?|fromfile|genfromtxt|open)$")


def noted(m: Judged, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
    """Note of a call, before it is made, what files it writes or asks for."""
    names = {_name(m, atom, node) for atom in callee}
    name = names.pop() if len(names) == 1 else ""
    if not name or not isinstance(node, ast.Call):
        return
    call = _Call(m, name, arguments, node, frame)
    written = list(call.written())
    asked = frozenset[str]() if written else call.keys_asked()
    if not (written or asked) or m.heap.read(FIRST) == const(True):  # in turn the others come when it is there
        return
    alone = m.parted is not None and m.parted.origin.word.startswith("rank 0")
    if written and (call.by_runtime or alone or f"{_RUNTIME}setup" not in m.trace.foreign):
        keys = frozenset(k for e, v in written for k in (*call.keys(e, v), *call.folders(e, v)))
        if alone:  # what a branch leaves that rank 0 alone takes is another value on each rank
            m.written_apart |= keys
        else:
            _remember(m, RECENT, keys)
        if any(_held(m, READING) & set(call.entries(e)) for e, _ in written):
            m.event(REWRITES, node, frame)
    if call.saves and written and all(_one(v) for _, v in written):
        m.event(WRITES, node, frame)
    if asked and m.parted is None:
        if asked & (_held(m, RECENT) | m.written_apart):
            m.event(ASKS, node, frame)
        _remember(m, READING, frozenset(k for e, _ in call.read() for k in call.entries(e)))


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


def _of_all(m: Execution, kind: str) -> Iterator[ast.AST]:
    events = m.trace.of(kind)
    return (e.node for e in events if e.parted is None and e.values["of a sample"] == const(False))


def met(m: Judged) -> None:
    """All ranks have come to a place: rank 0 has written what it was writing."""
    m.written_apart = frozenset()
    for at in (RECENT, READING):
        if m.heap.read(at):
            m.heap.write(at, const(frozenset[str]()))


def _held(m: Judged, at: Location) -> frozenset[str]:
    """The files that are noted, on each way that leads here."""
    held = m.heap.read(at) or NOTHING
    return frozenset(k for a in held if isinstance(a, Const) and isinstance(a.value, frozenset) for k in a.value)


def _remember(m: Judged, at: Location, keys: frozenset[str]) -> None:
    if keys:
        m.heap.write(at, const(_held(m, at) | keys))


def _name(m: Judged, atom: Atom, node: ast.AST) -> str:
    """What is called, by its name; a method begins with a dot. '' for what the program may have
    itself: that is executed, or stands behind a wrapper.
    """
    if isinstance(atom, Foreign):
        return atom.name
    func = getattr(node, "func", None)
    made = m.object(atom.receiver if isinstance(atom, Method) else atom)
    unseen = isinstance(atom, Method | Unknown | Data | Setting) if made is None else made.kind in ("any", "opaque")
    if not unseen or isinstance(atom, Bound) or not isinstance(func, ast.Attribute) or func.attr in m.own_names:
        return ""
    return f".{func.attr}"


def _one(path: Value) -> bool:
    """Whether a path is the same on every rank, as far as it is known."""
    return bool(path) and all(isinstance(a, Const | Setting) or atom_placement(a).kind is Kind.UNIFORM for a in path)


class _Call:
    """A call of which it is asked what files it is about."""

    def __init__(self, m: Judged, name: str, arguments: Arguments, node: ast.Call, frame: Frame) -> None:
        self._m, self._name, self._node, self._frame = m, name, node, frame
        self._word = name.rpartition(".")[2]
        self._method = name.startswith(".")
        self._given = list(_pairs(node, arguments))
        self._arguments = arguments

    @property
    def by_runtime(self) -> bool:
        """Whether the runtime writes on rank 0 alone."""
        return self._name.startswith(_RUNTIME)

    @property
    def saves(self) -> bool:
        """Whether the call itself makes a file, and does not only open one."""
        if self._name.startswith((_RUNTIME, "builtins.", "dpmigrate")):
            return False
        return (SAVES.match(self._word) is not None and self._name != "torch.save") or (self._word in _FUNCTIONS and not self._method and family_of(self._name) is not None)

    def written(self) -> Iterator[tuple[ast.expr, Value]]:
        """The paths that are written."""
        if self._name in ("torch.save", f"{_RUNTIME}save", f"{_RUNTIME}main_only") or self._name in _MOVES:
            yield from self._given[1:2]
        elif self._name == f"{_RUNTIME}main_path":
            yield from self._given[:1]
        elif self._name in _OPENS:
            if set(str(known(self._arguments.get(1, "mode") or NOTHING))) & set("wax+") and self._arguments.get(1, "mode"):
                yield from self._given[:1]
        elif self._method and self._word in _OF_PATHS:
            yield from self._receiver()
        elif self.saves:
            yield from ((e, v) for e, v in self._given if self._is_path(e, v))

    def keys_asked(self) -> frozenset[str]:
        """The files, or folders, that are asked for."""
        found: list[str] = []
        if self._name in _LISTS:
            for e, v in self._given[:1]:
                found += [*self._as_folder(e, v), *self.folders(e, v)]
        elif self._method and self._word in _LISTING_METHODS:
            for e, v in self._receiver():
                found += self._as_folder(e, v)
        elif self._method and self._word in _METHODS_OF_PATHS:
            for e, v in self._receiver():
                found += self.keys(e, v)
        elif self._name in _QUESTIONS or self._name in _MOVES or self._name in _OPENS or self._reads:
            for e, v in self._given[:1]:
                found += self.keys(e, v)
        return frozenset(found)

    def read(self) -> Iterator[tuple[ast.expr, Value]]:
        """The paths that are read."""
        if self._name in _OPENS or self._reads:
            yield from self._given[:1]
        elif self._method and self._word in ("read_text", "read_bytes", "open"):
            yield from self._receiver()

    @property
    def _reads(self) -> bool:
        return not self._method and _READS.match(self._word) is not None and not self._name.startswith(("torch.", _RUNTIME))

    def keys(self, path: ast.expr, v: Value) -> Iterator[str]:
        """What a path is known by: its text where it has one, and how it is written in its scope."""
        path = bare(path)
        text = path.value if isinstance(path, ast.Constant) else known(v)
        if isinstance(text, str):
            yield f"= {text}"
        elif not isinstance(path, ast.Constant):
            yield f"{self._scope(path)} {ast.unparse(path)}"

    def folders(self, path: ast.expr, v: Value) -> Iterator[str]:
        """The folder that a path is in, by the same."""
        text = known(v)
        outer = folder(ast.Constant(text) if isinstance(text, str) else self._written_out(bare(path)))
        if outer is not None:
            yield from self._as_folder(outer, self._held(outer))

    def entries(self, path: ast.expr) -> Iterator[str]:
        """What a file is known by that a loop gives a turn to: its folder, and the variable of the loop."""
        path = self._written_out(bare(path))
        name = named_after(path)
        loops = [over for tree in self._trees() for over in loops_of(name, tree)] if name is not None else []
        outer = folder(path)
        if not loops:
            return
        if outer is not None:
            yield from (f"{key} / {name}" for key in self._as_folder(outer, self._held(outer)))
            return
        if not isinstance(path, ast.Name):
            return
        yield f"{self._scope(path)} / {name}"
        for made in (b for over in loops for b in (over, *self._bound(over))):
            for found in listed_folders(made, _LISTING):
                yield from (f"{key} / {name}" for key in self._as_folder(found, self._held(found)))

    def _written_out(self, path: ast.expr) -> ast.expr:
        """What a variable is given once, where that puts a path together."""
        made = [bare(b) for b in self._bound(path)]
        return made[0] if len(made) == 1 and makes_path(made[0]) else path

    def _as_folder(self, path: ast.expr, v: Value) -> list[str]:
        return [f"folder {key}" for key in self.keys(path, v)]

    def _held(self, path: ast.expr) -> Value:
        """What a variable or an attribute holds."""
        if isinstance(path, ast.Constant):
            return const(path.value)
        at = self._m.location(path, self._frame) if isinstance(path, ast.Name | ast.Attribute) else None
        return (self._m.heap.read(at) if at is not None else None) or NOTHING

    def _scope(self, path: ast.expr) -> str:
        """Where what is written alike is the same: a call, an object, or a module."""
        roots = {n.id for n in ast.walk(path) if isinstance(n, ast.Name)}
        bound = self._frame.names.bound
        if "self" in roots and self._frame.cls is not None and not (roots - {"self"}) & bound:
            return f"object {self._frame.cls}"
        own = self._frame.function is not None and roots & bound
        return f"call {self._frame.number}" if own else f"module {self._frame.module}"

    def _receiver(self) -> Iterator[tuple[ast.expr, Value]]:
        if isinstance(self._node.func, ast.Attribute):
            path = bare(self._node.func.value)
            yield path, self._held(path)

    def _is_path(self, path: ast.expr, v: Value) -> bool:
        """Whether a value is a path, by its text or by how it is made or called."""
        if not v or any(isinstance(a, Ref | Bound | Foreign | Unknown) for a in v):
            return False
        if any(isinstance(a, Data) and a.kind != "text" for a in v):
            return False
        words = [w for a in v for w in (a if isinstance(a, Const) else getattr(a, "default", None),) if isinstance(w, Const)]
        if any(not isinstance(w.value, str) for w in words):
            return False
        if any(SUFFIX.search(w.value) for w in words):
            return True
        if all(isinstance(a, Const) for a in v):
            return False
        made = list(self._bound(path))
        if any(isinstance(e, ast.Call) and last(e.func) in ("BytesIO", "StringIO") for e in made):
            return False
        return named(path) or any(makes_path(e) for e in (path, *made))

    def _bound(self, path: ast.expr) -> Iterator[ast.expr]:
        """What a variable is given in its function."""
        if not isinstance(path, ast.Name):
            return
        for node in (n for tree in self._trees() for n in ast.walk(tree)):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == path.id for t in node.targets):
                yield node.value

    def _trees(self) -> Sequence[ast.AST]:
        function = self._frame.function
        return [function.extra.node] if function is not None else [p.tree for p in self._m.program.parts]


def _pairs(node: ast.Call, arguments: Arguments) -> Iterator[tuple[ast.expr, Value]]:
    """The arguments that are written one by one, each with its value."""
    if any(isinstance(a, ast.Starred) for a in node.args):
        return
    yield from zip(node.args, arguments.positional, strict=False)
    yield from ((k.value, v) for k in node.keywords if k.arg and (v := arguments.keywords.get(k.arg)))
