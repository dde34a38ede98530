"""Expressions from the code of edits, put in place with the parentheses that they need and no others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, cast

import libcst as cst

from dpmigrate.rewrite.anchors import Refused, Site, code_of

_HOLE: Final = "__dpmigrate_hole__"
#: how tightly expressions bind, the loosest first; what is not named here is an atom
_LOOSE: Final = (
    ("GeneratorExp", "Tuple", "Yield", "StarredElement"),
    ("NamedExpr",),
    ("Lambda", "IfExp"),
    ("Or",),
    ("And",),
    ("Not",),
    ("Comparison",),
    ("BitOr",),
    ("BitXor",),
    ("BitAnd",),
    ("LeftShift", "RightShift"),
    ("Add", "Subtract"),
    ("Multiply", "MatrixMultiply", "Divide", "FloorDivide", "Modulo"),
    ("Minus", "Plus", "BitInvert"),
    ("Power",),
    ("Await",),
)
_RANKS: Final = {name: rank for rank, names in enumerate(_LOOSE) for name in names}
_ATOM: Final = len(_LOOSE)
#: parents whose value may be any expression without parentheses (not: tuple, generator, yield, walrus)
_ROOMY: Final = (
    cst.Arg,
    cst.Assign,
    cst.AnnAssign,
    cst.AugAssign,
    cst.Return,
    cst.Expr,
    cst.If,
    cst.While,
    cst.Element,
    cst.DictElement,
    cst.Index,
    cst.Slice,
)


@lru_cache(maxsize=512)
def parse_expression(code: str) -> cst.BaseExpression:
    """The expression that an edit gives as code."""
    try:
        return cst.parse_expression(code)
    except Exception as error:  # libcst raises more than its own ParserSyntaxError on odd input
        raise Refused(f"the inserted expression {code!r} does not parse") from error


def replace(old: cst.BaseExpression, code: str, site: Site) -> cst.BaseExpression:
    """``code`` in the place of ``old``."""
    return _fit(parse_expression(code), old, site)


def wrap(old: cst.BaseExpression, template: str, site: Site) -> cst.BaseExpression:
    """``old`` in the hole of ``template``; its own parentheses go where the hole stands between brackets anyway."""
    if template.count("{}") != 1:
        raise Refused(f"the template {template!r} needs one hole")
    outer = parse_expression(template.replace("{}", _HOLE))
    bare = _strip(old)
    argument = bare if _rank(bare) > _RANKS["NamedExpr"] else _enclosed(bare)
    stands = _rank(bare) == _ATOM and not isinstance(bare, cst.Integer)  # `1.x` is no attribute
    if isinstance(outer, cst.BinaryOperation) and isinstance(outer.left, cst.Name) and outer.left.value == _HOLE:
        stands = _rank(bare) >= _rank(outer)  # a * b in {} * c
    operand = bare if stands and not _has_newline([bare]) else _enclosed(bare)
    filled = outer.visit(_Fill(argument, operand))
    assert isinstance(filled, cst.BaseExpression)
    return _fit(filled, old, site)


def main_only(call: cst.Call, prefix: str) -> cst.Call:
    """``f(args)`` becomes ``prefix(f, args)``, the arguments laid out as before."""
    opening = call.whitespace_before_args
    gap = opening if isinstance(opening, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")
    first = cst.Arg(call.func)
    if call.args:
        first = first.with_changes(comma=cst.Comma(whitespace_after=gap))
    args = (first, *lone_generator_enclosed(call.args))
    return call.with_changes(func=parse_expression(prefix), whitespace_after_func=cst.SimpleWhitespace(""), args=args)


def lone_generator_enclosed(args: Sequence[cst.Arg]) -> tuple[cst.Arg, ...]:
    """A generator may go without parentheses only while it is the only argument."""
    return tuple(arg.with_changes(value=_enclosed(arg.value)) if isinstance(arg.value, cst.GeneratorExp) else arg for arg in args)


def name_for(old: cst.BaseExpression, name: str, site: Site) -> cst.BaseExpression:
    """The name that stands where ``old`` was hoisted from."""
    return _fit(cst.Name(name), old, site)


def standing_alone(old: cst.BaseExpression, name: str, site: Site) -> cst.BaseExpression:
    """``old`` as the right side of ``name = …`` on the level of its statement: what relied on brackets around it for its line breaks gets its own."""
    bare = cast("cst.BaseExpression", _strip(old).visit(_Shift(_shift(name, site))))
    return bare if _rank(bare) > _RANKS["NamedExpr"] and not _has_bare_newline(bare) else _enclosed(bare)


def _shift(name: str, site: Site) -> int:
    """By how many columns the further lines of an expression move: those of a hanging indent with its line, those that are aligned with its start."""
    start = site.text.rfind("\n", 0, site.start) + 1
    first, *further = site.text[site.start : site.end].split("\n")
    level = len(site.indentation)
    if first.rstrip().endswith(("(", "[", "{")):
        return level - _margin(site.text[start:])
    column = site.start - start
    return level + len(f"{name} = ") - column if all(_margin(line) > column for line in further) else 0


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class _Shift(cst.CSTTransformer):
    """Moves the lines after the first by some columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns

    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        spaces = updated_node.last_line.value
        if not self.columns or spaces.strip(" "):
            return updated_node
        return updated_node.with_changes(last_line=cst.SimpleWhitespace(" " * max(0, len(spaces) + self.columns)))


