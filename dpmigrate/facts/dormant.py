"""Functions and classes that nothing in the program uses: helpers that a file keeps for other programs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from dpmigrate.facts.entry import find_entry
from dpmigrate.facts.names import FunctionNode, Names, last
from dpmigrate.facts.scopes import Scope

#: what reaches a function by a name that is not written in the program
_BY_NAME = frozenset({"fire.Fire", "importlib.import_module", "?.__import__", "pydoc.locate"})
#: what finds a name of the module that it stands in, by text
_IN_MODULE = frozenset({"?.globals", "?.locals", "?.eval", "?.exec"})
#: what makes objects of names in a file of settings, whatever library it is of
_FINDERS = frozenset({"instantiate", "get_class", "get_method", "get_object", "locate", "import_string", "resolve_name"})
#: what lists what its argument holds; without one, what the module holds
_LISTS = frozenset({"?.vars", "?.dir", "inspect.getmembers"})


def dormant(names: Names) -> frozenset[ast.AST]:
    """The definitions that are neither called nor handed out, in the order of what uses what; none where functions may be taken by a name that is computed."""
    if find_entry(names) is None or any(_by_name(names, n) for n in names.nodes):
        return frozenset()
    words = {w for n in names.nodes for w in _words(n)}
    aliased = {v for n in names.nodes if isinstance(n, ast.ImportFrom) for v in _renamed(names, n)}
    reading = {names.module_of(n) for n in names.nodes if isinstance(n, ast.Call) and names.dotted(n.func) in _IN_MODULE}
    left = [n for n in names.opened if _may_be_unused(names, n) and not _named(names, n, words, aliased) and not _seen_from(names, n, reading)]
    found: set[ast.AST] = set()
    size = -1
    while len(found) > size:
        size = len(found)
        found |= {d for d in left if d not in found and not _used(names, d, found)}
    return frozenset(found)


def take_out(names: Names) -> bool:
    """Leave out of the trees the functions and classes that nothing uses: they decide nothing. Methods stay, since a library may call them of an object.

    Whether anything was left out, and with it the names are out of date. Where nothing else trains all of it stays, so that it is told what does not run.
    """
    unused = frozenset(n for n in dormant(names) if isinstance(n, FunctionNode | ast.ClassDef) and not names.scope_of[n].is_class)
    if all(is_dormant(names, b, unused) for b in names.attributes("backward")):
        return False
    for node in unused:
        home: list[ast.stmt] = names.block(node)
        home[home.index(node)] = ast.copy_location(ast.Pass(), node)
    return bool(unused)


def is_dormant(names: Names, node: ast.AST, unused: frozenset[ast.AST]) -> bool:
    """Whether the node stands in a definition that nothing uses."""
    return bool(unused) and any(a in unused for a in (node, *names.ancestors(node)))


def _may_be_unused(names: Names, node: ast.AST) -> bool:
    """A decorator may keep what it is given, and what a class derives from may find it, or call its methods."""
    if not isinstance(node, FunctionNode | ast.ClassDef) or node.decorator_list:
        return False
    if isinstance(node, ast.ClassDef) and any((d := names.dotted(b)) not in ("", "?.object") and not d.startswith("torch.") for b in node.bases):
        return False
    cls = names.scope_of[node].node
    if not isinstance(cls, ast.ClassDef):
        return True
    return not node.name.startswith("_") and node.name != "forward" and all(names.dotted(b) in ("?.object", "torch.nn.Module") for b in cls.bases)


def _used(names: Names, node: ast.AST, unused: set[ast.AST]) -> bool:
    assert isinstance(node, FunctionNode | ast.ClassDef)
    asked = [a for a in names.attributes(node.name) if not names.dotted(a)]
    if names.scope_of[node].is_module:  # an object has no functions of a module, and no module is handed on (``_by_name``)
        asked = [a for a in asked if (meant := names.meant(a.value)) is not None and not meant[1]]
    reads = [*(r for r in names.reads(node.name) if not _means_another(names, r, node)), *asked]
    return any(not any(a is node or a in unused for a in names.ancestors(r)) for r in reads)


def _seen_from(names: Names, node: ast.AST, modules: Collection[Scope]) -> bool:
    """Whether one of the modules may name a definition, of its own or by imports; of methods it is taken for granted, as of what modules hold."""
    if not modules or not names.scope_of[node].is_module:
        return bool(modules)
    seen: set[Scope] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo += [scope for name in module.bindings for scope, _ in names.imported.targets(module, name)]
            todo += names.imported.stars(module)
    return names.scope_of[node] in seen


def _means_another(names: Names, read: ast.AST, node: ast.AST) -> bool:
    """Whether a name means what another module holds under it, or a variable of a function: each of several files may have a ``main``."""
    found, own = names.meant(read), names.scope_of[node]
    return own.is_module and found is not None and bool(found[1]) and found[0] is not own and len(names.imported.targets(*found)) == 0


def _words(node: ast.AST) -> Iterator[str]:
    """What a string may name: ``"train"`` or ``"engine.train"``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.replace(".", "").isidentifier():
        yield from node.value.split(".")


def _renamed(names: Names, node: ast.ImportFrom) -> Iterator[tuple[Scope | None, str]]:
    """The variables that an import gives another name; of a module that is not known whatever has the name."""
    for a in node.names:
        if a.asname not in (None, a.name):
            targets = names.imported.targets(names.scope_of[node], a.asname or "")
            yield from (names.variable(*t) or t for t in targets) if targets else [(None, a.name)]


def _named(names: Names, node: ast.AST, words: Collection[str], aliased: Collection[tuple[Scope | None, str]]) -> bool:
    """Whether a text or an import under another name may mean a definition."""
    assert isinstance(node, FunctionNode | ast.ClassDef)
    return node.name in words or (None, node.name) in aliased or (names.scope_of[node], node.name) in aliased


def _by_name(names: Names, node: ast.AST) -> bool:
    """``globals()[name]``, ``getattr(module, name)``, ``module.__dict__``, a module that is handed over, classes that are found by their base."""
    if isinstance(node, ast.Attribute) and (names.dotted(node) == "sys.modules" or node.attr == "__subclasses__"):
        return True
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name == "__init_subclass__" or (isinstance(node, ast.ClassDef) and bool(node.keywords))  # bases that note what derives from them
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and (meant := names.meant(node)) is not None and not meant[1]:
        above = names.parent[node]
        constant = isinstance(above, ast.Call) and names.dotted(above.func) in ("?.getattr", "?.hasattr") and isinstance(above.args[1], ast.Constant)
        return not constant and (not isinstance(above, ast.Attribute) or above.attr == "__dict__")
    if not isinstance(node, ast.Call):
        return False
    dotted = names.dotted(node.func)
    return dotted in _BY_NAME or last(node.func) in _FINDERS or (dotted in _LISTS and not node.args)
