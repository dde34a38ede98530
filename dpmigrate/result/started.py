"""The process group is set up by what is started, and by nothing that is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.names import FunctionNode
from dpmigrate.model import is_main_guard
from dpmigrate.result.migrated import Fault, Migrated

#: what runs the training beside the main thread, and what a rank would lack there
_APART = {
    "threading.Thread": "a thread of its own, and CUDA asks each thread anew which GPU it uses",
    "multiprocessing.Process": "a process of its own, which is in no process group",
    "torch.multiprocessing.Process": "a process of its own, which is in no process group",
}


def trained_apart(m: Migrated) -> Iterator[Fault]:
    """The training in the ``run`` of a thread or a process of the program, or in what one is given
    as ``target``.
    """
    names, roles = m.after.names, m.after.roles
    if any(name == "setup" and isinstance(names.function(c), FunctionNode) for name, c in m.runtime_calls):
        return  # perhaps there
    said = "call it from the main thread, where setup() is"
    for place in (n for b in roles.backwards for n in m.after.leading_to(b)):
        function, cls = names.function(place), names.cls(place)
        bases = [names.dotted(b) for b in cls.bases] if cls is not None else []
        kind = next((b for b in bases if b in _APART), None)
        if kind and cls is not None and isinstance(function, FunctionNode) and function.name == "run":
            yield m.fault(function, f"{cls.name}.run trains in {_APART[kind]}: {said}")
            return
    for call in m.after.calls("threading.Thread"):
        target = m.after.argument(call, "target", 1)
        found = m.after.values.eval(target) if target is not None else ()
        if any(isinstance(v.node, FunctionNode) and roles.reaches_backward(v.node) for v in found):
            why = _APART["threading.Thread"]
            yield m.fault(call, f"the training is started in {why}: {said}")
            return


def set_up_at_import(m: Migrated) -> Iterator[Fault]:
    """``setup()`` that runs when a module is imported, and in a file that starts no training
    itself.
    """
    names, files = m.after.names, m.after.program.parts
    for name, call in m.runtime_calls:
        if name != "setup" or isinstance(names.function(call), FunctionNode):
            continue
        if m.index(call) < len(files) - 1:
            importer = files[-1].source.name
            words = "setup() would run when this file is imported, and not in"
            yield m.fault(call, f"{words} {importer}, which is started")
        elif not any(is_main_guard(a) for a in names.ancestors(call)) and not _trains(m):
            words = "setup() would run whenever this file is imported"
            why = "nothing in it starts the training; give the script that does"
            yield m.fault(call, f"{words}: {why}")


def _trains(m: Migrated) -> bool:
    return any(m.after.starts(b) for b in m.after.roles.backwards) or not m.after.roles.backwards


def not_set_up(m: Migrated) -> Iterator[Fault]:
    """A program with wraps in which nothing sets the process group up, or nothing ends it."""
    called = {name for name, _ in m.runtime_calls}
    for wanted in ("setup", "cleanup"):
        if "wrap" in called and wanted not in called:
            place = next(c for name, c in m.runtime_calls if name == "wrap")
            yield m.fault(place, f"the model would be wrapped here, but nothing calls {wanted}()")


def unguarded_saves(m: Migrated) -> Iterator[Fault]:
    """``torch.save`` to a file by every rank."""
    for call in m.after.roles.calls:
        if m.after.names.dotted(call.func) == "torch.save" and not _guarded(m, call):
            yield m.fault(call, f"every rank would write the file: {ast.unparse(call)}")


def _guarded(m: Migrated, call: ast.Call) -> bool:
    """Whether rank 0 alone comes to the call, or the file is another one on the other ranks."""
    names = m.after.names
    own = {
        c for name, c in m.runtime_calls if name in ("is_main", "rank", "main_path", "main_first")
    }
    if own & set(ast.walk(call)) or not m.after.starts(call):
        return True
    for n in m.after.leading_to(call):
        for a in names.ancestors(n):
            tests = [a.test] if isinstance(a, ast.If | ast.IfExp | ast.While) else []
            tests += a.values if isinstance(a, ast.BoolOp) else []
            if any(own & set(ast.walk(t)) for t in tests):
                return True
    return False
