"""When two edits mean the same: then rules that ask for both agree, whatever each of them wrote.

Code is compared by its syntax tree, so spaces, quotes and line breaks tell nothing apart. With the text of the file an edit is also compared with those that
come to the same at another anchor or in another way: ``Replace(net, "ddp.wrap(net)")`` and ``Wrap(net, "ddp.wrap({})")``.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import fields, replace
from functools import lru_cache

from dpmigrate.edit import AddImport, DropArg, DropItem, Edit, Enclose, Hoist, MainOnly, Replace, SetArg, SetItem, Wrap
from dpmigrate.model import Span

_HOLE = "__dpmigrate_hole__"
#: fields that hold code; the keys and names of arguments are none
_CODE = frozenset({"value", "code", "template", "prefix", "then", "header"})


@lru_cache(maxsize=1024)
def tree_of(code: str) -> str:
    """What code is, as text that is equal where the trees are; what does not parse is itself."""
    whole = f"{code}\n    pass\n" if code.rstrip().endswith(":") else code.replace("{}", _HOLE) if "{}" in code else code
    try:
        return ast.dump(ast.parse(whole))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code


def meaning(edit: Edit) -> Hashable:
    """What the edit asks for; where an argument stands is knowledge of the rule, and no part of it."""
    if isinstance(edit, SetArg | DropArg):
        edit = replace(edit, index=None)
    if isinstance(edit, DropArg):
        edit = replace(edit, following=())
    values = ((f.name, getattr(edit, f.name)) for f in fields(edit))
    return (type(edit), *(tree_of(value) if name in _CODE and isinstance(value, str) else value for name, value in values))


def joined(one: Edit, other: Edit) -> Edit | None:
    """Of two edits of one meaning the one that knows more; None where what they know differs."""
    if isinstance(one, SetArg | DropArg) and isinstance(other, SetArg | DropArg):
        if one.index is not None and other.index is not None and one.index != other.index:
            return None
        if other.index is not None and one.index is None:
            one = replace(one, index=other.index)
    if isinstance(one, DropArg) and isinstance(other, DropArg):
        shorter, longer = sorted((one.following, other.following), key=len)
        return replace(one, following=longer) if longer[: len(shorter)] == shorter else None
    return one


def bindings(edit: AddImport) -> frozenset[tuple[str, str]]:
    """The names that an import binds, each with what it means."""
    out = set()
    for node in ast.walk(ast.parse(edit.code)):
        if isinstance(node, ast.Import):
            out |= {(a.asname or a.name, a.name) for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            out |= {(a.asname or a.name, f"{'.' * node.level}{node.module or ''} {a.name}") for a in node.names}
    return frozenset(out)


class Places:
    """The expressions of a file by their spans: what stands at an anchor, and what an edit makes of it."""

    def __init__(self, text: str) -> None:
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.expr) and node.end_lineno is not None)
        self._nodes: dict[Span, ast.expr] = {}
        for node in nodes:  # the outermost of one span comes first
            self._nodes.setdefault(Span.of(node), node)

    def value(self, edit: Edit) -> Span | None:
        """The value of the argument or item that the edit replaces or drops; None where there is none yet."""
        match edit:
            case SetArg() | DropArg():
                return next((Span.of(v) for v in self._argument(edit)), None)
            case SetItem() | DropItem():
                return next((Span.of(v) for v in self._item(edit)), None)
        return None

    def result(self, edit: Edit) -> str | None:
        """The tree of what stands at the anchor after the edit alone, for edits that replace an expression."""
        match edit:
            case Replace():
                return _expression(edit.code)
            case Wrap() if edit.node in self._nodes:
                outer = _expression(edit.template.replace("{}", _HOLE))
                return None if outer is None else outer.replace(f"Name(id={_HOLE!r}, ctx=Load())", ast.dump(self._nodes[edit.node]))
            case MainOnly() if isinstance(call := self._nodes.get(edit.call), ast.Call):
                prefix = _expression(edit.prefix)
                whole = ast.Call(ast.Name(_HOLE, ast.Load()), [call.func, *call.args], call.keywords)
                return None if prefix is None else ast.dump(whole).replace(f"Name(id={_HOLE!r}, ctx=Load())", prefix)
            case SetArg() | SetItem():
                return _expression(edit.value)
        return None

    def _argument(self, edit: SetArg | DropArg) -> Iterator[ast.expr]:
        call = self._nodes.get(edit.call)
        if isinstance(call, ast.Call):
            yield from (k.value for k in call.keywords if k.arg == edit.name)
            before = call.args[: (-1 if edit.index is None else edit.index) + 1]
            if edit.index is not None and len(before) == edit.index + 1 and not any(isinstance(a, ast.Starred) for a in before):
                yield before[-1]

    def _item(self, edit: SetItem | DropItem) -> Iterator[ast.expr]:
        display = self._nodes.get(edit.dict)
        if isinstance(display, ast.Dict):
            pairs = zip(display.keys, display.values, strict=True)
            found = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == edit.key]
            yield from found[-1:]  # the last of several counts


def _expression(code: str) -> str | None:
    try:
        return ast.dump(ast.parse(code, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def same_header(one: Enclose | Hoist, other: Enclose | Hoist) -> bool:
    """Whether two headers say the same."""
    return tree_of(one.header) == tree_of(other.header)
