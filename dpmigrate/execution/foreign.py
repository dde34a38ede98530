"""What the machine asks of the tables: code outside of the program."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dpmigrate.execution.values import NOTHING, Atom, Value, join

if TYPE_CHECKING:
    from dpmigrate.execution.heap import Object
    from dpmigrate.execution.machine import Frame, Machine


@dataclass(slots=True)
class Arguments:
    """What a call gives. ``star`` and ``stars`` are elements of ``*x`` and ``**x`` that are not
    known one by one; they may be any parameter's.
    """

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    star: Value = NOTHING
    stars: Value = NOTHING

    def get(self, index: int, name: str = "") -> Value | None:
        """The argument of a parameter by its place or its name; None where it is left out."""
        if name and name in self.keywords:
            return self.keywords[name]
        if 0 <= index < len(self.positional):
            return self.positional[index]
        if self.star and index >= 0:
            return self.star
        if self.stars and name:
            return self.stars
        return None

    def all(self) -> list[Value]:
        """Every argument, in order."""
        more = [v for v in (self.star, self.stars) if v]
        return [*self.positional, *self.keywords.values(), *more]

    def after(self, *first: Value) -> Arguments:
        """The same with more before them."""
        return Arguments([*first, *self.positional], self.keywords, self.star, self.stars)

    def joined(self) -> Value:
        """The value that is any of them."""
        return join(*self.all())

    def key(self) -> tuple[object, ...]:
        """What tells two of them apart."""
        return (
            tuple(map(_unordered, self.positional)),
            tuple((k, _unordered(v)) for k, v in self.keywords.items()),
            _unordered(self.star),
            _unordered(self.stars),
        )


def _unordered(v: Value) -> object:
    return v if len(v) < 2 else frozenset(v)


class Library(Protocol):
    """Tables of what code outside of the program does.

    Every method answers None where no table has a row; the machine then does what is safe for code
    that nobody knows: the result is UNKNOWN if anything it was given differs between ranks.
    """

    def call(
        self, m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """A call of a function or class by its dotted name."""

    def method(
        self,
        m: Machine,
        receiver: Atom,
        name: str,
        arguments: Arguments,
        node: ast.AST,
        frame: Frame,
    ) -> Value | None:
        """A call of a method of something that is not an instance of the program's."""

    def attribute(
        self, m: Machine, receiver: Atom, name: str, node: ast.AST, frame: Frame
    ) -> Value | None:
        """An attribute that is no method: a shape, a dtype, a field of a library's object."""

    def called(
        self, m: Machine, receiver: Atom, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """A call of an object: of a library's, or of an instance whose class derives from one."""

    def constructed(
        self, m: Machine, made: Object, kinds: frozenset[str], arguments: Arguments, node: ast.AST,
        frame: Frame,
    ) -> None:  # fmt: skip
        """The constructor of a library's class runs for an instance of the program's
        (``super().__init__``).
        """

    def operator(
        self, m: Machine, word: str, operands: list[Value], node: ast.AST, frame: Frame
    ) -> Value | None:
        """An operator on data (``@``), an index, a slice: words of Python's data model (``matmul``,
        ``getitem``).
        """

    def begun(self, m: Machine, iterable: Value, node: ast.AST, frame: Frame) -> None:
        """A loop over something begins: before its first element."""

    def elements(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> Value | None:
        """What a loop over something takes from it."""

    def entered(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> Value | None:
        """``with`` begins; the value is what stands behind ``as``."""

    def left(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> None:
        """``with`` ends."""

    def kinds(self, name: str) -> frozenset[str]:
        """What the instances of a library's class are: ``module``, ``optimizer``, ``dataset`` …"""

    def exported(self, module: str, name: str) -> bool | None:
        """Whether a star import of a library's module brings a name; None: not known."""
