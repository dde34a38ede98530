"""Caches: what one branch of a test loads from the file in which the other one has saved it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import UnionType

from dpmigrate.execution.joins import normal
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Location
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import SETTING, Atom, Data, Differs, Ref, Unbound, Value
from dpmigrate.library.files import MADE_BEFORE
from dpmigrate.library.pure import READING, WRITING

#: functions and methods that give the same items in another form
_FUNCTIONS = frozenset({"array", "asarray", "tensor", "as_tensor", "from_numpy", "list", "tuple"})
_METHODS = frozenset({"tolist", "numpy", "cpu", "item"})


@dataclass(frozen=True, eq=False, slots=True)
class Trip:
    """What goes through a file: the variables that one branch loads and the other one saves when it has made them, none where a function returns it;
    the arguments that are saved, with their calls, and the expressions that are loaded.
    """

    targets: tuple[ast.expr, ...]
    saved: tuple[tuple[ast.Call, ast.expr], ...]
    loaded: tuple[ast.expr, ...]


@lru_cache(4096)
def cached(node: ast.If) -> tuple[Trip, ...]:
    """The variables that one branch loads and the other one saves when it has made them, in the same file."""
    arms = [node.body, node.orelse]
    return tuple(t for load, save in (arms, arms[::-1]) for t in _loaded_and_saved(load, save))


@lru_cache(4096)
def bound_by_both(node: ast.If) -> tuple[ast.expr, ...]:
    """The variables that both branches bind, one of them to what it reads from a file in any way."""
    arms = [{ast.unparse(p): (p, v) for given in _stores(block).values() for t, v in given for p in _parts(t)} for block in (node.body, node.orelse)]
    read = _made_of_files(arms[0]) | _made_of_files(arms[1])
    return tuple(target for name, (target, _) in arms[0].items() if name in arms[1] and name in read)


def _made_of_files(arm: dict[str, tuple[ast.expr, ast.expr | None]]) -> set[str]:
    """The variables of a branch that are given what it reads from a file, over any number of them: ``saved = load(p)``, ``x = saved["x"]``."""
    found = {name for name, (_, v) in arm.items() if _reads(v)}
    while more := {name for name, (_, v) in arm.items() if name not in found and v is not None and any(ast.unparse(n) in found for n in _variables(v))}:
        found |= more
    return found


def _variables(node: ast.expr) -> Iterator[ast.AST]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute))


@lru_cache(4096)
def loads_or_makes(function: ast.AST) -> bool:
    """Whether a function returns what it reads from a file in any way, or something else."""
    body = getattr(function, "body", None)
    returned = [n.value for n in _nodes(body) if isinstance(n, ast.Return) and n.value is not None] if isinstance(body, list) else []
    stored = _stores(body) if len(returned) > 1 and isinstance(body, list) else {}
    read = [_reads(v) or any(_reads(given) for _, given in stored.get(ast.unparse(v), [])) for v in returned]
    return len(read) > 1 and any(read)


def _reads(node: ast.expr | None) -> bool:
    """Whether an expression reads a file, or what was read from one."""
    called = (last_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)) if node is not None else ()
    return any(word.startswith(READING) for name in called for word in name.split("_"))  # safe_load


@lru_cache(4096)
def hands_out(function: ast.AST) -> Trip | None:
    """What a function returns that it loads, or has made and saved in the same file:
    ``if exists(p): return load(p)`` above ``save(x, p)`` and ``return x``.
    """
    body = getattr(function, "body", None)
    if not isinstance(body, list):
        return None
    nodes = list(_nodes(body))
    if sum(isinstance(n, ast.Return) for n in nodes) != 2:
        return None
    blocks = [b for n in nodes if isinstance(b := getattr(n, "body", None), list)]
    arms = [(s.body, s.orelse or b[i + 1 :]) for b in (body, *blocks) for i, s in enumerate(b) if isinstance(s, ast.If)]
    return next((t for pair in arms for t in (_returned(*pair), _returned(*pair[::-1])) if t is not None), None)


def _returned(load: Sequence[ast.stmt], save: Sequence[ast.stmt]) -> Trip | None:
    last = [b[-1].value if b and isinstance(b[-1], ast.Return) else None for b in (load, save)]
    if last[0] is None or last[1] is None:
        return None
    files = _opened(load)
    loaded: list[ast.expr | None] = [last[0]]
    if _read(last[0], files) is None and not _mentions(load[:-1], last[0], ast.Load):
        loaded = [v for _, v in _stores(load).get(ast.unparse(last[0]), [])]
    return _trip((), loaded, files, save[:-1], last[1])


def _trip(
    targets: Sequence[ast.expr], loaded: Sequence[ast.expr | None], files: dict[str, str], save: Sequence[ast.stmt], made: ast.expr
) -> Trip | None:  # fmt: skip
    """What is loaded, where all of it stands in files in which a branch has saved all of what it made."""
    whole = [v for v in loaded if v is not None]
    read = {_read(v, files) for v in whole}
    saved = _saved(save, made)
    if not whole or len(whole) < len(loaded) or not read <= saved.keys():
        return None
    return Trip(tuple(targets), tuple(s for path in read if path is not None for s in saved[path]), tuple(whole))


def undivided(m: Machine, v: Value, within: ast.AST) -> Value:
    """A value that all ranks have, as far as they differ by who has made it, by a question that is
    asked ``within`` a function or a module; also the items of lists and dictionaries.
    """
    asked = _questions(within)
    for at, held in list(_inside(m, v)):
        if (plain := _plain(held, asked)) != held:
            m.heap.write(at, plain)
    return _plain(v, asked)


def by_turn(m: Machine, v: Value, within: ast.AST) -> bool:
    """Whether ranks have another value by who has made it, by a question that is asked ``within`` a function or a module."""
    asked = _questions(within)
    return any(_plain(held, asked) != held for held in (v, *(held for _, held in _inside(m, v))))


def _inside(m: Machine, v: Value) -> Iterator[tuple[Location, Value]]:
    """What lists and dictionaries hold, over any number of them."""
    todo = [a.object for a in v if isinstance(a, Ref)]
    seen: set[int] = set()
    while todo:
        number = todo.pop()
        if number in seen or m.heap.objects[number].kind not in ("list", "dict", "tuple", "set"):
            continue
        seen.add(number)
        for name, held in m.heap.names(number):
            todo += [a.object for a in held if isinstance(a, Ref)]
            yield (number, name), held


@lru_cache(4096)
def _questions(within: ast.AST) -> frozenset[ast.AST]:
    return frozenset(n for n in ast.walk(within) if isinstance(n, ast.Call))


def _plain(v: Value, asked: Collection[ast.AST]) -> Value:
    kept = [a for a in v if not (isinstance(a, Differs) and _by_turn(a, asked)) and not _there_by_turn(a, asked)]
    return normal(
        tuple(SETTING[0] if isinstance(a, Data) and _by_turn(a, asked) else a for a in kept)
    )


def _by_turn(atom: Data | Differs, asked: Collection[ast.AST]) -> bool:
    per_rank = isinstance(atom, Differs) or atom.placement.kind is Kind.PER_RANK
    origin = atom.origin
    return per_rank and origin is not None and origin.word == MADE_BEFORE and origin.node in asked


def _there_by_turn(atom: Atom, asked: Collection[ast.AST]) -> bool:
    """Whether it says that some ranks alone have an item, since they have made what the others load."""
    origin = atom.why.origin if isinstance(atom, Unbound) and atom.why is not None else None
    return origin is not None and origin.word == MADE_BEFORE and origin.node in asked


def _loaded_and_saved(load: Sequence[ast.stmt], save: Sequence[ast.stmt]) -> Iterator[Trip]:
    files = _opened(load)
    stored = _stores(load)
    for target, given in stored.items():
        first = given[0][0]
        others = {o for o in stored if o != target} & set(map(ast.unparse, _parts(first)))
        used = _mentions(load, first, ast.Load)
        trip = _trip(_parts(first), [v for _, v in given], files, save, first) if not others and not used else None
        if trip is not None:
            yield trip


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def _stores(block: Sequence[ast.stmt]) -> dict[str, list[tuple[ast.expr, ast.expr | None]]]:
    """What a branch binds, by its text, with the expressions that it is given."""
    found: dict[str, list[tuple[ast.expr, ast.expr | None]]] = {}
    alone: set[ast.AST] = set()
    for n in _nodes(block):
        if isinstance(n, ast.Assign) and len(n.targets) == 1:
            alone |= {n.targets[0], *_parts(n.targets[0])}
            found.setdefault(ast.unparse(n.targets[0]), []).append((n.targets[0], n.value))
        elif isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store | ast.Del):
            if n not in alone:
                found.setdefault(ast.unparse(n), []).append((n, None))
    return found


def _opened(block: Sequence[ast.stmt]) -> dict[str, str]:
    """The names of open files, with their paths."""
    items = (i for n in _nodes(block) if isinstance(n, ast.With) for i in n.items)
    return {
        i.optional_vars.id: path
        for i in items
        if isinstance(i.optional_vars, ast.Name) and (path := _file(i.context_expr)) is not None
    }


def _file(node: ast.expr) -> str | None:
    """The path of ``open(path)`` and ``path.open()``."""
    if not isinstance(node, ast.Call) or last_name(node.func) != "open":
        return None
    if isinstance(node.func, ast.Name) and node.args:
        return ast.unparse(node.args[0])
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else None


def _path(node: ast.expr, opened: dict[str, str]) -> str:
    text = ast.unparse(node)
    return _file(node) or opened.get(text, text)


def _read(node: ast.expr, opened: dict[str, str]) -> str | None:
    """The path of the file that an expression gives all of."""
    inner = unconverted(node)
    if isinstance(inner, ast.Call) and inner.args and last_name(inner.func).startswith(READING):
        return _path(inner.args[0], opened)
    return None


def unconverted(node: ast.expr) -> ast.expr:
    """``x`` for ``np.asarray(x)`` and ``x.tolist()``."""
    return conversions(node)[1]


def conversions(node: ast.expr) -> tuple[tuple[str, ...], ast.expr]:
    """The functions and methods that give an expression in another form, from the outermost in, and what is given to them; '' for one that is told how."""
    found: list[str] = []
    while isinstance(node, ast.Call):
        name = last_name(node.func)
        more: list[ast.AST] = [*node.keywords]
        if name in _FUNCTIONS and node.args:
            more += node.args[1:]
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and name in _METHODS:
            more += node.args
            node = node.func.value
        else:
            break
        found.append("" if more else name)
    return tuple(found), node


def _saved(block: Sequence[ast.stmt], target: ast.expr) -> dict[str, list[tuple[ast.Call, ast.expr]]]:
    """The paths in which a variable is saved as the branch leaves it, since nothing is done with it later; with the calls and their arguments."""
    files = _opened(block)
    text = _text(target)
    saves = [n for n in _nodes(block) if isinstance(n, ast.Call) and _is_save(n)]
    ends = max((_place(m) for m in _mentions(block, target, ast.Load | ast.Store | ast.Del)), default=(0, 0))
    found: dict[str, list[tuple[ast.Call, ast.expr]]] = {}
    for call in saves:
        whole = [a for a in call.args if _text(unconverted(a)) == text]
        if whole and _place(call) > ends:
            for path in {_path(a, files) for a in call.args if a not in whole}:
                found.setdefault(path, []).append((call, whole[0]))
    return found


def _text(node: ast.expr) -> str:
    """What is written there; ``[x, y]`` saves what ``x, y = load(p)`` reads."""
    if isinstance(node, ast.List):
        return ast.unparse(ast.Tuple(node.elts, ast.Load()))
    return ast.unparse(node)


def _mentions(block: Sequence[ast.stmt], target: ast.expr, how: type | UnionType) -> list[ast.AST]:
    """Where a variable is used, but for what saves or shows it."""
    texts = {ast.unparse(target), *map(ast.unparse, _parts(target))}
    calls = (n for n in _nodes(block) if isinstance(n, ast.Call) and (_is_save(n) or last_name(n.func) == "print"))
    apart = {m for c in calls for a in c.args for m in ast.walk(a)}
    return [
        n for n in _nodes(block)
        if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, how) and n not in apart and ast.unparse(n) in texts
    ]  # fmt: skip


def _is_save(call: ast.Call) -> bool:
    return last_name(call.func).startswith(WRITING) or last_name(call.func) == "dump"


def _nodes(block: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    return (n for s in block for n in ast.walk(s))


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def last_name(func: ast.AST | None) -> str:
    """The last name of what is called."""
    return getattr(func, "attr", getattr(func, "id", ""))
