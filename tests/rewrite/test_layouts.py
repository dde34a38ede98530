"""Statements under a new header, in every layout: what moves is the program, and what does not move are lines on which nothing stands."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator

import pytest

from dpmigrate.edit import Before, Comment, Edit, Enclose, Hoist
from dpmigrate.model import Span
from dpmigrate.rewrite.apply import apply
from dpmigrate.rewrite.compose import Plan
from dpmigrate.rewrite.verify import verify

MAIN, FIRST, INNER = "if ddp.is_main():", "with ddp.main_first():", "with torch.no_grad():"
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class Layouts:
    """Programs with all that makes a layout hard, drawn at random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.unit = self.chance.choice(["    ", "  ", "\t", "   "])
        self.newline = self.chance.choice(["\n", "\n", "\r\n"])
        self.shared = seed % 3 == 0  # lines with several statements

    def program(self) -> str:
        lines = [*self.trivia("", 2), *self.block("", 3), *self.trivia("", 2)]
        text = self.newline.join(lines)
        end = self.chance.choice(["", self.newline, self.newline, self.newline + "  "])
        return text + end

    def trivia(self, level: str, most: int = 3) -> list[str]:
        """Empty lines, lines of white space only, comments where they should stand and elsewhere."""
        some = ["", "", level, level + " ", level + self.unit, level + self.unit + "\t ", " ", "\t", "\f", level + "\f", level[1:]]
        some += [f"{level}# c", f"{level}# c", f"{level}{self.unit}# deep", f"{level} # odd", "# zero", f"{level[1:]}# less"]
        return [self.chance.choice(some) for _ in range(self.chance.randrange(most + 1))]

    def block(self, level: str, depth: int) -> list[str]:
        out: list[str] = []
        for _ in range(self.chance.randrange(1, 4)):
            out += [*self.trivia(level), *self.statement(level, depth)]
        return [*out, *self.trivia(level, 2)]

    def statement(self, level: str, depth: int) -> list[str]:
        if depth and self.chance.random() < 0.5:
            return self.compound(level, depth - 1)
        deeper = level + self.unit
        kinds = [
            ["a = 1"],
            ["a = f(b)  # behind"],
            ["a = f(", f"{deeper}1,", *self.trivia(deeper), f"{deeper}2,", f"{level})"],
            ["a = f(1,", f"{level}      2, [", f"{level}", "  3,", f"{level}])"],
            ['s = """one', "   ", f"{deeper}two", "", '"""'],
            ["s = '''", f"{level}\\", "  x\t", "''', 1"],
            ["a = 1 + \\", f"{deeper}2 + \\", f"{deeper}  3"],
            ["a = 1 + \\", "2"],
            ["assert a, \\", f"{level}b"],
            ['s = f"""{', f"{deeper}a", f"{level}", f'{level}}} b', ' """'],
            ["del a"],
        ]
        if self.shared:
            kinds += [["a; b; c"], ["if a: b; c"], ["a; b = f(", f"{deeper}1", f"{level})"]]
        first, *further = self.chance.choice(kinds)
        return [level + first, *further]

    def compound(self, level: str, depth: int) -> list[str]:
        inner = level + self.unit
        heads = [
            ["if a:", None],
            ["if a or b:  # behind", None, "else:", None],
            ["if a:", None, "elif b:", None, "else:", None],
            ["for a in b:", None, "else:", None],
            ["while a and \\", f"{inner}{self.unit}b:", None],
            ["try:", None, "except (A,", f"{inner}B):", None, "finally:", None],
            ["with a as b:", None],
            ["@d", "def f(a,", f"{inner}  b=1):", None],
            ["class A:", None],
            ["match a:", f"{inner[len(level) :]}case 1:", None],
        ]
        out: list[str] = []
        inside = level
        for head in self.chance.choice(heads):
            if head is None:
                out += [*self.trivia(inside + self.unit, 1), *self.block(inside + self.unit, depth)]
                inside = level
            elif head.startswith((self.unit, inner)) and "case" not in head:
                out.append(head)
            else:
                out.append(level + head)
                inside = inner if "case" in head else level
        return out


def bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The lists of siblings that edits may name."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            elif_ = isinstance(node, ast.If) and name == "orelse" and isinstance(body, list) and len(body) == 1 and isinstance(body[0], ast.If)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt) and not elif_:
                yield body


def ranges(text: str, chance: random.Random) -> list[Edit]:
    """One header, and at times another one inside of it."""
    tree = ast.parse(text)
    body = chance.choice(list(bodies(tree)))
    first = chance.randrange(len(body))
    last = chance.randrange(first, len(body))
    edits: list[Edit] = [Enclose(Span.of(body[first]), Span.of(body[last]), chance.choice([MAIN, FIRST]))]
    inner = [b for one in body[first : last + 1] for b in bodies(ast.Module([one], [])) if b != [one]]
    if inner and chance.random() < 0.5:
        within = chance.choice(inner)
        edits.append(Enclose(Span.of(within[0]), Span.of(within[-1]), INNER))
    if chance.random() < 0.2:
        edits.append(Before(Span.of(body[first]), "new()\n\nnew()"))
    if chance.random() < 0.2:
        edits.append(Comment(Span.of(body[last]), ("# TODO",)))
    return edits


