"""Calls that are about files: which paths they write, read and ask for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import UNSEEN
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Bound,
    Const,
    Data,
    Foreign,
    Ref,
    Setting,
    Unknown,
    Value,
    atom_placement,
    const,
    data,
    known,
    origins,
    strings,
)
from dpmigrate.library.natures import CLOCK
from dpmigrate.library.pure import family_of
from dpmigrate.spelt_paths import READS, READS_FOLDER, SUFFIX, bare, folder, last, listed_folders, loops_of, makes_path, named, named_after

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged

RUNTIME = "dpmigrate_runtime."
#: the names of what writes a file
SAVES = re.compile(
    r"save|tofile$|im(save|write)$|m(im)?(save|write)$|volwrite$|export|dump(_stats)?$|write_\w|"
    r"to_(csv|excel|feather|file|filename|disk|hdf|html|image|json|latex|markdown|netcdf|parquet|pickle|stata|zarr)$"
)
#: functions of libraries that compute write a file by this name, methods and streams what they are given
_FUNCTIONS = ("write",)
#: what is written where a path is the receiver
_OF_PATHS = ("write_text", "write_bytes", "touch")
_MOVES = frozenset({f"shutil.{n}" for n in ("copy", "copy2", "copyfile", "copytree", "move")} | {"os.rename", "os.replace", "os.renames"})
_OPENS = frozenset({
    "builtins.open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open", "h5py.File", "zarr.open",
    "pandas.HDFStore", "pandas.ExcelWriter",
})  # fmt: skip
#: names of what opens a file
_OPENERS = re.compile("open|writer|file", re.IGNORECASE)
#: names of parameters for paths
_PATHS = re.compile("path|file|name|ur[il]", re.IGNORECASE)
_LISTS = frozenset({"os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob"})
_LISTING = frozenset({"listdir", "scandir", "walk", "glob", "iglob", "rglob", "iterdir"})
_QUESTIONS = frozenset({f"os.path.{n}" for n in ("exists", "isfile", "lexists", "getsize", "getmtime", "getctime")} | {"os.stat"})
_METHODS_OF_PATHS = frozenset({"exists", "is_file", "stat", "read_text", "read_bytes"})
_LISTING_METHODS = frozenset({"iterdir", "glob", "rglob"})


def by_clock(path: Value) -> bool:
    """Whether a path has a time in it, of which each rank has its own."""
    return CLOCK in {o.word for d in _apart(path) for o in origins(d.origin)}


def _only_by_clock(path: Value) -> bool:
    """Whether nothing but a time makes a path another one on each rank."""
    made = [o.word for d in _apart(path) for o in origins(d.origin) if o.before is None]
    return bool(made) and set(made) == {CLOCK} and all(isinstance(a, Data | Const | Setting) for a in path)


def _apart(path: Value) -> list[Data]:
    return [d for d in data(path) if d.placement.kind is Kind.PER_RANK]


def writes_by_mode(mode: object) -> bool:
    """Whether a value is a mode in which a file is opened for writing: letters of a mode, with one
    that writes.
    """
    return isinstance(mode, str) and 0 < len(mode) < 5 and set(mode) <= set("rwaxbt+") and bool(set(mode) & set("wax+"))


def opened_for(mode: Value | None) -> tuple[bool, bool]:
    """Whether a file that ``open`` is given this mode for may be read, and whether it may be written, by
    each of the modes that it may be (``"a" if resumed else "w"``). What is not seen counts as reading.
    """
    mode = mode or const("r")
    letters = [set(s) for s in strings(mode)]
    unseen = not letters or any(not isinstance(a, Const | Setting) for a in mode)
    writing = [bool(found & set("wax+")) for found in letters]
    return unseen or not all(writing), any(writing)


class FileCall:
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
        return self._name.startswith(RUNTIME)

    @property
    def saves(self) -> bool:
        """Whether the call itself makes a file, and does not only open one as Python's own do."""
        if self._name.startswith((RUNTIME, "builtins.", "dpmigrate")):
            return False
        if self._opens:
            return True
        if SAVES.match(self._word) is not None and self._name != "torch.save":
            return True
        return self._word in _FUNCTIONS and not self._method and family_of(self._name) is not None

    def written(self) -> Iterator[tuple[ast.expr, Value]]:
        """The paths that are written."""
        if self._name in ("torch.save", f"{RUNTIME}save", f"{RUNTIME}main_only") or self._name in _MOVES:
            yield from self._given[1:2]
        elif self._name == f"{RUNTIME}main_path":
            yield from self._given[:1]
        elif self._name in _OPENS:
            if opened_for(self._arguments.get(1, "mode"))[1]:
                yield from self._given[:1]
        elif self._method and self._word in _OF_PATHS:
            yield from self._receiver()
        elif self._opens:
            yield from self._first
        elif self.saves:
            yield from ((e, v) for e, v in self._given if self._is_path(e, v))

    @property
    def _opens(self) -> bool:
        """Whether a function of a library that no table knows for that opens a file for writing: it is
        given a path, and a mode that writes, and is named so or says that it is a mode.
        """
        if self._method or self._name in _OPENS or self._name.startswith(("torch.", "os.", "tempfile.")):
            return False
        mode = self._arguments.get(1, "mode")
        if not self._first or not writes_by_mode(known(mode or NOTHING)):
            return False
        path, v = self._first[0]
        if "mode" in self._arguments.keywords or _OPENERS.search(self._word):
            return bool(v) and all(map(self._may_be_text, v))
        return self._word[:1].isupper() and self._is_path(path, v)

    @property
    def _first(self) -> list[tuple[ast.expr, Value]]:
        """The first argument, or the one that is named as a path."""
        if self._arguments.positional:
            return self._given[:1]
        named = {k.value for k in self._node.keywords if k.arg and _PATHS.search(k.arg)}
        return [(e, v) for e, v in self._given if e in named][:1]

    @property
    def at_one_path(self) -> bool:
        """Whether the paths that are written are the same on every rank, as far as it is known; of what
        is opened for writing that is taken for granted where nothing is known. A time in a path is
        rank 0's for all, once the program is migrated.
        """
        kinds = (Kind.UNIFORM, Kind.UNKNOWN) if self._opens else (Kind.UNIFORM,)
        original = f"{RUNTIME}setup" not in self._m.trace.foreign
        found = [v for _, v in self.written()]
        return all(v and (all(isinstance(a, Const | Setting) or atom_placement(a).kind in kinds for a in v) or (original and _only_by_clock(v))) for v in found)

    def keys_asked(self) -> frozenset[str]:
        """The files, or folders, that are asked for."""
        found: list[str] = []
        if self._name in _LISTS:
            for e, v in self._given[:1]:
                found += [*self._as_folder(e, v), *self.folders(e, v)]
        elif self._method and self._word in _LISTING_METHODS:
            for e, v in self._receiver():
                found += self._as_folder(e, v)
        elif not self._method and READS_FOLDER.match(self._name) is not None:
            for e, v in self._given[:1]:
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
        return not self._method and READS.match(self._word) is not None and not self._name.startswith(("torch.", RUNTIME))

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
        if any(isinstance(a, Data) and a.kind != "text" for a in v) and not _only_by_clock(v):
            return False
        words = [w for a in v for w in (a if isinstance(a, Const) else getattr(a, "default", None),) if isinstance(w, Const)]
        if any(not isinstance(w.value, str) for w in words):
            return False
        if any(SUFFIX.search(w.value) for w in words):
            return True
        if all(isinstance(a, Const) for a in v):
            return False
        path = bare(path)
        made = list(self._bound(path))
        if any(isinstance(e, ast.Call) and last(e.func) in ("BytesIO", "StringIO") for e in made):
            return False
        return named(path) or any(makes_path(e) for e in (path, *made))

    def _may_be_text(self, a: Atom) -> bool:
        """Whether an atom may be a path, for all that is known of it."""
        if isinstance(a, Const):
            return isinstance(a.value, str)
        if isinstance(a, Ref):
            return self._m.heap.objects[a.object].kind in UNSEEN
        return isinstance(a, Setting | Unknown) or (isinstance(a, Data) and a.kind == "text")

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
