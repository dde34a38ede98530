"""Decisions that may fall out differently on different ranks.

A test is *uniform* when it is made only of settings, loop counters and constants: the same on every rank. Whatever comes from
data, from the model, from the clock or from a call that is not known may differ; a rank that leaves a loop alone makes the
others wait for ever.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.facts.names import FunctionNode, Loop, Names
from dpmigrate.facts.roles import Roles

_UNIFORM_CALLS = frozenset(
    {"?.len", "?.range", "?.int", "?.min", "?.max", "?.isinstance", "?.hasattr", "?.getattr", "?.bool", "?.abs", "?.float", "?.round", "?.str"}
    | {"os.path.exists", "os.path.isfile", "os.path.isdir", "torch.cuda.is_available", "math.floor", "math.ceil", "os.path.join", "os.environ.get"}
)


@dataclass(frozen=True, eq=False, slots=True)
class Exit:
    """A ``break``, ``continue``, ``return`` or ``sys.exit`` under tests inside a loop, with the first test that may differ."""

    node: ast.stmt
    loop: Loop
    test: ast.expr | None


def exits(names: Names, roles: Roles, loop: Loop) -> Iterator[Exit]:
    """The early ends of a loop: leaving it, skipping the rest of a turn, or ending the program from inside."""
    for n in ast.walk(loop):
        if not isinstance(n, ast.Break | ast.Continue | ast.Return | ast.Expr) or names.function(n) is not names.function(loop):
            continue
        if isinstance(n, ast.Expr) and not is_exit(names, n):
            continue
        inner = next((a for a in names.ancestors(n) if isinstance(a, Loop)), None)
        if isinstance(n, ast.Break | ast.Continue) and inner is not loop:
            continue
        if isinstance(n, ast.Return | ast.Expr) and inner is not loop and inner is not None and any(b.node is inner for b in roles.batch_loops):
            continue
        tests = [a.test for a in names.ancestors(n) if isinstance(a, ast.If) and names.is_inside(a, loop)]
        caught = any(isinstance(a, ast.ExceptHandler) and names.is_inside(a, loop) for a in names.ancestors(n))
        varying = [t for t in tests if not uniform(names, t)]
        if caught or varying:
            yield Exit(n, loop, varying[0] if varying and not caught else None)


def is_exit(names: Names, node: ast.AST) -> bool:
    """``sys.exit()``, ``exit()``, ``quit()``, ``os._exit()`` as a statement."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and names.dotted(node.value.func) in ("sys.exit", "?.exit", "?.quit", "os._exit")


def uniform(names: Names, node: ast.AST, depth: int = 5) -> bool:
    """Whether the expression has the same value on every rank, as far as it can be proved."""
    if depth == 0:
        return False
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and names.dotted(n.func) not in _UNIFORM_CALLS and not _text_method(n):
            return False
        if isinstance(n, ast.Await | ast.Yield | ast.Lambda | ast.ListComp | ast.GeneratorExp):
            return False
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and not _uniform_name(names, n, depth):
            return False
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self" and not _uniform_attribute(names, n, depth):
            return False
    return True


def _text_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("startswith", "endswith", "lower", "upper", "strip")


def _uniform_name(names: Names, node: ast.Name, depth: int) -> bool:
    scope = names.scope_of[node]
    bindings = list(names.bindings(scope, node.id))
    if not bindings:
        return names.owner(scope, node.id) is None  # a builtin
    for b in bindings:
        if b.how in ("import", "def", "class", "param"):
            continue
        if b.how == "for":
            if not (isinstance(b.value, ast.Call) and (_counts(names, b.value) or (_enumerates(b.value) and b.path[:2] == ("*", 0)))):
                return False
        elif b.how == "aug":
            assert isinstance(b.value, ast.AugAssign)
            if not isinstance(b.value.value, ast.Constant) or _under_varying_test(names, b.value, depth):
                return False
        elif b.how == "assign" and b.value is not None:
            if names.is_inside(node, b.value):
                continue
            if isinstance(b.value, ast.Call) and _settings(names, b.value):
                continue
            if not uniform(names, b.value, depth - 1) or _under_varying_test(names, b.target, depth):
                return False
        else:
            return False
    return True


def _under_varying_test(names: Names, node: ast.AST, depth: int) -> bool:
    """A counter that only some ranks count up is not uniform: the tests round it decide."""
    for a in names.ancestors(node):
        if isinstance(a, FunctionNode):
            return False
        if isinstance(a, ast.If) and not uniform(names, a.test, depth - 2 if depth > 2 else 0):
            return True
        if isinstance(a, ast.ExceptHandler):
            return True
    return False


def _uniform_attribute(names: Names, node: ast.Attribute, depth: int) -> bool:
    """An attribute of self that is set only from uniform values."""
    for n in names.nodes:
        if isinstance(n, ast.Attribute) and n.attr == node.attr and isinstance(n.ctx, ast.Store):
            stmt = names.statement(n)
            if isinstance(stmt, ast.AugAssign):
                if not isinstance(stmt.value, ast.Constant) or _under_varying_test(names, stmt, depth):
                    return False
            elif (
                (isinstance(stmt, ast.Assign) and not uniform(names, stmt.value, depth - 1))
                or not isinstance(stmt, ast.Assign | ast.AnnAssign)
                or _under_varying_test(names, stmt, depth)
            ):
                return False
    return True


def _counts(names: Names, call: ast.Call) -> bool:
    dotted = names.dotted(call.func)
    return dotted in ("?.range", "itertools.count", "tqdm.trange", "tqdm.auto.trange", "tqdm.tqdm") and all(uniform(names, a, 3) for a in call.args)


def _enumerates(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "enumerate"


def _settings(names: Names, call: ast.Call) -> bool:
    """A call that reads the command line or builds a configuration."""
    attr = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    return attr in ("parse_args", "parse_known_args", "Namespace", "get_args", "parse", "ArgumentParser", "Config", "get_config", "load_config", "safe_load")
