"""Random programs whose control flow mixes what all ranks have with what each has of its own.

``python -m tests.execution.random_ranks --count 20000`` prints the programs, made as small as they
get, of which the execution on paper says what is not so.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from textwrap import indent

from tests.execution.two_ranks import Verdict, judged

#: what a user may choose: the same on all ranks, and not known on paper
CHOICES: tuple[dict[str, str], ...] = ({"N": "0"}, {"N": "1"}, {"N": "2"})
HEAD = "import os\nimport dpmigrate_runtime as ddp\nimport torch\nrank = ddp.rank()\nn = int(os.environ['N'])\n"
NUMBERS = "a", "b", "c", "r", "v"
LISTS = "l", "m"
DICTS = "d", "e"
TENSORS = "t", "u"
OBJECTS = "o", "p"
KEYS = "0", "1", "'k'", "rank", "n", "a", "b"
START = """\
class Box:
    def __init__(self, v):
        self.v = v
        self.w = 0
def meet(v):
    ddp.barrier()
    return v
a, b, c, v = 1, 0, 2, 0
r = rank
l, m = [0, 1], []
d, e = {0: 1}, {}
s = {0}
t = torch.zeros(2)
u = torch.zeros(2)
o, p = Box(n), Box(0)
"""


class Maker:
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.functions: list[str] = []
        self.generators: list[str] = []
        self.inner = 0
        self.loops = 0
        #: how many ``try`` statements stand round what is made
        self.guarded = 0

    def program(self) -> str:
        """The text of a program."""
        parts = [HEAD, START]
        for i in range(self.r.randrange(3)):
            parts.append(self.function(f"f{i}"))
            self.functions.append(f"f{i}")
        if self.r.random() < 0.4:
            parts.append(self.generator("g"))
            self.generators.append("g")
        parts.append(self.body(self.r.randint(3, 8), 0))
        return "".join(parts)

    # ------------------------------------------------------------ expressions

    def number(self, deep: int = 0) -> str:
        """A number."""
        r = self.r
        if deep > 2 or r.random() < 0.35:
            return r.choice(["0", "1", "2", "n", "rank", "r", *NUMBERS, *NUMBERS])
        x, y = (lambda: self.number(deep + 1)), r.choice
        box, listed, dic = y(OBJECTS), self.listed(deep + 1), y(DICTS)
        kinds = [
            lambda: f"({x()} {y('+-*')} {x()})",
            lambda: f"({x()} if {self.test(deep + 1)} else {x()})",
            lambda: f"({x()} {y(['and', 'or'])} {x()})",
            lambda: f"len({y([listed, dic, 's'])})",
            lambda: f"{dic}.get({y(KEYS)}, {x()})",
            lambda: f"{dic}.pop({y(KEYS)}, {x()})",
            lambda: f"{dic}.setdefault({y(KEYS)}, {x()})",
            lambda: f"{y(LISTS)}.count({x()})",
            lambda: f"{box}.{y('vw')}",
            lambda: f"getattr({box}, {y([repr('v'), repr('z')])}, {x()})",
            lambda: f"sum({listed})",
            lambda: f"sum({dic}.values())",
            lambda: f"{y(['max', 'min'])}({listed}, default={x()})",
            lambda: f"{y(['max', 'min'])}({listed}, key=lambda q: q * {x()}, default={x()})",
            lambda: f"{y(['max', 'min'])}({x()}, {x()})",
            lambda: f"next(iter({y([listed, dic])}), {x()})",
            lambda: f"next((q for q in {listed} if {self.test(deep + 1, 'q')}), {x()})",
            lambda: f"int({y(TENSORS)}[{y('01')}])",
            lambda: f"{y(['abs', 'int', 'bool', 'meet'])}({x()})",
            lambda: f"(v := {x()})",
        ]
        if self.guarded:
            kinds += [
                lambda: f"{dic}[{y(KEYS)}]",
                lambda: f"{y(LISTS)}[{y(['0', '-1', 'rank', 'n'])}]",
                lambda: f"{y(LISTS)}.pop()",
                lambda: f"{x()} {y(['//', '%'])} {x()}",
            ]
        if self.functions:
            kinds += [lambda: f"{y(self.functions)}({x()})"] * 3
        if self.generators:
            kinds.append(lambda: f"next({y(self.generators)}({x()}), {x()})")
        made: str = r.choice(kinds)()
        return made

    def listed(self, deep: int = 0) -> str:
        """A list or another iterable of numbers."""
        r, y = self.r, self.r.choice
        if deep > 2 or r.random() < 0.4:
            return y(LISTS)

        def x() -> str:
            return self.number(deep + 1)

        kinds = [
            lambda: f"[{x()}, {x()}]",
            lambda: f"list({y(DICTS)})",
            lambda: f"list({y(DICTS)}.values())",
            lambda: f"sorted({self.listed(deep + 1)})",
            lambda: f"sorted({self.listed(deep + 1)}, key=lambda q: {y(['-q', 'q * rank', 'q % 2'])})",
            lambda: f"[{self.each(deep)} for q in {self.listed(deep + 1)}]",
            lambda: f"[{self.each(deep)} for q in {self.listed(deep + 1)} if {self.test(deep + 1, 'q')}]",
            lambda: f"list(range({y(['2', 'n', 'rank', 'a', '20'])}))",
            lambda: f"({y(LISTS)} + {self.listed(deep + 1)})",
            lambda: f"{y(LISTS)}[{y([':1', '1:', ':n', 'rank:', '::-1'])}]",
            lambda: f"list(map(lambda q: {self.each(deep)}, {self.listed(deep + 1)}))",
            lambda: f"list(filter(lambda q: {self.test(deep + 1, 'q')}, {self.listed(deep + 1)}))",
            lambda: f"[q + w for q, w in zip({self.listed(deep + 1)}, {self.listed(deep + 1)})]",
            lambda: f"[q * w for q, w in enumerate({self.listed(deep + 1)})]",
            lambda: f"list(reversed({y(LISTS)}))",
            lambda: f"list({{q: 1 for q in {self.listed(deep + 1)}}})",
            lambda: f"({y(LISTS)} * {y(['2', 'n', 'rank', 'a'])})",
            lambda: "sorted(s)",
        ]
        if self.generators:
            kinds.append(lambda: f"list({y(self.generators)}({x()}))")
        made: str = r.choice(kinds)()
        return made

    def each(self, deep: int) -> str:
        return self.r.choice(["q", "q", "q + 1", f"q * {self.number(deep + 2)}", "meet(q)"])

    def test(self, deep: int = 0, name: str = "") -> str:
        """A condition."""
        y = self.r.choice

        def x() -> str:
            return name if name and self.r.random() < 0.6 else self.number(deep + 1)

        kinds = [
            lambda: f"{x()} {y(['==', '>', '<', '!='])} {x()}",
            lambda: f"{x()} {y(['==', '>', '<', '!='])} {x()}",
            lambda: y(["rank", "n", "rank == 0", "n > 1"]),
            lambda: f"{y(KEYS)} {y(['in', 'not in'])} {y([*DICTS, *LISTS, 's'])}",
            lambda: f"{y(['', 'not '])}{y([*DICTS, *LISTS, 's'])}",
            lambda: f"not {x()}",
            lambda: f"({self.test(deep + 1, name)} {y(['and', 'or'])} {self.test(deep + 1, name)})",
            lambda: f"{y(DICTS)}.get({y(KEYS)}) is None",
            lambda: f"hasattr({y(OBJECTS)}, {y([repr('v'), repr('z')])})",
            lambda: f"{y(['any', 'all'])}({self.each(deep)} for q in {self.listed(deep + 1)})",
            lambda: f"{y(['any', 'all'])}({self.test(deep + 1, 'q')} for q in {self.listed(deep + 1)})",
            lambda: f"isinstance({x()}, {y(['bool', 'int', 'float'])})",
            lambda: "o is p",
            lambda: f"{y(LISTS)} == {y(LISTS)}",
            lambda: f"bool(({y(TENSORS)} > {x()}).any())",
        ]
        made: str = y(kinds[:1] if deep > 2 else kinds)()
        return made

    # ------------------------------------------------------------ statements

    def body(self, count: int, deep: int) -> str:
        """Statements in a row."""
        return "".join(self.statement(deep) for _ in range(count))

    def block(self, deep: int) -> str:
        return indent(self.body(self.r.choice([1, 1, 2, 3]), deep + 1), "    ")

    def statement(self, deep: int) -> str:
        """A statement with its end of line."""
        r = self.r
        if deep < 3 and r.random() < 0.5 - 0.1 * deep:
            return self.compound(deep)
        return self.plain(deep) + "\n"

    def plain(self, deep: int) -> str:
        y, x = self.r.choice, self.number
        box = y(OBJECTS)
        kinds = [
            lambda: f"{y(NUMBERS)} = {x()}",
            lambda: f"{y(NUMBERS)} = {x()}",
            lambda: f"{y(NUMBERS)} {y('+-*')}= {x(1)}",
            lambda: "ddp.barrier()",
            lambda: "ddp.barrier()",
            lambda: "print(1)",
            lambda: f"{y(DICTS)}[{y(KEYS)}] = {x(1)}",
            lambda: f"{y(DICTS)}[{y(KEYS)}] = {x(1)}",
            lambda: f"{y(DICTS)}.update({y([*DICTS, '{n: 1}', '{rank: n}', '{0: rank}'])})",
            lambda: f"{y(DICTS)} = {y(['dict(d)', 'd.copy()', '{}', '{**d, **e}', '{q: w for q, w in d.items()}'])}",
            lambda: f"{y(LISTS)}.append({x(1)})",
            lambda: f"{y(LISTS)}.append({x(1)})",
            lambda: f"{y(LISTS)}.{y(['clear()', 'sort()', 'reverse()', 'extend(l[:2])', 'insert(rank, n)', 'insert(0, rank)'])}",
            lambda: f"{y(LISTS)} = {self.listed()}",
            lambda: f"{y(LISTS)} += {self.listed(1)}[:2]",
            lambda: f"s.{y(['add', 'discard'])}({x(1)})",
            lambda: f"{box}.{y('vwz')} = {x(1)}",
            lambda: f"{box} = {y([*OBJECTS, f'Box({x(1)})', 'o if rank else p'])}",
            lambda: f"{y(TENSORS)}[{y('01')}] {y(['', '+'])}= {x(1)}",
            lambda: f"{y(TENSORS)}.{y(['add_', 'fill_', 'mul_'])}({x(1)})",
            lambda: f"{y(TENSORS)} += {x(1)}",
            lambda: f"{y(TENSORS)} = {y([*TENSORS, 'torch.zeros(2)', 't + 1', 't.view(2)', 'u.clone()', 'torch.full((2,), float(r))'])}",
            lambda: f"{y(NUMBERS)}, {y(NUMBERS)} = {x(1)}, {x(1)}",
        ]
        if self.guarded:
            kinds += [
                lambda: f"del {y(DICTS)}[{y(KEYS)}]",
                lambda: f"{y(LISTS)}[{y(['0', '-1', 'rank', 'n'])}] = {x(1)}",
                lambda: f"{y(LISTS)}.{y(['pop()', 'remove(0)'])}",
                lambda: f"raise {y(['ValueError', 'KeyError'])}",
            ]
        if self.loops:
            kinds += [lambda: y(["break", "continue"])] * 2
        if self.inner:
            kinds += [lambda: f"return {x(1)}"] * 2
        made: str = y(kinds)()
        return made

    def compound(self, deep: int) -> str:
        r, y = self.r, self.r.choice
        kind = y(["if", "if", "if", "for", "for", "while", "try", "try", "with"])
        if kind == "if":
            more = f"else:\n{self.block(deep)}" if r.random() < 0.4 else ""
            return f"if {self.test()}:\n{self.block(deep)}{more}"
        if kind == "for":
            target, source = y(
                [
                    ("v", f"range({y(['2', 'n', 'rank', 'a', '20'])})"),
                    ("v", self.listed()),
                    ("v", y(DICTS)),
                    ("v, c", f"{y(DICTS)}.items()"),
                    ("v, c", f"enumerate(list({self.listed(1)}))"),
                    ("v, c", f"zip(list({self.listed(1)}), {self.listed(1)})"),
                    ("v", "sorted(s)"),
                    *([("v", f"{y(self.generators)}({self.number(1)})")] if self.generators else []),
                ]
            )
            if source in LISTS:
                source = f"list({source})"  # a list that grows in its loop would not end
            if (source in DICTS or source.endswith(".items()")) and r.random() < 0.7:
                source = f"list({source})"
            self.loops += 1
            body = self.block(deep)
            self.loops -= 1
            more = f"else:\n{self.block(deep)}" if r.random() < 0.25 else ""
            return f"for {target} in {source}:\n{body}{more}"
        if kind == "while":
            self.loops += 1
            body = self.block(deep)
            self.loops -= 1
            more = f"else:\n{self.block(deep)}" if r.random() < 0.2 else ""
            count = f"i{deep}{r.randrange(10)}"
            return f"{count} = 0\nwhile {count} < {y(['3', 'n', 'rank', '15'])} and {self.test()}:\n    {count} += 1\n{body}{more}"
        if kind == "with":
            return f"with torch.no_grad():\n{self.block(deep)}"
        self.guarded += 1
        body = self.block(deep)
        self.guarded -= 1
        caught = y(["Exception", "Exception", "ValueError", "KeyError", "Exception", "(KeyError, IndexError)", "ZeroDivisionError", "IndexError"])
        more = f"else:\n{self.block(deep)}" if r.random() < 0.25 else ""
        more += f"finally:\n{self.block(deep)}" if r.random() < 0.15 else ""
        return f"try:\n{body}except {caught}:\n{self.block(deep)}{more}"

    def function(self, name: str) -> str:
        loops, self.loops = self.loops, 0
        guarded, self.guarded = self.guarded, 0
        self.inner += 1
        names = self.r.choice(["", f"    global {self.r.choice('abcv')}\n"])
        local = "    a = b = c = v = r = x\n"
        if names:
            local = "    " + " = ".join(w for w in NUMBERS if w != names.strip()[-1]) + " = x\n"
        body = indent(self.body(self.r.randint(1, 3), 1), "    ")
        self.inner -= 1
        self.loops, self.guarded = loops, guarded
        lists = "    global d, e, l, m, t, u, o, p\n"
        return f"def {name}(x):\n{lists}{names}{local}{body}    return x\n"

    def generator(self, name: str) -> str:
        y = self.r.choice
        test = self.test(2, "x")
        return (
            f"def {name}(x):\n"
            f"    {y(['yield x', 'ddp.barrier()', 'pass'])}\n"
            f"    if {test}:\n        {y(['yield n', 'return', 'ddp.barrier()'])}\n"
            f"    for q in range({y(['2', 'n', 'rank', 'x'])}):\n        yield q\n"
        )


def program(seed: int) -> str:
    """A program of a seed."""
    return Maker(seed).program()


# ---------------------------------------------------------------- made small


def smaller(text: str) -> Iterator[str]:
    """The same program with less in it, the least first."""
    tree = ast.parse(text)
    bodies = [
        (node, field)
        for node in ast.walk(tree)
        for field in ("body", "orelse", "finalbody", "handlers")
        if isinstance(getattr(node, field, None), list)
    ]
    for node, field in bodies:
        held = getattr(node, field)
        least = 1 if field == "body" and not isinstance(node, ast.Module) else 0
        for size in (4, 2, 1):
            for i in range(0, len(held), size):
                rest = [*held[:i], *held[i + size :]]
                if len(rest) < least:
                    rest = [ast.Pass()]
                if [type(x) for x in rest] != [type(x) for x in held]:
                    setattr(node, field, rest)
                    yield _written(tree)
                    setattr(node, field, held)
        for i, statement in enumerate(held):
            for arm in ("body", "orelse"):
                within = getattr(statement, arm, None)
                if isinstance(within, list) and within and not isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.ExceptHandler):
                    setattr(node, field, [*held[:i], *within, *held[i + 1 :]])
                    yield _written(tree)
                    setattr(node, field, held)
    kept = [s for s in tree.body if ast.unparse(s) in HEAD]
    inside = {n for s in kept for n in ast.walk(s)}
    for parent in ast.walk(tree):
        if parent in inside:
            continue
        for field, old in ast.iter_fields(parent):
            for i, one in enumerate(old if isinstance(old, list) else [old]):
                if not isinstance(one, ast.expr) or isinstance(getattr(one, "ctx", None), ast.Store):
                    continue
                inner = [x for x in ast.iter_child_nodes(one) if isinstance(x, ast.expr)]
                if isinstance(one, ast.Call):
                    inner = inner[1:]  # a function in place of its result is another program
                for new in [*inner, ast.Constant(0), ast.Constant(1)]:
                    if isinstance(one, ast.Name | ast.Constant | ast.Attribute):
                        continue
                    if isinstance(old, list):
                        old[i] = new
                        yield _written(tree)
                        old[i] = one
                    else:
                        setattr(parent, field, new)
                        yield _written(tree)
                        setattr(parent, field, old)


def _written(tree: ast.AST) -> str:
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except Exception:
        return ""


def shrunk(text: str, rounds: int = 600) -> str:
    """The smallest program of which something wrong is said still."""
    tries = 0
    again = True
    while again and tries < rounds:
        again = False
        for new in smaller(text):
            tries += 1
            if tries > rounds:
                break
            if len(new) < len(text) and wrong(new):
                text, again = new, True
                break
    return text


def wrong(text: str) -> list[str]:
    """What is said of a program and is not so."""
    try:
        compile(text, "<ranks>", "exec")
    except (SyntaxError, ValueError):
        return []
    try:
        return verdict(text).wrong
    except RecursionError:
        return []


def verdict(text: str) -> Verdict:
    """What is said of a program."""
    return judged(text, CHOICES)


def main() -> None:
    """Run many programs and print what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--shapes", action="store_true", help="programs of random_shapes")
    args = parser.parse_args()
    made = program
    if args.shapes:
        from tests.execution.random_shapes import program as made
    total, bad, skipped, shown = Verdict(), 0, 0, 0
    for seed in range(args.first, args.first + args.count):
        text = made(seed)
        found = verdict(text)
        skipped += bool(found.skipped)
        total.equal += found.equal
        total.told += found.told
        total.together += found.together
        total.settled += found.settled
        if found.wrong:
            bad += 1
            if shown < args.show:
                shown += 1
                small = shrunk(ast.unparse(ast.parse(text)) + "\n")
                print(f"---- {seed}: {wrong(small)[:3]}\n{small}", flush=True)
    print(f"{args.count} programs, {skipped} skipped, {bad} of which something wrong is said")
    print(f"{total.told} of {total.equal} equal values and {total.settled} of {total.together} places are told")


if __name__ == "__main__":
    main()
