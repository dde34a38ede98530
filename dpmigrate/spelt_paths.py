"""Paths as they are written: what they are made of, the folder that they are in, and what speaks for a path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

#: what gives the path that it is given
_TEXTS = ("str", "Path", "fspath", "abspath", "realpath", "main_path", "PurePath")
#: methods of a path that give it in another spelling
_SPELLINGS = ("as_posix", "resolve", "absolute", "expanduser")
#: words in the names of variables that hold paths
_WORDS = re.compile(r"path|file|folder|(^|_)(f?name|dir|out|dest|dst)(_|$)", re.IGNORECASE)
#: data sets of libraries that read the folder which they are given: ``torchvision.datasets.ImageFolder(root)``
READS_FOLDER = re.compile(r"torchvision\.datasets\.|.*\.(load_from_disk|\w*Folder)$")
#: the names of functions of libraries that read a file
READS = re.compile(r"(read_\w+|imread|mimread|load(txt|mat)?|fromfile|genfromtxt|open)$")
#: the end of a path, or a folder in it
SUFFIX = re.compile(r"\.[A-Za-z]\w{0,6}$|/")

#: what the shell is told to do, which may make any file
COMMANDS = frozenset({"os.system", "os.popen"} | {f"subprocess.{n}" for n in ("run", "call", "check_call", "check_output", "Popen")})


def bare(path: ast.expr) -> ast.expr:
    """``p`` for ``str(p)``, ``Path(p)``, ``ddp.main_path(p)``, ``f"{p}"`` and ``p.as_posix()``."""
    while True:
        match path:
            case ast.Call(args=[one], keywords=[]) if last(path.func) in _TEXTS:
                path = one
            case ast.Call(func=ast.Attribute(value=owner, attr=word), args=[], keywords=[]) if word in _SPELLINGS:
                path = owner
            case ast.JoinedStr(values=[ast.FormattedValue(value=inner, conversion=-1, format_spec=None)]):
                path = inner
            case _:
                return path


def folder(path: ast.expr) -> ast.expr | None:
    """``a`` for ``os.path.join(a, b)``, ``a / b``, ``a + "/b"``, ``f"{a}/b"`` and ``"a/b"``."""
    if isinstance(path, ast.Constant):
        return ast.Constant(path.value.rpartition("/")[0]) if isinstance(path.value, str) and "/" in path.value else None
    if isinstance(path, ast.Call) and last(path.func) == "join" and len(path.args) > 1:
        return path.args[0]
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
        return path.left
    parts = path.values if isinstance(path, ast.JoinedStr) else [path.left, path.right] if isinstance(path, ast.BinOp) else []
    if len(parts) > 1 and isinstance(parts[1], ast.Constant) and str(parts[1].value).startswith("/"):
        return parts[0].value if isinstance(parts[0], ast.FormattedValue) else parts[0]
    if len(parts) == 2 and isinstance(parts[0], ast.Constant) and str(parts[0].value).endswith("/"):
        return ast.Constant(str(parts[0].value)[:-1])
    return None


def makes_path(path: ast.expr) -> bool:
    """Whether an expression puts a path together."""
    if isinstance(path, ast.Call):
        if isinstance(path.func, ast.Attribute) and path.func.attr == "format":
            return makes_path(path.func.value)
        joins = ast.unparse(path.func).endswith(("path.join", "Path", "with_suffix", "with_name", "joinpath"))
        return joins or (last(path.func) in _TEXTS and any(makes_path(a) for a in path.args))
    if isinstance(path, ast.JoinedStr):
        return any(makes_path(v) for v in path.values)
    if isinstance(path, ast.BinOp):
        return makes_path(path.left) or makes_path(path.right)
    return isinstance(path, ast.Constant) and isinstance(path.value, str) and SUFFIX.search(path.value) is not None


def named(path: ast.expr) -> bool:
    """Whether a variable has the name of one that holds a path."""
    return isinstance(path, ast.Name | ast.Attribute) and _WORDS.search(last(path)) is not None


def last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def named_after(path: ast.expr) -> str | None:
    """``x`` for a path that ends in ``x``, ``os.path.basename(x)`` or ``x.name``; None for others."""
    if isinstance(path, ast.Call) and last(path.func) == "join" and len(path.args) == 2:
        end = path.args[1]
    elif isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
        end = path.right
    elif isinstance(path, ast.JoinedStr) and isinstance(path.values[-1], ast.FormattedValue):
        end = path.values[-1].value
    else:
        end = path
    if isinstance(end, ast.Call) and last(end.func) == "basename" and len(end.args) == 1:
        end = end.args[0]
    if isinstance(end, ast.Attribute) and end.attr == "name":
        end = end.value
    return end.id if isinstance(end, ast.Name) else None


def listed_folders(node: ast.AST, lists: frozenset[str]) -> Iterator[ast.expr]:
    """The folders whose files an expression lists: ``d`` of ``sorted(os.listdir(d))``, of
    ``glob(os.path.join(d, "*"))`` and of ``d.iterdir()``.
    """
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call) and last(n.func) in lists):
        given = call.args[0] if call.args else None
        if last(call.func) in ("listdir", "scandir") and given is not None:
            yield given
        elif given is not None and (inner := folder(bare(given))) is not None:
            yield inner
        elif isinstance(call.func, ast.Attribute):
            yield call.func.value


def loops_of(name: str, tree: ast.AST) -> Iterator[ast.expr]:
    """What the loops go over whose turns give a name something."""
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        if any(isinstance(t, ast.Name) and t.id == name for t in ast.walk(node.target)):
            yield node.iter
