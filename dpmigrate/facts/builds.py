"""What the program makes where it is missing: a cache behind a test whether its path is there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.meetings import after_training
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.names import last as last_word
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.outside import fetches
from dpmigrate.facts.ranks import asks_files, files_asked, for_samples, parted, run_apart, run_by_all
from dpmigrate.facts.written import makers, opened

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


@dataclass(frozen=True, eq=False, slots=True)
class Build:
    """The statements from ``first`` to ``last`` test for files and make those that are missing in ``branch``.

    ``wishes`` are what else makes them anew (``args.rebuild or not exists(p)``). ``once``: they are there when the others come, who go round the branch.
    ``kept`` are values that the branch alone leaves behind and that are read later, so that the others would lack them.
    ``apart``: perhaps not all ranks come by.
    """

    asks: ast.If
    first: ast.stmt
    last: ast.stmt
    branch: tuple[ast.stmt, ...]
    wishes: tuple[ast.expr, ...]
    once: bool
    kept: tuple[str, ...]
    apart: bool

    @property
    def by_main(self) -> bool:
        """Whether the branch is left to rank 0 in the migrated program."""
        return self.once and not self.kept and not self.apart


def builds(script: Script) -> tuple[Build, ...]:
    """The outermost of them, where all ranks come by before training, or to make a data set."""
    made = makers(script)
    found = (_build(script, n, made) for n in script.names.nodes if isinstance(n, ast.If) and asks_files(script.roles, n.test) and _all_come(script, n))
    return _outermost(script, [b for b in found if b is not None and not any(script.meets(s) for s in _statements(script, b))])


def _all_come(script: Script, node: ast.If) -> bool:
    roles = script.roles
    if roles.region(node) != "outside" or roles.inside_module(node) or not run_by_all(roles, node) or run_apart(roles, node):
        return False
    return for_samples(roles, node) or not after_training(script, node, frozenset())


def _build(script: Script, node: ast.If, made: frozenset[ast.AST]) -> Build | None:
    missing, others = _missing(script, node.test)
    if missing is None:
        return None
    last: ast.stmt = node
    branch = node.body if missing else node.orelse
    if not missing and not node.orelse and isinstance(node.body[-1], ast.Return) and isinstance(script.names.parent[node], FunctionNode):
        block = script.names.block(node)  # if os.path.exists(p): return load(p)
        branch, last = block[block.index(node) + 1 :], block[-1]
    making = [m for s in branch for m in _made_in(script, s, made, _either_way(script, node, made))]
    if not making and not missing and _tells_whether(script, node):
        making = [c for s in branch for c in walk(s) if isinstance(c, ast.Call) and last_word(c.func) in ("mkdir", "makedirs")]
    if all(isinstance(m, ast.Call) and fetches(script.names, m) for m in making) or _ends_a_turn(script, node, branch):
        return None  # nothing, or what is fetched right here
    sure = not others or (missing and any(_unconditional(script, m, branch) for m in making))
    first = _chain(script, node)
    return Build(
        node,
        first,
        first if last is node else last,
        tuple(branch),
        others if missing else (),
        sure,
        _kept(script, node, branch, last),
        parted(script.roles, first),
    )


def _ends_a_turn(script: Script, node: ast.If, branch: Sequence[ast.stmt]) -> bool:
    """Whether the branch ends a loop that the test stands in, as in the search for a free path: the others would go on without it."""
    loops = ast.For | ast.AsyncFor | ast.While
    ends = (e for s in branch for e in walk(s) if isinstance(e, ast.Break | ast.Continue))
    around = (next(a for a in script.names.ancestors(e) if isinstance(a, loops)) for e in ends)
    return any(script.names.is_inside(node, loop) for loop in around)


def _either_way(script: Script, node: ast.If, made: frozenset[ast.AST]) -> frozenset[ast.AST]:
    """The functions that both branches enter, where models are wrapped in them: what these make is there either way, and is not what is missing.

    All ranks wait for each other at a wrap, so that it cannot stand where rank 0 goes first. A file that the test may ask for is not left to chance.
    """
    entered = [{f for s in block for c in walk(s) if isinstance(c, ast.Call) for f in _through(script, c)} for block in (node.body, node.orelse)]
    both = frozenset.intersection(*map(frozenset, entered))
    if not any(script.names.function(w.node) in both for w in script.wraps.wraps):
        return frozenset()
    written = {script.names.parent[path]: path for path in opened(script)}
    makes = [written.get(n) for f in both for n in walk(f) if n in made]
    return both if all(_other_file(script, asked, path) for asked in files_asked(script.roles, node.test) for path in makes) else frozenset()


def _other_file(script: Script, one: ast.expr | None, other: ast.expr | None) -> bool:
    """Whether the names of two files are seen to end differently."""
    ends = [_endings(script, path) if path is not None else {""} for path in (one, other)]
    return not any(a.endswith(b) or b.endswith(a) for a in ends[0] for b in ends[1])


def _endings(script: Script, path: ast.expr, depth: int = 4) -> set[str]:
    """How the name of a file may end: ``f"{folder}/last_{n}.pt"``, ``os.path.join(folder, "log.txt")``, ``folder / "log.txt"``; '' where that is not seen."""
    if isinstance(path, ast.Constant) and isinstance(path.value, str):
        return {path.value.rpartition("/")[2]}
    if isinstance(path, ast.JoinedStr) and path.values:
        return _endings(script, path.values[-1], depth)
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add | ast.Div):
        return _endings(script, path.right, depth)
    if isinstance(path, ast.Call) and path.args and script.names.dotted(path.func) in ("os.path.join", "pathlib.Path"):
        return _endings(script, path.args[-1], depth)
    given = script.roles.given(path) if depth and isinstance(path, ast.Name | ast.Attribute) else []
    return {end for g in given for end in _endings(script, g, depth - 1)} or {""}


def _tells_whether(script: Script, node: ast.If) -> bool:
    """Whether the function tells its caller, who then fills what it has made: ``if folder.exists(): return False`` above ``return True``."""
    told = node.body[-1]
    returned = [r.value for r in walk(script.names.function(node)) if isinstance(r, ast.Return) and script.names.function(r) is script.names.function(node)]
    plain = [r.value for r in returned if isinstance(r, ast.Constant)]
    own = told.value.value if isinstance(told, ast.Return) and isinstance(told.value, ast.Constant) else None
    return isinstance(own, bool) and any(isinstance(v, bool) and v is not own for v in plain)


def _chain(script: Script, node: ast.If) -> ast.stmt:
    """The ``if`` of which the node is an ``elif``."""
    parent = script.names.parent[node]
    while isinstance(parent, ast.If) and parent.orelse == [node] and parent.col_offset == node.col_offset:
        node, parent = parent, script.names.parent[parent]
    return node


def _missing(script: Script, test: ast.expr) -> tuple[bool | None, tuple[ast.expr, ...]]:
    """Whether the test holds where files are missing (None: neither), and what else decides it then."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner, others = _missing(script, test.operand)
        return (None if inner is None or others else not inner), ()
    if isinstance(test, ast.BoolOp):
        sides = [(v, _missing(script, v)) for v in test.values]
        said = {m for _, (m, _) in sides if m is not None}
        others = tuple(v for v, (m, _) in sides if m is None)
        if len(said) != 1 or any(more for _, (_, more) in sides):
            return None, ()
        # `args.cache and not exists(p)`: where the setting is off, nobody makes anything
        return said.pop(), (() if isinstance(test.op, ast.And) and True in {m for _, (m, _) in sides} else others)
    if isinstance(test, ast.Compare):
        nothing = isinstance(test.comparators[0], ast.Constant) and not test.comparators[0].value
        if not asks_files(script.roles, test) or len(test.ops) > 1:
            return None, ()
        return (True if nothing and isinstance(test.ops[0], ast.Eq | ast.Is) else None), ()
    return (False if isinstance(test, ast.Call) and asks_files(script.roles, test) else None), ()