def _has_newline(nodes: Sequence[cst.CSTNode]) -> bool:
    code = code_of(nodes)
    return "\n" in code or "\r" in code


def _has_bare_newline(value: cst.BaseExpression) -> bool:
    if not _has_newline([value]):
        return False
    try:
        cst.parse_statement(f"_ = {code_of([value])}\n")
    except cst.ParserSyntaxError:
        return True
    return False


class _Fill(cst.CSTTransformer):
    """Puts an expression into the hole of a template."""

    def __init__(self, argument: cst.BaseExpression, operand: cst.BaseExpression) -> None:
        super().__init__()
        self.argument = argument
        self.operand = operand

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.operand if original_node.value == _HOLE else updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        value = original_node.value
        hole = isinstance(value, cst.Name) and value.value == _HOLE and not original_node.star
        return updated_node.with_changes(value=self.argument) if hole else updated_node


def _fit(new: cst.BaseExpression, old: cst.BaseExpression, site: Site) -> cst.BaseExpression:
    """``new`` as it must be written where ``old`` stands: parentheses of ``old`` are kept only where they still serve."""
    own = _own_parentheses(old)
    left, right = old.lpar[: len(old.lpar) - own], old.rpar[own:]
    if _has_newline([*left, *right]):  # they may hold comments
        return new.with_changes(lpar=[*left, *new.lpar], rpar=[*new.rpar, *right])
    if _touches_a_word(site):
        return _enclosed(new)
    if _rank(new) == _ATOM or (isinstance(site.parent, _ROOMY) and _rank(new) > _RANKS["NamedExpr"]):
        return new
    return new if not left and _rank(new) >= _rank(old) else _enclosed(new)


def _strip(node: cst.BaseExpression) -> cst.BaseExpression:
    """Without the parentheses around it."""
    own = _own_parentheses(node)
    return node.with_changes(lpar=node.lpar[len(node.lpar) - own :], rpar=node.rpar[:own])


def _own_parentheses(node: cst.BaseExpression) -> int:
    """How many pairs of parentheses belong to the expression itself."""
    return 1 if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar else 0


def _enclosed(node: cst.BaseExpression) -> cst.BaseExpression:
    return node if node.lpar else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _rank(node: cst.BaseExpression) -> int:
    if node.lpar:
        return _ATOM
    kind: cst.CSTNode = node
    if isinstance(node, (cst.BooleanOperation, cst.BinaryOperation, cst.UnaryOperation)):
        kind = node.operator
    return _RANKS.get(type(kind).__name__, _ATOM)


def _touches_a_word(site: Site) -> bool:
    """``return(x)`` and ``[a]if b``: without brackets of its own the new expression would run into its neighbour."""
    before, after = site.text[max(site.outer_start - 1, 0) : site.outer_start], site.text[site.outer_end : site.outer_end + 1]
    return _wordy(before) or _wordy(after)


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"
