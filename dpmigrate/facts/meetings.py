"""Places beside the loops at which all ranks do something together: decisions on a plateau, answers of somebody, files that have just been written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.fetched import first_on_main, inside, under_main_first
from dpmigrate.facts.fresh import found_in_directories
from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.outside import waits_for_somebody
from dpmigrate.facts.ranks import Stretch, left_to_main, run_apart, run_by_all
from dpmigrate.facts.readback import asked_back, loaded_back, read_backs, waits_at

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def plateau_metrics(script: Script) -> Iterator[ast.expr]:
    """What ReduceLROnPlateau schedulers are stepped on."""
    for call, func in script.methods("step"):
        metric = script.argument(call, "metrics", 0)
        if metric is not None and any(v.kind == "call" and v.qual.endswith(".ReduceLROnPlateau") for v in script.values.eval(func.value)):
            yield metric


def answers(script: Script) -> Iterator[ast.Call]:
    """The questions to somebody at the keyboard whose answer is used, and which all ranks come to; rank 0 alone asks before it makes a folder anew."""
    asked = (c for c in script.roles.calls if waits_for_somebody(script.names, c) and script.is_statement(c) is None)
    yield from (c for c in asked if run_by_all(script.roles, c) and not script.prepares(c))


def late_loads(script: Script) -> Iterator[ast.Call]:
    """The ``torch.load`` calls that may read a file which this program has just written."""
    if any(True for _ in script.calls("torch.save")):
        yield from (c for c in script.calls("torch.load") if after_training(script, c, frozenset()))


def late_listings(script: Script) -> Iterator[ast.Call]:
    """The listings after training, by which all ranks look for a checkpoint that rank 0 may still be writing: ``sorted(glob("*.pt"))[-1]``."""
    roles = script.roles
    loads = list(late_loads(script))
    for call in found_in_directories(script) if loads else ():
        apart = run_apart(roles, call) or left_to_main(roles, call) or roles.region(call) != "outside"
        if not apart and run_by_all(roles, call) and after_training(script, call, frozenset()):
            yield call


def waits_for_files(script: Script) -> Iterator[tuple[ast.Call, ast.stmt]]:
    """The calls that read what rank 0 may just have written, with the statement before which the ranks wait for it."""
    found = {call: script.names.statement(call) for call in (*late_listings(script), *late_loads(script), *loaded_back(script))}
    known = {call: waits_at(script, call) for call in read_backs(script)}
    asked = {call: script.names.statement(call) for call in asked_back(script) if call not in known}
    places = [*found.items(), *known.items(), *asked.items()]
    first = first_on_main(script) | _made_first(script) if places else frozenset()
    yield from (p for p in places if not under_main_first(script, p[0], first))  # under ddp.main_first() rank 0 would wait for ranks that wait for it


def _made_first(script: Script) -> frozenset[ast.stmt]:
    """The statements in which rank 0 makes missing files before the other ranks begin them."""
    enclosed = (Stretch(b.first, b.last) for b in script.builds if not b.kept and not b.apart)
    return frozenset(stmt for whole in enclosed for stmt in inside(script, whole))


def after_training(script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether training may have run before the node: an earlier statement of its function, or of a caller, reaches backward."""
    function = script.names.function(node)
    for stmt in (n for s in function.body for n in walk(s) if isinstance(n, ast.stmt)):
        if isinstance(stmt, FunctionNode | ast.ClassDef) or script.names.function(stmt) is not function:
            continue
        if position(stmt) < position(node) and not script.names.is_inside(node, stmt) and script.roles.reaches_backward(stmt):
            if not script.values.order.other_branch(node, stmt):
                return True
    for a in script.names.ancestors(node):
        if isinstance(a, Loop) and script.names.function(a) is function and script.roles.reaches_backward(a):
            return True
    if not isinstance(function, FunctionNode) or function in seen:
        return False
    return any(after_training(script, c, seen | {function}) for c in script.values.ways.get(function, []))
