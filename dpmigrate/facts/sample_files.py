"""Files of single samples: what a data set keeps of a sample when it is asked for it, under a name of that sample's own.

Every rank asks for samples of its own, so each of them makes the files of these, and reads them again; rank 0 alone would never make those of the others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.definitions import arguments, is_static, parameters
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: the methods by which a data set is asked for samples
_ASKED = ("__getitem__", "__getitems__")
#: methods of paths that change what is there
_OF_PATHS = frozenset({"write_text", "write_bytes", "touch", "unlink", "rename", "replace", "mkdir", "open"})


def is_of_one_sample(script: Script, path: ast.expr) -> bool:
    """Whether a path is written for one sample, and made of what says which sample that is."""
    function = script.names.function(path)
    if not isinstance(function, FunctionNode) or not _for_a_sample(script, function, frozenset()):
        return False
    return _by_parameters(script, function, path, {})


def keeps_one_sample(script: Script, call: ast.Call) -> bool:
    """Whether a call that writes, moves or removes a file does so for one sample: ``torch.save(x, path)``, ``np.save(path, x)``, ``path.write_bytes(x)``."""
    return any(is_of_one_sample(script, path) for path in _paths(script, call))


def _paths(script: Script, call: ast.Call) -> Iterator[ast.expr]:
    """What may be the path in a call that changes files."""
    dotted = script.names.dotted(call.func)
    if dotted == "torch.save":
        yield from filter(None, (script.argument(call, "f", 1),))
        return
    yield from call.args[: 2 if dotted.startswith(("shutil.", "os.")) else 1]
    if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_PATHS:
        yield call.func.value


def _for_a_sample(script: Script, function: FunctionNode, seen: frozenset[ast.AST]) -> bool:
    """Whether each way to a function begins where a data set is asked for a sample."""
    cls = script.values.defs.method_class(function)
    if function.name in _ASKED and cls is not None and _is_data(script, cls):
        return True
    callers = [script.names.function(c) for c in script.values.callers.get(function, [])]
    return bool(callers) and all(
        isinstance(f, FunctionNode) and f not in seen and _for_a_sample(script, f, seen | {function}) for f in callers
    )  # fmt: skip


def _is_data(script: Script, cls: ast.ClassDef) -> bool:
    defs = script.values.defs
    if any(last(b).endswith("Dataset") for k in defs.bases(cls) for b in k.bases):
        return True
    return any(v.cls is cls for c in script.train_loader_calls for v in script.values.eval(script.argument(c, "dataset", 0)))


def _by_parameters(script: Script, function: FunctionNode, expr: ast.expr, known: dict[tuple[ast.AST, str], bool]) -> bool:
    """Whether an expression is made of what a data set is asked for, through variables and the parameters of helpers.

    ``known``: of which names that is decided, or under way.
    """
    names = dict.fromkeys(n.id for n in walk(expr) if isinstance(n, ast.Name))
    return any(_is_made_of_what_is_asked(script, function, name, known) for name in names)


def _is_made_of_what_is_asked(script: Script, function: FunctionNode, name: str, known: dict[tuple[ast.AST, str], bool]) -> bool:
    """Whether a name of a function is made of what a data set is asked for; each is followed once, also where they are made of each other."""
    if (function, name) in known:
        return known[function, name]
    known[function, name] = False
    skip = 1 if script.values.defs.method_class(function) is not None and not is_static(function) else 0
    if name in parameters(function)[skip:]:
        if function.name in _ASKED:
            known[function, name] = True
            return True
        calls = [(script.names.function(c), dict(arguments(c, function, skip))) for c in script.values.callers.get(function, [])]
        if calls and all(isinstance(f, FunctionNode) and name in a and _by_parameters(script, f, a[name], known) for f, a in calls):
            known[function, name] = True
            return True
    known[function, name] = any(_by_parameters(script, function, value, known) for value in _assigned(function, name))
    return known[function, name]


def _assigned(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    """What a function gives a variable of its own, and goes over with it."""
    for n in walk(function):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(n, ast.Assign):
            targets, value = n.targets, n.value
        elif isinstance(n, ast.AnnAssign | ast.NamedExpr):
            targets, value = [n.target], n.value
        elif isinstance(n, ast.For):
            targets, value = [n.target], n.iter
        if value is not None and any(isinstance(t, ast.Name) and t.id == name for target in targets for t in walk(target)):
            yield value
