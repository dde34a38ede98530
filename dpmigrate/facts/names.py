"""What the names of a program mean.

A name is resolved as Python does (local, enclosing, global), and through the imports of the program's own modules to where it is bound; what a
star import of another library may bring in stays unknown unless ``stars`` can tell.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from functools import cached_property

from dpmigrate.facts.library import MUTATORS
from dpmigrate.facts.scopes import Binding, Links, Scope, Variable
from dpmigrate.facts.stars import meaning
from dpmigrate.facts.symbols import FunctionNode, Symbols, last

__all__ = ["FunctionNode", "Loop", "Names", "last", "of_self", "position"]

Loop = ast.For | ast.AsyncFor | ast.While


class Names(Symbols):
    """The names of a program's modules, resolved."""

    def __init__(self, tree: ast.Module, imported: Sequence[ast.Module] = (), links: Links | None = None) -> None:
        super().__init__(tree, imported, links)
        self._dotted: dict[ast.AST, str] = {}
        self._meant: dict[ast.AST, Variable | None] = {}
        self._uses: dict[Variable, list[ast.Name | ast.Attribute]] = {}
        self._altered: dict[ast.AST, ast.Subscript | ast.Call | None] = {}
        #: the reads of attributes that compute what they give, as far as that is known; another read may give something else
        self.computed: set[ast.AST] = set()

    # ------------------------------------------------------------------ variables
    def owner(self, scope: Scope, name: str) -> Scope | None:
        """The scope in which ``name``, read in ``scope``, is bound, be it by an import; None for builtins and star imports."""
        first = True
        s: Scope | None = scope
        while s is not None:
            if name in s.shared:
                break
            if name in s.outer:
                s, first = s.parent, False
                continue
            if name in s.bindings and (first or not s.is_class):
                return s
            s, first = s.parent, False
        module = scope.module
        # a name that only functions bind, by ``global name``, lives in the module
        return module if name in module.bindings or any(s.module is module for s in self._declared.get(name, ())) else None

    @cached_property
    def _declared(self) -> dict[str, list[Scope]]:
        """The scopes that bind a name which they declare global or nonlocal."""
        found: dict[str, list[Scope]] = {}
        for s in self.opened.values():
            for name in s.outer & s.bindings.keys():
                found.setdefault(name, []).append(s)
        return found

    @cached_property
    def functions_by_name(self) -> dict[str, list[Scope]]:
        """The functions and methods of the program, by their names."""
        found: dict[str, list[Scope]] = {}
        for s in self.opened.values():
            if isinstance(s.node, FunctionNode):
                found.setdefault(s.node.name, []).append(s)
        return found

    def variable(self, scope: Scope, name: str, starred: frozenset[int] = frozenset()) -> Variable | None:
        """The variable that ``name`` means in ``scope``, through imports of the program's own modules; a module itself has the name ``''``.

        ``starred`` are modules whose star imports are being followed: two modules may import all of each other.
        """
        seen: set[tuple[int, str]] = set()
        while True:
            owner = self.owner(scope, name)
            if owner is None:
                return self._from_star(scope.module, name, starred)
            linked = self.imported.targets(owner, name)
            if len(linked) != 1 or (id(owner), name) in seen or self._given_anew(owner, name):
                return owner, name
            seen.add((id(owner), name))
            scope, name = linked[0]
            if not name:
                return linked[0]

    def _from_star(self, module: Scope, name: str, seen: frozenset[int]) -> Variable | None:
        """What the star imports of the program's own modules bring in; the last one holds."""
        if id(module) in seen:
            return None
        seen |= {id(module)}
        for source in reversed(self.imported.stars(module)):
            if not name.startswith("_"):
                found = self.variable(source, name, seen) if name in source.bindings else self._from_star(source, name, seen)
                if found is not None:
                    return found
        return None

    def run_by(self, statement: ast.Import | ast.ImportFrom) -> list[ast.Module]:
        """The program's modules that an import statement runs, where nothing has imported them before."""
        return self.imported.run_by(statement, self.scope_of[statement].module)

    def meant(self, node: ast.AST) -> Variable | None:
        """The variable that a Name means, or an Attribute of one of the program's own modules (``utils.save``)."""
        if node not in self._meant:
            self._meant[node] = self._means(node)
        return self._meant[node]

    def _means(self, node: ast.AST) -> Variable | None:
        if isinstance(node, ast.Name):
            owner = self.owner(self.scope_of[node], node.id)
            linked = self.imported.targets(owner, node.id) if owner is not None else []
            if owner is None or len(linked) != 1 or not self._given_anew(owner, node.id):
                return self.variable(self.scope_of[node], node.id)
            if self._rebound(owner, node.id, node):
                return owner, node.id
            return self.variable(*linked[0]) if linked[0][1] else linked[0]  # model = model.Net(), of ``import model``
        if isinstance(node, ast.Attribute):
            base = self.meant(node.value)
            if base is not None and not base[1]:
                return self._member(base[0], node.attr)
        return None

    def _member(self, module: Scope, name: str) -> Variable | None:
        """What a module holds under a name: a variable, or a module inside it."""
        found = self.variable(module, name)
        inside = self.imported.inside(module, name) if found is None else None
        return (inside, "") if inside is not None else found

    def alternatives(self, scope: Scope, name: str) -> list[Variable]:
        """What several import statements of one name bring, of which one runs: ``try: from fast import Net``, ``except ImportError: from slow import Net``."""
        linked = self.imported.targets(scope, name)
        return [v for target in linked if target[1] and (v := self.variable(*target)) is not None] if len(linked) > 1 else []

    def uses(self, scope: Scope, name: str) -> list[ast.Name | ast.Attribute]:
        """Every place that reads the variable that ``name`` means in ``scope``: by its name, by that of an import, or as an attribute of its module."""
        variable = self.variable(scope, name)
        if variable is None:
            return [n for n in self.reads(name) if self.variable(self.scope_of[n], n.id) is None]
        if variable not in self._uses:
            self._uses[variable] = self._used(*variable)
        return list(self._uses[variable])

    def _used(self, owner: Scope, name: str) -> list[ast.Name | ast.Attribute]:
        variable = (owner, name)
        found: list[ast.Name | ast.Attribute] = [n for w in self.imported.words(owner, name) for n in self.reads(w) if self.meant(n) == variable]
        if owner.is_module and len(self.trees) > 1:
            found += [a for a in self.attributes(name) if isinstance(a.ctx, ast.Load) and self.meant(a) == variable]
        return found

    def alteration(self, node: ast.expr) -> ast.Subscript | ast.Call | None:
        """What may change the object that a read gives, if anything does: ``d[k]`` that is assigned to, ``d[k].append(x)``, ``fill(d, x)`` of the program."""
        if node not in self._altered:
            self._altered[node] = self._altering(node)
        return self._altered[node]

    def _altering(self, node: ast.expr) -> ast.Subscript | ast.Call | None:
        above = self.parent[node]
        if isinstance(above, ast.Call) and above.func is not node:
            return above if node in above.args and last(above.func) in self.functions_by_name else None
        while isinstance(above, ast.Attribute | ast.Subscript) and above.value is node:
            node, above = above, self.parent[above]
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return node
        return above if isinstance(above, ast.Call) and isinstance(node, ast.Attribute) and node.attr in MUTATORS else None

    def calls_of(self, definition: FunctionNode | ast.ClassDef) -> list[ast.Call]:
        """The calls by the name of a function or class, or by one under which it is imported; of a method, those of anything's method of that name."""
        scope = self.scope_of[definition]
        found = [c for w in self.imported.words(scope, definition.name) for c in self.calls(w)]
        if scope.is_class:
            return [c for c in found if isinstance(c.func, ast.Attribute) and self.meant(c.func) is None]
        return [c for c in found if self.meant(c.func) == (scope, definition.name)]

    def bindings(self, scope: Scope, name: str) -> Iterator[Binding]:
        """Every binding of the variable that ``name`` means in ``scope``, those by ``global`` statements included."""
        found = self.variable(scope, name)
        if found is None:
            return
        owner, name = found
        yield from owner.bindings.get(name, ())
        yield from (b for s in self._declared.get(name, ()) if self.owner(s, name) is owner for b in s.bindings[name])

    # ------------------------------------------------------------------ libraries
    def dotted(self, node: ast.AST) -> str:
        """The dotted name that an expression means through imports: ``nn.DataParallel`` → ``torch.nn.DataParallel``; '' if it is none."""
        if node not in self._dotted:
            self._dotted[node] = self._resolve(node)
        return self._dotted[node]

    def word(self, func: ast.expr) -> str:
        """The last part of what is called, by whatever name it was imported: ``bar`` is ``tqdm`` after ``from tqdm import tqdm as bar``."""
        return self.dotted(func).rpartition(".")[2] or last(func)

    def _resolve(self, node: ast.AST) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        found = self.variable(self.scope_of[node], node.id)
        if found is None or self._still_builtin(*found, node):
            base = meaning(node.id, self.stars, self._read_from.get(node.id, set())) or f"?.{node.id}"
        else:
            while found is not None and not found[1] and parts:  # utils.nn.Linear: what a module of the program has imported
                found = self._member(found[0], parts.pop())
            base = self.imports.get((id(found[0]), found[1]), "") if found is not None else ""
            if found is None or not base or self.imported.targets(*found) or self._rebound(*found, node):
                return ""
        return ".".join([base, *reversed(parts)])

    def _still_builtin(self, owner: Scope, name: str, node: ast.Name) -> bool:
        """Whether a module reads a builtin before it gives the name to something else: ``answer = input()`` … ``for input in loader``."""
        bound = owner.bindings.get(name, ())
        if not hasattr(builtins, name) or not bound or not owner.is_module or self.scope_of[node] is not owner or not isinstance(node.ctx, ast.Load):
            return False
        if any(b.how not in ("assign", "for", "with", "aug") for b in bound) or any(s.module is owner for s in self._declared.get(name, ())):
            return False  # a function may have given it before
        repeated = any(isinstance(a, ast.For | ast.While) for a in self.ancestors(node))
        return not repeated and all(position(node) < position(b.target) or self._in_value(node, b) for b in bound)

    def _in_value(self, node: ast.Name, b: Binding) -> bool:
        """Whether the node is read for the value that the binding stores: ``input = input()``."""
        return b.how == "assign" and b.value is not None and self.is_inside(node, b.value)

    @cached_property
    def _read_from(self) -> dict[str, set[str]]:
        """The attributes that are read from each name, whatever it means there."""
        found: dict[str, set[str]] = {}
        for n in self.nodes:
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
                found.setdefault(n.value.id, set()).add(n.attr)
        return found

    def _rebound(self, owner: Scope, name: str, node: ast.Name) -> bool:
        """Whether an imported name has been given another value before: ``import model`` … ``model = model.Net()``."""
        others = self._given_anew(owner, name)
        if not others or not isinstance(node.ctx, ast.Load) or self.scope_of[node].module is not owner.module:
            return bool(others)
        first = min(others, key=lambda b: position(b.target))
        return position(node) > position(first.target) and not (first.value is not None and self.is_inside(node, first.value))

    def _given_anew(self, owner: Scope, name: str) -> list[Binding]:
        """The bindings by which an imported name gets another value."""
        return [b for b in owner.bindings[name] if b.how in ("assign", "for", "with") and not self._stand_in(b)]

    def _stand_in(self, b: Binding) -> bool:
        """``except ImportError: Writer = None``: what takes the place of a missing import does not hide it."""
        nothing = isinstance(b.value, ast.Constant) and b.value.value is None
        return nothing or any(isinstance(a, ast.ExceptHandler) for a in self.ancestors(b.target))


def position(node: ast.AST) -> tuple[int, int]:
    """Where the node begins, for comparing what stands first."""
    return (node.lineno, node.col_offset)  # type: ignore[attr-defined]


def of_self(node: ast.Attribute) -> bool:
    """Whether it is an attribute of the object, or of the class, whose method it stands in."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
