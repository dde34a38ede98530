"""Python programs at random: control flow, containers, calls and objects, whose branches hang on the environment."""

from __future__ import annotations

import random
from collections.abc import Callable

_NAMES = ("a", "b", "c")
_HEAD = '''
import os
def coin(k):
    return os.environ.get(k) == "1"
class Box:
    count = 0
    def __init__(self, v):
        self.v = v
        self.log = []
    def put(self, v):
        self.v = v
        self.log.append(v)
        return self
class Gate:
    def __enter__(self):
        trail.append("in")
        return self
    def __exit__(self, *given):
        trail.append("out")
class Halt(Exception):
    pass
trail = []
'''


class _Writer:
    """One program; ``depth`` bounds the nesting."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.coins = 0
        self.functions: list[str] = []

    def say(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def coin(self) -> str:
        self.coins += 1
        return f'coin("C{self.random.randrange(6)}")'

    def value(self) -> str:
        n = self.pick(*_NAMES)
        return self.pick(
            str(self.random.randrange(4)), repr(self.pick("x", "y")), n, n, f"[{n}]", f"({n}, 1)", f"{{'k': {n}}}",
            f"Box({n})", "None", f"({n} if {self.coin()} else 0)", f"({self.coin()} and {n})", f"[{n} for _ in (1, 2)]",
            f"[w for w in (1, 2, 3) if {self.coin()}]", f"f{self.random.randrange(3)}({n})", f"(lambda q: q)({n})", "len(trail)", "list(trail)",
        )  # fmt: skip

    def block(self, indent: int, depth: int, *, loop: bool, function: bool) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(indent, depth, loop=loop, function=function)

    def statement(self, indent: int, depth: int, *, loop: bool, function: bool) -> None:
        simple: list[Callable[[], None]] = [
            lambda: self.say(indent, f"{self.pick(*_NAMES)} = {self.value()}"),
            lambda: self.say(indent, f"{self.pick(*_NAMES)} = {self.value()}"),
            lambda: self.say(indent, f"trail.append({self.pick(*_NAMES)})"),
            lambda: self.say(indent, f"{self.pick(*_NAMES)}, {self.pick(*_NAMES)} = {self.value()}, {self.value()}"),
            lambda: self.say(indent, f"box.put({self.value()})"),
            lambda: self.say(indent, f"box.{self.pick('v', 'w')} = {self.value()}"),
            lambda: self.say(indent, f"table[{self.pick(*_NAMES)!r}] = {self.value()}"),
            lambda: self.say(indent, f"table.pop({self.pick(*_NAMES)!r}, None)"),
            lambda: self.say(indent, f"row = [{self.value()}]"),
            lambda: self.say(indent, "rows.append(row)"),
            lambda: self.say(indent, "Box.count += 1"),
        ]
        if loop:
            simple.append(lambda: self.say(indent, self.pick("break", "continue")))
        if function:
            simple.append(lambda: self.say(indent, f"return {self.pick(*_NAMES)}"))
        nested = [self._if, self._for, self._while, self._try, self._with, self._generated]
        if depth and self.random.random() < 0.5:
            self.random.choice(nested)(indent, depth - 1, loop, function)
        else:
            self.random.choice(simple)()

    def _if(self, indent: int, depth: int, loop: bool, function: bool) -> None:
        self.say(indent, f"if {self.coin()}:")
        self.block(indent + 1, depth, loop=loop, function=function)
        if self.random.random() < 0.5:
            self.say(indent, "else:")
            self.block(indent + 1, depth, loop=loop, function=function)

    def _for(self, indent: int, depth: int, loop: bool, function: bool) -> None:
        over = self.pick("(1, 2)", "range(20)", "list(trail)[:3]", "('p', 'q', 'r')", "[a, b]", "gen(3)")
        self.say(indent, f"for {self.pick(*_NAMES)} in {over}:")
        self.block(indent + 1, depth, loop=True, function=function)
        if self.random.random() < 0.3:
            self.say(indent, "else:")
            self.block(indent + 1, depth, loop=loop, function=function)

    def _while(self, indent: int, depth: int, loop: bool, function: bool) -> None:
        name = f"n{len(self.lines)}"
        self.say(indent, f"{name} = 0")
        self.say(indent, self.pick(f"while {name} < 5:", "while True:"))
        self.say(indent + 1, f"{name} += 1")
        self.say(indent + 1, f"if {name} > 6 or {self.coin()}:")
        self.say(indent + 2, "break")
        self.block(indent + 1, depth, loop=True, function=function)

    def _try(self, indent: int, depth: int, loop: bool, function: bool) -> None:
        self.say(indent, "try:")
        self.block(indent + 1, depth, loop=loop, function=function)
        self.say(indent + 1, f"if {self.coin()}:")
        self.say(indent + 2, "raise Halt")
        self.block(indent + 1, depth, loop=loop, function=function)
        caught = self.random.random() < 0.7
        if caught:
            self.say(indent, "except Halt:")
            self.block(indent + 1, depth, loop=loop, function=function)
        if not caught or self.random.random() < 0.4:
            self.say(indent, "finally:")
            self.say(indent + 1, f"{self.pick(*_NAMES)} = 'finally'")
            self.say(indent + 1, "trail.append('finally')")

    def _with(self, indent: int, depth: int, loop: bool, function: bool) -> None:
        self.say(indent, self.pick("with Gate():", "with gate():"))
        self.block(indent + 1, depth, loop=loop, function=function)

    def _generated(self, indent: int, depth: int, loop: bool, function: bool) -> None:
        self.say(indent, f"for {self.pick(*_NAMES)} in gen({self.pick(*_NAMES)}):")
        self.block(indent + 1, depth, loop=True, function=function)

    def program(self) -> str:
        self.say(0, _HEAD)
        self.say(0, "from contextlib import contextmanager")
        self.say(0, "@contextmanager\ndef gate():\n    trail.append('open')\n    try:\n        yield 1\n    finally:\n        trail.append('close')")
        self.say(0, "def gen(v):")
        self.say(1, "yield v")
        self.say(1, f"if {self.coin()}:")
        self.say(2, "return")
        self.say(1, "for w in (v, 'g'):")
        self.say(2, "trail.append(w)")
        self.say(2, "yield w")
        for n in range(3):
            self.say(0, f"def f{n}(a):")
            self.say(1, self.pick("global c", "global b, c", "pass"))
            self.say(1, "b = 'local'" if "b" not in self.lines[-1] else "b = 'global'")
            self.say(1, "c = 0" if "c" not in self.lines[-2] else "pass")
            if n:
                self.say(1, f"if {self.coin()}:")
                self.say(2, f"a = f{n - 1}(a)")
            self.body(1, 1)
            self.say(1, "return a")
        self.say(0, "a, b, c = 0, 'b', None\nbox = Box(0)\ntable = {}\nrow = [0]\nrows = []")
        for _ in range(6):
            self.statement(0, 3, loop=False, function=False)
        return "\n".join(self.lines) + "\n"

    def body(self, indent: int, depth: int) -> None:
        for _ in range(3):
            line = len(self.lines)
            self.statement(indent, depth, loop=False, function=True)
            # functions must not call those that are defined later
            self.lines[line:] = [_earlier(text) for text in self.lines[line:]]


def _earlier(text: str) -> str:
    for n in range(3):
        text = text.replace(f"f{n}(", "(lambda q: q)(")
    return text


def program(seed: int) -> str:
    """The program of a seed."""
    return _Writer(seed).program()


def settings(seed: int) -> dict[str, str]:
    """How the coins of a run fall."""
    chance = random.Random(seed)
    return {f"C{n}": str(chance.randrange(2)) for n in range(6)}
