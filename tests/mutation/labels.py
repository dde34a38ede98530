"""What an edit brings, in a word: the rows of the table."""

from __future__ import annotations

import ast

from dpmigrate import contract
from dpmigrate.edit import (
    AddImport,
    Comment,
    Delete,
    DropArg,
    DropItem,
    Edit,
    Enclose,
    Hoist,
    MainOnly,
    SetArg,
    SetItem,
    Wrap,
)

#: stands for ``{}`` of a template while that is looked at as Python
HOLE = "dpmigrate_hole"


def code_of(edit: Edit) -> str:
    """The code that an edit brings, as Python that parses; '' where it brings none."""
    match edit:
        case Wrap():
            return edit.template.replace("{}", HOLE)
        case Enclose():
            return f"{edit.header}\n    pass"
        case MainOnly():
            return f"{edit.prefix}({HOLE})"
        case SetArg() | SetItem():
            return edit.value
        case Hoist():
            return edit.then
        case DropArg() | DropItem() | Delete() | Comment():
            return ""
        case _:
            return edit.code


def label(edit: Edit) -> str:
    """``ddp.wrap``, ``sampler=``, ``.module``, ``Delete``: the same for all edits of a kind."""
    match edit:
        case AddImport():
            return "import"
        case SetArg():
            return f"{edit.name}="
        case SetItem():
            return f"[{edit.key!r}]="
        case DropArg():
            return f"without {edit.name}="
        case DropItem():
            return f"without [{edit.key!r}]"
    for node in ast.walk(ast.parse(code_of(edit))):  # breadth first: the outermost one counts
        if name := _of_runtime(node):
            return f"ddp.{name}"
        if isinstance(node, ast.Raise):
            return "raise"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not _holds_runtime(node):
                return f".{node.func.attr}()" if not _program_own(edit) else _name(edit)
        if isinstance(node, ast.Attribute) and _is_hole(node.value):
            return f".{node.attr}"
    return _name(edit)


def _name(edit: Edit) -> str:
    return type(edit).__name__


def _program_own(edit: Edit) -> bool:
    """Whether the calls in the edit may be the program's own, whose names say nothing."""
    return _name(edit) == "Replace"


def _is_hole(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == HOLE


def _of_runtime(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        known = node.value.id in (contract.ALIAS, contract.MODULE) and node.attr in contract.NAMES
        return node.attr if known else ""
    return ""


def _holds_runtime(call: ast.Call) -> bool:
    return any(map(_of_runtime, ast.walk(call.func)))
