"""Where the program makes directories, and whether it is ready for one that another process has made in between."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.spelt_paths import bare, folder

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: the errors by which a directory says that it is there
_EXPECTED = frozenset({"OSError", "IOError", "EnvironmentError", "FileExistsError", "Exception"})
#: what a program does that goes on elsewhere, or with something else
_LEAVES = (ast.Break, ast.Continue, ast.Return)
_GOES_ON = (*_LEAVES, ast.Assign, ast.AugAssign, ast.AnnAssign)


@dataclass(frozen=True, eq=False, slots=True)
class Making:
    """A call that makes a directory, and fails where it is there; ``exist_ok`` is the program's own answer to that, where it has one that may be yes.
    ``decides``: the program goes on otherwise then.
    """

    call: ast.Call
    exist_ok: ast.expr | None
    decides: bool


def unprepared(script: Script) -> Iterator[Making]:
    """The calls that make directories and may fail where two ranks come by: those of ``os`` first, then ``path.mkdir()``."""
    of_paths = [c for c, _ in script.methods("mkdir") if not c.args or _is_mode(c.args[0])]
    for call in (*script.calls("os.makedirs", "os.mkdir"), *of_paths):
        given = script.argument(call, "exist_ok", 2)
        decides = _decides(script, call)
        ready = _caught(script, call) and not decides
        if not (ready or _is_true(script, given) or script.made_once(call)):
            yield Making(call, None if given is not None and _is_false(given) else given, decides)


def may_be(script: Script, asked: ast.expr | None, path: ast.expr | None) -> bool:
    """Whether a path that a test looks at may be the directory that is made; one in the other (``join(root, name)`` in ``root``) is another, and so are
    two that are written out.
    """
    if asked is None or path is None:
        return True
    one, other = _spelt(script, asked), _spelt(script, path)
    if ast.dump(one) == ast.dump(other):
        return True
    literal = isinstance(one, ast.Constant) and isinstance(other, ast.Constant)
    inside = ast.dump(one) in _folders(script, other) or ast.dump(other) in _folders(script, one)
    return not (literal or inside)


def _folders(script: Script, path: ast.expr) -> Iterator[str]:
    """The folders that a path is in, as it is written."""
    while (outer := folder(bare(path))) is not None:
        path = _spelt(script, outer)
        yield ast.dump(path)


def _spelt(script: Script, path: ast.expr) -> ast.expr:
    """What the one assignment to a variable gives it, or the expression itself."""
    while isinstance(path, ast.Name):
        bound = list(script.names.bindings(script.names.scope_of[path], path.id))
        value = bound[0].value if len(bound) == 1 and bound[0].how == "assign" and not bound[0].path else None
        if not isinstance(value, ast.expr):
            break
        path = value
    return path


def _caught(script: Script, call: ast.Call) -> bool:
    """Whether the script is ready for a directory that is there: ``try: os.makedirs(d)``, ``except OSError: pass``."""
    inner: ast.AST = call
    for a in script.names.ancestors(call):
        if isinstance(a, FunctionNode):
            return False
        if isinstance(a, ast.Try) and inner is a.body[-1] and any(_expects(h) for h in a.handlers):
            return True
        inner = a
    return False


def _decides(script: Script, call: ast.Call) -> bool:
    """Whether the program goes on otherwise where the directory is there: ``try: os.mkdir(name); break``, ``except OSError: n += 1``."""
    inner: ast.AST = call
    for a in script.names.ancestors(call):
        if isinstance(a, FunctionNode):
            return False
        if isinstance(a, ast.Try) and inner in a.body:
            after = a.body[a.body.index(inner) + 1 :]
            handlers = [s for h in a.handlers if _catches(h) for s in h.body]
            if any(isinstance(n, _GOES_ON) for s in handlers for n in walk(s)) or (handlers and any(isinstance(n, _LEAVES) for s in after for n in walk(s))):
                return True
        inner = a
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    return any(k is None or ast.unparse(k).rpartition(".")[2] in _EXPECTED for k in kinds)


def _expects(handler: ast.ExceptHandler) -> bool:
    known = _catches(handler)
    return known and not any(isinstance(n, ast.Raise | ast.Call) for s in handler.body for n in walk(s) if not _asks_errno(handler, n))


def _asks_errno(handler: ast.ExceptHandler, node: ast.AST) -> bool:
    """``if e.errno != errno.EEXIST: raise`` lets only other errors through."""
    return isinstance(node, ast.Raise) and node.exc is None and any("EEXIST" in ast.unparse(s) for s in handler.body)


def _is_mode(node: ast.expr) -> bool:
    """``path.mkdir(0o755)``; a name there is another library's ``mkdir(path)``."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_true(script: Script, given: ast.expr | None) -> bool:
    """Whether it can only be True, as it stands or by what a variable is given."""
    values = [given] if isinstance(given, ast.Constant) else [v.node for v in script.values.eval(given)]
    return bool(values) and all(isinstance(v, ast.Constant) and v.value is True for v in values)


def _is_false(given: ast.expr) -> bool:
    return isinstance(given, ast.Constant) and given.value is False
