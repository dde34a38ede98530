"""Imports that the new code needs, at the end of the module's import block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from dpmigrate.rewrite.anchors import code_of
from dpmigrate.rewrite.bodies import is_docstring
from dpmigrate.rewrite.lines import Statement, leading, split_header, with_leading
from dpmigrate.rewrite.statements import parse_statements

_ENVIRONMENT = ("os.environ", "environ")
_Imported = tuple[str, str, str]


def add_imports(module: cst.Module, codes: Iterable[str]) -> cst.Module:
    """The module with the imports that it lacks."""
    there = {name for statement in module.body for name in _imported(statement)}
    missing = [code for code in codes if not there.issuperset(name for part in parse_statements(code) for name in _imported(part))]
    if not missing:
        return module
    missing.sort(key=lambda code: (code.startswith("from "), code))
    new = [statement for code in missing for statement in parse_statements(code)]
    body = list(module.body)
    place, apart = _place(body)
    if apart:  # the first imports of the module: a blank line on either side
        if place:
            new[0] = with_leading(new[0], [cst.EmptyLine(indent=False)])
        elif body:
            top, attached = split_header(module.header)
            body[0] = with_leading(body[0], (*attached, *leading(body[0])))
            module = module.with_changes(header=top)
        if place < len(body) and not _stands_apart(body[place]):
            body[place] = with_leading(body[place], [cst.EmptyLine(indent=False), *leading(body[place])])
    ends = module.has_trailing_newline or not (module.body or module.header or module.footer)  # an empty file ends as lines do
    return module.with_changes(body=[*body[:place], *new, *body[place:]], has_trailing_newline=ends)


def _place(body: Sequence[Statement]) -> tuple[int, bool]:
    """Where new imports go, and whether they have no other import above them."""
    place = 1 if body and is_docstring(body[0]) else 0
    while place < len(body) and _is_future(body[place]):
        place += 1
    last = None
    for index, statement in enumerate(body[place:], place):
        if _only_imports(statement):
            last = index
        elif not _guarded_imports(statement) and not _sets_environment(statement):
            break
    return (place, True) if last is None else (last + 1, False)


def _is_future(statement: Statement) -> bool:
    return _only_imports(statement) and any(module == "__future__" for module, _, _ in _imported(statement))


def _only_imports(statement: Statement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(isinstance(small, (cst.Import, cst.ImportFrom)) for small in statement.body)


def _guarded_imports(statement: Statement) -> bool:
    """``try: import apex`` or ``if TYPE_CHECKING: import …``: the import block may go on below it."""
    if not isinstance(statement, (cst.Try, cst.If)):
        return False
    body = statement.body
    return isinstance(body, cst.IndentedBlock) and all(
        _only_imports(inner) for inner in body.body if isinstance(inner, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    )


def _sets_environment(statement: Statement) -> bool:
    """``os.environ["OMP_NUM_THREADS"] = "1"`` before torch is imported, which reads it then: the runtime imports torch too."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    small = statement.body[0]
    if isinstance(small, cst.Assign):
        return all(isinstance(t.target, cst.Subscript) and code_of([t.target.value]) in _ENVIRONMENT for t in small.targets)
    call = small.value if isinstance(small, cst.Expr) else None
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and code_of([call.func.value]) in _ENVIRONMENT


def _stands_apart(statement: Statement) -> bool:
    lines = leading(statement)
    return bool(lines) and lines[0].comment is None


def _imported(statement: cst.CSTNode) -> Iterator[_Imported]:
    """What a line imports: from where, which name, as what."""
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Import):
            yield from (("", code_of([alias.name]), _as(alias)) for alias in small.names)
        elif isinstance(small, cst.ImportFrom):
            module = code_of([*small.relative, *([small.module] if small.module else [])])
            if isinstance(small.names, cst.ImportStar):
                yield module, "*", ""
            else:
                yield from ((module, code_of([alias.name]), _as(alias)) for alias in small.names)


def _as(alias: cst.ImportAlias) -> str:
    return "" if alias.asname is None else code_of([alias.asname.name])