def _made_in(script: Script, stmt: ast.stmt, made: frozenset[ast.AST], apart_from: Collection[ast.AST]) -> list[ast.AST]:
    """The calls in the statement that make files, by themselves or through functions of the program, apart from some of these."""
    inside = [n for n in walk(stmt) if isinstance(n, ast.Call | ast.Attribute)]
    return [n for n in inside if n in made or (isinstance(n, ast.Call) and any(m in made for f in _through(script, n) - {*apart_from} for m in walk(f)))]


def _through(script: Script, call: ast.Call) -> set[ast.AST]:
    """The functions of the program that a call enters, or hands on to code that calls them: ``Parallel(8)(delayed(make)(p) for p in paths)``."""
    found: set[ast.AST] = set()
    todo: list[ast.AST] = [call]
    while todo:
        node = todo.pop()
        functions: set[ast.AST] = {*script.roles.all_entered(node)}
        given = (a for c in walk(node) if isinstance(c, ast.Call) for a in c.args if isinstance(a, ast.Name | ast.Attribute))
        functions |= {v.node for a in given for v in script.values.eval(a) if v.kind == "func"}
        functions |= {f for c in walk(node) if isinstance(c, ast.Call) for f, _ in script.values.targets(c)}
        todo += functions - found
        found |= functions
    return found


