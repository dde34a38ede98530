"""Files of the standard library that are opened without a mode, or by flags: databases, shelves and
descriptors (https://docs.python.org/3/library/persistence.html, os.html).
"""

from __future__ import annotations

import ast
import re

from dpmigrate.execution.values import NONE, NOTHING, SETTING, Ref, Value, const, known
from dpmigrate.library.effects import none, same, uniform
from dpmigrate.library.runtime import OF_MAIN
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.python.org/3/library/"
#: statements of SQL that change a database
CHANGES = re.compile(r"\s*(insert|update|delete|replace|create|drop|alter)\b", re.IGNORECASE)
#: flags of ``os.open`` by which a file is written
_WRITING = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"})


def connected(site: Site) -> Value:
    """``sqlite3.connect(path)``: a database, which the statements that it executes read or change.
    One in memory is no file.
    """
    path = site.get(0, "database") or NOTHING
    return site.ref("database", path=NOTHING if known(path) == ":memory:" else path)


def executed(site: Site) -> Value:
    """``connection.execute(sql)``: a cursor; a statement that changes something writes the file."""
    text = known(site.get(1, "sql") or NOTHING)
    if site.word == "executemany" or (isinstance(text, str) and CHANGES.match(text)):
        _changed(site)
    return cursor(site)


def committed(site: Site) -> Value:
    """``connection.commit()``: what has been changed is written."""
    _changed(site)
    return NONE


def _changed(site: Site) -> None:
    path = _path(site)
    if path:
        site.event("open", path=path, mode=const("a"))


def cursor(site: Site) -> Value:
    """``connection.cursor()``: it changes the same file."""
    return site.ref("database", path=_path(site))


def _path(site: Site) -> Value:
    receiver = site.receiver
    if not isinstance(receiver, Ref) or site.m.heap.read((receiver.object, OF_MAIN)):
        return NOTHING
    return site.m.heap.read((receiver.object, "path")) or NOTHING


def shelf(site: Site) -> Value:
    """``shelve.open(path, flag="c")``: a dictionary in a file, which is written but for the flag ``"r"``."""
    flag = known(site.get(1, "flag") or const("r" if site.name.startswith("dbm") else "c"))
    if isinstance(flag, str) and not flag.startswith("r"):
        site.event("open", path=site.get(0, "filename") or NOTHING, mode=const("a"))
    return SETTING


def described(site: Site) -> Value:
    """``os.open(path, os.O_WRONLY | os.O_CREAT)``: a number for an open file."""
    arguments = [*getattr(site.node, "args", [])[1:], *(k.value for k in getattr(site.node, "keywords", []))]
    if any(isinstance(n, ast.Attribute | ast.Name) and _flag(n) in _WRITING for a in arguments for n in ast.walk(a)):
        site.event("open", path=site.get(0, "path") or NOTHING, mode=const("a"))
    return SETTING


def _flag(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


ROWS = (
    Row("sqlite3.connect", connected, source=_DOC),
    Row(methods("database", "execute executemany executescript"), executed, source=_DOC),
    Row(methods("database", "commit"), committed, source=_DOC),
    Row(methods("database", "cursor"), cursor, source=_DOC),
    Row(methods("database", "__enter__"), same, source=_DOC),
    Row(methods("database", "fetchone fetchall fetchmany __iter__"), uniform, source=_DOC),
    Row(methods("database", "close rollback __exit__"), none, source=_DOC),
    Row("shelve.open dbm.open dbm.gnu.open dbm.ndbm.open dbm.dumb.open", shelf, source=_DOC),
    Row("os.open", described, source=_DOC),
)
ATTRIBUTES = (Row(methods("database", "lastrowid rowcount description total_changes"), uniform, source=_DOC),)
