"""Loops that read the files of a folder and write them anew: rank 0 runs them alone, since another rank would read what it writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.outside import changes_files, waits_for_somebody
from dpmigrate.facts.ranks import parted, reached_together, run_apart, run_by_all

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def folder_loops(script: Script) -> Iterator[ast.For]:
    """The loops; none in which ranks meet, or of which the rest of the program uses what they leave in variables."""
    from dpmigrate.facts.written import writes

    found: dict[ast.For, None] = {}
    for call in writes(script):
        loop = next((a for a in script.names.ancestors(call, below=script.names.function(call)) if isinstance(a, ast.For)), None)
        if loop is not None and position(call) in script.files_in_turn and _alone(script, loop):
            found[loop] = None
    yield from found


def preparations(script: Script) -> Iterator[ast.If]:
    """Tests that remove, move or empty a folder and make one anew in one branch: rank 0 does it alone, as a whole, and the others wait for it. A part of
    it for rank 0 would not do, since another rank asks when rank 0 has begun.
    """
    for node in script.names.nodes:
        if not isinstance(node, ast.If) or isinstance(script.names.parent[node], ast.If):
            continue
        calls = [c for c in walk(node) if isinstance(c, ast.Call)]
        if not any(last(c.func) in _REMOVES for c in calls) or not any(last(c.func) in _MAKES for c in calls):
            continue
        before = script.roles.region(node) == "outside" and not any(script.names.is_inside(b.node, node) for b in script.roles.train_loops)
        if before and _prepares(script, node) and _keeps_to_itself(script, node) and run_by_all(script.roles, node) and reached_together(script.roles, node):
            yield node


_REMOVES = frozenset({"rmtree", "move", "rename", "replace", "rmdir", "removedirs"})
_MAKES = frozenset({"makedirs", "mkdir"})


def _keeps_to_itself(script: Script, whole: ast.If) -> bool:
    """Whether nothing reads later what is bound in it, which rank 0 alone has: an answer, the result of a test; and whether no function of the program
    that it enters asks somebody or changes files, since all ranks would wait for each other there.
    """
    bound = {n.id for n in walk(whole) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    entered = (c for f in script.roles.all_entered(whole) for c in walk(f) if isinstance(c, ast.Call))
    if any(waits_for_somebody(script.names, c) or changes_files(script.roles, c) for c in entered):
        return False
    uses = (n for name in bound for n in script.names.uses(script.names.scope_of[whole], name))
    return all(script.names.is_inside(n, whole) or not isinstance(n.ctx, ast.Load) for n in uses)


def _prepares(script: Script, stmt: ast.stmt) -> bool:
    """Whether a statement does nothing but change files and folders, ask for that, tell of it, and stop where they are not as they should be."""
    match stmt:
        case ast.If(body=body, orelse=other):
            return all(_prepares(script, s) for s in (*body, *other))
        case ast.Pass():
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
            asked = next((c for c in walk(call) if isinstance(c, ast.Call) and waits_for_somebody(script.names, c)), None)  # input("…").strip().lower()
            return asked is not None and all(c is asked or (isinstance(c.func, ast.Attribute) and script.names.is_inside(asked, c)) for c in _calls(call))
        case ast.Expr(value=ast.Call() as call):
            told = script.names.dotted(call.func) in ("?.print", "builtins.print") or script.names.dotted(call.func).startswith("logging.")
            return told or last(call.func) in _MAKES or (changes_files(script.roles, call) and not script.meets(stmt))
    return False


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    yield from (n for n in walk(node) if isinstance(n, ast.Call))


def _alone(script: Script, loop: ast.For) -> bool:
    """Whether rank 0 may run the loop alone."""
    roles = script.roles
    if script.meets(loop) or roles.reaches_backward(loop) or roles.region(loop) != "outside" or parted(roles, loop) or run_apart(roles, loop):
        return False
    inside = set(walk(loop))
    if any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Raise | FunctionNode) for n in inside):
        return False
    left = {name for n in inside for name in _left(n)}
    function = script.names.function(loop)
    return not any(
        isinstance(n, ast.Name) and n.id in left and n not in inside and isinstance(n.ctx, ast.Load) and position(n) > position(loop)
        for n in walk(function)
    )


def _left(node: ast.AST) -> Iterator[str]:
    """The names that a node binds, or whose objects it may change: by a statement that calls a method, by an item or an attribute."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    changed = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else node
    if isinstance(changed, ast.Attribute | ast.Subscript) and (changed is not node or not isinstance(changed.ctx, ast.Load)):
        yield from (n.id for n in ast.walk(changed) if isinstance(n, ast.Name))
