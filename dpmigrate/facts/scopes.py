"""The nouns of names: scopes, what binds a name, what import statements call the program's own modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: what the import statements of the program's modules mean: (index of the module, dotted name as it stands there) -> index of the module
Links = Mapping[tuple[int, str], int]
#: a variable: the scope that binds it, and its name there
Variable = tuple["Scope", str]


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class or function with the names it binds. ``node`` is the ``ast`` node that opens it."""

    node: ast.AST
    parent: Scope | None
    name: str
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  # declared global or nonlocal
    shared: set[str] = field(default_factory=set)  # declared global

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def is_module(self) -> bool:
        return self.parent is None

    @property
    def module(self) -> Scope:
        """The scope of the module that this one stands in."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives a name a value.

    ``path`` says which part of ``value`` it is: ``()`` the value itself, ``(1,)`` its second element, ``("*",)`` any element.
    """

    target: ast.AST
    how: str  # assign | aug | for | with | param | import | def | class | except | match
    value: ast.AST | None = None
    path: tuple[int | str, ...] = ()


def imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules that an import statement may run, as it writes them: packages before what lies in them."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            parts = alias.name.split(".")
            yield from (".".join(parts[: i + 1]) for i in range(len(parts)))
        return
    dots, parts = "." * statement.level, statement.module.split(".") if statement.module else []
    yield from (dots + ".".join(parts[: i + 1]) for i in range(len(parts))) if parts else (dots,)
    base = dots + ".".join(parts)
    yield from (f"{base}{'.' if parts else ''}{alias.name}" for alias in statement.names if alias.name != "*")


def packages(modules: Sequence[Scope], links: Links) -> tuple[dict[tuple[int, str], Scope], dict[tuple[int, str], Scope]]:
    """What import statements call the program's modules, by the module that they stand in, and the modules that a package holds.

    A folder without ``__init__`` is a package of which nothing but its modules is known.
    """
    named = {(id(modules[here]), dotted): modules[target] for (here, dotted), target in links.items()}
    inside: dict[tuple[int, str], Scope] = {}
    folders: dict[str, Scope] = {}
    for here, dotted in sorted(links):
        *packages, _ = dotted.split(".")
        for i in range(len(packages), 0, -1):
            package, last = ".".join(packages[:i]), dotted.split(".")[i]
            if package.strip(".") and (id(modules[here]), package) not in named:
                named[id(modules[here]), package] = folders.setdefault(package, Scope(ast.Module([], []), None, ""))
            if package.strip("."):
                inside[id(named[id(modules[here]), package]), last] = named[id(modules[here]), ".".join([package, last])]
    return named, inside
