"""What ranks do with files in no order: rank 0 writes or removes what the others read or ask for.

Since the ranks have met, what rank 0 has written or removed is noted, and what every rank has read or
asked for. A rank that reads what is noted as written may come too early; rank 0 that writes what is
noted as read may come too early for another rank. All ranks meet at a collective and at a backward
pass. At the end of a section in which rank 0 goes first the others have waited for it, and it has
not waited for them.

A question whose answer decides nothing but what rank 0 alone does may come at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.values import NONE, NOTHING, Foreign, Value, const, known
from dpmigrate.judge.file_calls import RUNTIME, FileCall, opened_for
from dpmigrate.judge.idle_questions import where_missing, without_effect
from dpmigrate.judge.path_forms import pattern
from dpmigrate.judge.path_overlap import overlap, within
from dpmigrate.judge.shared_files import called
from dpmigrate.library.files import FIRST, MADE_BEFORE
from dpmigrate.spelt_paths import COMMANDS, READS_FOLDER, SUFFIX, bare

if TYPE_CHECKING:
    from dpmigrate.judge.judged import Judged

#: a field of the process: what has been done with files since the ranks met
DONE = (PROCESS, "judge files and who came to them")
#: what is done with a file: all ranks read it, ask for it, or make a folder that may be there; rank 0 writes or removes it
READ, ASKED, MADE, WRITTEN = "read", "asked", "made", "written"
#: the events of a rank that may come too early to what rank 0 does, and of rank 0 that may come too early
EARLY, HASTY = "judge file read early", "judge file written early"

_QUESTIONS = frozenset(f"os.path.{n}" for n in ("exists", "isfile", "isdir", "islink", "lexists"))
_OF_PATHS = frozenset({"exists", "is_file", "is_dir", "is_symlink"})
_MEASURES = frozenset({f"os.path.{n}" for n in ("getsize", "getmtime", "getctime")} | {"os.stat", "os.lstat", "os.readlink"})
_LISTS = {"os.listdir": ASKED, "os.walk": ASKED, "os.scandir": READ}
_MOVES = frozenset({"shutil.move", "os.rename", "os.replace", "os.renames"})
_COPIES = frozenset({"shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree"})
_REMOVES = frozenset({"os.remove", "os.unlink", "os.rmdir", "os.removedirs", "shutil.rmtree"})
_LINKS = frozenset({"os.symlink", "os.link"})
_TREES = frozenset({"shutil.rmtree", "shutil.move", "os.rename", "os.replace", "os.renames", "shutil.copytree"})
#: what opens a file, reading or writing it by its mode
_OPENS = frozenset({"builtins.open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open"})
_METHODS = {"unlink": WRITTEN, "rmdir": WRITTEN, "touch": WRITTEN, "write_text": WRITTEN, "write_bytes": WRITTEN, "symlink_to": WRITTEN}


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done with the files of a form; ``tree``: also with all that is in the folder; ``turn``:
    in a section that rank 0 goes through first.
    """

    what: str
    form: str
    tree: bool = False
    turn: bool = False

    @property
    def harmless(self) -> bool:
        """Whether it cannot fail, whatever another rank does: a question, a listing."""
        return self.what == ASKED

    def meets(self, other: Deed) -> bool:
        """Whether both may be about one file."""
        if overlap(self.form, other.form):
            return True
        return (self.tree and within(other.form, self.form)) or (other.tree and within(self.form, other.form))


