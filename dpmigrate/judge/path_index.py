"""What names, attributes and lists of a program are given, and what calls give to parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from dpmigrate.program import Program
from dpmigrate.spelt_paths import last


class Index:
    """What the names and attributes of a program are given."""

    def __init__(self, program: Program) -> None:
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self.classes: dict[ast.AST, ast.ClassDef] = {}
        self.calls: dict[str, list[ast.Call]] = {}
        self.attributes: dict[str, list[tuple[ast.expr, ast.AST | None]]] = {}
        #: what is appended to lists, by the names of these
        self.grown: dict[str, list[ast.expr]] = {}
        self._of: dict[ast.AST, ast.AST | None] = {}
        self._given: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        self._loops: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        for part in program.parts:
            self._walk(part.tree, None, None)

    def function_of(self, node: ast.AST) -> ast.AST | None:
        """The function that a node stands in."""
        return self._of.get(node)

    def bound(self, name: str, function: ast.AST | None) -> list[ast.expr]:
        """What a name is given in a function, or in the modules."""
        return self._given.get((function, name), [])

    def of_name(self, name: str, function: ast.AST | None) -> list[ast.expr]:
        """What the loops go over that give a name its values."""
        return self._loops.get((function, name), [])

    def _walk(self, node: ast.AST, function: ast.AST | None, cls: ast.ClassDef | None) -> None:
        self._of[node] = function
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._assigned(target, node.value, function)
        elif isinstance(node, ast.NamedExpr):
            self._assigned(node.target, node.value, function)
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            self._loops.setdefault((function, node.target.id), []).append(node.iter)
        elif isinstance(node, ast.Call):
            self.calls.setdefault(last(node.func), []).append(node)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "append" and node.args:
                self.grown.setdefault(last(node.func.value), []).append(node.args[0])
            self._handed(node)
        elif isinstance(node, ast.FunctionDef):
            self.functions.setdefault(node.name, []).append(node)
            if cls is not None:
                self.classes[node] = cls
        inner = node if isinstance(node, ast.FunctionDef) else function
        holder = node if isinstance(node, ast.ClassDef) else None
        for child in ast.iter_child_nodes(node):
            self._walk(child, inner, holder)

    def _handed(self, call: ast.Call) -> None:
        """``sorted(paths, key=lambda p: …)``, ``paths.sort(key=lambda p: …)``, ``filter(lambda p: …, paths)``: a lambda that is given each item."""
        keys = [k.value for k in call.keywords if k.arg == "key" and isinstance(k.value, ast.Lambda)]
        word, args = last(call.func), call.args
        if keys and word in ("sorted", "max", "min", "natsorted") and len(args) == 1:
            over: ast.expr | None = args[0]
        elif keys and word == "sort" and isinstance(call.func, ast.Attribute):
            over = call.func.value
        elif word in ("map", "filter") and len(args) == 2 and isinstance(args[0], ast.Lambda):
            keys, over = [args[0]], args[1]
        else:
            return
        for one in keys:
            if len(one.args.args) == 1 and over is not None:
                self._loops.setdefault((one, one.args.args[0].arg), []).append(over)

    def _assigned(self, target: ast.expr, value: ast.expr, function: ast.AST | None) -> None:
        if isinstance(target, ast.Name):
            self._given.setdefault((function, target.id), []).append(value)
        elif isinstance(target, ast.Attribute):
            self.attributes.setdefault(target.attr, []).append((value, function))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for t, v in zip(target.elts, value.elts, strict=True):
                self._assigned(t, v, function)


@lru_cache(8)
def indexed(program: Program) -> Index:
    """The index of a program."""
    return Index(program)


def parameters(function: ast.FunctionDef) -> list[str]:
    a = function.args
    return [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]


def arguments(function: ast.FunctionDef, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What a call gives the parameters of a function, and the defaults of those that it leaves out."""
    names = parameters(function)
    positional = names[1:] if names[:1] == ["self"] or names[:1] == ["cls"] else names
    given = dict(zip(positional, (a for a in call.args if not isinstance(a, ast.Starred)), strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    plain = [p.arg for p in (*function.args.posonlyargs, *function.args.args)]
    defaults = dict(zip(plain[len(plain) - len(function.args.defaults) :], function.args.defaults, strict=True))
    defaults |= {p.arg: d for p, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is not None}
    yield from (defaults | given).items()


def returns(function: ast.FunctionDef) -> Iterator[ast.Return]:
    return (n for n in ast.walk(function) if isinstance(n, ast.Return))
