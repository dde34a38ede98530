"""Random programs like those of ``random_ranks`` with more of Python in them: classes with special
methods and properties, closures, generators that are left early, keys, caches, context managers,
``match``, aliases through containers, exceptions that go through calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent

from tests.execution.random_ranks import HEAD, KEYS, LISTS, OBJECTS, START, TENSORS, Maker

_HEAD = "import contextlib\nimport functools\n" + HEAD
_MORE = "k = [l, m]\nz = (l, d)\nw = iter([0, 1, 2, 3])\nq = 0\n"
_GLOBALS = "    global d, e, l, m, t, u, o, p, k, z, w\n"
#: special methods of a class, and what stands behind their names
_SPECIAL = {
    "__bool__": "(self)", "__len__": "(self)", "__contains__": "(self, x)", "__getitem__": "(self, x)",
    "__setitem__": "(self, x, y)", "__getattr__": "(self, x)", "__eq__": "(self, x)",
    "__lt__": "(self, x)", "__add__": "(self, x)", "__iadd__": "(self, x)", "__call__": "(self, x)",
    "__enter__": "(self)", "__exit__": "(self, *x)", "__neg__": "(self)", "__iter__": "(self)",
    "__setattr__": "(self, x, y)", "__delattr__": "(self, x)", "__str__": "(self)",
}  # fmt: skip


class Shapes(Maker):
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.raising: list[str] = []
        self.special: set[str] = set()

    def program(self) -> str:
        parts = [_HEAD, START, _MORE]
        makers = [
            self.plain_function, self.plain_function, self.closure, self.cached, self.recursive,
            self.loose, self.guarded_function, self.gives, self.gives,
        ]  # fmt: skip
        for i in range(self.r.randint(1, 3)):
            parts.append(self.r.choice(makers)(f"f{i}"))
        if self.r.random() < 0.5:
            parts.append(self.own())
        if self.r.random() < 0.2:
            parts.append(self.manager())
        parts.append(self.body(self.r.randint(3, 8), 0))
        return "".join(parts)

    # ------------------------------------------------------------ definitions

    def plain_function(self, name: str) -> str:
        text = self.function(name)
        self.functions.append(name)
        return text

    def within(self, count: int, argument: str = "x", *, guarded: int = 0) -> str:
        """The body of a function, which ends with a ``return``."""
        loops, self.loops = self.loops, 0
        before, self.guarded = self.guarded, guarded
        self.inner += 1
        local = f"    a = b = c = v = r = {argument}\n"
        body = indent(self.body(count, 1), "    ") + f"    return {self.number(1)}\n"
        self.inner -= 1
        self.loops, self.guarded = loops, before
        return _GLOBALS + local + body

    def function(self, name: str) -> str:
        return super().function(name).replace("    global d, e, l, m, t, u, o, p\n", _GLOBALS)

    def guarded_function(self, name: str) -> str:
        """A function that raises: called where something catches it."""
        self.guarded += 1
        text = f"def {name}(x):\n{self.within(self.r.randint(1, 3), guarded=1)}"
        self.guarded -= 1
        self.raising.append(name)
        return text

    def closure(self, name: str) -> str:
        """A function that keeps what it has counted."""
        inner = indent(self.within(self.r.randint(1, 2), "y"), "    ").replace(
            "        global", "        nonlocal g\n        global", 1
        )
        step = f"        g {self.r.choice('+-')}= y\n"
        lines = inner.split("\n")
        result = "        return g\n" if self.r.random() < 0.6 else ""
        at = self.r.randrange(3, len(lines) - 1) if len(lines) > 5 else 3
        while lines[at].startswith("         ") or lines[at][8:12] in ("else", "exce", "fina", "elif"):
            at -= 1
        inner = "\n".join([*lines[:at], step.rstrip("\n"), *lines[at:]])
        text = (
            f"def make_{name}(x):\n    g = x\n    def inner(y):\n{inner}{result}    return inner\n"
            f"{name} = make_{name}({self.r.choice(['0', 'n', 'rank'])})\n"
        )
        self.functions.append(name)
        return text

    def cached(self, name: str) -> str:
        """A function that is executed once for each argument."""
        how = self.r.choice(["functools.lru_cache(None)", "functools.cache", "functools.lru_cache"])
        text = f"@{how}\ndef {name}(x):\n{self.within(self.r.randint(1, 2))}"
        self.functions.append(name)
        return text

    def recursive(self, name: str) -> str:
        body = indent(self.body(1, 1), "    ")
        text = (
            f"def {name}(x):\n{_GLOBALS}    a = b = c = v = r = x\n"
            f"    if x <= 0 or x > 4:\n        return {self.number(2)}\n{body}"
            f"    return {self.r.choice(['', '1 + ', 'x * '])}{name}(x - 1)\n"
        )
        self.functions.append(name)
        return text

    def loose(self, name: str) -> str:
        """A function with a list for a default, and any number of arguments."""
        body = self.within(self.r.randint(1, 2))
        step = self.r.choice(["h.append(x)", "h.extend(xs)", "h += [x]", "x += sum(xs)", "h.append(len(ys))"])
        result = self.r.choice(["len(h)", "sum(h)", "len(xs)", "ys.get('y', x)", "h[0] if h else 0"])
        body = body.replace(_GLOBALS, f"{_GLOBALS}    {step}\n    if {self.test(2)}:\n        return {result}\n")
        self.functions.append(name)
        return f"def {name}(x, *xs, h=[], **ys):\n{body}"

    def gives(self, name: str) -> str:
        """A generator."""
        r, y = self.r, self.r.choice
        loops, self.loops = self.loops, 0
        self.inner += 1
        block = indent(self.body(1, 2), "        ")
        self.inner -= 1
        self.loops = loops
        block = block if "return" not in block or r.random() < 0.5 else "        pass\n"
        end = y(["", "    yield x\n", "    return x\n", f"    l.append({self.number(2)})\n", "    ddp.barrier()\n"])
        give = y(["yield q", "yield q", "s.add((yield q))", "a = (yield q) or 0", "yield from l[:2]"])
        guard = y(["", "", "", "try"])
        loop = f"    for q in range({y(['2', 'n', 'rank', '3', 'n + 1'])}):\n{block}        {give}\n"
        if guard:
            loop = f"    try:\n{indent(loop, '    ')}    finally:\n        {y(['ddp.barrier()', 'l.append(x)', 'pass'])}\n"
        self.generators.append(name)
        start = f"    {y(['pass', 'ddp.barrier()', 'yield x', 'm.append(x)'])}\n"
        return f"def {name}(x):\n{_GLOBALS}    a = b = c = v = r = x\n{start}{loop}{end}"

    def own(self) -> str:
        """A class with special methods; the boxes of the program are of it."""
        r, y = self.r, self.r.choice
        chosen = r.sample(sorted(_SPECIAL), r.randint(1, 4))
        parts = ["class Own(Box):\n"]
        for name in chosen:
            self.special.add(name)
            parts.append(indent(self.method(name), "    "))
        if r.random() < 0.5:
            self.special.add("size")
            parts.append(indent(f"@{y(['property', 'functools.cached_property'])}\n" + self.method("size", "(self)"), "    "))
        if r.random() < 0.5:
            self.special.add("act")
            parts.append(indent(self.method("act", "(self, x=0)"), "    "))
        return "".join(parts) + f"o, p = Own({y(['0', 'n', 'rank'])}), {y(['Own(1)', 'Own(rank)', 'Box(n)', 'o'])}\n"

    def method(self, name: str, parameters: str = "") -> str:
        y = self.r.choice
        parameters = parameters or _SPECIAL[name]
        head = "    x = 1\n" if "x" not in parameters else ""
        if name == "__getattr__":
            head = "    if x[0] == '_' or x in 'vw':\n        raise AttributeError(x)\n    x = 1\n"
        if name == "__exit__":
            head = "    x = 1\n"
        if name == "__delattr__":
            head = "    object.__delattr__(self, x)\n    x = 1\n"
        if name == "__setattr__":
            head = f"    object.__setattr__(self, x, {y(['y', 'y', '0', 'rank'])})\n    if x in 'vwz':\n        return None\n    x = 1\n"
        body = self.within(self.r.choice([0, 1, 1, 2]))
        # an object of the program itself in its own special methods would not end
        body = re.sub(r"\b[op]\.", "self.", body)
        lines = body.rstrip("\n").split("\n")
        result = lines[-1].strip().removeprefix("return ")
        ends = {
            "__bool__": f"return bool({result})", "__len__": f"return abs(int({result})) % 5", "__iter__": f"return iter({self.listed(1)})",
            "__contains__": f"return bool({result})", "__enter__": "return self", "__str__": f"return str({result})", "__iadd__": "return self",
        }  # fmt: skip
        lines[-1] = "    " + ends.get(name, f"return {result}")
        body = "\n".join(lines) + "\n"
        body = body.replace(_GLOBALS, f"{_GLOBALS}{head}")
        if name in ("__bool__", "__len__", "__contains__", "__iter__", "__str__"):
            body = "\n".join(
                _plain_return(line, name) for line in body.split("\n")
            )
        return f"def {name}{parameters}:\n{body}"

    def manager(self) -> str:
        y = self.r.choice
        self.special.add("managed")
        after = y(["ddp.barrier()", "l.append(x)", "pass"])
        middle = y([
            "    yield x\n", f"    try:\n        yield x\n    finally:\n        {after}\n",
            f"    try:\n        yield x\n    except Exception:\n        {after}\n",
        ])  # fmt: skip
        return f"@contextlib.contextmanager\ndef managed(x):\n{_GLOBALS}{indent(self.body(1, 2), '    ')}{middle}"

    # ------------------------------------------------------------ expressions

    def number(self, deep: int = 0) -> str:
        r, y = self.r, self.r.choice
        if deep > 2 or r.random() < 0.6:
            return super().number(deep)

        def x() -> str:
            return self.number(deep + 1)

        box = y(OBJECTS)
        kinds = [
            lambda: f"len({{{x()} for q in {self.listed(deep + 1)} if {self.test(deep + 1, 'q')}}})",
            lambda: f"sum({self.each(deep)} for q in {self.listed(deep + 1)} if {self.test(deep + 1, 'q')})",
            lambda: f"functools.reduce(lambda q, g: {y(['q + g', 'meet(q)', 'g', self.each(deep)])}, {self.listed(deep + 1)}, {x()})",
            lambda: f"sum(k[{y('01')}])",
            lambda: f"len(z[{y('01')}])",
            lambda: f"next(w, {x()})",
            lambda: f"len(str({x()}))",
            lambda: f"(lambda q: {self.each(deep)})({x()})",
            lambda: "(lambda q=l: len(q))()",
            lambda: f"[{x()}, {x()}][{y(['0', '1', 'bool(rank)', 'n > 0'])}]",
            lambda: f"({x()}, {x()})[{y(['0', '-1', 'rank', 'n > 0'])}]",
            lambda: f"{{0: {x()}}}.get({x()}, {x()})",
            lambda: f"int({x()} {y('<>')} {x()} {y('<>')} {x()})",
            lambda: f"max((q for q in {self.listed(deep + 1)}), default={x()}, key=lambda q: {self.each(deep)})",
            lambda: f"{y(['max', 'min'])}({self.listed(deep + 1)}, key=lambda q: (m.append(q), q)[1], default=0)",
            lambda: f"(g := {x()}) + g",
            lambda: f"(meet({x()}) if {self.test(deep + 1)} else {x()})",
            lambda: f"getattr({box}, {y([repr('v'), repr('w')])} if {self.test(deep + 1)} else 'v')",
        ]
        def calls(f: str) -> list[Callable[[], str]]:
            return [
                lambda: f"{y(['max', 'min'])}({self.listed(deep + 1)}, key={f}, default={x()})",
                lambda: f"sum(map({f}, {self.listed(deep + 1)}))",
                lambda: f"len(list(filter({f}, {self.listed(deep + 1)})))",
                lambda: f"int({y(['any', 'all'])}({f}(q) for q in {self.listed(deep + 1)}))",
                lambda: f"next(({f}(q) for q in {self.listed(deep + 1)}), {x()})",
                lambda: f"next(map({f}, {self.listed(deep + 1)}), {x()})",
                lambda: f"functools.partial({f}, {x()})()",
                lambda: f"{f}({x()})",
                lambda: f"{f}({x()}) + {f}({x()})",
            ]

        def gives(g: str) -> list[Callable[[], str]]:
            return [
                lambda: f"next(({self.each(deep)} for q in {g}({x()}) if {self.test(deep + 1, 'q')}), {x()})",
                lambda: f"int({x()} in {g}({x()}))",
                lambda: f"int({y(['any', 'all'])}({g}({x()})))",
                lambda: f"sum({g}({x()}))",
                lambda: f"len([*{g}({x()})])",
                lambda: f"dict(zip({self.listed(deep + 1)}, {g}({x()}))).get(0, 1)",
            ]

        kinds += [kind for f in self.functions for kind in calls(f)]
        kinds += [kind for g in self.generators for kind in gives(g)]
        if "__call__" in self.special:
            kinds.append(lambda: f"(o({x()}) or 0)")
        if "__len__" in self.special:
            kinds += [lambda: "len(o)"] * 2
        if "__getitem__" in self.special:
            kinds += [lambda: f"(o[{x()}] or 0)"] * 2
        if "__neg__" in self.special:
            kinds.append(lambda: "(-o or 0)")
        if "__add__" in self.special:
            kinds.append(lambda: f"(o + {x()} or 0)")
        if "__getattr__" in self.special:
            kinds += [lambda: f"o.y{y('01')}"] * 2
        if "__str__" in self.special:
            kinds += [lambda: "len(str(o))", lambda: "len(f'{o}')"]
        if "__iter__" in self.special:
            kinds += [lambda: "len([q for q in o])", lambda: "sum(o)", lambda: "max(o, default=0)"]
        if "size" in self.special:
            kinds += [lambda: "(o.size or 0)"] * 2
        if "act" in self.special:
            kinds += [lambda: f"(o.act({x()}) or 0)"] * 2
        if self.guarded and self.raising:
            kinds += [lambda: f"{y(self.raising)}({x()})"] * 3
        made: str = y(kinds)()
        return made

    def test(self, deep: int = 0, name: str = "") -> str:
        r, y = self.r, self.r.choice
        if r.random() < 0.7:
            return super().test(deep, name)

        def x() -> str:
            return name if name and self.r.random() < 0.6 else self.number(deep + 1)

        kinds: list[Callable[[], str]] = [
            lambda: f"{x()} {y(['<', '<=', '==', '!='])} {x()} {y(['<', '>', '=='])} {x()}",
            lambda: f"isinstance(o if {y(['rank', 'n', 'rank == n'])} else {y(['1', 'p', 'l'])}, {y(['Box', 'int', '(Box, list)'])})",
            lambda: f"(g := {x()}) > 0",
            lambda: f"l is k[{y('01')}]",
            lambda: f"{x()} in ({x()}, {x()})",
            lambda: f"{x()} in {self.listed(deep + 1)}",
            lambda: f"len({self.listed(deep + 1)}) {y(['>', '=='])} {x()}",
            lambda: "callable(getattr(o, 'v', None))",
        ]  # fmt: skip
        if "__bool__" in self.special or "__len__" in self.special:
            kinds += [lambda: y(["o", "not o", "o and p", "bool(o)"])] * 2
        if "__contains__" in self.special or "__iter__" in self.special:
            kinds += [lambda: f"{x()} in o"] * 2
        if "__eq__" in self.special:
            kinds += [lambda: f"o == {x()}", lambda: "o != p", lambda: "o in [p, o]"]
        if "__lt__" in self.special:
            kinds += [lambda: f"bool(o < {x()})"]
        if "__getattr__" in self.special:
            kinds += [lambda: f"hasattr(o, 'y{y('01')}')"]
        if deep > 2:
            kinds = kinds[:1]
        return y(kinds)()

    def listed(self, deep: int = 0) -> str:
        r, y = self.r, self.r.choice
        if deep > 2 or r.random() < 0.75:
            return super().listed(deep)

        def x() -> str:
            return self.number(deep + 1)

        kinds: list[Callable[[], str]] = [
            lambda: f"[*{self.listed(deep + 1)}, {x()}]",
            lambda: f"[q * g for q in {self.listed(deep + 1)} for g in {self.listed(deep + 1)}]",
            lambda: f"[g for q in {self.listed(deep + 1)} if (g := {self.each(deep)})]",
            lambda: f"sorted({self.listed(deep + 1)}, key=lambda q: {self.each(deep)}, reverse={y(['True', 'bool(rank)'])})",
            lambda: f"list({{q: {self.each(deep)} for q in {self.listed(deep + 1)} if {self.test(deep + 1, 'q')}}}.values())",
            lambda: f"k[{y('01')}]",
            lambda: f"sorted({{{x()}, {x()}}})",
            lambda: f"{y(LISTS)}[{y(['0', '1', 'n', 'rank'])}:{y(['2', 'n', 'rank', 'a'])}]",
        ]
        if self.functions:
            kinds += [
                lambda: f"list(map({y(self.functions)}, {self.listed(deep + 1)}))",
                lambda: f"sorted({self.listed(deep + 1)}, key={y(self.functions)})",
            ]
        if self.generators:
            kinds += [
                lambda: f"list({y(self.generators)}({x()}))",
                lambda: f"[{self.each(deep)} for q in {y(self.generators)}({x()})]",
            ]
        return y(kinds)()

    # ------------------------------------------------------------ statements

    def plain(self, deep: int) -> str:
        r, y, x = self.r, self.r.choice, self.number
        if r.random() < 0.7:
            return super().plain(deep)
        box, f = y(OBJECTS), y(self.functions) if self.functions else "meet"
        kinds: list[Callable[[], str]] = [
            lambda: f"{y(LISTS)} = {y(LISTS)}",
            lambda: f"k[{y('01')}].append({x(1)})",
            lambda: f"k[{y(['0', '1', 'bool(rank)'])}] = {y([*LISTS, '[]', self.listed(1)])}",
            lambda: f"k = {y(['[l, m]', '[m, l]', '[l, l]', '[l, []]'])}",
            lambda: f"z = {y(['(l, d)', '(m, e)', '(l, e)', 'z'])}",
            lambda: f"z[0].append({x(1)})",
            lambda: f"z[1][{y(KEYS)}] = {x(1)}",
            lambda: f"{box}.{y('vw')} = {box}.{y('vw')}",
            lambda: f"{y(LISTS)}[{y([':1', '1:', ':n', ':rank'])}] = {self.listed(1)}[:3]",
            lambda: f"del {y(LISTS)}[{y([':1', '1:', ':n', ':rank'])}]",
            lambda: f"{y(['a, *m', '*m, a'])} = {x(1)}, *{self.listed(1)}",
            lambda: f"w = iter({self.listed(1)})",
            lambda: f"w = (q for q in {self.listed(1)} if {self.test(1, 'q')})",
            lambda: f"w = (meet(q) for q in {self.listed(1)})",
            lambda: f"w = (l.append(q) or 0 for q in {self.listed(1)})",
            lambda: "next(w, 0)",
            lambda: f"torch.add({y(TENSORS)}, {x(2)}, out={y(TENSORS)})",
            lambda: f"{y(LISTS)}.sort(key=lambda q: {self.each(1)})",
            lambda: f"{y(LISTS)}.sort(key={f})",
            lambda: f"d, e = {y(['e, d', 'd, d'])}",
            lambda: f"t, u = {y(['u, t', 't, t'])}",
            lambda: f"[q.add_({x(2)}) for q in {y(['[t]', '[t, u]', '(u,)'])}]",
            lambda: f"h = [t]; h[0] += {x(2)}",
            lambda: f"setattr({box}, {y([repr('v'), repr('w')])}, {x(1)})",
            lambda: f"vars({box})['v'] = {x(1)}",
            lambda: f"[{f}(q) for q in {self.listed(1)}]",
            lambda: "; ".join([f"{f}({x(2)})"] * y([2, 14])),
            lambda: f"a = {f}({x(1)})",
            lambda: f"{f}({x(1)})",
            lambda: f"d.update({{q: {x(2)} for q in {self.listed(1)} if {self.test(2, 'q')}}})",
            lambda: f"s |= {y(['{rank}', '{n}', 'set(l)'])}" if not self.inner else "pass",
            lambda: f"[meet(q) for q in {self.listed(1)} if {self.test(1, 'q')}]",
            lambda: f"{{meet(q) for q in {self.listed(1)}}}",
        ]

        def gives(g: str) -> list[Callable[[], str]]:
            return [
                lambda: f"w = {g}({x(1)})",
                lambda: f"w = {g}({x(1)}); next(w, 0); w.close()",
                lambda: f"l = [*{g}({x(1)}), 1][:9]",
                lambda: f"a, *m = 0, *{g}({x(1)})",
            ]

        kinds += [kind for g in self.generators for kind in gives(g)]
        if "__setitem__" in self.special:
            kinds += [lambda: f"o[{x(1)}] = {x(1)}"] * 2
        if "__iadd__" in self.special:
            kinds += [lambda: f"o += {x(1)}"] * 2
        if "__call__" in self.special:
            kinds += [lambda: f"o({x(1)})"]
        if "act" in self.special:
            kinds += [lambda: f"o.act({x(1)})"]
        if "__iter__" in self.special:
            kinds += [lambda: "l = [*o][:5]"]
        if self.guarded:
            kinds += [
                lambda: f"assert {self.test(1)}",
                lambda: f"a, b = {self.listed(1)}",
                lambda: f"w.send({x(1)})" if self.generators else "raise KeyError",
                lambda: "next(w)",
                lambda: f"del {box}.{y('vwz')}",
            ]
            if self.raising:
                kinds += [lambda: f"{y(self.raising)}({x(1)})"] * 3
        return y(kinds)()

    def compound(self, deep: int) -> str:
        r, y = self.r, self.r.choice
        if r.random() < 0.75:
            return super().compound(deep)
        block = self.block
        kinds: list[Callable[[], str]] = [
            lambda: f"match {self.number(1)}:\n    case 0:\n{indent(block(deep), '    ')}    case 1 | 2 if {self.test(1)}:\n{indent(block(deep), '    ')}"
            + (f"    case _:\n{indent(block(deep), '    ')}" if r.random() < 0.5 else ""),
            lambda: f"match {y(['(a, b)', '[a, r]', 'l', '(n, rank)', 'd'])}:\n    case [0, a]:\n{indent(block(deep), '    ')}    case {{0: b}}:\n{indent(block(deep), '    ')}    case [b, *_]:\n{indent(block(deep), '    ')}",
            lambda: f"match o:\n    case Box(v=0):\n{indent(block(deep), '    ')}    case Box(w=c):\n{indent(block(deep), '    ')}",
            lambda: f"with contextlib.suppress({y(['Exception', 'KeyError', 'ValueError'])}):\n{self.caught(deep)}",
            lambda: f"if (g := {self.number(1)}):\n{block(deep)}elif {self.test(1)}:\n{block(deep)}else:\n{block(deep)}",
            lambda: f"try:\n{self.caught(deep)}except Exception as g:\n{block(deep)}finally:\n{block(deep)}",
            lambda: self.over("w", deep),
        ]
        if "managed" in self.special:
            kinds += [lambda: f"with managed({self.number(1)}) as v:\n{block(deep)}"] * 2
        if {"__enter__", "__exit__"} <= self.special:
            kinds += [lambda: f"with o:\n{block(deep)}"] * 3
        if "__iter__" in self.special:
            kinds += [lambda: self.over("o", deep)]
        if self.generators:
            kinds += [lambda: self.over(f"{y(self.generators)}({self.number(1)})", deep)] * 2
        return y(kinds)()

    def caught(self, deep: int) -> str:
        self.guarded += 1
        body = self.block(deep)
        self.guarded -= 1
        return body

    def over(self, source: str, deep: int) -> str:
        self.loops += 1
        body = self.block(deep)
        self.loops -= 1
        more = f"else:\n{self.block(deep)}" if self.r.random() < 0.25 else ""
        return f"for v in {source}:\n{body}{more}"


def _plain_return(line: str, name: str) -> str:
    """A ``return`` of a special method gives what Python wants of it."""
    head, word, result = line.partition("return ")
    kept = {"__len__": "return abs(", "__iter__": "return iter(", "__bool__": "return bool(", "__contains__": "return bool(", "__str__": "return str("}[name]
    if not word or head.strip() or line.strip().startswith(kept):
        return line
    wrap = {"__bool__": "bool({})", "__contains__": "bool({})", "__len__": "abs(int({})) % 5", "__iter__": "iter([{}])", "__str__": "str({})"}[name]
    return f"{head}return {wrap.format(result)}"


def program(seed: int) -> str:
    """A program of a seed."""
    return next(text for i in range(100) if _compiles(text := Shapes(100 * seed + i).program()))


def _compiles(text: str) -> bool:
    """Whether the places of ``:=`` are such as Python allows."""
    try:
        compile(text, "<ranks>", "exec")
    except SyntaxError:
        return False
    return True
