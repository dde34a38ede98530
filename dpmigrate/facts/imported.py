"""What import statements bring from the program's own modules: modules, and variables of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from dpmigrate.facts.scopes import Links, Scope, Variable, imported_names, packages


class Imported:
    """The imports of a program's own modules, noted one by one as the walk comes to them; keys are ids of scopes."""

    def __init__(self, modules: Sequence[Scope], links: Links) -> None:
        self._named, self._inside = packages(modules, links)
        self._targets: dict[tuple[int, str], list[Variable]] = {}  # an imported name -> what it is; '' is a module itself
        self._words: dict[tuple[int, str], set[str]] = {}  # a variable -> the names under which other modules import it
        self._stars: dict[int, list[Scope]] = {}  # a module -> those of which it has star imports

    def note(self, scope: Scope, name: str, base: str, attribute: str) -> None:
        """``from base import attribute as name``, or ``import base as name`` where there is no attribute."""
        whole = f"{base}{'' if base.endswith('.') else '.'}{attribute}" if attribute else base
        module, part = self._named.get((id(scope.module), base)), self._named.get((id(scope.module), whole))
        if attribute and module is not None and (part is None or (attribute in module.bindings and module is not scope.module)):
            target = (module, attribute)
            self._words.setdefault((id(module), attribute), set()).add(name)
        elif part is not None:
            target = (part, "")
        else:
            return
        found = self._targets.setdefault((id(scope), name), [])
        if target not in found:
            found.append(target)

    def note_star(self, scope: Scope, base: str) -> bool:
        """``from base import *``; whether ``base`` is a module of the program."""
        module = self._named.get((id(scope.module), base))
        if module is not None:
            self._stars.setdefault(id(scope.module), []).append(module)
        return module is not None

    def targets(self, scope: Scope, name: str) -> list[Variable]:
        """What a name that an import binds is in the program's modules: several where imports stand in alternatives, none where it is another library's."""
        return self._targets.get((id(scope), name), [])

    def stars(self, module: Scope) -> list[Scope]:
        """The modules of which a module has star imports, in order."""
        return self._stars.get(id(module), [])

    def words(self, scope: Scope, name: str) -> list[str]:
        """The names under which the program knows a variable, in order."""
        return sorted({name, *self._words.get((id(scope), name), ())})

    def inside(self, module: Scope, name: str) -> Scope | None:
        """The module of this name in a package."""
        return self._inside.get((id(module), name))

    def named(self, module: Scope, words: tuple[str, ...]) -> list[Scope]:
        """The modules that a module imports under names whose words match these regular expressions, in order."""
        pattern = re.compile(r"\.".join(words))
        found = (target for (here, dotted), target in sorted(self._named.items(), key=lambda n: n[0][1]) if here == id(module) and pattern.fullmatch(dotted))
        return list(dict.fromkeys(found))

    def run_by(self, statement: ast.Import | ast.ImportFrom, module: Scope) -> list[ast.Module]:
        """The modules that an import statement of ``module`` runs, where nothing has imported them before."""
        found = []
        for dotted in imported_names(statement):
            target = self._named.get((id(module), dotted))
            if target is not None and isinstance(target.node, ast.Module) and target.node not in found:
                found.append(target.node)
        return found