class Without(ast.NodeTransformer):
    """The program without what the edits put in."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(body := getattr(node, name, None), list):
                setattr(node, name, [inner for one in body for inner in self.opened(one)])
        if isinstance(node, ast.If) and isinstance(node.test, ast.BoolOp) and ast.unparse(node.test.values[-1]) == "ddp.is_main()":
            node.test = node.test.values[0] if len(node.test.values) == 2 else ast.BoolOp(node.test.op, node.test.values[:-1])
        return node

    def opened(self, node: ast.AST) -> list[ast.AST]:
        code = ast.unparse(node)
        if code == "new()":
            return []
        return list(node.body) if code.startswith((MAIN, FIRST, INNER)) else [node]  # type: ignore[attr-defined]


def without(text: str) -> str:
    return ast.dump(Without().visit(ast.parse(text)))


def blanks(text: str) -> list[str]:
    return [line for line in _LINES.findall(text) if not line.strip(" \t\f\r\n") and line.strip("\r\n")]


def bare(text: str, dropped: tuple[str, ...] = ()) -> list[str]:
    lines = [line.strip() for line in _LINES.findall(text)]
    return [line for line in lines if line and line not in dropped]


@pytest.mark.parametrize("seed", range(200))
def test_what_goes_under_a_header_keeps_its_text(seed: int) -> None:
    layouts = Layouts(seed)
    text = layouts.program()
    edits = ranges(text, layouts.chance)
    plan = Plan(tuple(edits))

    after = apply(text, plan)

    assert verify(text, after, plan) == ()
    assert without(after) == without(text)
    assert blanks(after) == blanks(text)  # byte for byte, wherever they stand
    assert ("\r\n" in text) == ("\r\n" in after)
    if not layouts.shared and "ddp.is_main()" not in re.sub(r"^\s*if ddp\.is_main\(\):", "", after, flags=re.M):
        assert bare(after, (MAIN, FIRST, INNER, "new()", "# TODO")) == bare(text)


BLOCK = Span(2, 4, 6, 11)


@pytest.mark.parametrize(
    ("text", "edits", "expected"),
    [
        pytest.param(
            "for a in b:\n    if a:\n        c\n        \n        # d\n        e()\n        \n    # f\n    g\n",
            [Enclose(BLOCK, BLOCK, FIRST)],
            "for a in b:\n    with ddp.main_first():\n        if a:\n            c\n        \n            # d\n            e()\n        \n    # f\n    g\n",
            id="white space inside and below",
        ),
        pytest.param(
            "if a:\n    b = c + \\\n        d\n    \n    e\n",
            [Enclose(Span(2, 4, 3, 9), Span(5, 4, 5, 5), MAIN)],
            "if a and ddp.is_main():\n    b = c + \\\n        d\n    \n    e\n",
            id="a guard in the test above moves nothing",
        ),
        pytest.param(
            "if a: b = c + \\\n  d\n",
            [Enclose(Span(1, 6, 2, 3), Span(1, 6, 2, 3), MAIN)],
            "if a and ddp.is_main():\n    b = c + \\\n  d\n",
            id="a guard in the test above a one-line suite",
        ),
        pytest.param(
            "if a:\n    for b in f(c, \\\n             d):\n        \n        e\n",
            [Hoist(Span(2, 13, 3, 15), "n", header=FIRST)],
            "if a:\n    with ddp.main_first():\n        n = f(c, \\\n                 d)\n    for b in n:\n        \n        e\n",
            id="an expression under a header of its own",
        ),
        pytest.param(
            "if a:\n    b\n# zero\n    # deep\nc\n",
            [Enclose(Span(1, 0, 2, 5), Span(1, 0, 2, 5), MAIN)],
            "if ddp.is_main():\n    if a:\n        b\n# zero\n        # deep\nc\n",
            id="a comment of the block below one that is not",
        ),
        pytest.param(
            "def f():\n    a\n    \n\n\t\ndef g():\n    b\n",
            [Before(Span(6, 0, 7, 5), "new")],
            "def f():\n    a\n    \n\n\t\nnew\n\n\ndef g():\n    b\n",
            id="new blank lines are empty",
        ),
    ],
)
def test_layout(text: str, edits: list[Edit], expected: str) -> None:
    plan = Plan(tuple(edits))

    after = apply(text, plan)

    assert expected == after
    assert () == verify(text, after, plan)
