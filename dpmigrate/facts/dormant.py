"""Functions and classes that nothing in the program uses: helpers that a file keeps for other programs."""

from __future__ import annotations

import ast

from dpmigrate.facts.entry import find_entry
from dpmigrate.facts.names import FunctionNode, Names

#: what reaches a function by a name that is not written in the program
_BY_NAME = frozenset({"?.globals", "?.locals", "?.vars", "?.eval", "?.exec", "fire.Fire", "importlib.import_module"})


def dormant(names: Names) -> frozenset[ast.AST]:
    """The definitions that are neither called nor handed out, in the order of what uses what; none where functions may be taken by a name that is computed."""
    if find_entry(names) is None or any(isinstance(n, ast.Call) and _by_name(names, n) for n in names.nodes):
        return frozenset()
    left = [n for n in names.opened if _may_be_unused(names, n)]
    found: set[ast.AST] = set()
    size = -1
    while len(found) > size:
        size = len(found)
        found |= {d for d in left if d not in found and not _used(names, d, found)}
    return frozenset(found)


def is_dormant(names: Names, node: ast.AST, unused: frozenset[ast.AST]) -> bool:
    """Whether the node stands in a definition that nothing uses."""
    return bool(unused) and any(a in unused for a in (node, *names.ancestors(node)))


def _may_be_unused(names: Names, node: ast.AST) -> bool:
    """A decorator may keep what it is given, and what a class derives from may call its methods."""
    if not isinstance(node, FunctionNode | ast.ClassDef) or node.decorator_list:
        return False
    cls = names.scope_of[node].node
    if not isinstance(cls, ast.ClassDef):
        return True
    return not node.name.startswith("_") and node.name != "forward" and all(names.dotted(b) in ("?.object", "torch.nn.Module") for b in cls.bases)


def _used(names: Names, node: ast.AST, unused: set[ast.AST]) -> bool:
    assert isinstance(node, FunctionNode | ast.ClassDef)
    reads = [*names.reads(node.name), *(a for a in names.attributes(node.name) if not names.dotted(a))]
    return any(not any(a is node or a in unused for a in names.ancestors(r)) for r in reads)


def _by_name(names: Names, call: ast.Call) -> bool:
    """``globals()[name]``, ``getattr(module, name)``"""
    if names.dotted(call.func) in _BY_NAME:
        return True
    if names.dotted(call.func) != "?.getattr" or len(call.args) < 2 or isinstance(call.args[1], ast.Constant):
        return False
    meant = names.meant(call.args[0])
    return meant is not None and not meant[1]
