"""The forms that a path may have: its text, with a hole for each part that is not known.

``os.path.join(args.out, f"{epoch}.pt")`` is ``{args.out}/{epoch}.pt`` wherever it is written: names
are followed to what they are given, parameters to what the calls give that lead here, attributes to
what the class gives them. Two forms may be one file where they agree but for such holes, and where
the hole that a path begins with is the same.
"""

from __future__ import annotations

import ast
import re

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.values import known
from dpmigrate.judge.path_index import arguments, indexed, parameters, returns
from dpmigrate.judge.path_overlap import is_hole
from dpmigrate.spelt_paths import last

#: steps from a name to what it is given
DEPTH = 14
#: forms of one path
FORMS = 6
#: functions and methods that give the path which they are given, in another spelling
_SAME = frozenset({
    "str", "Path", "PurePath", "fspath", "abspath", "realpath", "normpath", "expanduser", "main_path", "from_main", "resolve", "absolute", "as_posix",
    "strip", "rstrip", "sorted", "list", "reversed", "iter", "next", "max", "min", "natsorted",
})  # fmt: skip
#: the names of modules whose functions join paths and list folders
_MODULES = frozenset({"os", "path", "osp", "op", "shutil", "glob", "pathlib", "ddp", "dpmigrate_runtime"})
#: functions that give the files of a folder, and those that give them by a pattern
_NAMES, _PATTERNS = frozenset({"listdir"}), frozenset({"glob", "iglob", "rglob"})

Context = tuple[ast.AST | None, int]


