"""What goes into the names of files and directories that each rank would make otherwise: the time, and what stands in a directory already."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.library import CLOCKS, EXIST_METHODS, EXISTS
from dpmigrate.facts.names import FunctionNode, Loop, last, position
from dpmigrate.facts.nodes import children, walk
from dpmigrate.judge import span
from dpmigrate.spelt_paths import READS

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

_CLOCKS = (
    CLOCKS
    | {"datetime.now", "time.strftime", "time.ctime", "time.asctime", "time.localtime", "time.gmtime", "os.getpid"}
    | {"uuid.uuid1", "uuid.uuid4", "secrets.token_hex", "secrets.token_urlsafe", "tempfile.mkdtemp", "tempfile.mkstemp"}
)
_LISTS = ("glob.glob", "os.listdir")
_LAZY_LISTS = ("glob.iglob", "os.walk")
_LAZY_METHODS = ("glob", "rglob", "iterdir")
_PATHS = frozenset(
    {"join", "makedirs", "mkdir", "open", "save", "SummaryWriter", "Path", "FileHandler", "basicConfig", "exists", "isdir", "load", "configure", "joinpath"}
)


def clocks(script: Script) -> Iterator[ast.Call]:
    """The calls that give a time or a random name which goes into a path: before the epochs, also of each fold, not in them, where rank 0 writes files."""
    epochs = {loop for b in script.roles.train_loops for loop in (b.node, *(e for e, _ in script.roles.epoch_loop(b.node)))}
    found = list(script.calls(*_CLOCKS))
    paths = script.executed.timed_paths
    seen = [n for n in script.names.nodes if isinstance(n, ast.Call) and n not in found and span(n) in paths] if paths else []
    for call in (*found, *seen):
        inside = any(a in epochs or a in found for a in script.names.ancestors(call))
        if not inside and (span(call) in paths or _Flow(script, False).into_path(call, 3)):
            yield call


def configured(script: Script) -> Iterator[ast.expr]:
    """What is made of a clock, or of a number of the system, where it is stored in a configuration: an identifier of the run. Paths may be made of it, and
    other settings, which nothing in the program shows (``${run.id}`` in a file of settings).
    """
    places = script.executed.configured
    for target in script.names.nodes if places else ():
        stmt = script.names.parent[target] if isinstance(target, ast.Attribute) and position(target) in places else None
        if isinstance(stmt, ast.Assign | ast.AnnAssign) and stmt.value is not None:
            yield stmt.value


def listings(script: Script) -> Iterator[tuple[ast.Call, bool]]:
    """The listings of directories that are counted, or whose highest number is taken, for a path; with whether it gives a list."""
    lists_of = set(script.calls(*_LISTS))
    for call in found_in_directories(script):
        lists = call in lists_of
        around = [a for a in script.names.ancestors(call) if isinstance(a, Loop)]
        if all(isinstance(a, ast.For) and script.names.is_inside(call, a.iter) for a in around) and _Flow(script, True).into_path(call, 6):
            yield call, lists


def found_in_directories(script: Script) -> list[ast.Call]:
    """The calls that list directories."""
    return [*script.calls(*_LISTS), *script.calls(*_LAZY_LISTS), *(c for c, _ in script.methods(*_LAZY_METHODS))]


def own_folders(script: Script) -> Iterator[ast.Call]:
    """The temporary directories of ``with`` statements in which a checkpoint is saved: ``with TemporaryDirectory() as folder:``."""
    saves = list(script.calls("torch.save"))
    for call in script.calls("tempfile.TemporaryDirectory") if saves else ():
        block = next((a for a in script.names.ancestors(call) if isinstance(a, ast.stmt)), None)
        if isinstance(block, ast.With) and any(i.context_expr is call and i.optional_vars is not None for i in block.items):
            entered = script.roles.all_entered(block)
            if any(script.names.is_inside(s, block) or script.names.function(s) in entered for s in saves):
                yield call


def free_names(script: Script) -> Iterator[ast.expr]:
    """The tests by which a loop finds a name that is free: ``while os.path.exists(path): i += 1``, ``if not path.exists(): break``."""
    for loop in script.names.nodes:
        if not isinstance(loop, ast.While | ast.For) or script.meets(loop):
            continue
        counts = not isinstance(loop, ast.For) or (isinstance(loop.iter, ast.Call) and last(loop.iter.func) in ("range", "count"))
        if isinstance(loop, ast.While) and _asks_existence(script, loop.test):
            names = {n.id for n in walk(loop.test) if isinstance(n, ast.Name)} | {n.attr for n in walk(loop.test) if isinstance(n, ast.Attribute)}
            if any(isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store) and last(n) in names for s in loop.body for n in walk(s)):
                yield loop.test
        elif counts:
            tests = (n for n in walk(loop) if isinstance(n, ast.If) and _asks_existence(script, n.test))
            yield from (n.test for n in tests if any(isinstance(s, ast.Break | ast.Return) for s in (*n.body, *n.orelse)))


def _asks_existence(script: Script, test: ast.expr) -> bool:
    called = [n.func for n in walk(test) if isinstance(n, ast.Call)]
    return any(script.names.dotted(f) in EXISTS or (isinstance(f, ast.Attribute) and f.attr in EXIST_METHODS and not script.names.dotted(f)) for f in called)


def file_tests(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """The tests round the node, in its function, that ask whether a file is there: another rank may just have made it."""
    for a in script.names.ancestors(node):
        if isinstance(a, FunctionNode):
            return
        if isinstance(a, ast.If | ast.IfExp) and not script.names.is_inside(node, a.test) and _asks_existence(script, a.test):
            yield a.test


class _Flow:
    """One look at where a value goes; ``listing``: it is a listing, which becomes a path of its own only by way of a number."""

    def __init__(self, script: Script, listing: bool) -> None:
        self.script = script
        self.listing = listing
        self.seen: set[tuple[ast.AST, bool]] = set()

    def into_path(self, node: ast.AST, depth: int, number: bool | None = None) -> bool:
        """Whether the value of the expression is part of a path argument: directly, by variables, by functions that get or return it."""
        names, inner = self.script.names, node
        number = not self.listing if number is None else number
        if (node, number) in self.seen:
            return False
        self.seen.add((node, number))
        for a in names.ancestors(node):
            if isinstance(a, ast.Call) and not names.is_inside(node, a.func):
                number = number or last(a.func) in ("int", "len")
                if names.dotted(a.func) == "torch.save" and inner is not self.script.argument(a, "f", 1):
                    return False  # a time that is saved
                if number and (last(a.func) in _PATHS or READS.match(last(a.func))) and not self._of_text(a):
                    return True
                if depth and self._given(a, inner, depth, number):
                    return True
            if isinstance(a, ast.comprehension) and inner is a.iter:
                made = names.parent[a]
                number = number or any(isinstance(n, ast.Call) and last(n.func) == "int" for n in walk(made))
            if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Sub) and not self.listing:
                return False  # a duration
            if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div) and inner is a.right and number:
                return True  # root / name; nothing else is divided by a time
            if isinstance(a, ast.Subscript) and inner is a.slice:
                return False  # it chooses among others
            if isinstance(a, ast.For) and inner is a.iter:
                return depth > 0 and any(self._named(t, depth, number) for t in walk(a.target) if isinstance(t, ast.Name))
            if isinstance(a, ast.Assign) and depth:
                return any(self._named(t, depth, number) for t in a.targets)
            if isinstance(a, ast.Return) and depth:
                function = names.function(a)
                callers = self.script.values.ways.get(function, []) if isinstance(function, FunctionNode) else []
                return any(self.into_path(c, depth - 1, number) for c in callers)
            inner = a
        return False

    def _given(self, call: ast.Call, inner: ast.AST, depth: int, number: bool) -> bool:
        """Whether what the call is given goes into a path: in a function of the program, or in the list to which it is added."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "add"):
            return self._named(call.func.value, depth, number)
        if isinstance(inner, ast.keyword) and inner.arg == "default" and last(call.func) == "add_argument":
            return any(self.into_path(n, depth - 1, number) for n in self._read_options(call))
        given = inner.value if isinstance(inner, ast.keyword) else inner
        for function, skip in self.script.values.targets(call):
            for name, value in arguments(call, function, skip):
                reads = (n for n in walk(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)) if value is given else ()
                if any(self.into_path(n, depth - 1, number) for n in reads):
                    return True
        return False

    def _read_options(self, call: ast.Call) -> Iterator[ast.Attribute]:
        """Where an option is read: ``args.run_name`` of ``add_argument("--run-name", default=…)``."""
        texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        dest = next((k.value.value for k in call.keywords if k.arg == "dest" and isinstance(k.value, ast.Constant)), None)
        word = dest or next((t for t in texts if t.startswith("--")), texts[0] if texts else "")
        if isinstance(word, str):
            yield from (n for n in self.script.names.attributes(word.lstrip("-").replace("-", "_")) if isinstance(n.ctx, ast.Load))

    def _of_text(self, call: ast.Call) -> bool:
        """``" ".join(words)``"""
        return last(call.func) == "join" and not self.script.names.dotted(call.func).endswith("path.join")

    def _named(self, target: ast.expr, depth: int, number: bool) -> bool:
        names = self.script.names
        if isinstance(target, ast.Name):
            uses: list[ast.expr] = [*names.uses(names.scope_of[target], target.id)]
        elif isinstance(target, ast.Attribute):
            text = ast.unparse(target)
            uses = [n for n in names.attributes(target.attr) if isinstance(n.ctx, ast.Load) and ast.unparse(n) == text]
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):  # settings["started"]
            text = ast.unparse(target)
            uses = [n for n in names.nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and ast.unparse(n) == text]
        else:
            return (
                any(self._named(t, depth, number) for t in children(target) if isinstance(t, ast.expr)) if isinstance(target, ast.Tuple) else False
            )
        return any(self.into_path(n, depth - 1, number) for n in uses)