def noted(m: Judged, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
    """Note of a call, before it is made, what it does with files, and whether another rank is in its way."""
    names = {called(m, atom, node) for atom in callee}
    name = names.pop() if len(names) == 1 else ""
    if not name or not isinstance(node, ast.Call) or f"{RUNTIME}setup" not in m.trace.foreign:
        return
    deeds = list(dict.fromkeys(_deeds(m, name, arguments, node, frame)))
    m.making_early = False
    if not deeds:
        return
    held = frozenset(_held(m))
    first = m.heap.read(FIRST) == const(True)
    alone = m.parted is not None and m.parted.origin.word.startswith("rank 0")
    found: list[Deed] = []
    for deed in deeds:
        if deed.what == WRITTEN:
            if not (alone or first or name.startswith(RUNTIME)):
                continue
            others = [d for d in held if d.what != WRITTEN and d.meets(deed) and not (first and d.turn)]
            if others and _is_missing(m, deed.form, node, frame.context):
                others = [d for d in others if d.what != READ or d.form != deed.form]  # what is read is there
            if any(d.what in (READ, MADE) for d in others):
                m.event(HASTY, node, frame)
            for d in others:
                if d.what == ASKED:
                    m.overtaken_questions |= m.asked_by_all.get(d, {})
            if not first:
                found.append(deed)
        elif (m.parted is None or (first and m.parted.origin.word == MADE_BEFORE)) and not (deed.harmless and node in without_effect(m.program)):
            if deed.what == MADE:  # another rank may ask whether it is there when the first one has made it
                for d in (d for d in held if d.what == ASKED and d.meets(deed) and not (first and d.turn)):
                    m.overtaken_questions |= m.asked_by_all.get(d, {})
            overtaken = not first and any(d.what == WRITTEN and d.meets(deed) for d in held)
            if overtaken and deed.what == MADE:
                m.making_early = True
            elif overtaken:
                m.event(EARLY, node, frame)
            if deed.what == ASKED:
                m.forms_asked.setdefault(node, set()).add(deed.form)
                if first:  # the others ask when rank 0 has made what they ask for
                    continue
                m.asked_by_all.setdefault(deed, {})[node] = None
            found.append(replace(deed, turn=first))
    new = [d for d in found if d not in held]
    if new:
        atoms: Value = tuple(Foreign(_spelt(d)) for d in new)
        m.heap.write(DONE, join(m.heap.read(DONE) or NOTHING, atoms))
        m.done_with_files.update(new)


def met(m: Judged) -> None:
    """All ranks have come to a place."""
    if m.heap.read(DONE):
        m.heap.write(DONE, NONE)


def waited_for(m: Judged) -> None:
    """The others have waited for rank 0, and it has not waited for them: what they read in their turn
    they may still be reading when rank 0 comes to the next section.
    """
    held = m.heap.read(DONE)
    if held:
        others = [a for a in held if not (isinstance(a, Foreign) and a.name.startswith(WRITTEN))]
        kept = tuple(Foreign(_spelt(replace(_read_back(a.name), turn=False))) if isinstance(a, Foreign) else a for a in others)
        m.heap.write(DONE, tuple(dict.fromkeys(kept)) or NONE)


def trained(m: Judged, before: Value, since: set[Deed]) -> None:
    """A loop has trained: what was noted before it, and not again in it, the ranks have met after."""
    held = m.heap.read(DONE) or NOTHING
    kept = tuple(a for a in held if a not in before or not isinstance(a, Foreign) or _read_back(a.name) in since)
    if kept != held:
        m.heap.write(DONE, kept or NONE)


def early(m: Execution) -> Iterator[ast.AST]:
    """The calls by which a rank reads or asks for what rank 0 may still be writing or removing."""
    return (e.node for e in m.trace.of(EARLY) if e.values["of a sample"] == const(False))


def hasty(m: Execution) -> Iterator[ast.AST]:
    """The calls by which rank 0 writes or removes what others may still be reading."""
    return (e.node for e in m.trace.of(HASTY) if e.values["of a sample"] == const(False))


# ---------------------------------------------------------------- one call


def _deeds(m: Judged, name: str, arguments: Arguments, node: ast.Call, frame: Frame) -> Iterator[Deed]:
    """What a call does with files."""
    args = [a for a in node.args if not isinstance(a, ast.Starred)]
    named = {k.arg: k.value for k in node.keywords if k.arg}
    word = name.rpartition(".")[2]
    first = args[0] if args else named.get("path") or named.get("file") or named.get("src") or named.get("fname") or named.get("root")
    second = args[1] if len(args) > 1 else named.get("dst") or named.get("f") or named.get("path")
    forms = m.forms.of
    if name.startswith(".") and isinstance(node.func, ast.Attribute):
        own = node.func.value
        if word in _OF_PATHS:
            yield from _all(ASKED, forms(own, frame))
        elif word in _METHODS:
            yield from _all(_METHODS[word], forms(own, frame))
        elif word == "mkdir":
            yield from _all(MADE, forms(own, frame))
        elif word in ("rename", "replace") and len(args) == 1:
            yield from _all(WRITTEN, forms(own, frame), tree=True)
            yield from _all(WRITTEN, forms(args[0], frame), tree=True)
        elif word in ("read_text", "read_bytes", "stat"):
            yield from _all(READ, forms(own, frame))
        elif word == "open":
            reads, writes = opened_for(arguments.get(0, "mode"))
            for kind in (*[WRITTEN] * writes, *[READ] * reads):
                yield from _all(kind, forms(own, frame))
        elif word in ("glob", "rglob") and args and not _is_library(own):
            yield from _all(ASKED, {f"{f}/{p}" for f in forms(own, frame) for p in map(pattern, forms(args[0], frame))})
        elif word == "iterdir":
            yield from _all(ASKED, {f"{f}/{{*}}" for f in forms(own, frame)})
        else:
            yield from _saved(m, name, arguments, node, frame)
        return
    if name in ("os.makedirs", "os.mkdir") and first is not None:
        yield from _all(MADE, forms(first, frame))
    elif name in _QUESTIONS and first is not None:
        yield from _all(ASKED, forms(first, frame))
    elif name in _MEASURES and first is not None:
        yield from _all(READ, forms(first, frame))
    elif name in _LISTS:
        yield from _all(_LISTS[name], {f"{f}/{{*}}" for f in (forms(first, frame) if first is not None else ["."])}, tree=name == "os.walk")
    elif name in ("glob.glob", "glob.iglob") and first is not None:
        yield from _all(ASKED, map(pattern, forms(first, frame)))
    elif name in _REMOVES and first is not None:
        yield from _all(WRITTEN, forms(first, frame), tree=name in _TREES)
    elif name in _MOVES | _COPIES | _LINKS and first is not None and second is not None:
        if name in _MOVES:
            yield from _all(WRITTEN, forms(first, frame), tree=True)
        yield from _all(WRITTEN, forms(second, frame), tree=name in _TREES)
    elif name in _OPENS and first is not None:
        reads, writes = opened_for(arguments.get(1, "mode"))
        if reads:
            yield from _all(READ, forms(first, frame))
        if writes and "main_path" not in ast.unparse(first):  # that has been noted by itself
            yield from _all(WRITTEN, forms(first, frame))
    elif name == "torch.load" and first is not None:
        yield from _all(READ, forms(first, frame))
    elif READS_FOLDER.match(name) is not None and first is not None:
        yield from _all(READ, forms(first, frame), tree=True)
    elif name in COMMANDS and args:
        yield from _all(READ, _told_to_a_command(m, args[0], frame))
    else:
        yield from _saved(m, name, arguments, node, frame)


def _is_missing(m: Judged, form: str, node: ast.AST, context: int, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a call is made only where the file of a form is not there, on every way that leads to it."""
    asked = where_missing(m.program).get(node, frozenset())
    if any(m.forms_asked.get(q) == {form} for q in asked):
        return True
    ways = [c for c in (m.trace.calls.get(context), *m.trace.others.get(context, ())) if c is not None]
    return bool(ways) and context not in seen and all(_is_missing(m, form, c.node, c.context, seen | {context}) for c in ways)


def _told_to_a_command(m: Judged, given: ast.expr, frame: Frame) -> set[str]:
    """The paths in a command, which may read them: ``[sys.executable, "score.py", path]``, ``f"python score.py {path}"``."""
    function = frame.function
    scope = [function.extra.node] if function is not None else [p.tree for p in m.program.parts]
    if isinstance(given, ast.Name):
        bound = (n for s in scope for n in ast.walk(s) if isinstance(n, ast.Assign))
        made = [n.value for n in bound if any(isinstance(t, ast.Name) and t.id == given.id for t in n.targets)]
        given = made[0] if len(made) == 1 else given
    words = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
    forms = (f for w in words if not isinstance(w, ast.Starred) for f in m.forms.of(bare(w), frame))
    return {w for f in forms for w in f.split() if SUFFIX.search(w)}


def _saved(m: Judged, name: str, arguments: Arguments, node: ast.Call, frame: Frame) -> Iterator[Deed]:
    """What other calls write or read, by their names."""
    call = FileCall(m, name, arguments, node, frame)
    written = list(call.written())
    for path, v in written or call.read():
        text = known(v)
        forms = {text} if isinstance(text, str) else m.forms.of(bare(path), frame)
        yield from _all(WRITTEN if written else READ, forms)


def _all(what: str, forms: Iterable[str], *, tree: bool = False) -> Iterator[Deed]:
    return (Deed(what, f, tree) for f in sorted(forms))


def _is_library(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "glob"


def _held(m: Judged) -> Iterator[Deed]:
    """What is noted, on any way that leads here."""
    return (_read_back(a.name) for a in m.heap.read(DONE) or NOTHING if isinstance(a, Foreign))


def _spelt(deed: Deed) -> str:
    return f"{deed.what}|{'tree' if deed.tree else ''}|{'turn' if deed.turn else ''}|{deed.form}"


@lru_cache(4096)
def _read_back(name: str) -> Deed:
    what, tree, turn, form = name.split("|", 3)
    return Deed(what, form, bool(tree), bool(turn))
