"""Functions that train, and that the program does not use: another way to train that was kept, or what an older version called.

They are left as they are. What they do is no part of the program that is migrated, so nothing in them can keep it from being migrated.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.symbols import last

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def aside(script: Script) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of modules that train and that nothing uses, in the order of the text; none where no other code trains.

    A function counts as used where its name is read or imported anywhere, also in a text, where it has a decorator, and where the program on paper
    came to it. In a program that looks functions up by names that it makes (``getattr(methods, args.method)``) each may be used.
    """
    names = script.names
    around = {b: _outermost(names, b) for b in script.roles.backwards}
    found = {f for f in around.values() if f is not None and not f.decorator_list}
    if not found or _looks_up(names):
        return []
    used = set(_read(names))
    out = {f for f in found if f.name not in used and not script.values.callers.get(f) and not script.executed.runs(f.body[0])}
    return sorted(out, key=lambda f: f.lineno) if any(f not in out for f in around.values()) else []


def _outermost(names: Names, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function of a module in which a node stands; None in a class, or outside of all functions."""
    top: ast.AST = node
    for above in names.ancestors(node):
        if isinstance(above, ast.Module):
            break
        top = above
    return top if isinstance(top, FunctionNode) else None


#: functions of Python, and of libraries, that find others by their names
_BUILT_IN = frozenset({"globals", "locals", "vars", "eval", "exec", "__import__"})
_OF_LIBRARIES = frozenset({"import_module", "getmembers", "Fire"})


def _looks_up(names: Names) -> bool:
    """Whether a name of a module is looked up that does not stand in the text."""
    modules = _modules(names)
    for n in names.nodes:
        if isinstance(n, ast.Attribute) and n.attr in ("__dict__", "modules") and _of(n.value, modules):
            return True
        if not isinstance(n, ast.Call):
            continue
        word = last(n.func)
        if word in _OF_LIBRARIES or (isinstance(n.func, ast.Name) and word in _BUILT_IN):
            return True
        if word == "getattr" and n.args and _of(n.args[0], modules) and not all(isinstance(a, ast.Constant) for a in n.args[1:2]):
            return True
    return False


def _modules(names: Names) -> set[str]:
    """The names that imports give a module, or something in one."""
    imports = [n for n in names.nodes if isinstance(n, ast.Import | ast.ImportFrom)]
    return {(a.asname or a.name).partition(".")[0] for n in imports for a in n.names}


def _of(node: ast.AST, modules: set[str]) -> bool:
    """Whether one of these names stands in an expression."""
    return any(isinstance(i, ast.Name) and i.id in modules for i in ast.walk(node))


def _read(names: Names) -> list[str]:
    """The names that the program reads or imports, and the texts in it that may be names."""
    out = []
    modules = _modules(names)
    for n in names.nodes:
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            out.append(n.id)
        elif isinstance(n, ast.Attribute):
            if _of(n, modules):
                out.append(n.attr)  # of a module; other objects have methods of that name
        elif isinstance(n, ast.ImportFrom):
            out += [a.name for a in n.names]
        elif isinstance(n, ast.Constant) and isinstance(n.value, str):
            out.append(n.value)
    return out
