"""Files that rank 0 writes and that all ranks read afterwards: by the form of their paths."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, Loop, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.paths import path_forms
from dpmigrate.facts.ranks import for_main_alone, left_to_main, parted, run_apart, run_by_all
from dpmigrate.facts.written import REMOVE, archives, opened, writes
from dpmigrate.spelt_paths import COMMANDS

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

_READ = (
    *(f"numpy.{n}" for n in ("load", "loadtxt", "genfromtxt", "fromfile")),
    *(f"pandas.read_{n}" for n in ("csv", "json", "pickle", "excel", "parquet", "feather", "hdf")),
    *(f"{module}.{n}" for module in ("imageio", "imageio.v2", "cv2", "skimage.io", "matplotlib.pyplot", "matplotlib.image") for n in ("imread", "mimread")),
    *(
        "PIL.Image.open",
        "torchvision.io.read_image",
        "torchvision.io.read_video",
        "torchaudio.load",
        "soundfile.read",
        "scipy.io.loadmat",
        "scipy.io.wavfile.read",
    ),
    *("joblib.load", "safetensors.torch.load_file", "torch.jit.load", "h5py.File", "?.open", "io.open", "codecs.open", "gzip.open"),
)
_ASKS = frozenset(
    {"exists", "isfile", "is_file", "lexists", "getsize", "getmtime", "getctime", "stat", "listdir", "scandir", "walk", "glob", "iglob", "rglob", "iterdir"}
    | {"open", "read_text", "read_bytes", "imread", "loadtxt", "loadmat", "load", "fromfile", "ZipFile", "File", "read_image", "read_csv", "read_json"}
)
_READ_METHODS = ("read_text", "read_bytes")
_WRITE_METHODS = ("write_text", "write_bytes")


def read_backs(script: Script) -> Iterator[ast.Call]:
    """The calls that read a file which the program has written by then, and which all ranks come to outside of loops over batches."""
    written = _written(script)
    if written or any(True for _ in script.calls(*COMMANDS)):
        yield from (read for read, path in _reads(script) if _all_read(script, read) and any(True for _ in _before(script, read, path, written)))


def loaded_back(script: Script) -> Iterator[ast.Call]:
    """The ``torch.load`` calls that all ranks come to, of which the execution on paper says that the file may have been saved before: a function that
    saves in one call and loads in another, a first part of the program that leaves files to a second.
    """
    saves = [script.names.statement(c) for c in script.calls("torch.save")]
    loads = [c for c in (script.calls("torch.load") if saves else ()) if any(script.values.order.when(c, s) != "before" for s in saves)]
    found = [c for c in loads if _all_read(script, c) and not parted(script.roles, c)]
    places = script.unfinished_loads if found else frozenset()
    yield from (c for c in found if position(c) in places)


def asked_back(script: Script) -> Iterator[ast.Call]:
    """The questions about a file that the program has written just before, which all ranks come to: its size, its text, what is in its folder."""
    asked = [c for c in script.roles.calls if last(c.func) in _ASKS and _all_read(script, c) and not parted(script.roles, c)]
    asked = [c for c in asked if not for_main_alone(script.roles, c)]
    written = (*writes(script), *script.calls("torch.save"), *_opening(script)) if asked else ()
    saves = [script.names.statement(w) for w in written if not script.made_once(w) and not any(script.names.is_inside(w, b.first) for b in script.builds)]
    found = [c for c in asked if any(script.values.order.when(c, s) != "before" for s in saves)]
    places = script.early_questions if found else frozenset()
    for call in found:
        stmt = script.names.statement(call)
        above = script.names.parent.get(stmt)
        other = isinstance(above, ast.If) and above.orelse == [stmt]  # perhaps an elif
        if position(call) in places and not other and not (isinstance(stmt, ast.While) and script.names.is_inside(call, stmt.test)):
            yield call


def _opening(script: Script) -> Iterator[ast.AST]:
    """The calls that open files for writing."""
    yield from (script.names.parent[path] for path in opened(script))
    yield from (call for call, _ in script.methods(*_WRITE_METHODS))


def read_in_a_step(script: Script) -> Iterator[ast.Call]:
    """The calls inside of loops over batches that read a file which rank 0 has written just before, in the same function: there is no place to wait for it."""
    written = _written(script)
    for read, path in _reads(script) if written else ():
        if script.roles.region(read) != "outside" and not run_apart(script.roles, read) and not left_to_main(script.roles, read):
            function = script.names.function(read)
            if any(script.names.function(w) is function for w in _before(script, read, path, written)):
                yield read


def overwritten(script: Script) -> Iterator[ast.Call]:
    """The calls by which all ranks read a file that rank 0 writes anew in the same function, in the same run of it: it may be empty by then."""
    written = _written(script)
    for read, path in _reads(script) if written else ():
        for write in _of(script, path, written) if _all_read(script, read) else ():
            if script.names.function(write) is script.names.function(read) and _comes_to(script, read, script.names.statement(write)):
                yield read
                break


def rewritten(script: Script) -> Iterator[tuple[ast.Call, ast.stmt]]:
    """The calls by which all ranks read a file that rank 0 writes anew in another function before anything is trained.

    With each the statement of its function after which the ranks wait.
    """
    written = _written(script)
    for read, path in _reads(script) if written else ():
        function = script.names.function(read)
        writes = [w for w in _of(script, path, written) if script.names.function(w) is not function]
        if writes and isinstance(function, FunctionNode) and _all_read(script, read) and any(_soon(script, read, w) for w in writes):
            whole = script.names.statement(read)
            while whole not in function.body:
                whole = script.names.statement(script.names.parent[whole])
            if not any(isinstance(n, ast.Return | ast.Raise | ast.For | ast.While) for n in walk(whole)):
                yield read, whole


def _soon(script: Script, read: ast.AST, write: ast.AST) -> bool:
    """Whether a block of the program reads and writes later, and trains nothing between that."""
    for block in _blocks(script):
        runs = [_run_in(script, s) for s in block]
        reading = next((i for i, run in enumerate(runs) if read in run), len(block))
        for stmt, run in zip(block[reading + 1 :], runs[reading + 1 :], strict=True):
            if script.roles.reaches_backward(stmt):
                break
            if write in run:
                return True
    return False


def _blocks(script: Script) -> Iterator[list[ast.stmt]]:
    """The statements that are run one after the other."""
    for node in script.names.nodes:
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list) and len(block) > 1:
                yield [s for s in block if not isinstance(s, FunctionNode | ast.ClassDef)]


def _comes_to(script: Script, read: ast.Call, write: ast.stmt) -> bool:
    """Whether a run of a function that reads may write after it: not in another branch, and not where the reading ends the function or the turn.

    Where something is trained between them, the ranks have met.
    """
    if position(write) < position(read) or script.values.order.other_branch(write, script.names.statement(read)):
        return False
    reading = script.names.statement(read)
    while not isinstance(reading, FunctionNode | ast.Module):
        block = script.names.block(reading)
        after = block[block.index(reading) + 1 :]
        if any(script.names.is_inside(write, s) for s in block):
            return not any(script.roles.reaches_backward(s) for s in after if position(s) < position(write) and not script.names.is_inside(write, s))
        if any(isinstance(s, ast.Return | ast.Raise | ast.Continue | ast.Break) for s in (block[-1], *_last_of(reading))):
            return False
        reading = script.names.statement(script.names.parent[reading])
    return True


def _last_of(stmt: ast.stmt) -> Iterator[ast.stmt]:
    """The last statement of a ``with``, also of one in it."""
    while isinstance(stmt, ast.With | ast.AsyncWith):
        stmt = stmt.body[-1]
        yield stmt


def waits_at(script: Script, read: ast.Call) -> ast.stmt:
    """The statement before which the ranks wait: the outermost loop round the read in which nothing is written or trained."""
    writes = list(_before(script, read, dict(_reads(script))[read], _written(script)))
    found = script.names.statement(read)
    for a in script.names.ancestors(found):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, Loop):
            if script.roles.reaches_backward(a) or any(w in _run_in(script, a) for w in writes):
                break
            found = a
    return found


def outside_of_loops(script: Script, stmt: ast.stmt) -> ast.stmt:
    """The statement before which the ranks wait for what one of them does with files here: the outermost loop round it that does one thing with files,
    reading or changing them, and trains nothing.
    """
    found = stmt
    for a in script.names.ancestors(stmt):
        if isinstance(a, FunctionNode):
            break
        if isinstance(a, Loop):
            inside = [n for s in (*a.body, *a.orelse) for r in (s, *script.roles.all_entered(s)) for n in walk(r) if isinstance(n, ast.Call)]
            reads = any(last(c.func) in _ASKS for c in inside)
            changes = any(c in inside for c in (*writes(script), *script.calls("torch.save"), *_opening(script))) or any(last(c.func) in REMOVE for c in inside)
            if script.roles.reaches_backward(a) or (reads and changes):
                break
            found = a
    return found


def _run_in(script: Script, loop: ast.AST) -> set[ast.AST]:
    inside = set(walk(loop))
    return inside.union(*(walk(f) for f in script.roles.all_entered(loop)))


def _all_read(script: Script, read: ast.Call) -> bool:
    roles = script.roles
    if roles.region(read) != "outside" or not run_by_all(roles, read) or run_apart(roles, read) or left_to_main(roles, read):
        return False
    return not script.made_once(read) and not any(script.names.is_inside(read, b.first) for b in script.builds)


def _written(script: Script) -> dict[str, list[ast.AST]]:
    """The forms of the paths that are written by rank 0, with the calls that write them."""
    found: dict[str, list[ast.AST]] = {}
    pairs = [(script.names.parent[p], p) for p in opened(script)] + [(c, a) for c in archives(script) for a in c.args[:1]]
    pairs += [(call, func.value) for call, func in script.methods(*_WRITE_METHODS)]
    for call, path in [*pairs, *((c, a) for c in writes(script) for a in (*c.args, *(k.value for k in c.keywords)))]:
        for form in path_forms(script, path) if not script.made_once(call) else ():
            found.setdefault(form, []).append(call)
    return found


def _of(script: Script, path: ast.expr, written: dict[str, list[ast.AST]]) -> list[ast.AST]:
    """The calls that may write the path."""
    return list(dict.fromkeys(w for form in sorted(path_forms(script, path)) for w in written.get(form, ())))


def _reads(script: Script) -> Iterator[tuple[ast.Call, ast.expr]]:
    writing = {script.names.parent[p] for p in opened(script)} | set(archives(script))
    for call in script.calls(*_READ):
        if call.args and call not in writing:
            yield call, call.args[0]
    yield from ((call, func.value) for call, func in script.methods(*_READ_METHODS))


def _before(script: Script, read: ast.Call, path: ast.expr, written: dict[str, list[ast.AST]]) -> Iterator[ast.AST]:
    """The calls that have written the path before it is read: they come first, or in the turn before of a loop round both."""
    for write in _of(script, path, written):
        loops = [a for a in script.names.ancestors(read) if isinstance(a, Loop)]
        earlier = script.values.order.when(read, script.names.statement(write)) != "before"
        if write is not read and (earlier or any(write in _run_in(script, a) for a in loops)):
            yield write
    for command in script.calls(*COMMANDS):
        if script.names.function(command) is script.names.function(read) and left_to_main(script.roles, command):
            if script.values.order.when(read, script.names.statement(command)) == "after":
                yield command
