"""The nouns of the points-to analysis: objects, the variables that hold them, and the paths into them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

Key = tuple[str, int, str]  # ("v", id of scope, name) · ("a", id of class, attribute) · ("t", id of scope, "args.device")
Path = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, eq=True)
class Val:
    """An object. ``kind``: ext · call · object · class · func · wrapped · display · const; ``part``: which of those that a dict comprehension makes."""

    kind: str
    node: ast.AST
    qual: str = ""
    cls: ast.ClassDef | None = None
    part: object = None

    def __hash__(self) -> int:
        """By the place, with numbers alone: hashes of strings and addresses differ between processes, and so would the order of a set of objects."""
        name = crc32(self.qual.encode("utf-8", "surrogatepass")) if self.kind == "ext" else 0
        return hash((name, getattr(self.node, "lineno", 0), getattr(self.node, "col_offset", 0)))


@dataclass(frozen=True, slots=True)
class WrapSite:
    """A statement that gives a variable the wrapped form of its own model."""

    call: ast.AST  # the DataParallel call, or the statement that a new wrap will follow or precede
    stmt: ast.stmt
    key: Key
    wrapped: Val
    inner: frozenset[Val]
    first: ast.stmt | None = None  # of one of several models: the variable holds it bare from here to the wrap
    precedes: bool = False  # the statement itself reads the wrapper
    later: tuple[tuple[ast.stmt, frozenset[Val]], ...] = ()  # what gives the variable other models after training, and these


Vals = frozenset[Val]
NONE: Vals = frozenset()


def leaves(target: ast.AST, path: Path) -> Iterator[tuple[ast.AST, Path]]:
    """The targets of an assignment, each with its place in the value."""
    if isinstance(target, ast.Tuple | ast.List):
        for i, t in enumerate(target.elts):
            yield from leaves(t, (*path, i))
    else:
        yield target, path


def wrap_argument(call: ast.Call) -> ast.expr | None:
    """The module that a call of DataParallel, or of a function that hands it back, is given."""
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("module", "model")), None)


def beginning(text: ast.expr) -> tuple[str, bool]:
    """The first letters of a text, and whether they are the whole of it: ``"net_" + name``, ``f"net_{name}"``, ``"net_%s" % name``."""
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        return text.value, True
    if isinstance(text, ast.JoinedStr) and text.values:
        return beginning(text.values[0])[0], False
    if isinstance(text, ast.BinOp):
        first = beginning(text.left)[0]
        return first.split("%")[0] if isinstance(text.op, ast.Mod) else first, False
    if isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute) and text.func.attr == "format":
        return beginning(text.func.value)[0].split("{")[0], False
    return "", False