class Forms:
    """The forms of the paths of one program."""

    def __init__(self, m: Execution) -> None:
        self._m = m
        self._index = indexed(m.program)
        self._found: dict[tuple[ast.expr, Context, int], list[str]] = {}

    def of(self, path: ast.expr, frame: Frame) -> frozenset[str]:
        """The forms of an expression where it is evaluated."""
        function = frame.function.extra.node if frame.function is not None else None
        found = self._of(path, (function, frame.context), DEPTH)
        text = self._text(path, frame)
        return frozenset([text]) if text is not None else frozenset(_plain(f) for f in found)

    def _text(self, path: ast.expr, frame: Frame) -> str | None:
        """The text of a variable, where it is known."""
        at = self._m.location(path, frame) if isinstance(path, ast.Name | ast.Attribute) else None
        held = self._m.heap.read(at) if at is not None else None
        text = known(held) if held else None
        return text if isinstance(text, str) else None

    def _of(self, node: ast.expr, at: Context, depth: int) -> list[str]:
        """The forms of an expression in a function that some calls lead to."""
        if not depth:
            return [self._hole(node, at)]
        found = self._found.get((node, at, depth))
        if found is None:
            found = self._found[node, at, depth] = self._forms(node, at, depth)
        return found

    def _forms(self, node: ast.expr, at: Context, depth: int) -> list[str]:
        match node:
            case ast.Constant(value=str() | int() as text):
                return [str(text)]
            case ast.JoinedStr(values=parts):
                return _products([self._of(p, at, depth - 1) for p in parts])
            case ast.FormattedValue(value=inner):
                return self._of(inner, at, depth - 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _products([self._of(left, at, depth - 1), self._of(right, at, depth - 1)])
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _products([self._of(left, at, depth - 1), ["/"], self._of(right, at, depth - 1)])
            case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
                given = right.elts if isinstance(right, ast.Tuple) else [right]
                return self._filled(re.split(r"%[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z]", text), given, at, depth)
            case ast.IfExp(body=one, orelse=other):
                return self._either([one, other], at, depth)
            case ast.BoolOp(values=several):
                return self._either(several, at, depth)
            case ast.Subscript(value=inner, slice=index) if not (isinstance(index, ast.Constant) and isinstance(index.value, str)):
                return self._items(inner, at, depth - 1)
            case ast.Name():
                return self._named(node, at, depth)
            case ast.Attribute():
                return self._attribute(node, at, depth)
            case ast.Call():
                return self._call(node, at, depth)
        return [self._hole(node, at)]

    def _either(self, several: list[ast.expr], at: Context, depth: int) -> list[str]:
        found = [f for e in several if not (isinstance(e, ast.Constant) and e.value is None) for f in self._of(e, at, depth - 1)]
        return list(dict.fromkeys(found))[:FORMS]

    def _filled(self, texts: list[str], given: list[ast.expr], at: Context, depth: int) -> list[str]:
        """Texts with values between them."""
        parts: list[list[str]] = [[texts[0]]]
        for i, text in enumerate(texts[1:]):
            parts += [self._of(given[i], at, depth - 1) if i < len(given) else ["{?}"], [text]]
        return _products(parts)

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call, at: Context, depth: int) -> list[str]:
        word = last(node.func)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_module = isinstance(receiver, ast.Name | ast.Attribute) and last(receiver) in _MODULES
        args = [a for a in node.args if not isinstance(a, ast.Starred)]
        if word == "join" and args and (of_module or receiver is None):
            parts = [p for a in args for p in (self._of(a, at, depth - 1), ["/"])]
            return _products(parts[:-1])
        if word in ("Path", "PurePath", "joinpath") and (len(args) > 1 or (word == "joinpath" and receiver is not None)):
            whole = [receiver, *args] if word == "joinpath" and receiver is not None else args
            return _products([p for a in whole for p in (self._of(a, at, depth - 1), ["/"])][:-1])
        if word == "format" and isinstance(receiver, ast.Constant) and isinstance(receiver.value, str):
            return self._filled(re.split(r"\{[^{}]*\}", receiver.value), args, at, depth)
        if word in _PATTERNS | _NAMES | {"iterdir", "scandir"}:
            return self._items(node, at, depth)
        if word in ("dirname", "basename") and args:
            return [_part(f, word == "dirname") for f in self._of(args[0], at, depth - 1)]
        if word in ("with_suffix", "with_name") and receiver is not None and args:
            stems = [f.rpartition("/")[0] + "/" if word == "with_name" else f.rpartition(".")[0] for f in self._of(receiver, at, depth - 1)]
            return _products([stems, self._of(args[0], at, depth - 1)])
        if word == "replace" and receiver is not None and len(args) == 2:
            old, new = (a.value if isinstance(a, ast.Constant) else None for a in args)
            if isinstance(old, str) and isinstance(new, str) and old:
                return [_replaced(f, old, new) for f in self._of(receiver, at, depth - 1)]
        if word == "pop" and receiver is not None:
            return self._items(receiver, at, depth - 1)
        if word in _SAME:
            inner = args[0] if args else receiver
            if inner is not None:
                return self._of(inner, at, depth - 1)
        own = self._index.functions.get(word, [])
        if len(own) == 1 and (receiver is None or not of_module):
            returned = [r.value for r in returns(own[0]) if r.value is not None]
            inside: Context = (own[0], -1)
            if returned:
                found = [f for e in returned if not (isinstance(e, ast.Constant) and e.value is None) for f in self._of(e, inside, depth - 1)]
                return [self._given(f, own[0], node, at, depth) for f in found][:FORMS] or [self._hole(node, at)]
        return [self._hole(node, at)]

    def _given(self, form: str, function: ast.FunctionDef, call: ast.Call, at: Context, depth: int) -> str:
        """The form that a function gives, with what a call gives it for its parameters."""
        for name, value in arguments(function, call):
            hole = f"{{{function.name}.{name}}}"
            if hole in form:
                form = form.replace(hole, self._of(value, at, depth - 1)[0])
        return form

    def _items(self, node: ast.expr, at: Context, depth: int) -> list[str]:
        """The forms of the items of a listing: of the names in a folder, or of paths by a pattern."""
        if not depth:
            return [self._hole(node, at)]
        if isinstance(node, ast.Name):
            given = self._bound(node.id, at)
            grown = self._index.grown.get(node.id, [])
            found = [f for e in given for f in self._items(e, at, depth - 1)] if given else []
            found += [f for e in grown for f in self._of(e, at, depth - 1)]
            return list(dict.fromkeys(found))[:FORMS] or [self._hole(node, at)]
        if isinstance(node, ast.Attribute):
            grown = self._index.grown.get(node.attr, [])
            found = [f for e in grown for f in self._of(e, (self._index.function_of(e), at[1]), depth - 1)]
            inner = [f for v, function in self._index.attributes.get(node.attr, []) for f in self._items(v, (function, -1), depth - 1)]
            return list(dict.fromkeys([*found, *(f for f in inner if not is_hole(f))]))[:FORMS] or [self._hole(node, at)]
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            target = node.generators[0].target
            if isinstance(node.elt, ast.Name) and isinstance(target, ast.Name) and node.elt.id == target.id:
                return self._items(node.generators[0].iter, at, depth - 1)
            return self._of(node.elt, at, depth - 1)
        if isinstance(node, ast.Call):
            word = last(node.func)
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            if word in _NAMES or word == "scandir":
                return ["{*}"]
            if word == "iterdir" and receiver is not None:
                return _products([self._of(receiver, at, depth - 1), ["/{*}"]])
            if word in _PATTERNS and node.args:
                found = [pattern(f) for f in self._of(node.args[0], at, depth - 1)]
                of_path = receiver is not None and not (isinstance(receiver, ast.Name) and receiver.id == "glob")
                return _products([self._of(receiver, at, depth - 1), ["/"], found]) if of_path and receiver is not None else found
            if word in _SAME | {"enumerate", "zip", "filter"} and node.args:
                return self._items(node.args[-1 if word == "filter" else 0], at, depth - 1)
        if isinstance(node, ast.Subscript):
            return self._items(node.value, at, depth - 1)
        if isinstance(node, ast.List | ast.Tuple):
            return self._either(list(node.elts), at, depth) or [self._hole(node, at)]
        return [self._hole(node, at)]

    # ------------------------------------------------------------ names

    def _named(self, node: ast.Name, at: Context, depth: int) -> list[str]:
        function, context = at
        loops, given = self._index.of_name(node.id, function), self._bound(node.id, at)
        outside = at
        if isinstance(function, ast.Lambda):  # what it is given is made in the function that it stands in
            outside = (self._index.function_of(function), -1)
            if not loops:
                return self._named(node, outside, depth - 1) if depth > 1 else [self._hole(node, at)]
        found: list[str] = [f for e in loops for f in self._items(e, outside, depth - 1)]
        for e in given:
            if not any(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(e)) and not (isinstance(e, ast.Constant) and e.value is None):
                found += self._of(e, at, depth - 1)
        if not loops and not given and isinstance(function, ast.FunctionDef) and node.id in parameters(function):
            found += self._parameter(function, node.id, context, depth)
        if not (found or given or loops) and function is not None:
            return self._named(node, (None, 0), depth) if self._index.bound(node.id, None) else [self._hole(node, at)]
        return list(dict.fromkeys(found))[:FORMS] or [self._hole(node, at)]

    def _parameter(self, function: ast.FunctionDef, name: str, context: int, depth: int) -> list[str]:
        """What the calls give that lead here; where none is known, all calls of the function."""
        if context < 0:
            return [f"{{{function.name}.{name}}}"] if not self._method_of_one(function) else self._of_calls(function, name, depth)
        # turns of loops that are executed one by one stand between
        call = next((c for c in self._m.trace.chain(context) if isinstance(c.node, ast.Call)), None)
        if call is None or not isinstance(call.node, ast.Call):
            return []
        value = dict(arguments(function, call.node)).get(name)
        return [] if value is None else self._of(value, (self._index.function_of(call.node), call.context), depth - 1)

    def _of_calls(self, function: ast.FunctionDef, name: str, depth: int) -> list[str]:
        """What the constructor of a class is given by all calls of the class."""
        cls = self._index.classes.get(function)
        found: list[str] = []
        for call in self._index.calls.get(cls.name, []) if cls is not None else []:
            value = dict(arguments(function, call)).get(name)
            if value is not None:
                found += self._of(value, (self._index.function_of(call), -1), depth - 1)
        return found

    def _method_of_one(self, function: ast.FunctionDef) -> bool:
        """Whether it is the constructor of a class that one call makes."""
        cls = self._index.classes.get(function)
        return cls is not None and function.name == "__init__" and len(self._index.calls.get(cls.name, [])) == 1

    def _attribute(self, node: ast.Attribute, at: Context, depth: int) -> list[str]:
        if node.attr == "parent":
            return [_part(f, True) for f in self._of(node.value, at, depth - 1)]
        if node.attr in ("name", "path", "stem") and isinstance(node.value, ast.Name) and node.value.id != "self":
            return [_part(f, False) if node.attr == "name" else f for f in self._of(node.value, at, depth - 1)]
        if isinstance(node.value, ast.Name):
            given = [(v, f) for v, f in self._index.attributes.get(node.attr, []) if not (isinstance(v, ast.Constant) and v.value is None)]
            found = [f for v, function in given for f in self._of(v, (function, -1), depth - 1)]
            if found:
                return list(dict.fromkeys(found))[:FORMS]
        return [self._hole(node, at)]

    def _bound(self, name: str, at: Context) -> list[ast.expr]:
        return self._index.bound(name, at[0])

    def _hole(self, node: ast.expr, at: Context) -> str:
        """A hole: what is written alike in one function is one value there."""
        if isinstance(node, ast.Name) and isinstance(at[0], ast.FunctionDef):
            return f"{{{at[0].name}.{node.id}}}"
        return "{" + re.sub(r"[{}|]", "", ast.unparse(node)) + "}"


def _products(parts: list[list[str]]) -> list[str]:
    found = [""]
    for part in parts:
        found = [f + p for f in found for p in part][:FORMS]
    return found


def _replaced(form: str, old: str, new: str) -> str:
    """A form with another text in place of one; what its holes hold is not known."""
    parts = re.split(r"(\{[^{}]*\})", form)
    return "".join(p if p.startswith("{") else p.replace(old, new) for p in parts)


def _part(form: str, parent: bool) -> str:
    head, slash, tail = form.rpartition("/")
    return (head if slash else "") if parent else tail


def _plain(form: str) -> str:
    """A form without what makes no difference: ``./a//b/`` is ``a/b``."""
    form = re.sub(r"/{2,}", "/", form)
    form = re.sub(r"(^|/)(\./)+", r"\1", form)
    return form.rstrip("/") if len(form) > 1 else form


def pattern(form: str) -> str:
    """A pattern of names as a form: its stars are holes."""
    parts = re.split(r"(\{[^{}]*\})", form.replace("**/", ""))
    return "".join(p if p.startswith("{") else re.sub(r"[*?]+|\[[^\]]*\]", "{*}", p) for p in parts)