def _unconditional(script: Script, node: ast.AST, branch: list[ast.stmt]) -> bool:
    """Whether nothing in the branch decides whether the node runs."""
    around = [node, *script.names.ancestors(node)]
    inside = around[: next(i for i, a in enumerate(around) if a in branch) + 1]
    return not any(isinstance(a, ast.If | ast.IfExp) for a in inside)


def _kept(script: Script, node: ast.If, branch: Sequence[ast.stmt], last: ast.stmt) -> tuple[str, ...]:
    """What is bound in the branch alone and read after it, with nothing else put there before."""
    if last is not node:
        return ()
    mine, theirs = _stored(branch), {ast.unparse(n) for n in _stored(node.orelse if branch is node.body else node.body)}
    kept = set()
    for stored in mine:
        text = ast.unparse(stored)
        if text not in theirs and any(not _renewed(script, r, text, node) for r in _reads(script, stored) if not script.names.is_inside(r, node)):
            kept.add(text)
    return tuple(sorted(kept))


def _reads(script: Script, stored: ast.Name | ast.Attribute) -> list[ast.expr]:
    """Where the variable is read: a local one below, an attribute anywhere, since other methods may."""
    names = script.names
    if isinstance(stored, ast.Attribute):
        text = ast.unparse(stored)
        return [a for a in names.attributes(stored.attr) if isinstance(a.ctx, ast.Load) and ast.unparse(a) == text]
    return [n for n in names.uses(names.scope_of[stored], stored.id) if names.function(n) is not names.function(stored) or position(n) > position(stored)]


def _renewed(script: Script, read: ast.expr, text: str, node: ast.If) -> bool:
    """Whether something else has been stored for certain between the build and the read, in a statement round the read or before it in a block round it."""
    around = set(script.names.ancestors(read))
    function = script.names.function(node)
    between = (
        s for s in walk(function) if isinstance(s, ast.stmt) and position(node) < position(s) < position(read) and not script.names.is_inside(s, node)
    )
    gives = (s for s in between if any(ast.unparse(n) == text for n in _stored([s])))
    return any(isinstance(s, ast.Assign | ast.AnnAssign | ast.For | ast.With) and (s in around or script.names.parent[s] in around) for s in gives)


def _stored(block: Sequence[ast.stmt]) -> list[ast.Name | ast.Attribute]:
    nodes = (n for s in block for n in walk(s))
    return [n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store)]


def _statements(script: Script, build: Build) -> Iterator[ast.stmt]:
    block = script.names.block(build.first)
    yield from block[block.index(build.first) : block.index(build.last) + 1]


def _outermost(script: Script, found: list[Build]) -> tuple[Build, ...]:
    """Those that stand in the branch of no other one, through functions too: who goes first goes through everything below."""
    return tuple(b for b in found if not only_in(script, b.asks, tuple(o for o in found if o is not b and not only_in(script, o.asks, (b,)))))


def only_in(script: Script, node: ast.AST, around: tuple[Build, ...], seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether every way to the node leads through the branch of one of the builds."""
    if any(script.names.is_inside(node, s) for b in around for s in b.branch):
        return True
    function = script.names.function(node)
    calls = script.values.ways.get(function, [])
    if not isinstance(function, FunctionNode) or not calls:
        return False
    return function in seen or all(only_in(script, c, around, seen | {function}) for c in calls)
