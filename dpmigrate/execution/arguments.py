"""What a call gives."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from dpmigrate.execution.joins import join
from dpmigrate.execution.values import NOTHING, Value


@dataclass(slots=True)
class Arguments:
    """What a call gives. ``star`` and ``stars`` are elements of ``*x`` and ``**x`` that are not
    known one by one; they may be any parameter's. ``names`` are the parameters that have a place,
    where the function is not one of the program and they are known. ``opened`` is the ``x`` of a ``*x`` beside
    which no other argument has a place, where its elements are not known one by one.
    """

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    star: Value = NOTHING
    stars: Value = NOTHING
    names: tuple[str, ...] = ()
    opened: Value = NOTHING

    def get(self, index: int, name: str = "") -> Value | None:
        """The argument of a parameter by its place or its name; None where it is left out. The
        name says the place where the parameters are known.
        """
        if name and name in self.keywords:
            return self.keywords[name]
        index = self.names.index(name) if name in self.names else index
        if 0 <= index < len(self.positional):
            return self.positional[index]
        if 0 <= index < len(self.names) and self.names[index] in self.keywords:
            return self.keywords[self.names[index]]
        if self.star and index >= 0:
            return self.star
        if self.stars and name:
            return self.stars
        return None

    def by_name(self) -> dict[str, Value]:
        """Every argument whose name is known."""
        return {**dict(zip(self.names, self.positional, strict=False)), **self.keywords}

    def named(self, names: tuple[str, ...]) -> Arguments:
        """The same of a function with these parameters. The first argument, of which other code
        asks by its place, stands there though it is given by its name.
        """
        positional, keywords = self.positional, self.keywords
        if names and not positional and not self.star and names[0] in keywords:
            positional = [keywords[names[0]]]
            keywords = {n: v for n, v in keywords.items() if n != names[0]}
        return Arguments(positional, keywords, self.star, self.stars, names, self.opened)

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

    def mapped(self, change: Callable[[Value], Value]) -> Arguments:
        """The same with every value changed."""
        return Arguments(
            [change(v) for v in self.positional],
            {k: change(v) for k, v in self.keywords.items()},
            change(self.star),
            change(self.stars),
            self.names,
            self.opened,
        )

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


def fits(given: Arguments, parameters: ast.arguments, before: int = 0) -> bool:
    """Whether a function with these parameters takes the arguments, after ``before`` others; a call
    that leaves one out, or gives one too many, raises.
    """
    if given.star or given.stars:
        return True
    count = before + len(given.positional)
    positional = [a.arg for a in (*parameters.posonlyargs, *parameters.args)]
    if count > len(positional) and parameters.vararg is None:
        return False
    named = {*positional[count:], *(a.arg for a in parameters.kwonlyargs)}
    if parameters.kwarg is None and not given.keywords.keys() <= named:
        return False
    required = positional[count : len(positional) - len(parameters.defaults)]
    alone = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    required += [a.arg for a, default in alone if default is None]
    return set(required) <= given.keywords.keys()
