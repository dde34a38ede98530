"""How a place writes the value of an expression that stands elsewhere: in a function that the place calls, or in another file.

The answer is an expression in which every name means, at the place, the variable that it means where it was read. Where there is none the answer is
None: a text that only looks the same would mean another object, or nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.phases import Env
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Scope

Calls = Mapping[ast.Call, Env] | None


def spelled(names: Names, expr: ast.expr, place: ast.AST) -> str | None:
    """The expression as the place writes it, of variables that both see; None where one of them has no name there, or where it would run twice."""
    if any(isinstance(n, ast.Call) or n in names.computed for n in walk(expr)):
        return None
    words = {id(n): _word(names, n, names.scope_of[place]) for n in walk(expr) if isinstance(n, ast.Name)}
    if None in words.values():
        return None
    written = _Spelled(words).visit(expr)
    return f"({ast.unparse(written)})" if isinstance(written, ast.IfExp | ast.BoolOp) else ast.unparse(written)


def spelled_by_caller(
    roles: Roles, expr: ast.expr, place: ast.AST, calls: Calls = None, by: ast.AST | None = None, function: ast.AST | None = None
) -> str | None:
    """The expression of a called function as the place in a caller writes it, through what the calls hand over; None where it has no name there.

    ``calls`` are the calls of the expression's function that count, with what they give its parameters; ``by`` is the call in the function of the
    place that counts.
    """
    return _from_caller(roles, expr, roles.names.function(expr) if function is None else function, place, calls, by, frozenset())


def _from_caller(roles: Roles, expr: ast.expr, function: ast.AST, place: ast.AST, calls: Calls, by: ast.AST | None, seen: frozenset[ast.AST]) -> str | None:
    names = roles.names
    there = names.function(place)
    if function is there:
        return spelled(names, expr, place)
    if not isinstance(function, FunctionNode) or function in seen:
        return None
    for call in roles.values.callers.get(function, []):
        caller = names.function(call)
        if (calls is not None and call not in calls) or (by is not None and call is not by and caller is there):
            continue
        given = calls[call].get(expr.id) if calls is not None and isinstance(expr, ast.Name) else None
        inner = given if given is not None else _handed(roles, expr, function, call)
        found = _from_caller(roles, inner, caller, place, None, by, seen | {function}) if inner is not None else None
        if found is not None:
            return found
    return None


def _handed(roles: Roles, expr: ast.expr, function: FunctionNode, call: ast.Call) -> ast.expr | None:
    """What an expression of the called function is where it is called: an argument, the object of the method, what both see, and their parts."""
    if isinstance(expr, ast.Attribute):
        value = _handed(roles, expr.value, function, call)
        return ast.Attribute(value, expr.attr, ast.Load()) if value is not None else None
    if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant):
        value = _handed(roles, expr.value, function, call)
        return ast.Subscript(value, expr.slice, ast.Load()) if value is not None else None
    if not isinstance(expr, ast.Name):
        return None
    owner = roles.names.owner(roles.names.scope_of[expr], expr.id)
    if owner is None or owner.node is not function:
        return expr  # what stands round the function
    first = [*function.args.posonlyargs, *function.args.args][:1]
    if first and first[0].arg == expr.id and isinstance(call.func, ast.Attribute) and (function, 1) in roles.values.targets(call):
        return call.func.value if call.func.attr == function.name else None  # not the object that a class or an object makes when it is called
    return roles.passed(call, function, expr.id)


def _word(names: Names, node: ast.Name, scope: Scope) -> str | None:
    """What a scope calls the variable: its own name, another one that it is imported under, or an attribute of an imported file."""
    wanted = names.meant(node)
    if names.variable(scope, node.id) == wanted:
        return node.id
    if wanted is None or not wanted[0].is_module:
        return None
    alike = [name for name in _imported(scope) if names.variable(scope, name) == wanted]
    word = module_word(names, wanted[0], scope) if wanted[1] else None
    return alike[0] if alike else f"{word}.{wanted[1]}" if word is not None else None


def module_word(names: Names, module: Scope, scope: Scope) -> str | None:
    """The name under which a scope has one of the program's modules, as ``utils`` of ``import utils``; None where it has none."""
    return next((name for name in _imported(scope) if names.variable(scope, name) == (module, "")), None)


def _imported(scope: Scope) -> list[str]:
    """The names that the module of a scope imports."""
    return [name for name, bound in scope.module.bindings.items() if any(b.how == "import" for b in bound)]


class _Spelled(ast.NodeTransformer):
    """A copy of an expression with other names; the nodes of the program stay as they are."""

    def __init__(self, words: Mapping[int, str | None]) -> None:
        self.words = words

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self.words[id(node)] or "", mode="eval").body

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return super().generic_visit(type(node)(**{name: list(v) if isinstance(v, list) else v for name, v in ast.iter_fields(node)}))
