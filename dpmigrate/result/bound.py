"""No name is read before it has a value, on a way on which it had one before the migration."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from dpmigrate.lines import Lines
from dpmigrate.result.flow import Flow, Read
from dpmigrate.result.migrated import Fault, Migrated
from dpmigrate.result.scopes import Scope

#: what may leave out a part of itself, or evaluates it later
_PERHAPS = (
    ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp,
)  # fmt: skip


def unbound(m: Migrated) -> Iterator[Fault]:
    """The reads of names without a value that the migration would bring into a file."""
    for index, before, after in m.changed():
        for line, words in newly_unbound(before, after, (m.before.ddp,)):
            yield Fault(m.old(index, line), words)


def newly_unbound(before: str, after: str, own: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """For each name that may have no value where the new text reads it, and had one in the old: the
    line of the old text, and what is wrong.

    A read is excused where the old text had the same one in the same place, or where the program,
    without that value, would in any case have come to a read of the old text that fails. ``own``
    are names that new code alone uses: a star import brings none of them.
    """
    new = Flow(ast.parse(after))
    if not new.unbound and not new.variables.undefined:
        return
    old = Flow(ast.parse(before), learning=False)
    lines = Lines(before, after)
    for name, node in new.variables.undefined.items():
        brought = name in own or not new.variables.star
        if name not in old.variables.undefined and brought:
            words = f"the new code reads {name!r}, which nothing in this file gives a value"
            yield lines.place(_line(node)), words
    known = _Known(old, new, lines)
    for read in new.unbound:
        if not known.failed(read) and new.goes_on(read, known.was):
            what = (
                f"the call of {ast.unparse(read.node.func)}() reads"
                if isinstance(read.node, ast.Call)
                else "the new code reads"
            )
            yield (
                lines.place(read.node.lineno),
                f"{what} {read.name!r} where it may have no value yet: {_code(after, read)}",
            )


class _Known:
    """What of the new text was in the old one."""

    def __init__(self, old: Flow, new: Flow, lines: Lines) -> None:
        self._lines = lines
        self._paths: dict[ast.AST, tuple[str, str]] = {
            node: self._path(scope, node.id) for node, (scope, _) in new.variables.own.items()
        }
        self._bound = {
            d.node: (d.key[0].path, d.key[1])
            for f in new.variables.frames
            for d in f.definitions
            if d is not None
        }
        self._statements = {
            n.lineno: n
            for n in ast.walk(old.tree)
            if isinstance(n, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return)
        }
        self._unbound = {(r.path, r.name, r.node.lineno) for r in old.unbound}
        self._reads = {
            (*self._path(scope, node.id), node.lineno)
            for node, (scope, _) in old.variables.own.items()
        }
        self._binds = {
            (d.key[0].path, d.key[1], _line(d.node))
            for f in old.variables.frames
            for d in f.definitions
            if d is not None and d.node is not f.node
        }

    @staticmethod
    def _path(scope: Scope, name: str) -> tuple[str, str]:
        owner = scope.owner(name)
        return owner.path if owner is not None else "", name

    def failed(self, read: Read) -> bool:
        """Whether the old text may have had no value in the same place either, or in the statement
        before which the read stands now.
        """
        places = self._lines.old(read.node.lineno) or self._moved_from(read)
        return any((read.path, read.name, line) in self._unbound for line in places)

    def _moved_from(self, read: Read) -> list[int]:
        """The lines of the old statement before which a new line stands, and which reads the
        variable: a part may have been taken out of it (``train_set = Images(root)`` before the
        loader).
        """
        stmt = self._statements.get(self._lines.place(read.node.lineno))
        certain = _evaluated(stmt) if stmt is not None else ()
        return [n.lineno for n in certain if isinstance(n, ast.Name) and n.id == read.name]

    def was(self, node: ast.AST, binds: bool) -> bool:
        """Whether the old text read, or bound, the variable in the same place."""
        key = self._bound[node] if binds else self._paths[node]
        places = self._binds if binds else self._reads
        return any((*key, line) in places for line in self._lines.old(_line(node)))


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that are evaluated whenever it is executed."""
    yield node
    if not isinstance(node, _PERHAPS):
        for child in ast.iter_child_nodes(node):
            yield from _evaluated(child)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))


def _code(text: str, read: Read) -> str:
    return text.splitlines()[read.node.lineno - 1].strip()
