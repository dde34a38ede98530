"""Which files the program writes: the paths that it opens for writing, and the calls that make files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.outside import changes_files, fetches
from dpmigrate.facts.sample_files import is_of_one_sample, keeps_one_sample
from dpmigrate.judge import SAVES, writes_by_mode
from dpmigrate.library.databases import CHANGES
from dpmigrate.spelt_paths import COMMANDS

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

_HANDLERS = ("logging.FileHandler", "logging.handlers.RotatingFileHandler", "logging.handlers.TimedRotatingFileHandler", "logging.handlers.WatchedFileHandler")
_ARCHIVES = ("h5py.File", "zipfile.ZipFile", "tarfile.open")
REMOVE = frozenset({"rmtree", "remove", "unlink", "rmdir", "removedirs"})
#: calls that make files and whose results may be used
_MAKE = frozenset({"sqlite3.connect", "lmdb.open", "torch.save", "pickle.dump", "json.dump", "yaml.dump", "shutil.unpack_archive"} | COMMANDS)
#: functions that read a file which they are given: ``json.load``, ``csv.DictReader``, ``pandas.read_csv``, ``list``
_READERS = re.compile(r"^(load|read|parse|list$)|reader$|_load$", re.IGNORECASE)
#: methods of a connection to a database, and of its cursor, that may change it and that give rows of it
_CHANGE, _ASK = ("execute", "executemany", "executescript", "commit"), ("fetchone", "fetchall", "fetchmany")
_TABLES_OF = ("pandas.read_sql", "pandas.read_sql_query", "pandas.read_sql_table")
_EXTRACT = frozenset({"extractall", "tofile", "save_to_disk"})


def opened(script: Script) -> Iterator[ast.expr]:
    """The paths of text and binary files that are opened for writing, and of logs, which all ranks would have."""
    yield from (path for path in _opened(script) if not is_of_one_sample(script, path))


def _opened(script: Script) -> Iterator[ast.expr]:
    for call in script.calls("?.open", "io.open", "codecs.open", "gzip.open"):
        path, mode = script.argument(call, "file", 0), script.argument(call, "mode", 1)
        if path is not None and _writing(script, mode) and not _read_back(script, call, mode):
            yield path
        elif path is not None and mode is not None:
            yield from _by_helper(script, call, path, mode)
    if any(d.partition(".")[0] == "pathlib" for d in script.names.imports.values()):
        for call, func in script.methods("open"):
            mode = script.argument(call, "mode", 0)
            if _writing(script, mode) and not _read_back(script, call, mode):
                yield func.value
    for call in script.calls("loguru.logger.add"):
        sink = script.argument(call, "sink", 0)
        if sink is not None and script.names.dotted(sink) not in ("sys.stderr", "sys.stdout"):
            yield sink
    for call in script.calls(*_HANDLERS):
        path = script.argument(call, "filename", 0)
        if path is not None:
            yield path
    for call in script.calls("logging.basicConfig"):
        path = script.argument(call, "filename")
        if path is not None and not (isinstance(path, ast.Constant) and path.value is None):
            yield path
    if any(script.calls("logging.config.dictConfig")):
        yield from (path for node in script.names.nodes if isinstance(node, ast.Dict) and (path := _of_handler(node)) is not None)


def _by_helper(script: Script, opening: ast.Call, path: ast.expr, mode: ast.expr) -> Iterator[ast.expr]:
    """The paths that calls of a helper open for writing, which opens what it is given in the mode that it is given: ``open_file(path, "w")``, where others
    read. The helper does nothing else with either.
    """
    function = script.names.function(opening)
    if not isinstance(function, FunctionNode) or not isinstance(path, ast.Name) or not isinstance(mode, ast.Name):
        return
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    scope = script.names.scope_of[path]
    if any(n.id not in names or len(list(script.names.uses(scope, n.id))) != 1 for n in (path, mode)):
        return
    for call in script.names.calls_of(function):
        bound = next((bound for target, bound in script.values.targets(call) if target is function), None)
        if bound is not None:
            given, how = (script.argument(call, n.id, names.index(n.id) - bound) for n in (path, mode))
            if given is not None and how is not None and _writing(script, how) and not _read_back(script, call, how):
                yield given


def _of_handler(node: ast.Dict) -> ast.expr | None:
    """The path of a log as ``dictConfig`` has it: ``{"class": "logging.FileHandler", "filename": path}``."""
    items = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
    kind = items.get("class")
    return items.get("filename") if isinstance(kind, ast.Constant) and kind.value in _HANDLERS else None


def must_be_new(script: Script, path: ast.expr) -> bool:
    """Whether the path of ``opened`` is opened with a mode that fails where the file exists: ``open(path, "x")``."""
    call = next(a for a in script.names.ancestors(path) if isinstance(a, ast.Call | ast.stmt))
    if not isinstance(call, ast.Call):
        return False
    modes = [a for a in (*call.args, *(k.value for k in call.keywords if k.arg == "mode")) if a is not path]
    return any(_writing(script, m) and any("x" in word for word in _words(script, m)) for m in modes)


def archives(script: Script) -> Iterator[ast.Call]:
    """The archives that are opened for writing."""
    yield from (call for call in script.calls(*_ARCHIVES) if _writing(script, script.argument(call, "mode", 1)) and not keeps_one_sample(script, call))


def openers(script: Script) -> Iterator[ast.Call]:
    """The calls by which a library that no table knows for that opens a file for writing, under a name that all ranks would have: it is given a path, and
    a mode that writes. Where it may read as well (``"r+"``) the others would have nothing to read.
    """
    known = {script.names.parent[path] for path in opened(script)} | set(archives(script))
    for call in script.roles.calls:
        if position(call) in script.files_of_all and call not in known and _writes_alone(script, script.argument(call, "mode", 1)):
            around = (call, *script.names.ancestors(call))
            whole = any(isinstance(c, ast.Call) and saves(script, c) for c in around)  # that statement is rank 0's as a whole
            if not whole and not _parts_are_read(script, call) and not keeps_one_sample(script, call):
                yield call


def databases(script: Script) -> Iterator[ast.Call]:
    """The databases that the program changes and never asks: rank 0 alone needs a connection."""
    connected = list(script.calls("sqlite3.connect"))
    statements = [call for call, _ in script.methods(*_CHANGE)] if connected else []
    changed = any(last(c.func) in ("commit", "executemany") or _changes(script, c) for c in statements)
    asked = any(script.methods(*_ASK)) or any(script.calls(*_TABLES_OF)) or any(_is_asked(script, c) for c in statements)
    if changed and not asked:
        yield from connected


def _changes(script: Script, call: ast.Call) -> bool:
    text = script.argument(call, "sql", 0)
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and CHANGES.match(text.value) is not None


def _is_asked(script: Script, call: ast.Call) -> bool:
    """Whether the rows of a statement may be used: where it does not stand by itself, and changes nothing."""
    return script.is_statement(call) is None and not _changes(script, call)


def shelves(script: Script) -> Iterator[ast.Call]:
    """The shelves in which the program puts something, and of which it reads nothing."""
    for call in script.calls("shelve.open", "dbm.open"):
        given = script.names.parent[call]
        target = given.optional_vars if isinstance(given, ast.withitem) else given.targets[0] if isinstance(given, ast.Assign) else None
        flag = script.argument(call, "flag", 1)
        written = flag is None if script.names.dotted(call.func) == "shelve.open" else False
        if isinstance(flag, ast.Constant):
            written = isinstance(flag.value, str) and not flag.value.startswith("r")
        if isinstance(target, ast.Name) and written:
            used = [n for n in script.names.uses(script.names.scope_of[target], target.id) if n is not target]
            if used and all(_puts(script, n) for n in used):
                yield call


def _puts(script: Script, name: ast.expr) -> bool:
    """Whether a shelf is written or closed where its name stands: ``shelf[key] = value``, ``shelf.close()``."""
    parent = script.names.parent[name]
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Store) and not isinstance(script.names.parent[parent], ast.AugAssign)
    return isinstance(parent, ast.Attribute) and parent.attr in ("close", "sync")


def _parts_are_read(script: Script, call: ast.Call) -> bool:
    """Whether items are taken of what a call gives, by the name that it gets: the other ranks would have none."""
    given = script.names.parent[call]
    targets = [given.optional_vars] if isinstance(given, ast.withitem) else given.targets if isinstance(given, ast.Assign) else []
    named = {t.id for t in targets if isinstance(t, ast.Name)}
    return any(isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id in named for n in walk(script.names.function(call)))


def _writes_alone(script: Script, mode: ast.expr | None) -> bool:
    words = _words(script, mode)
    return bool(words) and all(writes_by_mode(word) and "+" not in word for word in words)


def _writing(script: Script, mode: ast.expr | None) -> bool:
    """A mode that writes, whichever of its values it has: letters of a mode, and one of those that write. ``r+`` reads what is there first, which
    ``os.devnull`` has not.
    """
    words = [set(word.partition(":")[0]) for word in _words(script, mode)]
    return bool(words) and all(letters <= set("rwax+bt-") and letters & set("wax") for letters in words)


def _read_back(script: Script, call: ast.Call, mode: ast.expr | None) -> bool:
    """Whether a file of the mode ``a+`` or ``w+`` is read as well: ``f.read()``, ``json.load(f)``, ``for line in f``."""
    above = script.names.parent[call]
    target = above.optional_vars if isinstance(above, ast.withitem) else above.targets[0] if isinstance(above, ast.Assign) else None
    if not isinstance(target, ast.Name) or not any("+" in word for word in _words(script, mode)):
        return False
    for name in script.names.uses(script.names.scope_of[target], target.id):
        parent = script.names.parent[name]
        if isinstance(parent, ast.Attribute) and parent.attr.startswith("read"):
            return True
        if isinstance(parent, ast.Call) and name in parent.args and _READERS.search(last(parent.func)):
            return True
        if isinstance(parent, ast.For | ast.comprehension) and parent.iter is name:
            return True
    return False


def _words(script: Script, mode: ast.expr | None) -> list[str]:
    """Every text that the mode may be; none where one of its values is not known."""
    found = [v.node.value if isinstance(v.node, ast.Constant) else None for v in script.values.eval(mode)]
    return [word for word in found if isinstance(word, str)] if all(isinstance(word, str) for word in found) else []


def writes(script: Script) -> Iterator[ast.Call]:
    """The other calls that write a file, of which rank 0 alone will do so: ``np.save``, ``plt.savefig``."""
    found = (c for c in script.roles.calls if last(c.func) not in REMOVE and (changes_files(script.roles, c) or saves(script, c)))
    yield from (call for call in found if not keeps_one_sample(script, call))


def saves(script: Script, call: ast.Call) -> bool:
    """Whether a statement saves something under a name that all ranks would have, as an execution on paper says: of objects that no table knows, too."""
    named = SAVES.match(last(call.func)) is not None and bool(call.args or call.keywords) and script.is_statement(call) is not None
    own = script.names.dotted(call.func).startswith("torch.")  # these have a rule of their own
    return named and not own and position(call) in script.files_of_all and not keeps_one_sample(script, call)


def makers(script: Script) -> frozenset[ast.AST]:
    """Every call that makes files by itself; to create or remove a directory is not enough."""
    found: set[ast.AST] = {script.names.parent[path] for path in opened(script)} | set(archives(script)) | set(openers(script))
    return frozenset(found | {call for call in script.roles.calls if _makes(script, call)})


def _makes(script: Script, call: ast.Call) -> bool:
    name, dotted = last(call.func), script.names.dotted(call.func)
    if dotted in _MAKE or (name in _EXTRACT and not dotted):
        return True
    return fetches(script.names, call) or (changes_files(script.roles, call) and name not in REMOVE) or saves(script, call)
