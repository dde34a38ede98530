"""From bytes to parsed text. Bad input is data (a Problem), never an exception."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass

from dpmigrate.model import Problem

#: files above this size are generated or data; parsing them costs seconds and hundreds of megabytes
SIZE_LIMIT = 2_000_000
#: methods and the function by which an attribute is stored under a name
_STORING = ("add_module", "register_module", "setattr")
_TYPING = ("typing", "typing_extensions")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Source:
    """One parsed file. ``text`` has no BOM and the newlines of the file."""

    name: str
    data: bytes
    text: str
    encoding: str
    bom: bool
    tree: ast.Module

    def encode(self, text: str) -> bytes | Problem:
        """The bytes that hold ``text`` in the file's own encoding.

        A Problem where the encoding lacks a character, or has several forms of one, so that lines which stay would change.
        """
        try:
            body = text.encode(self.encoding)
            kept = self.text.encode(self.encoding)
        except UnicodeEncodeError as e:
            word = f"{e.object[e.start : e.end]!r}: {e.reason}"
            return Problem(f"the new text cannot be written in the file's encoding {self.encoding}: {word}")
        if kept != self.data.removeprefix(_BOM if self.bom else b""):
            return Problem(f"the bytes of this file are not those that Python writes in {self.encoding}: save it as UTF-8 first")
        return _BOM + body if self.bom else body

    def rewritten(self, text: str) -> Source | Problem:
        """The same file with a new text, which its encoding need not be able to hold."""
        return _parsed(text.encode("utf-8", "surrogatepass"), self.name, text, self.encoding, self.bom)


def parse(data: bytes, name: str) -> Source | Problem:
    """Decode as Python would (cookie, BOM, UTF-8) and parse."""
    if len(data) > SIZE_LIMIT:
        return Problem(f"larger than {SIZE_LIMIT // 1_000_000} MB: not analysed")
    if b"\0" in data:
        return Problem("contains a NUL byte: not Python source", data[: data.index(b"\0")].count(b"\n") + 1)
    try:
        # a cookie stands in the first two lines; more of the file is not needed for it
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        bom = data.startswith(_BOM)
        text = data.decode("utf-8-sig" if bom else encoding)
    except (SyntaxError, LookupError) as e:
        return Problem(f"unknown encoding: {e}", 1)
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        return Problem(f"cannot be decoded as {e.encoding}: byte 0x{data[e.start]:02x}", line)
    except UnicodeError as e:  # of codecs that are none for files, as idna
        return Problem(f"cannot be decoded as {encoding}: {e}", 1)
    return _parsed(data, name, text, "utf-8" if bom else encoding, bom)


def _parsed(data: bytes, name: str, text: str, encoding: str, bom: bool) -> Source | Problem:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        if any(word in text for word in _STORING):
            _Stored().visit(tree)
        if "typing" in text and "cast" in text:
            _Cast(tree).visit(tree)
    except SyntaxError as e:
        return Problem(f"syntax error: {e.msg}{_hint(text, e)}", e.lineno, e.offset)
    except (RecursionError, MemoryError):
        return Problem("nested too deeply to be parsed")
    except ValueError as e:
        return Problem(f"cannot be parsed: {e}")
    return Source(name, data, text, encoding, bom, tree)


class _Stored(ast.NodeTransformer):
    """``self.add_module("net", net)`` and ``setattr(self, "net", net)`` as ``self.net = net``, which they are, in the place of the statement."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if not isinstance(call, ast.Call) or any(k.arg is None for k in call.keywords):
            return node
        given = {k.arg: k.value for k in call.keywords}
        if isinstance(call.func, ast.Attribute) and call.func.attr in _STORING[:2] and len(call.args) + len(given) == 2:
            owner: ast.expr = call.func.value
            name, value = (*call.args, *(given[k] for k in ("name", "module") if k in given))[:2] if not given.keys() - {"name", "module"} else (None, None)
        elif isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3:
            owner, name, value = call.args
        else:
            return node
        own = isinstance(owner, ast.Name) and owner.id == "self"
        if value is None or not own or not isinstance(name, ast.Constant) or not isinstance(name.value, str) or not name.value.isidentifier():
            return node
        target = ast.copy_location(ast.Attribute(owner, name.value, ast.Store()), call.func)
        return ast.copy_location(ast.Assign([target], value), node)


class _Cast(ast.NodeTransformer):
    """``cast(Tensor, x)`` of ``typing`` as ``x``, which it is when the program runs (https://docs.python.org/3/library/typing.html#typing.cast)."""

    def __init__(self, tree: ast.Module) -> None:
        found = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        self.modules = {a.asname or a.name for n in found if isinstance(n, ast.Import) for a in n.names if a.name in _TYPING}
        self.names = {a.asname or a.name for n in found if isinstance(n, ast.ImportFrom) and n.module in _TYPING for a in n.names if a.name == "cast"}
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.names -= stored | {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node.func:
            case ast.Name(id=name):
                casts = name in self.names
            case ast.Attribute(value=ast.Name(id=module), attr="cast"):
                casts = module in self.modules
            case _:
                casts = False
        return node.args[1] if casts and len(node.args) == 2 and not node.keywords else node


def _hint(text: str, error: SyntaxError) -> str:
    """What old source looks like, and what helps."""
    lines = re.split(r"\r\n|\r|\n", text)
    line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
    if re.search(r"\basync\s*=", line):
        return " (async is a keyword since Python 3.7: write non_blocking=)"
    old = "print" in (error.msg or "") or re.search(r"\b(print\s+[^(\s=]|except\s+\w+\s*,\s*\w+|exec\s+['\"])", line)
    return " (Python 2 source? modernise it first, e.g. with 2to3 or futurize)" if old else ""
