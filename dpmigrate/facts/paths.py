"""How paths are put together: their form, with holes where values come in."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, last

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

HOLE = "{}"
_DEPTH = 6  # of variables that are given a path once
_TEXTS = ("?.str", "os.fspath", "os.path.abspath")  # the same path
_FIELD = re.compile(r"%(?!%)[-#0 +]*\d*(?:\.\d+)?[a-z]|\{[^{}]*\}")


def path_form(script: Script, node: ast.expr, depth: int = _DEPTH) -> str:
    """``e{}.png`` for ``"e%d.png" % epoch``, ``f"e{epoch}.png"`` and ``"e{}.png".format(epoch)``.

    A variable whose own path is not known is told by its name and scope.
    """
    if isinstance(node, ast.Constant):
        return _FIELD.sub(HOLE, node.value) if isinstance(node.value, str) else HOLE
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else _part(script, v.value, depth) for v in node.values)  # type: ignore[attr-defined, misc]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return path_form(script, node.left, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
        between = "/" if isinstance(node.op, ast.Div) else ""
        return f"{_part(script, node.left, depth)}{between}{_part(script, node.right, depth)}"
    if isinstance(node, ast.Call):
        return _called(script, node, depth)
    listed = _listed(script, node) if depth and isinstance(node, ast.Name | ast.Subscript) else None
    if listed is not None:
        return path_form(script, listed, depth - 1)
    if isinstance(node, ast.Name | ast.Attribute) or (isinstance(node, ast.Subscript) and _keyword(script, node) is not None):
        return _variable(script, node, depth)
    return HOLE


def path_forms(script: Script, node: ast.expr) -> frozenset[str]:
    """The forms that a path may have: where calls give a parameter different ones, each of them, and its own, by its name."""
    form = path_form(script, node)
    given = _handed(script, node) if form.startswith("<") and isinstance(node, ast.Name | ast.Subscript) else []
    return frozenset({form, *(path_form(script, e, _DEPTH - 1) for e in given)} - {HOLE})


def _called(script: Script, node: ast.Call, depth: int) -> str:
    if script.names.dotted(node.func) in ("os.path.join", "pathlib.Path"):
        return "/".join(_part(script, a, depth) for a in node.args)
    if _text_of(script, node) is not node:
        return path_form(script, _text_of(script, node), depth)
    if isinstance(node.func, ast.Attribute) and last(node.func) == "format":
        return path_form(script, node.func.value, depth)
    made = {path_form(script, r.value, depth - 1) for f, _ in script.values.targets(node) for r in script.names.returns(f) if r.value} if depth else set()
    return made.pop() if len(made) == 1 else HOLE


def _variable(script: Script, node: ast.Name | ast.Attribute | ast.Subscript, depth: int) -> str:
    keys = sorted(script.values.keys(node))
    stored = [w for k in keys for w in script.roles.writes(k)]
    only = stored[0] if len(stored) == 1 else None
    if depth and isinstance(only, ast.Assign | ast.AnnAssign) and only.value is not None and isinstance(only.value, ast.expr):
        form = path_form(script, only.value, depth - 1)
        if form != HOLE and not _several(only):
            return form
    given = {path_form(script, e, depth - 1) for e in _handed(script, node)} if depth else set()
    if len(given) == 1 and HOLE not in given:
        return given.pop()
    return f"<{ast.unparse(node)}@{keys}>"


def _listed(script: Script, node: ast.Name | ast.Subscript) -> ast.expr | None:
    """How a comprehension makes the items of a list, of which this is one: ``paths[i]``, ``path`` of ``for path in paths``."""
    whole: ast.AST | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        whole = node.value
    elif isinstance(node, ast.Name):
        bound = list(script.names.bindings(script.names.scope_of[node], node.id))
        whole = bound[0].value if len(bound) == 1 and bound[0].how == "for" and bound[0].path == ("*",) else None
    if not isinstance(whole, ast.Name):
        return None
    made = list(script.names.bindings(script.names.scope_of[whole], whole.id))
    only = made[0] if len(made) == 1 and made[0].how == "assign" and not made[0].path else None
    return only.value.elt if only is not None and isinstance(only.value, ast.ListComp) else None


def _handed(script: Script, node: ast.Name | ast.Attribute | ast.Subscript) -> list[ast.expr]:
    """What calls give for a parameter, or its default; nothing where that is not known of one of them."""
    if isinstance(node, ast.Subscript):
        return _keyword(script, node) or []
    bound = list(script.names.bindings(script.names.scope_of[node], node.id)) if isinstance(node, ast.Name) else []
    given = [e for b in bound if b.how == "param" for e in script.roles.bound_to(b)]
    known = [e for e in given if e is not None]
    return known if all(b.how == "param" for b in bound) and len(known) == len(given) else []


def _keyword(script: Script, node: ast.Subscript) -> list[ast.expr] | None:
    """What calls give under a name that a function takes out of ``**kwargs``: ``kwargs["path"]``; None for any other item, and where a call does not say."""
    if not (isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant)):
        return None
    function = script.names.function(node)
    collects = function.args.kwarg if isinstance(function, FunctionNode) else None
    calls = script.values.callers.get(function, [])
    if collects is None or collects.arg != node.value.id or not calls:
        return None
    given = [k.value for c in calls for k in c.keywords if k.arg == node.slice.value]
    return given if len(given) == len(calls) else None


def _several(stmt: ast.Assign | ast.AnnAssign) -> bool:
    return isinstance(stmt, ast.Assign) and any(isinstance(t, ast.Tuple | ast.List) for t in stmt.targets)


def _part(script: Script, node: ast.expr, depth: int) -> str:
    """A part of a path: what is no path by itself is a hole there, as in a format, since it may go by another name elsewhere."""
    form = path_form(script, node, depth)
    return HOLE if form.startswith("<") and not isinstance(_text_of(script, node), ast.Attribute) else form


def _text_of(script: Script, node: ast.expr) -> ast.expr:
    """``args.out`` for ``str(args.out)``."""
    return node.args[0] if isinstance(node, ast.Call) and script.names.dotted(node.func) in _TEXTS and node.args else node
